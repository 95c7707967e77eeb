"""What a model has said so far in a round that still streams, for plugins that listen. Event data in, text and calls out.

1. Nothing that a provider sends raises: what is not understood adds nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from routing.dialects.fields import list_of, object_of, read_object, text_of
from routing.jsonbytes import dumps
from routing.values import Dialect, JsonObject, ToolCall


@dataclass(frozen=True, slots=True)
class CurrentMessage:
    """An answer that is still growing."""

    text: str
    """The visible text."""
    calls: tuple[ToolCall, ...]
    """Tool calls; the last one's arguments may break off."""


@dataclass(slots=True)
class SoFar:
    dialect: Dialect
    _text: list[str] = field(default_factory=list)
    _calls: dict[object, ToolCall] = field(default_factory=dict)

    def hear(self, data: bytes) -> None:
        event = read_object(data)
        if event is not None:
            _HEAR[self.dialect](self, event)

    def message(self) -> CurrentMessage:
        self._text[:] = ["".join(self._text)]
        calls = tuple(ToolCall(call.id, call.name, call.arguments) for call in self._calls.values())
        return CurrentMessage(self._text[0], calls)

    def say(self, text: object) -> None:
        if isinstance(text, str) and text:
            self._text.append(text)

    def call(self, key: object, id: str = "", name: str = "", arguments: str = "") -> None:
        """A call begins, or goes on: `key` tells it from the others."""
        known = self._calls.setdefault(key, ToolCall("", "", ""))
        known.id = known.id or id
        known.name = known.name or name
        known.arguments += arguments


def _hear_messages(so_far: SoFar, event: JsonObject) -> None:
    block, delta = object_of(event.get("content_block")), object_of(event.get("delta"))
    match event.get("type"):
        case "content_block_start" if block.get("type") == "tool_use":
            so_far.call(event.get("index"), text_of(block.get("id")), text_of(block.get("name")))
        case "content_block_start" if block.get("type") == "text":
            so_far.say(block.get("text"))
        case "content_block_delta" if delta.get("type") == "text_delta":
            so_far.say(delta.get("text"))
        case "content_block_delta" if delta.get("type") == "input_json_delta" and event.get("index") in so_far._calls:
            so_far.call(event.get("index"), arguments=text_of(delta.get("partial_json")))


def _hear_chat(so_far: SoFar, event: JsonObject) -> None:
    choice = next((object_of(choice) for choice in list_of(event.get("choices"))), {})
    if choice.get("index", 0) != 0:
        return
    delta = object_of(choice.get("delta"))
    so_far.say(delta.get("content"))
    for place, raw in enumerate(list_of(delta.get("tool_calls"))):
        call = object_of(raw)
        function = object_of(call.get("function"))
        key = call.get("index", place)
        if isinstance(key, int):
            so_far.call(key, text_of(call.get("id")), text_of(function.get("name")), text_of(function.get("arguments")))


def _hear_responses(so_far: SoFar, event: JsonObject) -> None:
    item, key = object_of(event.get("item")), event.get("output_index")
    match event.get("type"):
        case "response.output_text.delta":
            so_far.say(event.get("delta"))
        case "response.output_item.added" if item.get("type") == "function_call" and isinstance(key, int):
            so_far.call(key, text_of(item.get("call_id")), text_of(item.get("name")))
        case "response.function_call_arguments.delta" if isinstance(key, int) and key in so_far._calls:
            so_far.call(key, arguments=text_of(event.get("delta")))


def _hear_gemini(so_far: SoFar, event: JsonObject) -> None:
    answer = object_of(event["response"]) if "response" in event else event
    candidate = next((object_of(candidate) for candidate in list_of(answer.get("candidates"))), {})
    for part in map(object_of, list_of(object_of(candidate.get("content")).get("parts"))):
        if part.get("thought") is not True:
            so_far.say(part.get("text"))
        if "functionCall" in part:
            call = object_of(part["functionCall"])
            name = text_of(call.get("name"))
            so_far.call(len(so_far._calls), text_of(call.get("id")) or name, name, dumps(call.get("args") or {}).decode())


_HEAR: Mapping[Dialect, Callable[[SoFar, JsonObject], None]] = {
    Dialect.MESSAGES: _hear_messages,
    Dialect.CHAT: _hear_chat,
    Dialect.RESPONSES: _hear_responses,
    Dialect.GEMINI: _hear_gemini,
}
