"""The tool `clock` as the model sees it: what it is offered, how its calls are read, what it is answered.

1. Calls are read leniently: what does not belong to an action may be missing. Times are read strictly: one that could be
   meant two ways is refused with a sentence that says what to write.
2. A call holds as a whole: one item that cannot be taken, and nothing is written.
3. `ok` is said once the disk has it.
4. The same text at the same time is the same task. Scheduled again it replaces the one that was there, under its id; where
   the client merely repeats a prompt, it stays as it is, delivered or not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ..dialects.fields import text_of
from ..errors import StoreError
from ..values import JsonObject
from .moment import Moment, utc_text
from .store import ClockStore
from .tasks import Task, Tasks, is_due, is_expired
from .wishes import Refused, Wish, read_wishes

NAME = "clock"
DESCRIPTION = (
    "Current time, and reminders for this conversation. "
    'action "get": the time (UTC and local) and whether it is checked against time servers. '
    '"schedule": set reminders; each comes back as a message when its time has come, also after your answer has ended. '
    '"list": the reminders that are set. "cancel": remove the one with taskId. "clear": remove all. '
    'Fields that an action does not need are left empty: items [], taskId "".'
)
ACTIONS = ("get", "schedule", "list", "cancel", "clear")
SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "action": {"type": "string", "enum": list(ACTIONS), "description": "What to do."},
        "items": {
            "type": "array",
            "description": "schedule: the reminders to set. Otherwise [].",
            "items": {
                "type": "object",
                "properties": {
                    "dueAt": {
                        "type": "string",
                        "description": "When: ISO 8601 with a time zone, for example 2026-01-21T20:30:00-08:00.",
                    },
                    "task": {
                        "type": "string",
                        "description": "What to be reminded of, and best also which tool to use for it.",
                    },
                    "tool": {"type": "string", "description": 'A tool that may be of use then, as a hint only; or "".'},
                    "arguments": {
                        "type": "string",
                        "description": 'Arguments for that tool, as a hint only: a JSON object as text, for example "{}".',
                    },
                },
                "required": ["dueAt", "task", "tool", "arguments"],
                "additionalProperties": False,
            },
        },
        "taskId": {"type": "string", "description": 'cancel: which reminder. Otherwise "".'},
    },
    "required": ["action", "items", "taskId"],
    "additionalProperties": False,
}
"""Keeps to what every strict mode takes: some of them refuse a `default`."""


class ToolDesk(Struct, frozen=True):
    """What one call of the tool may use."""

    store: ClockStore | None
    """None where no session may be used."""
    session_id: str | None
    request_id: str
    """The turn's own id, without a round's suffix."""
    prompt: str
    """The same on every try of the same prompt; empty where that is not known."""
    moment: Moment
    """The corrected time."""
    trusted_now_ms: int | None
    """By which tasks expire; None while there is none."""
    window_ms: int
    retention_ms: int
    new_id: Callable[[], str]
    ntp: JsonObject
    """For `get`."""
    enabled: bool = True
    left: Callable[[], bool] = lambda: False
    """Whether who asked has left. Elsewhere it may have been answered meanwhile, and has its reminder from there: a process that
    stood still may find that out in the middle of a change."""


def answer(arguments: JsonObject, desk: ToolDesk) -> JsonObject:
    """What the model reads as the tool's result. Waits for the disk: run it in a thread."""
    action = text_of(arguments.get("action")).strip().lower()
    try:
        if not desk.enabled:
            raise Refused("The clock is switched off; virtualrouter.clock.enabled=true in the configuration switches it on.")
        run = _ACTIONS.get(action)
        if run is None:
            raise Refused(f"There is no such action; action must be one of: {', '.join(ACTIONS)}.")
        return {"ok": True, "action": action, **run(arguments, desk)}
    except StoreError as error:
        message = f"{error.message}. Nothing is acknowledged: try again, or tell the user."
    except Refused as error:
        message = error.message
    return {"ok": False, "action": action, "message": message}


def _get(_: JsonObject, desk: ToolDesk) -> JsonObject:
    now = desk.moment
    times = {"nowMs": now.now_ms, "utc": now.utc, "local": now.local, "timezone": now.timezone}
    return {"active": True, **times, "ntp": desk.ntp}


