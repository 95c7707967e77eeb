"""What writers of all dialects begin with, and how one JSON document is put together from what was said."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import ClassVar

from ...jsonbytes import dump_pieces, dumps
from ...values import Dialect, JsonObject
from ..translation.neutral import Asked, LeftOut, ToolName
from .events import Chunk, Event
from .said import Content


class Written:
    dialect: ClassVar[Dialect]
    by_order: ClassVar[bool] = False
    apart: ClassVar[bool] = False

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self.left_out = LeftOut()
        self._tools: Mapping[str, ToolName] = {}
        self.altered = False
        """The answer is no longer one round's own: names, numbers and places are the whole answer's."""

    def begin_round(self, tools: Mapping[str, ToolName]) -> None:
        """`tools`: those that were sent under another name or as another kind."""
        self._tools = tools

    def finish(self) -> Iterable[bytes]:
        return ()


class Whole(Written, ABC):
    """One JSON document: its provider's own as long as nothing had to change, else put together at the end."""

    steady: ClassVar[bool] = False

    def __init__(self, asked: Asked) -> None:
        super().__init__(asked)
        self._only = b""
        """The whole document, as long as nothing had to change."""
        self._chunks = 0

    def write(self, chunk: Chunk) -> bytes:
        document = chunk.native
        if chunk.dialect is not self.dialect or (document is None and not chunk.raw):
            return b"".join([self.made(event) for event in chunk.events])
        self._keep(chunk.events)
        self._chunks += bool(chunk.events)
        self._only = chunk.raw if chunk.form == "document" and self._chunks == 1 else b""
        if document is not None:
            self._frame_in(document, is_whole=chunk.form == "document")
        return b""

    def made(self, event: Event) -> bytes:
        self._chunks += 1
        self._only = b""
        self._keep((event,))
        return b""

    def finish(self) -> Iterable[bytes]:
        return (self._only,) if self._only else dump_pieces(self._put_together(), dumps)

    @abstractmethod
    def _keep(self, events: Iterable[Event]) -> None: ...

    @abstractmethod
    def _frame_in(self, document: JsonObject, *, is_whole: bool) -> None:
        """What a unit of this dialect says beside its events."""

    @abstractmethod
    def _put_together(self) -> JsonObject: ...


class Document(Whole):
    """One that is put together from what blocks came to, and from nothing else."""

    def __init__(self, asked: Asked) -> None:
        super().__init__(asked)
        self._content = Content(apart=self.apart)

    def made(self, event: Event) -> bytes:
        self._lose(event)
        return super().made(event)

    def _keep(self, events: Iterable[Event]) -> None:
        self._content.add(events)

    @abstractmethod
    def _lose(self, event: Event) -> None:
        """Names what of another dialect's has no place here."""
