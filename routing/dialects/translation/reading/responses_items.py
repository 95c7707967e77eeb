"""OpenAI Responses, a client's call: the items of its input become messages.

1. What the model said in a row (reasoning, messages, calls of every kind) is one message; so are the answers to its calls with
   the message that follows them. Other messages stand alone.
2. The payload of a seal is what the item held (`summary`, `id`, `content`, `encrypted_content`); that of a compacted history
   has its `type` too. Several summaries are one text.
3. A history that is not here cannot be translated: an item that only points at another is refused, but for reasoning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal

from msgspec import Struct, field

from ....errors import BadCall
from ....values import Dialect, JsonObject
from ...calls.editing import result_of
from ...fields import list_of, object_of, text_of
from .. import opaque
from ..neutral import Block, Feature, Media, Message, Seal, Text, Thought, ToolResult, ToolUse
from .responses_parts import json_text, parts_of, picture, screenshot, shell_output
from .responses_tools import BUILT_IN, Notes, namespace_of

_ROLES: dict[str, Literal["system", "user", "assistant"]] = {
    "user": "user",
    "assistant": "assistant",
    "system": "system",
    "developer": "system",
}
_METADATA = "internal_chat_message_metadata_passthrough"
_SEALED = ("id", "summary", "content", "encrypted_content")
_NOT_THE_MODELS: tuple[tuple[str, object], ...] = (
    ("type", "exec"),
    ("env", {}),
    ("timeout_ms", None),
    ("user", None),
    ("working_directory", None),
)
"""Fields of an action that stand there whatever the model wrote."""
_COMPACTED = ("compaction", "compaction_summary", "context_compaction")


class History(Struct):
    """What is known after some items; each item adds to it."""

    notes: Notes
    messages: list[tuple[Literal["system", "user", "assistant"], list[Block]]] = field(default_factory=list)
    tools: list[object] = field(default_factory=list)
    """Declarations that stand in the input."""
    settings: JsonObject = field(default_factory=dict)
    """`reasoning` and `text` as items of the input changed them."""
    calls: dict[str, ToolUse] = field(default_factory=dict)
    waiting: dict[str, None] = field(default_factory=dict)
    """Ids of calls without an answer so far, in order."""
    call_seal: Seal | None = None
    """Stands before the call that it belongs to."""

    def said(self, role: Literal["system", "user", "assistant"], blocks: Iterable[Block]) -> None:
        new = list(blocks)
        if not new:
            return
        if role != "assistant":
            self.call_seal = None
        last = self.messages[-1] if self.messages else None
        if last is not None and last[0] == role and (role == "assistant" or isinstance(last[1][-1], ToolResult)):
            last[1].extend(new)
        else:
            self.messages.append((role, new))


def read_items(items: Iterable[JsonObject], notes: Notes) -> History:
    history = History(notes)
    for place, item in enumerate(items):
        if _METADATA in item:
            notes[Feature.METADATA, _METADATA] = None
        kind = text_of(item.get("type")) or ("message" if "role" in item else "item_reference" if "id" in item else "of no type")
        read = _ITEMS.get(kind)
        if read is not None:
            read(history, item, place)
        elif kind.endswith("_call"):
            notes[Feature.SERVER_RESULTS, kind] = None
        else:
            _unknown(history, item, kind)
    return history


def messages_of(history: History) -> tuple[Message, ...]:
    return tuple(Message(role, tuple(blocks)) for role, blocks in history.messages)


# --- messages ---------------------------------------------------------------------------------------------------------


def _message(history: History, item: JsonObject, place: int) -> None:
    named = text_of(item.get("role"))
    role = _ROLES.get(named)
    if role is None:
        history.notes[Feature.OTHER, f"role {named}"] = None
    if item.get("phase"):
        history.notes[Feature.OTHER, "phase of messages"] = None
    content = item.get("content")
    if not isinstance(content, str | list | None):
        raise BadCall(f"`input[{place}].content` is neither text nor a list")
    history.said(role or "user", parts_of(content, history.notes))


def _agent_message(history: History, item: JsonObject, place: int) -> None:
    """What one of a client's agents wrote to another: who wrote it is said in front."""
    said = parts_of(item.get("content"), history.notes)
    author, recipient = text_of(item.get("author")), text_of(item.get("recipient"))
    head = f"Message from {author} to {recipient}:" if author and recipient else ""
    history.said("user", [Text(head), *said] if said and head else said)


