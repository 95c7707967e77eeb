"""The ids that clients give their sessions, conversations and prompts."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator

from ..dialects.fields import object_of, read_object, text_of
from ..values import Call, Headers, JsonObject

_SESSION_HEADERS = (
    "x-routecodex-session",
    "x-claude-code-session-id",
    "session_id",
    "session-id",
    "sessionid",
    "x-session-id",
    "anthropic-session-id",
    "x-session-affinity",
    "thread_id",
    "thread-id",
)
_CONVERSATION_HEADERS = (
    "conversation_id",
    "conversation-id",
    "openai-conversation-id",
    "x-conversation-id",
    "thread_id",
    "thread-id",
)
_SESSION_IN_USER_ID = re.compile(r"session[_:-]{0,2}([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|[0-9a-fA-F]{8,64})")
_SESSION_CACHE_KEY = re.compile(r"session_[\w-]+|ses_\w+|qwen-code:[\w-]+")
"""`prompt_cache_key` is a session with these clients and Codex; others put anything there."""
_TURN_METADATA = "x-codex-turn-metadata"
_LONGEST_ID = 512


def session_of(call: Call, headers: Headers, client: str) -> str | None:
    return _first_id(headers.get(header) for header in _SESSION_HEADERS) or _first_id(_sessions_in_body(call, client))


def conversation_of(call: Call, headers: Headers, session: str | None) -> str | None:
    """None where it is the session by another name."""
    metadata = object_of(call.body.get("metadata"))
    conversation = call.body.get("conversation")
    found = _first_id(headers.get(header) for header in _CONVERSATION_HEADERS) or _first_id(
        (
            metadata.get("conversation_id"),
            metadata.get("conversationId"),
            conversation if isinstance(conversation, str) else object_of(conversation).get("id"),
        )
    )
    return None if found == session else found


def prompt_of(call: Call, headers: Headers, session: str | None) -> str | None:
    found = _first_id(
        (
            headers.get("x-claude-code-prompt-id"),
            turn_metadata(call, headers).get("turn_id"),
            object_of(call.body.get("client_metadata")).get("turn_id"),
            call.body.get("user_prompt_id"),
            object_of(call.body.get("metadata")).get("promptId"),
        )
    )
    # Gemini CLI sends its session id as the id of every prompt when it runs without a terminal: that names no prompt.
    return None if found == session else found


def turn_metadata(call: Call, headers: Headers) -> JsonObject:
    """What Codex says about a turn: in a header, else the same text in the body."""
    return _object_in(headers.get(_TURN_METADATA) or object_of(call.body.get("client_metadata")).get(_TURN_METADATA))


def _sessions_in_body(call: Call, client: str) -> Iterator[object]:
    metadata = object_of(call.body.get("metadata"))
    client_metadata = object_of(call.body.get("client_metadata"))
    yield _session_in_user_id(metadata.get("user_id"))
    yield metadata.get("sessionId")
    yield metadata.get("session_id")
    yield client_metadata.get("session_id")
    yield client_metadata.get("thread_id")
    yield object_of(call.body.get("request")).get("session_id")
    yield call.body.get("session_id")
    cache_key = text_of(call.body.get("prompt_cache_key"))
    if client == "codex" or _SESSION_CACHE_KEY.fullmatch(cache_key) is not None:
        yield cache_key.removeprefix("qwen-code:")


def _session_in_user_id(value: object) -> object:
    """`user_…_session_<uuid>`, or an object that names it, mostly as JSON text."""
    if isinstance(value, dict):
        return value.get("session_id")
    text = text_of(value)
    if text.lstrip().startswith("{"):
        return _object_in(text).get("session_id")
    found = _SESSION_IN_USER_ID.findall(text[-4096:])
    return found[-1] if found else None


def _object_in(value: object) -> JsonObject:
    text = text_of(value)
    return read_object(text.encode("utf-8", "surrogatepass")) or {} if text else {}


def _first_id(candidates: Iterable[object]) -> str | None:
    for candidate in candidates:
        if id := text_of(candidate).strip():
            return id if len(id) <= _LONGEST_ID else hashlib.sha256(id.encode("utf-8", "surrogatepass")).hexdigest()
    return None
