from __future__ import annotations

import json
from pathlib import Path

import pytest

from routecodex.routing.dialects.translation.neutral import Tokens
from routecodex.routing.usage import prices
from routecodex.routing.usage.prices import Price, Prices, listed, money
from routecodex.routing.usage.spending import Paid
from routecodex.routing.values import Dialect
from routecodex.routing.window.page import answer_lines

ANTHROPIC, OPENAI, GOOGLE = "https://api.anthropic.com", "https://api.openai.com/v1", "https://generativelanguage.googleapis.com"


def test_the_table_knows_the_hosts_that_tools_use() -> None:
    assert len(prices.made_on()) == 10
    for host, model in ((ANTHROPIC, "claude-sonnet-4-5-20250929"), (OPENAI, "gpt-5-mini"), (GOOGLE, "gemini-2.5-pro")):
        price = listed(host, model)
        assert price is not None, model
        assert 0 < price.of(Tokens(1_000_000, 0)) < price.of(Tokens(1_000_000, 1_000_000))


def test_a_model_of_an_unknown_date_costs_what_its_model_does() -> None:
    assert listed(OPENAI, "gpt-5-mini-2031-01-01") == listed(OPENAI, "gpt-5-mini")


@pytest.mark.parametrize(("host", "model"), [("http://localhost:11434", "llama3"), (ANTHROPIC, "no-such-model"), ("", "")])
def test_what_nobody_knows_is_unknown(host: str, model: str) -> None:
    assert Prices().price("p", model, host) is None


def test_what_a_person_configured_comes_first_and_the_most_precise_of_it() -> None:
    dear, cheap, other = Price(9, 9), Price(1, 1), Price(2, 2)
    known = Prices({"anthropic.claude-sonnet-4-5": dear, "claude-sonnet-4-5": cheap, "anthropic": other})
    assert known.price("anthropic", "claude-sonnet-4-5", ANTHROPIC) is dear
    assert known.price("elsewhere", "claude-sonnet-4-5", ANTHROPIC) is cheap
    assert known.price("anthropic", "claude-opus-4", ANTHROPIC) is other


def test_what_came_from_the_cache_and_went_into_it_has_its_own_price() -> None:
    price = Price(input=10, output=100, cached=1, written=20)
    tokens = Tokens(input=1_000_000, output=500_000, cached=600_000, written=100_000, reasoning=100_000)
    assert price.of(tokens) == pytest.approx(3 + 0.6 + 2 + 50)
    assert Price(10, 100).of(tokens) == pytest.approx(10 + 50)


@pytest.mark.parametrize(("count", "dollars"), [(200_000, 0.2), (200_001, 0.400002)])
def test_a_long_call_has_the_price_of_its_length(count: int, dollars: float) -> None:
    assert Price(((0, 1.0), (200_000, 2.0)), 1).of(Tokens(count, 0)) == pytest.approx(dollars)


def test_the_table_says_where_it_is_from() -> None:
    told = json.loads((Path(prices.__file__).with_name("prices.json")).read_text())
    assert "MIT" in told["source"]


@pytest.mark.parametrize(
    ("dollars", "shown"),
    [(0.0, "$0.00"), (1234.345, "$1,234.35"), (0.0123, "$0.01"), (0.0012, "$0.0012"), (1e-9, "less than $0.0001")],
)
def test_what_is_something_is_never_shown_as_nothing(dollars: float, shown: str) -> None:
    assert money(dollars) == shown


@pytest.mark.parametrize(
    ("dollars", "shown"), [(0.0123, "$0.0123"), (0.0, "$0.0000"), (12.3, "$12.3000"), (0.00002, "less than $0.0001")]
)
def test_nor_where_more_of_it_is_shown(dollars: float, shown: str) -> None:
    assert money(dollars, 4) == shown
    assert Paid(None, dollars, 0).money == shown
    assert any(shown in line for line in answer_lines({"dollars": dollars}, b"{}", Dialect.MESSAGES))
