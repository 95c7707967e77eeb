"""The sockets between processes of one machine: those between a parent and its workers, the supervisor's, the control socket.
Nobody else of this machine may have one; junk, half a word, or very many of them end nothing but themselves."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from tests.rig.client import call
from tests.rig.door import Door, until
from tests.rig.provider import FakeProvider
from tests.rig.proxy import SCRIPT, Mitmdump
from tests.system.tool import CONFIG, Tool

pytestmark = pytest.mark.system

JUNK = [
    b"\x00\xff junk",
    b"no JSON\n",
    b"[1, 2]\n",
    b'{"want": ["lease"]}\n',
    b'{"verb": {"a": 1}}\n',
    b"[" * 60_000 + b"\n",
    b'{"verb": "status", "id": ' + b"9" * 5000 + b"}\n",
    b'{"half": "a li',
    b"x" * 5_000_000,
]

NONSENSE = """
import os
from pathlib import Path
from mitmproxy import ctx
from routecodex.addons import worker

WORDS = {"door junk": b"+" * 100, "door more": b"-" * 100, "door else": b"what?", "line junk": b"no JSON\\n",
         "line list": b"[1]\\n", "line endless": b"x" * 5_000_000}

def requestheaders(flow):
    if (what := flow.request.headers.get("x-nonsense")) in WORDS:
        link = worker.here._door if what.startswith("door") else ctx.master.addons.get("routecodex").leash._link
        os.set_blocking(link.fileno(), True)
        word = WORDS[what]
        while word:
            word = word[os.write(link.fileno(), word):]

def load(loader):
    say, once = worker.here.say, Path(__file__).with_name("once")
    def and_more(what):
        if what == b"+" and once.exists():
            once.unlink()
            what = WORDS["door junk"]
        say(what)
    worker.here.say = and_more
"""


class Owner:
    """Sockets of one person, and what lies around them."""

    def __init__(self, folder: Path) -> None:
        self.sockets = [path for path in folder.rglob("*") if stat.S_ISSOCK(path.lstat().st_mode)]
        self.folders = {parent for path in self.sockets for parent in [path.parent]}


@pytest.fixture
def short() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="rc-") as made:
        yield Path(made)


_KNOCK = """
import os, socket, sys
os.setgroups([]), os.setgid(65534), os.setuid(65534)
try:
    socket.socket(socket.AF_UNIX).connect(sys.argv[1])
except PermissionError:
    sys.exit(13)
"""


def refused(path: Path) -> bool:
    """To another user of this machine."""
    return subprocess.run([sys.executable, "-I", "-S", "-c", _KNOCK, path], timeout=60, check=False).returncode == 13


def test_nobody_else_of_this_machine_may_have_one(short: Path) -> None:
    with Door(short) as door:
        assert "2 processes" in door.run("start", "--workers", "2").stdout
        assert door.ask("<**echo**> hello")["told"] == ["hello"]
        owner = Owner(short)
        assert len(owner.sockets) >= 2, "the supervisor's and the control socket"
        for path in owner.sockets:
            assert stat.S_IMODE(path.lstat().st_mode) & 0o077 == 0, path
        for folder in owner.folders:
            assert stat.S_IMODE(folder.stat().st_mode) & 0o077 == 0, folder
        if os.geteuid() == 0:  # only then there is somebody else to try as
            for open_to_all in (short, door.home):
                open_to_all.chmod(0o711)
            assert all(map(refused, owner.sockets))
        door.run("stop")


def test_junk_at_the_sockets_of_a_proxy_and_its_supervisor(short: Path) -> None:
    """Nothing of it ends, keeps or slows them; and who says nothing does not keep a proxy that nobody uses."""
    with Door(short) as door, ExitStack() as stack:
        door.run("start", "--workers", "2")
        before = door.status()
        sockets = Owner(short).sockets
        for path in sockets:
            for junk in JUNK:
                with suppress(OSError), socket.socket(socket.AF_UNIX) as link:
                    link.settimeout(10)
                    link.connect(str(path))
                    link.sendall(junk)
                    if junk.endswith(b"\n") and path.name != "line":
                        link.recv(100)
            for _ in range(300):
                link = stack.enter_context(socket.socket(socket.AF_UNIX))
                link.settimeout(5)
                with suppress(OSError):
                    link.connect(str(path))
        assert door.ask("<**echo**> hello")["told"] == ["hello"], "calls go on beside 600 that say nothing"
        stack.close()
        after = door.status()
        assert (after["pid"], after["deaths"], after["replaced"]) == (before["pid"], 0, 0)
        assert "Unhandled exception" not in door.log
        assert "Traceback" not in door.log
        door.run("stop")


@pytest.mark.parametrize(
    "what",
    [
        "door junk",
        "with the taking",
        "line junk",
        *(pytest.param(one, marks=pytest.mark.long) for one in ("door more", "door else", "line list", "line endless")),
    ],
)
def test_a_worker_that_speaks_nonsense_to_its_parent(what: str, tmp_path: Path) -> None:
    """A plugin that writes into a file that is not its own: it ended the parent, and every other worker with it."""
    (tmp_path / "nonsense.py").write_text(NONSENSE)
    if what == "with the taking":
        (tmp_path / "once").touch()
    with (
        FakeProvider() as provider,
        Mitmdump(
            script=[SCRIPT, tmp_path / "nonsense.py"], config=CONFIG, upstream=provider, folder=tmp_path / "proxy", workers=2
        ) as proxy,
    ):
        until(lambda: "2 workers serve" in proxy.log, "the workers do not come")
        ended = call("http://nonsense.rig", "/", b"", proxy=proxy, method="GET", headers={"x-nonsense": what}).ended
        assert ended != "timeout", "nobody has what it had read"
        until(lambda: "is back as" in proxy.log, "nobody takes its place")
        assert Tool(provider, proxy).ask("hello").status == 200
        assert "speaks nonsense to its parent" in proxy.log
        assert "Traceback" not in proxy.log
        assert proxy.alive
