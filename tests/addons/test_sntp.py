"""Time servers are asked beside everything else: real packets on loopback, and machines whose clocks do as they like."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import socket
import stat
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from routecodex.addons.sntp import Sntp
from routecodex.addons.time_server import ask_server
from routecodex.routing.clock.moment import Moments
from routecodex.routing.clock.offset import LARGEST_MS, SOONEST_S, Refusal, Sample, Verdict
from routecodex.routing.clock.store import NTP_STATE, ClockStore
from routecodex.routing.clock.tasks import Task
from routecodex.routing.clock.tool import ToolDesk, answer
from routecodex.routing.config import Ntp
from routecodex.routing.errors import StoreError
from routecodex.routing.sessions.store import FileStore
from routecodex.routing.storage.disk import Disk
from routecodex.routing.values import JsonObject
from tests.rig.provider import FakeProvider
from tests.rig.proxy import SCRIPT, Mitmdump
from tests.rig.time_server import HOST, MARK, FakeTimeServer, closed_port, honest
from tests.system.tool import CONFIG, Tool

TIMEOUT_MS = 1000
NEAR_MS = 400
"""How exactly a busy machine measures."""
STALE_MS = 21_600_000


@dataclass
class Machine:
    """A computer whose two clocks only move when it sleeps, or when somebody sets one of them."""

    wall: float = 1_790_000_000.0
    steady: float = 100.0
    slept: list[float] = field(default_factory=list)
    events: dict[float, Callable[[], None]] = field(default_factory=dict)
    """What happens when so many seconds have gone by."""
    ends_at: float = 1e9

    def __post_init__(self) -> None:
        self.began = self.steady
        self.moments = Moments(lambda: self.wall, lambda: self.steady, timezone="UTC")

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.wall += seconds
        self.steady += seconds
        await asyncio.sleep(0)
        for when in [when for when in self.events if self.steady - self.began >= when]:
            self.events.pop(when)()
        if self.steady - self.began >= self.ends_at:
            await asyncio.Event().wait()

    def jump(self, seconds: float) -> None:
        self.wall += seconds


@dataclass
class File:
    raw: bytes | None = None
    fails: bool = False
    saved: int = 0

    def ntp_state(self) -> bytes | None:
        return self.raw

    def save_ntp_state(self, raw: bytes) -> None:
        if self.fails:
            raise StoreError("The session file ntp-state.json could not be written: No space left on device")
        self.raw = raw
        self.saved += 1

    @property
    def json(self) -> JsonObject:
        found: JsonObject = json.loads(self.raw or b"{}")
        return found


def on_loopback(ports: Mapping[str, int], **options: Any) -> Callable[[str, float], Verdict]:
    """Every server's name leads to a port of this machine."""
    return lambda server, timeout_s: ask_server(HOST, timeout_s, port=ports[server], **options)


def settings(*servers: str, **changes: Any) -> Ntp:
    return Ntp(**{"servers": servers, "timeout_ms": TIMEOUT_MS, "stale_after_ms": STALE_MS, **changes})


async def until(holds: Callable[[], object], limit_s: float = 60) -> None:
    ends = time.monotonic() + max(limit_s, 60)
    while not holds():
        assert time.monotonic() < ends, "it did not come to that"
        await asyncio.sleep(0.005)


def synced_once(sntp: Sntp, ntp: Ntp, file: Any) -> JsonObject:
    """The state after the first round of questions has been written down, or could not be."""

    async def run() -> JsonObject:
        rested = asyncio.Event()

        async def sleep(_: float) -> None:
            rested.set()
            await asyncio.Event().wait()

        sntp._sleep = sleep
        sntp.use(ntp, file)
        await asyncio.wait_for(rested.wait(), 60)
        sntp.close()
        return sntp.ntp()

    return asyncio.run(run())


@pytest.fixture
def moments() -> Moments:
    return Moments(time.time, time.monotonic)


