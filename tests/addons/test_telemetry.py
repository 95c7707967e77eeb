from __future__ import annotations

import asyncio
import itertools
import logging
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest

from routecodex.addons import telemetry
from routecodex.addons.telemetry import Telemetry
from routecodex.routing.config.values import TelemetrySettings
from tests.routing.telemetry.calls import seen
from tests.routing.telemetry.test_exposition import value
from tests.routing.telemetry.test_otlp import read_spans

COLLECTOR = "http://collector.example:4318"


class Collector:
    """It takes what it is sent, or does what it is told."""

    def __init__(self, *statuses: int | Exception) -> None:
        self.told = list(statuses)
        self.got: list[httpx.Request] = []
        self.taken = threading.Semaphore(0)

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.got.append(request)
        said = self.told.pop(0) if self.told else 200
        self.taken.release()
        if isinstance(said, Exception):
            raise said
        return httpx.Response(said, stream=httpx.ByteStream(b""))  # as from a network: nobody has read it yet

    def wait(self, count: int) -> None:
        for _ in range(count):
            assert self.taken.acquire(timeout=60)

    def spans(self) -> int:
        traces = [request for request in self.got if request.url.path == "/v1/traces"]
        return sum(len(read_spans(one.content).resource_spans[0].scope_spans[0].spans) for one in traces)


def made(collector: Collector, **more: Any) -> Telemetry:
    settings = TelemetrySettings(otlp=COLLECTOR, headers={"x-key": "k"}, **more)
    return Telemetry(settings, "here", every_s=0.01, transport=httpx.MockTransport(collector))


def test_calls_are_sent_as_they_come() -> None:
    collector = Collector()
    telemetry = made(collector)
    for _ in range(3):
        telemetry.note(seen())
    collector.wait(2)
    telemetry.close(60)
    assert collector.spans() == 12
    assert {request.url.path for request in collector.got} == {"/v1/traces", "/v1/metrics"}
    assert {str(request.url.copy_with(path="")) for request in collector.got} == {COLLECTOR}
    assert {request.headers["x-key"] for request in collector.got} == {"k"}


@pytest.mark.parametrize("failure", [503, 429, httpx.ConnectError("refused"), httpx.ReadTimeout("slow")])
def test_what_a_collector_could_not_take_is_sent_again(failure: int | Exception) -> None:
    collector = Collector(failure)
    telemetry = made(collector)
    telemetry.note(seen())
    collector.wait(3)
    telemetry.close(60)
    assert collector.spans() == 8, "the same call twice, and once it was not taken"
    assert "x-key" not in str(telemetry.settings)


class Waits(threading.Event):
    """What somebody waits is only counted."""

    def __init__(self, most_s: float) -> None:
        super().__init__()
        self.most_s, self.waited = most_s, [0.0]

    def wait(self, timeout: float | None = None) -> bool:
        self.waited.append(timeout or 0.0)
        return sum(self.waited) >= self.most_s


@pytest.mark.parametrize("every_s", [5.0, 1.0])
def test_a_collector_that_is_gone_is_asked_after_1_2_4_and_at_most_60_seconds(every_s: float) -> None:
    asked = []

    def refuse(request: httpx.Request) -> httpx.Response:
        asked.append(sum(over.waited))
        raise httpx.ConnectError("refused")

    telemetry = Telemetry(TelemetrySettings(otlp=COLLECTOR), "here", every_s=every_s, transport=httpx.MockTransport(refuse))
    telemetry._over = over = Waits(300)
    telemetry.note(seen())
    assert telemetry._thread is not None
    telemetry._thread.join(60)
    assert [later - before for before, later in itertools.pairwise(asked)][:8] == [1, 2, 4, 8, 16, 32, 60, 60]
    assert max(over.waited) == every_s, "meanwhile who is beside us hears of it as often as ever"


def test_the_log_says_nothing_of_what_is_sent_and_all_that_others_send(caplog: pytest.LogCaptureFixture) -> None:
    collector = Collector()
    telemetry = made(collector)
    with caplog.at_level(logging.INFO):
        telemetry.note(seen())
        collector.wait(2)
        telemetry.close(60)
        assert caplog.messages == []
        httpx.Client(transport=httpx.MockTransport(lambda request: httpx.Response(200))).get("http://others.example")
    assert len(caplog.messages) == 1


