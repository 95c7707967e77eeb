"""The client's side of a turn, between the turn that writes it and the stream that sends it."""

from __future__ import annotations

import contextlib
import select
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from mitmproxy import http
from mitmproxy.proxy.server import ConnectionHandler
from msgspec import Struct, field

from ..routing.turn.state import Course
from . import fail_closed
from .kept import Kept

if TYPE_CHECKING:
    from .carried_rounds import FirstRound

AT_ONCE_BYTES = 64 << 10
"""Of a long end about so much leaves before the client has taken it."""
_GONE = getattr(select, "POLLRDHUP", 0) | getattr(select, "POLLHUP", 0)


class OpenAnswer(Struct, eq=False, weakref=True):
    """The client's side of a turn: what waits to be written to it."""

    upstream: FirstRound
    """Hears what becomes of the first round, and that the client has left."""
    course: Course
    """The turn's: where it has ended, what waits is all, and where it is cut off, the client is."""
    outbox: list[bytes] = field(default_factory=list)
    ending: Iterator[bytes] | None = None
    """What leaves last: made as the client takes it, since the end of some answers repeats all of them."""
    response: http.Response | None = None
    """The head that leaves with the first bytes; the first round's own where it is None."""
    head_now: bool = False
    """Send the head although there are no bytes yet."""
    abandoned: bool = False
    """Drop the first round's upstream; whatever it still says is ignored."""
    waits: bool = False
    """A piece of the end is on its way, and the next one waits until the client has taken it."""
    kept: Kept = field(default_factory=Kept)
    """Of what has left."""

    def take(self) -> bytes:
        """What leaves now. Where `ending` is not None then, there is more once the client has taken this."""
        pieces, self.outbox = self.outbox, []
        if self.ending is not None:
            size, ending, self.ending = 0, self.ending, None
            try:
                for piece in ending:
                    pieces.append(piece)
                    size += len(piece)
                    if size >= AT_ONCE_BYTES:
                        self.ending = ending
                        break
            except Exception as error:
                fail_closed.report("the end of an answer", error, "Its client was cut off.")
                self.course.cut()
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def in_bites(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """None longer than what leaves at once."""
    for piece in pieces:
        for at in range(0, len(piece), AT_ONCE_BYTES):
            yield piece[at : at + AT_ONCE_BYTES]


def has_left(handler: ConnectionHandler) -> bool:
    """Whether the client has gone, as the system knows it: nobody may have read so yet, where this process stood still."""
    transport = handler.transports.get(handler.client)
    if transport is None or transport.writer is None:
        return True
    link = transport.writer.get_extra_info("socket", None)
    if link is None or not hasattr(select, "poll"):
        return False
    if (number := link.fileno()) < 0:
        return True
    asked = select.poll()
    asked.register(number, _GONE)
    return bool(asked.poll(0))


async def drain_client(handler: ConnectionHandler) -> None:
    transport = handler.transports.get(handler.client)
    if transport is not None and transport.writer is not None:
        with contextlib.suppress(OSError):
            await transport.writer.drain()
