"""What becomes of a call in another dialect: what is left out, and what is told another way. docs/dialects.md shows it.

1. For each client's dialect, the calls that say everything (`tests/everything.py`) are written for every provider's dialect.
2. What the writer names as left out goes into the table.
3. What was written is read again, also of calls that say one thing alone. A saying that is not there as it was said has to be
   in the writer's list, or in `TOLD_OTHERWISE`: nothing is lost silently.

`python -m tests.pairs_table` writes the table into it.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import fields, replace

from routecodex.routing.dialects.translation import going_up
from routecodex.routing.dialects.translation.neutral import (
    Block,
    Conversation,
    Feature,
    Media,
    Message,
    Reasoning,
    Text,
    Thought,
    Tool,
    ToolName,
    ToolResult,
    ToolUse,
    Written,
)
from routecodex.routing.values import Dialect, Endpoint
from tests.everything import ENDPOINTS, EVERYTHING

PAGE = Path(__file__).parents[1] / "docs" / "dialects.md"
BEGIN, END = "<!-- pairs -->", "<!-- /pairs -->"
NAMES = {Dialect.MESSAGES: "Messages", Dialect.CHAT: "Chat", Dialect.RESPONSES: "Responses", Dialect.GEMINI: "Gemini"}
MODELS = {
    Dialect.MESSAGES: "claude-sonnet-4-5",
    Dialect.CHAT: "an-open-model",
    Dialect.RESPONSES: "gpt-5.2",
    Dialect.GEMINI: "gemini-3-pro",
}
"""What is left out depends on the model, too: the table tells of these."""
PAIRS = [(client, spoken) for client in Dialect for spoken in Dialect if client is not spoken]

F = Feature
LEFT_OUT_AS: dict[str, tuple[Feature, ...]] = {
    "cache marks": (F.CACHE_MARKS,),
    "media": (F.FILES, F.FILE_LINKS, F.IMAGE_LINKS, F.AUDIO, F.VIDEO),
    "media of the model": (F.ASSISTANT_MEDIA,),
    "detail of pictures": (F.IMAGE_DETAIL,),
    "thoughts": (F.THOUGHTS,),
    "seals of calls": (F.THOUGHTS,),
    "server tools": (F.SERVER_TOOLS,),
    "strict tools": (F.STRICT,),
    "strict format": (F.STRICT,),
    "format": (F.STRUCTURED,),
    "schemas": (F.SCHEMA,),
    "one call at a time": (F.PARALLEL,),
    "a choice among tools": (F.ALLOWED_TOOLS,),
    "top_k": (F.TOP_K,),
    "temperature": (F.TEMPERATURE,),
    "top_p": (F.OTHER,),
    "seed": (F.SEED,),
    "stops": (F.STOPS, F.MANY_STOPS),
    "presence_penalty": (F.PENALTIES,),
    "frequency_penalty": (F.PENALTIES,),
    "user": (F.METADATA,),
    "reasoning.on": (F.EFFORT, F.BUDGET),
    "reasoning.effort": (F.EFFORT,),
    "reasoning.budget": (F.BUDGET, F.EFFORT),
    "reasoning.shown": (F.EFFORT, F.BUDGET),
    "reasoning.adaptive": (F.EFFORT, F.BUDGET),
}
"""The kinds of sayings, and under which names a writer may leave one out. A kind that is not here must arrive."""


@dataclass(frozen=True)
class Otherwise:
    words: str = ""
    """For the page; empty where it is what everybody expects."""
    kinds: tuple[str, ...] = ()
    """It stands in a saying of one of these kinds: that is looked for."""
    when: Callable[[Conversation], bool] = lambda meant: True
    """Only where the call says so."""


def _chooses(meant: Conversation) -> bool:
    return meant.choice is not None and bool(meant.choice.named)


_TEXTS = ("text of system", "text of user", "text of assistant", "results")
_LATE_SYSTEM = Otherwise("system messages in the middle are reminders within the user's next one", ("text of user",))
_TEXT_FILES = Otherwise("text files are told as text", _TEXTS)
_FILE_NAMES = Otherwise("", _TEXTS)
_BEHIND = Otherwise("pictures and files in tool results follow in a message behind them", ("media",))
_FAILED = Otherwise("a failed tool result says so in its text")
_FREE_TEXT = Otherwise("tools for free text take an object with one text in it")
_SOME_TOOLS = Otherwise("where only some tools may be chosen, no others are sent", when=_chooses)
_NOT_SENT = dataclasses.replace(_SOME_TOOLS, words="")
_EXPECTED = Otherwise()

_M, _C, _R, _G = Dialect.MESSAGES, Dialect.CHAT, Dialect.RESPONSES, Dialect.GEMINI
TOLD_OTHERWISE: dict[tuple[str, Dialect], Otherwise] = {
    ("text of system", _M): _LATE_SYSTEM,
    ("text of system", _G): _LATE_SYSTEM,
    ("text of files", _C): _TEXT_FILES,
    ("text of files", _R): _TEXT_FILES,
    ("names of files", _C): _FILE_NAMES,
    ("names of files", _R): _FILE_NAMES,
    ("names of files", _G): _FILE_NAMES,
    ("media of results", _C): _BEHIND,
    ("failed results", _C): _FAILED,
    ("failed results", _R): _FAILED,
    ("custom tools", _M): _FREE_TEXT,
    ("custom tools", _C): _FREE_TEXT,
    ("custom tools", _G): _FREE_TEXT,
    ("tools", _M): _SOME_TOOLS,
    ("tools", _C): _SOME_TOOLS,
    ("descriptions of tools", _M): _NOT_SENT,
    ("descriptions of tools", _C): _NOT_SENT,
    ("a choice among tools", _M): _NOT_SENT,
    ("a choice among tools", _C): _NOT_SENT,
    ("schemas", _M): Otherwise("limits in strict schemas stand in their descriptions"),
    ("schemas", _G): Otherwise("schemas lose `additionalProperties: false`"),
    ("reasoning.effort", _M): Otherwise("an effort of reasoning is a budget of tokens for models that take only that"),
    # an API that thinks unasked is not told to think as it likes
    ("reasoning.on", _R): _EXPECTED,
    ("reasoning.on", _G): _EXPECTED,
    ("reasoning.adaptive", _R): _EXPECTED,
    ("reasoning.adaptive", _G): _EXPECTED,
    # one that is always strict is not told to be, and a format needs no name where nobody reads it
    ("format", _M): _EXPECTED,
    ("format", _G): _EXPECTED,
    ("strict format", _M): _EXPECTED,
    ("name of the format", _M): _EXPECTED,
    ("name of the format", _G): _EXPECTED,
}
"""Sayings of this kind that do not come back as they were said and yet are not lost."""

_NUMBERS = ("max_tokens", "temperature", "top_p", "top_k", "stops", "seed", "presence_penalty", "frequency_penalty", "user")

Sayings = dict[str, list[str]]


@dataclass(frozen=True)
class Tried:
    """One call, from one dialect to another."""

    spoken: Dialect
    meant: Conversation
    written: Written
    read: Conversation

    @property
    def missing(self) -> Sayings:
        """What was said and is not there again, by kind."""
        said, arrived = sayings(self.meant, {}), sayings(self.read, self.written.tools)
        found: Sayings = {}
        for kind, all_of_it in said.items():
            gone = [one for one in all_of_it if one not in arrived.get(kind, ())]
            if kind.startswith("text of ") or kind == "results":
                gone = [one for one in gone if not any(one in whole for whole in arrived.get(kind, ()))]
            if gone:
                found[kind] = gone
        return found

    @property
    def unnamed(self) -> Sayings:
        """What is missing and in no list of the writer's."""
        named = self.written.left_out.found
        return {kind: gone for kind, gone in self.missing.items() if not set(LEFT_OUT_AS.get(kind, ())) & set(named)}

    @property
    def silently(self) -> Sayings:
        """What is missing and told nowhere."""
        found: Sayings = {}
        for kind, gone in self.unnamed.items():
            otherwise = TOLD_OTHERWISE.get((kind, self.spoken))
            if otherwise is None or not otherwise.when(self.meant):
                found[kind] = gone
            elif otherwise.kinds and (lost := [one for one in gone if not self._stands_in(otherwise.kinds, one)]):
                found[kind] = lost
        return found

    def _stands_in(self, kinds: tuple[str, ...], saying: str) -> bool:
        arrived = sayings(self.read, self.written.tools)
        return any(saying in whole for kind in kinds for whole in arrived.get(kind, ()))


