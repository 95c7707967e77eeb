"""Feed a hearer, and fold what it says into blocks; the folding insists on the grammar of events."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tests.routing.dialects.answer.plain import (
    BlockEnded,
    Broken,
    CallEnded,
    CallPiece,
    CallStarted,
    Event,
    Finished,
    Hearer,
    MediaShown,
    Started,
    TextPiece,
    ThoughtEnded,
    ThoughtPiece,
)


def sse(documents: Iterable[dict[str, Any]], *, named: bool = False, done: bool = False) -> bytes:
    out = b""
    for one in documents:
        head = f"event: {one['type']}\n".encode() if named else b""
        out += head + b"data: " + json.dumps(one, ensure_ascii=False).encode() + b"\n\n"
    return out + (b"data: [DONE]\n\n" if done else b"")


def heard(hearer: Hearer, raw: bytes, sizes: Iterator[int] | None = None) -> list[Event]:
    events: list[Event] = []
    place, sizes = 0, sizes or iter((max(1, len(raw)),))
    while place < len(raw):
        size = next(sizes)
        events += hearer.feed(raw[place : place + size])
        place += size
    return events + hearer.close()


def in_three_ways(make: Callable[[], Hearer], raw: bytes) -> list[Event]:
    """Whole, byte by byte and cut at random: the same events."""
    whole = heard(make(), raw)
    assert heard(make(), raw, iter([1] * len(raw))) == whole
    random_ = random.Random(len(raw))
    assert heard(make(), raw, iter(lambda: random_.choice((1, 2, 5, 30, 200)), 0)) == whole
    return whole


def folded(events: Iterable[Event]) -> list[tuple[Any, ...]]:
    """("text", text), ("thought", text, seal), ("call", id, name, arguments, seal), ("open call", …), ("media", …) in order.

    Before them ("started", id, model) where it came, behind them the last event itself.
    """
    blocks: list[tuple[Any, ...]] = []
    open_: list[Any] = []
    over = False

    def close(kind: str = "") -> None:
        if open_ and open_[0] == "text":
            blocks.append(tuple(open_))
            open_.clear()
        assert not open_ or open_[0] == kind, f"{open_[0]} is open"

    for event in events:
        assert not over, "nothing comes behind the end"
        match event:
            case Started():
                assert not blocks
                blocks.append(("started", event.id, event.model))
            case TextPiece():
                assert event.text
                if open_ and open_[0] == "text":
                    open_[1] += event.text
                else:
                    close()
                    open_ += ["text", event.text]
            case ThoughtPiece():
                assert event.text
                close("thought")
                if open_:
                    open_[1] += event.text
                else:
                    open_ += ["thought", event.text]
            case ThoughtEnded():
                close("thought")
                assert open_ or event.seal is not None
                blocks.append((*(open_ or ["thought", ""]), event.seal))
                open_.clear()
            case CallStarted():
                close()
                open_ += ["call", event.id, event.name, ""]
            case CallPiece():
                assert open_[0] == "call"
                open_[3] += event.arguments
            case CallEnded():
                assert open_[0] == "call"
                blocks.append((*open_, event.seal))
                open_.clear()
            case MediaShown():
                close()
                blocks.append(("media", event.media))
            case BlockEnded():
                assert open_[:1] == ["text"]
                close()
            case Finished() | Broken():
                if isinstance(event, Finished):
                    close()
                elif open_:
                    blocks.append(("open " + open_[0], *open_[1:]))
                over = True
                blocks.append((event,))
    if not over and open_:
        blocks.append((open_[0] if open_[0] == "text" else "open " + open_[0], *open_[1:]))
    return blocks
