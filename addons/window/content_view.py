"""The content view "Conversation": chosen by itself for calls to models; mitmproxy's raw view is one click away.

mitmproxy 11 asks a `View` for lines with styles, 12 a `Contentview` for text: both are given the same lines. They are made when
somebody looks, and so is what makes them imported.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mitmproxy import contentviews, http
from mitmproxy.flow import Flow

from ...routing.dialects.endpoints import endpoint_of
from ...routing.values import Dialect

NAME = "Conversation"
KEY = "routecodex"
PRIORITY = 10.0
"""Above mitmproxy's own views of JSON and of event streams."""


def lines(data: bytes, flow: Flow | None, message: object) -> Iterator[str]:
    """Of a request or an answer; `ValueError` where it is no model's."""
    from ...routing.window import page

    if not isinstance(flow, http.HTTPFlow):
        raise ValueError("This is no call to a model.")
    record = record_of(flow)
    endpoint = endpoint_of(flow.request.method, flow.request.path)
    if isinstance(message, http.Response):
        if (dialect := _dialect(record) or (endpoint.dialect if endpoint is not None else None)) is None:
            raise ValueError("This is no model's answer.")
        return page.answer_lines(record, data, dialect, message.status_code)
    if endpoint is None:
        raise ValueError("This is no call to a model.")
    return page.request_lines(record, data, endpoint)


def record_of(flow: Flow) -> dict[str, object]:
    """What was written down about it; a flow from a file may hold anything there."""
    record = flow.metadata.get(KEY)
    return record if isinstance(record, dict) else {}


def _dialect(record: dict[str, object]) -> Dialect | None:
    """The answer's: the client's on its own flow, the provider's on every other leg."""
    try:
        return Dialect(str(record.get("spoken", "")))
    except ValueError:
        return None


def priority(data: bytes, flow: Flow | None) -> float:
    ours = isinstance(flow, http.HTTPFlow) and bool(data) and endpoint_of(flow.request.method, flow.request.path) is not None
    return PRIORITY if ours else -1


_Base: Any = getattr(contentviews, "Contentview", None) or contentviews.View


class Conversation(_Base):  # type: ignore[misc]
    name = NAME
    syntax_highlight = "none"

    def __call__(
        self, data: bytes, *, flow: Flow | None = None, http_message: object = None, **others: object
    ) -> tuple[str, Iterator[list[tuple[str, str]]]]:
        """As 11 asks."""
        return NAME, ([("text", line)] for line in lines(data, flow, http_message))

    def prettify(self, data: bytes, metadata: Any) -> str:
        """As 12 asks."""
        return "\n".join(lines(data, metadata.flow, metadata.http_message))

    def render_priority(self, data: bytes, metadata: Any = None, *, flow: Flow | None = None, **others: object) -> float:
        return priority(data, metadata.flow if metadata is not None else flow)


def register() -> None:
    """Once, however often the addon is loaded again: mitmproxy 11 refuses a second view of that name."""
    if NAME.lower() not in (name.lower() for name in _names()):
        contentviews.add(Conversation())


def _names() -> list[str]:
    """12 has a registry, 11 a list."""
    registry: Any = getattr(contentviews, "registry", None)
    if registry is not None:
        return list(registry.available_views())
    older: Any = contentviews
    return [view.name for view in older.views]
