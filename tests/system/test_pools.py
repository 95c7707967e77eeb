"""Pools and their keys: priorities, turns, weights; and what a key that is not well changes for sticky and forced targets."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.rig.behaviour import Behaviour
from tests.rig.provider import FakeProvider
from tests.rig.proxy import SCRIPT, Mitmdump
from tests.system.talk import Talk, configured, host

pytestmark = pytest.mark.system


def log_with(proxy: Mitmdump, words: str) -> str:
    """The log as soon as it holds these words; whatever it holds after two seconds."""
    for _ in range(40):
        if words in proxy.log:
            break
        time.sleep(0.05)
    return proxy.log


def _started(tmp_path: Path, config: str) -> tuple[FakeProvider, Mitmdump]:
    provider = FakeProvider()
    return provider, Mitmdump(script=SCRIPT, config="notices: off\n" + config, upstream=provider, folder=tmp_path)


def _targets(talk: Talk, count: int) -> list[str]:
    """Provider and key of one message after another."""
    found = []
    for number in range(count):
        target = talk.say(f"message {number}").received[-1]
        found.append(str(target.key).removesuffix("-value"))
    return found


def test_v01_priorities_and_a_backup(tmp_path: Path) -> None:
    config = configured(
        {"low": (1, "m"), "high": (1, "m"), "spare": (1, "m")},
        """    default:
      - {id: spare, targets: [spare.m], backup: true, priority: 99}
      - {id: low, targets: [low.m], priority: 10}
      - {id: high, targets: [high.m], priority: 20}
""",
    )
    provider, proxy = _started(tmp_path, config)
    with provider, proxy:
        talk = Talk(provider, proxy)
        assert _targets(talk, 3) == ["high-k1"] * 3
        provider.always(Behaviour(status=402, error="no money"), host="high.example")
        assert _targets(talk, 3) == ["low-k1"] * 3
        provider.always(Behaviour(status=402, error="no money"), host="low.example")
        assert _targets(talk, 3) == ["spare-k1"] * 3
        tried = [host(one) for one in provider.requests]
        assert tried == ["high"] * 4 + ["low"] * 4 + ["spare"] * 3


def test_v02_a_pool_by_priority(tmp_path: Path) -> None:
    config = configured(
        {"first": (2, "m"), "second": (1, "m")},
        "    default:\n      - {id: all, targets: [first.m, second.m], mode: priority}\n",
    )
    provider, proxy = _started(tmp_path, config)
    with provider, proxy:
        talk = Talk(provider, proxy)
        assert _targets(talk, 4) == ["first-k1", "first-k2"] * 2
        provider.always(Behaviour(status=402, error="no money"), key="first-k1-value")
        assert _targets(talk, 3) == ["first-k2"] * 3
        provider.always(Behaviour(status=402, error="no money"), key="first-k2-value")
        assert _targets(talk, 2) == ["second-k1"] * 2


def test_round_robin_of_models_first_then_keys(tmp_path: Path) -> None:
    config = configured({"two": (2, "m"), "one": (1, "m")}, "    default: [two.m, one.m]\n")
    provider, proxy = _started(tmp_path, config)
    with provider, proxy:
        assert _targets(Talk(provider, proxy), 8) == ["two-k1", "one-k1", "two-k2", "one-k1"] * 2


def test_weights(tmp_path: Path) -> None:
    config = configured(
        {"much": (1, "m"), "little": (1, "m")},
        "    default: [much.m, little.m]\n",
        "  loadBalancing: {strategy: weighted, weights: {much: 3, little: 1}}\n",
    )
    provider, proxy = _started(tmp_path, config)
    with provider, proxy:
        found = _targets(Talk(provider, proxy), 8)
        assert (found.count("much-k1"), found.count("little-k1")) == (6, 2)


def test_v04_a_pool_that_rotates_where_all_others_stay(tmp_path: Path) -> None:
    config = configured(
        {"stays": (2, "m"), "turns": (2, "m")},
        """    default: [stays.m]
    web_search:
      - {id: turns, targets: [turns.m], mode: round-robin}
