"""Which headers go up, which come back, and which of them are secrets.

1. To the host the client called, its own headers go on; to any other host they are built from an allow-list, never copied.
2. Secret values are kept apart from everything that is shown or saved: they join the request on the wire.
3. Nothing with a line break, a NUL or a name that is no token is ever written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from .errors import ConfigError
from .secret_names import is_secret_header, is_secret_param
from .values import Dialect, Headers

Fields = tuple[tuple[str, str], ...]

MASK = "***"
_PARAM = re.compile(r"(?<=[?&;#])([^=&;#?]+)=")
_VALUE = re.compile(r"[^&#]*")
_PERSON = re.compile(r"//[^/?#@\s<>]{1,1000}@")
"""Before a host: their name, and mostly their password."""
_ADDRESSES = frozenset({"location", "content-location", "referer", "link", "refresh"})
"""Headers that hold an address, which may hold a credential."""

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
_OAUTH_PREFIX = "sk-ant-oat"
_DEFAULT_VERSION = "2023-06-01"


class Outgoing(Struct, frozen=True):
    """Headers of one round: `shown` stands in the flow, `secret` only on the wire."""

    shown: Fields
    secret: Fields = ()


def shown(name: str, value: str) -> str:
    """The header's value as it may be shown and saved."""
    if is_secret_header(name):
        return MASK
    return _PERSON.sub(f"//{MASK}@", mask_query(value)) if name.lower() in _ADDRESSES else value


def may_hide(name: str) -> bool:
    """Whether `shown` shows another value than a header of this name has, or may; the name in lower case."""
    return name in _ADDRESSES or is_secret_header(name)


def mask_query(path: str) -> str:
    """The address without the credentials in its query or fragment."""
    return fill_query(path, ())


def fill_query(path: str, values: Iterable[str]) -> str:
    """Each credential in turn becomes one of these; where there are no more, the mask."""
    waiting, parts, done = iter(values), [], 0
    for _, start, end in _secret_params(path):
        parts += [path[done:start], next(waiting, MASK)]
        done = end
    return "".join(parts) + path[done:] if parts else path


def query_secrets(path: str) -> tuple[str, ...]:
    return tuple(path[start:end] for _, start, end in _secret_params(path))


def secret_params(path: str) -> list[str]:
    """The parameters that are credentials, name and value."""
    return [path[name_at:end] for name_at, _, end in _secret_params(path)]


def _secret_params(path: str) -> Iterator[tuple[int, int, int]]:
    """Where their names begin, and where their values begin and end."""
    if "?" not in path and "#" not in path and ";" not in path and "&" not in path:
        return
    at = 0
    while (found := _PARAM.search(path, at)) is not None:
        at = found.end()
        if is_secret_param(found[1]):
            value = _VALUE.match(path, at)
            assert value is not None
            yield found.start(), at, value.end()
            at = value.end()


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
    return _TOKEN.fullmatch(name) is not None and not ("\r" in value or "\n" in value or "\0" in value)