@dataclass
class Servers:
    stack: ExitStack
    ports: dict[str, int] = field(default_factory=dict)
    running: dict[str, FakeTimeServer] = field(default_factory=dict)

    def add(self, name: str, **how: Any) -> FakeTimeServer:
        server = self.stack.enter_context(FakeTimeServer(**how))
        self.ports[name], self.running[name] = server.port, server
        return server

    @property
    def ask(self) -> Callable[[str, float], Verdict]:
        return on_loopback(self.ports)

    def hear_out(self, name: str) -> Verdict:
        """Asked by a clock by which the time is over once the server has said all that it says."""
        looks = itertools.count()

        def monotonic() -> float:
            return 100.0 if next(looks) and self.running[name].said.wait(60) else 0.0

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("routecodex.addons.time_server.time", SimpleNamespace(monotonic=monotonic))
            return self.ask(name, 1)


@pytest.fixture
def servers() -> Iterator[Servers]:
    with ExitStack() as stack:
        yield Servers(stack)


# One server


def test_the_offset_of_a_true_server(servers: Servers) -> None:
    server = servers.add("a", offset_s=1.5)
    verdict = servers.ask("a", 1)
    assert isinstance(verdict, Sample)
    assert abs(verdict.offset_ms - 1500) <= verdict.round_trip_ms / 2 + 1
    assert verdict.peer == (HOST, server.port)


def test_a_question_tells_nothing_and_is_never_the_same(servers: Servers) -> None:
    """RFC 4330: a client's packet, all zero but for its transmit timestamp; and every bit of that is random."""
    server = servers.add("a")
    for _ in range(40):
        servers.ask("a", 1)
    assert {len(question) for question in server.heard} == {48}
    assert {question[0] for question in server.heard} == {0b00_100_011}
    assert {question[1:40] for question in server.heard} == {bytes(39)}
    stamps = [int.from_bytes(question[40:], "big") for question in server.heard]
    assert len(set(stamps)) == 40
    for bit in range(64):
        assert {stamp >> bit & 1 for stamp in stamps} == {0, 1}, f"bit {bit} never changes"


LIES: list[tuple[str, Callable[[bytes], list[bytes]], Refusal]] = [
    ("silence", lambda question: [], Refusal.SILENT),
    ("the question itself", lambda question: [question], Refusal.FOREIGN),
    ("cut short", lambda question: [honest(question)[:47]], Refusal.MALFORMED),
    ("empty", lambda question: [b""], Refusal.MALFORMED),
    ("too long", lambda question: [honest(question) + b"\0"], Refusal.MALFORMED),
    ("far too long", lambda question: [honest(question) * 30], Refusal.MALFORMED),
    ("noise", lambda question: [b"\xff" * 48], Refusal.FOREIGN),
    ("of an earlier question", lambda question: [honest(question[:40] + bytes(8))], Refusal.FOREIGN),
    ("kiss", lambda question: [honest(question, stratum=0, ref_id=int.from_bytes(b"DENY", "big"))], Refusal.SENT_AWAY),
    ("alarm", lambda question: [honest(question, leap=3)], Refusal.UNSET),
    ("stratum 16", lambda question: [honest(question, stratum=16)], Refusal.UNSET),
    ("an old version", lambda question: [honest(question, version=2)], Refusal.NO_SERVER),
    ("next year", lambda question: [honest(question, 31_557_600)], Refusal.TOO_FAR),
    ("many at once", lambda question: [honest(question, leap=3)] * 500, Refusal.UNSET),
]


@pytest.mark.parametrize("lie, refusal", [pytest.param(lie, refusal, id=name) for name, lie, refusal in LIES])
def test_a_lie_is_refused(servers: Servers, lie: Callable[[bytes], list[bytes]], refusal: Refusal) -> None:
    servers.add("a", says=lambda question, _: lie(question))
    assert servers.hear_out("a") is refusal


@pytest.mark.parametrize("lie", [pytest.param(lie, id=name) for name, lie, _ in LIES if name != "many at once"])
def test_a_lie_that_comes_first_does_not_keep_out_the_truth(servers: Servers, lie: Callable[[bytes], list[bytes]]) -> None:
    servers.add("a", says=lambda question, _: [*lie(question), honest(question, 0.25)])
    verdict = servers.ask("a", 1)
    assert isinstance(verdict, Sample)
    assert abs(verdict.offset_ms - 250) <= verdict.round_trip_ms / 2 + 1


def test_an_answer_from_another_port_is_none(servers: Servers) -> None:
    other = servers.add("b")

    def say(question: bytes, server: FakeTimeServer) -> list[bytes]:
        other.send(honest(question), server.asker)
        return []

    servers.add("a", says=say)
    assert servers.hear_out("a") is Refusal.SILENT


