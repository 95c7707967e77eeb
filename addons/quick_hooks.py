"""mitmproxy asks every one of its addons at every hook; this asks only those that listen.

There are some forty addons, and about ten hooks and updates in each call: going through all of them is a third of what a small
call costs. The order, the error handling and the addons asked are the same.

1. Who of ours and of mitmproxy's own listens is looked up again whenever addons come or go.
2. Strangers, who are neither, are asked each time: where one listens, mitmproxy does it all itself, in its own way.
3. Where mitmproxy's own manager looks different from what is known here, nothing is touched.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import sys
from collections.abc import Awaitable
from itertools import repeat
from typing import Any, TypeAlias

from mitmproxy import addonmanager, ctx, exceptions, flow, hooks, log
from mitmproxy.proxy.commands import StartHook
from mitmproxy.proxy.server import ConnectionHandler
from msgspec import Struct

from ..routing.turn.stepping import Done, begin

_KNOWN = ("self", "event")
_UPDATE, _LINE = hooks.UpdateHook.name, log.AddLogHook.name
_REPLACED = ("trigger_event", "handle_lifecycle")


class Own:
    """The base of our own addons, whatever a reload makes of their modules."""


Hooks: TypeAlias = list[tuple[Any, list[Any]]]
"""An addon of the chain → its own hooks and its children's."""


class _Audience(Struct, frozen=True):
    """Who of ours and of mitmproxy's own listens to one event."""

    hooks: Hooks
    waits: bool
    """One of them may wait for something."""


class QuickHooks:
    """Stands in for what one manager does with the hooks of a connection."""

    def __init__(self, manager: addonmanager.AddonManager) -> None:
        self._manager = manager
        self._audiences: dict[str, _Audience] = {}
        self._chain: list[Any] = []
        self._families: list[tuple[Any, list[Any]]] = []
        """An addon of the chain → those of itself and its children that are known."""
        self._strangers: list[Any] = []
        self._parents: list[Any] = []
        self._children: list[Any] = []
        """The parents' own lists: a script that is loaded again has others."""

    def install(self) -> bool:
        """Whether it could be; calling it again does nothing."""
        manager = self._manager
        if "trigger_event" in vars(manager):
            return True
        if not is_known(type(manager)):
            return False
        manager.trigger_event = self.trigger_event  # type: ignore[method-assign]
        manager.handle_lifecycle = self.handle_lifecycle  # type: ignore[method-assign]
        for handler in self._for_lines():
            handler.addFilter(self.hears_lines)
        return True

    def remove(self) -> None:
        """As if nothing had been installed."""
        for name in _REPLACED:
            if getattr(vars(self._manager).get(name), "__self__", None) is self:
                delattr(self._manager, name)
        for handler in self._for_lines():
            handler.removeFilter(self.hears_lines)

    def _for_lines(self) -> list[logging.Handler]:
        """Those that make an event of each line of the log."""
        handlers = logging.getLogger().handlers
        return [one for one in handlers if isinstance(one, log.LegacyLogEvents) and one.master is self._manager.master]

    def hears_lines(self, record: logging.LogRecord) -> bool:
        """Whether anybody hears of the log's lines so; hardly anybody does. Other threads leave that to mitmproxy."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return True
        audience = self._audience(_LINE)
        return audience is None or bool(audience.hooks)

    def known(self, name: str) -> _Audience | None:
        """Who hears this event, where nobody does, or sees what it shows, but ours and mitmproxy's own."""
        return self._audience(name) if self._audience(_UPDATE) is not None else None

    async def ask(self, audience: _Audience, handler: ConnectionHandler, event: hooks.Hook) -> None:
        """Those who wait for nothing: what `handle_hook` does, without what it does for those who wait."""
        if audience.hooks:
            await self._ask(audience.hooks, event)
        message = event.args()[0]
        if isinstance(message, flow.Flow):
            if (shown := self._audience(_UPDATE)) is None or shown.hooks:
                await self.trigger_event(hooks.UpdateHook([message]))
            if message.intercepted:
                with handler.timeout_watchdog.disarm():
                    await message.wait_for_resume()

    async def handle_lifecycle(self, event: hooks.Hook) -> None:
        await self.trigger_event(event)
        message = event.args()[0]
        if isinstance(message, flow.Flow) and ((shown := self._audience(_UPDATE)) is None or shown.hooks):
            await self.trigger_event(hooks.UpdateHook([message]))

    async def trigger_event(self, event: hooks.Hook) -> None:
        audience = self._audience(event.name)
        if audience is None:
            await type(self._manager).trigger_event(self._manager, event)
        elif audience.hooks:
            await self._ask(audience.hooks, event)

    async def _ask(self, listening: Hooks, event: hooks.Hook) -> None:
        given = event.args()
        for addon, found in listening:
            try:
                for hook in found or self._odd(addon, event):
                    waits = hook(*given)
                    if waits is not None and inspect.isawaitable(waits):
                        await waits
            except exceptions.AddonHalt:
                return
            except Exception:
                with addonmanager.safecall():  # what mitmproxy itself makes of an error
                    raise

    def _audience(self, name: str) -> _Audience | None:
        """Who hears this event; None where a stranger does, perhaps only since a moment ago."""
        chain, parents = self._manager.chain, self._parents
        if chain != self._chain or self._children != list(map(getattr, parents, repeat("addons"), repeat(None))):
            self._look(chain)
        if any(map(getattr, self._strangers, repeat(name), repeat(None))):
            return None
        found = self._audiences.get(name)
        if found is None:
            found = self._audiences[name] = _audience_in(self._families, name)
        return found

    def _look(self, chain: list[Any]) -> None:
        """There are others than before."""
        self._audiences.clear()
        self._chain = list(chain)
        families = [(addon, list(addonmanager.traverse([addon]))) for addon in chain]  # type: ignore[no-untyped-call,unused-ignore]
        everybody = [one for _, family in families for one in family]
        self._parents = [one for one in everybody if hasattr(one, "addons")]
        self._children = [list(one.addons) for one in self._parents]
        self._strangers = [one for one in everybody if not _is_known(one)]
        self._families = [(addon, list(filter(_is_known, family))) for addon, family in families]

    def _odd(self, addon: Any, event: hooks.Hook) -> list[Any]:
        return [hook for _, hook in self._manager._iter_hooks(addon, event)]


