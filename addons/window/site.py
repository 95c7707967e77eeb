"""The page `/routecodex`: sessions, calls, keys, what was used, and buttons for what `routecodex daemon` can do.

1. In mitmweb it stands under its own login and protection of forms; where that has no login (below 11.1.2) there is no page.
   Without mitmweb it has a port of its own (`alone.py`).
2. It asks the one control API, as the commands do; nothing else changes anything.
3. Handlers stay while the addon is loaded again: they ask whoever serves now.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, ClassVar

from msgspec import Struct

from ...routing.jsonbytes import dumps
from ...routing.values import JsonObject

PATH = "/routecodex"
_STATIC = Path(__file__).with_name("static")
_ASKED: tuple[JsonObject, ...] = (
    {"verb": "status"},
    {"verb": "models"},
    {"verb": "sessions"},
    {"verb": "reminders"},
    {"verb": "usage", "days": 14},
)
_QUESTION_BYTES = 64 << 10
_PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
_POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'"


class Site(Struct):
    """Who answers; another one after a reload."""

    ask: Callable[[bytes, str | None], Awaitable[JsonObject]]
    """The control API; for a person, who is told of their own alone."""
    calls: Callable[[], list[JsonObject]]
    """The newest first."""
    metrics: Callable[[], Awaitable[str | None]]
    """For Prometheus; None where that is not asked for."""
    shows_flows: bool = False
    """It stands in a window that lists flows."""


_serving: list[Site] = []
_registered: list[object] = []


async def state(site: Site, person: str | None = None) -> JsonObject:
    """`person`: who looks, where that is not whoever keeps this server or may see all of it."""
    calls = [call for call in site.calls() if person is None or call["user"] == person]
    told: JsonObject = {"calls": calls, "showsFlows": site.shows_flows}
    for question in _ASKED:
        told[str(question["verb"])] = await site.ask(dumps(question), person)
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
    app.add_handlers(r".*", [("/metrics", metrics(web.RequestHandler))])


def close() -> None:
    _serving.clear()


def metrics(base: Any) -> Any:
    class Metrics(base):  # type: ignore[misc]
        async def get(self) -> None:
            """Everybody's numbers are for nobody who sees their own alone."""
            mine = getattr(self, "person", None) is not None
            text = await _serving[0].metrics() if _serving and not mine else None
            if text is None:
                self.set_status(404)
                return
            self.set_header("Content-Type", _PROMETHEUS)
            self.finish(text)

    return Metrics


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
        def auth_fail(self, invalid_password: bool) -> None:
            """As mitmweb's first page: who comes without its token may type it here, too."""
            self.clear_header("Content-Security-Policy")
            self.render("login.html", invalid_password=invalid_password)

        def post(self) -> None:
            """It was typed, and is right."""
            self.redirect(PATH)

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
            self.write_json(await state(_serving[0], getattr(self, "person", None)))

    class Ask(Handler):
        async def post(self) -> None:
            if not _serving or len(self.request.body) > _QUESTION_BYTES:
                self.set_status(503)
                self.write_json({"error": "RouteCodex is not loaded"})
                return
            self.write_json(await _serving[0].ask(self.request.body, getattr(self, "person", None)))

    return [("/?", Page), ("/page.js", Script), ("/page.css", Style), ("/state", State), ("/ask", Ask)]
