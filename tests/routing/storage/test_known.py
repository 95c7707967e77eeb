"""What is known of shelves elsewhere: folded from what was heard, and bounded."""

from __future__ import annotations

from collections.abc import Sequence

from routecodex.routing.storage.contract import NEVER, Found, Kind
from routecodex.routing.storage.known import Known


def fold(before: str, entries: Sequence[tuple[str, bytes]]) -> str:
    return before + "".join(entry.decode() for _, entry in entries)


def known(most: int = 3) -> Known[str]:
    return Known(Kind.MEMO, "", fold, most=most, size=len)


def found(number: int, *entries: str, born: str = "b", whole: bool = False) -> Found:
    return Found((born, number), tuple(("", entry.encode()) for entry in entries), whole)


def test_what_is_newer_joins_what_is_known() -> None:
    shelf = known()
    assert shelf.wanted("a") == ((Kind.MEMO, "a"), NEVER)
    shelf.heard("a", found(1, "x", whole=True))
    shelf.heard("a", found(3, "y", "z"))
    assert (shelf.get("a"), shelf.version("a")) == ("xyz", ("b", 3))
    shelf.heard("a", found(3))
    assert shelf.get("a") == "xyz", "nothing is newer"


def test_another_shelf_of_that_name_makes_void_what_was_known() -> None:
    shelf = known()
    shelf.heard("a", found(1, "x", whole=True))
    shelf.heard("a", found(1, "y", born="c", whole=True))
    assert shelf.get("a") == "y"
    shelf.heard("a", Found(NEVER, (), whole=True))
    assert (shelf.get("a"), shelf.version("a")) == ("", NEVER)


def test_it_is_bounded_by_number_and_size() -> None:
    shelf = known()
    for name in "abcd":
        shelf.heard(name, found(1, name, whole=True))
    shelf.get("b")
    shelf.heard("e", found(1, "e", whole=True))
    assert [shelf.get(name) for name in "abcde"] == ["", "b", "", "d", "e"]
    shelf.heard("f", found(1, "f" * (70 << 20), whole=True))
    assert [name for name in "abcdef" if shelf.get(name)] == ["f"]
