"""What the four dialects have in common: a conversation that goes up, and what an answer that comes down must know of it.

1. Each dialect has one reader and one writer; none of them knows another dialect.
2. Values are facts as they were said. A writer says what its dialect can say, and names the rest in `left_out`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Literal, TypeAlias

from msgspec import Struct, field

from ...values import Dialect, Endpoint, JsonObject, MediaKind
from ..fields import object_of, text_of
from ..finish import AS_USUAL, Endings


class Feature(StrEnum):
    """What some dialect cannot say. The value stands in flow comments and in the README's table."""

    TOP_K = "top_k"
    SEED = "seed"
    PENALTIES = "presence and frequency penalties"
    LOGPROBS = "log probabilities"
    CANDIDATES = "several candidates"
    STOPS = "stop sequences"
    MANY_STOPS = "more stop sequences than it takes"
    TEMPERATURE = "temperature out of its range"
    EFFORT = "effort of reasoning"
    BUDGET = "budget of reasoning"
    THOUGHTS = "thinking of another provider"
    CACHE_MARKS = "cache marks"
    METADATA = "metadata"
    SERVICE_TIER = "service tier"
    STRUCTURED = "structured output"
    STRICT = "strict tools"
    PARALLEL = "the flag for parallel tool calls"
    ALLOWED_TOOLS = "a choice among several tools"
    SERVER_TOOLS = "tools that the provider runs"
    SERVER_RESULTS = "results of tools that the provider ran"
    CITATIONS = "citations"
    IMAGE_DETAIL = "detail of pictures"
    IMAGE_LINKS = "pictures by address"
    FILES = "files"
    FILE_LINKS = "files by address or id"
    AUDIO = "sound"
    VIDEO = "video"
    ASSISTANT_MEDIA = "pictures of the model's own"
    SCHEMA = "parts of a tool's schema"
    CONTEXT_MANAGEMENT = "context management"
    STORED = "stored answers"
    SAFETY = "safety settings"
    MCP = "MCP servers"
    CREDENTIALS = "credentials"
    CONTAINER = "containers"
    COMPACTED = "compacted history"
    OTHER = "fields that only its own dialect knows"


class LeftOut(Struct):
    """What stays behind, since it is no business of the target or cannot be said: features, each with a few words."""

    found: dict[Feature, list[str]] = field(default_factory=dict)

    def add(self, feature: Feature, what: str = "") -> None:
        words = self.found.setdefault(feature, [])
        if what and what != feature and what not in words and len(words) < 8:
            words.append(what[:80])

    def add_all(self, other: LeftOut) -> None:
        for feature, words in other.found.items():
            for word in words or ("",):
                self.add(feature, word)

    def __str__(self) -> str:
        return ", ".join(f"{feature} ({', '.join(words)})" if words else feature for feature, words in self.found.items())


# --- blocks -----------------------------------------------------------------------------------------------------------


class Seal(Struct, frozen=True):
    """What only its maker can read: a signature or encrypted thinking, as its dialect writes it.

    In another dialect it travels as one opaque word (`opaque.wrap`) and comes back to its maker alone.
    """

    dialect: Dialect
    maker: str
    """The provider's id; empty where it is not known."""
    payload: JsonObject
    """Whatever the dialect needs to write the block again; its own choice of fields, small and JSON."""


class Text(Struct, frozen=True):
    text: str
    cached: bool = False
    """The client set a cache mark here."""


class Media(Struct, frozen=True):
    """A picture, sound, video or file. Exactly one of `data` (base64), `url`, `file_id` is set; `text` for a plain-text file."""

    kind: MediaKind
    media_type: str = ""
    data: str = ""
    url: str = ""
    file_id: str = ""
    text: str = ""
    name: str = ""
    detail: str = ""
    cached: bool = False


class Thought(Struct, frozen=True):
    """The model's reasoning. Without a seal nobody signed it; then it belongs to whoever the client got it from."""

    text: str
    seal: Seal | None = None


class ToolUse(Struct, frozen=True):
    """One call of a tool. `arguments` is the text the model wrote: JSON for a function, anything for a custom tool."""

    id: str
    name: str
    arguments: str
    custom: bool = False
    namespace: str = ""
    seal: Seal | None = None
    cached: bool = False


class ToolResult(Struct, frozen=True):
    """What a tool answered, under the id of its call."""

    id: str
    blocks: tuple[Text | Media, ...]
    error: bool = False
    custom: bool = False
    name: str = ""
    """The tool's name; the reader finds it from the call where its dialect does not repeat it."""
    cached: bool = False


Block: TypeAlias = Text | Media | Thought | ToolUse | ToolResult


class Message(Struct, frozen=True):
    """One side's saying. Results of tools stand in user messages, before what else the user says in them."""

    role: Literal["system", "user", "assistant"]
    blocks: tuple[Block, ...]


# --- the call ---------------------------------------------------------------------------------------------------------

