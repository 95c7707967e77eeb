"""What a client's frames do to a socket of ours, without a proxy (with one: `tests/system/test_codex_socket.py`)."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from mitmproxy.test import tflow
from wsproto.events import TextMessage

from routecodex.addons.codex_socket import LONG, Socket
from routecodex.routing.codex.conversation import Conversation, Post, Told

Ask = Callable[..., Post | Told]


@pytest.fixture
def asked_in(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, bool]]:
    """The length of each frame that was read, and whether others waited for that."""
    found: list[tuple[int, bool]] = []
    ask: Ask = Conversation.ask

    def noted(self: Conversation, text: str, **more: Any) -> Post | Told:
        found.append((len(text), threading.current_thread() is threading.main_thread()))
        return ask(self, text, **more)

    monkeypatch.setattr(Conversation, "ask", noted)
    return found


def socket() -> Socket:
    relay: Any = SimpleNamespace(request_limit=32 << 20, streams={}, tasks=set())
    sealed: Any = None
    return Socket(relay, tflow.tflow(), sealed)


def warm_up(size: int) -> str:
    """A frame that is answered here."""
    return json.dumps({"type": "response.create", "generate": False, "input": "x" * size})


async def done(one: Socket) -> None:
    for _ in range(3000):
        if not (one._reads or one._waiting):
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it is still read")


def test_a_long_frame_is_read_beside_the_loop_and_those_behind_it_wait(asked_in: list[tuple[int, bool]]) -> None:
    """It kept everybody waiting for 100 ms: read, and its items written again one by one."""
    frames = [warm_up(size) for size in (10, 2 * LONG, 20, LONG, 30)]

    async def run() -> int:
        one = socket()
        for text in frames:
            one._hear(TextMessage(data=text))
        await done(one)
        return one.take().count(b"response.completed")

    assert asyncio.run(run()) == len(frames)
    assert asked_in == [(len(text), len(text) < LONG) for text in frames]


def test_who_has_left_meanwhile_is_asked_nothing(asked_in: list[tuple[int, bool]]) -> None:
    async def run() -> Socket:
        one = socket()
        one._hear(TextMessage(data=warm_up(LONG)))
        one._hear(TextMessage(data=warm_up(10)))
        one.gone()
        await done(one)
        return one

    left = asyncio.run(run())
    assert left.turn is None
    assert left.take() == b""
    assert len(asked_in) == 1


def test_a_message_in_pieces_of_nothing_keeps_nothing() -> None:
    one = socket()
    for _ in range(1000):
        one._hear(TextMessage(data="", message_finished=False))
    assert one._pieces == []
