"""Read the body of a tag: what it says, before anybody knows whether the names in it exist.

1. A body gives at least one `Tag`. What has the form of a tag of ours and cannot be read is `Unreadable`: it is refused, with
   the line that shows how it is written. What has no such form is `Unknown`: it does nothing.
2. A list holds together: one unreadable item makes the whole tag unreadable.
3. Full-width twins and typographic quotes are read as their ASCII twins; what can be read in one way only is read.
4. Nothing but provider, key and model names is looked up later, so nothing else can be refused later.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct

from ..router.registry import ECHO, ORIGIN
from .words import INVISIBLE, NOT_BUILT, STOP_MESSAGE, WORDS, folded, nearest_word

DEFAULT_REPEATS = 10
_MOST_DIGITS = 9
"""A longer number is no count."""


class Name(Struct, frozen=True):
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


class Force(Struct, frozen=True):
    """`p.m`, `echo`, `origin`: this message goes there."""

    name: Name


class Allow(Struct, frozen=True):
    """`p`, `!p`: the session uses only these providers."""

    name: Name
    adds: bool = False
    """It stands behind another in the same list."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Allow) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)


class Stick(Struct, frozen=True):
    """`!p.m`: the session keeps to that target."""

    name: Name


class Disable(Struct, frozen=True):
    """`#p`, `#p.1`, `#p.m`."""

    name: Name


class Enable(Struct, frozen=True):
    """`@p`, `@p.1`, `@p.m`."""

    name: Name


class Clear(Struct, frozen=True):
    """`clear`: back to normal routing, without stopMessage."""


class StopSet(Struct, frozen=True):
    """`stopMessage:"text",N` or `stopMessage:<file://path>,N`: one of `text` and `file` is given."""

    text: str | None
    file: str | None
    max_repeats: int = DEFAULT_REPEATS


class StopClear(Struct, frozen=True):
    """`stopMessage:clear`."""


class ClockClear(Struct, frozen=True):
    """`clock:clear`: the session's clock tasks go."""


class Ask(Struct, frozen=True):
    """What changes nothing: the person wants to be told."""


class Status(Ask, frozen=True):
    """`status`: say what is in force."""


class Help(Ask, frozen=True):
    """`help`: say which tags there are."""


class Models(Ask, frozen=True):
    """`models`, `models:p`: say what can be asked for, and how it is."""

    provider: str | None = None


class Why(Ask, frozen=True):
    """`why`: say where the last message went, and why."""


class Usage(Ask, frozen=True):
    """`usage`: say what the session and the day cost."""


class Unreadable(Struct, frozen=True):
    """It has the form of a tag of ours, and says nothing that can be done."""

    body: str
    right: str
    """What is wrong, and how it is written."""


class Unknown(Struct, frozen=True):
    """Nothing of ours."""

    body: str


Asks: TypeAlias = Status | Help | Models | Why | Usage
Tag: TypeAlias = Force | Allow | Stick | Disable | Enable | Clear | StopSet | StopClear | ClockClear | Asks | Unreadable | Unknown

_WHOLE: dict[str, Tag] = dict(zip(WORDS, (Clear(), Status(), Help(), Models(), Why(), Usage()), strict=True))
"""In any case."""
_ALONE = (ORIGIN, ECHO)
"""Such a name forces: nobody means to keep a conversation there by writing it once."""
_SHORTEST_NEAR_MISS = 4
"""Beside another word; `who cares` is nothing of ours."""
_AT_THE_EDGES = " \t\r\n" + INVISIBLE

_NAME = re.compile(r"(?P<provider>\w[\w-]*)(?:\[(?P<alias>[^\[\]\s,]*)\])?(?:\.(?P<rest>[^\s,]+))?", re.ASCII)
_NAMELIKE = re.compile(r"[!#@]{0,4}\w[\w-]*(?:\[[^\[\]\s,]*\]?)?(?:\.[^\s,]*)?", re.ASCII)
_PREFIXED_NAME = re.compile(r"[!#@]{1,4}\w[^\s,]*")
_PREFIXED: dict[str, Callable[[Name], Tag]] = {
    "!": lambda name: Allow(name) if name.is_provider else Stick(name),
    "#": Disable,
    "@": Enable,
}

_WORD_AND_MORE = re.compile(r"(?P<word>[^\W\d_](?:[^\W\d]|-)*)(?P<sep>[\s:,;=]*)(?P<rest>.*)", re.DOTALL)
"""Of whatever script: a letter of another that looks the same is a slip, too."""
_AROUND = " \t\r\n!#@.,:;?'\"`()[]{}<>/\\*-=+|~"

