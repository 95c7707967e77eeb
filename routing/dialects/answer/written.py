"""What writers of all dialects have in common, and how one JSON document is put together from what was said."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar

from ...jsonbytes import dump_pieces, dumps
from ...values import Dialect, JsonObject
from ..translation.neutral import Asked, LeftOut, ToolName
from .events import Block, Chunk, Event
from .said import Content


class AnyWriter(ABC):
    """One dialect, one answer, one form: chunks → the client's bytes. Knows nothing of rounds or of whose a tool is."""

    dialect: ClassVar[Dialect]
    by_order: ClassVar[bool] = False
    """Calls need no ids: their names and order stand for them, and ids that are made for us say so."""
    apart: ClassVar[bool] = False
    """It tells some pieces of a text apart."""
    opens: ClassVar[bool] = False
    """Its clients are kept waiting by events alone, which need a beginning; and its end tells again all that was said."""
    ALIVE: ClassVar[bytes]
    """Keeps a connection open at any moment between two events."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._tools: Mapping[str, ToolName] = {}
        self.left_out = LeftOut()
        """What was said in another dialect, and has no place in this one."""
        self.altered = False
        """The answer is no longer one round's own: names, numbers and places are the whole answer's."""

    @property
    def steady(self) -> bool:
        """Where one plain piece of a block leaves as it came, so do those that follow it."""
        return False

    def begin_round(self, tools: Mapping[str, ToolName]) -> None:
        """`tools`: those that were sent under another name or as another kind."""
        self._tools = tools

    @abstractmethod
    def name(self, block: Block, answer: str = "") -> None:
        """Give a call of another dialect the id and name that the client knows it by; `answer`: whose ids they are made from."""

    @abstractmethod
    def id_of(self, id: str) -> str:
        """Who the client is told that an answer of another dialect is; `id`: its provider's word for it."""

    @abstractmethod
    def write(self, chunk: Chunk) -> bytes: ...

    @abstractmethod
    def made(self, event: Event) -> bytes:
        """An event of another dialect or form."""

    def pieces(self, chunk: Chunk) -> Iterator[bytes]:
        """What `write` gives, and what of it stands behind; made as it is taken."""
        data = self.write(chunk)
        yield data
        if data is chunk.raw:
            yield from chunk.rest

    def open(self, *, id: str, model: str, created: int) -> bytes:
        """The answer begins, though no provider has said anything: what comes goes on in it."""
        return b""

    def keep_alive(self) -> bytes:
        return self.ALIVE

    def finish(self) -> Iterable[bytes]:
        """A document is written here, of a stream nothing is left."""
        return ()


class Document(AnyWriter):
    """One JSON document: its provider's own as long as nothing had to change, else put together from what blocks came to."""

    def __init__(self, asked: Asked) -> None:
        super().__init__(asked)
        self._content = Content(apart=self.apart)
        self._only = b""
        """The whole document, as long as nothing had to change."""
        self._chunks = 0

    def write(self, chunk: Chunk) -> bytes:
        document, is_whole = chunk.native, chunk.form == "document"
        if chunk.dialect is not self.dialect or (document is None and not chunk.raw):
            return b"".join([self.made(event) for event in chunk.events])
        self._content.add(chunk.events)
        self._chunks += bool(chunk.events)
        self._only = chunk.raw if is_whole and self._chunks == 1 else b""
        if document is not None:
            self._frame_in(document, is_whole=is_whole)
        return b""

    def made(self, event: Event) -> bytes:
        self._lose(event)
        self._content.add((event,))
        self._chunks += 1
        self._only = b""
        return b""

    def finish(self) -> Iterable[bytes]:
        return (self._only,) if self._only else dump_pieces(self._put_together(), dumps)

    def _lose(self, event: Event) -> None:
        """Names what of another dialect's has no place here."""

    @abstractmethod
    def _frame_in(self, document: JsonObject, *, is_whole: bool) -> None:
        """What a unit of this dialect says beside its events."""

    @abstractmethod
    def _put_together(self) -> JsonObject: ...
