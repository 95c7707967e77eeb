"""How each key is doing, and when it may be asked again.

1. `now` is monotonic seconds; where it jumps back, a rest begins anew at most once more, so nothing is frozen for ever.
   Wall time comes in only where a time of day matters.
2. What is nobody's fault (a bad request, a broken connection, a client that left) changes nothing but to free a probe.
3. After a rest one attempt is let through; the others wait for its result, or for a minute.
4. No rest is longer than a day.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import StrEnum
from typing import TypeAlias

from msgspec import Struct, field

from ..values import JsonObject, ProviderError, Target
from .registry import ECHO, ORIGIN, HealthSettings, Registry

DAY_S = 86_400.0
PROBE_S = 60.0
"""An attempt that was let through after a rest and never reported back is forgotten after this."""
ENTRIES = 4096
"""Keys remembered at most; the ones idle longest go first."""


class Fault(StrEnum):
    """Whose fault an error is."""

    NOBODY = "nobody"
    NETWORK = "network"
    RATE = "rate limit"
    QUOTA = "quota spent"
    PAYMENT = "payment required"
    AUTH = "credential refused"
    SERVER = "server error"


_BY_STATUS = {401: Fault.AUTH, 402: Fault.PAYMENT, 403: Fault.AUTH, 429: Fault.RATE}
KEY_FAULTS = frozenset({Fault.AUTH, Fault.PAYMENT})
"""These concern the key with all its models."""
_BAD_KEY_CODES = ("AUTH", "API_KEY_INVALID", "INVALID_API_KEY")


def fault_of(error: ProviderError) -> Fault:
    if error.network or error.status == 0:
        return Fault.NETWORK
    if error.quota:
        return Fault.PAYMENT if error.status == 402 else Fault.QUOTA
    if error.status in _BY_STATUS:
        return _BY_STATUS[error.status]
    # A 200 that holds an error is the server's; Gemini says 400 to a bad key.
    if error.status >= 500 or error.status < 300:
        return Fault.SERVER
    code = error.code.upper()
    return Fault.AUTH if error.status == 400 and any(bad in code for bad in _BAD_KEY_CODES) else Fault.NOBODY


class Healthy(Struct, frozen=True):
    pass


class Cooling(Struct, frozen=True):
    until: float
    reason: str = ""
    told: bool = False
    """Its provider said until when: nobody asks it sooner. Else a ladder of ours says so, and it may be tried at need."""


class Tripped(Struct, frozen=True):
    until: float
    reason: str
    told: bool = False


Condition: TypeAlias = Healthy | Cooling | Tripped

Scope: TypeAlias = tuple[str, str, str]
"""Provider, key alias, model; no model: the key with all its models."""


class _Record(Struct):
    """What is known of one scope. It is resting until `since + length`, then half-open until an attempt succeeds."""

    since: float = 0.0
    length: float = 0.0
    shut: bool = False
    """Resting or half-open; otherwise only the counters below mean something."""
    tripped: bool = False
    told: bool = False
    """Its provider said how long."""
    reason: str = ""
    rate_steps: int = 0
    rated_at: float = 0.0
    server_row: int = 0
    probe: float | None = None

    def left(self, now: float) -> float:
        """Seconds of rest that remain."""
        if now < self.since:
            self.since = now
            self.probe = None
        return max(0.0, self.since + self.length - now) if self.shut else 0.0

    def probing(self, now: float) -> float | None:
        """Until when a probe under way keeps others out."""
        if self.probe is None:
            return None
        self.probe = min(self.probe, now)
        return self.probe + PROBE_S if now < self.probe + PROBE_S else None

    def condition(self, now: float) -> Condition:
        if not self.shut:
            return Healthy()
        left = self.left(now)
        if left > 0:
            return (Tripped if self.tripped else Cooling)(now + left, self.reason, self.told)
        until = self.probing(now)
        return Healthy() if until is None else Cooling(until, reason=self.reason)

    def rest(self, now: float, length: float, reason: str, *, trip: bool, told: bool = False) -> None:
        """A shorter rest never cuts a longer one, and a longer one of ours is no leave to ask sooner than was told."""
        if (left := self.left(now)) <= length:
            told = told or (self.told and left > 0)
            self.since, self.length, self.tripped, self.told, self.reason = now, min(length, DAY_S), trip, told, reason
        elif trip:
            self.tripped, self.reason = True, reason
        self.shut = True


class Health(Struct):
    """`exempt` providers use the caller's credential, or answer here: what they say tells nothing about a key of ours."""

    settings: HealthSettings = field(default_factory=HealthSettings)
    exempt: frozenset[str] = frozenset({ORIGIN, ECHO})
    _records: dict[Scope, _Record] = field(default_factory=dict)
    changed: Callable[[Scope], None] | None = None
    """Hears of which scope something new is known, where somebody else is to know it."""
    _registry: Registry | None = None

    def use(self, registry: Registry) -> None:
        """The configuration in force; what was learned under an earlier one stays, but for a key that is another one now."""
        before, self._registry = self._registry, registry
        for scope in list(self._records) if before is not None else ():
            if before is not None and _asked(before, scope) != _asked(registry, scope):
                del self._records[scope]
                self._say(scope)
        self.settings = registry.health
        self.exempt = frozenset({ORIGIN, ECHO, *(p.id for p in registry.providers.values() if p.auth == "client")})

    def state(self, target: Target, now: float) -> Condition:
        """The worse of what is known of the target and of its key; told where either is."""
        known = self._known(target)
        if not known:
            return Healthy()
        conditions = [record.condition(now) for _, record in known]
        worst = max(conditions, key=_badness, default=Healthy())
        if isinstance(worst, Healthy) or not any(not isinstance(one, Healthy) and one.told for one in conditions):
            return worst
        return type(worst)(worst.until, worst.reason, told=True)

    def begin(self, target: Target, now: float) -> None:
        """An attempt goes out. After a rest it is the probe."""
        for scope, record in self._known(target):
            if record.shut and record.left(now) <= 0 and record.probing(now) is None:
                record.probe = now
                self._say(scope)

    def released(self, target: Target) -> None:
        """The attempt ended without telling anything about the key: the client left, or a limit of ours ended it."""
        for scope, record in self._known(target):
            if record.probe is not None:
                record.probe = None
                self._say(scope)

    def succeeded(self, target: Target, now: float, *, began: float | None = None) -> None:
        """`began` is when the attempt went out: an answer begun before a rest does not end that rest."""
        for scope in _scopes(target):
            record = self._records.get(scope)
            if record is not None and not (began is not None and record.left(now) > 0 and began < record.since):
                del self._records[scope]
                self._say(scope)

    def failed(
        self,
        target: Target,
        error: ProviderError,
        now: float,
        *,
        wall: float,
        utc_offset_s: float = 0.0,
        began: float | None = None,
    ) -> None:
        """`wall` is epoch seconds, `utc_offset_s` the local zone's: for the daily reset of a quota."""
        self.released(target)
        fault = fault_of(error)
        if fault in (Fault.NOBODY, Fault.NETWORK) or target.provider in self.exempt:
            return
        record = self._record(target, whole_key=fault in KEY_FAULTS)
        self._say(_scopes(target)[1 if fault in KEY_FAULTS else 0])
        # Calls that were already under way when the key began to rest all fail together: that is one failure, not many.
        storm = began is not None and record.left(now) > 0 and began < record.since
        hint = _hint(error.retry_after_s)
        settings = self.settings
        match fault:
            case Fault.RATE:
                if not storm:
                    aged = not 0 <= now - record.rated_at < DAY_S
                    record.rate_steps = 1 if aged else record.rate_steps + 1
                    record.rated_at = now
                record.rest(now, hint or _step(settings.rate_ladder_s, record.rate_steps), fault, trip=False, told=hint > 0)
            case Fault.SERVER:
                record.server_row += not storm
                trip = record.server_row >= 3
                pause = _step(settings.server_ladder_s, record.server_row)
                length = max(hint, pause, settings.server_trip_s if trip else 0)
                record.rest(now, length, fault, trip=trip, told=hint == length)
            case Fault.AUTH:
                record.rest(now, settings.auth_trip_s, fault, trip=True)
            case _:
                reset = seconds_to_reset(settings.quota_reset, wall, utc_offset_s)
                record.rest(now, hint or reset, fault, trip=True, told=hint > 0)

    # What others know

    def told(self, scope: Scope, now: float, wall: float) -> JsonObject:
        """As other machines understand it: in wall time. Empty: there is nothing to say of it any more."""
        record = self._records.get(scope)
        if record is None:
            return {}
        record.left(now)
        said: JsonObject = {
            "since": wall - (now - record.since),
            "length": record.length,
            "shut": record.shut,
            "tripped": record.tripped,
            "told": record.told,
            "reason": record.reason,
            "rateSteps": record.rate_steps,
            "ratedAt": wall - (now - record.rated_at),
            "serverRow": record.server_row,
        }
        return said if record.probe is None else {**said, "probe": wall - (now - record.probe)}

    def learn(self, scope: Scope, said: JsonObject, now: float, wall: float) -> None:
        """What another one has told. Where its clock is ahead of ours, no rest grows longer by it."""
        if not said:
            self._records.pop(scope, None)
            return

        def here(name: str) -> float:
            return now - max(0.0, wall - _number(said.get(name)))

        record = _Record(
            since=here("since"),
            length=max(0.0, min(_number(said.get("length")), DAY_S)),
            shut=said.get("shut") is True,
            tripped=said.get("tripped") is True,
            told=said.get("told") is True,
            reason=reason if isinstance(reason := said.get("reason"), str) else "",
            rate_steps=int(max(0.0, min(_number(said.get("rateSteps")), 1000.0))),
            rated_at=here("ratedAt"),
            server_row=int(max(0.0, min(_number(said.get("serverRow")), 1000.0))),
            probe=here("probe") if "probe" in said else None,
        )
        self._keep(scope, record)

    def _say(self, scope: Scope) -> None:
        if self.changed is not None:
            self.changed(scope)

    def _known(self, target: Target) -> list[tuple[Scope, _Record]]:
        known: list[tuple[Scope, _Record]] = []
        for scope in _scopes(target):
            if (record := self._records.get(scope)) is not None:
                known.append((scope, record))
        return known

    def _record(self, target: Target, *, whole_key: bool) -> _Record:
        scope = _scopes(target)[1 if whole_key else 0]
        record = self._records.pop(scope, None) or _Record()
        return self._keep(scope, record)

    def _keep(self, scope: Scope, record: _Record) -> _Record:
        self._records[scope] = record
        while len(self._records) > ENTRIES:
            del self._records[next(iter(self._records))]
        return record


