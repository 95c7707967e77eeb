"""What else is wrong in a file whose form is wrong already: the rest is looked at as if the wrong pieces were not there.

A piece that is left out makes others look wrong: what stands near it, or names it, is not told.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping

from .build import build
from .check import validate
from .notes import Notes, Path
from .source import Table

_PROVIDERS: Path = ("virtualrouter", "providers")
_ROUTING: Path = ("virtualrouter", "routing")


def look_further(root: Table, env: Mapping[str, str], notes: Notes) -> None:
    wrong = [path for path, _ in notes.found]
    left = copy.deepcopy(root)
    for path in wrong:
        _take(left, path)
    document = validate(left, notes.again())
    if document is None:
        return
    found = notes.again()
    build(document, env, found)
    for path, text in found.found:
        if not _is_near(path, wrong):
            notes.refuse(path, text)


def _take(root: Table, path: Path) -> None:
    """The piece itself; of a list the whole list, and where nothing is (it is missing), what lacks it."""
    node, owner, name = root, root, ""
    for step in path:
        if not isinstance(node, Table) or str(step) not in node:
            break
        owner, name = node, str(step)
        below = node[name]
        if not isinstance(below, Table):
            break
        node = below
    if name:
        owner.take(name)


def _is_near(path: Path, wrong: Iterable[Path]) -> bool:
    named = path[:2] == _ROUTING
    return any(path[: len(other[:3])] == other[:3] or (named and other[:2] == _PROVIDERS) for other in wrong)
