"""What a stream and a whole message of Anthropic's share: ids, seals, arguments, counts, reasons."""

from __future__ import annotations

import re

from ....jsonbytes import dumps
from ....values import Dialect, JsonObject
from ...fields import arguments_of, read_json, text_of
from ...translation.ids import digest, fitting
from ...translation.neutral import Asked, Media, Seal, Tokens
from ...translation.opaque import wrap
from ..words import told_media

_ID = re.compile(r"[a-zA-Z0-9_-]+")
_LONGEST_ID = 64


class Ids:
    """Ids of calls, each once in an answer."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._given: set[str] = set()

    def of(self, id: str, name: str, answer: str = "") -> str:
        id = fitting(id, _ID, _LONGEST_ID, prefix="toolu_") if id else ""
        if not id or id in self._given:
            id = f"toolu_{digest(f'{self._asked.id}{answer} {len(self._given)} {name}', 24)}"
        self._given.add(id)
        return id


def placeholder(media: Media, *, alone: bool) -> str:
    """What stands for a picture or sound of the model's own, which these blocks cannot hold."""
    return f"{told_media(media)}\n\n" if alone else f"\n\n{told_media(media)}\n\n"


def message_id(id: str, asked: Asked) -> str:
    return fitting(id, _ID, _LONGEST_ID, prefix="msg_") if id else f"msg_{digest(asked.id, 24)}"


def head_of(id: str, asked: Asked) -> JsonObject:
    return {
        "id": message_id(id, asked),
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
