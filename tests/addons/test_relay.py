"""What goes to one side one behind the other leaves as one, and what a failing layer had sent leaves too."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from mitmproxy import connection
from mitmproxy.proxy import commands, events
from mitmproxy.test import tflow

from routecodex.addons import relay
from routecodex.addons.relay import Leave, TurnLayer

Made = Callable[[], Iterator[commands.Command]]


def left_by(made: Made, monkeypatch: pytest.MonkeyPatch, *, outermost: bool = True) -> Iterator[commands.Command]:
    """What a connection's layer gives where what is below it gives this."""
    layer = TurnLayer.__new__(TurnLayer)
    layer.is_outermost = outermost
    monkeypatch.setattr(layer, "_handle", lambda event: made())
    return layer._handle_event(events.Start())


def test_short_writes_to_one_side_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay, "TOGETHER_BYTES", 6)
    monkeypatch.setattr(TurnLayer, "give_up", lambda layer, server: [commands.CloseConnection(client)])
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
    for command in left_by(made, monkeypatch):
        assert isinstance(command, commands.ConnectionCommand)
        left.append((command.connection, getattr(command, "data", None)))
    assert left == [
        (server, b"ab"),
        (client, b"cdefgh"),
        (client, b"long text"),
        (client, b"i"),
        (server, None),
        (client, b"jk"),
        (client, None),
    ]


@pytest.mark.parametrize("outermost", [True, False])
def test_what_is_all_leaves_before_anything_else_is_done(outermost: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    client, done = tflow.tclient_conn(), []

    def made() -> Iterator[commands.Command]:
        yield commands.SendData(client, b"head")
        yield commands.SendData(client, b"text")
        yield Leave()
        done.append("the rest")
        yield commands.CloseConnection(client)

    left = []
    for command in left_by(made, monkeypatch, outermost=outermost):
        left.append((type(command), getattr(command, "data", None), list(done)))
    passed_on = [] if outermost else [(Leave, None, [])]
    assert left == [(commands.SendData, b"headtext", []), *passed_on, (commands.CloseConnection, None, ["the rest"])]
