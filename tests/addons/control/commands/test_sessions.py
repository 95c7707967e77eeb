"""`sessions` while no proxy runs (`tests/system/test_daemon.py`, `tests/trouble/test_redis.py`: while one does)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.addons.control.commands.person import Person


@pytest.mark.parametrize("words", ["sessions", "sessions --json", "sessions show a", "sessions clear a", "sessions clear --all"])
def test_what_lies_in_redis_is_not_nothing(person: Person, words: str) -> None:
    """Files do not hold it, and only a proxy can be asked: nobody is to think that it is erased."""
    config = 'virtualrouter: {routing: {default: [echo]}}\nsessions: {store: "redis://:secret-word@h"}\n'
    person.file(".config/routecodex/mitm-config.yaml", config)
    assert person.types(*words.split()) == 1
    assert "no proxy runs that could be asked" in person.said + person.warned
    assert "secret-word" not in person.said + person.warned
    person.file(".config/routecodex/mitm-config.yaml", config.replace("redis://:secret-word@h", "files"))
    assert person.types(*words.split()) == (1 if words.endswith(" a") else 0)
    assert "no proxy runs" not in person.said + person.warned


def test_an_export_of_files_says_so_where_sessions_lie_in_redis(person: Person, tmp_path: Path) -> None:
    config = 'virtualrouter: {routing: {default: [echo]}}\nsessions: {store: "redis://:secret-word@h"}\n'
    person.file(".config/routecodex/mitm-config.yaml", config)
    assert person.types("sessions", "export", str(tmp_path / "moved")) == 0
    assert "Exported: 0 entries" in person.warned
    assert "--store with its URL" in person.warned
    assert "secret-word" not in person.warned
    person.file(".config/routecodex/mitm-config.yaml", config.replace("redis://:secret-word@h", "files"))
    assert person.types("sessions", "export", str(tmp_path / "moved")) == 0
    assert "--store" not in person.warned


def test_a_file_that_cannot_be_moved_to_or_from_is_named(person: Person, tmp_path: Path) -> None:
    for words, said in (
        (("export", str(tmp_path / "gone" / "x")), "x cannot be written: No such file or directory"),
        (("export", str(tmp_path)), f"{tmp_path} cannot be written: Is a directory"),
        (("import", str(tmp_path / "gone")), "gone cannot be read: No such file or directory"),
    ):
        assert person.types("sessions", *words) == 1
        assert said in person.warned
        assert "Errno" not in person.warned
        assert "is its path right?" in person.warned
