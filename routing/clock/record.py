"""One session's file of tasks: its bytes, and what can be read of them when they are damaged."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable

from msgspec import Struct

from ..dialects.fields import object_of, read_object, text_of
from ..jsonbytes import dumps
from ..values import JsonObject
from .tasks import Task, Tasks, from_json, in_order, to_json

VERSION = 1

_TASK = re.compile(r'\{\s*"taskId"\s*:')
_MOST_FAILURES = 100
"""In one damaged file; hostile bytes are not read for ever."""
_DECODER = json.JSONDecoder()


class Record(Struct, frozen=True):
    tasks: Tasks
    is_whole: bool = True
    """Nothing of the file is lost."""
    is_own: bool = True
    """As it was written here, not changed by something else."""


def write_record(session_id: str, tasks: Tasks, now_ms: int) -> bytes:
    written = dumps([to_json(task) for task in tasks])
    head = dumps({"version": VERSION, "sessionId": session_id, "updatedAtMs": now_ms, "sum": _sum(written)})
    return head[:-1] + b',"tasks":' + written + b"}"


def read_record(raw: bytes, session_id: str) -> Record:
    """What is there of that session; an entry that cannot be read, or that is another session's, is left out."""
    document = read_object(raw)
    values = document.get("tasks") if document is not None else None
    if document is None or not isinstance(values, list):
        return Record(_tasks(_found(raw), session_id, ""), is_whole=False)
    tasks = _tasks(values, session_id, text_of(document.get("sessionId")) or session_id)
    is_own = "sum" not in document or document["sum"] == _sum(dumps(values))
    return Record(tasks, len(tasks) == len(values), is_own)


def named_session(raw: bytes) -> str:
    """Whose file it says it is; empty where it does not tell."""
    document = read_object(raw)
    if document is not None:
        return text_of(document.get("sessionId"))
    return next((text_of(object_of(value).get("sessionId")) for value in _found(raw)), "")


def _tasks(values: Iterable[object], session_id: str, named: str) -> Tasks:
    found: dict[str, Task] = {}
    for value in values:
        own = text_of(object_of(value).get("sessionId"))
        task = from_json(value, session_id) if session_id in (named, own) else None
        if task is not None:
            found[task.task_id] = task
    return in_order(found.values())


def _found(raw: bytes) -> list[JsonObject]:
    """Every whole task in a document that is none any more. Text that talks about tasks has its quotes escaped."""
    text = raw.decode("utf-8", "replace")
    found: list[JsonObject] = []
    at = failures = 0
    while failures < _MOST_FAILURES and (start := _TASK.search(text, at)) is not None:
        try:
            value, at = _DECODER.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            failures, at = failures + 1, start.end()
            continue
        found.append(value)
    return found


def _sum(written: bytes) -> str:
    """Tells damage that is still JSON from what was written."""
    return hashlib.sha256(written).hexdigest()[:16]
