"""`routecodex usage`: what a person types, and what is printed."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest

from routecodex.routing.usage.ledger import Ledger
from tests.addons.control.commands.person import Person
from tests.routing.usage.test_ledger import DAY, NOON, row


@pytest.fixture
def spender(person: Person) -> Person:
    ledger = Ledger(person.home / ".routecodex" / "usage.sqlite", retention_days=400)
    unknown: dict[str, Any] = {"input": None, "cached": None, "written": None, "output": None, "reasoning": None, "dollars": None}
    ledger.write([row(), row(time_ms=NOON - 3 * DAY, key="k2"), row(session="t", **unknown)], NOON)
    ledger.close()
    return person


def test_before_anything_was_used(person: Person) -> None:
    assert person.types("usage") == 0
    assert "Nothing was used yet" in person.said
    assert person.types("usage", "--json") == 0
    assert not (person.home / ".routecodex").exists()


def test_where_it_is_switched_off(person: Person) -> None:
    person.file(".config/routecodex/mitm-config.yaml", "usage: {enabled: false}\nvirtualrouter: {routing: {default: [origin]}}\n")
    assert person.types("usage") == 0
    assert person.said.strip() == "Nothing is written down: usage.enabled is false in the configuration."


def test_by_day_with_what_is_not_known(spender: Person) -> None:
    assert spender.types("usage") == 0
    lines = spender.said.splitlines()
    assert lines[0].split() == ["daily", "input", "output", "cache", "written", "cache", "read", "total", "cost"]
    assert lines[-4].split() == ["in", "all", "600", "100", "200", "1,200", "2,100", "$1.00"]
    assert "1 of 3 requests: their provider told no tokens." in lines
    assert any("no price is known" in line for line in lines)


@pytest.mark.parametrize(("verb", "name"), [("daily", "date"), ("monthly", "month"), ("key", "key"), ("model", "model")])
def test_for_programs(spender: Person, verb: str, name: str) -> None:
    told = spender.asks("usage", verb)
    assert all(name in group for group in told[verb])
    assert told["totals"]["totalTokens"] == 2100


def test_the_names_are_those_of_ccusage(spender: Person) -> None:
    told = spender.asks("usage", "session")
    wanted = {"sessionId", "inputTokens", "outputTokens", "cacheCreationTokens", "cacheReadTokens", "totalTokens", "totalCost"}
    first = told["sessions"][0]
    assert wanted | {"modelsUsed", "modelBreakdowns"} <= first.keys()
    assert first["lastActivity"] == "2026-05-28T20:26:40.000Z"


def test_a_span_of_days(spender: Person) -> None:
    assert spender.asks("usage", "--since", "2026-05-27")["totals"]["requests"] == 2
    assert spender.asks("usage", "--until", "20260526")["totals"]["requests"] == 1
    assert spender.types("usage", "--since", "2030-01-01") == 0
    assert spender.said.strip() == "Nothing was used in that time."
    assert spender.types("usage", "--since", "yesterday") == 2
    assert "2026-01-31" in spender.warned


def test_as_a_table_for_others(spender: Person) -> None:
    assert spender.types("usage", "--by", "key", "--csv") == 0
    found = list(csv.DictReader(io.StringIO(spender.said)))
    assert [one["key"] for one in found] == ["glm.k1", "glm.k2"]
    assert found[0]["totalCost"] == "0.5"
    assert spender.types("usage", "--json", "--csv") == 2
    assert "which of the two?" in spender.said + spender.warned


def test_a_file_that_is_no_ledger(spender: Person) -> None:
    path = spender.home / ".routecodex" / "usage.sqlite"
    for one in path.parent.glob("usage.sqlite*"):
        one.unlink()
    path.mkdir()
    assert spender.types("usage") == 1
    assert "cannot be read" in spender.warned
