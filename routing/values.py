"""The values everybody passes around: a call, its messages and parts, who sent it, where it goes.

1. These are plain values: no I/O, no clock, no configuration.
2. A `Call` keeps the client's own JSON (`body`) and its exact bytes (`raw`). Messages and parts are a *view* of that JSON;
   the dialect modules are the only ones that write to the body, and they set `changed` when they do.
3. A call that nobody changed is sent as `raw`, byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from itertools import chain
from operator import attrgetter
from typing import Literal, TypeAlias

from msgspec import Struct, field

JsonObject: TypeAlias = dict[str, object]


class Dialect(StrEnum):
    """The four wire protocols."""

    MESSAGES = "anthropic-messages"
    CHAT = "openai-chat"
    RESPONSES = "openai-responses"
    GEMINI = "gemini-chat"


class Kind(StrEnum):
    """What a call is for. Only calls of the main kind obey tags."""

    MAIN = "main"
    TITLE = "title"
    ROUTER = "router"
    MEMORY = "memory"
    SUMMARY = "summary"
    COMPACTION = "compaction"
    SUBAGENT = "subagent"
    SIDE = "side"


class Endpoint(Struct, frozen=True):
    """What a model path asks for, read from the path alone."""

    dialect: Dialect
    action: Literal["generate", "count"] = "generate"
    model: str | None = None
    """Named in the path (Gemini); None where the body names it."""
    stream: bool | None = None
    """Decided by the path (Gemini); None where the body decides."""
    json_array: bool = False
    """Gemini's stream without `alt=sse` is one JSON array."""
    envelope: bool = False
    """Gemini Code Assist: the call sits in `request`, the answer in `response`."""


class Text(Struct):
    """A piece of text; `slot` is its place in the raw content list (-1: the content is one plain string)."""

    text: str
    slot: int = -1


MediaKind: TypeAlias = Literal["image", "audio", "video", "file"]
_MEDIA_FAMILIES: Mapping[str, MediaKind] = {"image": "image", "audio": "audio", "video": "video"}


def media_kind(media_type: str) -> MediaKind:
    """Of a MIME type; what is nothing to see or to hear is a file."""
    return _MEDIA_FAMILIES.get(media_type.partition("/")[0], "file")


class Media(Struct):
    """An image, sound, video or file."""

    kind: MediaKind
    slot: int = -1


class Thinking(Struct):
    """The model's own reasoning, signed or encrypted by whoever wrote it."""

    text: str
    slot: int = -1


class ToolCall(Struct):
    """The model asks for a tool; `arguments` is JSON text."""

    id: str
    name: str
    arguments: str
    slot: int = -1


class ToolResult(Struct):
    """What a tool answered; never typed by anybody, never edited."""

    id: str
    text: str
    slot: int = -1


class Other(Struct):
    """Something this program does not know and leaves alone."""

    slot: int = -1


Part: TypeAlias = Text | Media | Thinking | ToolCall | ToolResult | Other
Role: TypeAlias = Literal["system", "user", "assistant", "tool"]


class Message(Struct):
    """One message of the history: a view of the raw item at `index` of the body's message list."""

    role: Role
    parts: list[Part]
    index: int
    hint: tuple[str, ...] = ()
    """What the client itself says each part is, where it says so (Codex: `content_item_kinds`)."""

    @property
    def text(self) -> str:
        return "\n".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def is_sealed(self) -> bool:
        """The model's own, and nothing in it can be read: so stands there what a compaction left of its answers."""
        return self.role == "assistant" and bool(self.parts) and all(type(part) is Other for part in self.parts)


_PARTS = attrgetter("parts")


