"""One process and its files: nothing that is for several is paid for, or done."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.rig.door import until
from tests.rig.provider import FakeProvider
from tests.rig.proxy import SCRIPT, Mitmdump
from tests.system.talk import Talk, configured

pytestmark = pytest.mark.system

CLOCK = '  clock: {"enabled": true, "ntp": {"enabled": false}}\n'
COUNTS = """
import os

made = []
for name in ("lstat", "stat", "open", "fsync", "replace", "rename", "unlink", "mkdir", "link"):
    def noted(path, *given, _name=name, _real=getattr(os, name), **more):
        if "sessions" in str(path):
            made.append(_name)
        return _real(path, *given, **more)

    setattr(os, name, noted)

def requestheaders(flow):
    print("since the last one:", made, flush=True)
    made.clear()
"""


@pytest.mark.parametrize(("clock", "looks"), [("", 2), (CLOCK, 4)], ids=["alone", "with the clock"])
def test_a_call_looks_at_the_disk_as_often_as_is_said(tmp_path: Path, clock: str, looks: int) -> None:
    """A hop, and a message that says nothing new to the session: `docs/state.md` names the figures."""
    (tmp_path / "counts.py").write_text(COUNTS)
    config = configured({"p": (2, "m")}, "    default: [p.m]\n", clock)
    with (
        FakeProvider() as provider,
        Mitmdump(script=[SCRIPT, tmp_path / "counts.py"], config=config, upstream=provider, folder=tmp_path / "proxy") as proxy,
    ):
        talk = Talk(provider, proxy)

        def cost(*entries: tuple[str, str]) -> bool:
            """Whether the last of these costs what is said; the next call tells. One that was written a moment ago is read again,
            and a look behind an answer may come when the next call is there already: then it is asked once more."""
            for entry in (*entries, ("hop", "done")):
                talk.typed.append(entry)
                assert entry[0] == "assistant" or talk.send().status == 200
            found = [line.partition(": ")[2] for line in proxy.log.splitlines() if line.startswith("since the last one")]
            return bool(ast.literal_eval(found[-1]) == ["lstat"] * looks)

        talk.typed = [("user", "<**!p.m**> go")]
        assert talk.send().status == 200
        until(lambda: cost(("hop", "done")), "a hop never costs as little as is said")
        until(lambda: cost(("assistant", "done"), ("user", "and on")), "a message never does")
        assert proxy.workers == [], "nothing forks"
        assert not list(proxy.sessions.glob("shared.db*"))
