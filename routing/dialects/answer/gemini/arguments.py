"""A function call's arguments, whole or by pieces: `{"jsonPath": "$.place[0]", "stringValue": "Ber", "willContinue": true}`.

1. Pieces of one string are joined; whatever else comes for a path that has a value takes its place.
2. A path that cannot be read counts as one name: its value is not lost. A place in a list is the next free one at most.
"""

from __future__ import annotations

import re
from itertools import pairwise

from ....values import JsonObject
from ...fields import object_of, text_of
from ...translation.neutral import Seal

_STEP = re.compile(r"""\.([^.\[\]]+)|\[(\d{1,9})\]|\['((?:[^'\\]|\\.)*)'\]|\["((?:[^"\\]|\\.)*)"\]""")
_ESCAPED = re.compile(r"\\(.)")
_LONGEST_PATH = 4096
_DEEPEST = 64
_VALUES = ("stringValue", "numberValue", "boolValue", "nullValue")


class _Pieces(list[str]):
    """A string that grows."""


class Arguments:
    """Of one call."""

    def __init__(self) -> None:
        self.seal: Seal | None = None
        self._grown: JsonObject = {}
        self._open = ""
        """The path whose string goes on."""

    def add(self, whole: JsonObject, partial: list[object]) -> None:
        self._grown.update(whole)
        for piece in map(object_of, partial):
            self._add(piece)

    @property
    def value(self) -> JsonObject:
        return object_of(_settled(self._grown))

    def _add(self, piece: JsonObject) -> None:
        kind = next((name for name in _VALUES if name in piece), None)
        path = text_of(piece.get("jsonPath"))
        if kind is None or not path:
            return
        value = piece[kind]
        if kind == "numberValue" and isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
            value = int(value)
        if kind == "nullValue":
            value = None
        text = value if isinstance(value, str) else None
        place, key = _place(self._grown, _steps(path))
        if text is None:
            _put(place, key, value)
        elif self._open == path and isinstance(known := _at(place, key), _Pieces):
            known.append(text)
        else:
            _put(place, key, _Pieces([text]))
        self._open = path if piece.get("willContinue") is True else ""


def _steps(path: str) -> list[str | int]:
    """RFC 9535, as far as it names one value."""
    steps: list[str | int] = []
    place = 1
    while path.startswith("$") and place < len(path) <= _LONGEST_PATH and len(steps) < _DEEPEST:
        found = _STEP.match(path, place)
        if found is None:
            break
        name, number, *quoted = found.groups()
        if number is not None:
            steps.append(int(number))
        else:
            steps.append(name if name is not None else _ESCAPED.sub(r"\1", next(one for one in quoted if one is not None)))
        place = found.end()
    if not steps or place != len(path) or not isinstance(steps[0], str):
        return [path.removeprefix("$").removeprefix(".") or path]
    return steps


def _place(whole: JsonObject, steps: list[str | int]) -> tuple[object, str | int]:
    """The object or list that holds the last step; what is missing on the way is made."""
    place: object = whole
    for step, after in pairwise(steps):
        inner = _at(place, step)
        if not _holds(inner, after):
            inner = [] if isinstance(after, int) else {}
            _put(place, step, inner)
        place = inner
    return place, steps[-1]


def _holds(place: object, key: str | int) -> bool:
    if isinstance(key, str):
        return isinstance(place, dict)
    return isinstance(place, list) and not isinstance(place, _Pieces)


def _at(place: object, key: str | int) -> object:
    if isinstance(place, dict):
        return place.get(key)
    return place[key] if isinstance(place, list) and isinstance(key, int) and key < len(place) else None


def _put(place: object, key: str | int, value: object) -> None:
    if isinstance(place, dict):
        place[key] = value
    elif isinstance(place, list) and isinstance(key, int):
        if key < len(place):
            place[key] = value
        else:
            place.append(value)


def _settled(value: object) -> object:
    if isinstance(value, _Pieces):
        return "".join(value)
    if isinstance(value, dict):
        return {name: _settled(one) for name, one in value.items()}
    return [_settled(one) for one in value] if isinstance(value, list) else value
