"""`python -m tests.mutants`: do the tests bite? Small mistakes are put into a copy of the product, one by one: tests must fail.

1. Which mistakes is drawn by lot, and the same ones for the same `--seed`; `--only` keeps to files whose path holds a text.
2. The tests that mirror the module run first, then those that import it, its folder, those that import its importers, then all;
   the first that fails ends it. With `--near`, those that start a proxy are left out.
3. What survives is listed with its line. What changes nothing that anybody could see stands in `tests/equivalents.py`, with what
   makes it so, and does not count. Of all else 95 of 100 die, or the command fails.
"""

from __future__ import annotations

import argparse
import ast
import functools
import itertools
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.equivalents import BY_PLACE, BY_ROW
from tests.imported import imports_in

ROOT = Path(__file__).parents[1]
NEEDED = (
    "addons",
    "routing",
    "tests",
    "README.md",
    "mitm-config.yaml",
    "pyproject.toml",
    "requirements.lock",
    "requirements-test.lock",
)
LEAST = 0.95
COMPARED: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.Is: "is not",
    ast.IsNot: "is",
}


@dataclass(frozen=True, slots=True)
class Mutant:
    path: Path
    """From the root."""
    start: int
    """Of the bytes that are replaced."""
    end: int
    text: str
    line: int
    was: str
    place: str = ""
    """Whose keyword it is the value of: `zip(strict)`; of a class's head `class(frozen)`."""
    statement: str = ""
    """The whole of it in one line, where it is simple; of `if` and `while` what is asked."""

    @property
    def why_unseen(self) -> str:
        """What makes it one that nobody can see; nothing where somebody could."""
        row = (self.path.as_posix(), self.statement, self.text)
        return BY_PLACE.get(self.place, "") or next((why for why, rows in BY_ROW.items() if row in rows), "")

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {' '.join(self.was.split())[:70]}  ->  {' '.join(self.text.split())[:70]}"

    def apply(self, source: bytes) -> bytes:
        return source[: self.start] + self.text.encode() + source[self.end :]


