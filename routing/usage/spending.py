"""From a turn's rounds to what is written down of them, and to what the flight recorder compares."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..dialects.translation.neutral import Tokens
from ..values import Dialect, Target
from .flight import Flown, Loss

FILE_NAME = "usage.sqlite"
"""In a person's folder: one for all servers."""


class Row(NamedTuple):
    """One round. Tokens are None where its provider did not tell them."""

    time_ms: int
    session: str
    client: str
    call: str
    round: int
    provider: str
    key: str
    asked: str
    """The model that the client named."""
    model: str
    input: int | None
    """With what came from the cache and what was written to it."""
    cached: int | None
    written: int | None
    output: int | None
    """With what was reasoned."""
    reasoning: int | None
    dollars: float | None
    """None: its price is not known."""
    user: str = ""
    """Who asked, where the proxy asks people who they are."""


def tokens_of(row: Row) -> Tokens | None:
    if row.input is None:
        return None
    return Tokens(row.input, row.output or 0, cached=row.cached or 0, written=row.written or 0, reasoning=row.reasoning or 0)


@dataclass(frozen=True, slots=True)
class Cost:
    """One round that a provider answered."""

    target: Target
    tokens: Tokens | None
    """None: it told none."""
    sent: bytes
    """Of the turn's first round; the others begin as it does."""
    dialect: Dialect
    """As it was sent."""
    url: str
    """Where to: prices are a host's."""
    at: float
    """Epoch seconds."""
    route: str = ""


@dataclass(frozen=True, slots=True)
class Asker:
    """Whose rounds they are."""

    call: str
    session: str
    client: str
    asked: str
    """The model that the client named."""
    received: bytes
    dialect: Dialect
    """As the call came."""
    steps: bool
    """It is a step of a conversation, which begins as the last one did."""
    user: str = ""


@dataclass(frozen=True, slots=True)
class Spent:
    row: Row
    url: str
    flown: Flown | None
    """None where the call is no step of a conversation."""
    lost: Callable[[Loss], None]
    """Hears why the provider's cache was lost."""


def spent(costs: Sequence[Cost], asker: Asker, *, failed: bool, lost: Callable[[Loss], None]) -> Iterator[Spent]:
    """`failed`: an attempt had failed before the first of them."""
    for number, cost in enumerate(costs, 1):
        target, tokens = cost.target, cost.tokens
        row = Row(
            time_ms=int(cost.at * 1000),
            session=asker.session,
            client=asker.client,
            call=asker.call,
            round=number,
            provider=target.provider,
            key=target.key,
            asked=asker.asked,
            model=target.model or asker.asked,
            input=tokens.input if tokens else None,
            cached=tokens.cached if tokens else None,
            written=tokens.written if tokens else None,
            output=tokens.output if tokens else None,
            reasoning=tokens.reasoning if tokens else None,
            dollars=None,
            user=asker.user,
        )
        flown = Flown(
            f"{asker.session} {cost.dialect}",
            target,
            cost.sent,
            cost.dialect,
            asker.received,
            asker.dialect,
            tokens,
            cost.at,
            cost.route,
            failed,
        )
        yield Spent(row, cost.url, flown if asker.steps and number == 1 else None, lost)
