"""A part of the file as a class: its annotated names are the keys, and what they are set to is what holds without them."""

from __future__ import annotations

from typing import Any, ClassVar

from msgspec import Struct

MUST_BE_SAID: Any = object()


class Limits(Struct, frozen=True):
    """What a value must keep to."""

    ge: float | None = None
    le: float | None = None
    max_length: int | None = None
    """Entries of a list, which is not empty then."""
    pattern: str = ""
    """The whole text fits it …"""
    else_say: str = ""
    """… or this is told."""


class Key(Struct, frozen=True):
    """`default` is what holds without it."""

    alias: str
    """As the file spells it."""
    kind: Any
    default: Any = MUST_BE_SAID
    limits: Limits | None = None


class _Said(Struct, frozen=True):
    default: Any
    alias: str
    limits: Limits | None


def field(default: Any = MUST_BE_SAID, *, alias: str = "", **limits: Any) -> Any:
    """A key with limits, or spelt in a way of its own."""
    return _Said(default, alias, Limits(**limits) if limits else None)


class Section:
    """A key that stands nowhere in it is refused."""

    file_keys: ClassVar[dict[str, Key]]
    """By the name that it has here."""
    spelt: ClassVar[frozenset[str]]

    def __init_subclass__(cls) -> None:
        cls.file_keys = {}
        for name, kind in cls.__annotations__.items():
            given = vars(cls).get(name, MUST_BE_SAID)
            said = given if isinstance(given, _Said) else _Said(given, "", None)
            cls.file_keys[name] = Key(said.alias or _camel_case(name), kind, said.default, said.limits)
            if said.default is not MUST_BE_SAID:
                setattr(cls, name, said.default)
        cls.spelt = frozenset(key.alias for key in cls.file_keys.values())


def _camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))
