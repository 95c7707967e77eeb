"""The house keeps its order: who may know whom, and that what is written down exists."""

from __future__ import annotations

import ast
import functools
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

import pytest

from tests.imported import imports_in

ROOT = Path(__file__).parents[1]
MODULES = sorted(path.relative_to(ROOT) for room in ("routing", "addons") for path in (ROOT / room).rglob("*.py"))
ROUTING = [path for path in MODULES if path.parts[0] == "routing"]
SCRIPTS = {Path("addons/routecodex.py"), Path("addons/control/__main__.py")}
"""What is started by its path, under a name of its own: it says where the modules are, and calls them by their whole names."""

OUTSIDE = frozenset({"mitmproxy", "asyncio", "socket", "ssl", "select", "selectors", "httpx", "http", "ntplib", "tornado", "h11"})
"""What the product's mind does not know."""
MAY_WAIT = {"routing/turn/lifecycle.py", "routing/*/plugin.py"}
"""Hooks run in parallel, and plugins wait for their stores: these may know asyncio, and nothing else of the above."""
DIALECTS = frozenset({"messages", "chat", "responses", "gemini"})
BY_NAME = {
    "routecodex.routing.dialects.calls.growing": "routecodex.routing.dialects.calls.grow_*",
    "routecodex.addons.control.commands": "routecodex.addons.control.commands.*",
}
"""Modules that load others by name."""
TESTED_FROM = {
    "addons": ("tests/addons", "tests/system"),
    "addons/control": ("tests/addons/control", "tests/system"),
    "addons/control/commands": ("tests/addons/control", "tests/system"),
}
"""Rooms whose tests do not stand in the mirrored folder alone."""
STARTED_BY_SYSTEM_TESTS = {"routecodex.addons.routecodex", "routecodex.addons.control.__main__"}


def name_of(path: Path) -> str:
    """As it is imported, in a clone as in the package."""
    return ".".join(("routecodex", *path.with_suffix("").parts)).removesuffix(".__init__")


NAMES = {name_of(path): path for path in MODULES}


@dataclass(frozen=True)
class File:
    is_told: bool
    """It says what it is for, or there is nothing in it."""
    at_import: tuple[ast.Import | ast.ImportFrom, ...]
    wherever: tuple[ast.Import | ast.ImportFrom, ...]


@functools.cache
def file_of(path: Path) -> File:
    """What is asked of a file here; all its nodes together are too much to keep."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    at_import = tuple(node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom))
    return File(not tree.body or ast.get_docstring(tree) is not None, at_import, tuple(imports_in(tree.body)))


@functools.cache
def imports_of(path: Path) -> frozenset[str]:
    """Every module that a file imports, wherever in the file; of `from a import b` both `a` and `a.b`."""
    found: set[str] = set()
    for node in file_of(path).wherever:
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        else:
            module = _module_of(path, node)
            found.add(module)
            found.update(f"{module}.{alias.name}" for alias in node.names)
    return frozenset(found)


def _module_of(path: Path, node: ast.ImportFrom) -> str:
    """The whole name of the module that something is imported from."""
    if not node.level:
        return node.module or ""
    package = ("routecodex", *path.parent.parts)
    return ".".join([*package[: len(package) + 1 - node.level], *([node.module] if node.module else [])])


def known_in(path: Path) -> set[str]:
    """The modules of the house that a file leads to directly."""
    found = {name for name in imports_of(path) if name in NAMES}
    return found | {name for pattern in (BY_NAME.get(name_of(path)),) if pattern for name in NAMES if fnmatch(name, pattern)}


# --- who may know whom ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ROUTING, ids=str)
def test_the_mind_knows_neither_mitmproxy_nor_the_network(path: Path) -> None:
    known = {name.partition(".")[0] for name in imports_of(path)}
    if any(fnmatch(path.as_posix(), pattern) for pattern in MAY_WAIT):
        known.discard("asyncio")
    assert not known & OUTSIDE
    assert not any(name.startswith("routecodex.addons") for name in imports_of(path)), "the mind does not know who carries"
    assert "tests" not in known


@pytest.mark.parametrize("path", [path for path in MODULES if path not in SCRIPTS], ids=str)
def test_modules_call_each_other_from_where_they_stand(path: Path) -> None:
    """Beside another script's `settings` ours is still ours, whatever lies on the path."""
    for node in file_of(path).wherever:
        if isinstance(node, ast.ImportFrom) and not node.level:
            first = (node.module or "").partition(".")[0]
            assert first not in {"routecodex", "routing", "addons"}, f"{path} imports from {node.module} by its whole name"


