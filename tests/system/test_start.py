"""Starting: with no options at all, with wrong ones, twice on one machine, and again after an end."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import stat
import threading
import time
from pathlib import Path

import pytest

from tests.rig.client import Answer, Route, call
from tests.rig.provider import FakeProvider
from tests.rig.proxy import ROOT, SCRIPT, DidNotStart, Mitmdump, free_port
from tests.sheet import Tally
from tests.system.tool import CONFIG

pytestmark = pytest.mark.system

ANTHROPIC = "https://api.anthropic.com"
STICKY = "<**!six.m**> hello"


def ask(proxy: Mitmdump, text: str, session: str = "s-1") -> Answer:
    body = {"model": "claude-x", "max_tokens": 9, "messages": [{"role": "user", "content": text}]}
    headers = {"x-api-key": "sk-client", "x-session-id": session}
    return call(ANTHROPIC, "/v1/messages", body, proxy=proxy, headers=headers)


def said(answer: Answer) -> str:
    assert answer.status == 200, answer.body
    return str(answer.json["content"][0]["text"])


# ---- no options ----


def test_the_plain_command_line(provider: FakeProvider, tmp_path: Path) -> None:
    """`mitmdump -s addons/routecodex.py` in any folder: the shipped configuration, nothing asked of anybody before its time."""
    provider.forget()
    elsewhere = tmp_path / "some where"
    elsewhere.mkdir()
    with Mitmdump(script=SCRIPT, upstream=provider, cwd=elsewhere, folder=tmp_path / "files", plainly=True) as proxy:
        offered = asyncio.run(_handshake(proxy))
        assert offered == "http/1.1", "HTTP/2 is not offered unless it is asked for"
        assert provider.connections == [], "a provider was connected to before its call was read"
        assert "claude-x was asked: " in said(ask(proxy, "hello"))
        (received,) = provider.calls
        assert b"hello" in received.body
        assert (received.host, received.sni, received.key) == ("api.anthropic.com", "api.anthropic.com", "sk-client")
        said(ask(proxy, "<**echo**> hello"))
        said(ask(proxy, "<**status**>"))
        assert len(provider.calls) == 1
        assert list(elsewhere.iterdir()) == []


async def _handshake(proxy: Mitmdump) -> str | None:
    pipe = await Route(ANTHROPIC, proxy).open("h2", "http/1.1")
    chosen: str | None = pipe.transport.get_extra_info("ssl_object").selected_alpn_protocol()
    pipe.close()
    return chosen


def test_the_script_by_a_relative_path(provider: FakeProvider, tmp_path: Path) -> None:
    provider.forget()
    script = os.path.relpath(SCRIPT, tmp_path)
    with Mitmdump(
        script=script, config=CONFIG, upstream=provider, cwd=tmp_path, folder=tmp_path / "files", plainly=True
    ) as proxy:
        assert "hello" in said(ask(proxy, "<**six.m**> hello"))
    assert provider.calls[0].host == "six.example"


def test_a_configuration_in_the_working_directory_is_nobodys(provider: FakeProvider, tmp_path: Path) -> None:
    """Also where none lies beside the addon: the folder may be a stranger's. One's own under ~/.config counts."""
    provider.forget()
    installed, work, files = tmp_path / "installed", tmp_path / "work", tmp_path / "files"
    for folder in ("addons", "routing"):
        shutil.copytree(ROOT / folder, installed / folder, ignore=shutil.ignore_patterns("__pycache__"))
    work.mkdir()
    (work / "mitm-config.yaml").write_text(CONFIG)
    script = installed / "addons" / "routecodex.py"
    with (
        pytest.raises(DidNotStart, match=r"no mitm-config\.yaml in"),
        Mitmdump(script=script, cwd=work, folder=files, plainly=True),
    ):
        pass
    own = files / "home" / ".config" / "routecodex"
    own.mkdir(parents=True)
    (own / "mitm-config.yaml").write_text(CONFIG)
    with Mitmdump(script=script, upstream=provider, cwd=work, folder=files, plainly=True) as proxy:
        said(ask(proxy, "<**six.m**> hello"))
    assert provider.calls[0].host == "six.example"


# ---- wrong options ----

BROKEN_FILES = {
    "not YAML": ("proxy:\n  timeouts: {idleMs: 5\nx: ]\n", ["mitm-config.yaml:3"]),
    "unknown key": ("proxy:\n  intercepthosts: [api.anthropic.com]\n", ["mitm-config.yaml:2", "intercepthosts"]),
    "wrong type": ("proxy:\n  timeouts:\n    idleMs: soon\n", ["mitm-config.yaml:3", "idleMs"]),
    "not a URL": (
        "virtualrouter:\n  providers:\n    p:\n      protocol: openai-chat\n      baseURL: ftp://x\n      auth: {type: none}\n",
        ["mitm-config.yaml:5", "baseURL"],
    ),
    "route to nothing": ("virtualrouter:\n  routing:\n    default: [nobody.m]\n", ["mitm-config.yaml:3", "nobody"]),
    "not UTF-8 text": ("proxy:\n  # \udcff\n", ["mitm-config.yaml:2"]),
}


@pytest.mark.parametrize("name", BROKEN_FILES)
def test_a_broken_configuration_ends_the_start(tmp_path: Path, name: str) -> None:
    text, expected = BROKEN_FILES[name]
    (tmp_path / "mitm-config.yaml").write_bytes(text.encode("utf-8", "surrogateescape"))
    chosen = [f"routecodex_config={tmp_path / 'mitm-config.yaml'}"]
    with pytest.raises(DidNotStart) as told, Mitmdump(script=SCRIPT, options=chosen, folder=tmp_path / "files"):
        pass
    log = str(told.value)
    assert "ended with 1" in log
    for words in expected:
        assert words in log
    assert log.count("RouteCodex:") == 1, "told once"
    assert "Traceback" not in log


@pytest.mark.parametrize(
    "option, expected",
    [
        ("stream_large_bodies=1m", "stream_large_bodies"),
        ("routecodex_config=/nowhere/at/all.yaml", "/nowhere/at/all.yaml: there is no such file"),
    ],
)
def test_options_that_cannot_be_obeyed_end_the_start(tmp_path: Path, option: str, expected: str) -> None:
    with pytest.raises(DidNotStart) as told, Mitmdump(script=SCRIPT, options=[option], folder=tmp_path):
        pass
    assert "ended with 1" in str(told.value)
    assert f"RouteCodex{' cannot work with' if 'large' in option else ':'} {expected}" in str(told.value)


def test_a_missing_key_is_a_warning_and_the_proxy_starts(provider: FakeProvider, tmp_path: Path) -> None:
    provider.forget()
    config = CONFIG.replace("glm-key-1", '"${NO_SUCH_VARIABLE_HERE}"')
    with Mitmdump(script=SCRIPT, config=config, upstream=provider, folder=tmp_path) as proxy:
        assert "NO_SUCH_VARIABLE_HERE" in proxy.log
        assert said(ask(proxy, "<**glm.glm-4.7**> hello")).endswith("hello")
    assert [received.key for received in provider.calls] == ["glm-key-2"]


# ---- the first moment ----


def test_no_request_slips_through_while_it_starts(provider: FakeProvider, tmp_path: Path) -> None:
    """F24: whoever gets a connection gets the addon."""
    provider.forget()
    port = free_port()
    proxy = Mitmdump(script=SCRIPT, config=CONFIG, upstream=provider, folder=tmp_path, port=port, plainly=True)
    stop = threading.Event()
    statuses: list[int] = []

    def hammer() -> None:
        while not stop.is_set():
            try:
                statuses.append(ask(proxy, "<**six.m**> hello", session="").status)
            except (OSError, ConnectionError):
                time.sleep(0.002)

    thread = threading.Thread(target=hammer)
    thread.start()
    try:
        with proxy:
            time.sleep(0.2)
            stop.set()
            thread.join(10)
    finally:
        stop.set()
    assert statuses.count(200) == len(statuses) > 0
    assert {received.host for received in provider.requests} == {"six.example"}
    assert b"<**" not in provider.all_bytes()


# ---- the session folder ----


def test_the_session_folder_that_is_named(provider: FakeProvider, tmp_path: Path) -> None:
    chosen = tmp_path / "chosen sessions"
    env = {"ROUTECODEX_SESSION_DIR": str(chosen)}
    with Mitmdump(script=SCRIPT, config=CONFIG, upstream=provider, folder=tmp_path / "files", env=env) as proxy:
        said(ask(proxy, STICKY, session="s-named"))
    (file,) = chosen.glob("session-*.json")
    assert "s-named" in file.name
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(chosen.stat().st_mode) == 0o700
    assert not (tmp_path / "files" / "home" / ".routecodex").exists()


def test_s10_two_servers_keep_their_sessions_apart(provider: FakeProvider, tmp_path: Path) -> None:
    """Without a named folder: one for each listening server, below the person's own."""
    provider.forget()
    env = {"ROUTECODEX_SESSION_DIR": "", "ROUTECODEX_USER_DIR": ""}
    home = tmp_path / "home"
    env["HOME"] = env["USERPROFILE"] = str(home)

    def started(name: str) -> Mitmdump:
        return Mitmdump(script=SCRIPT, config=CONFIG, upstream=provider, folder=tmp_path / name, env=env)

    with started("one") as one, started("two") as two:
        said(ask(one, STICKY))
        said(ask(two, "hello"))
        assert [received.host for received in provider.calls] == ["six.example", "api.anthropic.com"]
        folders = {f"127.0.0.1_{proxy.port}" for proxy in (one, two)}
        sessions = home / ".routecodex" / "sessions"
        assert {found.name for found in sessions.iterdir()} <= folders
        (file,) = sessions.rglob("session-*.json")
        assert file.parent.name == f"127.0.0.1_{one.port}"
        assert json.loads(file.read_text())