def _unknown(history: History, item: JsonObject, kind: str) -> None:
    """An item of a kind that is not known: named, and what can be read of it is kept as said by the user."""
    history.notes[Feature.OTHER, f"item {kind}"] = None
    content = item.get("content")
    if isinstance(content, str | list):
        history.said(_ROLES.get(text_of(item.get("role")), "user"), parts_of(content, history.notes))


# --- reasoning --------------------------------------------------------------------------------------------------------


def _reasoning(history: History, item: JsonObject, place: int) -> None:
    summary, raw = (
        "\n\n".join(text for part in list_of(item.get(name)) if (text := text_of(object_of(part).get("text"))))
        for name in ("summary", "content")
    )
    word = text_of(item.get("encrypted_content"))
    seal = _seal(item, word) if word else None
    text = (summary or raw) if seal else (raw or summary)
    if seal is not None and seal.payload.get("for") == "call":
        history.said("assistant", [Thought(text)] if text else [])
        history.call_seal = seal
    elif seal is not None or text:
        history.said("assistant", [Thought(text, seal)])


def _seal(item: JsonObject, word: str) -> Seal:
    if (foreign := opaque.unwrap(word)) is not None:
        return foreign
    payload = {name: item[name] for name in _SEALED if item.get(name)}
    return Seal(Dialect.RESPONSES, "", {"summary": [], **payload})


def _compacted(history: History, item: JsonObject, place: int) -> None:
    """An earlier history that only its maker can read: it travels as a thought without text."""
    history.notes[Feature.OTHER, "compacted history, which only its maker can read"] = None
    if word := text_of(item.get("encrypted_content")):
        payload: JsonObject = {"type": text_of(item.get("type")), "encrypted_content": word}
        if id := text_of(item.get("id")):
            payload["id"] = id
        history.said("assistant", [Thought("", Seal(Dialect.RESPONSES, "", payload))])


# --- calls and their answers ------------------------------------------------------------------------------------------


def _call(history: History, item: JsonObject, place: int, name: str, arguments: str, *, custom: bool = False) -> None:
    id = text_of(item.get("call_id")) or text_of(item.get("id")) or f"call_{place}"
    use = ToolUse(id, name, arguments, custom, namespace_of(item.get("namespace")), history.call_seal)
    history.call_seal = None
    history.calls[id] = use
    history.waiting[id] = None
    history.said("assistant", [use])


def _function_call(history: History, item: JsonObject, place: int) -> None:
    given = item.get("arguments")
    arguments = given if isinstance(given, str) else json_text(given) if isinstance(given, dict) else ""
    _call(history, item, place, text_of(item.get("name")), arguments or "{}")


def _custom_call(history: History, item: JsonObject, place: int) -> None:
    _call(history, item, place, text_of(item.get("name")), text_of(item.get("input")), custom=True)


def _own_call(name: str, key: str) -> Callable[[History, JsonObject, int], None]:
    """A call of one of OpenAI's own tools: its arguments are an object, of which the model did not write every field."""

    def read(history: History, item: JsonObject, place: int) -> None:
        given = object_of(item.get(key)).items()
        written = {word: value for word, value in given if (word, value) not in _NOT_THE_MODELS}
        _call(history, item, place, name, json_text(written))

    return read


def _answered(history: History, item: JsonObject, blocks: Iterable[Text | Media], *, error: bool = False) -> None:
    id, name = text_of(item.get("call_id")), text_of(item.get("name"))
    if not id:
        # OpenAI's own shells repeat the id of the call; else it is the oldest call that still waits
        by_name = (waiting for waiting in history.waiting if name in ("", history.calls[waiting].name))
        id = own if (own := text_of(item.get("id"))) in history.calls else next(by_name, own)
    use = history.calls.get(id)
    history.waiting.pop(id, None)
    custom = use.custom if use is not None else item.get("type") == "custom_tool_call_output"
    history.said("user", [ToolResult(id, tuple(blocks), error, custom, use.name if use is not None else name)])


