"""Tools for Google: their names, their declarations, and the choice among them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ....errors import BadCall
from ....values import JsonObject
from ...fields import object_of
from .. import ids
from ..neutral import Choice, Conversation, Feature, LeftOut, ServerToolKind, Tool, ToolName
from .gemini_schema import clean

_FITS = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]*|[a-zA-Z0-9_.:-]")
"""A name, or one letter out of the middle of one."""
_MOST_LETTERS = 64
_SERVER: dict[ServerToolKind, str] = {"web_search": "googleSearch", "web_fetch": "urlContext", "code_execution": "codeExecution"}
_OWN = frozenset(
    (
        *("googleSearch", "googleSearchRetrieval", "enterpriseWebSearch", "urlContext", "codeExecution", "fileSearch"),
        *("googleMaps", "computerUse", "retrieval", "mcpServers", "parallelAiSearch", "exaAiSearch"),
    )
)
"""Google's own tools, as this dialect declares them."""
_UNSAID = frozenset(("type", "name", "cache_control", "description"))
_CUSTOM_INPUT = "The whole input of the tool, as plain text."


class Names:
    """The names of tools as Google takes them, and the way back."""

    def __init__(self) -> None:
        self._sent: dict[tuple[str, str], str] = {}
        self._known: dict[str, ToolName] = {}

    def sent(self, name: str, namespace: str = "", *, custom: bool = False) -> str:
        key = (namespace, name)
        if key not in self._sent:
            whole = f"{namespace}{'' if namespace.endswith('_') else '__'}{name}" if namespace else name
            sent = _fitting(whole)
            while sent in self._known:  # two names may come to the same
                whole += "_"
                sent = f"{sent[: _MOST_LETTERS - 9]}_{ids.digest(whole, 8)}"
            self._sent[key] = sent
            self._known[sent] = ToolName(name, namespace, custom)
        return self._sent[key]

    @property
    def changed(self) -> Mapping[str, ToolName]:
        return {sent: known for sent, known in self._known.items() if known != ToolName(sent)}


def _fitting(name: str) -> str:
    starts = name[:1].isascii() and (name[:1].isalpha() or name[:1] == "_")
    return ids.fitting(name if starts else f"_{name}", _FITS, _MOST_LETTERS)


def write_tools(conversation: Conversation, names: Names, left_out: LeftOut) -> list[JsonObject]:
    """One tool that declares all functions; else Google's own tools: most models do not take both in one call."""
    tools = conversation.tools
    if any(tool.cached for tool in tools):
        left_out.add(Feature.CACHE_MARKS)
    declared = [_declaration(tool, names, left_out) for tool in tools if tool.kind != "server"]
    served: list[JsonObject] = []
    for tool in tools:
        if tool.kind != "server":
            continue
        if declared:
            left_out.add(Feature.SERVER_TOOLS, f"{tool.name or tool.server} beside functions")
        elif (written := _served(tool, left_out)) not in (None, *served):
            served.append(object_of(written))
    return [{"functionDeclarations": declared}] if declared else served


def _declaration(tool: Tool, names: Names, left_out: LeftOut) -> JsonObject:
    if tool.strict:
        left_out.add(Feature.STRICT)
    custom = tool.kind == "custom"
    name = names.sent(tool.name, tool.namespace, custom=custom)
    schema = clean(_custom_schema(tool) if custom else tool.schema, left_out, tool.name)
    return {
        "name": name,
        **({"description": tool.description} if tool.description else {}),
        **({"parameters": schema} if schema else {}),
    }


def _custom_schema(tool: Tool) -> JsonObject:
    """Free text as the one field of an object; a grammar that it must obey is told in words."""
    grammar = tool.grammar
    rule = f" It must match this {grammar['syntax']} grammar:\n{grammar['definition']}" if grammar else ""
    return {
        "type": "object",
        "properties": {"input": {"type": "string", "description": _CUSTOM_INPUT + rule}},
        "required": ["input"],
    }


def _served(tool: Tool, left_out: LeftOut) -> JsonObject | None:
    if tool.native.keys() & _OWN:
        return tool.native
    if (key := _SERVER.get(tool.server)) is None:
        left_out.add(Feature.SERVER_TOOLS, tool.name or tool.server)
        return None
    for option, value in tool.native.items():
        if option not in _UNSAID and value not in (None, [], {}):
            left_out.add(Feature.SERVER_TOOLS, f"{option} of {tool.name}")
    return {key: {}}


def write_choice(conversation: Conversation, names: Names, left_out: LeftOut) -> JsonObject:
    """`functionCallingConfig`; empty where nothing was chosen, or no function is there to choose."""
    choice, tools = conversation.choice, conversation.tools
    functions = [tool for tool in tools if tool.kind != "server"]
    if choice is None or (choice.mode == "auto" and not choice.named):
        return {}
    _refuse_unknown(choice, tools)
    if choice.mode == "none":
        return {"mode": "NONE"} if functions else {}
    allowed = [names.sent(tool.name, tool.namespace) for tool in functions if tool.name in choice.named]
    if (choice.named and not allowed) or not functions:
        left_out.add(Feature.ALLOWED_TOOLS, ", ".join(choice.named))
        return {}
    mode = "ANY" if choice.mode == "required" else "VALIDATED"
    return {"mode": mode, **({"allowedFunctionNames": allowed} if allowed else {})}


def _refuse_unknown(choice: Choice, tools: tuple[Tool, ...]) -> None:
    known = {tool.name for tool in tools} | {tool.server for tool in tools}
    for name in choice.named:
        if name not in known:
            raise BadCall(f"The call demands the tool `{name}`, but declares none of that name: declare it, or demand no tool")
    if choice.mode == "required" and not tools:
        raise BadCall("The call demands that a tool is called, but declares none: declare one, or demand no tool")
