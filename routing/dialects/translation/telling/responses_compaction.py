"""OpenAI Responses: what a model wrote down of a conversation, told as the one item that a compaction is answered with.

Nothing is told before it is whole. Meanwhile each piece is a comment, so that a slow model is not taken for a silent one.
"""

from __future__ import annotations

from collections.abc import Iterable

from ....jsonbytes import dumps
from ....values import ProviderError
from ...answers import responses as answers
from ...calls.compaction import item_of
from ..neutral import Asked, BlockEnded, Broken, Event, Finished, Started, TextPiece
from .responses import Teller as Whole

_ALIVE = b":\n\n"
_NOTHING = ProviderError(502, "The provider's answer holds no summary of the conversation.", "UPSTREAM_ERROR")


class Teller(Whole):
    """One stream."""

    _summary = ""

    def tell(self, event: Event) -> bytes:
        match event:
            case TextPiece(text):
                self._summary += text
            case BlockEnded():
                self._summary = self._summary.rstrip() + "\n\n"
            case Finished():
                summary = self._summary.strip()
                if not summary:
                    return super().tell(Broken(_NOTHING))
                begun = self._begin()
                item = item_of(summary, self._names.item("cmp", len(self._output)))
                return begun + self._added(item) + self._done(item) + super().tell(event)
            case Started() | Broken():
                return super().tell(event)
        return _ALIVE


def tell_whole(events: Iterable[Event], asked: Asked) -> bytes:
    """The whole JSON answer; an error where there is none."""
    teller = Teller(asked)
    for event in events:
        if isinstance(event, Broken):
            return answers.write_error(event.error.status, event.error.message, event.error.code)
        teller.tell(event)
    return dumps(teller.ended) if teller.ended is not None else answers.write_error(502, _NOTHING.message, _NOTHING.code)
