"""What mitmproxy's windows show of our flows: the conversation in them, each leg of a call by itself, a page, and commands."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from mitmproxy import ctx

from ...routing.values import JsonObject
from . import content_view, legs, site

_COLUMNS = "web_columns"
_COMMENT = "comment"


def open_(
    ask: Callable[[bytes], Awaitable[JsonObject]],
    calls: Callable[[], list[JsonObject]],
    metrics: Callable[[], Awaitable[str | None]],
) -> None:
    """Once mitmproxy runs: by then it has all its options and addons. `ask`: the control API."""
    content_view.register()
    legs.refuse_replays()
    options = ctx.options
    if _COLUMNS in options and not options.has_changed(_COLUMNS):
        columns = list(getattr(options, _COLUMNS))
        if _COMMENT not in columns:
            options.update(**{_COLUMNS: [*columns, _COMMENT]})
    master: Any = ctx.master
    if (app := getattr(master, "app", None)) is not None:
        site.serve(site.Site(ask, calls, metrics), app)


def close() -> None:
    site.close()
