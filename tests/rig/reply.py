"""What a test says the model answers, and what a request asks for; the small writers that all dialects share."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import parse_qs, unquote, urlsplit

from routecodex.routing.values import Dialect

Stop = Literal["stop", "length", "tool_calls", "content_filter"]


@dataclass(frozen=True, slots=True)
class ToolUse:
    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    id: str = ""

    @property
    def json(self) -> str:
        return json.dumps(self.arguments, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model says. A tuple of texts gives the deltas; a plain text is cut into words."""

    text: str | tuple[str, ...] = "ok"
    thinking: str = ""
    signature: str = "EqQBCkYIARgCKkBzaWduYXR1cmUtb2YtdGhlLXJpZw=="
    calls: tuple[ToolUse, ...] = ()
    stop: Stop | None = None
    """None: `tool_calls` with calls, else `stop`."""
    input_tokens: int = 25
    cached_tokens: int = 0
    output_tokens: int | None = None
    id: str = ""
    model: str = ""
    """Empty: the model that was asked for."""

    @property
    def pieces(self) -> tuple[str, ...]:
        return self.text if isinstance(self.text, tuple) else tuple(re.findall(r"\s*\S+\s*$|\s*\S+|\s+", self.text))

    @property
    def joined(self) -> str:
        return self.text if isinstance(self.text, str) else "".join(self.text)

    @property
    def ending(self) -> Stop:
        return self.stop or ("tool_calls" if self.calls else "stop")

    @property
    def tokens(self) -> int:
        return len(self.pieces) + 10 * len(self.calls) if self.output_tokens is None else self.output_tokens


@dataclass(frozen=True, slots=True)
class Asked:
    """What one request asks for, read from its path and body."""

    dialect: Dialect
    action: Literal["generate", "count"]
    model: str = ""
    stream: bool = False
    json_array: bool = False
    envelope: bool = False
    usage_chunk: bool = False
    number: int = 0
    """Makes ids differ from one answer to the next."""


_PATHS: tuple[tuple[str, Dialect, Literal["generate", "count"]], ...] = (
    (r"/messages/count_tokens$", Dialect.MESSAGES, "count"),
    (r"/messages$", Dialect.MESSAGES, "generate"),
    (r"/chat/completions$", Dialect.CHAT, "generate"),
    (r"/responses/input_tokens$", Dialect.RESPONSES, "count"),
    (r"/responses$", Dialect.RESPONSES, "generate"),
    (r":(?:streamG|g)enerateContent$", Dialect.GEMINI, "generate"),
    (r":countTokens$", Dialect.GEMINI, "count"),
)


def read_request(method: str, target: str, body: object, number: int = 0) -> Asked | None:
    """None: not a model path."""
    url = urlsplit(target)
    known = next(((dialect, action) for pattern, dialect, action in _PATHS if re.search(pattern, url.path)), None)
    if known is None or method != "POST":
        return None
    dialect, action = known
    fields = body if isinstance(body, dict) else {}
    if dialect is Dialect.GEMINI:
        named = re.search(r"/models/(.+):\w+$", url.path)
        streams = url.path.endswith(":streamGenerateContent")
        return Asked(
            dialect,
            action,
            model=unquote(named[1]) if named else str(fields.get("model", "")),
            stream=streams,
            json_array=streams and parse_qs(url.query).get("alt") != ["sse"],
            envelope="/v1internal" in url.path,
            number=number,
        )
    options = fields.get("stream_options")
    usage_chunk = isinstance(options, dict) and bool(options.get("include_usage"))
    return Asked(
        dialect, action, str(fields.get("model", "")), bool(fields.get("stream")), usage_chunk=usage_chunk, number=number
    )


def dump(value: object) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


def cut(text: str, size: int = 12) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


def sse(value: dict[str, Any]) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (str(value["type"]).encode(), dump(value))


def data(value: object, newline: bytes = b"\n") -> bytes:
    return b"data: " + dump(value) + newline * 2
