"""Tools that Anthropic ran, in the history of a Messages call: what they were asked and what they brought, as text.

The model has read it and may have answered from it; another one that goes on with the conversation must know it too.
Nothing here looks like a call: a model that reads calls as text begins to write them as text.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, field

from ....values import JsonObject
from ...calls.editing import json_text
from ...fields import list_of, object_of, text_of
from ..neutral import Text

_CALLS = frozenset(("server_tool_use", "mcp_tool_use"))
SERVED = _CALLS | frozenset(
    (
        "web_search_tool_result",
        "web_fetch_tool_result",
        "code_execution_tool_result",
        "bash_code_execution_tool_result",
        "text_editor_code_execution_tool_result",
        "tool_search_tool_result",
        "mcp_tool_result",
        "advisor_tool_result",
    )
)
_LONGEST = 20_000
"""Of one result: more is cut, and said to be."""


class Served(Struct, frozen=True):
    """The calls of one message to tools that Anthropic ran, and those that were answered."""

    calls: dict[str, JsonObject] = field(default_factory=dict)
    answered: set[str] = field(default_factory=set)


def served_in(content: Sequence[object]) -> Served:
    served = Served()
    for part in map(object_of, content):
        kind = text_of(part.get("type"))
        if kind in _CALLS:
            served.calls[text_of(part.get("id"))] = part
        elif kind in SERVED:
            served.answered.add(text_of(part.get("tool_use_id")))
    return served


def read_served(part: JsonObject, served: Served) -> list[Text]:
    """Text for a result, together with what was asked; a call alone is told only where its result is missing."""
    if part.get("type") in _CALLS:
        return [] if text_of(part.get("id")) in served.answered else [Text(f"{_asked(part)} No result is known.")]
    call = served.calls.get(text_of(part.get("tool_use_id")))
    head = _asked(call) if call else "A tool was used."
    found = "\n".join(_lines(part.get("content"))).strip() or "nothing"
    if len(found) > _LONGEST:
        found = f"{found[:_LONGEST]}\n(cut: {len(found) - _LONGEST} more characters)"
    return [Text(f"{head} It brought:\n{found}")]


def _asked(call: JsonObject) -> str:
    name, given = text_of(call.get("name")) or "A tool", object_of(call.get("input"))
    words = [text_of(value) for value in given.values()]
    what = words[0] if len(words) == 1 and words[0] else json_text(given) if given else ""
    server = text_of(call.get("server_name"))
    return f"{name}{f' of {server}' if server else ''} was used{f' for {what}' if what else ''}."


def _lines(content: object) -> list[str]:
    """The readable fields of a result of any shape, in order; its encrypted ones are for Anthropic alone."""
    if isinstance(content, str):
        return [content]
    if isinstance(content, list):
        return [line for piece in content for line in _lines(piece)]
    result = object_of(content)
    lines: list[str] = []
    if title := text_of(result.get("title")):
        lines.append(f"- {title} ({text_of(result.get('url'))})" if result.get("url") else f"- {title}")
    elif result.get("url"):
        lines.append(text_of(result.get("url")))
    lines += [text_of(result.get(name)) for name in ("text", "stdout", "stderr") if text_of(result.get(name))]
    if code := text_of(result.get("error_code")):
        lines.append(f"an error: {code}")
    if name := text_of(result.get("tool_name")):
        lines.append(f"- {name}")
    source = object_of(result.get("source"))
    if source.get("type") == "text":
        lines.append(text_of(source.get("data")))
    elif source:
        lines.append(f"(a document, {text_of(source.get('media_type')) or 'of another kind'})")
    for inner in (result.get("content"), *list_of(result.get("tool_references")), *list_of(result.get("lines"))):
        lines += _lines(inner) if inner else []
    return lines
