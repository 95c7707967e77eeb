"""A generateContent call as it was meant.

1. Names of fields in camelCase and snake_case mean the same, as they do for Google.
2. Calls and results without ids get them from the name and the call's number in the history: always the same ones.
3. A text part's signature becomes a thought without text right behind it; its seal says that it belongs there.
"""

from __future__ import annotations

from collections.abc import Iterable

from ....errors import BadCall
from ....values import Endpoint, JsonObject
from ...fields import list_of, object_of, text_of
from ..neutral import (
    Block,
    Conversation,
    Effort,
    Feature,
    Format,
    Message,
    Reasoning,
    Text,
)
from .gemini_parts import History, Others, named, whole_of
from .gemini_schema import json_schema
from .gemini_tools import read_choice, read_tools

_LEVELS: dict[str, Effort] = {"MINIMAL": "minimal", "LOW": "low", "MEDIUM": "medium", "HIGH": "high", "XHIGH": "xhigh"}
_SCHEMAS = ("responseJsonSchema", "_responseJsonSchema", "responseSchema")

_SESSION = ("sessionId", "userPromptId")
"""Whoever routed the call has read these."""
_READ = frozenset(
    (
        *("model", "contents", "systemInstruction", "tools", "toolConfig", "generationConfig", "generateContentRequest"),
        *_SESSION,
    )
)
_NOT_SAID: dict[str, Feature] = {
    "safetySettings": Feature.SAFETY,
    "labels": Feature.METADATA,
    "serviceTier": Feature.SERVICE_TIER,
    "store": Feature.STORED,
}
_CONFIG_READ = frozenset(
    (
        *("maxOutputTokens", "temperature", "topP", "topK", "stopSequences", "seed", "presencePenalty", "frequencyPenalty"),
        *("responseMimeType", "responseFormat", "thinkingConfig", *_SCHEMAS),
    )
)
_CONFIG_NOT_SAID: dict[str, Feature] = {
    "candidateCount": Feature.CANDIDATES,
    "responseLogprobs": Feature.LOGPROBS,
    "logprobs": Feature.LOGPROBS,
    "mediaResolution": Feature.IMAGE_DETAIL,
    "speechConfig": Feature.AUDIO,
    "audioTimestamp": Feature.AUDIO,
    "audioTranscriptionConfig": Feature.AUDIO,
}


def read(body: JsonObject, endpoint: Endpoint) -> Conversation:
    outer = named(body)
    inner = named(outer["generateContentRequest"]) if isinstance(outer.get("generateContentRequest"), dict) else outer
    if inner.get("cachedContent"):
        raise BadCall(
            "`cachedContent` names a part of the conversation that only Google's own service holds: "
            "send the content itself, or send this call to the provider that keeps it"
        )
    others = Others()
    config = named(inner.get("generationConfig"))
    messages = _messages(inner, others)
    tools = read_tools(inner.get("tools"), others)
    choice = read_choice(inner.get("toolConfig"), others)
    form = _format(config, others)
    others.unread(inner, _READ, _NOT_SAID)
    if whole_of(config.get("candidateCount")) == 1:
        config.pop("candidateCount")
    if [text_of(one).upper() for one in list_of(config.get("responseModalities"))] == ["TEXT"]:
        config.pop("responseModalities")
    others.unread(config, _CONFIG_READ, _CONFIG_NOT_SAID)
    return Conversation(
        model=(endpoint.model or text_of(outer.get("model")) or text_of(inner.get("model"))).removeprefix("models/"),
        stream=endpoint.stream is True,
        messages=messages,
        tools=tools,
        choice=choice,
        max_tokens=whole_of(config.get("maxOutputTokens")),
        temperature=_number(config.get("temperature")),
        top_p=_number(config.get("topP")),
        top_k=whole_of(config.get("topK")),
        stops=tuple(stop for stop in map(text_of, list_of(config.get("stopSequences"))) if stop),
        seed=whole_of(config.get("seed")),
        presence_penalty=_number(config.get("presencePenalty")),
        frequency_penalty=_number(config.get("frequencyPenalty")),
        reasoning=_reasoning(named(config.get("thinkingConfig"))),
        format=form,
        others=others.found,
    )


def _messages(inner: JsonObject, others: Others) -> tuple[Message, ...]:
    contents = inner.get("contents")
    if isinstance(contents, dict):
        contents = [contents]
    if not isinstance(contents, list) or not all(isinstance(item, dict) for item in contents):
        raise BadCall("`contents` is not a list of messages: each is an object with `role` and `parts`")
    history = History(others)
    system = _system(inner.get("systemInstruction"), history)
    messages = [message for item in contents for message in history.messages(named(item))]
    if not messages:
        raise BadCall("`contents` holds nothing that could be sent: give at least one message with text or a file")
    return (Message("system", system), *messages) if system else tuple(messages)


def _system(given: object, history: History) -> tuple[Block, ...]:
    """A string, a Content, a list of parts, or one part."""
    if isinstance(given, str):
        return (Text(given),) if given else ()
    if isinstance(given, dict):
        given = given.get("parts", given)
    return tuple(block for part in _as_list(given) for block in history.blocks(part))


def _format(config: JsonObject, others: Others) -> Format | None:
    mime = text_of(config.get("responseMimeType")).lower()
    given = next((object_of(config[name]) for name in _SCHEMAS if config.get(name)), None)
    for entry in _as_list(config.get("responseFormat")):
        told = named(named(entry).get("text"))
        mime = mime or text_of(told.get("mimeType")).lower().replace("application_json", "application/json")
        given = given or object_of(told.get("jsonSchema") or told.get("schema")) or None
        for kind in named(entry).keys() - {"text"}:
            others.add(Feature.OTHER, f"responseFormat {kind}")
    if mime == "text/x.enum":
        # one bare word of a list: as JSON it would come in quotes
        others.add(Feature.STRUCTURED, mime)
        return None
    if given:
        return Format(json_schema(given))
    return Format() if mime == "application/json" else None


def _reasoning(config: JsonObject) -> Reasoning:
    budget = whole_of(config.get("thinkingBudget"))
    effort = _LEVELS.get(text_of(config.get("thinkingLevel")).upper())
    shown = config.get("includeThoughts")
    told = budget is not None or effort is not None
    return Reasoning(
        on=(budget != 0) if told else None,
        effort=effort,
        budget=budget if budget is not None and budget >= 0 else None,
        adaptive=budget is not None and budget < 0,
        shown=shown if isinstance(shown, bool) else None,
    )


def _number(value: object) -> float | None:
    """Google takes numbers in quotes as well."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if abs(number) < 1e18 else None


def _as_list(value: object) -> Iterable[object]:
    return value if isinstance(value, list) else [] if value is None else [value]
