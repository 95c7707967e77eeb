"""The ids that clients give their sessions, conversations and prompts: first where the client itself puts them, then where
any program may."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from ..dialects.fields import object_of, read_object, text_of
from ..values import Call, Headers, JsonObject
from .client import Client, Place

_LONGEST_ID = 512


# Places


def header(name: str) -> Place:
    return lambda call, headers: headers.get(name)


def at(*path: str) -> Place:
    """A field of the body, or of an object in it."""

    *outer, last = path

    def find(call: Call, headers: Headers) -> object:
        found: object = call.body
        for name in outer:
            found = found.get(name) if isinstance(found, dict) else None
        return found.get(last) if isinstance(found, dict) else None

    return find


def cache_key(pattern: str, prefix: str = "") -> Place:
    """`prompt_cache_key` where it looks as this client's do; others put anything there."""
    looks = re.compile(pattern)

    def find(call: Call, headers: Headers) -> object:
        key = text_of(call.body.get("prompt_cache_key"))
        return key.removeprefix(prefix) if looks.fullmatch(key) else None

    return find


_SESSION_IN_USER_ID = re.compile(r"session[_:-]{0,2}([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|[0-9a-fA-F]{8,64})")


def user_id(call: Call, headers: Headers) -> object:
    """`user_…_session_<uuid>`, or an object that names it, mostly as JSON text."""
    value = object_of(call.body.get("metadata")).get("user_id")
    if isinstance(value, dict):
        return value.get("session_id")
    text = text_of(value)
    if text.lstrip().startswith("{"):
        return object_in(text).get("session_id")
    found = _SESSION_IN_USER_ID.findall(text[-4096:])
    return found[-1] if found else None


def object_in(value: object) -> JsonObject:
    """The object that a text holds."""
    text = text_of(value)
    return read_object(text.encode("utf-8", "surrogatepass")) or {} if text else {}


_NAMED_TO_US = header("x-routecodex-session")
_SESSIONS: tuple[Place, ...] = (
    *map(header, ("session_id", "session-id", "sessionid", "x-session-id", "anthropic-session-id", "x-session-affinity")),
    *map(header, ("thread_id", "thread-id")),
    user_id,
    *(at("metadata", "sessionId"), at("metadata", "session_id")),
    *(at("client_metadata", "session_id"), at("client_metadata", "thread_id")),
    *(at("request", "session_id"), at("session_id")),
    cache_key(r"session_[\w-]+|ses_\w+|qwen-code:[\w-]+", "qwen-code:"),
)
_CONVERSATIONS: tuple[Place, ...] = (
    *map(header, ("conversation_id", "conversation-id", "openai-conversation-id", "x-conversation-id", "thread_id", "thread-id")),
    *(at("metadata", "conversation_id"), at("metadata", "conversationId"), at("conversation"), at("conversation", "id")),
)
_AGENT_TYPE = re.compile(r"[A-Za-z][\w-]{0,63}")
_PROMPTS: tuple[Place, ...] = (at("client_metadata", "turn_id"), at("user_prompt_id"), at("metadata", "promptId"))


# What a call says


def session_of(call: Call, headers: Headers, client: Client) -> str | None:
    return _first_id((_NAMED_TO_US, *client.session, *_SESSIONS), call, headers)


def conversation_of(call: Call, headers: Headers, session: str | None) -> str | None:
    """None where it is the session by another name."""
    found = _first_id(_CONVERSATIONS, call, headers)
    return None if found == session else found


def agent_of(call: Call, headers: Headers, client: Client) -> str:
    """The type of the subagent that asks, as the name of a route may hold it; empty where nothing is told."""
    found = _first_id(client.agent, call, headers) or ""
    return found.lower() if _AGENT_TYPE.fullmatch(found) else ""


def prompt_of(call: Call, headers: Headers, client: Client, session: str | None) -> str | None:
    found = _first_id((*client.prompt, *_PROMPTS), call, headers)
    # Gemini CLI sends its session id as the id of every prompt when it runs without a terminal: that names no prompt.
    return None if found == session else found


def _first_id(places: Iterable[Place], call: Call, headers: Headers) -> str | None:
    for place in places:
        found = place(call, headers)
        if isinstance(found, str) and (id := found.strip()):
            return id if len(id) <= _LONGEST_ID else hashlib.sha256(id.encode("utf-8", "surrogatepass")).hexdigest()
    return None
