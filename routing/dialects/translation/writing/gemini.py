"""A conversation as a generateContent call.

1. The same conversation gives the same bytes, and a longer one begins with those of the shorter: Google caches by prefix.
2. Nothing is added that changes the answer (no safety settings, no tools).
3. JSON as the answer beside tools, before version 3, is asked for in the instructions: the interface refuses both at once.
"""

from __future__ import annotations

from ....errors import BadCall
from ....jsonbytes import dumps
from ....values import JsonObject
from ..neutral import Conversation, Feature, LeftOut, Written
from .gemini_models import Family, family_of, thinking_config
from .gemini_parts import Form, write_contents, write_system
from .gemini_schema import clean_any
from .gemini_tools import Names, write_choice, write_tools

_MOST_STOPS = 5
_MOST_TEMPERATURE = 2.0
_SEEDS = range(-(2**31), 2**31)
_ONLY_JSON = "Answer with JSON alone: no other text, no code fence."


def write(conversation: Conversation, *, model: str, session: str, maker: str) -> Written:
    """`session` has no place here: Google caches without a key."""
    left_out, names, family = LeftOut(), Names(), family_of(model)
    for feature, what in conversation.others:
        left_out.add(feature, what)
    tools = write_tools(conversation, names, left_out)
    choice = write_choice(conversation, names, left_out)
    form = Form(family, maker, names, left_out)
    system, messages = write_system(conversation.messages, form)
    contents = write_contents(messages, form)
    config = _generation_config(conversation, family, left_out)
    if tools and not family.modern:
        system += _asked_in_words(config, conversation, left_out)
    if not contents and system:
        # instructions alone are a call elsewhere; here something must have been said
        contents, system = [{"role": "user", "parts": system}], []
    if not contents:
        raise BadCall("The call has no message that this provider could read: send at least one text or file")
    _name_unsaid(conversation, left_out)
    body: JsonObject = {"contents": contents}
    if system:
        body["systemInstruction"] = {"parts": system}
    if tools:
        body["tools"] = tools
    if choice:
        body["toolConfig"] = {"functionCallingConfig": choice}
    if config:
        body["generationConfig"] = config
    return Written(body, left_out, names.changed)


def _generation_config(conversation: Conversation, family: Family, left_out: LeftOut) -> JsonObject:
    config: JsonObject = {}
    if (wanted := conversation.max_tokens) is not None and wanted > 0:
        config["maxOutputTokens"] = most = min(wanted, family.most_output or wanted)
        if most != wanted:
            left_out.add(Feature.OTHER, f"a limit of {wanted} tokens: {most} is the model's")
    if conversation.temperature is not None:
        config["temperature"] = min(max(conversation.temperature, 0.0), _MOST_TEMPERATURE)
        if config["temperature"] != conversation.temperature:
            left_out.add(Feature.TEMPERATURE, f"{conversation.temperature:g} as {config['temperature']:g}")
    if conversation.top_p is not None:
        config["topP"] = conversation.top_p
    if conversation.top_k is not None:
        if conversation.top_k > 0:
            config["topK"] = conversation.top_k
        else:
            left_out.add(Feature.TOP_K, str(conversation.top_k))
    if stops := [stop for stop in conversation.stops if stop]:
        config["stopSequences"] = stops[:_MOST_STOPS]
        if len(stops) > _MOST_STOPS:
            left_out.add(Feature.MANY_STOPS, f"{len(stops)}, it takes {_MOST_STOPS}")
    if conversation.seed is not None:
        if conversation.seed in _SEEDS:
            config["seed"] = conversation.seed
        else:
            left_out.add(Feature.SEED, "over 32 bits")
    config |= _penalties(conversation, family, left_out)
    if conversation.format is not None:
        config["responseMimeType"] = "application/json"
        if schema := conversation.format.described:
            config["responseSchema"] = clean_any(schema, left_out, conversation.format.name or "the answer")
    if thinking := thinking_config(conversation.reasoning, family, left_out):
        config["thinkingConfig"] = thinking
    return config


def _penalties(conversation: Conversation, family: Family, left_out: LeftOut) -> JsonObject:
    """From version 2.5 on the models refuse them."""
    given = {"presencePenalty": conversation.presence_penalty, "frequencyPenalty": conversation.frequency_penalty}
    told: JsonObject = {name: value for name, value in given.items() if value}
    if told and family.version >= (2, 5):
        left_out.add(Feature.PENALTIES)
        return {}
    return told


def _asked_in_words(config: JsonObject, conversation: Conversation, left_out: LeftOut) -> list[JsonObject]:
    """What moves from the configuration into the instructions."""
    if config.pop("responseMimeType", None) is None:
        return []
    config.pop("responseSchema", None)
    left_out.add(Feature.STRUCTURED, "asked for in words: this model takes no schema beside tools")
    schema = conversation.format.described if conversation.format else None
    rule = f" It must match this JSON Schema:\n{dumps(schema).decode()}" if schema else ""
    return [{"text": _ONLY_JSON + rule}]


def _name_unsaid(conversation: Conversation, left_out: LeftOut) -> None:
    if conversation.parallel is False:
        left_out.add(Feature.PARALLEL, "one call at a time")
    if conversation.user:
        left_out.add(Feature.METADATA)
    if conversation.format is not None and conversation.format.strict:
        left_out.add(Feature.STRICT, "of the answer")
