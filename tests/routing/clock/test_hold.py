"""Whether an answer is held open, and for how long: every kind of ending, and every distance."""

from __future__ import annotations

from typing import Any

import pytest

from routecodex.routing.clock.hold import Deliver, No, Wait, may_hold, next_step
from routecodex.routing.dialects.said import Said
from routecodex.routing.values import FinishReason, ProviderError, ToolCall, Usage

CALL = ToolCall("c", "Bash", "{}")


def ended(finish: FinishReason = "stop", **more: Any) -> Said:
    fields: dict[str, Any] = {"calls": (), "own": ()} | more
    return Said("text", fields.pop("calls"), fields.pop("own"), finish, Usage(), "id", (), **fields)


ENDINGS: dict[str, tuple[Said, bool]] = {
    "stop": (ended(), True),
    "length": (ended("length"), True),
    "tool_calls": (ended("tool_calls"), False),
    "content_filter": (ended("content_filter"), False),
    "error": (ended("error"), False),
    "stop with a call": (ended(calls=(CALL,)), False),
    "stop with a call of ours": (ended(calls=(CALL,), own=(CALL,)), False),
    "broken off": (ended(complete=False), False),
    "an error event": (ended(error=ProviderError(500)), False),
}


@pytest.mark.parametrize("name", ENDINGS)
def test_22_endings(name: str) -> None:
    said, expected = ENDINGS[name]
    assert may_hold(said, stream=True, hold_non_streaming=True, waits_for_client=False) is expected


@pytest.mark.parametrize(
    "stream, allowed, waits, expected",
    [(True, False, False, True), (False, True, False, True), (False, False, False, False), (True, True, True, False)],
    ids=["stream", "json", "c25 json, forbidden", "it waits for the client"],
)
def test_c25_forms(stream: bool, allowed: bool, waits: bool, expected: bool) -> None:
    assert may_hold(ended(), stream=stream, hold_non_streaming=allowed, waits_for_client=waits) is expected


@pytest.mark.parametrize(
    "due_in_s, left_s, expected",
    [
        (30, 60, Deliver()),
        (60, 60, Deliver()),
        (-500, 60, Deliver()),
        (60.1, 60, Wait(pytest.approx(0.1))),  # type: ignore[arg-type]
        (90, 30, Wait(0.25)),
        (90, 29, No("the earliest task is due in 90 s")),
        (600, 60, No("the earliest task is due in 600 s")),
        (60.1, 0, No("the earliest task is due in 60 s")),
        (59, -1, Deliver()),
    ],
    ids=["in the window", "at its edge", "overdue", "nearly", "c23", "too far", "c24", "no time left", "due at the last moment"],
)
def test_c23_c24_distances(due_in_s: float, left_s: float, expected: Deliver | Wait | No) -> None:
    now_ms = 1_800_000_000_000
    assert next_step(now_ms + round(due_in_s * 1000), now_ms, window_ms=60_000, left_s=left_s) == expected


def test_nothing_to_wait_for() -> None:
    assert next_step(None, 0, window_ms=60_000, left_s=60) == No("nothing is left to wait for")
