"""JSON in and out as bytes, without changing a value.

orjson where it is exact; the standard library for what orjson cannot hold (integers over 64 bits, lone surrogates).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, compress
from math import isfinite
from typing import Any, NoReturn, TypeAlias

import orjson

from .errors import BadCall

ANY_DEPTH = 1 << 20
_DIGITS = bytes(ord("0") if 48 <= byte <= 57 else 0 for byte in range(256))
_LONG_NUMBER = b"0" * 19
"""So many digits in a row may be an integer over 64 bits, which orjson would turn into a float."""
_STRIDE = 9
"""So many digits stand on two neighbouring multiples of this, at least: a look at those is enough for most bodies."""
_two_digits = re.compile(rb"\d\d").search
_LONG_BODY = 4096
"""From here on it is quicker to look at what was read than at its bytes."""
_MUCH_TO_READ = 3 << 19
"""No shorter text holds so many values that to read them stops everybody for 50 ms: the parser lets nobody else in."""
MOST_VALUES = 500_000
"""Of a longer text, names counted like values. A conversation of a hundred thousand short messages has as many."""
_BEFORE_VALUES = (b",", b":", b"[", b"[", b"{")
"""A list takes as long as two of the others: one that holds another may hold the next."""
_LOOKED_AT = 1 << 20
_HUGE = 9e18
_PARENTS = frozenset({dict, list})
_PIECE = 1 << 16


def loads(raw: bytes, *, deepest: int = ANY_DEPTH) -> object:
    """The value; BadCall where `raw` is not JSON, or nested deeper than that."""
    if deepest == ANY_DEPTH and len(raw) < _LONG_BODY:
        try:
            value = orjson.loads(raw)
        except orjson.JSONDecodeError:
            pass
        else:
            if _two_digits(raw[::_STRIDE]) is None or _LONG_NUMBER not in raw.translate(_DIGITS):
                return value
    return loads_counted(raw, deepest=deepest)[0]


def loads_counted(raw: bytes, *, deepest: int = ANY_DEPTH) -> tuple[object, int]:
    """The same, and how many values it holds; BadCall also where these are more than can be read while others wait."""
    if _holds_too_many(raw):
        raise BadCall(f"The JSON of {len(raw):,} bytes holds more than {MOST_VALUES:,} values and names: it is not read.")
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError:
        pass
    else:
        huge, count = _looked_through(value, deepest)
        if not huge:
            return value, count
    try:
        value = json.loads(raw, parse_constant=_refuse, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise BadCall(f"The request body is not valid JSON: {error}") from None
    return value, _looked_through(value, deepest)[1]


def load_object(raw: bytes) -> dict[str, Any] | None:
    """The object; None where it is none. Every event of a stream goes through here, so it takes no detours."""
    if raw[:1] == b"[":  # nor is the word that ends a stream
        return None
    if len(raw) < _LONG_BODY and (_two_digits(raw[::_STRIDE]) is None or _LONG_NUMBER not in raw.translate(_DIGITS)):
        try:
            value = orjson.loads(raw)
        except orjson.JSONDecodeError:
            pass
        else:
            return value if type(value) is dict else None
    try:
        value = loads(raw)
    except BadCall:
        return None
    return value if type(value) is dict else None


def _looked_through(value: object, deepest: int) -> tuple[bool, int]:
    """Whether a float may have been an integer over 64 bits, and how many values there are; BadCall where it is too deep. All
    values of one level at a time: of most of them nothing but the type is looked at, by the interpreter itself."""
    level: list[Any] = [value]
    huge, count = False, 0
    for _ in range(deepest + 1):
        kinds = list(map(type, level))
        count += len(kinds)
        known = set(kinds)
        if float in known and not huge:
            huge = any(type(child) is float and abs(child) >= _HUGE for child in level)
        if _PARENTS.isdisjoint(known):
            return huge, count
        parents = filter(None, compress(level, map(_PARENTS.__contains__, kinds)))  # empty ones may be very many
        level = list(chain.from_iterable([parent.values() if type(parent) is dict else parent for parent in parents]))
    raise BadCall(f"The request body is nested deeper than {deepest} levels")


def _holds_too_many(raw: bytes) -> bool:
    """Told by what stands before them, outside of texts; in most bodies there are few even with what their texts hold."""
    if len(raw) < _MUCH_TO_READ or _signs_in(raw) <= MOST_VALUES:
        return False
    count, within, rest = 0, 0, b""
    for start in range(0, len(raw), _LOOKED_AT):
        piece = rest + raw[start : start + _LOOKED_AT]
        is_cut = (len(piece) - len(piece.rstrip(b"\\"))) % 2
        piece, rest = (piece[:-1], b"\\") if is_cut else (piece, b"")
        parts = piece.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        count += _signs_in(b"".join(parts[within::2]))
        if count > MOST_VALUES:
            return True
        within ^= ~len(parts) & 1
    return False


def _signs_in(raw: bytes) -> int:
    return sum(map(raw.count, _BEFORE_VALUES))


class Joined:
    """A long text in parts that others hold as well: it is written part by part."""

    __slots__ = ("parts",)

    def __init__(self, parts: Sequence[str]) -> None:
        self.parts = parts

    def __str__(self) -> str:
        return "".join(self.parts)


def joined(parts: Sequence[str]) -> str | Joined:
    """A short text is a text."""
    return "".join(parts) if len(parts) < 2 or sum(map(len, parts)) <= _PIECE else Joined(parts)


def dumps(value: object) -> bytes:
    try:
        return orjson.dumps(value, default=_joined)
    except (TypeError, orjson.JSONEncodeError):
        return _by_standard(value)


Writer: TypeAlias = Callable[[object], bytes]


def dump_pieces(value: object, write: Writer) -> Iterator[bytes]:
    """What `dumps` gives, but no long text as a whole. `write`: the first of `WRITERS` that raises no TypeError; or `dumps`,
    which chooses for each piece anew, so that one text may be spelled in two ways."""
    if not _is_long(value) or (isinstance(value, dict) and not all(isinstance(name, str) for name in value)):
        yield write(value)
    elif isinstance(value, str):
        yield from _dump_text((value,), write)
    elif isinstance(value, Joined):
        yield from _dump_text(value.parts, write)
    elif isinstance(value, dict):
        for place, (name, child) in enumerate(value.items()):
            yield (b"," if place else b"{") + write(name) + b":"
            yield from dump_pieces(child, write)
        yield b"}"
    elif isinstance(value, list | tuple):
        for place, child in enumerate(value):
            yield b"," if place else b"["
            yield from dump_pieces(child, write)
        yield b"]"


def _dump_text(parts: Iterable[str], write: Writer) -> Iterator[bytes]:
    yield b'"'
    for part in parts:
        for start in range(0, len(part), _PIECE):
            yield write(part[start : start + _PIECE])[1:-1]
    yield b'"'


def _is_long(value: object, deepest: int = 32) -> bool:
    """There is a text in it that is worth being cut."""
    level: list[object] = [value]
    for _ in range(deepest + 1):
        below: list[object] = []
        for one in level:
            if isinstance(one, Joined) or (isinstance(one, str) and len(one) > _PIECE):
                return True
            if isinstance(one, dict):
                below += one.values()
            elif isinstance(one, list | tuple):
                below += one
        if not below:
            return False
        level = below
    return False


def _by_standard(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), default=_joined).encode()


def _joined(value: object) -> str:
    if isinstance(value, Joined):
        return str(value)
    raise TypeError


WRITERS: tuple[Writer, ...] = (orjson.dumps, _by_standard)
"""What `dumps` tries, one after the other."""


def as_utf8(raw: bytes) -> bytes:
    """The same bytes, but where they are not UTF-8: clients that are strict about it break off there."""
    if raw.isascii():
        return raw
    try:
        raw.decode()
    except UnicodeDecodeError:
        return raw.decode("utf-8", "replace").encode()
    return raw


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON value")


def _finite(text: str) -> float:
    value = float(text)
    if not isfinite(value):
        raise ValueError(f"{text} is too large a number")
    return value
