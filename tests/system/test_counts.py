"""Calls that ask how many tokens something is: passed on where the target counts itself, else answered with our estimate."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from routecodex.routing.values import Dialect
from tests.rig.answer import Answer, Route
from tests.rig.behaviour import Behaviour
from tests.rig.client import Http1, call
from tests.rig.provider import FakeProvider
from tests.rig.proxy import SCRIPT, Mitmdump
from tests.rig.received import Received
from tests.rig.reply import Reply
from tests.system.talk import CONFIG, Talk, provider_text, request
from tests.system.tool import CREDENTIALS, HOSTS

pytestmark = pytest.mark.system

Pair = tuple[FakeProvider, Mitmdump]

LANGUAGES = {
    "english": "The quick brown fox jumps over the lazy dog while the rain keeps falling on the old roof. ",
    "german": "Falsches Üben von Xylophonmusik quält jeden größeren Zwerg, auch an schönen Frühlingstagen. ",
    "russian": "Съешь же ещё этих мягких французских булок, да выпей чаю, пока за окном идёт тихий дождь. ",
    "chinese": "请先阅读项目的说明文件,然后修改代码并运行全部测试,最后用一句话总结你做了什么。",
    "japanese": "まず設定ファイルを読み、次にテストを実行し、失敗した理由を短く説明してください。",
    "code": "def feed(self, data: bytes) -> list[Event]:\n    return [event for event in self._read(data) if event]\n",
    "json": '{"path":"/src/a.py","line":120,"ok":true,"items":[1,2,3],"name":"value_with_underscores"},',
}
SIZES = (300, 3_000, 30_000, 300_000)

_LEARNERS = "".join(provider_text(f"learn-{name}-{size}", ("k",), ("m",)) for name in LANGUAGES for size in SIZES)
COUNTING = CONFIG.replace("  providers:", f"  providers:{_LEARNERS}").replace(
    "  routing:",
    """    own:
      protocol: anthropic-messages
      baseURL: https://api.anthropic.com
      auth: {type: apikey, keys: [{alias: a, value: sk-ant-a}, {alias: b, value: sk-ant-b}]}
      models: {claude-own: {}}
    counts:
      protocol: anthropic-messages
      baseURL: https://counts.example
      endpoints: {gemini-chat: https://counts.example}
      auth: {type: apikey, keys: [{alias: only, value: counts-key}]}
      models: {m: {}}
      countTokens: true
  routing:""",
)
PATHS = {Dialect.MESSAGES: "/v1/messages/count_tokens", Dialect.GEMINI: "/v1beta/models/client-model:countTokens"}
FIELDS = {Dialect.MESSAGES: "input_tokens", Dialect.GEMINI: "totalTokens"}


@pytest.fixture(scope="module")
def counting() -> Iterator[Pair]:
    with FakeProvider() as provider, Mitmdump(script=SCRIPT, config=COUNTING, upstream=provider) as proxy:
        yield provider, proxy
        assert proxy.alive
        assert "Traceback" not in proxy.log


@pytest.fixture(params=list(PATHS), ids=[str(dialect) for dialect in PATHS])
def talk(counting: Pair, request: pytest.FixtureRequest) -> Talk:
    counting[0].forget()
    return Talk(*counting, request.param)


def body_of(talk: Talk, *texts: str) -> dict[str, Any]:
    history = [(("user", "assistant")[number % 2], text) for number, text in enumerate(texts)]
    _, body = request(talk.dialect, talk.model, history, False)
    return {key: value for key, value in body.items() if key not in ("stream", "max_tokens")}


def count(talk: Talk, body: dict[str, Any]) -> Answer:
    headers = (CREDENTIALS[talk.dialect], ("x-session-id", str(talk.session)))
    return call(HOSTS[talk.dialect], PATHS[talk.dialect], body, proxy=talk.proxy, headers=headers)


def counted(talk: Talk, body: dict[str, Any]) -> int:
    answer = count(talk, body)
    assert answer.status == 200, answer.text
    return int(answer.json[FIELDS[talk.dialect]])


def test_origin_counts_itself(talk: Talk) -> None:
    body = body_of(talk, "how long is this?")
    assert counted(talk, body) == 25  # what the fake provider says
    (received,) = talk.provider.requests
    assert received.json == body
    assert received.key == "sk-client-secret"
    assert received.target == PATHS[talk.dialect]


@pytest.mark.parametrize("status", [400, 404, 429, 500])
def test_what_origin_says_to_a_count_passes_untouched(talk: Talk, status: int) -> None:
    talk.provider.always(Behaviour(status=status, error="the vendor's own words"), path="count")
    answer = count(talk, body_of(talk, "hello"))
    assert answer.status == status
    assert "the vendor's own words" in answer.text
    assert len(talk.provider.requests) == 1


def test_a_provider_that_counts_is_asked(talk: Talk) -> None:
    talk.tell("<**!counts.m**>")
    assert counted(talk, body_of(talk, "how long is this?")) == 25
    (received,) = talk.provider.requests
    assert (received.host, received.key) == ("counts.example", "counts-key")
    assert received.asked is not None
    assert received.asked.action == "count"
    assert received.asked.model == "m"


def test_a_provider_that_does_not_count_is_not_asked(talk: Talk) -> None:
    talk.tell("<**!glm.glm-4.7**>")
    small, large = counted(talk, body_of(talk, "hello")), counted(talk, body_of(talk, "hello " * 1000))
    assert 1 <= small < 20
    assert 1000 <= large <= 3000
    assert talk.provider.requests == []


@pytest.mark.parametrize("failure", [Behaviour(status=401, error="bad key"), Behaviour(status=500), Behaviour(before="reset")])
def test_a_count_that_fails_is_estimated_and_harms_no_key(talk: Talk, failure: Behaviour) -> None:
    talk.tell("<**!counts.m**>")
    talk.provider.always(failure, path="count")
    for _ in range(4):
        assert 1 <= counted(talk, body_of(talk, "hello")) <= 25  # 25 is what the provider counts in answers
    assert [one.asked.action for one in talk.provider.requests if one.asked] == ["count"] * 4
    assert talk.say("hello").target == "counts.example/counts-key/m"


def test_a_vendors_own_host_counts_with_our_key(counting: Pair) -> None:
    provider, proxy = counting
    provider.forget()
    talk = Talk(provider, proxy)
    talk.tell("<**!own.claude-own**>")
    assert counted(talk, body_of(talk, "hello")) == 25
    (received,) = provider.requests
    assert received.json["model"] == "claude-own"
    assert str(received.key).startswith("sk-ant-")
    # whose turn it is does not change by counting
    first = talk.say("a").key
    for _ in range(3):
        counted(talk, body_of(talk, "hello"))
    assert talk.say("b").key != first


async def _many(talk: Talk, body: bytes, connections: int, each: int) -> list[Answer]:
    route = Route(HOSTS[talk.dialect], talk.proxy)
    headers = (CREDENTIALS[talk.dialect], ("x-session-id", str(talk.session)))

    async def one() -> list[Answer]:
        async with Http1(route) as client:
            return [await client.send("POST", PATHS[talk.dialect], headers=headers, body=body) for _ in range(each)]

    return [answer for answers in await asyncio.gather(*(one() for _ in range(connections))) for answer in answers]


@pytest.mark.parametrize("target", ["origin", "counts.m", "glm.glm-4.7"])
def test_fifty_at_once(talk: Talk, target: str) -> None:
    talk.tell(f"<**!{target}**>" if target != "origin" else "<**status**>")
    body = json.dumps(body_of(talk, "hello " * 2000)).encode()
    answers = asyncio.run(_many(talk, body, 10, 5))
    assert [answer.status for answer in answers] == [200] * 50
    assert len(talk.provider.requests) == (0 if target.startswith("glm") else 50)


# --- how good is the estimate? ---------------------------------------------------------------------------------------------


def provider_count(body: object) -> int:
    """What the fake provider calls tokens: the bytes of all it reads by 3.6, and something for each message."""
    return round(_read_bytes(body) / 3.6) + 12


def _read_bytes(value: object) -> float:
    if isinstance(value, str):
        return len(value.encode())
    if isinstance(value, list):
        return sum(map(_read_bytes, value))
    if isinstance(value, dict):
        shown = sum(_read_bytes(one) for key, one in value.items() if key not in ("model", "role", "type", "id"))
        return shown + (7 * 3.6 if "role" in value else 0)
    return 0


def _reports_usage(received: Received) -> Behaviour | None:
    if received.asked is None or received.asked.action != "generate":
        return None
    return Behaviour(reply=Reply("Done, all of it.", input_tokens=provider_count(received.json)))


@dataclass(frozen=True)
class Learned:
    said: int
    truth: int

    @property
    def off(self) -> float:
        return abs(self.said - self.truth) / self.truth


def learn(talk: Talk, provider: str, opening: str, grown: str) -> Learned:
    """A first answer, then the count of the conversation one message later."""
    talk.tell(f"<**!{provider}.m**>")
    talk.provider.script(_reports_usage)
    talk.say(opening)
    time.sleep(0.02)  # learning comes after the client has its answer
    later = body_of(talk, opening, "Done, all of it.", grown)
    return Learned(counted(talk, later), provider_count(later))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("language", LANGUAGES)
def test_within_15_percent_once_an_answer_was_seen(counting: Pair, language: str, size: int) -> None:
    provider, proxy = counting
    provider.forget()
    line = LANGUAGES[language]
    opening = line * max(1, size // len(line.encode()))
    talk = Talk(provider, proxy, Dialect.MESSAGES, stream=size % 2 == 0)
    learned = learn(talk, f"learn-{language}-{size}", opening, line * max(1, size // 10 // len(line.encode())))
    assert learned.off <= 0.15, learned


def test_tools_and_instructions_count_as_well(counting: Pair) -> None:
    provider, proxy = counting
    provider.forget()
    schema = {
        "type": "object",
        "properties": {name: {"type": "string", "description": LANGUAGES["english"]} for name in "abcdef"},
    }
    tools = [{"name": f"tool{n}", "description": LANGUAGES["english"] * 3, "input_schema": schema} for n in range(10)]
    talk = Talk(provider, proxy, Dialect.MESSAGES)
    bare = counted_at_glm(talk, body_of(talk, "hello"))
    full = counted_at_glm(talk, body_of(talk, "hello") | {"tools": tools, "system": LANGUAGES["german"] * 50})
    truth = (len(json.dumps(tools)) + len(LANGUAGES["german"].encode()) * 50) / 3.6
    assert abs(full - bare - truth) / truth < 0.25


def counted_at_glm(talk: Talk, body: dict[str, Any]) -> int:
    talk.tell("<**!glm.glm-4.7**>")
    return counted(talk, body)
