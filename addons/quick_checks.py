"""mitmproxy checks the type of every field of every message that it makes, and makes the error before it looks: some thirty of
them in each call. This looks first; whatever is not plainly right is mitmproxy's own to judge.
"""

from __future__ import annotations

import dataclasses
import functools
import types
import typing

from mitmproxy import http

_CHECK = "__post_init__"


def install() -> None:
    """Once in a process; nothing where mitmproxy checks nothing (`python -O`)."""
    judge = vars(http.MessageData).get(_CHECK)
    if judge is None or getattr(judge, "__module__", "") != http.__name__:
        return

    @functools.wraps(judge, assigned=())
    def check(message: http.MessageData) -> None:
        for name, fitting in _fields(type(message)):
            if type(getattr(message, name)) not in fitting:
                judge(message)
                return

    setattr(http.MessageData, _CHECK, check)


def remove() -> None:
    """mitmproxy's own again."""
    judge = getattr(vars(http.MessageData).get(_CHECK), "__wrapped__", None)
    if judge is not None:
        setattr(http.MessageData, _CHECK, judge)


@functools.cache
def _fields(kind: type) -> tuple[tuple[str, frozenset[type]], ...]:
    """Each field, and the types that fit it for certain."""
    return tuple((field.name, _fitting(field.type)) for field in dataclasses.fields(kind))


def _fitting(declared: object) -> frozenset[type]:
    is_union = typing.get_origin(declared) in (typing.Union, types.UnionType)
    return frozenset(one for one in (typing.get_args(declared) if is_union else (declared,)) if isinstance(one, type))
