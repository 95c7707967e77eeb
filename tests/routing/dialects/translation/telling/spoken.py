"""Answers as neutral events: some by hand, and any by chance; and what a client must find in what is told of them."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from hypothesis import strategies as st

from routecodex.routing.dialects.said import Said
from routecodex.routing.dialects.translation.neutral import Media, Seal, Tokens, ToolName
from routecodex.routing.values import Dialect, Endpoint
from tests.rig.asked import Asked
from tests.routing.dialects.answer.own import answer_for
from tests.routing.dialects.answer.plain import (
    BlockEnded,
    CallEnded,
    CallPiece,
    CallStarted,
    Event,
    Finished,
    MediaShown,
    Started,
    TextPiece,
    ThoughtEnded,
    ThoughtPiece,
)

TOKENS = Tokens(100, 20, 40, 5, 7)
SIGNED = Seal(Dialect.MESSAGES, "anthropic", {"signature": "EuYB"})
REDACTED = Seal(Dialect.MESSAGES, "anthropic", {"data": "xxxx"})
OF_CALL = Seal(Dialect.GEMINI, "google", {"for": "call", "thoughtSignature": "c2ln"})
OF_PART = Seal(Dialect.GEMINI, "google", {"for": "part", "thoughtSignature": "c2ln"})
START, END = Started("msg_1", "their-model"), Finished("end_turn", TOKENS)
PICTURE = Media("image", "image/png", data="aGk=")
TOOLS = {"patch": ToolName("apply_patch", custom=True), "mcp__read": ToolName("read", "mcp__files")}


def text(*pieces: str) -> list[Event]:
    return [TextPiece(piece) for piece in pieces]


def thought(*pieces: str, seal: Seal | None = SIGNED) -> list[Event]:
    return [*(ThoughtPiece(piece) for piece in pieces), ThoughtEnded(seal)]


def call(id: str, name: str, *pieces: str, seal: Seal | None = None) -> list[Event]:
    return [CallStarted(id, name), *(CallPiece(piece) for piece in pieces), CallEnded(seal)]


def asked(dialect: Dialect, **rest: Any) -> Asked:
    given: dict[str, Any] = {"id": "0f3c-1:retry", "model": "client-model", "created": 1_800_000_000, "maker": "anthropic"}
    given |= {"estimate": lambda: 77, "include_usage": True, "tools": TOOLS, "endpoint": Endpoint(dialect), "stream": True}
    return Asked(**{**given, **rest})


ANSWERS: dict[str, list[Event]] = {
    "text": text("Grüße, ", "世界 😀"),
    "nothing": [],
    "two texts": [*text("a"), BlockEnded(), *text("b", "c")],
    "thought, text": [*thought("let ", "me"), *text("a")],
    "thought without a seal": [*thought("t", seal=None), *text("a")],
    "a seal alone": [ThoughtEnded(REDACTED), *text("a")],
    "thoughts": [*thought("t"), *thought("u"), ThoughtEnded(REDACTED), *text("a")],
    "a call": call("toolu_1", "f", '{"a":', '"ü', '"}'),
    "a call in one piece": call("toolu_1", "f", '{"a":1}'),
    "a call without arguments": call("toolu_1", "f"),
    "a call without an id": [*call("", "f", "{}"), *call("", "g", "{}")],
    "thought, text, calls": [*thought("t"), *text("a"), *call("c1", "f", "{", "}"), *call("c2", "g", '{"a":1}')],
    "thoughts between calls": [*thought("t"), *call("c1", "f", "{}"), *thought("u"), *call("c2", "g", "{}"), *text("a")],
    "a sealed call": [*text("a"), *call("c1", "f", '{"a":1}', seal=OF_CALL), *call("c2", "g", '{"b":1}')],
    "a sealed text": [*text("a"), ThoughtEnded(OF_PART), *text("b"), ThoughtEnded(OF_PART)],
    "a renamed tool": call("c1", "mcp__read", '{"p":"q"}'),
    "a custom tool": [*call("c1", "patch", '{"input":"*** Be', 'gin\\n\\"x\\" 😀"}'), *call("c2", "f", "{}")],
    "a custom tool misused": call("c1", "patch", "not json"),
    "a picture": [*text("see"), MediaShown(PICTURE), *text("that")],
    "sound": [*text("hear "), MediaShown(Media("audio", "audio/wav", data="aGk="))],
    "no last event of blocks": [ThoughtPiece("t"), TextPiece("a"), CallStarted("c1", "f"), CallPiece("{}")],
}


@dataclass
class Expected:
    """What the client must find."""

    text: str = ""
    calls: tuple[tuple[str, object], ...] = ()
    """Name and parsed arguments."""


def expected(events: Iterable[Event], dialect: Dialect) -> Expected:
    found = Expected()
    arguments = ""
    name = ""
    for event in [*events, Finished("")]:
        if isinstance(event, TextPiece):
            found.text += event.text
        elif isinstance(event, MediaShown) and event.media.kind != "image":
            found.text += f"[{event.media.kind}: {event.media.media_type}]"
        elif isinstance(event, CallStarted):
            name, arguments = event.name, ""
        elif isinstance(event, CallPiece):
            arguments += event.arguments
        elif name and isinstance(event, CallEnded | Finished):
            known = TOOLS.get(name, ToolName(name))
            found.calls += ((known.name, _parsed(arguments)),)
            name = ""
    return found


def _parsed(arguments: str) -> object:
    try:
        return json.loads(arguments or "{}")
    except ValueError:
        return {"input": arguments}


def check_said(said: Said, events: Iterable[Event], dialect: Dialect) -> None:
    """What our own merger, which reads what every client gets, finds in it."""
    wanted = expected(events, dialect)
    assert said.complete
    assert said.error is None
    assert said.text == wanted.text
    assert [(one.name, json.loads(one.arguments)) for one in said.calls] == list(wanted.calls)
    assert (said.usage.input, said.usage.output) == (TOKENS.input, TOKENS.output)
    assert said.finish == ("tool_calls" if wanted.calls else "stop")
    assert all(one.id for one in said.calls)
    assert len({one.id for one in said.calls}) == len(said.calls)


def said_of(raw: bytes, dialect: Dialect, *, stream: bool, one_by_one: bool = False) -> tuple[Said, bytes]:
    """What the merger says of a round, and what leaves it."""
    merger = answer_for(Endpoint(dialect), stream=stream, include_usage=True)
    merger.begin_round()
    pieces = [raw[place : place + 1] for place in range(len(raw))] if one_by_one else [raw]
    out = b"".join(merger.feed(piece) for piece in pieces)
    said = merger.end_round()
    return said, out + b"".join(merger.finish())


_WORDS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12)
_VALUES = st.dictionaries(_WORDS, _WORDS | st.integers(-9, 9) | st.none(), max_size=3)


def _cut(text: str, cuts: list[int]) -> list[str]:
    places = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    return [text[start:end] for start, end in pairwise(places)]


def _calls(name: str, value: dict[str, Any], cuts: list[int]) -> Callable[[int], list[Event]]:
    arguments = {"input": json.dumps(value)} if name == "patch" else value
    return lambda number: call(f"c{number}", name, *_cut(json.dumps(arguments, ensure_ascii=False), cuts))


_CUTS = st.lists(st.integers(0, 60), max_size=4)
_BLOCKS: st.SearchStrategy[Callable[[int], list[Event]]] = st.one_of(
    st.builds(lambda pieces: lambda _: text(*pieces), st.lists(_WORDS, min_size=1, max_size=4)),
    st.builds(
        lambda pieces, seal: lambda _: thought(*pieces, seal=seal),
        st.lists(_WORDS, min_size=1, max_size=3),
        st.sampled_from((None, SIGNED)),
    ),
    st.builds(_calls, st.sampled_from(("f", "g", "mcp__read", "patch")), _VALUES, _CUTS),
    st.sampled_from([lambda _: [ThoughtEnded(REDACTED)], lambda _: [ThoughtEnded(OF_PART)]]),
)


def _answer(blocks: list[Callable[[int], list[Event]]]) -> list[Event]:
    events: list[Event] = []
    for number, block in enumerate(blocks):
        told = block(number)
        if events and isinstance(events[-1], TextPiece) and isinstance(told[0], TextPiece):
            events.append(BlockEnded())
        events += told
    return events


ANY: st.SearchStrategy[list[Event]] = st.builds(_answer, st.lists(_BLOCKS, max_size=6))


def unsealed(events: Iterable[Event]) -> list[Event]:
    """Without seals, and without thoughts of nothing else."""
    kept: list[Event] = []
    for event in events:
        if isinstance(event, ThoughtEnded | CallEnded):
            if isinstance(event, ThoughtEnded) and not (kept and isinstance(kept[-1], ThoughtPiece)):
                continue
            event = dataclasses.replace(event, seal=None)
        kept.append(event)
    return kept
