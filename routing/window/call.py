"""What a call says, newest first: a person who looks wants the last turn, and a window shows the first lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import orjson

from ..dialects import calls
from ..dialects.calls.editing import items_in, read_body, unwrapped
from ..dialects.calls.replacing import LIST_KEYS, view_of
from ..errors import BadCall, RouteCodexError
from ..jsonbytes import dumps
from ..values import Dialect, Endpoint, JsonObject, Media, Message, Other, Part, Text, Thinking, ToolCall, ToolResult
from ..visible import first_words
from .text import INDENT, WIDTH, count, rule, size, wrapped

WHOLE_MESSAGES = 30
"""So many of the newest messages are shown in full; of those before them one line each."""
LISTED_MESSAGES = 300
_TEXT_LINES = 200
_FOLDED_LINES = 8
"""What tools ask and answer, and what was thought, is folded to this."""
_NAMES = 40
_SHOWN_BYTES = 4096
_MOST_OBJECTS, _MOST_NUMBERS = 100_000, 1_000_000
_READ_TWICE = 4 << 20
"""A larger one that is damaged is not read again, by what is slower and says better why."""
_HEAD_FIELDS = frozenset({"model", "system", "tools", "instructions", "systemInstruction", "system_instruction"})
_MEDIA_NAMES = {"image": "picture", "audio": "sound", "video": "video", "file": "file"}


def lines(body: bytes, endpoint: Endpoint, added: Sequence[str] = ()) -> Iterator[str]:
    """`added`: names of tools that the client did not offer."""
    try:
        history = _History(body, endpoint)
    except RouteCodexError as error:
        yield rule("THE CALL CANNOT BE READ")
        yield from wrapped(error.message, most=_FOLDED_LINES)
        yield from wrapped(body[:_SHOWN_BYTES].decode("utf-8", "replace"), most=_TEXT_LINES)
        if len(body) > _SHOWN_BYTES:
            yield f"… {size(len(body) - _SHOWN_BYTES)} more"
        return
    yield rule(f"CONVERSATION, newest first ({count(len(history.items), 'message')}, {size(len(body))})")
    yield from _messages(history)
    if system := history.head.system:
        yield rule(f"system ({size(len(system))})")
        yield from wrapped(system, most=_FOLDED_LINES)
    if tools := history.head.tools:
        yield rule(count(len(tools), "tool"))
        more = len(tools) - _NAMES
        names = [f"{name} (added by RouteCodex)" for name in tools if name in added]
        names += [name for name in tools if name not in added]
        yield from wrapped(", ".join(names[:_NAMES]) + (f", … and {more} more" if more > 0 else ""))


class _History:
    """A call whose messages are read one by one, when they are looked at."""

    def __init__(self, body: bytes, endpoint: Endpoint) -> None:
        if body.count(b"{") > _MOST_OBJECTS or _is_a_list_of_numbers(body):
            raise BadCall("It has more values than can be read for a look.")
        try:
            whole = orjson.loads(body)
        except orjson.JSONDecodeError as error:
            if len(body) > _READ_TWICE and "surrogate" not in str(error):
                raise BadCall(f"The request body is not valid JSON: {error}") from None
            whole = read_body(body)
        if not isinstance(whole, dict):
            raise BadCall("The request body is not a JSON object")
        inner = unwrapped(whole, envelope=endpoint.envelope) if endpoint.dialect is Dialect.GEMINI else whole
        key = LIST_KEYS[endpoint.dialect]
        items = inner.get(key, [])
        if isinstance(items, str):
            items = [{"type": "message", "role": "user", "content": items}]
        self.items: list[JsonObject] = items_in({key: items}, key)
        self.dialect = endpoint.dialect
        reduced = {name: value for name, value in inner.items() if name in _HEAD_FIELDS} | {key: []}
        self.head = calls.read_call(dumps({"request": reduced} if endpoint.envelope else reduced), endpoint)

    def message(self, index: int, *, brief: bool = False) -> Message | None:
        """`brief`: what tools were asked is left out."""
        item = self.items[index]
        try:
            return view_of(self.dialect, index, _brief(item) if brief else item)
        except RouteCodexError:
            return None


def _is_a_list_of_numbers(body: bytes) -> bool:
    """A look at its middle is enough: no conversation is like that."""
    middle = body[len(body) // 2 :][:_SHOWN_BYTES]
    return middle.count(b",") > len(middle) // 4 and body.count(b",") > _MOST_NUMBERS


def _brief(item: JsonObject) -> JsonObject:
    """Without what its tools were asked, and said in Gemini's words: it may be long, and would be written as JSON."""
    for key in ("content", "parts"):
        if isinstance(inside := item.get(key), list):
            return {**item, key: [_without_arguments(part) for part in inside]}
    return item


