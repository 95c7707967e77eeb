"""Whose session an id names, where several people share a server: a person's name is part of every id of theirs.

1. `@alice:1234` is what alice's tool calls 1234. Two people's ids are never the same, whatever their tools send.
2. Without a user an id stays as it is; one that begins like an owned one is set apart (`@:…`).
"""

from __future__ import annotations

from urllib.parse import quote, unquote

_MARK, _BEHIND = "@", ":"


def owned(user: str, id: str) -> str:
    """The id as it is kept."""
    if not user and not id.startswith(_MARK):
        return id
    return f"{_MARK}{quote(user, safe='@')}{_BEHIND}{id}"


def parted(id: str) -> tuple[str, str]:
    """Its user, and what the tool called it."""
    if not id.startswith(_MARK):
        return "", id
    user, _, rest = id[len(_MARK) :].partition(_BEHIND)
    return unquote(user), rest


def is_of(user: str, id: str) -> bool:
    return parted(id)[0] == user
