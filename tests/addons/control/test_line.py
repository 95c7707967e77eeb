"""The line to the supervisor: whoever needs one gets one, whatever others do meanwhile."""

from __future__ import annotations

import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from routecodex.addons.control import line
from routecodex.addons.control.places import Places, places
from routecodex.addons.control.say import Failed

pytestmark = pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="there is no such socket")


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Iterator[Places]:
    with tempfile.TemporaryDirectory(prefix="rc-") as folder:  # a socket's path must be short
        monkeypatch.setenv("ROUTECODEX_USER_DIR", str(Path(folder)))
        found = places()
        found.make()
        yield found


class Spawned:
    """What `_spawn` gives, one after the other: a process that ends at once with a code, or one that listens."""

    def __init__(self, stack: ExitStack, *codes: int | None) -> None:
        self.stack, self.codes, self.count = stack, codes, 0

    def __call__(self, here: Places) -> subprocess.Popen[bytes]:
        code = self.codes[self.count]
        self.count += 1
        if code is None:
            server = self.stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            server.bind(str(here.line))
            server.listen()
        process = subprocess.Popen([sys.executable, "-c", f"raise SystemExit({code or 0})"])
        if code is not None:
            process.wait(30)
        return process


def test_one_that_ended_because_nobody_needed_it_is_started_once_more(here: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `status` is asked at the moment in which a killed one is replaced: its question is the first, and then there is none."""
    with ExitStack() as stack:
        spawned = Spawned(stack, 0, 0, None)
        monkeypatch.setattr(line, "_spawn", spawned)
        line._start(here, time.monotonic() + 60).close()
    assert spawned.count == 3


def test_one_that_cannot_start_is_not_tried_again(here: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    with ExitStack() as stack:
        spawned = Spawned(stack, 1)
        monkeypatch.setattr(line, "_spawn", spawned)
        with pytest.raises(Failed, match="does not start"):
            line._start(here, time.monotonic() + 60)
    assert spawned.count == 1
