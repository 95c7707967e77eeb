"""What each Claude takes of the Messages API, read from the model's name; and what may be asked of every other model.

The API refuses with 400 what a model does not take. Names that say no version count as the newest Claude; names that are
no Claude's as a model behind a Messages API of its own, which takes the plain form of everything.
"""

from __future__ import annotations

import re

from msgspec import Struct
from msgspec.structs import replace

from ..neutral import Effort

DEFAULT_MAX_TOKENS = 32_000
"""Where the client set no limit: the dialect demands one, and the client's own dialect has the model's own."""


class Traits(Struct, frozen=True):
    claude: bool = True
    adaptive: bool = False
    """Thinks as much as it finds right, guided by an effort."""
    budget: bool = False
    """Thinks within a budget of tokens."""
    efforts: tuple[Effort, ...] = ()
    sampling: bool = True
    """Takes temperature, top_p and top_k."""
    one_sampler: bool = False
    """Takes temperature or top_p, not both."""
    off: bool = True
    """Its thinking can be switched off."""
    prefill: bool = True
    """Goes on with an answer that the client began."""
    system: bool = False
    """Listens to system messages in the middle."""
    format: bool = True
    """Takes a schema for its answer, and strict tools."""
    forced: bool = True
    """Can be made to call a tool."""
    most: int = 0
    """Tokens of the longest answer; 0 where that is not known."""


_ALL: tuple[Effort, ...] = ("low", "medium", "high", "xhigh", "max")
_NEWEST = Traits(adaptive=True, efforts=_ALL, sampling=False, prefill=False, most=128_000)
_4_5 = Traits(budget=True, one_sampler=True, most=64_000)
_4_0 = Traits(budget=True, format=False, most=64_000)
_3_5 = Traits(format=False, most=8_192)

_OTHERS = Traits(claude=False, budget=True, format=False)

_TABLE: tuple[tuple[str, tuple[int, int], Traits], ...] = (
    ("fable mythos", (0, 0), replace(_NEWEST, off=False, system=True, forced=False)),
    ("opus", (4, 8), replace(_NEWEST, system=True)),
    ("sonnet", (5, 5), replace(_NEWEST, system=True)),
    ("opus sonnet haiku", (4, 7), _NEWEST),
    (
        "opus",
        (4, 6),
        replace(_NEWEST, budget=True, efforts=("low", "medium", "high", "max"), sampling=True, one_sampler=True),
    ),
    (
        "sonnet haiku",
        (4, 6),
        replace(_NEWEST, budget=True, efforts=("low", "medium", "high", "max"), sampling=True, one_sampler=True, most=64_000),
    ),
    ("opus", (4, 5), replace(_4_5, efforts=("low", "medium", "high"))),
    ("sonnet haiku", (4, 5), _4_5),
    ("opus", (4, 1), replace(_4_5, most=32_000)),
    ("opus", (4, 0), replace(_4_0, most=32_000)),
    ("sonnet haiku", (4, 0), _4_0),
    ("sonnet", (3, 7), _4_0),
    ("opus sonnet haiku", (3, 5), _3_5),
    ("opus sonnet haiku", (3, 0), replace(_3_5, most=4_096)),
)
"""Families, from which version on, what they take: the first row that fits."""

_FAMILY = "opus|sonnet|haiku|fable|mythos"
_NAME = re.compile(
    rf"claude-(?:(?P<family>{_FAMILY})(?:-(?P<major>\d)(?!\d)(?:[-.](?P<minor>\d{{1,2}})(?!\d))?)?"
    rf"|(?P<older_major>\d)(?:[-.](?P<older_minor>\d))?-(?P<older_family>{_FAMILY}))"
)
"""`claude-opus-4-8`, `claude-sonnet-4-20250514`, `claude-3-7-sonnet-latest`, `anthropic/claude-4.7-opus`, …"""


def traits_of(model: str) -> Traits:
    name = model.lower()
    if "claude" not in name:
        return _OTHERS
    found = _NAME.search(name)
    if found is None:
        return _NEWEST
    family = found["family"] or found["older_family"]
    major, minor = found["major"] or found["older_major"], found["minor"] or found["older_minor"]
    version = (int(major), int(minor or 0)) if major else (99, 0)
    traits = next((row for families, since, row in _TABLE if family in families.split() and version >= since), _3_5)
    # clouds that resell the model under names of their own do not listen to system messages in the middle
    plain = major is not None and name.startswith("claude-") and "@" not in name
    return traits if plain or not traits.system else replace(traits, system=False)