def test_nobody_may_wait_who_need_not() -> None:
    waiting = [path for path in ROUTING if "asyncio" in imports_of(path)]
    for pattern in MAY_WAIT:
        assert any(fnmatch(path.as_posix(), pattern) for path in waiting), f"{pattern} does not need to be allowed"


@pytest.mark.parametrize("path", [path for path in ROUTING if "dialects" in path.parts], ids=str)
def test_dialect_modules_never_import_each_other(path: Path) -> None:
    own = _dialects_of(path)
    if not own:
        return
    for name in imports_of(path):
        if name in NAMES and "dialects" in NAMES[name].parts:
            assert _dialects_of(NAMES[name]) <= own, f"{path} imports {name}"


def _dialects_of(path: Path) -> set[str]:
    return DIALECTS & {*path.stem.split("_"), path.parent.name}


def test_no_circle_of_imports() -> None:
    """Rooms may know each other both ways, modules may not (but for what is only needed to say types)."""
    done: set[str] = set()

    def walk(name: str, way: tuple[str, ...]) -> None:
        assert name not in way, f"a circle: {' -> '.join((*way, name))}"
        if name in done:
            return
        for other in sorted(_needed_at_import(NAMES[name])):
            walk(other, (*way, name))
        done.add(name)

    for name in NAMES:
        walk(name, ())


DOOR = Path("routing/plugins.py")
"""What a person's plugin imports: one name for what stands in a room."""


def test_rooms_do_not_know_each_other_in_circles() -> None:
    """What is needed at import: of two rooms one is above the other."""
    below: dict[str, set[str]] = {}
    for path in MODULES:
        if path not in SCRIPTS and path != DOOR:
            rooms = {_room(NAMES[other]) for other in _needed_at_import(path)}
            below.setdefault(_room(path), set()).update(rooms - {_room(path)})
    while bottom := {room for room, known in below.items() if not known & below.keys()}:
        for room in bottom:
            del below[room]
    assert not below, f"rooms in a circle: {below}"


def _room(path: Path) -> str:
    """The root of `routing` is the bottom: values, errors, what knows nobody. `addons` and its command are a room each."""
    depth = 2 if path.parts[0] == "routing" or path.parts[1] == "control" else 1
    return ".".join(path.parts[: min(depth, len(path.parts) - 1)])


def _needed_at_import(path: Path) -> set[str]:
    """What a module imports when it is loaded itself."""
    found: set[str] = set()
    for node in file_of(path).at_import:
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        else:
            module = _module_of(path, node)
            inner = {f"{module}.{alias.name}" for alias in node.names}
            modules = {name for name in inner if name in NAMES}
            found |= modules if len(modules) == len(inner) else modules | {module}
    return {name for name in found if name in NAMES and name != name_of(path)}


# --- what a room says of itself -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_every_module_says_what_it_is_for(path: Path) -> None:
    assert file_of(path).is_told


# --- tests mirror the tree ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [path for path in MODULES if (ROOT / path).stat().st_size > 200], ids=str)
def test_every_module_has_its_test(path: Path) -> None:
    """A test file of its own name; or a test of its room reaches it through that room's modules."""
    own = ROOT / "tests" / path.parent / f"test_{path.name}"
    assert own.is_file() or name_of(path) in _reached(path.parent), f"no test under tests/{path.parent} reaches {path}"


@functools.cache
def _reached(room: Path) -> frozenset[str]:
    """The modules of a room, and of the rooms within, that its tests lead to."""
    folders = [ROOT / folder for folder in TESTED_FROM.get(room.as_posix(), (f"tests/{room.as_posix()}",))]
    files = [path.relative_to(ROOT) for folder in folders for path in folder.rglob("*.py")]
    waiting = {name for path in files for name in imports_of(path) if name in NAMES}
    if any("system" in path.parts for path in files):
        waiting |= STARTED_BY_SYSTEM_TESTS
    reached: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in reached and NAMES[name].is_relative_to(room):
            reached.add(name)
            waiting |= known_in(NAMES[name])
    return frozenset(reached)


