"""JSON in and out as bytes, without changing a value.

orjson where it is exact; the standard library for what orjson cannot hold (integers over 64 bits, lone surrogates).
"""

from __future__ import annotations

import json
import re

import orjson

from routing.errors import BadCall

_LONG_NUMBER = re.compile(rb"\d{16}")
"""Perhaps an integer that orjson would turn into a float."""


def loads(raw: bytes) -> object:
    """The value; BadCall where `raw` is not JSON."""
    try:
        if _LONG_NUMBER.search(raw) is None:
            return orjson.loads(raw)
    except orjson.JSONDecodeError:
        pass
    try:
        return json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise BadCall(f"The request body is not valid JSON: {error}") from None


def dumps(value: object) -> bytes:
    try:
        return orjson.dumps(value)
    except (TypeError, orjson.JSONEncodeError):
        return json.dumps(value, separators=(",", ":")).encode()
