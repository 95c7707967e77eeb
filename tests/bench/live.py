"""`python -m tests.bench.live [at-once] [streams] [memory]`: one process with many callers, beside plain mitmdump.

at-once   64 callers, one call after another each: what a call computes in plain mitmdump and in ours, in turns.
streams   200 streams of 20 events a second: how long an event takes through the proxy, told by the time that stands in it. Worth
          something only where plain's p99 is 10 ms or less: else the machine is what is measured.
memory    so many calls (`--calls`), under mitmdump and under mitmweb: what the process holds as they go by.

Loopback only; it ends by itself and ends only what it started.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import random
import re
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from tests.bench.__main__ import start_upstream
from tests.bench.growth import asked
from tests.bench.load import URL, exchange, make_request
from tests.rig.certificates import provider_authority
from tests.rig.client import Route
from tests.rig.pipe import Gone, Pipe
from tests.rig.proxy import SCRIPT, Mitmdump

PLAIN = Path(__file__).with_name("plain.py")
AT_ONCE, STREAMS, EVERY_S = 64, 200, 0.05
_SETTLES_S = 1.0
_STAMP = re.compile(rb'"text":"(\d+\.\d+)"')
_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
    b'event: message_start\ndata: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant",'
    b'"model":"m","content":[],"stop_reason":null,"usage":{"input_tokens":1,"output_tokens":1}}}\n\n',
    b'event: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}\n\n',
)
_TAIL = (
    b'event: content_block_stop\ndata: {"type":"content_block_stop","index":0}\n\n',
    b'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9}}\n\n',
    b'event: message_stop\ndata: {"type":"message_stop"}\n\n',
)


# A provider whose events say when they left


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seconds: float) -> None:
    with contextlib.suppress(OSError, asyncio.IncompleteReadError):
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        await reader.readexactly(int(head.split(b"content-length:")[1].split(b"\r\n")[0]))
        first, *events = _HEAD
        writer.write(first + b"".join(map(_chunk, events)))
        began = time.monotonic() + random.random() * EVERY_S
        for number in range(round(seconds / EVERY_S)):
            await asyncio.sleep(began + number * EVERY_S - time.monotonic())
            delta = f'{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{time.monotonic():.6f}"}}}}'
            writer.write(_chunk(f"event: content_block_delta\ndata: {delta}\n\n".encode()))
        writer.write(b"".join(map(_chunk, _TAIL)) + b"0\r\n\r\n")
        await writer.drain()
    writer.close()


def _chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


async def _serve(seconds: float) -> None:
    context = provider_authority().server_context()
    server = await asyncio.start_server(lambda r, w: _answer(r, w, seconds), "127.0.0.1", 0, ssl=context, backlog=1024)
    port = server.sockets[0].getsockname()[1]
    print(json.dumps({"plain": port, "tls": port, "ca": str(provider_authority().path)}), flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


def _proxy(script: Path, upstream: dict[str, object], folder: Path, *, web: bool = False) -> Mitmdump:
    return Mitmdump(
        script=script,
        upstream={"*": (int(str(upstream["plain"])), int(str(upstream["tls"])))},
        options=[f"ssl_verify_upstream_trusted_ca={upstream['ca']}", *([] if web else ["flow_detail=0"])],
        folder=folder,
        plainly=not web,
        web=web,
    )


# What is measured


def at_once(folder: Path, rounds: int) -> None:
    with ExitStack() as stack:
        upstream = stack.enter_context(start_upstream())
        sides = {
            name: stack.enter_context(_proxy(script, upstream, folder / name))
            for name, script in (("plain", PLAIN), ("ours", SCRIPT))
        }
        for what, size, each in (("small", 0, 20), ("330 kB", 330_000, 6)):
            ms: dict[str, list[float]] = {name: [] for name in sides}
            for number in range(rounds + 1):
                for name in list(sides)[:: 1 if number % 2 else -1]:
                    took = asyncio.run(asked([sides[name]], AT_ONCE, each, make_request(size=size)))
                    if number:
                        ms[name].append(took)
            share = statistics.median(one / other for one, other in zip(ms["plain"], ms["ours"], strict=True))
            told = ", ".join(f"{name} {statistics.median(values):.2f} ms" for name, values in ms.items())
            print(f"{AT_ONCE} at once, {what}: a call computes {told}; plain's by ours {share:.2f}", flush=True)


async def delays(proxy: Mitmdump, seconds: float) -> list[float]:
    """Milliseconds of each event, once all streams run: 200 handshakes are another matter."""
    found: list[tuple[float, float]] = []
    begun: list[float] = []

    async def one() -> None:
        pipe = await Route(URL, proxy).open("http/1.1")
        with contextlib.suppress(Gone):
            await pipe.write(make_request(stream=True))
            await pipe.read_until(b"\r\n\r\n")
            begun.append(time.monotonic())
            await _hear(pipe, found)
        pipe.close()

    await asyncio.gather(*(one() for _ in range(STREAMS)))
    return [(now - stamp) * 1000 for stamp, now in found if max(begun) + _SETTLES_S < stamp < min(begun) + seconds]


async def _hear(pipe: Pipe, found: list[tuple[float, float]]) -> None:
    while not pipe.buffer.endswith(b"0\r\n\r\n"):
        await pipe.more()
        now = time.monotonic()
        data = pipe.take(len(pipe.buffer))
        found += ((float(stamp), now) for stamp in _STAMP.findall(data))
        if data.endswith(b"0\r\n\r\n"):
            return


def streams(folder: Path, rounds: int, seconds: float) -> None:
    with ExitStack() as stack:
        upstream = stack.enter_context(start_upstream("tests.bench.live", "upstream", "--seconds", str(seconds)))
        sides = {
            name: stack.enter_context(_proxy(script, upstream, folder / name))
            for name, script in (("plain", PLAIN), ("ours", SCRIPT))
        }
        for number in range(rounds):
            told = []
            for name in list(sides)[:: -1 if number % 2 else 1]:
                ms = sorted(asyncio.run(delays(sides[name], seconds)))
                p50, p99 = ms[len(ms) // 2], ms[len(ms) * 99 // 100]
                told.append(f"{name} p50 {p50:.1f} ms, p99 {p99:.1f} ms of {len(ms):,} events")
            print(f"{STREAMS} streams: {'; '.join(told)}", flush=True)


def memory(folder: Path, calls: int) -> None:
    for web in (False, True):
        with start_upstream() as upstream, _proxy(SCRIPT, upstream, folder / f"web-{web}", web=web) as proxy:
            held = asyncio.run(_held(proxy, calls))
            print(
                f"{'mitmweb' if web else 'mitmdump'}, {calls:,} calls: MB held {' '.join(f'{one:.0f}' for one in held)}",
                flush=True,
            )


async def _held(proxy: Mitmdump, calls: int) -> list[float]:
    """After each tenth. Each call is a message of its own."""
    found, together = [_resident_mb(proxy)], 16
    pipes = await asyncio.gather(*(Route(URL, proxy).open("http/1.1") for _ in range(together)))

    async def ask(pipe: Pipe, first: int) -> None:
        for number in range(first, first + calls // 10 // together):
            await exchange(pipe, make_request(text=f"Say something short, {number}.", session=number % 500))

    for tenth in range(10):
        await asyncio.gather(*(ask(pipe, tenth * calls + place * calls // together) for place, pipe in enumerate(pipes)))
        await asyncio.sleep(3)  # what calls have used goes back soon after
        found.append(_resident_mb(proxy))
    for pipe in pipes:
        pipe.close()
    return found


def _resident_mb(proxy: Mitmdump) -> float:
    text = Path(f"/proc/{proxy.pid}/status").read_text()
    return int(text.partition("VmRSS:")[2].split()[0]) / 1024


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.bench.live")
    parser.add_argument("what", nargs="*", default=["at-once", "streams", "memory"])
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--calls", type=int, default=100_000)
    given = parser.parse_args()
    if given.what == ["upstream"]:
        asyncio.run(_serve(given.seconds))
        sys.exit()
    with tempfile.TemporaryDirectory() as name:
        for what in given.what:
            match what:
                case "at-once":
                    at_once(Path(name), given.rounds)
                case "streams":
                    streams(Path(name), given.rounds, given.seconds)
                case "memory":
                    memory(Path(name), given.calls)
