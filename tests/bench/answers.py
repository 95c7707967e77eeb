"""`python -m tests.bench.answers`: what one event of an answer costs, on the old answer side and on the new, in one process.

The two take turns, and the new one runs against itself as well: what differs there is noise (the control). Figures are
microseconds of this process's own time per event, the median of the rounds; a ratio is the median of the rounds' ratios.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from importlib import import_module

from routecodex.routing.dialects.answer.machine import Answer, Round
from routecodex.routing.dialects.sse import Events
from routecodex.routing.values import Answer as Answered
from routecodex.routing.values import Dialect, Endpoint, Usage
from tests.rig.asked import Asked
from tests.routing.dialects.answer.own import answer_for, write_stream

OWN = frozenset({"clock"})
CHAT, MESSAGES, RESPONSES, GEMINI = Dialect.CHAT, Dialect.MESSAGES, Dialect.RESPONSES, Dialect.GEMINI
Run = Callable[[list[bytes]], None]


def chat_events(count: int) -> list[bytes]:
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "system_fingerprint": "fp"}

    def event(delta: object, reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        return b"data: " + json.dumps({**head, "choices": [choice]}).encode() + b"\n\n"

    texts = [event({"content": f"word{number} "}) for number in range(count)]
    return [event({"role": "assistant", "content": ""}), *texts, event({}, "stop"), b"data: [DONE]\n\n"]


def messages_events(count: int) -> list[bytes]:
    def event(document: dict[str, object]) -> bytes:
        return f"event: {document['type']}\ndata: {json.dumps(document)}\n\n".encode()

    usage = {"input_tokens": 5, "output_tokens": 1}
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "stop_reason": None,
        "usage": usage,
    }
    texts = [
        event({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": f"word{number} "}})
        for number in range(count)
    ]
    return [
        event({"type": "message_start", "message": message}),
        event({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        *texts,
        event({"type": "content_block_stop", "index": 0}),
        event(
            {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": {"output_tokens": 9}}
        ),
        event({"type": "message_stop"}),
    ]


def gemini_events(count: int) -> list[bytes]:
    def event(text: str, number: int, reason: str = "") -> bytes:
        candidate = {"content": {"parts": [{"text": text}], "role": "model"}, "index": 0}
        details = [{"modality": "TEXT", "tokenCount": 5}]
        usage = {"promptTokenCount": 5, "candidatesTokenCount": number, "totalTokenCount": 5 + number}
        document = {
            "candidates": [{**candidate, **({"finishReason": reason} if reason else {})}],
            "usageMetadata": {**usage, "promptTokensDetails": details},
            "modelVersion": "m",
            "responseId": "r-1",
        }
        return b"data: " + json.dumps(document).encode() + b"\r\n\r\n"

    return [*(event(f"word{number} ", number) for number in range(count)), event("", count, "STOP")]


def responses_events(count: int) -> list[bytes]:
    texts = tuple(f"word{number} " for number in range(count))
    answer = Answered("".join(texts), usage=Usage(5, count))
    first, *rest = write_stream(RESPONSES, answer, id="resp_1", model="m", created=1)
    events = [event.raw for event in Events().feed(b"".join([first, *rest]))]
    places = [place for place, event in enumerate(events) if b"event: response.output_text.delta" in event]
    kind, begun, pieces = "response.output_text.delta", places[0], []
    for number, text in enumerate(texts):
        where = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
        document = {"type": kind, **where, "delta": text, "sequence_number": begun + number, "logprobs": []}
        pieces.append(f"event: {kind}\ndata: {json.dumps(document)}\n\n".encode())
    return [*events[:begun], *pieces, *events[places[-1] + 1 :]]


EVENTS = {CHAT: chat_events, MESSAGES: messages_events, RESPONSES: responses_events, GEMINI: gemini_events}


def endpoint(client: Dialect) -> Endpoint:
    return Endpoint(client, stream=True if client is GEMINI else None)


def asked(client: Dialect) -> Asked:
    return Asked(endpoint(client), True, "0123", "m", 1, maker="acme")


def take(pieces: Iterable[bytes]) -> None:
    for _ in pieces:
        pass


def old_merged(dialect: Dialect, rounds: int) -> Run:
    def run(reads: list[bytes]) -> None:
        merger = answer_for(endpoint(dialect), stream=True, own_tools=OWN)
        for _ in range(rounds):
            merger.begin_round()
            for read in reads:
                merger.feed(read)
            merger.end_round()
        take(merger.finish())

    return run


def passed_before(checkout: str, dialect: Dialect) -> Run:
    """How a checkout passed an answer before the machine did (up to c221ee6: there `routing` is a package by itself)."""
    if checkout not in sys.path:
        sys.path.insert(0, checkout)
    edges, terminal, values = (import_module(f"routing.{name}") for name in ("turn.edges", "turn.terminal", "values"))
    spoken = values.Dialect(str(dialect))

    def run(reads: list[bytes]) -> None:
        passage, kept = terminal.Passage(values.Endpoint(spoken)), edges.Edges()
        kept.begin(reads[0])
        for read in reads:
            kept.keep(read)
            passage.feed(read)
        passage.close()
        kept.usage(spoken)

    return run


def new(client: Dialect, spoken: Dialect, *, quiet: bool = False, rounds: int = 1) -> Run:
    def run(reads: list[bytes]) -> None:
        answer = Answer(asked(client), own=frozenset() if quiet else OWN, quiet=quiet)
        for _ in range(rounds):
            answer.begin_round(Round(spoken, "acme"))
            for read in reads:
                answer.feed(read)
            answer.end_round()
        take(answer.finish())

    return run


ROWS: dict[str, tuple[Dialect, int, Run | None, Run]] = {
    # what → whose events, how many rounds of them, the old way where there still is one, the new way
    "passed: Chat": (CHAT, 1, None, new(CHAT, CHAT, quiet=True)),
    "passed: Messages": (MESSAGES, 1, None, new(MESSAGES, MESSAGES, quiet=True)),
    "passed: Responses": (RESPONSES, 1, None, new(RESPONSES, RESPONSES, quiet=True)),
    "passed: Gemini": (GEMINI, 1, None, new(GEMINI, GEMINI, quiet=True)),
    "merged, one round: Gemini": (GEMINI, 1, old_merged(GEMINI, 1), new(GEMINI, GEMINI)),
    "merged, two rounds: Gemini": (GEMINI, 2, old_merged(GEMINI, 2), new(GEMINI, GEMINI, rounds=2)),
    "Gemini for a Chat client": (GEMINI, 1, None, new(CHAT, GEMINI)),
    "Gemini for a Messages client": (GEMINI, 1, None, new(MESSAGES, GEMINI)),
    "Chat for a Gemini client": (CHAT, 1, None, new(GEMINI, CHAT)),
    "Messages for a Gemini client, merged": (MESSAGES, 1, None, new(GEMINI, MESSAGES)),
    "Chat for a Messages client": (CHAT, 1, None, new(MESSAGES, CHAT)),
    "Messages for a Chat client": (MESSAGES, 1, None, new(CHAT, MESSAGES)),
    "Chat for a Messages client, merged": (CHAT, 1, None, new(MESSAGES, CHAT)),
    "Messages for a Chat client, merged": (MESSAGES, 1, None, new(CHAT, MESSAGES)),
}


def reads_of(events: list[bytes], per_read: int) -> list[bytes]:
    return [b"".join(events[start : start + per_read]) for start in range(0, len(events), per_read)]


def cost_us(run: Run, reads: list[bytes], events: int) -> float:
    begun = time.process_time()
    run(reads)
    return (time.process_time() - begun) / events * 1e6


def measure(row: str, per_read: int, count: int, rounds: int, before: str = "") -> tuple[float, float, float, float]:
    """Old, new, how many times quicker the new one is, and the same of the new one against itself."""
    dialect, times, old, fresh = ROWS[row]
    if old is None:
        old = passed_before(before, dialect) if before else fresh
    reads, events = reads_of(EVENTS[dialect](count), per_read), count * times
    figures: list[tuple[float, float, float]] = []
    for number in range(rounds):
        ways = (old, fresh, fresh) if number % 2 == 0 else (fresh, fresh, old)
        costs = [cost_us(run, reads, events) for run in ways]
        figures.append((costs[0], costs[1], costs[2]) if number % 2 == 0 else (costs[2], costs[0], costs[1]))
    return (
        statistics.median(one[0] for one in figures),
        statistics.median(one[1] for one in figures),
        statistics.median(one[0] / one[1] for one in figures),
        statistics.median(one[1] / one[2] for one in figures),
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.answers", description="What one event of an answer costs.")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--events", type=int, default=5000)
    parser.add_argument("--row", default="", help="only rows that hold this")
    parser.add_argument("--before", default="", help="a checkout of c221ee6: what passing an event cost there")
    arguments = parser.parse_args()
    print(f"{'µs per event':40} {'per read':>8} {'old':>8} {'new':>8} {'quicker':>8} {'control':>8}")
    for row in ROWS:
        for per_read in (1, 8):
            if arguments.row in row:
                old, fresh, ratio, control = measure(row, per_read, arguments.events, arguments.rounds, arguments.before)
                print(f"{row:40} {per_read:8} {old:8.2f} {fresh:8.2f} {ratio:7.2f}× {control:7.2f}×")


if __name__ == "__main__":
    main()
