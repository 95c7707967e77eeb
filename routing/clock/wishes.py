"""What the model asks to be reminded of, read from the arguments of its call.

Read leniently where only one thing can be meant, and refused otherwise, with a sentence that says what to write.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from msgspec import Struct

from ..dialects.fields import text_of
from ..errors import BadCall, RouteCodexError
from ..jsonbytes import dumps, loads
from ..values import JsonObject
from .tasks import EARLIEST_MS, LATEST_MS

MOST_TASK_BYTES = 4 << 10
MOST_TOOL_BYTES = 256
MOST_ARGUMENTS_BYTES = 16 << 10
DEEPEST_ARGUMENTS = 32
"""What is nested deeper may be written, but not read again."""

_EXAMPLES = "2026-01-21T20:30:00-08:00 or 2026-01-22T04:30:00Z"
_WRITE_SO = f"write ISO 8601 with a time zone, for example {_EXAMPLES}"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Refused(RouteCodexError):
    """The model reads why, and what to do instead."""


class Wish(Struct, frozen=True):
    """One reminder."""

    due_at_ms: int
    task: str
    tool: str | None
    arguments: JsonObject | None


def read_wishes(arguments: JsonObject) -> list[Wish]:
    return [_read_item(item, f"items[{place}]") for place, item in enumerate(_items(arguments))]


def _items(arguments: JsonObject) -> list[object]:
    """As a list, as its JSON text, or one item alone, also beside `action`."""
    items = _value(arguments.get("items"), "items is not JSON: write a list of {dueAt, task, tool, arguments}.")
    if not items and ("dueAt" in arguments or "task" in arguments):
        items = arguments
    if isinstance(items, dict) and items:
        items = [items]
    if not isinstance(items, list) or not items:
        raise Refused("schedule needs items: a list of at least one {dueAt, task, tool, arguments}.")
    return items


def _read_item(item: object, where: str) -> Wish:
    if not isinstance(item, dict):
        raise Refused(f"{where} is not an object {{dueAt, task, tool, arguments}}.")
    task, tool = text_of(item.get("task")), text_of(item.get("tool")).strip()
    if not task.strip():
        raise Refused(f"{where}.task is empty: say what to be reminded of.")
    _bound(task.encode("utf-8", "surrogatepass"), MOST_TASK_BYTES, f"{where}.task")
    _bound(tool.encode("utf-8", "surrogatepass"), MOST_TOOL_BYTES, f"{where}.tool")
    due = _read_time(item.get("dueAt"), f"{where}.dueAt")
    return Wish(due, task, tool or None, _read_arguments(item.get("arguments"), f"{where}.arguments"))


def _read_time(value: object, where: str) -> int:
    try:
        read = datetime.fromisoformat(text_of(value).strip().upper())
    except ValueError:
        raise Refused(f"{where} is no time that can be read: {_WRITE_SO}.") from None
    if read.tzinfo is None:
        raise Refused(f"{where} names no time zone: {_WRITE_SO}.")
    due = (read - _EPOCH) // timedelta(milliseconds=1)
    if not EARLIEST_MS <= due <= LATEST_MS:
        raise Refused(f"{where} is not between the years 1970 and 9999.")
    return due


def _read_arguments(value: object, where: str) -> JsonObject | None:
    """None where there are none, or an empty object."""
    refusal = f'{where} is not a JSON object: write one as text, for example "{{}}".'
    found = _value(value, refusal)
    if found is None:
        return None
    if not isinstance(found, dict):
        raise Refused(refusal)
    if _is_deeper(found, DEEPEST_ARGUMENTS):
        raise Refused(f"{where} is nested more than {DEEPEST_ARGUMENTS} deep: flatten it.")
    _bound(dumps(found), MOST_ARGUMENTS_BYTES, where)
    return found or None


def _is_deeper(value: object, depth: int) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return inner is not None and (depth == 0 or any(_is_deeper(item, depth - 1) for item in inner))


def _value(value: object, refusal: str) -> object:
    """The value itself, or that of which it is the JSON text; None for text that is empty."""
    if not isinstance(value, str):
        return value
    if not value.strip():
        return None
    try:
        return loads(value.encode("utf-8", "surrogatepass"))
    except BadCall:
        raise Refused(refusal) from None


def _bound(raw: bytes, most: int, where: str) -> None:
    if len(raw) > most:
        raise Refused(f"{where} is longer than {most} bytes: shorten it.")
