"""What commands say while no proxy runs; `tests/system/test_run.py` has the rest."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from routecodex.addons.control import cli
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
