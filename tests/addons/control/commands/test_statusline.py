"""The words of the status line, and of the commands that need a running server where none runs."""

from __future__ import annotations

import pytest

from routecodex.addons.control.commands import daemon, sessions, statusline
from tests.addons.control.commands.person import Person

SAID = {"provider": "glm", "key": "backup", "model": "glm-4.7", "session": [], "all": []}


@pytest.mark.parametrize(
    "said, line",
    [
        (None, "RouteCodex: not running"),
        (SAID, "glm[backup].glm-4.7"),
        ({**SAID, "provider": "origin", "key": "client"}, "origin.glm-4.7"),
        ({**SAID, "provider": None, "key": None, "model": None}, "no call yet"),
        (
            {**SAID, "session": ["Allowed: glm."], "all": ["Disabled: x."]},
            "glm[backup].glm-4.7 · Allowed: glm · all: Disabled: x",
        ),
    ],
)
def test_the_line(said: dict[str, object] | None, line: str) -> None:
    assert statusline.line(said) == line


@pytest.mark.parametrize(
    "words, code",
    [
        (["daemon", "status", "routing"], daemon.NOT_RUNNING),
        (["daemon", "status", "routing", "--clear"], 2),
        (["daemon", "status", "routing", "--server", "x"], 1),
        (["daemon", "set", "routing", "--disable", "glm"], 1),
        (["daemon", "set", "routing"], 2),
        (["sessions"], 0),
        (["sessions", "show"], 2),
        (["sessions", "clear", "x", "--all"], 2),
        (["sessions", "show", "x"], 1),
        (["sessions", "clear", "--all"], 0),
        (["sessions", "--server", "x"], 1),
        (["statusline"], 0),
    ],
)
def test_where_no_server_runs(person: Person, monkeypatch: pytest.MonkeyPatch, words: list[str], code: int) -> None:
    monkeypatch.setattr("sys.stdin", None)
    assert person.types(*words) == code
    assert person.said or person.warned.startswith("routecodex: ")
    assert sessions.__doc__
