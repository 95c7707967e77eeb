"""Taking turns: among the models of a pool first, then among the keys of the model whose turn it is.

1. Keys of one model of one provider form a group, so a provider with three keys gets no larger share than one with a single key.
2. Everything is deterministic: the same candidates and the same `Rotation` give the same choice.
3. A pinned target that is still a candidate wins, and no turn is counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct, field

from ..values import Target

Mode: TypeAlias = Literal["priority", "round-robin", "weighted", "sticky"]

_HEAVIEST = 100_000.0
WHEELS = 1024
"""Rotations remembered at most; the ones idle longest start anew."""


class Rotation(Struct):
    """Whose turn it is. `wheels` holds the running weights of each rotation, `kept` the target a sticky pool stays with."""

    wheels: dict[str, dict[str, float]] = field(default_factory=dict)
    kept: dict[str, Target] = field(default_factory=dict)
    turned: Callable[[str], None] | None = None
    """Hears which wheel has turned, where somebody else is to know it."""
    stays: Callable[[str], None] | None = None
    """The same of a pool and its target."""

    def copy(self) -> Rotation:
        """For a look ahead: nobody hears of it."""
        return Rotation(dict(self.wheels), dict(self.kept))

    def turn(self, wheel: str, weights: Mapping[str, float]) -> str:
        """Smooth weighted round-robin: each gains its weight, the highest goes and pays the sum of all."""
        before = self.wheels.pop(wheel, {})
        now = {name: before.get(name, 0.0) + weight for name, weight in weights.items()}
        chosen = max(now, key=now.__getitem__)
        now[chosen] -= sum(weights.values())
        # Who is resting keeps nothing for later: coming back, it takes its turns, not those it missed.
        self.wheels[wheel] = now
        _bound(self.wheels)
        if self.turned is not None:
            self.turned(wheel)
        return chosen

    def learn_wheel(self, wheel: str, weights: Mapping[str, float]) -> None:
        """From somebody else. One that would go round for ever without some of them is none."""
        if all(abs(weight) <= _HEAVIEST for weight in weights.values()):
            self.wheels.pop(wheel, None)
            self.wheels[wheel] = dict(weights)
            _bound(self.wheels)

    def learn_kept(self, pool: str, target: Target) -> None:
        """From somebody else."""
        self.kept.pop(pool, None)
        self.kept[pool] = target
        _bound(self.kept)

    def keep(self, pool: str, target: Target) -> None:
        self.learn_kept(pool, target)
        if self.stays is not None:
            self.stays(pool)


def _bound(remembered: dict[str, dict[str, float]] | dict[str, Target]) -> None:
    while len(remembered) > WHEELS:
        del remembered[next(iter(remembered))]


def balance(
    candidates: Sequence[Target],
    rotation: Rotation,
    pool: str,
    *,
    mode: Mode = "round-robin",
    weights: Mapping[str, float] | None = None,
    pinned: Target | None = None,
) -> Target:
    """One of `candidates` (at least one). `pool` names whose turns these are."""
    if pinned is not None and pinned in candidates:
        return pinned
    if mode == "sticky" and (kept := rotation.kept.get(pool)) is not None and kept in candidates:
        return kept
    weights = weights or {}
    groups: dict[tuple[str, str], list[Target]] = {}
    for target in candidates:
        groups.setdefault(target.group, []).append(target)
    group = next(iter(groups)) if mode == "priority" else _group_in_turn(groups, rotation, pool, weights)
    chosen = _key_in_turn(groups[group], rotation, pool, weights)
    if mode == "sticky":
        rotation.keep(pool, chosen)
    return chosen


def _group_in_turn(
    groups: Mapping[tuple[str, str], Sequence[Target]], rotation: Rotation, pool: str, weights: Mapping[str, float]
) -> tuple[str, str]:
    by_name = {repr(group): group for group in groups}
    shares = {name: _weight(weights, f"{group[0]}.{group[1]}", group[0]) for name, group in by_name.items()}
    return by_name[rotation.turn(pool, _some_positive(shares))]


def _key_in_turn(targets: Sequence[Target], rotation: Rotation, pool: str, weights: Mapping[str, float]) -> Target:
    by_key = {target.key: target for target in targets}
    shares = {key: _weight(weights, f"{target.provider}.{key}") for key, target in by_key.items()}
    return by_key[rotation.turn(f"{pool} {targets[0].group!r}", _some_positive(shares))]


def _weight(weights: Mapping[str, float], *names: str) -> float:
    for name in names:
        if (weight := weights.get(name)) is not None:
            return weight if math.isfinite(weight) and weight >= 0 else 1.0
    return 1.0


def _some_positive(shares: dict[str, float]) -> dict[str, float]:
    """Weight 0 means never, as long as there is anybody else."""
    positive = {name: share for name, share in shares.items() if share > 0}
    return positive or dict.fromkeys(shares, 1.0)
