"""What to do when a provider failed: ask another, wait and ask the same, or give up.

1. An attempt is repeated only before the first byte of the answer went to the client, and never once the client has gone.
2. A call makes at most `max_attempts` attempts; all calls together keep at most a fifth of those in flight in repetition. Who
   comes when that many are at it waits a moment for a place: keys die for many calls at once.
3. Giving up before the first byte hands back the first provider's own error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct, field

from ..values import ProviderError, Target
from .health import Fault, fault_of

SOLE_PAUSES_S = (0.5, 2.0)
"""A target without a stand-in is asked again after these, when the connection broke or its server stumbled."""
PATIENCE_S = 15.0
"""So long a call waits before anything of an answer has left: for keys that all rest, and for a place among those that repeat an
attempt (one is free when a provider has answered, and that takes seconds)."""
_PLACE_LOOK_S = 0.1
RETRYABLE = frozenset({401, 402, 403, 408, 425, 429, 500, 502, 503, 504, 529})


class RetryBudget(Struct):
    """How many calls may be repeating an attempt at the same time. Bad times make few calls slow, not all of them many."""

    share: float = 0.2
    floor: int = 3
    calls: int = 0
    """In flight."""
    retrying: int = 0
    """Of these, repeating an attempt that no provider has answered yet."""
    others: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Both of each other process that serves the same people, as it said last."""
    changed: Callable[[], None] | None = None
    """Hears that others should know."""

    def begin(self) -> None:
        self.calls += 1

    def end(self) -> None:
        self.calls = max(0, self.calls - 1)

    def may_retry(self) -> bool:
        calls, retrying = self.calls, self.retrying
        for of_other, by_other in self.others.values():
            calls, retrying = calls + of_other, retrying + by_other
        return retrying < max(self.floor, int(self.share * calls))

    def retries(self, change: int) -> None:
        """One more, or one less."""
        self.retrying += change
        if self.changed is not None:
            self.changed()


class TryNext(Struct, frozen=True):
    """Another target."""


class WaitThenSame(Struct, frozen=True):
    """The same target once more: its prompt cache is worth the wait."""

    seconds: float


class GiveUp(Struct, frozen=True):
    """The error is not one to repeat, or as many attempts were made as are allowed."""


Next: TypeAlias = TryNext | WaitThenSame | GiveUp


class Attempts(Struct):
    """The attempts of one call. `settled` when a provider answers, `done` when the call is over."""

    max_attempts: int
    budget: RetryBudget
    wait_for_same_key_s: float = 5.0
    made: int = 0
    excluded: frozenset[Target] = frozenset()
    _waited: dict[Target, int] = field(default_factory=dict)
    _retrying: bool = False
    """It holds a place in the budget."""
    _waits_since: float | None = None
    """When it first looked for one."""
    _over: bool = False

    def __post_init__(self) -> None:
        self.budget.begin()

    def after(
        self,
        target: Target,
        error: ProviderError,
        *,
        sole: bool = False,
        ready_in_s: float | None = None,
    ) -> Next:
        """The attempt at `target` failed. `sole`: there is nobody to fail over to; `ready_in_s`: what health says of it."""
        self.made += 1
        if not retryable(error) or self.made >= self.max_attempts:
            self.settled()
            return GiveUp()
        lone = sole and not self.excluded
        wait = self._wait(target, error, ready_in_s if lone else None, lone=lone)
        if wait is not None:
            self._waited[target] = self._waited.get(target, 0) + 1
            return WaitThenSame(wait)
        self.excluded |= {target}
        return TryNext()

    def place(self, now: float) -> float | None:
        """Before an attempt is repeated: 0 where it may be, now; else after how many seconds to ask again; None: no longer."""
        if not self.made or self._retrying:
            return 0.0
        if self.budget.may_retry():
            self._retrying, self._waits_since = True, None
            self.budget.retries(1)
            return 0.0
        self._waits_since = now if self._waits_since is None else self._waits_since
        return _PLACE_LOOK_S if now - self._waits_since < PATIENCE_S else None

    def again(self) -> Attempts:
        """For the next round of the same turn."""
        return Attempts(self.max_attempts, self.budget, self.wait_for_same_key_s)

    def settled(self) -> None:
        """A provider answers (or nobody is asked again): the place in the budget is free."""
        if self._retrying:
            self._retrying = False
            self.budget.retries(-1)

    def done(self) -> None:
        self.settled()
        if not self._over:
            self._over = True
            self.budget.end()

    def _wait(self, target: Target, error: ProviderError, ready_in_s: float | None, *, lone: bool) -> float | None:
        """Seconds after which the same target is worth asking again, if it is."""
        waited = self._waited.get(target, 0)
        hint = error.retry_after_s
        match fault_of(error):
            case Fault.RATE:
                worth = waited == 0 or lone
                hint = ready_in_s if hint is None else hint
            case Fault.NETWORK | Fault.SERVER | Fault.NOBODY if lone:
                worth = waited < len(SOLE_PAUSES_S)
                hint = max(hint or 0.0, SOLE_PAUSES_S[waited]) if worth else None
            case _:
                worth = False
        return hint if worth and hint is not None and 0 <= hint <= self.wait_for_same_key_s else None


def retryable(error: ProviderError) -> bool:
    """Another attempt may go better. An error inside an HTTP 200 counts."""
    return error.network or error.quota or error.status in RETRYABLE or error.status < 300 or fault_of(error) is Fault.AUTH