def _output(history: History, item: JsonObject, place: int) -> None:
    _answered(history, item, parts_of(result_of(item.get("output")), history.notes))


def _shell_output(history: History, item: JsonObject, place: int) -> None:
    _answered(history, item, shell_output(item.get("output"), history.notes))


def _patch_output(history: History, item: JsonObject, place: int) -> None:
    failed = item.get("status") == "failed"
    said = parts_of(item.get("output"), history.notes) or (Text("The patch failed." if failed else "Done."),)
    _answered(history, item, said, error=failed)


def _computer_output(history: History, item: JsonObject, place: int) -> None:
    _answered(history, item, screenshot(item.get("output"), history.notes))


def _search_output(history: History, item: JsonObject, place: int) -> None:
    """Tools that a search has found are declared by it."""
    found = list_of(item.get("tools"))
    history.tools += found
    names = [text_of(object_of(tool).get("name")) for tool in found]
    _answered(history, item, [Text(f"Found tools: {', '.join(filter(None, names)) or 'none'}")])


# --- what is neither said nor called ----------------------------------------------------------------------------------


def _carried_tools(history: History, item: JsonObject, place: int) -> None:
    history.tools += list_of(item.get("tools"))


def _settings(history: History, item: JsonObject, place: int) -> None:
    for name in ("reasoning", "text"):
        if changed := object_of(item.get(name)):
            history.settings[name] = {**object_of(history.settings.get(name)), **changed}


def _image(history: History, item: JsonObject, place: int) -> None:
    shown = picture(item.get("result"), item.get("output_format"))
    if shown is None:
        history.notes[Feature.SERVER_RESULTS, "image_generation_call"] = None
    else:
        history.said("assistant", [shown])


def _reference(history: History, item: JsonObject, place: int) -> None:
    id = text_of(item.get("id"))
    if not id.startswith("rs_"):
        raise BadCall(
            f"`input[{place}]` points at the item {id!r}, which is kept at another provider: this call goes to one that cannot "
            "read it. Send whole items (`store: false`), or stay with the provider that keeps them."
        )
    history.notes[Feature.THOUGHTS, "kept at another provider"] = None


def _trigger(history: History, item: JsonObject, place: int) -> None:
    raise BadCall(
        f"`input[{place}]` (compaction_trigger) asks the provider to compact the conversation into a sealed item, which only an "
        "OpenAI Responses provider can do. Route this call to one, switch to a model of it, or start a new conversation."
    )


def _server_result(history: History, item: JsonObject, place: int) -> None:
    history.notes[Feature.SERVER_RESULTS, text_of(item.get("type"))] = None


_ITEMS: dict[str, Callable[[History, JsonObject, int], None]] = {
    "message": _message,
    "agent_message": _agent_message,
    "reasoning": _reasoning,
    **dict.fromkeys(_COMPACTED, _compacted),
    "function_call": _function_call,
    "function_call_output": _output,
    "custom_tool_call": _custom_call,
    "custom_tool_call_output": _output,
    **{built_in.item: _own_call(name, built_in.field) for name, built_in in BUILT_IN.items()},
    "local_shell_call_output": _shell_output,
    "shell_call_output": _shell_output,
    "apply_patch_call_output": _patch_output,
    "computer_call": _own_call("computer", "action"),
    "computer_call_output": _computer_output,
    "tool_search_call": _own_call("tool_search", "arguments"),
    "tool_search_output": _search_output,
    "additional_tools": _carried_tools,
    "configuration_update": _settings,
    "image_generation_call": _image,
    **dict.fromkeys(
        ("mcp_list_tools", "mcp_approval_request", "mcp_approval_response", "program", "program_output"), _server_result
    ),
    "item_reference": _reference,
    "compaction_trigger": _trigger,
}
"""What is missing here and ends in `_call` was run by the provider (`web_search_call`, `mcp_call`, …)."""
