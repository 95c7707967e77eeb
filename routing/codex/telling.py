"""One answer as frames: the events of its stream, or the error that it is; and what it leaves behind for the next turn."""

from __future__ import annotations

from ..dialects.fields import object_of, read_object, text_of
from ..dialects.sse import Event, Events
from ..jsonbytes import dumps
from ..values import Headers, JsonObject
from . import frames
from .conversation import Past, Post

_ERROR_BYTES = 1 << 20
_REMEMBERED = frozenset({"response.completed", "response.incomplete"})
_LAST = _REMEMBERED | {"response.failed", "error"}


class Telling:
    """An answer's head and bytes in, frames out."""

    def __init__(self, post: Post) -> None:
        self._post = post
        self._events = Events()
        self._items: list[bytes] = []
        self._status = 0
        self._head: Headers = {}
        self._error: bytearray | None = None
        self.ended = False
        """The client has heard how the turn ended."""
        self.id = ""
        self.past: Past | None = None
        """What the response `id` leaves behind, once it has ended well."""

    def head(self, status: int, head: Headers) -> list[bytes]:
        self._status, self._head = status, head
        if status != 200 or not head.get("content-type", "").startswith("text/event-stream"):
            self._error = bytearray()
            return []
        told = frames.metadata(head, self._post.lane)
        return [told] if told is not None else []

    def data(self, chunk: bytes) -> list[bytes]:
        """BadAnswer where an event is too long."""
        if self._error is not None:
            self._error += chunk[: _ERROR_BYTES - len(self._error)]
            return []
        return self._frames(self._events.feed(chunk))

    def end(self) -> list[bytes]:
        if self._error is None:
            return self._frames(self._events.close())
        self.ended = True
        status = self._status if self._status >= 400 else 502
        return [frames.error_of(status, self._head, bytes(self._error), self._post.lane)]

    def broke(self, message: str) -> list[bytes]:
        """There is no more of it; an error where nothing had come."""
        if self._status or self.ended:
            return []
        self.ended = True
        return [frames.error(502, message, lane=self._post.lane)]

    def _frames(self, events: list[Event]) -> list[bytes]:
        told = []
        for event in events:
            value = None if self.ended or not event.data else read_object(event.data)
            if value is not None:
                told.append(self._frame(value, event.data))
        return told

    def _frame(self, value: JsonObject, raw: bytes) -> bytes:
        kind = text_of(value.get("type"))
        if kind == "response.output_item.done":
            self._items.append(dumps(value.get("item")))
        elif kind in _LAST:
            self.ended = True
            if kind in _REMEMBERED:
                self._remember(object_of(value.get("response")))
            elif kind == "error" and "error" not in value:
                code = text_of(value.get("code")) or None
                return frames.error(502, text_of(value.get("message")), code=code, lane=self._post.lane)
        return raw if self._post.lane is None else frames.on_lane(value, self._post.lane)

    def _remember(self, response: JsonObject) -> None:
        output = response.get("output")
        items = self._items or [dumps(item) for item in (output if isinstance(output, list) else ())]
        self.id = text_of(response.get("id"))
        self.past = Past((*self._post.past.items, *items), self._post.past.behind) if self.id else None
