"""Which paths ask for a model's answer, and at which path a provider is asked the same.

1. Only POST, and only the model paths of the four dialects; any prefix before them is allowed (`/api/anthropic/v1/messages`).
2. A query string is rebuilt, never copied: what a provider sees of it is in `upstream_path` and nowhere else.
"""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, quote, unquote

from ..values import Dialect, Endpoint

_LONGEST_PATH = 8192

_FIXED: tuple[tuple[str, Endpoint], ...] = (
    ("/v1/messages", Endpoint(Dialect.MESSAGES)),
    ("/v1/messages/count_tokens", Endpoint(Dialect.MESSAGES, action="count")),
    ("/chat/completions", Endpoint(Dialect.CHAT)),
    ("/responses", Endpoint(Dialect.RESPONSES)),
)
"""Paths that are known by how they end."""

_GEMINI_VERBS: dict[str, tuple[bool, bool]] = {
    "generateContent": (False, False),
    "streamGenerateContent": (False, True),
    "countTokens": (True, False),
}
"""Verb → it counts, it streams."""

_ENVELOPE = "v1internal"
_VERSION = re.compile(r"v\d+(?:(?:alpha|beta)\d*)?")


def endpoint_of(method: str, path: str) -> Endpoint | None:
    """What a request asks a model for; None for every path that is not a model's."""
    if method.upper() != "POST" or len(path) > _LONGEST_PATH:
        return None
    bare, _, query = path.partition("?")
    for ending, endpoint in _FIXED:
        if bare.endswith(ending):
            return endpoint
    return _gemini_endpoint(bare, query)


def _gemini_endpoint(bare: str, query: str) -> Endpoint | None:
    parent, _, last = bare.rpartition("/")
    name, colon, verb = last.rpartition(":")
    if not colon or verb not in _GEMINI_VERBS:
        return None
    envelope = name == _ENVELOPE
    model = None if envelope else unquote(name)
    if not envelope and (not model or not parent.endswith("/models")):
        return None
    count, stream = _GEMINI_VERBS[verb]
    return Endpoint(
        Dialect.GEMINI,
        action="count" if count else "generate",
        model=model,
        stream=stream,
        json_array=stream and not _asks_for_sse(query),
        envelope=envelope,
    )


def _asks_for_sse(query: str) -> bool:
    return any(name in ("alt", "$alt") and value == "sse" for name, value in parse_qsl(query))


def upstream_path(endpoint: Endpoint, base_path: str, model: str, *, query: str) -> str:
    """The path, query included, at which a provider with this base is asked what `endpoint` asks.

    `query` is the client's; only `beta=true` of a Messages call survives it. Gemini's stream is asked for in the form that
    `endpoint.json_array` says.
    """
    base = base_path.rstrip("/")
    match endpoint.dialect:
        case Dialect.MESSAGES:
            return _messages_path(endpoint, base) + ("?beta=true" if ("beta", "true") in parse_qsl(query) else "")
        case Dialect.CHAT:
            return _openai_path(base, "/chat/completions")
        case Dialect.RESPONSES:
            return _openai_path(base, "/responses")
        case Dialect.GEMINI:
            return _gemini_path(endpoint, base, model)


def models_path(dialect: Dialect, base_path: str) -> str:
    """Where a provider with this base lists its models."""
    base = base_path.rstrip("/")
    match dialect:
        case Dialect.MESSAGES:
            return _messages_path(Endpoint(dialect), base).removesuffix("/messages") + "/models?limit=1000"
        case Dialect.CHAT:
            return _openai_path(base.removesuffix("/chat/completions"), "/models")
        case Dialect.RESPONSES:
            return _openai_path(base.removesuffix("/responses"), "/models")
        case Dialect.GEMINI:
            return _gemini_path(Endpoint(dialect), base, "").partition("/models/")[0] + "/models?pageSize=1000"


def _messages_path(endpoint: Endpoint, base: str) -> str:
    base = base.removesuffix("/messages")
    root = base if base.endswith("/v1") else f"{base}/v1"
    return f"{root}/messages/count_tokens" if endpoint.action == "count" else f"{root}/messages"


def _openai_path(base: str, ending: str) -> str:
    """Bases carry their version (`/v1`, `/api/paas/v4`); an empty one means the official layout."""
    return (base.removesuffix(ending) or "/v1") + ending


def _gemini_path(endpoint: Endpoint, base: str, model: str) -> str:
    verb = "countTokens" if endpoint.action == "count" else "streamGenerateContent" if endpoint.stream else "generateContent"
    sse = "?alt=sse" if verb == "streamGenerateContent" and not endpoint.json_array else ""
    if endpoint.envelope and base.endswith(f"/{_ENVELOPE}"):
        return f"{base}:{verb}{sse}"
    root = base.removesuffix("/models")
    if not any(_VERSION.fullmatch(segment) for segment in root.split("/")):
        root += "/v1beta"
    # a lone surrogate cannot be percent-encoded, and no provider has such a model
    name = quote(model.removeprefix("models/"), safe="", errors="replace")
    return f"{root}/models/{name}:{verb}{sse}"
