"""S6: no id that a client sends opens a file outside the sessions' folder."""

from __future__ import annotations

import random
import sys
from pathlib import Path

from routecodex.routing.clients.identify import identify
from routecodex.routing.sessions.state import EMPTY
from routecodex.routing.sessions.store import FileStore, SessionKey
from tests.routing.sessions.calls import messages_call, user
from tests.sheet import seen

NAMED = (
    *(
        "../../etc/passwd",
        "..",
        ".",
        "/etc/passwd",
        "//server/share",
        "\\\\server\\share\\x",
        "C:\\x",
        "c:x",
        "~/.ssh/id",
        "~root",
    ),
    *("%2e%2e%2fx", "%00", "a\x00b", "a\nb", "CON", "nul", "AUX.json", "COM1", "lpt9.txt", "x" * 10_240, "é" * 300, "\ud800", ""),
    *(
        ".hidden",
        "-rf",
        "a/b/../../c",
        "locks",
        "locks/00.lock",
        "clock/x",
        "ntp-state",
        "x.tmp",
        "x.corrupt",
        "..\\..\\x",
        "a:b",
        "\u202e",
    ),
    *(
        "file:///etc/passwd",
        "$(id)",
        "`id`",
        "|id",
        "; rm -rf /",
        "{}",
        "*",
        "?",
        "<>",
        "\x7f",
        "\x1b[2J",
        " ",
        "x ",
        "x.",
        "...",
    ),
)


def _hostile_ids() -> list[str]:
    chance = random.Random(6)
    pieces = ("..", "/", "\\", "\x00", "%2e", "a", ".", "~", ":", "é", "CON", "-", "\n", "A")
    mixed = {"".join(chance.choices(pieces, k=chance.randrange(1, 12))) for _ in range(400)} - set(NAMED)
    return [*NAMED, *sorted(mixed)][:200]


_opened: list[object] = []
_watching = False


def _audit(event: str, arguments: tuple[object, ...]) -> None:
    if _watching and event in ("open", "os.rename", "os.remove", "os.mkdir"):
        _opened.append(arguments[0])


sys.addaudithook(_audit)


def test_s6_two_hundred_hostile_ids(tmp_path: Path) -> None:
    global _watching
    ids = _hostile_ids()
    assert len(ids) == len(set(ids)) == 200
    folder = tmp_path / "sessions"
    store = FileStore(folder)
    _opened.clear()
    _watching = True
    try:
        for n, id in enumerate(ids):
            key = SessionKey("session", id)
            store.update(key, lambda state, n=n: state.with_(allowed=(str(n),)))  # type: ignore[misc]
        restarted = FileStore(folder)
        states = [restarted.load(SessionKey("session", id)) for id in ids]
    finally:
        _watching = False
    assert states == [EMPTY.with_(allowed=(str(n),)) for n in range(200)]
    assert len(_opened) >= 600
    outside = [path for path in _opened if isinstance(path, str | bytes) or hasattr(path, "__fspath__")]
    outside = [
        path for path in outside if Path(str(path)).resolve() != folder and folder not in Path(str(path)).resolve().parents
    ]
    assert outside == []
    assert sum(path.suffix == ".json" for path in folder.iterdir()) == 200
    seen("S6", f"{len(ids)} hostile ids, {len(_opened):,} opens, {len(outside)} outside")


def test_s6_hostile_ids_from_headers_and_bodies(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    for id in _hostile_ids():
        caller = identify(
            messages_call(user("hi"), metadata={"sessionId": id}), {"x-routecodex-session": id}, "/v1/messages", "h"
        )
        assert caller.session is None or len(caller.session) <= 512
        if caller.session is not None:
            assert store.load(SessionKey("session", caller.session)) == EMPTY
