"""From a turn's rounds to rows and to the flight recorder."""

from __future__ import annotations

from routecodex.routing.dialects.translation.neutral import Tokens
from routecodex.routing.usage.spending import Asker, Cost, spent, tokens_of
from routecodex.routing.values import Dialect, Target

GLM = Target("glm", "k1", "glm-4.7")
ASKER = Asker("call", "s", "claude-code", "claude-opus", b"{}", Dialect.MESSAGES, steps=True)


def cost(tokens: Tokens | None, target: Target = GLM) -> Cost:
    return Cost(target, tokens, b"{}", Dialect.CHAT, "https://open.bigmodel.cn/api", 1_780_000_000.5, "force")


def test_each_round_is_a_row_with_its_own_counts() -> None:
    counts = [Tokens(1000, 10, cached=900), None, Tokens(1100, 20)]
    found = list(spent([cost(tokens) for tokens in counts], ASKER, failed=True, lost=print))
    assert [tokens_of(one.row) for one in found] == counts
    assert [(one.row.round, one.row.model, one.row.asked) for one in found] == [(n, "glm-4.7", "claude-opus") for n in (1, 2, 3)]
    assert found[0].row.time_ms == 1_780_000_000_500
    assert [one.flown is not None for one in found] == [True, False, False], "the others begin as the first does"
    assert found[0].flown is not None
    assert found[0].flown.failed


def test_an_attempt_that_failed_counts_where_it_was_paid() -> None:
    """And the recorder compares the call that was answered."""
    other = Target("glm", "k2", "glm-4.7")
    costs = [cost(Tokens(1000, 1))._replace(answered=False, sent=b""), cost(Tokens(1000, 10), other)]
    failed, answered = spent(costs, ASKER, failed=True, lost=print)
    assert [(one.row.key, one.row.output) for one in (failed, answered)] == [("k1", 1), ("k2", 10)]
    assert failed.flown is None
    assert answered.flown is not None
    assert answered.flown.target == other


def test_where_the_provider_takes_any_model_it_is_the_clients() -> None:
    (one,) = spent([cost(None, Target("origin", "client", ""))], ASKER, failed=False, lost=print)
    assert one.row.model == "claude-opus"


def test_what_is_no_step_of_a_conversation_is_not_compared() -> None:
    asker = Asker("call", "s", "claude-code", "claude-opus", b"{}", Dialect.MESSAGES, steps=False)
    (one,) = spent([cost(Tokens(1, 1))], asker, failed=False, lost=print)
    assert one.flown is None
