"""A state as JSON, and back from whatever a file may hold."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecodex.routing.sessions.record import from_json, to_json
from routecodex.routing.sessions.salvage import salvage
from routecodex.routing.sessions.state import EMPTY, Obeyed, SessionState, Sticky, StopMessage

FULL = SessionState(
    sticky=Sticky("glm", "primary", "glm-4.7"),
    allowed=("glm", "openai"),
    disabled_providers=("x",),
    disabled_keys=(("openai", "primary"), ("openai", "backup"), ("glm", "a"), ("openai", "third")),
    disabled_models=(("glm", "gpt-4"),),
    stop=StopMessage("go on", 3, used=1, updated_at_ms=5, last_used_at_ms=6),
    stop_cleared_at_ms=4,
    stop_last_used_at_ms=3,
    obeyed=(Obeyed("place", "words", "ended"), Obeyed("another", "words", "open")),
    obeyed_before="0123",
)


def test_the_published_names() -> None:
    assert to_json(FULL) == {
        "version": 1,
        "state": {
            "obeyedFingerprint": "0123",
            "obeyedMessages": [["place", "words", "ended"], ["another", "words", "open"]],
            "stickyTarget": {"provider": "glm", "keyAlias": "primary", "model": "glm-4.7"},
            "allowedProviders": ["glm", "openai"],
            "disabledProviders": ["x"],
            "disabledKeys": [
                {"provider": "openai", "keys": ["primary", "backup"]},
                {"provider": "glm", "keys": ["a"]},
                {"provider": "openai", "keys": ["third"]},
            ],
            "disabledModels": [{"provider": "glm", "models": ["gpt-4"]}],
            "stopMessageClearedAt": 4,
            "stopMessageLastUsedAt": 6,
            "stopMessageEarlierUsedAt": 3,
            "stopMessageUsed": 1,
            "stopMessageMaxRepeats": 3,
            "stopMessageUpdatedAt": 5,
            "stopMessageText": "go on",
        },
    }


def test_unset_fields_are_left_out() -> None:
    assert to_json(EMPTY) == {"version": 1, "state": {}}


NAMES = st.text(min_size=1, max_size=5)
PAIRS = st.lists(st.tuples(NAMES, NAMES), max_size=4).map(tuple)
TIMES = st.integers(0, 2**60)
STATES = st.builds(
    SessionState,
    sticky=st.none() | st.builds(Sticky, NAMES, st.none() | NAMES, st.none() | NAMES),
    allowed=st.lists(NAMES, max_size=3).map(tuple),
    disabled_providers=st.lists(NAMES, max_size=3).map(tuple),
    disabled_keys=PAIRS,
    disabled_models=PAIRS,
    stop=st.none() | st.builds(StopMessage, NAMES, st.integers(1, 99), st.integers(0, 99), TIMES, st.none() | TIMES),
    stop_cleared_at_ms=st.none() | TIMES,
    stop_last_used_at_ms=st.none() | TIMES,
    obeyed=st.lists(st.builds(Obeyed, NAMES, NAMES, st.sampled_from(["open", "ended", "refused"])), max_size=3).map(tuple),
    obeyed_before=st.none() | NAMES,
)


@given(STATES)
def test_what_is_written_is_read(state: SessionState) -> None:
    assert from_json(json.loads(json.dumps(to_json(state)))) == state


@pytest.mark.parametrize(
    "fields, state",
    [
        pytest.param(
            {"disabledKeys": [{"provider": "p", "keys": ["a", 1, True, -1, 1.5, None]}]},
            {"disabled_keys": (("p", "a"), ("p", "1"))},
            id="key numbers",
        ),
        pytest.param({"disabledKeys": "x", "disabledModels": [7, {"provider": 3}]}, {}, id="wrong types"),
        pytest.param({"stickyTarget": {"provider": "p", "keyAlias": 2}}, {"sticky": Sticky("p", "2")}, id="sticky key number"),
        pytest.param({"stickyTarget": {"model": "m"}}, {}, id="sticky without a provider"),
        pytest.param({"forcedTarget": {"provider": "p"}, "preferTarget": {}, "x": 1}, {}, id="unknown fields"),
        pytest.param({"stopMessageText": "t"}, {}, id="stopMessage without a limit"),
        pytest.param({"stopMessageText": "t", "stopMessageMaxRepeats": True}, {}, id="limit of a wrong type"),
        pytest.param({"stopMessageText": "t", "stopMessageMaxRepeats": 3.0}, {"stop": StopMessage("t", 3)}, id="whole float"),
        pytest.param(
            {"stopMessageText": "t", "stopMessageMaxRepeats": 3, "stopMessageUsed": -1},
            {"stop": StopMessage("t", 3)},
            id="negative",
        ),
        pytest.param({"stopMessageLastUsedAt": 9}, {"stop_last_used_at_ms": 9}, id="after the stopMessage is gone"),
    ],
)
def test_tolerant_reading(fields: dict[str, Any], state: dict[str, Any]) -> None:
    assert from_json({"version": 1, "state": fields}) == EMPTY.with_(**state)
    assert from_json(fields) == EMPTY.with_(**state)


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
        lambda inner: (
            st.lists(inner) | st.dictionaries(st.sampled_from([*to_json(FULL)["state"], "state", "provider", "keys"]), inner)
        ),
        max_leaves=10,
    )
)  # type: ignore[misc]
def test_any_json_gives_a_state(document: object) -> None:
    assert isinstance(from_json(document), SessionState)


@given(st.integers(0, 400), STATES)
def test_a_cut_file_gives_a_beginning_of_the_state(cut: int, state: SessionState) -> None:
    raw = json.dumps(to_json(state)).encode()
    rest = from_json(salvage(raw[: min(cut, len(raw))]))
    assert rest.sticky in (None, state.sticky)
    assert state.allowed[: len(rest.allowed)] == rest.allowed
    assert state.disabled_keys[: len(rest.disabled_keys)] == rest.disabled_keys
    assert rest.stop in (None, state.stop)
