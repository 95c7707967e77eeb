"""Which target a round goes to, and why.

1. What the session disabled, or the configuration switched off, is never chosen, whoever asks for it.
2. force > sticky > a model named `provider.model` in the call > the routes, filtered by allow; but a call that asks for
   a route by what it is (vision, web_search, longcontext; side, subagent) goes there before it goes to the sticky target.
3. A key that is tripped or resting is passed over; where nothing else is left, a pool's only target is tried all the same,
   unless its provider has said until when it must not be.
4. The same wish, registry, health and rotation give the same decision.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ..errors import ConfigError, NoTarget, Resting, disabled, nearest, not_for_you, not_found, unhealthy
from ..sessions.state import SessionState, Sticky
from ..values import Target
from .balance import Rotation, balance
from .candidates import ALLOW, Candidates, Tier, Wish
from .classify import DEFAULT, Classified
from .features import Features
from .health import KEY_FAULTS, Cooling, Health, Healthy, Tripped
from .registry import Registry
from .resting import how_it_rests

__all__ = ["Decision", "Wish", "choose", "is_undeclared", "why_not_stick"]

SHORT_REST_S = 60.0
"""A sticky target survives a rest of this length."""


class Decision(Struct, frozen=True):
    target: Target
    route: str
    """The route's name, or `force`, `sticky`, `direct`, `allow`."""
    reason: str
    clear_sticky: bool = False
    """The session's sticky target is used up: forget it."""
    sole: bool = False
    """There is nobody to fail over to."""
    missed: str = ""
    """The session's sticky target, where it would have answered this call and cannot."""


def choose(wish: Wish, registry: Registry, health: Health, rotation: Rotation, now: float) -> Decision:
    """Raises NoTarget where nothing can serve the wish, ConfigError where it names what the configuration does not hold."""
    return _Choice(wish, registry, health, rotation, now, Candidates(wish, registry)).decide()


def why_not_stick(
    sticky: Sticky, state: SessionState, registry: Registry, health: Health, model: str, now: float
) -> NoTarget | None:
    """Why a session cannot keep to that target at this moment; None where it can. `model`: what the client asks for."""
    wish = Wish(Features(), Classified((), ""), state.with_(sticky=sticky), client_model=model)
    candidates = Candidates(wish, registry)
    try:
        tier = candidates.named("sticky", sticky.provider, sticky.key, sticky.model)
    except NoTarget as error:
        return error
    choice = _Choice(wish, registry, health, Rotation(), now, candidates)
    if choice._used_up(tier):
        return unhealthy(f"{sticky.provider}.{sticky.key}" if sticky.key else sticky.provider, choice._why_unwell(tier.members))
    return None


def is_undeclared(sticky: Sticky | None, registry: Registry) -> bool:
    """The configuration no longer holds what the session keeps to."""
    provider = registry.providers.get(sticky.provider) if sticky is not None else None
    if sticky is None or provider is None:
        return sticky is not None
    return (sticky.key is not None and provider.key(sticky.key) is None) or (
        sticky.model is not None and provider.declared(sticky.model) is None
    )


