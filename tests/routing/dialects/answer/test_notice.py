"""What we tell a person before an answer's first text: all else of the answer stays as it is."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from routecodex.routing.dialects.answer.machine import Round
from tests.routing.dialects.answer import rounds
from tests.routing.dialects.answer.rounds import Spoken, spoken
from tests.routing.dialects.answer.talks import WAYS, Way, answer_for, read

NOTICE = "[RouteCodex: glm is off.]\n\n"
THOUGHT, TOOL, OWN = ("thinking", "let me see"), ("tool", '{"a": 1}'), ("own", '{"action": "now"}')
CASES: dict[str, list[Spoken]] = {
    "text": [spoken(("text", "Grüße 😀 one"))],
    "thinking, text, a call": [spoken(THOUGHT, ("text", "one"), TOOL)],
    "two rounds": [spoken(THOUGHT, ("text", "one")), spoken(THOUGHT, ("text", "two"))],
    "only ours, then text": [spoken(OWN), spoken(("text", "it is noon"), TOOL)],
    "only a call": [spoken(THOUGHT, TOOL)],
}


@pytest.mark.parametrize("cut", [rounds.whole, rounds.bytewise], ids=["whole", "bytewise"])
@pytest.mark.parametrize("client", WAYS, ids=str)
@pytest.mark.parametrize("provider", WAYS, ids=str)
def test_d31_it_stands_before_the_first_text_and_nothing_else_changes(provider: Way, client: Way, cut: Any) -> None:
    for name, case in CASES.items():
        plain, told_not, said = _drive(provider, client, case, cut, "")
        told, was_told, said_too = _drive(provider, client, case, cut, NOTICE)
        assert (told_not, was_told) == (False, name != "only a call")
        assert told == dataclasses.replace(plain, text=NOTICE + plain.text if was_told else plain.text), name
        assert said_too == said, "the history knows nothing of it"


@pytest.mark.parametrize("client", WAYS, ids=str)
def test_where_nobody_takes_part(client: Way) -> None:
    case = CASES["thinking, text, a call"]
    plain, _, _ = _drive(client, client, case, rounds.bytewise, "", quiet=True)
    told, was_told, _ = _drive(client, client, case, rounds.bytewise, NOTICE, quiet=True)
    assert was_told
    assert told == dataclasses.replace(plain, text=NOTICE + plain.text)


def _drive(
    provider: Way, client: Way, case: list[Spoken], cut: Any, notice: str, *, quiet: bool = False
) -> tuple[Any, bool, Any]:
    answer = answer_for(client, quiet=quiet)
    out: list[bytes] = []
    said = []
    for number, round_ in enumerate(case, 1):
        answer.begin_round(Round(provider.dialect, "acme"), notice=notice)
        out += [answer.feed(b""), *(answer.feed(piece) for piece in cut(provider.written(round_, number)))]
        said.append(answer.end_round())
    out += answer.finish()
    return dataclasses.replace(read(client, b"".join(out)), alive=0), answer.notice_sent, said
