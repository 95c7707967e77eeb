"""A client that keeps its history as real tools do: with thinking, tool calls and results; and what a provider should get of it.

1. The history stands last in the body, so that a later call's bytes begin with an earlier one's as long as nothing has changed.
2. `true_answer` is what stands for one round in the history that the provider gets, written independently of the product.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from routecodex.routing.values import Dialect
from tests.rig.answer import to_bytes
from tests.rig.client import Answer, Http1, Http2, Route
from tests.rig.provider import FakeProvider, Received
from tests.rig.proxy import Mitmdump
from tests.rig.wire import Reply, ToolUse
from tests.system.grammar import Told, read
from tests.system.tool import CREDENTIALS, HOSTS

Item = dict[str, Any]
FORMS = [(dialect, stream) for dialect in Dialect for stream in (True, False)]
IDS = [f"{dialect}-{'stream' if stream else 'json'}" for dialect, stream in FORMS]
LISTS = {Dialect.MESSAGES: "messages", Dialect.CHAT: "messages", Dialect.RESPONSES: "input", Dialect.GEMINI: "contents"}

_SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}}
_BASH = {"name": "Bash", "description": "Run a command."}
EXTRAS: dict[Dialect, Item] = {
    Dialect.MESSAGES: {
        "max_tokens": 77,
        "temperature": 0.5,
        "system": "Be brief.",
        "tools": [{**_BASH, "input_schema": _SCHEMA}],
        "x_unknown": {"b": 1, "a": [2.50]},
    },
    Dialect.CHAT: {
        "max_completion_tokens": 77,
        "temperature": 0.5,
        "stream_options": {"include_usage": True},
        "tools": [{"type": "function", "function": {**_BASH, "parameters": _SCHEMA}}],
        "x_unknown": {"b": 1, "a": [2.50]},
    },
    Dialect.RESPONSES: {
        "max_output_tokens": 77,
        "temperature": 0.5,
        "instructions": "Be brief.",
        "store": False,
        "tools": [{"type": "function", **_BASH, "parameters": _SCHEMA}],
        "x_unknown": {"b": 1, "a": [2.50]},
    },
    Dialect.GEMINI: {
        "generationConfig": {"maxOutputTokens": 77, "temperature": 0.5},
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "tools": [{"functionDeclarations": [{**_BASH, "parameters": _SCHEMA}]}],
        "x_unknown": {"b": 1, "a": [2.50]},
    },
}
"""What else stands in every body: all of it has to reach the provider in every round."""


@dataclass
class Speaker:
    provider: FakeProvider
    proxy: Mitmdump
    dialect: Dialect = Dialect.MESSAGES
    stream: bool = True
    model: str = "client-model"
    session: str | None = field(default_factory=lambda: str(uuid.uuid4()))
    headers: tuple[tuple[str, str], ...] = ()
    extras: Item | None = None
    items: list[Item] = field(default_factory=list)
    """The history as the client holds it."""

    def ask(self, text: str, **how: Any) -> Answer:
        """One message of the person's; question and answer join the history."""
        self.items += said_by_user(self.dialect, text)
        return self.go_on(**how)

    def give(self, results: Iterable[tuple[str, str, str]], **how: Any) -> Answer:
        """Results of the client's tools: (id, name, text)."""
        self.items += results_of(self.dialect, list(results))
        return self.go_on(**how)

    def go_on(self, **how: Any) -> Answer:
        answer = asyncio.run(self.send(**how))
        if answer.status == 200 and answer.ended == "complete" and how.get("keep", True):
            self.items += held_answer(self.dialect, read(self.dialect, answer.body, self.stream))
        return answer

    async def send(self, client: type[Http1 | Http2] = Http1, **how: Any) -> Answer:
        how.pop("keep", None)
        async with client(Route(HOSTS[self.dialect], self.proxy)) as connected:
            return await connected.send("POST", self.path, body=self.body, headers=self.sent_headers, **how)

    @property
    def sent_headers(self) -> list[tuple[str, str]]:
        named = [("x-session-id", self.session)] if self.session is not None else []
        return [CREDENTIALS[self.dialect], ("content-type", "application/json"), *named, *self.headers]

    @property
    def path(self) -> str:
        match self.dialect:
            case Dialect.MESSAGES:
                return "/v1/messages"
            case Dialect.CHAT:
                return "/v1/chat/completions"
            case Dialect.RESPONSES:
                return "/v1/responses"
            case Dialect.GEMINI:
                verb = "streamGenerateContent?alt=sse" if self.stream else "generateContent"
                return f"/v1beta/models/{self.model}:{verb}"

    @property
    def body(self) -> bytes:
        head = {} if self.dialect is Dialect.GEMINI else {"model": self.model, "stream": self.stream}
        extras = EXTRAS[self.dialect] if self.extras is None else self.extras
        if not self.stream:
            extras = {name: value for name, value in extras.items() if name != "stream_options"}
        body = to_bytes({**head, **extras, LISTS[self.dialect]: self.items})
        assert isinstance(body, bytes)
        return body

    def told(self, answer: Answer) -> Told:
        assert (answer.status, answer.ended) == (200, "complete"), answer.text
        return read(self.dialect, answer.body, self.stream)

    def history(self, received: Received) -> list[Item]:
        """The history that the provider got."""
        found = received.json[LISTS[self.dialect]]
        assert isinstance(found, list)
        return found

    def beside(self, received: Received) -> Item:
        """All the rest of its body."""
        return {name: value for name, value in received.json.items() if name != LISTS[self.dialect]}


