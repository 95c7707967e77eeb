"""What goes to the wire in pieces is the same, and in the same order."""

from __future__ import annotations

import pytest
from mitmproxy.proxy import commands
from mitmproxy.proxy.layers.http import RequestData, RequestEndOfMessage, ResponseData, SendHttp
from mitmproxy.test import tflow

from routecodex.addons import layers
from routecodex.addons.layers import in_pieces


@pytest.mark.parametrize("kind", [RequestData, ResponseData])
@pytest.mark.parametrize("size", [0, 1, 9, 10, 11, 20, 95])
def test_a_body(kind: type[RequestData | ResponseData], size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layers, "PIECE_BYTES", 10)
    server = tflow.tserver_conn()
    sent = list(in_pieces(SendHttp(kind(3, bytes(range(size))), server), 10))
    events = [command.event for command in sent if isinstance(command, SendHttp)]
    assert [type(event) for event in events] == [kind] * max(1, -(-size // 10))
    assert b"".join(event.data for event in events if isinstance(event, RequestData | ResponseData)) == bytes(range(size))
    assert {event.stream_id for event in events} == {3}
    assert all(isinstance(command, SendHttp) and command.connection is server for command in sent)


def test_what_is_not_long_leaves_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layers, "PIECE_BYTES", 10)
    for size, pieces in ((30, 1), (31, 4)):
        assert len(list(in_pieces(SendHttp(RequestData(3, b"x" * size), tflow.tserver_conn()), 30))) == pieces


def test_everything_else_stays_as_it_is() -> None:
    server = tflow.tserver_conn()
    for command in (commands.CloseConnection(server), SendHttp(RequestEndOfMessage(3), server)):
        assert list(in_pieces(command, 10)) == [command]
