"""The same tool arguments, however a client wrote them down again."""

from __future__ import annotations

import json

from ..fields import read_json


def canonical(arguments: str) -> bytes:
    """One form for all JSON texts of one value: keys in order, no white space, 1.0 as 1. No text at all is an empty object."""
    if not arguments.strip():
        return b"{}"
    raw = arguments.encode("utf-8", "surrogatepass")
    value = read_json(raw)
    try:
        return b"".join(raw.split()) if value is None else _written(value)
    except RecursionError:  # JSON inside a string may be nested deeper than a body
        return b"".join(raw.split())


def _written(value: object) -> bytes:
    return json.dumps(_plain(value), sort_keys=True, separators=(",", ":")).encode()


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return {key: _plain(child) for key, child in value.items()}
    if isinstance(value, list):
        return [_plain(child) for child in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return value
