"""Several people at one proxy: nobody is served who does not say who they are, and what each of them has is theirs."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import json
import sqlite3
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from mitmproxy import io

from routecodex.addons import hello
from tests.rig.answer import Route
from tests.rig.behaviour import Behaviour
from tests.rig.provider import FakeProvider
from tests.rig.proxy import SCRIPT, DidNotStart, Mitmdump, free_port
from tests.rig.redis_server import IS_THERE, redis_server
from tests.rig.websocket import WebSocket
from tests.system.talk import ENDS, provider_text
from tests.system.test_codex_socket import HEADERS as CODEX
from tests.system.test_codex_socket import frame
from tests.system.test_codex_socket import text_of as frames_text
from tests.system.test_codex_socket import user as typed
from tests.system.test_start import own_address

pytestmark = pytest.mark.system

PASSWORDS = {"alice": "correct horse", "bob": "battery staple"}
CONFIG = f"""
proxy:
  allowRemoteClients: true
  interceptHosts: [api.anthropic.com]
virtualrouter:
  providers:{provider_text("glm", ("k1", "k2"), ("glm-4.7",))}{provider_text("hers", ("k1",), ("m1",))}
      users: [alice]
  routing:
    default: [hers.m1, glm.glm-4.7]
"""
NAMES = {"x-api-key": "sk-of-a-tool", "x-claude-code-session-id": "0b5e2c1e-3a52-4a7e-9d0c-5a0d4f7b1c11"}


def htpasswd(folder: Path, passwords: Mapping[str, str] = PASSWORDS) -> str:
    """The one form that both lines of mitmproxy read without a further package."""
    file = folder / "people"
    hashed = {name: base64.b64encode(hashlib.sha1(word.encode()).digest()).decode() for name, word in passwords.items()}
    file.write_text("".join(f"{name}:{{SHA}}{word}\n" for name, word in hashed.items()))
    return f"proxyauth=@{file}"


@pytest.fixture
def team(tmp_path: Path) -> Iterator[tuple[FakeProvider, Mitmdump]]:
    with (
        FakeProvider() as provider,
        Mitmdump(
            script=SCRIPT, config=CONFIG, upstream=provider, folder=tmp_path, flows=True, options=[htpasswd(tmp_path)]
        ) as proxy,
    ):
        yield provider, proxy
        assert "Traceback" not in proxy.log
        assert not proxy.crash


def ask(
    proxy: Mitmdump, text: str, user: str = "", password: str = "", url: str = "https://api.anthropic.com", scheme: str = "http"
) -> httpx.Response:
    auth = (user, password or PASSWORDS.get(user, "")) if user else None
    through = httpx.Proxy(proxy.url.replace("http", scheme), auth=auth, ssl_context=proxy.tls() if scheme == "https" else None)
    body = {"model": "claude-x", "max_tokens": 9, "messages": [{"role": "user", "content": text}]}
    with httpx.Client(proxy=through, verify=proxy.tls(), trust_env=False, timeout=60) as client:
        return client.post(f"{url}/v1/messages", json=body, headers=NAMES)


def said(answer: httpx.Response) -> str:
    return "".join(block["text"] for block in answer.json()["content"])


def saved(proxy: Mitmdump) -> str:
    """All that the proxy wrote: flows as they are read again, and their bytes."""
    proxy.stop()
    assert proxy.flows_path is not None
    with proxy.flows_path.open("rb") as file:
        flows: list[Any] = list(io.FlowReader(file).stream())
    return repr([flow.get_state() for flow in flows]) + repr(proxy.flows_path.read_bytes()) + proxy.log


def test_each_has_their_own(team: tuple[FakeProvider, Mitmdump]) -> None:
    provider, proxy = team
    assert said(ask(proxy, "<**!glm.glm-4.7**>", "alice")).startswith("[RouteCodex] From now on everything goes to glm")
    assert "Sticky: glm" in said(ask(proxy, "<**status**>", "alice"))
    told = said(ask(proxy, "<**status**>", "bob"))
    assert "Routing: normal." in told
    assert "hers" not in told
    assert "hers" not in said(ask(proxy, "<**models**>", "bob", scheme="https"))
    assert "hers.m1" in said(ask(proxy, "<**models**>", "alice"))
    for tag in ("<**!hers.m1**>", "<**hers.m1**> hello", "<**hers**>", "<**models:hers**>"):
        refused = ask(proxy, tag, "bob")
        assert refused.status_code == 400
        assert "it is not for bob (providers.hers.users)" in refused.json()["error"]["message"]
    provider.forget()
    assert ask(proxy, "hello", "bob").status_code == 200
    assert [request.host for request in provider.calls] == ["glm.example"]
    assert "all sessions of bob: 1 request," in said(ask(proxy, "<**usage**>", "bob"))
    assert "bob" not in (used := said(ask(proxy, "<**usage**>", "alice"))), used
    proxy.stop()
    with contextlib.closing(sqlite3.connect(proxy.folder / "user" / "usage.sqlite")) as ledger:
        assert {row[0] for row in ledger.execute("select user from rounds")} == {"bob"}


def test_nobody_is_served_who_does_not_say_who_they_are(team: tuple[FakeProvider, Mitmdump]) -> None:
    provider, proxy = team
    wrong = ("", ""), ("alice", "battery staple"), ("carol", "correct horse"), ("alice", "Correct horse!")
    for url in ("https://api.anthropic.com", "http://api.anthropic.com", "http://elsewhere.example"):
        for user, password in wrong:
            if url.startswith("https:"):
                with pytest.raises(httpx.ProxyError, match="407"):
                    ask(proxy, "hello", user, password, url)
            else:
                assert ask(proxy, "hello", user, password, url).status_code == 407
    assert hello.ask(proxy.url) is None
    assert hello.ask(proxy.url.replace("//", "//alice:wrong@")) is None
    known = hello.ask(proxy.url.replace("//", "//alice:correct%20horse@"))
    assert known is not None
    assert known.certificate.startswith("-----BEGIN CERTIFICATE-----")
    assert provider.calls == []
    shown = saved(proxy)
    for secret in ("correct horse", "Correct horse!", base64.b64encode(b"alice:Correct horse!").decode()):
        assert secret not in shown


def test_no_password_leaves_or_is_written(team: tuple[FakeProvider, Mitmdump]) -> None:
    """Over TLS and plainly, where each request says who sends it; also where a second round is a flow of its own."""
    provider, proxy = team
    ours, foreign = ["https://api.anthropic.com", "http://api.anthropic.com"], "http://elsewhere.example"
    for url in (*ours, foreign):
        provider.forget()
        if url in ours:
            provider.enqueue(Behaviour(status=500))
        assert ask(proxy, "hello", "alice", url=url).status_code == 200
        assert len(provider.calls) == (2 if url in ours else 1)
        for request in provider.calls:
            assert "proxy-authorization" not in {name.lower() for name, _ in request.headers}
    shown = saved(proxy)
    assert "alice" in shown
    for user, word in PASSWORDS.items():
        assert word not in shown
        assert base64.b64encode(f"{user}:{word}".encode()).decode() not in shown


def test_what_was_said_to_a_proxy_goes_no_further(tmp_path: Path) -> None:
    """Also where this one asks nobody: a tool may still know an old password."""
    config = CONFIG.replace("  allowRemoteClients: true\n", "").replace("[hers.m1, glm.glm-4.7]", "[origin]")
    with (
        FakeProvider() as provider,
        Mitmdump(script=SCRIPT, config=config, upstream=provider, folder=tmp_path, flows=True) as proxy,
    ):
        for url in ("http://api.anthropic.com", "http://elsewhere.example"):
            assert ask(proxy, "hello", "alice", url=url).status_code == 200
        assert [call.host for call in provider.calls] == ["api.anthropic.com", "elsewhere.example"]
        assert b"proxy-authorization" not in provider.all_bytes().lower()
        assert "proxy-authorization" not in saved(proxy).lower()


@pytest.mark.parametrize("auth", [False, True])
def test_other_machines_are_served_only_with_names(tmp_path: Path, auth: bool) -> None:
    proxy = Mitmdump(
        script=SCRIPT,
        config=CONFIG,
        folder=tmp_path,
        args=["--listen-host", "0.0.0.0"],
        options=[htpasswd(tmp_path)] if auth else [],
    )
    if not auth:
        with pytest.raises(DidNotStart, match=r"proxy\.allowRemoteClients: whoever reaches this port"):
            proxy.start()
        return
    with proxy:
        if (address := own_address()) is not None:
            known = hello.ask(f"http://alice:correct%20horse@{address}:{proxy.port}")
            assert known is not None
            assert hello.ask(f"http://{address}:{proxy.port}") is None


def test_frames_of_a_web_socket_are_asked_in_the_name_of_who_opened_it(tmp_path: Path) -> None:
    config = CONFIG.replace("proxy:\n", "proxy:\n  codexWebSocket: serve\n", 1).replace("[api.anthropic.com]", "[api.openai.com]")
    told: list[str] = []

    async def run(proxy: Mitmdump, user: str, text: str) -> None:
        route = Route("https://api.openai.com", proxy, who=f"{user}:{PASSWORDS[user]}")
        async with WebSocket(route, "/v1/responses", (*CODEX, ("session-id", "one"))) as socket:
            assert socket.accepted, socket.head
            told.append(frames_text(await socket.ask(frame(typed(text)))))

    with (
        FakeProvider() as provider,
        Mitmdump(
            script=SCRIPT, config=config, upstream=provider, folder=tmp_path, flows=True, options=[htpasswd(tmp_path)]
        ) as proxy,
    ):
        for user, text in (("alice", "<**!glm.glm-4.7**>"), ("bob", "<**status**>"), ("alice", "<**status**>"), ("bob", "hello")):
            asyncio.run(run(proxy, user, text))
        assert [call.host for call in provider.calls] == ["glm.example"]
        shown = saved(proxy)
    assert ["Sticky" in one for one in told[1:3]] == [False, True]
    assert not [word for word in PASSWORDS.values() if word in shown]


ODD = (
    *(
        "jürgen",
        "e\u0301",
        "é",
        "名前",
        "o'brien",
        "a b",
        "x@corp.example",
        "%41",
        "A",
        "a",
        "..",
        "a/b",
        "a\\b",
        "CON",
        "-rf",
        "*",
    ),
    *("$(id)", "<b>x</b>", "<**clear**>", "`x`", "@alice", "alice%3Ax", "None"),
)


def test_names_of_all_letters_are_as_many_people(tmp_path: Path) -> None:
    """Each has a session, a folder of texts and providers of their own, and the page shows each their own calls."""
    port = free_port()
    config = CONFIG.replace("users: [alice]", f"users: {json.dumps(ODD[1:], ensure_ascii=False)}")
    options = [htpasswd(tmp_path, dict.fromkeys(ODD, "word")), f"routecodex_page={port}"]
    with (
        FakeProvider() as provider,
        Mitmdump(script=SCRIPT, config=config, upstream=provider, folder=tmp_path, options=options) as proxy,
    ):
        for number, name in enumerate(ODD):
            assert ask(proxy, f'<**stopMessage:"of {number}.",5**>', name, "word").status_code == 200, name
        for number, name in enumerate(ODD):
            assert f'"of {number}."' in said(ask(proxy, "<**status**>", name, "word")), name
            assert ("hers" in said(ask(proxy, "<**models**>", name, "word"))) == (number > 0), name
            assert hello.ask(proxy.url.replace("//", f"//{quote(name, safe='')}:word@")) is not None, name
            auth = "Basic " + base64.b64encode(f"{name}:word".encode()).decode()
            with urllib.request.urlopen(
                urllib.request.Request(f"http://127.0.0.1:{port}/routecodex/state", headers={"Authorization": auth}), timeout=60
            ) as answer:
                assert {call["user"] for call in json.load(answer)["calls"]} == {name}
        assert len(list(proxy.sessions.glob("session-*.json"))) == len(ODD)
        assert provider.calls == []
        assert "Traceback" not in proxy.log


@pytest.mark.skipif(not IS_THERE, reason="needs a Redis")
def test_two_people_of_one_id_at_two_proxies(tmp_path: Path) -> None:
    """What one of them set is theirs at either proxy; also a proxy that asks nobody who they are shows it to nobody."""
    with (
        FakeProvider() as provider,
        redis_server(tmp_path / "redis") as server,
        contextlib.ExitStack() as stack,
    ):
        config = f'sessions: {{store: "{server.url}?wait=60"}}\n{CONFIG}'
        alone = config.replace("  allowRemoteClients: true\n", "")
        one, other, asks_nobody = (
            stack.enter_context(Mitmdump(script=SCRIPT, config=text, upstream=provider, folder=tmp_path / name, options=options))
            for name, text, options in (
                ("one", config, [htpasswd(tmp_path)]),
                ("other", config, [htpasswd(tmp_path)]),
                ("nobody", alone, []),
            )
        )
        assert ask(one, '<**!glm.glm-4.7**> <**stopMessage:"of alice",5**>', "alice").status_code == 200
        for proxy in (one, other):
            assert "of alice" in said(ask(proxy, "<**status**>", "alice"))
            assert f"Routing: normal.{ENDS}stopMessage: none." in said(ask(proxy, "<**status**>", "bob"))
        id = NAMES["x-claude-code-session-id"]
        for guess in (id, f"@alice:{id}"):
            with httpx.Client(proxy=asks_nobody.url, verify=asks_nobody.tls(), trust_env=False, timeout=60) as client:
                body = {"model": "claude-x", "max_tokens": 9, "messages": [{"role": "user", "content": "<**status**>"}]}
                headers = {"x-api-key": "sk-of-a-tool", "x-session-id": guess}
                told = said(client.post("https://api.anthropic.com/v1/messages", json=body, headers=headers))
            assert f"Routing: normal.{ENDS}stopMessage: none." in told
        assert ask(other, "<**clear**>", "bob").status_code == 200
        assert "of alice" in said(ask(one, "<**status**>", "alice"))


def test_a_name_that_is_none(tmp_path: Path) -> None:
    """Where any name is let in: nobody's is everybody's, and one that does something to a terminal does nothing in a log."""
    options = ["proxyauth=any", "flow_detail=0"]
    with (
        FakeProvider() as provider,
        Mitmdump(script=SCRIPT, config=CONFIG, upstream=provider, folder=tmp_path, options=options) as proxy,
    ):
        for name, why in (
            (" ", "gave it no name"),
            ("\x1b]0;mine\x07", "is none"),
            ("n" * 300, "is none"),
            ("e\u202eve", "is none"),
        ):
            refused = ask(proxy, "<**!glm.glm-4.7**>", name, "x")
            assert refused.status_code == 400, name
            assert why in refused.json()["error"]["message"]
        empty = httpx.Proxy(proxy.url, headers={"proxy-authorization": "Basic " + base64.b64encode(b":x").decode()})
        with httpx.Client(proxy=empty, verify=proxy.tls(), trust_env=False, timeout=60) as client:
            body = {"model": "claude-x", "max_tokens": 9, "messages": [{"role": "user", "content": "<**!glm.glm-4.7**>"}]}
            nobody = client.post("https://api.anthropic.com/v1/messages", json=body, headers=NAMES)
        assert (nobody.status_code, "gave it no name" in nobody.text) == (400, True)
        assert "Routing: normal." in said(ask(proxy, "<**status**>", "alice"))
        assert provider.calls == []
        headers = NAMES | {"x-claude-code-session-id": "", "session_id": "a\x1b[8mb", "user-agent": "ev\x1b[2Jil/1"}
        with httpx.Client(
            proxy=httpx.Proxy(proxy.url, auth=("bob", "x")), verify=proxy.tls(), trust_env=False, timeout=60
        ) as client:
            for model in ("m\x1b[31m", "m\n12:00:00 bob"):
                told = client.post("https://api.anthropic.com/v1/messages", json=body | {"model": model}, headers=headers)
                assert (told.status_code, "no model has such a name" in told.text) == (400, True)
            body["messages"][0]["content"] = "<**status**>"  # type: ignore[index]
            assert client.post("https://api.anthropic.com/v1/messages", json=body, headers=headers).status_code == 200
        proxy.stop()
        assert "\x1b" not in proxy.log
        assert "bob a\\x1b[8mb claude-code" in proxy.log
