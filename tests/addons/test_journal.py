"""Lines that come together leave as one record; the last ones are not lost. Files for those who ask for them."""

from __future__ import annotations

import asyncio
import logging
import os
import re
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from mitmproxy.addons import clientplayback
from mitmproxy.proxy import server

from routecodex.addons import journal


def test_lines_leave_together(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "PAUSE_S", 0.02)
    caplog.set_level(logging.INFO)

    async def write() -> None:
        one = journal.Journal()
        one.note("first")
        one.note("second % {odd}")
        assert caplog.records == []
        await asyncio.sleep(0.06)
        one.note("third")
        one.write()
        await asyncio.sleep(0.06)

    asyncio.run(write())
    said = [[line.partition(" ") for line in record.getMessage().splitlines()] for record in caplog.records]
    assert [[words for _, _, words in lines] for lines in said] == [["first", "second % {odd}"], ["third"]]
    assert all(re.fullmatch(r"\d\d:\d\d:\d\d", when) for lines in said for when, _, _ in lines), "each says when it was"


def test_a_record_that_somebody_keeps_is_short(caplog: pytest.LogCaptureFixture) -> None:
    """mitmweb holds ten thousand of them: with all lines of a busy moment in each, a hundred megabytes."""
    caplog.set_level(logging.INFO)
    lines = ["x" * size for size in (2 * journal.KEPT_CHARACTERS, *[journal.KEPT_CHARACTERS // 4] * 9, 1)]

    async def write(is_kept: bool) -> list[str]:
        one = journal.Journal(is_kept=lambda: is_kept)
        caplog.clear()
        for line in lines:
            one.note(line)
        one.write()
        return [record.getMessage() for record in caplog.records]

    together, apart = asyncio.run(write(False)), asyncio.run(write(True))
    assert len(together) == 1
    for said in (together, apart):
        assert [line.partition(" ")[2] for record in said for line in record.splitlines()] == lines
    assert [len(record) <= journal.KEPT_CHARACTERS for record in apart] == [False, *[True] * (len(apart) - 1)]
    assert len(apart) == 4


def test_details_are_for_those_who_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    one = journal.Journal()
    heard: list[str] = []
    monkeypatch.setattr(one, "note", heard.append)
    one.detail(lambda: "first")
    one.verbose = True
    one.detail(lambda: "second")
    assert heard == ["second"]


def test_the_line_of_a_call() -> None:
    line = journal.CallLine("derived-0123456789", "codex", "gpt-5", 10.0)
    assert line.say("glm.glm-4.7 · default: it", "200", 12.34) == "01234567 codex gpt-5 → glm.glm-4.7 · default: it · 200 · 2.3 s"
    long = line.say("x", "200, cut", 10.0, tokens=(12, 3), rounds=2)
    assert long == "01234567 codex gpt-5 → x · 200, cut · 12+3 tokens · 2 rounds · 0.0 s"
    assert journal.CallLine().say("refused: no", "400", 0.0) == "- - → refused: no · 400 · 0.0 s"


@pytest.mark.parametrize("name", [server.logger.name, clientplayback.logger.name])
def test_connections_are_told_to_those_who_ask(name: str) -> None:
    """Those of clients, and those of later rounds."""
    record = logging.LogRecord(name, logging.INFO, "", 0, "client connect", (), None)
    warning = logging.LogRecord(name, logging.WARNING, "", 0, "TLS handshake failed", (), None)
    mitmproxys = logging.getLogger(name)
    try:
        journal.tell_connections(False)
        journal.tell_connections(False)
        assert (bool(mitmproxys.filter(record)), bool(mitmproxys.filter(warning))) == (False, True)
        journal.tell_connections(True)
        assert mitmproxys.filter(record)
        journal.tell_connections(False)
    finally:
        journal.forget_connections()
    assert mitmproxys.filter(record), "another proxy's log in this process is its own"


def test_a_debug_file_is_private_and_grows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "PAUSE_S", 0.02)
    path = tmp_path / "made" / "debug.log"

    async def write() -> None:
        file = journal.DebugFile(path)
        file.note("first ünï \udc80")
        file.note("second")
        await asyncio.sleep(0.1)
        assert len(path.read_text().splitlines()) == 2
        file.note("the last one")
        file.close()

    asyncio.run(write())
    lines = path.read_text().splitlines()
    assert [line.partition(" ")[2] for line in lines] == ["first ünï \\udc80", "second", "the last one"]
    assert all(datetime.fromisoformat(line.partition(" ")[0]).tzinfo is not None for line in lines)
    if os.name != "nt":
        assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_a_debug_file_makes_way_for_a_new_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "LARGEST", 200)
    file = journal.DebugFile(tmp_path / "debug.log")

    async def write() -> None:
        for number in range(20):
            file.note(f"line {number}")
            file.close()

    asyncio.run(write())
    sizes = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
    assert set(sizes) == {"debug.log", "debug.log.1"}
    assert max(sizes.values()) < 300
    assert "line 19" in file.path.read_text()


def test_a_debug_file_of_two_processes_makes_way_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that comes second finds a new file there, which is not full: it does not put it in the old one's place."""
    monkeypatch.setattr(journal, "LARGEST", 200)
    one, other = journal.DebugFile(tmp_path / "debug.log"), journal.DebugFile(tmp_path / "debug.log")
    first = [lambda: one._append(["x" * 300 + "\n", "full\n"]), lambda: one._append(["new\n"])]
    as_ever = os.fdopen

    def opened(*given: Any) -> Any:
        meanwhile, first[:] = first[:], []
        file = as_ever(*given)
        for act in meanwhile:
            act()
        return file

    monkeypatch.setattr(os, "fdopen", opened)
    other._append(["y" * 300 + "\n"])
    assert (tmp_path / "debug.log").read_text() == "new\n"
    assert len((tmp_path / "debug.log.1").read_text().splitlines()) == 3


def test_a_debug_file_that_cannot_be_written_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "folder").write_text("in the way")
    file = journal.DebugFile(tmp_path / "folder" / "debug.log")

    async def write() -> None:
        for _ in range(3):
            file.note("lost")
            file.close()

    asyncio.run(write())
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == ["debug.log cannot be written"]


