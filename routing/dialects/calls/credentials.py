"""Credentials of third parties in a call's body: they stay at the host the client called.

1. What counts is a field's name, at any depth (`routing.secret_names`), or a text that is plainly a credential.
2. The conversation, schemas and arguments of tools are nobody's configuration: nothing is looked for in them.
3. An MCP server that would be asked without its credential is left out whole: the call would fail at it.
4. What holds none stays the same object.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from ...headers import query_secrets
from ...redact import looks_secret
from ...secret_names import is_secret_field, is_secret_text
from ...values import JsonObject
from ..fields import list_of, object_of, text_of
from ..translation.neutral import Feature, LeftOut

CONVERSATION = frozenset(
    {
        *("messages", "system", "input", "instructions", "prompt", "prediction", "documents"),
        *("contents", "systemInstruction", "system_instruction"),
        *("functions", "response_format", "output_format", "output_config", "text"),
        *("generationConfig", "generation_config", "stop", "stop_sequences", "logit_bias", "model"),
    }
)
"""Top-level fields in which nothing is a credential: what is said, and schemas."""
_DECLARATIONS = frozenset({"function", "custom", "functionDeclarations", "function_declarations", "name", "description"})
_SCHEMAS = frozenset({"input_schema", "inputSchema", "output_schema", "outputSchema", "input_examples"})
_FUNCTIONS = ("", "function", "custom")
_MCP = ("mcpServers", "mcp_servers")
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_WITH_USER = re.compile(r"[^/?#@]*@")
_LONGEST = 8192
_GONE: object = object()


def without_credentials(body: JsonObject, left: LeftOut) -> JsonObject:
    """The body, or the object that holds its conversation, without them."""
    bare = _Bare(left)
    kept: JsonObject = {}
    for name, value in body.items():
        if name in CONVERSATION:
            kept[name] = value
        elif name == "tools" and isinstance(value, list):
            if tools := bare.tools(value):
                kept[name] = tools
            elif not value:
                kept[name] = value
        elif not bare.is_one(name, value, body):
            kept[name] = bare.value(value)
    if "tools" in body and "tools" not in kept:
        kept.pop("tool_choice", None)
    elif bare.servers:
        _choose_among(kept, bare.servers)
    return kept if len(kept) < len(body) or any(kept[name] is not body[name] for name in kept) else body


def tools_without_credentials(tools: list[object], left: LeftOut) -> list[object]:
    """Declarations that stand somewhere else, such as in the input of a Responses call."""
    return _Bare(left).tools(tools)


class _Bare:
    def __init__(self, left: LeftOut) -> None:
        self.left = left
        self.servers: set[str] = set()
        """Labels of MCP servers that are left out."""

    def is_one(self, name: str, value: object, beside: JsonObject) -> bool:
        """Whether the field is left out."""
        if value is None or isinstance(value, bool | int | float) or value in ("", {}, []):
            return False
        if isinstance(value, str):
            compared = name == "key" and "value" in beside  # a filter of a search
            gone = (is_secret_text(name) and not compared) or _is_credential(value)
        else:
            gone = is_secret_field(name)
        if gone:
            self.left.add(Feature.CREDENTIALS, name)
        return gone

    def value(self, value: object) -> object:
        if isinstance(value, dict):
            kept = {name: self.value(child) for name, child in value.items() if not self.is_one(name, child, value)}
            return kept if len(kept) < len(value) or any(kept[name] is not value[name] for name in kept) else value
        if isinstance(value, list):
            items = [self.value(item) for item in value if not self.is_one("", item, {})]
            return items if len(items) < len(value) or any(a is not b for a, b in zip(items, value, strict=True)) else value
        return value

    def tools(self, tools: list[object]) -> list[object]:
        kept = [tool for old in tools if (tool := self._tool(old)) is not _GONE]
        return kept if len(kept) < len(tools) or any(a is not b for a, b in zip(kept, tools, strict=True)) else tools

    def _tool(self, tool: object) -> object:
        """`_GONE` where nothing is left of it."""
        if not isinstance(tool, dict):
            return tool
        kind = text_of(tool.get("type"))
        if kind == "mcp":
            return self._server(
                tool, text_of(tool.get("server_label")) or text_of(object_of(tool.get("mcp")).get("server_label"))
            )
        kept: JsonObject = {}
        for name, value in tool.items():
            if name in _DECLARATIONS or name in _SCHEMAS or (name == "parameters" and kind in _FUNCTIONS):
                kept[name] = value
            elif name == "tools" and isinstance(value, list):
                kept[name] = self.tools(value)
            elif name in _MCP and isinstance(value, list):
                servers = [one for one in value if self._server(one, text_of(object_of(one).get("name"))) is not _GONE]
                if servers:
                    kept[name] = value if len(servers) == len(value) else servers
            elif not self.is_one(name, value, tool):
                kept[name] = self.value(value)
        if not kept and tool:
            return _GONE
        return kept if len(kept) < len(tool) or any(kept[name] is not tool[name] for name in kept) else tool

    def _server(self, server: object, label: str) -> object:
        """`_GONE` where it needs a credential."""
        if _Bare(LeftOut()).value(server) is server:
            return server
        self.servers.add(label)
        self.left.add(Feature.MCP, label)
        return _GONE


def _choose_among(body: JsonObject, gone: Collection[str]) -> None:
    """A choice names no server that is left out."""
    choice = object_of(body.get("tool_choice"))
    if text_of(choice.get("server_label")) in gone and choice.get("type") == "mcp":
        del body["tool_choice"]
    elif isinstance(choice.get("tools"), list):
        tools = [
            one
            for one in list_of(choice["tools"])
            if not (object_of(one).get("type") == "mcp" and text_of(object_of(one).get("server_label")) in gone)
        ]
        if not tools:
            del body["tool_choice"]
        elif len(tools) < len(list_of(choice["tools"])):
            body["tool_choice"] = {**choice, "tools": tools}


def _is_credential(text: str) -> bool:
    """Whatever its field is called."""
    if len(text) > _LONGEST:
        return False
    if (scheme := _ADDRESS.match(text)) is not None:
        return _WITH_USER.match(text, scheme.end()) is not None or bool(query_secrets(text))
    return looks_secret(text)