def tried(client: Dialect, spoken: Dialect) -> Iterator[Tried]:
    for body in EVERYTHING[client]:
        written = going_up.translate(
            body, ENDPOINTS[client], spoken, model=MODELS[spoken], stream=True, session="session-1", maker="them"
        )
        read = going_up.READ[spoken](written.body, Endpoint(spoken, model=MODELS[spoken], stream=True))
        yield Tried(spoken, going_up.READ[client](body, ENDPOINTS[client]), written, read)


def tried_alone(client: Dialect, spoken: Dialect) -> Iterator[Tried]:
    """Each thing that these calls say, in a call of its own: what is named there is that very thing."""
    write, model = going_up.WRITE[spoken], MODELS[spoken]
    for body in EVERYTHING[client]:
        for meant in alone(going_up.READ[client](body, ENDPOINTS[client])):
            written = write(meant, model=model, session="session-1", maker="them")
            read = going_up.READ[spoken](written.body, Endpoint(spoken, model=model, stream=True))
            yield Tried(spoken, meant, written, read)


def alone(conversation: Conversation) -> Iterator[Conversation]:
    said = Message("user", (Text("The user's own words."),))
    bare = Conversation("client-model", True, (said,))
    uses = {block.id: block for message in conversation.messages for block in message.blocks if isinstance(block, ToolUse)}
    tools = {tool.name: tool for tool in conversation.tools}
    for turn in conversation.messages:
        for block in turn.blocks:
            match block:
                case ToolResult():
                    called = uses[block.id]
                    turns = (said, Message("assistant", (called,)), Message("user", (block,)))
                    yield replace(bare, messages=turns, tools=(tools[called.name],))
                case ToolUse():
                    pass  # never without its result
                case _ if turn.role == "user":
                    yield replace(bare, messages=(Message("user", (block,)),))
                case _:
                    yield replace(bare, messages=(said, Message(turn.role, (block,)), said))
    for tool in conversation.tools:
        yield replace(bare, tools=(tool,))
    if conversation.choice is not None:
        functions = tuple(tool for tool in conversation.tools if tool.kind != "server")
        yield replace(bare, tools=functions, choice=conversation.choice)
        yield replace(bare, tools=functions, parallel=conversation.parallel)
    for field in (*_NUMBERS, "reasoning", "format"):
        yield replace(bare, **{field: getattr(conversation, field)})


