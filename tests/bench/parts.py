"""`python -m tests.bench.parts`: what single parts of the core cost in this process, without a proxy. Nothing is judged by it."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from routecodex.routing import jsonbytes
from routecodex.routing.clients.typed import typed_messages
from routecodex.routing.dialects.calls import read_call
from routecodex.routing.dialects.sse import ArrayItems, Events
from routecodex.routing.redact import Redactor
from routecodex.routing.router.classify import wants_web
from routecodex.routing.sessions.state import EMPTY
from routecodex.routing.sessions.store import FileStore, SessionKey
from routecodex.routing.tags.scan import find_tags, strip
from routecodex.routing.values import Dialect, Endpoint

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Part:
    name: str
    goal_ms: float
    work: Callable[[], object]
    times: int = 1
    """What is said is for one of so many."""

    def best_ms(self, tries: int = 7) -> float:
        best = float("inf")
        for _ in range(tries):
            began = time.perf_counter()
            for _ in range(self.times):
                self.work()
            best = min(best, (time.perf_counter() - began) / self.times)
        return best * 1000


def parts(folder: Path) -> list[Part]:
    text = "Hello world, this is a text of some length. " * 72
    messages = [{"role": ("user", "assistant")[n % 2], "content": [{"type": "text", "text": text}]} for n in range(100)]
    call = json.dumps({"model": "m", "max_tokens": 1, "messages": messages}).encode()
    endpoint = Endpoint(Dialect.MESSAGES)
    read = read_call(call, endpoint)
    sse = b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"text":" hi"}}\n\n' * 10_000
    array = b"[" + b",\r\n".join([b'{"candidates":[{"content":{"parts":[{"text":"hi"}]}}]}'] * 10_000)
    hostile = ("<**a**>x " * MIB)[:MIB]
    store, key, hide = FileStore(folder), SessionKey("session", "one"), Redactor(["sk-one-two-three"])
    store.update(key, lambda _: EMPTY.with_(obeyed="x"))
    time.sleep(0.1)
    store.load(key)
    return [
        Part("JSON of a call of 330 kB", 2, lambda: jsonbytes.loads(call)),
        Part("the same read as a call", 3, lambda: read_call(call, endpoint)),
        Part("what was typed in it", 2, lambda: typed_messages(read)),
        Part("10,000 small events", 100, lambda: Events().feed(sse)),
        Part("10,000 small items of an array", 150, lambda: ArrayItems().feed(array)),
        Part("a MiB of tags, found", 50, lambda: find_tags(hostile, 1000)),
        Part("a MiB of tags, taken out", 50, lambda: strip(hostile)),
        Part("2,000 characters: a search of the web?", 2, lambda: wants_web("search " * 285)),
        Part("a MiB looked through for credentials", 30, lambda: hide.text("eyJ" * (MIB // 3))),
        Part("a session that has not changed", 0.05, lambda: store.load(key), 200),
    ]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for part in parts(Path(folder)):
            taken = part.best_ms()
            print(f"{part.name:42} {taken:9.3f} ms   goal {part.goal_ms:g}   {'ok' if taken <= part.goal_ms else 'MISSED'}")


if __name__ == "__main__":
    main()
