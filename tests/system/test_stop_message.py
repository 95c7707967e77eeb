"""stopMessage through the real proxy, in every dialect, streaming and not: rounds, endings, and what later calls carry."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from routecodex.routing.values import Dialect
from tests.rig.behaviour import Behaviour
from tests.rig.provider import FakeProvider, Received
from tests.rig.proxy import SCRIPT, Mitmdump
from tests.rig.reply import Reply
from tests.system.talk import CONFIG, FORMS, IDS, Heard, Talk

pytestmark = pytest.mark.system
ARM = '<**stopMessage:"go <**clear**>on",{most}**> start'
LISTS = ("messages", "input", "contents")
every_form = pytest.mark.parametrize("dialect,stream", FORMS, ids=IDS)


@dataclass
class House:
    """One running proxy, and what was said through it."""

    provider: FakeProvider
    proxy: Mitmdump
    folder: Path
    asked: list[str] = field(default_factory=list)

    def talk(self, dialect: Dialect, stream: bool) -> Talk:
        self.provider.forget()
        return Talk(self.provider, self.proxy, dialect, stream)

    def state(self, talk: Talk) -> dict[str, Any]:
        (file,) = [path for path in self.folder.rglob(f"session-{talk.session}.json") if path.parent.name != "history"]
        state = json.loads(file.read_bytes())["state"]
        assert isinstance(state, dict)
        return state


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    folder = tmp_path_factory.mktemp("stop")
    with FakeProvider() as provider, Mitmdump(script=SCRIPT, config=CONFIG, upstream=provider, folder=folder) as proxy:
        yield House(provider, proxy, folder)
        assert proxy.alive


def says(talk: Talk, text: str) -> Heard:
    """One call of the client; it keeps what it was shown."""
    talk.typed.append(("user", text))
    heard = talk._exchange(())
    talk.typed.append(("assistant", heard.text))
    return heard


def texts(received: Received) -> list[str]:
    """The texts of a request's messages, in order."""
    body = json.loads(received.body)
    (items,) = [body[name] for name in LISTS if name in body]
    return [_text(item.get("content", item.get("parts"))) for item in items]


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content or [])


def follow_ups(*answers: Behaviour) -> Any:
    """A plain first answer, then these, the last one for ever."""
    left = [Behaviour(reply=Reply("first")), *answers]

    def rule(received: Received) -> Behaviour:
        return left.pop(0) if len(left) > 1 else left[0]

    return rule


@every_form
def test_m11_m34_x07_three_follow_ups_in_one_answer(house: House, dialect: Dialect, stream: bool) -> None:
    talk = house.talk(dialect, stream)
    replies = [Behaviour(reply=Reply(word)) for word in ("second", "third", "fourth", "never")]
    house.provider.script(follow_ups(*replies))
    heard = says(talk, ARM.format(most=3))
    assert (heard.answer.status, heard.text) == (200, "first\n\nsecond\n\nthird\n\nfourth")
    rounds = [texts(received) for received in heard.received]
    assert rounds == [
        ["start"],
        ["start", "first", "go on"],
        ["start", "first", "go on", "second", "go on"],
        ["start", "first", "go on", "second", "go on", "third", "go on"],
    ]
    assert len({received.asked.model for received in heard.received if received.asked}) == 1
    state = house.state(talk)
    assert "stopMessageText" not in state
    assert {"stopMessageClearedAt", "stopMessageLastUsedAt"} <= set(state)
    later = says(talk, "next")
    assert [texts(received) for received in later.received] == [[*rounds[-1], "fourth", "next"]]
    again = says(talk, "and more")
    assert texts(again.received[0])[:-2] == texts(later.received[0])
    assert json.dumps(json.loads(again.received[0].body)).count("go on") == 3


@every_form
def test_m17_empty_follow_ups(house: House, dialect: Dialect, stream: bool) -> None:
    talk = house.talk(dialect, stream)
    house.provider.script(follow_ups(Behaviour(reply=Reply(""))))
    heard = says(talk, ARM.format(most=4))
    assert (heard.answer.status, heard.text, len(heard.received)) == (200, "first", 3)
    assert "stopMessageText" not in house.state(talk)
    house.provider.forget()
    assert texts(says(talk, "next").received[0]) == ["start", "first", "next"]


@every_form
@pytest.mark.parametrize("fails", [Behaviour(status=500, error="boom"), Behaviour(status=400, error="no")], ids=["500", "400"])
def test_m18_failing_follow_ups(house: House, dialect: Dialect, stream: bool, fails: Behaviour) -> None:
    """The answer that is there ends as it would have ended."""
    talk = house.talk(dialect, stream)
    house.provider.script(follow_ups(fails))
    heard = says(talk, ARM.format(most=4))
    assert (heard.answer.status, heard.text) == (200, "first")
    assert "stopMessageText" not in house.state(talk)
    house.provider.forget()
    assert texts(says(talk, "next").received[0]) == ["start", "first", "next"]


def test_after_a_restart(tmp_path: Path) -> None:
    with FakeProvider() as provider:
        with Mitmdump(script=SCRIPT, config=CONFIG, upstream=provider, folder=tmp_path) as proxy:
            talks = [Talk(provider, proxy, dialect, True) for dialect in Dialect]
            for talk in talks:
                provider.script(follow_ups(Behaviour(reply=Reply("second"))))
                assert says(talk, ARM.format(most=1)).text == "first\n\nsecond", talk.dialect
        with Mitmdump(script=SCRIPT, config=CONFIG, upstream=provider, folder=tmp_path) as proxy:
            for talk in talks:
                talk.proxy = proxy
                assert texts(says(talk, "next").received[0]) == ["start", "first", "go on", "second", "next"], talk.dialect
