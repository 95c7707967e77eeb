"""OpenAI Responses: a client's call is read into a conversation.

1. `instructions` is the first system message; developer messages are system messages wherever they stand.
2. A history that the provider keeps (`previous_response_id`, `conversation`, a stored prompt) is not here: such a call is
   refused, for an answer without it would be an answer to something else.
3. What a conversation has no place for is named in `others`; what says nothing to anybody else (`store: false`, ids, states)
   is not.
"""

from __future__ import annotations

from typing import cast, get_args

from ....errors import BadCall
from ....values import Endpoint, JsonObject
from ...calls.editing import items_in, text_in
from ...fields import list_of, object_of, text_of
from ..neutral import Conversation, Effort, Feature, Format, Message, Reasoning, Text
from .responses_items import History, messages_of, read_items
from .responses_tools import Notes, choice_of, declared

_KEPT_ELSEWHERE = {
    "previous_response_id": "the history before this call",
    "conversation": "the conversation",
    "prompt": "the text of a stored prompt",
}
"""Fields that point at what a provider keeps, and what that is."""

_READ = frozenset(
    (
        "model", "stream", "input", "instructions", "tools", "tool_choice", "parallel_tool_calls", "max_output_tokens",
        "temperature", "top_p", "reasoning", "text", "safety_identifier", "user", "include", "store", "truncation",
        "service_tier", "prompt_cache_key", "stream_options", "background", "previous_response_id", "conversation", "prompt",
    )
)  # fmt: skip
"""Fields that have a place, or are looked at below. Who writes the call gives it a cache key of its own."""

_NAMED: dict[str, Feature] = {
    "metadata": Feature.METADATA,
    "client_metadata": Feature.METADATA,
    "top_logprobs": Feature.LOGPROBS,
    "context_management": Feature.CONTEXT_MANAGEMENT,
    "prompt_cache_retention": Feature.CACHE_MARKS,
    "prompt_cache_options": Feature.CACHE_MARKS,
    "moderation": Feature.SAFETY,
}
"""Features behind the fields that have no place; all others are `Feature.OTHER`."""

_NAMED_UNLESS: dict[str, tuple[Feature, tuple[object, ...]]] = {
    "store": (Feature.STORED, (False,)),
    "background": (Feature.STORED, (False,)),
    "truncation": (Feature.CONTEXT_MANAGEMENT, ("disabled",)),
    "service_tier": (Feature.SERVICE_TIER, ("auto", "default")),
}
"""Fields with values that ask for no more than what everybody does."""
_INCLUDED: dict[str, Feature | None] = {
    "reasoning.encrypted_content": None,
    "message.output_text.logprobs": Feature.LOGPROBS,
}
_EFFORTS = get_args(Effort)


def read(body: JsonObject, endpoint: Endpoint) -> Conversation:
    _refuse_what_is_elsewhere(body)
    notes: Notes = {}
    history = _history(body, notes)
    tools = declared([*list_of(body.get("tools")), *history.tools], notes)
    reasoning = {**object_of(body.get("reasoning")), **object_of(history.settings.get("reasoning"))}
    text = {**object_of(body.get("text")), **object_of(history.settings.get("text"))}
    choice = choice_of(body.get("tool_choice"), tools, notes)
    _note_fields(body, reasoning, text, notes)
    parallel = body.get("parallel_tool_calls")
    return Conversation(
        model=text_of(body.get("model")) or endpoint.model or "",
        stream=body.get("stream") is True if endpoint.stream is None else endpoint.stream,
        messages=_messages(body, history),
        tools=tools,
        choice=choice,
        parallel=parallel if isinstance(parallel, bool) else None,
        max_tokens=int(most) if (most := _number(body, "max_output_tokens")) else None,
        temperature=_number(body, "temperature"),
        top_p=_number(body, "top_p"),
        reasoning=_reasoning(reasoning),
        format=_format(object_of(text.get("format")), notes),
        user=text_of(body.get("safety_identifier")) or text_of(body.get("user")),
        others=tuple(notes),
    )


def _refuse_what_is_elsewhere(body: JsonObject) -> None:
    for name, what in _KEPT_ELSEWHERE.items():
        if body.get(name):
            raise BadCall(
                f"`{name}`: {what} is kept at the provider that made it, and this call goes to one that cannot read it. "
                "Send the whole history in `input` (with `store: false`), start a new conversation, or stay with that provider.",
                details={"field": name},
            )


def _history(body: JsonObject, notes: Notes) -> History:
    given = body.get("input")
    if isinstance(given, str):
        given = [{"role": "user", "content": given}]
    return read_items(items_in({"input": given}, "input") if given is not None else [], notes)


def _messages(body: JsonObject, history: History) -> tuple[Message, ...]:
    instructions = text_in(body, "instructions")
    first = (Message("system", (Text(instructions),)),) if instructions else ()
    messages = (*first, *messages_of(history))
    if not messages:
        raise BadCall("The call says nothing: `input` and `instructions` are empty")
    return messages


def _number(body: JsonObject, name: str) -> float | None:
    value = body.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e9:
        return None
    return value


def _reasoning(said: JsonObject) -> Reasoning:
    word = said.get("effort")
    effort = cast("Effort", word) if word in _EFFORTS else None
    summary = said.get("summary") or said.get("generate_summary")
    shown = None if summary is None else summary != "none"
    return Reasoning(on=None if effort is None else effort != "none", effort=effort, shown=shown)


def _format(said: JsonObject, notes: Notes) -> Format | None:
    match said.get("type"):
        case None | "text":
            return None
        case "json_object":
            return Format()
        case "json_schema":
            schema, strict = said.get("schema"), said.get("strict")
            return Format(
                schema if isinstance(schema, dict) else None,
                text_of(said.get("name")),
                text_of(said.get("description")),
                strict if isinstance(strict, bool) else None,
            )
        case kind:
            notes[Feature.STRUCTURED, text_of(kind)] = None
            return None


def _note_fields(body: JsonObject, reasoning: JsonObject, text: JsonObject, notes: Notes) -> None:
    for name, value in body.items():
        if value is None or value == {} or value == []:
            continue
        if name in _NAMED_UNLESS:
            feature, says_nothing = _NAMED_UNLESS[name]
            if value not in says_nothing:
                notes[feature, name] = None
        elif name not in _READ:
            notes[_NAMED.get(name, Feature.OTHER), name] = None
    for word in map(text_of, list_of(body.get("include"))):
        if (included := _INCLUDED.get(word, Feature.OTHER)) is not None:
            notes[included, f"include {word}"] = None
    for part in ("context", "mode"):
        if reasoning.get(part):
            notes[Feature.OTHER, f"reasoning.{part}"] = None
    if reasoning.get("effort") and reasoning["effort"] not in _EFFORTS:
        notes[Feature.EFFORT, text_of(reasoning["effort"])] = None
    if text.get("verbosity"):
        notes[Feature.OTHER, "text.verbosity"] = None
