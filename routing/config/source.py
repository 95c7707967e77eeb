"""YAML or JSON text as plain values that still know their lines.

1. Only the shape is read here: tables, lists, texts, None. What they mean is decided elsewhere.
2. No message repeats text of the file: a syntax error may sit right beside a credential.
3. Size, depth and the growth through anchors are bounded; any text gives a value or a ConfigError.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterable

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from ..errors import ConfigError

MAX_CHARS = 1_000_000
MAX_DEPTH = 32
MAX_VALUES = 50_000


class Table(dict[str, object]):
    """A mapping; `lines` by key, `names` the keys as the file spells them where we renamed them."""

    def __init__(self, values: dict[str, object] | None = None, *, line: int = 1) -> None:
        super().__init__(values or {})
        self.line = line
        self.lines: dict[str, int] = {}
        self.names: dict[str, str] = {}

    def put(self, key: str, value: object, *, line: int, name: str | None = None) -> None:
        self[key] = value
        self.lines[key] = line
        if name is not None:
            self.names[key] = name

    def take(self, key: str) -> object:
        """The value, taken out together with what is known of it; None where there is none."""
        self.lines.pop(key, None)
        self.names.pop(key, None)
        return self.pop(key, None)

    def line_of(self, key: str) -> int:
        return self.lines.get(key, self.line)


class Items(list[object]):
    """A sequence; `lines` by place, `names` what the file shows instead of `[place]`."""

    def __init__(self, values: Iterable[object] = (), *, line: int = 1) -> None:
        super().__init__(values)
        self.line = line
        self.lines: list[int] = []
        self.names: dict[int, str] = {}

    def add(self, value: object, *, line: int, name: str | None = None) -> None:
        if name is not None:
            self.names[len(self)] = name
        self.append(value)
        self.lines.append(line)


def parse(text: str, *, name: str) -> Table:
    """The file's top-level mapping."""
    if len(text) > MAX_CHARS:
        raise ConfigError(f"{name}: longer than {MAX_CHARS} characters")
    root = _compose(_untab(text.removeprefix("\ufeff")), name)
    if root is None:
        raise ConfigError(f"{name}: the file is empty")
    if not isinstance(root, MappingNode):
        raise ConfigError(f"{name}:{_line(root)}: the file must hold named sections (name: value)")
    value = _Reader(name).read(root, 0)
    assert isinstance(value, Table)
    return value


def locate(root: Table, path: Iterable[str | int]) -> tuple[int, str]:
    """Line and written name of the place that `path` leads to; the nearest line above where it leads nowhere."""
    node: object = root
    line, words = root.line, ""
    for step in path:
        word = f"[{step}]" if isinstance(step, int) else step
        if isinstance(node, Table):
            line = node.lines.get(str(step), line)
            word = node.names.get(str(step), word)
            node = node.get(str(step))
        elif isinstance(node, Items) and isinstance(step, int) and step < len(node):
            line = node.lines[step] if step < len(node.lines) else line
            word = node.names.get(step, word)
            node = node[step]
        else:
            node = None
        words += f".{word}" if words and word and not word.startswith("[") else word
    return line, words


def _untab(text: str) -> str:
    """JSON may be indented with tabs, YAML may not. A tab inside a JSON string is always escaped, so every raw one is space."""
    if "\t" in text and text.lstrip().startswith("{"):
        try:
            json.loads(text)
        except (ValueError, RecursionError):
            return text
        return text.replace("\t", " ")
    return text


_SAID_PLAINLY = (
    ("undefined alias", "a text that begins with * needs quotes"),
    (r"character '\\t'", "a tab that cannot stand here: write spaces"),
    ("found character", "a character that cannot stand here: put the text into quotes"),
    ("mapping values are not allowed", "a colon that cannot stand here: check the indentation or put the text into quotes"),
    ("another document", "only one document may stand in the file"),
    (r"expected ',' or .* got '\{'", 'a text with braces, such as ${NAME}, needs quotes here: "${NAME}"'),
    ("expected ',' or", "a comma or a closing bracket is missing before this (line {begun} opened one)"),
    ("expected <block end>.*<scalar>", "text behind a closing quote: use the other kind of quotes around it"),
    (r"found '[\]}]'", "a closing bracket that nothing opened"),
    ("expected <block end>", "indented otherwise than the lines that it belongs to (they begin in line {begun})"),
    ("could not find expected ':'", "line {begun} is no name with a colon and a space behind it (name: value)"),
    ("expected the node content", "a value is missing before this"),
    ("alphabetic or numeric", "a text that begins with & needs quotes"),
    ("chomping or indentation", "a text that begins with | or > needs quotes"),
    ("unexpected end of stream", "the quote that line {begun} opened is never closed"),
    ("sequence entries are not allowed", "a list's - cannot stand here: it begins a line of its own"),
    ("escape", "a \\ begins an escape in this text: put it into single quotes"),
)
"""What the reader of YAML finds, as a pattern, and what a person calls it; `begun` is the line where it began."""


