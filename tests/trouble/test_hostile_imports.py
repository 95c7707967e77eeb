"""A file of somebody else is imported: it is taken whole or not at all, and what was there before stays as it was."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from routecodex.routing.clock.store import ClockStore
from routecodex.routing.clock.tasks import Task
from routecodex.routing.control import moving
from routecodex.routing.sessions.state import EMPTY, Sticky, StopMessage
from routecodex.routing.sessions.store import FileStore, SessionKey
from routecodex.routing.turn.hidden_store import HiddenStore
from tests.addons.control.commands.person import Person
from tests.rig.proxy import MAIN
from tests.routing.turn.test_hidden_store import entry

KEY = SessionKey("session", "abc-1")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Somebody's sessions."""
    filled(found := tmp_path / "sessions")
    (found / "routing-one.json").write_text("{}")
    return found


@pytest.fixture
def person(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Person:
    person = Person(tmp_path / "home", monkeypatch, capsys)
    monkeypatch.setenv("ROUTECODEX_SESSION_DIR", str(folder))
    return person


def filled(folder: Path) -> None:
    kept = EMPTY.with_(sticky=Sticky("glm", model="glm-4.7"), stop=StopMessage("go", 3, used=1))
    FileStore(folder).update(KEY, lambda state: kept)
    ClockStore(folder).update(KEY.id, lambda _: [Task("t1", KEY.id, 5, 5, 5, "look")])
    HiddenStore(folder).add(KEY, entry(1))


def held(folder: Path) -> dict[str, bytes]:
    """What lies there, the locks apart."""
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*.json")}


def lines_of(folder: Path) -> dict[str, dict[str, Any]]:
    return {(line := json.loads(moving.to_line(put)))["kind"]: line for put in moving.of_files(folder)}


def with_entry(line: dict[str, Any], change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    document = json.loads(line["entry"])
    return {**line, "entry": json.dumps(change(document))}


HOSTILE: dict[str, Callable[[dict[str, dict[str, Any]]], object]] = {
    "a state that is none": lambda lines: {**lines["state"], "entry": "{}"},
    "a state cut short": lambda lines: {**lines["state"], "entry": lines["state"]["entry"][:-9]},
    "a state of another format": lambda lines: with_entry(lines["state"], lambda _: {"version": 9, "state": [1, 2]}),
    "a state that holds nothing": lambda lines: with_entry(lines["state"], lambda _: {"state": {}}),
    "a state of wrong types": lambda lines: with_entry(
        lines["state"], lambda _: {"state": {"stickyTarget": "x", "allowedProviders": 3}}
    ),
    "a state at a place": lambda lines: {**lines["state"], "place": "elsewhere"},
    "tasks cut short": lambda lines: {**lines["tasks"], "entry": lines["tasks"]["entry"][:-9]},
    "no tasks": lambda lines: with_entry(lines["tasks"], lambda found: {**found, "tasks": []}),
    "tasks of wrong types": lambda lines: with_entry(lines["tasks"], lambda found: {**found, "tasks": [1, None, {"taskId": []}]}),
    "tasks of another session": lambda lines: {**lines["tasks"], "id": "other"},
    "rounds cut short": lambda lines: {**lines["hidden"], "entry": lines["hidden"]["entry"][:-9]},
    "rounds that were changed": lambda lines: with_entry(lines["hidden"], lambda found: {**found, "items": [{"role": "user"}]}),
    "rounds at another's place": lambda lines: {**lines["hidden"], "place": "0" * 32},
    "an id that is no text": lambda lines: {**lines["state"], "id": ["session:a"]},
    "an entry that is no text": lambda lines: {**lines["state"], "entry": 5},
    "no id": lambda lines: {**lines["state"], "id": "session:"},
    "no id of tasks": lambda lines: {**lines["tasks"], "id": ""},
    "an endless id": lambda lines: {**lines["state"], "id": "session:" + "a" * 100_000},
    "another kind": lambda lines: {**lines["state"], "kind": "server"},
    "a kind that is a list": lambda lines: {**lines["state"], "kind": ["state"]},
    "lists in lists": lambda lines: "RAW" + "[" * 100_000,
    "a number": lambda lines: "RAW" + "9" * 10_000,
    "half a letter in it": lambda lines: {**lines["state"], "entry": "\ud800" + lines["state"]["entry"]},
}


@pytest.mark.parametrize("name", HOSTILE)
def test_one_hostile_line_behind_good_ones(folder: Path, person: Person, tmp_path: Path, name: str) -> None:
    """It took the place of what was there, or ended in a traceback, behind lines that were imported already."""
    lines = lines_of(folder)
    before, bad = held(folder), HOSTILE[name](lines)
    good = [{**lines["state"], "id": f"session:new-{number}"} for number in range(3)]
    text = [json.dumps(line) for line in good] + [bad.removeprefix("RAW") if isinstance(bad, str) else json.dumps(bad)]
    (tmp_path / "import").write_text("\n".join(text) + "\n")
    assert person.types("sessions", "import", str(tmp_path / "import")) == 1
    assert "line 4" in person.warned
    assert "nothing was imported" in person.warned
    assert held(folder) == before


def test_names_that_lead_elsewhere_and_lines_that_are_there_twice(folder: Path, person: Person, tmp_path: Path) -> None:
    state = lines_of(folder)["state"]
    outside = {path for path in tmp_path.rglob("*") if folder not in path.parents}
    ids = ["../../../etc/x", "/etc/x", "..", "a\0b", "con", "C:\\x", "\u202egnp", "x" * 4000, "a/../../b"]
    other = with_entry(
        state, lambda found: {key: value for key, value in found.items() if key != "sum"} | {"state": {"allowedProviders": ["p"]}}
    )
    lines = [*({**state, "id": f"session:{id}"} for id in ids), state, state, other]
    (tmp_path / "import").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert person.types("sessions", "import", str(tmp_path / "import")) == 0
    assert f"Imported: {len(ids) + 1} entries" in person.warned
    assert FileStore(folder).load(KEY).allowed == ("p",), "as it was said last"
    assert [FileStore(folder).load(SessionKey("session", id)).sticky for id in ids] == [Sticky("glm", model="glm-4.7")] * len(ids)
    assert {path for path in tmp_path.rglob("*") if folder not in path.parents} == outside | {tmp_path / "import"}


@pytest.mark.parametrize("what", ["fifo", "device", "folder", "bytes", "no end of a line", "missing"])
def test_what_is_no_file_of_lines(folder: Path, tmp_path: Path, what: str) -> None:
    """Nobody waits for its beginning, or reads it to its end."""
    before, path = held(folder), tmp_path / "import"
    match what:
        case "fifo":
            os.mkfifo(path)
        case "device":
            path.symlink_to("/dev/zero")
        case "folder":
            path.mkdir()
        case "bytes":
            path.write_bytes(b"\xff\xfe\x00" * 100)
        case "no end of a line":
            with path.open("wb") as file:
                file.truncate(moving_limit() + 1)
    environment = {**os.environ, "ROUTECODEX_SESSION_DIR": str(folder), "ROUTECODEX_USER_DIR": str(tmp_path)}
    command = [sys.executable, str(MAIN), "sessions", "import", str(path), "--server", "one"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert held(folder) == before


def moving_limit() -> int:
    from routecodex.addons.control.commands import sessions

    return sessions._LONGEST_LINE


def test_an_export_goes_into_a_file_of_its_owner_alone(folder: Path, person: Person, tmp_path: Path) -> None:
    open_to_all, link, pipe, other = (tmp_path / name for name in ("out", "link", "pipe", "other"))
    open_to_all.write_text("x" * 100_000)
    open_to_all.chmod(0o666)
    assert person.types("sessions", "export", str(open_to_all)) == 0
    assert open_to_all.stat().st_mode & 0o777 == 0o600
    assert len(open_to_all.read_text().splitlines()) == 3
    other.write_text("mine")
    link.symlink_to(other)
    os.mkfifo(pipe)
    for path in (link, pipe, tmp_path):
        assert person.types("sessions", "export", str(path)) == 1, path
    assert other.read_text() == "mine"
    if os.path.exists("/dev/full"):
        assert person.types("sessions", "export", "/dev/full") == 1


def test_what_a_session_is_called_does_nothing_to_a_terminal(folder: Path, person: Person) -> None:
    """Titles, ids, targets: whoever wrote them."""
    hostile, does = "\x1b]0;mine\x07\x9b2J\r\u202e", set("\x1b\x07\x9b\r\u202e")
    key = SessionKey("session", f"evil{hostile}")
    FileStore(folder).update(key, lambda _: EMPTY.with_(sticky=Sticky(hostile, model=hostile), client=hostile, begins=hostile))
    for words in (["sessions"], ["sessions", "show", "evil"], ["sessions", "show", hostile], ["sessions", "clear", hostile]):
        person.types(*words)
        assert not does & set(person.said + person.warned), words
    person.types("sessions")
    assert "\\x1b]0;mine\\x07\\x9b2J\\x0d\\u202e" in person.said
    (one,) = [one for one in person.asks("sessions")["sessions"] if one["id"].startswith("evil")]
    assert one["begins"] == hostile
    assert not does & set(person.said)
