"""What a person is told without having asked, and why: where something that nobody asked for changed a call's way.

1. Once per session and cause. What happened once waits until it was seen: an answer of tool calls alone has no place for it.
2. Only with a text of the main conversation; never where structured output is demanded.
3. With a provider's answer: who gets `echo`, or an answer of ours, asked for it, and what waits is told with the next.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from ..router.attempts import Attempts
from ..router.candidates import Candidates, Wish
from ..router.choose import Decision, is_undeclared
from ..router.health import Health, Healthy
from ..router.registry import Registry
from ..sessions.store import SessionKey
from ..tags.notice import Cause
from ..tags.unheard import BEFORE, Unheard
from ..values import Target
from .learned import Learned


class Notices(Struct, frozen=True):
    """What the sessions were told, and what waits to be told."""

    learned: Learned

    def wait(self, key: SessionKey, *causes: Cause) -> None:
        """Until there is a text to tell it before."""
        if new := self._new(key, causes):
            waiting = self.learned.untold
            waiting.put(key, tuple(dict.fromkeys((*(waiting.get(key) or ()), *new))))

    def due(self, key: SessionKey, causes: Iterable[Cause]) -> tuple[Cause, ...]:
        """What is to be told now: what waits, and what this call brings."""
        return self._new(key, dict.fromkeys((*(self.learned.untold.get(key) or ()), *causes)))

    def told(self, key: SessionKey, causes: Iterable[Cause]) -> None:
        noticed = self.learned.noticed
        noticed.put(key, (noticed.get(key) or frozenset()) | {cause.id for cause in causes})
        self.learned.untold.drop(key)

    def _new(self, key: SessionKey, causes: Iterable[Cause]) -> tuple[Cause, ...]:
        known = self.learned.noticed.get(key) or frozenset()
        return tuple(cause for cause in causes if cause.id not in known)


def cleared(decision: Decision, wish: Wish, registry: Registry) -> Cause:
    """The sticky target that no call goes to any more."""
    sticky = decision.missed
    return Cause(f"cleared {sticky}", f"{sticky} {_why_missed(wish, registry)} and is no longer this session's target")


def elsewhere(decision: Decision, wish: Wish, registry: Registry, health: Health, attempts: Attempts, now: float) -> list[Cause]:
    """Who answers instead of whom, where that is not what the session or the configuration asks for first."""
    target = decision.target
    if decision.missed:
        if decision.clear_sticky and not attempts.excluded:
            return []  # it is `cleared`
        sentence = f"{decision.missed} {_why_missed(wish, registry)}: {_name(target, wish)} answers"
        return [Cause(f"missed {decision.missed}", sentence)]
    pinned = wish.pinned
    if decision.route not in registry.routes:
        return []
    if pinned is not None and pinned != wish.chained and (pinned.provider, pinned.model) != (target.provider, target.model):
        if pinned in attempts.excluded or not isinstance(health.state(pinned, now), Healthy):
            return [Cause(f"pinned {pinned}", f"{_name(pinned, wish)} cannot be used now: {_name(target, wish)} goes on")]
        return []
    return [
        Cause(f"off {name}", f"{name} is off ({why}): {_name(target, wish)} answers")
        for name, why in _passed_over(decision, wish, registry).items()
    ]


def gave_no_orders(unheard: Iterable[Unheard]) -> list[Cause]:
    """Tags that a person may well have typed, and nobody obeys."""
    return [
        Cause(f"unheard {one.tag} {one.place}", f"`{one.tag.replace('*', '')}` {one.place} gave no orders{_what_helps(one)}")
        for one in unheard
        if not one.known
    ]


def _what_helps(one: Unheard) -> str:
    return "" if one.place == BEFORE else " (sessions: typedIn)"


def _why_missed(wish: Wish, registry: Registry) -> str:
    sticky = wish.state.sticky
    if sticky is None or is_undeclared(sticky, registry):
        return "is no longer in the configuration"
    why = registry.providers[sticky.provider].why_off(sticky.key)
    return "cannot be used now" + (f" ({why})" if why else "")


def _passed_over(decision: Decision, wish: Wish, registry: Registry) -> dict[str, str]:
    """Of the pools that come before the one that serves the call: those that the environment alone has switched off, and why."""
    pools = [pool for route in wish.classified.routes for pool in registry.routes.get(route, ())]
    if not any(pool.off for pool in pools):
        return {}
    candidates, found = Candidates(wish, registry), dict[str, str]()
    for route in wish.classified.routes:
        for pool, tier in zip(registry.routes.get(route, ()), candidates.tiers(route), strict=True):
            if decision.target in tier.members:
                return found
            if not tier.members:
                found |= {name: why for name, why in pool.off.items() if candidates.allows(name)}
    return {}


def _name(target: Target, wish: Wish) -> str:
    return f"{target.provider}.{target.model or wish.client_model}"
