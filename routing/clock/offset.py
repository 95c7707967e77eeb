"""How far this machine's clock is off, by what time servers say: which answer is believed, and what several of them agree on.

1. SNTP is plain UDP: anybody may answer. Only an answer that repeats the random bits of our question, and holds against every
   check of RFC 4330 section 5, counts for anything. It counts by what it says of our own two readings of the clock.
2. Where several servers are configured, two must agree within a second, and no others as many against them.
3. A correction is an hour at most. What asks for more is reported and changes nothing.
4. No byte that a server sent stands in any text of ours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ..dialects.fields import count_of, read_object
from ..jsonbytes import dumps
from ..values import JsonObject

Peer: TypeAlias = tuple[str, int]
"""Address and port."""
Status: TypeAlias = Literal["synced", "stale", "error", "disabled"]

VERSION = 4
LARGEST_MS = 3_600_000
SOONEST_S = 16.0
"""RFC 4330 section 10: servers are never asked more often."""

_SERVER_MODE = 4
_LEAP_ALARM = 3
_AGREE_WITHIN_MS = 1_000
_KEEP_AWAY = frozenset(int.from_bytes(code, "big") for code in (b"DENY", b"RSTD"))
_SLOW_DOWN = int.from_bytes(b"RATE", "big")
_WORST_ROOT_S = 1.0
_SLOWEST_NS = 2_000_000_000
"""Half of a round trip may be error: beyond this, more than what two servers must agree within."""
_STEP_NS = 50_000_000
_GRAIN_NS = 20_000_000
"""Some systems' clocks tick no faster."""
_FIRST_RETRY_S = 60.0
_ERA = 1 << 64
_FROM_1900_TO_1970_S = 2_208_988_800


class Refusal(StrEnum):
    """Why a server's time is not used."""

    UNKNOWN_NAME = "the name is not found"
    UNREACHABLE = "not reachable"
    SILENT = "no answer"
    MALFORMED = "an answer that is no time"
    FOREIGN = "an answer to another question"
    NO_SERVER = "an answer that is not a server's"
    SENT_AWAY = "asks not to be asked"
    TOO_OFTEN = "asks to be asked less often"
    UNSET = "a clock that is not set itself"
    JUMPED = "this machine's clock was set meanwhile"
    SLOW = "too slow to be exact"
    IMPOSSIBLE = "a time that cannot be"
    TOO_FAR = "more than an hour away from this machine's clock"


class Asked(Struct, frozen=True):
    """One question, as it left."""

    peer: Peer
    stamp: int
    """Its transmit timestamp: 64 random bits. It tells nothing of our clock, and nobody else can repeat it."""
    wall_ns: int
    steady_ns: int
    """By a clock that nobody sets."""


class Answer(Struct, frozen=True):
    """One packet that came back; its four timestamps are NTP's own, in 2^-32 s since 1900."""

    peer: Peer
    leap: int
    version: int
    mode: int
    stratum: int
    code: int
    """The reference identifier; of stratum 0 a "kiss": what a server asks for."""
    root_delay_s: float
    root_dispersion_s: float
    reference: int
    originate: int
    receive: int
    transmit: int
    wall_ns: int
    steady_ns: int


class Sample(Struct, frozen=True):
    """What a believed answer says: true time minus ours."""

    peer: Peer
    offset_ms: int
    round_trip_ms: int


Verdict: TypeAlias = Sample | Refusal


def judge(asked: Asked, answer: Answer) -> Verdict:
    for refusal, applies in _CHECKS:
        if applies(asked, answer):
            return refusal
    return Sample(answer.peer, _offset_ms(asked, answer), round(_took_ns(asked, answer) / 1e6))


def _took_ns(asked: Asked, answer: Answer) -> int:
    return answer.steady_ns - asked.steady_ns


def _stepped_ns(asked: Asked, answer: Answer) -> int:
    return answer.wall_ns - asked.wall_ns - _took_ns(asked, answer)


def _held_ns(answer: Answer) -> int:
    """How long the question lay at the server."""
    return _between_ns(answer.receive, answer.transmit)


def _offset_ms(asked: Asked, answer: Answer) -> int:
    ahead_ns = _between_ns(_stamp_at(asked.wall_ns), answer.receive) + _between_ns(_stamp_at(answer.wall_ns), answer.transmit)
    return round(ahead_ns / 2e6)


