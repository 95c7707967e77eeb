"""A configuration in other spellings, above all a RouteCodex `config.json`, as a file in ours."""

from __future__ import annotations

import io
import re

from ruamel.yaml import YAML
from ruamel.yaml.scalarstring import DoubleQuotedScalarString

from .imports import normalise
from .notes import Notes
from .source import Items, Table, parse

_PLAIN = re.compile(r"[A-Za-z_./][A-Za-z0-9_./:-]*(?<!:)|\d{1,15}")
_WORDS = frozenset({"true", "false"})
_NOT_TEXT = frozenset({"null", "yes", "no", "on", "off", "y", "n", "true", "false", ".inf", ".nan"})


def rewritten(text: str, name: str) -> str:
    """Values stay; ConfigError where the text has no form at all."""
    root = parse(text, name=name)
    normalise(root, Notes(name, root))
    out = io.StringIO()
    out.write(f"# Made from {re.sub(r'[^ -~]', '?', name)}. What may stand here: the shipped mitm-config.yaml says it.\n\n")
    yaml = YAML()
    yaml.width = 4096
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.dump(_plain(root), out)
    return out.getvalue()


def _plain(node: object) -> object:
    """Every scalar is text that is read as text again; quotes stand where another reader could see something else in it."""
    if isinstance(node, Table):
        return {key: _plain(value) for key, value in node.items()}
    if isinstance(node, Items):
        return [_plain(value) for value in node]
    if not isinstance(node, str):
        return node
    if node in _WORDS:
        return node == "true"
    if node.isascii() and node.isdigit() and len(node) < 15 and str(int(node)) == node:
        return int(node)
    if _PLAIN.fullmatch(node) is None or node.lower() in _NOT_TEXT:
        return DoubleQuotedScalarString(node)
    return node
