"""Say what is in force, and answer a message that is nothing but tags."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..sessions.state import SessionState, Sticky, StopMessage
from .changes import disabled_in
from .obey import Orders
from .wording import shortened, times

LOCAL_ANSWER_MARK = "[RouteCodex] "
"""How every answer of ours begins. Our answers are taken out of later calls by it."""


def describe(
    state: SessionState,
    *,
    derived: bool,
    session: str | None,
    lapsed: Sticky | None = None,
    clock: str = "",
    undeclared: Callable[[Sticky], bool] = lambda sticky: False,
) -> list[str]:
    """What is in force, a sentence each. `lapsed`: the sticky target that was cleared because it was used up. `undeclared`:
    whether the configuration no longer holds a target."""
    lines = [line for line in (_sticky(state), _allowed(state), _disabled(state)) if line]
    if not lines:
        lines.append("Routing: normal.")
    if lapsed is not None and state.sticky is None:
        why = "it is no longer in the configuration" if undeclared(lapsed) else "none of its keys works any more"
        lines.append(f"Sticky {lapsed} was cleared: {why}.")
    if state.sticky is not None and undeclared(state.sticky):
        lines.append(f"{state.sticky} is no longer in the configuration: it is passed over.")
    lines.append(_stop(state.stop) if state.stop else "stopMessage: none.")
    if clock:
        lines.append(clock)
    if session is None:
        lines.append("This client names no session, so tags hold for this message only.")
    elif derived:
        lines.append("This client names no session; this conversation is recognised by its beginning.")
    return lines


def answer_lines(orders: Orders, in_force: Sequence[str] = ()) -> list[str]:
    """What changed, what did nothing, what is in force."""
    return [*orders.lines, *_force_alone(orders), *orders.ignored, *in_force]


def _force_alone(orders: Orders) -> list[str]:
    """A message that holds nothing but a force goes nowhere. Tags stand in backticks: else some tools print them as bold."""
    force = orders.force
    if force is None:
        return []
    return [
        f"`<**{force}**>` holds for the message that it stands in, so nothing was sent: write it beside your text. "
        f"`<**!{force}**>` keeps the whole conversation there."
    ]


def local_answer(lines: Sequence[str]) -> str:
    """Who takes an answer for Markdown makes one paragraph of lines that end without blanks; elsewhere nobody sees them."""
    return LOCAL_ANSWER_MARK + "\n".join(lines).replace("\n", "  \n")


def _sticky(state: SessionState) -> str:
    return f"Sticky: {state.sticky}{'' if state.sticky.key else ' (all keys)'}." if state.sticky else ""


def _allowed(state: SessionState) -> str:
    return f"Allowed: {', '.join(state.allowed)}." if state.allowed else ""


def _disabled(state: SessionState) -> str:
    names = [named.spoken for named in disabled_in(state)]
    return f"Disabled: {', '.join(names)}." if names else ""


def _stop(stop: StopMessage) -> str:
    return f'stopMessage: "{shortened(stop.text)}", used {stop.used} of {times(stop.max_repeats)}.'
