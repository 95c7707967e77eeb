"""What `doctor` looks for, in the order in which one thing keeps the next from working; each fault with its next step.

1. A check looks and changes nothing. One that cannot look says so, and the others go on.
2. No finding holds a value of a variable or of a key.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct, field

from ...routing.clients.unknown import UNKNOWN
from .. import hello
from . import asking, certificates, places, servers, surroundings
from .say import Failed
from .sockets import LONGEST_PATH, is_too_long

_MITMPROXY = ((11, 0, 2), (13,))
_NODE = 22
_LEAST_ROOM = 1 << 20
"""For sessions, bundles of certificates and the log."""
_CLOCK_S = 120.0
_STORE_S = 3.0
_STORE_CLOCK_S = 5.0
_USUAL_HOST = "api.anthropic.com"


class Fault(Struct, frozen=True):
    what: str
    next_step: str
    grave: bool = True
    """Something does not work; else it is only odd."""


class Person(Struct, dict=True):
    """Whose machine it is."""

    env: Mapping[str, str]
    home: Path
    here: places.Places
    config_option: str = ""
    version: tuple[int, ...] = field(default_factory=lambda: tuple(sys.version_info[:3]))

    @cached_property
    def config_path(self) -> Path:
        return places.config_file(self.config_option, self.env)

    @cached_property
    def config(self) -> Any:
        """None where it has mistakes: those are told once, by the check for them."""
        from ...routing.config import load
        from ...routing.errors import ConfigError

        try:
            return load(self.config_path, self.env)
        except ConfigError:
            return None

    @cached_property
    def proxy(self) -> str:
        return surroundings.proxy_named(self.env)

    @cached_property
    def known(self) -> hello.Hello | None:
        """What the proxy that this terminal names says of itself, if it is ours."""
        return hello.ask(self.proxy) if self.proxy else None

    @cached_property
    def running(self) -> list[tuple[servers.Server, servers.Said]]:
        return servers.running() if hasattr(socket, "AF_UNIX") else []

    @cached_property
    def certificate(self) -> Path:
        return self.here.certificate

    @cached_property
    def heard(self) -> list[tuple[str, asking.Heard]]:
        """Each provider asked with each of its keys."""
        if self.config is None or surroundings.parts_of(self.proxy) is None:
            return []
        found = []
        with asking.client(self.env) as client:
            for provider in self.config.registry.providers.values():
                if provider.dialect is None or provider.auth == "client" or not provider.enabled:
                    continue
                found += [(provider.id, asking.ask(client, provider, key)) for key in provider.keys if not key.off]
        return found


Check = Callable[[Person], Iterator[Fault]]


def _python(person: Person) -> Iterator[Fault]:
    if person.version < (3, 11):
        yield Fault(f"Python {'.'.join(map(str, person.version))} is too old", "install RouteCodex with Python 3.11 or newer")


def _mitmproxy(person: Person) -> Iterator[Fault]:
    try:
        version = metadata.version("mitmproxy")
    except metadata.PackageNotFoundError:
        yield Fault("mitmproxy is not installed beside RouteCodex", "install RouteCodex anew: it brings it along")
        return
    digits = tuple(int(part) for part in version.split(".")[:3] if part.isdigit())
    low, high = _MITMPROXY
    if not low <= digits < high:
        yield Fault(f"mitmproxy {version} is not supported (11.0.2 to 12)", "install RouteCodex into an environment of its own")


def _home(person: Person) -> Iterator[Fault]:
    for folder in (person.here.user, person.home / ".config"):
        there = next((one for one in (folder, *folder.parents) if one.exists()), folder)
        if not os.access(there, os.W_OK) or not there.is_dir():
            yield Fault(f"{folder} cannot be written", "chown it to yourself, or set ROUTECODEX_USER_DIR to a folder of yours")
            return
        if shutil.disk_usage(there).free < _LEAST_ROOM:
            yield Fault(f"the disk that holds {folder} is full: what tags set cannot be kept", "make room on that disk")
            return


def _authority(person: Person) -> Iterator[Fault]:
    from mitmproxy.certs import Cert

    path = person.certificate
    if not path.is_file():
        yield Fault(f"there is no certificate of the proxy's yet ({path})", "`routecodex start` makes one", grave=False)
        return
    key = path.with_name("mitmproxy-ca.pem")
    if os.name != "nt" and key.is_file() and stat.S_IMODE(key.stat().st_mode) & 0o077:
        yield Fault(f"others may read the key of the proxy's authority ({key})", f"chmod 600 {key}")
    try:
        expired = Cert.from_pem(path.read_bytes()).has_expired()
    except (ValueError, OSError):
        yield Fault(f"{path} is no certificate", f"delete {path.parent}: `routecodex start` makes a new one")
        return
    if expired:
        yield Fault(
            f"the proxy's certificate has expired ({path})", f"delete {path.parent}, then `routecodex stop` and start anew"
        )


def _bundles(person: Person) -> Iterator[Fault]:
    """Where this terminal goes through us, its files of authorities must hold ours."""
    if person.known is None:
        return
    own = certificates.split(person.known.certificate)
    for name in certificates.TRUST:
        if not (value := person.env.get(name)):
            continue
        try:
            held = "".join(Path(value).expanduser().read_text(errors="replace").split())
        except OSError:
            yield Fault(f"{name} names {value}, which cannot be read", "`routecodex env` prints one that can")
            continue
        if not all("".join(one.split()) in held for one in own):
            yield Fault(
                f"{name} names {value}, which lacks the proxy's certificate", 'eval "$(routecodex env)", or `routecodex run`'
            )


def _socket_path(person: Person) -> Iterator[Fault]:
    for server in _servers(person):
        if is_too_long(server.socket):
            yield Fault(
                f"{server.socket} is longer than {LONGEST_PATH} bytes: no command reaches this server",
                "set ROUTECODEX_USER_DIR to a shorter path",
            )


def _servers(person: Person) -> list[servers.Server]:
    return servers.known() or [servers.Server(places.SERVER_ID, person.here.user / "sessions" / places.SERVER_ID)]


def _stale_socket(person: Person) -> Iterator[Fault]:
    alive = {server.id for server, _ in person.running}
    for server in servers.known():
        if server.socket.exists() and server.id not in alive:
            yield Fault(
                f"{server.socket} was left by a server that is gone", "its next start takes it away; or delete it", grave=False
            )


def _port(person: Person) -> Iterator[Fault]:
    """Of the proxy in the background: the port of last time is what tools still know."""
    try:
        port = int(person.here.port.read_text())
    except (OSError, ValueError):
        return
    if any(server.id == places.SERVER_ID for server, _ in person.running) or hello.ask(f"http://127.0.0.1:{port}") is not None:
        return
    with socket.socket() as probe:
        probe.settimeout(1)
        if probe.connect_ex(("127.0.0.1", port)) == 0:
            yield Fault(
                f"something else listens at port {port}, the proxy's of last time",
                "tools that still run must be started anew with `routecodex run`: the proxy takes another port",
            )


def _proxy(person: Person) -> Iterator[Fault]:
    if not person.proxy or person.known is not None:
        return
    parts = surroundings.parts_of(person.proxy if "://" in person.proxy else f"http://{person.proxy}")
    if parts is None:
        wrong = surroundings.no_address(person.env)
        yield Fault(wrong.what, wrong.next_step)
        return
    try:
        socket.create_connection((parts.hostname or "", parts.port or 80), 5).close()
    except (OSError, ValueError):
        yield Fault(
            f"nobody answers at {parts.hostname}:{parts.port or 80}, the proxy that HTTPS_PROXY names",
            "unset HTTPS_PROXY, or start that proxy; `routecodex run claude` needs none of it",
        )


def _mitmproxy_config(person: Person) -> Iterator[Fault]:
    path = person.home / ".mitmproxy" / "config.yaml"
    try:
        text = path.read_text(errors="replace")
    except OSError:
        return
    for name in ("mode", "scripts", "stream_large_bodies", "listen_port", "listen_host", "ignore_hosts", "allow_hosts"):
        if any(line.startswith(f"{name}:") for line in text.splitlines()):
            yield Fault(
                f"{path} sets {name}: a mitmdump that you start by hand obeys it",
                f"take {name} out there, or use `routecodex run`, which does not read that file",
                grave=name == "stream_large_bodies",
            )


def _configuration(person: Person) -> Iterator[Fault]:
    from ...routing.config import load
    from ...routing.errors import ConfigError

    try:
        load(person.config_path, person.env)
    except ConfigError as error:
        for line in error.message.splitlines():
            yield Fault(line, f"mend {person.config_path}; `routecodex check` reads it again")
    except Failed as failed:
        yield Fault(failed.what, failed.next_step)


def _variables(person: Person) -> Iterator[Fault]:
    if person.config is None:
        return
    for line in person.config.warnings:
        if any(words in line for words in ("not set", " empty: ", "cannot be read")):
            yield Fault(line, f"write it into {person.config_path.parent / '.env'}, or export it before the proxy starts")
        elif "chmod" in line:
            what, _, how = line.rpartition(": ")
            yield Fault(what, how)


def _other_values(person: Person) -> Iterator[Fault]:
    from ...routing.control.verbs import fingerprint

    mine = surroundings.variables(person.config_path, person.env)
    asked = {name: fingerprint(value) for name, value in mine.items()}
    for server, _ in person.running if asked else ():
        for name in server.ask("compare", {"variables": asked})["other"]:
            yield Fault(
                f"{name} has another value in this terminal than the server {server.id} knows",
                "`routecodex stop`, then start it from here; or put it into .env, which is read when it changes",
            )


def _reached(person: Person) -> Iterator[Fault]:
    told: set[str] = set()
    for name, heard in person.heard:
        if heard.problem and not heard.reached and name not in told:
            told.add(name)
            yield Fault(heard.problem, heard.next_step)


def _accepted(person: Person) -> Iterator[Fault]:
    for _, heard in person.heard:
        if heard.problem and heard.reached:
            yield Fault(heard.problem, heard.next_step, grave=heard.refused)


def _exceptions(person: Person) -> Iterator[Fault]:
    hosts = person.config.intercept_hosts if person.config is not None else ()
    for name in ("NO_PROXY", "no_proxy"):
        for entry in filter(None, (entry.strip() for entry in person.env.get(name, "").split(","))):
            if surroundings.excepts(entry, hosts):
                yield Fault(
                    f"{name} holds {entry}: its calls go around the proxy, tags do nothing",
                    f"take {entry} out of {name}; `routecodex run` does that for its tool",
                )


def _ways_around(person: Person) -> Iterator[Fault]:
    """In the environment, and in what Claude Code's own settings put into its."""
    settings = person.home / ".claude" / "settings.json"
    for where, env in (("this terminal", person.env), (str(settings), _settings_env(settings))):
        for name in UNKNOWN.bases:
            if (value := env.get(name)) and not _is_read(value, person):
                yield Fault(
                    f"{name} ({where}) leads to an address whose calls are not read: tags do nothing", f"take {name} out of it"
                )
        for name in UNKNOWN.avoid:
            if env.get(name, "").strip().lower() not in ("", "0", "false", "no"):
                yield Fault(f"{name} ({where}): this way of asking is not read, tags do nothing", f"take {name} out of it")


