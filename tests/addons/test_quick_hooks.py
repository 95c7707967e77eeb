"""Only addons that listen are asked, and otherwise nothing differs from mitmproxy's own way."""

from __future__ import annotations

import asyncio
import logging
import types
from typing import Any

import pytest
from mitmproxy import addonmanager, exceptions, hooks, log
from mitmproxy.http import HTTPFlow
from mitmproxy.proxy.layers.http import HttpRequestHook
from mitmproxy.proxy.server_hooks import ClientConnectedHook
from mitmproxy.test import taddons, tflow

from routecodex.addons import quick_hooks


class Hearing(quick_hooks.Own):
    def __init__(self, name: str, heard: list[str], does: Any = None) -> None:
        self.name, self.heard, self.does = name, heard, does

    def request(self, flow: HTTPFlow) -> None:
        self.heard.append(self.name)
        if self.does is not None:
            raise self.does


class Waiting(Hearing):
    async def request(self, flow: HTTPFlow) -> None:  # type: ignore[override]
        await asyncio.sleep(0)
        self.heard.append(self.name)


class Deaf(quick_hooks.Own):
    name = "deaf"


class Parent(quick_hooks.Own):
    """As a loaded script stands in the chain: its hooks are its children's."""

    name = "parent"

    def __init__(self) -> None:
        self.addons: list[Any] = []


def ask(manager: addonmanager.AddonManager) -> None:
    asyncio.run(manager.trigger_event(HttpRequestHook(tflow.tflow())))


@pytest.fixture
def manager() -> addonmanager.AddonManager:
    with taddons.context(loadcore=False) as context:
        return context.master.addons


@pytest.fixture(params=["mitmproxy's own", "ours"])
def either(request: pytest.FixtureRequest, manager: addonmanager.AddonManager) -> addonmanager.AddonManager:
    if request.param == "ours":
        assert quick_hooks.QuickHooks(manager).install()
    return manager


def test_order_waiting_and_children(either: addonmanager.AddonManager) -> None:
    heard: list[str] = []
    parent = Parent()
    parent.addons.append(Hearing("child", heard))
    either.chain[:] = [Waiting("first", heard), Deaf(), parent, Hearing("last", heard)]
    ask(either)
    assert heard == ["first", "child", "last"]


def test_an_error_stops_nobody_else(either: addonmanager.AddonManager) -> None:
    heard: list[str] = []
    either.chain[:] = [Hearing("fails", heard, ValueError()), Hearing("last", heard)]
    ask(either)
    assert heard == ["fails", "last"]


def test_halting_stops_the_rest(either: addonmanager.AddonManager) -> None:
    heard: list[str] = []
    either.chain[:] = [Hearing("halts", heard, exceptions.AddonHalt()), Hearing("last", heard)]
    ask(either)
    assert heard == ["halts"]


def test_what_is_no_hook_is_mitmproxys_to_judge(either: addonmanager.AddonManager) -> None:
    """A module of the same name is passed over, anything else is an error that stops nobody else."""
    heard: list[str] = []
    imports, wrong = Deaf(), Deaf()
    imports.request, wrong.request = quick_hooks, "request"  # type: ignore[attr-defined]
    either.chain[:] = [imports, wrong, Hearing("last", heard)]
    ask(either)
    assert heard == ["last"]


def test_a_flow_is_shown_anew_after_each_hook(either: addonmanager.AddonManager) -> None:
    heard: list[Any] = []

    class View(Hearing):
        def update(self, flows: list[HTTPFlow]) -> None:
            heard.append(flows)

    either.chain[:] = [View("view", heard)]
    flow = tflow.tflow()
    asyncio.run(either.handle_lifecycle(HttpRequestHook(flow)))
    asyncio.run(either.handle_lifecycle(ClientConnectedHook(tflow.tclient_conn())))
    assert heard == ["view", [flow]]


def test_addons_that_come_and_go_are_noticed_at_once(manager: addonmanager.AddonManager) -> None:
    heard: list[str] = []
    assert quick_hooks.QuickHooks(manager).install()
    manager.chain[:] = [Hearing("one", heard), Deaf()]
    ask(manager)
    manager.chain[:] = [Hearing("two", heard), Deaf()]
    ask(manager)
    manager.chain.append(Hearing("three", heard))
    ask(manager)
    assert heard == ["one", "two", "two", "three"]


def test_a_child_of_who_listened_already_is_noticed_at_once(manager: addonmanager.AddonManager) -> None:
    """A script that is loaded again has another object for the same hooks."""
    heard: list[str] = []
    parent = Parent()
    parent.addons[:] = [Hearing("old", heard)]
    assert quick_hooks.QuickHooks(manager).install()
    manager.chain[:] = [parent]
    ask(manager)
    parent.addons[:] = [Hearing("new", heard)]
    ask(manager)
    assert heard == ["old", "new"]


