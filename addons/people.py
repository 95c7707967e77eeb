"""Who asks, where several people share a proxy: mitmproxy's `proxyauth` lets them in; we keep a name and nothing else of it.

1. mitmproxy notes name and password in a flow's metadata, which windows show and `-w` saves. The password is taken out at once,
   and so is the header that a person's tool sent: it is meant for this proxy alone.
2. Without `proxyauth` nobody is asked, and nobody from another machine is served.
"""

from __future__ import annotations

import base64
from typing import Any

from mitmproxy import ctx, http

from ..routing.errors import BadCall, ConfigError

_NOTED = "proxyauth"
_HEADER = b"proxy-authorization"
_HIDDEN = "****"
_LONGEST_NAME = 256


def are_asked() -> bool:
    """Whether nobody is served who does not say who they are."""
    return bool(ctx.options.proxyauth)


def check(*, allow_remote_clients: bool) -> None:
    if allow_remote_clients and not are_asked():
        raise ConfigError(
            "proxy.allowRemoteClients: whoever reaches this port would spend your keys and read each other's sessions. Have "
            "mitmproxy ask people who they are (--set proxyauth=@FILE, docs/team.md), or take allowRemoteClients out."
        )


def name_of(flow: http.HTTPFlow) -> str:
    """Empty where nobody was asked. BadCall where somebody was, and what they said is no name: everybody else who says none
    would be the same person."""
    noted: Any = flow.metadata.get(_NOTED)
    if not (isinstance(noted, tuple | list) and noted):
        return ""
    name = str(noted[0])
    if not name.strip():
        raise BadCall(
            "This proxy asks people who they are (proxyauth), and your tool gave it no name: "
            "http://NAME:PASSWORD@host:port in its proxy's address (docs/team.md)."
        )
    if len(name) > _LONGEST_NAME or not name.isprintable():
        raise BadCall(
            f"The name that your tool gave this proxy is none: it may hold {_LONGEST_NAME} letters, and none that no one sees."
        )
    return name


def who_says(header: str) -> str | None:
    """Whose name a header of HTTP's Basic says, where that is somebody whom the proxy would let in."""
    proxyauth: Any = ctx.master.addons.get(_NOTED) if are_asked() else None
    if proxyauth is None or proxyauth.validator is None or header[:6].lower() != "basic ":
        return None
    try:
        name, _, password = base64.b64decode(header[6:], validate=True).decode().partition(":")
    except ValueError:
        return None
    return name if name and ":" not in password and proxyauth.validator(name, password) else None


def forget_password(flow: http.HTTPFlow) -> None:
    """Whether it was right or not. Whoever spoke to a company's proxy behind this one does so later."""
    noted: Any = flow.metadata.get(_NOTED)
    if isinstance(noted, tuple | list) and noted:
        flow.metadata[_NOTED] = (noted[0], _HIDDEN)
    pairs = flow.request.headers.fields
    if any(name.lower() == _HEADER for name, _ in pairs):
        flow.request.headers = http.Headers([pair for pair in pairs if pair[0].lower() != _HEADER])


def stands_for(flow: http.HTTPFlow, parent: http.HTTPFlow) -> None:
    """A flow of ours that is asked in the name of whoever sent its parent."""
    noted = parent.metadata.get(_NOTED)
    proxyauth: Any = ctx.master.addons.get(_NOTED)
    if noted is not None and proxyauth is not None:
        proxyauth.authenticated[flow.client_conn] = noted
