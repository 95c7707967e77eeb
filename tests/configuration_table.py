"""docs/configuration.md, made from the models of the configuration: `python -m tests.configuration_table` writes it anew."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from routecodex.routing.config import schema
from routecodex.routing.config.section import Section

PAGE = Path(__file__).parents[1] / "docs" / "configuration.md"
BEGIN, END = "<!-- keys -->", "<!-- /keys -->"
_KINDS = {int: "a whole number", float: "a number", str: "text", bool: "`true` or `false`"}


def tables() -> str:
    return "\n\n".join(_sections(schema.Document, ""))


def _sections(section: type[Section], path: str) -> list[str]:
    """The section itself, then those below it, each under the path at which it stands in the file."""
    said = _told()[section.__name__]
    rows, below = [], []
    hints = get_type_hints(section, include_extras=True)
    for name, field in section.file_keys.items():
        inner, place = _inner(hints[name]), f"{path}.{field.alias}".lstrip(".")
        if inner is not None:
            model, form = inner
            below += _sections(model, place + form)
        rows.append(f"| `{field.alias}` | {_kind(hints[name])} | {_default(getattr(section, name, None))} | {said[name]} |")
    head = f"## `{path}`" if path else "## The whole file"
    return ["\n".join([head, "", "| Key | Takes | Without it | |", "|---|---|---|---|", *rows]), *below]


def _told() -> dict[str, dict[str, str]]:
    """The text below each key."""
    found: dict[str, dict[str, str]] = {}
    for node in ast.parse(inspect.getsource(schema)).body:
        if not isinstance(node, ast.ClassDef):
            continue
        keys = found[node.name] = {}
        for here, after in zip(node.body, [*node.body[1:], None], strict=True):
            if isinstance(here, ast.AnnAssign) and isinstance(here.target, ast.Name):
                is_text = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
                keys[here.target.id] = inspect.cleandoc(str(after.value.value)).replace("\n", " ") if is_text else ""
    return found


def _bare(kind: Any) -> Any:
    """Without `Annotated` and without `| None`."""
    if get_origin(kind) is Annotated:
        return _bare(get_args(kind)[0])
    if get_origin(kind) in (Union, UnionType):
        (one,) = [arg for arg in get_args(kind) if arg is not NoneType]
        return _bare(one)
    return kind


def _inner(kind: Any) -> tuple[type[Section], str] | None:
    """The section that stands there, and how it is reached: itself, by name, or in a list."""
    kind = _bare(kind)
    form = ""
    while get_origin(kind) in (dict, list):
        form += ".NAME" if get_origin(kind) is dict else "[]"
        kind = _bare(get_args(kind)[-1])
    return (kind, form) if inspect.isclass(kind) and issubclass(kind, Section) else None


def _kind(kind: Any) -> str:
    kind = _bare(kind)
    if get_origin(kind) is Literal:
        return " or ".join(f"`{value}`" for value in get_args(kind))
    if get_origin(kind) is list:
        return "a list" if _inner(kind) is None else "a list of the below"
    if get_origin(kind) is dict:
        return "by name" if _inner(kind) is None else "by name: see below"
    return _KINDS.get(kind, "see below")


def _default(value: object) -> str:
    if value is None or value == [] or value == {} or isinstance(value, Section):
        return ""
    if isinstance(value, list):
        return f"`[{', '.join(map(str, value))}]`"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def with_tables(page: str) -> str:
    head, begin, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    assert begin
    assert end
    return f"{head}{BEGIN}\n{tables()}\n{END}{tail}"


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
