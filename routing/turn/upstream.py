"""A call's request as it goes to one target: address, path, headers, body."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from urllib.parse import quote

from msgspec import Struct, field
from msgspec.structs import replace

from .. import headers, jsonbytes
from ..dialects import calls
from ..dialects.calls import chat, compaction
from ..dialects.calls.editing import inner_body
from ..dialects.calls.following import leans_on_others
from ..dialects.calls.limiting import limited
from ..dialects.endpoints import upstream_path
from ..dialects.translation import going_up, ids, wrapped
from ..dialects.translation.neutral import Feature, LeftOut, ToolName
from ..dialects.translation.writing.chat_hosts import host_of
from ..errors import ConfigError, RouteCodexError
from ..headers import Fields, Outgoing
from ..router.registry import ORIGIN, Provider, Url
from ..values import Call, Dialect, Endpoint, Headers, Target

_LONG, _MANY_PIECES, _LONGEST_PIECE, _STRIDE = 1_500_000, 10_000, 30, 17
"""Bytes; and values, each of which is some microseconds of work."""
_COMPACTING_HOSTS = ("api.openai.com", "chatgpt.com", ".openai.azure.com", ".cognitiveservices.azure.com")


class HistorySealed(RouteCodexError):
    """The history of the conversation can be read by somebody else only."""

    code = "HISTORY_SEALED"


class NoCommonDialect(RouteCodexError):
    """The target does not speak what the tool speaks."""

    code = "DIALECT_NOT_SUPPORTED"


class Received(Struct, frozen=True):
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
    user: str = ""
    """Whom the proxy let in; empty where it asks nobody who they are."""

    @property
    def takes_long(self) -> bool:
        """To read and to write it takes longer than others should wait: it is long, or in many pieces, as a sample tells. Texts
        have commas, too, but fewer."""
        size = len(self.body)
        if not _MANY_PIECES <= size < _LONG:
            return size >= _LONG
        return self.body[::_STRIDE].count(b",") * _STRIDE >= max(_MANY_PIECES, size // _LONGEST_PIECE)


class Translated(Struct, frozen=True):
    """The request is in another dialect than the client's, or another shape of it."""

    dialect: Dialect
    tools: Mapping[str, ToolName] = field(default_factory=dict)
    compacts: bool = False
    """A compaction was asked for in words: the answer is a summary."""


class Request(Struct, frozen=True):
    """One round's request as it goes up."""

    scheme: str
    host: str
    port: int
    path: str
    headers: Outgoing
    body: bytes
    client_credential: bool = False
    """The caller's own credential joins on the wire: this is the host it called."""
    translated: Translated | None = None
    left_out: str = ""
    """What stays behind, since it is no business of the target or since its dialect cannot say it."""
    counts: bool = False
    """It asks for a count that the client did not ask for, and is not told."""


def goes_home(provider: Provider, received: Received) -> bool:
    """Whether the target is the server that the client called: another port is another one."""
    if provider.id == ORIGIN:
        return True
    url = provider.endpoints.get(received.endpoint.dialect)
    called = (received.scheme, received.host.lower(), received.port)
    return url is not None and (url.scheme, url.host, url.port) == called


def dialect_for(provider: Provider, received: Received, call: Call, chained: Target | None = None) -> Dialect | None:
    """In which dialect the provider is asked: the client's own where it can be, else the first that it speaks. None where it
    cannot be, or where others keep the history. `chained`: where the answer lives that the call follows, if that is known."""
    if speaks_natively(provider, received):
        may_know = call.previous_id is not None and (chained is None or chained.provider == provider.id)
        knows = goes_home(provider, received) or not leans_on_others(call, (call.previous_id,) if may_know else ())
        return received.endpoint.dialect if knows else None
    return None if received.endpoint.action == "count" or leans_on_others(call) else _another(provider)


def speaks_natively(provider: Provider, received: Received) -> bool:
    """In the client's own dialect and shape."""
    if provider.id == ORIGIN:
        return True
    url = provider.endpoints.get(received.endpoint.dialect)
    return url is not None and received.endpoint.envelope == _is_envelope(url)


