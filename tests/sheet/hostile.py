"""A4, S4: what hostile text costs, in milliseconds of this thread's own computing for a mebibyte; how much of that is reading
JSON, whoever does it; and for how long the parser lets nobody else in."""

from __future__ import annotations

import contextlib
import time
import tracemalloc

import orjson

from routecodex.addons.garbage import resting
from routecodex.routing import jsonbytes
from routecodex.routing.dialects.calls import read_call
from routecodex.routing.dialects.endpoints import endpoint_of
from routecodex.routing.errors import RouteCodexError
from routecodex.routing.tags.grammar import parse
from routecodex.routing.tags.scan import find_tags, in_code, strip
from routecodex.routing.values import Endpoint
from tests.routing.tags.test_scan import HOSTILE_TEXTS, closed_at_last
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
    texts["closings-behind-openings"] = closed_at_last(MIB)
    spent = {name: cost(read_tags, text) for name, text in texts.items()}
    worst = max(spent, key=lambda name: spent[name])
    seen(
        "A4",
        f"1 MiB of {len(spent)} hostile texts: at most {spent[worst]:.0f} ms of CPU ({worst}), asked {ASKED_MS:.0f}",
        holds=spent[worst] <= ASKED_MS,
    )


def filled(start: bytes, piece: bytes, end: bytes) -> bytes:
    return start + piece * (MIB // len(piece) - 1) + piece.rstrip(b",") + end


LONGER = b'{"a":"%s"},' % (b"x" * 20)
"""As short as may be many."""
JSON = {
    "lists": b"[" * MIB,
    "objects": b'{"a":' * (MIB // 5),
    "escapes": b'"' + b"\\u" * (MIB // 2),
    "a number": b"9" * MIB,
    **{
        f"{name} of {what}": filled(start, piece, end)
        for what, piece in {
            "nothing": b"{},",
            "a field": b'{"a":1},',
            "a text": b'"a",',
            "a little": LONGER,
            "a type": b'{"type":"a", "b":"c"      },',
        }.items()
        for name, start, end in (
            ("messages", b'{"HISTORY":[', b"]}"),
            ("parts", b'{"HISTORY":[{"role":"user","PARTS":[', b"]}]}"),
            ("tools", b'{"HISTORY":[],"tools":[', b"]}"),
            ("results", b'{"HISTORY":[{"role":"tool","type":"function_call_output","PARTS":[', b"]}]}"),
            ("results within", b'{"HISTORY":[{"role":"user","PARTS":[{"type":"tool_result","content":[', b"]}]}]}"),
            ("calls", b'{"HISTORY":[{"role":"assistant","tool_calls":[', b"]}]}"),
            ("declarations", b'{"HISTORY":[],"tools":[{"functionDeclarations":[', b"]}]}"),
            ("system", b'{"HISTORY":[],"system":[', b"]}"),
        )
    },
    "short messages": filled(b'{"HISTORY":[', b'{"role":"user","PARTS":"a"},', b"]}"),
}
PATHS = {
    "/v1/chat/completions": (b"messages", b"content"),
    "/v1/messages": (b"messages", b"content"),
    "/v1/responses": (b"input", b"content"),
    "/v1beta/models/m:generateContent": (b"contents", b"parts"),
}
MOST_TIMES = 100


def test_a_mebibyte_of_hostile_json() -> None:
    """As the proxy reads calls of so many pieces: beside its loop, while the collector of garbage rests."""

    def parse(raw: bytes) -> None:
        with contextlib.suppress(orjson.JSONDecodeError):
            orjson.loads(raw)

    spent, parsed, grown = {}, {}, {}
    for path, (history, parts) in PATHS.items():
        endpoint = endpoint_of("POST", path)
        assert endpoint is not None

        def read(raw: bytes, endpoint: Endpoint = endpoint) -> None:
            with contextlib.suppress(RouteCodexError):
                read_call(raw, endpoint)

        for shape, body in JSON.items():
            name, raw = f"{shape}, {endpoint.dialect}", body.replace(b"HISTORY", history).replace(b"PARTS", parts)
            with resting():
                spent[name], parsed[name] = cost(read, raw), cost(parse, raw)
            tracemalloc.start()
            read(raw)
            grown[name] = tracemalloc.get_traced_memory()[1] / len(raw)
            tracemalloc.stop()
    slowest, largest = max(spent, key=lambda name: spent[name]), max(grown, key=lambda name: grown[name])
    seen(
        "A4",
        f"1 MiB of {len(JSON)} hostile JSON texts in {len(PATHS)} dialects: at most {spent[slowest]:.0f} ms of CPU ({slowest}; "
        f"{parsed[slowest]:.0f} of it are the JSON's own), asked {ASKED_MS:.0f}; {grown[largest]:.0f} times its size "
        f"({largest}), asked {MOST_TIMES}",
        holds=spent[slowest] <= ASKED_MS and grown[largest] < MOST_TIMES,
    )


def as_many_as_may_be(piece: bytes, values: int, size: int) -> bytes:
    """A long text with so many pieces that no more of them would be read."""
    many = b",".join([piece] * (jsonbytes.MOST_VALUES // values - 10))
    return b'{"a":[' + many + b'],"b":"' + b"x" * (size - len(many)) + b'"}'


LONGEST = 32 * MIB
LONG_JSON = {
    **{
        f"{name}, as many as are read": as_many_as_may_be(piece, values, 9 * MIB)
        for name, piece, values in (
            ("empty objects", b"{}", 2),
            ("lists", b"[]", 3),
            ("numbers", b"1", 1),
            ("fractions", b"1.5", 1),
            ("texts", b'"a"', 1),
            ("fields", b'{"a":1}', 3),
            ("lists within lists", b"[" * 99 + b"]" * 99, 199),
        )
    },
    "names, as many as are read": b'{"a":{%s}}'
    % b",".join(b'"name %07d":1' % number for number in range(jsonbytes.MOST_VALUES // 2 - 10)),
    "a text": b'"%s"' % (b"x" * LONGEST),
    "a text of escapes": b'"%s"' % (b"\\u4e2d" * (LONGEST // 6)),
    "a text of other letters": f'"{"中" * (LONGEST // 3)}"'.encode(),
}


def test_the_longest_that_nobody_else_is_let_in() -> None:
    def read_at_once(raw: bytes) -> None:
        orjson.loads(raw)

    for raw in LONG_JSON.values():
        jsonbytes.loads(raw)  # nothing of it is refused
    with resting():
        spent = {name: cost(read_at_once, raw) for name, raw in LONG_JSON.items()}
    longest = max(spent, key=lambda name: spent[name])
    seen(
        "A4",
        f"{len(spent)} JSON texts of up to {LONGEST // MIB} MiB, of all that is read those that take longest: the parser lets "
        f"nobody else in for at most {spent[longest]:.0f} ms ({longest}), asked {ASKED_MS:.0f}",
        holds=spent[longest] <= ASKED_MS,
    )
