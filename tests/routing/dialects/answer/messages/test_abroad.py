"""Sources of Anthropic's texts and what its own tools did, for clients of other dialects."""

from __future__ import annotations

from routecodex.routing.dialects.answer.beside import Citation, Trace
from routecodex.routing.dialects.answer.events import Cited, Closed, Opened, Piece
from routecodex.routing.dialects.answer.messages.abroad import Abroad

SOURCE = {"type": "search_result_location", "source": "https://a.example", "title": None, "cited_text": "x"}


def test_a_source_is_told_when_its_text_is_over() -> None:
    reader = Abroad()
    reader.read({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "", "citations": None}})
    early = reader.read({"type": "content_block_delta", "index": 0, "delta": {"type": "citations_delta", "citation": SOURCE}})
    assert not any(type(event) is Cited for event in early)
    cited, closed = reader.read({"type": "content_block_stop", "index": 0})
    assert type(cited) is Cited
    assert cited.citation == Citation("https://a.example", "https://a.example", "x")
    assert type(closed) is Closed


def test_a_document_holds_sources_uses_and_results() -> None:
    use = {"type": "server_tool_use", "id": "s", "name": "web_fetch", "input": {"url": "u"}}
    failed = {"type": "web_fetch_tool_result", "tool_use_id": "s", "content": {"type": "web_fetch_tool_error", "error_code": "x"}}
    document = {"content": [use, failed, {"type": "text", "text": "a", "citations": [SOURCE]}], "stop_reason": "end_turn"}
    events = Abroad().read_whole(document)
    kinds = [type(event) for event in events]
    assert kinds[1:7] == [Opened, Closed, Opened, Piece, Cited, Closed]
    opened = events[1]
    assert type(opened) is Opened
    assert opened.block.trace == Trace("fetch", {"url": "u"}, failed=True)
