"""OpenAI Responses: what a model wrote down of a conversation, told as the one item that a compaction is answered with.

Nothing is told before it is whole.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....values import ProviderError
from ...calls.compaction import item_of
from ..events import Block, Closed, Ended, Event, Opened, Piece, Rank

NOTHING = ProviderError(502, "The provider's answer holds no summary of the conversation.", "UPSTREAM_ERROR")


class Summary:
    """Stands where a `Serial` does: in front of the writer."""

    def __init__(self, id: str) -> None:
        self._id = id
        self._texts: dict[Block, list[str]] = {}

    def order(self, events: Sequence[Event]) -> Sequence[Event]:
        out: list[Event] = []
        for event in events:
            if type(event) is Piece and event.block.kind == "text":
                self._texts.setdefault(event.block, []).append(event.text)
            elif type(event) is Ended:
                item = Block("trace", item_of(self.text, self._id))
                out += (Opened(item), Closed(item), event)
            elif event.rank in (Rank.OPENS, Rank.ENDS, Rank.PASSES):
                out.append(event)
        return out

    @property
    def grows(self) -> Block | None:
        return None

    def between(self) -> Sequence[Event]:
        return ()

    @property
    def text(self) -> str:
        """Texts have a blank line between them."""
        return "\n\n".join("".join(pieces).rstrip() for pieces in self._texts.values()).strip()
