"""Files that a stopMessage names: read under one folder, refused everywhere else."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

import pytest

from routecodex.routing.tags.texts import LONGEST, TextRefused, read_text


@pytest.fixture
def base(tmp_path: Path) -> Path:
    base = tmp_path / "home"
    (base / "stopMessage").mkdir(parents=True)
    (base / "stopMessage" / "message1.md").write_text("第一行\nsecond line\n", encoding="utf-8")
    (tmp_path / "secret.md").write_text("secret")
    return base


def test_q11_a_file_is_read(base: Path) -> None:
    opened: list[str] = []
    _watch(opened)
    assert read_text("stopMessage/message1.md", base) == "第一行\nsecond line"
    _watch(None)
    assert str(base.resolve() / "stopMessage" / "message1.md") in opened


def test_q13_as_it_is_now(base: Path) -> None:
    read_text("stopMessage/message1.md", base)
    (base / "stopMessage" / "message1.md").write_text("new")
    assert read_text("./stopMessage/message1.md", base) == "new"


def test_a_link_that_stays_inside_is_followed(base: Path) -> None:
    (base / "link.md").symlink_to("stopMessage/message1.md")
    assert read_text("link.md", base).startswith("第一行")


def test_a_base_behind_a_link(base: Path, tmp_path: Path) -> None:
    (tmp_path / "other").symlink_to(base)
    assert read_text("stopMessage/message1.md", tmp_path / "other").startswith("第一行")


NAMES = [
    *("", "/etc/passwd", "//etc/passwd", "../secret.md", "stopMessage/../../secret.md", "stopMessage/../stopMessage/message1.md"),
    *(
        "C:/x",
        "C:x",
        "\\\\server\\share\\x",
        "..\\secret.md",
        "\\etc",
        "a\0b",
        "~/x",
        "%2e%2e/secret.md",
        "..",
        ".",
        "stopMessage",
    ),
    *("missing.md", "stopMessage/message1.md/x", "x" * 10_000, "CON", "\ud800", "out.md", "out/secret.md", "loop.md", "long.md"),
    *("binary.md", "empty.md", "blank.md"),
]


@pytest.mark.parametrize("name", [pytest.param(name, id=f"Q12-{name[:20]!a}") for name in NAMES])
def test_everything_else_is_refused(name: str, base: Path, tmp_path: Path) -> None:
    (base / "out.md").symlink_to(tmp_path / "secret.md")
    (base / "out").symlink_to(tmp_path)
    (base / "loop.md").symlink_to("loop.md")
    (base / "long.md").write_text("x" * (LONGEST + 1))
    (base / "binary.md").write_bytes(b"\xff\xfe\x00")
    (base / "empty.md").write_bytes(b"")
    (base / "blank.md").write_bytes(b" \n")
    opened: list[str] = []
    _watch(opened)
    try:
        with pytest.raises(TextRefused) as refused:
            read_text(name, base)
    finally:
        _watch(None)
    assert str(tmp_path) not in str(refused.value)
    assert [path for path in opened if not path.startswith(str(base.resolve()))] == []


def test_16_kib_are_read(base: Path) -> None:
    (base / "long.md").write_text("x" * LONGEST)
    assert len(read_text("long.md", base)) == LONGEST


if hasattr(os, "mkfifo"):

    def test_a_fifo_is_refused_without_waiting(base: Path) -> None:
        os.mkfifo(base / "fifo")
        refusals: list[TextRefused] = []

        def read() -> None:
            try:
                read_text("fifo", base)
            except TextRefused as refused:
                refusals.append(refused)

        opened: list[str] = []
        _watch(opened)
        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        reader.join(5)
        _watch(None)
        assert str(base.resolve() / "fifo") not in opened
        assert len(refusals) == 1


def test_a_missing_base_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TextRefused):
        read_text("x.md", tmp_path / "nowhere")


_watcher: list[list[str] | None] = [None]


def _watch(opened: list[str] | None) -> None:
    _watcher[0] = opened


def _hook(event: str, arguments: tuple[object, ...]) -> None:
    opened = _watcher[0]
    if event == "open" and opened is not None and isinstance(arguments[0], str | os.PathLike):
        opened.append(os.fspath(arguments[0]))


sys.addaudithook(_hook)
