"""Every recorded call of a real client, in every provider's dialect, obeys the types of that provider's official SDK.

So do the calls that say everything. Nothing is allowed beyond the types but what `EXTRAS` names.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from typing import Any

import pytest

from routecodex.routing.dialects.calls import read_call
from routecodex.routing.dialects.calls.compaction import asked_in_words, asks
from routecodex.routing.dialects.calls.editing import inner_body
from routecodex.routing.dialects.translation import going_up
from routecodex.routing.errors import RouteCodexError
from routecodex.routing.jsonbytes import loads
from routecodex.routing.router.registry import Key, Model, Provider, Url
from routecodex.routing.turn.upstream import HistorySealed, Received, write
from routecodex.routing.values import Dialect, Endpoint, Target
from tests.everything import ENDPOINTS, EVERYTHING, UNSAYABLE
from tests.routing.dialects.calls.recorded import CALLS, Recorded
from tests.sdk.environment import REQUIREMENTS, sdk_python
from tests.sdk.lines import Lines

MODELS: dict[Dialect, tuple[str, ...]] = {
    Dialect.MESSAGES: ("claude-opus-5-5", "claude-sonnet-4-5", "claude-3-5-haiku-latest", "glm-4.7"),
    Dialect.CHAT: ("gpt-5.2", "gpt-4.1", "an-open-model"),
    Dialect.RESPONSES: ("gpt-5.2", "gpt-4.1", "an-open-model"),
    Dialect.GEMINI: ("gemini-3-pro", "gemini-2.5-flash", "gemini-2.0-flash"),
}
"""What is written depends on the model: one of each kind."""
EXTRAS: dict[Dialect, dict[str, str]] = {
    Dialect.MESSAGES: {
        r"(temperature|top_p|top_k): an unknown field": (
            "the newest Claudes take no samplers, and with them the newest SDK lost them; the older ones still do"
        )
    },
    Dialect.CHAT: {},
    Dialect.RESPONSES: {},
    Dialect.GEMINI: {},
}
"""What the types are wrong about."""

GENERATED = [(one, endpoint) for one, endpoint in CALLS if endpoint.action == "generate"]
COMPACTION = "codex/11-responses-compaction-trigger"
SEALED = "codex/20-first-after-compaction"
"""It holds what its maker alone can read: nobody else is asked."""
each_dialect = pytest.mark.parametrize("spoken", list(Dialect))


@pytest.fixture(scope="module")
def shapes() -> Iterator[Lines]:
    started = Lines([sdk_python(), REQUIREMENTS.with_name("shapes.py")])
    yield started
    started.close()


def problems(shapes: Lines, dialect: Dialect, body: Any) -> list[str]:
    found = shapes.ask({"dialect": dialect.value, "body": body})
    assert isinstance(found, list)
    return [one for one in found if not any(re.fullmatch(extra, one) for extra in EXTRAS[dialect])]


def provider(spoken: Dialect, model: str) -> Provider:
    return Provider("them", spoken, {spoken: Url("https", "them.example", 443)}, (Key("k", 1, "sk-k"),), {model: Model(model)})


def received(recorded: Recorded, endpoint: Endpoint) -> Received:
    return Received("id-1", "https", "home.example", 443, recorded.path, {}, (), "", endpoint, recorded.raw, recorded.raw)


def sent(recorded: Recorded, endpoint: Endpoint, spoken: Dialect, model: str) -> Any:
    """The body as it goes up; to a provider of the client's own dialect it goes untranslated, so there the same way by hand."""
    call = read_call(recorded.raw, endpoint)
    if spoken is endpoint.dialect and not endpoint.envelope:
        words = asked_in_words(call) if asks(call) else call
        return going_up.translate(
            inner_body(words), endpoint, spoken, model=model, stream=call.stream, session="session-1", maker="them"
        ).body
    request = write(received(recorded, endpoint), call, provider(spoken, model), Target("them", "k", model), session="session-1")
    return loads(request.body)


@each_dialect
@pytest.mark.parametrize("recorded, endpoint", GENERATED, ids=[one.name for one, _ in GENERATED])
def test_a_recorded_call(shapes: Lines, recorded: Recorded, endpoint: Endpoint, spoken: Dialect) -> None:
    if recorded.name == SEALED and spoken is not endpoint.dialect:
        with pytest.raises(HistorySealed):
            sent(recorded, endpoint, spoken, MODELS[spoken][0])
        return
    for model in MODELS[spoken]:
        body = sent(recorded, endpoint, spoken, model)
        assert problems(shapes, spoken, body) == [], model


def test_all_that_is_recorded_is_tried() -> None:
    clients = {one.name.partition("/")[0] for one, _ in GENERATED}
    assert len(GENERATED) >= 45
    assert len(clients) >= 12
    assert {endpoint.dialect for _, endpoint in GENERATED} == set(Dialect)
    assert [one.name for one, _ in GENERATED].count(COMPACTION) == 1


