"""The tools of a Messages call: as they stand when the last message has been read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ....values import JsonObject
from ...fields import list_of, object_of, text_of
from ..neutral import Choice, Feature, ServerToolKind, Tool
from .messages_blocks import Met

_DATED = re.compile(r"(?P<kind>[a-z_0-9]+?)_\d{8}")
"""A tool that the API itself knows: its kind and its version."""

_SERVED: dict[str, ServerToolKind] = {
    "web_search": "web_search",
    "web_fetch": "web_fetch",
    "code_execution": "code_execution",
    "computer": "computer",
    "computer_toolset": "computer",
}


def _object(required: str, **properties: JsonObject) -> JsonObject:
    return {"type": "object", "properties": properties, "required": required.split()}


_TEXT: JsonObject = {"type": "string"}
_WHOLE: JsonObject = {"type": "integer"}
_RANGE: JsonObject = {"type": "array", "items": _WHOLE, "description": "First and last line, from 1; -1 is the end."}


def _one_of(*words: str) -> JsonObject:
    return {"type": "string", "enum": list(words)}


_CLIENTS: dict[str, tuple[str, JsonObject]] = {
    "bash": (
        "Runs a command in a shell that stays open between calls. `restart` starts it anew.",
        _object("", command=_TEXT, restart={"type": "boolean"}),
    ),
    "text_editor": (
        "Views, creates and edits text files.",
        _object(
            "command path",
            command=_one_of("view", "create", "str_replace", "insert"),
            path=_TEXT,
            file_text=_TEXT,
            old_str=_TEXT,
            new_str=_TEXT,
            insert_line=_WHOLE,
            insert_text=_TEXT,
            view_range=_RANGE,
        ),
    ),
    "memory": (
        "Keeps notes in files under /memories. Look there before a task, and write down what is worth keeping.",
        _object(
            "command",
            command=_one_of("view", "create", "str_replace", "insert", "delete", "rename"),
            path=_TEXT,
            file_text=_TEXT,
            old_str=_TEXT,
            new_str=_TEXT,
            insert_line=_WHOLE,
            insert_text=_TEXT,
            view_range=_RANGE,
            old_path=_TEXT,
            new_path=_TEXT,
        ),
    ),
}
"""Tools that the API declares but the client runs: to every other model they are ordinary functions."""

_FIELDS = frozenset(("type", "name", "description", "input_schema", "strict", "cache_control", "eager_input_streaming"))


def read_tools(declared: object, messages: Sequence[JsonObject], met: Met) -> tuple[Tool, ...]:
    tools: dict[str, JsonObject] = {}
    for tool in list_of(declared):
        if name := text_of(object_of(tool).get("name")) or text_of(object_of(tool).get("type")):
            tools[name] = object_of(tool)
        else:
            met.append((Feature.OTHER, "a tool without a name"))
    for change in _changes(messages):
        tool = object_of(change.get("tool"))
        definition = object_of(tool.get("definition"))
        name = text_of(definition.get("name")) or text_of(tool.get("name"))
        if change.get("type") == "tool_removal":
            tools.pop(name, None)
        elif definition and name:
            tools[name] = definition
        elif name in (known := _by_name(declared)):
            tools[name] = known[name]
    return tuple(_tool(name, tool, met) for name, tool in tools.items())


def _changes(messages: Sequence[JsonObject]) -> Iterator[JsonObject]:
    """Tools added and taken away on the way, in order."""
    for message in messages:
        role = message.get("role")
        for part in list_of(message.get("content")) if role in ("system", "assistant") else ():
            block = object_of(part)
            if role == "system" and block.get("type") in ("tool_addition", "tool_removal"):
                yield block
            elif role == "assistant" and block.get("type") == "compaction":
                yield from (object_of(change) for change in list_of(block.get("tool_changes")))


def _by_name(declared: object) -> dict[str, JsonObject]:
    return {text_of(tool.get("name")): tool for tool in list_of(declared) if isinstance(tool, dict)}


def _tool(name: str, tool: JsonObject, met: Met) -> Tool:
    met.extend((Feature.OTHER, field) for field in ("input_examples", "defer_loading", "allowed_callers") if tool.get(field))
    cached = bool(tool.get("cache_control"))
    kind = text_of(tool.get("type"))
    if kind in ("", "custom"):
        strict = tool.get("strict")
        return Tool(
            name,
            text_of(tool.get("description")),
            object_of(tool.get("input_schema")) or None,
            strict=strict if isinstance(strict, bool) else None,
            native={field: value for field, value in tool.items() if field not in _FIELDS},
            cached=cached,
        )
    native = {field: value for field, value in tool.items() if field != "cache_control"}
    found = _DATED.fullmatch(kind)
    family = found["kind"] if found else kind
    if family in _CLIENTS:
        description, schema = _CLIENTS[family]
        return Tool(name, description, schema, native=native, cached=cached)
    return Tool(name, kind="server", server=_SERVED.get(family, ""), native=native, cached=cached)


def read_choice(raw: object) -> tuple[Choice | None, bool | None]:
    """Which tools are to be called, and whether several at once."""
    choice = object_of(raw)
    alone = choice.get("disable_parallel_tool_use")
    parallel = not alone if isinstance(alone, bool) else None
    match choice.get("type"):
        case "auto":
            return Choice("auto"), parallel
        case "any":
            return Choice("required"), parallel
        case "tool":
            return Choice("required", (text_of(choice.get("name")),)), parallel
        case "none":
            return Choice("none"), parallel
    return None, parallel
