"""Compacting a Responses conversation where the target cannot: asked in words, answered by an item that anybody can open.

1. OpenAI's own item is sealed: only its maker can read it, and its client keeps nothing else of what was said.
2. Ours holds our mark and the summary as plain text; on its way to whatever target it becomes a message.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from ...values import Call, Dialect, JsonObject
from ..fields import list_of, object_of, text_of

MARK = "routecodex-summary:1\n"
"""What the content of our items begins with."""
KINDS = frozenset({"compaction", "compaction_summary", "context_compaction"})
_TRIGGER = "compaction_trigger"
_ASKED = (
    "This conversation is about to be cut: whoever goes on with the work, perhaps another model, will know nothing but what you "
    "write now. Write down what they need: what the person wants, in their own words where these matter, and how they want it "
    "done; what was done and decided so far, and why; the state of files, commands and tests, with names and paths; what failed; "
    "what comes next. Call no tools. Answer with this summary alone, as plain text."
)
_OPENED = "The conversation before this was cut. This is what was written down of it, to go on from:\n\n"


def asks(call: Call) -> bool:
    """The call wants no answer but a compacted history."""
    if call.endpoint.dialect is not Dialect.RESPONSES:
        return False
    items = list_of(call.body.get("input"))
    return bool(items) and object_of(items[-1]).get("type") == _TRIGGER


def asked_in_words(call: Call) -> Call:
    """The same question for a model that only knows words."""
    items = [item for item in list_of(call.body.get("input")) if object_of(item).get("type") != _TRIGGER]
    body = {**call.body, "input": [*items, _message(_ASKED)], "tool_choice": "none"}
    if not call.tools:
        del body["tool_choice"]
    return replace(call, body=body, changed=True)


def item_of(summary: str, id: str) -> JsonObject:
    return {"type": "compaction", "id": id, "encrypted_content": MARK + summary}


def opened(call: Call) -> Call:
    """The call with our items as messages; the same call where it holds none."""
    items = list_of(call.body.get("input")) if call.endpoint.dialect is Dialect.RESPONSES else []
    if not any(_is_ours(item) for item in items):
        return call
    told = [_message(_OPENED + _content(item).removeprefix(MARK)) if _is_ours(item) else item for item in items]
    return replace(call, body={**call.body, "input": told}, changed=True)


def sealed(call: Call) -> Iterator[str]:
    """What others have compacted."""
    if call.endpoint.dialect is Dialect.RESPONSES:
        for item in list_of(call.body.get("input")):
            if object_of(item).get("type") in KINDS and (content := _content(item)) and not content.startswith(MARK):
                yield content


def _is_ours(item: object) -> bool:
    return object_of(item).get("type") in KINDS and _content(item).startswith(MARK)


def _content(item: object) -> str:
    return text_of(object_of(item).get("encrypted_content"))


def _message(text: str) -> JsonObject:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
