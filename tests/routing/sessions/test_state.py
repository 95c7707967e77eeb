"""What a session remembers, as a value."""

from __future__ import annotations

import pytest

from routecodex.routing.sessions.state import EMPTY, Obeyed, SessionState, Sticky, StopMessage

IN_FORCE = [
    {"sticky": Sticky("glm")},
    {"allowed": ("glm",)},
    {"disabled_providers": ("glm",)},
    {"disabled_keys": (("glm", "key1"),)},
    {"disabled_models": (("glm", "glm-4.7"),)},
    {"enabled": (("glm", "", ""),)},
    {"stop": StopMessage("go on", 3)},
]
NOT_IN_FORCE = [{"stop_cleared_at_ms": 1}, {"stop_last_used_at_ms": 1}]


def test_nothing_is_in_force_at_first() -> None:
    assert SessionState() == EMPTY
    assert EMPTY.idle
    assert EMPTY.empty


@pytest.mark.parametrize("changes", IN_FORCE, ids=lambda changes: next(iter(changes)))
def test_s05_each_thing_in_force_keeps_the_state(changes: dict[str, object]) -> None:
    state = EMPTY.with_(**changes)
    assert not state.idle
    assert not state.empty


@pytest.mark.parametrize("changes", NOT_IN_FORCE, ids=lambda changes: next(iter(changes)))
def test_s05_timestamps_alone_need_no_file(changes: dict[str, object]) -> None:
    assert EMPTY.with_(**changes).empty


def test_p22_a_used_up_state_is_kept_for_the_message_that_it_obeyed() -> None:
    for state in (EMPTY.with_(obeyed=(Obeyed("place", "words", "open"),)), EMPTY.with_(obeyed_before="0:abc")):
        assert state.idle
        assert not state.empty


def test_every_field_is_looked_at() -> None:
    looked_at = {**{name: value for changes in (*IN_FORCE, *NOT_IN_FORCE) for name, value in changes.items()}}
    looked_at |= {"obeyed": (Obeyed("place", "words", "open"),), "obeyed_before": "0:abc"}
    for_people = {"client", "begins"}
    assert {*looked_at, *for_people} == {*SessionState.__struct_fields__}
    assert all(EMPTY.with_(**{name: value}) != EMPTY for name, value in looked_at.items())
    assert all(EMPTY.with_(**{name: "x"}) == EMPTY for name in for_people)


def test_with_makes_a_new_one() -> None:
    state = EMPTY.with_(allowed=("glm",))
    assert EMPTY.allowed == ()
    assert state.with_(sticky=Sticky("x")).allowed == ("glm",)
    with pytest.raises(AttributeError):
        state.allowed = ()  # type: ignore[misc]


@pytest.mark.parametrize(
    "sticky, text",
    [
        (Sticky("glm"), "glm"),
        (Sticky("glm", None, "glm-4.7"), "glm.glm-4.7"),
        (Sticky("glm", "key1", "glm-4.7"), "glm[key1].glm-4.7"),
        (Sticky("glm", "key1"), "glm[key1]"),
    ],
)
def test_a_sticky_is_written_as_a_tag_names_it(sticky: Sticky, text: str) -> None:
    assert str(sticky) == text
