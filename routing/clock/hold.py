"""Whether an answer that is complete is kept open for a reminder that is nearly due, and for how long.

1. Only after an answer that came to its own end (a plain stop, or the length), and that waits for nobody.
2. The earliest task decides: what comes later comes with a later call.
"""

from __future__ import annotations

from msgspec import Struct

from ..dialects.said import Said

HOLD_TOTAL_S = 900.0
"""A turn is kept open by reminders no longer than this, however many its model sets itself: then they come with later calls."""

_STEP_S = 0.25
"""What ends a wait is looked for so often: a task that is cancelled, or cleared, or a new one."""


class Deliver(Struct, frozen=True):
    """Something is due."""


class Wait(Struct, frozen=True):
    """Look again then."""

    seconds: float


class No(Struct, frozen=True):
    """The answer ends."""

    reason: str
    """For the log."""


def may_hold(said: Said, *, stream: bool, hold_non_streaming: bool, waits_for_client: bool) -> bool:
    """Whether an answer is of the kind behind which anything may be waited for."""
    if not said.complete or said.error is not None or said.calls or said.own or waits_for_client:
        return False
    return said.finish in ("stop", "length") and (stream or hold_non_streaming)


def next_step(due_at_ms: int | None, now_ms: int, *, window_ms: int, left_s: float) -> Deliver | Wait | No:
    """`due_at_ms`: of the earliest task that may be delivered (None: there is none); `left_s`: of the longest wait allowed."""
    if due_at_ms is None:
        return No("nothing is left to wait for")
    wait_s = (due_at_ms - window_ms - now_ms) / 1000
    if wait_s <= 0:
        return Deliver()
    if wait_s > left_s:
        return No(f"the earliest task is due in {round(wait_s + window_ms / 1000)} s")
    return Wait(min(wait_s, _STEP_S))
