"""What mitmproxy's windows show of our flows: the conversation in them, each leg of a call by itself, a page, and commands."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import Any

from mitmproxy import ctx

from ...routing.values import JsonObject
from . import content_view, legs, site

_COLUMNS = "web_columns"
_COMMENT = "comment"
_alone: list[Any] = []
"""The page's own server, where there is no mitmweb."""


def open_(
    ask: Callable[[bytes, str | None], Awaitable[JsonObject]],
    calls: Callable[[], list[JsonObject]],
    metrics: Callable[[], Awaitable[str | None]],
    admins: Callable[[], Collection[str]],
) -> None:
    """Once mitmproxy runs: by then it has all its options and addons. `ask`: the control API. `admins`: who sees what is
    everybody's."""
    content_view.register()
    legs.refuse_replays()
    options = ctx.options
    if _COLUMNS in options and not options.has_changed(_COLUMNS):
        columns = list(getattr(options, _COLUMNS))
        if _COMMENT not in columns:
            options.update(**{_COLUMNS: [*columns, _COMMENT]})
    master: Any = ctx.master
    app = getattr(master, "app", None)
    site.serve(site.Site(ask, calls, metrics, shows_flows=app is not None), app)
    if app is None and (port := options.routecodex_page):
        from .alone import Alone

        alone = Alone(admins)
        alone.open(port)
        _alone.append(alone)


def close() -> None:
    site.close()
    while _alone:
        _alone.pop().close()