def _audience_in(families: list[tuple[Any, list[Any]]], name: str) -> _Audience:
    heard: Hooks = []
    waits = False
    for addon, family in families:
        if found := list(filter(None, map(getattr, family, repeat(name), repeat(None)))):
            # something that is no hook: what to make of it is mitmproxy's to say
            heard.append((addon, found if all(map(callable, found)) else []))
            waits = waits or any(map(inspect.iscoroutinefunction, found))
    return _Audience(heard, waits)


def _is_known(addon: Any) -> bool:
    return isinstance(addon, Own) or type(addon).__module__.partition(".")[0] == "mitmproxy"


def installed(manager: addonmanager.AddonManager) -> QuickHooks | None:
    found = getattr(vars(manager).get("trigger_event"), "__self__", None)
    return found if isinstance(found, QuickHooks) else None


def is_known(manager: type) -> bool:
    """Whether this manager goes through its chain as the one that this file knows."""
    known = (getattr(manager, name, None) for name in ("trigger_event", "handle_lifecycle"))
    return all(inspect.iscoroutinefunction(one) and tuple(inspect.signature(one).parameters) == _KNOWN for one in known)


def run(handler: ConnectionHandler, command: StartHook) -> bool | Awaitable[None] | None:
    """Runs a hook from within a layer: whether it is over then, or what is left of it. None: it is mitmproxy's to run.

    mitmproxy itself makes a task for each, and goes through all layers again when that is over; most hooks cost far less than
    that. On Python 3.12 and later mitmproxy begins its tasks at once, and so do we for those that may wait.
    """
    quick = installed(ctx.master.addons)
    if quick is None or (audience := quick.known(command.name)) is None:
        return None
    work = handler.handle_hook(command) if audience.waits else quick.ask(audience, handler, command)
    if audience.waits and sys.version_info >= (3, 12):
        task = asyncio.Task(work, loop=asyncio.get_running_loop(), eager_start=True)
        return task if not task.done() else task.result() is None
    begun = begin(work)
    return True if isinstance(begun, Done) else begun
