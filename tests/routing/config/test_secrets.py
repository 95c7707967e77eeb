"""Keys that lie in files: `${file:…}`, and `.env` beside the configuration."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from routecodex.routing.config import Config, load
from routecodex.routing.config.secrets import look_beside, path_of

CONFIG = """
virtualrouter:
  providers:
    glm:
      protocol: openai-chat
      baseURL: https://glm.example/v1
      auth: {type: apikey, keys: [{alias: primary, value: "VALUE"}]}
      models: {glm-4.7: {}}
  routing: {default: [glm.glm-4.7, origin]}
"""


def written(folder: Path, value: str) -> Path:
    path = folder / "mitm-config.yaml"
    path.write_text(CONFIG.replace("VALUE", value))
    return path


def secret(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    path.chmod(0o600)
    return path


def key_of(config: Config) -> str | None:
    """None: it is off."""
    key = config.registry.providers["glm"].keys[0]
    return None if key.off else key.value


@pytest.mark.parametrize("value", ["${file:keys/glm}", "${file: keys/glm }", "${file:./keys/glm}"])
def test_a_file_beside_the_configuration(tmp_path: Path, value: str) -> None:
    secret(tmp_path / "keys" / "glm", "sk-of-a-file\n")
    config = load(written(tmp_path, value), {})
    assert key_of(config) == "sk-of-a-file"
    assert config.warnings == ()
    assert str(tmp_path / "keys" / "glm") in config.secret_files


def test_a_file_in_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "home"))
    secret(tmp_path / "home" / ".keys" / "glm", "sk-at-home")
    assert key_of(load(written(tmp_path, "${file:~/.keys/glm}"), {})) == "sk-at-home"
    assert path_of("file:/abs/glm", tmp_path) == Path("/abs/glm")


@pytest.mark.parametrize("content", [None, "", " \n", b"\xff\xfe\xfa", b"x" * 70_000])
def test_a_file_that_cannot_be_read_switches_its_key_off_and_is_named(tmp_path: Path, content: str | bytes | None) -> None:
    if content is not None:
        secret(tmp_path / "key", content)
    config = load(written(tmp_path, "${file:key}"), {})
    assert key_of(config) is None
    assert any(
        re.search(r":7: the file key is empty or cannot be read: key glm.primary is off", line) for line in config.warnings
    )


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "key")
    (tmp_path / ".env").mkdir()
    config = load(written(tmp_path, "${file:key}"), {})
    assert key_of(config) is None
    assert any("not a small file" in line for line in config.warnings), "an .env that cannot be used is told"


@pytest.mark.parametrize(
    "line, value",
    [
        ("GLM_KEY=sk-plain", "sk-plain"),
        ("export GLM_KEY = sk-plain  # mine", "sk-plain"),
        ("GLM_KEY='sk # quoted'", "sk # quoted"),
        ('GLM_KEY="sk-quoted" # mine', "sk-quoted"),
        ("GLM_KEY=sk#plain", "sk#plain"),
        ("# GLM_KEY=sk-off", None),
        ("GLM_KEY=", None),
        ("OTHER=sk-plain", None),
    ],
)
def test_env_beside_the_configuration(tmp_path: Path, line: str, value: str | None) -> None:
    secret(tmp_path / ".env", f"\n{line}\n")
    assert key_of(load(written(tmp_path, "${GLM_KEY}"), {})) == value


def test_the_environment_beats_it_unless_it_is_empty_there(tmp_path: Path) -> None:
    secret(tmp_path / ".env", "GLM_KEY=sk-of-the-file")
    path = written(tmp_path, "${GLM_KEY}")
    assert key_of(load(path, {"GLM_KEY": "sk-of-the-environment"})) == "sk-of-the-environment"
    assert key_of(load(path, {"GLM_KEY": ""})) == "sk-of-the-file"


def test_what_changes_is_read_again(tmp_path: Path) -> None:
    path = written(tmp_path, "${GLM_KEY}")
    assert key_of(load(path, {})) is None
    secret(tmp_path / ".env", "GLM_KEY=one-key")
    assert key_of(load(path, {})) == "one-key"
    secret(tmp_path / ".env", "GLM_KEY=two-key")
    assert key_of(load(path, {})) == "two-key"


def test_a_line_that_is_none_is_told_without_what_it_holds(tmp_path: Path) -> None:
    secret(tmp_path / ".env", "GLM_KEY sk-very-secret\nGLM_KEY=sk-plain\n")
    config = load(written(tmp_path, "${GLM_KEY}"), {})
    assert key_of(config) == "sk-plain"
    assert [line for line in config.warnings if line.startswith(".env:1: not understood")]
    assert "very-secret" not in repr(config)


@pytest.mark.parametrize("mode, warned", [(0o600, False), (0o400, False), (0o640, True), (0o644, True)])
def test_whoever_else_may_read_it_is_warned_of(tmp_path: Path, mode: int, warned: bool) -> None:
    secret(tmp_path / ".env", "GLM_KEY=sk-plain").chmod(mode)
    secret(tmp_path / "key", "sk-file").chmod(mode)
    found = load(written(tmp_path, "${file:key}"), {})
    assert key_of(found) == "sk-file"
    assert [
        line.endswith(f"chmod 600 {tmp_path / name}") for line, name in zip(found.warnings, (".env", "key"), strict=False)
    ] == ([True, True] if warned else [])


def test_files_are_named_whether_they_are_there_or_not(tmp_path: Path) -> None:
    beside = look_beside("${file:a} ${file:b} ${file:a} ${NAME}", tmp_path, {})
    assert beside.files == (tmp_path / ".env", tmp_path / "a", tmp_path / "b")
