"""The window in mitmproxy's own console: the commands, typed as a person types them, and the conversation of a flow."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rig.provider import FakeProvider
from tests.rig.proxy import SCRIPT, Mitmdump
from tests.system.tool import CONFIG, Tool

pytestmark = [pytest.mark.system, pytest.mark.long]

_START = "import sys; from mitmproxy.tools.main import mitmproxy; mitmproxy(sys.argv[1:])"
_MOVES = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()][A-Z0-9]|[\x0e\x0f]")


class Console:
    def __init__(self, flows: Path, folder: Path, config: Path) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 180, 0, 0))
        options = [f"confdir={folder / 'confdir'}", f"routecodex_config={config}", "console_mouse=false"]
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-c", _START, "-n", "-r", str(flows), "-s", str(SCRIPT)]
            + [word for option in options for word in ("--set", option)],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={**os.environ, "TERM": "xterm-256color", "ROUTECODEX_USER_DIR": str(folder), "LC_ALL": "C.UTF-8"},
            cwd=folder,
            start_new_session=True,
        )
        os.close(slave)

    def until(self, words: str, patience_s: float = 60) -> str:
        """What was drawn since the last time, without what moves the cursor; spaces are moves, too."""
        seen, deadline, wanted = b"", time.monotonic() + patience_s, words.replace(" ", "")
        while wanted not in (shown := "".join(_MOVES.sub(b"", seen).decode(errors="replace").split())):
            assert time.monotonic() < deadline, shown[-3000:]
            if select.select([self._master], [], [], 0.2)[0]:
                try:
                    seen += os.read(self._master, 65_536)
                except OSError:
                    raise AssertionError(f"the console has ended: {shown[-3000:]}") from None
        return shown

    def type(self, text: str) -> None:
        for letter in text:
            os.write(self._master, letter.encode())
            time.sleep(0.01)

    def command(self, text: str, words: str) -> str:
        self.type(f":{text}\r")
        shown = self.until(words)
        self.type("q")  # the list of results is a window of its own
        return shown

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(20)
        os.close(self._master)


@pytest.fixture(scope="module")
def console(provider: FakeProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    folder = tmp_path_factory.mktemp("console")
    with Mitmdump(script=SCRIPT, config=CONFIG, upstream=provider, folder=folder, flows=True) as proxy:
        Tool(provider, proxy).ask("<**six.m**> what is shown here?", stream=True)
        proxy.stop()
    found = Console(folder / "flows", folder, folder / "mitm-config.yaml")
    yield found
    found.close()


def test_a_flow_opens_as_a_conversation(console: Console) -> None:
    console.until("/v1/messages")
    console.type("\r")
    shown = console.until("CONVERSATION, newest first")
    assert "whatisshownhere?" in shown
    console.type("q")


def test_the_commands_do_what_they_do_everywhere(console: Console) -> None:
    console.command("routecodex.status", "Nothing is in force for everybody")
    console.command("routecodex.models glm", "glm-4.7")
    console.command("routecodex.sticky glm.glm-4.7", "Everything goes to glm.glm-4.7")
    console.command("routecodex.clear", "is cleared")
    console.command("routecodex.why @focus", "a tag asks for six.m")
    console.command("routecodex.again @focus origin", "own credential")