@pytest.mark.parametrize("before", [{}, {"request": None}])
def test_a_stranger_who_begins_to_listen_is_noticed_at_once(manager: addonmanager.AddonManager, before: dict[str, Any]) -> None:
    heard: list[str] = []
    stranger = types.SimpleNamespace(name="stranger", **before)
    quick = quick_hooks.QuickHooks(manager)
    assert quick.install()
    manager.chain[:] = [Hearing("ours", heard), stranger]
    ask(manager)
    assert quick.known("request")
    stranger.request = lambda flow: heard.append("stranger")
    assert not quick.known("request")
    ask(manager)
    stranger.update = lambda flows: heard.append("updated")
    asyncio.run(manager.handle_lifecycle(HttpRequestHook(tflow.tflow())))
    assert heard == ["ours", "ours", "stranger", "ours", "stranger", "updated"]


@pytest.mark.parametrize("known", [True, False])
def test_a_line_of_the_log_is_an_event_where_somebody_hears_it(manager: addonmanager.AddonManager, known: bool) -> None:
    heard: list[str] = []

    def listening(entry: Any) -> None:
        heard.append(entry.msg.rpartition("] ")[2])

    async def says(*lines: str, elsewhere: str = "") -> None:
        manager.master.event_loop = asyncio.get_running_loop()
        for line in lines:
            logging.getLogger("anybody").error(line)
        if elsewhere:
            await asyncio.to_thread(logging.getLogger("anybody").error, elsewhere)
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    handler = log.LegacyLogEvents(manager.master)
    handler.install()
    quick = quick_hooks.QuickHooks(manager)
    assert quick.install()
    asked: list[str] = []
    manager.trigger = lambda event: (asked.append(event.name), addonmanager.AddonManager.trigger(manager, event))  # type: ignore[method-assign]
    manager.chain[:] = [Hearing("ours", [])]
    asyncio.run(says("nobody hears"))
    assert asked == []
    other = Deaf() if known else types.SimpleNamespace(name="other")
    other.add_log = listening  # type: ignore[union-attr]
    manager.chain.append(other)
    asyncio.run(says("somebody hears", elsewhere="also from a thread"))
    manager.chain.pop()
    quick.remove()
    asyncio.run(says("as before"))
    handler.uninstall()
    assert (heard, asked) == (["somebody hears", "also from a thread"], ["add_log"] * 3)


def test_installed_once(manager: addonmanager.AddonManager) -> None:
    assert quick_hooks.QuickHooks(manager).install()
    standing = manager.trigger_event
    assert quick_hooks.QuickHooks(manager).install()
    assert manager.trigger_event is standing


def test_this_mitmproxys_manager_is_known() -> None:
    assert quick_hooks.is_known(addonmanager.AddonManager)


def test_another_one_is_left_alone() -> None:
    class Other:
        def trigger_event(self, event: hooks.Hook, more: int) -> None: ...

    assert not quick_hooks.is_known(Other)
    assert not quick_hooks.is_known(object)


class Foreign:
    """Somebody else's script."""

    def __init__(self, heard: list[str]) -> None:
        self.heard = heard

    def request(self, flow: HTTPFlow) -> None:
        self.heard.append("foreign")


def test_where_a_stranger_listens_it_is_all_mitmproxys(
    manager: addonmanager.AddonManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[str] = []
    quick = quick_hooks.QuickHooks(manager)
    assert quick.install()
    manager.chain[:] = [Hearing("ours", heard), Foreign(heard)]
    assert not quick.known("request")
    assert quick.known("response"), "which nobody hears"
    usual = addonmanager.AddonManager.trigger_event
    asked: list[str] = []

    async def noting(self: addonmanager.AddonManager, event: hooks.Hook) -> None:
        asked.append(event.name)
        await usual(self, event)

    monkeypatch.setattr(addonmanager.AddonManager, "trigger_event", noting)
    ask(manager)
    assert (asked, heard) == (["request"], ["ours", "foreign"])
    manager.chain.pop()
    ask(manager)
    assert asked == ["request"]
    assert quick.known("request")


def test_who_hears_of_updates_hears_of_every_hook(manager: addonmanager.AddonManager) -> None:
    class View:
        def update(self, flows: list[HTTPFlow]) -> None: ...

    quick = quick_hooks.QuickHooks(manager)
    assert quick.install()
    manager.chain[:] = [View()]
    assert not quick.known("request")


def test_a_script_without_a_class_is_a_stranger(manager: addonmanager.AddonManager) -> None:
    parent, script = Parent(), types.ModuleType("script")
    script.request = lambda flow: None  # type: ignore[attr-defined]
    parent.addons.append(script)
    quick = quick_hooks.QuickHooks(manager)
    manager.chain[:] = [parent]
    assert not quick.known("request")


def test_taken_out(manager: addonmanager.AddonManager) -> None:
    quick = quick_hooks.QuickHooks(manager)
    quick.remove()
    assert quick.install()
    assert quick_hooks.installed(manager) is quick
    quick_hooks.QuickHooks(manager).remove()
    assert quick_hooks.installed(manager) is quick, "another's is not taken out"
    quick.remove()
    assert quick_hooks.installed(manager) is None
    assert not {"trigger_event", "handle_lifecycle"} & set(vars(manager))