@pytest.mark.skipif(not hasattr(os, "O_NOFOLLOW"), reason="this system follows every link")
def test_a_debug_file_follows_no_link(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("mine")
    (tmp_path / "debug.log").symlink_to(tmp_path / "precious")
    file = journal.DebugFile(tmp_path / "debug.log")

    async def write() -> None:
        file.note("lost")
        file.close()

    asyncio.run(write())
    assert (tmp_path / "precious").read_text() == "mine"


def test_nothing_that_was_said_does_something_to_a_terminal(caplog: pytest.LogCaptureFixture) -> None:
    """A model's, tool's or person's name, a provider's error: in a line of calls, or in a warning of whoever."""
    said: list[str] = []
    one = journal.Journal(said.append)
    one.note("asked \x1b]0;mine\x07 → \x9b31m\u202e")
    one.answered(journal.CallLine(user="eve\x1b[8m", session="a\nb", client="c", asked="m\r"), "x\ny", "200", 1.0)
    logging.getLogger("routecodex").warning("from %s", "a\x1b[2Jb\r")
    logging.getLogger("routecodex").warning("two\nlines")
    assert said[0].endswith("asked \\x1b]0;mine\\x07 → \\x9b31m\\u202e")
    assert said[1].endswith(" eve\\x1b[8m a\\x0ab c m\\x0d → x\\x0ay · 200 · 1.0 s")
    assert [record.getMessage() for record in caplog.records] == ["from a\\x1b[2Jb\\x0d", "two\nlines"]
