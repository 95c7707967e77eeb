"""Whether the conversation goes on by itself after an answer, and the count that ends it.

1. Only a plain stop is continued: no tool call of any kind, nothing cut short, refused or broken.
2. Only while somebody listens. In which calls at all, says the plugin (`wants`).
3. A round is counted before it is sent (`claim`, inside `FileStore.update`): whatever fails afterwards, there are never
   more rounds than were asked for.
4. What is sent in the person's name holds no tag.
"""

from __future__ import annotations

from msgspec import Struct, field
from msgspec.structs import replace

from ..dialects.said import Said, waits_for_client
from ..sessions.state import SessionState, StopMessage
from ..tags.scan import strip
from .guards import Loop
from .work_state import Work


class Continue(Struct, frozen=True):
    """Ask once more, with this text in the person's name."""

    text: str


class No(Struct, frozen=True):
    """The answer stands as it is; `reason` is for the log."""

    reason: str


class Info(Struct, frozen=True):
    """What else is known when an answer has ended."""

    client_present: bool = True
    loop: Loop = field(default_factory=Loop)
    now: float = 0.0
    max_total_s: float = 900.0
    identical_rounds: int = 10
    work: Work = Work.UNKNOWN


def should_continue(said: Said, stop: StopMessage | None, info: Info) -> Continue | No:
    if stop is None:
        return No("not armed")
    if not info.client_present:
        return No("the client has left")
    if reason := _answer_forbids(said) or _count_forbids(stop, info):
        return No(reason)
    text = text_to_send(stop)
    return Continue(text) if text else No("the text is nothing but tags")


def _answer_forbids(said: Said) -> str:
    if said.error is not None or not said.complete:
        return "the answer broke off"
    if said.calls or said.own or waits_for_client(said.native):
        return "a tool call"
    return "" if said.finish == "stop" else f"the answer ended with {said.finish}"


def _count_forbids(stop: StopMessage, info: Info) -> str:
    if not is_armed(stop):
        return "used up"
    if reason := info.loop.ends(info.now, max_total_s=info.max_total_s, identical_rounds=info.identical_rounds):
        return reason
    return "bd_idle" if info.work is Work.IDLE else ""


def is_armed(stop: StopMessage | None) -> bool:
    return stop is not None and stop.used < stop.max_repeats


def text_to_send(stop: StopMessage) -> str:
    return strip(stop.text).strip()


def claim(state: SessionState, now_ms: int) -> tuple[SessionState, bool]:
    """Count one more round where one is left: the new state, and whether it may be sent.

    The last one takes the stopMessage out of the state; when that was stays known.
    """
    stop = state.stop
    if stop is None or stop.used >= stop.max_repeats:
        return state, False
    if stop.used + 1 == stop.max_repeats:
        return spent(state, now_ms).with_(stop_last_used_at_ms=now_ms), True
    return state.with_(stop=replace(stop, used=stop.used + 1, last_used_at_ms=now_ms)), True


def spent(state: SessionState, now_ms: int) -> SessionState:
    """The stopMessage is over: nothing of it acts any more, only its times stay."""
    last_used = state.stop.last_used_at_ms if state.stop else state.stop_last_used_at_ms
    return state.with_(stop=None, stop_cleared_at_ms=now_ms, stop_last_used_at_ms=last_used)
