"""A provider's answer in the dialect of the client: bytes in, bytes out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from ...errors import BadAnswer
from ...values import Dialect, ProviderError
from ..finish import AS_USUAL
from ..sse import ArrayItems, Events
from .hearing import chat as hear_chat
from .hearing import gemini as hear_gemini
from .hearing import messages as hear_messages
from .hearing import responses as hear_responses
from .neutral import Asked, Broken, CallEnded, CallStarted, Event, Finished
from .telling import chat as tell_chat
from .telling import gemini as tell_gemini
from .telling import messages as tell_messages
from .telling import responses as tell_responses
from .telling import responses_compaction as tell_compaction

LARGEST_WHOLE = 64 << 20
"""A whole JSON answer is translated at once."""


class Hearer(Protocol):
    def hear(self, data: bytes, name: str = "") -> list[Event]: ...

    def close(self) -> list[Event]: ...


class Teller(Protocol):
    def tell(self, event: Event) -> bytes: ...

    def close(self) -> bytes: ...


HEARERS: Mapping[Dialect, Callable[[str, str], Hearer]] = {
    Dialect.MESSAGES: hear_messages.Hearer,
    Dialect.CHAT: hear_chat.Hearer,
    Dialect.RESPONSES: hear_responses.Hearer,
    Dialect.GEMINI: hear_gemini.Hearer,
}
HEAR_WHOLE: Mapping[Dialect, Callable[[bytes, str, str], list[Event]]] = {
    Dialect.MESSAGES: hear_messages.hear_whole,
    Dialect.CHAT: hear_chat.hear_whole,
    Dialect.RESPONSES: hear_responses.hear_whole,
    Dialect.GEMINI: hear_gemini.hear_whole,
}
TELLERS: Mapping[Dialect, Callable[[Asked], Teller]] = {
    Dialect.MESSAGES: tell_messages.Teller,
    Dialect.CHAT: tell_chat.Teller,
    Dialect.RESPONSES: tell_responses.Teller,
    Dialect.GEMINI: tell_gemini.Teller,
}
TELL_WHOLE: Mapping[Dialect, Callable[[Iterable[Event], Asked], bytes]] = {
    Dialect.MESSAGES: tell_messages.tell_whole,
    Dialect.CHAT: tell_chat.tell_whole,
    Dialect.RESPONSES: tell_responses.tell_whole,
    Dialect.GEMINI: tell_gemini.tell_whole,
}


class Translation:
    """One round's answer. Both forms of a provider's answer are understood, whichever was asked for."""

    def __init__(self, spoken: Dialect, asked: Asked, *, compacts: bool = False) -> None:
        """`compacts`: the answer is a summary, told as a compaction's one item."""
        self.error: ProviderError | None = None
        """What the provider said instead of an answer, or of the rest of it."""
        self._spoken = spoken
        self._asked = asked
        self._hearer = HEARERS[spoken](asked.maker, asked.id)
        teller = tell_compaction.Teller if compacts else TELLERS[asked.endpoint.dialect]
        self._teller = teller(asked) if asked.stream else None
        self._tell_whole = tell_compaction.tell_whole if compacts else TELL_WHOLE[asked.endpoint.dialect]
        self._reader: Events | ArrayItems | None = None
        self._whole = bytearray()
        """A whole document, or what came before it is known whether it is one."""
        self._heard: list[Event] = []
        """For a client that asked for no stream."""
        self._calls = self._half = False

    def feed(self, chunk: bytes) -> bytes:
        """BadAnswer where it is none."""
        if self._reader is None:
            self._whole += chunk
            if len(self._whole) > LARGEST_WHOLE:
                raise BadAnswer(f"The provider's answer is longer than {LARGEST_WHOLE >> 20} MiB.")
            if (reader := self._reader_for(self._whole)) is None:
                return b""
            self._reader, chunk = reader, bytes(self._whole)
            self._whole.clear()
        return self._told(event for item in self._reader.feed(chunk) if item.data for event in self._hear(item))

    def close(self) -> bytes:
        """The provider has no more to say."""
        if self._reader is not None:
            told = self._told(event for item in self._reader.close() if item.data for event in self._hear(item))
            told += self._told(self._hearer.close())
        else:
            events = HEAR_WHOLE[self._spoken](bytes(self._whole), self._asked.maker, self._asked.id)
            if not events and self._whole.strip():
                events = [Broken(ProviderError(502, "The provider's answer cannot be read.", network=True))]
            told = self._told(events)
        if self._teller is not None:
            return told + self._teller.close()
        return self._tell_whole(self._heard, self._asked) if self._heard else b""

    def _reader_for(self, begun: bytearray) -> Events | ArrayItems | None:
        """None while it may be a whole document."""
        start = bytes(begun[:64]).lstrip(b"\xef\xbb\xbf \t\r\n")
        if not start or start.startswith((b"{", b"<")):
            return None
        return ArrayItems() if start.startswith(b"[") and self._spoken is Dialect.GEMINI else Events()

    def _hear(self, item: EventLike) -> list[Event]:
        return self._hearer.hear(item.data, item.name)

    def _told(self, events: Iterable[Event]) -> bytes:
        if self._teller is None:
            self._heard.extend(self._watched(events))
            return b""
        tell = self._teller.tell
        return b"".join([tell(event) for event in self._watched(events)])

    def _watched(self, events: Iterable[Event]) -> Iterable[Event]:
        for event in events:
            if self.error is not None:
                return
            kind = type(event)
            if kind is CallStarted:
                self._calls = self._half = True
            elif kind is CallEnded:
                self._half = False
            elif kind is Broken:
                assert isinstance(event, Broken)
                self.error = event.error
            elif kind is Finished and self._asked.endings is not AS_USUAL:
                assert isinstance(event, Finished)
                self._asked.endings.read(event.word, self._spoken, calls=self._calls if not self._half else None)
            yield event


class EventLike(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def data(self) -> bytes: ...