# --- what a call says ---------------------------------------------------------------------------------------------------


def sayings(conversation: Conversation, names: Mapping[str, ToolName]) -> Sayings:
    """`names`: of tools that were sent under another name or as another kind."""
    found: Sayings = {}
    for kind, value in _all(conversation, names):
        if value not in (None, "", (), [], {}, False):
            said = value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=repr)
            found.setdefault(kind, []).append(said)
    return found


def _all(conversation: Conversation, names: Mapping[str, ToolName]) -> Iterator[tuple[str, object]]:
    for turn in conversation.messages:
        for block in turn.blocks:
            yield from _of_block(block, turn.role, names)
    for tool in conversation.tools:
        yield from _of_tool(tool, names)
    if conversation.choice is not None:
        yield "choice", conversation.choice.mode.replace("auto", "")
        yield "a choice among tools", sorted(_known(name, names).name for name in conversation.choice.named)
    for field in _NUMBERS:
        yield field, getattr(conversation, field)
    yield "one call at a time", conversation.parallel is False
    for part in fields(Reasoning):
        value = getattr(conversation.reasoning, part.name)
        yield f"reasoning.{part.name}", None if value is None or (value is False and part.name == "adaptive") else repr(value)
    if (form := conversation.format) is not None:
        yield "format", {key: value for key, value in (form.described or {}).items() if key != "description"} or "any JSON"
        yield "what the format is for", form.description or (form.schema or {}).get("description")
        yield "strict format", form.strict
        yield "name of the format", form.name


