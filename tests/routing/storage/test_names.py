"""File names made from ids."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecodex.routing.storage.names import file_name

SAFE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,119}")
RESERVED = {"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(10))}


@pytest.mark.parametrize("prefix", ["session", "conversation"])
@pytest.mark.parametrize("id", ["10eef47d-15c9-42f4-9eaf-4170de80610a", "derived-0a1b", "session_4c9d", "a.b", "x"])
def test_a_plain_id_stays_readable(prefix: str, id: str) -> None:
    assert file_name(prefix, id) == f"{prefix}-{id}.json"


def test_without_a_prefix() -> None:
    assert file_name("", "abc") == "abc.json"


@pytest.mark.parametrize(
    "id", ["ses_e12549e63ffe1oE5cLL7a4J5bB", "a b", "ä", "x" * 200, "con", "CON.txt", ".hidden", "..", "", "ntp-state", "-x"]
)
def test_any_other_id_carries_a_hash(id: str) -> None:
    for prefix in ("", "session"):
        assert re.fullmatch(rf"({prefix}-)?[A-Za-z0-9_.-]*\.h[0-9a-f]{{24}}\.json", file_name(prefix, id))


def test_what_looks_like_a_hashed_name_gets_its_own_hash() -> None:
    taken = file_name("session", "a b")
    assert file_name("session", taken.removeprefix("session-").removesuffix(".json")) != taken


HOSTILE = (
    st.text(max_size=20) | st.text(st.sampled_from("aA./\\:%_-h0 \x00é\ud800"), max_size=12) | st.sampled_from(sorted(RESERVED))
)


@given(HOSTILE, st.sampled_from(["", "session"]))
def test_every_name_is_safe(id: str, prefix: str) -> None:
    name = file_name(prefix, id)
    assert SAFE.fullmatch(name)
    assert name.split(".")[0].lower() not in RESERVED


@given(st.lists(HOSTILE, min_size=2, max_size=8, unique=True))
def test_no_two_ids_share_a_name_even_where_case_does_not_count(ids: list[str]) -> None:
    assert len({file_name("session", id).lower() for id in ids}) == len(ids)
