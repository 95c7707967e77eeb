"""S13: time comes by plain UDP, and whoever forges it wants every reminder to expire, or to be due at once. None gets through.

1. Who cannot see our question does not know its random bits: whatever else is right, the answer is refused.
2. Who can see it can say any time, but only a time that one exchange can hold and that is an hour away at most; and where more
   than one server is configured, another must say the same.
3. What nobody checks (poll, precision, the reference identifier) is not used for anything.
"""

from __future__ import annotations

import asyncio
import dataclasses
import random
import struct
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from routecodex.addons.sntp import Sntp
from routecodex.addons.time_server import ask_server, read_answer
from routecodex.routing.clock.moment import Moments
from routecodex.routing.clock.offset import Agreed, Asked, Refusal, Sample, Verdict, agree, judge
from routecodex.routing.config import Ntp
from tests.conftest import LONG
from tests.rig.time_server import HOST, FakeTimeServer, honest
from tests.sheet import seen

FORGED = 10_000
PEER = ("192.0.2.1", 123)
NOW_NS = 1_790_000_000_123_456_789
HOUR_S = 3600
SECOND = 1 << 32
MOST_HELD_S = 0.02
"""What one exchange cannot tell from the truth, and 20 ms more."""
CODES = (b"DENY", b"RSTD", b"RATE", b"INIT", b"STEP", b"X\0\0\0", bytes(4))


