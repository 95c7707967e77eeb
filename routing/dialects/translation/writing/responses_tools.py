"""Tools in the words of OpenAI Responses: their names, what they take, and which of them are to be called.

1. `strict` is always said: without it the API would take every schema for a strict one that can be.
2. A tool in a namespace is sent as `namespace__name`: few providers know namespaces.
3. A tool that takes free text stays one; a grammar goes along where the client wrote it in this dialect.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct, field

from ....values import JsonObject
from ...fields import object_of, text_of
from ..ids import digest, fitting
from ..neutral import Choice, Feature, LeftOut, ServerToolKind, Tool, ToolName

NAME = re.compile(r"[a-zA-Z0-9_-]+")
LONGEST = 64
_SERVED: dict[ServerToolKind, JsonObject] = {
    "web_search": {"type": "web_search"},
    "code_execution": {"type": "code_interpreter", "container": {"type": "auto"}},
    "image_generation": {"type": "image_generation"},
}
"""What can be declared without more than its kind: a search in files wants their store, a computer its screen."""
_OWN_TYPES = re.compile(
    r"(web_search|web_search_preview)(_20\d\d_\d\d_\d\d)?|file_search|code_interpreter|image_generation|mcp|shell|local_shell"
    r"|apply_patch|computer|computer_use_preview|tool_search|programmatic_tool_calling"
)
"""Types of tools that the API itself knows; no other dialect's look so."""
_CHOSEN_ALONE = ("function", "custom", "mcp", "file_search", "code_interpreter", "image_generation", "computer_use_preview")
"""Types that `tool_choice` takes by themselves; every other one stands in a list."""
_NOT_AT_TOP = ("anyOf", "oneOf", "allOf", "enum", "not")
"""The API refuses these at the top of a function's schema."""


class Names(Struct):
    """The name that each tool is sent under, the same for its declaration and its calls."""

    sent: dict[tuple[str, str], str] = field(default_factory=dict)
    changed: dict[str, ToolName] = field(default_factory=dict)
    """For `Written.tools`."""
    taken: set[str] = field(default_factory=set)

    def of(self, name: str, namespace: str = "", *, custom: bool = False) -> str:
        known = self.sent.get((namespace, name))
        if known is None:
            known = fitting(f"{namespace.removesuffix('__')}__{name}" if namespace else name, NAME, LONGEST)
            if known in self.taken:
                known = f"{known[: LONGEST - 9]}_{digest(f'{namespace} {name}', 8)}"
            self.sent[namespace, name] = known
            self.taken.add(known)
        if (custom or known != name) and known not in self.changed:
            self.changed[known] = ToolName(name, namespace, custom)
        return known


def write_tools(tools: Sequence[Tool], names: Names, left: LeftOut) -> list[tuple[Tool, JsonObject]]:
    """Each tool that can be declared, with its declaration."""
    written: list[tuple[Tool, JsonObject]] = []
    for tool in tools:
        if tool.kind == "server" or _is_own(tool):
            served = _served(tool, left)
            if served is not None and all(served != wire for _, wire in written):
                written.append((tool, served))
        elif (tool.namespace, tool.name) not in names.sent:  # declared twice, the first one stands
            written.append((tool, _declared(tool, names, left)))
    return written


def _is_own(tool: Tool) -> bool:
    return bool(_OWN_TYPES.fullmatch(text_of(tool.native.get("type"))))


def _served(tool: Tool, left: LeftOut) -> JsonObject | None:
    if _is_own(tool):
        return dict(tool.native)
    wire = _SERVED.get(tool.server)
    if wire is None:
        left.add(Feature.SERVER_TOOLS, tool.name or tool.server)
        return None
    if settings := [name for name in tool.native if name not in ("type", "name", tool.name)]:
        left.add(Feature.SERVER_TOOLS, f"settings of {tool.server}: {', '.join(settings)}")
    return dict(wire)


def _declared(tool: Tool, names: Names, left: LeftOut) -> JsonObject:
    custom = tool.kind == "custom"
    wire: JsonObject = {"type": tool.kind, "name": names.of(tool.name, tool.namespace, custom=custom)}
    if tool.description.strip():
        wire["description"] = tool.description
    if custom:
        wire["format"] = _free_text(tool, left)
    else:
        wire |= {"parameters": _parameters(tool, left), "strict": tool.strict is True}
    return wire


def _free_text(tool: Tool, left: LeftOut) -> JsonObject:
    form = tool.form
    if form.get("type") == "text" or (form.get("type") == "grammar" and "definition" in form):
        return form
    if tool.grammar:
        return {"type": "grammar", **tool.grammar}
    if any(name not in ("type", "name", "description") for name in object_of(tool.native.get("custom")) or tool.native):
        left.add(Feature.OTHER, f"form of the input of {tool.name}")
    return {"type": "text"}


def _parameters(tool: Tool, left: LeftOut) -> JsonObject:
    """An object whose properties are listed, whatever the client wrote: the API insists."""
    schema = {name: value for name, value in (tool.schema or {}).items() if name not in _NOT_AT_TOP}
    if len(schema) != len(tool.schema or {}) or schema.get("type", "object") != "object":
        left.add(Feature.SCHEMA, tool.name)
    return {**schema, "type": "object", "properties": object_of(schema.get("properties"))}


def write_choice(
    tools: Sequence[tuple[Tool, JsonObject]], choice: Choice | None, parallel: bool | None, left: LeftOut
) -> JsonObject:
    """The fields that say how tools are chosen; none where there are no tools."""
    if not tools:
        if choice is not None and choice.mode == "required":
            left.add(Feature.ALLOWED_TOOLS, "no tool is there to be called")
        return {}
    fields: JsonObject = {"tools": [wire for _, wire in tools]}
    if choice is not None:
        fields["tool_choice"] = _chosen(tools, choice, left)
    if parallel is not None:
        fields["parallel_tool_calls"] = parallel
    return fields


def _chosen(tools: Sequence[tuple[Tool, JsonObject]], choice: Choice, left: LeftOut) -> object:
    if choice.mode == "none" or not choice.named:
        return choice.mode
    known = {tool.name for tool, _ in tools}
    if unknown := [name for name in choice.named if name not in known]:
        left.add(Feature.ALLOWED_TOOLS, f"{', '.join(unknown)}: not declared")
    entries = [_entry(wire) for tool, wire in tools if tool.name in choice.named]
    if not entries:
        return "auto"
    if choice.mode == "required" and len(entries) == 1 and entries[0]["type"] in _CHOSEN_ALONE:
        return entries[0]
    return {"type": "allowed_tools", "mode": choice.mode, "tools": entries}


def _entry(wire: JsonObject) -> JsonObject:
    return {name: wire[name] for name in ("type", "name", "server_label") if name in wire}
