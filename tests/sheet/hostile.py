"""A4, S4: what hostile text costs, in milliseconds of this thread's own computing for a mebibyte; and how much of that is reading
JSON, whoever does it."""

from __future__ import annotations

import contextlib
import time
import tracemalloc

import orjson

from routecodex.addons.garbage import resting
from routecodex.routing.dialects.calls import read_call
from routecodex.routing.dialects.endpoints import endpoint_of
from routecodex.routing.errors import RouteCodexError
from routecodex.routing.tags.grammar import parse
from routecodex.routing.tags.scan import find_tags, in_code, strip
from tests.routing.tags.test_scan import HOSTILE_TEXTS
from tests.sheet import seen

MIB = 1 << 20
ASKED_MS = 50.0


def cost(work: object, *given: object) -> float:
    """The least of three: what else the machine does only adds."""
    spent = []
    for _ in range(3):
        began = time.thread_time()
        work(*given)  # type: ignore[operator]
        spent.append((time.thread_time() - began) * 1000)
    return min(spent)


def read_tags(text: str) -> None:
    strip(text)
    found = find_tags(text, 1000)
    in_code(text, [span.start for span in found[:16]])
    for span in found[:16]:
        parse(span.body)


def test_a_mebibyte_of_hostile_text() -> None:
    texts = {name: f"<**a**>{unit * (MIB // len(unit.encode()))} **>" for name, unit in HOSTILE_TEXTS.items()}
    spent = {name: cost(read_tags, text) for name, text in texts.items()}
    worst = max(spent, key=lambda name: spent[name])
    seen(
        "A4",
        f"1 MiB of {len(spent)} hostile texts: at most {spent[worst]:.0f} ms of CPU ({worst}), asked {ASKED_MS:.0f}",
        holds=spent[worst] <= ASKED_MS,
    )


JSON = {
    "lists": b"[" * MIB,
    "objects": b'{"a":' * (MIB // 5),
    "escapes": b'"' + b"\\u" * (MIB // 2),
    "messages": b'{"messages":[' + b"{}," * (MIB // 3) + b"{}]}",
    "short messages": b'{"messages":[' + b'{"role":"user","content":"a"},' * (MIB // 30) + b"{}]}",
    "parts": b'{"messages":[{"content":[' + b"{}," * (MIB // 3) + b"{}]}]}",
    "tools": b'{"messages":[],"tools":[' + b"{}," * (MIB // 3) + b"{}]}",
    "a number": b"9" * MIB,
}
MOST_TIMES = 100


def test_a_mebibyte_of_hostile_json() -> None:
    """As the proxy reads calls of so many pieces: beside its loop, while the collector of garbage rests."""
    endpoint = endpoint_of("POST", "/v1/chat/completions")
    assert endpoint is not None

    def read(raw: bytes) -> None:
        with contextlib.suppress(RouteCodexError):
            read_call(raw, endpoint)

    def parse(raw: bytes) -> None:
        with contextlib.suppress(orjson.JSONDecodeError):
            orjson.loads(raw)

    with resting():
        spent = {name: cost(read, raw) for name, raw in JSON.items()}
        slowest = max(spent, key=lambda name: spent[name])
        parsed = cost(parse, JSON[slowest])
    grown = {}
    for name, raw in JSON.items():
        tracemalloc.start()
        read(raw)
        grown[name] = tracemalloc.get_traced_memory()[1] / len(raw)
        tracemalloc.stop()
    largest = max(grown, key=lambda name: grown[name])
    seen(
        "A4",
        f"1 MiB of {len(JSON)} hostile JSON texts: at most {spent[slowest]:.0f} ms of CPU ({slowest}; {parsed:.0f} of it "
        f"are the JSON's own), asked {ASKED_MS:.0f}; {grown[largest]:.0f} times its size ({largest}), asked {MOST_TIMES}",
        holds=spent[slowest] <= ASKED_MS and grown[largest] < MOST_TIMES,
    )
