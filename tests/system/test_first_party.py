"""What each tool says to its own vendor beside asking a model: through the proxy byte for byte, each with a canary of its own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping

import pytest

from tests.rig.behaviour import Behaviour
from tests.rig.client import Http1, Route, call
from tests.rig.door import until
from tests.rig.provider import FakeProvider
from tests.rig.proxy import SCRIPT, Mitmdump
from tests.system.tool import CONFIG

pytestmark = pytest.mark.system

ANTHROPIC, CHATGPT, GOOGLE = "https://api.anthropic.com", "https://chatgpt.com/backend-api", "https://cloudcode-pa.googleapis.com"
CLOSED = "https://api.github.com"
"""One of the hosts that are tunnelled unopened."""
SESSION, WORK = "01J-canary-session", "work"

FIRST_PARTY: Mapping[str, tuple[str, ...]] = {
    "Claude Code": (
        *(
            f"GET {ANTHROPIC}/api/{path}"
            for path in ("claude_code/settings", "claude_code/policy_limits", "claude_cli/bootstrap")
        ),
        *(f"GET {ANTHROPIC}/api/{path}" for path in ("claude_code_penguin_mode", "claude_code/organizations/metrics_enabled")),
        *(f"GET {ANTHROPIC}/api/oauth/{path}" for path in ("profile", "usage", "claude_cli/roles")),
        *(f"POST {ANTHROPIC}/api/{path}" for path in ("directory/server-urls", "eval/sdk-abc", "event_logging/v2/batch")),
        *(f"POST {ANTHROPIC}/api/claude_code/{path}" for path in ("metrics", "link_vcs_account")),
        f"POST {ANTHROPIC}/v1/oauth/token",
        f"GET {ANTHROPIC}/v1/models?beta=true",
        f"POST {ANTHROPIC}/v1/files?beta=true",
        f"POST {ANTHROPIC}/v1/messages/batches",
        # Remote Control
        f"POST {ANTHROPIC}/v1/environments/bridge",
        f"GET {ANTHROPIC}/v1/environments/env_1/{WORK}/poll?block_ms=900",
        f"POST {ANTHROPIC}/v1/environments/env_1/{WORK}/w_1/heartbeat",
        f"POST {ANTHROPIC}/v1/sessions",
        f"POST {ANTHROPIC}/v1/sessions/{SESSION}/events",
        f"PUT {ANTHROPIC}/v1/session_ingress/session/{SESSION}",
        f"SOCKET {ANTHROPIC}/v1/sessions/ws/{SESSION}/subscribe?organization_uuid=o",
        f"SOCKET {ANTHROPIC}/v1/session_ingress/ws/{SESSION}",
        "POST https://platform.claude.com/v1/oauth/token",
        "GET https://downloads.claude.ai/claude-code-releases/latest",
    ),
    "Codex": (
        *(f"GET {CHATGPT}/{path}" for path in ("plugins/list", "ps/plugins", "ps/mcp", "codex/models?client_version=1")),
        *(f"GET {CHATGPT}/wham/{path}" for path in ("accounts/check", "usage", "tasks/list?limit=20", "environments")),
        f"POST {CHATGPT}/wham/tasks",
        f"POST {CHATGPT}/codex/analytics-events/events",
        f"POST {CHATGPT}/codex/responses/compact",
        f"SOCKET {CHATGPT}/wham/remote/ws",
        "GET https://api.openai.com/v1/models",
        "POST https://api.openai.com/v1/responses/input_tokens",
        "POST https://api.openai.com/v1/audio/transcriptions",
        "SOCKET https://api.openai.com/v1/realtime?model=m",
        "POST https://auth.openai.com/oauth/token",
        "POST https://ab.chatgpt.com/otlp/v1/metrics",
        f"GET {CLOSED}/repos/openai/codex/releases/latest",
    ),
    "Gemini CLI": (
        *(
            f"POST {GOOGLE}/v1internal:{verb}"
            for verb in ("loadCodeAssist", "onboardUser", "retrieveUserQuota", "listExperiments")
        ),
        *(f"POST {GOOGLE}/v1internal:{verb}" for verb in ("recordCodeAssistMetrics", "fetchAdminControls")),
        f"GET {GOOGLE}/v1internal/operations/op1",
        "GET https://generativelanguage.googleapis.com/v1beta/models?pageSize=50",
        "POST https://generativelanguage.googleapis.com/v1beta/models/m:embedContent",
        "POST https://generativelanguage.googleapis.com/upload/v1beta/files",
        "SOCKET https://generativelanguage.googleapis.com/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent",
        *(f"POST https://oauth2.googleapis.com/{path}" for path in ("token", "tokeninfo")),
        "GET https://www.googleapis.com/oauth2/v2/userinfo",
        "POST https://play.googleapis.com/log?format=json",
    ),
    "opencode": (
        f"GET {ANTHROPIC}/v1/models",
        "POST https://console.anthropic.com/v1/oauth/token",
        "POST https://auth.openai.com/oauth/token",
        "GET https://models.opencode.ai/api.json",
        "GET https://opencode.ai/zen/v1/models",
        "POST https://opencode.ai/auth/device",
        f"GET {CLOSED}/repos/x/y/releases/latest",
    ),
}


@pytest.fixture(scope="module")
def proxy(provider: FakeProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mitmdump]:
    with Mitmdump(script=SCRIPT, config=CONFIG, upstream=provider, folder=tmp_path_factory.mktemp("first")) as started:
        yield started
        assert not started.crash
        assert "RouteCodex failed" not in started.log


@pytest.mark.parametrize("tool", FIRST_PARTY)
def test_nothing_of_it_is_touched(proxy: Mitmdump, provider: FakeProvider, tool: str) -> None:
    """The bodies are calls with tags in them: whoever reads one changes it, or answers it."""
    for number, line in enumerate(FIRST_PARTY[tool]):
        method, _, url = line.partition(" ")
        provider.forget()
        canary = f"canary{number}of{tool.replace(' ', '')}"
        (_socket if method == "SOCKET" else _request)(proxy, provider, method, url, canary)


def _request(proxy: Mitmdump, provider: FakeProvider, method: str, url: str, canary: str) -> None:
    host, path = _divided(url)
    headers = [
        ("X-Canary", canary),
        ("authorization", f"Bearer {canary}"),
        ("Cookie", f"a={canary}; b=2"),
        ("x-canary", "twice"),
        ("Accept-Encoding", "zstd;q=1, gzip"),
        ("Content-Type", "application/json"),
        ("User-Agent", "claude-cli/2.1.327 (external, cli)"),
    ]
    messages = [{"role": "user", "content": f"<**echo**> <**!six.m**> {canary}"}]
    body = json.dumps({"model": "m", "max_tokens": 9, "stream": True, "messages": messages, "input": messages}).encode()
    body = b"" if method == "GET" else body
    back = (("X-Answer", canary), ("Set-Cookie", f"c={canary}"), ("x-answer", "two"), ("Retry-After", "9"))
    answered = f'{{"text": "<**clear**> {canary}"}}\n'.encode() + b"\x00\xff"
    provider.always(Behaviour(status=418, headers=back, body=answered), path=".")
    answer = call(host, path, body, method=method, proxy=proxy, ca=provider.ca, headers=headers)
    (received,) = provider.requests
    said = [("Host", host.removeprefix("https://")), *headers, ("Content-Length", str(len(body)))]
    assert received.head.decode() == _head(f"{method} {path} HTTP/1.1", said)
    assert received.wire_body == body
    assert (answer.status, answer.body) == (418, answered)
    assert [pair for pair in answer.headers if pair in back] == list(back)


def _socket(proxy: Mitmdump, provider: FakeProvider, _: str, url: str, canary: str) -> None:
    """Frames both ways are bytes like any others; here the far end speaks first."""
    host, path = _divided(url)
    frames = b"\x81\x19<**clear**> of the server" + bytes(range(256))
    upgrade = [("Connection", "Upgrade"), ("Upgrade", "websocket")]
    accepted = _head("HTTP/1.1 101 Switching Protocols", [*upgrade, ("X-Canary", canary)])
    provider.always(Behaviour(raw=accepted.encode() + frames, ending="hang"), path=".")
    said = [
        ("Host", host.removeprefix("https://")),
        *upgrade,
        ("Sec-WebSocket-Version", "13"),
        ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ("Authorization", f"Bearer {canary}"),
    ]
    mine = b"\x81\x8f\x01\x02\x03\x04" + f"<**echo**> {canary}".encode() + bytes(range(256))

    async def upgraded() -> tuple[bytes, bytes]:
        async with Http1(Route(host, proxy, provider.ca)) as client:
            await client.write_raw(_head(f"GET {path} HTTP/1.1", said).encode())
            assert client.pipe is not None
            async with asyncio.timeout(60):
                head = await client.pipe.read_until(b"\r\n\r\n")
                heard = await client.pipe.read_exactly(len(frames))
            await client.write_raw(mine)
            await asyncio.to_thread(until, lambda: provider.all_bytes().find(mine) >= 0, "the frames did not arrive")
            return head, heard

    head, heard = asyncio.run(upgraded())
    assert head.decode() == accepted
    assert heard == frames
    (received,) = provider.requests
    assert received.head.decode() == _head(f"GET {path} HTTP/1.1", said)


def _divided(url: str) -> tuple[str, str]:
    scheme, _, rest = url.partition("//")
    host, slash, path = rest.partition("/")
    return f"{scheme}//{host}", slash + path


def _head(line: str, headers: list[tuple[str, str]]) -> str:
    return f"{line}\r\n" + "".join(f"{name}: {value}\r\n" for name, value in headers) + "\r\n"
