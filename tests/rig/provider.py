"""The fake provider: raw sockets, four dialects, plain and TLS, every misbehaviour on order.

1. It runs in its own thread with its own event loop and listens on loopback only.
2. It keeps every byte it received, also of requests that never became whole.
3. What it does with a request: the first queued behaviour that fits, else what the newest rule says, else the standing one.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

from tests.rig.behaviour import Behaviour, Plan, make_plan
from tests.rig.certificates import provider_authority
from tests.rig.pipe import Gone, Pipe
from tests.rig.received import Received, read_received

T = TypeVar("T")
PATIENCE_S = 60.0
"""For what comes at once on a quiet machine: an end for a test that waits for nothing, and never a measure."""
Rule = Callable[[Received], Behaviour | None]


class FakeProvider:
    """`with FakeProvider() as provider:`; reach it at `url`, `tls_url`, or as any host behind `Mitmdump(upstream=provider)`."""

    def __init__(self, *, keep: bool = True) -> None:
        self.requests: list[Received] = []
        self.connections: list[Pipe] = []
        self.standing = Behaviour()
        self.plain_port = self.tls_port = 0
        self.served = 0
        self.failures: list[Exception] = []
        """Mistakes of the rig or of a rule; raised at the end."""
        self._keep = keep
        self._queue: list[tuple[str | None, str | None, Behaviour]] = []
        self._rules: list[Rule] = []
        self._changed = threading.Condition()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="fake-provider", daemon=True)
        self._servers: list[asyncio.Server] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._connected = 0

    # ---- what it is told ----

    def enqueue(self, *behaviours: Behaviour, key: str | None = None, path: str | None = None) -> None:
        """Once each, in this order. Without a path only calls for an answer take from the queue."""
        self._queue += [(key, path, behaviour) for behaviour in behaviours]

    def always(self, behaviour: Behaviour, *, key: str | None = None, path: str | None = None, host: str | None = None) -> None:
        """From now on for every request that fits; a path is a regular expression."""

        def rule(received: Received) -> Behaviour | None:
            wanted = (key in (None, received.key)) and (host in (None, (received.host or "").partition(":")[0]))
            on_path = received.asked is not None if path is None else re.search(path, received.target) is not None
            return behaviour if wanted and on_path else None

        self._rules.append(rule)

    def script(self, rule: Rule) -> None:
        """A function of the request; None where it has no opinion. It runs in the provider's thread."""
        self._rules.append(rule)

    def forget(self) -> None:
        """No requests, no queue, no rules: as new."""
        self.requests.clear()
        self.connections.clear()
        self._queue.clear()
        self._rules.clear()

    def _choose(self, received: Received) -> Behaviour:
        generates = received.asked is not None and received.asked.action == "generate"
        for index, (key, path, behaviour) in enumerate(self._queue):
            on_path = generates if path is None else re.search(path, received.target) is not None
            if on_path and key in (None, received.key):
                del self._queue[index]
                return behaviour
        return next((found for rule in reversed(self._rules) if (found := rule(received)) is not None), self.standing)

    # ---- what it tells ----

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.plain_port}"

    @property
    def tls_url(self) -> str:
        return f"https://127.0.0.1:{self.tls_port}"

    @property
    def ca(self) -> Path:
        return provider_authority().path

    @property
    def calls(self) -> list[Received]:
        """The requests for a model's answer."""
        return [one for one in list(self.requests) if one.asked is not None and one.asked.action == "generate"]

    @property
    def open_connections(self) -> int:
        return sum(not pipe.gone for pipe in list(self.connections))

    def all_bytes(self) -> bytes:
        """Everything that ever arrived, with decoded bodies behind it (a compressed body hides its text)."""
        raw = b"\n".join(bytes(pipe.received or b"") for pipe in list(self.connections))
        return raw + b"\n" + b"\n".join(received.body for received in list(self.requests))

    def wait_until(self, condition: Callable[[], T], timeout: float = PATIENCE_S) -> T:
        """The condition's value as soon as it holds; TimeoutError where it never does. A shorter `timeout` judges nothing.

        What is not the provider's own, say a proxy's open files, changes without its word: it is looked at now and then.
        """
        ends = time.monotonic() + max(timeout, PATIENCE_S)
        with self._changed:
            while not self._changed.wait_for(condition, 0.1):
                if time.monotonic() >= ends:
                    counts = f"{len(self.requests)} requests, {len(self.calls)} calls, {self.open_connections} connections open"
                    raise TimeoutError(f"it never came; {counts}")
        return condition()

    def wait_for(self, count: int, timeout: float = PATIENCE_S) -> list[Received]:
        """The first calls for an answer, as soon as there are that many."""
        self.wait_until(lambda: len(self.calls) >= count, timeout)
        return self.calls[:count]

    def _notify(self) -> None:
        with self._changed:
            self._changed.notify_all()

    # ---- life ----

    def __enter__(self) -> FakeProvider:
        self._thread.start()
        self._run(self._listen())
        return self

    def __exit__(self, *_: object) -> None:
        self._run(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        if not self._thread.is_alive():
            self._loop.close()
        if self.failures:
            raise self.failures[0]

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE_S)

    async def _listen(self) -> None:
        plain = await self._loop.create_server(self._accept, "127.0.0.1", self.plain_port, backlog=1024)
        context = provider_authority().server_context()
        tls = await self._loop.create_server(self._accept, "127.0.0.1", self.tls_port, ssl=context, backlog=1024)
        self._servers = [plain, tls]
        self.plain_port, self.tls_port = (server.sockets[0].getsockname()[1] for server in self._servers)

    async def _deafen(self) -> None:
        for server in self._servers:
            server.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=3)

    async def _close(self) -> None:
        await self._deafen()
        # Transports close in the loop's next turns.
        await asyncio.sleep(0.01)

    @contextlib.contextmanager
    def refusing(self) -> Iterator[None]:
        """Connections are refused and open ones dropped, until the end of the block."""
        self._run(self._deafen())
        try:
            yield
        finally:
            self._run(self._listen())

    # ---- one connection ----

    def _accept(self) -> Pipe:
        return _Served(self)

    async def _serve(self, pipe: Pipe, number: int) -> None:
        try:
            while True:
                received = await read_received(pipe, lambda: self.served, number, parse=self._keep)
                if received is None:
                    await pipe.write(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
                    return
                self.served += 1
                if self._keep:
                    self.requests.append(received)
                self._notify()
                try:
                    if not await self._answer(pipe, received):
                        return
                finally:
                    if received.finished_at is None:
                        received.left_at = pipe.gone_at or time.monotonic()  # a closing transport says so first
                    self._notify()
        except Gone:
            pass
        except Exception as failure:
            self.failures.append(failure)
        finally:
            pipe.close()
            self._notify()

    async def _answer(self, pipe: Pipe, received: Received) -> bool:
        """Whether the connection lives on."""
        behaviour = received.behaviour = self._choose(received)
        await _silence(pipe, behaviour.wait_s, behaviour.until)
        match behaviour.before:
            case "hang":
                await pipe.wait_gone()
                raise Gone
            case "close":
                return _end(received)
            case "reset":
                pipe.reset()
                return _end(received)
        model = received.asked.model if received.asked is not None else ""
        plan = make_plan(behaviour, received.asked, f"{model} was asked: {received.said}")
        received.head_sent_at = time.monotonic()
        if behaviour.body_wait_s:
            await pipe.write(plan.head)
            await _silence(pipe, behaviour.body_wait_s, behaviour.until)
            await self._write_body(pipe, received, behaviour, plan, b"")
        else:
            await self._write_body(pipe, received, behaviour, plan, plan.head)
        match behaviour.how_it_ends:
            case "hang":
                await pipe.wait_gone()
                raise Gone
            case "reset":
                # A reset overtakes what the peer has not read yet.
                await _pause(pipe, 0.05)
                pipe.reset()
                return _end(received)
            case "clean":
                if plan.chunked:
                    trailers = b"".join(f"{name}: {value}\r\n".encode("latin-1") for name, value in behaviour.trailers)
                    await pipe.write(b"0\r\n" + trailers + b"\r\n")
                _end(received)
                return plan.keep_alive
        return _end(received)

    async def _write_body(self, pipe: Pipe, received: Received, behaviour: Behaviour, plan: Plan, waiting: bytes) -> None:
        """`waiting` is written together with the first packet.

        Chunks without a delay between them share a write: they are still one HTTP chunk each, at a tenth of the cost.
        """
        together = plan.chunked and not behaviour.delay_s
        for index, packet in enumerate(plan.packets):
            if index in plan.stalls:
                waiting = await _flush(pipe, waiting)
                await _silence(pipe, behaviour.stall_s, behaviour.until)
            elif index and not together:
                await _silence(pipe, behaviour.delay_s, behaviour.until)
            waiting += b"%x\r\n%b\r\n" % (len(packet), packet) if plan.chunked else packet
            if not together or len(waiting) > 16_384:
                waiting = await _flush(pipe, waiting)
            received.packets_sent += 1
            received.bytes_sent += len(packet)
        await _flush(pipe, waiting)
        if len(plan.packets) in plan.stalls:
            await _silence(pipe, behaviour.stall_s, behaviour.until)


class _Served(Pipe):
    """A connection of the provider's."""

    def __init__(self, provider: FakeProvider) -> None:
        super().__init__(keep=provider._keep)
        self._provider = provider

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        provider = self._provider
        provider._connected += 1
        if provider._keep:
            provider.connections.append(self)
        task = provider._loop.create_task(provider._serve(self, provider._connected))
        provider._tasks.add(task)
        task.add_done_callback(provider._tasks.discard)


async def _flush(pipe: Pipe, waiting: bytes) -> bytes:
    if waiting:
        await pipe.write(waiting)
    return b""


def _end(received: Received) -> bool:
    received.finished_at = time.monotonic()
    return False


async def _silence(pipe: Pipe, seconds: float, until: Callable[[], bool] | None) -> None:
    """As long as a test says, or until what it waits for has come about: then no slow machine makes it too short."""
    if until is None or seconds <= 0:
        await _pause(pipe, seconds)
        return
    ends = time.monotonic() + PATIENCE_S
    while not until() and time.monotonic() < ends:
        await _pause(pipe, 0.01)


async def _pause(pipe: Pipe, seconds: float) -> None:
    """Silence that ends with Gone when the client leaves."""
    if seconds <= 0:
        return
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await pipe.wait_gone()
    if pipe.gone:
        raise Gone


__all__ = ["Behaviour", "FakeProvider", "Received"]