class _Choice(Struct, frozen=True):
    wish: Wish
    registry: Registry
    health: Health
    rotation: Rotation
    now: float
    candidates: Candidates

    def decide(self) -> Decision:
        sticky = self.candidates.sticky()
        may_clear = self.registry.on_exhausted == "clear" and not self.wish.spares_sticky
        clear = sticky is not None and may_clear and self._used_up(sticky)
        decision = self._forced() or self._stuck(sticky) or self._direct() or self._followed() or self._routed()
        if sticky is not None and decision.route not in ("force", "sticky", *self.wish.classified.explicit):
            is_gone = is_undeclared(self.wish.state.sticky, self.registry)
            what = "is no longer in the configuration" if is_gone else "is used up" if clear else "cannot be used now"
            after = "forgotten" if clear else "kept"
            reason = f"{decision.reason}; the sticky target {sticky.name} {what} and is {after}"
            decision = replace(decision, reason=reason, missed=sticky.name)
        return replace(decision, clear_sticky=True) if clear else decision

    # --- the stages, strongest first -------------------------------------------------------------------------------

    def _forced(self) -> Decision | None:
        force = self.wish.force
        if force is None:
            return None
        tier = self.candidates.named("force", force.provider, force.key, force.model)
        return self._insisted(tier, f"a tag asks for {tier.name}", force.key)

    def _stuck(self, sticky: Tier | None) -> Decision | None:
        if sticky is None:
            return None
        routed = list(self.candidates.routed())
        found = self._first([tier for tier in routed if tier.route in self.wish.classified.explicit], self.wish.classified.reason)
        if found is not None:
            return replace(found, sole=False)
        usable = [t for t in self._usable(sticky) if not self.registry.hard_limit or self._ratio(t) < 1]
        return self._taken(sticky, usable, f"the session keeps to {sticky.name}", [sticky, *routed]) if usable else None

    def _direct(self) -> Decision | None:
        """The call's model says `provider.model`."""
        name, dot, rest = self.wish.client_model.partition(".")
        provider = self.registry.providers.get(name)
        if not dot or not rest or provider is None or not self.candidates.allows(name):
            return None
        key, model = None, provider.declared(rest)
        if model is None:
            alias, _, after = rest.partition(".")
            key, model = (alias, provider.declared(after)) if after and provider.key(alias) else (None, None)
        if model is None:
            raise ConfigError(f"Provider {name} declares no model {rest}", details={"provider": name, "model": rest})
        tier = self.candidates.named("direct", name, key, model)
        return self._insisted(tier, f"the call's model is {self.wish.client_model}", key)

    def _followed(self) -> Decision | None:
        """Where the answer lives that the call goes on from, also if no route of the call's leads there."""
        chained = self.wish.chained
        if chained is None or any(chained in tier.members for tier in self.candidates.routed()):
            return None
        tier = self.candidates.only("chain", chained)
        usable = self._usable(tier)
        return self._taken(tier, usable, "the answer that the call goes on from lives there", [tier]) if usable else None

    def _routed(self) -> Decision:
        tiers = list(self.candidates.routed())
        found = self._first(tiers, self.wish.classified.reason)
        if found is None and self.wish.state.allowed:
            tiers += self.candidates.elsewhere()
            found = self._first(tiers, f"only {', '.join(self.wish.state.allowed)} allowed")
        found = found or self._last_resort(tiers)
        if found is None:
            raise self._refusal(tiers)
        return found

    # --- may it be used? -------------------------------------------------------------------------------------------

    def _usable(self, tier: Tier) -> list[Target]:
        return [target for target in tier.members if target not in self.wish.excluded and self._healthy(target)]

    def _healthy(self, target: Target) -> bool:
        return isinstance(self.health.state(target, self.now), Healthy)

    def _used_up(self, tier: Tier) -> bool:
        """No key that works, or will again within a minute."""
        states = [self.health.state(target, self.now) for target in tier.members]
        return all(isinstance(s, Tripped) or (isinstance(s, Cooling) and s.until - self.now > SHORT_REST_S) for s in states)

    def _ratio(self, target: Target) -> float:
        """How full the model's context would be."""
        model = self.registry.providers[target.provider].models.get(target.model)
        return self.wish.tokens / max(model.max_context, 1) if model is not None else 0.0

    def _blind(self, target: Target) -> bool:
        model = self.registry.providers[target.provider].models.get(target.model)
        return self.wish.features.image and model is not None and model.vision is False

    # --- the choice ------------------------------------------------------------------------------------------------

    def _first(self, tiers: Sequence[Tier], reason: str) -> Decision | None:
        """From the first tier that has a candidate; where an image must be seen, first from those that see."""
        for seeing in (True, False) if self.wish.features.image else (False,):
            for tier in tiers:
                if candidates := self._roomy(tier, seeing=seeing):
                    return self._taken(tier, candidates, reason, tiers)
        return None

    def _roomy(self, tier: Tier, *, seeing: bool) -> list[Target]:
        """Those with room to spare, else those that just hold the call."""
        usable = [target for target in self._usable(tier) if not (seeing and self._blind(target))]
        safe = [target for target in usable if self._ratio(target) < self.registry.warn_ratio]
        return safe or [target for target in usable if self._ratio(target) < 1]

    def _last_resort(self, tiers: Sequence[Tier]) -> Decision | None:
        """A default target that is too small, then a pool's only target although it rests."""
        hard = self.registry.hard_limit
        for tier in tiers:
            if tier.route in (DEFAULT, ALLOW) and not hard and (usable := self._usable(tier)):
                return self._taken(tier, usable, "too large for every model, sent as a last resort", tiers)
        resting: list[tuple[bool, Tier]] = []
        for tier in tiers:
            only = tier.members[0] if len(tier.members) == 1 else None
            if only is None or only in self.wish.excluded or (hard and self._ratio(only) >= 1):
                continue
            state = self.health.state(only, self.now)
            if not isinstance(state, Healthy) and state.told:
                continue
            # Who allows only some providers is told when these are down.
            if isinstance(state, Cooling) or (isinstance(state, Tripped) and not self.wish.state.allowed):
                resting.append((isinstance(state, Tripped), tier))
        if not resting:
            return None
        tier = min(resting, key=lambda pair: pair[0])[1]
        return self._taken(tier, tier.members, "not well, but nothing else is left", tiers)

    def _insisted(self, tier: Tier, reason: str, key: str | None) -> Decision:
        """Somebody named this target: no silent fallback. A single key that only cools down is tried once."""
        usable = self._usable(tier)
        if not usable and len(tier.members) == 1:
            only = tier.members[0]
            state = self.health.state(only, self.now)
            at_need = isinstance(state, Cooling) and not state.told and only not in self.wish.excluded
            usable = [only] if at_need else []
        if not usable:
            provider = tier.members[0].provider
            raise self._unwell(f"{provider}.{key}" if key else provider, tier.members, requested=True)
        return self._taken(tier, usable, reason, [tier])

    def _taken(self, tier: Tier, candidates: Sequence[Target], reason: str, rivals: Iterable[Tier]) -> Decision:
        """One of the tier's candidates in turn; `rivals` are the tiers that could step in for it."""
        turns = f"{tier.route} {tier.name}"
        target = balance(candidates, self.rotation, turns, mode=tier.mode, weights=tier.weights, pinned=self.wish.pinned)
        where = f": {tier.route} route" if tier.route in self.registry.routes else ""
        if where and len(tier.members) > 1:
            where += f", pool {tier.name}, {tier.mode}"
        sole = all(other == target for rival in rivals for other in self._usable(rival))
        return Decision(target, tier.route, f"{reason}{where}", sole=sole)

    def _refusal(self, tiers: Sequence[Tier]) -> NoTarget:
        """Why nothing is left, told of the first target that would have served."""
        members = [target for tier in tiers for target in tier.members]
        if not members:
            return self._all_off()
        usable = [target for tier in tiers for target in self._usable(tier)]
        if usable:
            return NoTarget(
                f"No model of the routes is large enough for about {self.wish.tokens} tokens",
                details={"provider": usable[0].provider, "reason": "context", "tokens": self.wish.tokens},
            )
        error = self._unwell(members[0].provider, members, requested=bool(self.wish.state.allowed))
        error.details["attempted"] = list(dict.fromkeys(str(target) for target in members))[:20]
        return error

    def _unwell(self, name: str, members: Sequence[Target], *, requested: bool) -> NoTarget:
        """Waiting helps where a key only rests, and this call has not tried it yet."""
        untried = (target for target in members if target not in self.wish.excluded)
        rests = [s.until - self.now for t in untried if isinstance(s := self.health.state(t, self.now), Cooling)]
        if rests:
            return Resting(name, max(min(rests), 0.0), requested=requested)
        return unhealthy(name, self._why_unwell(members))

    def _why_unwell(self, members: Iterable[Target]) -> str:
        """What is known of the one that is back first."""
        states = [(state, target) for target in members if not isinstance(state := self.health.state(target, self.now), Healthy)]
        if not states:
            return ""
        state, target = min(states, key=lambda pair: pair[0].until)
        mended = "; corrected in the configuration, it is used at once" if state.reason in KEY_FAULTS else ""
        return f"{target.provider}.{target.key} is {how_it_rests(state, self.now)}{mended}"

    def _all_off(self) -> NoTarget:
        for name in self.wish.state.allowed:
            if name not in self.registry.providers:
                return not_found(name, known=nearest(name, self.registry.listed))
        named = self.wish.state.allowed or tuple(
            target.provider
            for route in self.wish.classified.routes
            for pool in self.registry.routes.get(route, ())
            for target in pool.targets
        )
        if named:
            provider = self.registry.providers.get(named[0])
            if provider is not None and provider.shut:
                return not_for_you(provider.id, provider.why)
            return disabled(named[0], provider.why_off() if provider is not None else "")
        routes = list(self.wish.classified.routes)
        return NoTarget(f"No key is usable in the routes {', '.join(routes)}", details={"reason": "disabled", "routes": routes})
