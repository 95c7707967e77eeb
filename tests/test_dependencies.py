"""Every module that is imported comes with a dependency that is declared: what another one brings today, it may drop tomorrow."""

from __future__ import annotations

import ast
import functools
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

from tests.imported import imports_in

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
ELSEWHERE = {f"tests/sdk/{name}.py" for name in ("heard", "run", "shapes", "rosetta")}
"""Run by Pythons of their own, with what does not fit beside mitmproxy (`tests/sdk/requirements*.txt`)."""
NOT_YET_IMPORTED = {"httpx"}
"""For calls of the proxy's own."""
OUR_OWN = {"routecodex", "tests"}
PLACES = metadata.packages_distributions()


def names_in(requirements: list[str]) -> set[str]:
    found = (re.match(r"[\w.-]+", line.strip()) for line in requirements)
    return {_plain(name[0]) for name in found if name}


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


RUN = names_in(PROJECT["dependencies"])
EXTRAS = names_in([name for extra, names in PROJECT["optional-dependencies"].items() if extra != "test" for name in names])
"""Their modules bear their names, and are imported only where somebody wants them."""
TEST = RUN | names_in(PROJECT["optional-dependencies"]["test"])


def modules_of(nodes: list[ast.stmt]) -> Iterator[str]:
    """What is imported, wherever; of branches for other versions of Python only the one that runs here."""
    for top in nodes:
        if isinstance(top, ast.If) and ast.unparse(top.test).startswith("sys.version_info"):
            here = eval(compile(ast.Expression(top.test), "", "eval"), {"sys": sys})
            yield from modules_of(top.body if here else top.orelse)
            continue
        for node in imports_in([top]):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif node.module and not node.level:
                yield node.module


@functools.cache
def foreign_to(room: str) -> dict[str, set[str]]:
    """The modules of others that the files of a room import, and where."""
    found: dict[str, set[str]] = {}
    for path in sorted((ROOT / room).rglob("*.py")):
        place = path.relative_to(ROOT).as_posix()
        for module in modules_of(ast.parse(path.read_text(encoding="utf-8")).body):
            name = module.partition(".")[0]
            if place not in ELSEWHERE and name not in sys.stdlib_module_names and name not in OUR_OWN:
                found.setdefault(name, set()).add(place)
    return found


@pytest.mark.parametrize(
    "room, declared", [("addons", RUN), ("routing", RUN), ("tests", TEST)], ids=["addons", "routing", "tests"]
)
def test_what_is_imported_is_declared(room: str, declared: set[str]) -> None:
    missing = {
        module: sorted(places)
        for module, places in foreign_to(room).items()
        if _plain(module) not in EXTRAS and not {_plain(name) for name in PLACES.get(module, ())} & declared
    }
    assert missing == {}


def test_what_is_declared_is_imported() -> None:
    imported = {*foreign_to("addons"), *foreign_to("routing")}
    bringing = {_plain(name) for module in imported for name in PLACES.get(module, ())}
    for requirement in PROJECT["dependencies"]:
        marked = re.search(r"python_version < '3\.(\d+)'", requirement)
        if marked and sys.version_info >= (3, int(marked[1])):
            continue
        assert names_in([requirement]) <= bringing | NOT_YET_IMPORTED, f"nothing imports {requirement}"


def test_one_place_for_zstandard() -> None:
    """Its module is named differently on each line of Pythons and mitmproxys."""
    choosing = [
        path.relative_to(ROOT).as_posix()
        for room in ("addons", "routing", "tests")
        for path in (ROOT / room).rglob("*.py")
        if re.search(r"^\s*(?:import|from) (?:zstandard|backports|compression)\b", path.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert choosing == ["routing/codings.py"]


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-test.lock"])
def test_the_locks_hold_what_is_declared_and_name_no_host(lock: str) -> None:
    text = (ROOT / lock).read_text(encoding="utf-8")
    locked = {_plain(name) for name in re.findall(r"^([\w.-]+)==", text, re.MULTILINE)}
    assert (TEST if "test" in lock else RUN) <= locked
    assert not re.search(r"^\s*--(?!hash=)|://", text, re.MULTILINE)
