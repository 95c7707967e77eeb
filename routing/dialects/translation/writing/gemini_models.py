"""What Google's models take, by the family that a model's name tells.

Sources: ai.google.dev (thinking, thought signatures, function calling, tool combination) and the guides to the models.
A name that tells no version gets what every model takes.
"""

from __future__ import annotations

import re
from functools import lru_cache

from msgspec import Struct

from ....values import JsonObject
from ..neutral import Effort, Feature, LeftOut, Reasoning

_VERSION = re.compile(r"gemini-(\d{1,2})(?:\.(\d{1,2}))?(?![0-9])")
_LATEST = re.compile(r"gemini-(?:pro|flash|flash-lite)-latest")
_NEWEST = (3, 8)
"""Where Google's own `-latest` names lead, at least."""
_LEVEL_IN_NAME = re.compile(r"-(?:minimal|low|medium|high)$")
"""Some hosts sell one model under a name for each level, and take no other."""

_EFFORT_BUDGET: dict[Effort, int] = {"minimal": 1024, "low": 1024, "medium": 8192, "high": 24576, "xhigh": 32768, "max": 32768}
"""Google's own table for `reasoning_effort`, and what is above it."""
_LEVELS = ("MINIMAL", "LOW", "MEDIUM", "HIGH")
_EFFORT_LEVEL: dict[Effort, str] = {"minimal": "MINIMAL", "low": "LOW", "medium": "MEDIUM", "high": "HIGH", "xhigh": "HIGH"}
_BUDGET_LEVELS = ((2048, "LOW"), (12288, "MEDIUM"))
"""Up to so many tokens; above it is HIGH."""


class Family(Struct, frozen=True):
    version: tuple[int, int]
    """(0, 0) where the name tells none."""
    budget: tuple[int, int] | None = None
    """The least and the most that `thinkingBudget` may be."""
    can_stop_thinking: bool = False
    levels: tuple[str, ...] = ()
    """What `thinkingLevel` may be; empty where there is no choice."""
    most_output: int | None = None

    @property
    def modern(self) -> bool:
        """From version 3 on: signed calls, media inside results, JSON beside tools; no penalties, no answer begun for it."""
        return self.version >= (3, 0)


@lru_cache(maxsize=256)
def family_of(model: str) -> Family:
    name = model.lower()
    found = _VERSION.search(name)
    version = (int(found[1]), int(found[2] or 0)) if found else _NEWEST if _LATEST.search(name) else (0, 0)
    if version == (0, 0):
        return Family(version)
    output = 65536 if (2, 5) <= version < (4, 0) else 8192 if version < (2, 5) else None
    if version < (2, 5) or any(word in name for word in ("image", "tts", "audio", "live")):
        return Family(version, most_output=output)
    if version < (3, 0):
        lite, pro = "lite" in name, "pro" in name
        least, most = (128, 32768) if pro else (512, 24576) if lite else (1, 24576)
        return Family(version, budget=(least, most), can_stop_thinking=not pro, most_output=output)
    return Family(version, levels=_levels(name, version), most_output=output)


def _levels(name: str, version: tuple[int, int]) -> tuple[str, ...]:
    if _LEVEL_IN_NAME.search(name):
        return ()
    if "lite" in name or ("flash" in name and version < (3, 7)):
        return _LEVELS
    return ("LOW", "HIGH") if "pro" in name and version == (3, 0) else _LEVELS[1:]


def thinking_config(reasoning: Reasoning, family: Family, left_out: LeftOut) -> JsonObject:
    """`thinkingConfig`; empty where the client said nothing or the model has nothing to choose."""
    off = reasoning.on is False or reasoning.effort == "none" or reasoning.budget == 0
    if family.budget is not None:
        config = _budgeted(reasoning, family.budget, family, left_out, off=off)
    elif family.levels:
        config = _levelled(reasoning, family.levels, left_out, off=off)
    else:
        asked = reasoning.effort is not None or (reasoning.on and not family.modern)
        if reasoning.budget:
            left_out.add(Feature.BUDGET)
        elif asked and not off:
            left_out.add(Feature.EFFORT)
        return {"includeThoughts": reasoning.shown} if reasoning.shown and family.modern else {}
    return config if reasoning.shown is None else {**config, "includeThoughts": reasoning.shown and not off}


def _budgeted(reasoning: Reasoning, span: tuple[int, int], family: Family, left_out: LeftOut, *, off: bool) -> JsonObject:
    least, most = span
    if off:
        if not family.can_stop_thinking:
            left_out.add(Feature.EFFORT, "this model always thinks")
        return {"thinkingBudget": 0 if family.can_stop_thinking else least}
    wanted = reasoning.budget
    if wanted is None and reasoning.effort is not None:
        return {"thinkingBudget": min(_EFFORT_BUDGET[reasoning.effort], most)}
    if wanted is None:
        return {"thinkingBudget": -1} if reasoning.adaptive or reasoning.on else {}
    given = min(max(wanted, least), most)
    if given != wanted:
        left_out.add(Feature.BUDGET, f"{wanted} as {given}")
    return {"thinkingBudget": given}


def _levelled(reasoning: Reasoning, levels: tuple[str, ...], left_out: LeftOut, *, off: bool) -> JsonObject:
    effort, budget = reasoning.effort, reasoning.budget
    if off:
        left_out.add(Feature.EFFORT, f"none as {levels[0]}: this model always thinks")
        return {"thinkingLevel": levels[0]}
    if effort is not None:
        wanted = _EFFORT_LEVEL.get(effort, "HIGH")
        level = _at_least(wanted, levels)
        if level.lower() != effort:
            left_out.add(Feature.EFFORT, f"{effort} as {level}")
        return {"thinkingLevel": level}
    if budget is not None:
        level = _at_least(next((level for most, level in _BUDGET_LEVELS if budget <= most), "HIGH"), levels)
        left_out.add(Feature.BUDGET, f"{budget} as {level}")
        return {"thinkingLevel": level}
    return {}


def _at_least(wanted: str, levels: tuple[str, ...]) -> str:
    """The least of the model's levels that is no less than the one that was asked for."""
    return next((level for level in levels if _LEVELS.index(level) >= _LEVELS.index(wanted)), levels[-1])
