"""A client's Messages call as it was meant.

1. The client's billing line is not for the model. A system message that was meant for one message alone goes with it.
2. A wrapped seal that belongs to a call stands in an empty thinking block before it, and goes back to that call.
3. What a tool of the provider's brought is told in plain words where it stood; its encrypted parts are left out and named.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....errors import BadCall
from ....values import Endpoint, JsonObject
from ...calls.editing import content_of, items_in
from ...fields import list_of, object_of, text_of
from ..neutral import (
    Block,
    Conversation,
    Effort,
    Feature,
    Format,
    Message,
    Reasoning,
    Text,
    ToolResult,
)
from .messages_blocks import Met, read_blocks
from .messages_tools import read_choice, read_tools

_BILLING = "x-anthropic-billing-header"

_EFFORTS: dict[str, Effort] = {"low": "low", "medium": "medium", "high": "high", "xhigh": "xhigh", "max": "max"}

_READ = frozenset(
    (
        "model",
        "messages",
        "system",
        "stream",
        "max_tokens",
        "tools",
        "tool_choice",
        "temperature",
        "top_p",
        "top_k",
        "stop_sequences",
        "thinking",
        "output_config",
        "output_format",
        "metadata",
        "betas",
    )
)
_NAMED = {
    "context_management": Feature.CONTEXT_MANAGEMENT,
    "compaction": Feature.CONTEXT_MANAGEMENT,
    "cache_control": Feature.CACHE_MARKS,
    "service_tier": Feature.SERVICE_TIER,
    "mcp_servers": Feature.SERVER_TOOLS,
}
"""Fields with a feature of their own; every other unknown one is named as it is."""


def read(body: JsonObject, endpoint: Endpoint) -> Conversation:
    met: Met = []
    items = items_in(body, "messages")
    if body.get("max_tokens") == 0 and endpoint.action == "generate":
        raise BadCall(
            "`max_tokens` is 0: this call only fills the prompt cache of Anthropic, and the provider it is routed to has none"
            " that can be filled so. Leave the call out, or route it to a provider that speaks Messages."
        )
    messages = (*_instructions(body.get("system"), met), *_messages(items, met))
    tools = read_tools(body.get("tools"), items, met)
    choice, parallel = read_choice(body.get("tool_choice"))
    _name_the_rest(body, met)
    return Conversation(
        model=text_of(body.get("model")),
        stream=body.get("stream") is True,
        messages=messages,
        tools=tools,
        choice=choice,
        parallel=parallel,
        max_tokens=_whole(body.get("max_tokens")),
        temperature=_number(body.get("temperature")),
        top_p=_number(body.get("top_p")),
        top_k=_whole(body.get("top_k")),
        stops=tuple(word for word in list_of(body.get("stop_sequences")) if isinstance(word, str)),
        reasoning=_reasoning(body, items),
        format=_format(body),
        user=text_of(object_of(body.get("metadata")).get("user_id")),
        others=tuple(dict.fromkeys(met)),
    )


# --- messages ---------------------------------------------------------------------------------------------------------


def _instructions(system: object, met: Met) -> list[Message]:
    if isinstance(system, str):
        system = [{"type": "text", "text": system}]
    blocks: list[Block] = []
    for block in read_blocks(list_of(system), {}, met):
        if isinstance(block, Text) and block.text.startswith(_BILLING):
            # older clients set it on top of the text, newer ones in a block of its own
            met.append((Feature.METADATA, "billing line"))
            if not (rest := block.text.partition("\n")[2]):
                continue
            block = Text(rest, block.cached)
        blocks.append(block)
    return [Message("system", tuple(blocks))] if blocks else []


def _messages(items: Sequence[JsonObject], met: Met) -> list[Message]:
    messages: list[Message] = []
    names: dict[str, str] = {}
    last_user = max((index for index, item in enumerate(items) if item.get("role") == "user"), default=-1)
    for index, item in enumerate(items):
        role = item.get("role")
        if role == "system" and item.get("clear_at") == "next_user_message" and index < last_user:
            continue  # no longer shown to the model
        content = content_of(item, "content")
        parts: list[object] = [{"type": "text", "text": content}] if isinstance(content, str) else content
        blocks = read_blocks(parts, names, met)
        if not blocks:
            continue
        match role:
            case "assistant":
                messages.append(Message("assistant", tuple(blocks)))
            case "user":
                blocks.sort(key=lambda block: not isinstance(block, ToolResult))
                messages.append(Message("user", tuple(blocks)))
            case "system":
                messages.append(Message("system", tuple(blocks)))
            case _:
                raise BadCall(f"`role` of message {index} is none of user, assistant, system")
    return messages


# --- what is wanted of the answer -------------------------------------------------------------------------------------


def _reasoning(body: JsonObject, items: Sequence[JsonObject]) -> Reasoning:
    thinking = object_of(body.get("thinking"))
    kind, display = thinking.get("type"), thinking.get("display")
    return Reasoning(
        # `between_tools` is thinking turned off, with short reports of progress
        on=None if not isinstance(kind, str) else kind not in ("disabled", "between_tools"),
        effort=_effort(body, items),
        budget=_whole(thinking.get("budget_tokens")) if kind == "enabled" else None,
        adaptive=kind == "adaptive",
        shown=None if not isinstance(display, str) else display != "omitted",
    )


def _effort(body: JsonObject, items: Sequence[JsonObject]) -> Effort | None:
    """The one set for this message by a system message, or else for the whole call."""
    for item in reversed(items):
        if item.get("role") == "system" and (found := _EFFORTS.get(text_of(object_of(item.get("output_config")).get("effort")))):
            return found
        if item.get("role") == "user" and _typed(item.get("content")):
            break
    return _EFFORTS.get(text_of(object_of(body.get("output_config")).get("effort")))


def _typed(content: object) -> bool:
    return isinstance(content, str) or any(object_of(part).get("type") != "tool_result" for part in list_of(content))


def _format(body: JsonObject) -> Format | None:
    wanted = object_of(object_of(body.get("output_config")).get("format")) or object_of(body.get("output_format"))
    return Format(schema=object_of(wanted.get("schema"))) if wanted.get("type") == "json_schema" else None


def _name_the_rest(body: JsonObject, met: Met) -> None:
    for name, value in body.items():
        if name not in _READ and value is not None:
            met.append((_NAMED[name], "") if name in _NAMED else (Feature.OTHER, name))
    for name in object_of(body.get("output_config")):
        if name not in ("effort", "format"):
            met.append((Feature.OTHER, name))


def _whole(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e15:
        return None
    return int(value)


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15 else None
