"""What several tests count together is told once, for each row that asks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.sheet import RECORD, Tally


def test_it_is_told_at_the_end_and_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(RECORD, str(tmp_path / "seen"))
    monkeypatch.setattr(Tally, "_all", [])
    tally, silent = Tally("A1 A2", "{calls:,} calls, {lost} lost"), Tally("A3", "{calls}")
    for _ in range(2):
        tally.update(calls=600)
    Tally.tell()
    Tally.tell()
    assert not silent
    told = [json.loads(line) for line in (tmp_path / "seen").read_text().splitlines()]
    assert [(one["row"], one["figure"]) for one in told] == [("A1", "1,200 calls, 0 lost"), ("A2", "1,200 calls, 0 lost")]
