"""Gemini's generateContent: what was said as parts, for the next call, and for a client that wants JSON."""

from __future__ import annotations

from collections.abc import Iterator

from ....values import Dialect, JsonObject
from ...translation.carried import carry
from ...translation.neutral import Seal, Thought
from ..events import Block
from ..said import Content, arguments_of
from .parts import args_of, as_history, media_part, word_of


class Thinking:
    """Of another dialect: the next call carries it, since clients keep a call's signature, and not every one keeps thoughts."""

    def __init__(self) -> None:
        self._thoughts: list[Thought] = []
        self._first = True
        """They began the answer."""
        self.spoken = False
        """Something else than thinking has been told."""

    def add(self, text: str, seal: Seal) -> None:
        if seal.dialect is not Dialect.GEMINI:
            self._first = not self.spoken if not self._thoughts else self._first
            self._thoughts.append(Thought(text, seal))

    def take(self) -> Seal | None:
        seal = carry(self._thoughts, first=self._first)
        self._thoughts.clear()
        return seal


def history(content: Content) -> tuple[JsonObject, ...]:
    return as_history(parts(content))


def parts(content: Content) -> list[JsonObject]:
    """A history takes no half call."""
    thinking = Thinking()
    return [
        part
        for block, growing in content.blocks.items()
        if not block.is_nobodys
        for part in _parts_of(block, str(growing), content, thinking)
    ]


def _parts_of(block: Block, text: str, content: Content, thinking: Thinking) -> Iterator[JsonObject]:
    match block.kind:
        case "text" | "thought" if not block.foreign:
            yield from _texts(block, content)
        case "text":
            thinking.spoken = thinking.spoken or bool(text)
            yield from _plain(block, text)
        case "thought" if block.seal is not None:
            thinking.add(text, block.seal)
            yield sealed(block.seal, text)
        case "thought":
            yield from _plain(block, text)
        case "call" if block.foreign:
            thinking.spoken = True
            yield call_of(block, text, thinking)
        case "media" if block.foreign and block.media is not None:
            yield media_part(block.media)
        case _ if block.native is not None and not block.foreign:
            yield block.native
        case _:
            pass


def _texts(block: Block, content: Content) -> Iterator[JsonObject]:
    """Neighbouring pieces are one part; those that stand apart are kept as they came."""
    for text, native in content.pieces_of(block):
        yield {**native, "text": text} if isinstance(native, dict) else plain_part(block, text)


def _plain(block: Block, text: str) -> Iterator[JsonObject]:
    if text:
        yield plain_part(block, text)


def plain_part(block: Block, text: str) -> JsonObject:
    return {"text": text, "thought": True} if block.kind == "thought" else {"text": text}


def sealed(seal: Seal, text: str = "") -> JsonObject:
    """Gemini CLI keeps no thoughts, so a signature that stood on a text, and has no thought, stays on a text."""
    is_texts = not text and seal.dialect is Dialect.GEMINI and seal.payload.get("for") == "part"
    return {"text": text, **({} if is_texts else {"thought": True}), "thoughtSignature": word_of(seal)}


def call_of(block: Block, text: str, thinking: Thinking) -> JsonObject:
    seal = block.seal or thinking.take()
    written = args_of(arguments_of(block, text))
    part: JsonObject = {"functionCall": {"id": block.id, "name": block.name, "args": written}}
    return {**part, "thoughtSignature": word_of(seal)} if seal is not None else part
