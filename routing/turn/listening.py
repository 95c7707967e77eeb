"""A round's stream as its plugins hear it: event by event, together with what the model has said so far."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from routing.dialects.answers import events_for
from routing.dialects.fields import list_of, read_object
from routing.dialects.sse import Event
from routing.errors import BadAnswer
from routing.turn.plugins import Plugin, StreamData, TurnInfo
from routing.turn.so_far import SoFar
from routing.values import Dialect, JsonObject

_RECENT = 8
"""So many of the last events are kept: usage and `[DONE]` stand behind the last choice."""


class Listening:
    """One round's. `blame` hears of a plugin that raised; that one hears no more of the round."""

    def __init__(
        self, turn: TurnInfo, listeners: Sequence[Plugin], blame: Callable[[Plugin, str, BaseException], object]
    ) -> None:
        self._turn = turn
        self._listeners = list(listeners)
        self._blame = blame
        self._events = events_for(turn.call.endpoint.json_array)
        self._recent: deque[bytes] = deque(maxlen=_RECENT)
        self._so_far = SoFar(turn.dialect)

    def feed(self, chunk: bytes) -> None:
        try:
            events = self._events.feed(chunk)
        except BadAnswer:  # whoever writes the client's answer hears of it, too
            return
        self._hear(events)

    def close(self) -> None:
        """A provider may leave away the blank line behind its last event."""
        try:
            events = self._events.close()
        except BadAnswer:
            return
        self._hear(events)

    def last_choice_chunk(self) -> JsonObject | None:
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
        self._so_far.hear(event.data)
        data = StreamData(event.raw, event.data, event.name, self._so_far.message)
        for plugin in self._listeners[:]:
            try:
                plugin.on_stream_data(self._turn, data)
            except (Exception, SystemExit) as error:
                self._blame(plugin, "on_stream_data", error)
                self._listeners.remove(plugin)
