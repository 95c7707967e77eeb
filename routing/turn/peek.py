"""The beginning of a round, held back until it is known to be an answer.

An error may still be replaced by another round; content may not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from ..dialects import answers
from ..dialects.failures import document_without_empty_error
from ..dialects.sse import ArrayItems, Event, Events
from ..errors import RouteCodexError
from ..values import Endpoint, ProviderError
from . import forms

HELD_BYTES = 1 << 20
"""A stream that has said this much without content is content all the same."""
WHOLE_BYTES = 64 << 10
"""A whole JSON answer larger than this is no error envelope."""


@dataclass(frozen=True, slots=True)
class Begun:
    """The round answers; these are its first bytes."""

    held: bytes
    ended: bool = False
    """They are all of it."""
    converted: bool = False
    """It came in the other form; the bytes are in the one that was asked for."""


Verdict = Begun | ProviderError | None
"""None: not known yet."""


class Peek:
    def __init__(self, endpoint: Endpoint, *, stream: bool, merged: bool) -> None:
        self._endpoint = endpoint
        self._stream = stream
        self._patient = merged
        """A merger wants a whole document at once."""
        self._held = bytearray()
        self._reader: Events | ArrayItems | None = None

    def feed(self, chunk: bytes) -> Verdict:
        self._held += chunk
        if not self._stream:
            is_answer = (
                len(self._held) > WHOLE_BYTES and not self._patient and not forms.looks_like_stream(bytes(self._held[:64]))
            )
            return Begun(bytes(self._held)) if is_answer else None
        if self._reader is None:
            self._reader = answers.events_for(self._endpoint.json_array)
        verdict = self._judge(partial(self._reader.feed, chunk))
        return Begun(bytes(self._held)) if verdict is None and len(self._held) > HELD_BYTES else verdict

    def end(self) -> Begun | ProviderError:
        """The round is over, and nothing of it has left."""
        held, dialect = bytes(self._held), self._endpoint.dialect
        if not self._stream:
            held = document_without_empty_error(held)
        if self._reader is not None and (verdict := self._judge(self._reader.close)) is not None:
            return verdict if isinstance(verdict, ProviderError) else Begun(held, ended=True)
        if (error := answers.error_in(dialect, held)) is not None:
            return error
        if not self._stream:
            whole = forms.as_whole(self._endpoint, held) if forms.looks_like_stream(held) else None
            return Begun(held, ended=True) if whole is None else Begun(whole, ended=True, converted=True)
        if answers.is_content(dialect, held) and (stream := forms.as_stream(self._endpoint, held)) is not None:
            return Begun(stream, ended=True, converted=True)
        return ProviderError(502, "The provider's stream ended before it began.", network=True)

    def _judge(self, read: Callable[[], list[Event]]) -> Verdict:
        dialect = self._endpoint.dialect
        try:
            found = read()
        except RouteCodexError as error:
            return ProviderError(502, error.message, network=True)
        for event in found:
            if not event.data:
                continue
            if (error_event := answers.error_in(dialect, event.data)) is not None:
                return error_event
            if answers.is_content(dialect, event.data):
                return Begun(bytes(self._held))
        return None
