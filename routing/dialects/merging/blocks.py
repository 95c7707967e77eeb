"""Anthropic's content blocks: growing in a stream, in a history, those of several rounds as one; and the whole JSON message."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ...jsonbytes import dumps
from ...turn.said import Said
from ...values import Dialect, JsonObject, ProviderError, ToolCall
from ..fields import arguments_of, is_blank, list_of, object_of, text_of
from ..finish import Endings, holds_calls, is_served
from ..sse import Events
from .common import BLANK_LINE, Collected, GrowingText, usage_in

HIDDEN = frozenset(("thinking", "redacted_thinking"))
"""Blocks that cannot stand inside a text that goes on: of a later round only the history holds them."""

_INPUT = "partial_json"
_LISTS = {"citation": "citations"}
"""A delta that brings one entry → the list it belongs to."""
_WHOLE = frozenset(("signature",))
"""What a later delta replaces instead of adding to it."""


@dataclass(slots=True)
class Block:
    """One block of a stream."""

    start: JsonObject
    """As it began."""
    _texts: dict[str, GrowingText] = field(default_factory=dict)
    _lists: dict[str, list[object]] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        return text_of(self.start.get("type"))

    def add(self, delta: JsonObject) -> None:
        for name, value in delta.items():
            if name == "type":
                continue
            if name in _LISTS:
                whole = _LISTS[name]
                self._lists.setdefault(whole, list(list_of(self.start.get(whole)))).append(value)
            elif not isinstance(value, str) or name in _WHOLE:
                self.start = {**self.start, name: value}
            elif name in self._texts:
                self._texts[name].add(value)
            else:
                self._texts[name] = GrowingText(text_of(self.start.get(name)) + value)

    @property
    def block(self) -> JsonObject:
        """The block as a whole answer has it."""
        grown: JsonObject = {name: str(text) for name, text in self._texts.items()}
        if written := grown.pop(_INPUT, ""):
            grown["input"] = arguments_of(text_of(written))
        return {**self.start, **grown, **self._lists}

    @property
    def arguments(self) -> str:
        """A tool call's arguments as the model wrote them, complete or not."""
        return str(self._texts.get(_INPUT, "")) or arguments_in(self.start)


@dataclass(slots=True)
class Round:
    """One provider's stream as it is read."""

    reader: Events = field(default_factory=Events)
    places: dict[int, int | None] = field(default_factory=dict)
    """The provider's index → the client's; None: not shown."""
    blocks: dict[int, Block] = field(default_factory=dict)
    """The block that an index names at the moment."""
    order: list[Block] = field(default_factory=list)
    message: JsonObject = field(default_factory=dict)
    """From its message_start."""
    ending: JsonObject = field(default_factory=dict)
    """Its message_delta."""
    end: bytearray = field(default_factory=bytearray)
    """The bytes of what ends it, and of everything behind."""
    stop: bytes = b""
    """The bytes of its message_stop."""
    error: ProviderError | None = None
    visible: bool = False
    """The client was shown something of it."""
    calls: bool | None = False
    """Whether it called a tool of the client's."""
    said: Said | None = None

    @property
    def usage(self) -> JsonObject:
        late = {name: count for name, count in object_of(self.ending.get("usage")).items() if count is not None}
        return {**object_of(self.message.get("usage")), **late}

    @property
    def word(self) -> object:
        return object_of(self.ending.get("delta")).get("stop_reason")


def is_own(block: JsonObject, own_tools: frozenset[str]) -> bool:
    return block.get("type") == "tool_use" and text_of(block.get("name")) in own_tools


def arguments_in(block: JsonObject) -> str:
    return dumps(object_of(block.get("input"))).decode()


def said_of(
    blocks: Sequence[tuple[JsonObject, str]],
    *,
    word: object,
    usage: JsonObject,
    id: str,
    own_tools: frozenset[str],
    endings: Endings,
    complete: bool = True,
    error: ProviderError | None = None,
) -> Said:
    """What a round said. `blocks`: each with the JSON text of its arguments, where it is a tool call."""
    calls = [
        (ToolCall(text_of(block.get("id")), text_of(block.get("name")), arguments), is_own(block, own_tools))
        for block, arguments in blocks
        if block.get("type") == "tool_use"
    ]
    return Said(
        text=text_in(block for block, _ in blocks),
        calls=tuple(call for call, _ in calls),
        own=tuple(call for call, ours in calls if ours),
        finish=endings.read(word, Dialect.MESSAGES, calls=calls_told(blocks), error=error is not None),
        usage=usage_in(Dialect.MESSAGES, usage),
        id=id,
        native=as_history(block for block, _ in blocks),
        complete=complete,
        error=error,
    )


