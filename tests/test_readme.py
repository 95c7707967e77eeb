"""What the README shows works as it stands."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from routecodex.routing import config
from routecodex.routing.turn.loading import load_plugins

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
TOLD = README + (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def test_its_plugin_loads(tmp_path: Path) -> None:
    (source,) = blocks("python")
    file = tmp_path / "shout.py"
    file.write_text(source, encoding="utf-8")
    (plugin,) = load_plugins([file])
    assert plugin.name == "shout"


def test_its_configuration_loads() -> None:
    (source,) = blocks("yaml")
    read = config.read(source, name="README.md", env={"GLM_KEY": "one", "GLM_KEY_2": "two"})
    assert [target.key for target in read.registry.routes["longcontext"][0].targets] == ["primary", "backup"]


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-test.lock"])
def test_its_commands_name_files_that_are_there(lock: str) -> None:
    assert f"-r {lock}" in README
    assert (ROOT / lock).is_file()


def test_every_path_it_names_is_there() -> None:
    named = set(re.findall(r"`((?:addons|routing|tests)/[\w/]+\.py)`", README))
    assert named
    assert [path for path in named if not (ROOT / path).is_file()] == []


def test_its_test_commands_are_there() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    markers = {line.partition(":")[0] for line in settings["markers"]}
    assert set(re.findall(r"-m (quick|races)\b", TOLD)) == {"quick", "races"} <= markers
    assert "pytest -q -n 0 tests/" in README
    for module in re.findall(r"python -m (tests\.\w+)", TOLD):
        assert importlib.util.find_spec(module) is not None


OUR_OWN = {"ROUTECODEX_ERROR", "ROUTECODEX_LEASH", "ROUTECODEX_UPSTREAM_AUTH"}
"""A code, and what one process of ours tells another."""


def test_every_option_and_variable_is_told() -> None:
    told = README + "".join(page.read_text(encoding="utf-8") for page in sorted((ROOT / "docs").glob("*.md")))
    product = [path.read_text(encoding="utf-8") for room in ("addons", "routing") for path in (ROOT / room).rglob("*.py")]
    options = {name for text in product for name in re.findall(r'add_option\(\s*"(routecodex_\w+)"', text)}
    variables = {name for text in product for name in re.findall(r'"(ROUTECODEX_[A-Z_]+)"', text)} - OUR_OWN
    variables |= {f"ROUTECODEX_STOPMESSAGE_BD_{name}" for name in ("MODE", "TIMEOUT_MS", "CACHE_TTL_MS", "WORKDIR")}
    assert len(options) > 5
    assert len(variables) > 10
    assert sorted(name for name in options | variables if name not in told) == []


def test_the_hosted_gate_does_what_it_says() -> None:
    workflow = YAML(typ="safe").load((ROOT / ".github" / "workflows" / "tests.yml").read_text())
    job = workflow["jobs"]["tests"]
    commands = [step["run"] for step in job["steps"] if "run" in step]
    assert commands[0].endswith("-r requirements-test.lock")
    assert commands[-1] == "python -m pytest -q"
    lowest = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"].removeprefix(">=")
    assert job["strategy"]["matrix"]["python"][0] == lowest
