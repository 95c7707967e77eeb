"""Who could serve a call: the targets of the routes, of a tag or of the allowed providers, without what is switched off.

1. Every target that comes out of here is in the registry: a declared provider, one of its keys, one of its models.
2. Nothing that the session disabled or the configuration switched off comes out of here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct, field

from ..errors import disabled, nearest, not_for_you, not_found
from ..sessions.state import EMPTY, SessionState
from ..values import Named, Target
from .balance import Mode
from .classify import Classified
from .features import Features
from .registry import Pool, Provider, Registry

ALLOW = "allow"
"""The route of targets that are only used because their provider is on the session's list."""


class Wish(Struct, frozen=True):
    """Everything about a call that matters for the choice."""

    features: Features
    classified: Classified
    state: SessionState = EMPTY
    force: Named | None = None
    """`<**p.m**>`: the target of this user message."""
    client_model: str = ""
    excluded: frozenset[Target] = frozenset()
    """Failed for this call already."""
    disable_sticky: bool = False
    spares_sticky: bool = False
    """The sticky target is not the session's to lose."""
    pinned: Target | None = None
    """Where the earlier hops of this user message went."""
    chained: Target | None = None
    """Where the answer lives that the call goes on from."""
    tokens: int = 0


class Tier(Struct, frozen=True):
    """Targets that are tried before the next tier's; members are allowed and enabled, whatever their health."""

    route: str
    name: str
    members: tuple[Target, ...]
    mode: Mode = "round-robin"
    weights: Mapping[str, float] = field(default_factory=dict)


class Candidates(Struct, frozen=True):
    """The candidates for one wish."""

    wish: Wish
    registry: Registry

    def routed(self) -> Iterator[Tier]:
        """The pools of the routes that the call was classified for."""
        return (tier for route in self.wish.classified.routes for tier in self.tiers(route))

    def tiers(self, route: str) -> Iterator[Tier]:
        for pool in self.registry.routes.get(route, ()):
            members = (target for target in self._expanded(pool) if self.allows(target.provider) and not self._off(target))
            yield Tier(route, pool.id, tuple(dict.fromkeys(members)), pool.mode, pool.weights)

    def elsewhere(self) -> Iterator[Tier]:
        """What the list of allowed providers opens beyond the call's own routes: other routes, then their models directly."""
        for route in self.registry.routes:
            if route not in self.wish.classified.routes:
                yield from self.tiers(route)
        providers = [self.registry.providers[name] for name in self.wish.state.allowed if name in self.registry.providers]
        best = [(provider, provider.model_for(self.wish.client_model)) for provider in providers]
        others = [(provider, model) for provider, first in best for model in provider.models if model != first]
        for name, pairs in (("the model that fits", best), ("other declared models", others)):
            targets = (target for provider, model in pairs for target in provider.targets(model))
            yield Tier(ALLOW, name, tuple(target for target in targets if not self._off(target)))

    def sticky(self) -> Tier | None:
        """Without members where the target was removed from the configuration or all of it is switched off."""
        sticky = self.wish.state.sticky
        if sticky is None or self.wish.disable_sticky:
            return None
        members: tuple[Target, ...] = ()
        provider = self.registry.providers.get(sticky.provider)
        if provider is not None:
            model = provider.declared(sticky.model) if sticky.model else provider.model_for(self.wish.client_model)
            members = self._named(provider, sticky.key, model) if model is not None else ()
        return Tier("sticky", str(sticky), members)

    def only(self, route: str, target: Target) -> Tier:
        """This target, if the configuration still holds it, and it is allowed and enabled."""
        provider = self.registry.providers.get(target.provider)
        known = provider is not None and target in provider.targets(target.model, target.key)
        members = (target,) if known and self.allows(target.provider) and not self._off(target) else ()
        return Tier(route, str(target), members)

    def named(self, route: str, name: str, key: str | None, model: str | None) -> Tier:
        """What somebody insists on; refuses with the seed's sentences where it is unknown or disabled."""
        full = ".".join(part for part in (name, key, model) if part)
        provider = self.registry.providers.get(name)
        if provider is None:
            raise not_found(full, known=nearest(name, self.registry.listed))
        if provider.shut:
            raise not_for_you(name, provider.why)
        if not provider.enabled or name in self.wish.state.disabled_providers:
            raise disabled(name, provider.why_off())
        if key and provider.key(key) is None:
            raise not_found(full, known=nearest(full, provider.names))
        found = provider.declared(model) if model else provider.model_for(self.wish.client_model)
        if found is None:
            raise not_found(full, known=nearest(full, provider.names))
        if self._model_off(provider, found):
            raise disabled(f"{name}.{found}")
        members = self._named(provider, key, found)
        if not members:
            raise disabled(f"{name}.{key}" if key else name, provider.why_off(key))
        return Tier(route, full, members)

    def allows(self, provider: str) -> bool:
        return not self.wish.state.allowed or provider in self.wish.state.allowed

    def _named(self, provider: Provider, key: str | None, model: str) -> tuple[Target, ...]:
        """That key; or the keys that the routes hold for the model; or, where none does, all keys of the provider."""
        targets = provider.targets(model, key)
        if not key:
            pools = (pool for tiers in self.registry.routes.values() for pool in tiers)
            routed = {target for pool in pools for target in self._expanded(pool)}
            targets = [target for target in targets if target in routed] or targets
        return tuple(target for target in targets if not self._off(target))

    def _expanded(self, pool: Pool) -> Iterator[Target]:
        """The pool's targets as the registry knows them: real keys, declared models."""
        for target in pool.targets:
            provider = self.registry.providers.get(target.provider)
            if provider is None:
                continue
            model = provider.declared(target.model) if target.model else provider.model_for(self.wish.client_model)
            if model is not None:
                yield from provider.targets(model, target.key)

    def _off(self, target: Target) -> bool:
        provider = self.registry.providers[target.provider]
        key = provider.key(target.key)
        state = self.wish.state
        return (
            not provider.enabled
            or (key is not None and key.off)
            or target.provider in state.disabled_providers
            or (target.provider, target.key) in state.disabled_keys
            or self._model_off(provider, target.model)
        )

    def _model_off(self, provider: Provider, model: str) -> bool:
        return any(name == provider.id and provider.declared(other) == model for name, other in self.wish.state.disabled_models)
