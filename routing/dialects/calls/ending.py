"""Texts of the user's at the very end of a history.

They become the last parts of the last message where that is the user's, results of tools first; else a message of the user's
behind it. So they stand behind every cache mark, and nothing that the client sent changes its place.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from ...values import Call, Dialect, Endpoint, JsonObject
from . import growing
from .replacing import Swap, history_of, raw_items, replace_items, view_of

_TEXT_PARTS = {Dialect.CHAT: "text", Dialect.RESPONSES: "input_text"}


def with_texts(call: Call, texts: Sequence[str]) -> Call:
    """A new call with these texts at its very end, in their order."""
    joined = _joined(call, texts) if call.messages and call.messages[-1].role == "user" else None
    return joined or growing.with_messages(call, _own_messages(call.endpoint.dialect, texts))


def texts_behind(dialect: Dialect, item: JsonObject, texts: Sequence[str]) -> list[JsonObject]:
    """The same where a history ends with this item: what stands in its place then."""
    alone = Call(Endpoint(dialect), b"", history_of(dialect, [item]), "", stream=False, messages=[view_of(dialect, 0, item)])
    return raw_items(with_texts(alone, texts))


def _own_messages(dialect: Dialect, texts: Sequence[str]) -> list[JsonObject]:
    """Messages and Gemini join what follows one another by themselves; in the others one message holds all."""
    if dialect in _TEXT_PARTS:
        return [growing.write_user(dialect, "\n\n".join(texts))]
    return [growing.write_user(dialect, text) for text in texts]


def _joined(call: Call, texts: Sequence[str]) -> Call | None:
    """Within the user's message, for the dialects whose growing would put a new one behind it. None: leave it to them."""
    kind = _TEXT_PARTS.get(call.endpoint.dialect)
    if kind is None:
        return None
    *_, item = raw_items(call)
    content = item.get("content")
    if isinstance(content, str):  # stays a string: some servers take no list
        grown: object = "\n\n".join((content, *texts)) if content.strip() else "\n\n".join(texts)
    elif isinstance(content, list) and _stands_alone(item):
        grown = [*content, *({"type": kind, "text": text} for text in texts)]
    else:
        return None
    new = replace(call, body=dict(call.body), messages=[replace(message) for message in call.messages])
    replace_items(new, [Swap(len(call.messages) - 1, len(call.messages), [{**item, "content": grown}])])
    return new


def _stands_alone(item: JsonObject) -> bool:
    """Nothing beside the parts tells of each of them, as Codex does: a list of its own would have to grow as well."""
    return all(name in ("type", "role", "content", "id", "status", "name") for name in item)