class Call(Struct):
    """One request of a client for a model's answer."""

    endpoint: Endpoint
    raw: bytes
    body: JsonObject
    model: str
    stream: bool
    messages: list[Message]
    """The history in order, without system text that stands outside the list."""
    system: str = ""
    """System or instruction text that stands outside the message list."""
    tools: tuple[str, ...] = ()
    """Names of declared tools; the type (`web_search_20250305`, `googleSearch`) where a tool has no name."""
    namespaces: tuple[str, ...] = ()
    """Names of namespaces that hold tools (Responses)."""
    structured: bool = False
    """The caller demands structured output (a JSON schema or JSON mode)."""
    schema: JsonObject | None = None
    """The schema of what it demands, where it gives one."""
    forced_tools: bool = False
    """`tool_choice` forces a tool or forbids them all."""
    previous_id: str | None = None
    """Responses: `previous_response_id`."""
    changed: bool = False

    @property
    def parts(self) -> Iterator[Part]:
        """Of all messages, in order; a long history is gone through by the interpreter itself."""
        return chain.from_iterable(map(_PARTS, self.messages))


class Caller(Struct, frozen=True):
    """Who sent a call, as far as its headers and body tell."""

    client: str
    """`claude-code`, `codex`, …, or the first word of the user agent."""
    kind: Kind
    session: str | None = None
    conversation: str | None = None
    prompt: str | None = None
    """The client's own id of the prompt that this call belongs to (the same on every tool hop)."""
    derived: bool = False
    """`session` was derived by us, not named by the client."""
    agent: str = ""
    """The type of the subagent that asks, where the client tells it."""
    user: str = ""
    """Who it is, where the proxy asks people who they are; then every id here is theirs alone (`sessions.whose`)."""


class Target(Struct, frozen=True):
    """Where a round goes: provider, key, model. An empty model means the client's own."""

    provider: str
    key: str
    model: str

    def __str__(self) -> str:
        return ".".join(filter(None, (self.provider, self.key, self.model)))

    @property
    def group(self) -> tuple[str, str]:
        """Keys of one model of one provider form a group: the group takes turns with others, its keys among themselves."""
        return (self.provider, self.model)


class Named(Struct, frozen=True):
    """What somebody names of the configuration. `key` None means every key; `model` None the client's own model."""

    provider: str
    key: str | None = None
    model: str | None = None

    def __str__(self) -> str:
        key = f"[{self.key}]" if self.key else ""
        return f"{self.provider}{key}.{self.model}" if self.model else f"{self.provider}{key}"

    @property
    def spoken(self) -> str:
        """As a sentence says it."""
        parts = (f"key {self.key}" if self.key else "", f"model {self.model}" if self.model else "")
        return " ".join(part for part in (self.provider, *parts) if part)


def told_without(value: Struct, *hidden: str) -> str:
    """Its repr, which may get into a log, without what is nobody's business."""
    fields = ", ".join(f"{name}={getattr(value, name)!r}" for name in value.__struct_fields__ if name not in hidden)
    return f"{type(value).__name__}({fields})"


def alike_without(one: Struct, other: object, *beside: str) -> bool:
    """Whether two values are equal but for what is only there for people, or follows from the rest."""
    return type(one) is type(other) and all(
        getattr(one, name) == getattr(other, name) for name in one.__struct_fields__ if name not in beside
    )


class Usage(Struct, frozen=True):
    """Tokens as a provider counts them; `input` includes what came from its cache."""

    input: int = 0
    output: int = 0


FinishReason: TypeAlias = Literal["stop", "length", "tool_calls", "content_filter", "error"]


class Answer(Struct, frozen=True):
    """A whole answer written by ourselves (a local reply, the echo provider)."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    finish: FinishReason = "stop"
    usage: Usage = field(default_factory=Usage)


class ProviderError(Struct, frozen=True):
    """Why a provider did not answer, read from its status, headers and body."""

    status: int
    message: str = ""
    code: str = ""
    retry_after_s: float | None = None
    """How long the provider asks us to wait (Retry-After, RetryInfo, reset headers)."""
    quota: bool = False
    """A spent quota or an empty account, not a per-minute limit."""
    network: bool = False
    """Refused, reset, DNS: nothing that the key is to blame for."""


Headers: TypeAlias = Mapping[str, str]
"""Header names in lower case."""
