"""A round's stream as its plugins hear it: event by event, together with what the model has said so far."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from ..dialects.answer.machine import Answer, reader_of
from ..dialects.answer.said import Content
from ..dialects.fields import list_of, read_object
from ..dialects.sse import ArrayItems, Event, Events
from ..errors import BadAnswer
from ..values import Dialect, JsonObject
from .plugins import CurrentMessage, Plugin, StreamData, TurnInfo

_RECENT = 8
"""So many of the last events are kept: usage and `[DONE]` stand behind the last choice."""
_TAIL_BYTES = 128 << 10
"""So much of a stream is kept where nobody listens: its last events are read when somebody asks."""


class Listening:
    """One round's. `blame` hears of a plugin that raised; that one hears no more of the round."""

    def __init__(
        self, turn: TurnInfo, listeners: Sequence[Plugin], blame: Callable[[Plugin, str, BaseException], object]
    ) -> None:
        self._turn = turn
        self._listeners = list(listeners)
        self._blame = blame
        json_array = turn.call.endpoint.json_array
        self._events = ArrayItems() if json_array else Events() if listeners else None
        self._tail = bytearray()
        self._recent: deque[bytes] = deque(maxlen=_RECENT)
        self._reader = reader_of(turn.dialect)
        self._content = Content()
        self._alone: Callable[[], Answer] | None = None
        self._spoken: Answer | None = None
        """What that gave."""

    def begin(self, alone: Callable[[], Answer] | None) -> None:
        """A round has begun. `alone`: gives what makes the client's dialect of its bytes; None where they are it."""
        self._alone, self._spoken = alone, None

    def _speaks(self) -> Answer | None:
        if self._spoken is None and self._alone is not None:
            self._spoken = self._alone()
        return self._spoken

    def feed(self, chunk: bytes) -> None:
        if self._events is not None:
            chunk = spoken.feed(chunk) if (spoken := self._speaks()) is not None else chunk
            self._hear(_read(self._events.feed, chunk))
            return
        self._tail += chunk
        if len(self._tail) > 2 * _TAIL_BYTES:
            del self._tail[:-_TAIL_BYTES]

    def close(self) -> None:
        """A provider may leave away the blank line behind its last event."""
        if self._events is not None:
            self._hear([*_read(self._events.feed, self._rest()), *_read(self._events.close)])

    def _rest(self) -> bytes:
        """The end of a round in another dialect."""
        if (spoken := self._speaks()) is None:
            return b""
        said = spoken.end_round()
        return b"".join(spoken.finish()) if said.complete else b""

    def last_choice_chunk(self) -> JsonObject | None:
        if self._tail:
            events = Events()
            # what was cut off in front has no `data:` any more
            spoken = self._speaks()
            tail = bytes(self._tail) if spoken is None else spoken.feed(bytes(self._tail)) + self._rest()
            self._hear([*_read(events.feed, tail), *_read(events.close)])
            self._tail.clear()
        for data in reversed(self._recent):
            chunk = read_object(data)
            if chunk is not None and (self._turn.dialect is not Dialect.CHAT or list_of(chunk.get("choices"))):
                return chunk
        return None

    def _hear(self, events: Sequence[Event]) -> None:
        for event in events:
            if event.data:
                self._recent.append(event.data)
                if self._listeners:
                    self._tell(event)

    def _tell(self, event: Event) -> None:
        if (document := read_object(event.data)) is not None:
            self._content.add(self._reader.read(document, event.name))
        data = StreamData(event.raw, event.data, event.name, self._message)
        for plugin in self._listeners[:]:
            try:
                plugin.on_stream_data(self._turn, data)
            except (Exception, SystemExit) as error:
                self._blame(plugin, "on_stream_data", error)
                self._listeners.remove(plugin)

    def _message(self) -> CurrentMessage:
        return CurrentMessage(self._content.text, tuple(call for _, call in self._content.calls))


def _read(read: Callable[..., list[Event]], *chunk: bytes) -> list[Event]:
    try:
        return read(*chunk)
    except BadAnswer:  # whoever writes the client's answer hears of it, too
        return []