def test_what_a_collector_refuses_for_good_is_given_up() -> None:
    collector = Collector(400)
    telemetry = made(collector)
    telemetry.note(seen())
    collector.wait(2)
    telemetry.note(seen())
    collector.wait(2)
    telemetry.close(60)
    assert collector.spans() == 8


def test_a_collector_that_hangs_holds_nobody_up_and_what_waits_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telemetry, "WAITING", 8)
    hangs = threading.Event()
    told: list[httpx.Request] = []

    def hang(request: httpx.Request) -> httpx.Response:
        told.append(request)
        hangs.wait(60)
        return httpx.Response(200)

    one = Telemetry(
        TelemetrySettings(prometheus=True, otlp=COLLECTOR),
        "here",
        every_s=0.01,
        transport=httpx.MockTransport(hang),  # type: ignore[arg-type]
    )
    one._new = type(one._new)(maxlen=8)
    one._unsent = type(one._unsent)(maxlen=8)
    one.note(seen())
    while not told:
        threading.Event().wait(0.01)
    for _ in range(50):
        one.note(seen())
    text = asyncio.run(one.text())
    assert len(one._unsent) <= 8
    assert value(text, "routecodex_calls_total") + value(text, "routecodex_telemetry_dropped_total") >= 51
    hangs.set()
    one.close(60)


def test_workers_tell_their_numbers_together(tmp_path: Path) -> None:
    """Whoever is asked; and what one had counted that died, its follower goes on from."""

    def worker(number: int, parent: int = 7) -> Telemetry:
        beside = telemetry.Beside(lambda: tmp_path, parent, number)
        return Telemetry(TelemetrySettings(prometheus=True), "here", every_s=0.01, beside=beside)

    def told(one: Telemetry) -> tuple[float, float]:
        text = asyncio.run(one.text())
        return value(text, "routecodex_calls_total"), value(text, "gen_ai_client_operation_duration_seconds_count")

    odd = [tmp_path / f"metrics-{name}-0.json" for name in ("x", "", "9" * 30)]
    for path in odd:
        path.write_text("{}")
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait(60)
    for parent in (gone.pid, os.getpid()):
        old = worker(0, parent=parent)
        old.note(seen())
        old.close(60)
    one, other = worker(0), worker(1)
    for _ in range(3):
        one.note(seen())
    first = told(one)
    other.note(seen())
    other.close(60)
    one.close(60)
    calls, rounds = told(one)
    assert (calls, rounds) == (4, first[1] / 3 * 4) == told(other)
    follower = worker(1)
    follower.note(seen())
    assert told(follower) == (5, first[1] / 3 * 5)
    (tmp_path / "metrics-7-9.json").write_text(
        '{"counts": [1, [2], ["x", [], 1]], "buckets": [["routecodex.calls", [], [1], 1]]}'
    )
    assert told(follower)[0] == 5
    assert not list(tmp_path.glob(f"metrics-{gone.pid}-*")), "of a parent that is gone"
    assert not any(path.exists() for path in odd), "of nobody"
    assert list(tmp_path.glob(f"metrics-{os.getpid()}-*")), "of another one that is not"


def test_what_was_shown_is_never_less_for_whoever_takes_ones_place(tmp_path: Path) -> None:
    """Killed before it has told the others by itself."""

    def worker() -> Telemetry:
        beside = telemetry.Beside(lambda: tmp_path, os.getpid(), 0)
        return Telemetry(TelemetrySettings(prometheus=True), "here", every_s=3600, beside=beside)

    one = worker()
    one.note(seen())
    assert value(asyncio.run(one.text()), "routecodex_calls_total") == 1
    follower = worker()
    follower.note(seen())
    assert value(asyncio.run(follower.text()), "routecodex_calls_total") == 2
    for each in (one, follower):
        each.close(60)


def test_nothing_of_it_is_loaded_where_nobody_wants_it() -> None:
    code = "import sys, tests.conftest, routecodex.addons.settings; print([name for name in sys.modules if 'telemetry' in name])"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert said.stdout.strip() == "[]", said.stderr
