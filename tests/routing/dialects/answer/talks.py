"""Rounds of any dialect and form, and one answer of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from routecodex.routing.dialects.answer.machine import Answer, Round
from routecodex.routing.dialects.translation.neutral import Asked
from routecodex.routing.turn.said import Said
from routecodex.routing.values import Dialect, Endpoint
from tests.routing.dialects.merging import openai_rounds as openai
from tests.routing.dialects.merging import rounds
from tests.routing.dialects.merging.rounds import Spoken

CHAT, MESSAGES = Dialect.CHAT, Dialect.MESSAGES
WRITTEN: dict[tuple[Dialect, bool], Callable[[Spoken, int], bytes]] = {
    (CHAT, True): openai.chat_stream,
    (CHAT, False): openai.chat_json,
    (MESSAGES, True): rounds.messages_stream,
    (MESSAGES, False): rounds.messages_json,
}
"""How a provider says a round, by dialect and whether it streams."""


@dataclass(frozen=True)
class Way:
    """One dialect in one form."""

    dialect: Dialect
    stream: bool = True

    def __str__(self) -> str:
        return f"{self.dialect.name.lower()}{'' if self.stream else '-json'}"


WAYS = [Way(dialect, stream) for dialect, stream in WRITTEN]


def answer_for(client: Way, *, quiet: bool = False, **more: Any) -> Answer:
    asked = Asked(Endpoint(client.dialect), client.stream, "0123abcd", "asked-model", 1, "acme", include_usage=True, **more)
    return Answer(asked, own=rounds.OWN, quiet=quiet)


def drive(answer: Answer, given: Sequence[tuple[Dialect, bytes]], cut: Any = rounds.whole) -> tuple[bytes, list[Said]]:
    """All rounds and the end."""
    out: list[bytes] = []
    said: list[Said] = []
    for spoken, raw in given:
        answer.begin_round(Round(spoken, f"maker of {spoken}"))
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
