"""What of a person's environment matters on the way: proxies, exceptions, authorities, addresses; what a tool gets instead."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from msgspec import Struct, field

from ...routing.clients.client import BUNDLES, Client
from .. import hello
from ..hello import Hello
from . import certificates
from .places import Places
from .say import Failed

PROXIES = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")
LOCAL = ("localhost", "127.0.0.1", "::1")
_NAMED = re.compile(r"\$\{(\w+)")


def proxy_named(env: Mapping[str, str]) -> str:
    """The proxy that tools would use."""
    return next((env[name] for name in PROXIES if env.get(name)), "")


def upstream(places: Places, env: Mapping[str, str]) -> tuple[str, Hello | None]:
    """The proxy that ours must go through; or the answer of the one that is ours already."""
    url = proxy_named(env)
    if not url:
        return "", None
    whole = url if "://" in url else f"http://{url}"
    parts = parts_of(whole)
    if parts is None:
        raise no_address(env)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise Failed(
            f"{_where(env)} names a proxy of another kind ({parts.scheme})",
            "only http and https proxies can be gone through: name one of these, or unset it",
        )
    if (known := hello.ask(whole)) is not None:
        return whole, known
    if parts.hostname in LOCAL and str(parts.port) == _last_port(places):
        return "", None  # an export that outlived our own proxy
    return f"{parts.scheme}://{parts.netloc}", None


def _where(env: Mapping[str, str]) -> str:
    return next(name for name in PROXIES if env.get(name))


def no_address(env: Mapping[str, str]) -> Failed:
    return Failed(f"{_where(env)} holds no address of a proxy", "write it as http://host:port, or unset it")


def parts_of(url: str) -> SplitResult | None:
    """None of what is no address, as with a port that is no number."""
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - raises where it is no number
    except ValueError:
        return None
    return parts


def without_password(url: str) -> str:
    """As it may be shown."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def _last_port(places: Places) -> str:
    return places.port.read_text().strip() if places.port.is_file() else ""


def variables(config: Path, env: Mapping[str, str]) -> dict[str, str]:
    """Those that the configuration names and this terminal has."""
    try:
        names = set(_NAMED.findall(config.read_text(encoding="utf-8", errors="replace")))
    except OSError as error:
        raise Failed(f"{config}: cannot be read: {error.strerror}") from None
    return {name: env[name] for name in sorted(names) if env.get(name)}


def authorities(places: Places, env: Mapping[str, str]) -> str:
    """For the proxy itself: what the world trusts and what this person's company does; empty where that is nothing more."""
    own = _own(places)
    company = certificates.companys(env, own)
    known = set(certificates.split(certificates.system()))
    if known.issuperset(certificates.split(company)):
        return ""
    import certifi

    world = Path(certifi.where()).read_text(encoding="utf-8")
    return str(certificates.write(places.bundles, world, certificates.system(), company))


def _own(places: Places) -> str:
    return places.certificate.read_text() if places.certificate.is_file() else ""


class Way(Struct):
    """What a tool is given, and what its person should know."""

    set: dict[str, str] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)


def way(client: Client, proxy: str, known: Hello, places: Places, env: Mapping[str, str]) -> Way:
    found = Way()
    found.set["HTTPS_PROXY"] = proxy
    if env.get("https_proxy"):
        found.set["https_proxy"] = proxy  # many read this one first
    _exceptions(found, known, env)
    for name in client.needs:
        already = certificates.named(env, [name])
        basis = already or (certificates.system() if name in BUNDLES else "")
        found.set[name] = str(certificates.write(places.bundles, basis, known.certificate))
    found.set |= client.settings
    _around(found, client, known, env)
    return found


def _exceptions(found: Way, known: Hello, env: Mapping[str, str]) -> None:
    """`NO_PROXY` keeps what it says but for the hosts whose calls we read."""
    kept: dict[str, None] = dict.fromkeys(LOCAL)
    for name in ("NO_PROXY", "no_proxy"):
        entries = [entry.strip() for entry in env.get(name, "").split(",") if entry.strip()]
        lost = [entry for entry in entries if excepts(entry, known.hosts)]
        kept |= dict.fromkeys(entry for entry in entries if entry not in lost)
        if (
            lost
            and (line := f"{', '.join(lost)} in {name} would lead around the proxy: left out for this tool") not in found.said
        ):
            found.said.append(line)
    found.set["NO_PROXY"] = ",".join(kept)
    if env.get("no_proxy"):
        found.set["no_proxy"] = found.set["NO_PROXY"]


def excepts(entry: str, hosts: Sequence[str]) -> bool:
    """Whether an entry of NO_PROXY names a host whose calls are read."""
    if entry == "*":
        return True
    name = entry.lower().partition(":")[0].removeprefix("*").lstrip(".")
    if name in LOCAL or not name:
        return False
    return any(host.lower().lstrip("*.").endswith(name) and _at_a_dot(host.lower().lstrip("*."), name) for host in hosts)


def _at_a_dot(host: str, name: str) -> bool:
    return len(host) == len(name) or host[-len(name) - 1] == "."


def _around(found: Way, client: Client, known: Hello, env: Mapping[str, str]) -> None:
    """Variables that lead the tool somewhere where its calls are not read: its tags would not work."""
    for name in client.bases:
        if not (value := env.get(name)):
            continue
        host = urlsplit(value if "://" in value else f"https://{value}").hostname or value
        if not any(fnmatchcase(host.lower(), pattern.lower()) for pattern in known.hosts):
            found.said.append(
                f"{name} leads to {host}, whose calls are not read: tags will not work "
                f"(unset {name}, or name {host} under proxy.interceptHosts in {known.config})"
            )
        elif host in LOCAL:
            found.said.append(f"{name} leads to this machine, around the proxy: tags will not work (unset {name})")
    for name in client.avoid:
        if env.get(name, "").strip().lower() not in ("", "0", "false", "no"):
            found.said.append(f"{name} is set: this way of asking is not read, tags will not work (unset {name})")


def environment(found: Way, env: Mapping[str, str] = os.environ) -> dict[str, str]:
    return {**env, **found.set}
