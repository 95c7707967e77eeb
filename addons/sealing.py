"""Takes credentials off requests and answers, so that nothing shows or saves them, and puts them back on the wire's copy."""

from __future__ import annotations

from collections.abc import Collection, Container
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakKeyDictionary

from mitmproxy import http
from mitmproxy.proxy.layers.http import HttpEvent, RequestHeaders, ResponseHeaders
from msgspec import Struct, field

from ..routing import codings
from ..routing import headers as fields
from ..routing.masking import masked
from ..routing.redact import mask_body
from ..routing.secret_names import is_secret_header
from ..routing.short_cache import of_short
from .framing import with_headers

if TYPE_CHECKING:
    from .relay import TurnStream

M = TypeVar("M", http.Request, http.Response)
_MASK = fields.MASK.encode()
_UNPACKED_BYTES = 16 << 20
"""What becomes more is not kept: nobody looks for tokens there."""


class Sealed(Struct, frozen=True):
    """The credentials taken off a message."""

    values: dict[str, tuple[tuple[bytes, bytes], ...]] = field(default_factory=dict)
    """By a header's name in lower case: as it is shown, and as it came."""
    query: tuple[str, ...] = ()

    @property
    def credential(self) -> str:
        """The caller's credential, for telling callers apart; empty where it sent none."""
        for name in ("authorization", "x-api-key", "x-goog-api-key", "api-key"):
            if self.values.get(name):
                return self.values[name][0][1].decode("latin-1")
        return self.query[0] if self.query else ""

    def wire(self, request: http.Request) -> http.Request:
        """A copy of the request with the credentials back in their places."""
        wired = self.with_values(request)
        if self.query:
            wired.path = fields.fill_query(wired.path, self.query)
        return wired

    def with_values(self, message: M) -> M:
        """The same for the headers of any message."""
        left = {name: list(values) for name, values in self.values.items()}
        restored = []
        for name, value in message.headers.fields:
            waiting = left.get(_lower(name)) if left else None
            if waiting and value == waiting[0][0]:
                value = waiting.pop(0)[1]
            elif value == _MASK and is_mask(name, value):
                continue
            restored.append((name, value))
        return with_headers(message, restored)


def is_mask(name: bytes, value: bytes) -> bool:
    """Whether it hides a credential. One that is not ours was remembered by somebody who was shown it, as `stickycookie` does."""
    return value == _MASK and is_secret_header(name.decode("latin-1"))


def seal(request: http.Request) -> Sealed:
    """Mask every credential in the request; the values come back for the wire."""
    query = fields.query_secrets(request.path)
    values = _seal_headers(request)
    if query:
        request.path = fields.mask_query(request.path)
    return Sealed(values, query)


class Backs:
    """The same for the heads of answers: the client gets them as they came, what is shown and saved holds no credential."""

    def __init__(self, ours: Container[http.HTTPFlow]) -> None:
        self._ours = ours
        self._sealed: WeakKeyDictionary[http.HTTPFlow, Sealed] = WeakKeyDictionary()

    def seal(self, flow: http.HTTPFlow, response: http.Response | None) -> None:
        if response is None:
            return
        if (known := self._sealed.get(flow)) is not None:
            response.headers = known.with_values(response).headers
        if values := _seal_headers(response):
            self._sealed[flow] = Sealed(values)

    def wire(self, flow: http.HTTPFlow, response: http.Response) -> http.Response:
        """What goes to the client."""
        if flow in self._ours:
            self.seal(flow, response)
        sealed = self._sealed.get(flow)
        return response if sealed is None else sealed.with_values(response)


def put_on_wire(stream: TurnStream, event: HttpEvent) -> None:
    """What leaves is a copy that holds the credentials; what the flow holds is shown and saved."""
    if isinstance(event, RequestHeaders) and stream.wire is not None:
        event.request = stream.wire(event.request)
        stream.wire = None
    elif isinstance(event, ResponseHeaders):
        event.response = stream.relay.backs.wire(stream.flow, event.response)


def mask_echoes(response: http.Response, secrets: Collection[str]) -> None:
    """A provider may repeat the credential that it was sent in any part of a head, and behind the body."""
    if secrets:
        response.reason = masked(response.reason, secrets)
        response.headers = _without(response.headers, secrets)
        response.trailers = _without(response.trailers, secrets) if response.trailers is not None else None


def _without(headers: http.Headers, secrets: Collection[str]) -> http.Headers:
    """Also a name may be one."""

    def told(said: bytes) -> bytes:
        return masked(said.decode("latin-1"), secrets).encode("latin-1", "replace")

    return http.Headers([(told(name), told(value)) for name, value in headers.fields])


def seal_stored(message: http.Message | None) -> None:
    """Mask the tokens in a body that has left already: what mitmproxy keeps of it is only shown and saved, so unpacked."""
    if message is None or not message.stream or not message.raw_content:
        return
    decode = codings.decoder(message.headers.get("content-encoding", ""))
    if decode is None:
        message.raw_content = mask_body(message.raw_content)
        return
    try:
        plain = codings.whole(decode(message.raw_content), _UNPACKED_BYTES)
    except codings.Damaged:
        return  # nobody else reads it either
    except codings.TooMuch:
        message.raw_content = None
    else:
        message.raw_content = mask_body(plain)
    del message.headers["content-encoding"]


def seal_trailers(request: http.Request) -> None:
    """They have left already, or never will."""
    if request.trailers:
        shown = ((name.decode("latin-1"), value.decode("latin-1")) for name, value in request.trailers.fields)
        request.trailers = http.Headers(
            [(name.encode("latin-1"), fields.shown(name, value).encode("latin-1")) for name, value in shown]
        )


@of_short(1024)
def _may_hide(name: bytes) -> bool:
    return fields.may_hide(_lower(name))


def _seal_headers(message: http.Message) -> dict[str, tuple[tuple[bytes, bytes], ...]]:
    values: dict[str, tuple[tuple[bytes, bytes], ...]] = {}
    masked = []
    for raw_name, raw_value in message.headers.fields:
        if raw_value != _MASK and not _may_hide(raw_name):
            masked.append((raw_name, raw_value))
            continue
        name = _lower(raw_name)
        shown = fields.shown(name, raw_value.decode("latin-1")).encode("latin-1")
        if shown != raw_value or shown == _MASK:
            values[name] = (*values.get(name, ()), (shown, raw_value))
        masked.append((raw_name, shown))
    if values:
        message.headers = http.Headers(masked)
    return values


def _lower(name: bytes) -> str:
    return name.decode("latin-1").lower()
