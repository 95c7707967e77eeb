"""Which tasks a call is reminded of, in which words, and who delivers them: one call, and one process, at a time.

1. A task is delivered where it is due, not too old, not delivered yet, and not kept back from this very request: what was due
   already when it was scheduled waits for another one.
2. Before its call is sent a task is reserved; it is committed in the store when the answer begins, else it is given up again.
   A reservation lives in this process alone and ends with it.
3. What a task says is one line of plain text: it cannot look like another task, or like a tag.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import islice
from typing import Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from ..jsonbytes import dumps
from ..tags.scan import strip
from .moment import utc_text
from .tasks import Task, Tasks, due_ones, is_expired

MOST_AT_ONCE = 100
"""So many in one call; the rest comes with the next."""

_JOINERS = "\u200c\u200d"
"""Without these some scripts, and some pictures, fall to pieces."""
_HEAD = "[Clock Reminder]"
_FOOT = "These reminders were scheduled in this session and are due now. You may call tools to carry them out."


def deliverable(
    tasks: Tasks, now_ms: int, trusted_now_ms: int | None, *, window_ms: int, retention_ms: int, request_id: str
) -> Iterator[Task]:
    """Those that a request may be reminded of now, the earliest first."""
    return (
        task
        for task in due_ones(tasks, now_ms, window_ms)
        if waits_for(task, request_id) and not is_expired(task, trusted_now_ms, retention_ms)
    )


def waits_for(task: Task, request_id: str) -> bool:
    """Not delivered yet, and not kept back from this request."""
    return task.delivered_at_ms is None and not _is_kept_back(task, request_id)


def _is_kept_back(task: Task, request_id: str) -> bool:
    guard = task.not_before_request_id
    return guard is not None and (request_id == guard or request_id.startswith(guard + ":"))


# In words


def reminder_text(tasks: Iterable[Task]) -> str:
    return "\n".join([_HEAD, *map(_line, tasks), _FOOT])


def _line(task: Task) -> str:
    hints = [f"dueAt={utc_text(task.due_at_ms)}"]
    if task.tool:
        hints.append(f'tool="{_plain(task.tool)}"')
    if task.arguments:
        hints.append(f"arguments={strip(_printable(dumps(task.arguments).decode('utf-8', 'replace')))}")
    return f'[scheduled task:"{_plain(task.task)}"] {" ".join(hints)}'


def _plain(text: str) -> str:
    """One line, quotes escaped, without tags."""
    return strip(" ".join(_printable(text).split())).replace("\\", "\\\\").replace('"', '\\"')


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() or letter in _JOINERS else " " for letter in text)


# Who delivers them


class Claims(Protocol):
    """Between processes: who holds a task."""

    waits: bool
    """Asking takes a while: it is done in a thread."""

    def take(self, task_id: str) -> bool: ...
    def give_back(self, task_id: str) -> None: ...


class NoClaims:
    """There is one process only."""

    waits = False

    def take(self, task_id: str) -> bool:
        return True

    def give_back(self, task_id: str) -> None:
        pass


class Reservation(Struct, frozen=True):
    """Tasks that one call delivers if its answer begins."""

    id: str
    """`<request id>:clock`."""
    session_id: str
    tasks: Tasks

    @property
    def task_ids(self) -> tuple[str, ...]:
        return tuple(task.task_id for task in self.tasks)


class Reservations(Struct):
    """All those of this process. Any thread may come."""

    claims: Claims = field(default_factory=NoClaims)
    _holders: dict[tuple[str, str], str] = field(default_factory=dict)
    """Session and task → reservation."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def reserve(self, id: str, session_id: str, load: Callable[[], Iterable[Task]]) -> Reservation | None:
        """What `load` finds and nobody else holds. It is asked twice: another process may just have delivered something.

        None where nothing is left.
        """
        found = list(islice((task for task in load() if (session_id, task.task_id) not in self._holders), MOST_AT_ONCE))
        taken = self._taken(id, session_id, [task.task_id for task in found])
        if not taken:
            return None
        tasks: Tasks = ()
        try:
            tasks = tuple(islice((task for task in load() if task.task_id in taken), len(taken)))
        finally:
            self._give_up(id, session_id, taken - {task.task_id for task in tasks})
        return Reservation(id, session_id, tasks) if tasks else None

    def is_reserved(self, task: Task) -> bool:
        return (task.session_id, task.task_id) in self._holders

    def holds(self, reservation: Reservation, task_id: str) -> bool:
        return self._holders.get((reservation.session_id, task_id)) == reservation.id

    def give_up(self, reservation: Reservation) -> None:
        """It was delivered, or will not be."""
        self._give_up(reservation.id, reservation.session_id, reservation.task_ids)

    def drop(self, session_id: str) -> None:
        """The session's tasks are cleared."""
        with self._lock:
            for session, task_id in [key for key in self._holders if key[0] == session_id]:
                self._free(session, task_id)

    def _give_up(self, id: str, session_id: str, task_ids: Iterable[str]) -> None:
        with self._lock:
            for task_id in task_ids:
                if self._holders.get((session_id, task_id)) == id:
                    self._free(session_id, task_id)

    def _taken(self, id: str, session_id: str, task_ids: Iterable[str]) -> set[str]:
        """Other processes are asked without the lock: that may take a while."""
        with self._lock:
            mine = [task_id for task_id in task_ids if (session_id, task_id) not in self._holders]
            self._holders.update({(session_id, task_id): id for task_id in mine})
        taken = {task_id for task_id in mine if self.claims.take(task_id)}
        with self._lock:
            for task_id in mine:
                is_held = self._holders.get((session_id, task_id)) == id
                if task_id in taken and not is_held:
                    taken.discard(task_id)  # cleared meanwhile
                    self.claims.give_back(task_id)
                elif task_id not in taken and is_held:
                    del self._holders[session_id, task_id]
        return taken

    def _free(self, session_id: str, task_id: str) -> None:
        del self._holders[session_id, task_id]
        self.claims.give_back(task_id)


def delivered(tasks: Tasks, task_ids: Collection[str], now_ms: int) -> Tasks:
    """The tasks with these marked as delivered, each once: what another process delivered first stays as that left it."""
    return tuple(
        replace(task, delivered_at_ms=now_ms, delivery_count=task.delivery_count + 1)
        if task.task_id in task_ids and task.delivered_at_ms is None
        else task
        for task in tasks
    )
