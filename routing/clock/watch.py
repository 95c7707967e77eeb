"""One server's clock: its tasks, its time, and who delivers what. All that plugins of any configuration share.

1. No sentence made here for the log, or for a person, holds what a task says.
2. What is said to block waits for the disk, and may be called from any thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import Struct, field

from ..config.values import Clock
from ..errors import StoreError
from ..values import JsonObject
from .moment import Moments, local_text, utc_text
from .reminders import Reservation, Reservations, deliverable, delivered, waits_for
from .store import ClockStore
from .tasks import Task, Tasks, is_expired
from .tool import ToolDesk


class Watch(Struct, frozen=True):
    store: ClockStore
    moments: Moments
    reservations: Reservations
    new_id: Callable[[], str]
    ntp: Callable[[], JsonObject]
    """How the time was measured, as the tool tells it."""
    unwritten: list[Reservation] = field(default_factory=list)
    """What was delivered, and is not marked so yet."""

    # What waits

    def open(self, session: str, retention_ms: int) -> Tasks:
        """What is neither delivered nor too old. StoreError."""
        return tuple(self._open(self.store.waiting(session), retention_ms))

    def _open(self, tasks: Tasks, retention_ms: int) -> Iterator[Task]:
        trusted = self.moments.trusted_now_ms()
        return (task for task in tasks if task.delivered_at_ms is None and not is_expired(task, trusted, retention_ms))

    def missed(self, session: str, waiting: Tasks, retention_ms: int) -> Tasks:
        """What expired before a call came that could have been reminded of it."""
        trusted = self.moments.trusted_now_ms() if waiting else None
        expired = tuple(task for task in waiting if is_expired(task, trusted, retention_ms))
        return (*self.store.missed(session), *expired)

    def earliest_due(self, session: str, request_id: str, retention_ms: int) -> int | None:
        """Of the tasks that this request may deliver and nobody else is about to. StoreError."""
        tasks = self.store.waiting(session)
        if not tasks:
            return None
        found = (task for task in self._open(tasks, retention_ms) if waits_for(task, request_id))
        return next((task.due_at_ms for task in found if not self.reservations.is_reserved(task)), None)

    # Delivering

    def reserve(self, session: str, request_id: str, settings: Clock) -> Reservation | None:
        """What a request may be reminded of now, for it alone. StoreError."""
        if not self.store.waiting(session):
            return None

        def load() -> Iterator[Task]:
            return deliverable(
                self.store.waiting(session),
                self.moments.now_ms(),
                self.moments.trusted_now_ms(),
                window_ms=settings.due_window_ms,
                retention_ms=settings.retention_ms,
                request_id=request_id,
            )

        return self.reservations.reserve(f"{request_id}:clock", session, load)

    def commit(self, reservation: Reservation) -> Tasks | StoreError:
        """Blocks. What was marked as delivered: all that no other process was faster with, and nobody cleared.

        What cannot be written stays reserved, so that nobody delivers it again, and is written later.
        """
        ids, now_ms = set(reservation.task_ids), self.moments.now_ms()
        marked: list[Tasks] = []

        def change(tasks: Tasks) -> Tasks:
            new = delivered(tasks, ids, now_ms)
            marked.append(tuple(task for task, old in zip(new, tasks, strict=True) if task is not old))
            return new

        try:
            self.store.update(reservation.session_id, change)
        except StoreError as error:
            self.unwritten.append(reservation)
            return error
        self.reservations.give_up(reservation)
        return marked[-1]

    def write_unwritten(self) -> None:
        """Blocks. Deliveries that could not be written: marked again, a task is counted once."""
        for reservation in [self.unwritten.pop(0) for _ in range(len(self.unwritten))]:
            self.commit(reservation)

    # What a person or a model asks for

    def clear(self, session: str, retention_ms: int) -> int:
        """Blocks. Removes all tasks of the session at once; how many had waited. StoreError."""
        open_ones: list[Tasks] = []

        def nothing(tasks: Tasks) -> Tasks:
            open_ones.append(tuple(self._open(tasks, retention_ms)))
            return ()

        self.store.update(session, nothing)
        self.reservations.drop(session)
        return len(open_ones[-1])

    def told(self, session: str, retention_ms: int, written: Callable[[int], str] = utc_text) -> str:
        """How many tasks wait, and from when on."""
        try:
            tasks = self.open(session, retention_ms)
        except StoreError as error:
            return error.message
        earliest = f", the earliest due {written(tasks[0].due_at_ms)}" if tasks else ""
        return counted(len(tasks)) + earliest

    def told_here(self, session: str, retention_ms: int) -> str:
        """The same in the person's own time."""
        return self.told(session, retention_ms, local_text)

    def tool_desk(
        self,
        session: str | None,
        request_id: str,
        prompt: str,
        settings: Clock | None,
        left: Callable[[], bool] = lambda: False,
    ) -> ToolDesk:
        """`settings`: None where the clock is switched off."""
        known = settings or Clock()
        return ToolDesk(
            store=self.store if session is not None else None,
            session_id=session,
            request_id=request_id,
            prompt=prompt,
            moment=self.moments.moment(),
            trusted_now_ms=self.moments.trusted_now_ms(),
            window_ms=known.due_window_ms,
            retention_ms=known.retention_ms,
            new_id=self.new_id,
            ntp=self.ntp(),
            enabled=settings is not None,
            left=left,
        )


def counted(count: int) -> str:
    return "no tasks" if count == 0 else "1 task" if count == 1 else f"{count} tasks"
