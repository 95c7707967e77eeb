"""What stands in the file as values of the schema; all that does not fit, in plain words and at its lines.

1. Nothing is guessed: the file holds texts, tables and lists, and each text is read as what its key takes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from . import schema
from .notes import Notes, Path, nearest
from .section import MUST_BE_SAID, Limits, Section
from .source import Table

S = TypeVar("S", bound=Section)

_Read = Callable[[object, Path, Notes], Any]
"""Of what is given; where `notes` are told that it does not fit, the value is worth nothing."""


def validate(root: Table, notes: Notes) -> schema.Document | None:
    """The document; None where `notes` says what is wrong."""
    before = len(notes.found)
    document = _section(schema.Document, root, (), notes)
    return document if len(notes.found) == before else None


def _section(section: type[S], given: object, at: Path, notes: Notes) -> S:
    made = section()
    if not isinstance(given, Mapping):
        notes.refuse(at, "must be a mapping (name: value)")
        return made
    for name, key in section.file_keys.items():
        if key.alias in given:
            setattr(made, name, _reader(key.kind, key.limits)(given[key.alias], (*at, key.alias), notes))
        elif key.default is MUST_BE_SAID:
            notes.refuse((*at, key.alias), "missing")
    for word in given:
        if word not in section.spelt:
            notes.refuse((*at, word), _unknown(word, section))
    return made


_ELSEWHERE = {
    "apikey": "auth.keys[].value",
    "key": "auth.keys[].value",
    "url": "baseURL",
    "apibase": "baseURL",
}
"""What other tools' files call it."""


def _unknown(word: str, section: type[Section]) -> str:
    within, anywhere = _places(section), _places(schema.Document)
    if word in within:
        return f"unknown key here: it belongs under {' or '.join(within[word][:2])}"
    bare = _bare(word)
    same = [one for one in section.spelt if _bare(one) == bare]
    if "baseURL" in section.spelt and bare in _ELSEWHERE:
        same = same or [_ELSEWHERE[bare]]
    if close := same or nearest(word, section.spelt):
        return f"unknown key (did you mean {' or '.join(close)}?)"
    if word in anywhere:
        return f"unknown key here: it belongs under {' or '.join(anywhere[word][:2])}"
    if word in schema.Document.spelt:
        return "unknown key here: it belongs to the left margin, under nothing"
    if close := nearest(word, within):
        return f"unknown key (did you mean {' or '.join(f'{one}, under {within[one][0]}' for one in close[:2])}?)"
    return "unknown key"


def _bare(word: str) -> str:
    return word.replace("_", "").replace("-", "").lower()


def _places(section: type[Section]) -> dict[str, list[str]]:
    """Under what the keys of its inner sections stand, the outermost first."""
    found: dict[str, list[str]] = {}
    todo: list[tuple[type[Section], str]] = [(section, "")]
    for outer, way in todo:
        for key in outer.file_keys.values():
            inner, steps = _inner(key.kind)
            if way:
                found.setdefault(key.alias, []).append(way)
            if inner is not None:
                todo.append((inner, f"{way}{'.' if way else ''}{key.alias}{steps}"))
    return found


def _inner(kind: Any) -> tuple[type[Section] | None, str]:
    """The section that it holds, and how far inside."""
    if isinstance(kind, type) and issubclass(kind, Section):
        return kind, ""
    step = {list: "[]", dict: ".NAME"}.get(get_origin(kind), "")
    inner = next((found for arg in get_args(kind) if (found := _inner(arg))[0] is not None), (None, ""))
    return inner[0], step + inner[1]


