"""Every hook fails closed: mitmproxy itself would log the exception and let a half-edited request through."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Callable
from typing import Any, Protocol

from mitmproxy import http

logger = logging.getLogger("routecodex")

BODY = (
    b'{"type":"error","error":{"type":"api_error","code":"INTERNAL",'
    b'"message":"RouteCodex failed inside and refused the request. The proxy\'s log says where."}}'
)

HEADERS = {"content-type": "application/json", "x-should-retry": "false"}


class Bursting(Protocol):
    def burst(self) -> None:
        """End at once, whatever the state."""


def guarded(hook: Callable[..., Any]) -> Callable[..., Any]:
    """Refuse the flow with a 502 when its hook fails; nothing is sent then."""
    if asyncio.iscoroutinefunction(hook):

        @functools.wraps(hook)
        async def waiting(addon: Any, flow: http.HTTPFlow) -> None:
            try:
                await hook(addon, flow)
            except Exception as error:  # whatever it was, the request must not go on
                _refuse(hook.__name__, flow, error)

        return waiting

    @functools.wraps(hook)
    def quick(addon: Any, flow: http.HTTPFlow) -> None:
        try:
            hook(addon, flow)
        except Exception as error:  # whatever it was, the request must not go on
            _refuse(hook.__name__, flow, error)

    return quick


def contained(method: Callable[..., None]) -> Callable[..., None]:
    """A turn that fails inside comes to an end; mitmproxy would log all that it knows and leave both sides waiting."""

    @functools.wraps(method)
    def containing(turn: Bursting, *given: Any) -> None:
        try:
            method(turn, *given)
        except Exception as error:  # whatever it was, the client must not wait for ever
            report(method.__name__, error, "The turn was ended.")
            turn.burst()

    return containing


def report(name: str, error: BaseException, outcome: str) -> None:
    """Never the error's text or arguments: they may hold what a person typed, or a credential."""
    where = error.__traceback__
    while where is not None and where.tb_next is not None:
        where = where.tb_next
    place = f"{where.tb_frame.f_code.co_filename.rsplit('/', 1)[-1]}:{where.tb_lineno}" if where is not None else "?"
    logger.error("RouteCodex failed in %s at %s: %s. %s", name, place, type(error).__name__, outcome)


def _refuse(hook: str, flow: http.HTTPFlow, error: Exception) -> None:
    report(hook, error, "The request was refused.")
    if hook == "requestheaders":  # perhaps the credentials are still on it
        flow.request.headers.clear()
        flow.request.path = flow.request.path.partition("?")[0]
    if hook in ("requestheaders", "request"):
        flow.response = http.Response.make(502, BODY, HEADERS)
    elif flow.killable:
        flow.kill()
