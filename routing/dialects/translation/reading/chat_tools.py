"""OpenAI Chat, a client's call: the tools it declares, and its choice among them."""

from __future__ import annotations

from collections.abc import Iterator

from ....values import JsonObject
from ...fields import list_of, object_of, text_of
from ..neutral import Choice, Feature, ServerToolKind, Tool
from .chat_parts import Notes, is_cached

_SERVER_KINDS: tuple[tuple[str, ServerToolKind], ...] = (
    ("web_search", "web_search"),
    ("$web_search", "web_search"),
    ("web_fetch", "web_fetch"),
    ("code_", "code_execution"),
    ("retrieval", "file_search"),
    ("file_search", "file_search"),
    ("image_generation", "image_generation"),
    ("computer", "computer"),
)
"""By how the type begins, or the name of a function that the host runs (Moonshot)."""
_MODES = ("auto", "none", "required")


def read_tools(body: JsonObject, notes: Notes) -> tuple[Tool, ...]:
    found: dict[tuple[str, str], Tool] = {}
    for raw in [*list_of(body.get("tools")), *list_of(body.get("functions"))]:
        for tool in _read_tool(object_of(raw), notes):
            found[tool.kind, tool.name] = tool
    if isinstance(options := body.get("web_search_options"), dict):
        found["server", "web_search"] = Tool(
            "web_search", kind="server", server="web_search", native={"web_search_options": options}
        )
    return tuple(found.values())


def _read_tool(raw: JsonObject, notes: Notes) -> Iterator[Tool]:
    kind = text_of(raw.get("type"))
    if kind == "custom" and (custom := object_of(raw.get("custom")) or raw).get("name"):
        name, description = text_of(custom.get("name")), text_of(custom.get("description"))
        yield Tool(name, description, kind="custom", native=raw, cached=is_cached(raw))
    elif kind in ("", "function"):
        # the older kind, and some clients' own, has no `function` around it
        function = object_of(raw.get("function")) or raw
        if not text_of(function.get("name")):
            notes[Feature.OTHER, "a tool without a name"] = None
            return
        schema, strict = function.get("parameters"), function.get("strict")
        yield Tool(
            text_of(function.get("name")),
            text_of(function.get("description")),
            schema if isinstance(schema, dict) else None,
            strict if isinstance(strict, bool) else None,
            cached=is_cached(raw) or is_cached(function),
        )
    else:
        name = text_of(object_of(raw.get("function")).get("name")) or kind
        server: ServerToolKind = next((server for begin, server in _SERVER_KINDS if name.startswith(begin)), "")
        yield Tool(name, kind="server", server=server, native=raw)


def read_choice(body: JsonObject, notes: Notes) -> Choice | None:
    value = body.get("tool_choice", body.get("function_call"))
    if isinstance(value, dict):
        kind = text_of(value.get("type"))
        if kind == "allowed_tools":
            allowed = object_of(value.get("allowed_tools")) or value
            named = tuple(name for entry in list_of(allowed.get("tools")) if (name := _named(object_of(entry))))
            return Choice("required" if allowed.get("mode") == "required" else "auto", named)
        if name := _named(value):
            return Choice("required", (name,))
        value = kind
    match value:
        case None | "":
            return None
        case "auto" | "none" | "required":
            return Choice(value)
        case "any":  # Mistral's word
            return Choice("required")
    notes[Feature.ALLOWED_TOOLS, str(value)[:40]] = None
    return None


def _named(entry: JsonObject) -> str:
    body = object_of(entry.get("function")) or object_of(entry.get("custom")) or entry
    return text_of(body.get("name"))
