"""R5: what a model wrote down of a conversation is told as the one item that a compaction is answered with."""

from __future__ import annotations

import json
from typing import Any

import pytest

from routecodex.routing.dialects.calls.compaction import MARK
from routecodex.routing.dialects.sse import Events
from routecodex.routing.dialects.translation.neutral import Tokens
from routecodex.routing.values import Dialect, Endpoint, ProviderError
from tests.rig.asked import Asked
from tests.routing.dialects.answer.abroad import Translation
from tests.routing.dialects.answer.plain import (
    BlockEnded,
    Broken,
    Event,
    Finished,
    Started,
    Teller,
    TextPiece,
    ThoughtEnded,
    ThoughtPiece,
    tell_whole,
)

ASKED = Asked(Endpoint(Dialect.RESPONSES), True, "5f0c", "m", 1, maker="glm")
SAID: list[Event] = [
    Started("x", "m"),
    ThoughtPiece("hm"),
    ThoughtEnded(),
    TextPiece("We built"),
    TextPiece(" a shed."),
    BlockEnded(),
    TextPiece("Paint it."),
    Finished("stop", Tokens(10, 3)),
]


def told(events: list[Event]) -> list[dict[str, Any]]:
    teller = Teller(ASKED, compacts=True)
    raw = b"".join(teller.tell(event) for event in events) + teller.close()
    reader = Events()
    return [json.loads(item.data) for item in [*reader.feed(raw), *reader.close()] if item.data]


def test_one_item_and_nothing_else() -> None:
    events = told(SAID)
    assert [event["type"].removeprefix("response.") for event in events] == [
        "created",
        "in_progress",
        "output_item.added",
        "output_item.done",
        "completed",
    ]
    assert [event["sequence_number"] for event in events] == list(range(5))
    item = events[3]["item"]
    assert item == {"type": "compaction", "id": item["id"], "encrypted_content": f"{MARK}We built a shed.\n\nPaint it."}
    assert events[4]["response"]["output"] == [item]
    assert events[4]["response"]["usage"]["total_tokens"] == 13


@pytest.mark.parametrize("events", [[Started("x", "m"), Finished("stop")], [TextPiece(" \n"), Finished("stop")]])
def test_no_summary_is_a_failure(events: list[Event]) -> None:
    assert told(events)[-1]["type"] in ("error", "response.failed")
    assert "no summary" in json.loads(tell_whole(events, ASKED, compacts=True))["error"]["message"]


def test_a_summary_that_was_cut_is_not_told_as_whole() -> None:
    last = told([TextPiece("We bui"), Finished("max_output_tokens")])[-1]
    assert last["type"] == "response.incomplete"


def test_whole() -> None:
    document = json.loads(tell_whole(SAID, ASKED, compacts=True))
    assert [item["type"] for item in document["output"]] == ["compaction"]
    broken = json.loads(tell_whole([TextPiece("x"), Broken(ProviderError(503, "down"))], ASKED, compacts=True))
    assert broken["error"]["message"] == "down"


def test_whoever_says_it() -> None:
    """The answer of a Chat provider, and of one that speaks Responses itself."""
    chat = b'data: {"choices":[{"index":0,"delta":{"content":"We built."}}]}\n\n'
    chat += b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
    translation = Translation(Dialect.CHAT, ASKED, compacts=True)
    raw = translation.feed(chat) + translation.close()
    assert f"{MARK}We built.".encode().replace(b"\n", b"\\n") in raw
    assert translation.error is None
