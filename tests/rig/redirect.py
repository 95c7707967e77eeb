"""A mitmproxy script: every host outside this machine is played by a fake provider, or refused.

It changes where the socket goes, below all hooks: `server_conn.address`, SNI, certificate check and connection reuse stay
those of the real host (rewriting the address in `server_connect` would end reuse: mitmproxy compares it with the next request's).

RIG_REDIRECT is JSON: {"api.example.com": [plain port, TLS port], "*": […]}.
RIG_READY names the file that is written when the proxy listens.
"""

import asyncio
import json
import os
import socket
from pathlib import Path
from typing import Any

from mitmproxy import ctx

PLAYED = json.loads(os.environ.get("RIG_REDIRECT", "{}"))
HERE = {"127.0.0.1", "::1", "localhost"}


def _port(host: str, port: int) -> int:
    played = PLAYED.get(host) or PLAYED.get("*")
    if played is None:
        raise ConnectionRefusedError(f"the rig lets nothing out: {host}:{port}")
    plain, tls = played
    return int(plain if port == 80 else tls)


def _redirect() -> None:
    connect = asyncio.open_connection
    resolve = socket.getaddrinfo

    async def open_connection(host: Any = None, port: Any = None, **options: Any) -> Any:
        if host is not None and host not in HERE:
            host, port = "127.0.0.1", _port(host, port)
            options.pop("local_addr", None)
        return await connect(host, port, **options)

    def getaddrinfo(host: Any, *rest: Any, **options: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host
        # Addresses need no look-up; names would be asked of a server outside.
        if name and name not in HERE and name != socket.gethostname() and not name.replace(".", "").isdigit() and ":" not in name:
            raise socket.gaierror(socket.EAI_NONAME, f"the rig resolves nothing: {name}")
        return resolve(host, *rest, **options)

    open_connection.redirects = True  # type: ignore[attr-defined]
    asyncio.open_connection = open_connection
    socket.getaddrinfo = getaddrinfo


class Redirect:
    def load(self, loader: object) -> None:
        # Once per process, even if mitmproxy loads this file again.
        if not hasattr(asyncio.open_connection, "redirects"):
            _redirect()

    def running(self) -> None:
        if ready := os.environ.get("RIG_READY"):
            listening = [list(address[:2]) for address in ctx.master.addons.get("proxyserver").listen_addrs()]
            temporary = Path(ready + ".part")
            temporary.write_text(json.dumps(listening))
            temporary.replace(ready)


addons = [Redirect()]
