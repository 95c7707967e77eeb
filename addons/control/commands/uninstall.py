"""Say what lies where, and how the program itself goes; --purge: end the proxy and erase all of it, settings and keys too."""

from __future__ import annotations

import argparse
import os
import shutil
import time
from pathlib import Path

from ....routing.storage.lock import FileLock, Taken
from ..line import ask
from ..places import Places, own_config, places
from ..say import Failed, print_json

PROGRAM = "pipx uninstall routecodex, uv tool uninstall routecodex, or pip uninstall routecodex: as you installed it"
_OURS = ("run", "ca", "sessions", "stopMessage")
"""What we make in our folder; a folder that somebody named may hold more, and that stays."""
_ENDS_S = 30.0


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--purge", action="store_true", help="erase it all: sessions, reminders, certificate, log, configuration")


def act(given: argparse.Namespace) -> int:
    here = places()
    lies = [path for path in _all(here) if path.exists()]
    if given.purge:
        _end(here)
        lies = [path for path in _all(here) if path.exists()]
        for path in lies:
            _erase(path)
        for folder in (here.user, own_config().parent, here.line.parent):
            _leave(folder)
    if given.json:
        print_json({"erased" if given.purge else "lies": [str(path) for path in lies], "program": PROGRAM})
        return 0
    if not lies:
        print("Nothing of RouteCodex lies in your home.")
    else:
        print("Erased:" if given.purge else "Of RouteCodex there is:")
        for path in lies:
            print(f"  {path}")
        if not given.purge:
            print("`routecodex uninstall --purge` erases it.")
    print(f"The program itself: {PROGRAM}.")
    return 0


def _all(here: Places) -> list[Path]:
    named = os.environ.get("ROUTECODEX_SESSION_DIR")
    # What a folder of the usual name holds is all ours.
    usual = here.user.name == ".routecodex"
    inside = [here.user] if usual else [here.user / name for name in _OURS]
    every = [*inside, own_config().parent, *([Path(named)] if named else []), here.line]
    return [one for one in every if not any(other in one.parents for other in every)]


def _end(here: Places) -> None:
    """Nothing is erased under a proxy that still writes."""
    if ask(here, {"want": "stop", "now": True}) is None:
        return
    end = time.monotonic() + _ENDS_S
    while ask(here, {"want": "status"}) is not None:
        if time.monotonic() > end:
            raise Failed("the proxy does not end", f"{here.log} may say why")
        time.sleep(0.05)
    try:
        with FileLock(here.lock, _ENDS_S):
            pass
    except (Taken, OSError):
        raise Failed("the proxy does not end", f"{here.log} may say why") from None


def _erase(path: Path) -> None:
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise Failed(f"{error.filename or path} cannot be erased: {error.strerror}", "erase it by hand") from None


def _leave(folder: Path) -> None:
    try:
        folder.rmdir()
    except OSError:
        pass  # there never was one, or others have something in it
