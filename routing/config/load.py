"""Finding and reading the configuration file: pure but for the one read, and quick enough for every change of the file.

1. A file gives a whole configuration or one ConfigError with all its problems; nothing in between.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from msgspec.structs import replace

from ..errors import ConfigError
from ..which_config import FILE_NAME, VARIABLE, chosen, own_file
from .build import build
from .check import validate
from .environment import override
from .further import look_further
from .imports import normalise
from .notes import Notes
from .secrets import look_beside
from .source import MAX_CHARS, Items, Table, parse
from .values import Config


def find(option: str, env: Mapping[str, str], home: Path, root: Path) -> Path:
    """The file that holds, as `which_config` says."""
    path = chosen(option, env, home, root)
    if path.is_file():
        return path
    if option:
        raise ConfigError(f"{path}: there is no such file (routecodex_config names it)")
    if env.get(VARIABLE):
        raise ConfigError(f"{path}: there is no such file ({VARIABLE} names it)")
    raise ConfigError(
        f"no {FILE_NAME} in {root} and no {own_file(home)}: put one there, or start with --set routecodex_config=PATH"
    )


def load(path: Path, env: Mapping[str, str]) -> Config:
    """Plugins that the file names relatively lie beside it."""
    try:
        with path.open("rb") as file:
            raw = file.read(4 * MAX_CHARS + 1)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or 'unknown reason'}") from None
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path.name}:{line}: not UTF-8 text") from None
    beside = look_beside(text, path.parent, env)
    config = _as_before(text, path.name, tuple(beside.env.items()))
    return replace(
        config,
        plugins=tuple(str(path.parent / Path(plugin).expanduser()) for plugin in config.plugins),
        secret_files=tuple(map(str, beside.files)),
        warnings=(*config.warnings, *dict.fromkeys(beside.warnings)),
    )


@lru_cache(maxsize=1)
def _as_before(text: str, name: str, env: tuple[tuple[str, str], ...]) -> Config:
    """An addon that is loaded anew finds the file as it was: to read a large one takes seconds."""
    return read(text, name=name, env=dict(env))


def read(text: str, *, name: str, env: Mapping[str, str]) -> Config:
    root = parse(text, name=name)
    notes = Notes(name, root)
    _hide_secrets(root, notes)
    normalise(root, notes)
    override(root, env, notes)
    document = validate(root, notes)
    if document is None:
        look_further(root, env, notes)
    if document is None or notes.refused:
        raise notes.error()
    config = build(document, env, notes)
    if notes.refused:
        raise notes.error()
    return replace(config, warnings=notes.warnings)


_SECRET_PLACES = frozenset({"auth", "apiKey", "apiKeys", "headers", "store"})
_OPEN_PLACES = frozenset({"alias", "type"})


def _hide_secrets(root: Table, notes: Notes) -> None:
    """Whatever stands where credentials stand shows in no message, unless the file itself uses the word as a name."""
    names: set[str] = set()
    secrets: set[str] = set()

    def walk(node: object, secret: bool) -> None:
        if isinstance(node, Table):
            names.update(node)
            for key, value in node.items():
                walk(value, (secret or key in _SECRET_PLACES) and key not in _OPEN_PLACES)
        elif isinstance(node, Items):
            for value in node:
                walk(value, secret)
        elif secret and isinstance(node, str):
            secrets.add(node)

    walk(root, False)
    for secret in secrets - names:
        notes.hide(secret)
