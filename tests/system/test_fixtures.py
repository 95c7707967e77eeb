"""Every recorded request of a real client through the real proxy: what arrives is what was sent, but for the tags."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from routecodex.routing.codings import zstd
from routecodex.routing.dialects.endpoints import endpoint_of
from tests.rig.behaviour import make_plan
from tests.rig.client import Answer, call
from tests.rig.provider import FakeProvider, Received
from tests.rig.proxy import SCRIPT, Mitmdump
from tests.system.talk import CONFIG, provider_text
from tests.system.watched import until

pytestmark = pytest.mark.system

FOLDER = Path(__file__).parents[1] / "fixtures"
HOSTS = sorted(
    {re.split(r"[/?]", line.split("\t")[2])[0] for line in (FOLDER / "INDEX.tsv").read_text().splitlines() if line.split("\t")[2]}
)
RECORDED = CONFIG.replace("interceptHosts: [", f"interceptHosts: [{', '.join(HOSTS)}, ").replace(
    "  providers:", "  providers:" + provider_text("sticky", ("only",), ("any",))
)

LEFT_OUT = {
    "codex/04-responses-ws-warmup-frame": "a WebSocket frame: the proxy refuses the upgrade, so no tool ever sends one",
    "codex/05-responses-ws-turn-frame": "a WebSocket frame",
    "codex/06-responses-ws-tool-output-frame-incremental": "a WebSocket frame",
    "codex/03-responses-websocket-handshake": "no request for an answer: refused, see below",
}

TAG = "<**!glm.glm-4.7**>"
"""What people typed when the requests were recorded."""
SECOND = "sticky**>"
"""What they typed in second messages (`<**sticky**>`, `<**!sticky**>`): here a provider of that name exists."""
_TYPED = re.compile(r"<\*\*!?(?:glm\.glm-4\.7|sticky)\*\*>")
HARMLESS = "<**@glm**>"
"""A tag that changes nothing."""
NOT_OBEYED = {
    "claude-code/02-messages-title-side-request": "a title",
    "claude-code/07-messages-subagent": "a subagent",
    "claude-code/08-messages-compaction": "a compaction",
    "claude-code/16-messages-continued-session": "an old message",
    "codex/11-responses-compaction-trigger": "a compaction",
    "gemini-cli/02-generateContent-router-side-request": "a router",
    "gemini-cli/05-generateContent-compress": "a compression",
    "opencode/01-messages-title-side-request": "a title",
    "opencode/04-messages-compaction": "a compaction",
    "qwen-code/02-chat-memory-extractor-side-request": "a memory extractor",
}
"""Requests with a tag in them that gives no orders, and why."""


@dataclass(frozen=True)
class Request:
    name: str
    method: str
    host: str
    path: str
    headers: tuple[tuple[str, str], ...]
    body: Any
    coding: str

    def raw(self, tag: str = "") -> bytes:
        """As unlike our own writing as real bodies are: with spaces, text beyond ASCII as it is. `tag`: instead of its own."""
        if self.body is None:
            return b""
        written = json.dumps(self.body, indent=1, ensure_ascii=False)
        return (_TYPED.sub(tag, written) if tag else written).encode()

    def send(self, proxy: Mitmdump, tag: str = "") -> Answer:
        raw = self.raw(tag)
        wire = zstd.compress(raw) if self.coding == "zstd" else raw
        own = [(name, value) for name, value in self.headers if not name.startswith(":") and name.lower() not in _OF_THE_MOMENT]
        return call(f"https://{self.host}", self.path, wire, method=self.method, proxy=proxy, headers=own)


_OF_THE_MOMENT = ("content-length", "host", "connection", "transfer-encoding")


def _recorded() -> list[Request]:
    found = []
    for file in sorted(FOLDER.glob("*/*.json")):
        name = f"{file.parent.name}/{file.stem}"
        if name in LEFT_OUT:
            continue
        kept = json.loads(file.read_text())
        if "version" in kept:  # recorded with files, hooks and agents that speak: see trouble/test_untyped_text.py
            continue
        headers = tuple((header, value) for header, value in kept["headers"])
        coding = (kept.get("request_content_encoding") or "").partition(";")[0]
        if coding:  # taken off when the body was recorded decoded
            headers += (("content-encoding", coding),)
        found.append(Request(name, kept["method"], kept["host"], kept["path"], headers, kept.get("body"), coding))
    return found


REQUESTS = _recorded()
CALLS = [one for one in REQUESTS if endpoint_of(one.method, one.path) is not None]
TAGGED = [one for one in CALLS if TAG in json.dumps(one.body, ensure_ascii=False)]


def names(requests: list[Request]) -> list[str]:
    return [one.name for one in requests]


@pytest.fixture(scope="module")
def recorded() -> Iterator[tuple[FakeProvider, Mitmdump]]:
    with FakeProvider() as provider, Mitmdump(script=SCRIPT, config=RECORDED, upstream=provider) as proxy:
        yield provider, proxy
        assert proxy.alive
        assert "Traceback" not in proxy.log


def test_nothing_is_forgotten() -> None:
    files = {
        f"{file.parent.name}/{file.stem}" for file in FOLDER.glob("*/*.json") if "version" not in json.loads(file.read_text())
    }
    assert files == {one.name for one in REQUESTS} | LEFT_OUT.keys()
    assert len(TAGGED) > 30


@pytest.mark.parametrize("request_", REQUESTS, ids=names(REQUESTS))
def test_at_home(recorded: tuple[FakeProvider, Mitmdump], request_: Request) -> None:
    """To the host it was meant for; byte for byte where it holds no tag, and without any where it does."""
    provider, proxy = recorded
    provider.forget()
    answer = request_.send(proxy, HARMLESS)
    assert answer.status == 200
    (received,) = provider.requests
    assert (received.method, received.host, received.target) == (request_.method, request_.host, request_.path)
    _check_headers(received, request_)
    sent = request_.raw(HARMLESS)
    if HARMLESS.encode() in sent:
        assert received.json == _cleaned(json.loads(sent))
        assert b"<**" not in received.body
    else:
        assert received.body == sent
    assert received.behaviour is not None
    said = f"{received.asked.model if received.asked else ''} was asked: {received.said}"
    assert answer.body == b"".join(make_plan(received.behaviour, received.asked, said).packets)


def _check_headers(received: Received, request: Request) -> None:
    sent = [(name.lower(), value) for name, value in request.headers if name.lower() not in (*_OF_THE_MOMENT, "accept-encoding")]
    coded = b"<**" not in request.raw()
    sent = [pair for pair in sent if pair[0] != "content-encoding" or coded]
    arrived = [(name.lower(), value) for name, value in received.headers]
    assert [pair for pair in sent if pair not in arrived] == []
    added = {name for name, _ in arrived} - {name for name, _ in sent}
    assert added <= {"host", "content-length", "accept-encoding", "connection"}


_STRIPPED = re.compile(r"(?:(?<=\A)|(?<=\n)|(?<= ))<\*\*[^*<>]*\*\*>[ \n]?|<\*\*[^*<>]*\*\*>")


def _cleaned(value: Any) -> Any:
    """The same without tags, and without the space that they leave: a second opinion on the product's own cleaning."""
    if isinstance(value, str):
        left = _STRIPPED.sub("", value)
        return left.removesuffix(" ") if value.endswith("**>") else left
    if isinstance(value, list):
        return [_cleaned(one) for one in value]
    if isinstance(value, dict):
        return {key: _cleaned(one) for key, one in value.items()}
    return value


