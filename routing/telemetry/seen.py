"""One call as it was seen, kept while it lives: a few fields set where something happens, read once it is over."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct, field

from ..dialects.translation.neutral import Tokens
from ..turn.actions import Failed
from ..values import Dialect, Target


class Asked(Struct):
    """One request to a provider."""

    name: str
    """`first`, `retry`, `round 2:stop_followup`."""
    target: Target
    place: str
    """Where it went: its URL without the query."""
    dialect: Dialect
    at: float
    """Monotonic, as all times here."""
    ended: float = 0.0
    error: str = ""
    """Why it failed, in a word of few: a status, or `network`."""
    tokens: Tokens | None = None

    @property
    def why(self) -> str:
        """What another round follows: `stop_followup`, …; empty of a turn's first, and where it was only tried again."""
        return self.name.partition(":")[2] if self.name.startswith("round ") else ""


class Seen(Struct):
    """A client's call."""

    at: float
    wall: float
    """The same moment, in epoch seconds."""
    call: str = ""
    session: str = ""
    user: str = ""
    client: str = ""
    model: str = ""
    """As the client named it."""
    typed: str = ""
    """Empty where content is not wanted."""
    asked: list[Asked] = field(default_factory=list)
    first: float = 0.0
    """When the answer's first content went to the client; 0: never."""
    ended: float = 0.0
    status: str = ""
    """What the client got: `200`, `400`, `the tool left`."""
    code: str = ""
    """Of a refusal of ours."""
    rested_s: float = 0.0
    """How long it waited because every key rested."""
    reminders: int = 0
    last_failed: Failed | None = None

    def begins(self, name: str, target: Target, place: str, dialect: Dialect, now: float) -> None:
        self.asked.append(Asked(name, target, place, dialect, now))

    def failed(self, failed: Failed, now: float) -> None:
        """The request that is under way; told as often as anybody looks."""
        if self.asked and failed is not self.last_failed:
            error = failed.error
            self.asked[-1].error, self.asked[-1].ended = "network" if error.network else str(error.status), now
            self.last_failed = failed

    def answered(self, costs: Sequence[tuple[Target, Tokens | None]]) -> None:
        """What the rounds cost that were answered, in their order."""
        waiting = list(costs)
        for asked in self.asked:
            if waiting and not asked.error and asked.target == waiting[0][0]:
                asked.tokens = waiting.pop(0)[1]

    def over(self, status: str, now: float) -> Seen:
        """A round ends where the next one begins."""
        self.status, self.ended = status, now
        ends = [*(asked.at for asked in self.asked[1:]), now]
        for asked, end in zip(self.asked, ends, strict=False):
            asked.ended = asked.ended or end
        return self

    def failovers(self) -> Iterator[tuple[Target, Target]]:
        """From whom to whom."""
        for one, other in zip(self.asked, self.asked[1:], strict=False):
            if one.error and one.target != other.target:
                yield one.target, other.target
