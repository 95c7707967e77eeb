"""Three proxies and one Redis behind HAProxy, clients that talk to them all the while, and what is recorded of it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx

from tests.chaos.judge import ROUNDS, Got, Kind, Told
from tests.rig.behaviour import Behaviour
from tests.rig.provider import FakeProvider, Received
from tests.rig.proxy import ROOT, SCRIPT, Mitmdump, free_port
from tests.rig.wire import Reply, ToolUse

HAPROXY = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin:/usr/local/sbin")
EXAMPLE = ROOT / "docs" / "haproxy.cfg"
CONFIG = """
proxy:
  interceptHosts: [api.anthropic.com]
sessions: {{store: "{store}"}}
virtualrouter:
  providers:
    glm:
      protocol: anthropic-messages
      baseURL: https://glm.example
      auth: {{type: apikey, keys: [{{alias: k1, value: sk-one}}, {{alias: k2, value: sk-two}}]}}
      models: {{m1: {{}}}}
  routing: {{default: [glm.m1]}}
  clock: {{enabled: true, ntp: {{enabled: false}}, holdNonStreaming: false}}
"""
_WORD = r"[a-z]+-[0-9a-f]{8}"
_TYPED = re.compile(rf"\b(?:say|do|remind) ({_WORD})\b")
_GO_ON = re.compile(rf"^go on ({_WORD})\b", re.MULTILINE)
_REMINDED = re.compile(rf'^\[scheduled task:"look at ({_WORD})"\]', re.MULTILINE)


# The provider


def model(received: Received) -> Behaviour | None:
    """It sets a reminder where it is asked to, and repeats the word of what was typed otherwise."""
    if received.asked is None or received.asked.action != "generate":
        return None
    messages = received.json["messages"]
    typed = _words(_TYPED, messages)[-1]
    last = _text(messages[-1])
    if f"remind {typed}" in last and "tool_result" not in json.dumps(messages[-1]):
        item = {
            "dueAt": (datetime.now(UTC) + timedelta(seconds=1)).isoformat(),
            "task": f"look at {typed}",
            "tool": "",
            "arguments": "{}",
        }
        return Behaviour(reply=Reply("", calls=(ToolUse("clock", {"action": "schedule", "items": [item], "taskId": ""}),)))
    told = json.dumps(messages[-1]).replace("\\", "").replace(" ", "")
    refused = "tool_result" in told and '"ok":true' not in told
    return Behaviour(reply=Reply("not set" if refused else f"ok {typed}"), wait_s=0.01)


def got(provider: FakeProvider) -> list[Got]:
    """What the provider received, in the judge's words."""
    found = []
    for received in provider.calls:
        messages = received.json["messages"]
        last = _text(messages[-1])
        went_on = _GO_ON.findall(last)
        words = _words(_TYPED, messages)
        typed = words[-1] if words else ""
        opens = bool(typed) and typed in last
        found.append(Got(typed, went_on[-1] if went_on else "", tuple(_REMINDED.findall(last)), opens))
    return found


def _words(pattern: re.Pattern[str], messages: Sequence[Any]) -> list[str]:
    return [word for message in messages if message["role"] == "user" for word in pattern.findall(_text(message))]


def _text(message: Any) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)


# The clients


