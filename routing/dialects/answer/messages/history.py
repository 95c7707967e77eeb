"""Anthropic Messages: what was said as content blocks, for the next call, and for a client that wants JSON."""

from __future__ import annotations

from ....values import JsonObject
from ...fields import arguments_of as object_in
from ...fields import is_blank, list_of, text_of
from ...translation.ids import digest
from ...translation.opaque import MARK
from ..events import Block, Cited
from ..said import Content, arguments_of
from .blocks import as_object, is_redacted, placeholder, sealed_block, word_of

_GROWN = {"text": "text", "thought": "thinking"}
"""Kind of block → the field that holds what its pieces add up to."""


_SERVED = {
    "search": ("web_search", "web_search_tool_result"),
    "fetch": ("web_fetch", "web_fetch_tool_result"),
    "code": ("code_execution", "code_execution_tool_result"),
    "mcp": ("", "mcp_tool_result"),
}
"""A tool of a provider's → Anthropic's own name of it, and the type of its result."""


def history(content: Content) -> tuple[JsonObject, ...]:
    """One message; a history takes no empty one, and no text of nothing but white space."""
    kept = [block for block in blocks(content) if block.get("type") != "text" or not is_blank(text_of(block.get("text")))]
    return ({"role": "assistant", "content": kept},) if kept else ()


def blocks(content: Content, *, beside: bool = False) -> list[JsonObject]:
    """`beside`: what another dialect said has its sources, and what tools of its provider's did."""
    out: list[JsonObject] = []
    seals: list[JsonObject] = []
    """They stand behind a text: a seal at the very end is left out, since `claude -p` prints the last block if that is a text."""
    for block, growing in content.blocks.items():
        text = str(growing)
        if content.leaves_out(block):
            continue
        if block.native is not None and not block.foreign:
            out.append(_native(block, text, content.extras.get(block, [])))
            continue
        if block.kind == "thought" and not text and block.seal is not None and out and out[-1]["type"] == "text":
            seals.append(sealed_block(block.seal))
            continue
        if block.kind == "media" and block.media is not None:
            shown = placeholder(block.media, alone=not (out and out[-1]["type"] == "text"))
            out.append({"type": "text", "text": shown})
        elif made := served(block) if block.kind == "trace" and beside else _made(block, text):
            told = [one for given in content.cited.get(block, ()) if (one := citation(given)) is not None] if beside else []
            out += [*seals, *made[:-1], {**made[-1], "citations": told} if told else made[-1]]
            seals = []
    return out


def _native(block: Block, text: str, extras: list[JsonObject]) -> JsonObject:
    whole = dict(block.native or {})
    grown = _GROWN.get(block.kind, "input")
    if grown == "input":
        if text or block.kind == "call":
            whole["input"] = object_in(text)
    elif text or grown in whole:
        whole[grown] = text
    for extra in extras:
        for name, value in extra.items():
            if name == "citation":
                whole["citations"] = [*list_of(whole.get("citations")), value]
            elif name != "type":
                whole[name] = value
    return whole


def _made(block: Block, text: str) -> list[JsonObject]:
    """A block of another dialect's."""
    seal = block.seal
    if block.kind == "text":
        return [{"type": "text", "text": text}] if text else []
    if block.kind == "call":
        call: JsonObject = {"type": "tool_use", "id": block.id, "name": block.name}
        given = {**call, "input": object_in(as_object(arguments_of(block, text)))}
        return [sealed_block(seal), given] if seal is not None else [given]
    if block.kind != "thought":
        return []
    if seal is not None and not is_redacted(seal):
        return [{"type": "thinking", "thinking": text, "signature": word_of(seal)}]
    told: list[JsonObject] = [{"type": "thinking", "thinking": text, "signature": ""}] if text else []
    return [*told, sealed_block(seal)] if seal is not None else told


def served(block: Block) -> list[JsonObject]:
    """A use of a tool of another provider's as Anthropic tells its own, and its result. Their ids are marked, so that nobody ever
    takes them for such. Nothing where there is no such tool."""
    trace = block.trace
    if trace is None:
        return []
    id = f"{'mcptoolu' if trace.tool == 'mcp' else 'srvtoolu'}_{MARK}{digest(f'{block.id} {trace}', 16)}"
    name, result = _SERVED[trace.tool]
    use: JsonObject = {"type": "server_tool_use", "id": id, "name": name, "input": trace.given}
    if trace.tool == "mcp":
        use |= {"type": "mcp_tool_use", "name": trace.name, "server_name": trace.server}
    content: object = {"type": f"{result}_error", "error_code": "unavailable"}
    text = {"type": "text", "text": trace.output}
    match trace.tool:
        case "mcp":
            return [use, {"type": result, "tool_use_id": id, "is_error": trace.failed, "content": [text]}]
        case "code":
            logs: JsonObject = {"type": "code_execution_result", "stdout": trace.output, "stderr": "", "content": []}
            content = {**logs, "return_code": int(trace.failed)}
        case "search" if not trace.failed:
            found = {"type": "web_search_result", "encrypted_content": MARK, "page_age": None}
            content = [{**found, "url": one.url, "title": one.title} for one in trace.found]
        case "fetch" if not trace.failed:
            source = {"type": "text", "media_type": "text/plain", "data": trace.output}
            document: JsonObject = {"type": "document", "source": source, "title": None, "citations": None}
            url = next((one.url for one in trace.found), text_of(trace.given.get("url")))
            content = {"type": "web_fetch_result", "url": url, "retrieved_at": None, "content": document}
        case _:
            pass
    return [use, {"type": result, "tool_use_id": id, "content": content}]


def citation(cited: Cited) -> JsonObject | None:
    """A source that has an address, marked as none of Anthropic's own: Anthropic would look for it in vain."""
    told = cited.citation
    if not told.url:
        return None
    found = {"type": "web_search_result_location", "url": told.url, "title": told.title or None}
    return {**found, "cited_text": told.quoted, "encrypted_index": MARK}
