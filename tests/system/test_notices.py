"""A person is told what changed without having asked: once, before the first text, and no model ever sees the line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from routecodex.routing.values import Dialect
from tests.rig.behaviour import Behaviour
from tests.rig.provider import FakeProvider
from tests.rig.proxy import SCRIPT, Mitmdump
from tests.rig.wire import Reply, ToolUse
from tests.system.grammar import Told
from tests.system.speaker import EXTRAS, FORMS, IDS, Speaker
from tests.system.talk import configured

pytestmark = pytest.mark.system

UNSET = "NOBODY_SETS_THIS_KEY"
ROUTES = """    default:
      - {id: first, targets: [first.m], priority: 20}
      - {id: second, targets: [second.m], priority: 10}
"""
CONFIG = configured({"first": (1, "m"), "second": (1, "m"), "third": (1, "m")}, ROUTES).replace(
    "value: first-k1-value", f'value: "${{{UNSET}}}"'
)
OFF = "[RouteCodex: first is off ("
every_form = pytest.mark.parametrize("dialect, stream", FORMS, ids=IDS)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[FakeProvider, Mitmdump]]:
    provider = FakeProvider()
    folder = tmp_path_factory.mktemp("notices")
    with provider, Mitmdump(script=SCRIPT, config=CONFIG, upstream=provider, folder=folder) as proxy:
        yield provider, proxy
        assert proxy.alive
        assert "RouteCodex failed" not in proxy.log


def say(speaker: Speaker, question: str, **reply: Any) -> Told:
    speaker.provider.enqueue(Behaviour(reply=Reply(**reply)))
    return speaker.told(speaker.ask(question))


@every_form
def test_d31_an_unset_variable_is_told_once(house: tuple[FakeProvider, Mitmdump], dialect: Dialect, stream: bool) -> None:
    speaker = Speaker(*house, dialect, stream)
    bash = ToolUse("Bash", {"command": "make"}, "" if dialect is Dialect.GEMINI else "call_1")
    calls = say(speaker, "make it", text="", calls=(bash,))
    assert (calls.text, len(calls.calls)) == ("", 1), "there is no text to tell it before"
    speaker.provider.enqueue(Behaviour(reply=Reply("first answer", thinking="hm", output_tokens=7)))
    told = speaker.told(speaker.give([(calls.ids[0] if calls.ids else "", "Bash", "made")]))
    line, _, rest = told.text.partition("\n\n")
    assert (line[: len(OFF)], line[-1], rest) == (OFF, "]", "first answer")
    assert UNSET in line
    assert "second.m answers" in line
    assert told.output == 7
    again = say(speaker, "and now?", text="second answer")
    assert again.text == "second answer"
    sent = speaker.provider.requests[-1]
    assert b"first answer" in sent.body
    assert b"RouteCodex: " not in sent.body


def test_d31_a_sticky_target_that_is_cleared_is_told(tmp_path: Path) -> None:
    provider = FakeProvider()
    with provider, Mitmdump(script=SCRIPT, config=CONFIG, upstream=provider, folder=tmp_path) as proxy:
        speaker = Speaker(provider, proxy, Dialect.MESSAGES, True)
        assert say(speaker, "<**!third.m**> go", text="as asked").text == "as asked"
        provider.always(Behaviour(status=402, error="no money"), host="third.example")
        told = speaker.told(speaker.ask("go on"))
        assert told.text.startswith("[RouteCodex: third.m cannot be used now: second.m answers")
        cleared = speaker.told(speaker.ask("go on"))
        assert cleared.text.startswith("[RouteCodex: third.m cannot be used now and is no longer this session's target")
        assert "third" not in speaker.told(speaker.ask("go on")).text
        assert b"RouteCodex: " not in provider.requests[-1].body


@pytest.mark.parametrize("dialect", [Dialect.MESSAGES, Dialect.CHAT])
def test_d31_never_where_structured_output_is_demanded(house: tuple[FakeProvider, Mitmdump], dialect: Dialect) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}
    asked: dict[str, Any] = {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}}
    if dialect is Dialect.MESSAGES:
        asked = {"output_config": {"format": {"type": "json_schema", "schema": schema}}}
    speaker = Speaker(*house, dialect, False, extras={**EXTRAS[dialect], **asked})
    assert say(speaker, "as JSON", text='{"a": "b"}').text == '{"a": "b"}'


def test_d31_nothing_is_told_where_it_is_switched_off(tmp_path: Path) -> None:
    provider = FakeProvider()
    with provider, Mitmdump(script=SCRIPT, config="notices: off\n" + CONFIG, upstream=provider, folder=tmp_path) as proxy:
        assert say(Speaker(provider, proxy), "hello", text="fine").text == "fine"
