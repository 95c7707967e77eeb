"""What goes to the wire in pieces is the same, and in the same order."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from mitmproxy import connection
from mitmproxy.proxy import commands
from mitmproxy.proxy.layers.http import RequestData, RequestEndOfMessage, ResponseData, SendHttp
from mitmproxy.test import tflow

from routecodex.addons import layers
from routecodex.addons.layers import Leave, in_pieces, together


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


def test_short_writes_to_one_side_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layers, "TOGETHER_BYTES", 6)
    server, client = tflow.tserver_conn(), tflow.tclient_conn()

    def made() -> Iterator[commands.Command]:
        for to, data in (
            (server, b"ab"),
            (client, b"cd"),
            (client, b"e"),
            (client, b"fgh"),
            (client, b"long text"),
            (client, b"i"),
        ):
            yield commands.SendData(to, data)
        yield commands.CloseConnection(server)
        yield commands.SendData(client, b"j")
        yield commands.SendData(client, b"k")
        raise ValueError("a layer failed")

    left: list[tuple[connection.Connection, bytes | None]] = []

    def leave() -> None:
        for command in together(made(), outermost=True):
            assert isinstance(command, commands.ConnectionCommand)
            left.append((command.connection, getattr(command, "data", None)))

    with pytest.raises(ValueError, match="layer"):
        leave()
    assert left == [
        (server, b"ab"),
        (client, b"cdefgh"),
        (client, b"long text"),
        (client, b"i"),
        (server, None),
        (client, b"jk"),
    ]


@pytest.mark.parametrize("outermost", [True, False])
def test_what_is_all_leaves_before_anything_else_is_done(outermost: bool) -> None:
    client, done = tflow.tclient_conn(), []

    def made() -> Iterator[commands.Command]:
        yield commands.SendData(client, b"head")
        yield commands.SendData(client, b"text")
        yield Leave()
        done.append("the rest")
        yield commands.CloseConnection(client)

    left = []
    for command in together(made(), outermost=outermost):
        left.append((type(command), getattr(command, "data", None), list(done)))
    passed_on = [] if outermost else [(Leave, None, [])]
    assert left == [(commands.SendData, b"headtext", []), *passed_on, (commands.CloseConnection, None, ["the rest"])]
