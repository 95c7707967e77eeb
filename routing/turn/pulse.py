"""Whether a round still says something: pings, comments and white space keep a connection open, but answer nobody."""

from __future__ import annotations

from ..dialects.answer.machine import is_content
from ..dialects.sse import ArrayItems, Events
from ..errors import RouteCodexError
from ..values import Endpoint

_LOOKS = 20
"""So many times within its patience it looks: as long as content flows, nearly every event passes unread."""
_BETWEEN_ITEMS = b" \t\r\n,[]"


class Pulse:
    """Told of every piece of one round after another."""

    __slots__ = ("_patience_s", "_reader", "_since", "_stream", "speaks")

    def __init__(self, endpoint: Endpoint, patience_s: float, *, stream: bool) -> None:
        self.speaks = endpoint
        """How the running round does."""
        self._patience_s = patience_s
        self._stream = stream
        self._since = 0.0
        self._reader: Events | ArrayItems | None = None

    def begin(self, now: float) -> None:
        """There was content just now, or a head that promises some."""
        self._since, self._reader = now, None

    def feed(self, chunk: bytes, now: float) -> None:
        if now - self._since >= self._patience_s / _LOOKS and self._is_content(chunk):
            self.begin(now)

    @property
    def ends(self) -> float:
        """When patience is over at the latest; never sooner than it was meant, since content is noticed late."""
        return self._since + self._patience_s * (1 + 1 / _LOOKS)

    def _is_content(self, chunk: bytes) -> bool:
        if not self._stream or self.speaks.json_array:
            return bool(chunk.strip(_BETWEEN_ITEMS))
        if self._reader is None:
            self._reader = Events()  # it may begin within an event, which then says nothing
        try:
            events = self._reader.feed(chunk)
        except RouteCodexError:  # who reads all of it hears of it, too
            return True
        return any(event.data and is_content(self.speaks.dialect, event.data) for event in events)
