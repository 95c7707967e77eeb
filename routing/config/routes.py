"""Routes, pools and targets, from the checked document.

1. A target names a known provider and, where that provider declares models, a declared one.
2. One target per usable key; keys and providers that are off are left out, so a pool may be empty.
3. Pools: normal before backup, then by priority, then by id. The `default` route has at least one normal pool.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, TypeAlias

from ..router.classify import DEFAULT, ROUTES
from ..router.registry import Key, Pool, Provider
from ..tags.words import near
from ..values import Target
from . import schema
from .notes import Notes, Path, nearest
from .providers import BUILT_IN

_USUAL_PRIORITY = 100
_BRACKETS = re.compile(r"([^.\[\]]+)\[([^\[\]]+)\](?:\.(.+))?", re.S)
_PRIORITY = re.compile(r"(.+):(\d{1,6})", re.S)

_Found: TypeAlias = tuple[Provider, Key | None, str]

_TOP: Path = ("virtualrouter", "routing")


def build_routes(router: schema.VirtualRouter, providers: Mapping[str, Provider], notes: Notes) -> dict[str, tuple[Pool, ...]]:
    reader = _TargetReader(providers, notes)
    routes: dict[str, tuple[Pool, ...]] = {}
    for name, documents in router.routing.items():
        if not documents:
            continue
        close = nearest(name, ROUTES)
        if name not in ROUTES and close and near(_fold(name), _fold(close[0])):
            notes.warn((*_TOP, name), f"no call is sorted into the route {notes.quote(name)}: did you mean {close[0]}?")
        routes[name] = _build_pools(name, documents, router.load_balancing, reader)
    _check_default(routes, notes)
    return routes


def _fold(name: str) -> str:
    return re.sub(r"[^a-z]", "", name.lower())


def _check_default(routes: Mapping[str, tuple[Pool, ...]], notes: Notes) -> None:
    pools = routes.get(DEFAULT, ())
    if not pools:
        notes.refuse((*_TOP, DEFAULT), "missing: every call needs a route in the end; write default: [origin]")
    elif all(pool.backup for pool in pools):
        notes.refuse((*_TOP, DEFAULT), "holds only backup pools: one pool must be a normal one")
    elif not notes.refused and not any(pool.targets for pool in pools):
        notes.warn((*_TOP, DEFAULT), "the default route has no usable target: all its keys are off")


def _build_pools(
    route: str, documents: list[schema.Pool], usual: schema.LoadBalancing, reader: _TargetReader
) -> tuple[Pool, ...]:
    pools: dict[str, Pool] = {}
    for index, document in enumerate(documents):
        at: Path = (*_TOP, route, index)
        name = document.id if document.id is not None else f"{route}:pool{index}"
        if name in pools:
            reader.notes.refuse(at, f"a pool with the id {reader.notes.quote(name)} is already there")
        weights = document.weights or document.load_balancing.weights or usual.weights
        for weighed in weights:
            reader.check_weighed(weighed, at)
        pools[name] = Pool(
            id=name,
            targets=reader.read_pool(document.targets, at),
            priority=document.priority if document.priority is not None else len(documents) - index,
            backup=document.backup,
            mode=_choose_mode(document, usual),
            weights=weights,
            off=reader.off_in(document.targets),
        )
    return tuple(sorted(pools.values(), key=lambda pool: (pool.backup, -pool.priority, pool.id)))


def _choose_mode(document: schema.Pool, usual: schema.LoadBalancing) -> Literal["priority", "round-robin", "weighted", "sticky"]:
    """The nearest word counts. Weights alone are a wish for `weighted`."""
    said = document.mode or document.load_balancing.strategy or usual.strategy
    if said is not None:
        return said
    return "weighted" if document.weights or document.load_balancing.weights or usual.weights else "round-robin"


class _TargetReader:
    """Target strings to targets. A provider that declares no models takes any."""

    def __init__(self, providers: Mapping[str, Provider], notes: Notes) -> None:
        self.providers = providers
        self.notes = notes

    def check_weighed(self, name: str, at: Path) -> None:
        provider = name.partition(".")[0]
        if provider not in self.providers:
            self.notes.refuse(at, f"weights name an unknown provider {self.notes.quote(provider)}{self._hint(provider)}")

    def read_pool(self, texts: list[str], at: Path) -> tuple[Target, ...]:
        """Those with a higher `:N` first, else in the order of the file; no target twice."""
        if not texts:
            self.notes.refuse(at, "the pool has no targets")
        ranked: list[tuple[int, Target]] = []
        for place, text in enumerate(texts):
            try:
                rank, targets = self._read(text.strip())
            except ValueError as error:
                self.notes.refuse((*at, "targets", place), str(error))
                continue
            ranked += [(rank, target) for target in targets]
        ranked.sort(key=lambda pair: -pair[0])
        return tuple(dict.fromkeys(target for _, target in ranked))

    def off_in(self, texts: list[str]) -> dict[str, str]:
        """Why those are left out that nobody switched off on purpose."""
        providers = [self.providers.get(re.split(r"[.\[]", text.strip(), maxsplit=1)[0]) for text in texts]
        why = {one.id: one.why_off() for one in providers if one is not None}
        return {name: said for name, said in why.items() if said and not said.startswith("enabled: false")}

    def _read(self, text: str) -> tuple[int, tuple[Target, ...]]:
        """Priority and one target per usable key. A model's own name may end in `:7`, so that is looked for first."""
        found, rank = self._find(text), _USUAL_PRIORITY
        suffix = _PRIORITY.fullmatch(text)
        if found is None and suffix is not None:
            found, rank = self._find(suffix[1]), int(suffix[2])
        if found is None:
            raise ValueError(self._say_unknown(text))
        provider, key, model = found
        keys = provider.keys if key is None else (key,)
        usable = [one for one in keys if provider.enabled and not one.off]
        return rank, tuple(Target(provider.id, one.alias, model) for one in usable)

    def _find(self, text: str) -> _Found | None:
        """Provider, key (None: all of them) and model; None where the text names none."""
        brackets = _BRACKETS.fullmatch(text)
        if brackets is None:
            name, _, rest = text.partition(".")
            provider = self.providers.get(name)
            return None if provider is None else self._find_model(provider, None, rest)
        provider = self.providers.get(brackets[1])
        key = _find_key(provider, brackets[2]) if provider is not None else None
        return None if provider is None or key is None else self._find_model(provider, key, brackets[3] or "")

    def _find_model(self, provider: Provider, key: Key | None, rest: str) -> _Found | None:
        if not rest:
            return (provider, key, "") if provider.id in BUILT_IN else None
        model = provider.model_named(rest)
        if model is not None:
            return provider, key, model
        head, _, tail = rest.partition(".")
        named = _find_key(provider, head) if key is None and tail else None
        if named is not None:
            return self._find_model(provider, named, tail)
        if not provider.models and _PRIORITY.fullmatch(rest) is None:
            return provider, key, rest
        return None

    def _say_unknown(self, text: str) -> str:
        quote = self.notes.quote
        name = re.split(r"[.\[]", text, maxsplit=1)[0]
        provider = self.providers.get(name)
        if provider is None:
            return f"unknown provider {quote(name)}{self._hint(name)}"
        brackets = _BRACKETS.fullmatch(text)
        if brackets and _find_key(provider, brackets[2]) is None:
            return f"{name} has no key {quote(brackets[2])} (known: {', '.join(key.alias for key in provider.keys)})"
        model = (brackets[3] or "") if brackets else text.partition(".")[2]
        head, _, tail = model.partition(".")
        if not brackets and _find_key(provider, head) is not None:
            model = tail
        known = tuple(provider.models)
        if not model:
            return f"names no model: write {text}.{known[0] if known else 'and-the-model'}"
        close = nearest(model, known) or known[:3]
        return f"{name} declares no model {quote(model)} (nearest: {', '.join(close)})"

    def _hint(self, name: str) -> str:
        close = nearest(name, self.providers)
        return f" (did you mean {' or '.join(close)}?)" if close else f" (known: {', '.join(self.providers)})"


def _find_key(provider: Provider, word: str) -> Key | None:
    """By its place in the list, else by its alias."""
    return next((key for key in provider.keys if str(key.index) == word), None) or provider.key(word)
