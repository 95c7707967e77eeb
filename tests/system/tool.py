"""A small LLM tool, as tests need one: it keeps its history, and asks in any dialect, through the proxy."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from routecodex.routing.values import Dialect
from tests.rig.behaviour import Behaviour
from tests.rig.client import Answer, call
from tests.rig.provider import FakeProvider, Received
from tests.rig.proxy import Mitmdump

_TEMPLATE = """
proxy:
  interceptHosts: [api.anthropic.com, api.openai.com, generativelanguage.googleapis.com, cloudcode-pa.googleapis.com]
virtualrouter:
  providers:
    glm:
      protocol: openai-chat
      baseURL: https://open.bigmodel.cn/api/paas/v4
      endpoints: {anthropic-messages: https://open.bigmodel.cn/api/anthropic}
      auth: {type: apikey, keys: [{alias: primary, value: glm-key-1}, {alias: backup, value: glm-key-2}]}
      models: {glm-4.7: {maxContext: 200000}}
    claude:
      protocol: anthropic-messages
      baseURL: https://api.anthropic.com
      auth: {type: apikey, keys: [{alias: own, value: sk-ant-own}]}
      models: {claude-sonnet-4-5: {}}
    six:
      protocol: openai-chat
      baseURL: https://six.example/v1
      endpoints:
        anthropic-messages: https://six.example
        openai-responses: https://six.example/v1
        gemini-chat: https://six.example
      auth:
        type: apikey
        keys: [MANY]
      models: {m: {}}
  routing:
    default: [origin]
"""

CONFIG = _TEMPLATE.replace("MANY", ", ".join(f"{{alias: k{n}, value: six-key-{n:03}}}" for n in range(100)))
"""Each failure rests a key of `six` for a while: there are enough for all tests that share a proxy."""

HOSTS = {
    Dialect.MESSAGES: "https://api.anthropic.com",
    Dialect.CHAT: "https://api.openai.com",
    Dialect.RESPONSES: "https://api.openai.com",
    Dialect.GEMINI: "https://generativelanguage.googleapis.com",
}
CREDENTIALS = {
    Dialect.MESSAGES: ("x-api-key", "sk-client-secret"),
    Dialect.CHAT: ("authorization", "Bearer sk-client-secret"),
    Dialect.RESPONSES: ("authorization", "Bearer sk-client-secret"),
    Dialect.GEMINI: ("x-goog-api-key", "sk-client-secret"),
}


@dataclass(slots=True)
class Tool:
    provider: FakeProvider
    proxy: Mitmdump
    dialect: Dialect = Dialect.MESSAGES
    model: str = "claude-x"
    session: str | None = field(default_factory=lambda: str(uuid.uuid4()))
    history: list[tuple[str, str]] = field(default_factory=list)

    def ask(self, text: str, *, stream: bool = False, headers: tuple[tuple[str, str], ...] = (), **more: Any) -> Answer:
        """One user message; question and answer join the history, as tools do it."""
        self.history.append(("user", text))
        answer = self.send(stream=stream, headers=headers, **more)
        if answer.status == 200:
            self.history.append(("assistant", text_of(self.dialect, answer.body, stream)))
        return answer

    def send(self, *, stream: bool = False, headers: tuple[tuple[str, str], ...] = (), **more: Any) -> Answer:
        path, body = write(self.dialect, self.model, self.history, stream)
        sent = (CREDENTIALS[self.dialect], ("content-type", "application/json"), *headers)
        if self.session is not None:
            sent += (("x-session-id", self.session),)
        return call(HOSTS[self.dialect], path, body | more, proxy=self.proxy, headers=sent)

    @property
    def received(self) -> list[Received]:
        return self.provider.requests

    # Where several tools of different dialects share a provider that speaks them all

    def enqueue(self, *behaviours: Behaviour) -> None:
        """For this tool's own calls."""
        self.provider.enqueue(*behaviours, path=_PATHS[self.dialect])

    @property
    def calls(self) -> list[Received]:
        return [one for one in self.provider.calls if one.asked is not None and one.asked.dialect is self.dialect]


_PATHS = {
    Dialect.MESSAGES: "/messages$",
    Dialect.CHAT: "/chat/completions$",
    Dialect.RESPONSES: "/responses$",
    Dialect.GEMINI: ":(streamG|g)enerateContent",
}


def side_by_side(provider: FakeProvider, proxy: Mitmdump, told: Callable[[Tool], None]) -> None:
    """In every dialect at once: what is mostly waiting takes no longer than in one."""
    provider.forget()
    with ThreadPoolExecutor(len(Dialect)) as pool:
        running = {dialect: pool.submit(told, Tool(provider, proxy, dialect)) for dialect in Dialect}
    for dialect, one in running.items():
        if (failed := one.exception()) is not None:
            failed.add_note(f"in {dialect}")
            raise failed


def write(dialect: Dialect, model: str, history: list[tuple[str, str]], stream: bool) -> tuple[str, dict[str, Any]]:
    match dialect:
        case Dialect.MESSAGES:
            messages = [{"role": role, "content": text} for role, text in history]
            return "/v1/messages", {"model": model, "max_tokens": 100, "stream": stream, "messages": messages}
        case Dialect.CHAT:
            return "/v1/chat/completions", {
                "model": model,
                "stream": stream,
                "messages": [{"role": role, "content": text} for role, text in history],
            }
        case Dialect.RESPONSES:
            kinds = {"user": "input_text", "assistant": "output_text"}
            items = [
                {"type": "message", "role": role, "content": [{"type": kinds[role], "text": text}]} for role, text in history
            ]
            return "/v1/responses", {"model": model, "stream": stream, "input": items}
        case Dialect.GEMINI:
            verb = "streamGenerateContent?alt=sse" if stream else "generateContent"
            roles = {"user": "user", "assistant": "model"}
            contents = [{"role": roles[role], "parts": [{"text": text}]} for role, text in history]
            return f"/v1beta/models/{model}:{verb}", {"contents": contents}


def text_of(dialect: Dialect, body: bytes, stream: bool) -> str:
    """What the answer says, read the way a simple tool reads it."""
    if not stream:
        return _whole_text(dialect, json.loads(body))
    said = []
    for line in body.decode().splitlines():
        if line.startswith("data: ") and line != "data: [DONE]":
            said.append(_delta_text(dialect, json.loads(line[6:])))
    return "".join(said)


def _whole_text(dialect: Dialect, answer: dict[str, Any]) -> str:
    match dialect:
        case Dialect.MESSAGES:
            return "".join(block.get("text", "") for block in answer["content"])
        case Dialect.CHAT:
            return str(answer["choices"][0]["message"]["content"])
        case Dialect.RESPONSES:
            return "".join(part.get("text", "") for item in answer["output"] for part in item.get("content") or ())
        case Dialect.GEMINI:
            return "".join(part.get("text", "") for part in answer["candidates"][0]["content"]["parts"])


def _delta_text(dialect: Dialect, event: dict[str, Any]) -> str:
    match dialect:
        case Dialect.MESSAGES:
            return str(event["delta"].get("text", "")) if event["type"] == "content_block_delta" else ""
        case Dialect.CHAT:
            return "".join(choice["delta"].get("content") or "" for choice in event.get("choices", ()))
        case Dialect.RESPONSES:
            return str(event["delta"]) if event["type"] == "response.output_text.delta" else ""
        case Dialect.GEMINI:
            parts = [part for found in event.get("candidates", ()) for part in found["content"].get("parts", ())]
            return "".join(part.get("text", "") for part in parts)
