"""The commands, as mitmproxy runs them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from mitmproxy import exceptions, http
from mitmproxy.test import taddons, tflow

from routecodex.addons import relay
from routecodex.addons.by_hand import ByHand
from routecodex.addons.window.commands import Commands
from routecodex.routing.control.verbs import Served
from tests.routing.house import House


def _nobody(flow: http.HTTPFlow, target: str) -> http.HTTPFlow:
    raise AssertionError


@pytest.fixture
def served(tmp_path: Path) -> Served:
    return Served("a", 7, (("127.0.0.1", 8080),), "c.yaml", tmp_path / "sessions", House(tmp_path).desk)


@pytest.fixture
def context(served: Served) -> Iterator[taddons.context]:
    with taddons.context(Commands(lambda: served, _nobody)) as found:
        yield found


def _run(context: taddons.context, *words: str) -> list[str]:
    return list(context.master.commands.call_strings(words[0], list(words[1:])))


def test_what_is_in_force_is_said_and_changed(context: taddons.context) -> None:
    assert _run(context, "routecodex.status") == ["Nothing is in force for everybody."]
    assert any("glm.glm-4.7" in line for line in _run(context, "routecodex.sticky", "glm.glm-4.7"))
    assert any("glm.glm-4.7" in line for line in _run(context, "routecodex.status"))
    _run(context, "routecodex.clear")
    assert _run(context, "routecodex.status") == ["Nothing is in force for everybody."]


def test_what_can_be_named(context: taddons.context) -> None:
    assert len(_run(context, "routecodex.models")) > 2
    assert _run(context, "routecodex.models", "glm") == ["glm: glm-4.7"]


def test_what_cannot_be_is_refused_with_a_reason(context: taddons.context, served: Served) -> None:
    with pytest.raises(exceptions.CommandError, match="nosuch"):
        _run(context, "routecodex.sticky", "nosuch.model")
    assert served.desk.overlay.state.sticky is None


def test_why_a_flow_went_where_it_went(served: Served) -> None:
    commands, flow, other = Commands(lambda: served, _nobody), tflow.tflow(), tflow.tflow()
    record = {"asked": "claude", "target": "glm.k1.glm-4.7", "why": "force · a tag", "attempts": ["glm.k2: status 503"]}
    flow.metadata["routecodex"] = record
    lines = list(commands.why([flow, other]))
    assert lines[0].endswith("claude → glm.k1.glm-4.7 · force · a tag")
    assert lines[1] == "  failed before: glm.k2: status 503"
    assert "no model was asked" in lines[2]
    assert commands.why([]) == ["Which flow? Name it as @ID."]


@pytest.mark.parametrize(
    "target, why", [("origin", "own credential"), ("nosuch.m", "nosuch"), ("", "not found"), ("echo", "own credential")]
)
def test_again_is_for_targets_with_a_key_here(context: taddons.context, served: Served, target: str, why: str) -> None:
    with pytest.raises(exceptions.CommandError, match=why):
        Commands(lambda: served, _nobody).again([tflow.tflow()], target)


def test_again_needs_a_call(served: Served) -> None:
    begin = ByHand(relay.Relay(1)).begin
    for flow in (tflow.tflow(), _asking(b""), _asking(b"{}", cut=True)):
        with pytest.raises(exceptions.CommandError, match=r"no call to a model|not kept whole"):
            Commands(lambda: served, begin).again([flow], "glm.glm-4.7")
    assert Commands(lambda: served, begin).again([], "glm.glm-4.7") == ["Which flow? Name it as @ID."]


def _asking(body: bytes, *, cut: bool = False) -> http.HTTPFlow:
    flow = tflow.tflow()
    flow.request = http.Request.make("POST", "https://api.anthropic.com/v1/messages", body)
    if cut:
        flow.request.headers["content-length"] = "99"
    return flow
