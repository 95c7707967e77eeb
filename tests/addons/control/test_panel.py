"""The control socket's own life: who may have it, what is taken away, and what is said where there is none."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from routecodex.addons.control import panel
from routecodex.addons.control.say import Failed
from routecodex.addons.control.servers import Gone, Server, chosen, known, running
from routecodex.addons.control.sockets import LONGEST_PATH, is_too_long, socket_path
from routecodex.addons.journal import Journal
from routecodex.routing.control.verbs import Served
from routecodex.routing.storage.lock import FileLock
from tests.routing.house import House


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="p-") as made:
        found = Path(made) / "sessions" / "a"
        monkeypatch.setenv("ROUTECODEX_USER_DIR", made)
        monkeypatch.delenv("ROUTECODEX_SESSION_DIR", raising=False)
        monkeypatch.setattr(panel, "session_folder", lambda: found)
        monkeypatch.setattr(panel, "server_id", lambda: "a")
        yield found


def settings_of(folder: Path) -> Any:
    desk = House(folder).desk
    return SimpleNamespace(served=lambda: Served("a", 1, (), "c", folder, desk), desk=desk, journal=Journal(), loaded=True)


def test_it_is_its_owners_and_goes_with_the_server(folder: Path) -> None:
    async def live() -> dict[str, Any]:
        served = panel.Panel(settings_of(folder))
        served.open()
        served.open()  # once is enough
        assert stat.S_IMODE(socket_path(folder, "a").stat().st_mode) == 0o600
        said = await asyncio.to_thread(Server("a", folder).ask, "status")
        assert [server.id for server, _ in await asyncio.to_thread(running)] == ["a"]
        served.close()
        return said

    assert asyncio.run(live())["server"] == "a"
    assert not socket_path(folder, "a").exists()
    with pytest.raises(Gone):
        Server("a", folder).ask("status")


def test_what_a_crash_left_is_taken_away_but_never_a_living_servers(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(socket_path(folder, "a")))

    async def live() -> None:
        first, second = panel.Panel(settings_of(folder)), panel.Panel(settings_of(folder))
        first.open()
        with caplog.at_level(logging.WARNING):
            second.open()
        assert "Another server of the name a" in caplog.text
        second.close()
        assert (await asyncio.to_thread(Server("a", folder).ask, "status"))["server"] == "a", "the first one's socket is there"
        first.close()

    asyncio.run(live())
    with FileLock(folder / "a.lock"):
        pass


def test_a_path_that_is_too_long_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    long = folder / ("x" * LONGEST_PATH)
    monkeypatch.setattr(panel, "session_folder", lambda: long)
    assert is_too_long(socket_path(long, "a"))
    with caplog.at_level(logging.WARNING):
        panel.Panel(settings_of(folder)).open()
    assert "ROUTECODEX_USER_DIR" in caplog.text
    assert not long.exists()


def test_a_system_without_such_sockets_is_told(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delattr(socket, "AF_UNIX")
    with caplog.at_level(logging.WARNING):
        panel.Panel(settings_of(folder)).open()
    assert "no Unix sockets" in caplog.text
    with pytest.raises(Failed, match="no Unix sockets"):
        running()


def test_a_wrong_question_is_answered_without_any_harm(folder: Path) -> None:
    async def live() -> list[dict[str, Any]]:
        served = panel.Panel(settings_of(folder))
        questions = [b"", b"x\n", b"{}\n", json.dumps({"verb": "set routing", "orders": [["sticky", "nobody.x"]]}).encode()]
        return [dict(await served.answer(question)) for question in questions]

    assert all(said["error"] for said in asyncio.run(live()))


def test_what_is_changed_by_hand_is_noted_and_what_is_only_asked_is_not(folder: Path) -> None:
    async def live() -> list[str]:
        settings, lines = settings_of(folder), list[str]()
        settings.journal = Journal(lines.append)
        served = panel.Panel(settings)
        clear = {"verb": "clear sessions"}
        for question in ({"verb": "status"}, {"verb": "sessions"}, clear, {**clear, "try": True}):
            assert "error" not in await served.answer(json.dumps(question).encode())
        return lines

    (line,) = asyncio.run(live())
    assert "by hand: erased nothing" in line


def test_who_is_known_and_who_is_not(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert known() == []
    (folder.parent / "b").mkdir(parents=True)
    assert [server.id for server in known()] == ["b"]
    with pytest.raises(Failed, match="no server runs"):
        chosen("")
    with pytest.raises(Failed, match="no server b runs"):
        chosen("b")
    monkeypatch.setenv("ROUTECODEX_SESSION_DIR", str(folder.parent))
    (folder.parent / "routing-127.0.0.1_1.json").write_text("{}")
    assert [(server.id, server.folder) for server in known()] == [("127.0.0.1_1", folder.parent)]


def test_a_server_whose_configuration_cannot_be_used_says_so(folder: Path) -> None:
    async def live() -> dict[str, Any]:
        settings = settings_of(folder)
        settings.loaded = False
        return dict(await panel.Panel(settings).answer(b'{"verb": "status"}'))

    assert "routecodex check" in asyncio.run(live())["error"]
