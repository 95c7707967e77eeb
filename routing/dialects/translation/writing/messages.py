"""A conversation as a Messages call.

1. Cache marks are ours: the last tool, the last system text, the last two user messages. The client's own are not repeated.
2. What the user is called goes out only where it is the session's id.
3. What a model does not take is decided in `messages_models`, and named here where it is left out.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....errors import BadCall
from ....values import JsonObject
from ...calls.editing import json_text
from ..neutral import Conversation, Feature, Format, LeftOut, ToolUse, Written
from .messages_blocks import write_text
from .messages_history import (
    GO_ON,
    instructions_of,
    write_history,
    write_instructions,
)
from .messages_models import DEFAULT_MAX_TOKENS, Traits, traits_of
from .messages_schema import strict_schema
from .messages_thinking import Thinking, decide_thinking, room_for
from .messages_tools import (
    Chosen,
    Names,
    tools_of_history,
    write_choice,
    write_tools,
)

_MARK: JsonObject = {"cache_control": {"type": "ephemeral"}}
_MARKED_MESSAGES = 2
_JSON_ONLY = "Answer with one JSON object and nothing else: no words around it, no code fence."


def write(conversation: Conversation, *, model: str, session: str, maker: str) -> Written:
    if not conversation.messages:
        raise BadCall("The call holds no message, so there is nothing to answer. Send at least one.")
    left = LeftOut()
    for feature, what in conversation.others:
        left.add(feature, what)
    traits, names = traits_of(model), Names()
    leading, others = instructions_of(conversation.messages)
    declared = write_tools(conversation.tools, names, traits, left)
    chosen = write_choice(declared, conversation.choice, conversation.parallel, traits, left)
    system = write_instructions(leading, left)
    messages = write_history(others, names, left, maker=maker, system=traits.system)
    chosen = _with_tools_of_history(chosen, conversation, names)
    schema, asked = _schema(conversation.format, traits, left)
    max_tokens = _max_tokens(conversation, traits, left)
    thinking = decide_thinking(
        conversation.reasoning, traits, left, max_tokens=max_tokens, forced=chosen.forced, begun=_thought_first(messages)
    )
    if messages[-1]["role"] == "assistant":
        _end_with_user(messages, goes_on=traits.prefill and not thinking.on and schema is None)
    body: JsonObject = {"model": model, "max_tokens": max_tokens, "stream": conversation.stream}
    body |= _prompt([*system, *asked], chosen, messages)
    body |= _output(thinking, schema)
    body |= _sampling(conversation, traits, thinking, left)
    body |= _metadata(conversation.user, session, left)
    return Written(body, left, names.changed)


# --- what the model reads ---------------------------------------------------------------------------------------------


def _prompt(system: list[JsonObject], chosen: Chosen, messages: list[JsonObject]) -> JsonObject:
    prompt: JsonObject = {}
    if chosen.tools:
        prompt["tools"] = _marked(chosen.tools)
        if chosen.choice is not None:
            prompt["tool_choice"] = chosen.choice
    if system:
        prompt["system"] = _marked(system)
    typed = [message for message in messages if message["role"] == "user"]
    for message in typed[-_MARKED_MESSAGES:]:
        message["content"] = _marked(_blocks(message))
    prompt["messages"] = messages
    return prompt


def _marked(blocks: Sequence[JsonObject]) -> list[JsonObject]:
    return [*blocks[:-1], {**blocks[-1], **_MARK}]


def _blocks(message: JsonObject) -> list[JsonObject]:
    content = message["content"]
    return content if isinstance(content, list) else []


def _with_tools_of_history(chosen: Chosen, conversation: Conversation, names: Names) -> Chosen:
    if chosen.tools:
        return chosen
    calls = [block for message in conversation.messages for block in message.blocks if isinstance(block, ToolUse)]
    return Chosen(tools_of_history(calls, names), {"type": "none"}) if calls else chosen


def _thought_first(messages: Sequence[JsonObject]) -> bool:
    """Whether the answer that is going on, through calls and their results, began with the model's own thinking."""
    if messages[-1]["role"] == "assistant":
        return True  # a beginning by the client; where the model thinks, it starts anew
    first: JsonObject | None = None
    for message in reversed(messages):
        if message["role"] == "assistant":
            first = message
        elif not any(block["type"] == "tool_result" for block in _blocks(message)):
            break
    return first is None or _blocks(first)[0]["type"] in ("thinking", "redacted_thinking")


