"""M21: time and sameness end a loop."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from routecodex.routing.dialects.said import Said
from routecodex.routing.stop_message.guards import WARN_AT, Loop, fingerprint
from routecodex.routing.values import ToolCall, Usage

SAID = Said("done", (), (), "stop", Usage(), "id", ())
CALL = ToolCall("a", "clock", '{"action": "list", "n": 1}')


def ends(loop: Loop, now: float = 0.0) -> str:
    return loop.ends(now, max_total_s=900.0, identical_rounds=10)


def test_m21_five_identical_rounds_warn_ten_end() -> None:
    loop, warned, ended = Loop(), [], []
    for count in range(1, 13):
        loop = loop.after(replace(SAID, text=f" done{' ' * count}", id=str(count)), 1.0)
        warned += [count] if loop.warns else []
        ended += [count] if ends(loop, 1.0) else []
    assert (warned, ended) == ([WARN_AT], [10, 11, 12])
    assert WARN_AT == 5


def test_another_round_between_begins_anew() -> None:
    loop = Loop()
    for text in ["a", "a", "b", "a"]:
        loop = loop.after(replace(SAID, text=text), 1.0)
    assert loop.same == 1


def test_m21_time_counts_from_the_end_of_the_first_round() -> None:
    loop = Loop().after(SAID, 5000.0)
    assert ends(loop, 5900.0) == ""
    loop = loop.after(replace(SAID, text="x"), 5900.5)
    assert ends(loop, 5900.5) == "900 s are over"


@pytest.mark.parametrize(
    "one,other,same",
    [
        (SAID, replace(SAID, text="done\n", id="other", usage=Usage(1, 2)), True),
        (SAID, replace(SAID, text="Done"), False),
        (
            replace(SAID, calls=(CALL,)),
            replace(SAID, calls=(replace(CALL, id="b", arguments='{"n":1.0,"action":"list"}'),)),
            True,
        ),
        (replace(SAID, calls=(CALL,)), replace(SAID, calls=(replace(CALL, arguments='{"n":2,"action":"list"}'),)), False),
        (replace(SAID, calls=(CALL,)), replace(SAID, calls=(CALL, CALL)), False),
        (replace(SAID, calls=(CALL,)), SAID, False),
    ],
)
def test_what_makes_rounds_identical(one: Said, other: Said, same: bool) -> None:
    assert (fingerprint(one) == fingerprint(other)) is same


def test_hostile_arguments_and_text() -> None:
    deep = "[" * 5000 + "]" * 5000
    for text in (deep, "{not json", "\ud800", "", "1e999", "9" * 400):
        assert fingerprint(replace(SAID, text=text, calls=(replace(CALL, arguments=text),)))
