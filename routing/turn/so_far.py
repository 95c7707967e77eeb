"""What a model has said so far in a round that still streams, for plugins that listen. Event data in, text and calls out.

1. Nothing that a provider sends raises: what is not understood adds nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ..dialects.fields import list_of, object_of, read_object, text_of
from ..jsonbytes import dumps
from ..values import Dialect, JsonObject, ToolCall


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
    _calls: dict[int, ToolCall] = field(default_factory=dict)

    def hear(self, data: bytes) -> None:
        event = read_object(data)
        if event is not None:
            _HEAR[self.dialect](self, event)

    def message(self) -> CurrentMessage:
        self._text[:] = ["".join(self._text)]
        calls = tuple(ToolCall(call.id, call.name, call.arguments) for call in self._calls.values())
        return CurrentMessage(self._text[0], calls)

    @property
    def count(self) -> int:
        return len(self._calls)

    def say(self, text: object) -> None:
        if isinstance(text, str) and text:
            self._text.append(text)

    def call(self, key: object, id: object, name: object, arguments: object = "") -> None:
        """A call begins, or (Chat repeats nothing) goes on: `key` tells it from the others."""
        if isinstance(key, int):
            known = self._calls.setdefault(key, ToolCall("", "", ""))
            known.id = known.id or text_of(id)
            known.name = known.name or text_of(name)
            known.arguments += text_of(arguments)

    def go_on(self, key: object, arguments: object) -> None:
        """More arguments of a call that has begun."""
        if isinstance(key, int) and key in self._calls:
            self._calls[key].arguments += text_of(arguments)


def _hear_messages(so_far: SoFar, event: JsonObject) -> None:
    block, delta = object_of(event.get("content_block")), object_of(event.get("delta"))
    match event.get("type"):
        case "content_block_start" if block.get("type") == "tool_use":
            so_far.call(event.get("index"), block.get("id"), block.get("name"))
        case "content_block_start" if block.get("type") == "text":
            so_far.say(block.get("text"))
        case "content_block_delta" if delta.get("type") == "text_delta":
            so_far.say(delta.get("text"))
        case "content_block_delta" if delta.get("type") == "input_json_delta":
            so_far.go_on(event.get("index"), delta.get("partial_json"))


def _hear_chat(so_far: SoFar, event: JsonObject) -> None:
    choice = next((object_of(choice) for choice in list_of(event.get("choices"))), {})
    if choice.get("index", 0) != 0:
        return
    delta = object_of(choice.get("delta"))
    so_far.say(delta.get("content"))
    for place, raw in enumerate(list_of(delta.get("tool_calls"))):
        call = object_of(raw)
        function = object_of(call.get("function"))
        so_far.call(call.get("index", place), call.get("id"), function.get("name"), function.get("arguments"))


def _hear_responses(so_far: SoFar, event: JsonObject) -> None:
    item = object_of(event.get("item"))
    match event.get("type"):
        case "response.output_text.delta":
            so_far.say(event.get("delta"))
        case "response.output_item.added" if item.get("type") == "function_call":
            so_far.call(event.get("output_index"), item.get("call_id"), item.get("name"))
        case "response.function_call_arguments.delta":
            so_far.go_on(event.get("output_index"), event.get("delta"))


def _hear_gemini(so_far: SoFar, event: JsonObject) -> None:
    answer = object_of(event["response"]) if "response" in event else event
    candidate = next((object_of(candidate) for candidate in list_of(answer.get("candidates"))), {})
    for part in map(object_of, list_of(object_of(candidate.get("content")).get("parts"))):
        if part.get("thought") is not True:
            so_far.say(part.get("text"))
        if "functionCall" in part:
            call = object_of(part["functionCall"])
            name, arguments = call.get("name"), dumps(call.get("args") or {}).decode()
            so_far.call(so_far.count, call.get("id") or name, name, arguments)


_HEAR: Mapping[Dialect, Callable[[SoFar, JsonObject], None]] = {
    Dialect.MESSAGES: _hear_messages,
    Dialect.CHAT: _hear_chat,
    Dialect.RESPONSES: _hear_responses,
    Dialect.GEMINI: _hear_gemini,
}
