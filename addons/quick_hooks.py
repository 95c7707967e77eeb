"""mitmproxy asks every one of its addons at every hook; this asks only those that listen.

There are some forty addons, and about ten hooks and updates in each call: going through all of them is a third of what a small
call costs. The order, the error handling and the addons asked are the same.

1. Who listens is looked up again whenever addons come or go, and once a second: hooks may be added by hand.
2. Where mitmproxy's own manager looks different from what is known here, nothing is touched.
"""

from __future__ import annotations

import asyncio
import inspect
import sys
import time
from collections.abc import Awaitable
from typing import Any

from mitmproxy import addonmanager, exceptions, hooks
from mitmproxy.proxy.commands import StartHook
from mitmproxy.proxy.server import ConnectionHandler

from routing.turn.stepping import Done, begin

FRESH_S = 1.0
_KNOWN = ("self", "event")

_Listener = tuple[Any, bool]
"""An addon of the chain, and whether its hooks must be looked for each time."""


class QuickHooks:
    """Stands in for `AddonManager.trigger_event` of one manager."""

    def __init__(self, manager: addonmanager.AddonManager) -> None:
        self._manager = manager
        self._listeners: dict[str, tuple[_Listener, ...]] = {}
        self._chain: list[Any] = []
        self._until = 0.0

    def install(self) -> bool:
        """Whether it could be; calling it again does nothing."""
        manager = self._manager
        if "trigger_event" in vars(manager):
            return True
        if not is_known(type(manager)):
            return False
        manager.trigger_event = self.trigger_event  # type: ignore[method-assign]
        return True

    async def trigger_event(self, event: hooks.Hook) -> None:
        listening = self._listening(event)
        if not listening:
            return
        given = event.args()
        for addon, is_parent in listening:
            try:
                for hook in self._hooks(addon, event) if is_parent else (getattr(addon, event.name),):
                    waits = hook(*given)
                    if waits is not None and inspect.isawaitable(waits):
                        await waits
            except exceptions.AddonHalt:
                return
            except Exception:
                with addonmanager.safecall():  # what mitmproxy itself makes of an error
                    raise

    def _listening(self, event: hooks.Hook) -> tuple[_Listener, ...]:
        now, chain = time.monotonic(), self._manager.chain
        if now >= self._until or chain != self._chain:
            self._listeners.clear()
            self._chain, self._until = list(chain), now + FRESH_S
        found = self._listeners.get(event.name)
        if found is None:
            found = tuple((addon, _may_change(addon, event.name)) for addon in chain if _listens(addon, event.name))
            self._listeners[event.name] = found
        return found

    def _hooks(self, addon: Any, event: hooks.Hook) -> list[Any]:
        return [hook for _, hook in self._manager._iter_hooks(addon, event)]


def _listens(addon: Any, name: str) -> bool:
    return any(getattr(found, name, None) for found in addonmanager.traverse([addon]))  # type: ignore[no-untyped-call,unused-ignore]


def _may_change(addon: Any, name: str) -> bool:
    """It has children, as a script has that is loaded again, or something that only mitmproxy can judge."""
    return hasattr(addon, "addons") or not callable(getattr(addon, name))


def is_known(manager: type) -> bool:
    """Whether this manager goes through its chain as the one that this file knows."""
    trigger = getattr(manager, "trigger_event", None)
    return inspect.iscoroutinefunction(trigger) and tuple(inspect.signature(trigger).parameters) == _KNOWN


def run(handler: ConnectionHandler, command: StartHook) -> bool | Awaitable[None]:
    """Runs a hook from within a layer: whether it is over then, or what is left of it.

    mitmproxy itself makes a task for each, and goes through all layers again when that is over; most hooks cost far less than
    that. On Python 3.12 and later mitmproxy begins its tasks at once, and so do we.
    """
    work = handler.handle_hook(command)
    if sys.version_info >= (3, 12):
        task = asyncio.Task(work, loop=asyncio.get_running_loop(), eager_start=True)
        return task if not task.done() else task.result() is None
    begun = begin(work)
    return True if isinstance(begun, Done) else begun