def test_a_server_on_all_interfaces_has_the_usual_name(provider: FakeProvider, tmp_path: Path) -> None:
    home = tmp_path / "home"
    env = {"ROUTECODEX_SESSION_DIR": "", "ROUTECODEX_USER_DIR": "", "HOME": str(home), "USERPROFILE": str(home)}
    anywhere = ["--listen-host", "0.0.0.0"]
    with Mitmdump(script=SCRIPT, config=CONFIG, upstream=provider, folder=tmp_path / "p", env=env, args=anywhere) as proxy:
        said(ask(proxy, STICKY))
        (file,) = (home / ".routecodex" / "sessions").rglob("session-*.json")
        assert file.parent.name == f"127.0.0.1_{proxy.port}"


def test_s02_state_survives_a_restart(provider: FakeProvider, tmp_path: Path) -> None:
    provider.forget()
    port = free_port()
    for _ in range(2):
        with Mitmdump(script=SCRIPT, config=CONFIG, upstream=provider, folder=tmp_path, port=port) as proxy:
            said(ask(proxy, STICKY if not provider.calls else "and now?"))
            proxy.kill()
    assert [received.host for received in provider.calls] == ["six.example"] * 2


# ---- who may come ----


def own_address() -> str | None:
    """An address of this machine that is not loopback, if it has one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing: only asks which address would be used
        except OSError:
            return None
        found = str(probe.getsockname()[0])
    return None if found.startswith("127.") else found


def _first_answer(address: str, port: int) -> bytes:
    with socket.create_connection((address, port), timeout=60) as sock:
        who = b"Proxy-Authorization: Basic YTpi\r\n"
        sock.sendall(b"CONNECT api.anthropic.com:443 HTTP/1.1\r\nHost: api.anthropic.com:443\r\n" + who + b"\r\n")
        try:
            return sock.recv(200)
        except ConnectionError:
            return b""


TALLY = Tally("S8", "{served} addresses of this machine, or of people with names, served, {refused} refused: 0 otherwise")


@pytest.mark.parametrize("allowed", [False, True])
def test_s8_only_this_machine_is_served(provider: FakeProvider, tmp_path: Path, allowed: bool) -> None:
    config = CONFIG.replace("proxy:\n", f"proxy:\n  allowRemoteClients: {str(allowed).lower()}\n", 1)
    everywhere, asking = ["--listen-host", "0.0.0.0"], ["proxyauth=any"] if allowed else []
    with Mitmdump(script=SCRIPT, config=config, upstream=provider, folder=tmp_path, args=everywhere, options=asking) as proxy:
        places = {"127.0.0.1": True, "127.0.0.2": True}
        if (address := own_address()) is not None:
            places[address] = allowed
        for place, served in places.items():
            assert (b" 200 " in _first_answer(place, proxy.port)) == served, place
            TALLY["served" if served else "refused"] += 1
    refused = f"refused {address}: RouteCodex serves only this machine"
    assert (refused in proxy.log) == (address is not None and not allowed)
