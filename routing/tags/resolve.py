"""Look a tag's names up in the configuration.

1. Behind a provider's first dot stands, in this order: a model or model alias · digits, the key's place from 1 · a key's alias ·
   `alias.model`. Brackets always hold a key.
2. A key's place becomes its alias here, so that a later change of the file shifts nothing.
3. A provider that declares no models takes any model name.
4. What is not found raises; the error names what is nearest.
"""

from __future__ import annotations

from ..errors import not_for_you, not_found
from ..router.registry import Key, Provider, Registry
from ..values import Named
from .grammar import Name
from .vocabulary import Vocabulary


def resolve(name: Name, registry: Registry) -> Named:
    """What the name means; NoTarget where the configuration holds nothing of that name."""
    provider = registry.providers.get(name.provider)
    if provider is None:
        raise not_found(str(name), known=Vocabulary(registry).meant(str(name)))
    if provider.shut:
        raise not_for_you(provider.id, provider.why)
    found = _in_brackets(provider, name.alias, name.rest) if name.alias is not None else _behind_dot(provider, name.rest)
    if found is None:
        raise not_found(str(name), known=Vocabulary(registry).meant(str(name)))
    return found


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
        model = provider.declared(rest.removeprefix(f"{alias}."))
        if model:
            return Named(provider.id, alias, model)
    return None if provider.models else Named(provider.id, model=rest)


def _in_brackets(provider: Provider, alias: str, rest: str | None) -> Named | None:
    key = (provider.key(alias) or _key_at(provider, alias)) if alias else None
    model = provider.declared(rest) if rest else None
    if (alias and key is None) or (rest and model is None):
        return None
    return Named(provider.id, key.alias if key else None, model)


def _is_place(text: str) -> bool:
    return text.isascii() and text.isdecimal()


def _key_at(provider: Provider, place: str) -> Key | None:
    if not _is_place(place):
        return None
    return next((key for key in provider.keys if str(key.index) == place), None)
