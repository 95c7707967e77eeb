"""Take tags out of a call before it is sent anywhere.

1. Only what a person typed changes: tool results, files, wrappers of tools, assistant and system text stay as they are.
2. A call without tags is not touched at all.
3. A question that was nothing but tags, and our own answer to it, leave the history together; so does the question alone where
   a compaction took our answer: what would stay of it is a word that nobody said.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ..clients.client import Client
from ..clients.typed import Typed, TypedText, editable_texts, is_cut
from ..clients.unknown import UNKNOWN
from ..dialects.calls import Exchange, drop_exchanges, edit_texts
from ..values import Call, Message, Text, ToolCall
from .scan import may_hold_tags, strip
from .status import LOCAL_ANSWER_MARK
from .typed_tags import is_bare, only_tags, tags_at_end

__all__ = ["clean", "is_for_us", "only_tags"]


def clean(call: Call, typed: Sequence[Typed], client: Client = UNKNOWN) -> None:
    """Take past exchanges with ourselves and every tag out of the history. `typed` is of this call, before any other edit."""
    if not any(
        isinstance(part, Text) and may_hold_tags(part.text)
        for message in call.messages
        if message.role == "user"
        for part in message.parts
    ):
        return
    answers = {question.message.index: (question, question.message) for question in _cut_off(call, typed, client)}
    answers |= {question.message.index: (question, answer) for question, answer in _own_exchanges(call, typed)}
    _drop(call, answers.values())
    edits: dict[tuple[int, int], str] = {}
    for editable in editable_texts(call, client):
        text = editable.edited(strip)
        if text is not editable.part.text:
            edits[editable.message.index, editable.part.slot] = "" if is_bare(text) else text
    if edits:
        edit_texts(call, edits)


def is_for_us(call: Call, newest: Typed, client: Client = UNKNOWN) -> bool:
    """The newest typed message is nothing but tags, and nobody has answered it yet: we do."""
    behind = call.messages[newest.message.index + 1 :]
    return only_tags(newest) and all(_is_of_tool(message) and not is_cut(message, client) for message in behind)


def _drop(call: Call, exchanges: Iterable[tuple[Typed, Message]]) -> None:
    """What a tool wrote into the same text stays, and moves on with the rest."""
    edits: dict[tuple[int, int], str] = {}
    gone: list[Exchange] = []
    for question, answer in exchanges:
        asked = question.message.index
        rests = {text.part.slot: _beside(text) for text in tags_at_end(question)}
        edits |= {(asked, slot): rest for slot, rest in rests.items() if rest}
        gone.append(Exchange(asked, answer.index, [slot for slot, rest in rests.items() if not rest]))
    if gone:
        edit_texts(call, edits)
        drop_exchanges(call, gone)


def _beside(text: TypedText) -> str:
    pieces: list[str] = []
    at = 0
    for start, end in text.commands:
        pieces.append(text.part.text[at:start])
        at = end
    beside = "".join((*pieces, text.part.text[at:])).strip()
    return "" if is_bare(beside) else beside


def _own_exchanges(call: Call, typed: Sequence[Typed]) -> list[tuple[Typed, Message]]:
    """Questions that were for us, with our answers; between the two stands nothing but what tools wrote.

    In front of such a question, in the same message, may stand texts that never got an answer: they stay.
    """
    typed_at = {question.message.index for question in typed}
    found: list[tuple[Typed, Message]] = []
    for question in typed:
        for message in _behind(call, question):
            if _is_ours(message):
                found.append((question, message))
            if not _is_of_tool(message) or message.index in typed_at:
                break
    return [(question, answer) for question, answer in found if tags_at_end(question)]


def _cut_off(call: Call, typed: Sequence[Typed], client: Client) -> Iterator[Typed]:
    """Questions that were for us, in a history that a compaction cut, with no answer behind them."""
    questions = [question for question in typed if only_tags(question)]
    cut = next((message.index for message in reversed(call.messages) if is_cut(message, client)), -1) if questions else -1
    for question in questions:
        if question.message.index < cut:
            following = next((one for one in _behind(call, question) if one.role != "system"), None)
            if following is not None and (following.role == "user" or is_cut(following, client)):
                yield question


def _behind(call: Call, question: Typed) -> Iterator[Message]:
    """One after the other: a slice for each of many questions would copy the history as often."""
    return map(call.messages.__getitem__, range(question.message.index + 1, len(call.messages)))


def _is_ours(message: Message) -> bool:
    is_answer = message.role == "assistant" and not any(isinstance(part, ToolCall) for part in message.parts)
    return is_answer and message.text.startswith(LOCAL_ANSWER_MARK)


def _is_of_tool(message: Message) -> bool:
    """Instructions and reminders that tools put behind a question (the caller knows which user messages were typed)."""
    return message.role == "system" or (message.role == "user" and all(isinstance(part, Text) for part in message.parts))
