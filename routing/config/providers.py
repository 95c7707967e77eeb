"""Providers, their keys and models, from the checked document.

1. `origin` and `echo` are always there; nobody can redefine them.
2. A key whose variable is missing is off but known by name, and so is its provider.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..dialects.endpoints import endpoint_of
from ..router.registry import ECHO, ORIGIN, Model, Provider, Url
from ..tags.words import RESERVED
from ..values import Dialect
from . import schema
from .environment import expand, unset, why_off
from .hosts import read_url, stays_near
from .keys import LONE_KEYS, build_keys, fits_header
from .notes import Notes, Path

BUILT_IN: Mapping[str, Provider] = {
    ORIGIN: Provider(ORIGIN, None, {}, LONE_KEYS["client"], {}, auth="client"),
    ECHO: Provider(ECHO, None, {}, LONE_KEYS["none"], {}, auth="none"),
}

_NAME = re.compile(r"[A-Za-z0-9_-]+")
_HEADER = re.compile(r"[a-z0-9!#$%&'*+.^_`|~-]+")
_FRAMING = frozenset({"host", "content-length", "transfer-encoding", "connection", "content-encoding", "accept-encoding"})

_FAMILIES = (
    *((str(dialect), dialect) for dialect in Dialect),
    ("anthropic", Dialect.MESSAGES),
    ("claude", Dialect.MESSAGES),
    ("responses", Dialect.RESPONSES),
    ("gemini", Dialect.GEMINI),
    *((word, Dialect.CHAT) for word in ("openai", "chat", "iflow", "qwen", "glm", "lmstudio")),
)
_PROTOCOLS = ", ".join(Dialect)


def build_providers(documents: Mapping[str, schema.Provider], env: Mapping[str, str], notes: Notes) -> dict[str, Provider]:
    providers = dict(BUILT_IN)
    for name, document in documents.items():
        at: Path = ("virtualrouter", "providers", name)
        provider_id = document.id or name
        wrong = _check_id(provider_id, providers)
        if wrong:
            notes.refuse(at, wrong)
            continue
        providers[provider_id] = _build(provider_id, document, env, notes, at)
    return providers


def _check_id(name: str, taken: Mapping[str, Provider]) -> str | None:
    if name.lower() in BUILT_IN:
        return "is built in: choose another name"
    if name.lower() in RESERVED:
        return "is a tag of its own (<**…**>): choose another name"
    if _NAME.fullmatch(name) is None or name.isdigit():
        return "a provider's name is typed in tags: only letters, digits, _ and -, and not digits alone"
    if name in taken:
        return "a provider with this id is already there"
    return None


def _build(name: str, document: schema.Provider, env: Mapping[str, str], notes: Notes, at: Path) -> Provider:
    dialect = _choose_dialect(name, document, notes, at)
    endpoints, why = _build_endpoints(dialect, document, env, notes, at)
    auth, keys = build_keys(name, document.auth, env, notes, at)
    if auth == "apikey" and any(key.value and not key.off for key in keys):
        for url in endpoints.values():
            if url.scheme == "http" and not stays_near(url.host):
                notes.warn(at, f"{name}: http:// sends the key unencrypted to {url.host}")
    return Provider(
        id=name,
        dialect=dialect,
        endpoints=endpoints,
        keys=keys,
        models=_build_models(document.models, notes, at),
        auth=auth,
        enabled=document.enabled and not why,
        why=why or ("" if document.enabled else f"enabled: false ({notes.where((*at, 'enabled'))})"),
        headers=_build_headers(name, document.headers, env, notes, at),
        server_tools=document.server_tools and not document.server_tools_disabled,
        count_tokens=document.count_tokens,
        compaction=document.compaction,
        ask_usage=document.ask_usage,
        users=None if document.users is None else tuple(document.users),
    )


def _choose_dialect(name: str, document: schema.Provider, notes: Notes, at: Path) -> Dialect:
    """`protocol` must be known; the original's `type` is free text; without both, the endpoints or the name tell."""
    if document.protocol is not None:
        found = _find_family(document.protocol)
        if found is None:
            notes.refuse((*at, "protocol"), f"unknown protocol {notes.quote(document.protocol)}: one of {_PROTOCOLS}")
        return found or Dialect.CHAT
    if document.type is None and document.base_url is None:
        spoken = [dialect for dialect in Dialect if dialect in document.endpoints]
        if spoken:
            return spoken[0]
    return _find_family(document.type or name) or Dialect.CHAT


def _find_family(text: str) -> Dialect | None:
    return next((dialect for word, dialect in _FAMILIES if word in text.lower()), None)


def _build_endpoints(
    dialect: Dialect, document: schema.Provider, env: Mapping[str, str], notes: Notes, at: Path
) -> tuple[dict[Dialect, Url], str]:
    """Every dialect's address, and which variable of them is missing."""
    endpoints: dict[Dialect, Url] = {}
    why = ""
    written: list[tuple[Dialect, str, Path]] = []
    if document.base_url is not None:
        written.append((dialect, document.base_url, (*at, "baseURL")))
    elif dialect not in document.endpoints:
        notes.refuse(at, "baseURL is missing: the address that the provider's documentation names")
    for spoken, text in document.endpoints.items():
        if spoken not in set(Dialect):
            notes.refuse((*at, "endpoints", spoken), f"unknown protocol: one of {_PROTOCOLS}")
            continue
        written.append((Dialect(spoken), text, (*at, "endpoints", spoken)))
    for spoken, text, place in written:
        full = expand(text, env, notes)
        if full.missing:
            notes.warn(place, f"{unset(full)}: provider {at[-1]} is off")
            why = why or why_off(full, notes.where(place))
            continue
        try:
            url = read_url(full.text)
        except ValueError as error:
            notes.refuse(place, f"{error}: {notes.quote(text)}")
            continue
        meant = endpoint_of("POST", url.path)
        if meant is not None and meant.dialect is not spoken:
            why = f"ends with the path of {meant.dialect}, which is not what is asked there ({spoken})"
            notes.refuse(place, f"{why}: name its documentation's address for that, or say protocol: {meant.dialect}")
        endpoints[spoken] = url
    return endpoints, why


def _build_models(documents: Mapping[str, schema.Model], notes: Notes, at: Path) -> dict[str, Model]:
    models = {
        name: Model(name, document.max_context, document.max_tokens, tuple(document.aliases), document.vision)
        for name, document in documents.items()
    }
    seen: dict[str, str] = dict.fromkeys(models, "a model")
    for name, document in documents.items():
        if not name.strip():
            notes.refuse((*at, "models"), "a model must have a name")
        for place, alias in enumerate(document.aliases):
            if alias in seen and alias != name:
                notes.refuse((*at, "models", name, "aliases", place), f"{notes.quote(alias)} already names {seen[alias]}")
            seen[alias] = f"an alias of {name}"
    return models


def _build_headers(provider: str, documents: Mapping[str, str], env: Mapping[str, str], notes: Notes, at: Path) -> dict[str, str]:
    headers: dict[str, str] = {}
    for written, text in documents.items():
        name, place = written.strip().lower(), (*at, "headers", written)
        full = expand(text, env, notes)
        if _HEADER.fullmatch(name) is None or name in _FRAMING:
            notes.refuse(place, "is not a header that can be set here")
        elif full.missing:
            notes.warn(place, f"{unset(full)}: {provider} is asked without the header {name}")
        elif not fits_header(full.text):
            notes.refuse(place, "holds characters that a header cannot carry")
        else:
            headers[name] = full.text
    return headers
