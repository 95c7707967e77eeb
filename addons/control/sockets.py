"""Where servers' control sockets lie. Standard library only."""

from __future__ import annotations

import os
from pathlib import Path

LONGEST_PATH = 103
"""What every system allows: macOS has the shortest."""


def socket_path(folder: Path, server: str) -> Path:
    return folder / f"{server}.sock"


def is_too_long(path: Path) -> bool:
    return len(os.fsencode(path)) > LONGEST_PATH
