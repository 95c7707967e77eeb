"""What a model said in one round, read from its answer whatever the dialect and the form."""

from __future__ import annotations

from dataclasses import dataclass

from ..values import FinishReason, JsonObject, ProviderError, ToolCall, Usage


@dataclass(frozen=True, slots=True)
class Said:
    """One round's answer, or (a merger's `shown`) the whole answer as the client received it."""

    text: str
    """The visible text; its pieces joined as they came, without thinking."""
    calls: tuple[ToolCall, ...]
    """All tool calls in order, ours included; `arguments` is the model's JSON text."""
    own: tuple[ToolCall, ...]
    """Those of the calls whose tool is ours: the client never sees them."""
    finish: FinishReason
    usage: Usage
    id: str
    """The provider's id of this answer; empty where it tells none."""
    native: tuple[JsonObject, ...]
    """What stands for this answer in the dialect's own history: signed thinking, unknown blocks and our own calls included.

    Empty where the model said nothing that a history may hold.
    """
    complete: bool = True
    """False where the answer did not come to its own end: its terminal event is missing, or an error stands in its place."""
    error: ProviderError | None = None
    """The error event (or, in JSON, the error document) that ended the round."""
