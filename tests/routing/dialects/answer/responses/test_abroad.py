"""Sources of OpenAI's texts, for clients of other dialects."""

from __future__ import annotations

from typing import Any

from routecodex.routing.dialects.answer.events import Cited, Event, Lost
from routecodex.routing.dialects.answer.responses.abroad import Abroad


def part(text: str, *, logprobs: Any = ()) -> dict[str, Any]:
    source = {"type": "url_citation", "url": f"https://{text}.example", "title": "", "start_index": 0, "end_index": len(text)}
    return {"type": "output_text", "text": text, "annotations": [source], "logprobs": list(logprobs)}


def places(events: list[Event]) -> list[tuple[str, int, int]]:
    return [(one.citation.url, one.citation.start, one.citation.end) for one in events if type(one) is Cited]


def test_a_part_stands_behind_those_before_it_and_a_source_is_told_once() -> None:
    reader, parts = Abroad(), [part("eins"), part("zwei", logprobs=[{"token": "zwei", "logprob": 0}])]
    at = {"output_index": 0, "item_id": "m"}
    item = {"id": "m", "type": "message", "role": "assistant", "content": parts}
    events = [*reader.read({"type": "response.output_item.added", **at, "item": {**item, "content": []}})]
    for index, one in enumerate(parts):
        here = {**at, "content_index": index}
        events += reader.read({"type": "response.output_text.delta", **here, "delta": one["text"]})
        added = {"annotation_index": 0, "annotation": one["annotations"][0]}
        events += reader.read({"type": "response.output_text.annotation.added", **here, **added}) if index else []
        events += reader.read({"type": "response.content_part.done", **here, "part": one})
    events += reader.read({"type": "response.output_item.done", **at, "item": item})
    assert places(events) == [("https://eins.example", 0, 4), ("https://zwei.example", 4, 8)]
    assert any(type(event) is Lost for event in events)
