"""Answers that come down, for the tests of Messages and Gemini: a provider's bytes as events, events as the client's bytes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from hypothesis import strategies as st
from msgspec.structs import replace

from routecodex.routing.dialects.said import Said
from routecodex.routing.dialects.sse import write_event
from routecodex.routing.dialects.translation.neutral import Media, Seal, Tokens
from routecodex.routing.values import Dialect, Endpoint
from tests.rig.asked import Asked
from tests.routing.dialects.answer import plain, rounds
from tests.routing.dialects.answer.own import answer_for
from tests.routing.dialects.answer.plain import (
    BlockEnded,
    CallEnded,
    CallPiece,
    CallStarted,
    Event,
    Finished,
    Hearer,
    MediaShown,
    Started,
    Teller,
    TextPiece,
    ThoughtEnded,
    ThoughtPiece,
)

MESSAGES = Endpoint(Dialect.MESSAGES)
GEMINI = Endpoint(Dialect.GEMINI, stream=True)
ARRAY = replace(GEMINI, json_array=True)
ENVELOPE = replace(GEMINI, envelope=True)
FORMS = {"messages": MESSAGES, "gemini": GEMINI, "array": ARRAY, "envelope": ENVELOPE}


_SEALS = st.sampled_from([None, *(Seal(one, "acme", {"signature": "Eg=="}) for one in Dialect)])
_SOME_TEXT = st.text(st.characters(blacklist_categories=("Cs",)), max_size=5)
ANY_EVENTS: st.SearchStrategy[list[Event]] = st.lists(
    st.one_of(
        st.builds(Started, _SOME_TEXT, st.just("m")),
        st.builds(TextPiece, _SOME_TEXT),
        st.builds(ThoughtPiece, _SOME_TEXT),
        st.builds(ThoughtEnded, _SEALS),
        st.builds(CallStarted, st.sampled_from(["", "t1", "t 2"]), st.sampled_from(["A", "B"])),
        st.builds(CallPiece, st.sampled_from(["", "{", "}", '"a":1', "ls", " ", "null"])),
        st.builds(CallEnded, _SEALS),
        st.builds(MediaShown, st.just(Media("image", "image/png", "iVBO"))),
        st.just(BlockEnded()),
    ),
    max_size=14,
)
"""Events in any order, as no hearer gives them."""


def asked(endpoint: Endpoint, **rest: Any) -> Asked:
    return Asked(endpoint, **{"stream": True, "id": "round-1", "model": "asked-model", "created": 1, "maker": "acme", **rest})


def hear(dialect: Dialect, raw: bytes, cut: Any = rounds.whole) -> list[Event]:
    """A provider's stream as its events."""
    hearer = Hearer(dialect, "acme", "round-1")
    return [event for piece in cut(raw) for event in hearer.feed(piece)] + hearer.close()


def hear_documents(dialect: Dialect, documents: Iterable[Any]) -> list[Event]:
    return hear(dialect, b"".join(write_event(json.dumps(one).encode()) for one in documents))


def tell(events: Iterable[Event], asked_: Asked) -> bytes:
    """The client's stream."""
    teller = Teller(asked_)
    return b"".join((*map(teller.tell, events), teller.close()))


def tell_whole(events: Iterable[Event], asked_: Asked) -> Any:
    return json.loads(plain.tell_whole(events, asked_))


def said(endpoint: Endpoint, raw: bytes, cut: Any = rounds.whole, *, stream: bool = True) -> Said:
    """What our merger reads in it; what it gives on is the very same bytes."""
    merger = answer_for(endpoint, stream=stream)
    out, round_ = rounds.feed_round(merger, raw, cut)
    if round_.complete:
        assert out + b"".join(merger.finish()) == raw
    return round_


def documents_of(endpoint: Endpoint, raw: bytes) -> list[dict[str, Any]]:
    return rounds.array_documents(raw) if endpoint.json_array else rounds.sse_documents(raw)


def joined(events: Sequence[Event]) -> list[Event]:
    """Neighbouring pieces as one."""
    return [event for _, group in groupby(events, key=type) for event in _one(list(group))]


def _one(group: list[Event]) -> Iterator[Event]:
    match group[0]:
        case TextPiece() | ThoughtPiece():
            yield type(group[0])("".join(one.text for one in group))  # type: ignore[union-attr]
        case CallPiece():
            yield CallPiece("".join(one.arguments for one in group))  # type: ignore[union-attr]
        case _:
            yield from group


def call(id: str, name: str, *pieces: str, **rest: Any) -> list[Event]:
    return [CallStarted(id, name), *map(CallPiece, pieces), CallEnded(**rest)]


def thought(text: str, **rest: Any) -> list[Event]:
    return [ThoughtPiece(text), ThoughtEnded(**rest)]


def whole(*events: Event | list[Event], word: str = "stop", tokens: Tokens | None = None, **rest: Any) -> list[Event]:
    """A whole answer of these."""
    inside = [one for event in events for one in (event if isinstance(event, list) else [event])]
    return [Started("id-1", "their-model"), *inside, Finished(word, tokens, **rest)]