@each_dialect
@pytest.mark.parametrize("client", list(Dialect))
def test_a_call_that_says_everything(shapes: Lines, client: Dialect, spoken: Dialect) -> None:
    for body in EVERYTHING[client]:
        for model in MODELS[spoken]:
            written = going_up.translate(
                body, ENDPOINTS[client], spoken, model=model, stream=True, session="session-1", maker="them"
            )
            assert problems(shapes, spoken, written.body) == [], model


@pytest.mark.parametrize("client", list(Dialect))
def test_everything_is_all_that_a_dialect_can_say(shapes: Lines, client: Dialect) -> None:
    known = set(shapes.ask({"dialect": client.value}))
    said = {name for body in EVERYTHING[client] for name in body}
    for body in EVERYTHING[client]:
        assert problems(shapes, client, body) == []
    assert known - said == set(UNSAYABLE[client])


# --- the judge itself ---------------------------------------------------------------------------------------------------


def spoiled(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of all objects inside."""
    if isinstance(value, dict):
        yield path
        for name, child in value.items():
            yield from spoiled(child, (*path, name))
    elif isinstance(value, list):
        for number, child in enumerate(value):
            yield from spoiled(child, (*path, number))


FREE = {"args", "schema", "input_schema", "parameters", "parametersJsonSchema", "responseJsonSchema", "input_examples"}
FREE |= {"metadata", "logit_bias", "response"}
"""Objects that may hold anything, or are schemas of a person's own."""


def is_free(path: tuple[Any, ...]) -> bool:
    """So is what a model called a tool with, and each entry of a choice among several tools."""
    chosen = path[:1] == ("tool_choice",) and "tools" in path[:-1]
    return bool(set(path) & FREE) or path[-1:] == ("input",) or chosen


@pytest.mark.parametrize("client", list(Dialect))
def test_the_judge_sees_an_unknown_field_wherever_it_stands(shapes: Lines, client: Dialect) -> None:
    body = EVERYTHING[client][0]
    places = [path for path in spoiled(body) if not is_free(path)]
    assert len(places) > 20
    for path in places:
        worse = copy.deepcopy(body)
        inside = worse
        for step in path:
            inside = inside[step]
        inside["of_nobodys"] = 1
        assert problems(shapes, client, worse), path


def test_the_judge_sees_wrong_words_types_and_gaps(shapes: Lines) -> None:
    messages = [{"role": "user", "content": "x"}]
    plain = {"model": "m", "max_tokens": 1, "messages": messages}
    assert problems(shapes, Dialect.MESSAGES, plain) == []
    assert problems(shapes, Dialect.MESSAGES, plain | {"max_tokens": "1"})
    assert problems(shapes, Dialect.MESSAGES, plain | {"max_tokens": True})
    assert problems(shapes, Dialect.MESSAGES, plain | {"service_tier": "best"})
    assert problems(shapes, Dialect.MESSAGES, plain | {"messages": [{"role": "nobody", "content": "x"}]})
    assert problems(shapes, Dialect.MESSAGES, plain | {"messages": {}})
    assert problems(shapes, Dialect.MESSAGES, {"model": "m", "messages": messages}) == ["max_tokens: missing"]
    assert problems(shapes, Dialect.CHAT, {"model": "m", "messages": [{"role": "tool", "content": "x"}]})
    assert problems(shapes, Dialect.RESPONSES, {"model": "m", "input": [{"type": "message", "role": "user"}]})
    contents = [{"role": "user", "parts": [{"text": "x"}]}]
    assert problems(shapes, Dialect.GEMINI, {"contents": contents}) == []
    assert problems(shapes, Dialect.GEMINI, {"contents": contents, "generationConfig": {"maxOutputTokens": "many"}})
    assert problems(shapes, Dialect.GEMINI, {"contents": contents, "generationConfig": {"max_output_tokens": 1}})
    choice = {"functionCallingConfig": {"mode": "SOMETIMES"}}
    assert problems(shapes, Dialect.GEMINI, {"contents": contents, "toolConfig": choice})


def test_every_extra_is_needed(shapes: Lines) -> None:
    """Nothing is excused that does not occur."""
    occurring: set[str] = set()
    for spoken in Dialect:
        for body, endpoint in _all_bodies():
            for model in MODELS[spoken]:
                try:
                    written = going_up.translate(
                        body, endpoint, spoken, model=model, stream=True, session="session-1", maker="them"
                    )
                except RouteCodexError:
                    continue
                found = shapes.ask({"dialect": spoken.value, "body": written.body})
                occurring |= {extra for extra in EXTRAS[spoken] for one in found if re.fullmatch(extra, one)}
    assert occurring == {extra for extras in EXTRAS.values() for extra in extras}


def _all_bodies() -> Iterator[tuple[Any, Endpoint]]:
    for client, bodies in EVERYTHING.items():
        yield from ((body, ENDPOINTS[client]) for body in bodies)
    yield from ((inner_body(read_call(one.raw, endpoint)), endpoint) for one, endpoint in GENERATED)
