"""What a person is told who asks: values in, lines out."""

from __future__ import annotations

from msgspec.structs import replace

from routecodex.routing.dialects.translation.neutral import Tokens
from routecodex.routing.router.health import Condition, Cooling, Fault, Healthy, Tripped
from routecodex.routing.router.registry import Key, Registry
from routecodex.routing.tags.grammar import Unknown, Unreadable, parse
from routecodex.routing.tags.scan import find_tags
from routecodex.routing.tags.told import Outlook, Went, help_lines, models_lines, outlook_lines, spent_lines, why_lines
from routecodex.routing.usage.prices import Price, Prices, made_on
from routecodex.routing.usage.spending import Bill
from routecodex.routing.values import Target
from tests.routing.tags.config_a import REGISTRY, provider

WELL = Healthy()


def test_every_tag_of_the_help_can_be_read() -> None:
    for span in find_tags("\n".join(help_lines())):
        assert not any(isinstance(tag, Unknown | Unreadable) for tag in parse(span.body)), span.body


def test_a_model_is_as_its_best_key() -> None:
    conditions: dict[str, Condition] = {}
    registry = Registry({"p": provider("p", ["a", "b"], ["m", "longer-name"])}, {})

    def lines() -> list[str]:
        return models_lines(registry, "p", lambda target: conditions.get(target.key, WELL), 100.0)[2:-1]

    assert lines() == ["<**!p.m**>            ready", "<**!p.longer-name**>  ready"]
    conditions["a"] = Cooling(340.0, Fault.RATE)
    assert lines()[0].endswith("ready (1 of 2 keys)")
    conditions["b"] = Tripped(700.0, Fault.AUTH)
    assert lines()[0].endswith("resting 4 min (429)")
    conditions["a"] = Tripped(820.0, Fault.QUOTA)
    assert lines()[0].endswith("down for 10 min (key refused)")
    off = replace(registry.providers["p"], keys=(Key("a", 1, off=True, why="P_KEY is not set (x.yaml:3); set it and restart"),))
    registry = Registry({"p": off}, {})
    assert lines()[0].endswith("off: P_KEY is not set (x.yaml:3); set it and restart")
    registry = Registry({"p": replace(off, enabled=False, why="enabled: false (x.yaml:2)")}, {})
    assert lines()[0].endswith("off: enabled: false (x.yaml:2)")


def test_long_lists_are_cut_and_say_where_the_rest_is() -> None:
    many = {f"p{number}": provider(f"p{number}", ["k"], [f"m{model}" for model in range(50)]) for number in range(50)}
    registry = Registry(many, {})
    every = models_lines(registry, None, lambda target: WELL, 0.0)
    assert len(every) == 3 + 40 * 4
    assert "… and 47 more: <**models:p0**>" in every
    one = models_lines(registry, "p0", lambda target: WELL, 0.0)
    assert (len(one), one[-2]) == (3 + 41, "… and 10 more")
    assert len(outlook_lines(Outlook(providers=tuple(many.values())))) == 41


def test_a_key_that_rests_for_some_of_its_models() -> None:
    def health(target: Target) -> Condition:
        return Cooling(30.0, Fault.SERVER) if (target.key, target.model) == ("primary", "gpt-4") else WELL

    lines = outlook_lines(Outlook(providers=tuple(REGISTRY.providers.values()), health=health, now=0.0))
    assert "openai: primary resting 30 s (5xx) for gpt-4, backup ready, third ready." in lines
    assert not any(line.startswith(("origin", "echo")) for line in lines)


def test_many_keys_are_counted_and_those_named_that_are_not_ready() -> None:
    few, many = (
        provider("few", [f"k{number}" for number in range(8)], ["m"]),
        provider("many", [f"k{n}" for n in range(100)], ["m"]),
    )
    resting: set[str] = set()

    def lines() -> list[str]:
        def health(target: Target) -> Condition:
            return Cooling(5.0, Fault.RATE) if target.key in resting else WELL

        return outlook_lines(Outlook(providers=(few, many), health=health))

    assert lines() == [f"few: {', '.join(f'k{number} ready' for number in range(8))}.", "many: 100 of 100 keys ready."]
    resting.update(("k9", "k30"))
    assert lines()[1] == "many: 98 of 100 keys ready, k9 resting 5 s (429), k30 resting 5 s (429)."
    resting.update(f"k{number}" for number in range(50, 60))
    assert lines()[1].startswith("many: 88 of 100 keys ready, k9 resting 5 s (429), k30 resting 5 s (429), k50 resting")
    assert lines()[1].endswith("k55 resting 5 s (429), and 4 more that are not.")


def test_why() -> None:
    assert why_lines(None, 5.0, Prices()) == ["Nothing has been sent in this conversation since the server started."]
    went = Went(1.0, "glm.key1.glm-4.7 · force", tuple(f"a{number}: status 500" for number in range(20)), "answered")
    lines = why_lines(went, 5.0, Prices())
    assert lines[0] == "4 s ago: glm.key1.glm-4.7 · force."
    assert lines[1] == "Attempt 1 failed: a0: status 500."
    assert lines[-2:] == ["… and 8 more.", "It ended so: answered."]
    assert why_lines(Went(5.0, failed="Requested provider glm is disabled"), 5.0, Prices())[-1].endswith("glm is disabled.")


def test_why_says_what_it_cost_and_why_the_cache_was_lost() -> None:
    tokens, url = Tokens(30_000, 20, cached=10_000), "https://x.example"
    bills = (Bill(Target("x", "k", "m"), tokens, url), Bill(Target("y", "k", "m"), None, url))
    prices = Prices({"x.m": Price(1.0, 10.0, cached=0.1)})
    lines = why_lines(Went(1.0, "x", outcome="answered", bills=bills), 2.0, prices, "the cache was lost: …")
    assert lines[-2:] == [
        "It cost (2 rounds): 30,000 in (10,000 from the cache) · 20 out · $0.0212, and 1 more of unknown cost.",
        "Before: the cache was lost: ….",
    ]
    unknown = why_lines(Went(1.0, "x", bills=bills[:1]), 2.0, Prices())
    assert unknown[-1].endswith("· cost unknown.")


def test_what_was_spent_is_said_and_unknown_is_no_zero() -> None:
    totals = {
        "requests": 3,
        "inputTokens": 1000,
        "cacheReadTokens": 9000,
        "outputTokens": 50,
        "totalCost": 0.5,
        "unpricedRequests": 1,
    }
    known, none, prices = spent_lines(totals, {"requests": 0})
    assert known == (
        "This session: 3 requests, 10,000 tokens read (9,000 of them from the cache), 50 written; $0.50, and 1 of unknown cost."
    )
    assert none == "Today, all sessions: nothing was used yet."
    assert prices == f"Prices are of {made_on()}, in US dollars, where the configuration names none."
    assert "; $0.0012, and" in spent_lines(totals | {"totalCost": 0.0012}, {})[0]
    assert "the cost is unknown" in spent_lines({"requests": 1, "totalCost": None, "unpricedRequests": 1}, {})[0]
