"""What mitmproxy's windows show of our flows: the conversation in them, and each leg of a call by itself."""

from __future__ import annotations

from mitmproxy import ctx

from . import content_view, legs

_COLUMNS = "web_columns"
_COMMENT = "comment"


def open_() -> None:
    """Once mitmproxy runs: by then it has all its options and addons."""
    content_view.register()
    legs.refuse_replays()
    options = ctx.options
    if _COLUMNS in options and not options.has_changed(_COLUMNS):
        columns = list(getattr(options, _COLUMNS))
        if _COMMENT not in columns:
            options.update(**{_COLUMNS: [*columns, _COMMENT]})