def _settings_env(path: Path) -> dict[str, str]:
    try:
        said = json.loads(path.read_text(encoding="utf-8"))["env"]
        return {str(name): str(value) for name, value in said.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _is_read(url: str, person: Person) -> bool:
    hosts = person.config.intercept_hosts if person.config is not None else ()
    host = urlsplit(url if "://" in url else f"https://{url}").hostname or ""
    local = host in surroundings.LOCAL
    return not local and any(fnmatchcase(host.lower(), pattern.lower()) for pattern in hosts)


def _codex_daemon(person: Person) -> Iterator[Fault]:
    if any("codex" in Path(words[0]).name and "app-server" in words for words in _processes()):
        yield Fault(
            "Codex's daemon runs: it keeps the proxy of its first start, whatever this terminal says",
            "`codex app-server daemon stop`; `routecodex run codex` starts none",
        )


def _processes() -> Iterator[list[str]]:
    """This machine's command lines, where they can be had."""
    ps = shutil.which("ps")
    if ps is None:
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = path.read_bytes().decode(errors="replace").split("\0")
            except OSError:
                continue
            if words[0]:
                yield words
        return
    said = subprocess.run([ps, "-axww", "-o", "command="], capture_output=True, text=True, timeout=20, check=False).stdout
    yield from (line.split() for line in said.splitlines() if line.strip())


def _company(person: Person) -> Iterator[Fault]:
    """A proxy that is not ours is the company's: providers are reached through it, and it may have an authority of its own."""
    if not person.proxy or person.known is not None:
        return
    hosts = person.config.intercept_hosts if person.config is not None else ()
    if asking.wants_credentials(person.proxy, next((host for host in hosts if "*" not in host), _USUAL_HOST)):
        yield Fault("the company's proxy wants to know who asks (407)", asking.PROXY_HINT)
        return
    for name, heard in person.heard:
        if "CERTIFICATE_VERIFY_FAILED" in heard.problem:
            yield Fault(
                f"{name}: what answers through the company's proxy has a certificate that this machine does not trust",
                "name the company's CA file in SSL_CERT_FILE; `routecodex run` merges it",
            )
            return


def _clock(person: Person) -> Iterator[Fault]:
    off = [heard.clock_off_s for _, heard in person.heard if abs(heard.clock_off_s) > _CLOCK_S]
    if off:
        yield Fault(
            f"this machine's clock is {abs(off[0]):.0f} s {'ahead' if off[0] > 0 else 'behind'}", "set it, or switch NTP on"
        )


def _node(person: Person) -> Iterator[Fault]:
    node = shutil.which("node", path=person.env.get("PATH"))
    if node is None:
        return
    said = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=20, check=False).stdout.strip()
    major = said.lstrip("v").partition(".")[0]
    if major.isdigit() and int(major) < _NODE:
        yield Fault(f"Node {said} takes no proxy from the environment for scripts", f"install Node {_NODE} or newer", grave=False)


