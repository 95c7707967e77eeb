"""A real mitmdump (or mitmweb) as a subprocess, without a network: `with Mitmdump(script=…, upstream=provider) as proxy:`.

1. It sees nothing of the caller's environment but what it needs to start; HOME, sessions and settings lie in its own folder.
2. `tests/rig/redirect.py` is always loaded, last: hosts outside this machine are played by `upstream`, or refused.
3. Every wait is bounded; only the process that was started here is ended.
"""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.rig.certificates import client_context, provider_authority, proxy_authority
from tests.rig.provider import FakeProvider
from tests.rig.starter import BEFORE_PYTHON, Child, Starter

REDIRECT = Path(__file__).with_name("redirect.py")
ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "addons" / "routecodex.py"
MAIN = ROOT / "addons" / "control" / "__main__.py"
_INHERITED = ("PATH", "LANG", "LC_ALL", "TMPDIR", "TEMP", "TMP", "SYSTEMROOT", "COMSPEC", "PYTHONHASHSEED", "PYTHONASYNCIODEBUG")

Upstream = FakeProvider | Mapping[str, FakeProvider] | Mapping[str, tuple[int, int]]


class DidNotStart(Exception):
    """The proxy ended, or did not listen in time; the message holds its log."""


class Mitmdump:
    def __init__(
        self,
        *,
        script: Path | str | Sequence[Path | str] | None = None,
        config: str | None = None,
        upstream: Upstream | None = None,
        options: Sequence[str] = (),
        args: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        folder: Path | None = None,
        cwd: Path | None = None,
        port: int | None = None,
        mode: str | None = None,
        flows: bool = False,
        web: bool = False,
        python: str = sys.executable,
        start_s: float = 60,
        plainly: bool = False,
        workers: int = 0,
    ) -> None:
        """`config`: the text of the product's configuration; `options`: `name=value`; same `folder` and `port`: a restart.

        `upstream`: one provider for every host, or one for each (`"*"` for the rest), or (plain port, TLS port) of each.
        `plainly`: where the start is the subject, in a new interpreter (see `tests/rig/starter.py`). `workers`: so many processes
        behind a parent.
        """
        self._own_folder = folder is None
        self.folder = Path(tempfile.mkdtemp(prefix="rig-proxy-")) if folder is None else folder
        self.folder.mkdir(parents=True, exist_ok=True)
        self.scripts = [script] if isinstance(script, (str, Path)) else list(script or ())
        self.config = config
        self.port = port or free_port()
        self.web_port = free_port() if web else None
        self.started_in_s = 0.0
        self.listening: list[tuple[str, int]] = []
        self.flows_path = self.folder / "flows" if flows else None
        self._upstream = upstream
        self._options, self._args = list(options), list(args)
        self._env = dict(env or {})
        self._cwd = cwd or self.folder
        self._mode, self._web, self._python, self._start_s = mode, web, python, start_s
        self._workers = workers
        self._plainly = (
            plainly
            or web
            or bool(workers)
            or python != sys.executable
            or any(name.startswith(BEFORE_PYTHON) for name in self._env)
        )
        self._process: subprocess.Popen[bytes] | Child | None = None

    # ---- where things are ----

    @property
    def log_path(self) -> Path:
        return self.folder / "proxy.log"

    @property
    def log(self) -> str:
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    @property
    def crash(self) -> str:
        """The end of what mitmproxy said when one of its connections' layers failed; nothing if none did."""
        found = re.search(r"has crashed!(.*?)(?=\n\[\d\d:|\Z)", self.log, re.DOTALL)
        return found[1][-700:] if found else ""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def web_url(self) -> str:
        """With mitmweb's token, where there is one."""
        found = re.search(r"Web server listening at (\S+)", self.log)
        return found[1] if found else f"http://127.0.0.1:{self.web_port}/"

    @property
    def ca_path(self) -> Path:
        return self.folder / "confdir" / "mitmproxy-ca-cert.pem"

    @property
    def bundle_path(self) -> Path:
        """For clients that take one file of authorities."""
        path = self.folder / "bundle.pem"
        path.write_bytes(self.ca_path.read_bytes() + provider_authority().path.read_bytes())
        return path

    @property
    def sessions(self) -> Path:
        return Path(self._env.get("ROUTECODEX_SESSION_DIR", self.folder / "sessions"))

    def tls(self, *protocols: str) -> ssl.SSLContext:
        """A client that trusts this proxy and nobody else."""
        return client_context(self.ca_path, protocols=protocols)

    @property
    def client_env(self) -> dict[str, str]:
        """What a real command-line client needs to go through this proxy."""
        bundle, ca = str(self.bundle_path), str(self.ca_path)
        return {
            "HTTPS_PROXY": self.url,
            "NO_PROXY": "localhost,127.0.0.1,::1",
            "NODE_EXTRA_CA_CERTS": ca,
            "SSL_CERT_FILE": bundle,
            "REQUESTS_CA_BUNDLE": bundle,
            "CODEX_CA_CERTIFICATE": ca,
            "NODE_USE_ENV_PROXY": "1",
        }

    # ---- life ----

    def __enter__(self) -> Mitmdump:
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        if self._own_folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    def start(self) -> None:
        confdir = self.folder / "confdir"
        if not confdir.exists():
            shutil.copytree(proxy_authority(), confdir)
            confdir.chmod(0o700)
        if self.config is not None:
            (self.folder / "mitm-config.yaml").write_text(self.config)
        ready = self.folder / "ready.json"
        ready.unlink(missing_ok=True)
        began = time.monotonic()
        self._process = self._begin(self._arguments(confdir), self._environment(ready))
        while not ready.exists():
            if self._process.poll() is not None:
                raise DidNotStart(f"ended with {self._process.returncode}:\n{self.log}")
            if time.monotonic() - began > self._start_s:
                raise DidNotStart(f"does not listen after {self._start_s} s:\n{self.log}")
            time.sleep(0.02)
        self.started_in_s = time.monotonic() - began
        self.listening = [(host, port) for host, port in json.loads(ready.read_text())]

    def _begin(self, arguments: list[str], environment: dict[str, str]) -> subprocess.Popen[bytes] | Child:
        if not self._plainly and hasattr(os, "fork"):
            script = SCRIPT if self.scripts[:1] == [SCRIPT] else None
            return _starter(script).start(arguments, environment=environment, folder=self._cwd, log=self.log_path)
        with self.log_path.open("ab") as log:
            return subprocess.Popen(
                [*self._interpreter(), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
                cwd=self._cwd,
            )

    def stop(self) -> int | None:
        """SIGTERM, and SIGKILL after five seconds; the exit code."""
        if self._process is None:
            return None
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(5)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait(5)
        return self._process.returncode

    def kill(self) -> None:
        """As a power cut would: no clean-up."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait(5)

    def _interpreter(self) -> list[str]:
        """-P: as the installed command starts, without the working directory on the path."""
        if self._workers:
            return [self._python, "-P", str(MAIN), "prefork", str(self._workers)]
        tool = "mitmweb" if self._web else "mitmdump"
        return [self._python, "-P", "-c", f"from mitmproxy.tools.main import {tool}; {tool}()"]

    def _command(self, confdir: Path) -> list[str]:
        return [*self._interpreter(), *self._arguments(confdir)]

    def _arguments(self, confdir: Path) -> list[str]:
        options = {"confdir": str(confdir), "ssl_verify_upstream_trusted_ca": str(provider_authority().path)}
        if self._web:
            options |= {"web_open_browser": "false", "web_host": "127.0.0.1", "web_port": str(self.web_port)}
        if self.config is not None:
            options["routecodex_config"] = str(self.folder / "mitm-config.yaml")
        command = ["--listen-host", "127.0.0.1", "--listen-port", str(self.port)]
        command += ["--mode", self._mode] if self._mode else []
        command += ["-w", str(self.flows_path)] if self.flows_path else []
        given = {setting.partition("=")[0] for setting in self._options}
        for setting in [*(f"{name}={value}" for name, value in options.items() if name not in given), *self._options]:
            command += ["--set", setting]
        for script in [*self.scripts, REDIRECT]:
            command += ["-s", str(script)]
        return command + self._args

    def _environment(self, ready: Path) -> dict[str, str]:
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        own = {
            "HOME": str(home),
            "USERPROFILE": str(home),
            "ROUTECODEX_SESSION_DIR": str(self.folder / "sessions"),
            "ROUTECODEX_USER_DIR": str(self.folder / "user"),
            "RIG_READY": str(ready),
            "RIG_REDIRECT": json.dumps(_played(self._upstream)),
        }
        return _for_python() | own | self._env

    # ---- the process ----

    @property
    def workers(self) -> list[int]:
        """The processes of its workers, as far as they are there."""
        listed = Path(f"/proc/{self.pid}/task/{self.pid}/children")
        return [int(pid) for pid in listed.read_text().split()]

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def rss_bytes(self) -> int:
        return read_rss(self.pid)

    @property
    def own_bytes(self) -> int:
        return read_rss(self.pid, own=True)

    @property
    def cpu_s(self) -> float | None:
        """Seconds of computing so far; None where the system does not say."""
        file = Path(f"/proc/{self.pid}/stat")
        if not file.exists():
            return None
        user, system = file.read_text().rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    @property
    def open_files(self) -> int | None:
        """Descriptors of the process; None where the system does not say."""
        folder = Path(f"/proc/{self.pid}/fd")
        return len(list(folder.iterdir())) if folder.exists() else None


def _for_python() -> dict[str, str]:
    return {name: os.environ[name] for name in _INHERITED if name in os.environ} | {"PYTHONUNBUFFERED": "1", "PYTHONUTF8": "1"}


@functools.cache
def _starter(script: Path | None) -> Starter:
    return Starter(_for_python(), script)


def _played(upstream: Upstream | None) -> dict[str, list[int]]:
    if upstream is None:
        return {}
    hosts = {"*": upstream} if isinstance(upstream, FakeProvider) else upstream
    return {
        host: [player.plain_port, player.tls_port] if isinstance(player, FakeProvider) else list(player)
        for host, player in hosts.items()
    }


def free_port() -> int:
    """A port of loopback that nobody listens to now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def read_rss(pid: int, *, own: bool = False) -> int:
    """Resident memory in bytes; `own`: without the pages of files, which come and go as the system likes, where it tells them."""
    status = Path(f"/proc/{pid}/status")
    if status.exists():
        found = re.search(rf"{'RssAnon' if own else 'VmRSS'}:\s+(\d+) kB", status.read_text())
        return int(found[1]) * 1024 if found else 0
    listed = subprocess.run(["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, text=True, timeout=5, check=False)
    return int(listed.stdout.strip() or 0) * 1024
