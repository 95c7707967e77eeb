from __future__ import annotations

import pytest

from routecodex.routing.sessions.store import SessionKey
from routecodex.routing.sessions.whose import is_of, owned, parted

UUID = "0b5e2c1e-3a52-4a7e-9d0c-5a0d4f7b1c11"


@pytest.mark.parametrize(
    ("user", "id"),
    [
        ("", "x"),
        ("", "@x"),
        ("", "@alice:x"),
        ("alice", "x"),
        ("alice", "@bob:x"),
        ("a:b", "c"),
        ("a", "b:c"),
        ("", "@:x"),
        ("é/%", ""),
    ],
)
def test_an_owned_id_is_one_persons(user: str, id: str) -> None:
    assert parted(owned(user, id)) == (user, id)
    assert is_of(user, owned(user, id))
    assert not is_of("bob", owned(user, id))


def test_ids_without_a_user_are_what_they_were() -> None:
    assert owned("", UUID) == UUID
    assert SessionKey("session", owned("", UUID)).place.file == f"session-{UUID}.json"