@cache
def _reader(kind: Any, limits: Limits | None = None) -> _Read:
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _reader(inner[0], inner[1].limits)
    if origin in (Union, UnionType):
        (one,) = (arg for arg in inner if arg is not NoneType)
        reads = _reader(one, limits)
        return lambda given, at, notes: None if given is None else reads(given, at, notes)
    if origin is Literal:
        return lambda given, at, notes: _literal(inner, given, at, notes)
    if origin is list:
        entry = _reader(inner[0])
        return lambda given, at, notes: _list(entry, limits, given, at, notes)
    if origin is dict:
        value = _reader(inner[1])
        return lambda given, at, notes: _dict(value, given, at, notes)
    if kind in _PLAIN:
        plain = _PLAIN[kind]
        return lambda given, at, notes: plain(given, limits or Limits(), at, notes)
    return lambda given, at, notes: _section(kind, given, at, notes)


def _literal(words: tuple[str, ...], given: object, at: Path, notes: Notes) -> object:
    if given not in words:
        *others, last = map(repr, words)
        notes.refuse(at, f"must be one of {', '.join(others)} or {last}")
    return given


def _list(entry: _Read, limits: Limits | None, given: object, at: Path, notes: Notes) -> object:
    if not isinstance(given, list | tuple):
        notes.refuse(at, "must be a list")
        return given
    if limits is not None and limits.max_length is not None:
        if not given:
            notes.refuse(at, "must not be empty")
        if len(given) > limits.max_length:
            notes.refuse(at, f"must hold at most {limits.max_length} entries")
            return given
    return [entry(one, (*at, place), notes) for place, one in enumerate(given)]


def _dict(value: _Read, given: object, at: Path, notes: Notes) -> object:
    if not isinstance(given, Mapping):
        notes.refuse(at, "must be a mapping (name: value)")
        return given
    return {name: value(one, (*at, name), notes) for name, one in given.items()}


def _text(given: object, limits: Limits, at: Path, notes: Notes) -> object:
    if not isinstance(given, str):
        notes.refuse(at, "must be text")
    elif limits.pattern and re.fullmatch(limits.pattern, given) is None:
        notes.refuse(at, limits.else_say)
    return given


_INTEGER = re.compile(r"\s*[+-]?[0-9]+(?:_[0-9]+)*(?:\.0+)?\s*")
_LONGEST_NUMBER = 4_000


def _integer(given: object, limits: Limits, at: Path, notes: Notes) -> object:
    number = given
    if isinstance(given, str) and _INTEGER.fullmatch(given):
        if len(given) > _LONGEST_NUMBER:
            notes.refuse(at, "is too large a number")
            return given
        number = int(given.partition(".")[0])
    if not isinstance(number, int):
        notes.refuse(at, "must be a whole number")
        return given
    return _within(number, limits, at, notes)


def _number(given: object, limits: Limits, at: Path, notes: Notes) -> object:
    number = given
    if isinstance(given, str) and given.isascii():
        try:
            number = float(given)
        except ValueError:
            pass
    if not isinstance(number, int | float):
        notes.refuse(at, "must be a number")
        return given
    if not math.isfinite(number):
        notes.refuse(at, "must be a finite number")
        return given
    return _within(float(number), limits, at, notes)


def _within(number: float, limits: Limits, at: Path, notes: Notes) -> object:
    if limits.ge is not None and number < limits.ge:
        notes.refuse(at, f"must be at least {limits.ge:g}")
    elif limits.le is not None and number > limits.le:
        notes.refuse(at, f"must be at most {limits.le:g}")
    return number


_WORDS = {
    **dict.fromkeys(("true", "yes", "on", "y", "t", "1"), True),
    **dict.fromkeys(("false", "no", "off", "n", "f", "0"), False),
}


def _yes_or_no(given: object, limits: Limits, at: Path, notes: Notes) -> object:
    found = _WORDS.get(given.lower()) if isinstance(given, str) else given
    if not isinstance(found, bool):
        notes.refuse(at, "must be true or false")
    return found


_PLAIN: Mapping[Any, Callable[[object, Limits, Path, Notes], object]] = {
    str: _text,
    int: _integer,
    float: _number,
    bool: _yes_or_no,
}
