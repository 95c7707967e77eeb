"""OpenAI Chat, a provider's call: tools under names that the dialect takes, and the choice among them.

1. A namespace is joined with the name; what does not fit is changed, always to the same. `Tools.renamed` tells the way back.
2. A custom tool (free text) is one only for OpenAI's newer models; elsewhere it is a function with one string, `input`, and its
   grammar stands in the description.
3. A choice among some tools is said as such to OpenAI; elsewhere only those tools are declared, which says the same.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct, field

from ....values import JsonObject
from ...fields import object_of
from .. import ids
from ..neutral import Choice, Feature, LeftOut, Tool, ToolName
from .chat_hosts import Host

_NAME = re.compile(r"[a-zA-Z0-9_-]+")
_LONGEST_NAME = 64
_ALTERNATIVES = ("oneOf", "anyOf", "allOf", "not", "enum")
_INPUT: JsonObject = {
    "type": "object",
    "properties": {"input": {"type": "string", "description": "The whole input of the tool, as plain text."}},
    "required": ["input"],
    "additionalProperties": False,
}


class Tools(Struct, frozen=True):
    """The call's tools as they are sent."""

    host: Host
    sent: dict[tuple[str, str], str] = field(default_factory=dict)
    """(namespace, name) → the name that is sent."""
    declared: tuple[Tool, ...] = ()
    renamed: dict[str, ToolName] = field(default_factory=dict)

    def name(self, namespace: str, name: str) -> str:
        """Also for a call of the history whose tool is no longer declared."""
        return self.sent.get((namespace, name)) or _fitting(namespace, name)


def fit_tools(tools: Sequence[Tool], host: Host, left: LeftOut) -> Tools:
    found = Tools(host, declared=tuple(tool for tool in tools if tool.kind != "server"))
    taken: set[str] = set()
    for tool in found.declared:
        name = _fitting(tool.namespace, tool.name)
        if name in taken:
            name = f"{name[:55]}_{ids.digest(f'{tool.namespace} {tool.name}', 8)}"
        taken.add(name)
        found.sent[tool.namespace, tool.name] = name
        if name != tool.name or tool.namespace or tool.kind == "custom":
            found.renamed[name] = ToolName(tool.name, tool.namespace, custom=tool.kind == "custom")
    for tool in tools:
        if tool.kind == "server":
            left.add(Feature.SERVER_TOOLS, tool.name)
    return found


def fitting_name(name: str) -> str:
    return ids.fitting(name, _NAME, _LONGEST_NAME)


def write_tools(tools: Tools, choice: Choice | None, parallel: bool | None, left: LeftOut) -> JsonObject:
    """`tools`, `tool_choice` and `parallel_tool_calls`; nothing of them where there is no tool, for that is refused."""
    shown = list(tools.declared)
    chosen = _chosen(tools, choice, left)
    written: object = choice.mode if choice else None
    if chosen and choice:
        if choice.mode == "required" and len(chosen) == 1:
            written = _named(chosen[0], tools)
        elif tools.host.allowed_tools:
            entries = [_named(tool, tools) for tool in chosen]
            written = {"type": "allowed_tools", "allowed_tools": {"mode": choice.mode, "tools": entries}}
        else:
            shown = chosen
    elif choice and choice.named and written == "required":
        written = "auto"
    if not shown:
        return {}
    body: JsonObject = {"tools": [_declaration(tool, tools, left) for tool in shown]}
    if written is not None:
        body["tool_choice"] = written
    if parallel is not None and tools.host.parallel_flag:
        body["parallel_tool_calls"] = parallel
    elif parallel is False:
        left.add(Feature.PARALLEL)
    return body


def _chosen(tools: Tools, choice: Choice | None, left: LeftOut) -> list[Tool]:
    if choice is None or choice.mode == "none":
        return []
    known = {tool.name for tool in tools.declared}
    for name in choice.named:
        if name not in known:
            left.add(Feature.ALLOWED_TOOLS, name)
    return [tool for tool in tools.declared if tool.name in choice.named]


def _named(tool: Tool, tools: Tools) -> JsonObject:
    kind = "custom" if tool.kind == "custom" and tools.host.custom_tools else "function"
    return {"type": kind, kind: {"name": tools.name(tool.namespace, tool.name)}}


def _declaration(tool: Tool, tools: Tools, left: LeftOut) -> JsonObject:
    name = tools.name(tool.namespace, tool.name)
    if tool.kind == "custom":
        return _custom(tool, name, tools.host, left)
    function: JsonObject = {"name": name}
    if tool.description:
        function["description"] = tool.description
    function["parameters"] = _schema(tool, tools.host, left)
    if tool.strict is not None:
        function["strict"] = tool.strict
    return {"type": "function", "function": function}


def _custom(tool: Tool, name: str, host: Host, left: LeftOut) -> JsonObject:
    grammar = tool.grammar
    if host.custom_tools:
        custom: JsonObject = {"name": name}
        if tool.description:
            custom["description"] = tool.description
        if grammar:
            custom["format"] = {"type": "grammar", "grammar": grammar}
        return {"type": "custom", "custom": custom}
    description = tool.description
    if grammar:
        left.add(Feature.STRICT, f"the grammar of {tool.name} is told, not enforced")
        told = f"The input must match this {grammar['syntax']} grammar:\n{grammar['definition']}"
        description = f"{description}\n\n{told}" if description else told
    function: JsonObject = {"name": name, "description": description} if description else {"name": name}
    return {"type": "function", "function": {**function, "parameters": _INPUT}}


def _schema(tool: Tool, host: Host, left: LeftOut) -> JsonObject:
    """Some hosts refuse a tool without parameters, OpenAI a schema that is not plainly an object's."""
    schema = dict(tool.schema or {})
    if schema.get("type") != "object" or "properties" not in schema:
        schema = {**schema, "type": "object", "properties": object_of(schema.get("properties"))}
    if host.flat_schemas and (found := [word for word in _ALTERNATIVES if word in schema]):
        left.add(Feature.SCHEMA, f"{', '.join(found)} at the top of {tool.name}")
        schema = {word: value for word, value in schema.items() if word not in found}
    return schema


def _fitting(namespace: str, name: str) -> str:
    joined = f"{namespace}{'' if namespace.endswith('__') else '__'}{name}" if namespace else name
    return fitting_name(joined)
