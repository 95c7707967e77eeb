"""Why a request or an answer is given up, in the words of the installed mitmproxy."""

from __future__ import annotations

from typing import Any

try:  # mitmproxy 12 names its error codes, 11 numbers them
    from mitmproxy.proxy.layers.http._events import ErrorCode  # type: ignore[attr-defined,unused-ignore]

    CANCEL: Any = ErrorCode.CANCEL
    ABORT: Any = ErrorCode.KILL
    TOO_LARGE: Any = ErrorCode.REQUEST_TOO_LARGE
    BAD_ANSWER: Any = ErrorCode.GENERIC_SERVER_ERROR
except ImportError:  # pragma: no cover - depends on the installed mitmproxy
    from mitmproxy.net.http import status_codes

    CANCEL = status_codes.CLIENT_CLOSED_REQUEST
    ABORT = status_codes.NO_RESPONSE
    TOO_LARGE = status_codes.PAYLOAD_TOO_LARGE
    BAD_ANSWER = status_codes.BAD_GATEWAY
