"""Another script in the same mitmproxy, with modules called as ours are: each gets its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rig.client import call
from tests.rig.provider import FakeProvider
from tests.rig.proxy import SCRIPT, Mitmdump
from tests.system.tool import CONFIG

pytestmark = pytest.mark.system

NEIGHBOUR = """
import logging
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import {names}

for module in ({names},):
    logging.warning("%s is %s", module.__name__, module.WHOSE)
"""
NAMES = ("settings", "flows", "relay", "stand_in", "rounds", "turns", "routing")
"""Modules that anybody may have; some of them are ours too, under longer names."""


@pytest.mark.parametrize("first", [True, False], ids=["before ours", "behind ours"])
def test_modules_of_the_same_name(provider: FakeProvider, tmp_path: Path, first: bool) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir()
    for name in NAMES:
        (folder / f"{name}.py").write_text('WHOSE = "theirs"\n')
    (folder / "neighbour.py").write_text(NEIGHBOUR.format(names=", ".join(NAMES)))
    theirs = folder / "neighbour.py"
    scripts = [theirs, SCRIPT] if first else [SCRIPT, theirs]
    with Mitmdump(script=scripts, config=CONFIG, upstream=provider) as proxy:
        body = {"model": "claude-x", "max_tokens": 9, "messages": [{"role": "user", "content": "<**six.m**> hello"}]}
        answer = call("https://api.anthropic.com", "/v1/messages", body, proxy=proxy, headers={"x-api-key": "sk-client"})
        assert answer.status == 200, answer.body
        assert [name for name in NAMES if f"{name} is theirs" not in proxy.log] == []
    assert provider.calls[-1].host == "six.example"
