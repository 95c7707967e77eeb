"""Where servers' control sockets lie. Little is loaded for it: a status line comes by here many times a minute."""

from __future__ import annotations

import os
from pathlib import Path

LONGEST_PATH = 103
"""What every system allows: macOS has the shortest."""


def socket_path(folder: Path, server: str) -> Path:
    return folder / f"{server}.sock"


def is_too_long(path: Path) -> bool:
    return len(os.fsencode(path)) > LONGEST_PATH


def user_folder() -> Path:
    named = os.environ.get("ROUTECODEX_USER_DIR")
    return Path(named).absolute() if named else Path.home() / ".routecodex"
