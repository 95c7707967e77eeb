"""Give items that come back into a history what their client had added to its own copy of them.

1. A cache mark moves to the last place that may carry it: as many marks leave as came.
2. Gemini's clients give a call an id of their own where the model gave none, and answer to that id.
3. Results of our own tools stand where the dialect wants them: among the client's, or as items behind the calls.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from ...jsonbytes import dumps
from ...values import Dialect, JsonObject
from .editing import list_in, loose_text, object_in, objects_in
from .same import canonical

_CACHE = "cache_control"
_UNMARKABLE = ("thinking", "redacted_thinking")
_JOINING = {Dialect.MESSAGES: "content", Dialect.GEMINI: "parts"}
"""Where the results of one answer's calls stand together in the user's next message, and in which field."""
_CALLS = ("functionCall", "function_call")


def as_client_sends(dialect: Dialect, old: Sequence[JsonObject], new: Sequence[JsonObject]) -> list[JsonObject]:
    """The items `new`, which stand for the client's `old` ones."""
    if dialect is Dialect.GEMINI:
        return _with_ids(old, new)
    return _with_mark(old, new) if dialect in (Dialect.MESSAGES, Dialect.CHAT) else list(new)


def join_results(dialect: Dialect, results: Sequence[JsonObject], following: JsonObject | None) -> JsonObject | None:
    """The user's message `following` with our results in front of its own; None where they are items of their own."""
    key = _JOINING.get(dialect)
    if key is None or following is None:
        return None
    given = following.get(key)
    parts = ([{"type": "text", "text": given}] if dialect is Dialect.MESSAGES else [{"text": given}]) if given else []
    parts = given if isinstance(given, list) else parts
    return {**following, key: [*(part for result in results for part in list_in(result, key)), *parts]}


def _with_mark(old: Sequence[JsonObject], new: Sequence[JsonObject]) -> list[JsonObject]:
    items = list(new)
    found = next(_marks(old), None)
    if found is None:
        return items
    mark, on_message = found
    for place in reversed(range(len(items))):
        if items[place].get("role") == "assistant" and (marked := _marked(items[place], mark, on_message=on_message)):
            items[place] = marked
            break
    return items


def _marks(items: Sequence[JsonObject]) -> Iterator[tuple[object, bool]]:
    """The marks from the last to the first; True for one on a message itself."""
    for item in reversed(items):
        if item.get(_CACHE) is not None:
            yield item[_CACHE], True
        yield from ((part[_CACHE], False) for part in reversed(objects_in(item, "content")) if part.get(_CACHE) is not None)


def _marked(item: JsonObject, mark: object, *, on_message: bool) -> JsonObject | None:
    """None where nothing in the message may carry a mark."""
    if on_message:
        return {**item, _CACHE: mark}
    content = item.get("content")
    if isinstance(content, str):
        return {**item, "content": [{"type": "text", "text": content, _CACHE: mark}]} if content.strip() else None
    parts = list_in(item, "content")
    for place in reversed(range(len(parts))):
        part = parts[place]
        if isinstance(part, dict) and _can_carry(part):
            return {**item, "content": [*parts[:place], {**part, _CACHE: mark}, *parts[place + 1 :]]}
    return None


def _can_carry(part: JsonObject) -> bool:
    return part.get("type") not in _UNMARKABLE and (part.get("type") != "text" or bool(loose_text(part, "text").strip()))


def _with_ids(old: Sequence[JsonObject], new: Sequence[JsonObject]) -> list[JsonObject]:
    given = deque(call for item in old for part in objects_in(item, "parts") if (call := object_in(part, *_CALLS)))
    return [_with_own_ids(item, given) for item in new]


def _with_own_ids(item: JsonObject, given: deque[JsonObject]) -> JsonObject:
    parts = list_in(item, "parts")
    changed = [_with_id(part, given) if isinstance(part, dict) else part for part in parts]
    return item if all(new is old for new, old in zip(changed, parts, strict=True)) else {**item, "parts": changed}


def _with_id(part: JsonObject, given: deque[JsonObject]) -> JsonObject:
    key = next((key for key in _CALLS if isinstance(part.get(key), dict)), None)
    if key is None or not given or _said(call := object_in(part, key)) != _said(given[0]):
        return part
    id = given.popleft().get("id")
    return {**part, key: {**call, "id": id}} if id != call.get("id") and id else part


def _said(call: JsonObject) -> tuple[str, bytes]:
    return loose_text(call, "name"), canonical(dumps(call.get("args") or {}).decode())
