"""What a turn leaves behind for later calls: its hidden rounds in the dialect's own form, without what tools want left out."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from ..values import JsonObject
from .appended import ToolResults, write
from .left_out import without_tools
from .plugins import TurnInfo
from .said import Said


@dataclass(frozen=True, slots=True)
class Record:
    """What later calls of the client must find in their history, in the place of the merged answer."""

    items: tuple[JsonObject, ...]
    """Answers, and what was appended between them, up to the model's last word."""
    results: tuple[JsonObject, ...]
    """What our tools answered to that last word, where calls of the client's stand beside ours."""


def hides(turn: TurnInfo) -> bool:
    """Later calls must find more in their history than their client holds."""
    appended = (message for behind in turn.history for message in behind)
    return turn.rounds > 1 or bool(turn.stays) or any(isinstance(message, ToolResults) for message in appended)


def record(turn: TurnInfo, left_out: Collection[str]) -> Record:
    """`left_out`: names of tools whose calls and results nobody shall find."""
    *rounds, last = turn.history or [[]]
    said = [message for behind in rounds for message in behind]
    end = max((place for place, message in enumerate(last) if isinstance(message, Said)), default=-1) + 1
    outcomes = [outcome for message in last[end:] if isinstance(message, ToolResults) for outcome in message.outcomes]
    results = ToolResults(tuple(outcome for outcome in outcomes if outcome.call.name not in left_out))
    items = without_tools(turn.dialect, write(turn.dialect, [*said, *last[:end]]), left_out)
    return Record(items, write(turn.dialect, [results]))
