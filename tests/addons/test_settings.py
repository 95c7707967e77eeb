"""Where a server keeps its sessions, and what it does with a configuration that changes."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from routecodex.addons import settings


@pytest.mark.parametrize(
    "addresses, option, expected",
    [
        ([("127.0.0.1", 8080)], None, "127.0.0.1_8080"),
        ([("0.0.0.0", 8080)], None, "127.0.0.1_8080"),
        ([("::", 8080, 0, 0)], None, "127.0.0.1_8080"),
        ([("", 9)], None, "127.0.0.1_9"),
        ([("localhost", 9)], None, "127.0.0.1_9"),
        ([("192.168.1.5", 9)], None, "192.168.1.5_9"),
        ([("::1", 9, 0, 0)], None, "__1_9"),
        ([("fe80::1%eth0", 9, 0, 0)], None, "fe80__1_eth0_9"),
        ([("../../etc", 9)], None, ".._.._etc_9"),
        ([("127.0.0.1", 1), ("127.0.0.1", 2)], None, "127.0.0.1_1"),
        ([], 8085, "127.0.0.1_8085"),
        ([], None, "127.0.0.1_8080"),
    ],
)
def test_s10_the_name_of_a_server(
    monkeypatch: pytest.MonkeyPatch, addresses: list[tuple[object, ...]], option: int | None, expected: str
) -> None:
    server = SimpleNamespace(listen_addrs=lambda: addresses)
    master = SimpleNamespace(addons={"proxyserver": server})
    monkeypatch.setattr(settings, "ctx", SimpleNamespace(master=master, options=SimpleNamespace(listen_port=option)))
    assert settings.server_id() == expected


@pytest.mark.parametrize(
    "session, user, expected",
    [
        ("/one/place", "/user", "/one/place"),
        ("/one/place", None, "/one/place"),
        (None, "/user", "/user/sessions/ID"),
        ("", "/user", "/user/sessions/ID"),
        (None, None, "HOME/.routecodex/sessions/ID"),
        ("", "", "HOME/.routecodex/sessions/ID"),
    ],
)
def test_where_sessions_lie(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, session: str | None, user: str | None, expected: str
) -> None:
    monkeypatch.setattr(settings, "server_id", lambda: "ID")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    for name, value in (("ROUTECODEX_SESSION_DIR", session), ("ROUTECODEX_USER_DIR", user)):
        if value is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, value)
    assert settings.session_folder() == Path(expected.replace("HOME", str(tmp_path)))


def test_before_anything_is_read_nobody_from_outside_is_served(tmp_path: Path) -> None:
    empty = settings.Settings(tmp_path, SimpleNamespace(note=lambda line: None))  # type: ignore[arg-type]
    assert not empty.loaded
    assert not empty.allows_remote_clients
    assert "api.anthropic.com" not in empty.hosts
