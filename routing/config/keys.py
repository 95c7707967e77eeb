"""A provider's credentials.

1. A variable that is not set switches its key off; an explicit "" is no credential on purpose; no auth at all is refused.
2. A key's place counts from 1 in the file's order, also over keys that are off: tags name keys by it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias

from msgspec.structs import replace

from ..router.registry import Key
from . import schema
from .environment import expand, unset, why_off
from .notes import Notes, Path

AuthKind: TypeAlias = Literal["apikey", "client", "none"]

LONE_KEYS: Mapping[str, tuple[Key, ...]] = {"client": (Key("client", 1),), "none": (Key("local", 1),)}
"""What stands in for a key where there is none, so that every target has one."""

_ALIAS = re.compile(r"[A-Za-z0-9_-]+")
_ODD = (
    (
        re.compile(r"\$\w+|%\w+%|\{+\s*\w+\s*\}+|\$\(.*\)|\$env:\w+", re.IGNORECASE),
        'is sent as it stands: a variable is written "${NAME}"',
    ),
    (re.compile(r"bearer\s.*", re.IGNORECASE), "begins with Bearer: write the key alone"),
    (re.compile(r"(?:export )?[A-Z_][A-Z0-9_]*=[^=].*"), "begins with a variable's name and =: write the key alone"),
    (re.compile(r"""(['"]).*\1"""), "is sent with the quotes around it: take them out"),
    (re.compile(r".*\s.*"), "has white space in it: no provider gives such keys"),
)
"""A key that can hardly be one, and what is said of it."""
_HOW_TO = (
    'add auth: {type: apikey, keys: [{alias: primary, value: "${YOUR_KEY}"}]}, '
    "or auth: {type: none} for a server without keys, or auth: {type: client} to pass the caller's own credential on"
)


def build_keys(
    provider: str, auth: schema.Auth | None, env: Mapping[str, str], notes: Notes, at: Path
) -> tuple[AuthKind, tuple[Key, ...]]:
    if auth is None:
        notes.refuse(at, f"no auth: {_HOW_TO}")
        return "apikey", ()
    at = (*at, "auth")
    kind = auth.type.lower()
    if kind == "client" or kind == "none":
        if auth.keys:
            notes.refuse((*at, "keys"), f"keys have no use with type {kind}: remove them, or write type: apikey")
        return ("client" if kind == "client" else "none"), LONE_KEYS[kind]
    if "oauth" in kind:
        notes.warn(
            at, f"logins by OAuth are not used here: {provider} is off (auth: {{type: client}} passes the caller's own on)"
        )
        documents = auth.keys or [schema.Key()]
        return "apikey", tuple(replace(key, off=True) for key in _name_keys(documents, notes, at))
    if kind != "apikey":
        notes.refuse((*at, "type"), f"unknown type {notes.quote(auth.type)}: one of apikey, client, none")
        return "apikey", ()
    if not auth.keys:
        notes.refuse(at, f"no keys: {_HOW_TO}")
    keys = zip(_name_keys(auth.keys, notes, at), auth.keys, strict=True)
    return "apikey", tuple(_fill(provider, key, document, env, notes, (*at, "keys", key.index - 1)) for key, document in keys)


def _name_keys(documents: Iterable[schema.Key], notes: Notes, at: Path) -> list[Key]:
    """Aliases: `key1`, `key2`, … where none is given; `_1`, `_2`, … behind one that is taken."""
    keys: list[Key] = []
    taken: set[str] = set()
    for index, document in enumerate(documents, 1):
        alias = document.alias if document.alias is not None else f"key{index}"
        place = (*at, "keys", index - 1, "alias")
        if _ALIAS.fullmatch(alias) is None:
            notes.refuse(place, "an alias is typed in tags: only letters, digits, _ and -")
        elif alias.isdigit() and alias != str(index):
            notes.warn(place, f"the alias {alias} can be typed as provider[{alias}] only: digits alone mean a key's place")
        unique, number = alias, 0
        while unique in taken:
            number += 1
            unique = f"{alias}_{number}"
        taken.add(unique)
        keys.append(Key(unique, index))
    return keys


def _fill(provider: str, key: Key, document: schema.Key, env: Mapping[str, str], notes: Notes, at: Path) -> Key:
    name = f"key {provider}.{key.alias}"
    if document.value is None:
        if document.secret_ref is None and document.token_file is None:
            notes.refuse(at, 'no value: write value: "${YOUR_KEY}", or value: "" for none on purpose')
        else:
            notes.warn(at, f"secret references and token files are not read here: {name} is off")
        return replace(key, off=True, why=f"secret references and token files are not read here ({notes.where(at)})")
    full = expand(document.value, env, notes)
    if full.missing:
        notes.warn((*at, "value"), f"{unset(full)}: {name} is off")
        return replace(key, off=True, why=why_off(full, notes.where((*at, "value"))))
    value = full.text.strip()
    if full.malformed:
        notes.refuse((*at, "value"), "holds a ${ that is neither ${NAME} nor ${file:PATH}")
    elif not fits_header(value):
        notes.refuse((*at, "value"), "holds characters that a header cannot carry")
    odd = next((said for form, said in _ODD if form.fullmatch(value)), None)
    if odd is not None:
        notes.warn((*at, "value"), f"{name} {odd}")
    return replace(key, value=value)


def fits_header(text: str) -> bool:
    return text.isascii() and text.isprintable()