def _stamp_at(wall_ns: int) -> int:
    return ((wall_ns << 32) // 1_000_000_000 + (_FROM_1900_TO_1970_S << 32)) % _ERA


def _between_ns(earlier: int, later: int) -> int:
    """Stamps begin again at 0 in 2036: of both ways round, the shorter."""
    apart = (later - earlier) % _ERA
    return ((apart - _ERA if apart >= _ERA // 2 else apart) * 1_000_000_000) >> 32


def _is_unset(asked: Asked, answer: Answer) -> bool:
    # A delay is signed in the packet and read without its sign: a negative one is beyond the limit as well.
    root_s = max(answer.root_delay_s, answer.root_dispersion_s)
    badly_set = answer.leap == _LEAP_ALARM or not 0 < answer.stratum < 16 or root_s >= _WORST_ROOT_S
    set_later = answer.reference != 0 and _between_ns(answer.reference, answer.transmit) < 0
    return badly_set or set_later or 0 in (answer.receive, answer.transmit)


_CHECKS: tuple[tuple[Refusal, Callable[[Asked, Answer], bool]], ...] = (
    (Refusal.FOREIGN, lambda asked, answer: answer.peer != asked.peer or answer.originate != asked.stamp),
    (Refusal.NO_SERVER, lambda asked, answer: answer.mode != _SERVER_MODE or answer.version != VERSION),
    (Refusal.SENT_AWAY, lambda asked, answer: answer.stratum == 0 and answer.code in _KEEP_AWAY),
    (Refusal.TOO_OFTEN, lambda asked, answer: answer.stratum == 0 and answer.code == _SLOW_DOWN),
    (Refusal.UNSET, _is_unset),
    (Refusal.JUMPED, lambda asked, answer: abs(_stepped_ns(asked, answer)) > _STEP_NS),
    (Refusal.SLOW, lambda asked, answer: not 0 <= _took_ns(asked, answer) <= _SLOWEST_NS),
    (Refusal.IMPOSSIBLE, lambda asked, answer: not 0 <= _held_ns(answer) <= _took_ns(asked, answer) + _GRAIN_NS),
    (Refusal.TOO_FAR, lambda asked, answer: abs(_offset_ms(asked, answer)) > LARGEST_MS),
)


class Agreed(Struct, frozen=True):
    offset_ms: int
    round_trip_ms: int
    servers: tuple[str, ...]
    """Those that agree; a single one only where no other is configured."""


def agree(verdicts: Mapping[str, Verdict]) -> Agreed | str:
    """What the configured servers (by name) agree on; else why they do not. A single one needs nobody's consent."""
    # Two names of one machine are one voice.
    voices = {verdict.peer: (name, verdict) for name, verdict in verdicts.items() if isinstance(verdict, Sample)}
    ordered = sorted(voices.values(), key=lambda voice: voice[1].offset_ms)
    groups = [[other for other in ordered[start:] if _agrees(first[1], other[1])] for start, first in enumerate(ordered)]
    best = max(groups, key=len, default=[])
    if len(best) < min(2, len(verdicts)) or not best:
        return _complaint(verdicts, len(voices))
    if any(len(group) == len(best) and group[0] not in best for group in groups):
        return f"{len(voices)} servers answered, and do not agree"
    from statistics import median  # with all kinds of numbers: not before it is needed, twice a day

    samples = [sample for _, sample in best]
    return Agreed(
        round(median(sample.offset_ms for sample in samples)),
        max(sample.round_trip_ms for sample in samples),
        tuple(name for name, _ in best),
    )


def _agrees(one: Sample, other: Sample) -> bool:
    return other.offset_ms - one.offset_ms <= _AGREE_WITHIN_MS


def _complaint(verdicts: Mapping[str, Verdict], voices: int) -> str:
    if not verdicts:
        return "no time server is configured"
    refusals = Counter(verdict for verdict in verdicts.values() if isinstance(verdict, Refusal))
    reasons = [f"{reason} ({count} of {len(verdicts)})" for reason, count in sorted(refusals.items())]
    if voices:
        reasons.append("a time that no other server confirms" if voices == 1 else f"{voices} times that do not agree")
    return "; ".join(reasons)


class NtpState(Struct, frozen=True):
    """What is known of this machine's clock. A failure changes `last_error` and nothing else."""

    offset_ms: int = 0
    updated_at_ms: int = 0
    """By this machine's own clock; 0: never."""
    agreed: Agreed | None = None
    """None: not measured since the start, or since the clock jumped."""
    last_error: str = ""

    def measured(self, agreed: Agreed, now_ms: int) -> NtpState:
        return NtpState(agreed.offset_ms, now_ms, agreed)

    def failed(self, why: str) -> NtpState:
        return replace(self, last_error=why)

    def doubted(self) -> NtpState:
        return replace(self, agreed=None)

    def status(self, now_ms: int, stale_after_ms: int) -> Status:
        if self.last_error:
            return "error"
        fresh = self.agreed is not None and 0 <= now_ms - self.updated_at_ms <= stale_after_ms
        return "synced" if fresh else "stale"


def report(state: NtpState, status: Status, offset_ms: int) -> JsonObject:
    """What a model is told, and what the file holds. `offset_ms`: what is in force."""
    fields: JsonObject = {"status": status, "offsetMs": offset_ms, "updatedAtMs": state.updated_at_ms}
    if status == "disabled":
        return fields
    if (agreed := state.agreed) is not None:
        fields |= {"servers": len(agreed.servers), "rttMs": agreed.round_trip_ms}
        if len(agreed.servers) == 1:
            fields["note"] = "one server only, confirmed by no other"
    return fields | ({"lastError": state.last_error} if state.last_error else {})


def to_bytes(report: JsonObject) -> bytes:
    return dumps({"version": 1, **report})


def from_bytes(raw: bytes, now_ms: int) -> NtpState:
    """After a restart: the offset goes on, but nothing is synced. What cannot be believed is left out."""
    fields = read_object(raw) or {}
    offset, updated = fields.get("offsetMs"), count_of(fields.get("updatedAtMs"))
    if isinstance(offset, bool) or not isinstance(offset, int | float) or abs(offset) > LARGEST_MS:
        return NtpState()
    # Measured later than now: this clock has been set back since.
    return NtpState(round(offset), updated) if updated <= now_ms else NtpState()


def pause_s(stale_after_ms: int, failures: int, jitter: float) -> float:
    """How long until the servers are asked again; `jitter` in [0, 1) keeps many machines from asking at once."""
    stale_s = stale_after_ms / 1000
    if failures == 0:
        return max(SOONEST_S, stale_s * (0.9 + jitter / 10))
    return max(SOONEST_S, min(stale_s, _FIRST_RETRY_S * (1 << min(failures - 1, 20))) * (1 + jitter / 4))