def _without_arguments(part: object) -> object:
    if not isinstance(part, dict):
        return part
    if isinstance(part.get("input"), dict):
        return {**part, "input": {}}
    for name, key in (("functionCall", "args"), ("functionResponse", "response")):
        if isinstance(inside := part.get(name), dict) and inside.get(key):
            return {**part, name: {**inside, key: {}}}
    return part


def newest_text(body: bytes, endpoint: Endpoint) -> str:
    """The text of the newest message of the user's that has any: where a person's words stand."""
    try:
        history = _History(body, endpoint)
    except RouteCodexError:
        return ""
    for index in range(len(history.items) - 1, max(-1, len(history.items) - LISTED_MESSAGES), -1):
        message = history.message(index)
        if message is not None and message.role == "user" and message.text:
            return message.text
    return ""


def _messages(history: _History) -> Iterator[str]:
    last = len(history.items) - 1
    for back in range(len(history.items)):
        index = last - back
        if back >= LISTED_MESSAGES:
            yield f"… and {count(index + 1, 'older message')}"
            return
        message = history.message(index, brief=back >= WHOLE_MESSAGES)
        if message is None:
            yield rule(f"{index + 1} · this message cannot be read")
        elif back < WHOLE_MESSAGES:
            yield rule(f"{index + 1} · {_role(message)}")
            yield from _whole(message, history.items)
        else:
            yield first_words(f"{index + 1} · {_role(message)} · {_summary(message)}", WIDTH)


def _role(message: Message) -> str:
    return "tool" if message.parts and all(isinstance(part, ToolResult) for part in message.parts) else message.role


def _whole(message: Message, items: list[JsonObject]) -> Iterator[str]:
    for part in message.parts:
        match part:
            case Text(text):
                yield from wrapped(text, most=_TEXT_LINES)
            case Thinking(text):
                yield f"{INDENT}thinking:" if text else f"{INDENT}thinking (hidden by its provider)"
                if text:
                    yield from wrapped(text, indent="    ", most=_FOLDED_LINES)
            case ToolCall(id, name, arguments):
                yield f"{INDENT}calls {first_words(name, 60)} ({first_words(id, 40)})"
                yield from wrapped(arguments, indent="    ", most=_FOLDED_LINES)
            case ToolResult(id, text):
                yield f"{INDENT}result of {first_words(id, 40)}, {size(len(text))}"
                yield from wrapped(text, indent="    ", most=_FOLDED_LINES)
            case Media(kind):
                yield f"{INDENT}[{_MEDIA_NAMES[kind]}, {size(_weight(_raw(part, message, items)))}]"
            case Other():
                raw = _raw(part, message, items)
                named = raw.get("type") if isinstance(raw, dict) else None
                what = first_words(named, 40) if isinstance(named, str) else "something else"
                yield f"{INDENT}[{what}, {size(_weight(raw))}]"


def _summary(message: Message) -> str:
    words = []
    for part in message.parts[:8]:
        match part:
            case Text(text):
                words.append(first_words(text, 80))
            case Thinking():
                words.append("[thinking]")
            case ToolCall(_, name):
                words.append(f"[calls {name}]")
            case ToolResult(_, text):
                words.append(f"[result, {size(len(text))}]" if len(text) > 2 else "[result]")
            case Media(kind):
                words.append(f"[{_MEDIA_NAMES[kind]}]")
            case Other():
                words.append("[…]")
    return " ".join(words)


def _raw(part: Part, message: Message, items: list[JsonObject]) -> object:
    """The JSON that a part is a view of: its message's where it has no place of its own."""
    item = items[message.index] if message.index < len(items) else {}
    for key in ("content", "parts", "output"):
        inside = item.get(key)
        if isinstance(inside, list) and 0 <= part.slot < len(inside):
            return inside[part.slot]
    return item


def _weight(value: object) -> int:
    """The text in it, whatever its shape."""
    total, left = 0, [value]
    while left:
        match left.pop():
            case str() as text:
                total += len(text)
            case dict() as inside:
                left += inside.values()
            case list() as inside:
                left += inside
            case _:
                pass
    return total
