"""Flows that come from a file are nobody's call: they pass untouched and show what was written to them.

mitmproxy runs the hooks of all addons for them too: `mitmdump -nr`, `mitmweb -r`, "File → Open".
"""

from __future__ import annotations

import io
import json
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from mitmproxy import http
from mitmproxy.io import FlowReader, FlowWriter

from routecodex.routing.values import Dialect
from tests.rig.behaviour import Behaviour
from tests.rig.client import call
from tests.rig.provider import FakeProvider
from tests.rig.proxy import SCRIPT, Mitmdump
from tests.rig.wire import Reply
from tests.system.test_web import Web
from tests.system.tool import CONFIG, CREDENTIALS, HOSTS, Tool

pytestmark = pytest.mark.system

TROUBLE = ("RouteCodex failed", "has crashed", "Traceback", "Addon error", "rror in addon")


@dataclass
class Saved:
    path: Path
    flows: list[http.HTTPFlow]

    def about(self, words: str) -> http.HTTPFlow:
        return next(flow for flow in self.flows if words in flow.comment)


def read(data: bytes) -> list[http.HTTPFlow]:
    flows = list(FlowReader(io.BytesIO(data)).stream())
    assert all(isinstance(flow, http.HTTPFlow) for flow in flows)
    return flows  # type: ignore[return-value]


def states(flows: list[http.HTTPFlow]) -> list[dict[str, Any]]:
    return [json.loads(json.dumps(flow.get_state(), default=repr)) for flow in flows]


@pytest.fixture(scope="module")
def saved(provider: FakeProvider, tmp_path_factory: pytest.TempPathFactory) -> Saved:
    """What a day leaves behind: plain, repeated, of several rounds, answered by us, refused, on another path, broken off, to
    another host."""
    provider.forget()
    folder = tmp_path_factory.mktemp("day")
    with Mitmdump(script=SCRIPT, config=CONFIG, upstream=provider, folder=folder, flows=True) as proxy:
        for dialect in Dialect:
            Tool(provider, proxy, dialect).ask("hello", stream=True)
        Tool(provider, proxy).ask("<**six.m**> hello")
        provider.enqueue(Behaviour(status=500, error="down"))
        Tool(provider, proxy).ask("<**six.m**> hello", stream=True)
        Tool(provider, proxy).ask('<**!six.m**> <**stopMessage:"go on",2**> hello', stream=True)
        Tool(provider, proxy).ask("<**echo**> hello")
        assert Tool(provider, proxy).ask("<**nobody.m**> hello").status == 400
        upgrade = {
            "upgrade": "websocket",
            "connection": "Upgrade",
            "sec-websocket-key": "a" * 22 + "==",
            "sec-websocket-version": "13",
        }
        assert call(HOSTS[Dialect.RESPONSES], "/v1/responses", b"", method="GET", proxy=proxy, headers=upgrade).status == 426
        headers = [CREDENTIALS[Dialect.MESSAGES]]
        call(HOSTS[Dialect.MESSAGES], "/v1/models", b"", method="GET", proxy=proxy, headers=headers)
        provider.enqueue(Behaviour(body=b"x" * 1000, cut_at=100, ending="reset"), path="/v1/files")
        call(HOSTS[Dialect.MESSAGES], "/v1/files", b"", method="GET", proxy=proxy, headers=headers)
        provider.forget()
    assert proxy.flows_path is not None
    flows = read(proxy.flows_path.read_bytes())
    flows = list({flow.id: flow for flow in flows}.values())
    assert any(flow.error for flow in flows)
    shown = "\n".join(flow.comment for flow in flows)
    assert all(words in shown for words in ("· retry of", "· round 2", "· 3 rounds of", "echo · ", "WebSocket"))
    assert any(not flow.comment for flow in flows)
    later = [flow.metadata["routecodex"] for flow in flows if any(words in flow.comment for words in ("· retry of", "· round "))]
    assert len(later) == 3
    assert all("usage" in record and "stop" in record for record in later), "what each of them cost is in the file"
    return Saved(proxy.flows_path, flows)


def look_at(proxy: Mitmdump) -> None:
    assert proxy.alive
    for words in TROUBLE:
        assert words not in proxy.log


