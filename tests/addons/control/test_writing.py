"""One's own configuration is read as it is, and written whole or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from routecodex.addons.control.reading import config
from routecodex.addons.control.say import Failed
from routecodex.addons.control.writing import read_text, write


def test_ends_of_lines_stay_and_only_the_owner_may_read(tmp_path: Path) -> None:
    path = tmp_path / "made" / "c.yaml"
    write(path, "a: 1\r\nb: ü\n")
    assert read_text(path) == "a: 1\r\nb: ü\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    write(path, "b: 2\n")
    assert [one.name for one in path.parent.iterdir()] == ["c.yaml"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    write(tmp_path / "real.yaml", "a: 1\n")
    (tmp_path / "link.yaml").symlink_to(tmp_path / "real.yaml")
    write(tmp_path / "link.yaml", "a: 2\n")
    assert (tmp_path / "link.yaml").is_symlink()
    assert read_text(tmp_path / "real.yaml") == "a: 2\n"


def test_what_fails_leaves_the_old_one_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "c.yaml"
    write(path, "a: 1\n")

    def full(source: object, target: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(Failed, match="No space left") as failed:
        write(path, "a: 2\n")
    assert failed.value.next_step == "make room on that disk"
    assert read_text(path) == "a: 1\n"
    assert [one.name for one in tmp_path.iterdir()] == ["c.yaml"]


def test_what_cannot_be_read_says_why(tmp_path: Path) -> None:
    with pytest.raises(Failed, match="cannot be read"):
        read_text(tmp_path / "gone")
    (tmp_path / "latin").write_bytes(b"\xe4\xff")
    with pytest.raises(Failed, match="UTF-8"):
        read_text(tmp_path / "latin")
    (tmp_path / "c.yaml").write_text("virtualrouter: {routing: {default: [nobody]}}\n")
    with pytest.raises(Failed, match=r"c\.yaml:1"):
        config(str(tmp_path / "c.yaml"))
