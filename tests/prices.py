"""Makes `routing/usage/prices.json` anew, at a release: `python -m tests.prices` where `genai-prices` is installed.

It does not install beside mitmproxy 11, and nobody needs it to run the proxy: what it knows of the hosts that tools use is taken
over as data.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, date, datetime
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

FILE = Path(__file__).parents[1] / "routing" / "usage" / "prices.json"
HOSTS = [
    "anthropic",
    "arcee",
    "azure",
    "cerebras",
    "cohere",
    "deepseek",
    "fireworks",
    "google",
    "groq",
    "minimax",
    "mistral",
    "moonshotai",
    "openai",
    "openrouter",
    "perplexity",
    "together",
    "x-ai",
    "zai",
    "zhipuai",
]
FIELDS = ("input_mtok", "cache_read_mtok", "cache_write_mtok", "output_mtok")


def main() -> None:
    providers = import_module("genai_prices.data").providers
    today = datetime.now(UTC).date()
    hosts = []
    for provider in providers:
        if provider.id in HOSTS:
            rows = [row for model in provider.models if (row := _row(model, today)) is not None]
            hosts.append({"id": provider.id, "host": provider.api_pattern, "models": rows})
    head = {"date": str(today), "source": f"genai-prices {version('genai-prices')} (MIT, Pydantic Services Inc.)", "hosts": []}
    lines = json.dumps(head)[:-3] + "[\n"
    lines += ",\n".join(_host_text(host) for host in hosts)
    FILE.write_text(lines + "\n]}\n")


def _host_text(host: dict[str, Any]) -> str:
    rows = ",\n".join("  " + json.dumps(row, separators=(",", ":")) for row in host["models"])
    return f'{{"id": {json.dumps(host["id"])}, "host": {json.dumps(host["host"])}, "models": [\n{rows}\n]}}'


def _row(model: Any, today: date) -> list[Any] | None:
    """A pattern of its names, and what a million tokens cost: read, from the cache, into the cache, written."""
    prices = _in_force(model.prices, today)
    row = [_amounts(getattr(prices, name, None)) for name in FIELDS] if prices is not None else []
    return [_pattern(model.match), *row] if row and row[0] is not None and row[3] is not None else None


def _in_force(prices: Any, today: date) -> Any:
    """Of several the newest that has begun; what holds at some hours only is passed over."""
    if not isinstance(prices, list):
        return prices
    begun = [
        (getattr(one.constraint, "start_date", date.min), one.prices)
        for one in prices
        if one.constraint is None or getattr(one.constraint, "start_date", date.max) <= today
    ]
    return max(begun, key=lambda one: one[0])[1] if begun else None


def _amounts(value: Any) -> Any:
    """A number, or from how many tokens of input on which number holds."""
    if value is None:
        return None
    if not hasattr(value, "tiers"):
        return float(value)
    return [[0, float(value.base)], *([tier.start, float(tier.price)] for tier in value.tiers)]


def _pattern(clause: Any) -> str:
    match type(clause).__name__:
        case "ClauseEquals":
            return f"^{re.escape(clause.equals)}$"
        case "ClauseStartsWith":
            return f"^{re.escape(clause.starts_with)}"
        case "ClauseEndsWith":
            return f"{re.escape(clause.ends_with)}$"
        case "ClauseContains":
            return re.escape(clause.contains)
        case "ClauseRegex":
            return f"(?:{clause.regex})"
        case "ClauseOr":
            return "|".join(_pattern(one) for one in clause.or_)
        case "ClauseAnd":
            return "^" + "".join(f"(?=.*(?:{_pattern(one)}))" for one in clause.and_)
        case other:
            raise ValueError(other)


if __name__ == "__main__":
    main()