def _store(person: Person) -> Iterator[Fault]:
    """A Redis that holds the sessions of several machines."""
    if person.config is None or person.config.store == "files":
        return
    try:
        from redis import Redis, exceptions

        from ..redis_store import parts_of
    except ImportError:
        yield Fault("sessions.store names a Redis, and its client is not installed", "pip install 'routecodex[redis]'")
        return
    place, address, prefix, _ = parts_of(person.config.store)
    try:
        with Redis.from_url(address, socket_timeout=_STORE_S, socket_connect_timeout=_STORE_S, protocol=2) as client:
            client.eval("return 1", 0)
            try:
                yield from _store_kept(place, told := client.info())
                if int(told.get("aof_enabled", 0)):
                    yield from _store_read_back(place, client, prefix)
            except exceptions.NoPermissionError:
                yield Fault(
                    f"{place} does not tell this user how it keeps what it holds (INFO, ACL DRYRUN)",
                    "let its keeper see that appendonly is yes, maxmemory-policy is noeviction, and the user default, also where "
                    "it is off, has the rights ~* &* +@all",
                    grave=False,
                )
            try:
                off = time.time() - float(".".join(map(str, client.time())))
            except exceptions.NoPermissionError:
                return
            if abs(off) > _STORE_CLOCK_S:
                yield Fault(
                    f"this machine's clock is {abs(off):.0f} s {'ahead of' if off > 0 else 'behind'} that of {place}",
                    "switch NTP on at both: rests of keys and reminders go by the clock",
                )
    except (exceptions.RedisError, OSError, ValueError, TypeError) as error:
        why = (str(error) or type(error).__name__).splitlines()[0][:200]
        yield Fault(f"the sessions' store {place} cannot be used: {why}", "start it, or mend sessions.store (docs/state.md)")


