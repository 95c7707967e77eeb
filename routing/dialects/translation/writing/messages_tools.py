"""Tools in the words of Messages: their names, what they take, and which of them are to be called."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from msgspec import Struct, field

from ....values import JsonObject
from ...calls.editing import json_text
from ...fields import text_of
from ..ids import digest, fitting
from ..neutral import Choice, Feature, LeftOut, ServerToolKind, Tool, ToolName, ToolUse
from .messages_models import Traits
from .messages_schema import strict_schema, tool_schema

_NAME = re.compile(r"[a-zA-Z0-9_-]+")
_LONGEST = 128
_DATED = re.compile(r"[a-z_0-9]+_\d{8}|mcp_toolset")
"""Types of tools that the API itself knows; no other dialect's look so."""
_SERVED: dict[ServerToolKind, JsonObject] = {
    "web_search": {"type": "web_search_20250305", "name": "web_search"},
    "web_fetch": {"type": "web_fetch_20250910", "name": "web_fetch"},
    "code_execution": {"type": "code_execution_20250825", "name": "code_execution"},
}
"""The oldest version that every model takes."""
_MOST_STRICT = 20
FREE_TEXT: JsonObject = {
    "type": "object",
    "properties": {"input": {"type": "string", "description": "The whole input, as plain text."}},
    "required": ["input"],
    "additionalProperties": False,
}
"""What a tool that takes free text becomes."""


class Names(Struct):
    """The name that each tool is sent under, the same for its declaration and its calls."""

    sent: dict[tuple[str, str], str] = field(default_factory=dict)
    changed: dict[str, ToolName] = field(default_factory=dict)
    """For `Written.tools`."""
    taken: set[str] = field(default_factory=set)

    def of(self, name: str, namespace: str = "", *, custom: bool = False) -> str:
        known = self.sent.get((namespace, name))
        if known is None:
            full = f"{namespace.removesuffix('__')}__{name}" if namespace else name
            known = fitting(full, _NAME, _LONGEST)
            if known in self.taken:
                known = f"{known[: _LONGEST - 9]}_{digest(f'{namespace} {name}', 8)}"
            self.sent[namespace, name] = known
            self.taken.add(known)
        if (custom or known != name) and known not in self.changed:
            self.changed[known] = ToolName(name, namespace, custom)
        return known


def write_tools(tools: Sequence[Tool], names: Names, traits: Traits, left: LeftOut) -> list[tuple[Tool, JsonObject]]:
    """Each tool that can be declared, with its declaration."""
    served = {index: _served(tool, left) for index, tool in enumerate(tools) if tool.kind == "server"}
    # these have names that nobody chooses: whoever is called the same has to give way
    names.taken.update(text_of(wire.get("name")) for wire in served.values() if wire)
    strict = 0
    written: list[tuple[Tool, JsonObject]] = []
    seen: set[str] = set()
    for index, tool in enumerate(tools):
        if tool.kind == "server":
            wire = served[index]
            if wire and (declared := json_text(wire)) not in seen:
                seen.add(declared)
                written.append((tool, wire))
            continue
        if (tool.namespace, tool.name) in names.sent:
            continue  # declared twice: the API refuses that, the first one stands
        wire = _declared(tool, names, traits, left)
        strict += wire.get("strict") is True
        if strict > _MOST_STRICT and wire.pop("strict", None):
            left.add(Feature.STRICT, tool.name)
        written.append((tool, wire))
    return written


def _served(tool: Tool, left: LeftOut) -> JsonObject | None:
    if _DATED.fullmatch(text_of(tool.native.get("type"))):
        return dict(tool.native)
    wire = _SERVED.get(tool.server)
    if wire is None:
        left.add(Feature.SERVER_TOOLS, tool.name or tool.server)
        return None
    if settings := [name for name in tool.native if name not in ("type", "name")]:
        left.add(Feature.SERVER_TOOLS, f"settings of {tool.server}: {', '.join(settings)}")
    return dict(wire)


def _declared(tool: Tool, names: Names, traits: Traits, left: LeftOut) -> JsonObject:
    if _DATED.fullmatch(text_of(tool.native.get("type"))):
        names.of(tool.name)
        return dict(tool.native)
    custom = tool.kind == "custom"
    wire: JsonObject = {"name": names.of(tool.name, tool.namespace, custom=custom)}
    descriptions = [tool.description]
    if custom:
        wire["input_schema"] = FREE_TEXT
        if grammar := {name: value for name, value in tool.native.items() if name not in ("type", "name", "description")}:
            descriptions.append(f"Its input is described so: {json_text(grammar)}")
    else:
        wire["input_schema"], lost = tool_schema(tool.schema)
        if lost:
            left.add(Feature.SCHEMA, tool.name)
            descriptions.append(lost)
    if tool.strict and not custom:
        exact = strict_schema(tool.schema or {"type": "object", "additionalProperties": False}) if traits.format else None
        if exact is None or exact.get("type") != "object":
            left.add(Feature.STRICT, tool.name)
        else:
            wire |= {"input_schema": exact, "strict": True}
    if description := "\n\n".join(filter(str.strip, descriptions)):
        wire["description"] = description
    return wire


def tools_of_history(calls: Iterable[ToolUse], names: Names) -> list[JsonObject]:
    """Declarations for calls whose tools are no longer declared: the API wants some where there are calls."""
    sent = dict.fromkeys(names.of(call.name, call.namespace, custom=call.custom) for call in calls)
    return [{"name": name, "input_schema": {"type": "object", "properties": {}}} for name in sent]


class Chosen(Struct, frozen=True):
    tools: list[JsonObject]
    choice: JsonObject | None = None

    @property
    def forced(self) -> bool:
        return self.choice is not None and self.choice["type"] in ("any", "tool")


def write_choice(
    tools: Sequence[tuple[Tool, JsonObject]], choice: Choice | None, parallel: bool | None, traits: Traits, left: LeftOut
) -> Chosen:
    """The tools as they are declared and chosen. Where only some may be called, only those are declared."""
    every = [wire for _, wire in tools]
    if not tools:
        if choice is not None and choice.mode == "required":
            left.add(Feature.ALLOWED_TOOLS, "no tool is there to be called")
        return Chosen([])
    alone: JsonObject = {"disable_parallel_tool_use": True} if parallel is False else {}
    if choice is None or (choice.mode == "auto" and not choice.named):
        return Chosen(every, {"type": "auto", **alone} if choice or alone else None)
    if choice.mode == "none":
        return Chosen(every, {"type": "none"})
    named = [wire for tool, wire in tools if tool.name in choice.named or text_of(wire.get("name")) in choice.named]
    if choice.named and not named:
        left.add(Feature.ALLOWED_TOOLS, f"{', '.join(choice.named)}: not declared")
        return Chosen(every, {"type": "auto", **alone})
    allowed = named or every
    if choice.mode == "auto":
        return Chosen(allowed, {"type": "auto", **alone})
    if not traits.forced:
        left.add(Feature.ALLOWED_TOOLS, "this model cannot be made to call a tool")
        return Chosen(allowed, {"type": "auto", **alone})
    if len(choice.named) == 1:
        return Chosen(every, {"type": "tool", "name": named[0].get("name"), **alone})
    return Chosen(allowed, {"type": "any", **alone})
