"""Questions of the command line's own to providers: through the company's proxy where there is one, never through ours.

httpx takes nothing from the environment by itself: what holds of it is decided here.
"""

from __future__ import annotations

import base64
import http.client
import os
import ssl
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from urllib.parse import unquote, urlsplit

import httpx
from msgspec import Struct

from ...routing.control.offers import Asked, question, read_offer
from ...routing.router.registry import Key, Provider
from .. import hello
from . import certificates, surroundings

LIMIT_S = 20.0
_REFUSED = frozenset({401, 403})


class Heard(Struct, frozen=True):
    """What came of a question with one key. Without a problem: it was answered and the key accepted."""

    models: tuple[str, ...] = ()
    problem: str = ""
    next_step: str = ""
    reached: bool = True
    refused: bool = False
    """The key was."""
    clock_off_s: float = 0.0
    """How far this machine's clock is from the provider's."""


def client(env: Mapping[str, str] = os.environ) -> httpx.Client:
    proxy = surroundings.proxy_named(env)
    if proxy and "://" not in proxy:
        proxy = f"http://{proxy}"
    if surroundings.parts_of(proxy) is None:
        raise surroundings.no_address(env)
    through = proxy if proxy.startswith(("http://", "https://")) and hello.ask(proxy) is None else ""
    mounts: dict[str, httpx.BaseTransport] = {}
    trust = trusted(env)
    if through:
        mounts["all://"] = httpx.HTTPTransport(proxy=through, verify=trust)
        for host in ("localhost", "127.0.0.1", "[::1]"):
            mounts[f"all://{host}"] = httpx.HTTPTransport(verify=trust)
    return httpx.Client(trust_env=False, timeout=LIMIT_S, verify=trust, mounts=mounts, follow_redirects=False)


def wants_credentials(proxy: str, host: str) -> bool:
    """Whether a proxy lets nobody through to that host who does not say who he is. What lies behind it is not asked."""
    try:
        parts = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
        line = http.client.HTTPConnection(parts.hostname or "", parts.port or 80, timeout=LIMIT_S)
    except ValueError:
        return False
    user = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
    known = {"Proxy-Authorization": f"Basic {base64.b64encode(user.encode()).decode()}"} if user != ":" else {}
    line.set_tunnel(host, 443, known)
    try:
        line.connect()
    except (OSError, http.client.HTTPException) as error:
        return " 407 " in f"{error} "
    finally:
        line.close()
    return False


def trusted(env: Mapping[str, str]) -> ssl.SSLContext:
    """What this system trusts, and the company."""
    context = ssl.create_default_context()
    for text in (certificates.system(), certificates.named(env)):
        try:
            context.load_verify_locations(cadata=text)
        except (ssl.SSLError, ValueError):
            continue
    return context


def ask(asking: httpx.Client, provider: Provider, key: Key) -> Heard:
    asked = question(provider, key)
    if asked is None or provider.dialect is None:
        return Heard(problem=f"{provider.id} has no address", next_step="set what its baseURL needs", reached=False)
    name = f"{provider.id}.{key.alias}"
    try:
        answer = asking.get(asked.url, headers=dict(asked.headers))
    except httpx.ProxyError as error:
        return Heard(
            problem=f"the company's proxy does not let {provider.id} through: {_plain(error)}",
            next_step=PROXY_HINT,
            reached=False,
        )
    except httpx.HTTPError as error:
        return Heard(
            problem=f"{provider.id} cannot be reached at {host_of(asked)}: {_plain(error)}", next_step=NETWORK_HINT, reached=False
        )
    if answer.status_code in _REFUSED:
        return Heard(
            problem=f"{name}: the key is refused ({answer.status_code})",
            next_step="put a valid key into its variable or file; `routecodex check` says which one that is",
            refused=True,
        )
    if answer.status_code == 407:
        return Heard(
            problem=f"the company's proxy wants to know who asks for {provider.id} (407)", next_step=PROXY_HINT, reached=False
        )
    if answer.status_code != 200:
        return Heard(
            problem=f"{name}: no list of models ({answer.status_code})", next_step="calls may work all the same: try one"
        )
    models = read_offer(provider.dialect, answer.content)
    off = _clock_off(answer.headers.get("date", ""))
    if models is None:
        return Heard(
            problem=f"{name}: what it answers is no list of models", next_step="look at its baseURL: it ends before /models"
        )
    return Heard(models, clock_off_s=off)


PROXY_HINT = "put the proxy's user and password into HTTPS_PROXY (http://user:password@host:port)"
NETWORK_HINT = "look at the network, its baseURL, and HTTPS_PROXY if there is a company's proxy"


def host_of(asked: Asked) -> str:
    return str(httpx.URL(asked.url).host)


def _plain(error: Exception) -> str:
    text = str(error) or type(error).__name__
    return text.splitlines()[0][:200]


def _clock_off(date: str) -> float:
    try:
        return time.time() - parsedate_to_datetime(date).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError, OSError):
        return 0.0
