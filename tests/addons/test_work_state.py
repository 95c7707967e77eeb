"""M25-M29: `bd` is asked in the right folder, in time, once in a while, and whatever it does harms nobody."""

from __future__ import annotations

import asyncio
import json
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from routecodex.addons.work_state import PREFIX, WorkStateProbe
from routecodex.routing.dialects.calls import read_call
from routecodex.routing.stop_message.work_state import Work
from routecodex.routing.values import Call, Dialect, Endpoint

ISSUE = '[{"id": "bd-1"}]'
EMPTY = "[]"
LIST = "--no-db list --status in_progress --json"
READY = "--no-db ready --json"
SCRIPT = """#!/bin/sh
echo "$PWD: $*" >> {log}
env > {log}.env
case "$*" in
  *list*) {on_list} ;;
  *) {on_ready} ;;
esac
"""


@dataclass
class Bench:
    """A `bd` of our own, projects, and a probe."""

    folder: Path
    environment: dict[str, str] = field(default_factory=dict)
    now: float = 1000.0

    def __post_init__(self) -> None:
        (self.folder / "bin").mkdir()
        self.environment = {"PATH": f"{self.folder / 'bin'}:/usr/bin:/bin", "GLM_KEY": "secret-key", "HOME": str(self.folder)}
        self.probe = WorkStateProbe(self.environment, lambda: self.now)

    def bd(self, on_list: str, on_ready: str = "echo '[]'") -> None:
        file = self.folder / "bin" / "bd"
        file.write_text(SCRIPT.format(log=self.folder / "log", on_list=on_list, on_ready=on_ready))
        file.chmod(0o755)

    def project(self, name: str = "project", *, beads: bool = True) -> Path:
        path = self.folder / name / "sub"
        path.mkdir(parents=True, exist_ok=True)
        if beads:
            (self.folder / name / ".beads").mkdir(exist_ok=True)
        return path

    def asks(self, call: Call) -> Work:
        return asyncio.run(self.probe(call))

    @property
    def log(self) -> list[str]:
        file = self.folder / "log"
        return file.read_text().splitlines() if file.exists() else []


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def call_in(folder: Path | str | None, *runs: tuple[str, str]) -> Call:
    messages: list[dict[str, Any]] = [{"role": "system", "content": f"Working directory: {folder}"}] if folder else []
    messages.append({"role": "user", "content": "go on"})
    for number, (command, output) in enumerate(runs):
        function = {"name": "sh", "arguments": json.dumps({"command": command})}
        messages.append({"role": "assistant", "tool_calls": [{"id": f"c{number}", "type": "function", "function": function}]})
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": output})
    return read_call(json.dumps({"model": "m", "messages": messages}).encode(), Endpoint(Dialect.CHAT))


IN_PROGRESS_TEXT = ("bd show bd-1", "status: in_progress")
IDLE_TEXTS = (("bd list --status in_progress", EMPTY), ("bd ready", EMPTY))


def test_m25_an_item_in_progress_takes_one_call(bench: Bench) -> None:
    bench.bd(f"echo '{ISSUE}'")
    work = bench.project()
    assert bench.asks(call_in(work)) is Work.ACTIVE
    assert bench.log == [f"{work}: {LIST}"]


def test_m25_ready_work_counts_as_well(bench: Bench) -> None:
    bench.bd("echo '[]'", f"echo '{ISSUE}'")
    work = bench.project()
    assert bench.asks(call_in(work)) is Work.ACTIVE
    assert bench.log == [f"{work}: {LIST}", f"{work}: {READY}"]


def test_m26_runtime_idle_wins_over_the_text(bench: Bench) -> None:
    bench.bd("echo '[]'")
    assert bench.asks(call_in(bench.project(), IN_PROGRESS_TEXT)) is Work.IDLE


FAILURES = [
    ("exit", "exit 3"),
    ("no-json", "echo 'no database'"),
    ("nothing", "true"),
    ("killed", "kill -9 $$"),
    ("an-error-after-output", f"echo '{ISSUE}'; exit 1"),
    ("too-much", "yes '[1234567890]' | head -c 5000000"),
]


