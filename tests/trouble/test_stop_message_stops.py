"""R14 and S5: N times means N times, however often the tag is repeated, whoever dies, however many count."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from routecodex.routing.clients.typed import typed_messages
from routecodex.routing.dialects.calls import read_call
from routecodex.routing.dialects.said import Said
from routecodex.routing.sessions.state import SessionState, StopMessage
from routecodex.routing.sessions.store import FileStore, SessionKey
from routecodex.routing.stop_message.decide import Continue, Info, claim, should_continue
from routecodex.routing.storage import disk
from routecodex.routing.tags.obey import Means, orders_for
from routecodex.routing.tags.once import is_new, placed, remembered
from routecodex.routing.tags.typed_tags import tags_of
from routecodex.routing.values import Call, Dialect, Endpoint, Usage
from tests.conftest import LONG
from tests.routing.tags.config_a import REGISTRY
from tests.sheet import seen

ROOT = Path(__file__).parents[2]
MEANS = Means(REGISTRY, now_ms=1, client_model="m", read_text=lambda relative: relative)
KEY = SessionKey("session", "runaway")
TAG = '<**stopMessage:"go on",3**> do it'
PLAIN = Said("some text", (), (), "stop", Usage(), "id", ())


def ask(*texts: str, hops: int = 0) -> Call:
    """A history of typed texts with plain answers between them; `hops` of tools behind the last one."""
    messages: list[dict[str, object]] = []
    for text in texts:
        messages += [{"role": "user", "content": text}, {"role": "assistant", "content": "some text"}]
    messages.pop()
    for number in range(hops):
        function = {"name": "sh", "arguments": "{}"}
        messages.append({"role": "assistant", "tool_calls": [{"id": f"c{number}", "type": "function", "function": function}]})
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": "ok"})
    return read_call(json.dumps({"model": "m", "messages": messages}).encode(), Endpoint(Dialect.CHAT))


def obey(store: FileStore, call: Call) -> SessionState:
    """What one call of the client does to the state."""
    typed = typed_messages(call)
    place, _ = placed(call, typed, typed[-1])
    tags = tags_of(typed[-1])

    def change(state: SessionState) -> SessionState:
        acts = bool(tags) and is_new(state, place)
        new = orders_for(tags, state, MEANS, acts=acts, alone=False).state
        return remembered(new, place, "open") if acts else new

    return store.update(KEY, change)


def take_turn(store: FileStore, claimed: Callable[[], None] = lambda: None) -> int:
    """The loop of one turn against a model that always stops: how many follow-ups were sent."""
    sent = 0
    while isinstance(should_continue(PLAIN, store.load(KEY).stop, Info()), Continue):
        granted: list[bool] = []

        def change(state: SessionState, granted: list[bool] = granted) -> SessionState:
            new, may_send = claim(state, 2)
            granted.append(may_send)
            return new

        store.update(KEY, change)
        if not granted[-1]:
            break
        claimed()
        sent += 1
    return sent


def test_r14_a_hundred_repetitions_three_follow_ups(tmp_path: Path) -> None:
    """The tagged message stays in the history, and is repeated on every tool hop and every later call."""
    store = FileStore(tmp_path)
    sent = []
    for number in range(100):
        obey(store, ask(TAG, hops=number))
        sent.append(take_turn(store))
    assert sent == [3] + [0] * 99
    seen("R14", f"the tagged history {len(sent)} times: {sum(sent)} follow-ups")


def test_r14_later_messages_do_not_arm_it_again(tmp_path: Path) -> None:
    store, sent = FileStore(tmp_path), []
    for number in range(100):
        obey(store, ask(TAG, *(f"question {n}" for n in range(number))))
        sent.append(take_turn(FileStore(tmp_path)))
    assert sent == [3] + [0] * 99


def test_q15_typed_again_it_counts_anew(tmp_path: Path) -> None:
    store, sent = FileStore(tmp_path), []
    for texts in ([TAG], [TAG, "x"], [TAG, "x", TAG], [TAG, "x", TAG]):
        obey(store, ask(*texts))
        sent.append(take_turn(store))
    assert sent == [3, 0, 3, 0]


def test_q18_cleared_it_stays_cleared(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    obey(store, ask(TAG))
    obey(store, ask(TAG, "<**stopMessage:clear**> and now"))
    assert [take_turn(store) for _ in range(3)] == [0, 0, 0]


# Death between the count and the sending, and anywhere else

PROGRAM = """
import os, sys
import tests
from pathlib import Path
from routecodex.routing.sessions.store import FileStore
from tests.rig.patience import wait_for_locks
from tests.trouble.test_stop_message_stops import take_turn

