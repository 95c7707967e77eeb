"""R3: what a tool asks by itself and wants as JSON, in every dialect and form: after `<**!echo**>`, while stuck, with a `side`
route."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from routecodex.routing.values import Dialect
from tests.rig.behaviour import Behaviour
from tests.rig.client import call
from tests.rig.provider import FakeProvider
from tests.rig.proxy import SCRIPT, Mitmdump
from tests.rig.wire import Reply
from tests.system.speaker import FORMS, IDS
from tests.system.tool import CREDENTIALS, HOSTS, Tool, text_of, write

pytestmark = pytest.mark.system

_CONFIG = """
proxy:
  interceptHosts: [api.anthropic.com, api.openai.com, generativelanguage.googleapis.com]
virtualrouter:
  providers:
    chatty:
      protocol: openai-chat
      baseURL: https://chatty.example/v1
      auth: {type: apikey, keys: [{alias: one, value: chatty-key}]}
      models: {m: {}}
    wordy:
      protocol: anthropic-messages
      baseURL: https://wordy.example
      auth: {type: apikey, keys: [{alias: one, value: wordy-key}]}
      models: {m: {}}
    beside:
      protocol: openai-chat
      baseURL: https://beside.example/v1
      auth: {type: apikey, keys: [{alias: one, value: beside-key}]}
      models: {small: {}}
  routing:
    default: [origin]
"""
PROPERTIES = {
    "complexity_reasoning": {"type": "string"},
    "complexity_score": {"type": "integer", "minimum": 1, "maximum": 100},
}
SCHEMA = {"type": "object", "properties": PROPERTIES, "required": ["complexity_reasoning", "complexity_score"]}
"""What Gemini CLI asks before each message."""
STRUCTURED: dict[Dialect, dict[str, Any]] = {
    Dialect.MESSAGES: {"output_config": {"format": {"type": "json_schema", "schema": {**SCHEMA, "additionalProperties": False}}}},
    Dialect.CHAT: {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA}}},
    Dialect.RESPONSES: {"text": {"format": {"type": "json_schema", "name": "a", "schema": SCHEMA}}},
    Dialect.GEMINI: {"generationConfig": {"responseMimeType": "application/json", "responseJsonSchema": SCHEMA}},
}
every_form = pytest.mark.parametrize("dialect, stream", FORMS, ids=IDS)
House = tuple[FakeProvider, Mitmdump]


def _house(folder: Path, config: str) -> Iterator[House]:
    provider = FakeProvider()
    with provider, Mitmdump(script=SCRIPT, config=config, upstream=provider, folder=folder) as proxy:
        yield provider, proxy
        assert proxy.alive
        assert "RouteCodex failed" not in proxy.log


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    yield from _house(tmp_path_factory.mktemp("plain"), _CONFIG)


@pytest.fixture(scope="module")
def with_side(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    yield from _house(tmp_path_factory.mktemp("side"), _CONFIG + "    side: [beside.small]\n")


class Router:
    """A tool that asks another model which one to take."""

    def __init__(self, house: House, dialect: Dialect, stream: bool) -> None:
        self.provider, proxy = house
        self.provider.forget()
        self.tool, self.stream = Tool(self.provider, proxy, dialect), stream
        self.elsewhere = "wordy" if dialect is Dialect.CHAT else "chatty"
        self.dialect, self.home = dialect, HOSTS[dialect].removeprefix("https://")

    def say(self, text: str) -> str:
        return text_of(self.dialect, self.tool.ask(text, stream=self.stream).body, self.stream)

    def asks(self, question: str, headers: tuple[tuple[str, str], ...] = (), *, said: str = "") -> str:
        """A call of its own, in the same session, that wants JSON."""
        if said:
            self.provider.enqueue(Behaviour(reply=Reply(said)))
        tool = self.tool
        path, body = write(self.dialect, tool.model, [*tool.history, ("user", question)], self.stream)
        sent = (CREDENTIALS[self.dialect], ("x-session-id", str(tool.session)), *headers)
        answer = call(HOSTS[self.dialect], path, body | STRUCTURED[self.dialect], proxy=tool.proxy, headers=sent)
        assert answer.status == 200
        return text_of(self.dialect, answer.body, self.stream)

    @property
    def asked(self) -> list[str]:
        return [one.host for one in self.provider.requests]


@every_form
def test_echo_answers_with_what_the_schema_allows(plain: House, dialect: Dialect, stream: bool) -> None:
    router = Router(plain, dialect, stream)
    router.say("<**!echo**>")
    told = json.loads(router.asks("how hard is it?"))
    assert told.keys() == PROPERTIES.keys()
    assert isinstance(told["complexity_reasoning"], str)
    assert 1 <= told["complexity_score"] <= 100
    assert router.say("hello") == "hello"
    assert router.asked == []


@every_form
def test_the_message_that_has_the_tag_is_none_of_the_sides(plain: House, dialect: Dialect, stream: bool) -> None:
    """Gemini CLI's router reads the message before it is sent, the tag in it."""
    router = Router(plain, dialect, stream)
    assert router.asks("<**echo**> how hard is it?", said='{"a": 1}') == '{"a": 1}'
    assert b"echo" not in router.provider.requests[0].body
    assert router.say("<**echo**> how hard is it?") == "how hard is it?"
    assert router.asked == [router.home]


