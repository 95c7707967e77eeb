"""What each of OpenAI's models takes of the Responses API, read from the model's name; and how much a model is to think.

The API refuses with 400 what a model does not take. A model of an unknown family is told what the client said, and nothing more.
"""

from __future__ import annotations

import re
from typing import get_args

from msgspec import Struct

from ....values import JsonObject
from ..neutral import Effort, Feature, LeftOut, Reasoning


class Traits(Struct, frozen=True):
    reasons: bool = True
    efforts: tuple[Effort, ...] | None = None
    """None: whatever the client says."""
    least: Effort | None = None
    """For a client that wants no thinking and names no effort; None where nobody knows what the model would take."""
    sampling: bool = True
    """Takes temperature and top_p."""


def _reasoning(*efforts: Effort) -> Traits:
    return Traits(efforts=efforts, least=efforts[0], sampling=False)


_FAMILIES: tuple[tuple[re.Pattern[str], Traits], ...] = tuple(
    (re.compile(pattern), traits)
    for pattern, traits in (
        (r"gpt-[34]|chatgpt|gpt-5(\.\d+)?-chat", Traits(reasons=False)),
        (r"o\d(-|$)|codex-mini", _reasoning("low", "medium", "high")),
        (r"gpt-5-pro", _reasoning("high")),
        (r"gpt-5(\.1)?-codex(-mini)?(?!-max)", _reasoning("low", "medium", "high")),
        (r"gpt-5\.\d-codex", _reasoning("low", "medium", "high", "xhigh")),
        (r"gpt-5\.\d-pro", _reasoning("medium", "high", "xhigh")),
        (r"gpt-5\.1", _reasoning("none", "low", "medium", "high")),
        (r"gpt-5\.[2-5]", _reasoning("none", "low", "medium", "high", "xhigh")),
        (r"gpt-5(?![.\d])", _reasoning("minimal", "low", "medium", "high")),
        (r"gpt-[5-9]", Traits(least="low", sampling=False)),
    )
)
"""The first row that the name begins with."""
_UNKNOWN = Traits()
_ORDER: tuple[Effort, ...] = get_args(Effort)

_BUDGETS: tuple[tuple[int, Effort], ...] = ((2_048, "low"), (8_192, "medium"))
"""Tokens up to which a budget is this effort; more is high. No budget asks for what few models take."""
_MOST: Effort = "high"


def traits_of(model: str) -> Traits:
    name = model.lower().rpartition("/")[2]
    return next((traits for pattern, traits in _FAMILIES if pattern.match(name)), _UNKNOWN)


def write_reasoning(wanted: Reasoning, traits: Traits, left: LeftOut) -> JsonObject:
    """The field `reasoning`, empty where there is nothing to say."""
    effort = _effort(wanted, traits, left)
    if not traits.reasons:
        if effort not in (None, "none") or wanted.on:
            left.add(Feature.EFFORT, "this model does not reason")
        return {}
    written: JsonObject = {"effort": effort} if effort else {}
    if wanted.shown and effort != "none":
        written["summary"] = "auto"
    return written


def _effort(wanted: Reasoning, traits: Traits, left: LeftOut) -> Effort | None:
    effort = wanted.effort
    if wanted.on is False:
        effort = "none" if effort == "none" else traits.least
        if effort is None and traits.reasons:
            left.add(Feature.EFFORT, "no reasoning")
    elif effort is None and wanted.budget is not None and wanted.budget > 0 and not wanted.adaptive:
        effort = next((named for most, named in _BUDGETS if wanted.budget <= most), _MOST)
        left.add(Feature.BUDGET, f"{wanted.budget} as effort {effort}")
    if effort is None or not traits.efforts or effort in traits.efforts:
        return effort
    place = _ORDER.index(effort)
    nearest = next((other for other in traits.efforts if _ORDER.index(other) > place), traits.efforts[-1])
    left.add(Feature.EFFORT, f"{effort} as {nearest}")
    return nearest