def _schedule(arguments: JsonObject, desk: ToolDesk) -> JsonObject:
    store, session_id = _session(desk)
    wishes = read_wishes(arguments)
    _refuse_bygone(wishes, desk)
    ids: list[str] = []

    def change(tasks: Tasks) -> list[Task]:
        ids.clear()  # an earlier try came to nothing
        found = {(task.task, task.due_at_ms): task for task in tasks}
        others = {task.task_id: task for task in tasks}
        for wish in wishes:
            key = (wish.task, wish.due_at_ms)
            task = found[key] = _again(found[key], wish, desk) if key in found else _new(wish, session_id, desk)
            others[task.task_id] = task
            ids.append(task.task_id)
        return list(others.values())

    now = {task.task_id: task for task in _update(store, session_id, change, desk)}
    return {"scheduled": [_shown(now[id]) for id in dict.fromkeys(ids)]}


def _update(store: ClockStore, session_id: str, change: Callable[[Tasks], list[Task]], desk: ToolDesk) -> Tasks:
    def for_whom_is_there(tasks: Tasks) -> list[Task]:
        if desk.left():
            raise Refused("Who asked has left; nothing was changed.")
        return change(tasks)

    return store.update(session_id, for_whom_is_there)


def _list(_: JsonObject, desk: ToolDesk) -> JsonObject:
    store, session_id = _session(desk)
    items = []
    for task in store.load(session_id):
        if not is_expired(task, desk.trusted_now_ms, desk.retention_ms):
            delivered = {} if task.delivered_at_ms is None else {"deliveredAt": utc_text(task.delivered_at_ms)}
            items.append({**_shown(task), **delivered})
    return {"items": items}


def _cancel(arguments: JsonObject, desk: ToolDesk) -> JsonObject:
    store, session_id = _session(desk)
    wanted = text_of(arguments.get("taskId")).strip()
    if not wanted:
        raise Refused('cancel needs taskId: the id of one reminder, as action "list" shows it.')
    removed: list[str] = []

    def change(tasks: Tasks) -> list[Task]:
        removed[:] = [task.task_id for task in tasks if task.task_id == wanted]
        return [task for task in tasks if task.task_id != wanted]

    _update(store, session_id, change, desk)
    return {"removed": wanted if removed else None}


def _clear(_: JsonObject, desk: ToolDesk) -> JsonObject:
    store, session_id = _session(desk)
    removed: list[Task] = []

    def change(tasks: Tasks) -> list[Task]:
        removed[:] = tasks
        return []

    _update(store, session_id, change, desk)
    return {"removedCount": len(removed)}


_ACTIONS: Mapping[str, Callable[[JsonObject, ToolDesk], JsonObject]] = dict(
    zip(ACTIONS, (_get, _schedule, _list, _cancel, _clear), strict=True)
)


def _session(desk: ToolDesk) -> tuple[ClockStore, str]:
    if desk.store is None or not desk.session_id:
        raise Refused(
            "This conversation names no session, so no reminders can be kept for it. Tell the user: the client must send a "
            'session id, or the configuration must say sessions.derive: all. Only the action "get" works without one.'
        )
    return desk.store, desk.session_id


def _shown(task: Task) -> JsonObject:
    return {"taskId": task.task_id, "dueAt": utc_text(task.due_at_ms), "task": task.task}


# One task


def _new(wish: Wish, session_id: str, desk: ToolDesk) -> Task:
    now = desk.moment.now_ms
    task = Task(desk.new_id(), session_id, wish.due_at_ms, now, now, wish.task, wish.tool, wish.arguments)
    return replace(task, origin=_origin(desk.prompt), not_before_request_id=_guard(task, desk))


def _again(task: Task, wish: Wish, desk: ToolDesk) -> Task:
    """The same text at the same time once more."""
    is_repeated = task.origin == _origin(desk.prompt) != "" and (task.tool, task.arguments) == (wish.tool, wish.arguments)
    if not is_repeated:
        fresh = _new(wish, task.session_id, desk)
        return replace(fresh, task_id=task.task_id, created_at_ms=task.created_at_ms)
    return replace(task, not_before_request_id=_guard(task, desk))


def _refuse_bygone(wishes: Sequence[Wish], desk: ToolDesk) -> None:
    """What has expired already would be acknowledged and never come."""
    for wish in wishes:
        if desk.trusted_now_ms is not None and desk.trusted_now_ms > wish.due_at_ms + desk.retention_ms:
            raise Refused(f"dueAt {utc_text(wish.due_at_ms)} is too long ago to be delivered: it is {desk.moment.utc} now.")


def _guard(task: Task, desk: ToolDesk) -> str | None:
    """A task that is due at once waits for the next request: else this one would answer itself for ever."""
    return desk.request_id if is_due(task, desk.moment.now_ms, desk.window_ms) else None


def _origin(prompt: str) -> str:
    return hashlib.sha256(prompt.encode("utf-8", "surrogatepass")).hexdigest()[:16] if prompt else ""
