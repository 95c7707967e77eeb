"""F13: a 200 that answers nothing, events behind the end, and bytes that are no UTF-8."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

from routecodex.routing.values import Dialect
from tests.rig.behaviour import Behaviour
from tests.rig.client import Answer
from tests.rig.provider import FakeProvider
from tests.rig.proxy import SCRIPT, Mitmdump
from tests.rig.reply import Reply
from tests.system.speaker import Speaker

pytestmark = pytest.mark.system

CONFIG = """
proxy: {interceptHosts: [api.anthropic.com, api.openai.com, generativelanguage.googleapis.com]}
retries: {maxAttempts: 1}
virtualrouter:
  providers:
    mine:
      protocol: anthropic-messages
      endpoints: {openai-chat: "https://mine.example/v1", openai-responses: "https://mine.example/v1",
        gemini-chat: "https://mine.example"}
      baseURL: https://mine.example
      auth: {type: apikey, keys: [{alias: k, value: mine-key-0001}]}
      models: {m: {}}
  routing: {default: [mine.m]}
  health: {serverErrorLadderMs: [1], serverErrorTripMs: 1}
"""
each_form = pytest.mark.parametrize("stream", [True, False])
each_client = pytest.mark.parametrize("client", list(Dialect))


@pytest.fixture(scope="module")
def house() -> Iterator[tuple[FakeProvider, Mitmdump]]:
    with FakeProvider() as provider, Mitmdump(script=SCRIPT, config=CONFIG, upstream=provider) as proxy:
        yield provider, proxy
        assert "Traceback" not in proxy.log


@each_client
@each_form
def test_nothing_at_all_is_no_answer(house: tuple[FakeProvider, Mitmdump], client: Dialect, stream: bool) -> None:
    provider, proxy = house
    provider.always(Behaviour(body=b""))
    answer = Speaker(provider, proxy, client, stream).ask("hello", keep=False)
    assert answer.status == 502
    assert "error" in answer.json


@each_client
def test_nothing_that_says_something_passes_behind_the_end(house: tuple[FakeProvider, Mitmdump], client: Dialect) -> None:
    provider, proxy = house

    def twice(events: list[bytes]) -> list[bytes]:
        return [*events, b"data: {no JSON\n\n", *events]

    provider.always(Behaviour(reply=Reply("once"), edit=twice))
    speaker = Speaker(provider, proxy, client, True)
    answer = speaker.ask("hello", keep=False)
    if client is Dialect.GEMINI:  # which tells no end: more may always come
        return
    assert speaker.told(answer).text == "once"
    assert b"no JSON" not in answer.body


@each_client
@each_form
@pytest.mark.parametrize("bad", [b"\xe4\xbd", b"\xed\xa0\x80"], ids=["part of a character", "half of a pair"])
def test_what_is_no_utf8_is_made_it(house: tuple[FakeProvider, Mitmdump], client: Dialect, stream: bool, bad: bytes) -> None:
    """Wherever it stands: in a text, in the name of an event, in an error."""
    provider, proxy = house

    def broken(items: list[bytes]) -> list[bytes]:
        return [*items[:1], b"event: " + bad + b"\ndata: {}\n\n", *items[1:]] if len(items) > 1 else items

    def bad_text(items: list[bytes]) -> list[bytes]:
        return [item.replace(b"@", bad) for item in items]

    speaker = Speaker(provider, proxy, client, stream)
    provider.always(Behaviour(reply=Reply(("one ", "@", " two")), edit=bad_text))
    assert re.sub("\ufffd+", "\ufffd", speaker.told(speaker.ask("hello", keep=False)).text) == "one \ufffd two"
    provider.always(Behaviour(reply=Reply("one"), edit=broken))
    assert b"one" in _utf8(speaker.ask("hello", keep=False))
    provider.always(Behaviour(status=400, error="no @ more", edit=bad_text))
    refused = speaker.ask("hello", keep=False)
    assert refused.status == 400
    assert re.sub("\ufffd+", "\ufffd", json.loads(_utf8(refused))["error"]["message"]) == "no \ufffd more"


def _utf8(answer: Answer) -> bytes:
    answer.body.decode()
    return answer.body