def calls_told(blocks: Iterable[tuple[JsonObject, str]], own_tools: frozenset[str] = frozenset()) -> bool | None:
    """What the blocks hold for their client to run: see `holds_calls`."""
    found = [(block, arguments) for block, arguments in blocks if not is_own(block, own_tools)]
    written = [arguments for block, arguments in found if block.get("type") == "tool_use" and not is_served(block)]
    return holds_calls(written, served=any(is_served(block) for block, _ in found))


def calls_of_all(rounds: Iterable[bool | None]) -> bool | None:
    found = set(rounds)
    return True if True in found else None if None in found else False


def text_in(blocks: Iterable[JsonObject]) -> str:
    return "".join(text_of(block.get("text")) for block in blocks if block.get("type") == "text")


def as_history(blocks: Iterable[JsonObject]) -> tuple[JsonObject, ...]:
    """The blocks as one message of the history, which takes no empty message and no text of nothing but white space."""
    kept = [block for block in blocks if block.get("type") != "text" or not is_blank(text_of(block.get("text")))]
    return ({"role": "assistant", "content": kept},) if kept else ()


def merged_blocks(rounds: Iterable[Sequence[JsonObject]], own_tools: frozenset[str]) -> list[JsonObject]:
    """What the client holds of several rounds' blocks. A stream shows the same: `messages.Merging`."""
    shown: list[JsonObject] = []
    said = ""
    for number, blocks in enumerate(rounds):
        goes_on, glue = number > 0, BLANK_LINE if said and number > 0 else ""
        for block in blocks:
            kind, text = block.get("type"), text_of(block.get("text"))
            if is_own(block, own_tools):
                goes_on = True
                continue
            if number > 0 and kind in HIDDEN:
                continue
            if kind == "text":
                between, said, glue = glue if text else "", said or text, "" if text else glue
                if goes_on and shown and shown[-1].get("type") == "text":
                    shown[-1] = _continued(shown[-1], block, between)
                    continue
                block = {**block, "text": between + text}
            goes_on = number > 0
            shown.append(block)
    return shown


def _continued(first: JsonObject, then: JsonObject, glue: str) -> JsonObject:
    """One text block of two."""
    whole = {**first, "text": "".join((text_of(first.get("text")), glue, text_of(then.get("text"))))}
    if citations := list_of(then.get("citations")):
        whole["citations"] = [*list_of(first.get("citations")), *citations]
    return whole


class Whole(Collected):
    """All rounds as one JSON message."""

    dialect = Dialect.MESSAGES

    def _read(self, document: JsonObject) -> Said:
        blocks = _content(document)
        return said_of(
            [(block, arguments_in(block)) for block in blocks],
            word=document.get("stop_reason"),
            usage=object_of(document.get("usage")),
            id=text_of(document.get("id")),
            own_tools=self.form.own_tools,
            endings=self.form.endings,
        )

    def _merged(self) -> JsonObject:
        first, last = self.documents[0], self.documents[-1]
        word = self.form.endings.write(last.get("stop_reason"), self.dialect, calls=self._calls)
        usage = {**object_of(last.get("usage")), "output_tokens": sum(said.usage.output for said in self.said)}
        rest = {name: value for name, value in last.items() if name not in ("id", "model", "type", "role")}
        return {**first, **rest, "content": self._blocks(), "stop_reason": word, "usage": usage}

    @property
    def _calls(self) -> bool | None:
        rounds = [[(block, arguments_in(block)) for block in _content(document)] for document in self.documents]
        return calls_of_all(calls_told(blocks, self.form.own_tools) for blocks in rounds)

    def _blocks(self) -> list[JsonObject]:
        return merged_blocks([_content(document) for document in self.documents], self.form.own_tools)


def _content(document: JsonObject) -> list[JsonObject]:
    return [block for block in list_of(document.get("content")) if isinstance(block, dict)]