def _of_block(block: Block, role: str, names: Mapping[str, ToolName]) -> Iterator[tuple[str, object]]:
    match block:
        case Text():
            yield f"text of {role}", block.text
            yield "cache marks", block.cached
        case Media(text=text) if text:
            yield "text of files", text
            yield "names of files", block.name
        case Media():
            yield "media of the model" if role == "assistant" else "media", _content(block)
            yield "detail of pictures", block.detail.replace("auto", "")
            yield "names of files", block.name
        case Thought():
            yield "thoughts", block.text or "sealed"
        case ToolUse():
            tool = _known(block.name, names)
            given: object = json.loads(block.arguments or "{}") if not block.custom else block.arguments
            if tool.custom and isinstance(given, dict):
                (given,) = given.values()
            yield "calls", [tool.name, given]
            yield "seals of calls", block.seal is not None
        case ToolResult():
            yield "results", "".join(one.text for one in block.blocks if isinstance(one, Text))
            yield "failed results", block.error
            yield from (("media of results", _content(one)) for one in block.blocks if isinstance(one, Media))


def _of_tool(tool: Tool, names: Mapping[str, ToolName]) -> Iterator[tuple[str, object]]:
    if tool.kind == "server":
        yield "server tools", tool.server or tool.name
        return
    name = _known(tool.name, names).name
    yield "tools", name
    yield "descriptions of tools", [name, tool.description.partition("\n\nIts input is described so:")[0]]
    yield "schemas", [name, tool.schema] if tool.kind == "function" and (tool.schema or {}).get("properties") else None
    yield "strict tools", name if tool.strict else ""
    yield "custom tools", name if tool.kind == "custom" else ""


def _known(name: str, names: Mapping[str, ToolName]) -> ToolName:
    return names.get(name) or ToolName(name)


def _content(media: Media) -> list[str]:
    return [media.kind, media.data or media.url or media.file_id]


# --- the table ----------------------------------------------------------------------------------------------------------


def left_out() -> dict[Feature, dict[Dialect, list[Dialect]]]:
    """By feature and provider's dialect: the clients' dialects from which it does not arrive."""
    found: dict[Feature, dict[Dialect, list[Dialect]]] = {}
    for client, spoken in PAIRS:
        features = {feature for one in tried(client, spoken) for feature in one.written.left_out.found}
        for feature in features:
            found.setdefault(feature, {}).setdefault(spoken, []).append(client)
    return {feature: found[feature] for feature in Feature if feature in found}


def told_otherwise() -> dict[str, list[Dialect]]:
    """By what is done, the providers' dialects for which it is."""
    found: dict[str, list[Dialect]] = {}
    for (_, spoken), otherwise in TOLD_OTHERWISE.items():
        if otherwise.words:
            found.setdefault(otherwise.words, []).append(spoken)
    return found


def table() -> str:
    told = "; ".join(f"{words} ({', '.join(NAMES[one] for one in where)})" for words, where in told_otherwise().items())
    models = ", ".join(f"`{MODELS[dialect]}`" for dialect in Dialect if dialect is not Dialect.CHAT)
    lines = [
        "A line is something that a tool may say; under a provider's dialect stand those of the tools from which it is left out.",
        "",
        f"| Left out on the way to | {' | '.join(NAMES[dialect] for dialect in Dialect)} |",
        "|---|---|---|---|---|",
        *(
            f"| {feature} | {' | '.join(_cell(where.get(dialect)) for dialect in Dialect)} |"
            for feature, where in left_out().items()
        ),
        "",
        f"Tried with {models} and an open model behind Chat; others take more or less.",
        "",
        f"Not left out, but told another way: {told}.",
    ]
    return "\n".join(lines)


def _cell(clients: list[Dialect] | None) -> str:
    return ", ".join(NAMES[client] for client in clients or ())


def with_table(page: str) -> str:
    head, begin, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    assert begin
    assert end
    return f"{head}{BEGIN}\n{table()}\n{END}{tail}"


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
