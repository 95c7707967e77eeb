"""Calls as agents make them, against plain mitmdump: long histories with tools and their results, a tag at the beginning.

1. Every row says when the first byte of a streamed answer came, and the last; and how much the proxy computed until then, which
   other work on the machine changes little.
2. The two proxies take turns, call by call. A difference is the median of the pairs.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from routecodex.routing.clock.record import write_record
from routecodex.routing.clock.tasks import Task
from routecodex.routing.sessions.state import SessionState, Sticky
from routecodex.routing.sessions.store import FileStore, SessionKey
from routecodex.routing.storage.names import file_name
from tests.bench.load import GO_ON, URL, WrongAnswer, exchange, make_request
from tests.bench.upstream import SHORT
from tests.rig.client import Route
from tests.rig.pipe import Pipe
from tests.rig.proxy import Mitmdump

AGENT = 5_000_000
"""Sessions of their own."""
MANY = 10_000
_CODE = "    for place, value in enumerate(values):\n        found.append(transformed(value, place) if value < limit else None)\n"
_TOOLS = [
    {
        "name": f"tool_{number}",
        "description": "Reads, writes or runs something, and says what came of it. " * 8,
        "input_schema": {
            "type": "object",
            "properties": {"path": {"type": "string", "description": "Where."}, "lines": {"type": "integer"}},
            "required": ["path"],
        },
    }
    for number in range(20)
]


def agent_call(size: int, session: int, tag: str = "", *, first: str = "", answered: str = "I look.") -> bytes:
    """60 messages: a typed one, then calls of tools and what came of them, up to so many bytes."""
    each = max(0, size - 14_000) // 29
    result = (_CODE * (each // len(_CODE) + 1))[:each]
    history: list[dict[str, Any]] = [
        {"role": "user", "content": [{"type": "text", "text": first or f"{tag} Mend the failing test."}]},
        {"role": "assistant", "content": [{"type": "text", "text": answered}]},
        {"role": "user", "content": [{"type": "text", "text": "And now the other one."}]},
    ]
    for hop in range(29):
        called = {"type": "tool_use", "id": f"toolu_{hop:04}", "name": f"tool_{hop % 20}", "input": {"path": f"src/{hop}.py"}}
        history.append({"role": "assistant", "content": [{"type": "text", "text": "Next."}, called]})
        history.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": called["id"], "content": result}]})
    call = {"model": SHORT, "max_tokens": 1024, "stream": True, "tools": _TOOLS, "messages": history}
    return make_request(session=session, body=json.dumps(call, separators=(",", ":")).encode())


@dataclass(frozen=True)
class Row:
    name: str
    make: Callable[[int, str], bytes]
    """The call in the session of this number, with this tag in its first message."""
    times: int
    more_ms: float | None = None
    """At most so much more until the first byte."""
    most: float | None = None
    """At most so many times plain's."""
    side: str = "there"
    anew: bool = False
    """Each call in a session of its own."""


def hidden(session: int, tag: str) -> bytes:
    return agent_call(330_000, session, first=f"{tag} {GO_ON}", answered="A short answer.\n\nA short answer.")


def small(session: int, tag: str) -> bytes:
    return make_request(text=f"{tag} Say something short.", model=SHORT, stream=True, session=session)


