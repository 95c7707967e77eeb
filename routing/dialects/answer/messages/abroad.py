"""Anthropic Messages, read for clients of other dialects: where a text has it from, and what Anthropic's own tools did.

A use of a tool and its result are two blocks; told is one, when the result has come.
"""

from __future__ import annotations

from ....values import JsonObject
from ...fields import arguments_of, list_of, object_of, text_of
from ..beside import Citation, Trace
from ..events import Block, Cited, Event
from .read import Reader


class Abroad(Reader):
    """A block's sources are those of all its text, so that they are told when it is over, though they may come before it: what
    rests on others stands in another block."""

    def __init__(self, maker: str = "", id: str = "") -> None:
        super().__init__(maker, id)
        self._sources: dict[Block, list[Citation]] = {}
        self._served: dict[str, Block] = {}
        """Uses of tools whose results have not come."""

    def _open(self, index: object, start: JsonObject) -> list[Event]:
        use = self._served.pop(text_of(start.get("tool_use_id")), None)
        if use is not None and use.trace is not None:
            self._blocks[index] = use
            add_result(use.trace, start)
            return []
        out = super()._open(index, start)
        block = self._blocks[index]
        block.hides = block.hides or block.kind == "trace"
        if block.kind == "trace" and (trace := trace_of(start)) is not None:
            block.trace = trace
            self._served[block.id] = block
        if block.kind == "text":
            self._sources[block] = [citation_of(object_of(one)) for one in list_of(start.get("citations"))]
        return out

    def _extra(self, block: Block, delta: JsonObject) -> list[Event]:
        if (citation := object_of(delta.get("citation"))) and (known := self._sources.get(block)) is not None:
            known.append(citation_of(citation))
        return super()._extra(block, delta)

    def _close(self, block: Block) -> list[Event]:
        if block.trace is not None and self._served.get(block.id) is block:
            block.trace.given = block.trace.given or arguments_of(str(block.text or ""))
            return []
        return [*(Cited(block, source) for source in self._sources.pop(block, ())), *super()._close(block)]


def trace_of(start: JsonObject) -> Trace | None:
    given, name = object_of(start.get("input")), text_of(start.get("name"))
    match start.get("type"), name:
        case "server_tool_use", "web_search":
            return Trace("search", given)
        case "server_tool_use", "web_fetch":
            return Trace("fetch", given)
        case "server_tool_use", "code_execution" | "bash_code_execution":
            return Trace("code", given)
        case "mcp_tool_use", _:
            return Trace("mcp", given, name, text_of(start.get("server_name")))
        case _:
            return None


def add_result(trace: Trace, result: JsonObject) -> None:
    content = result.get("content")
    about = object_of(content)
    trace.failed = (
        result.get("is_error") is True or text_of(about.get("type")).endswith("_error") or bool(about.get("return_code"))
    )
    found = list_of(content) or [about]
    trace.found += [citation_of(one) for one in map(object_of, found) if one.get("url")]
    if trace.tool == "code":
        trace.output = text_of(about.get("stdout")) + text_of(about.get("stderr"))
    elif trace.tool == "mcp":
        trace.output = text_of(content) or "".join(text_of(object_of(part).get("text")) for part in list_of(content))


def citation_of(told: JsonObject) -> Citation:
    source = text_of(told.get("source"))  # of a search result of the call's own
    url = text_of(told.get("url")) or (source if "://" in source else "")
    title = text_of(told.get("title")) or text_of(told.get("document_title"))
    return Citation(url, title or source, text_of(told.get("cited_text")))
