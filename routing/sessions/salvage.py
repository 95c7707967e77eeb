"""What is left of a damaged JSON document: its longest valid beginning, closed where it broke off."""

from __future__ import annotations

import json
import re

_PIECE = re.compile(r'[ \t\r\n]*("(?:[^"\\\x00-\x1f]|\\.)*"|[{}\[\],:]|-?\d[\d.eE+-]*|true|false|null)', re.DOTALL)
_CLOSING = {"{": "}", "[": "]"}
_DEEPEST = 50


def salvage(raw: bytes) -> object:
    """The document as far as it can be read; None where nothing can."""
    text = _readable(raw)
    for end, open_brackets in reversed(_resting_places(text)):
        try:
            return json.loads(text[:end] + "".join(_CLOSING[bracket] for bracket in reversed(open_brackets)))
        except (ValueError, RecursionError):
            continue
    return None


def _readable(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        return raw[: error.start].decode()


def _resting_places(text: str) -> list[tuple[int, str]]:
    """Where a value is complete, with the brackets still open there. Only the last few: an earlier one is never better."""
    places: list[tuple[int, str]] = []
    open_brackets = ""
    at = 0
    while (found := _PIECE.match(text, at)) is not None and len(open_brackets) <= _DEEPEST:
        piece, at = found[1], found.end()
        if piece in "{[":
            open_brackets += piece
        elif piece in "}]":
            if not open_brackets or _CLOSING[open_brackets[-1]] != piece:
                break
            open_brackets = open_brackets[:-1]
        elif piece in ",:":
            continue
        places = [*places[-3:], (at, open_brackets)]
    return places
