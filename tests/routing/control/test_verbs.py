"""The table of what a server may be asked: each verb answers, and a wrong question changes nothing."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from routecodex.routing.control.verbs import VERBS, BadQuestion, Served, fingerprint, verb_of
from routecodex.routing.errors import RouteCodexError
from routecodex.routing.router.health import Fault
from routecodex.routing.sessions.state import EMPTY, Sticky
from routecodex.routing.sessions.store import SessionKey
from routecodex.routing.tags.told import Went
from routecodex.routing.values import JsonObject, ProviderError, Target
from tests.routing.house import House


@pytest.fixture
def served(tmp_path: Path) -> Served:
    return Served("a", 7, (("127.0.0.1", 8080),), "c.yaml", tmp_path / "sessions", House(tmp_path).desk, {"KEY": "sk-of-mine"})


def ask(served: Served, verb: str, **given: object) -> JsonObject:
    said = verb_of({"verb": verb}).run(served, given)
    json.dumps(said)
    assert "secret" not in str(said)
    return said


@pytest.mark.parametrize("verb", ["status", "routing", "models", "sessions", "reminders", "line"])
def test_what_only_looks_needs_nothing_more(served: Served, verb: str) -> None:
    assert ask(served, verb)["server"] == "a"
    assert not VERBS[verb].changes


def test_a_store_that_is_gone_is_told_to_each_person(served: Served) -> None:
    gone = "The sessions' store redis://x:6379/0 cannot be reached (no answer in time)"
    served = replace(served, desk=dataclasses.replace(served.desk, ill=lambda: gone))
    assert [ask(replace(served, person=person), "status")["warnings"] for person in (None, "bob")] == [[gone]] * 2


@pytest.mark.parametrize("verb", ["", "rm", None, 7, "Status"])
def test_no_such_verb(verb: object) -> None:
    with pytest.raises(BadQuestion):
        verb_of({"verb": verb})


@pytest.mark.parametrize(
    "orders", [None, [], "sticky", [["sticky"]], [["rm", "glm"]], [["disable", 7]], [["disable", "glm", "x"]]]
)
def test_odd_orders_change_nothing(served: Served, orders: object) -> None:
    with pytest.raises(RouteCodexError):
        ask(served, "set routing", orders=orders)
    assert served.desk.overlay.state == EMPTY


def test_trying_changes_nothing_and_says_what_would_be(served: Served) -> None:
    tried = ask(served, "set routing", orders=[["disable", "glm"]], **{"try": True})
    assert served.desk.overlay.state == EMPTY
    assert ask(served, "set routing", orders=[["disable", "glm"]]) == tried
    assert served.desk.overlay.state.disabled_providers == ("glm",)


def test_a_sticky_target_that_cannot_be_used_is_told(served: Served) -> None:
    said = ask(served, "set routing", orders=[["sticky", "glm.glm-4.7"], ["disable", "glm.1"]])
    assert said["notes"] == ["Every key of glm.glm-4.7 is off or disabled: the sticky target is passed over."]
    ask(served, "set routing", orders=[["clear", ""], ["sticky", "glm.glm-4.7"]])
    assert ask(served, "routing")["notes"] == []
    desk = served.desk
    desk.learned.health.failed(Target("glm", "key1", "glm-4.7"), ProviderError(401, "no"), desk.clocks.monotonic(), wall=0.0)
    assert "rests now" in str(ask(served, "routing")["notes"])
    assert Fault.AUTH.value in str(ask(served, "status")["keys"])
    assert Fault.AUTH.value in str(ask(served, "models", provider="glm")["providers"])


@pytest.mark.parametrize("left, told", [(0.2, "1 s"), (1.4, "1 s"), (1.6, "2 s")])
def test_how_long_a_key_rests(served: Served, left: float, told: str) -> None:
    desk = served.desk
    error = ProviderError(429, retry_after_s=left)
    desk.learned.health.failed(Target("glm", "key1", "glm-4.7"), error, desk.clocks.monotonic(), wall=0.0)
    assert [line for line in ask(served, "status")["keys"] if "rests" in line] == [f"glm.key1 glm-4.7 rests for {told}"]


def test_the_line_knows_where_a_session_went(served: Served) -> None:
    key = SessionKey("session", "s")
    assert ask(served, "line", session="s")["known"] is False
    served.desk.learned.answered.put(key, Target("glm", "key1", "glm-4.7"))
    served.desk.store.update(key, lambda state: state.with_(sticky=Sticky("glm")))
    said = ask(served, "line", session="s")
    assert (said["provider"], said["key"], said["model"], said["session"]) == (
        "glm",
        "key1",
        "glm-4.7",
        ["Sticky: glm (all keys)."],
    )


def test_values_are_compared_and_never_told(served: Served) -> None:
    asked = {"KEY": fingerprint("sk-of-mine"), "OTHER": fingerprint("x")}
    said = ask(served, "compare", variables=asked)
    assert said["other"] == ["OTHER"]
    assert ask(served, "compare", variables={"KEY": fingerprint("another")})["other"] == ["KEY"]
    assert "sk-of" not in str(said) + repr(served)


def test_sessions_are_asked_for_and_erased_by_their_id(served: Served) -> None:
    served.desk.store.update(SessionKey("session", "s-1"), lambda state: state.with_(allowed=("glm",)))
    assert ask(served, "session", id="s-")["id"] == "s-1"
    assert ask(served, "clear session", id="s-1")["erased"] == ["session-s-1.json"]
    assert ask(served, "sessions")["sessions"] == []
    with pytest.raises(RouteCodexError):
        ask(served, "session", id="s-1")
    assert ask(served, "clear sessions")["erased"] == []


def test_why_is_not_asked_of_those_who_serve_the_session_too(served: Served) -> None:
    served.desk.learned.pins.changed = lambda key, target: None
    for id in ("", "abc"):
        with pytest.raises(BadQuestion, match="is remembered by this process; others may serve it, too"):
            ask(served, "why", id=id)


def test_why_the_last_call_of_a_session_went_where_it_went(served: Served) -> None:
    with pytest.raises(BadQuestion, match="no call is remembered"):
        ask(served, "why")
    learned = served.desk.learned
    for id in ("abc", "abd"):
        learned.went.put(SessionKey("session", id), Went(1.0, f"glm · {id}", outcome="answered"))
    learned.losses.put(SessionKey("session", "abd"), "the cache was lost: …")
    assert ask(served, "why")["session"] == "abd", "the newest"
    said = ask(served, "why", id="abd")
    assert "glm · abd" in str(said["lines"])
    assert "Before: the cache was lost" in str(said["lines"])
    with pytest.raises(BadQuestion, match="2 sessions begin with"):
        ask(served, "why", id="ab")
    with pytest.raises(BadQuestion, match="no call of a session"):
        ask(served, "why", id="x")