wait_for_locks()
dies = sys.argv[2] == "dies"
log = os.open(sys.argv[3], os.O_WRONLY | os.O_APPEND | os.O_CREAT)

def claimed():
    if dies:
        os._exit(9)
    os.write(log, b"sent\\n")

print(take_turn(FileStore(Path(sys.argv[1])), claimed))
"""


def start(folder: Path, how: str = "lives") -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", PROGRAM, str(folder / "s"), how, str(folder / "log")]
    return subprocess.Popen(command, env=environment, cwd=ROOT, stdout=subprocess.DEVNULL)


def sent_in(folder: Path) -> int:
    log = folder / "log"
    return log.read_text().count("sent") if log.exists() else 0


def test_s5_a_crash_after_each_count_never_gives_one_more(tmp_path: Path) -> None:
    """As many deaths before the round was sent as there are counts: none is left."""
    most = 20 if LONG else 6
    FileStore(tmp_path / "s").update(KEY, lambda state: state.with_(stop=StopMessage("go", most), obeyed_before="0:x"))
    for number in range(most):
        assert start(tmp_path, "dies").wait(60) == 9
        stop = FileStore(tmp_path / "s").load(KEY).stop
        assert (stop.used if stop else most) == number + 1
    assert sent_in(tmp_path) == 0
    assert take_turn(FileStore(tmp_path / "s")) == 0
    seen("S5", f"a crash after each of {most} counts: {sent_in(tmp_path)} sent")


def test_s5_killed_anywhere_the_total_stays_within_n(tmp_path: Path) -> None:
    most, chance = 60, random.Random(5)
    FileStore(tmp_path / "s").update(KEY, lambda state: state.with_(stop=StopMessage("go", most), obeyed_before="0:x"))
    for _ in range(40 if LONG else 8):
        process = start(tmp_path)
        try:
            process.wait(chance.uniform(0.05, 0.5))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        stop = FileStore(tmp_path / "s").load(KEY).stop
        assert sent_in(tmp_path) <= (stop.used if stop else most)
    assert sent_in(tmp_path) + take_turn(FileStore(tmp_path / "s")) <= most
    seen("S5", f"killed anywhere: never more than {most}")


def test_s5_processes_and_threads_share_one_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The threads go on once a process has sent something as well."""
    most = 200
    monkeypatch.setattr(disk, "_LOCK_WAIT_S", 300.0)
    store, sent = FileStore(tmp_path / "s"), []
    store.update(KEY, lambda state: state.with_(stop=StopMessage("go", most), obeyed_before="0:x"))
    deadline = time.monotonic() + 300

    def claimed() -> None:
        while not sent_in(tmp_path) and time.monotonic() < deadline:
            time.sleep(0.001)

    processes = [start(tmp_path) for _ in range(2)]
    threads = [threading.Thread(target=lambda: sent.append(take_turn(store, claimed))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert [process.wait(300) for process in processes] == [0, 0]
    assert sent_in(tmp_path) > 0
    assert sum(sent) > 0
    assert sent_in(tmp_path) + sum(sent) == most
    assert FileStore(tmp_path / "s").load(KEY).stop is None
