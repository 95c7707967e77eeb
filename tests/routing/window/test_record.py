"""What is written down about a flow: plain, small, and without credentials."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from routecodex.routing.dialects.translation.neutral import Tokens
from routecodex.routing.usage.spending import Paid
from routecodex.routing.values import Dialect
from routecodex.routing.window import record
from tests.routing.house import House, Tool

_PAID = Paid(Tokens(1_000_000, 20_000, cached=900_000, written=50_000, reasoning=10_000), 12.345678, 2)


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


@pytest.mark.parametrize("dialect", Dialect)
def test_of_a_round(house: House, dialect: Dialect) -> None:
    sent = Tool(house, dialect).say("<**!glm.glm-4.7**> explain sk-glm-key1-secret to me")
    told = record.of_round(sent.plan, "first")
    assert told["target"] == "glm.key1.glm-4.7"
    assert told["model"] == "glm-4.7"
    assert told["round"] == "first"
    assert "parent" not in told
    assert str(told["typed"]).startswith("<**!glm.glm-4.7**> explain")
    assert "<**" not in str(told["sent"])
    assert "sk-glm-key1-secret" not in json.dumps(told)
    assert json.loads(json.dumps(told)) == told


def test_however_much_was_typed_it_stays_small(house: House) -> None:
    sent = Tool(house, Dialect.MESSAGES).say("<**!glm.glm-4.7**> " + "x" * 50_000)
    sent.plan.faults += [f"glm.key1 failed: {'why ' * 200}"] * 50
    begun = record.of_round(sent.plan, "round 2", parent="p")
    told = {**begun, **record.of_end(sent.plan, rounds=3, paid=_PAID, words=("w" * 99, "end_turn"))}
    assert len(json.dumps(told)) <= 4096
    assert (told["rounds"], told["parent"]) == (3, "p")
    assert told["usage"] == {"in": 1_000_000, "cached": 900_000, "written": 50_000, "out": 20_000, "reasoning": 10_000}
    assert (told["dollars"], told["unpriced"], told["stop"]) == (12.345678, 2, ["w" * 59 + "…", "end_turn"])
    assert len(json.dumps(told | record.of_loss("the cache was lost: " * 99))) <= 4096


@pytest.mark.parametrize("letter", ["x", "é", "漢", "🙂", '"', "\\", "\x01", "\n", "\ud800"], ids=ascii)
def test_in_every_script_it_stays_small(house: House, letter: str) -> None:
    """Whoever sends a call chooses all of these."""
    plan = Tool(house, Dialect.MESSAGES).say("<**!glm.glm-4.7**> x").plan
    much = letter * 5_000
    plan.typed = plan.session = plan.client = plan.asked = plan.left_out = much
    plan.faults += [f"glm.key1: {much}"] * 50
    plan.unsaid += [much] * 50
    told = record.of_round(plan, "round 2", parent="p" * 36)
    told |= record.of_end(plan, rounds=3, paid=_PAID, words=(much, much)) | record.of_loss(much) | record.of_error(much)
    told |= {"held": "was", "leg": "provider"}
    assert len(json.dumps(told, ensure_ascii=False).encode("utf-8", "replace")) <= 4096
    assert {"call", "session", "round", "parent", "typed", "target", "why", "attempts", "usage", "leftOut"} <= set(told)
    own = record.of_reply(much, {"call": "c", "session": much, "typed": much}, Dialect.CHAT)
    assert len(json.dumps(own, ensure_ascii=False).encode("utf-8", "replace")) <= 4096
    assert json.dumps(told | own, ensure_ascii=False).encode(), "mitmproxy writes it as UTF-8"


def test_of_an_answer_of_our_own() -> None:
    about = {"call": "c", "session": "s" * 500, "client": "codex", "asked": "gpt-5", "typed": "<**help**>"}
    told = record.of_reply("answered by RouteCodex", about, Dialect.RESPONSES)
    assert (told["target"], told["why"], told["spoken"]) == ("RouteCodex", "answered by RouteCodex", "openai-responses")
    assert len(str(told["session"])) == 100
