"""What `run` does while its tool runs; `tests/system/test_run.py` has the rest."""

from __future__ import annotations

import socket
from collections.abc import Callable

import pytest

from routecodex.addons.control.commands import run
from routecodex.addons.control.line import STOPPED, Line
from routecodex.addons.control.say import Failed


@pytest.mark.parametrize(("heard", "asks"), [(b"", 1), (STOPPED, 0)], ids=["died", "was stopped"])
def test_another_supervisor_is_asked_for_where_the_first_died(heard: bytes, asks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    class AtOnce:
        def __init__(self, *, target: Callable[[], None], daemon: bool) -> None:
            self.start = target

    asked: list[object] = []

    def reach(*question: object) -> None:
        asked.append(question)
        raise Failed("nobody there")

    monkeypatch.setattr(run.threading, "Thread", AtOnce)
    monkeypatch.setattr(run, "reach", reach)
    ours, theirs = socket.socketpair()
    with ours:
        theirs.sendall(heard)
        theirs.close()
        run.Lease(Line(ours), {"want": "lease"})
    assert len(asked) == asks
