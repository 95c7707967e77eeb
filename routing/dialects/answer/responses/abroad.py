"""OpenAI Responses, read for clients of other dialects: where a text has it from, what OpenAI's own tools did, and what has no
place but here."""

from __future__ import annotations

from ....values import JsonObject, ProviderError
from ...fields import arguments_of, list_of, object_of, text_of
from ...translation.neutral import Feature
from ..beside import Citation, Trace
from ..events import Block, Cited, Event, Failed, Lost
from .read import NOT_OVER, Part, Reader, error_of


class Abroad(Reader):
    """Sources come while the text does, and once more, or for the first time, with its end."""

    def read_whole(self, response: JsonObject) -> list[Event]:
        """Such clients cannot ask again for an answer that has not come to its end."""
        if (status := text_of(response.get("status"))) in NOT_OVER and error_of(response) is None:
            return [Failed(ProviderError(502, f"The provider's answer has the status {status}", "UPSTREAM_ERROR"))]
        return super().read_whole(response)

    def _annotation(self, part: Part, document: JsonObject) -> list[Event]:
        return [*super()._annotation(part, document), self._cited(part, object_of(document.get("annotation")))]

    def _end_part(self, block: Block, index: object, given: JsonObject, out: list[Event]) -> None:
        super()._end_part(block, index, given, out)
        part = self._parts[block][index]
        told = list_of(given.get("annotations"))
        out += [self._cited(part, object_of(one)) for one in told[len(part.annotations) :]]
        part.annotations += told[len(part.annotations) :]
        if given.get("logprobs"):
            out.append(Lost(Feature.LOGPROBS))

    def _look_back(self, block: Block, item: JsonObject) -> None:
        if block.kind == "trace":
            block.id, block.trace = text_of(item.get("id")), trace_of(item)

    def _cited(self, part: Part, told: JsonObject) -> Cited:
        """Places are those in its part; a block is all parts."""
        before = 0
        for other in self._parts.get(part.block, {}).values():
            if other is part:
                break
            before += other.heard
        start, end = told.get("start_index"), told.get("end_index")
        url, title = text_of(told.get("url")), text_of(told.get("title")) or text_of(told.get("filename"))
        if isinstance(start, int) and isinstance(end, int):
            return Cited(part.block, Citation(url, title, start=before + start, end=before + end))
        return Cited(part.block, Citation(url, title))


def trace_of(item: JsonObject) -> Trace | None:
    failed = item.get("status") in ("failed", "incomplete") or bool(item.get("error"))
    match item.get("type"):
        case "web_search_call":
            action = object_of(item.get("action"))
            url = text_of(action.get("url"))
            if url and not action.get("query"):
                return Trace("fetch", {"url": url}, found=[Citation(url)], failed=failed)
            sources = [object_of(one) for one in list_of(action.get("sources"))]
            found = [Citation(text_of(one.get("url")), text_of(one.get("title"))) for one in sources if one.get("url")]
            queries = [text_of(one) for one in list_of(action.get("queries"))]
            return Trace("search", {"query": text_of(action.get("query")) or ", ".join(queries)}, found=found, failed=failed)
        case "code_interpreter_call":
            logs = [text_of(object_of(one).get("logs")) for one in list_of(item.get("outputs"))]
            return Trace("code", {"code": text_of(item.get("code"))}, output="".join(logs), failed=failed)
        case "mcp_call":
            error, given = object_of(item.get("error")), arguments_of(text_of(item.get("arguments")))
            failure = "".join(text_of(object_of(part).get("text")) for part in list_of(error.get("content")))
            told = text_of(item.get("output")) or failure or text_of(error.get("message")) or text_of(item.get("error"))
            return Trace("mcp", given, text_of(item.get("name")), text_of(item.get("server_label")), output=told, failed=failed)
        case _:
            return None