def stamp(seconds: float) -> int:
    """`seconds` after the beginning of the test."""
    return ((NOW_NS + round(seconds * 1e9) + 2_208_988_800 * 10**9) * SECOND // 10**9) % (1 << 64)


@dataclass(frozen=True, slots=True)
class Exchange:
    """One question and what came back: its bytes, from where, and what our two clocks showed meanwhile."""

    chance: random.Random
    asked: Asked
    raw: bytes
    peer: tuple[str, int]
    took_s: float
    stepped_s: float = 0.0

    def with_stamp(self, place: int, value: int) -> Exchange:
        return self.with_bytes(place, struct.pack("!Q", value % (1 << 64)))

    def with_bytes(self, place: int, data: bytes) -> Exchange:
        return dataclasses.replace(self, raw=self.raw[:place] + data + self.raw[place + len(data) :])

    def with_first(self, leap: int = 0, version: int = 4, mode: int = 4) -> Exchange:
        return self.with_bytes(0, bytes([leap << 6 | version << 3 | mode]))

    def stamp_at(self, place: int) -> int:
        return int(struct.unpack_from("!Q", self.raw, place)[0])

    def moved(self, seconds: float) -> Exchange:
        """All that the server says of its time, so much later."""
        moved = self
        for place in (REFERENCE, RECEIVE, TRANSMIT):
            moved = moved.with_stamp(place, self.stamp_at(place) + round(seconds * SECOND))
        return moved

    @property
    def verdict(self) -> Verdict:
        took_ns = round(self.took_s * 1e9)
        wall_ns = self.asked.wall_ns + took_ns + round(self.stepped_s * 1e9)
        answer = read_answer(self.raw, self.peer, wall_ns, self.asked.steady_ns + took_ns)
        return judge(self.asked, answer) if answer is not None else Refusal.MALFORMED


ROOT_DELAY, ROOT_DISPERSION, CODE, REFERENCE, ORIGINATE, RECEIVE, TRANSMIT = 4, 8, 12, 16, 24, 32, 40


def true_exchange(chance: random.Random, peer: tuple[str, int] = PEER) -> Exchange:
    """Of a server whose clock is right, as ours is."""
    out_s, held_s, back_s = chance.uniform(0.0005, 0.2), chance.uniform(0.00001, 0.005), chance.uniform(0.0005, 0.2)
    asked = Asked(peer, chance.randrange(1, 1 << 64), NOW_NS, chance.randrange(1 << 50))
    question = bytes([0x23]) + bytes(39) + struct.pack("!Q", asked.stamp)
    raw = honest(
        question,
        leap=chance.choice((0, 0, 1, 2)),
        stratum=chance.randrange(1, 16),
        root_delay=chance.uniform(0, 0.9),
        root_dispersion=chance.uniform(0, 0.9),
        ref_id=chance.randrange(1 << 32),
    )
    exchange = Exchange(chance, asked, raw, peer, out_s + held_s + back_s)
    exchange = exchange.with_stamp(REFERENCE, stamp(-chance.uniform(0, 2000)))
    return exchange.with_stamp(RECEIVE, stamp(out_s)).with_stamp(TRANSMIT, stamp(out_s + held_s))


Forge = Callable[[Exchange], Exchange]


def _other_bits(e: Exchange) -> Exchange:
    return e.with_stamp(ORIGINATE, e.asked.stamp ^ 1 << e.chance.randrange(64))


def _guessed(e: Exchange) -> Exchange:
    return e.with_stamp(ORIGINATE, e.chance.randrange(1 << 64))


def _by_our_clock(e: Exchange) -> Exchange:
    """Right, had we sent our time: to the nanosecond."""
    return e.with_stamp(ORIGINATE, stamp(0) + e.chance.randrange(-8, 9))


def _old(e: Exchange) -> Exchange:
    """A true answer to another question of ours."""
    return dataclasses.replace(true_exchange(e.chance), asked=e.asked)


def _swapped(e: Exchange) -> Exchange:
    return e.with_stamp(ORIGINATE, e.stamp_at(TRANSMIT)).with_stamp(TRANSMIT, e.asked.stamp)


def _one_stamp(place: int, sign: int, most_s: float) -> Forge:
    """Only one of the server's two times is changed, by more than the exchange took."""

    def forge(e: Exchange) -> Exchange:
        moved = e.took_s + MOST_HELD_S + e.chance.random() ** 4 * most_s
        return e.with_stamp(place, e.stamp_at(place) + sign * round(moved * SECOND))

    return forge


def _far(e: Exchange) -> Exchange:
    """Consistent, and from somebody who saw the question."""
    far_s = HOUR_S + 1 + e.chance.choice((0, 1, 3600, 86_400, 31_557_600, 2_000_000_000)) * e.chance.random()
    return e.moved(far_s * e.chance.choice((-1, 1)))


FORGERIES: dict[str, Forge] = {
    # by somebody who does not see what we ask
    "an originate of zero": lambda e: e.with_stamp(ORIGINATE, 0),
    "a guessed originate": _guessed,
    "one bit of the originate": _other_bits,
    "our own time as originate": _by_our_clock,
    "an old answer": _old,
    "a guessed originate and a year ahead": lambda e: _guessed(e).moved(31_557_600),
    "from another address": lambda e: dataclasses.replace(e, peer=(f"192.0.2.{e.chance.randrange(2, 255)}", 123)),
    "from another port": lambda e: dataclasses.replace(e, peer=(PEER[0], e.chance.choice((0, 122, 124, 1123, 65535)))),
    "the question itself": lambda e: dataclasses.replace(e, raw=bytes([0x23]) + bytes(39) + struct.pack("!Q", e.asked.stamp)),
    "noise": lambda e: dataclasses.replace(e, raw=e.chance.randbytes(48)),
    # by somebody who does
    "truncated": lambda e: dataclasses.replace(e, raw=e.raw[: e.chance.randrange(48)]),
    "prolonged": lambda e: dataclasses.replace(e, raw=e.raw + e.chance.randbytes(e.chance.choice((1, 4, 20, 48, 1000)))),
    "the alarm": lambda e: e.with_first(leap=3),
    "another version": lambda e: e.with_first(version=e.chance.choice((0, 1, 2, 3, 5, 6, 7))),
    "another mode": lambda e: e.with_first(mode=e.chance.choice((0, 1, 2, 3, 5, 6, 7))),
    "a kiss of death": lambda e: e.with_bytes(1, b"\0").with_bytes(CODE, e.chance.choice(CODES)),
    "stratum 16 and above": lambda e: e.with_bytes(1, bytes([e.chance.randrange(16, 256)])),
    "a root delay of a second": lambda e: e.with_bytes(ROOT_DELAY, struct.pack("!I", e.chance.randrange(1 << 16, 1 << 32))),
    "a root dispersion": lambda e: e.with_bytes(ROOT_DISPERSION, struct.pack("!I", e.chance.randrange(1 << 16, 1 << 32))),
    "set in the future": lambda e: e.with_stamp(REFERENCE, e.stamp_at(TRANSMIT) + e.chance.randrange(1, 1 << 62)),
    "no receive": lambda e: e.with_stamp(RECEIVE, 0),
    "no transmit": lambda e: e.with_stamp(TRANSMIT, 0),
    "swapped": _swapped,
    "receive later": _one_stamp(RECEIVE, 1, 1e9),
    "receive earlier": _one_stamp(RECEIVE, -1, 1e9),
    "transmit later": _one_stamp(TRANSMIT, 1, 1e9),
    "transmit earlier": _one_stamp(TRANSMIT, -1, 1e9),
    "more than an hour off": _far,
    # and what happens here meanwhile
    "our clock stepped": lambda e: dataclasses.replace(
        e, stepped_s=e.chance.choice((-1, 1)) * (0.051 + e.chance.random() ** 6 * 3e8)
    ),
    "held back": lambda e: dataclasses.replace(e, took_s=2.01 + e.chance.random() * 60),
}


def test_s13_ten_thousand_forged_or_mutated_answers(capsys: pytest.CaptureFixture[str]) -> None:
    chance = random.Random(4330)
    names = list(FORGERIES)
    refused: Counter[Refusal] = Counter()
    accepted: list[str] = []
    for number in range(FORGED):
        true = true_exchange(chance)
        assert isinstance(true.verdict, Sample), "the true answer is believed, or the rest shows nothing"
        name = names[number % len(names)]
        verdict = FORGERIES[name](true).verdict
        if isinstance(verdict, Sample):
            accepted.append(name)
        else:
            refused[verdict] += 1
    with capsys.disabled():
        print(f"\n{FORGED} forged or mutated answers, {len(accepted)} accepted; refused: {dict(sorted(refused.items()))}")
    assert Counter(accepted) == {}
    assert sum(refused.values()) == FORGED
    seen("S13", f"{FORGED:,} forged or mutated answers, {len(accepted)} accepted")


def test_every_bit_of_a_true_answer_is_refused_when_flipped_or_moves_nothing() -> None:
    """Of the server's two times a bit may flip that is worth less than the exchange took: that is how exactly it measures."""
    chance = random.Random(5905)
    for _ in range(100 if LONG else 20):
        true = true_exchange(chance)
        told = true.verdict
        assert isinstance(told, Sample)
        for bit in range(48 * 8):
            place, mask = bit // 8, 1 << 7 - bit % 8
            verdict = true.with_bytes(place, bytes([true.raw[place] ^ mask])).verdict
            if ORIGINATE <= place < RECEIVE:
                assert verdict is Refusal.FOREIGN
            elif isinstance(verdict, Sample):
                moved_s = abs(verdict.offset_ms - told.offset_ms) / 1000
                assert moved_s <= (true.took_s + MOST_HELD_S) / 2 + 0.001, f"bit {bit}"
                assert place >= RECEIVE or moved_s == 0, f"bit {bit}"


def test_one_server_that_lies_well_moves_nothing_alone() -> None:
    """It repeats our random bits and stays within the hour: only the others can tell."""
    chance = random.Random(13)
    for _ in range(2000):
        lie_s = chance.choice((-1, 1)) * (1.5 + chance.random() * (HOUR_S - 2))
        honest_ones = [true_exchange(chance, (f"192.0.2.{number}", 123)) for number in (1, 2)]
        liar = true_exchange(chance, ("192.0.2.3", 123)).moved(lie_s)
        told = {name: exchange.verdict for name, exchange in zip("abc", [*honest_ones, liar], strict=True)}
        assert isinstance(told["c"], Sample)
        outcome = agree(told)
        assert isinstance(outcome, Agreed)
        assert outcome.servers in (("a", "b"), ("b", "a"))
        assert abs(outcome.offset_ms) <= 250
        assert isinstance(agree({"a": told["a"], "c": told["c"]}), str), "one against one is nothing"


# With real packets


def _blind(question: bytes, chance: random.Random, offset_s: float) -> bytes:
    """By somebody who knows everything but the question's random bits."""
    return honest(question[:40] + chance.randbytes(8), offset_s)


@pytest.mark.parametrize("offset_s", [31_557_600, 1800, -1800])
def test_a_flood_of_blind_answers_on_the_wire(offset_s: float) -> None:
    """As if its sender could use the server's own address and port; then the true one comes."""
    chance = random.Random(1)

    def flood(question: bytes, _: FakeTimeServer) -> list[bytes]:
        return [*(_blind(question, chance, offset_s) for _ in range(40)), honest(question)]

    with FakeTimeServer(flood) as server:
        for _ in range(10):
            verdict = ask_server(HOST, 1, port=server.port)
            assert isinstance(verdict, Sample)
            assert abs(verdict.offset_ms) < 200


def _forgers() -> dict[str, Callable[[bytes, FakeTimeServer], list[bytes]]]:
    chance = random.Random(2)
    kiss = int.from_bytes(b"RATE", "big")

    def spoiled(**fields: Any) -> Callable[[bytes, FakeTimeServer], list[bytes]]:
        return lambda question, _: [honest(question, 60, **fields)]

    return {
        "blind": lambda question, _: [_blind(question, chance, 60) for _ in range(30)],
        "a year": lambda question, _: [honest(question, 31_557_600)],
        "alarm": spoiled(leap=3),
        "kiss": spoiled(stratum=0, ref_id=kiss),
        "stratum 16": spoiled(stratum=16),
        "reflected": lambda question, _: [question],
        "halved": lambda question, _: [honest(question, 60)[:24]],
        "no times": spoiled(recv_timestamp=0, tx_timestamp=0),
    }


@pytest.mark.parametrize("name", list(_forgers()))
def test_where_only_forgers_answer_the_clock_stays_as_it_is(name: str) -> None:
    says = _forgers()[name]
    moments = Moments(lambda: 1_790_000_000.0, lambda: 1.0)

    async def run() -> dict[str, Any]:
        rested = asyncio.Event()

        async def sleep(_: float) -> None:
            rested.set()
            await asyncio.Event().wait()

        sntp = Sntp(moments, ask=lambda server, timeout_s: ask_server(HOST, timeout_s, port=ports[server]), sleep=sleep)
        sntp.use(Ntp(servers=tuple(ports), timeout_ms=60), File())
        await asyncio.wait_for(rested.wait(), 60)
        sntp.close()
        return sntp.ntp()

    with FakeTimeServer(says) as one, FakeTimeServer(says) as other, FakeTimeServer(says) as third:
        ports = {"a": one.port, "b": other.port, "c": third.port}
        told = asyncio.run(run())
        assert all(server.heard for server in (one, other, third))
    assert (told["status"], told["offsetMs"], moments.offset_ms) == ("error", 0, 0)
    assert told["lastError"]
    assert moments.now_ms() == 1_790_000_000_000
    for thread in threading.enumerate():
        if thread.name.startswith("ntp "):
            thread.join(5)
            assert not thread.is_alive()


class File:
    def ntp_state(self) -> bytes | None:
        return None

    def save_ntp_state(self, raw: bytes) -> None:
        assert b'"offsetMs":0' in raw
