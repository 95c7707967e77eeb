"""F13: a 200 that answers nothing, events behind the end, and bytes that are no UTF-8."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from routecodex.routing.values import Dialect
from tests.rig.behaviour import Behaviour
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
        return [*events, *events]

    provider.always(Behaviour(reply=Reply("once"), edit=twice))
    speaker = Speaker(provider, proxy, client, True)
    answer = speaker.ask("hello", keep=False)
    if client is Dialect.GEMINI:  # which tells no end: more may always come
        return
    assert speaker.told(answer).text == "once"


@each_client
@each_form
def test_what_is_no_utf8_is_made_it(house: tuple[FakeProvider, Mitmdump], client: Dialect, stream: bool) -> None:
    provider, proxy = house

    def broken(items: list[bytes]) -> list[bytes]:
        return [item.replace(b"@", b"\xe4\xbd") for item in items]

    provider.always(Behaviour(reply=Reply(("one ", "@", " two")), edit=broken))
    speaker = Speaker(provider, proxy, client, stream)
    assert speaker.told(speaker.ask("hello", keep=False)).text.replace("\ufffd\ufffd", "\ufffd") == "one \ufffd two"