def test_an_answer_that_comes_too_late_is_none(servers: Servers) -> None:
    servers.add("a", wait_s=900)  # or until the server is ended
    assert servers.ask("a", 0.1) is Refusal.SILENT


def test_wrong_answers_do_not_prolong_the_wait(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    """The third of them comes when the time is over, by the asker's clock; the others would come for ever."""
    now, told = [0.0], [0]

    def trickle(question: bytes, server: FakeTimeServer) -> Iterator[bytes]:
        while not server.ended.wait(0.01):
            told[0] += 1
            now[0] += 0.04
            yield b"wrong"

    monkeypatch.setattr("routecodex.addons.time_server.time", SimpleNamespace(monotonic=lambda: now[0]))
    servers.add("a", says=trickle)
    assert servers.ask("a", 0.1) is Refusal.MALFORMED
    assert told[0] < 60, "it heard as many as it ever hears"


@pytest.mark.parametrize("jump_s", [3600, -3600, 0.2, -0.2, 315_576_000])
def test_a_clock_that_is_set_meanwhile_measures_nothing(servers: Servers, jump_s: float) -> None:
    servers.add("a")
    readings = iter([0, round(jump_s * 1e9)])
    ask = on_loopback(servers.ports, wall_ns=lambda: time.time_ns() + next(readings))
    assert ask("a", 0.15) is Refusal.JUMPED


def test_nobody_there() -> None:
    assert ask_server(HOST, 0.5, port=closed_port()) in (Refusal.UNREACHABLE, Refusal.SILENT)


@pytest.mark.parametrize("name", ["no-such-host.invalid", "a..b", "x" * 300, "nul\0", "\udcff"])
def test_a_name_that_leads_nowhere(name: str) -> None:
    assert ask_server(name, 0.1, port=123) is Refusal.UNKNOWN_NAME


@pytest.mark.parametrize("first", ["100::1", "no address"])
def test_the_second_address_is_asked_where_the_first_leads_nowhere(
    servers: Servers, first: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = servers.add("a")
    unreachable = (socket.AF_INET6, socket.SOCK_DGRAM, 17, "", (first, server.port, 0, 0))
    reachable = (socket.AF_INET, socket.SOCK_DGRAM, 17, "", (HOST, server.port))
    find = socket.getaddrinfo

    def found(host: str, *more: Any, **named: Any) -> list[Any]:
        return [unreachable, unreachable, reachable] if host == "two-families.example" else find(host, *more, **named)

    monkeypatch.setattr("socket.getaddrinfo", found)
    assert isinstance(ask_server("two-families.example", 0.2, port=server.port), Sample)


# Several servers, one state


def test_all_are_asked_at_once_and_agree(servers: Servers, moments: Moments, tmp_path: Path) -> None:
    all_asked = threading.Barrier(3)

    def say(question: bytes, _: FakeTimeServer) -> list[bytes]:
        all_asked.wait(5)
        return [honest(question, 1.5)]

    for name in "abc":
        servers.add(name, says=say)
    sntp, store = Sntp(moments, ask=servers.ask), ClockStore(tmp_path)
    assert sntp.ntp()["status"] == "disabled"
    told = synced_once(sntp, settings("a", "b", "c"), store)
    assert told["status"] == "synced"
    assert told["servers"] == 3
    assert abs(sntp.offset_ms() - 1500) < NEAR_MS
    assert told["offsetMs"] == sntp.offset_ms() == moments.offset_ms
    assert abs(moments.now_ms() - time.time() * 1000 - 1500) < NEAR_MS
    path = tmp_path / "clock" / "ntp-state.json"
    assert json.loads(path.read_bytes()) == {"version": 1, **told}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_two_of_three_agree(servers: Servers, moments: Moments) -> None:
    servers.add("a", offset_s=0.5)
    servers.add("b", offset_s=900)
    servers.add("c", offset_s=0.6)
    told = synced_once(Sntp(moments, ask=servers.ask), settings("a", "b", "c"), File())
    assert told["status"] == "synced"
    assert told["servers"] == 2
    assert abs(moments.offset_ms - 550) < NEAR_MS


def test_a_single_configured_server_is_enough_and_is_said(servers: Servers, moments: Moments) -> None:
    servers.add("a", offset_s=-2)
    told = synced_once(Sntp(moments, ask=servers.ask), settings("a", "a"), File())
    assert told["status"] == "synced"
    assert told["note"] == "one server only, confirmed by no other"
    assert abs(moments.offset_ms + 2000) < NEAR_MS
    assert len(servers.running["a"].heard) == 1


def test_one_of_two_is_not_enough(servers: Servers, moments: Moments) -> None:
    servers.add("a", offset_s=5)
    servers.add("b", says=lambda *_: [])
    told = synced_once(Sntp(moments, ask=servers.ask), settings("a", "b"), File())
    assert (told["status"], told["offsetMs"]) == ("error", 0)
    assert told["lastError"] == "no answer (1 of 2); a time that no other server confirms"


UNREACHABLE: list[tuple[str, Ntp, str]] = [
    ("nobody listens", settings("closed", "closed2"), "not reachable (2 of 2)"),
    ("silent", settings("silent"), "no answer (1 of 1)"),
    ("no such name", settings("name"), "the name is not found (1 of 1)"),
    ("none configured", settings(), "no time server is configured"),
    ("an error of ours", settings("broken"), "failed inside: ZeroDivisionError"),
]


@pytest.mark.parametrize("ntp, why", [pytest.param(ntp, why, id=f"C32-{name}") for name, ntp, why in UNREACHABLE])
def test_c32_unreachable_is_an_error_and_nothing_else(servers: Servers, moments: Moments, ntp: Ntp, why: str) -> None:
    servers.add("silent", says=lambda *_: [])

    def ask(server: str, timeout_s: float) -> Verdict:
        match server:
            case "silent":
                return servers.ask(server, 0.05)
            case "name":
                return ask_server("no-such-host.invalid", timeout_s)
            case "broken":
                return [][1 // 0]
            case _:
                return ask_server(HOST, timeout_s, port=closed_port())

    updated = time.time_ns() // 1_000_000 - 5000
    file = File(json.dumps({"version": 1, "status": "synced", "offsetMs": 250, "updatedAtMs": updated}).encode())
    told = synced_once(Sntp(moments, ask=ask), ntp, file)
    assert told == {"status": "error", "offsetMs": 250, "updatedAtMs": updated, "lastError": why}
    assert file.json == {"version": 1, **told}
    assert moments.offset_ms == 250


def test_no_byte_of_a_server_is_seen_anywhere(servers: Servers, moments: Moments, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    code = int.from_bytes(MARK, "big")
    servers.add("a")
    servers.add("b", says=lambda question, _: [honest(question, stratum=0, ref_id=code)])
    servers.add("c", says=lambda question, _: [MARK * 12])
    for names in (("a",), ("b",), ("c",), ("a", "b", "c")):
        file = File()
        told = synced_once(Sntp(moments, ask=servers.ask), settings(*names), file)
        assert MARK.decode() not in json.dumps(told)
        assert MARK not in (file.raw or b"")
    assert "NTP" in caplog.text
    assert MARK.decode() not in caplog.text


def test_what_is_logged_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    machine = Machine(ends_at=50_000)
    asyncio.run(_run(machine, lambda *_: Refusal.SILENT, settings("a", "b")))
    assert [record.getMessage() for record in caplog.records if record.name == "routecodex"] == [
        "NTP: no answer (2 of 2); the clock goes on as it is"
    ]
    assert all(record.levelno == logging.INFO for record in caplog.records if record.name == "routecodex")


# Off, restarted, reconfigured


@pytest.mark.parametrize("ntp", [None, settings("a", enabled=False)])
def test_switched_off_nobody_is_asked_and_the_file_stays(moments: Moments, ntp: Ntp | None) -> None:
    file = File(b'{"offsetMs":250,"updatedAtMs":5}')

    async def run() -> JsonObject:
        sntp = Sntp(moments, ask=lambda *_: pytest.fail("nobody is to be asked"))
        sntp.use(ntp, file)
        await asyncio.sleep(0.05)
        return sntp.ntp()

    assert asyncio.run(run()) == {"status": "disabled", "offsetMs": 0, "updatedAtMs": 0}
    assert file.raw == b'{"offsetMs":250,"updatedAtMs":5}'


def test_after_a_restart_the_offset_goes_on_as_stale_until_it_is_synced(servers: Servers, tmp_path: Path) -> None:
    servers.add("a", offset_s=3)
    synced_once(Sntp(Moments(time.time, time.monotonic), ask=servers.ask), settings("a"), ClockStore(tmp_path))

    async def restart() -> tuple[JsonObject, JsonObject]:
        moments = Moments(time.time, time.monotonic)
        sntp = Sntp(moments, ask=servers.ask)
        sntp.use(settings("a"), ClockStore(tmp_path))
        before = sntp.ntp()
        await until(lambda: sntp.ntp()["status"] == "synced")
        sntp.close()
        assert abs(moments.offset_ms - 3000) < NEAR_MS
        return before, sntp.ntp()

    before, after = asyncio.run(restart())
    assert before["status"] == "stale"
    assert abs(int(str(before["offsetMs"])) - 3000) < NEAR_MS
    assert "servers" not in before
    assert after["servers"] == 1


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b"\xff", b'{"offsetMs":1e99}', f'{{"offsetMs":{LARGEST_MS + 1}}}'.encode()])
def test_a_damaged_file_is_as_good_as_none(moments: Moments, raw: bytes) -> None:
    file = File(raw)
    told = synced_once(Sntp(moments, ask=lambda *_: Sample((HOST, 1), 40, 1)), settings("a"), file)
    assert told["status"] == "synced"
    assert file.json["offsetMs"] == moments.offset_ms == 40


def test_a_file_that_cannot_be_written_costs_nothing(moments: Moments, tmp_path: Path) -> None:
    class Full(Disk):
        def write(self, file: int, data: bytes) -> None:
            raise OSError(28, "No space left on device")

    sample = Sample((HOST, 1), 40, 1)
    told = synced_once(Sntp(moments, ask=lambda *_: sample), settings("a"), ClockStore(tmp_path, Full()))
    assert (told["status"], moments.offset_ms) == ("synced", 40)


def test_new_settings_ask_new_servers_and_the_same_ones_nobody(moments: Moments) -> None:
    asked: list[str] = []

    def ask(server: str, _: float) -> Verdict:
        asked.append(server)
        return Sample((HOST, 1), 40, 1)

    async def run() -> None:
        sntp, file = Sntp(moments, ask=ask), File()
        sntp.use(settings("a"), file)
        await until(lambda: sntp.ntp()["status"] == "synced")
        sntp.use(settings("a"), file)
        await asyncio.sleep(0.02)
        assert asked == ["a"]
        sntp.use(settings("b"), file)
        assert sntp.ntp()["status"] == "stale"
        assert moments.offset_ms == 40
        await until(lambda: sntp.ntp()["status"] == "synced")
        assert asked == ["a", "b"]
        sntp.use(None, file)
        assert moments.offset_ms == 0
        sntp.use(settings("b"), file)
        await until(lambda: sntp.ntp()["status"] == "synced")
        assert moments.offset_ms == 40
        sntp.close()

    asyncio.run(run())


def test_closed_it_asks_nobody_any_more() -> None:
    machine = Machine()
    asked: list[float] = []

    async def run() -> None:
        sntp = _sntp(machine, lambda *_: asked.append(machine.steady) or Refusal.SILENT)
        file = File()
        sntp.use(settings("a"), file)
        await until(lambda: len(asked) > 2)
        sntp.close()
        await asyncio.sleep(0.02)
        before = len(asked)
        await asyncio.sleep(0.1)
        assert len(asked) == before
        assert len(asyncio.all_tasks()) == 1
        sntp.close()
        sntp.use(settings("a"), file)  # as when the script is loaded anew
        await until(lambda: len(asked) > before)
        sntp.close()

    asyncio.run(run())


# When


def _sntp(machine: Machine, ask: Any, jitter: float = 0.0) -> Sntp:
    return Sntp(
        machine.moments,
        ask=ask,
        wall=lambda: machine.wall,
        steady=lambda: machine.steady,
        sleep=machine.sleep,
        jitter=lambda: jitter,
    )


async def _run(machine: Machine, ask: Any, ntp: Ntp, *, jitter: float = 0.0, file: File | None = None) -> Sntp:
    """Until the machine's time is over."""
    sntp = _sntp(machine, ask, jitter)
    sntp.use(ntp, file or File())
    await until(lambda: machine.steady - machine.began >= machine.ends_at, 20)
    sntp.close()
    return sntp


def times(machine: Machine, verdicts: list[Verdict], ntp: Ntp, **options: Any) -> list[float]:
    """When the server was asked, in seconds since the start; the last of `verdicts` is repeated."""
    asked: list[float] = []

    def ask(*_: object) -> Verdict:
        asked.append(round(machine.steady - machine.began, 3))
        return verdicts.pop(0) if len(verdicts) > 1 else verdicts[0]

    asyncio.run(_run(machine, ask, ntp, **options))
    return asked


GOOD = Sample((HOST, 1), 40, 1)


@pytest.mark.parametrize("jitter, again", [(0.0, [0, 3240, 6480]), (1.0, [0, 3600, 7200])])
def test_it_is_asked_at_the_start_and_before_it_is_stale(jitter: float, again: list[float]) -> None:
    machine = Machine(ends_at=7300)
    assert times(machine, [GOOD], settings("a", stale_after_ms=3_600_000), jitter=jitter) == again
    assert max(machine.slept) <= 5


def test_after_a_failure_ever_more_seldom_and_at_once_when_all_is_well() -> None:
    asked = times(Machine(ends_at=13_000), [Refusal.SILENT] * 5 + [GOOD], settings("a", stale_after_ms=3_600_000))
    assert asked == [0, 60, 180, 420, 900, 1860, 1860 + 3240, 1860 + 6480, 1860 + 9720]


def test_never_more_often_than_is_decent() -> None:
    asked = times(Machine(ends_at=200), [GOOD], settings("a", stale_after_ms=1))
    assert {later - earlier for earlier, later in itertools.pairwise(asked)} == {SOONEST_S}


@pytest.mark.parametrize("jump_s", [3600, -3600, 28_800, 315_576_000, -315_576_000, 3])
def test_when_the_clock_jumps_it_is_measured_anew(jump_s: float) -> None:
    machine = Machine(ends_at=1200)
    machine.events[600] = lambda: machine.jump(jump_s)
    asked = times(machine, [GOOD], settings("a"))
    assert len(asked) == 2
    assert 600 <= asked[1] <= 605


def test_after_a_jump_it_is_stale_and_what_was_believed_goes_on() -> None:
    machine = Machine(ends_at=60)
    machine.events[30] = lambda: machine.jump(3600)
    release, seen = threading.Event(), []

    def ask(*_: object) -> Verdict:
        if machine.steady > machine.began:
            seen.append((sntp.ntp()["status"], machine.moments.now_ms()))
            release.wait(5)
            return Sample((HOST, 1), 40 - 3_600_000, 1)
        return GOOD

    async def run() -> None:
        sntp.use(settings("a"), File())
        await until(lambda: seen)
        assert sntp.ntp()["status"] == "stale"
        release.set()
        await until(lambda: sntp.ntp()["status"] == "synced")
        sntp.close()

    sntp = _sntp(machine, ask)
    started_ms = machine.wall * 1000
    asyncio.run(run())
    status, now_ms = seen[0]
    assert status == "stale"
    assert now_ms - started_ms <= 40_000, "a jump brings nothing forward"
    assert abs(machine.moments.now_ms() - started_ms) <= 70_000


def test_a_jump_while_the_servers_are_asked_voids_what_they_say() -> None:
    machine = Machine(ends_at=100)
    asked: list[float] = []

    def ask(*_: object) -> Verdict:
        asked.append(machine.steady - machine.began)
        if len(asked) == 1:
            machine.jump(1800)
            return GOOD
        assert (file.json["status"], file.json["offsetMs"], file.json["lastError"]) == ("error", 0, Refusal.JUMPED)
        return Sample((HOST, 1), 40 - 1_800_000, 1)

    file = File()
    sntp = asyncio.run(_run(machine, ask, settings("a"), file=file))
    assert asked == [0, SOONEST_S]
    assert sntp.ntp()["status"] == "synced"
    assert machine.moments.offset_ms == file.json["offsetMs"] == 40 - 1_800_000


def test_to_switch_it_off_is_no_reason_to_believe_a_clock_that_has_jumped() -> None:
    machine = Machine()

    async def run() -> None:
        sntp = _sntp(machine, lambda *_: Refusal.SILENT)
        sntp.use(settings("a"), File())
        before_ms = machine.moments.now_ms()
        machine.jump(3600)
        assert machine.moments.now_ms() == before_ms
        sntp.use(None, File())
        assert machine.moments.now_ms() == before_ms

    asyncio.run(run())


def test_a_clock_that_jumps_all_the_time_does_not_make_us_pester_anybody() -> None:
    machine = Machine(ends_at=400)
    for second in range(5, 400, 5):
        machine.events[second] = partial(machine.jump, 100)
    asked = times(machine, [GOOD], settings("a"))
    assert min(later - earlier for earlier, later in itertools.pairwise(asked)) >= SOONEST_S


def test_a_server_that_wants_to_be_left_alone_is() -> None:
    machine = Machine(ends_at=40_000)
    asked: list[str] = []

    def ask(server: str, _: float) -> Verdict:
        asked.append(server)
        number = ord(server)
        return Refusal.SENT_AWAY if server == "c" else Sample((HOST, number), 40, 1)

    sntp = asyncio.run(_run(machine, ask, settings("a", "b", "c")))
    assert sorted(asked) == ["a", "a", "a", "b", "b", "b", "c"]
    assert sntp.ntp()["servers"] == 2


def test_the_file_is_written_when_there_is_something_new() -> None:
    file = File()
    asyncio.run(_run(Machine(ends_at=20_000), lambda *_: Refusal.SILENT, settings("a"), file=file))
    assert file.saved == 1


# Nobody waits for it


def test_a_name_that_takes_for_ever_delays_nobody() -> None:
    """Its thread is none of those that calls wait with, it is asked once however long it hangs, and no exit waits for it."""
    release = threading.Event()
    asked: list[str] = []

    def ask(server: str, _: float) -> Verdict:
        asked.append(server)
        assert threading.current_thread().daemon
        if server == "hangs":
            release.wait(900)
        return Sample((HOST, ord(server[0])), 40, 1)

    async def run() -> None:
        sntp = _sntp(machine, ask)
        sntp.use(settings("hangs", "a", "b"), File())
        while asked.count("a") < 3:
            await asyncio.gather(*(asyncio.to_thread(int) for _ in range(40)))
            await asyncio.sleep(0.001)
        assert sntp.ntp()["status"] == "synced"
        sntp.close()

    machine = Machine()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("routecodex.addons.sntp._LOOKUP_S", 0.05)
        asyncio.run(run())
    hanging = [thread for thread in threading.enumerate() if thread.name == "ntp hangs"]
    release.set()
    assert asked.count("hangs") == 1
    assert len(hanging) == 1, "it was waited for, at the end at the latest"
    hanging[0].join(60)


def test_closing_while_servers_are_asked_leaves_nothing_behind(
    servers: Servers, moments: Moments, monkeypatch: pytest.MonkeyPatch
) -> None:
    servers.add("a", wait_s=0.2)
    raised: list[object] = []
    monkeypatch.setattr("threading.excepthook", raised.append)

    async def run() -> None:
        sntp = Sntp(moments, ask=servers.ask)
        sntp.use(settings("a"), File())
        await until(lambda: servers.running["a"].heard)
        sntp.close()

    asyncio.run(run())
    ends = time.monotonic() + 60
    while any(thread.name == "ntp a" for thread in threading.enumerate()):
        assert time.monotonic() < ends
        time.sleep(0.01)
    assert raised == [], "the answer came when the loop was gone"
    assert moments.offset_ms == 0


# The rest of the clock


def test_c33_no_sweep_removes_the_state(tmp_path: Path, moments: Moments) -> None:
    store = ClockStore(tmp_path)
    store.update("s", lambda _: [Task("t", "s", 1000, 1000, 1000, "old")])
    synced_once(Sntp(moments, ask=lambda *_: GOOD), settings("a"), store)
    raw = (tmp_path / "clock" / NTP_STATE).read_bytes()
    assert store.sweep(int(time.time() * 1000) + 10 * 365 * 86_400_000, 0) == 1
    FileStore(tmp_path).sweep(time.time() + 10 * 365 * 86_400, 1)
    ClockStore(tmp_path)
    assert (tmp_path / "clock" / NTP_STATE).read_bytes() == raw
    assert [path.name for path in (tmp_path / "clock").iterdir() if path.is_file()] == [NTP_STATE]


@pytest.mark.parametrize("offset_ms", [0, 1500, -1500, 3_000_000, -3_000_000])
def test_c39_the_tool_tells_the_corrected_time(offset_ms: int) -> None:
    machine = Machine(wall=1_790_000_000.25, ends_at=10)
    sntp = asyncio.run(_run(machine, lambda *_: Sample((HOST, 1), offset_ms, 7), settings("a")))
    desk = ToolDesk(None, None, "r", "", machine.moments.moment(), None, 60_000, 1_200_000, lambda: "id", sntp.ntp())
    told = answer({"action": "get", "items": [], "taskId": ""}, desk)
    now_ms = round(machine.wall * 1000) + offset_ms
    assert told["nowMs"] == now_ms
    seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now_ms // 1000))
    assert told["utc"] == f"{seconds}.{now_ms % 1000:03}Z"
    assert told["ntp"] == {
        "status": "synced",
        "offsetMs": offset_ms,
        "updatedAtMs": 1_790_000_000_250,
        "servers": 1,
        "rttMs": 7,
        "note": "one server only, confirmed by no other",
    }


# In a real proxy

CLOCK = "  clock: {enabled: true, ntp: {servers: [no-such-host.invalid, 127.0.0.1], timeoutMs: 200}}\n"


@pytest.mark.system
def test_c32_calls_go_on_where_no_time_server_is_reached(provider: FakeProvider, tmp_path: Path) -> None:
    with Mitmdump(script=SCRIPT, config=CONFIG + CLOCK, upstream=provider, folder=tmp_path) as proxy:
        tool = Tool(provider, proxy)
        path = proxy.sessions / "clock" / NTP_STATE
        ends = time.monotonic() + 60
        answers = []
        while not path.exists() or len(answers) < 3:
            assert time.monotonic() < ends, proxy.log
            answers.append(tool.ask("hello"))
        state = json.loads(path.read_bytes())
        assert (state["status"], state["offsetMs"]) == ("error", 0)
        assert "the name is not found (1 of 2)" in state["lastError"]
        assert {answer.status for answer in answers} == {200}
        assert f"NTP: {state['lastError']}" in proxy.log
        assert proxy.stop() == 0
        assert "Traceback" not in proxy.log


# ---- several processes ----


def test_only_one_of_several_asks_and_the_others_go_by_it() -> None:
    """A new measure counts as one's own; one from before a jump of the clock does not."""
    machine, file, asked = Machine(ends_at=60), File(), []

    def ask(server: str, timeout_s: float) -> Verdict:
        asked.append(server)
        return Refusal.SILENT

    def write(offset_ms: int, status: str) -> None:
        updated = round(machine.wall * 1000)
        file.raw = json.dumps({"version": 1, "status": status, "offsetMs": offset_ms, "updatedAtMs": updated}).encode()

    heard: list[tuple[int, object]] = []
    machine.events = {
        1: lambda: write(1500, "synced"),
        9: lambda: heard.append((sntp.offset_ms(), sntp.ntp()["status"])),
        11: lambda: machine.jump(3600),
        20: lambda: heard.append((sntp.offset_ms(), sntp.ntp()["status"])),
        21: lambda: write(-3_600_000, "synced"),
        30: lambda: heard.append((sntp.offset_ms(), sntp.ntp()["status"])),
    }
    sntp = Sntp(
        machine.moments, ask=ask, wall=lambda: machine.wall, steady=lambda: machine.steady, sleep=machine.sleep, asks=False
    )

    async def main() -> None:
        sntp.use(settings("a", "b"), file)
        await until(lambda: len(heard) == 3)
        assert machine.moments.now_ms() == round((machine.wall - 3600) * 1000), "its measure is believed at once"
        sntp.close()

    asyncio.run(main())
    assert (asked, file.saved) == ([], 0)
    assert heard == [(1500, "synced"), (1500, "synced"), (-3_600_000, "synced")]
