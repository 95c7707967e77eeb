"""From a turn's rounds to what is written down of them, and to what the flight recorder compares."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from ..dialects.translation.neutral import Tokens
from ..values import Dialect, Target
from .flight import Flown, Loss
from .prices import Prices, money

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


class Paid(NamedTuple):
    """What rounds cost together."""

    tokens: Tokens | None
    """None: no provider told any."""
    dollars: float | None
    """None: no price is known."""
    unknown: int
    """So many rounds are in neither, or without a price."""

    @property
    def money(self) -> str:
        if self.dollars is None:
            return "cost unknown"
        return money(self.dollars, 4) + (f", and {self.unknown} more of unknown cost" if self.unknown else "")

    def __str__(self) -> str:
        if (tokens := self.tokens) is None:
            return "no provider told what it cost"
        apart = [("from the cache", tokens.cached), ("written to it", tokens.written)]
        held = ", ".join(f"{number:,} {what}" for what, number in apart if number)
        thought = f" ({tokens.reasoning:,} for reasoning)" if tokens.reasoning else ""
        return f"{tokens.input:,} in{f' ({held})' if held else ''} · {tokens.output:,} out{thought} · {self.money}"


def paid(bills: Iterable[Bill], prices: Prices, asked: str) -> Paid:
    """For whoever looks at a call; what is written down is computed elsewhere. `asked`: the model that the client named."""
    tokens: list[Tokens] = []
    dollars: list[float] = []
    unknown = 0
    for target, told, url in bills:
        price = prices.price(target.provider, target.model or asked, url)
        if told is not None:
            tokens.append(told)
        if price is None or told is None:
            unknown += 1
        else:
            dollars.append(price.of(told))
    return Paid(_sum(tokens) if tokens else None, sum(dollars) if dollars else None, unknown)


def _sum(tokens: Sequence[Tokens]) -> Tokens:
    return Tokens(
        sum(one.input for one in tokens),
        sum(one.output for one in tokens),
        cached=sum(one.cached for one in tokens),
        written=sum(one.written for one in tokens),
        reasoning=sum(one.reasoning for one in tokens),
    )


def tokens_of(row: Row) -> Tokens | None:
    if row.input is None:
        return None
    return Tokens(row.input, row.output or 0, cached=row.cached or 0, written=row.written or 0, reasoning=row.reasoning or 0)


class Bill(NamedTuple):
    """What one round's price is known by."""

    target: Target
    tokens: Tokens | None
    """None: its provider told none."""
    url: str
    """Where to: prices are a host's."""


class Cost(NamedTuple):
    """One round that a provider answered, or was paid for."""

    target: Target
    tokens: Tokens | None
    """None: it told none."""
    sent: bytes
    """Of the turn's first round that was answered; the others begin as it does."""
    dialect: Dialect
    """As it was sent."""
    url: str
    """Where to: prices are a host's."""
    at: float
    """Epoch seconds."""
    route: str = ""
    answered: bool = True
    """Else it failed when its provider had begun to count."""

    @property
    def bill(self) -> Bill:
        return Bill(self.target, self.tokens, self.url)


class Asker(NamedTuple):
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


class Spent(NamedTuple):
    row: Row
    url: str
    flown: Flown | None
    """None where the call is no step of a conversation."""
    lost: Callable[[Loss], None]
    """Hears why the provider's cache was lost."""


def spent(costs: Sequence[Cost], asker: Asker, *, failed: bool, lost: Callable[[Loss], None]) -> Iterator[Spent]:
    """`failed`: an attempt had failed before the first of them. It stands between an answer's end and the next call: names of
    fields would cost more than all the rest."""
    call, session, client, asked, received, asked_in, steps, user = asker
    first = True
    for number, (target, tokens, sent, dialect, url, at, route, answered) in enumerate(costs, 1):
        provider, key, model = target.provider, target.key, target.model or asked
        whose = (int(at * 1000), session, client, call, number, provider, key, asked, model)
        if tokens is not None:
            told = (tokens.input, tokens.cached, tokens.written, tokens.output, tokens.reasoning)
            row = Row(*whose, *told, None, user)
        else:
            row = Row(*whose, None, None, None, None, None, None, user)
        flown = None
        if steps and first and answered:
            flown = Flown(f"{session} {dialect}", target, sent, dialect, received, asked_in, tokens, at, route, failed, asked)
        first = first and not answered
        yield Spent(row, url, flown, lost)
