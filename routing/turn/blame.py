"""Who is to blame for an error, and where in their file: nothing else of it is ever told."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from pathlib import PurePath
from typing import TypeVar

from .plugins import Plugin, PluginFailed

T = TypeVar("T")


class _Exit(Exception):
    """SystemExit, but not for the proxy."""


async def contained(work: Callable[[], Awaitable[T]]) -> T:
    try:
        return await work()
    except SystemExit as error:  # asyncio would end the whole proxy with it
        raise _Exit().with_traceback(error.__traceback__) from None


def blame(plugin: Plugin, hook: str, error: BaseException) -> PluginFailed:
    """Names the place in the plugin's own file, where there is one."""
    file = getattr(sys.modules.get(type(plugin).__module__), "__file__", None)
    place, where = "", error.__traceback__
    while where is not None:
        if where.tb_frame.f_code.co_filename == file:
            place = f" ({PurePath(file).name}:{where.tb_lineno})"
        where = where.tb_next
    name = "SystemExit" if isinstance(error, _Exit) else type(error).__name__
    return PluginFailed(plugin.name, hook, f"raised {name}{place}", error)