@every_form
@pytest.mark.parametrize("said", ['{"complexity_reasoning": "so", "complexity_score": 7}', "I think it is easy."])
def test_while_stuck_it_goes_along_with_its_schema(plain: House, dialect: Dialect, stream: bool, said: str) -> None:
    """What the model says is the client's to judge, be it prose."""
    router = Router(plain, dialect, stream)
    router.say(f"<**!{router.elsewhere}.m**>")
    assert router.asks("how hard is it?", said=said) == said
    (sent,) = router.provider.requests
    assert sent.host == f"{router.elsewhere}.example"
    if router.elsewhere == "wordy":  # a model of which nobody knows whether it takes a schema
        assert all(name in sent.json["system"][0]["text"] for name in PROPERTIES)
    else:
        assert sent.json["response_format"]["json_schema"]["schema"]["properties"].keys() == PROPERTIES.keys()
    router.say("go on")
    assert router.asked == [f"{router.elsewhere}.example"] * 2


@every_form
def test_a_side_route_goes_before_what_the_session_keeps_to(with_side: House, dialect: Dialect, stream: bool) -> None:
    router = Router(with_side, dialect, stream)
    router.say(f"<**!{router.elsewhere}.m**>")
    assert router.asks("how hard is it?", said='{"a": 1}') == '{"a": 1}'
    assert router.provider.requests[0].json["model"] == "small"
    router.say("go on")
    assert router.asked == ["beside.example", f"{router.elsewhere}.example"]


@every_form
def test_a_list_of_allowed_providers_holds_for_it_as_well(with_side: House, dialect: Dialect, stream: bool) -> None:
    router = Router(with_side, dialect, stream)
    router.say("<**!echo**>")
    assert json.loads(router.asks("how hard is it?")).keys() == PROPERTIES.keys()
    assert router.asked == []


@every_form
def test_without_anything_in_force_it_goes_aside_as_well(with_side: House, dialect: Dialect, stream: bool) -> None:
    router = Router(with_side, dialect, stream)
    assert router.asks("how hard is it?", said='{"a": 1}') == '{"a": 1}'
    router.say("go on")
    assert router.asked == ["beside.example", router.home]


@pytest.mark.parametrize("stream", [True, False])
def test_a_subagent_is_never_aside(with_side: House, stream: bool) -> None:
    router = Router(with_side, Dialect.MESSAGES, stream)
    router.say("<**!chatty.m**>")
    router.asks("look", (("x-claude-code-request-class", "subagent"), ("x-claude-code-agent-id", "a1")), said="{}")
    router.asks("a title", (("x-claude-code-request-class", "auxiliary"),), said="{}")
    assert router.asked == ["chatty.example", "beside.example"]