ServerToolKind: TypeAlias = Literal[
    "web_search", "web_fetch", "code_execution", "file_search", "image_generation", "computer", ""
]


class Tool(Struct, frozen=True):
    """A tool that the client runs (`function`, `custom`: free text in), or one that the provider runs (`server`)."""

    name: str
    description: str = ""
    schema: JsonObject | None = None
    strict: bool | None = None
    kind: Literal["function", "custom", "server"] = "function"
    server: ServerToolKind = ""
    namespace: str = ""
    native: JsonObject = field(default_factory=dict)
    """As its own dialect declares it, where there is more to it than the fields above (server and custom tools)."""
    cached: bool = False

    @property
    def form(self) -> JsonObject:
        """Of a custom tool's input. OpenAI's two dialects declare it alike, but for one level."""
        return object_of(self.native.get("format")) or object_of(object_of(self.native.get("custom")).get("format"))

    @property
    def grammar(self) -> JsonObject:
        """What a custom tool's input must match: a definition, and its syntax."""
        grammar = object_of(self.form.get("grammar")) or self.form
        definition, syntax = text_of(grammar.get("definition")), text_of(grammar.get("syntax"))
        return {"definition": definition, "syntax": "regex" if syntax == "regex" else "lark"} if definition else {}


class Choice(Struct, frozen=True):
    """`named`: these and no others (`required`: one of them must be called)."""

    mode: Literal["auto", "none", "required"] = "auto"
    named: tuple[str, ...] = ()


Effort: TypeAlias = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]


class Reasoning(Struct, frozen=True):
    """How much the model is to think, as far as the client said: None means that it did not."""

    on: bool | None = None
    effort: Effort | None = None
    budget: int | None = None
    adaptive: bool = False
    shown: bool | None = None
    """The client wants to read it (summaries, includeThoughts)."""


class Format(Struct, frozen=True):
    """Structured output: any JSON (`schema` None) or JSON of this schema."""

    schema: JsonObject | None = None
    name: str = ""
    description: str = ""
    strict: bool | None = None

    @property
    def described(self) -> JsonObject | None:
        """The schema; it says by itself what it is for, where the dialect has no other place for that."""
        return {"description": self.description, **self.schema} if self.schema and self.description else self.schema


class Conversation(Struct, frozen=True):
    """A call as it was meant."""

    model: str
    stream: bool
    messages: tuple[Message, ...]
    """System messages may stand anywhere; those before the first other message are the instructions."""
    tools: tuple[Tool, ...] = ()
    choice: Choice | None = None
    parallel: bool | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    stops: tuple[str, ...] = ()
    seed: int | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    reasoning: Reasoning = field(default_factory=Reasoning)
    format: Format | None = None
    user: str = ""
    """Who the client says is asking; never sent to a foreign host unless it is the session's id."""
    others: tuple[tuple[Feature, str], ...] = ()
    """What the reader met that has no place above: it goes to `left_out` of whoever writes the call in another dialect."""


# --- the answer -------------------------------------------------------------------------------------------------------


class Tokens(Struct, frozen=True):
    """What it costs. `input` holds `cached` and `written`; `output` holds `reasoning`."""

    input: int = 0
    output: int = 0
    cached: int = 0
    written: int = 0
    reasoning: int = 0


class ToolName(Struct, frozen=True):
    """How the client knows a tool that was sent under another name or as another kind."""

    name: str
    namespace: str = ""
    custom: bool = False


class Asked(Struct, frozen=True):
    """What the answer's translation must know of the call."""

    endpoint: Endpoint
    """The client's: its dialect and form."""
    stream: bool
    id: str
    """Of the round: names are made from it where the provider gives none."""
    model: str
    """As the client named it."""
    created: int
    """Epoch seconds."""
    estimate: Callable[[], int] = lambda: 0
    """Our own count of the call's tokens: Messages tells the input's size at the start, others know it at the end only."""
    include_usage: bool = False
    """A Chat client asked for a usage chunk."""
    passes_usage: bool = False
    """One that came unasked in its own dialect is for it, too."""
    whole_calls: bool = False
    """The client was made for hosts that tell each call of a Chat stream in one delta and what it has cost in the last one, and
    of a Responses' thought how far it is."""
    endings: Endings = AS_USUAL
    """What a person chose for ends of answers."""
    response: JsonObject = field(default_factory=dict)
    """Fields of the call that a Responses object repeats (instructions, tools, tool_choice, …)."""
    keep: Callable[[JsonObject], None] = lambda item: None
    """Hears of each Responses item as its client has it: it may be named later, where nobody else knows it."""


class Written(Struct, frozen=True):
    """A call in the provider's dialect."""

    body: JsonObject
    left_out: LeftOut
    tools: Mapping[str, ToolName] = field(default_factory=dict)
    """Whose name or kind was changed, by the name that was sent."""
