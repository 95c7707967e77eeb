"""One's own configuration on disk: written whole or not at all, its owner's alone."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from .say import Failed, unless_full


def read_text(path: Path) -> str:
    """With its ends of lines as they are."""
    try:
        return path.read_bytes().decode("utf-8")
    except OSError as error:
        hint = "look at its permissions" if path.exists() else "is its name right?"
        raise Failed(f"{path} cannot be read: {error.strerror}", hint) from None
    except UnicodeDecodeError:
        raise Failed(f"{path} is not UTF-8 text", "save it as UTF-8") from None


def write(path: Path, text: str) -> None:
    """A link stays a link: what it leads to is written."""
    path = path.resolve()
    half = ""
    try:
        path.parent.mkdir(0o700, parents=True, exist_ok=True)
        file, half = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)  # 0600
        with os.fdopen(file, "wb") as opened:
            opened.write(text.encode())
            opened.flush()
            os.fsync(opened.fileno())
        os.replace(half, path)
    except OSError as error:
        if half:
            Path(half).unlink(missing_ok=True)
        raise Failed(
            f"{path} cannot be written: {error.strerror}", unless_full(error, "look at the folder's permissions")
        ) from None
