"""OpenAI Chat Completions, read for clients of other dialects: where a text has it from, and what has no place but here.

1. Annotations say where they stand. Lists of addresses beside the choices (Perplexity, xAI) come again and again, some before
   any text, so that they are told once, when the reason has come.
2. What a model speaks is told by its transcript.
"""

from __future__ import annotations

from ....values import JsonObject
from ...fields import list_of, object_of, text_of
from ...translation.neutral import Feature
from ..beside import Citation
from ..events import Block, Cited, Counted, Ended, Event, Lost, Opened
from .read import SOURCES
from .read import Reader as Native

_OF_TOOLS = ("executed_tools", "tool_outputs")
_BESIDE = frozenset(("audio", "annotations", *_OF_TOOLS))


class Abroad(Native):
    def __init__(self, maker: str = "", id: str = "") -> None:
        super().__init__(maker, id)
        self._text: Block | None = None
        """The newest."""
        self._texts = 0
        self._sources: dict[str, str] = {}
        """Addresses of the whole answer, and what they are called."""
        self._told: set[str] = set()
        self._ended = False

    def _read(self, document: JsonObject) -> list[Event]:
        out = super()._read(document)
        beside: list[Event] = []
        for event in out:
            if type(event) is Opened and event.block.kind == "text":
                self._text, self._texts = event.block, self._texts + 1
            elif type(event) is Ended:
                self._ended = True
        for choice in list_of(document.get("choices")):
            if isinstance(choice, dict) and choice.get("index") in (0, None):
                self._look_beside(choice, out, beside)
        for name in SOURCES:
            for entry in list_of(document[name]) if name in document else ():
                told = object_of(entry)
                url = entry if isinstance(entry, str) else text_of(told.get("url")) or text_of(told.get("link"))
                self._sources[url] = text_of(told.get("title")) or self._sources.get(url, "")
        if self._ended and self._text is not None:
            new = [url for url in self._sources if url and url not in self._told]
            beside += [Cited(self._text, Citation(url, self._sources[url])) for url in new]
            self._told.update(new)
        if beside:
            end = next((place for place, event in enumerate(out) if type(event) in (Counted, Ended)), len(out))
            out[end:end] = beside
        return out

    def _look_beside(self, choice: JsonObject, out: list[Event], beside: list[Event]) -> None:
        if object_of(choice.get("logprobs")):
            beside.append(Lost(Feature.LOGPROBS))
        told = object_of(choice.get("delta")) or object_of(choice.get("message"))
        if not _BESIDE.isdisjoint(told):
            self._look_at(told, out, beside)

    def _look_at(self, told: JsonObject, out: list[Event], beside: list[Event]) -> None:
        before = len(out)
        if speech := text_of(object_of(told.get("audio")).get("transcript")):
            self._grow("text", "", speech, out)
        for event in out[before:]:
            if type(event) is Opened:
                self._text, self._texts = event.block, self._texts + 1
        if told.get("audio"):
            beside.append(Lost(Feature.AUDIO, "its transcript is told" if speech else ""))
        if any(told.get(name) for name in _OF_TOOLS):
            beside.append(Lost(Feature.SERVER_RESULTS))
        for entry in list_of(told.get("annotations")):
            one = object_of(object_of(entry).get("url_citation"))
            url = text_of(one.get("url"))
            if one and self._text is not None:
                beside.append(Cited(self._text, self._citation(one)))
                self._told.add(url)
            elif one:
                self._sources.setdefault(url, text_of(one.get("title")))
            elif entry:
                beside.append(Lost(Feature.CITATIONS, text_of(object_of(entry).get("type"))))

    def _citation(self, told: JsonObject) -> Citation:
        start, end = told.get("start_index"), told.get("end_index")
        url, title, quoted = text_of(told.get("url")), text_of(told.get("title")), text_of(told.get("content"))
        if self._texts == 1 and isinstance(start, int) and isinstance(end, int):  # they are those of one text with all before it
            return Citation(url, title, quoted, start, end)
        return Citation(url, title, quoted)
