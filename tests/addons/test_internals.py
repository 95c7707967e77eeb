"""What the live relay leans on inside mitmproxy: when a new version changes it, this says what, before anything else breaks."""

from __future__ import annotations

import inspect

import pytest
from mitmproxy.addons import clientplayback
from mitmproxy.net.http import status_codes
from mitmproxy.options import Options
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layers import http as layers
from mitmproxy.test import tflow

from routecodex.addons import internals, relay, rounds


@pytest.mark.parametrize("owner, name, parameters", internals.CALLED)
def test_what_is_called(owner: type, name: str, parameters: tuple[str, ...]) -> None:
    assert tuple(inspect.signature(getattr(owner, name)).parameters) == parameters


@pytest.mark.parametrize("owner, names", internals.LOOKED_AT)
def test_what_is_looked_at(owner: type, names: tuple[str, ...]) -> None:
    assert set(names) <= set(inspect.get_annotations(owner))


def test_another_mitmproxy_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert internals.unknown() == []
    monkeypatch.delattr(layers.HttpStream, "start_request_stream")
    monkeypatch.setattr(layers.HttpStream, "send_response", lambda self: None)
    assert internals.unknown() == ["HttpStream.start_request_stream", "HttpStream.send_response"]


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