def mutants_of(path: Path, source: bytes) -> list[Mutant]:
    """Every single mistake that can be put into this file."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = []
    tree = ast.parse(source)
    places = {
        id(keyword.value): f"{ast.unparse(call.func).rpartition('.')[2]}({keyword.arg})"
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        for keyword in call.keywords
    }
    classes = [one for one in ast.walk(tree) if isinstance(one, ast.ClassDef)]
    places |= {id(keyword.value): f"class({keyword.arg})" for one in classes for keyword in one.keywords}
    simple = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return, ast.Expr)
    statements = {id(part): ast.unparse(one) for one in ast.walk(tree) if isinstance(one, simple) for part in ast.walk(one)}
    tests = [one.test for one in ast.walk(tree) if isinstance(one, (ast.If, ast.While))]
    statements |= {id(part): f"if {ast.unparse(one)}" for one in tests for part in ast.walk(one)}
    for node, text in _changes(tree):
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start, end = starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset
        was, statement = source[start:end].decode(), statements.get(id(node), "")
        found.append(Mutant(path, start, end, text, node.lineno, was, places.get(id(node), ""), statement))
    return found


def _changes(tree: ast.Module) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    passed_over = {id(part) for node in ast.walk(tree) for part in _of_no_effect(node)}
    for node in ast.walk(tree):
        if id(node) in passed_over:
            continue
        match node:
            case ast.Compare(ops=[operator]) if type(operator) in COMPARED:
                left, right = ast.unparse(node.left), ast.unparse(node.comparators[0])
                yield node, f"({left}) {COMPARED[type(operator)]} ({right})"
            case ast.BoolOp(op=operator, values=values):
                yield (
                    node,
                    f" {'or' if isinstance(operator, ast.And) else 'and'} ".join(f"({ast.unparse(one)})" for one in values),
                )
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                yield node, f"({ast.unparse(operand)})"
            case ast.Constant(value=bool(value)):
                yield node, str(not value)
            case ast.Constant(value=int(value)):
                yield node, str(value + 1)
            case ast.BinOp(op=ast.Add() | ast.Sub() as operator):
                yield (
                    node,
                    f"({ast.unparse(node.left)}) {'-' if isinstance(operator, ast.Add) else '+'} ({ast.unparse(node.right)})",
                )
            case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
                yield test, f"(not ({ast.unparse(test)}))"
            case ast.Return(value=ast.expr() as value) if ast.unparse(value) != "None":
                yield node, "return None"
            case ast.Expr(value=ast.Call() | ast.Await()):
                yield node, "pass"
            case ast.AugAssign():
                yield node, "pass"
            case ast.Break():
                yield node, "pass"


def _of_no_effect(node: ast.AST) -> Iterator[ast.AST]:
    """Annotations, and all that stands inside an f-string: its parts have no place of their own on every Python."""
    if isinstance(node, ast.JoinedStr):
        yield from ast.walk(node)
    for name in ("annotation", "returns"):
        if isinstance(part := getattr(node, name, None), ast.AST):
            yield from ast.walk(part)


def _compiles(mutant: Mutant) -> bool:
    try:
        compile(mutant.apply((ROOT / mutant.path).read_bytes()), "mutant", "exec")
    except SyntaxError:
        return False
    return True


def drawn(count: int, seed: int, only: str = "") -> list[Mutant]:
    files = [path.relative_to(ROOT) for room in ("routing", "addons") for path in sorted((ROOT / room).rglob("*.py"))]
    every = [mutant for path in files if only in str(path) for mutant in mutants_of(path, (ROOT / path).read_bytes())]
    random.Random(seed).shuffle(every)
    return list(itertools.islice(filter(_compiles, every), count))


def stages_of(path: Path, root: Path) -> list[list[str]]:
    """Arguments of pytest, the nearest tests first: what mirrors it, who imports it, who imports those, then everybody."""
    folder = Path("tests") / path.parent
    mirrored, last = folder / f"test_{path.stem}.py", ["tests/system", "tests/trouble", "tests/addons"]
    near, far = importers(path, root)
    in_folder = {str(file.relative_to(root)) for file in (root / folder).rglob("test_*.py") if not _starts_proxies(file)}
    steps = [[str(mirrored)] if (root / mirrored).is_file() else [], sorted(near), sorted(in_folder), sorted(far)]
    stages: list[list[str]] = []
    tried: set[str] = set()
    for step in steps:
        if new := [file for file in step if file not in tried]:
            stages.append(["-n", "0", *new])
            tried.update(new)
    if path.parts[0] == "routing":
        stages.append(["-m", "quick"])
        last.append("tests/routing")
    return [*stages, last]


def importers(path: Path, root: Path) -> tuple[set[str], set[str]]:
    """Test files without a proxy that import a module, if through helpers of the tests; and those that import its importers."""
    graph = _graph(root)
    product = {path.as_posix()}
    of_tests: list[set[str]] = []
    for _ in range(2):
        waiting, found = list(product), set[str]()
        while waiting:
            for name in graph.get(waiting.pop(), ()):
                if name.startswith("tests/") and name not in found:
                    found.add(name)
                    waiting.append(name)
        of_tests.append({name for name in found if Path(name).name.startswith("test_") and not _starts_proxies(root / name)})
        product |= {name for one in product for name in graph.get(one, ()) if not name.startswith("tests/")}
    near, far = of_tests
    return near, far - near


@functools.cache
def _graph(root: Path) -> dict[str, set[str]]:
    """By file, the files that import it."""
    known_by: dict[str, set[str]] = {}
    for file in [file for room in ("addons", "routing", "tests") for file in (root / room).rglob("*.py")]:
        own = file.relative_to(root)
        package = ["routecodex", *own.parent.parts] if own.parts[0] != "tests" else list(own.parent.parts)
        for node in imports_in(ast.parse(file.read_bytes()).body):
            if isinstance(node, ast.ImportFrom):
                start = package[: len(package) + 1 - node.level] if node.level else []
                module = [*start, *(node.module or "").split(".")] if node.module else start
                for parts in (module, *([*module, alias.name] for alias in node.names)):
                    place = "/".join(parts).removeprefix("routecodex/") + ".py"
                    known_by.setdefault(place, set()).add(own.as_posix())
    return known_by


@functools.cache
def _starts_proxies(file: Path) -> bool:
    """Its code runs in processes of their own, and takes longer."""
    return "mark.system" in file.read_text(encoding="utf-8")


def dies(mutant: Mutant, copy: Path, limit_s: float, *, near: bool = False) -> bool | None:
    """Whether any test notices; one that hangs has noticed as well. `near`: without those that start a proxy. None where nobody
    knows: none has noticed, and some take longer than the limit without any mistake."""
    original = (copy / mutant.path).read_bytes()
    too_slow = False
    for stage in stages_of(mutant.path, copy)[: -1 if near else None]:
        (copy / mutant.path).write_bytes(mutant.apply(original))
        try:
            failed = what_fails(tuple(stage), copy, limit_s)
        finally:
            (copy / mutant.path).write_bytes(original)
        if failed and not fails_as_it_is(tuple(failed), copy, limit_s):
            return True
        too_slow = too_slow or failed == stage
    return None if too_slow else False


@functools.cache
def fails_as_it_is(stage: tuple[str, ...], copy: Path, limit_s: float) -> bool:
    """Tests that fail without any mistake notice none. Asked once of each that has failed."""
    return bool(what_fails(stage, copy, limit_s))


def what_fails(stage: tuple[str, ...], copy: Path, limit_s: float) -> list[str]:
    """The first file that fails, as arguments of pytest; all of the stage where it hangs; nothing where it passes."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--tb=no", "-p", "no:cacheprovider", *stage]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "HYPOTHESIS_STORAGE_DIRECTORY": str(copy / ".hypothesis")}
    try:
        done = subprocess.run(command, cwd=copy, env=environment, timeout=limit_s, capture_output=True, text=True)
    except subprocess.TimeoutExpired:
        return list(stage)
    if done.returncode in (0, 5):  # all is well, or nothing is there to be tried
        return []
    found = re.search(r"^(?:FAILED|ERROR) (\S+\.py)", done.stdout, re.MULTILINE)
    return ["-n", "0", found[1]] if found else list(stage)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description="Do the tests bite?")
    parser.add_argument("--count", type=int, default=150)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", metavar="TEXT", help="only files whose path holds this")
    parser.add_argument("--limit", type=float, default=1_200, metavar="SECONDS", help="for each stage of tests")
    parser.add_argument("--near", action="store_true", help="only tests that start no proxy: minutes instead of hours")
    asked = parser.parse_args(arguments)
    chosen = drawn(asked.count, asked.seed, asked.only)
    killed, survivors, unjudged = 0, list[Mutant](), 0
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copy = Path(folder)
        for name in NEEDED:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(ROOT / name, copy / name)
        for number, mutant in enumerate(chosen, 1):
            dead = dies(mutant, copy, asked.limit, near=asked.near)
            unseen = "" if dead else mutant.why_unseen
            word = "died" if dead else "unseen" if unseen else "TOO SLOW" if dead is None else "SURVIVED"
            print(f"{number:4} of {len(chosen)} {word:8} {mutant}{f'  ({unseen})' if unseen else ''}", flush=True)
            killed, unjudged = killed + bool(dead), unjudged + (word == "TOO SLOW")
            survivors += [mutant] * (word == "SURVIVED")
    counted = killed + len(survivors)
    beside = f"{len(chosen) - counted - unjudged} that nobody can see, seed {asked.seed}"
    print(f"\n{killed} of {counted} died ({killed / max(1, counted):.0%}), {beside}.")
    print("Survivors:", *survivors, sep="\n  ")
    if unjudged:
        print(f"Of {unjudged} nobody knows: tests take longer than --limit as they are.")
    return 0 if killed >= LEAST * counted and not unjudged else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
