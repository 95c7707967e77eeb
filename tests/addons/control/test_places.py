"""Where our files lie."""

from __future__ import annotations

from pathlib import Path

import pytest

from routecodex.addons.control import places
from routecodex.addons.control.say import Failed


def test_where_things_lie(tmp_path: Path) -> None:
    assert places.user_folder({"ROUTECODEX_USER_DIR": str(tmp_path)}) == tmp_path
    here = places.Places(tmp_path / "u")
    here.make()
    here.make()
    for folder in (here.user, here.run, here.authority, here.bundles):
        assert folder.stat().st_mode & 0o777 == 0o700
    assert places.SCRIPT.is_file()
    assert places.MAIN.is_file()
    assert places.SHIPPED.is_file()


def test_a_long_path_gets_a_short_socket(tmp_path: Path) -> None:
    deep = tmp_path / ("x" * 100)
    one, other = places.Places(deep / "one"), places.Places(deep / "other")
    assert len(str(one.line)) <= 100
    assert one.line != other.line
    assert one.line == places.Places(deep / "one").line
    assert places.Places(Path("/u")).line == Path("/u/run/supervisor.sock")


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Failed, match="cannot be written") as failed:
        places.Places(tmp_path / "file" / "u").make()
    assert "ROUTECODEX_USER_DIR" in failed.value.next_step


def test_a_file_that_is_named_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(Failed, match="there is no such file") as failed:
        places.config_file("", {"ROUTECODEX_CONFIG": str(tmp_path / "gone.yaml")})
    assert failed.value.next_step == "ROUTECODEX_CONFIG names it"
    with pytest.raises(Failed, match="there is no such file") as failed:
        places.config_file(str(tmp_path / "gone.yaml"), {})
    assert failed.value.next_step == "is its name right?"
