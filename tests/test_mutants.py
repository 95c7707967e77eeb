"""The mistakes that are tried on the tests: small, of one place each, the same for the same seed; and a survivor is seen."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import mutants
from tests.equivalents import BY_ROW
from tests.mutants import Mutant, dies, drawn, mutants_of, stages_of

SOURCE = b'''"""A module."""

def few(items: list[int], most: int = 3) -> bool:
    """Whether there are few."""
    if not items and most > 0:
        print("none")
        return True
    return len(items) + 1 <= most

def nothing() -> None:
    return None
'''


def test_every_kind_of_mistake() -> None:
    changed = {mutant.apply(SOURCE).decode() for mutant in mutants_of(Path("few.py"), SOURCE)}
    for mistake in (
        "most: int = 4",
        "if (not items) or (most > 0):",
        "if (items) and most > 0:",
        "if not items and (most) >= (0):",
        "if (not (not items and most > 0)):",
        "        pass\n",
        "return None",
        "return False",
        "(len(items)) - (1) <= most",
        "(len(items) + 1) < (most)",
        "len(items) + 2 <= most",
    ):
        assert [text for text in changed if mistake in text], mistake
    assert SOURCE.decode() not in changed
    assert all('"""Whether there are few."""' in text and "list[int]" in text for text in changed)


def test_the_same_seed_draws_the_same() -> None:
    drawn_once = drawn(20, 7, "routing/tags/s")
    assert len(set(map(str, drawn_once))) == 20
    assert drawn_once == drawn(20, 7, "routing/tags/s") != drawn(20, 8, "routing/tags/s")
    for mutant in drawn_once:
        source = (mutants.ROOT / mutant.path).read_bytes()
        assert source[mutant.start : mutant.end].decode() == mutant.was


def test_what_nobody_can_see_is_named_with_its_reason() -> None:
    """By its place or its row; a row whose code is gone goes, too."""
    source = b"for one, other in zip(a, b, strict=True):\n    print(one, other, sep=sep and end)\n"
    assert {mutant.text: bool(mutant.why_unseen) for mutant in mutants_of(Path("pairs.py"), source)} == {
        "False": True,
        "pass": False,
        "(sep) or (end)": False,
    }
    heads = b"class Pair(Struct, frozen=True):\n    pass\nclass Open(Struct, dict=True):\n    pass\n"
    assert [bool(mutant.why_unseen) for mutant in mutants_of(Path("pairs.py"), heads)] == [True, False]
    for file, statement, text in [row for rows in BY_ROW.values() for row in rows]:
        found = mutants_of(Path(file), (mutants.ROOT / file).read_bytes())
        same = [mutant for mutant in found if (mutant.statement, mutant.text) == (statement, text)]
        assert same, (file, statement, text)
        assert all(mutant.why_unseen for mutant in same)


@pytest.mark.parametrize("dying, counts, ends", [("no", "0 of 1", 1), ("yes", "1 of 1", 0)])
def test_what_nobody_can_see_does_not_count(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], dying: str, counts: str, ends: int
) -> None:
    both = [Mutant(Path("a.py"), 0, 1, "False", 1, "True", place) for place in ("zip(strict)", "told(it)")]
    monkeypatch.setattr(mutants, "drawn", lambda *_: both)
    monkeypatch.setattr(mutants, "NEEDED", ())
    monkeypatch.setattr(mutants, "dies", lambda mutant, *_, **__: dying == "yes" and not mutant.why_unseen)
    assert mutants.main([]) == ends
    assert f"{counts} died" in (told := capsys.readouterr().out)
    assert "1 that nobody can see" in told


def test_the_nearest_tests_come_first() -> None:
    first, *_, last = stages_of(Path("routing/tags/scan.py"), mutants.ROOT)
    assert first == ["-n", "0", "tests/routing/tags/test_scan.py"]
    assert "tests/system" in last


def test_who_imports_it_comes_next(tmp_path: Path) -> None:
    imported = "from routecodex" + ".routing.tags.scan import scan\n"
    for place, text in {
        "routing/tags/scan.py": "def scan() -> None: ...\n",
        "routing/tags/obey.py": "from .scan import scan\n",
        "tests/helper.py": imported,
        "tests/routing/test_own.py": imported,
        "tests/routing/test_helped.py": "from tests.helper import scan\n",
        "tests/routing/test_room.py": "from routecodex" + ".routing.tags import obey\n",
        "tests/system/test_real.py": f"{imported}pytestmark = pytest.mark.system\n",
        "tests/routing/test_stranger.py": "import json\n",
    }.items():
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text(text)
    near, far, *_ = stages_of(Path("routing/tags/scan.py"), tmp_path)
    assert near == ["-n", "0", "tests/routing/test_helped.py", "tests/routing/test_own.py"]
    assert far == ["-n", "0", "tests/routing/test_room.py"]


@pytest.mark.parametrize("failing, found", [("a", True), ("b", None), ("", False)])
def test_tests_that_take_too_long_as_they_are_say_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str, found: bool | None
) -> None:
    """Nobody has survived them. (The last stage is everybody's.)"""
    (tmp_path / "a.py").write_text("1")
    monkeypatch.setattr(mutants, "stages_of", lambda *_: [["a"], ["b"]])
    monkeypatch.setattr(mutants, "fails_as_it_is", lambda stage, *_: stage == ("b",))
    monkeypatch.setattr(mutants, "what_fails", lambda stage, *_: list(stage) if stage[0] == failing else [])
    assert dies(Mutant(Path("a.py"), 0, 1, "2", 1, "1"), tmp_path, 1) is found


def test_of_whom_nobody_knows_it_is_said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    both = [Mutant(Path("a.py"), 0, 1, "False", 1, "True", place) for place in ("told(it)", "heard(it)")]
    monkeypatch.setattr(mutants, "drawn", lambda *_: both)
    monkeypatch.setattr(mutants, "NEEDED", ())
    monkeypatch.setattr(mutants, "dies", lambda mutant, *_, **__: True if mutant.place == "told(it)" else None)
    assert mutants.main([]) == 1
    assert "1 of 1 died" in (told := capsys.readouterr().out)
    assert "Of 1 nobody knows" in told


@pytest.mark.parametrize("text, dead", [("a - b", True), ("b + a", False)])
def test_dead_or_alive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, dead: bool) -> None:
    (tmp_path / "routing").mkdir()
    (tmp_path / "tests").mkdir()
    source = "def add(a, b):\n    return a + b\n"
    (tmp_path / "routing" / "add.py").write_text(source)
    (tmp_path / "tests" / "test_add.py").write_text(
        "from " + "routing.add import add\n\ndef test_it():\n    assert add(2, 1) == 3\n"
    )
    (tmp_path / "pyproject.toml").write_text('[tool.pytest.ini_options]\npythonpath = ["."]\n')
    monkeypatch.setattr(mutants, "stages_of", lambda *_: [["tests/test_add.py"]])
    start = source.index("a + b")
    mutant = Mutant(Path("routing/add.py"), start, start + 5, text, 2, "a + b")
    assert dies(mutant, tmp_path, 100) is dead
    assert (tmp_path / "routing" / "add.py").read_text() == source