def _another(provider: Provider) -> Dialect | None:
    return next((dialect for dialect, url in provider.endpoints.items() if not _is_envelope(url)), None)


def _is_envelope(url: Url) -> bool:
    return url.path.rstrip("/").endswith("/v1internal")


def write(
    received: Received,
    call: Call,
    provider: Provider,
    target: Target,
    *,
    own: Collection[str] = (),
    session: str = "",
    maker_of: Callable[[str], str] = lambda seal: "",
) -> Request:
    """The request for this target; RouteCodexError where it cannot be asked at all. `own`: ids that this target has made.
    `session`: names the conversation; a provider's cache is told a digest of it. `maker_of`: who made a seal."""
    call = compaction.opened(call)
    if (reader := who_can_read(received, call, provider, own, maker_of)) is not None:
        raise _sealed(reader, received)
    session = ids.digest(f"{provider.id} {session}", 24) if session else ""
    asked_in_words = compaction.asks(call) and not _compacts(provider, received)
    if asked_in_words:
        call = compaction.asked_in_words(call)
    if provider.id == ORIGIN:
        return _write_home(received, call, target)
    left = LeftOut()
    model = provider.models.get(target.model or call.model)
    if model is not None and model.max_tokens is not None:
        call = limited(call, model.max_tokens, left)
    if not speaks_natively(provider, received):
        return _write_translated(received, call, provider, target, own, session, left, compacts=asked_in_words)
    if counts := _asks_usage(call, provider, target.model or call.model):
        call = chat.asking_usage(call)
    url = provider.endpoints[received.endpoint.dialect]
    home = goes_home(provider, received)
    if not home and leans_on_others(call, own):
        going_up.refuse(call)
    path = upstream_path(received.endpoint, url.path, target.model or call.model, query=received.path.partition("?")[2])
    body = _native_body(call, target.model, foreign=not home, own=own, left=left)
    translated = Translated(Dialect.RESPONSES, compacts=True) if asked_in_words else None
    if provider.auth == "client":
        if not home:
            raise _not_with_clients_credential(provider, url, received)
        path = _with_credentials(path, received.path)
        same = Outgoing(headers.same_host(received.fields, coded=False))
        return Request(url.scheme, url.host, url.port, path, same, body, True, translated, counts=counts)
    outgoing = _headers(received, received.endpoint.dialect, provider, target, foreign=not home, stream=call.stream)
    return Request(url.scheme, url.host, url.port, path, outgoing, body, translated=translated, left_out=str(left), counts=counts)


def _asks_usage(call: Call, provider: Provider, model: str) -> bool:
    """Whether a provider of ours is asked what a Chat stream costs though its client does not ask."""
    if call.endpoint.dialect is not Dialect.CHAT or not call.stream or provider.auth == "client" or going_up.wants_usage(call):
        return False
    return provider.ask_usage if provider.ask_usage is not None else host_of(provider.id, model).usage_on_request


def _native_body(call: Call, model: str, *, foreign: bool, own: Collection[str] = (), left: LeftOut | None = None) -> bytes:
    body = calls.for_target(call, model, foreign=foreign, own=own, left=left)
    if wrapped.MARKED in body:
        body = calls.for_target(wrapped.unsealed(call), model, foreign=foreign, own=own)
        if left is not None:
            left.add(Feature.THOUGHTS)
    return body


def who_can_read(
    received: Received, call: Call, provider: Provider, own: Collection[str], maker_of: Callable[[str], str]
) -> str | None:
    """Another provider than this one, which alone can read what a compaction left of the conversation; None: this one can.
    Who made what at home is nobody's business: it counts as `origin`."""
    home = goes_home(provider, received)
    for seal in compaction.sealed(call):
        maker = maker_of(seal)
        if (maker not in ("", provider.id)) if home else (seal not in own):
            return maker or ORIGIN
    return None


