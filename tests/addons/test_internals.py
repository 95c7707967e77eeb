"""What the live relay leans on inside mitmproxy: when a new version changes it, this says what, before anything else breaks."""

from __future__ import annotations

import inspect

import pytest
from mitmproxy.addons import clientplayback, next_layer, proxyserver
from mitmproxy.net.http import status_codes
from mitmproxy.options import Options
from mitmproxy.proxy import layer, server
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layers import http as layers
from mitmproxy.test import tflow

from routecodex.addons import relay, rounds

STREAM_STATES = [
    "state_wait_for_request_headers",
    "state_consume_request_body",
    "state_wait_for_response_headers",
    "state_consume_response_body",
    "state_stream_response_body",
    "state_done",
    "state_errored",
    "start_response_stream",
    "send_response",
    "handle_protocol_error",
    "check_killed",
    "make_server_connection",
]


@pytest.mark.parametrize("name", STREAM_STATES)
def test_the_states_of_a_stream(name: str) -> None:
    assert inspect.isfunction(getattr(layers.HttpStream, name))


@pytest.mark.parametrize(
    "owner, name, parameters",
    [
        (layers.HttpStream, "send_response", ["self", "already_streamed"]),
        (layers.HttpLayer, "get_connection", ["self", "event", "reuse"]),
        (layers.HttpLayer, "make_stream", ["self", "stream_id"]),
        (layers.HttpLayer, "event_to_child", ["self", "child", "event"]),
        (layers.GetHttpConnection, "connection_spec_matches", ["self", "connection"]),
        (clientplayback.ReplayHandler, "__init__", ["self", "flow", "options"]),
        (clientplayback.ReplayHandler, "handle_hook", ["self", "hook"]),
        (clientplayback.ReplayHandler, "hook_task", ["self", "hook"]),
        (clientplayback.MockServer, "__init__", ["self", "flow", "context"]),
        (layers.HttpStream, "flow_done", ["self"]),
        (layers.HttpStream, "passthrough", ["self", "event"]),
        (server.ConnectionHandler, "server_event", ["self", "event"]),
        (server.ConnectionHandler, "drain_writers", ["self"]),
        (next_layer.NextLayer, "next_layer", ["self", "nextlayer"]),
    ],
)
def test_what_is_called(owner: type, name: str, parameters: list[str]) -> None:
    assert list(inspect.signature(getattr(owner, name)).parameters) == parameters


@pytest.mark.parametrize(
    "owner, names",
    [
        (layers.HttpLayer, ["waiting_for_establishment", "command_sources", "streams", "connections"]),
        (server.ConnectionHandler, ["transports", "max_conns", "client"]),
        (proxyserver.Proxyserver, ["connections"]),
        (layers.HttpStream, ["request_body_buf", "flow", "stream_id"]),
    ],
)
def test_what_is_looked_at(owner: type, names: list[str]) -> None:
    assert set(names) <= set(inspect.get_annotations(owner))


def test_streams_that_are_paused_keep_what_comes() -> None:
    assert "_paused_event_queue" in inspect.get_annotations(layer.Layer)


def test_the_codes_of_an_end() -> None:
    """Cut off without a word; told that it is too large."""
    if isinstance(relay.ABORT, int):
        assert (relay.ABORT, relay.TOO_LARGE) == (status_codes.NO_RESPONSE, 413)
    else:
        assert relay.TOO_LARGE.http_status_code() == 413
        assert relay.ABORT.http_status_code() is None


def test_replays_of_a_person_are_adopted(monkeypatch: pytest.MonkeyPatch) -> None:
    """mitmproxy looks the class up by its name in the module, each time."""
    assert "ReplayHandler(" in inspect.getsource(clientplayback.ClientPlayback.playback)
    monkeypatch.setattr(clientplayback, "ReplayHandler", clientplayback.ReplayHandler)
    rounds.adopt_replays(relay.Relay(1))
    assert clientplayback.ReplayHandler.func is rounds.Repeated  # type: ignore[attr-defined]


def test_a_stream_that_is_done_is_not_upset_by_what_comes_late() -> None:
    """Events wait while a hook takes its time; mitmproxy's own stream fails over them, and its whole connection with it."""
    stream = relay.TurnStream(tctx(), 1)
    stream.server_state = stream.state_done
    late = layers.ResponseData(1, b"more")
    assert list(stream.handle_event(late)) == []
    mine = layers.HttpStream(tctx(), 1)
    mine.server_state = mine.state_done
    with pytest.raises(AssertionError, match="Unexpected event"):
        list(mine.handle_event(late))


def tctx() -> Context:
    return Context(tflow.tclient_conn(), Options())
