"""The command line: what it imports, what it says, how it ends."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from routecodex.addons.control import cli, say
from tests.rig.door import MAIN


def test_every_command_is_a_module_with_both_functions() -> None:
    from importlib import import_module

    for name in cli.COMMANDS:
        module = import_module(f"routecodex.addons.control.commands.{cli.MODULES.get(name, name)}")
        assert module.__doc__
        assert callable(module.arguments)
        assert callable(module.act)


@pytest.mark.parametrize("words", [["--help"], ["status", "--help"], ["run", "--help"], ["nonsense"]], ids=" ".join)
def test_a_command_is_light(words: list[str]) -> None:
    """A status line is drawn many times a minute."""
    source = f"import runpy, sys\nsys.argv = ['routecodex', *{words!r}]\n"
    source += f"try:\n    runpy.run_path({str(MAIN)!r}, run_name='__main__')\nexcept SystemExit:\n    pass\n"
    source += "print(sorted({name.partition('.')[0] for name in sys.modules}), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-P", "-c", source], capture_output=True, text=True, timeout=60, check=False)
    for heavy in ("mitmproxy", "pydantic", "ruamel", "orjson", "asyncio"):
        assert f"'{heavy}'" not in done.stderr.splitlines()[-1]


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 0
    said = capsys.readouterr().out
    for name, line in cli.COMMANDS.items():
        assert f"  {name} " in said
        assert line in said


def test_a_mistyped_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["strat"]) == 2
    assert "did you mean `routecodex start`?" in capsys.readouterr().err
    assert cli.main(["strat", "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["error"] == "there is no command strat"


def test_what_went_wrong(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: object) -> int:
        raise say.Failed("it is broken", "mend it", code=5)

    monkeypatch.setattr("routecodex.addons.control.commands.stop.act", fails)
    assert cli.main(["stop"]) == 5
    assert capsys.readouterr().err == "routecodex: it is broken\n  mend it\n"
    assert cli.main(["stop", "--json"]) == 5
    assert json.loads(capsys.readouterr().out) == {"error": "it is broken", "next": "mend it"}


@pytest.mark.parametrize("words", [["claude", "--help"], ["--web", "claude", "-p", "--json"], ["--", "claude", "-v"]])
def test_what_stands_behind_a_tool_is_its_own(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    heard = []
    monkeypatch.setattr("routecodex.addons.control.commands.run.act", lambda given: heard.append(given) or 0)
    assert cli.main(["run", *words]) == 0
    (given,) = heard
    assert given.tool[-len(words) + 1 :] == words[1:] or given.tool == words[1:]
    assert (given.json, given.config, given.verbose) == (False, "", False)


@pytest.mark.parametrize(
    "words, said, next_step",
    [
        (["--json", "status"], "--json stands in the command's place", "routecodex status --json"),
        (["--config", "x.yaml", "check"], "--config stands in the command's place", "routecodex check --config"),
        (["-v"], "-v stands in the command's place", "routecodex COMMAND -v"),
        (["version"], "there is no command version", "did you mean `routecodex --version`?"),
        (["help"], "there is no command help", "did you mean `routecodex --help`?"),
        (["--"], "there is no command --", "`routecodex --help` names the commands"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_stands_in_a_commands_place(words: list[str], said: str, next_step: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(words) == 2
    told = "".join(capsys.readouterr())
    assert said in told
    assert next_step in told


def test_ctrl_c_while_a_command_is_loaded(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: str) -> object:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "import_module", interrupted)
    assert cli.main(["status"]) == 130
    assert "".join(capsys.readouterr()) == ""
