"""What a plugin imports stays whole: every name of the contract that its documentation uses."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from routecodex.routing import plugins
from routecodex.routing.turn import plugins as contract

ROOT = Path(__file__).parents[2]


def test_every_public_class_of_the_contract_can_be_imported() -> None:
    defined = {node.name for node in ast.parse(Path(contract.__file__).read_text()).body if isinstance(node, ast.ClassDef)}
    assert {name for name in defined if not name.startswith("_")} <= set(plugins.__all__)
    for name in plugins.__all__:
        assert hasattr(plugins, name)


@pytest.mark.parametrize("path", sorted((ROOT / "tests" / "plugins").glob("*.py")), ids=lambda path: path.name)
def test_our_own_examples_need_nothing_else(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("routecodex"):
            assert node.module == "routecodex.routing.plugins"
