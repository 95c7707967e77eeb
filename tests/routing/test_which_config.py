"""Which configuration holds; `tests/routing/config/test_load.py` has the order."""

from pathlib import Path

import pytest

from routecodex.routing.which_config import chosen, own_file


def test_what_was_named_is_not_looked_for(tmp_path: Path) -> None:
    assert chosen(str(tmp_path / "gone.yaml"), {}, tmp_path, tmp_path) == tmp_path / "gone.yaml"
    assert own_file(tmp_path) == tmp_path / ".config" / "routecodex" / "mitm-config.yaml"
    assert chosen("", {"ROUTECODEX_CONFIG": ""}, tmp_path, tmp_path / "root") == tmp_path / "root" / "mitm-config.yaml"


def test_a_home_that_is_no_whole_path_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would lead to the folder that one works in."""
    monkeypatch.chdir(tmp_path)
    own = own_file(tmp_path / "here")
    own.parent.mkdir(parents=True)
    own.touch()
    assert chosen("", {}, Path("here"), tmp_path) == tmp_path / "mitm-config.yaml"
    assert chosen("", {}, tmp_path / "here", tmp_path) == own
