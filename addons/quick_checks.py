"""What mitmproxy asks of its own values some hundred times in each call, answered at once where the answer is plain.

It checks the type of every field of every message that it makes, and makes the error before it looks; it copies each option that
anybody reads, deeply; it makes all names of a head alike, one call each, for every header that is looked for. These look first;
whatever is not plainly right is mitmproxy's own to judge.
"""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from mitmproxy import http, optmanager

_PLAIN = frozenset({str, int, bool, float, type(None)})
_NO = object()


def install() -> None:
    """Once in a process. Nothing where mitmproxy does not do so itself (it checks nothing under `python -O`)."""
    for owner, name, place, shortcut in _SHORTCUTS:
        own = vars(owner).get(name, _NO)
        if own is _NO and name in _INHERITED and getattr(owner, name, None) is _INHERITED[name]:
            own = _INHERITED[name]
        if getattr(own, "__module__", "") == place:
            setattr(owner, name, functools.wraps(own, assigned=())(shortcut(own)))


def remove() -> None:
    """mitmproxy's own again."""
    for owner, name, _, _ in _SHORTCUTS:
        own = getattr(vars(owner).get(name), "__wrapped__", None)
        if own is None:
            continue
        if name in _INHERITED:
            delattr(owner, name)
        else:
            setattr(owner, name, own)


def _check(judge: Callable[[http.MessageData], None]) -> Callable[[http.MessageData], None]:
    def check(message: http.MessageData) -> None:
        for name, fitting in _fields(type(message)):
            if type(getattr(message, name)) not in fitting:
                judge(message)
                return

    return check


@functools.cache
def _fields(kind: type) -> tuple[tuple[str, frozenset[type]], ...]:
    """Each field, and the types that fit it for certain."""
    return tuple((field.name, _fitting(field.type)) for field in dataclasses.fields(kind))


def _fitting(declared: object) -> frozenset[type]:
    is_union = typing.get_origin(declared) in (typing.Union, types.UnionType)
    return frozenset(one for one in (typing.get_args(declared) if is_union else (declared,)) if isinstance(one, type))


def _current(judge: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """What cannot be changed needs no copy."""

    def current(option: Any) -> Any:
        value = option._default if option.value is optmanager.unset else option.value
        return value if type(value) in _PLAIN else judge(option)

    return current


def _made(judge: Callable[..., None]) -> Callable[..., None]:
    def made(headers: http.Headers, fields: Iterable[tuple[bytes, bytes]] = (), **named: Any) -> None:
        found = tuple(map(tuple, fields))
        if named or not all(len(field) == 2 and type(field[0]) is type(field[1]) is bytes for field in found):
            judge(headers, found, **named)
        else:
            headers.fields = found  # type: ignore[assignment]

    return made


def _got(judge: Callable[..., Any]) -> Callable[..., Any]:
    def got(headers: http.Headers, name: Any, default: Any = None) -> Any:
        if type(name) is not str or type(headers) is not http.Headers:  # else nobody changed what a name means
            return judge(headers, name, default)
        wanted = name.encode("utf-8", "surrogateescape").lower()
        found = [value for key, value in headers.fields if len(key) == len(wanted) and key.lower() == wanted]
        return b", ".join(found).decode("utf-8", "surrogateescape") if found else default

    return got


_INHERITED: dict[str, Any] = {"get": Mapping.get}
_SHORTCUTS: tuple[tuple[type, str, str, Callable[[Any], Callable[..., Any]]], ...] = (
    (http.MessageData, "__post_init__", http.__name__, _check),
    (optmanager._Option, "current", optmanager.__name__, _current),
    (http.Headers, "__init__", http.__name__, _made),
    (http.Headers, "get", Mapping.get.__module__, _got),
)
"""Whose method, in which module it must stand, and what takes its place."""