@pytest.mark.parametrize("request_", TAGGED, ids=names(TAGGED))
def test_a_tag_is_obeyed_where_a_person_typed_it_last(recorded: tuple[FakeProvider, Mitmdump], request_: Request) -> None:
    provider, proxy = recorded
    provider.forget()
    before = _states(proxy)
    answer = request_.send(proxy)
    (received,) = provider.requests
    changed = {name: text for name, text in _states(proxy).items() if before.get(name) != text}
    if request_.name in NOT_OBEYED:
        assert received.host == request_.host
        assert changed == {}
        assert received.json == _cleaned(json.loads(request_.raw()))
        return
    assert answer.status == 200
    assert b"<**" not in received.body
    ((name, state),) = changed.items()
    assert name.startswith("session-")
    in_force = {key: value for key, value in json.loads(state)["state"].items() if key != "obeyedMessages"}
    if SECOND in json.dumps(request_.body):
        assert received.host == "sticky.example"
        assert in_force == {"allowedProviders": ["sticky"]}
    else:
        assert received.host == "glm.example"
        assert in_force == {"stickyTarget": {"model": "glm-4.7", "provider": "glm"}}
    file = proxy.sessions / name
    until(lambda: '"ended"' in file.read_text(), 20, file.read_text)  # the next one looks for what it changes itself
    file.unlink()


def _states(proxy: Mitmdump) -> dict[str, str]:
    return {path.name: path.read_text() for path in proxy.sessions.glob("*.json")} if proxy.sessions.exists() else {}


def test_a_websocket_is_refused_so_that_codex_falls_back(recorded: tuple[FakeProvider, Mitmdump]) -> None:
    provider, proxy = recorded
    provider.forget()
    kept = json.loads((FOLDER / "codex/03-responses-websocket-handshake.json").read_text())
    headers = [(name, value) for name, value in kept["headers"] if name.lower() not in ("host", "content-length")]
    answer = call(f"https://{kept['host']}", kept["path"], b"", method=kept["method"], proxy=proxy, headers=headers)
    assert answer.status == 426
    assert provider.requests == []