# ---- how each dialect writes ----


def said_by_user(dialect: Dialect, text: str) -> list[Item]:
    match dialect:
        case Dialect.RESPONSES:
            return [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}]
        case Dialect.GEMINI:
            return [{"role": "user", "parts": [{"text": text}]}]
        case _:
            return [{"role": "user", "content": text}]


def followed_up(dialect: Dialect, text: str) -> list[Item]:
    """The same where the product writes it."""
    blocks = [{"role": "user", "content": [{"type": "text", "text": text}]}]
    return blocks if dialect is Dialect.MESSAGES else said_by_user(dialect, text)


def results_of(dialect: Dialect, results: list[tuple[str, str, str]]) -> list[Item]:
    match dialect:
        case Dialect.MESSAGES:
            return [{"role": "user", "content": [_messages_result(id, text) for id, _, text in results]}]
        case Dialect.CHAT:
            return [{"role": "tool", "tool_call_id": id, "content": text} for id, _, text in results]
        case Dialect.RESPONSES:
            return [{"type": "function_call_output", "call_id": id, "output": text} for id, _, text in results]
        case Dialect.GEMINI:
            parts = [{"functionResponse": {"name": name, "response": {"output": text}}} for _, name, text in results]
            return [{"role": "user", "parts": parts}]


def _messages_result(id: str, text: str) -> Item:
    return {"type": "tool_result", "tool_use_id": id, "content": text}


def held_answer(dialect: Dialect, told: Told) -> list[Item]:
    """An answer as the client holds it."""
    uses = tuple(ToolUse(name, arguments, id) for (name, arguments), id in zip(told.calls, told.ids, strict=True))
    thinking, signature = "".join(told.thinking), "".join(told.signatures[:1])
    return _written(dialect, told.text, thinking, signature, uses, number=None)


def true_answer(dialect: Dialect, reply: Reply, received: Received) -> list[Item]:
    """A round's answer as the provider gets it back."""
    number = received.asked.number if received.asked is not None else 0
    return _written(dialect, reply.joined, reply.thinking, reply.signature, reply.calls, number=number)


def _written(
    dialect: Dialect, text: str, thinking: str, signature: str, calls: tuple[ToolUse, ...], *, number: int | None
) -> list[Item]:
    """`number`: the provider's own writing (the ids it makes, its own further fields); None: the client's."""
    ids = [call.id or _made_id(dialect, number or 0, place) for place, call in enumerate(calls)]
    match dialect:
        case Dialect.MESSAGES:
            blocks: list[Item] = [{"type": "thinking", "thinking": thinking, "signature": signature}] if thinking else []
            blocks += [{"type": "text", "text": text}] if text else []
            blocks += [
                {"type": "tool_use", "id": id, "name": call.name, "input": call.arguments}
                for id, call in zip(ids, calls, strict=True)
            ]
            return [{"role": "assistant", "content": blocks}]
        case Dialect.CHAT:
            message: Item = {"role": "assistant", "content": text or None}
            message |= {"reasoning_content": thinking} if thinking else {}
            functions = [{"name": call.name, "arguments": call.json} for call in calls]
            called = [{"id": id, "type": "function", "function": function} for id, function in zip(ids, functions, strict=True)]
            return [message | ({"tool_calls": called} if called else {})]
        case Dialect.RESPONSES:
            return _responses_items(text, thinking, signature, calls, ids, told=number is not None)
        case Dialect.GEMINI:
            parts: list[Item] = [{"text": thinking, "thought": True}] if thinking and number is not None else []
            parts += [{"text": text}] if text else []
            for place, call in enumerate(calls):
                function = {"name": call.name, "args": call.arguments, **({"id": call.id} if call.id else {})}
                signed = {"thoughtSignature": signature} if place == 0 and signature else {}
                parts.append({"functionCall": function, **signed})
            return [{"role": "model", "parts": parts}]


def _responses_items(
    text: str, thinking: str, signature: str, calls: tuple[ToolUse, ...], ids: list[str], *, told: bool
) -> list[Item]:
    items: list[Item] = []
    if thinking:
        summary = [{"type": "summary_text", "text": thinking}]
        items.append({"type": "reasoning", "summary": summary, "encrypted_content": signature})
    if text:
        part = {"type": "output_text", "annotations": [], "text": text, **({"logprobs": []} if told else {})}
        status = {"status": "completed"} if told else {}
        items.append({"type": "message", **status, "role": "assistant", "content": [part]})
    for id, call in zip(ids, calls, strict=True):
        status = {"status": "completed"} if told else {}
        items.append({"type": "function_call", **status, "call_id": id, "name": call.name, "arguments": call.json})
    return items


def _made_id(dialect: Dialect, number: int, place: int) -> str:
    """As the rig makes them."""
    return f"toolu_01Rig{number:08d}{place:04d}" if dialect is Dialect.MESSAGES else f"call_Rig{number:08d}{place:04d}"
