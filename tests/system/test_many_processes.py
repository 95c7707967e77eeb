"""Two workers behind one port, and two proxies on one Redis: whichever of them a call comes to, it is one conversation."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from routecodex.routing.values import Dialect
from tests.rig.behaviour import Behaviour
from tests.rig.client import Answer, Http1, Route, call
from tests.rig.door import until
from tests.rig.provider import FakeProvider, Received
from tests.rig.proxy import SCRIPT, Mitmdump
from tests.rig.redis_server import IS_THERE, RedisServer, redis_server
from tests.rig.reply import Reply
from tests.rig.wire import Reply as Says
from tests.rig.wire import ToolUse
from tests.system.speaker import Speaker
from tests.system.talk import Heard, Talk, configured
from tests.system.tool import CREDENTIALS, HOSTS

pytestmark = pytest.mark.system

WAYS = ["workers", *(["redis"] if IS_THERE else [])]
CLOCK = '  clock: {"enabled": true, "ntp": {"enabled": false}}\n'
CONFIG = configured(
    {
        "p": (2, "m"),
        "q": (1, "m"),
        "poor": (2, "m"),
        **{f"b{n}": (2, "m") for n in range(4)},
        **{f"lone{n}": (1, "m") for n in range(20)},
    },
    "    default: [p.m]\n",
    CLOCK,
)


@dataclass
class Many:
    """Each call comes to another process than the one before."""

    provider: FakeProvider
    proxies: list[Mitmdump]
    server: RedisServer | None = None
    asked: int = 0
    knows_the_poor: bool = False
    """The test was here before."""
    spent: int = 0
    """So many of those with one key have none any more."""

    def next(self) -> Mitmdump:
        """Workers are given connections in turns."""
        self.asked += 1
        return self.proxies[self.asked % len(self.proxies)]

    def say(self, talk: Talk, *entries: tuple[str, str]) -> Heard:
        """The next call of a conversation; its history grows by what its tool is shown."""
        talk.proxy = self.next()
        talk.typed += entries
        heard = talk._exchange(())
        if heard.answer.status == 200:
            talk.typed.append(("assistant", heard.text))
        return heard

    def talk(self, **more: Any) -> Talk:
        self.provider.forget()
        return Talk(self.provider, self.proxies[0], **more)

    def send(self, messages: list[dict[str, Any]], session: str) -> Answer:
        """As a tool writes it, to the next one."""
        body = {"model": "claude-x", "max_tokens": 99, "messages": messages}
        headers = [CREDENTIALS[Dialect.MESSAGES], ("x-session-id", session)]
        return call(HOSTS[Dialect.MESSAGES], "/v1/messages", body, proxy=self.next(), headers=headers)

    @property
    def log(self) -> str:
        return "\n".join(proxy.log for proxy in self.proxies)


@contextlib.contextmanager
def many(way: str, provider: FakeProvider, folder: Path, config: str = CONFIG) -> Iterator[Many]:
    with contextlib.ExitStack() as stack:
        enter = stack.enter_context
        if way == "workers":
            proxy = enter(Mitmdump(script=SCRIPT, config=config, upstream=provider, folder=folder / "proxy", workers=2))
            yield Many(provider, [proxy])
        else:
            server = enter(redis_server(folder / "redis"))
            config = f'sessions: {{store: "{server.url}?wait=60"}}\n{config}'
            proxies = [
                enter(Mitmdump(script=SCRIPT, config=config, upstream=provider, folder=folder / name))
                for name in ("one", "other")
            ]
            yield Many(provider, proxies, server)


@pytest.fixture(scope="module", params=WAYS)
def house(request: pytest.FixtureRequest, provider: FakeProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Many]:
    with many(request.param, provider, tmp_path_factory.mktemp("many")) as started:
        yield started
        assert all(proxy.alive for proxy in started.proxies)
        assert "RouteCodex failed" not in started.log


def key(heard: Heard) -> str:
    return str(heard.received[-1].key).removesuffix("-value")


def test_keys_take_turns(house: Many) -> None:
    used = [key(house.say(house.talk(), ("user", "hi"))) for _ in range(6)]
    assert sorted(used[:2]) == ["p-k1", "p-k2"]
    assert used == used[:2] * 3


def test_the_hops_of_one_message_keep_their_key(house: Many) -> None:
    talk = house.talk()
    first = key(house.say(talk, ("user", "do it")))
    talk.typed.pop()
    assert {key(house.say(talk, ("hop", "done"))) for _ in range(6)} == {first}


def test_a_key_without_money_is_tried_once(house: Many) -> None:
    talk = house.talk()
    house.say(talk, ("user", "<**!poor.m**>"))
    house.provider.always(Behaviour(status=402, error="no money"), key="poor-k1-value")
    for number in range(6):
        house.say(talk, ("user", f"message {number}"))
    assert [one.key for one in house.provider.calls].count("poor-k1-value") == (0 if house.knows_the_poor else 1)
    house.knows_the_poor = True


def test_a_tag_holds_everywhere_and_is_obeyed_once(house: Many) -> None:
    talk = house.talk()
    assert key(house.say(talk, ("user", "<**!q.m**> go"))) == "q-k1"
    assert key(house.say(talk, ("user", "and on"))) == "q-k1"
    house.say(talk, ("user", "<**clear**>"))
    for _ in range(4):
        assert key(house.say(talk, ("user", "more"))).startswith("p-"), "the old tag is not obeyed again"


def test_a_follow_up_goes_where_its_answer_lives(house: Many) -> None:
    talk = house.talk(dialect=Dialect.RESPONSES, session=None)
    first = house.say(talk, ("user", "<**q.m**> hi"))
    id = first.answer.json["id"]
    for _ in range(3):
        follow = Talk(house.provider, talk.proxy, Dialect.RESPONSES, session=None, more={"previous_response_id": id})
        heard = house.say(follow, ("user", "and then?"))
        assert key(heard) == "q-k1"
        id = heard.answer.json["id"]


def test_a_stop_message_is_counted_once_and_its_rounds_are_put_back(house: Many) -> None:
    talk = house.talk()
    house.provider.script(lambda received: Behaviour(reply=Reply("done")))
    assert len(house.say(talk, ("user", '<**stopMessage:"go on",3**> start')).received) == 4
    for _ in range(3):
        heard = house.say(talk, ("user", "and?"))
        assert len(heard.received) == 1, "it is used up, whoever is asked"
        assert heard.received[0].body.count(b"go on") == 3


def test_a_reminder_comes_once(house: Many) -> None:
    house.provider.forget()
    due = datetime.now(UTC).isoformat()
    item = {"dueAt": due, "task": "look at the build", "tool": "", "arguments": "{}"}
    says = [Says("", calls=(ToolUse("clock", {"action": "schedule", "items": [item], "taskId": ""}),))]

    def rule(received: Received) -> Behaviour:
        return Behaviour(reply=says.pop() if says else Says("ok"))

    house.provider.script(rule)
    speaker = Speaker(house.provider, house.next())
    for number in range(6):
        speaker.ask(f"message {number}")
        speaker.proxy = house.next()
    newest = [json.dumps(one.json["messages"][-1]) for one in house.provider.calls]
    assert sum("[Clock Reminder]" in text for text in newest) == 1


def test_what_got_no_answer_and_is_sent_again_with_more_is_not_new(house: Many) -> None:
    """Only the new text is: nothing but a question for us."""
    house.provider.forget()
    texts = [{"type": "text", "text": "hello"}]
    for number in range(4):
        old = [{"role": "user", "content": texts}]
        assert house.send(old, f"grown-{number}").status == 200
        told = house.send([{"role": "user", "content": [*texts, {"type": "text", "text": "<**status**>"}]}], f"grown-{number}")
        assert told.status == 200, told.text
        assert len(house.provider.calls) == number + 1


def test_a_sticky_target_that_was_used_up_is_told_by_all(house: Many) -> None:
    talk, lone = house.talk(), f"lone{house.spent % 20}"
    house.spent += 1
    house.say(talk, ("user", f"<**!{lone}.m**>"))
    house.provider.always(Behaviour(status=401, error="no"), key=f"{lone}-k1-value")
    for _ in range(2):
        house.say(talk, ("user", "hello"))
    for _ in range(2):
        assert f"Sticky {lone}.m was cleared" in house.say(talk, ("user", "<**status**>")).text


def test_an_answer_of_ours_in_a_chain_is_known_to_all(house: Many) -> None:
    """No provider is asked for it."""
    first = house.say(house.talk(dialect=Dialect.RESPONSES, session=None), ("user", "<**!q.m**>"))
    more = {"previous_response_id": first.answer.json["id"]}
    follow = Talk(house.provider, house.proxies[0], Dialect.RESPONSES, session=None, more=more)
    heard = house.say(follow, ("user", "hello"))
    assert key(heard) == "q-k1"
    assert "previous_response_id" not in heard.received[0].json


def test_thinking_goes_back_to_who_signed_it(house: Many) -> None:
    house.provider.forget()
    house.provider.enqueue(Behaviour(reply=Says("well", thinking="let me see")))
    asked = {"role": "user", "content": "<**!q.m**> think"}
    content = house.send([asked], "sealed").json["content"]
    (signature,) = (block["signature"] for block in content if block["type"] == "thinking")
    history = [asked, {"role": "assistant", "content": content}]
    for number in range(3):
        assert house.send([*history, {"role": "user", "content": f"and now? {number}"}], "sealed").status == 200
        assert signature in house.provider.calls[-1].body.decode()


# A proxy that stands still


class Held:
    """A call on a connection of its own, whose client leaves when it is told to."""

    def __init__(self, house: Many, proxy: Mitmdump, text: str, session: str) -> None:
        self.leaves = threading.Event()
        self.said = [{"role": "user", "content": text}]
        self._house, self._session = house, session
        body = json.dumps({"model": "claude-x", "max_tokens": 99, "messages": self.said}).encode()
        name, value = CREDENTIALS[Dialect.MESSAGES]
        fields = {"Host": "api.anthropic.com", "Content-Length": len(body), name: value, "x-session-id": session}
        head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        self._raw = f"POST /v1/messages HTTP/1.1\r\n{head}\r\n".encode() + body
        self._proxy = proxy

    async def __aenter__(self) -> Held:
        self._client = await Http1(Route(HOSTS[Dialect.MESSAGES], self._proxy)).__aenter__()
        return self

    async def begin(self) -> None:
        await self._client.write_raw(self._raw)

    async def __aexit__(self, *_: object) -> None:
        await self._client.__aexit__()

    async def elsewhere(self) -> Answer:
        """The tool repeats it, and the proxy that does not stand still answers."""
        other = next(proxy for proxy in self._house.proxies if proxy is not self._proxy)
        while self._house.proxies[(self._house.asked + 1) % 2] is not other:
            self._house.asked += 1
        return await asyncio.to_thread(self._house.send, self.said, self._session)


@contextlib.contextmanager
def stands_still(proxy: Mitmdump) -> Iterator[None]:
    assert proxy.pid is not None
    os.kill(proxy.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(proxy.pid, signal.SIGCONT)


@pytest.mark.parametrize("house", WAYS[1:], indirect=True)
@pytest.mark.parametrize("begun", [False, True], ids=["not read yet", "being answered"])
def test_what_a_frozen_proxy_held_in_its_hands_counts_for_nothing(house: Many, begun: bool) -> None:
    """Its client has left and was answered elsewhere: nothing of it acts again, nor counts as answered."""
    house.provider.forget()
    session, goes, asked = f"frozen-{begun}", threading.Event(), 0

    def rule(received: Received) -> Behaviour:
        nonlocal asked
        asked += 1
        return Behaviour(reply=Says("done"), **({"until": goes.is_set, "wait_s": 60} if asked == 1 and begun else {}))

    house.provider.script(rule)

    async def whole() -> None:
        async with Held(house, house.proxies[0], '<**stopMessage:"go on",2**> start', session) as held:
            if begun:
                await held.begin()
                await asyncio.to_thread(until, lambda: asked == 1, "it is not asked")
            with stands_still(house.proxies[0]):
                if not begun:
                    await held.begin()
                goes.set()
                if begun:
                    await asyncio.to_thread(until, lambda: house.provider.calls[0].finished_at, "it does not answer")
                await held.__aexit__()
                answer = await held.elsewhere()
                assert answer.status == 200, answer.text
            for number in range(4):  # at both
                said = [*held.said, {"role": "assistant", "content": answer.text}, {"role": "user", "content": f"and {number}"}]
                assert (await asyncio.to_thread(house.send, said, session)).status == 200

    asyncio.run(whole())
    bodies = [json.dumps(received.json["messages"][-1]) for received in house.provider.calls]
    assert sum('"go on' in body for body in bodies) == 2
    assert not house.proxies[0].log.count("Traceback")


@pytest.mark.parametrize("house", WAYS[1:], indirect=True)
def test_a_frozen_proxy_runs_no_tool_for_a_client_that_has_left(house: Many) -> None:
    """It was answered elsewhere, and has its reminder from there."""
    house.provider.forget()
    item = {"dueAt": datetime.now(UTC).isoformat(), "task": "look again", "tool": "", "arguments": "{}"}
    goes, asked = threading.Event(), 0

    def rule(received: Received) -> Behaviour:
        nonlocal asked
        asked += 1
        if asked > 1:
            return Behaviour(reply=Says("done"))
        call = ToolUse("clock", {"action": "schedule", "items": [item], "taskId": ""})
        return Behaviour(reply=Says("", calls=(call,)), until=goes.is_set, wait_s=60)

    house.provider.script(rule)

    async def whole() -> None:
        async with Held(house, house.proxies[0], "remind me", "frozen-tool") as held:
            await held.begin()
            await asyncio.to_thread(until, lambda: asked == 1, "it is not asked")
            with stands_still(house.proxies[0]):
                goes.set()
                await asyncio.to_thread(until, lambda: house.provider.calls[0].finished_at, "it does not answer")
                await held.__aexit__()
                answer = await held.elsewhere()
            for number in range(4):
                said = [*held.said, {"role": "assistant", "content": answer.text}, {"role": "user", "content": f"and {number}"}]
                assert (await asyncio.to_thread(house.send, said, "frozen-tool")).status == 200

    asyncio.run(whole())
    assert not any("[Clock Reminder]" in received.body.decode() for received in house.provider.calls)


@pytest.mark.long
def test_repetitions_are_counted_over_all(house: Many) -> None:
    """Three at once are allowed, wherever: the fourth waits for a place."""
    house.provider.forget()
    over = threading.Event()

    def rule(received: Received) -> Behaviour:
        first = str(received.key).endswith("k1-value")
        return Behaviour(status=503, error="down") if first else Behaviour(wait_s=1, until=over.is_set)

    def asked() -> set[str | None]:
        return {received.key for received in house.provider.calls}

    house.provider.script(rule)
    with ThreadPoolExecutor() as pool:
        answers = []
        for number, waits_for in enumerate(("b0-k2", "b1-k2", "b2-k2", "b3-k1")):
            said = [{"role": "user", "content": f"<**!b{number}.m**> go"}]
            answers.append(pool.submit(house.send, said, f"b{number}"))
            until(lambda key=f"{waits_for}-value": key in asked(), f"{waits_for} is not asked")  # type: ignore[misc]
            time.sleep(0.2)  # all others hear of it
        assert "b3-k2-value" not in asked()
        over.set()
        assert [answer.result(60).status for answer in answers] == [200] * 4
    assert "b3-k2-value" in asked()
