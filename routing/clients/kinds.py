"""What a call is for: the conversation itself, or a side call that its client makes on its own.

1. What a client says itself decides: headers first, then metadata in the body. Only then its signatures.
2. A kind that a client names and we do not know is a side call: it obeys nothing.
3. Instructions that begin as those of a compaction make one, whatever else is said.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..dialects.fields import list_of, object_of
from ..values import Call, Headers, Kind, Message, Text
from .client import Client, Signature, Where

_HEAD = 1000
"""A signature sits within so many characters of a text."""

COMPACTION_STARTS = ("context checkpoint compaction", "checkpoint compaction", "handoff summary for another llm")
"""How the instructions or the first text of a compaction begin, whoever asks for it."""
_ANYBODYS = tuple(Signature("first", phrase, Kind.COMPACTION) for phrase in COMPACTION_STARTS)


def kind_of(call: Call, headers: Headers, client: Client) -> Kind:
    if _ends_with_compaction_trigger(call) or system_head(call).startswith(COMPACTION_STARTS):
        return Kind.COMPACTION
    kind = client.declares(call, headers)
    if kind is None or kind is Kind.SIDE:
        kind = _signed_kind(call, client) or kind or client.beside(call) or Kind.MAIN
    return Kind.SIDE if kind is Kind.MAIN and call.endpoint.action == "count" else kind


def system_head(call: Call) -> str:
    """The beginning of the instructions in lower case, wherever they stand."""
    if call.system:
        return _head(call.system)
    first = call.messages[0] if call.messages else None
    return _text_head(first) if first is not None and first.role == "system" else ""


def _signed_kind(call: Call, client: Client) -> Kind | None:
    heads: dict[Where, str] = {
        "system": system_head(call),
        "first": _user_head(call.messages),
        "last": _user_head(reversed(call.messages)),
    }
    return next((signature.kind for signature in (*client.signatures, *_ANYBODYS) if _fits(signature, heads)), None)


def _fits(signature: Signature, heads: dict[Where, str]) -> bool:
    head = heads[signature.where]
    return signature.phrase in head if signature.where == "system" else head.startswith(signature.phrase)


def _ends_with_compaction_trigger(call: Call) -> bool:
    items = list_of(call.body.get("input"))
    return bool(items) and object_of(items[-1]).get("type") == "compaction_trigger"


def _text_head(message: Message) -> str:
    return _head(next((part.text for part in message.parts if isinstance(part, Text) and part.text), ""))


def _user_head(messages: Iterable[Message]) -> str:
    """Of the first of the user's."""
    return next((_text_head(message) for message in messages if message.role == "user"), "")


def _head(text: str) -> str:
    return text[: 2 * _HEAD].lstrip()[:_HEAD].lower()


_WRAPPED = re.compile(r"\s*<[\w-]+>\s*")


def is_planning(call: Call, client: Client) -> bool:
    """Whether the client only plans, by the newest of its own texts about it."""
    if not client.begins_to_plan:
        return False
    for message in reversed(call.messages):
        for part in reversed(message.parts):
            if not isinstance(part, Text) or message.role == "assistant":
                continue
            if message.role == "system":  # several of its texts in one, each a paragraph
                began, ended = (_last(part.text, said) for said in (client.begins_to_plan, client.ends_to_plan))
                if began != ended:
                    return began > ended
                continue
            wrapper = _WRAPPED.match(part.text[:100])
            own = part.text[wrapper.end() if wrapper is not None else 0 :][:100]
            if own.startswith(client.ends_to_plan):
                return False
            if own.startswith(client.begins_to_plan):
                return True
    return False


def _last(text: str, beginnings: tuple[str, ...]) -> int:
    """Where the last paragraph begins that begins so; -1 where none does."""
    paragraphs = f"\n\n{text}"
    return max(paragraphs.rfind(f"\n\n{beginning}") for beginning in beginnings)


_LONGEST_START = max(map(len, COMPACTION_STARTS))


def starts_as_compaction(call: Call) -> bool:
    """The call begins as one that compacts a history, whatever its client says. What stands further inside counts for nothing."""
    first = call.messages[0] if call.messages else None
    user = next((message for message in call.messages if message.role == "user"), None)
    return system_head(call).startswith(COMPACTION_STARTS) or _compacts(first) or (user is not first and _compacts(user))


def _compacts(message: Message | None) -> bool:
    for part in message.parts if message is not None else ():
        if isinstance(part, Text) and not part.text.isspace():
            return part.text[:2000].lstrip()[:_LONGEST_START].lower().startswith(COMPACTION_STARTS)
    return False
