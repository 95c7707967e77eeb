"""Read the body of a tag: what it says, before anybody knows whether the names in it exist.

1. A body gives at least one `Tag`; what has no known form is `Unknown` and does nothing.
2. A list holds together: one unreadable item makes the whole tag `Unknown`.
3. Nothing but provider, key and model names is looked up later, so nothing else can be refused later.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

DEFAULT_REPEATS = 10
_MOST_DIGITS = 9
"""A longer number is no count."""


@dataclass(frozen=True, slots=True)
class Name:
    """`provider`, `provider.rest`, `provider[alias]` or `provider[alias].rest`, as typed.

    `alias` is None without brackets and empty for `[]`, which binds no key but says that `rest` is a model.
    """

    provider: str
    rest: str | None = None
    alias: str | None = None

    def __str__(self) -> str:
        brackets = "" if self.alias is None else f"[{self.alias}]"
        return f"{self.provider}{brackets}" + ("" if self.rest is None else f".{self.rest}")

    @property
    def is_provider(self) -> bool:
        return self.rest is None and not self.alias


@dataclass(frozen=True, slots=True)
class Force:
    """`p.m`: this message goes there."""

    name: Name


@dataclass(frozen=True, slots=True)
class Allow:
    """`p`, `!p`: the session uses only these providers."""

    name: Name


@dataclass(frozen=True, slots=True)
class Stick:
    """`!p.m`: the session keeps to that target."""

    name: Name


@dataclass(frozen=True, slots=True)
class Disable:
    """`#p`, `#p.1`, `#p.m`."""

    name: Name


@dataclass(frozen=True, slots=True)
class Enable:
    """`@p`, `@p.1`, `@p.m`."""

    name: Name


@dataclass(frozen=True, slots=True)
class Clear:
    """`clear`: back to normal routing, without stopMessage."""


@dataclass(frozen=True, slots=True)
class StopSet:
    """`stopMessage:"text",N` or `stopMessage:<file://path>,N`: one of `text` and `file` is given."""

    text: str | None
    file: str | None
    max_repeats: int = DEFAULT_REPEATS


@dataclass(frozen=True, slots=True)
class StopClear:
    """`stopMessage:clear`."""


@dataclass(frozen=True, slots=True)
class ClockClear:
    """`clock:clear`: the session's clock tasks go."""


@dataclass(frozen=True, slots=True)
class Status:
    """`status`: say what is in force."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """Nothing that is known; `reason` where the person may want to hear why."""

    body: str
    reason: str = ""


Tag: TypeAlias = Force | Allow | Stick | Disable | Enable | Clear | StopSet | StopClear | ClockClear | Status | Unknown

_WORDS: dict[str, Tag] = {"clear": Clear(), "status": Status(), "clock:clear": ClockClear()}
"""Whole tags, in any case and with spaces around the colon."""

_LONGEST_WORD = 64

_NAME = re.compile(r"(?P<provider>\w[\w-]*)(?:\[(?P<alias>[^\[\]\s,]*)\])?(?:\.(?P<rest>[^\s,]+))?")
_PREFIXED: dict[str, Callable[[Name], Tag]] = {
    "!": lambda name: Allow(name) if name.is_provider else Stick(name),
    "#": Disable,
    "@": Enable,
}
_STOP = re.compile(r"stopMessage\s*:\s*(?P<value>.*)", re.DOTALL)
_STOP_TEXT = re.compile(r'"(?P<text>(?:[^"\\]|\\.)*+)"\s*(?:,(?P<max>.*))?', re.DOTALL)
_STOP_FILE = re.compile(r"<\s*file://(?P<file>[^<>]*)>\s*(?:,(?P<max>.*))?", re.DOTALL)
_STOP_OFF = ("clear", "off")
_COLON = re.compile(r"\s*:\s*")
_INVISIBLE = " \t\r\n\u200b\u2060\ufeff\u3000\u00a0"


def parse(body: str) -> tuple[Tag, ...]:
    """What a tag says. A list says several things, in order."""
    body = body.strip(_INVISIBLE).strip()
    if len(body) <= _LONGEST_WORD and (word := _WORDS.get(_COLON.sub(":", body).lower())) is not None:
        return (word,)
    stop = _STOP.fullmatch(body)
    if stop is not None:
        return (_stop(body, stop["value"]),)
    return _parse_list(body)


def parse_name(text: str) -> Name | None:
    """A target's name alone."""
    found = _NAME.fullmatch(text)
    return Name(found["provider"], found["rest"], found["alias"]) if found is not None else None


def _stop(body: str, value: str) -> Tag:
    if value.lower() in _STOP_OFF:
        return StopClear()
    quoted = _STOP_TEXT.fullmatch(value)
    if quoted is not None:
        text = re.sub(r"\\(.)", lambda pair: pair[1] if pair[1] == '"' else pair[0], quoted["text"], flags=re.DOTALL)
        return StopSet(text, None, _repeats(quoted["max"])) if text.strip() else Unknown(body, "the stopMessage has no text")
    named = _STOP_FILE.fullmatch(value)
    if named is not None:
        return StopSet(None, named["file"].strip(), _repeats(named["max"]))
    return Unknown(body, 'a stopMessage is written stopMessage:"text",3 (a quote inside the text as \\") or stopMessage:clear')


def _repeats(given: str | None) -> int:
    """The count, or the default for whatever is not a positive number."""
    digits = (given or "").strip()
    if digits.isascii() and digits.isdecimal() and len(digits) <= _MOST_DIGITS and int(digits) > 0:
        return int(digits)
    return DEFAULT_REPEATS


def _parse_list(body: str) -> tuple[Tag, ...]:
    prefix = body[:1] if body[:1] in _PREFIXED else ""
    items = [item.strip() for item in body.removeprefix(prefix).split(",")]
    tags = [tag for item in items if item for tag in _parse_item(item, prefix)]
    if not tags or any(isinstance(tag, Unknown) for tag in tags):
        return (Unknown(body),)
    return tuple(tags)


def _parse_item(item: str, prefix: str) -> tuple[Tag, ...]:
    """An item of a list: the list's prefix counts where it has none of its own."""
    own = item[0] if item[0] in _PREFIXED else ""
    if not own and not prefix and item.lower() in _WORDS:
        return (_WORDS[item.lower()],)
    found = _NAME.fullmatch(item.removeprefix(own).strip())
    if found is None or (found["provider"].isdecimal() and not own and not prefix):
        return (Unknown(item),)
    name = Name(found["provider"], found["rest"], found["alias"])
    if own or prefix:
        return (_PREFIXED[own or prefix](name),)
    return (Allow(name) if name.is_provider else Force(name),)