def _end_with_user(messages: list[JsonObject], *, goes_on: bool) -> None:
    """An answer that the client began is gone on with where the model does that; it must not end in white space."""
    if not goes_on:
        messages.append({"role": "user", "content": write_text(GO_ON)})
        return
    last = _blocks(messages[-1])[-1]
    if last["type"] == "text":
        last["text"] = str(last["text"]).rstrip()


# --- what is wanted of the answer -------------------------------------------------------------------------------------


def _max_tokens(conversation: Conversation, traits: Traits, left: LeftOut) -> int:
    wanted = conversation.max_tokens or DEFAULT_MAX_TOKENS + room_for(conversation.reasoning, traits)
    most = min(wanted, traits.most or wanted)
    if conversation.max_tokens and most != wanted:
        left.add(Feature.OTHER, f"a limit of {wanted} tokens: {most} is the model's")
    return most


def _schema(wanted: Format | None, traits: Traits, left: LeftOut) -> tuple[JsonObject | None, list[JsonObject]]:
    """The schema that the API holds the model to; or else the words that ask for it."""
    if wanted is None:
        return None, []
    asked = wanted.described
    if asked is not None and traits.format and (exact := strict_schema(asked)) is not None:
        return exact, []
    left.add(Feature.STRUCTURED, "asked for in the system text")
    described = f" It obeys this JSON schema: {json_text(asked)}" if asked else ""
    return None, write_text(_JSON_ONLY + described)


def _output(thinking: Thinking, schema: JsonObject | None) -> JsonObject:
    output: JsonObject = {}
    config: JsonObject = {}
    if thinking.config is not None:
        output["thinking"] = thinking.config
    if thinking.effort is not None:
        config["effort"] = thinking.effort
    if schema is not None:
        config["format"] = {"type": "json_schema", "schema": schema}
    return output | ({"output_config": config} if config else {})


def _sampling(conversation: Conversation, traits: Traits, thinking: Thinking, left: LeftOut) -> JsonObject:
    sampling: JsonObject = {}
    free = traits.sampling and not (traits.claude and thinking.on)
    temperature, top_p, top_k = conversation.temperature, conversation.top_p, conversation.top_k
    if temperature is not None:
        fitting = min(max(temperature, 0.0), 1.0)
        if free:
            sampling["temperature"] = fitting
        if fitting != temperature or (not free and temperature != 1):
            left.add(Feature.TEMPERATURE, f"{temperature:g} as {fitting if free else 1:g}")
    if top_p is not None and top_p < 1:
        if free and traits.one_sampler and sampling.get("temperature") == 1:
            del sampling["temperature"]  # it is so anyway
        if free and not (traits.one_sampler and "temperature" in sampling):
            sampling["top_p"] = max(top_p, 0.0)
        else:
            left.add(Feature.OTHER, "top_p")
    if top_k is not None:
        if free:
            sampling["top_k"] = top_k
        else:
            left.add(Feature.TOP_K)
    if stops := [word for word in conversation.stops if word.strip()]:
        sampling["stop_sequences"] = stops
    if len(stops) != len(conversation.stops):
        left.add(Feature.STOPS, "of white space alone")
    if conversation.seed is not None:
        left.add(Feature.SEED)
    if conversation.presence_penalty or conversation.frequency_penalty:
        left.add(Feature.PENALTIES)
    return sampling


def _metadata(user: str, session: str, left: LeftOut) -> JsonObject:
    if user and user == session:
        return {"metadata": {"user_id": user}}
    if user:
        left.add(Feature.METADATA, "user")
    return {}
