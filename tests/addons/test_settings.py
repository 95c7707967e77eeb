"""Where a server keeps its sessions, and what it does with a configuration that changes."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest

from routecodex.addons import settings
from routecodex.routing.config import Config
from routecodex.routing.control.elsewhere import Elsewhere


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
    options = SimpleNamespace(listen_port=option, routecodex_server="")
    monkeypatch.setattr(settings, "ctx", SimpleNamespace(master=master, options=options))
    assert settings.server_id() == expected
    options.routecodex_server = "user"
    assert settings.server_id() == "user", "a proxy whose port may change is named"


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


# ---- a file that changes ----

SMALL = "virtualrouter:\n  routing:\n    default: [origin]\n"


@pytest.fixture
def loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> settings.Settings:
    monkeypatch.setattr(settings.stand_in, "lift", lambda: None)
    monkeypatch.setattr(settings.people, "are_asked", lambda: True)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mitm-config.yaml").write_text(SMALL)
    made = settings.Settings(tmp_path, SimpleNamespace(note=lambda line: None))  # type: ignore[arg-type]
    made.load("")
    return made


def test_the_loop_goes_on_while_a_file_is_read(loaded: settings.Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may hold thousands of models."""
    went_on, read = threading.Event(), settings.configuration.load

    def slowly(path: Path, env: Mapping[str, str]) -> Config:
        assert went_on.wait(60), "nothing else had its turn"
        return read(path, env)

    monkeypatch.setattr(settings.configuration, "load", slowly)
    assert loaded.path is not None
    loaded.path.write_text(SMALL + "proxy: {allowRemoteClients: true}\n")

    usual = sys.getswitchinterval()

    async def both() -> None:
        reloading = asyncio.create_task(loaded._reload())
        for _ in range(20):
            await asyncio.sleep(0)
        assert not loaded.allows_remote_clients
        assert sys.getswitchinterval() < usual
        assert not gc.isenabled(), "looking through all that is being made would stop everybody"
        went_on.set()
        await reloading

    asyncio.run(both())
    assert loaded.allows_remote_clients
    assert sys.getswitchinterval() == usual
    assert gc.isenabled()


def test_a_key_that_changes_while_the_file_is_read_is_read_again(
    loaded: settings.Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    key, read = tmp_path / "key", settings.configuration.load
    key.write_text("the first")
    provider = f'{{protocol: openai-chat, baseURL: "https://p.example/v1", auth: {{keys: [{{value: "${{file:{key}}}"}}]}}}}'
    assert loaded.path is not None
    loaded.path.write_text(SMALL + f"  providers: {{p: {provider}}}\n")
    asyncio.run(loaded._reload())
    assert loaded._stamps[key] == settings._stamp(key)

    def meanwhile(path: Path, env: Mapping[str, str]) -> Config:
        config = read(path, env)
        key.write_text("another one")
        return config

    monkeypatch.setattr(settings.configuration, "load", meanwhile)
    asyncio.run(loaded._reload())
    assert loaded._stamps[key] != settings._stamp(key), "nobody looks at it any more"


def test_where_sessions_are_kept_is_known_before_the_first_call(
    loaded: settings.Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A command may ask as soon as the proxy listens: what lies in Redis is not nothing."""
    pytest.importorskip("redis")
    server = SimpleNamespace(listen_addrs=lambda: [("127.0.0.1", 8080)])
    monkeypatch.setattr(settings, "ctx", SimpleNamespace(master=SimpleNamespace(addons={"proxyserver": server})))
    monkeypatch.setattr(settings, "session_folder", lambda: tmp_path / "sessions")
    monkeypatch.setattr(settings, "server_id", lambda: "a")
    monkeypatch.setattr(settings, "web_is_open", lambda: False)
    assert loaded.path is not None
    path = loaded.path

    def written(more: str = "") -> None:
        path.write_text(SMALL + f'sessions: {{store: "redis://127.0.0.1:1"{more}}}\n')
        loaded.load("")

    async def first() -> None:
        written()
        assert isinstance(loaded.served().kept, Elsewhere)
        shared = loaded._shared
        assert shared is not None
        assert (shared.refuses, shared.store.retention_s) == (True, 30 * 86_400)
        written(", onStoreLost: local, retentionDays: 1")
        assert (shared.refuses, shared.store.retention_s) == (False, 86_400), "what is written holds from then on"

    asyncio.run(first())


def test_who_asks_how_it_is_hears_of_a_file_that_does_not_hold(loaded: settings.Settings) -> None:
    assert loaded.path is not None
    assert loaded._ill() == ""
    loaded.path.write_text(SMALL + "proxi: {}\nsession: {}\n")
    asyncio.run(loaded._reload())
    assert loaded._ill() == (
        "The changed configuration is not used, the old one stays in force: "
        "mitm-config.yaml:4: proxi: unknown key (did you mean proxy?) (and 1 more: `routecodex check`)"
    )
    loaded.path.unlink()
    assert loaded._ill() == f"{loaded.path} is gone: what stood in it stays in force"
    loaded.path.write_text(SMALL)
    asyncio.run(loaded._reload())
    assert loaded._ill() == ""


def test_another_file_that_was_chosen_meanwhile_stays(loaded: settings.Settings, tmp_path: Path) -> None:
    other = tmp_path / "other.yaml"
    other.write_text(SMALL + "proxy: {allowRemoteClients: true}\n")

    async def both() -> None:
        reloading = asyncio.create_task(loaded._reload())
        await asyncio.sleep(0)
        loaded.load(str(other))
        await reloading

    asyncio.run(both())
    assert loaded.allows_remote_clients
    assert set(loaded._stamps) == {other, other.parent / ".env"}, "that one is watched"


def test_an_addon_that_is_loaded_anew_does_not_read_the_same_text_again(
    loaded: settings.Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[str] = []
    load = sys.modules["routecodex.routing.config.load"]  # the package itself calls its function by that name
    parse = load.read
    monkeypatch.setattr(load, "read", lambda text, *, name, env: parsed.append(text) or parse(text, name=name, env=env))
    assert loaded.path is not None
    for _ in range(3):
        loaded.load("")
    assert len(parsed) == 1, "pytest itself changes the environment before a test"
    parsed.clear()
    loaded.path.write_text(SMALL + "# another\n")
    loaded.load("")
    monkeypatch.setenv("ROUTECODEX_CLOCK_NTP", "0")
    loaded.load("")
    assert parsed == [SMALL + "# another\n"] * 2, "the environment counts as well"
