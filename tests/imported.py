"""What a file of Python imports, wherever in it. Imports are statements: expressions are not looked through."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator


def imports_in(nodes: Iterable[ast.AST]) -> Iterator[ast.Import | ast.ImportFrom]:
    waiting = [*nodes]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
            continue
        for within in ("body", "orelse", "finalbody", "handlers", "cases"):
            waiting += getattr(node, within, ())
