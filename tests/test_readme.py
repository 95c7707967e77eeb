"""What the README shows works as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from routecodex.routing import config
from routecodex.routing.turn.loading import load_plugins

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


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
