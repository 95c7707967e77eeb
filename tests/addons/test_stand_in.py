"""Who may come, before and while the addon is broken; and what the guard that stays behind does with flows."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from mitmproxy import http
from mitmproxy.addons.proxyauth import ProxyAuth
from mitmproxy.connection import Client
from mitmproxy.test import taddons, tflow

from routecodex.addons import intercept, routecodex, stand_in

REMOTE, LOCAL = ("203.0.113.7", 5), ("127.0.0.1", 5)


def peer(address: tuple[str, int]) -> Client:
    return Client(peername=address, sockname=("127.0.0.1", 8080), timestamp_start=0)


def addon(*, allows: bool = False) -> Any:
    made = routecodex.RouteCodex()
    made.notes = []  # type: ignore[attr-defined]
    made.journal = SimpleNamespace(note=made.notes.append)  # type: ignore[attr-defined,assignment]
    hosts = intercept.Hosts(["api.anthropic.com"])
    made.settings = SimpleNamespace(allows_remote_clients=allows, hosts=hosts, loaded=True)  # type: ignore[assignment]
    return made


@pytest.mark.parametrize("guarded", [False, True], ids=["loaded", "broken"])
@pytest.mark.parametrize(
    "address, allows, served", [(LOCAL, False, True), (REMOTE, False, False), (REMOTE, True, True), (LOCAL, True, True)]
)
def test_s8_who_is_served(tmp_path: Path, address: tuple[str, int], allows: bool, served: bool, guarded: bool) -> None:
    async def connected() -> Client:
        with taddons.context(ProxyAuth()) as context:
            context.options.update(http2=False, proxyauth="ann:secret" if allows else None)
            made = addon(allows=allows)
            client = peer(address)
            if not guarded:
                made.client_connected(client)
            else:
                standing = stand_in.StandIn(made, tmp_path / "script.py")
                standing.client_connected(client)  # type: ignore[attr-defined]
                standing.done()
            assert (made.notes == []) is served
            return client

    client = asyncio.run(connected())
    assert (client.error is None) is served


@pytest.mark.parametrize("host, refused", [("api.anthropic.com", True), ("other.org", False)])
def test_what_the_guard_refuses(tmp_path: Path, host: str, refused: bool) -> None:
    """Our hosts, with their credentials taken off; nothing else is touched."""
    flow = tflow.tflow(resp=False)
    flow.request = http.Request.make("POST", f"https://{host}/v1/messages", headers={"x-api-key": "sk-secret", "host": host})

    async def hear() -> None:
        with taddons.context():
            made = addon()
            made.relay.streams[flow.id] = stream = Stream()
            standing = stand_in.StandIn(made, tmp_path / "script.py")
            standing.requestheaders(flow)
            standing.done()
            assert hasattr(stream, "wire") is refused

    asyncio.run(hear())
    assert (flow.response is not None and flow.response.status_code == 503) is refused
    assert flow.request.headers["x-api-key"] == ("***" if refused else "sk-secret")


class Stream:
    """Stands for a stream: something that can be referred to weakly."""

    arrival = intercept.Arrival(False, "")


def test_a_script_that_was_deleted_is_loaded_again_when_it_is_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stand_in, "_POLL_S", 0.01)
    script, other = tmp_path / "script.py", tmp_path / "other.py"
    other.write_text("")
    options = SimpleNamespace(scripts=[str(other)])
    options.update = lambda scripts: setattr(options, "scripts", scripts)
    monkeypatch.setattr(stand_in, "ctx", SimpleNamespace(options=options))

    async def wait() -> list[list[str]]:
        standing = stand_in.StandIn(addon(), script)
        seen = []
        await asyncio.sleep(0.05)
        seen.append(options.scripts)
        script.write_text("")
        await asyncio.sleep(0.1)
        seen.append(options.scripts)
        standing.done()
        return seen

    assert asyncio.run(wait()) == [[str(other)], [str(other), str(script)]]
