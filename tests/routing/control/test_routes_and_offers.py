"""The routing table in words."""

from __future__ import annotations

from routecodex.routing.config import read
from routecodex.routing.control.offers import Offer, read_offer
from routecodex.routing.control.routes import provider_lines, route_lines, route_table
from routecodex.routing.values import Dialect
from tests.routing.house import config_text

ROUTES = (
    "default: [origin], coding: [{id: first, targets: [openai.gpt-4, glm.glm-4.7]},"
    " {id: reserve, targets: [openai.backup.gpt-4], backup: true}], background: [echo]"
)


def test_pools_stand_in_the_order_in_which_they_are_tried() -> None:
    registry = read(config_text(ROUTES), name="c", env={}).registry
    assert route_lines(registry)[:4] == [
        "default     origin: where the tool was going, with its own credential",
        "coding      openai.gpt-4, glm.glm-4.7 (round-robin)",
        "            then openai.gpt-4 [backup]",
        "background  echo: answered here",
    ]
    assert "thinking" in route_lines(registry)[-1]
    assert "subagent" not in route_lines(registry)[-1], "sorted like any other where it has no route"
    assert [pool["id"] for pool in route_table(registry)["coding"]] == ["first", "reserve"]  # type: ignore[index,union-attr]
    assert provider_lines(registry)[1] == "openai: gpt-4, gpt-5.2 · keys primary, backup, third"


def test_an_offer_says_what_is_missing_and_what_is_more() -> None:
    offer = Offer(("a", "b"), ("b", "c"))
    assert (offer.missing, offer.further) == (("a",), ("c",))


def test_a_list_of_models_is_read_as_its_dialect_writes_it() -> None:
    assert read_offer(Dialect.GEMINI, b'{"models": [{"name": "models/g"}, {"id": "x"}]}') == ("g",)
    assert read_offer(Dialect.CHAT, b'{"data": [{"id": "a"}, {"id": "a"}, 3, {"id": 7}]}') == ("a",)
    for nothing in (b"", b"[]", b"{}", b'{"data": {}}'):
        assert read_offer(Dialect.MESSAGES, nothing) is None
