"""An answer with neither text nor calls is asked for once more."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from routecodex.routing.turn.empty_reply import ONCE_MORE, EmptyReply
from routecodex.routing.turn.plugins import Plugin, Said
from routecodex.routing.values import Kind, ToolCall
from tests.routing.turn.acting import Scene, run, tcall, tsaid, tturn
from tests.routing.turn.test_echoing import Asking

CALL = ToolCall("c1", "bash", "{}")


def asked(answers: Sequence[Said], *others: Plugin) -> list[str]:
    """What was asked for behind each answer."""
    scene = Scene([EmptyReply(), *others])

    async def turn() -> list[str]:
        await scene.begin()
        return [following.suffix for answer in answers if (following := await scene.life.after_request(answer))]

    return run(turn())


@pytest.mark.parametrize(
    "answers, rounds",
    [
        pytest.param([tsaid("")], 1, id="nothing"),
        pytest.param([tsaid(" \n")], 1, id="white space"),
        pytest.param([tsaid("well")], 0, id="a word"),
        pytest.param([tsaid("", [CALL])], 0, id="a call"),
        pytest.param([tsaid(""), tsaid("")], 1, id="nothing twice"),
    ],
)
def test_once(answers: list[Said], rounds: int) -> None:
    assert asked(answers) == [":empty_reply_followup"] * rounds


def test_who_has_asked_for_a_round_looks_after_it() -> None:
    assert asked([tsaid("well"), tsaid("")], Asking("go on")) == [":asking_followup"]


def test_what_the_model_reads() -> None:
    scene = Scene([EmptyReply()])

    async def turn() -> None:
        await scene.begin()
        await scene.life.after_request(tsaid(""))

    run(turn())
    assert scene.texts()[-1] == ONCE_MORE


@pytest.mark.parametrize("kind", list(Kind), ids=str)
def test_only_where_a_person_talks_to_the_model(kind: Kind) -> None:
    assert EmptyReply().wants(tturn(kind=kind)) is (kind is Kind.MAIN)
    assert not EmptyReply().wants(tturn(tcall(output_config={"format": {"type": "json_schema"}})))
