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


def test_a_source_of_a_result_is_nobodys() -> None:
    """A result goes on in its use's block, which is no text: a stream that is spoiled names sources there all the same."""
    use = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "q"}}
    result = {"type": "web_search_tool_result", "tool_use_id": "s", "content": []}
    cited = {"type": "content_block_delta", "index": 1, "delta": {"type": "citations_delta", "citation": SOURCE}}
    told = [
        {"type": "content_block_start", "index": 0, "content_block": use},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": result},
        cited,
        {"type": "content_block_stop", "index": 1},
    ]
    reader = Abroad()
    kinds = [type(event) for one in told for event in reader.read(one)]
    assert (kinds.count(Closed), Cited in kinds) == (1, False)
