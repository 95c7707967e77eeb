"""What calls come to in numbers: counters and histograms, each with labels, bounded in how many there can be of one name."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from msgspec import Struct

from ..dialects.fields import count_of, list_of, object_of, text_of
from ..values import JsonObject
from .names import host_of, operation_of, port_of, provider_name
from .seen import Asked, Seen

Labels: TypeAlias = tuple[tuple[str, str], ...]
TOKENS = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864)
SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
"""The bounds that the conventions name."""
MOST_SERIES = 2_000
"""Of one name: tools may send any model's name. What comes later is counted under `other`."""
_OPEN = frozenset({"gen_ai.request.model", "gen_ai.response.model", "client"})
"""Labels that come from outside."""


@dataclass(slots=True)
class Buckets:
    bounds: Sequence[float]
    counts: list[int] = field(init=False)
    sum: float = 0.0

    def __post_init__(self) -> None:
        self.counts = [0] * (len(self.bounds) + 1)

    def add(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value


class Named(Struct, frozen=True):
    name: str
    kind: Literal["counter", "histogram", "gauge"]
    unit: str
    help: str
    bounds: Sequence[float] = ()


TOKEN_USAGE = Named("gen_ai.client.token.usage", "histogram", "{token}", "Tokens of the requests that were answered", TOKENS)
DURATION = Named("gen_ai.client.operation.duration", "histogram", "s", "How long requests to providers took", SECONDS)
FIRST = Named("routecodex.time_to_first_byte", "histogram", "s", "Until a client got the first content of its answer", SECONDS)
CALLS = Named("routecodex.calls", "counter", "{call}", "Calls of clients, by what they got")
ATTEMPTS = Named("routecodex.attempts", "counter", "{request}", "Requests to providers, by key and how they ended")
FAILOVERS = Named("routecodex.failovers", "counter", "{request}", "Requests that went to another target after one had failed")
RESTS = Named("routecodex.rests", "counter", "{call}", "Calls that waited because every key rested")
RESTED = Named("routecodex.rest.time", "counter", "s", "How long they waited")
ROUNDS = Named("routecodex.rounds", "counter", "{request}", "Rounds behind an answer, by who asked for them")
REMINDERS = Named("routecodex.reminders", "counter", "{reminder}", "Reminders that were delivered")
REFUSED = Named("routecodex.refused", "counter", "{call}", "Calls that were refused here, by code: BAD_TAG, …")
DROPPED = Named("routecodex.telemetry.dropped", "counter", "{call}", "Calls that telemetry gave up, since nobody took them")
RESTING = Named("routecodex.key.resting", "gauge", "1", "Whether a key rests now")


_ADDED = (TOKEN_USAGE, DURATION, FIRST, CALLS, ATTEMPTS, FAILOVERS, RESTS, RESTED, ROUNDS, REMINDERS, REFUSED, DROPPED)
_BY_NAME = {one.name: one for one in _ADDED}


class Meter:
    """What was counted since the start."""

    def __init__(self) -> None:
        self._counts: dict[Named, dict[Labels, float]] = {}
        self._buckets: dict[Named, dict[Labels, Buckets]] = {}

    def note(self, seen: Seen) -> None:
        self.count(CALLS, {"client": seen.client, "status": seen.status})
        if seen.first:
            self.measure(FIRST, {"client": seen.client}, seen.first - seen.at)
        if seen.code:
            self.count(REFUSED, {"code": seen.code})
        if seen.rested_s:
            self.count(RESTS, {})
            self.count(RESTED, {}, seen.rested_s)
        if seen.reminders:
            self.count(REMINDERS, {}, seen.reminders)
        for one, other in seen.failovers():
            self.count(FAILOVERS, {"from": one.provider, "to": other.provider})
        for asked in seen.asked:
            self._note_round(seen, asked)

    def _note_round(self, seen: Seen, asked: Asked) -> None:
        key = {"provider": asked.target.provider, "key": asked.target.key}
        self.count(ATTEMPTS, {**key, "outcome": asked.error or "answered"})
        if asked.why:
            self.count(ROUNDS, {"reason": asked.why})
        labels = labels_of(seen, asked)
        self.measure(DURATION, {**labels, **({"error.type": asked.error} if asked.error else {})}, asked.ended - asked.at)
        if asked.tokens is not None:
            for kind, value in (("input", asked.tokens.input), ("output", asked.tokens.output)):
                self.measure(TOKEN_USAGE, {**labels, "gen_ai.token.type": kind}, value)

    def count(self, named: Named, labels: Mapping[str, str], by: float = 1) -> None:
        series = self._counts.setdefault(named, {})
        key = _key(series, labels)
        series[key] = series.get(key, 0) + by

    def measure(self, named: Named, labels: Mapping[str, str], value: float) -> None:
        series = self._buckets.setdefault(named, {})
        key = _key(series, labels)
        if (buckets := series.get(key)) is None:
            buckets = series[key] = Buckets(named.bounds)
        buckets.add(value)

    def told(self) -> JsonObject:
        """For another process's meter."""
        return {
            "counts": [[named.name, list(key), value] for named, series in self._counts.items() for key, value in series.items()],
            "buckets": [
                [named.name, list(key), [*one.counts], one.sum]
                for named, series in self._buckets.items()
                for key, one in series.items()
            ],
        }

    def add(self, told: object) -> None:
        """What another meter has told; nonsense adds nothing."""
        fields = object_of(told)
        for entry in list_of(fields.get("counts")):
            match entry:
                case [str(name), list(key), int() | float() as value] if name in _BY_NAME:
                    self.count(_BY_NAME[name], _labels(key), value)
        for entry in list_of(fields.get("buckets")):
            match entry:
                case [str(name), list(key), list(counts), int() | float() as sum] if name in _BY_NAME:
                    self._add_buckets(_BY_NAME[name], _labels(key), list(map(count_of, counts)), sum)

    def _add_buckets(self, named: Named, labels: Mapping[str, str], counts: list[int], sum: float) -> None:
        if len(counts) != len(named.bounds) + 1:
            return
        series = self._buckets.setdefault(named, {})
        buckets = series.setdefault(_key(series, labels), Buckets(named.bounds))
        buckets.counts = [one + other for one, other in zip(buckets.counts, counts, strict=True)]
        buckets.sum += sum

    def counts(self) -> Iterator[tuple[Named, dict[Labels, float]]]:
        yield from self._counts.items()

    def histograms(self) -> Iterator[tuple[Named, dict[Labels, Buckets]]]:
        yield from self._buckets.items()


def labels_of(seen: Seen, asked: Asked) -> dict[str, str]:
    """What the conventions say of a request."""
    return {
        "gen_ai.operation.name": operation_of(asked.dialect),
        "gen_ai.provider.name": provider_name(asked.place, asked.target.provider),
        "gen_ai.request.model": seen.model,
        "gen_ai.response.model": asked.target.model or seen.model,
        "server.address": host_of(asked.place),
        "server.port": str(port_of(asked.place)),
    }


def _labels(key: list[object]) -> dict[str, str]:
    return {text_of(pair[0]): text_of(pair[1]) for pair in map(list_of, key) if len(pair) == 2}


def _key(series: Mapping[Labels, object], labels: Mapping[str, str]) -> Labels:
    key = tuple(sorted(labels.items()))
    if key in series or len(series) < MOST_SERIES:
        return key
    return tuple((name, "other" if name in _OPEN else value) for name, value in key)
