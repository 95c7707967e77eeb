"""Where our files lie. Standard library only, and nothing is made or touched by asking.

1. `~/.routecodex` (or `$ROUTECODEX_USER_DIR`): state and texts as before; `run/`: the proxy in the background, `ca/`: its
   authority.
2. The configuration: `--config`, `$ROUTECODEX_CONFIG`, `~/.config/routecodex/mitm-config.yaml`, the shipped one. Never the
   working directory's: a tool started inside a stranger's clone must not obey that clone.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ...routing.which_config import FILE_NAME, chosen, own_file
from .say import Failed, unless_full

ROOT = Path(__file__).resolve().parents[2]
"""The clone, or the package."""
SCRIPT = ROOT / "addons" / "routecodex.py"
MAIN = ROOT / "addons" / "control" / "__main__.py"
SHIPPED = ROOT / FILE_NAME
SERVER_ID = "user"
"""Sessions of the proxy in the background lie under this name, whatever port it has today."""
_LONGEST_SOCKET = 100
_NO_HOME = "set HOME, or ROUTECODEX_USER_DIR and ROUTECODEX_CONFIG"


def user_folder(env: Mapping[str, str] = os.environ) -> Path:
    named = env.get("ROUTECODEX_USER_DIR")
    return Path(named).absolute() if named else _home() / ".routecodex"


def usage(env: Mapping[str, str] = os.environ) -> Path:
    """What calls cost: one file for all servers of a person."""
    return user_folder(env) / "usage.sqlite"


def config_file(option: str = "", env: Mapping[str, str] = os.environ) -> Path:
    """The file that holds; whoever names one that is not there is told so."""
    path = chosen(option, env, _home(), ROOT)
    if not path.is_file():
        named = "ROUTECODEX_CONFIG names it" if env.get("ROUTECODEX_CONFIG") else "install RouteCodex anew"
        raise Failed(f"{path}: there is no such file", "is its name right?" if option else named, code=2)
    return path


def own_config() -> Path:
    return own_file(_home())


def _home() -> Path:
    try:
        home = Path.home()
    except RuntimeError:
        raise Failed("there is no home folder", _NO_HOME) from None
    if not home.is_absolute():  # the working directory decides nothing
        raise Failed("HOME names no folder by its whole path", _NO_HOME)
    return home


@dataclass(frozen=True, slots=True)
class Places:
    """The files of one person's proxy."""

    user: Path

    @property
    def run(self) -> Path:
        return self.user / "run"

    @property
    def authority(self) -> Path:
        """mitmproxy's `confdir`: its own, so that a person's mitmproxy settings are neither used nor changed."""
        return self.user / "ca"

    @property
    def certificate(self) -> Path:
        return self.authority / "mitmproxy-ca-cert.pem"

    @property
    def bundles(self) -> Path:
        return self.run / "bundles"

    @property
    def log(self) -> Path:
        return self.run / "proxy.log"

    @property
    def port(self) -> Path:
        """The port of last time: whoever still knows it finds the proxy there again."""
        return self.run / "port"

    @property
    def lock(self) -> Path:
        """Held by the supervisor as long as it lives."""
        return self.run / "supervisor.lock"

    @property
    def starting(self) -> Path:
        """Held by whoever starts a supervisor."""
        return self.run / "starting.lock"

    @property
    def line(self) -> Path:
        """The supervisor's socket. Systems allow some hundred bytes: a long path gets a short one of this person's own."""
        usual = self.run / "supervisor.sock"
        if len(os.fsencode(usual)) <= _LONGEST_SOCKET:
            return usual
        name = hashlib.sha256(os.fsencode(usual)).hexdigest()[:16]
        return Path(tempfile.gettempdir()) / f"routecodex-{_user()}" / f"{name}.sock"

    def make(self) -> None:
        try:
            for folder in (self.user, self.run, self.authority, self.bundles, self.line.parent):
                folder.mkdir(0o700, parents=True, exist_ok=True)
            about = self.line.parent.stat()
            if sys.platform != "win32" and (about.st_uid != os.getuid() or about.st_mode & 0o022):
                raise Failed(
                    f"{self.line.parent} can be written by others",
                    "chmod 700 it, or set ROUTECODEX_USER_DIR to a shorter path",
                )
            if not os.access(self.run, os.W_OK):
                raise PermissionError(13, "Permission denied", str(self.run))
        except OSError as error:
            raise Failed(
                f"{error.filename or self.user} cannot be written: {error.strerror}",
                unless_full(error, "set ROUTECODEX_USER_DIR to a folder of yours"),
            ) from None


def _user() -> str:
    return str(os.getuid()) if sys.platform != "win32" else os.environ.get("USERNAME", "user")


def places() -> Places:
    return Places(user_folder())
