"""Before the answer begins: a limit that is soon over is waited for at the same key, a spent quota is left at once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from routecodex.routing.values import Dialect
from tests.rig.behaviour import Behaviour
from tests.rig.client import Leave, call
from tests.rig.provider import FakeProvider
from tests.rig.proxy import SCRIPT, Mitmdump
from tests.system.talk import FORMS, IDS, Talk, provider_text, request
from tests.system.tool import CREDENTIALS, HOSTS

pytestmark = pytest.mark.system

Pair = tuple[FakeProvider, Mitmdump]

_KEYS = {"lone": ("only",), "two": ("a", "b"), "many": tuple(f"k{number}" for number in range(40))}
CONFIG = f"""
proxy:
  interceptHosts: [api.anthropic.com, api.openai.com, generativelanguage.googleapis.com]
virtualrouter:
  providers:{"".join(provider_text(name, keys, ("m",)) for name, keys in _KEYS.items())}
  routing:
    default: [origin]
  health: {{waitForSameKeyMs: 1500, rateLimitLadderMs: [100, 200, 400]}}
"""


@pytest.fixture(scope="module")
def waiting() -> Iterator[Pair]:
    with FakeProvider() as provider, Mitmdump(script=SCRIPT, config=CONFIG, upstream=provider) as proxy:
        yield provider, proxy
        assert proxy.alive
        assert "Traceback" not in proxy.log


@pytest.fixture(params=FORMS, ids=IDS)
def talk(waiting: Pair, request: pytest.FixtureRequest) -> Talk:
    waiting[0].forget()
    return Talk(*waiting, *request.param)


def limited(seconds: str, name: str = "retry-after") -> Behaviour:
    return Behaviour(status=429, error="too many requests in this minute", headers=((name, seconds),))


def spent(dialect: Dialect) -> Behaviour:
    """How each vendor says that there is no money left."""
    match dialect:
        case Dialect.MESSAGES:
            return Behaviour(status=400, error="Your credit balance is too low to access the Anthropic API.")
        case Dialect.GEMINI:
            return Behaviour(status=402, error="billing is not enabled")
        case _:
            body = (
                b'{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}'
            )
            return Behaviour(status=429, body=body, headers=(("content-type", "application/json"),))


def gaps(talk: Talk) -> list[float]:
    times = [received.at for received in talk.provider.requests]
    return [later - earlier for earlier, later in pairwise(times)]


def test_a_single_key_is_waited_for(talk: Talk) -> None:
    talk.provider.enqueue(limited("250", "retry-after-ms"))
    heard = talk.say("<**lone.m**> hello", "hello")
    assert heard.answer.status == 200
    assert [received.key for received in heard.received] == ["lone-only-value"] * 2
    assert gaps(talk)[0] > 0.24
    assert heard.received[0].body == heard.received[1].body
    assert heard.text == f"m was asked: {heard.received[1].said}"


def test_retry_after_one_second(waiting: Pair) -> None:
    provider, proxy = waiting
    provider.forget()
    talk = Talk(provider, proxy)
    provider.enqueue(limited("1"))
    heard = talk.say("<**lone.m**> hello", "hello")
    assert heard.answer.status == 200
    assert [received.key for received in heard.received] == ["lone-only-value"] * 2
    assert gaps(talk)[0] > 0.99


def test_the_same_key_is_waited_for_although_there_is_another(waiting: Pair) -> None:
    """The prompt cache lives at that key; a second refusal is enough, though."""
    provider, proxy = waiting
    provider.forget()
    talk = Talk(provider, proxy)
    provider.enqueue(limited("0.2"))
    heard = talk.say("<**two.m**> hello", "hello")
    assert heard.answer.status == 200
    assert len({received.key for received in heard.received}) == 1
    assert gaps(talk)[0] > 0.19
    provider.forget()
    provider.enqueue(limited("0.2"), limited("0.2"))
    heard = talk.say("<**two.m**> and again", "and again")
    assert heard.answer.status == 200
    assert len(heard.received) == 3
    assert [received.key == heard.received[0].key for received in heard.received] == [True, True, False]


def test_a_longer_wait_switches_keys_at_once(waiting: Pair) -> None:
    provider, proxy = waiting
    provider.forget()
    talk = Talk(provider, proxy)
    provider.enqueue(limited("600"))  # far longer than anybody here waits
    heard = talk.say("<**many.m**> hello", "hello")
    assert heard.answer.status == 200
    assert len({received.key for received in heard.received}) == 2


def test_a_spent_quota_switches_keys_at_once(talk: Talk) -> None:
    talk.provider.enqueue(spent(talk.dialect))
    heard = talk.say("<**many.m**> hello", "hello")
    assert heard.answer.status == 200
    assert len({received.key for received in heard.received}) == 2
    # and the key is left alone from now on
    keys = {talk.say(f"<**many.m**> {number}", f"{number}").key for number in range(3)}
    assert heard.received[0].key not in keys


def test_a_second_limit_at_a_single_key_is_the_answer(waiting: Pair) -> None:
    provider, proxy = waiting
    provider.forget()
    talk = Talk(provider, proxy)
    provider.always(limited("0.1"), host="lone.example")
    heard = talk.say("<**lone.m**> hello", "hello")
    assert heard.answer.status == 429
    assert heard.answer.header("x-should-retry") == "false"
    assert "too many requests in this minute" in heard.text
    assert 2 <= len(heard.received) <= 6


def test_a_lone_server_that_stumbles_is_asked_again_after_a_pause(tmp_path: Path) -> None:
    with FakeProvider() as provider, Mitmdump(script=SCRIPT, config=CONFIG, upstream=provider, folder=tmp_path) as proxy:
        talk = Talk(provider, proxy, stream=True)
        provider.enqueue(Behaviour(status=503, error="overloaded"))
        heard = talk.say("<**lone.m**> hello", "hello")
        assert heard.answer.status == 200
        assert len(heard.received) == 2
        assert gaps(talk)[0] > 0.45


def test_24_a_client_that_leaves_during_the_wait(waiting: Pair) -> None:
    provider, proxy = waiting
    provider.forget()
    provider.enqueue(limited("1"))
    path, body = request(Dialect.MESSAGES, "client-model", [("user", "<**lone.m**> hello")], True)
    headers = (CREDENTIALS[Dialect.MESSAGES], ("x-session-id", "leaves"))

    def refused() -> bool:
        return any(received.head_sent_at for received in provider.requests)

    answer = call(HOSTS[Dialect.MESSAGES], path, body, proxy=proxy, headers=headers, leave=Leave(when=refused))
    assert answer.ended == "left"
    time.sleep(1.1)
    assert len(provider.requests) == 1, "a client that had left was waited for"
    # its leaving harmed no key
    assert Talk(provider, proxy).say("<**lone.m**> hello", "hello").answer.status == 200


def test_a_call_that_comes_while_every_key_rests_waits_with_its_head_held(talk: Talk) -> None:
    """The call before it was told no: its key asked for more patience than one attempt has."""
    talk.provider.enqueue(limited("2"))
    assert talk.say("<**lone.m**> hello", "hello").answer.status == 429
    heard = talk.say("<**lone.m**> again", "again")
    assert heard.answer.status == 200
    assert len(heard.received) == 1
    assert gaps(talk)[-1] >= 1.9, "not before its time"
