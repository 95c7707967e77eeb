"""A tag acts once, whatever a tool repeats: through the real proxy, in every dialect, over restarts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from routecodex.routing.values import Dialect
from tests.rig.behaviour import Behaviour
from tests.rig.provider import FakeProvider
from tests.rig.proxy import SCRIPT, Mitmdump
from tests.rig.reply import Reply
from tests.system.talk import CONFIG, FORMS, IDS, Heard, Talk

pytestmark = pytest.mark.system
ARM = '<**stopMessage:"go on",2**> delegate it'
NOTICE = "[SYSTEM NOTIFICATION - NOT USER INPUT]\nThe background agent is done."
every_form = pytest.mark.parametrize("dialect,stream", FORMS, ids=IDS)


class House:
    """A proxy that can be started anew over the same folder."""

    def __init__(self, provider: FakeProvider, folder: Path) -> None:
        self.provider, self.folder = provider, folder
        self.proxy = self._start()

    def _start(self) -> Mitmdump:
        return Mitmdump(script=SCRIPT, config=CONFIG, upstream=self.provider, folder=self.folder).__enter__()

    def restart(self) -> None:
        self.close()
        self.proxy = self._start()

    def close(self) -> None:
        self.proxy.__exit__(None, None, None)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with FakeProvider() as provider:
        house = House(provider, tmp_path_factory.mktemp("once"))
        try:
            yield house
            assert house.proxy.alive
            assert "Traceback" not in house.proxy.log
        finally:
            house.close()


def asks(talk: Talk, prompt: str = "") -> tuple[Heard, int]:
    """The call as it stands, and how many rounds it took."""
    heard = talk._exchange((("x-claude-code-prompt-id", prompt),) if prompt else ())
    return heard, len(heard.received)


@every_form
@pytest.mark.parametrize("prompts", [("", ""), ("p-1", "p-2")], ids=["without-prompt-ids", "with-prompt-ids"])
def test_q21_q15_a_notice_arms_nothing_and_a_rewind_does(
    house: House, dialect: Dialect, stream: bool, prompts: tuple[str, str]
) -> None:
    house.provider.forget()
    talk = Talk(house.provider, house.proxy, dialect, stream)
    talk.typed.append(("user", ARM))
    first, rounds = asks(talk, prompts[0])
    assert (first.answer.status, rounds) == (200, 3)
    talk.typed += [("assistant", first.text), ("hop", NOTICE)]
    notice, rounds = asks(talk, prompts[1])
    assert (notice.answer.status, rounds) == (200, 1)
    del talk.typed[1:]
    again, rounds = asks(talk, prompts[1])
    assert (again.answer.status, rounds) == (200, 3)
    talk.typed += [("assistant", again.text), ("user", ARM)]
    anew, rounds = asks(talk)
    assert (anew.answer.status, rounds) == (200, 3), "typed once more"


def test_all_of_it_holds_over_a_restart(house: House) -> None:
    house.provider.forget()
    talks = [Talk(house.provider, house.proxy, dialect, stream) for dialect, stream in FORMS]
    firsts = []
    for talk in talks:
        talk.typed.append(("user", ARM))
        first, rounds = asks(talk)
        assert rounds == 3
        firsts.append(first)
    refused = Talk(house.provider, house.proxy)
    refused.typed.append(("user", "<**!nobody**> one"))
    assert asks(refused)[0].answer.status == 400
    house.restart()
    for talk, first in zip(talks, firsts, strict=True):
        talk.proxy = house.proxy
        talk.typed += [("assistant", first.text), ("hop", NOTICE)]
        assert asks(talk, "p-new")[1] == 1
        del talk.typed[1:]
        assert asks(talk, "p-new")[1] == 3
    refused.proxy = house.proxy
    refused.typed[-1] = ("user", "<**!nobody**> one")
    assert asks(refused)[0].answer.status == 400, "sent again, it is refused again"


@pytest.mark.parametrize("dialect", list(Dialect))
def test_a_call_repeated_after_an_answer_that_was_cut_off_arms_nothing(house: House, dialect: Dialect) -> None:
    """The second round breaks off behind its first words, which ends the stopMessage."""
    house.provider.forget()
    talk = Talk(house.provider, house.proxy, dialect, stream=True)
    talk.typed.append(("user", ARM))
    house.provider.enqueue(Behaviour(reply=Reply("first")))
    house.provider.enqueue(Behaviour(reply=Reply(tuple(f"word {number} " for number in range(40))), error="no", error_after=20))
    assert asks(talk)[1] == 2
    assert asks(talk)[1] == 1
    assert asks(talk)[1] == 3, "now it was answered to the end, and is sent once more"
