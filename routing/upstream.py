"""A call's request as it goes to one target: address, path, headers, body."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from urllib.parse import quote

from routing import headers
from routing.dialects import calls
from routing.dialects.endpoints import upstream_path
from routing.errors import ConfigError, RouteCodexError
from routing.headers import Fields, Outgoing
from routing.router.registry import ORIGIN, Provider
from routing.values import Call, Endpoint, Headers, Target


class NoCommonDialect(RouteCodexError):
    """The target does not speak what the tool speaks."""

    code = "DIALECT_NOT_SUPPORTED"


@dataclass(frozen=True, slots=True)
class Received:
    """A client's request on a model path, as it came."""

    id: str
    scheme: str
    host: str
    port: int
    path: str
    """Credentials in its query are masked."""
    headers: Headers
    """Lower-case names, credentials masked."""
    fields: Fields
    """The same as they came: order, spelling, repetitions."""
    credential: str
    endpoint: Endpoint
    body: bytes
    """Decoded."""
    wire_body: bytes
    """As it came, content-encoding and all."""


@dataclass(frozen=True, slots=True)
class Request:
    """One round's request as it goes up."""

    scheme: str
    host: str
    port: int
    path: str
    headers: Outgoing
    body: bytes
    client_credential: bool = False
    """The caller's own credential joins on the wire: this is the host it called."""


def goes_home(provider: Provider, received: Received) -> bool:
    """Whether the target is the server that the client called: another port is another one."""
    if provider.id == ORIGIN:
        return True
    url = provider.endpoints.get(received.endpoint.dialect)
    called = (received.scheme, received.host.lower(), received.port)
    return url is not None and (url.scheme, url.host, url.port) == called


def speaks(provider: Provider, received: Received) -> bool:
    """Whether the provider can be asked in the client's own dialect and shape."""
    if provider.id == ORIGIN:
        return True
    url = provider.endpoints.get(received.endpoint.dialect)
    return url is not None and received.endpoint.envelope == url.path.rstrip("/").endswith("/v1internal")


def write(received: Received, call: Call, provider: Provider, target: Target, *, own: Collection[str] = ()) -> Request:
    """The request for this target; RouteCodexError where it cannot be asked at all. `own`: ids that this target has made."""
    if provider.id == ORIGIN:
        return _write_home(received, call, target)
    url = provider.endpoints.get(received.endpoint.dialect)
    if url is None or not speaks(provider, received):
        raise _no_common_dialect(provider, received)
    home = goes_home(provider, received)
    path = upstream_path(received.endpoint, url.path, target.model or call.model, query=received.path.partition("?")[2])
    body = calls.for_target(call, target.model, foreign=not home, own=own)
    if provider.auth == "client":
        if not home:
            raise ConfigError(
                f"Provider {provider.id} forwards the caller's own credential, so it serves only calls to {url.host}; "
                f"this one was meant for {received.host}. Give it keys: virtualrouter.providers.{provider.id}.auth",
                details={"provider": provider.id},
            )
        path = _with_credentials(path, received.path)
        return Request(
            url.scheme, url.host, url.port, path, Outgoing(headers.same_host(received.fields, coded=False)), body, True
        )
    key = provider.key(target.key)
    outgoing = headers.build(
        received.headers,
        received.endpoint.dialect,
        key.value if key is not None else "",
        provider.headers,
        foreign=not home,
        stream=call.stream,
    )
    return Request(url.scheme, url.host, url.port, path, outgoing, body)


def _write_home(received: Received, call: Call, target: Target) -> Request:
    """Where the client was going; a body that needs no edit goes as it came, compressed if it was."""
    body = calls.for_target(call, target.model, foreign=False)
    untouched = body is call.raw
    path = received.path
    if received.endpoint.model is not None and target.model and target.model != received.endpoint.model:
        path = _other_model(path, target.model)
    return Request(
        received.scheme,
        received.host,
        received.port,
        path,
        Outgoing(headers.same_host(received.fields, coded=untouched)),
        received.wire_body if untouched else body,
        client_credential=True,
    )


def _other_model(path: str, model: str) -> str:
    """The same path and query: the caller's credential may stand there."""
    bare, mark, query = path.partition("?")
    base, verb = bare.rpartition("/models/")[0], bare.rpartition(":")[2]
    name = quote(model.removeprefix("models/"), safe="", errors="replace")
    return f"{base}/models/{name}:{verb}{mark}{query}"


def _with_credentials(path: str, came: str) -> str:
    """Google's clients may carry theirs in the query: masked here, and filled in on the wire."""
    kept = [found[0] for found in headers.SECRET_QUERY.finditer(came)] if "?" in came else []
    return path + ("&" if "?" in path else "?") + "&".join(kept) if kept else path


def _no_common_dialect(provider: Provider, received: Received) -> NoCommonDialect:
    wanted = received.endpoint.dialect
    spoken = ", ".join(provider.endpoints) or "nothing that is configured"
    shape = " in its Code Assist form" if received.endpoint.envelope else ""
    return NoCommonDialect(
        f"Provider {provider.id} speaks {spoken}, but this tool speaks {wanted}{shape}. If the provider offers that too, add its "
        f"address as virtualrouter.providers.{provider.id}.endpoints.{wanted}; else choose a provider that speaks {wanted}.",
        details={"provider": provider.id, "dialect": str(wanted)},
    )