# --- clean by the tools --------------------------------------------------------------------------------------------------

TOOLS = {
    "ruff check": ("ruff", "check", "--no-cache"),
    "ruff format": ("ruff", "format", "--check", "--no-cache"),
    "mypy": ("mypy",),
}


@pytest.mark.parametrize("tool", TOOLS)
def test_clean(tool: str, tmp_path: Path) -> None:
    """Checkers of types look for `routecodex` by that name, whatever this folder is called."""
    (tmp_path / "routecodex").symlink_to(ROOT)
    environment = {**os.environ, "MYPYPATH": str(tmp_path)}
    command = [sys.executable, "-m", *TOOLS[tool]]
    found = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert found.returncode == 0, found.stdout + found.stderr


# --- what is written down exists -------------------------------------------------------------------------------------------

SHELL = {"export", "source", "cd", "curl", "git", "uv", "pipx", "python3", "claude", "codex", "gemini", "opencode", "aider"}
SHELL |= {"haproxy", "htpasswd"}
"""What a reader has, or is told to get."""
OURS = re.compile(r"(?:addons|routing|tests|\.ci)/[\w./-]+|mitm-config\.yaml|requirements[\w-]*\.lock|pyproject\.toml")


DOCS = {
    path.name: path.read_text(encoding="utf-8")
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/*.md"))
}


def _commands() -> Iterator[str]:
    """Each command of the shell blocks that a reader is shown, and of the lines that start with a tool."""
    for text in DOCS.values():
        for block in re.findall(r"```(?:sh|bash|shell|console)\n(.*?)```", text, re.DOTALL):
            for line in block.splitlines():
                yield from (piece.strip() for piece in line.split("&&") if piece.strip() and not piece.strip().startswith("#"))
        for inline in re.findall(r"`((?:uv|mitmdump|mitmweb|python3?|routecodex|\.venv/\S+) [^`]+)`", text):
            yield from (piece.strip() for piece in inline.split("&&"))


@pytest.mark.parametrize("command", sorted(set(_commands())))
def test_commands_that_readers_are_told_exist(command: str) -> None:
    words = shlex.split(command, comments=True)
    program = words[0].removeprefix(".venv/bin/")
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"].get("scripts", {})
    here = Path(sys.executable).parent / program
    assert program in SHELL or program in scripts or here.exists(), f"{program} is not installed with the requirements"
    for word in words[1:]:
        for named in OURS.findall(word) if not word.startswith(("~", "http")) and "=" not in word else []:
            assert (ROOT / named).exists(), f"{named} does not exist"
    for option in re.findall(r"--set (\w+)=", command):
        assert f'"{option}"' in (ROOT / "addons/routecodex.py").read_text(encoding="utf-8"), f"there is no option {option}"


@pytest.mark.parametrize("named", sorted({named for text in DOCS.values() for named in OURS.findall(text)}))
def test_files_that_readers_are_told_of_exist(named: str) -> None:
    assert (ROOT / named.rstrip(".")).exists() or any(ROOT.glob(f"*/{named}"))


@pytest.mark.parametrize("name", DOCS)
def test_links_lead_somewhere(name: str) -> None:
    folder = next(path for path in (ROOT, ROOT / "docs") if (path / name).is_file())
    for link in re.findall(r"\]\((?!https?:|#)([^)#]+)", DOCS[name]):
        assert (folder / link).exists(), f"{name} leads to {link}"


PLACES = re.compile("/" + r"(?:root(?!/tester)|work|Users/[a-z]+|home/(?!dev/|user/|you/)[a-z]+)/", re.IGNORECASE)
"""Folders of one machine; `/home/dev` and the like are examples."""


def test_no_path_of_one_machine_is_written_down() -> None:
    found = []
    for path in sorted(ROOT.rglob("*")):
        inside = path.relative_to(ROOT).parts
        hidden = any((part.startswith(".") and part != ".ci") or part in ("__pycache__", "build", "dist") for part in inside)
        if hidden or not path.is_file() or path.stat().st_size > 4 << 20:
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        found += [f"{path.relative_to(ROOT)}: {place}" for place in PLACES.findall(text)]
    assert found == []
