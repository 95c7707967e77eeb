"""What a turn leaves behind for later calls: its hidden rounds in the dialect's own form, without what tools want left out."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec import Struct

from ..dialects.calls.without_tools import without_tools
from ..dialects.said import Said
from ..values import JsonObject
from .appended import Appended, ToolResults, UserText, write
from .plugins import TurnInfo


class Record(Struct, frozen=True):
    """What later calls of the client must find in their history, in the place of the merged answer."""

    items: tuple[JsonObject, ...]
    """Answers, and what was appended between them, up to the model's last word."""
    results: tuple[JsonObject, ...]
    """What our tools answered to that last word, where calls of the client's stand beside ours."""
    behind: tuple[JsonObject, ...] = ()
    """What plugins appended to that last word, and nobody has answered yet."""


def hides(turn: TurnInfo) -> bool:
    """Later calls must find more in their history than their client holds."""
    return turn.rounds > 1 or bool(turn.stays) or any(not isinstance(message, Said) for message in turn.messages)


def record(turn: TurnInfo, left_out: Collection[str], told: Collection[str] = ()) -> Record:
    """`left_out`: names of tools whose calls and results nobody shall find; `told`: whose results alone are found, as text."""
    messages = turn.messages
    end = max((place for place, message in enumerate(messages) if isinstance(message, Said) and message.native), default=-1) + 1
    answered, behind = _told(messages[:end], told), _told(messages[end:], told)
    outcomes = [outcome for message in behind if isinstance(message, ToolResults) for outcome in message.outcomes]
    results = ToolResults(tuple(outcome for outcome in outcomes if outcome.call.name not in left_out))
    items = without_tools(turn.dialect, write(turn.dialect, answered), {*left_out, *told})
    others = [message for message in behind if not (isinstance(message, ToolResults) or turn.wanted_answer(message))]
    return Record(items, write(turn.dialect, [results]), write(turn.dialect, others))


def _told(messages: Sequence[Appended], names: Collection[str]) -> list[Appended]:
    """What these tools answered as text behind the other results: without its call a result has no place of its own."""
    found: list[Appended] = []
    for message in messages:
        if not names or not isinstance(message, ToolResults):
            found.append(message)
            continue
        texts = [UserText(f"The tool {one.call.name} answered: {one.text}") for one in message.outcomes if one.call.name in names]
        found.append(ToolResults(tuple(one for one in message.outcomes if one.call.name not in names)))
        found += texts
    return found