_SLIPS = (ValueError, TypeError, AttributeError, LookupError, ArithmeticError, AssertionError, NotImplementedError)
"""ruamel's own, which it lets through on broken directives and escapes."""


def _compose(text: str, name: str) -> Node | None:
    """The refusal is raised outside of `except`: ruamel's errors quote the file, and would hang on to ours."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they quote the file, too
            node = YAML(typ="safe", pure=True).compose(text)
            return node if isinstance(node, Node) else None
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{name}:{mark.line + 1}" if mark else name
        begun = (error.context_mark or mark).line + 1 if mark else 1
        problem = _say_plainly(str(error.problem or error.context or "not readable"), begun)
    except YAMLError:
        where, problem = name, "it holds characters that text files do not have"
    except RecursionError:
        where, problem = name, "too deeply nested"
    except _SLIPS:
        where, problem = name, "not readable"
    raise ConfigError(f"{where}: not valid YAML: {problem}")


def _say_plainly(problem: str, begun: int) -> str:
    said = next((said for found, said in _SAID_PLAINLY if re.search(found, problem)), None)
    return re.sub(r"(['\"]).*\1", "…", problem, flags=re.S) if said is None else said.replace("{begun}", str(begun))


def _line(node: Node) -> int:
    return int(node.start_mark.line) + 1


class _Reader:
    """Nodes to values; counts what it has read, so that anchors cannot grow without end."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.count = 0

    def read(self, node: Node, depth: int) -> object:
        self.count += 1
        if depth > MAX_DEPTH or self.count > MAX_VALUES:
            raise ConfigError(f"{self.name}:{_line(node)}: too deeply nested or too large")
        match node:
            case MappingNode():
                return self._table(node, depth)
            case SequenceNode():
                items = Items(line=_line(node))
                for item in node.value:
                    items.add(self.read(item, depth + 1), line=_line(item))
                return items
            case _:
                return _scalar(node)

    def _table(self, node: MappingNode, depth: int) -> Table:
        table = Table(line=_line(node))
        merged: list[Table] = []
        for key, value in node.value:
            if not isinstance(key, ScalarNode):
                raise ConfigError(f"{self.name}:{_line(key)}: a key must be plain text")
            if key.value == "<<" and key.style is None:
                merged += self._merged(value, depth)
                continue
            text = _mend(str(key.value))
            if text in table:
                raise ConfigError(f"{self.name}:{_line(key)}: the same key stands twice here (first in line {table.lines[text]})")
            table.put(text, self.read(value, depth + 1), line=_line(key))
        for other in merged:
            for name in other:
                if name not in table:
                    table.put(name, other[name], line=other.line_of(name))
        return table

    def _merged(self, node: Node, depth: int) -> list[Table]:
        """What `<<: *anchor` brings in."""
        nodes = node.value if isinstance(node, SequenceNode) else [node]
        tables = [self.read(one, depth + 1) for one in nodes]
        if not all(isinstance(one, Table) for one in tables):
            raise ConfigError(f"{self.name}:{_line(node)}: << takes a mapping")
        return [one for one in tables if isinstance(one, Table)]


def _scalar(node: Node) -> str | None:
    """Text, as it is written: the schema knows which texts are numbers, and a model called 4.10 is none."""
    return None if str(node.tag) == "tag:yaml.org,2002:null" else _mend(str(node.value))


def _mend(text: str) -> str:
    """JSON writes characters beyond 16 bits as two escapes; YAML reads them as two halves."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