def _store_kept(place: str, told: Mapping[str, Any]) -> Iterator[Fault]:
    version = str(told.get("redis_version", ""))
    if (digits := tuple(int(part) for part in version.split(".")[:2] if part.isdigit())) < (7,):
        yield Fault(
            f"{place} is Redis {version}: 7 is what RouteCodex is tried with", "take Redis 7 or newer", grave=digits < (6, 2)
        )
    if told.get("redis_mode") == "cluster":
        yield Fault(f"{place} is a cluster, which cannot hold sessions", "name a Redis that stands alone in sessions.store")
    if int(told.get("maxmemory", 0)) and told.get("maxmemory_policy") != "noeviction":
        yield Fault(
            f"{place} forgets what was not used for a while when it is full (maxmemory-policy {told.get('maxmemory_policy')})",
            "set maxmemory-policy noeviction there: sessions, counts and reminders must stay",
        )
    if not int(told.get("aof_enabled", 0)):
        yield Fault(f"{place} loses its newest entries when it crashes (appendonly no)", "set appendonly yes there", grave=False)


def _store_read_back(place: str, client: Any, prefix: str) -> Iterator[Fault]:
    """Redis reads back what scripts wrote with the rights of its user `default`, and leaves out what that may not write
    (redis/redis#14541)."""
    from redis import exceptions

    try:
        may = client.execute_command("ACL DRYRUN", "default", "HSET", f"{prefix}:x", "p", "x")
    except exceptions.NoPermissionError:
        raise
    except exceptions.ResponseError:  # an older one cannot be asked what another user may do
        return
    if may != b"OK":
        yield Fault(
            f"{place} loses what it holds whenever it is started anew: its user default may not write",
            "user default off ~* &* +@all, in its ACL: nobody can be that user, and what is read back is all there",
        )


CHECKS: Mapping[str, Check] = {
    "Python": _python,
    "mitmproxy": _mitmproxy,
    "home folder": _home,
    "certificate": _authority,
    "bundles of certificates": _bundles,
    "control socket's path": _socket_path,
    "stale control socket": _stale_socket,
    "port": _port,
    "proxy of this terminal": _proxy,
    "mitmproxy's own settings": _mitmproxy_config,
    "configuration": _configuration,
    "variables and key files": _variables,
    "variables of the running server": _other_values,
    "sessions' store": _store,
    "providers reachable": _reached,
    "keys accepted": _accepted,
    "NO_PROXY": _exceptions,
    "ways around the proxy": _ways_around,
    "Codex's daemon": _codex_daemon,
    "company's proxy": _company,
    "clock": _clock,
    "Node": _node,
}


def examine(person: Person) -> Iterator[tuple[str, list[Fault]]]:
    for name, check in CHECKS.items():
        try:
            found = list(check(person))
        except Failed as failed:
            found = [Fault(failed.what, failed.next_step)]
        except (OSError, subprocess.SubprocessError, ValueError, servers.Gone) as error:
            found = [Fault(f"could not be looked at ({type(error).__name__})", "run it again with more rights", grave=False)]
        yield name, found