@dataclass(slots=True)
class Client:
    """A tool with one conversation; a call that fails it repeats as it was, on a new connection."""

    address: str
    trust: ssl.SSLContext
    session: str = field(default_factory=lambda: str(uuid.uuid4()))
    history: list[dict[str, object]] = field(default_factory=list)
    told: list[Told] = field(default_factory=list)
    calls: int = 0

    async def talk(self, kinds: Sequence[Kind]) -> None:
        async with self._link() as link:
            for kind in kinds:
                await self._ask(link, kind)

    async def _ask(self, link: httpx.AsyncClient, kind: Kind) -> None:
        word = f"{kind.replace(' ', '')}-{uuid.uuid4().hex[:8]}"
        text = {
            "say": f"say {word}",
            "remind": f"remind {word}",
            "go on": f'<**stopMessage:"go on {word}",{ROUNDS}**> do {word}',
        }[kind]
        self.history.append({"role": "user", "content": text})
        for _ in range(40):
            answer, why = "", ""
            try:
                said = await link.post(
                    "https://api.anthropic.com/v1/messages",
                    json={"model": "claude-x", "max_tokens": 99, "messages": self.history},
                    headers={"x-api-key": "sk-client", "x-claude-code-session-id": self.session},
                )
                content = said.json().get("content") if said.status_code == 200 else None
                answer = "".join(block.get("text", "") for block in content) if content else ""
                why = "" if content and word in answer else f"status {said.status_code}: {said.text[:200]}"
            except (httpx.HTTPError, ValueError) as error:
                why = type(error).__name__
            self.calls += 1
            self.told.append(Told(kind, word, not why, answer, why))
            if not why:
                self.history.append({"role": "assistant", "content": content})
                return
            await asyncio.sleep(0.25)
        raise AssertionError(f"{word} was never answered: {why}")

    def _link(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(proxy=self.address, verify=self.trust, trust_env=False, timeout=30)


# The servers


class Cable:
    """The way to Redis of one proxy, until it is cut."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._links: set[asyncio.Task[None]] = set()
        self._is_cut = False
        self.port = 0

    async def lay(self) -> None:
        server = await asyncio.start_server(self._carry, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]

    def cut(self) -> None:
        self._is_cut = True
        for link in self._links:
            link.cancel()

    def mend(self) -> None:
        self._is_cut = False

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._links.add(task)
        try:
            if not self._is_cut:
                there, back = await asyncio.open_connection("127.0.0.1", self._to)
                try:
                    await asyncio.gather(_pump(reader, back), _pump(there, writer))
                finally:
                    back.close()
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            self._links.discard(task)
            writer.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(1 << 16):
        writer.write(data)
        await writer.drain()
    writer.close()


@contextlib.contextmanager
def balancer(folder: Path, proxies: Sequence[Mitmdump]) -> Iterator[str]:
    """HAProxy with the example's own configuration, at ports of these; its address."""
    assert HAPROXY is not None, "HAProxy is not installed"
    port, text = free_port(), EXAMPLE.read_text()
    text = text.replace("bind :8080", f"bind 127.0.0.1:{port}")
    for number, proxy in enumerate(proxies):
        text = text.replace(f"127.0.0.1:{8081 + number}", f"127.0.0.1:{proxy.port}")
    file = folder / "haproxy.cfg"
    file.write_text(text)
    with (folder / "haproxy.log").open("wb") as log:
        process = subprocess.Popen([HAPROXY, "-db", "-f", str(file)], stdout=log, stderr=log)
    try:
        until = time.monotonic() + 60
        while not _serves(port):
            assert process.poll() is None, (folder / "haproxy.log").read_text()
            assert time.monotonic() < until, "no proxy is well"
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(10)


def _serves(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 5) as link:
        link.sendall(b"GET http://routecodex.invalid/hello HTTP/1.1\r\nHost: routecodex.invalid\r\nConnection: close\r\n\r\n")
        return b" 200 " in link.recv(100)
    return False


def connections(proxy: Mitmdump) -> int:
    """How many are open at its port."""
    open_, port = "01", f"{proxy.port:04X}"
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    return sum(fields[1].endswith(f":{port}") and fields[3] == open_ for fields in (line.split() for line in lines))


def proxy(number: int, folder: Path, provider: FakeProvider, store: str) -> Mitmdump:
    return Mitmdump(
        script=SCRIPT,
        config=CONFIG.format(store=store),
        upstream=provider,
        folder=folder / f"proxy-{number}",
        options=["routecodex_server=team", "flow_detail=0"],
        env={"ROUTECODEX_SESSION_DIR": str(folder / "sessions")} if store == "files" else {},
    )


def freeze(proxy: Mitmdump) -> None:
    os.kill(proxy.pid, signal.SIGSTOP)


def thaw(proxy: Mitmdump) -> None:
    os.kill(proxy.pid, signal.SIGCONT)