_STOP = re.compile(r"(?i:stopMessage)(?![\w-])\s*[:,;=]?\s*(?P<value>.*)", re.DOTALL)
_TORN_STOP = r"\s?".join("stop") + r"[\s_-]*" + r"\s?".join("mes") + r"\s?s?\s?" + r"\s?".join("age") + r"s?\b"
LIKE_STOP = re.compile(rf"{_TORN_STOP}|stop\w*\s*[:,;=]?\s*[\"'<]", re.IGNORECASE)
"""With a letter too many or too few, or white space in it."""
_STOP_TEXT = re.compile(r'"(?P<text>(?:[^"\\]|\\.)*+)"(?P<more>.*)', re.DOTALL)
_STOP_PAIRED = tuple(
    re.compile(rf"[{left}](?P<text>.*)[{right}](?P<more>[^{right}]*)", re.DOTALL)
    for left, right in (('“”„‟＂"', "“”‟＂"), ("“”„‟＂", '"'), ("‘’‚'＇", "‘’'＇"), ("「『", "」』"), ("«»", "«»"))
)
_STOP_FILE = re.compile(r"<\s*file://(?P<file>[^<>]*)>(?P<more>.*)", re.DOTALL | re.IGNORECASE)
_STOP_BARE = re.compile(r"(?P<text>[^\"'<>\\,]*)(?P<more>,.*)?", re.DOTALL)
_COUNT = re.compile(rf"\s*[,;:]?\s*(?P<count>[0-9]{{1,{_MOST_DIGITS}}})\s*")
_STOP_OFF = ("clear", "off")
_SWITCHES = frozenset(
    {*_STOP_OFF, "on", "start", "enable", "enabled", "true", "yes", "set"}
    | {"none", "no", "stop", "end", "false", "disable", "disabled", "cancel", "reset", "pause"}
)
_PATH = re.compile(r"~?\.{0,2}[/\\]|[A-Za-z]:[\\/]|file:|\S+/\S+\Z|\S+\.(?:md|txt)\b", re.IGNORECASE)

HOW_STOP = (
    '<**stopMessage:"text",3**> (a quote inside the text as \\"), <**stopMessage:<file://stopMessage/m.md>,3**> '
    "or <**stopMessage:clear**>"
)
HOW_NAMES = (
    "<**p.model**> for one message, <**!p.model**> to stay there, <**!p,q**> for only these providers, "
    "<**#p.key**> to switch off, <**@p.key**> to switch on again"
)


@functools.lru_cache(maxsize=128)
def parse(body: str) -> tuple[Tag, ...]:
    """What a tag says. A list says several things, in order."""
    body = body.strip(_AT_THE_EDGES).strip()
    plain = folded(body)
    if not plain.strip():
        return (Unknown(body),)
    stop = _STOP.fullmatch(plain)
    if stop is not None:
        return (_stop(body, body[stop.start("value") :]),)
    if LIKE_STOP.match(plain.lstrip(_AROUND)):
        return (Unreadable(body, f"write {HOW_STOP}"),)
    word = _word(body, plain)
    return (word,) if word is not None else _parse_list(body, plain)


def parse_name(text: str) -> Name | None:
    """A target's name alone."""
    found = _NAME.fullmatch(text)
    return Name(found["provider"], found["rest"], found["alias"]) if found is not None else None


# Words


def _word(body: str, plain: str) -> Tag | None:
    """A word of ours, alone or with something beside it; None where it is none."""
    whole = _WHOLE.get(plain.lower())
    if whole is not None:
        return whole
    found = _WORD_AND_MORE.fullmatch(plain)
    if found is not None:
        word, sep, rest = found["word"].lower(), found["sep"], found["rest"].strip()
        if word == "clock" and sep and rest.lower() == "clear":
            return ClockClear()
        if word == "models" and sep and (name := _NAME.fullmatch(rest)) is not None and str(name["provider"]) == rest:
            return Models(rest)
        if word == "clear" and "," in sep:
            return None  # a list that begins with it
        known = nearest_word(word)
        if known is not None and known.lower() != word and not sep and not rest and word.isascii():
            return None  # a provider may be named so; if none is, that is said
        if known is not None and _is_ours(word == known.lower() or known == STOP_MESSAGE, word, sep, rest):
            return Unreadable(body, _right_word(known, exact=word == known.lower()))
    around = plain.strip(_AROUND).lower()
    return Unreadable(body, f"write <**{around}**>") if around in _WHOLE or around == "clock:clear" else None


def _is_ours(exact: bool, word: str, sep: str, rest: str) -> bool:
    """Alone or with one further word; where a sign follows the very word, whatever stands behind it."""
    if not sep:
        return not rest or (exact and not rest[0].isalnum() and rest[0] not in "._-[")
    return (exact and bool(sep.strip())) or (len(rest.split()) <= 1 and (exact or len(word) >= _SHORTEST_NEAR_MISS))


def _right_word(known: str, *, exact: bool) -> str:
    if known == STOP_MESSAGE:
        return f"write {HOW_STOP}"
    if known in NOT_BUILT:
        what = f"there is no <**{known}**> yet" if exact else f"if {known} is meant: there is no such tag yet"
        return f"{what}; <**help**> says what there is"
    if known == "clock":
        return "write <**clock:clear**>"
    return f"write <**{known}**>" + (" or <**models:p**>, p being a provider" if known == "models" else "")


# stopMessage


