"""Every hook fails closed: mitmproxy itself would log the exception and let a half-edited request through."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Callable
from typing import Any

from mitmproxy import http

logger = logging.getLogger("routecodex")

BODY = (
    b'{"type":"error","error":{"type":"api_error","code":"INTERNAL",'
    b'"message":"RouteCodex failed inside and refused the request. The proxy\'s log says where."}}'
)


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


def _refuse(hook: str, flow: http.HTTPFlow, error: Exception) -> None:
    where = error.__traceback__
    while where is not None and where.tb_next is not None:
        where = where.tb_next
    place = f"{where.tb_frame.f_code.co_filename.rsplit('/', 1)[-1]}:{where.tb_lineno}" if where is not None else "?"
    # Never the error's text or arguments: they may hold what a person typed, or a credential.
    logger.error("RouteCodex failed in %s at %s: %s. The request was refused.", hook, place, type(error).__name__)
    if hook in ("requestheaders", "request"):
        flow.response = http.Response.make(502, BODY, {"content-type": "application/json", "x-should-retry": "false"})
    elif flow.killable:
        flow.kill()
