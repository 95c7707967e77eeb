"""How many flows mitmweb keeps: left to itself every one, with all that was asked, until the machine's memory is full."""

from __future__ import annotations

from collections import deque

from mitmproxy import ctx, http

MOST_BYTES = 256 << 20
"""Of bodies, however few flows they belong to."""


class ShownFlows:
    """The newest that are over; mitmdump keeps none."""

    def __init__(self) -> None:
        self._over: deque[tuple[str, int]] = deque()
        self._size = 0

    def add(self, flow: http.HTTPFlow, most: int) -> None:
        """`most`: so many stay; 0: all of them."""
        view = ctx.master.addons.get("view")
        if view is None or not most:
            return
        size = sum(len(message.raw_content or b"") for message in (flow.request, flow.response) if message is not None)
        self._over.append((flow.id, size))
        self._size += size
        while len(self._over) > most or (self._size > MOST_BYTES and len(self._over) > 1):
            id, size = self._over.popleft()
            self._size -= size
            if (oldest := view.get_by_id(id)) is not None and not oldest.live:
                view.remove([oldest])
