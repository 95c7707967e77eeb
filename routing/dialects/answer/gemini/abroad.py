"""Gemini's generateContent, read for clients of other dialects.

1. They are told in words what Google's own tools did, and the signature of a text behind all of it: providers sign its last
   piece, which is in the middle of it for them.
2. What an answer is grounded in are sources of its text. Google counts bytes; where they do not fit, what the text says does.
"""

from __future__ import annotations


class Abroad(Reader):
    """The same for clients of other dialects."""

    def __init__(self, maker: str = "", id: str = "") -> None:
        super().__init__(maker, id)
        self._signed: Seal | None = None
        """Of the text before, until it is over."""

    def _read_text(self, part: JsonObject, text: str, word: str, out: list[Event]) -> None:
        kind: Kind = "thought" if part.get("thought") is True else "text"
        if kind == "text" and word and not text and (self._last is None or self._last.kind == "text"):
            self._wait(word, out)
        else:
            super()._read_text(part, text, word, out)

    def _sign(self, block: Block, kind: Kind, word: str, out: list[Event]) -> None:
        if block.kind == "thought":
            super()._sign(block, kind, word, out)
        else:
            self._wait(word, out)

    def _read_other(self, part: JsonObject, word: str, out: list[Event]) -> None:
        shown = None if part.get("thought") is True else shown_in(part)
        if isinstance(shown, TextPiece):
            last = self._last
            if last is None or last.kind != "text":
                last = self._open(Block("text"), out)
            out.append(Piece(last, shown.text))
        elif shown is not None:
            super()._read_other(part, "", out)
        if word and self._last is not None and self._last.kind == "thought":
            self._sign(self._last, "text", word, out)
        elif word:
            self._wait(word, out)

    def _wait(self, word: str, out: list[Event]) -> None:
        self._tell_seal(out)
        self._signed = self._seal(word, "part")

    def _end(self, out: list[Event], *, half: bool) -> None:
        super()._end(out, half=half)
        self._tell_seal(out)

    def _tell_seal(self, out: list[Event]) -> None:
        """A thought of nothing else."""
        seal, self._signed = self._signed, None
        if seal is not None:
            block = Block("thought")
            block.seal = seal
            out += (Opened(block), Closed(block))
