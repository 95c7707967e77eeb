"""What the mergers share: the form of an answer, sums over rounds, and the merger of whole JSON answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from ...errors import BadAnswer
from ...jsonbytes import dump_pieces, dumps
from ...values import Dialect, JsonObject, ProviderError, ToolCall, Usage
from .. import answers
from ..answer.join import BLANK_LINE, BOM
from ..answer.said import GrowingText
from ..failures import document_without_empty_error
from ..fields import read_json, read_object
from ..finish import AS_USUAL, Endings, holds_calls
from ..said import Said
from ..sse import Event

__all__ = ["BLANK_LINE", "BOM", "Collected", "Form", "GrowingText"]

WHOLE_BYTES = 64 << 20
"""A whole JSON answer larger than this is none."""


@dataclass(frozen=True, slots=True)
class Form:
    """What the client asked for."""

    own_tools: frozenset[str] = frozenset()
    """Names of the tools that are ours."""
    include_usage: bool = False
    """Chat: the client asked for the usage chunk."""
    json_array: bool = False
    """Gemini: the stream is one JSON array."""
    envelope: bool = False
    """Gemini: the answer sits in `response`."""
    endings: Endings = AS_USUAL


def usage_in(dialect: Dialect, counts: JsonObject) -> Usage:
    """A dialect's own counts as ours."""
    return answers.usage_of(dialect, counts) or Usage()


def unreadable(message: str) -> Said:
    """A round whose bytes are no answer."""
    error = ProviderError(502, message, "BAD_ANSWER")
    return Said("", (), (), "error", Usage(), "", (), complete=False, error=error)


def too_long(error: BadAnswer) -> ProviderError:
    return ProviderError(error.status, error.message, error.code)


def is_cut_off(event: Event) -> bool:
    """Of the bytes that a stream left without a blank line: not the whole of an event."""
    return event.data not in (b"", b"[DONE]") and read_json(event.data) is None


def id_of(rounds: Sequence[Said]) -> str:
    """Of the whole answer: the first round's."""
    return rounds[0].id if rounds else ""


def client_calls(rounds: Iterable[Said]) -> tuple[ToolCall, ...]:
    """The calls that the client receives, in order."""
    return tuple(call for said in rounds for call in said.calls if call not in said.own)


def told_calls(rounds: Iterable[Said]) -> bool | None:
    """What the reason of the whole answer can be corrected by."""
    return holds_calls(call.arguments for call in client_calls(rounds))


class Collected(ABC):
    """Whole JSON answers: nothing leaves before the end."""

    dialect: ClassVar[Dialect]

    def __init__(self, form: Form) -> None:
        self.form = form
        self.said: list[Said] = []
        """The rounds that count."""
        self.documents: list[JsonObject] = []
        """Their JSON."""
        self._raw = bytearray()
        self._first = b""

    @abstractmethod
    def _read(self, document: JsonObject) -> Said:
        """What one answer says."""

    @abstractmethod
    def _merged(self) -> JsonObject:
        """All documents as one."""

    @property
    def id(self) -> str:
        return id_of(self.said)

    def begin_round(self, *, exact: bool = False) -> None:
        self._raw.clear()

    def feed(self, chunk: bytes) -> bytes:
        if len(self._raw) <= WHOLE_BYTES:
            self._raw += chunk
        return b""

    def end_round(self) -> Said:
        if len(self._raw) > WHOLE_BYTES:
            return unreadable(f"The provider's answer is longer than {WHOLE_BYTES} bytes")
        raw = document_without_empty_error(bytes(self._raw))
        document = read_object(raw)
        error = answers.error_in(self.dialect, raw) if document is None else answers.error_of(self.dialect, document)
        if document is None or error is not None:
            said = unreadable("The provider's answer is not JSON")
            return said if error is None else Said("", (), (), "error", said.usage, "", (), complete=False, error=error)
        if not self.said:
            self._first = raw
        said = self._read(document)
        self.said.append(said)
        self.documents.append(document)
        self._raw.clear()
        return said

    def finish(self) -> Iterable[bytes]:
        if not self.said:
            return (bytes(self._raw),)
        return (self._first,) if len(self.said) == 1 and not self.said[0].own else dump_pieces(self._merged(), dumps)

    def fail(self, status: int, message: str, code: str) -> bytes:
        return answers.write_error(self.dialect, status, message, code)

    def keep_alive(self) -> bytes:
        """White space in front of JSON means nothing."""
        return b" "
