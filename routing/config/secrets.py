"""Secrets that are not in the environment: `${file:~/.keys/glm}`, and a `.env` beside the configuration.

1. What a configuration names is read once with it; both kinds of file are watched like the configuration itself.
2. The environment beats `.env`. A file that cannot be read is like a variable that is not set: its key is off, and why is said.
3. What others than the owner may read is used, and warned of. No message holds anything of a file's content.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct, field

FILE = "file:"
ENV_FILE = ".env"
MARK = re.compile(r"\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*|file:[^{}\r\n]+)\}")
"""`${NAME}` and `${file:PATH}`."""
_LARGEST = 64 << 10
_LINE = re.compile(r"(?:export\s+)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)\s*=\s*(?P<value>.*)")
_QUOTED = re.compile(r"""(?P<quote>["'])(?P<text>.*)(?P=quote)\s*(?:#.*)?""")


class Beside(Struct):
    """What a configuration finds around it."""

    env: dict[str, str]
    """The environment, what `.env` adds, and each named file under `file:PATH`."""
    files: tuple[Path, ...] = ()
    """Those to watch, whether they are there or not."""
    warnings: list[str] = field(default_factory=list)


def look_beside(text: str, folder: Path, env: Mapping[str, str]) -> Beside:
    """`text`: the configuration's; `folder`: where it lies."""
    found = Beside(dict(env))
    dotenv = folder / ENV_FILE
    raw = _read(dotenv, found)
    if isinstance(raw, str):
        for number, line in enumerate(raw.splitlines(), 1):
            _take(line, number, found, env)
    elif dotenv.exists():
        found.warnings.append(f"{dotenv}: {raw.args[0]}: nothing of it is used")
    names = dict.fromkeys(match["name"] for match in MARK.finditer(text) if match["name"].startswith(FILE))
    paths = {name: path_of(name, folder) for name in names}
    for name, path in paths.items():
        content = _read(path, found)
        if isinstance(content, str) and content.strip():
            found.env[name] = content.strip()
    found.files = (dotenv, *dict.fromkeys(paths.values()))
    return found


def path_of(name: str, folder: Path) -> Path:
    """Where `file:PATH` lies: what is relative, beside the configuration."""
    path = Path(name.removeprefix(FILE).strip())
    if str(path).startswith("~"):
        try:
            path = path.expanduser()
        except RuntimeError:  # no home: then there is no such file
            pass
    return folder / path


def said_missing(name: str) -> str:
    """Why a `${file:…}` is empty, as a sentence goes on."""
    return f"the file {name.removeprefix(FILE).strip()} is empty or cannot be read"


def _take(line: str, number: int, found: Beside, env: Mapping[str, str]) -> None:
    line = line.strip()
    if not line or line.startswith("#"):
        return
    pair = _LINE.fullmatch(line)
    if pair is None:
        found.warnings.append(f"{ENV_FILE}:{number}: not understood (written NAME=value): the line is passed over")
    elif not env.get(pair["name"], "").strip():
        found.env[pair["name"]] = _unquoted(pair["value"].strip())


def _unquoted(value: str) -> str:
    quoted = _QUOTED.fullmatch(value)
    return quoted["text"] if quoted is not None else re.split(r"\s#", value, maxsplit=1)[0].rstrip()


class _Unreadable(Exception):
    pass


def _read(path: Path, found: Beside) -> str | _Unreadable:
    """A text, or why there is none. What lies there may be anything: no device is waited for, and no file is read without end."""
    try:
        file = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except (OSError, ValueError) as error:
        return _Unreadable(getattr(error, "strerror", None) or "no such file")
    try:
        about = os.fstat(file)
        if not stat.S_ISREG(about.st_mode) or about.st_size > _LARGEST:
            return _Unreadable("not a small file")
        raw = os.read(file, _LARGEST)
    except OSError as error:
        return _Unreadable(error.strerror or "cannot be read")
    finally:
        os.close(file)
    if os.name != "nt" and about.st_mode & 0o077:
        found.warnings.append(f"{path} holds secrets and others on this machine may read it: chmod 600 {path}")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        return _Unreadable("not UTF-8 text")