def _sealed(reader: str, received: Received) -> HistorySealed:
    place = f"another provider, most likely {received.host}" if reader == ORIGIN else f"provider {reader}"
    return HistorySealed(
        f"This conversation was compacted by {place}: nobody else can read what is left of it, and the tool keeps no copy. "
        f"Go on there (<**{reader}**> for one message, <**!{reader}**> for all that follow), or begin a new conversation.",
        details={"provider": reader},
    )


def _compacts(provider: Provider, received: Received) -> bool:
    """By itself: the item that it makes is its own."""
    if provider.id == ORIGIN:
        return True
    url = provider.endpoints.get(Dialect.RESPONSES)
    if url is None or not speaks_natively(provider, received):
        return False
    return provider.compaction if provider.compaction is not None else url.host.endswith(_COMPACTING_HOSTS)


def _write_translated(
    received: Received,
    call: Call,
    provider: Provider,
    target: Target,
    own: Collection[str],
    session: str,
    left: LeftOut,
    *,
    compacts: bool,
) -> Request:
    dialect = None if received.endpoint.action == "count" else _another(provider)
    if dialect is None:
        raise _no_common_dialect(provider, received)
    if leans_on_others(call):
        going_up.refuse(call)
    url = provider.endpoints[dialect]
    if provider.auth == "client":
        raise _not_with_clients_credential(provider, url, received)
    model = target.model or call.model
    # as it would go to a stranger of the client's own dialect: without who is asking, and without what others have sealed
    bare = replace(call, body=calls.bare(call, model, own, left))
    if call.endpoint.envelope:  # which stays behind
        bare = replace(bare, endpoint=replace(call.endpoint, envelope=False))
    written = going_up.translate(
        inner_body(bare), bare.endpoint, dialect, model=model, stream=call.stream, session=session, maker=provider.id
    )
    left.add_all(written.left_out)
    endpoint = Endpoint(dialect, model=model, stream=call.stream)
    return Request(
        url.scheme,
        url.host,
        url.port,
        upstream_path(endpoint, url.path, model, query=""),
        _headers(received, dialect, provider, target, foreign=True, stream=call.stream),
        jsonbytes.dumps(written.body),
        translated=Translated(dialect, written.tools, compacts),
        left_out=str(left),
    )


def _headers(
    received: Received, dialect: Dialect, provider: Provider, target: Target, *, foreign: bool, stream: bool
) -> Outgoing:
    key = provider.key(target.key)
    value = key.value if key is not None else ""
    return headers.build(received.headers, dialect, value, provider.headers, foreign=foreign, stream=stream)


def _write_home(received: Received, call: Call, target: Target) -> Request:
    """Where the client was going; a body that needs no edit goes as it came, compressed if it was."""
    body = _native_body(call, target.model, foreign=False)
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
    """Some clients carry theirs in the query: masked here, and filled in on the wire."""
    kept = headers.secret_params(came)
    return path + ("&" if "?" in path else "?") + "&".join(kept) if kept else path


def _not_with_clients_credential(provider: Provider, url: Url, received: Received) -> ConfigError:
    return ConfigError(
        f"Provider {provider.id} forwards the caller's own credential, so it serves only calls to {url.host}; "
        f"this one was meant for {received.host}. Give it keys: virtualrouter.providers.{provider.id}.auth",
        details={"provider": provider.id},
    )


def _no_common_dialect(provider: Provider, received: Received) -> NoCommonDialect:
    wanted = received.endpoint.dialect
    spoken = ", ".join(provider.endpoints) or "nothing that is configured"
    shape = " in its Code Assist form" if received.endpoint.envelope else ""
    return NoCommonDialect(
        f"Provider {provider.id} speaks {spoken}, but this tool speaks {wanted}{shape}. If the provider offers that too, add its "
        f"address as virtualrouter.providers.{provider.id}.endpoints.{wanted}; else choose a provider that speaks {wanted}.",
        details={"provider": provider.id, "dialect": str(wanted)},
    )