def _scopes(target: Target) -> tuple[Scope, Scope]:
    return (target.provider, target.key, target.model), (target.provider, target.key, "")


def _asked(registry: Registry, scope: Scope) -> object:
    """What decides whether it is answered well."""
    provider = registry.providers.get(scope[0])
    key = provider.key(scope[1]) if provider is not None else None
    return (key.value, provider.endpoints, provider.headers) if provider is not None and key is not None else None


def _badness(condition: Condition) -> tuple[int, float]:
    match condition:
        case Tripped(until):
            return 2, until
        case Cooling(until):
            return 1, until
        case Healthy():
            return 0, 0.0


def _hint(seconds: float | None) -> float:
    """What the provider asked for, within a day; 0 where it asked for nothing usable."""
    return min(seconds, DAY_S) if seconds is not None and not math.isnan(seconds) and seconds > 0 else 0.0


def _step(ladder: tuple[float, ...], count: int) -> float:
    return ladder[min(max(count, 1), len(ladder)) - 1] if ladder else 0.0


def _number(value: object) -> float:
    """A JSON number; 0 for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0.0
    try:
        number = float(value)
    except OverflowError:
        return 0.0
    return number if math.isfinite(number) else 0.0


def seconds_to_reset(time_of_day: str, wall: float, utc_offset_s: float) -> float:
    """Until the next local `HH:MM`; more than 0, a day at most."""
    hours, _, minutes = time_of_day.partition(":")
    try:
        at = (int(hours) * 60 + int(minutes or "0")) * 60
    except ValueError:
        at = 12 * 3600
    return DAY_S - (wall + utc_offset_s - at) % DAY_S
