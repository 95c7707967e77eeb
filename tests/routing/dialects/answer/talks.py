"""Rounds of any dialect and form, and one answer of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from routecodex.routing.dialects.answer.machine import Answer, Round
from routecodex.routing.dialects.said import Said
from routecodex.routing.values import Dialect, Endpoint
from tests.rig.asked import Asked
from tests.routing.dialects.answer import openai_rounds as openai
from tests.routing.dialects.answer import rounds
from tests.routing.dialects.answer.rounds import Spoken
from tests.system import grammar

CHAT, MESSAGES, RESPONSES, GEMINI = Dialect.CHAT, Dialect.MESSAGES, Dialect.RESPONSES, Dialect.GEMINI
FINISH: dict[Dialect, dict[str, str]] = {
    CHAT: {"tool": "tool_calls", "stop": "stop", "length": "length"},
    MESSAGES: {"tool": "tool_use", "stop": "end_turn", "length": "max_tokens"},
    RESPONSES: {"tool": "completed", "stop": "completed", "length": "max_output_tokens"},
    GEMINI: {"tool": "STOP", "stop": "STOP", "length": "MAX_TOKENS"},
}
"""The words for why an answer ended."""
WRITTEN: dict[tuple[Dialect, bool], Callable[[Spoken, int], bytes]] = {
    (CHAT, True): openai.chat_stream,
    (CHAT, False): openai.chat_json,
    (MESSAGES, True): rounds.messages_stream,
    (MESSAGES, False): rounds.messages_json,
    (GEMINI, True): rounds.gemini_stream,
    (GEMINI, False): rounds.gemini_json,
    (RESPONSES, True): openai.responses_stream,
    (RESPONSES, False): openai.responses_json,
}
"""How a provider says a round, by dialect and whether it streams."""


@dataclass(frozen=True)
class Way:
    """One dialect in one form."""

    dialect: Dialect
    stream: bool = True
    array: bool = False
    """Gemini's stream that is one JSON array."""
    envelope: bool = False
    """Gemini's answers as Code Assist has them."""

    def __str__(self) -> str:
        kind = "-array" if self.array else "-envelope" if self.envelope else ""
        return f"{self.dialect.name.lower()}{kind}{'' if self.stream else '-json'}"

    @property
    def endpoint(self) -> Endpoint:
        stream = self.stream if self.dialect is GEMINI else None
        return Endpoint(self.dialect, stream=stream, json_array=self.array, envelope=self.envelope)

    def written(self, round_: Spoken, number: int) -> bytes:
        write: Callable[..., bytes] = WRITTEN[self.dialect, self.stream]
        if self.array:
            write = partial(write, array=True)
        return partial(write, envelope=True)(round_, number) if self.envelope else write(round_, number)


ARRAY, ENVELOPE = Way(GEMINI, array=True), Way(GEMINI, envelope=True)
WAYS = [*(Way(dialect, stream) for dialect, stream in WRITTEN), ARRAY]


def as_events(client: Way, raw: bytes) -> bytes:
    return sse(*(json.dumps(one).encode() for one in rounds.array_documents(raw))) if client.array else raw


def read(client: Way, raw: bytes) -> grammar.Told:
    """What a client makes of it."""
    return grammar.read(client.dialect, as_events(client, raw), client.stream)


def error_at_end(client: Way, raw: bytes) -> tuple[str, str]:
    return grammar.error_at_end(client.dialect, as_events(client, raw), client.stream)


def answer_for(client: Way, *, quiet: bool = False, **more: Any) -> Answer:
    asked = Asked(client.endpoint, client.stream, "0123abcd", "asked-model", 1, maker="acme", include_usage=True, **more)
    return Answer(asked, own=rounds.OWN, quiet=quiet)


def drive(
    answer: Answer, given: Sequence[tuple[Dialect, bytes]], cut: Any = rounds.whole, *, exact: bool = False
) -> tuple[bytes, list[Said]]:
    """All rounds and the end."""
    out: list[bytes] = []
    said: list[Said] = []
    for spoken, raw in given:
        answer.begin_round(Round(spoken, f"maker of {spoken}"), exact=exact)
        out += [answer.feed(b""), *(answer.feed(piece) for piece in cut(raw))]
        said.append(answer.end_round())
    return b"".join((*out, *answer.finish())), said


def sse(*documents: Any, name: bool = False) -> bytes:
    """A stream of these; `name`: each event has its type's name, as Messages' have."""

    def event(one: Any) -> bytes:
        data = one if isinstance(one, bytes) else json.dumps(one, ensure_ascii=False).encode()
        head = f"event: {one['type']}\n".encode() if name else b""
        return head + b"data: " + data + b"\n\n"

    return b"".join(map(event, documents))


def chunk(delta: dict[str, Any], reason: str | None = None, **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return {"id": "chatcmpl-9", "object": "chat.completion.chunk", "created": 9, "model": "m", "choices": [choice], **more}


def entry(index: int | None, arguments: str, name: str = "", id: str = "") -> dict[str, Any]:
    """One of a delta's `tool_calls`."""
    head: dict[str, Any] = {} if index is None else {"index": index}
    named = {"id": id, "type": "function"} if id else {}
    return {**head, **named, "function": {**({"name": name} if name else {}), "arguments": arguments}}


COUNTS = {"promptTokenCount": 5, "candidatesTokenCount": 3, "totalTokenCount": 8}


def candidate(*parts: dict[str, Any], reason: str = "", **more: Any) -> dict[str, Any]:
    """A chunk of Gemini's."""
    one = {"content": {"parts": list(parts), "role": "model"}, "index": 0, **({"finishReason": reason} if reason else {})}
    return {"candidates": [one], "modelVersion": "m", "responseId": "r-9", **more}


def called(name: str, args: dict[str, Any], **beside: Any) -> dict[str, Any]:
    return {"functionCall": {"name": name, "args": args}, **beside}


def in_part(path: str, text: str, *, goes_on: bool = True) -> dict[str, Any]:
    """A part of a call's arguments."""
    piece = {"jsonPath": path, "stringValue": text, **({"willContinue": True} if goes_on else {})}
    return {"functionCall": {"partialArgs": [piece], "willContinue": True}}
