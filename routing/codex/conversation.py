"""What was said on one WebSocket, so that every frame becomes a whole request.

1. A frame with `previous_response_id` brings only what is new; what stood before it is kept here, as JSON.
2. A frame with `generate: false` warms up: its input is kept, it is answered here, and nobody is asked.
3. A response that is not known here may be known to its provider, unless nothing is stored there: then the client is told, and
   sends everything.
"""

from __future__ import annotations

from msgspec import Struct

from ..dialects.fields import object_of, text_of
from ..errors import BadCall, RouteCodexError, TooLarge
from ..headers import Fields
from ..jsonbytes import dumps, loads
from ..values import JsonObject
from . import frames

KEPT = 4
"""So many responses of a connection can be gone on from; Codex only ever takes the newest."""
CREATE = "response.create"
_NOT_OF_A_REQUEST = ("type", "generate", "stream_id", "background", "previous_response_id", "input")


class Past(Struct, frozen=True):
    """What stands before the next turn."""

    items: tuple[bytes, ...] = ()
    behind: str | None = None
    """The response that all this came after, which only its provider knows."""

    @property
    def size(self) -> int:
        return sum(map(len, self.items))


class Post(Struct, frozen=True):
    """A frame as the request it stands for."""

    body: bytes
    headers: Fields
    """What the client says about this turn; the upgrade spoke of another one."""
    past: Past
    """With its own input."""
    lane: str | None = None


class Told(Struct, frozen=True):
    """A frame that is answered here."""

    frames: tuple[bytes, ...]


class Conversation:
    """The newest responses of one connection."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._pasts: dict[str, Past] = {}

    def ask(self, text: str, *, new_id: str, now: int) -> Post | Told:
        """`new_id` names the response to a warm-up."""
        lane: str | None = None
        try:
            frame = _read(text)
            lane = text_of(frame.get("stream_id")) or None
            if frame.get("type") != CREATE:
                raise BadCall(f"RouteCodex serves {CREATE} on this WebSocket, nothing else.")
            past = self._grown(frame)
        except _NotKept as error:
            return Told((frames.error(400, error.message, code="previous_response_not_found", lane=lane),))
        except RouteCodexError as error:
            return Told((frames.error(error.status, error.message, code=error.code, lane=lane),))
        if _warms_up(frame):
            self.keep(new_id, past)
            return Told(frames.warm_up(new_id, text_of(frame.get("model")), now, lane))
        return Post(_body(frame, past), frames.headers_of(object_of(frame.get("client_metadata"))), past, lane)

    def keep(self, id: str, past: Past) -> None:
        """What the response with this id leaves behind."""
        self._pasts.pop(id, None)
        if past.size > self._limit:
            return
        self._pasts[id] = past
        while len(self._pasts) > KEPT or (len(self._pasts) > 1 and self.size > 2 * self._limit):
            del self._pasts[next(iter(self._pasts))]

    @property
    def size(self) -> int:
        """Bytes kept; what several responses have in common counts once."""
        return sum(len(item) for item in {id(item): item for past in self._pasts.values() for item in past.items}.values())

    def _grown(self, frame: JsonObject) -> Past:
        """What stood before, and what this frame adds."""
        before = self._before(frame)
        past = Past((*before.items, *_items(frame.get("input"))), before.behind)
        if past.size > self._limit:
            raise TooLarge(f"RouteCodex reads requests of up to {self._limit >> 20} MiB; with its history this one is larger.")
        return past

    def _before(self, frame: JsonObject) -> Past:
        previous = frame.get("previous_response_id")
        if not previous:
            return Past()
        id = text_of(previous)
        if id in self._pasts:
            return self._pasts[id]
        if not id or frame.get("store") is False:
            raise _NotKept("Previous response was not found on this connection.")
        return Past(behind=id)


class _NotKept(BadCall):
    """The client sends everything once more when it hears this."""


def _read(text: str) -> JsonObject:
    value = loads(text.encode("utf-8", "surrogatepass"))
    if not isinstance(value, dict):
        raise BadCall("A frame must be a JSON object.")
    return value


def _items(given: object) -> list[bytes]:
    if isinstance(given, str):
        return [dumps({"type": "message", "role": "user", "content": given})]
    if given is not None and not isinstance(given, list):
        raise BadCall("The input must be a text or a list of items.")
    return [dumps(item) for item in given or ()]


def _warms_up(frame: JsonObject) -> bool:
    return frame.get("generate") is False or object_of(frame.get("prompt_cache_options")).get("prewarm") is True


def _body(frame: JsonObject, past: Past) -> bytes:
    rest = {name: value for name, value in frame.items() if name not in _NOT_OF_A_REQUEST}
    if past.behind is not None:
        rest["previous_response_id"] = past.behind
    return dumps(rest | {"stream": True})[:-1] + b',"input":[' + b",".join(past.items) + b"]}"
