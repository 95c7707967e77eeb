"""What commands say while no proxy runs; `tests/system/test_run.py` has the rest."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from routecodex.addons.control import certificates, cli
from routecodex.addons.control.commands import env, status
from routecodex.addons.control.places import places


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("ROUTECODEX_SESSION_DIR")


def test_nothing_runs(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert cli.main(["status"]) == status.NOT_RUNNING
    assert "does not run" in capsys.readouterr().out
    assert cli.main(["status", "--json"]) == status.NOT_RUNNING
    assert json.loads(capsys.readouterr().out)["running"] is False
    assert cli.main(["stop"]) == 0
    assert capsys.readouterr().out == "The proxy does not run.\n"
    assert cli.main(["stop", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"running": False, "stopped": False, "tools": 0}
    assert cli.main(["log"]) == 1
    assert "there is no log yet" in capsys.readouterr().err
    assert not (tmp_path / "user").exists(), "to ask makes nothing"


@pytest.mark.parametrize(
    "count, workers, died",
    [(1, "; 1 died and was replaced", "once; it came back"), (2, "; 2 died and were replaced", "2 times; it came back")],
)
def test_what_died_is_counted_as_people_count(capsys: pytest.CaptureFixture[str], count: int, workers: str, died: str) -> None:
    said = dict.fromkeys(("config", "log", "certificate", "server", "web", "upstream"), "")
    counted = {"replaced": count, "deaths": count, "workers": [{"connections": 1}, {"connections": 0}]}
    status.show({**said, **counted, "running": False, "port": 1, "tools": 0, "kept": True}, as_json=False)
    shown = capsys.readouterr().out
    assert f"Workers:       2 processes with 1 connection{workers}\n" in shown
    assert f"Died:          {died}\n" in shown


def test_the_last_lines_of_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    here = places()
    here.make()
    here.log.write_text("".join(f"line {n}\n" for n in range(300)))
    assert cli.main(["log", "-n", "2"]) == 0
    assert capsys.readouterr().out == "line 298\nline 299\n"
    assert cli.main(["log", "-n", "0"]) == 0
    assert capsys.readouterr().out == ""
    assert cli.main(["log", "--json", "-n", "1"]) == 0
    assert json.loads(capsys.readouterr().out) == {"log": str(here.log), "lines": ["line 299"]}


def test_a_terminal_that_has_no_arrows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = places()
    here.make()
    here.log.write_text("[10:31:31.019] 10:31:30 x → echo · 200\nnext\n", encoding="utf-8")
    heard = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(heard, "latin-1"))
    assert cli.main(["log"]) == 0
    assert heard.getvalue() == b"10:31:30 x ? echo \xb7 200\nnext\n", "its time once, and no traceback"


NEWCOMERS = {
    "daemon": "what is to be done?\n  routecodex daemon status routing, or daemon set routing --sticky TARGET",
    "daemon stauts": "what is to be done?",
    "daemon set": "what is to be set?\n  --sticky",
    "daemon set rooting": "argument routing: invalid choice: 'rooting'",
    "provider": "which provider is to be added?\n  routecodex provider add NAME --key-file FILE; there are examples for a",
    "provider glm": "which provider is to be added?",
    "import": "which file?\n  routecodex import ~/.routecodex/config.json",
    "import /nowhere/config.json": "cannot be read: No such file or directory\n  is its name right?",
    "run": "which tool?\n  for instance: routecodex run claude",
    "run pyhton3": "pyhton3 is not installed, or not on the PATH\n  did you mean `routecodex run python",
    "run nothing-like-it": "\n  install it, or give its whole path",
    "log --flow": "unrecognized arguments: --flow\n  `routecodex log --help` says how it is written",
    "usage per-day": "argument by: invalid choice: 'per-day'",
    "log -n many": "argument -n/--lines: invalid int value: 'many'",
}


@pytest.mark.parametrize("words", NEWCOMERS)
def test_what_a_newcomer_types(words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """One line that says what is wrong, and one with the next step; for programs the same as JSON."""
    monkeypatch.setattr("shutil.which", lambda name: f"/bin/{name}" if name in ("python", "python3") else None)
    code = cli.main(words.split())
    said = capsys.readouterr()
    assert code in (1, 2, 127)
    assert said.out == ""
    assert said.err.startswith("routecodex: ")
    assert NEWCOMERS[words] in said.err
    assert "usage:" not in said.err
    if not words.startswith("run"):
        assert cli.main([*words.split(), "--json"]) == code
        assert json.loads(capsys.readouterr().out)["error"] in said.err


def test_a_daemons_routing_is_the_only_thing_it_has(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["daemon", "status"]) == 3
    assert capsys.readouterr().out == "No server runs.\n"


def test_folders_on_the_way_are_private_too() -> None:
    """Whichever command was the first."""
    path = certificates.write(places().bundles, "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n")
    assert [one.stat().st_mode & 0o777 for one in (path.parent, path.parents[1], path.parents[2])] == [0o700] * 3


def test_what_lies_in_a_folder_that_is_named_is_not_named(capsys: pytest.CaptureFixture[str]) -> None:
    here = places()
    here.make()
    here.line.touch()
    assert cli.main(["uninstall", "--json"]) == 0
    lies = json.loads(capsys.readouterr().out)["lies"]
    assert not [one for one in lies if str(Path(one).parent) in lies]


def test_purge_leaves_what_is_not_ours(capsys: pytest.CaptureFixture[str]) -> None:
    here = places()
    here.make()
    (here.user / "mine.txt").touch()
    assert cli.main(["uninstall", "--purge", "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)["erased"]) == {str(here.run), str(here.authority)}
    assert [path.name for path in here.user.iterdir()] == ["mine.txt"]


@pytest.mark.parametrize(
    ("shell", "value", "expected"),
    [
        ("bash", "it's", "export X='it'\"'\"'s'"),
        ("fish", "it's\\", "set -gx X 'it\\'s\\\\'"),
        ("powershell", "it's", "$env:X = 'it''s'"),
        ("nu", "it's", "$env.X = `it's`"),
    ],
)
def test_exports_in_each_shell(shell: str, value: str, expected: str) -> None:
    assert env.SHELLS[shell]("X", value) == expected
