"""How a key that is not ready is told of."""

from __future__ import annotations

from ..durations import duration
from .health import Condition, Cooling, Fault, Healthy

READY = "ready"
_REASONS = {
    Fault.RATE: "429",
    Fault.QUOTA: "quota spent",
    Fault.PAYMENT: "402",
    Fault.AUTH: "key refused",
    Fault.SERVER: "5xx",
}
"""As people look for it."""


def how_it_rests(state: Condition, now: float) -> str:
    if isinstance(state, Healthy):
        return READY
    reason = _REASONS.get(Fault(state.reason), "") if state.reason in set(Fault) else ""
    what = "resting" if isinstance(state, Cooling) else "down for"
    return f"{what} {duration(state.until - now)}" + (f" ({reason})" if reason else "")
