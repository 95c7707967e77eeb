"""mitmproxy finds a header by making every name of the head alike, and reads an option by copying it deeply: some thirty headers
and twenty options in each call. This gives the same answers without; whatever is not plain is mitmproxy's own to answer.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from mitmproxy import http, optmanager

_CODED = ("utf-8", "surrogateescape")
_PLAIN = frozenset({str, int, bool, float, type(None)})
"""Values that nobody can change in place."""
_SAMPLE = ((b"A", b"1"), (b"a", b"\xff"), (b"B", b"2"))

Method = Callable[..., Any]


def _get_all(own: Method) -> Method:
    def get_all(headers: http.Headers, name: str | bytes) -> list[str]:
        if type(name) is not str or type(headers) is not http.Headers:
            return list(own(headers, name))
        wanted = name.encode(*_CODED).lower()
        found: list[str] = []
        for key, value in headers.fields:
            if len(key) == len(wanted) and key.lower() == wanted:
                found.append(value.decode(*_CODED))
        return found

    return get_all


def _get(own: Method) -> Method:
    def get(headers: http.Headers, key: str | bytes, default: Any = None) -> Any:
        if type(key) is not str or type(headers) is not http.Headers:
            return own(headers, key, default)
        wanted = key.encode(*_CODED).lower()
        found: list[bytes] = []
        for name, value in headers.fields:
            if len(name) == len(wanted) and name.lower() == wanted:
                found.append(value)
        return b", ".join(found).decode(*_CODED) if found else default

    return get


def _begin(own: Method) -> Method:
    def begin(headers: http.Headers, fields: Any = (), **more: str | bytes) -> None:
        if more or type(headers) is not http.Headers:
            own(headers, fields, **more)
            return
        headers.fields = tuple(map(tuple, fields))
        for key, value in headers.fields:
            if type(key) is not bytes or type(value) is not bytes:
                own(headers, headers.fields)

    return begin


def _read_option(own: Method) -> Method:
    def read(options: optmanager.OptManager, name: str) -> Any:
        option = options._options.get(name)
        if option is None:
            return own(options, name)
        value = option._default if option.value is optmanager.unset else option.value
        return value if type(value) in _PLAIN else option.current()

    return read


def _all_found(get_all: Method) -> Any:
    return [get_all(http.Headers(_SAMPLE), name) for name in ("a", "B", "c")]


def _found(get: Method) -> Any:
    return [get(http.Headers(_SAMPLE), name, 1) for name in ("a", "B", "c")]


def _begun(begin: Method) -> Any:
    made = [http.Headers.__new__(http.Headers) for _ in range(2)]
    for headers, fields in zip(made, (_SAMPLE, [list(pair) for pair in _SAMPLE]), strict=True):
        begin(headers, fields)
    return [vars(headers) for headers in made]


def _options_read(read: Method) -> Any:
    found = []
    for default, value in (("a", "b"), (None, "b"), (["a"], ["b"])):
        options = optmanager.OptManager()
        options.add_option("name", object, default, "")
        found.append(read(options, "name"))
        options._options["name"].value = value
        found.append(read(options, "name"))
    return found


_READS: tuple[tuple[Any, str, Callable[[Method], Method], Callable[[Method], Any]], ...] = (
    (http.Headers, "get_all", _get_all, _all_found),
    (http.Headers, "get", _get, _found),
    (http.Headers, "__init__", _begin, _begun),
    (optmanager.OptManager, "__getattr__", _read_option, _options_read),
)
"""Whose and which method, what stands in for it, and what shows that both do the same."""


def install() -> None:
    """Once in a process; nothing where this mitmproxy answers otherwise than is known here."""
    for kind, name, make, shown in _READS:
        own = getattr(kind, name, None)
        if own is None or hasattr(own, "routecodex"):
            continue
        made = functools.wraps(own)(make(own))
        try:
            same = shown(own) == shown(made)
        except Exception:  # it is built otherwise
            continue
        if same:
            made.routecodex = name in vars(kind)  # type: ignore[attr-defined]
            setattr(kind, name, made)


def remove() -> None:
    """mitmproxy's own again."""
    for kind, name, _, _ in _READS:
        made = vars(kind).get(name)
        if (was_its_own := getattr(made, "routecodex", None)) is True:
            setattr(kind, name, made.__wrapped__)
        elif was_its_own is False:
            delattr(kind, name)
