"""Look a tag's names up in the configuration.

1. Behind a provider's first dot stands, in this order: a model or model alias · digits, the key's place from 1 · a key's alias ·
   `alias.model`. Brackets always hold a key.
2. A key's place becomes its alias here, so that a later change of the file shifts nothing.
3. A provider that declares no models takes any model name.
4. What is not found raises; the error names what is nearest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from heapq import nlargest

from routing.errors import NoTarget, not_found
from routing.router.registry import Key, Provider, Registry
from routing.tags.grammar import Name

_HINTS = 3


@dataclass(frozen=True, slots=True)
class Named:
    """What a tag names. `key` None means every key; `model` None the client's own model."""

    provider: str
    key: str | None = None
    model: str | None = None

    def __str__(self) -> str:
        key = f"[{self.key}]" if self.key else ""
        return f"{self.provider}{key}.{self.model}" if self.model else f"{self.provider}{key}"

    @property
    def spoken(self) -> str:
        """As a sentence says it."""
        parts = (f"key {self.key}" if self.key else "", f"model {self.model}" if self.model else "")
        return " ".join(part for part in (self.provider, *parts) if part)


def resolve(name: Name, registry: Registry) -> Named:
    """What the name means; NoTarget where the configuration holds nothing of that name."""
    provider = registry.providers.get(name.provider)
    if provider is None:
        raise _unknown(name, name.provider, registry.providers)
    found = _in_brackets(provider, name.alias, name.rest) if name.alias is not None else _behind_dot(provider, name.rest)
    if found is None:
        raise _unknown(name, str(name), _names_of(provider))
    return found


def model_for(provider: Provider, client_model: str) -> str:
    """The model of a tag that names none: the client's where the provider knows it, else the provider's first.

    Empty, which means the client's own, where the provider declares no models.
    """
    return provider.model_named(client_model) or next(iter(provider.models), "")


def _behind_dot(provider: Provider, rest: str | None) -> Named | None:
    if rest is None:
        return Named(provider.id)
    model = provider.model_named(rest)
    if model is not None:
        return Named(provider.id, model=model)
    if _is_place(rest):
        key = _key_at(provider, rest)
        return Named(provider.id, key.alias) if key else None
    if provider.key(rest) is not None:
        return Named(provider.id, rest)
    for alias in (key.alias for key in provider.keys if rest.startswith(f"{key.alias}.")):
        model = _model(provider, rest.removeprefix(f"{alias}."))
        if model is not None:
            return Named(provider.id, alias, model)
    return None if provider.models else Named(provider.id, model=rest)


def _in_brackets(provider: Provider, alias: str, rest: str | None) -> Named | None:
    key = (provider.key(alias) or _key_at(provider, alias)) if alias else None
    model = _model(provider, rest) if rest else None
    if (alias and key is None) or (rest and model is None):
        return None
    return Named(provider.id, key.alias if key else None, model)


def _model(provider: Provider, name: str) -> str | None:
    """The declared model of that name or alias; any name where none is declared."""
    return provider.model_named(name) if provider.models else name or None


def _is_place(text: str) -> bool:
    return text.isascii() and text.isdecimal()


def _key_at(provider: Provider, place: str) -> Key | None:
    if not _is_place(place):
        return None
    return next((key for key in provider.keys if str(key.index) == place), None)


def _names_of(provider: Provider) -> Iterator[str]:
    for model in provider.models.values():
        yield from (f"{provider.id}.{name}" for name in (model.id, *model.aliases))
    yield from (f"{provider.id}.{key.alias}" for key in provider.keys)


def _unknown(name: Name, wanted: str, known: Iterable[str]) -> NoTarget:
    """The seed's error. Case counts in names, but not in what is near."""
    nearness = SequenceMatcher(b=wanted.casefold(), autojunk=False)

    def near(candidate: str) -> float:
        nearness.set_seq1(candidate.casefold())
        return nearness.ratio()

    return not_found(str(name), known=tuple(nlargest(_HINTS, dict.fromkeys(known), key=near)))