@pytest.mark.parametrize("does", [pytest.param(does, id=f"M27-{name}") for name, does in FAILURES])
def test_m27_a_failing_command_leaves_it_to_the_text(bench: Bench, does: str) -> None:
    bench.bd(does)
    work = bench.project()
    assert bench.asks(call_in(work, IN_PROGRESS_TEXT)) is Work.ACTIVE
    bench.environment[f"{PREFIX}MODE"] = "runtime"
    bench.now += 60
    assert bench.asks(call_in(work, IN_PROGRESS_TEXT)) is Work.UNKNOWN


def test_m27_no_bd_at_all(bench: Bench) -> None:
    bench.environment["PATH"] = str(bench.folder / "bin")
    work = bench.project()
    assert bench.asks(call_in(work)) is Work.UNKNOWN
    assert bench.asks(call_in(work, IN_PROGRESS_TEXT)) is Work.ACTIVE


@pytest.mark.parametrize("path", ["bin", ".", ""])
def test_a_bd_in_a_relative_place_is_never_run(bench: Bench, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.bd("echo '[]'")
    monkeypatch.chdir(bench.folder)
    bench.environment["PATH"] = path
    assert bench.asks(call_in(bench.project())) is Work.UNKNOWN
    assert bench.log == []


@pytest.mark.parametrize(
    "where",
    ["no-project", "missing", "a-file", "relative/path", "", None, "/", "bad\x00name"],
    ids=lambda where: f"M28-{where!a}",
)
def test_m28_no_project_is_not_idle(bench: Bench, where: str | None) -> None:
    bench.bd("echo '[]'")
    bench.project("no-project", beads=False)
    (bench.folder / "a-file").write_text("x")
    folder = where if where in (None, "", "/", "relative/path") else f"{bench.folder}/{where}"
    assert bench.asks(call_in(folder)) is Work.UNKNOWN
    assert bench.asks(call_in(folder, *IDLE_TEXTS)) is Work.UNKNOWN
    assert bench.log == []


def test_m29_each_session_asks_in_its_own_folder(bench: Bench) -> None:
    bench.bd('case "$PWD" in *one*) echo "[1]" ;; *) echo "[]" ;; esac')
    one, other = bench.project("one"), bench.project("other")
    assert [bench.asks(call_in(one)), bench.asks(call_in(other))] == [Work.ACTIVE, Work.IDLE]
    assert bench.log == [f"{one}: {LIST}", f"{other}: {LIST}", f"{other}: {READY}"]


def test_the_operators_folder_comes_first(bench: Bench) -> None:
    bench.bd("echo '[]'")
    named = bench.project("named")
    bench.environment[f"{PREFIX}WORKDIR"] = str(named)
    assert bench.asks(call_in(bench.project("stated"))) is Work.IDLE
    assert bench.asks(call_in(None)) is Work.IDLE
    assert bench.log == [f"{named}: {LIST}", f"{named}: {READY}"]


@pytest.mark.parametrize(
    "mode,runs,work,asked",
    [
        ("heuristic", IDLE_TEXTS, Work.IDLE, 0),
        ("heuristic", (IN_PROGRESS_TEXT,), Work.ACTIVE, 0),
        ("heuristic", (), Work.UNKNOWN, 0),
        ("runtime", (IN_PROGRESS_TEXT,), Work.IDLE, 2),
        ("auto", (IN_PROGRESS_TEXT,), Work.IDLE, 2),
        (" RunTime ", (), Work.IDLE, 2),
        ("nonsense", (), Work.IDLE, 2),
    ],
)
def test_modes(bench: Bench, mode: str, runs: tuple[tuple[str, str], ...], work: Work, asked: int) -> None:
    bench.bd("echo '[]'")
    bench.environment[f"{PREFIX}MODE"] = mode
    assert bench.asks(call_in(bench.project(), *runs)) is work
    assert len(bench.log) == asked


def test_what_was_said_holds_for_a_while(bench: Bench) -> None:
    bench.bd("echo '[]'")
    call = call_in(bench.project())
    bench.environment[f"{PREFIX}CACHE_TTL_MS"] = "3000"
    for _ in range(3):
        assert bench.asks(call) is Work.IDLE
    assert len(bench.log) == 2
    bench.bd(f"echo '{ISSUE}'")
    bench.now += 2.9
    assert bench.asks(call) is Work.IDLE
    bench.now += 0.2
    assert bench.asks(call) is Work.ACTIVE


def test_many_at_once_ask_once(bench: Bench) -> None:
    bench.bd("sleep 0.1; echo '[1]'")
    call = call_in(bench.project())

    async def ask() -> list[Work]:
        return list(await asyncio.gather(*(bench.probe(call) for _ in range(20))))

    assert asyncio.run(ask()) == [Work.ACTIVE] * 20
    assert len(bench.log) == 1


def _alive(file: Path) -> list[int]:
    pids = [int(word) for word in file.read_text().split()] if file.exists() else []
    return [pid for pid in pids if Path(f"/proc/{pid}/cmdline").exists() and Path(f"/proc/{pid}/cmdline").read_bytes()]


@pytest.mark.parametrize(
    "hang", ["sleep 900", "sleep 900 & echo $! >> {pids}; sleep 900", "sleep 900 & echo $! >> {pids}; exit 0"]
)
def test_a_hanging_bd_is_ended_with_its_children(bench: Bench, hang: str) -> None:
    pids = bench.folder / "pids"
    bench.bd(f"echo $$ >> {pids}; " + hang.format(pids=pids))
    bench.environment[f"{PREFIX}TIMEOUT_MS"] = "200"
    assert bench.asks(call_in(bench.project())) is Work.UNKNOWN
    _eventually(lambda: _alive(pids) == [])


@pytest.mark.parametrize("beginning", [False, True], ids=["it runs", "it is just being begun"])
def test_m14_a_client_that_leaves_ends_it_too(bench: Bench, beginning: bool) -> None:
    pids = bench.folder / "pids"
    bench.bd(f"echo $$ >> {pids}; sleep 900")

    async def leave() -> None:
        task = asyncio.ensure_future(bench.probe(call_in(bench.project())))
        for _ in range(500):
            if _alive(pids):
                break
            if beginning:
                time.sleep(0.02)  # noqa: ASYNC251 - the program gets on while our loop does not
            await asyncio.sleep(0 if beginning else 0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(leave())
    _eventually(lambda: _alive(pids) == [])


def _eventually(holds: Any) -> None:
    """Long before a program that was begun here ends by itself."""
    deadline = time.monotonic() + 60
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert holds(), "a program goes on that nobody waits for"


def test_it_sees_no_key(bench: Bench) -> None:
    bench.bd("echo '[]'")
    bench.asks(call_in(bench.project()))
    environment = (bench.folder / "log.env").read_text()
    assert "HOME=" in environment
    assert "secret-key" not in environment


@pytest.mark.parametrize("name", ["a b", "$(touch pwned)", "`touch pwned`", "; touch pwned", "ü字", "x" * 200, "-rf"])
def test_no_shell_reads_the_folders_name(bench: Bench, name: str) -> None:
    bench.bd("echo '[]'")
    work = bench.project(name)
    assert bench.asks(call_in(work)) is Work.IDLE
    assert bench.log[0] == f"{work}: {LIST}"
    assert list(bench.folder.rglob("pwned")) == []
    assert not os.path.exists("pwned")


@pytest.mark.parametrize("value", ["", "x", "-5", "1e9", "99999999999999999999", "0"])
def test_odd_figures_do_no_harm(bench: Bench, value: str) -> None:
    bench.bd("echo '[]'")
    bench.environment[f"{PREFIX}TIMEOUT_MS"] = "" if value == "0" else value
    bench.environment[f"{PREFIX}CACHE_TTL_MS"] = value
    assert bench.asks(call_in(bench.project())) is Work.IDLE


def test_memory_is_bounded(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("routecodex.addons.work_state._MOST_REMEMBERED", 4)
    bench.bd("echo '[1]'")
    for number in range(12):
        bench.asks(call_in(bench.project(f"p{number}")))
    assert len(bench.probe._known) <= 4
    assert len(bench.probe._asking) <= 5
