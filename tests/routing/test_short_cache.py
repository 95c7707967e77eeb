"""What is short is worked out once; what is long each time, and is gone then."""

from routecodex.routing.short_cache import LONGEST, of_short


def test_short_names_are_kept_and_long_ones_are_not() -> None:
    worked: list[str] = []

    @of_short(2)
    def length(name: str, more: int = 0) -> int:
        """How long it is."""
        worked.append(name)
        return len(name) + more

    short, long = "a" * LONGEST, "b" * (LONGEST + 1)
    assert [length(short), length(short), length(long), length(long)] == [LONGEST, LONGEST, LONGEST + 1, LONGEST + 1]
    assert worked == [short, long, long]
    assert length(short, 1) == LONGEST + 1
    assert length.__doc__ == "How long it is."
