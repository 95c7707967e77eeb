"""The page `/routecodex`: sessions, calls, keys, what was used, and buttons for what `routecodex daemon` can do.

1. In mitmweb it stands under its own login and protection of forms; where that has no login (below 11.1.2) there is no page.
   Without mitmweb it has a port of its own (`alone.py`).
2. It asks the one control API, as the commands do; nothing else changes anything.
3. Handlers stay while the addon is loaded again: they ask whoever serves now.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from ...routing.jsonbytes import dumps
from ...routing.values import JsonObject

PATH = "/routecodex"
_STATIC = Path(__file__).with_name("static")
_ASKED: tuple[JsonObject, ...] = ({"verb": "status"}, {"verb": "models"}, {"verb": "sessions"}, {"verb": "usage", "days": 14})
_QUESTION_BYTES = 64 << 10
_POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'"


@dataclass(slots=True)
class Site:
    """Who answers; another one after a reload."""

    ask: Callable[[bytes], Awaitable[JsonObject]]
    """The control API."""
    calls: Callable[[], list[JsonObject]]
    """The newest first."""
    shows_flows: bool = False
    """It stands in a window that lists flows."""


_serving: list[Site] = []
_registered: list[object] = []


async def state(site: Site) -> JsonObject:
    told: JsonObject = {"calls": site.calls(), "showsFlows": site.shows_flows}
    for question in _ASKED:
        told[str(question["verb"])] = await site.ask(dumps(question))
    return told


def serve(site: Site, app: Any = None) -> None:
    """`app`: mitmweb's own application, where there is one."""
    _serving[:] = [site]
    if app is None or app in _registered:
        return
    from mitmproxy.tools.web import app as web

    if not hasattr(web, "AuthRequestHandler"):
        return  # whoever reaches the port would be let in
    _registered.append(app)
    app.add_handlers(r".*", [(PATH + path, handler) for path, handler in handlers(web.RequestHandler)])


def close() -> None:
    _serving.clear()


def handlers(base: Any) -> list[tuple[str, Any]]:
    class Handler(base):  # type: ignore[misc]
        def set_default_headers(self) -> None:
            super().set_default_headers()
            self.set_header("Content-Security-Policy", _POLICY)
            self.set_header("Cache-Control", "no-store")
            self.set_header("X-Content-Type-Options", "nosniff")

        def write_json(self, told: object) -> None:
            self.set_header("Content-Type", "application/json; charset=UTF-8")
            self.finish(json.dumps(told))

    class Page(Handler):
        def get(self) -> None:
            text = (_STATIC / "page.html").read_text("utf-8")
            token = self.xsrf_token.decode()
            self.set_header("Content-Type", "text/html; charset=UTF-8")
            self.finish(text.replace("{{xsrf}}", token))

    class Asset(Handler):
        file: ClassVar[str]
        kind: ClassVar[str]

        def get(self) -> None:
            self.set_header("Content-Type", f"{self.kind}; charset=UTF-8")
            self.finish((_STATIC / self.file).read_text("utf-8"))

    class Script(Asset):
        file, kind = "page.js", "text/javascript"

    class Style(Asset):
        file, kind = "page.css", "text/css"

    class State(Handler):
        async def get(self) -> None:
            if not _serving:
                self.set_status(503)
                self.write_json({"error": "RouteCodex is not loaded"})
                return
            self.write_json(await state(_serving[0]))

    class Ask(Handler):
        async def post(self) -> None:
            if not _serving or len(self.request.body) > _QUESTION_BYTES:
                self.set_status(503)
                self.write_json({"error": "RouteCodex is not loaded"})
                return
            self.write_json(await _serving[0].ask(self.request.body))

    return [("/?", Page), ("/page.js", Script), ("/page.css", Style), ("/state", State), ("/ask", Ask)]
