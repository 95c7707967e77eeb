"""OpenAI Responses' output items: what they say, as a history holds them, and those of several rounds as one list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ....errors import RouteCodexError
from ....values import Dialect, JsonObject, Message, ProviderError, ToolCall, Usage
from ... import answers
from ...calls.replacing import view_of
from ...fields import is_blank, list_of, object_of, text_of
from ...finish import Endings, read_response_finish
from ...said import Said
from ..counts import summed_counts
from ..join import BLANK_LINE

HIDDEN = frozenset(
    (
        "reasoning",
        "web_search_call",
        "file_search_call",
        "code_interpreter_call",
        "mcp_call",
        "mcp_list_tools",
        "tool_search_call",
    )
)
"""Items that tell how the model came to its answer. They cannot stand inside a text that goes on: of a later round only the
history holds them."""
WRITTEN = {"function_call": "arguments", "custom_tool_call": "input"}
"""The kinds of calls, and where what the model wrote for the tool stands in each."""
CALLS = frozenset(WRITTEN)
TEXT = "output_text"

_FIRST_ROUNDS = ("id", "created_at", "model", "previous_response_id")
"""What the whole answer has from the first round; the rest is the last one's."""
_PLAIN_NAMESPACES = (None, "", "functions")
_NOT_OVER = ("queued", "in_progress", "requires_action")
"""A response in the background, or one that waits for its client, has not come to its end: nothing may be said behind it yet."""
_WITHOUT_ID = frozenset(("message", "reasoning", "function_call", "custom_tool_call", "local_shell_call", "web_search_call"))
"""Items that a provider takes without an id. With one, and nothing stored, it looks for the item in vain and refuses the call."""


def is_own(item: JsonObject, own_tools: frozenset[str]) -> bool:
    return item.get("type") in CALLS and item.get("name") in own_tools and item.get("namespace") in _PLAIN_NAMESPACES


def said_of(
    items: Sequence[JsonObject],
    response: JsonObject,
    *,
    id: str,
    own_tools: frozenset[str],
    endings: Endings,
    complete: bool = True,
    error: ProviderError | None = None,
) -> Said:
    """What a round said. A refusal is no plain stop, though its status says so."""
    calls = [(call, is_own(item, own_tools)) for item in items for call in _calls_in(item)]
    broken = error is not None or not complete
    finish = endings.read(
        read_response_finish(response), Dialect.RESPONSES, calls=None if _is_cut(items) else bool(calls), error=broken
    )
    if finish == "stop" and any(part.get("type") == "refusal" for item in items for part in parts_of(item)):
        finish = "content_filter"
    if finish == "stop" and response.get("status") in _NOT_OVER:
        finish = "error"
    return Said(
        text="".join(text_in(item) for item in items),
        calls=tuple(call for call, _ in calls),
        own=tuple(call for call, ours in calls if ours),
        finish=finish,
        usage=answers.usage_of(Dialect.RESPONSES, object_of(response.get("usage"))) or Usage(),
        id=id,
        native=as_history(items, stored=response.get("store") is not False),
        complete=complete,
        error=error,
    )


def _is_cut(items: Sequence[JsonObject]) -> bool:
    """A call is not whole."""
    return any(item.get("type") in CALLS and item.get("status") == "incomplete" for item in items)


def parts_of(item: JsonObject) -> list[JsonObject]:
    """The parts of a message; nothing else has any."""
    if item.get("type") != "message":
        return []
    return [part for part in list_of(item.get("content")) if isinstance(part, dict)]


def text_in(item: JsonObject) -> str:
    return "".join(text_of(part.get("text")) for part in parts_of(item) if part.get("type") == TEXT)


def _view(item: JsonObject) -> Message | None:
    """The item as a history is read; None for one that no history may hold."""
    try:
        return view_of(Dialect.RESPONSES, 0, item)
    except RouteCodexError:
        return None


def _calls_in(item: JsonObject) -> list[ToolCall]:
    view = _view(item)
    return [replace(part, slot=-1) for part in view.parts if isinstance(part, ToolCall)] if view is not None else []


