"""JSON in and out as bytes, without changing a value.

orjson where it is exact; the standard library for what orjson cannot hold (integers over 64 bits, lone surrogates).
"""

from __future__ import annotations

import json
from math import isfinite
from typing import NoReturn

import orjson

from routing.errors import BadCall

_DIGITS = bytes(ord("0") if 48 <= byte <= 57 else 0 for byte in range(256))
_LONG_NUMBER = b"0" * 19
"""So many digits in a row may be an integer over 64 bits, which orjson would turn into a float."""
_STRIDE = 9
"""So many digits stand on two neighbouring multiples of this, at least: a look at those is enough for most bodies."""


def loads(raw: bytes) -> object:
    """The value; BadCall where `raw` is not JSON."""
    if not _may_hold_long_number(raw):
        try:
            return orjson.loads(raw)
        except orjson.JSONDecodeError:
            pass
    try:
        return json.loads(raw, parse_constant=_refuse, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise BadCall(f"The request body is not valid JSON: {error}") from None


def _may_hold_long_number(raw: bytes) -> bool:
    return b"00" in raw[::_STRIDE].translate(_DIGITS) and _LONG_NUMBER in raw.translate(_DIGITS)


def dumps(value: object) -> bytes:
    try:
        return orjson.dumps(value)
    except (TypeError, orjson.JSONEncodeError):
        return json.dumps(value, separators=(",", ":")).encode()


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON value")


def _finite(text: str) -> float:
    value = float(text)
    if not isfinite(value):
        raise ValueError(f"{text} is too large a number")
    return value