def test_mitmdump_reads_and_writes_them_as_they_are(saved: Saved, tmp_path: Path) -> None:
    """Each hook has run for each of them when it is written again."""
    rig = Mitmdump(script=SCRIPT, config=CONFIG, folder=tmp_path / "files")
    (tmp_path / "files" / "mitm-config.yaml").write_text(CONFIG)
    again = tmp_path / "again"
    command = [*rig._command(tmp_path / "files" / "confdir"), "-n", "-r", str(saved.path), "-w", str(again)]
    done = subprocess.run(
        command,
        env=rig._environment(tmp_path / "ready"),
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    for words in TROUBLE:
        assert words not in done.stdout
    written = {flow.id: flow for flow in read(again.read_bytes())}  # one with an answer and an error is written for each
    assert states(list(written.values())) == states(saved.flows)


@pytest.fixture(scope="module")
def opened(saved: Saved, provider: FakeProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mitmdump]:
    folder, args = tmp_path_factory.mktemp("web"), ["-r", str(saved.path)]
    with Mitmdump(script=SCRIPT, config=CONFIG, upstream=provider, folder=folder, web=True, args=args) as proxy:
        yield proxy


@pytest.fixture
def web(opened: Mitmdump, saved: Saved, provider: FakeProvider) -> Iterator[Web]:
    provider.forget()
    web = Web(opened)
    deadline = time.monotonic() + 60
    while len(web.flows) < len(saved.flows):
        assert time.monotonic() < deadline, opened.log
        time.sleep(0.05)
    yield web
    look_at(opened)


def shown(web: Web) -> dict[str, tuple[Any, ...]]:
    return {
        flow["id"]: (
            flow["comment"],
            bool(flow["marked"]),
            flow["request"]["host"],
            (flow.get("response") or {}).get("status_code"),
            (flow.get("error") or {}).get("msg"),
        )
        for flow in web.flows
    }


def as_saved(saved: Saved) -> dict[str, tuple[Any, ...]]:
    return {
        flow.id: (
            flow.comment,
            bool(flow.marked),
            flow.request.host,
            flow.response and flow.response.status_code,
            flow.error and flow.error.msg,
        )
        for flow in saved.flows
    }


def test_mitmweb_shows_what_was_written_to_them(web: Web, saved: Saved) -> None:
    assert shown(web) == as_saved(saved)
    round = saved.about("round 2")
    body = web.get(f"/flows/{round.id}/request/content.data")
    assert b"go on" in body


def test_a_file_opened_in_mitmweb(web: Web, saved: Saved) -> None:
    """Its flows have the ids of those that are there already."""
    web.post("/flows/dump", data=saved.path.read_bytes())
    assert shown(web) == as_saved(saved)


@pytest.mark.parametrize("which", ["six.k", "retry of", "round 2", "echo"])
def test_none_of_them_can_be_replayed_for_want_of_its_credential(
    web: Web, saved: Saved, provider: FakeProvider, which: str
) -> None:
    flow = saved.about(which)
    web.post(f"/flows/{flow.id}/replay")
    index = next(index for index, shown in enumerate(web.flows) if shown["id"] == flow.id)
    replayed = web.until(lambda flow: flow["is_replay"] and (flow.get("response") or {}).get("timestamp_end"), index)
    assert replayed["response"]["status_code"] == 409
    assert provider.requests == []
    web.post(f"/flows/{flow.id}/revert")


def test_calls_go_on_beside_them(web: Web, opened: Mitmdump, provider: FakeProvider) -> None:
    """And their later rounds; where mitmweb asks nobody who they are, no key of ours is used, but `origin` is."""
    tool = Tool(provider, opened)
    assert tool.ask('<**stopMessage:"go on",1**> hello', stream=True).status == 200
    assert [received.host for received in provider.calls] == ["api.anthropic.com"] * 2
    before = web.flows
    assert " · round 2" in before[-1]["comment"]


def test_a_flow_saved_while_its_call_is_open_is_not_taken_for_it(saved: Saved, provider: FakeProvider, tmp_path: Path) -> None:
    """It has the same id: what became of the saved one must not end the one that runs, nor be told to it."""
    provider.forget()
    provider.always(Behaviour(reply=Reply(tuple(f"w{n} " for n in range(60))), delay_s=0.05))
    broken = next(flow for flow in saved.flows if flow.error)

    def open_its_copy(web: Web) -> None:
        provider.wait_for(1)
        id = web.flows[-1]["id"]
        state = broken.get_state()
        copy = http.HTTPFlow.from_state(state | {"id": id})
        file = io.BytesIO()
        FlowWriter(file).add(copy)
        web.post("/flows/dump", data=file.getvalue())

    with Mitmdump(script=SCRIPT, config=CONFIG, upstream=provider, folder=tmp_path, web=True) as proxy:
        tool, opening = Tool(provider, proxy), threading.Thread(target=open_its_copy, args=(Web(proxy),))
        opening.start()
        answer = tool.ask("hello", stream=True)
        opening.join()
        assert answer.status == 200
        assert "w59 " in tool.history[-1][1]
        look_at(proxy)
