"""Read the text that `<**stopMessage:<file://…>**>` names.

1. Only regular files under one folder are read: no absolute path, no `..`, no link that leads out of it.
2. Nothing outside that folder is ever opened, and opening never waits.
3. A refusal says what the person typed, never where the folder is.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path, PurePosixPath, PureWindowsPath

from ..storage.names import file_name

LONGEST = 16 << 10
_FLAGS = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_NOFOLLOW", "O_CLOEXEC", "O_BINARY", "O_NOCTTY"))


class TextRefused(Exception):
    """The text cannot be had; the message is a sentence for the person."""

    def __init__(self, relative: str, reason: str) -> None:
        super().__init__(f"The stopMessage file {_printable(relative)} {reason}")


def texts_of(user: str, folder: Path) -> Path:
    """Where a person's texts lie: where several share the server, nobody reads what is not theirs."""
    return folder / "users" / file_name("user", user).removesuffix(".json") if user else folder


def read_text(relative: str, base: Path) -> str:
    """The text of a file under `base`, as it is now; TextRefused where it may not or cannot be read."""
    try:
        raw = _read(_inside(relative, base), relative)
    except (OSError, RuntimeError, ValueError):
        # a missing file, a circle of links, a NUL in the name
        raise TextRefused(relative, "is not there or cannot be read") from None
    if len(raw) > LONGEST:
        raise TextRefused(relative, f"is longer than {LONGEST >> 10} KiB")
    try:
        text = raw.decode("utf-8-sig").strip()
    except UnicodeDecodeError:
        raise TextRefused(relative, "is not UTF-8 text") from None
    if not text:
        raise TextRefused(relative, "is empty")
    return text


def _inside(relative: str, base: Path) -> Path:
    shapes = (PurePosixPath(relative), PureWindowsPath(relative))
    if not relative or any(shape.anchor or ".." in shape.parts for shape in shapes):
        raise TextRefused(relative, "must be named by a path inside the RouteCodex folder")
    folder = base.resolve(strict=True)
    path = (folder / relative).resolve(strict=True)
    if not path.is_relative_to(folder):
        raise TextRefused(relative, "leads out of the RouteCodex folder")
    return path


def _read(path: Path, relative: str) -> bytes:
    # looked at before it is opened, because opening a device can do things; and again after, because it may have changed
    _check_regular(path.lstat(), relative)
    descriptor = os.open(path, _FLAGS)
    try:
        _check_regular(os.fstat(descriptor), relative)
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(LONGEST + 1)
    finally:
        os.close(descriptor)


def _check_regular(found: os.stat_result, relative: str) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise TextRefused(relative, "is not a regular file")


def _printable(name: str) -> str:
    shown = "".join(char if char.isprintable() else "?" for char in name)
    return shown if len(shown) <= 120 else f"{shown[:120]}…"
