"""OpenAI Responses, a client's call: the tools it declares, and its choice among them.

1. Tools stand in `tools`, in items of the input (Codex), and in what a search for tools has found; one that is declared again
   keeps its first place and takes its newest form.
2. A namespace counts as the tools it holds. What it says of itself is said once, by the first of them.
3. OpenAI's own tools that the *client* runs are functions for everybody else; those that the provider runs stay `server` tools.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from ....values import JsonObject
from ...fields import list_of, object_of, text_of
from ..neutral import Choice, Feature, ServerToolKind, Tool

Notes = dict[tuple[Feature, str], None]
"""What has no place in a conversation, in the order it was met."""


class BuiltIn(Struct, frozen=True):
    """A tool of OpenAI's own that the client runs: its call is an item of its own, with the arguments in one field."""

    item: str
    field: str
    description: str
    schema: JsonObject


def _schema(required: list[str], **properties: JsonObject) -> JsonObject:
    return {"type": "object", "properties": properties, "required": required}


_TEXT: JsonObject = {"type": "string"}
_NUMBER: JsonObject = {"type": "integer"}
_TEXTS: JsonObject = {"type": "array", "items": _TEXT}

BUILT_IN: dict[str, BuiltIn] = {
    "local_shell": BuiltIn(
        "local_shell_call",
        "action",
        "Runs a command on the user's machine: the program and its arguments, without a shell.",
        _schema(
            ["command"],
            command=_TEXTS,
            working_directory=_TEXT,
            timeout_ms=_NUMBER,
            env={"type": "object", "additionalProperties": _TEXT},
        ),
    ),
    "shell": BuiltIn(
        "shell_call",
        "action",
        "Runs shell commands on the user's machine.",
        _schema(["commands"], commands=_TEXTS, timeout_ms=_NUMBER, max_output_length=_NUMBER),
    ),
    "apply_patch": BuiltIn(
        "apply_patch_call",
        "operation",
        "Creates, updates or deletes one file. `diff` is a unified diff (V4A); deleting needs none.",
        _schema(
            ["type", "path"],
            type={"type": "string", "enum": ["create_file", "update_file", "delete_file"]},
            path=_TEXT,
            diff=_TEXT,
        ),
    ),
}

_SERVER_KINDS: tuple[tuple[str, ServerToolKind], ...] = (
    ("web_search", "web_search"),
    ("file_search", "file_search"),
    ("code_interpreter", "code_execution"),
    ("image_generation", "image_generation"),
    ("computer", "computer"),
)
"""By how the type begins: OpenAI dates its types."""

_MODES: dict[str, Literal["auto", "none", "required"]] = {"auto": "auto", "none": "none", "required": "required"}

_DEFAULT_NAMESPACE = "functions"
"""Calls of its tools name no namespace: it is as good as none."""
_UNSAYABLE = ("output_schema", "defer_loading", "allowed_callers")
"""Fields of a function that only OpenAI knows; a deferred one is simply declared."""


def declared(tools: Iterable[object], notes: Notes) -> tuple[Tool, ...]:
    found: dict[tuple[str, str], Tool] = {}
    for tool in tools:
        for read in _read_tool(object_of(tool), notes):
            found[read.namespace, read.name] = read
    return tuple(found.values())


def choice_of(value: object, tools: tuple[Tool, ...], notes: Notes) -> Choice | None:
    if value is None:
        return None
    said: JsonObject = {"mode": value} if isinstance(value, str) else object_of(value)
    mode = _MODES.get(text_of(said.get("mode")))
    if isinstance(value, str) and mode:
        return Choice(mode)
    if said.get("type") == "allowed_tools":
        named = tuple(name for entry in list_of(said.get("tools")) for name in _chosen(object_of(entry), tools))
        return Choice(mode or "auto", named)
    if named := tuple(_chosen(said, tools)):
        return Choice("required", named)
    notes[Feature.OTHER, "tool_choice"] = None
    return None


def _chosen(entry: JsonObject, tools: tuple[Tool, ...]) -> list[str]:
    """The names one entry of a choice stands for; a hosted tool is named by its type, as it is declared."""
    kind, name = text_of(entry.get("type")), text_of(entry.get("name"))
    if kind == "namespace":
        return [tool.name for tool in tools if tool.namespace == namespace_of(name)]
    if kind == "mcp":
        return [text_of(entry.get("server_label"))]
    if kind in ("function", "custom"):
        return [name or text_of(object_of(entry.get(kind)).get("name"))]
    same = [tool.name for tool in tools if tool.name == kind]
    return same or [tool.name for tool in tools if tool.server and tool.server == _server_kind(kind)]


def _read_tool(tool: JsonObject, notes: Notes) -> Iterator[Tool]:
    kind = text_of(tool.get("type")) or ("function" if "parameters" in tool else "")
    if kind == "namespace":
        yield from _in_namespace(tool, notes)
    elif kind == "function":
        # some clients write Chat's form here
        yield from _read_function(object_of(tool.get("function")) or tool, notes)
    elif kind == "custom":
        if name := text_of(tool.get("name")):
            yield Tool(name, text_of(tool.get("description")), kind="custom", native=tool)
    elif kind in BUILT_IN and not text_of(object_of(tool.get("environment")).get("type")).startswith("container"):
        known = BUILT_IN[kind]
        yield Tool(kind, known.description, known.schema, native=tool)
    elif kind:
        name = text_of(tool.get("server_label")) or kind
        yield Tool(name, text_of(tool.get("description")), kind="server", server=_server_kind(kind), native=tool)
    else:
        notes[Feature.OTHER, f"tool {text_of(tool.get('name'))} of no type"] = None


def _read_function(tool: JsonObject, notes: Notes) -> Iterator[Tool]:
    name, strict, schema = text_of(tool.get("name")), tool.get("strict"), tool.get("parameters")
    if not name:
        notes[Feature.OTHER, "tool without a name"] = None
        return
    for field in _UNSAYABLE:
        if tool.get(field):
            notes[Feature.OTHER, f"{field} of tools"] = None
    yield Tool(
        name,
        text_of(tool.get("description")),
        schema if isinstance(schema, dict) else None,
        strict if isinstance(strict, bool) else None,
    )


def namespace_of(name: object) -> str:
    return "" if name == _DEFAULT_NAMESPACE else text_of(name)


def _in_namespace(tool: JsonObject, notes: Notes) -> Iterator[Tool]:
    namespace, about = namespace_of(tool.get("name")), text_of(tool.get("description")).strip()
    for inner in list_of(tool.get("tools")):
        for read in _read_tool(object_of(inner), notes):
            description = (
                f"Tools of `{namespace or _DEFAULT_NAMESPACE}`: {about}\n\n{read.description}".rstrip()
                if about
                else read.description
            )
            yield replace(read, namespace=namespace, description=description)
            about = ""


def _server_kind(kind: str) -> ServerToolKind:
    if kind == "shell":
        return "code_execution"  # in a container of OpenAI's
    return next((server for start, server in _SERVER_KINDS if kind.startswith(start)), "")
