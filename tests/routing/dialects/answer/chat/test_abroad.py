"""Sources of Chat's texts, for clients of other dialects."""

from __future__ import annotations

from routecodex.routing.dialects.answer.beside import Citation
from routecodex.routing.dialects.answer.chat.abroad import Abroad
from routecodex.routing.dialects.answer.events import Cited, Ended, Lost, Opened
from tests.routing.dialects.answer.talks import chunk


def test_addresses_wait_for_the_reason_and_stand_before_it() -> None:
    reader = Abroad()
    beside = {"citations": ["https://a.example", "", 1], "search_results": [{"url": "https://a.example", "title": "A"}, 5]}
    told = [reader.read({**chunk(delta), **beside}) for delta in ({"role": "assistant"}, {"content": "a"}, {"content": "b"})]
    assert not any(type(event) is Cited for events in told for event in events)
    *before, end = reader.read({**chunk({}, "stop"), **beside})
    assert type(end) is Ended
    assert [event.citation for event in before if type(event) is Cited] == [Citation("https://a.example", "A")]
    assert not any(type(event) is Cited for event in reader.read({**chunk({}), "choices": [], **beside}))


def test_places_are_known_where_there_is_one_text() -> None:
    one = {"type": "url_citation", "url_citation": {"url": "https://a.example", "start_index": 0, "end_index": 1}}
    reader = Abroad()
    reader.read(chunk({"content": "a"}))
    first = reader.read(chunk({"annotations": [one, {"type": "file"}]}))
    reader.read(chunk({"reasoning": "hm"}))
    reader.read(chunk({"content": "b"}))
    second = reader.read(chunk({"annotations": [one]}))
    assert [event.citation.end for events in (first, second) for event in events if type(event) is Cited] == [1, -1]
    assert [event.what for event in first if type(event) is Lost] == ["file"]


def test_what_is_spoken_in_pieces_is_one_text_that_has_sources() -> None:
    source = {"type": "url_citation", "url_citation": {"url": "https://a.example", "start_index": 0, "end_index": 2}}
    reader = Abroad()
    begun = reader.read(chunk({"audio": {"transcript": "so"}}))
    told = reader.read(chunk({"audio": {"transcript": " it is"}, "annotations": [source]}))
    (text,) = (event.block for event in begun if type(event) is Opened)
    (cited,) = (event for event in told if type(event) is Cited)
    assert cited.block is text
    assert (cited.citation.start, cited.citation.end) == (0, 2)