def as_history(items: Sequence[JsonObject], *, stored: bool) -> tuple[JsonObject, ...]:
    """The items as input.

    Where the provider stores nothing, they go without the ids that it would look for, and reasoning that is nothing but an id
    stays away. Encrypted reasoning travels in any case; `for_target` takes it off for others.
    """
    kept = [{name: value for name, value in item.items() if value is not None} for item in items if _says_something(item)]
    if stored:
        return tuple(kept)
    return tuple(
        {name: value for name, value in item.items() if name != "id"} if item.get("type") in _WITHOUT_ID else item
        for item in kept
        if item.get("type") != "reasoning" or item.get("encrypted_content") or item.get("content")
    )


def _says_something(item: JsonObject) -> bool:
    """An empty message is refused as input, and so may be one of nothing but white space."""
    if _view(item) is None:
        return False
    return item.get("type") != "message" or any(
        part.get("type") != TEXT or not is_blank(text_of(part.get("text"))) for part in parts_of(item)
    )


# --- several rounds -------------------------------------------------------------------------------------------------------


def merged_items(rounds: Sequence[Sequence[JsonObject]], own_tools: frozenset[str]) -> list[JsonObject]:
    """What the client holds of several rounds' items. A stream shows the same: `responses.Merging`."""
    shown: list[JsonObject] = []
    spoke = False
    for number, items in enumerate(rounds):
        goes_on, glue = number > 0, BLANK_LINE if number > 0 and spoke else ""
        for item in items:
            if is_own(item, own_tools):
                goes_on = True
                continue
            if number > 0 and item.get("type") in HIDDEN:
                continue
            if text_in(item):
                item, glue, spoke = _with_glue(item, glue), "", True
            if goes_on and item.get("type") == "message" and shown and shown[-1].get("type") == "message":
                shown[-1] = _continued(shown[-1], item)
            else:
                shown.append(item)
                goes_on = number > 0
    return shown


def _with_glue(message: JsonObject, glue: str) -> JsonObject:
    parts = parts_of(message)
    first = next(place for place, part in enumerate(parts) if part.get("type") == TEXT and part.get("text"))
    glued = continued_part(emptied(parts[first]), parts[first], glue)
    return {**message, "content": [*parts[:first], glued, *parts[first + 1 :]]} if glue else message


def _continued(message: JsonObject, more: JsonObject) -> JsonObject:
    """One message of two: a text goes on in the text before it."""
    parts = parts_of(message)
    for part in parts_of(more):
        if parts and part.get("type") == parts[-1].get("type") == TEXT:
            parts[-1] = continued_part(parts[-1], part)
        else:
            parts.append(part)
    return {**continued_item(message, more), "content": parts}


def continued_item(message: JsonObject, more: JsonObject) -> JsonObject:
    """A message's own fields; how it ended and which phase it belongs to are what its last piece says."""
    return {**message, **{name: more[name] for name in ("status", "phase") if more.get(name) is not None}}


def emptied(part: JsonObject) -> JsonObject:
    """The same part before its text."""
    return {**part, "text": "", "annotations": [], **({"logprobs": []} if "logprobs" in part else {})}


def continued_part(part: JsonObject, more: JsonObject, glue: str = "") -> JsonObject:
    """One text of two; what points into the second's text still does."""
    before = text_of(part.get("text")) + (glue if text_of(more.get("text")) else "")
    moved = [moved_annotation(entry, len(before)) for entry in list_of(more.get("annotations"))]
    whole = {
        **part,
        "text": before + text_of(more.get("text")),
        "annotations": [*list_of(part.get("annotations")), *moved],
    }
    if "logprobs" in part or "logprobs" in more:
        whole["logprobs"] = [*list_of(part.get("logprobs")), *list_of(more.get("logprobs"))]
    return whole


def moved_annotation(annotation: object, by: int) -> object:
    if not isinstance(annotation, dict):
        return annotation
    places = {name: annotation.get(name) for name in ("start_index", "end_index")}
    return {**annotation, **{name: place + by for name, place in places.items() if isinstance(place, int)}}


def ended(responses: Sequence[JsonObject], first: JsonObject, items: list[JsonObject]) -> JsonObject:
    """The response object of the whole answer: the last round's, with what the first round's tells about who it is."""
    last = responses[-1]
    usage = summed_counts([object_of(response.get("usage")) for response in responses], "input_tokens", "output_tokens")
    whole = {**last, **{name: first[name] for name in _FIRST_ROUNDS if name in first}, "output": items}
    if usage:
        whole["usage"] = usage
    if "output_text" in last:
        whole["output_text"] = "".join(text_in(item) for item in items)
    return whole
