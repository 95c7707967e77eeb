"""Which headers go up, which come back, and which of them are secrets.

1. To the host the client called, its own headers go on; to any other host they are built from an allow-list, never copied.
2. Secret values are kept apart from everything that is shown or saved: they join the request on the wire.
3. Nothing with a line break, a NUL or a name that is no token is ever written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from .errors import ConfigError
from .values import Dialect, Headers

Fields = tuple[tuple[str, str], ...]

SECRET = frozenset(
    {"authorization", "proxy-authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie", "x-goog-iam-authorization-token"}
)
"""Requests' headers that are, or hold, a credential."""
SECRET_QUERY = re.compile(r"(?i)(?<=[?&])(key|api[_-]?key|access_token|token)=([^&#]*)")
MASK = "***"

HOP_BY_HOP = frozenset(
    {
        "connection",
        "proxy-connection",  # not a standard one, but sent by curl and refused by some servers
        "keep-alive",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "proxy-authenticate",
        "proxy-authorization",
    }
)
OURS = "x-routecodex-"
"""Headers by which a caller talks to this program; they never leave it."""

_UP = ("user-agent", "accept")
_BACK = frozenset({"content-type", "retry-after", "request-id", "x-request-id", "openai-processing-ms", "retry-after-ms"})
_BACK_PREFIXES = ("anthropic-ratelimit-", "x-ratelimit-")
_FRAMING = HOP_BY_HOP | {"content-length", "content-encoding", "alt-svc"}
_NOT_ON = HOP_BY_HOP | {"content-length", "host"}
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_UNSAFE = re.compile(r"[\r\n\0]")
_OAUTH_PREFIX = "sk-ant-oat"
_DEFAULT_VERSION = "2023-06-01"


@dataclass(frozen=True, slots=True)
class Outgoing:
    """Headers of one round: `shown` stands in the flow, `secret` only on the wire."""

    shown: Fields
    secret: Fields = ()


def is_secret(name: str) -> bool:
    return name.lower() in SECRET


def mask_query(path: str) -> str:
    """The path without the credentials that Google's clients may put into its query."""
    return SECRET_QUERY.sub(rf"\1={MASK}", path) if "?" in path else path


def same_host(fields: Iterable[tuple[str, str]], *, coded: bool) -> Fields:
    """The client's own headers for the host it called; accept-encoding asks for an answer that can be read as it streams.

    `coded`: the body still has the content-encoding it came with.
    """
    kept = []
    for name, value in fields:
        lower = name.lower()
        if lower in _NOT_ON or lower.startswith(OURS) or (lower == "content-encoding" and not coded):
            continue
        kept.append((name, "identity" if lower == "accept-encoding" else value))
    if not any(name.lower() == "accept-encoding" for name, _ in kept):
        kept.append(("accept-encoding", "identity"))
    return tuple(kept)


def build(client: Headers, dialect: Dialect, key: str, extra: Mapping[str, str], *, foreign: bool, stream: bool) -> Outgoing:
    """Headers for a configured provider, made from nothing."""
    shown = [("content-type", "application/json"), ("accept-encoding", "identity")]
    shown += [(name, client[name]) for name in _UP if name in client]
    if not any(name == "accept" for name, _ in shown):
        shown.append(("accept", "text/event-stream" if stream else "application/json"))
    if dialect is Dialect.MESSAGES:
        shown.append(("anthropic-version", client.get("anthropic-version", _DEFAULT_VERSION)))
        betas = "" if foreign else _betas(client.get("anthropic-beta", ""), key)
        if betas:
            shown.append(("anthropic-beta", betas))
    secret = [_credential(dialect, key)] if key else []
    secret += list(extra.items())
    return Outgoing(check(shown), check(secret))


def _credential(dialect: Dialect, key: str) -> tuple[str, str]:
    match dialect:
        case Dialect.MESSAGES if not key.startswith(_OAUTH_PREFIX):
            return ("x-api-key", key)
        case Dialect.GEMINI:
            return ("x-goog-api-key", key)
        case _:
            return ("authorization", f"Bearer {key}")


def _betas(betas: str, key: str) -> str:
    """The caller's betas belong to its body; the one that announces an OAuth token belongs to its credential."""
    names = [name.strip() for name in betas.split(",") if name.strip() and not name.strip().startswith("oauth-")]
    if key.startswith(_OAUTH_PREFIX):
        names.append("oauth-2025-04-20")
    return ",".join(names)


def answer(headers: Iterable[tuple[str, str]], *, foreign: bool) -> Fields:
    """The head that the client gets: framing is ours; a foreign host says only what the client can use.

    What no header may hold is left out: a provider's bytes never stop its answer.
    """
    kept = []
    for name, value in headers:
        lower = name.lower()
        if lower in _FRAMING or not _is_safe(name, value):
            continue
        if not foreign or lower in _BACK or lower.startswith(_BACK_PREFIXES):
            kept.append((name, value))
    return tuple(kept)


def check(fields: Iterable[tuple[str, str]]) -> Fields:
    checked = tuple(fields)
    for name, value in checked:
        if not _is_safe(name, value):
            raise ConfigError(f"The header {name!r} holds characters that no header may hold.")
    return checked


def _is_safe(name: str, value: str) -> bool:
    return _TOKEN.fullmatch(name) is not None and _UNSAFE.search(value) is None
