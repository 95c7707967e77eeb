"""A11: damaged session files load, or are set aside with one warning; never a crash, never a silent reset."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from routecodex.routing.sessions.state import EMPTY, Obeyed, Sticky, StopMessage
from routecodex.routing.sessions.store import FileStore, SessionKey
from tests.conftest import LONG
from tests.sheet import seen

ROUNDS = 10_000 if LONG else 200
KEY = SessionKey("session", "spoiled")
OTHER = SessionKey("session", "whole")
STATE = EMPTY.with_(
    sticky=Sticky("glm", "primary", "glm-4.7"),
    allowed=("glm", "openai"),
    disabled_keys=(("openai", "backup"),),
    stop=StopMessage("weiter, bitte – 继续", 9, used=4, updated_at_ms=1_794_988_303_492),
    obeyed=(Obeyed("0123456789abcdef", "0123", "ended"),),
)


def _spoil(raw: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(raw))
    match chance.randrange(4):
        case 0:
            return raw[:at]
        case 1:
            return raw[:at] + bytes([raw[at] ^ (1 << chance.randrange(8))]) + raw[at + 1 :]
        case 2:
            return raw[:at] + chance.randbytes(chance.randrange(1, 8)) + raw[at:]
        case _:
            return raw[:at] + bytes(min(len(raw) - at, 512))


@pytest.mark.parametrize("seed", range(4))
def test_a11_byte_flips_and_truncations(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    first = FileStore(tmp_path)
    first.update(KEY, lambda _: STATE)
    first.update(OTHER, lambda _: STATE)
    path = tmp_path / "session-spoiled.json"
    corrupt = tmp_path / "session-spoiled.json.corrupt"
    raw = path.read_bytes()
    for _ in range(ROUNDS // 4):
        spoiled = _spoil(raw, chance)
        path.write_bytes(spoiled)
        store = FileStore(tmp_path)
        state = store.load(KEY)
        assert store.load(OTHER) == STATE
        if state != STATE:
            assert len(store.warnings) == 1, spoiled
        assert len(store.warnings) <= 1
        if corrupt.exists():
            assert corrupt.read_bytes() == spoiled
            assert len(store.warnings) == 1
            corrupt.unlink()
        assert FileStore(tmp_path).load(KEY) == (EMPTY if state.empty else state)
    seen("A11", f"{ROUNDS // 4:,} spoiled files (of four such runs): 0 crashes, 0 silent losses")


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"[" * 1_000_000, id="deep list"),
        pytest.param(b'{"version":1,"state":' + b'{"a":' * 100_000, id="deep object"),
        pytest.param(b'{"version":1,"state":{"stopMessageUsed":' + b"9" * 1_000_000 + b"}}", id="endless number"),
        pytest.param(b"\x00" * 4096, id="zeros"),
        pytest.param(b'"' + b"x" * 5_000_000, id="far too large"),
        pytest.param(b'{"version":1,"state":[]}', id="state of a wrong type"),
        pytest.param(b"null", id="null"),
        pytest.param(b'\xff\xfe{"version":1}', id="another encoding"),
    ],
)
def test_hostile_contents_are_set_aside(tmp_path: Path, raw: bytes) -> None:
    path = tmp_path / "session-spoiled.json"
    path.write_bytes(raw)
    store = FileStore(tmp_path)
    assert store.load(KEY) == EMPTY
    assert store.update(KEY, lambda _: STATE) == STATE
    assert FileStore(tmp_path).load(KEY) == STATE
    assert len(store.warnings) <= 1


def test_a_damaged_file_that_cannot_be_repaired_costs_no_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = FileStore(tmp_path)
    store.update(KEY, lambda _: STATE)
    path = tmp_path / "session-spoiled.json"
    path.write_bytes(path.read_bytes()[:-30])

    def refuse(*_: object) -> None:
        raise PermissionError(13, "no")

    monkeypatch.setattr("os.replace", refuse)
    again = FileStore(tmp_path)
    assert again.load(KEY).sticky == STATE.sticky
    assert again.warnings
