"""OpenAI Responses: what was said as output items, for the next call, and for what an answer tells again at its end."""

from __future__ import annotations

from ....jsonbytes import dumps
from ....values import Dialect, JsonObject
from ...fields import list_of, text_of
from ...translation.neutral import Seal
from ...translation.opaque import wrap
from ..events import Block
from ..said import Content, arguments_of
from ..words import told_media
from .items import WRITTEN, as_history
from .made import message_item, text_part


def history(content: Content) -> tuple[JsonObject, ...]:
    """Native items stay as they are, each with what belongs to it: reasoning before its call."""
    items: list[JsonObject] = []
    for block, growing in content.blocks.items():
        text = str(growing)
        if block.foreign:
            items += [] if block.is_nobodys else _made(block, text)
        elif block.native is not None:
            items.append(item_of(block, text))
    stored = not any(field.name == "not stored" for field in content.fields)
    return as_history(items, stored=stored and not any(block.foreign for block in content.blocks))


def item_of(block: Block, text: str) -> JsonObject:
    """A native item as its provider ended it, or would have."""
    item = block.native or {}
    kind = text_of(item.get("type"))
    if kind == "message" and not list_of(item.get("content")):
        return {**item, "content": [text_part(text)] if text else []}
    key = WRITTEN.get(kind)
    named = {"name": block.name} if key and block.name and not item.get("name") else {}
    called = {"call_id": block.id} if key and block.id and not item.get("call_id") else {}
    return {**item, **named, **called, key: text} if key and text and not item.get(key) else {**item, **named, **called}


def seal_fields(seal: Seal | None) -> JsonObject:
    if seal is None:
        return {}
    if seal.dialect is not Dialect.RESPONSES:
        return {"encrypted_content": wrap(seal)}
    return {name: value for name in ("content", "encrypted_content") if (value := seal.payload.get(name))}


def served(block: Block) -> JsonObject | None:
    """A use of a tool of another provider's as OpenAI tells its own. None where there is no such tool."""
    trace = block.trace
    if trace is None:
        return None
    status = "failed" if trace.failed else "completed"
    match trace.tool:
        case "search":
            sources = [{"type": "url", "url": one.url} for one in trace.found]
            action: JsonObject = {"type": "search", "query": text_of(trace.given.get("query")), "sources": sources}
            return {"type": "web_search_call", "status": status, "action": action}
        case "fetch":
            return {"type": "web_search_call", "status": status, "action": {"type": "open_page", "url": trace.given.get("url")}}
        case "code":
            code = text_of(trace.given.get("code")) or text_of(trace.given.get("command"))
            ran: JsonObject = {"code": code, "container_id": "", "outputs": [{"type": "logs", "logs": trace.output}]}
            return {"type": "code_interpreter_call", "status": status, **ran}
        case "mcp":
            called: JsonObject = {"server_label": trace.server, "name": trace.name, "arguments": dumps(trace.given).decode()}
            said: JsonObject = {"type": "mcp_tool_execution_error", "content": [{"type": "text", "text": trace.output}]}
            brought = {"output": None, "error": said} if trace.failed else {"output": trace.output, "error": None}
            return {"type": "mcp_call", "status": status, "approval_request_id": None, **called, **brought}


def _made(block: Block, text: str) -> list[JsonObject]:
    """What another dialect said."""
    if block.kind == "call":
        sealed: list[JsonObject] = [] if block.seal is None else [{"type": "reasoning", "summary": [], **seal_fields(block.seal)}]
        if block.as_custom and block.custom:
            return [*sealed, {"type": "custom_tool_call", "call_id": block.id, "name": block.name, "input": text}]
        written = arguments_of(block, text) or "{}"
        return [*sealed, {"type": "function_call", "call_id": block.id, "name": block.name, "arguments": written}]
    if block.kind == "thought":
        summary = [{"type": "summary_text", "text": text}] if text else []
        return [{"type": "reasoning", "summary": summary, **seal_fields(block.seal)}] if summary or block.seal else []
    if block.kind == "media" and block.media is not None:
        text = told_media(block.media)
    return [message_item("", [text_part(text)], "completed")] if text and block.kind in ("text", "media") else []
