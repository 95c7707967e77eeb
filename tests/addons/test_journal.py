"""Lines that come together leave as one record; the last ones are not lost."""

from __future__ import annotations

import asyncio
import logging

import journal
import pytest


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
    assert [record.getMessage() for record in caplog.records] == ["first\nsecond % {odd}", "third"]
