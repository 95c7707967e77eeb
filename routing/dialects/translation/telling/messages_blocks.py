"""What a stream and a whole message of Anthropic's share: ids, seals, arguments, counts, reasons."""

from __future__ import annotations

import re

from ....jsonbytes import dumps
from ....values import Dialect, JsonObject
from ...fields import arguments_of, read_json, text_of
from ...finish import decide_finish
from ..ids import digest, fitting
from ..neutral import Asked, CallStarted, Finished, Media, Seal, Tokens
from ..seals import wrap
from .words import told_media

_ID = re.compile(r"[a-zA-Z0-9_-]+")
_LONGEST_ID = 64


class Ids:
    """The heads of calls: their ids, each once in an answer, and the names that the client knows."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._given: set[str] = set()

    @property
    def count(self) -> int:
        return len(self._given)

    def head(self, call: CallStarted, answer: str = "") -> JsonObject:
        id = fitting(call.id, _ID, _LONGEST_ID, prefix="toolu_") if call.id else ""
        if not id or id in self._given:
            id = f"toolu_{digest(f'{self._asked.id}{answer} {len(self._given)} {call.name}', 24)}"
        self._given.add(id)
        known = self._asked.tools.get(call.name)
        return {"type": "tool_use", "id": id, "name": known.name if known is not None else call.name}


def placeholder(media: Media, *, alone: bool) -> str:
    """What stands for a picture or sound of the model's own, which these blocks cannot hold."""
    return f"{told_media(media)}\n\n" if alone else f"\n\n{told_media(media)}\n\n"


def head_of(id: str, asked: Asked) -> JsonObject:
    return {
        "id": fitting(id, _ID, _LONGEST_ID, prefix="msg_") if id else f"msg_{digest(asked.id, 24)}",
        "type": "message",
        "role": "assistant",
        "model": asked.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
    }


def usage_of(tokens: Tokens) -> JsonObject:
    return {
        "input_tokens": max(0, tokens.input - tokens.cached - tokens.written),
        "cache_creation_input_tokens": tokens.written,
        "cache_read_input_tokens": tokens.cached,
    }


def last_usage(tokens: Tokens) -> JsonObject:
    usage = {**usage_of(tokens), "output_tokens": tokens.output}
    return {**usage, "output_tokens_details": {"thinking_tokens": tokens.reasoning}} if tokens.reasoning else usage


def stop_reason(event: Finished, calls: bool | None, asked: Asked) -> str:
    finish = decide_finish(event.word, Dialect.MESSAGES, calls=calls, content_filter=asked.endings.content_filter)
    return "stop_sequence" if event.stop_sequence and finish.reason == "stop" else finish.word


def is_redacted(seal: Seal) -> bool:
    return seal.dialect is Dialect.MESSAGES and "data" in seal.payload


def word_of(seal: Seal) -> str:
    """The signature: its own where it is this dialect's, else the seal in one word."""
    own = text_of(seal.payload.get("signature")) if seal.dialect is Dialect.MESSAGES else ""
    return own or wrap(seal)


def sealed_block(seal: Seal) -> JsonObject:
    if is_redacted(seal):
        return {"type": "redacted_thinking", "data": seal.payload["data"]}
    return {"type": "thinking", "thinking": "", "signature": word_of(seal)}


def as_object(arguments: str) -> str:
    """The model's own text where it is an object; some providers write `null` or nothing for a tool without parameters."""
    text = arguments.strip()
    if not text or text == "null":
        return "{}"
    if isinstance(read_json(text.encode("utf-8", "surrogatepass")), dict):
        return arguments
    return dumps(arguments_of(arguments)).decode()
