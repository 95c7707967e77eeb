"""Frames that go to the client, and what its frames and its upgrade say about a request's headers."""

from __future__ import annotations

from collections.abc import Iterable

from ..dialects.fields import object_of, read_object, text_of
from ..errors import RouteCodexError
from ..headers import HOP_BY_HOP, Fields, check
from ..jsonbytes import dumps
from ..secret_names import is_secret_header
from ..values import Headers, JsonObject

_TURN = "x-codex-turn-metadata"
_IN_METADATA = frozenset({_TURN, "x-codex-window-id", "x-codex-turn-state", "x-codex-parent-thread-id", "x-openai-subagent"})
"""Headers of a request that a frame carries in its `client_metadata`."""
_PREFIX = "ws_request_header_"
"""… and any other one, under a name that begins so."""
_OTHERS = ("x-", "traceparent", "tracestate")
_OF_UPGRADE = HOP_BY_HOP | {"content-length", "content-type", "content-encoding", "accept", "accept-encoding", _TURN}
_SOCKETS = ("sec-websocket-",)
_BETA = "openai-beta"
_BACK = ("x-codex-", "x-ratelimit-", "retry-after", "x-request-id", "openai-model", "x-models-etag")
_LONGEST_HEADER = 16 * 1024
_WORDS = 4000


def headers_of(metadata: JsonObject) -> Fields:
    """The headers that a frame carries; none that could hold a credential or frame a body."""
    found: dict[str, str] = {}
    for key, value in metadata.items():
        name = key.lower()
        if name.startswith(_PREFIX):
            name = name.removeprefix(_PREFIX).replace("_", "-")
            if not name.startswith(_OTHERS):
                continue
        elif name not in _IN_METADATA:
            continue
        if isinstance(value, str) and _is_plain(name, value) and not is_secret_header(name):
            found[name] = value
    return tuple(found.items())


def post_headers(upgrade: Iterable[tuple[str, str]], of_turn: Fields) -> Fields:
    """The upgrade's headers as those of a request; what the frame itself says about its turn holds."""
    said = {name for name, _ in of_turn}
    kept: list[tuple[str, str]] = []
    for name, value in upgrade:
        lower = name.lower()
        if lower in _OF_UPGRADE or lower.startswith(_SOCKETS) or lower in said:
            continue
        if lower == _BETA:
            value = ",".join(part for part in value.split(",") if not part.strip().startswith("responses_websockets"))
        if value:
            kept.append((name, value))
    return (*kept, *of_turn, ("content-type", "application/json"), ("accept", "text/event-stream"))


def warm_up(id: str, model: str, now: int, lane: str | None) -> tuple[bytes, ...]:
    """What a response without output looks like."""
    response: JsonObject = {"id": id, "object": "response", "created_at": now, "model": model, "output": []}
    usage = {
        "input_tokens": 0,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 0,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 0,
    }
    begun = {"type": "response.created", "sequence_number": 0, "response": response | {"status": "in_progress"}}
    ended = {"status": "completed", "completed_at": now, "usage": usage}
    done = {"type": "response.completed", "sequence_number": 1, "response": response | ended}
    return on_lane(begun, lane), on_lane(done, lane)


def error(
    status: int,
    message: str,
    *,
    code: str | None = None,
    more: JsonObject | None = None,
    headers: JsonObject | None = None,
    lane: str | None = None,
) -> bytes:
    """The one shape in which Codex takes an error for what HTTP's status would have been."""
    shape = {"type": "invalid_request_error" if status < 500 else "server_error"} | (more or {})
    frame: JsonObject = {"type": "error", "status": status, "error": shape | {"code": code, "message": message}}
    return on_lane(frame | ({"headers": headers} if headers else {}), lane)


def error_of(status: int, head: Headers, body: bytes, lane: str | None) -> bytes:
    """The error that an answer's body tells; its fields are kept, and what Codex reads is text or nothing."""
    told = object_of((read_object(body) or {}).get("error"))
    message = text_of(told.get("message")) or body[:_WORDS].decode("utf-8", "replace").strip() or f"The answer was {status}."
    return error(status, message, code=text_of(told.get("code")) or None, more=told, headers=_told_back(head), lane=lane)


def metadata(head: Headers, lane: str | None) -> bytes | None:
    """What a client of HTTP reads in the answer's head; None where there is nothing of that kind."""
    told = {name: value for name, value in _told_back(head).items() if name.startswith(("x-codex-", "openai-model"))}
    return on_lane({"type": "response.metadata", "headers": told}, lane) if told else None


def on_lane(frame: JsonObject, lane: str | None) -> bytes:
    return dumps(frame if lane is None else frame | {"stream_id": lane})


def _told_back(head: Headers) -> JsonObject:
    return {name: value for name, value in head.items() if name.startswith(_BACK)}


def _is_plain(name: str, value: str) -> bool:
    if not (value.isascii() and len(value) <= _LONGEST_HEADER):
        return False
    try:
        check([(name, value)])
    except RouteCodexError:
        return False
    return True
