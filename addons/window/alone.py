"""The page `/routecodex` where no mitmweb is: opt-in, at a port of its own on this machine, behind a token.

1. Whoever opens it shows the token once, in the address that stands in the log; a cookie stands for it from then on. A program
   sends it as `Authorization: Bearer …`. Where people share the proxy, each may come with the name and password of theirs.
2. It answers to its own names alone: a page of somebody else's reaches this machine's ports too, under a name of its own. Nor
   does it answer a page at another port of this machine: cookies know no ports, so that such a page comes with ours.
"""

from __future__ import annotations

import functools
import hmac
import logging
import secrets
from collections.abc import Callable, Collection
from typing import Any

import tornado.httpserver
import tornado.web

from .. import people
from . import site

logger = logging.getLogger("routecodex")

HOST = "127.0.0.1"
_NAMES = frozenset({HOST, "localhost"})
_COOKIE = "routecodex"
_BODY_BYTES = 1 << 20


@functools.cache
def token() -> str:
    """The same for as long as the process lives, however often the addon is loaded again."""
    return secrets.token_urlsafe(24)


class Alone:
    """The page's own server."""

    def __init__(self, admins: Callable[[], Collection[str]] = frozenset) -> None:
        """`admins`: who of those that come with a name sees what is everybody's."""
        self._admins = admins
        self._server: tornado.httpserver.HTTPServer | None = None

    def open(self, port: int) -> None:
        """What cannot be had is said, and calls go on."""
        if self._server is not None:
            return
        app = tornado.web.Application(
            [
                *((site.PATH + path, handler) for path, handler in site.handlers(_Handler)),
                ("/metrics", site.metrics(_Handler)),
            ],
            xsrf_cookies=True,
            xsrf_cookie_kwargs={"samesite": "Strict", "httponly": True},
            log_function=lambda handler: None,
            port=port,
            admins=self._admins,
        )
        server = tornado.httpserver.HTTPServer(app, max_buffer_size=_BODY_BYTES)
        try:
            server.listen(port, HOST)
        except OSError as error:
            logger.warning("The page cannot be served at port %d: %s.", port, error.strerror or error)
            return
        self._server = server
        logger.info("The page is served at http://%s:%d%s?token=%s", HOST, port, site.PATH, token())

    def close(self) -> None:
        if self._server is not None:
            self._server.stop()
            self._server = None


class _Handler(tornado.web.RequestHandler):
    person: str | None = None
    """Who looks and sees their own alone; None: whoever has the token, or may see all."""

    def prepare(self) -> None:
        """Before anything else is looked at."""
        name, _, port = self.request.host.partition(":")
        if name not in _NAMES or port != str(self.settings["port"]):
            raise tornado.web.HTTPError(403)
        if self._is_foreign():
            raise tornado.web.HTTPError(403)
        how, _, said = self.request.headers.get("Authorization", "").partition(" ")
        if self._is(self.get_cookie(_COOKIE) or "") or (how.lower() == "bearer" and self._is(said)):
            return
        if (name_said := people.who_says(self.request.headers.get("Authorization", ""))) is not None:
            self.person = None if name_said in self.settings["admins"]() else name_said
            return
        if self.request.method == "GET" and self._is(str(self.get_query_argument("token", ""))):
            self.set_cookie(_COOKIE, token(), httponly=True, samesite="Strict", path=site.PATH)
            self.redirect(site.PATH)
            return
        if people.are_asked():
            raise tornado.web.HTTPError(401)
        raise tornado.web.HTTPError(403)

    def write_error(self, status_code: int, **about: Any) -> None:
        self.set_header("Content-Type", "text/plain; charset=UTF-8")
        if status_code == 401:
            self.set_header("WWW-Authenticate", 'Basic realm="RouteCodex"')
        told = f"{status_code}: open the address that RouteCodex wrote to mitmproxy's log when it started."
        self.finish(told if status_code in (401, 403) else f"{status_code}")

    def _is_foreign(self) -> bool:
        """Whether another page asks. It may lead a person here, and reads nothing of that."""
        heads, own = self.request.headers, f"http://{self.request.host}"
        if heads.get("Origin", own) != own:
            return True
        leads = self.request.method == "GET" and heads.get("Sec-Fetch-Mode") == "navigate"
        return heads.get("Sec-Fetch-Site", "none") not in ("none", "same-origin") and not leads

    def _is(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), token().encode())
