"""What is in force in a conversation, and how everything stands, gathered for the answers of our own."""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from msgspec import Struct

from ..durations import duration
from ..errors import RouteCodexError
from ..router.choose import Decision, is_undeclared
from ..router.registry import ECHO, ORIGIN, Registry
from ..sessions.state import SessionState
from ..tags.grammar import Help, Models, Status, Usage, Why
from ..tags.obey import Orders
from ..tags.status import answer_lines, describe
from ..tags.told import Outlook, help_lines, models_lines, outlook_lines, why_lines
from ..turn.plan import Clocks
from ..usage.prices import Prices
from .learned import Learned
from .reading import Reading


class Standing(Struct, frozen=True):
    """One question of a person's, at one moment."""

    registry: Registry
    """As far as it is for the person who asks."""
    learned: Learned
    prices: Prices
    clocks: Clocks
    reading: Reading
    clock: str
    """What the clock says of its tasks."""
    spent: list[str]
    """What the session and the day cost, where that is asked."""
    next_one: Callable[[SessionState], Decision]
    """Where a plain message would go now; raises where it can go nowhere."""

    def answer(self, orders: Orders) -> list[str]:
        registry, health, now = self.registry, self.learned.health, self.clocks.monotonic()
        lines: list[str] = []
        for ask in dict.fromkeys(orders.asks):
            match ask:
                case Help():
                    lines += help_lines()
                case Models(provider):
                    lines += models_lines(registry, provider, lambda target: health.state(target, now), now)
                case Why():
                    key = self.reading.key
                    loss = self.learned.losses.get(key)
                    went, alone = self.learned.went.get(key), not self.learned.is_shared
                    lines += why_lines(went, self.clocks.wall(), self.prices, loss, alone=alone)
                case Usage():
                    lines += self.spent
                case Status():
                    lines += [*self._in_force(orders), *outlook_lines(self._outlook(orders))]
                case never:
                    assert_never(never)
        if not orders.asks or (orders.lines and Status() not in orders.asks):
            lines += self._in_force(orders)
        return answer_lines(orders, lines)

    def _in_force(self, orders: Orders) -> list[str]:
        key = self.reading.key
        return describe(
            orders.state,
            derived=self.reading.caller.derived,
            session=None if key.prefix == "chain" else key.id,
            lapsed=None if orders.lines else self.learned.lapsed.get(key),
            clock=self.clock,
            undeclared=lambda sticky: is_undeclared(sticky, self.registry),
        )

    def _outlook(self, orders: Orders) -> Outlook:
        key, health, now = self.reading.key, self.learned.health, self.clocks.monotonic()
        failure, ignored = self.learned.failures.get(key), self.learned.ignored.get(key) or ()
        self.learned.ignored.drop(key)
        ago = duration(max(0.0, self.clocks.wall() - failure.at)) if failure else ""
        return Outlook(
            next_goes=self._next_goes(orders.state),
            providers=tuple(self.registry.listed.values()),
            health=lambda target: health.state(target, now),
            now=now,
            failure=f"{ago} ago: {failure.failed}" if failure else "",
            ignored=ignored,
        )

    def _next_goes(self, state: SessionState) -> str:
        try:
            decision = self.next_one(state)
        except RouteCodexError as error:
            return f"nobody: {error.message}"
        target = decision.target
        named = str(target) if target.model and target.provider not in (ORIGIN, ECHO) else target.provider
        return f"{named} ({decision.reason})"