def _stop(body: str, typed: str) -> Tag:
    """`typed`: what stands behind the word."""
    if typed.startswith('\\"'):  # a tool has put the whole prompt in quotes, and escaped those inside
        typed = typed.replace('\\"', '"')
    value = folded(typed)
    if value.strip().lower() in _STOP_OFF:
        return StopClear()
    quoted = _STOP_TEXT.fullmatch(typed) if typed.count('"') > 1 else None
    for pattern in _STOP_PAIRED if typed.count('"') < 2 else ():
        quoted = quoted or pattern.fullmatch(typed)
    if quoted is not None:
        return _stop_quoted(body, quoted["text"], folded(quoted["more"]))
    named = _STOP_FILE.fullmatch(value)
    if named is not None:
        count, file = _count(named["more"]), typed[named.start("file") : named.end("file")].strip()
        return Unreadable(body, _wrong_count(named["more"])) if count is None or not file else StopSet(None, file, count)
    bare = _STOP_BARE.fullmatch(value)
    text = bare["text"].strip() if bare is not None else ""
    count = _count(bare["more"] or "") if bare is not None else None
    if bare is None or count is None or not _is_text(text):
        return Unreadable(body, f"its text stands in quotes: write {HOW_STOP}")
    return StopSet(typed[: bare.end("text")].strip(), None, count)


def _stop_quoted(body: str, text: str, more: str) -> Tag:
    text = re.sub(r"\\(.)", lambda pair: pair[1] if pair[1] == '"' else pair[0], text, flags=re.DOTALL)
    bare = text.strip().lower()
    if not bare:
        return Unreadable(body, f"it has no text: write {HOW_STOP}")
    if bare in _STOP_OFF:
        return Unreadable(body, "to clear, leave the quotes out: write <**stopMessage:clear**>")
    if bare.startswith(("file:", "<file:")):
        path = text.strip().strip("<>")
        return Unreadable(body, f"a file stands in < > and not in quotes: write <**stopMessage:<{path}>**>")
    count = _count(more)
    return Unreadable(body, _wrong_count(more)) if count is None else StopSet(text, None, count)


def _is_text(text: str) -> bool:
    """What may go without quotes: it can be nothing else, neither a switch nor a number nor a path."""
    first = re.split(r"\W", text, maxsplit=1)[0].lower()
    if first in _SWITCHES or nearest_word(text) is not None or _PATH.match(text) is not None:
        return False
    return text[:1].isalpha() and not text[-1].isdecimal() and not any(mark in text for mark in ";=:{}[]()|")


def _count(more: str) -> int | None:
    """The count behind a text; the default where nothing stands there, None where it is no number from 1 on."""
    if not more.strip():
        return DEFAULT_REPEATS
    found = _COUNT.fullmatch(more)
    return None if found is None else int(found["count"]) or None


def _wrong_count(more: str) -> str:
    wrong = 'a quote inside the text is written \\"' if '"' in more else "the count is a number from 1 on"
    return f"{wrong}: write {HOW_STOP}"


# Names


def _parse_list(body: str, plain: str) -> tuple[Tag, ...]:
    prefix = plain[0] if plain[0] in _PREFIXED else ""
    items = [item for part in plain.removeprefix(prefix).split(",") if (item := part.strip())]
    if len(items) > 1 and (asks := [item.lower() for item in items if item.lower() in _WHOLE and item.lower() != "clear"]):
        return (Unreadable(body, f"<**{asks[0]}**> is a tag of its own, and stands in no list"),)
    if prefix and (plain[1:2].isspace() or plain[1:2] in _PREFIXED):
        return (_unread(body, plain),)
    tags = [tag for item in items if (tag := _parse_item(item, prefix)) is not None]
    if not tags or len(tags) < len(items):
        return (_unread(body, plain),)
    if len(tags) == 1 and not prefix and items[0] in _ALONE:
        return (Force(Name(items[0])),)
    allows = [tag for tag in tags if isinstance(tag, Allow)]
    return tuple(Allow(tag.name, adds=True) if isinstance(tag, Allow) and tag is not allows[0] else tag for tag in tags)


def _parse_item(item: str, prefix: str) -> Tag | None:
    """An item of a list: the list's prefix counts where it has none of its own."""
    own = item[0] if item[0] in _PREFIXED else ""
    if not own and not prefix and item.lower() == "clear":
        return Clear()
    found = _NAME.fullmatch(item.removeprefix(own))
    if found is None or (found["provider"].isdecimal() and not own and not prefix):
        return None
    name = Name(found["provider"], found["rest"], found["alias"])
    if own or prefix:
        return _PREFIXED[own or prefix](name)
    return Allow(name) if name.is_provider else Force(name)


def _unread(body: str, plain: str) -> Tag:
    """A body without white space is ours if it is a name, or begins like one behind `! # @`; numbers alone are none."""
    pieces = [piece for piece in plain.split(",") if piece]
    is_number = all(piece.replace(".", "").isdecimal() for piece in pieces)
    is_ours = all(_NAMELIKE.fullmatch(piece) or _PREFIXED_NAME.fullmatch(piece) for piece in pieces)
    if pieces and is_ours and not is_number and not any(char.isspace() for char in plain):
        return Unreadable(body, f"names are written {HOW_NAMES}")
    return Unknown(body)
