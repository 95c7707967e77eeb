"""How much the model is to think, as its generation takes it.

1. A forced tool call and thinking exclude each other: the call is what the client's program waits for, so thinking goes.
2. A model with a budget demands that the turn it is in began with its own thinking. Where that was another's, or is lost,
   it does not think in this call.
3. A budget that `max_tokens` does not hold becomes three quarters of it: room for the answer has to be left.
"""

from __future__ import annotations

from typing import get_args

from msgspec import Struct

from ....values import JsonObject
from ..neutral import Effort, Feature, LeftOut, Reasoning
from .messages_models import Traits

BUDGETS: dict[Effort, int] = {
    "minimal": 1_024,
    "low": 2_048,
    "medium": 8_192,
    "high": 16_384,
    "xhigh": 24_576,
    "max": 31_999,
}
"""Effort → budget of tokens, and back: the first effort whose budget is as large."""
_LEAST = BUDGETS["minimal"]
_ORDER: tuple[Effort, ...] = get_args(Effort)
_MOST_WITHOUT: Effort = "high"
"""Effort of a model that does not think: more is refused."""


class Thinking(Struct, frozen=True):
    config: JsonObject | None = None
    effort: Effort | None = None

    @property
    def on(self) -> bool:
        return self.config is not None and self.config["type"] != "disabled"


def decide_thinking(wanted: Reasoning, traits: Traits, left: LeftOut, *, max_tokens: int, forced: bool, begun: bool) -> Thinking:
    """`begun`: the turn that is going on began with the model's own thinking, or begins now."""
    effort: Effort | None = wanted.effort if wanted.effort != "none" else None
    if wanted.on is False or wanted.effort == "none" or (wanted.on is None and wanted.budget == 0):
        return _off(effort, traits, left)
    if wanted.on is None and effort is None and wanted.budget is None:
        return Thinking()
    budget = wanted.budget if wanted.budget is not None and wanted.budget > 0 else None  # -1: as the model likes
    if forced:
        left.add(Feature.EFFORT, "no thinking beside a forced tool call")
        return _off(effort, traits, left)
    shown: JsonObject = {}
    if wanted.shown is not None and traits.claude:
        shown["display"] = "summarized" if wanted.shown else "omitted"
    if traits.adaptive:
        if effort is None and budget is not None:
            effort = _effort_of(budget)
            left.add(Feature.BUDGET, f"{budget} as effort {effort}")
        return Thinking({"type": "adaptive", **shown}, _nearest(effort, traits, left))
    if not traits.budget or max_tokens <= _LEAST:
        left.add(Feature.EFFORT, "this model does not think" if not traits.budget else "max_tokens leaves no room to think")
        return Thinking()
    if traits.claude and not begun:
        left.add(Feature.EFFORT, "no thinking in a turn that another model began")
        return Thinking({"type": "disabled"}, _nearest(effort, traits, left))
    return Thinking(
        {"type": "enabled", "budget_tokens": _fitting(budget, effort, max_tokens, left), **shown},
        _nearest(effort, traits, left) if traits.efforts else None,
    )


def room_for(wanted: Reasoning, traits: Traits) -> int:
    """Tokens that the budget needs beside an answer, where the client did not limit both together."""
    if wanted.on is False or traits.adaptive or not traits.budget:
        return 0
    return max(0, wanted.budget or 0) or (BUDGETS.get(wanted.effort, 0) if wanted.effort else 0)


def _off(effort: Effort | None, traits: Traits, left: LeftOut) -> Thinking:
    if not traits.off:
        left.add(Feature.EFFORT, "this model always thinks")
        return Thinking(None, "low")
    nearest = _nearest(effort, traits, left)
    if nearest is not None and _ORDER.index(nearest) > _ORDER.index(_MOST_WITHOUT):
        left.add(Feature.EFFORT, f"{nearest} as {_MOST_WITHOUT}")
        nearest = _MOST_WITHOUT
    return Thinking({"type": "disabled"}, nearest)


def _fitting(budget: int | None, effort: Effort | None, max_tokens: int, left: LeftOut) -> int:
    wanted = budget or BUDGETS[effort or "medium"]
    fitting = max(_LEAST, wanted if wanted < max_tokens else max_tokens * 3 // 4)
    if budget and fitting != budget:
        left.add(Feature.BUDGET, f"{budget} as {fitting}")
    return fitting


def _effort_of(budget: int) -> Effort:
    return next((effort for effort, tokens in BUDGETS.items() if tokens >= budget), "max")


def _nearest(effort: Effort | None, traits: Traits, left: LeftOut) -> Effort | None:
    """The same effort, or the next one up that the model knows, or its highest."""
    if effort is None or effort in traits.efforts:
        return effort
    if not traits.efforts:
        return None
    place = _ORDER.index(effort)
    nearest = next((other for other in traits.efforts if _ORDER.index(other) > place), traits.efforts[-1])
    left.add(Feature.EFFORT, f"{effort} as {nearest}")
    return nearest
