"""One reminder: what it holds, when it is due, when it is too old, and how it stands in a file.

1. A session's tasks are a tuple in order of their time (`in_order`); so those that are due stand at its beginning.
2. Due is told by the corrected time, expiry by a time that can be trusted (`routing.clock.moment`): never by the same.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from operator import attrgetter
from typing import TypeAlias

from msgspec import Struct

from ..dialects.fields import count_of, object_of, text_of
from ..values import JsonObject

EARLIEST_MS = 0
LATEST_MS = 253_402_300_799_999
"""What can be written as a date: the years 1970 to 9999."""


class Task(Struct, frozen=True):
    task_id: str
    session_id: str
    due_at_ms: int
    created_at_ms: int
    updated_at_ms: int
    task: str
    """What to be reminded of, as the model wrote it: cleaned only where it is shown."""
    tool: str | None = None
    arguments: JsonObject | None = None
    delivered_at_ms: int | None = None
    """When it reached a call whose answer began; None: it waits."""
    delivery_count: int = 0
    not_before_request_id: str | None = None
    """It was due already when it was scheduled: that request, and the rounds that follow it, never deliver it."""
    origin: str = ""
    """Of which prompt it is (a hash), so that a prompt which the client repeats schedules nothing twice."""


Tasks: TypeAlias = tuple[Task, ...]


def is_due(task: Task, now_ms: int, window_ms: int) -> bool:
    """`now_ms`: the corrected time."""
    return now_ms >= task.due_at_ms - window_ms


def is_expired(task: Task, now_ms: int | None, retention_ms: int) -> bool:
    """`now_ms`: a time that can be trusted. Nothing expires while there is none."""
    return now_ms is not None and now_ms > task.due_at_ms + retention_ms


def in_order(tasks: Iterable[Task]) -> Tasks:
    """By their time; what is due at the same time stays as it stands."""
    return tuple(sorted(tasks, key=attrgetter("due_at_ms")))


def undelivered(tasks: Tasks) -> Tasks:
    """The very same tuple where none was delivered."""
    left = tuple(task for task in tasks if task.delivered_at_ms is None)
    return tasks if len(left) == len(tasks) else left


def due_ones(tasks: Tasks, now_ms: int, window_ms: int) -> Tasks:
    """Those of a session that are due, delivered or not; quick, however many are not due yet."""
    return tasks[: bisect_right(tasks, now_ms + window_ms, key=attrgetter("due_at_ms"))]


def to_json(task: Task) -> JsonObject:
    fields: JsonObject = {
        "taskId": task.task_id,
        "sessionId": task.session_id,
        "dueAtMs": task.due_at_ms,
        "createdAtMs": task.created_at_ms,
        "updatedAtMs": task.updated_at_ms,
        "task": task.task,
        "tool": task.tool,
        "arguments": task.arguments,
        "deliveredAtMs": task.delivered_at_ms,
        "deliveryCount": task.delivery_count,
        "notBeforeRequestId": task.not_before_request_id,
        "origin": task.origin or None,
    }
    return {name: value for name, value in fields.items() if value is not None}


def from_json(value: object, session_id: str) -> Task | None:
    """None where it is none: without an id, a time or a text. `session_id`: whose file it stands in."""
    fields = object_of(value)
    due, id, text = _time_of(fields.get("dueAtMs")), text_of(fields.get("taskId")), text_of(fields.get("task"))
    if due is None or not id or not text:
        return None
    created = _time_of(fields.get("createdAtMs"))
    updated = _time_of(fields.get("updatedAtMs"))
    arguments = fields.get("arguments")
    return Task(
        task_id=id,
        session_id=session_id,
        due_at_ms=due,
        created_at_ms=due if created is None else created,
        updated_at_ms=due if updated is None else updated,
        task=text,
        tool=text_of(fields.get("tool")) or None,
        arguments=arguments if isinstance(arguments, dict) else None,
        delivered_at_ms=_time_of(fields.get("deliveredAtMs")),
        delivery_count=count_of(fields.get("deliveryCount")),
        not_before_request_id=text_of(fields.get("notBeforeRequestId")) or None,
        origin=text_of(fields.get("origin")),
    )


def _time_of(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not EARLIEST_MS <= value <= LATEST_MS:
        return None
    return int(value)
