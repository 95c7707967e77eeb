"""Events as a Responses client's bytes: numbers go on, each item begins and ends once."""

from __future__ import annotations

import json

from routecodex.routing.dialects.answer.events import Began, Block, Closed, Counted, Done, Ended, Event, Opened, Piece
from routecodex.routing.dialects.answer.responses import Writer
from routecodex.routing.dialects.answer.said import Content
from routecodex.routing.dialects.sse import Events
from routecodex.routing.dialects.translation.neutral import Tokens
from tests.rig.asked import Asked
from tests.routing.dialects.answer.talks import RESPONSES, Way


def told(*events: Event) -> list[dict[str, object]]:
    writer = Writer(Asked(Way(RESPONSES).endpoint, True, "0123", "asked", 1, maker="acme"))
    Content().add(events)  # what a text says, its block has
    raw = b"".join(writer.made(event) for event in events) + b"".join(writer.finish())
    return [json.loads(event.data) for event in Events().feed(raw)]


def test_a_text_of_anothers() -> None:
    block = Block("text", {})
    block.foreign = True
    said = told(
        Began("x", "m"),
        Opened(block),
        Piece(block, "Hel"),
        Piece(block, "lo"),
        Closed(block),
        Counted(Tokens()),
        Ended("stop"),
        Done(),
    )
    kinds = [str(one["type"]).removeprefix("response.") for one in said]
    assert kinds[0] == "created"
    assert kinds[-1] == "completed"
    assert kinds.count("output_item.added") == kinds.count("output_item.done") == 1
    assert [one["delta"] for one in said if one["type"] == "response.output_text.delta"] == ["Hel", "lo"]
    assert [one["text"] for one in said if one["type"] == "response.output_text.done"] == ["Hello"]
    assert [one["sequence_number"] for one in said] == list(range(len(said)))


def test_a_thought_that_came_as_a_whole_is_told_step_by_step() -> None:
    """An SDK puts the pieces of its summary into the item as it was added."""
    thought = {"type": "reasoning", "id": "rs_1", "status": "completed", "summary": [{"type": "summary_text", "text": "hmm"}]}
    block = Block("thought", thought)
    said = told(Began("x", "m"), Opened(block), Closed(block), Counted(Tokens()), Ended("stop"), Done())
    added, done = (next(one for one in said if one["type"] == f"response.output_item.{how}") for how in ("added", "done"))
    assert added["item"] == {**thought, "status": "in_progress", "summary": []}
    assert done["item"] == thought
    kinds = [str(one["type"]).removeprefix("response.reasoning_") for one in said if "summary" in str(one["type"])]
    assert kinds == ["summary_part.added", "summary_text.delta", "summary_text.done", "summary_part.done"]