""",
        "  loadBalancing: {strategy: sticky}\n",
    )
    provider, proxy = _started(tmp_path, config)
    with provider, proxy:
        talk = Talk(provider, proxy)
        assert _targets(talk, 3) == ["stays-k1"] * 3
        keys = [talk.say(f"search the web, {number}").key for number in range(4)]
        assert keys == ["turns-k1-value", "turns-k2-value"] * 2


def test_v11_v09_long_context_without_a_pool(tmp_path: Path) -> None:
    config = configured(
        {"plain": (1, "m"), "long": (1, "m")},
        "    default: [plain.m]\n    longcontext: [long.m]\n",
        "  classifier: {longContextThresholdTokens: 500}\n",
    )
    provider, proxy = _started(tmp_path, config)
    with provider, proxy:
        talk = Talk(provider, proxy)
        words = "one two three four " * 200
        assert talk.say(words).target.startswith("long.example/")
        provider.always(Behaviour(status=402, error="no money"), host="long.example")
        heard = talk.say(words)
        assert [host(one) for one in heard.received] == ["long", "plain"]
        assert talk.say(words).target.startswith("plain.example/")


# --- keys that are not well --------------------------------------------------------------------------------------------------


def _sticky_at_home(tmp_path: Path, more: str = "") -> tuple[FakeProvider, Mitmdump]:
    return _started(tmp_path, configured({"glm": (2, "glm-4.7")}, "    default: [origin]\n") + more)


STICKY = {"stickyTarget": {"model": "glm-4.7", "provider": "glm"}}


def test_7_a_failing_key_leaves_the_pool_alone(tmp_path: Path) -> None:
    provider, proxy = _sticky_at_home(tmp_path)
    with provider, proxy:
        talk = Talk(provider, proxy)
        first = talk.say("<**!glm.glm-4.7**> a", "a").key
        other = ({"glm-k1-value", "glm-k2-value"} - {first}).pop()
        provider.always(Behaviour(status=402, error="no money"), key=other)
        assert [one.key for one in talk.say("b").received] == [other, first]
        assert [talk.say(f"c{number}").key for number in range(3)] == [first] * 3
        assert talk.state == STICKY


def test_r03_all_keys_rest_for_a_minute_at_most(tmp_path: Path) -> None:
    provider, proxy = _sticky_at_home(tmp_path)
    with provider, proxy:
        talk = Talk(provider, proxy)
        talk.say("<**!glm.glm-4.7**> a", "a")
        rests = Behaviour(status=429, error="slow down", headers=(("retry-after", "30"),))
        provider.always(rests, host="glm.example")
        heard = talk.say("b")
        assert [host(one) for one in heard.received] == ["glm", "glm", "api.anthropic.com"]
        assert talk.say("c").target == talk.home
        assert talk.state == STICKY
        assert "Sticky: glm.glm-4.7 (all keys)." in talk.tell("<**status**>").text


@pytest.mark.parametrize("keep", [False, True], ids=["clear", "keep"])
def test_r05_all_keys_are_spent(tmp_path: Path, keep: bool) -> None:
    provider, proxy = _sticky_at_home(tmp_path, "sticky: {onExhausted: keep}\n" if keep else "")
    with provider, proxy:
        talk = Talk(provider, proxy)
        talk.say("<**!glm.glm-4.7**> a", "a")
        provider.always(Behaviour(status=402, error="no money"), host="glm.example")
        assert [host(one) for one in talk.say("b").received] == ["glm", "glm", "api.anthropic.com"]
        heard = talk.say("c")
        assert heard.target == talk.home
        assert (talk.state or {}) == (STICKY if keep else {})
        after = "cannot be used now and is kept" if keep else "is used up and is forgotten"
        assert f"the sticky target glm.glm-4.7 {after}" in log_with(proxy, "the sticky target")
        cleared = "Sticky glm.glm-4.7 was cleared: none of its keys works any more."
        assert ("Sticky: glm.glm-4.7 (all keys)." if keep else cleared) in talk.tell("<**status**>").text
        assert "was cleared" not in talk.tell("<**clear**>").text
        assert "was cleared" not in talk.tell("<**status**>").text


def test_r12_force_of_a_sick_target(tmp_path: Path) -> None:
    provider, proxy = _sticky_at_home(tmp_path)
    with provider, proxy:
        talk = Talk(provider, proxy)
        provider.always(Behaviour(status=401, error="bad key"), host="glm.example")
        first = talk.say("<**glm.glm-4.7**> a", "a")
        assert first.answer.status == 400
        assert len(first.received) == 2
        assert "glm" in first.text
        again = talk.say("<**glm.glm-4.7**> b", "b")
        assert again.answer.status == 400
        assert again.received == []
        assert again.text.startswith("Requested provider glm is not available (health check failed): glm.")
        assert again.text.endswith(" is down for 10 min (key refused); corrected in the configuration, it is used at once")
        assert talk.say("c").target == talk.home


def test_r12_a_single_key_that_only_cools_down_is_tried_once(tmp_path: Path) -> None:
    """By our own ladder; where its provider said how long, nobody asks it sooner, and the client is told when."""
    provider, proxy = _sticky_at_home(tmp_path, "  health: {rateLimitLadderMs: [30000]}\n")
    with provider, proxy:
        talk = Talk(provider, proxy)
        provider.enqueue(Behaviour(status=429, error="slow down"), key="glm-k1-value")
        first = talk.say("<**glm.k1.glm-4.7**> a", "a")
        assert (first.answer.status, len(first.received)) == (429, 1)
        assert talk.say("<**glm.k1.glm-4.7**> b", "b").target == "glm.example/glm-k1-value/glm-4.7"
        provider.enqueue(Behaviour(status=429, error="slow down", headers=(("retry-after", "30"),)), key="glm-k1-value")
        assert talk.say("<**glm.k1.glm-4.7**> c", "c").answer.status == 429
        told = talk.say("<**glm.k1.glm-4.7**> d", "d")
        assert (told.answer.status, told.received) == (400, [])
        assert "it rests until " in told.text