def typed(session: int, tag: str) -> bytes:
    words = "the quick brown fox jumps over the lazy dog, and writes a line of code. " * (332_000 // 72)
    return make_request(text=f"{words}{tag}", model=SHORT, stream=True, session=session)


ROWS = (
    Row("a small call with a tag", small, 40, most=1.3),
    Row("332 kB typed", lambda session, tag: typed(session, ""), 20, most=1.3),
    Row("332 kB typed, with a tag", typed, 20, most=1.5),
    Row("agent's call of 330 kB", lambda session, tag: agent_call(330_000, session, tag), 20, 1.0),
    Row("agent's call of 1.3 MB", lambda session, tag: agent_call(1_300_000, session, tag), 10, 3.5),
    Row("agent's call of 10 MB", lambda session, tag: agent_call(10_000_000, session, tag), 3),
    Row("its first call in a session", lambda session, tag: agent_call(330_000, session, tag), 10, anew=True),
    Row("330 kB, with hidden rounds", hidden, 10),
    Row("330 kB, translated", lambda session, tag: agent_call(330_000, session, tag), 20, 1.5, side="translated"),
    Row("330 kB, 10,000 sessions and reminders", lambda session, tag: agent_call(330_000, session, tag), 10, side="many"),
    Row("330 kB, 200 providers of 50 models", lambda session, tag: agent_call(330_000, session, tag), 10, side="wide"),
)


def provider(name: str, protocol: str, models: int = 1) -> str:
    url = f"https://{name}.example" + ("/v1" if protocol == "openai-chat" else "")
    names = ", ".join([f"{SHORT}: {{}}", *(f"m{number}: {{}}" for number in range(1, models))])
    return f"""
    {name}:
      protocol: {protocol}
      baseURL: {url}
      auth: {{type: apikey, keys: [{{alias: one, value: bench}}]}}
      models: {{{names}}}"""


def config(*providers: str) -> str:
    return f"""
proxy: {{interceptHosts: [api.anthropic.com]}}
virtualrouter:
  providers:{"".join(providers)}
  routing: {{default: [origin]}}
"""


THERE = provider("there", "anthropic-messages")
CONFIGS = {
    "there": config(THERE),
    "translated": config(provider("there", "openai-chat")),
    "many": config(THERE),
    "wide": config(THERE, *(provider(f"p{number}", "anthropic-messages", 50) for number in range(199))),
}
GOES_THERE = f"<**!there.{SHORT}**>"


def fill(folder: Path) -> None:
    """Sessions and reminders of others, as they lie on disk."""
    now = round(time.time() * 1000)
    (folder / "clock").mkdir(parents=True, exist_ok=True)
    FileStore(folder).update(SessionKey("session", "other-0"), lambda _: SessionState(sticky=Sticky("there", "one", SHORT)))
    written = (folder / file_name("session", "other-0")).read_bytes()
    for number in range(MANY):
        id = f"other-{number}"
        (folder / file_name("session", id)).write_bytes(written.replace(b"other-0", id.encode()))
        task = Task(f"t{number}", id, now + 86_400_000, now, now, "Look whether it is done.")
        (folder / "clock" / file_name("", id)).write_bytes(write_record(id, (task,), now))


@dataclass(frozen=True, slots=True)
class Took:
    first_ms: float
    last_ms: float
    first_cpu_ms: float
    last_cpu_ms: float


def cpu_ns(pid: int) -> int:
    """What all threads of a process have computed; 0 where the system does not say."""
    total = 0
    for task in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        try:
            total += int(task.read_text().split()[0])
        except OSError:
            continue
    return total


async def timed(pipe: Pipe, request: bytes, proxy: Mitmdump) -> Took:
    began, computed = time.perf_counter(), cpu_ns(proxy.pid)
    await pipe.write(request)
    head = await pipe.read_until(b"\r\n\r\n")
    if not head.lower().startswith(b"http/1.1 200"):
        raise WrongAnswer(head.decode("latin-1") + bytes(pipe.buffer[:500]).decode("latin-1"))
    while not pipe.buffer:
        await pipe.more()
    first, first_computed = time.perf_counter(), cpu_ns(proxy.pid)
    if b"content-length:" in head.lower():
        raise WrongAnswer("not a stream")
    while not pipe.buffer.endswith(b"\r\n0\r\n\r\n"):
        await pipe.more()
    last, last_computed = time.perf_counter(), cpu_ns(proxy.pid)
    if b"word 0" not in pipe.take(len(pipe.buffer)):
        raise WrongAnswer("not the provider's answer")
    return Took(*(1e3 * (at - began) for at in (first, last)), *((at - computed) / 1e6 for at in (first_computed, last_computed)))


@dataclass
class Compared:
    row: Row
    plain: list[Took] = field(default_factory=list)
    ours: list[Took] = field(default_factory=list)

    def median(self, name: str, side: str) -> float:
        return statistics.median(getattr(took, name) for took in getattr(self, side))

    def more(self, name: str) -> float:
        return statistics.median(getattr(b, name) - getattr(a, name) for a, b in zip(self.plain, self.ours, strict=True))

    @property
    def times(self) -> float:
        """What ours computes until the first byte, in plain's."""
        return statistics.median(b.first_cpu_ms / a.first_cpu_ms for a, b in zip(self.plain, self.ours, strict=True))

    @property
    def met(self) -> bool:
        """By what it computes: the time itself belongs to whatever else the machine does."""
        if self.row.most is not None and round(self.times, 2) > self.row.most:
            return False
        return self.row.more_ms is None or self.more("first_cpu_ms") <= self.row.more_ms

    @property
    def goal(self) -> str:
        if self.row.more_ms is None and self.row.most is None:
            return ""
        asked = f"+{self.row.more_ms:g}" if self.row.more_ms is not None else f"{self.row.most:g} ×"
        return f"  goal ≤ {asked}  {'ok' if self.met else 'MISSED'}"


async def quiet(proxy: Mitmdump) -> None:
    """Until it has nothing to do any more, as behind its start."""
    for _ in range(100):
        before = cpu_ns(proxy.pid)
        await asyncio.sleep(0.2)
        if cpu_ns(proxy.pid) - before < 2_000_000:
            return


async def measure(plain: Mitmdump, start: Callable[[str, Path], Mitmdump], folder: Path, rounds: int) -> list[Compared]:
    """Every row; `start` begins a proxy of ours in the folder of this name, with the configuration in this file."""
    started: dict[str, Mitmdump] = {}
    found: list[Compared] = []
    for number, row in enumerate(ROWS):
        if row.side not in started:
            file = folder / f"{row.side}.yaml"
            file.write_text(CONFIGS[row.side], encoding="utf-8")
            if row.side == "many":
                fill(folder / row.side / "sessions")
            started[row.side] = start(row.side, file)
        found.append(await compare(row, plain, started[row.side], rounds, AGENT + 10_000 * number))
    return found


async def compare(row: Row, plain: Mitmdump, ours: Mitmdump, rounds: int, session: int) -> Compared:
    """One pair of calls after another, in changing order."""
    compared = Compared(row)
    await quiet(ours)
    sides = [(plain, await Route(URL, plain).open("http/1.1"), ""), (ours, await Route(URL, ours).open("http/1.1"), GOES_THERE)]
    try:
        for number in range(-1, rounds * row.times):
            at = session + max(0, number if row.anew else 0)
            for proxy, pipe, tag in sides if number % 2 else sides[::-1]:
                if number < 0 or row.anew:
                    first = f"{tag} {GO_ON if row.make is hidden else 'Mend the failing test.'}"
                    if not (row.anew and number >= 0):
                        await exchange(pipe, make_request(text=first, session=at))
                took = await timed(pipe, row.make(at, tag), proxy)
                if number >= 0:
                    (compared.plain if proxy is plain else compared.ours).append(took)
    finally:
        for _, pipe, _ in sides:
            pipe.close()
    return compared


def report(found: Sequence[Compared]) -> bool:
    print("\nCalls as agents make them, to another host than their own; milliseconds of the proxy's computing (and of time).")
    heads = f"{'to the first byte: plain':>26} {'ours':>14} {'more':>7} {'×':>5} {'to the last: ×':>15}"
    print(f"{'':40} {heads}")
    for one in found:
        cpu = [one.median("first_cpu_ms", side) for side in ("plain", "ours")]
        wall = [one.median("first_ms", side) for side in ("plain", "ours")]
        ratio = one.median("last_cpu_ms", "ours") / (one.median("last_cpu_ms", "plain") or 1)
        shown = [f"{a:.2f} ({b:.2f})" for a, b in zip(cpu, wall, strict=True)]
        compared = f"{one.more('first_cpu_ms'):+7.2f} {one.times:5.2f} {ratio:15.2f}"
        print(f"{one.row.name:40} {shown[0]:>26} {shown[1]:>14} {compared}{one.goal}")
    return all(one.met for one in found)
