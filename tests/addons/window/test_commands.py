"""The commands, as mitmproxy runs them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from mitmproxy import exceptions, http
from mitmproxy.addons.view import View
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


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("status x", "routecodex.status takes nothing more: x"),
        ("clear glm", "routecodex.clear takes nothing more: glm"),
        ("models glm six", "routecodex.models takes nothing more: six"),
        ("models nosuch", "there is no provider 'nosuch' (nearest: "),
        ("models glm.glm-4.7", "there is no provider 'glm.glm-4.7' (nearest: glm"),
        ("sticky", "which target? routecodex.sticky PROVIDER.MODEL"),
        ("sticky glm glm-4.7", "routecodex.sticky takes nothing more: glm-4.7"),
        ("sticky glm", "--sticky glm: one provider.model or provider.key.model; for whole providers: --allow glm"),
        ("sticky nosuch", "Requested provider nosuch not found in provider registry (nearest known: "),
        ("sticky <**!glm.glm-4.7", "--sticky <**!glm.glm-4.7: no target; written provider, provider.model,"),
        ("why", "which flow? routecodex.why @ID, as the address of a flow shows it"),
        ("why @nosuch", "which flow? routecodex.why @ID, as the address of a flow shows it"),
        ("again", "which flow? routecodex.again @ID PROVIDER.MODEL, as the address of a flow shows it"),
        ("again @nosuch glm", "which flow? routecodex.again @ID PROVIDER.MODEL, as the address of a flow shows it"),
    ],
)
def test_what_a_newcomer_types_is_answered_with_a_sentence(context: taddons.context, words: str, why: str) -> None:
    context.master.addons.add(View())
    with pytest.raises(exceptions.CommandError) as refused:
        _run(context, *f"routecodex.{words}".split())
    assert str(refused.value).startswith(f"RouteCodex: {why}")


def test_a_tag_is_taken_as_what_stands_in_it(context: taddons.context) -> None:
    assert "glm.glm-4.7" in _run(context, "routecodex.sticky", "<**!glm.glm-4.7**>")[0]


def test_why_a_flow_went_where_it_went(served: Served) -> None:
    commands, flow, other, failed = Commands(lambda: served, _nobody), tflow.tflow(), tflow.tflow(), tflow.tflow()
    record = {"asked": "claude", "target": "glm.k2.glm-4.7", "why": "force · a tag", "attempts": ["glm.k2: status 503"]}
    flow.metadata["routecodex"] = record | {"answered": "glm.k1.glm-4.7", "cacheLost": "the cache was lost: x"}
    failed.metadata["routecodex"] = record | {"attempts": [], "error": "status 503"}
    lines = list(commands.why([flow, other, failed]))
    assert lines[0].endswith("claude → glm.k1.glm-4.7 · force · a tag")
    assert lines[1:3] == ["  failed before: glm.k2: status 503", "  the cache was lost: x"]
    assert "no model was asked" in lines[3]
    assert lines[4].endswith("claude → glm.k2.glm-4.7 · force · a tag")
    assert lines[5:] == ["  failed: status 503"]


@pytest.mark.parametrize(
    "target, why", [("origin", "own credential"), ("nosuch.m", "nosuch"), ("", "which target"), ("echo", "own credential")]
)
def test_again_is_for_targets_with_a_key_here(context: taddons.context, served: Served, target: str, why: str) -> None:
    with pytest.raises(exceptions.CommandError, match=why):
        Commands(lambda: served, _nobody).again([tflow.tflow()], target)


def test_again_needs_a_call(served: Served) -> None:
    begin = ByHand(relay.Relay(1)).begin
    for flow in (
        tflow.tflow(),
        _asking(b""),
        *(_asking(b"{}", length=said) for said in ("99", "many", "-2", "2, 2", "9" * 5000)),
    ):
        with pytest.raises(exceptions.CommandError, match=r"no call to a model|not kept whole"):
            Commands(lambda: served, begin).again([flow], "glm.glm-4.7")


def _asking(body: bytes, *, length: str = "") -> http.HTTPFlow:
    flow = tflow.tflow()
    flow.request = http.Request.make("POST", "https://api.anthropic.com/v1/messages", body)
    if length:
        flow.request.headers["content-length"] = length
    return flow
