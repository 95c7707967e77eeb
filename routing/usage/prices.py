"""What a million tokens cost at a host, from a table made at the release (`tests/prices.py`), and what a person configured.

A price that nobody knows is unknown: None, never 0.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from msgspec import Struct

from ..dialects.translation.neutral import Tokens

Amount: TypeAlias = float | tuple[tuple[int, float], ...]
"""Dollars for a million tokens; where it depends on the input's length: from how many tokens on, how much."""

_FILE = Path(__file__).with_name("prices.json")
_DATED = re.compile(r"[-@]\d{4}-?\d{2}-?\d{2}$")
_MILLION = 1_000_000


class Price(Struct, frozen=True):
    input: Amount
    output: Amount
    cached: Amount | None = None
    """What comes from the provider's cache; as the rest of the input where nothing else is known."""
    written: Amount | None = None
    """What is written to it."""

    def of(self, tokens: Tokens) -> float:
        """In dollars."""

        def rate(amount: Amount | None) -> float:
            amount = self.input if amount is None else amount
            if not isinstance(amount, tuple):
                return amount
            return [dollars for start, dollars in amount if tokens.input > start or start == 0][-1]

        fresh = max(0, tokens.input - tokens.cached - tokens.written)
        dollars = fresh * rate(self.input) + tokens.cached * rate(self.cached) + tokens.written * rate(self.written)
        return (dollars + tokens.output * rate(self.output)) / _MILLION


class Prices:
    def __init__(self, own: Mapping[str, Price] | None = None) -> None:
        """`own`: what a person configured, by `provider.model`, `provider` or the model's name."""
        self._own = own or {}

    def price(self, provider: str, model: str, base_url: str) -> Price | None:
        for name in (f"{provider}.{model}", model, provider):
            if (price := self._own.get(name)) is not None:
                return price
        return listed(base_url, model)


@functools.lru_cache(maxsize=1024)
def listed(base_url: str, model: str) -> Price | None:
    """The table's; a model of a date that it does not name costs what the model without its date does."""
    place = next((place for place, host in enumerate(_table().hosts) if host.match(base_url) is not None), None)
    if place is None:
        return None
    for name in dict.fromkeys((model.lower(), _DATED.sub("", model.lower()))):
        for pattern, price in _rows(place):
            if pattern.search(name) is not None:
                return price
    return None


def money(dollars: float, decimals: int = 2) -> str:
    """As people read it: what is something is never shown as nothing."""
    if 0 < dollars < 0.0001:
        return "less than $0.0001"
    return f"${dollars:,.{4 if 0 < dollars < 0.01 else decimals}f}"


def made_on() -> str:
    """The date of the table."""
    return _table().date


class _Table(Struct, frozen=True):
    date: str
    hosts: tuple[re.Pattern[str], ...]


@functools.cache
def _table() -> _Table:
    told = _told()
    return _Table(told["date"], tuple(re.compile(host["host"]) for host in told["hosts"]))


@functools.cache
def _rows(place: int) -> tuple[tuple[re.Pattern[str], Price], ...]:
    """A host's models: patterns are made for those hosts alone that somebody asks."""
    return tuple(map(_row, _told()["hosts"][place]["models"]))


def _told() -> Any:
    return json.loads(_FILE.read_text("utf-8"))


def _row(row: list[Any]) -> tuple[re.Pattern[str], Price]:
    pattern, *amounts = row
    read, cached, written, output = map(_amount, amounts)
    assert read is not None
    assert output is not None
    return re.compile(pattern), Price(read, output, cached, written)


def _amount(told: Any) -> Amount | None:
    return tuple((start, dollars) for start, dollars in told) if isinstance(told, list) else told
