"""Whose state is in force: sessions that clients name, derived ones, chains of responses; and what survives a restart."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from routecodex.routing.values import Dialect
from tests.rig.behaviour import Behaviour
from tests.rig.client import Answer, call
from tests.rig.provider import FakeProvider
from tests.rig.proxy import SCRIPT, Mitmdump
from tests.rig.reply import Reply, ToolUse
from tests.system import tool
from tests.system.talk import CONFIG, FORMS, IDS, MARK, Talk, request, state_of
from tests.system.tool import CREDENTIALS, HOSTS, text_of

pytestmark = pytest.mark.system

Pair = tuple[FakeProvider, Mitmdump]
GLM = {"model": "glm-4.7", "provider": "glm"}
UUID = "0b5e2c1e-3a52-4a7e-9d0c-5a0d4f7b1c11"


@pytest.fixture(scope="module")
def steered() -> Iterator[Pair]:
    with FakeProvider() as provider, Mitmdump(script=SCRIPT, config=CONFIG, upstream=provider) as proxy:
        yield provider, proxy
        assert proxy.alive
        assert "Traceback" not in proxy.log


@pytest.fixture(params=FORMS, ids=IDS)
def talk(steered: Pair, request: pytest.FixtureRequest) -> Talk:
    steered[0].forget()
    return Talk(*steered, *request.param)


# --- a restart ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_s02_all_of_it_survives_a_restart(tmp_path: Path, end: str) -> None:
    with FakeProvider() as provider, Mitmdump(script=SCRIPT, config=CONFIG, upstream=provider, folder=tmp_path) as proxy:
        talks = [Talk(provider, proxy, dialect, stream) for dialect, stream in FORMS]
        for talk in talks:
            talk.say("<**!glm.glm-4.7**> <**#openai.1**> a", "a")
            talk.tell('<**stopMessage:"go on",4**>')
        proxy.stop() if end == "stop" else proxy.kill()
        proxy.start()
        provider.forget()
        for talk in talks:
            assert talk.state == {
                "stickyTarget": GLM,
                "disabledKeys": [{"provider": "openai", "keys": ["primary"]}],
                "stopMessageText": "go on",
                "stopMessageMaxRepeats": 4,
                "stopMessageUsed": 0,
            }
            said = talk.tell("<**status**>").text
            assert "Sticky: glm.glm-4.7 (all keys)." in said
            assert "Disabled: openai key primary." in said
            assert 'stopMessage: "go on", used 0 of 4 times.' in said
            talk.tell("<**stopMessage:clear**>")
            first = talk.say("b")
            assert first.target.startswith("glm.example/")
            assert talk.hop().key == first.key
            assert talk.say("c").key != first.key
            assert talk.say("<**clear**> d", "d").target == talk.home
            assert talk.state is None


def test_a_restart_in_the_middle_of_a_forced_message(tmp_path: Path) -> None:
    """The tag still stands in the newest message: its hops go where it says, and nothing is obeyed a second time."""
    with FakeProvider() as provider, Mitmdump(script=SCRIPT, config=CONFIG, upstream=provider, folder=tmp_path) as proxy:
        talk = Talk(provider, proxy)
        talk.say("<**#glm.1**> <**openai.gpt-5.2**> a", "a")
        proxy.stop()
        proxy.start()
        assert talk.hop().target.startswith("openai.example/")
        assert talk.state == {"disabledKeys": [{"provider": "glm", "keys": ["primary"]}]}
        assert talk.say("b").target == talk.home


def test_s10_two_servers_have_folders_of_their_own(tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path), "USERPROFILE": str(tmp_path), "ROUTECODEX_SESSION_DIR": "", "ROUTECODEX_USER_DIR": ""}
    with (
        FakeProvider() as provider,
        Mitmdump(script=SCRIPT, config=CONFIG, upstream=provider, env=home) as one,
        Mitmdump(script=SCRIPT, config=CONFIG, upstream=provider, env=home) as other,
    ):
        talk = Talk(provider, one)
        talk.say("<**!glm**> a", "a")
        twin = Talk(provider, other, session=talk.session)
        assert twin.say("b").target == twin.home
        folder = tmp_path / ".routecodex" / "sessions"
        assert [path.name for path in (folder / f"127.0.0.1_{one.port}").glob("session-*.json")] == [
            f"session-{talk.session}.json"
        ]
        assert list((folder / f"127.0.0.1_{other.port}").glob("*.json")) == []
        mode = (folder / f"127.0.0.1_{one.port}" / f"session-{talk.session}.json").stat().st_mode
        assert mode & 0o777 == 0o600
        assert (folder / f"127.0.0.1_{one.port}").stat().st_mode & 0o777 == 0o700


# --- how clients name a session ------------------------------------------------------------------------------------------

NAMED: dict[str, tuple[Dialect, tuple[tuple[str, str], ...], dict[str, Any], str]] = {
    "Claude Code's header": (Dialect.MESSAGES, (("x-claude-code-session-id", UUID),), {}, f"session-{UUID}"),
    "S06 Claude Code's user id as JSON": (
        Dialect.MESSAGES,
        (),
        {"metadata": {"user_id": json.dumps({"device_id": "d", "account_uuid": "", "session_id": UUID})}},
        f"session-{UUID}",
    ),
    "S06 an older user id": (
        Dialect.MESSAGES,
        (),
        {"metadata": {"user_id": f"user_0123abcd_account__session_{UUID}"}},
        f"session-{UUID}",
    ),
    "session_id": (Dialect.CHAT, (("session_id", "one"),), {}, "session-one"),
    "session-id": (Dialect.RESPONSES, (("session-id", "two"),), {}, "session-two"),
    "Codex's cache key": (
        Dialect.RESPONSES,
        (("user-agent", "codex_exec/0.169.0"),),
        {"prompt_cache_key": UUID},
        f"session-{UUID}",
    ),
    "qwen-code's metadata": (
        Dialect.CHAT,
        (),
        {"metadata": {"sessionId": "three", "promptId": "three########1"}},
        "session-three",
    ),
    "kimi's cache key": (Dialect.CHAT, (), {"prompt_cache_key": "session_4"}, "session-session_4"),
    "opencode's header": (Dialect.MESSAGES, (("x-session-affinity", "ses_5"),), {}, "session-ses_5"),
    "a conversation": (Dialect.CHAT, (("conversation_id", "six"),), {}, "conversation-six"),
    "the session before the conversation": (
        Dialect.CHAT,
        (("x-session-id", "seven"), ("conversation_id", "eight")),
        {},
        "session-seven",
    ),
    "29b x-routecodex-session before everything": (
        Dialect.MESSAGES,
        (("x-claude-code-session-id", UUID), ("x-routecodex-session", "nine")),
        {},
        "session-nine",
    ),
}


@pytest.mark.parametrize("dialect, headers, more, name", NAMED.values(), ids=NAMED.keys())
def test_how_clients_name_a_session(
    steered: Pair, dialect: Dialect, headers: tuple[tuple[str, str], ...], more: dict[str, Any], name: str
) -> None:
    provider, proxy = steered
    provider.forget()
    path = proxy.sessions / f"{name}.json"
    talk = Talk(provider, proxy, dialect, session=None, headers=headers)
    # identity stays at home, so the body is compared only there
    talk.more = more
    talk.tell("<**!glm.glm-4.7**>")
    assert state_of(proxy, path.name) == {"stickyTarget": GLM}
    talk.tell("<**clear**>")
    assert not path.exists()
    assert talk.say("hello").target == talk.home
    (received,) = provider.requests
    assert [key for key, _ in received.headers if key.lower().startswith("x-routecodex")] == []
    for key, value in headers:
        assert received.header(key) == value or key.startswith("x-routecodex")


def test_names_that_are_no_file_names(steered: Pair) -> None:
    provider, proxy = steered
    before = set(proxy.sessions.iterdir())
    names = ["../../etc/passwd", "a/b", "A", "a", "CON", "ü" * 200, "x" * 4000, ".", "a\x7fb"]
    talks = [Talk(provider, proxy, session=name.encode().decode("latin-1")) for name in names]
    for talk in talks:
        talk.tell("<**!glm**>")
    written = {path for path in set(proxy.sessions.iterdir()) - before if path.suffix == ".json"}
    assert len(written) == len(names)
    for talk in talks:
        assert "Allowed: glm." in talk.tell("<**status**>").text
    for path in written:
        path.unlink()


# --- clients that name none ----------------------------------------------------------------------------------------------


def test_12_a_derived_session(talk: Talk) -> None:
    """The conversation is recognised by its beginning, also when its first message was for the proxy."""
    talk.session = None
    talk.more = {"marker": f"{talk.dialect}-{talk.stream}"}
    opening = f"hello from {talk.dialect} {talk.stream}"
    talk.say(opening)
    talk.say("<**!glm.glm-4.7**> b", "b")
    first = talk.say("c")
    assert first.target.startswith("glm.example/")
    assert talk.hop().key == first.key
    assert talk.say("d").key != first.key
    assert "This client names no session; this conversation is recognised by its beginning." in talk.tell("<**status**>").text
    stranger = Talk(talk.provider, talk.proxy, talk.dialect, talk.stream, session=None, more=talk.more)
    assert stranger.say(f"{opening}, but another").target == stranger.home
    assert talk.say("<**clear**> e", "e").target == talk.home
    assert talk.say("f").target == talk.home


def test_12_a_derived_session_that_begins_with_a_tag(talk: Talk) -> None:
    talk.session = None
    talk.tell(f"<**!glm.glm-4.7**> <**{talk.dialect}-{talk.stream}:x**>")
    assert talk.say("a").target.startswith("glm.example/")
    assert talk.say("b").target.startswith("glm.example/")
    talk.tell("<**clear**>")
    assert talk.say("c").target == talk.home


def test_12_a_new_conversation_with_the_same_beginning_starts_afresh(talk: Talk) -> None:
    """It cannot be told from the old one by anything but that nobody has answered it yet."""
    talk.session = None
    opening = f"the usual opening in {talk.dialect} {talk.stream}"
    talk.say(opening)
    talk.say("<**!glm.glm-4.7**> b", "b")
    assert talk.say("c").target.startswith("glm.example/")
    new = Talk(talk.provider, talk.proxy, talk.dialect, talk.stream, session=None)
    assert new.say(opening).target == new.home
    assert new.say("b").target == new.home
    begun_with_tags = Talk(talk.provider, talk.proxy, talk.dialect, talk.stream, session=None)
    begun_with_tags.tell(f"<**!glm**> <**x:{talk.dialect}-{talk.stream}**>")
    assert begun_with_tags.say("a").target.startswith("glm.example/")
    begun_with_tags.say("<**#openai**> b", "b")
    again = Talk(talk.provider, talk.proxy, talk.dialect, talk.stream, session=None)
    assert "Disabled" not in again.tell(f"<**!glm**> <**x:{talk.dialect}-{talk.stream}**>").text
    assert "Allowed: glm." in again.tell("<**status**>").text


def test_12_a_repeated_first_call_obeys_nothing_twice(talk: Talk) -> None:
    talk.session = None
    opening = f"only once in {talk.dialect} {talk.stream}"
    first = talk.say(f"<**!glm.glm-4.7**> {opening}", opening)
    assert talk.again().key == first.key
    assert talk.say("b").target.startswith("glm.example/")


def test_12_other_callers_with_the_same_words_are_strangers(talk: Talk) -> None:
    talk.session = None
    opening = f"the same opening in {talk.dialect} {talk.stream}"
    talk.say(f"<**!glm.glm-4.7**> {opening}", opening)
    path, body = request(talk.dialect, "client-model", [("user", f"<**!glm.glm-4.7**> {opening}"), ("user", "x")], talk.stream)
    name, value = CREDENTIALS[talk.dialect]
    other = ((name, value + "-of-another"),)
    call(HOSTS[talk.dialect], path, body, proxy=talk.proxy, headers=other)
    assert talk.provider.requests[-1].host == HOSTS[talk.dialect].removeprefix("https://")
    assert talk.say("y").target.startswith("glm.example/")


def test_12_derive_off_holds_for_one_message(tmp_path: Path) -> None:
    config = CONFIG + "sessions: {derive: off}\n"
    with FakeProvider() as provider, Mitmdump(script=SCRIPT, config=config, upstream=provider, folder=tmp_path) as proxy:
        for dialect, stream in FORMS:
            talk = Talk(provider, proxy, dialect, stream, session=None)
            assert talk.say("<**!glm.glm-4.7**> a", "a").target.startswith("glm.example/")
            assert talk.say("b").target == talk.home
            assert "This client names no session, so tags hold for this message only." in talk.tell("<**!glm**>").text
            assert talk.say("c").target == talk.home
        assert [path.name for path in proxy.sessions.glob("*.json")] == []


# --- chains of responses -------------------------------------------------------------------------------------------------


class Chain:
    """A client of the Responses API that sends only what is new."""

    def __init__(self, provider: FakeProvider, proxy: Mitmdump, *, stream: bool, session: str | None) -> None:
        self.provider, self.proxy, self.stream = provider, proxy, stream
        self.headers = (("session-id", session),) if session else ()
        self.previous: str | None = None
        self.more: dict[str, Any] = {}
        self.text = ""

    def ask(self, item: dict[str, Any] | str) -> str:
        """The target; empty where nothing was sent."""
        items = (
            [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": item}]}]
            if isinstance(item, str)
            else [item]
        )
        body: dict[str, Any] = {"model": "client-model", "stream": self.stream, "input": items} | self.more
        if self.previous is not None and not self.more:
            body["previous_response_id"] = self.previous
        before = len(self.provider.requests)
        headers = (CREDENTIALS[Dialect.RESPONSES], *self.headers)
        answer = call(HOSTS[Dialect.RESPONSES], "/v1/responses", body, proxy=self.proxy, headers=headers)
        assert answer.status == 200, answer.text
        ended = json.loads(answer.events[-1][1])["response"] if self.stream else answer.json
        self.previous, self.text = ended["id"], text_of(Dialect.RESPONSES, answer.body, self.stream)
        return "".join(f"{one.host}/{one.key}" for one in self.provider.requests[before:])


NUMBERS = itertools.count()
"""A session of its own, also where a test runs twice."""
OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": "done"}


@pytest.mark.parametrize("session", [None, "chained"], ids=["no session", "session"])
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "json"])
def test_11_s08_a_chain_keeps_its_key(steered: Pair, stream: bool, session: str | None) -> None:
    """The response lives at the key that made it: the whole chain stays there, also over user messages."""
    steered[0].forget()
    chain = Chain(*steered, stream=stream, session=session and f"{session}-{stream}")
    first = chain.ask("<**!glm.glm-4.7**> a")
    assert first.startswith("glm.example/")
    assert chain.ask(OUTPUT) == first
    assert chain.ask("b") == first
    assert chain.ask("c") == first
    sent = [one.json.get("previous_response_id") for one in steered[0].requests]
    assert sent[0] is None
    assert all(sent[1:]), "the account that made an answer is told which one is meant"
    # a new chain of the session takes the next key; without a session it is a stranger
    chain.previous = None
    again = chain.ask("d")
    if session:
        assert again.startswith("glm.example/")
        assert again != first
    else:
        assert again == "api.openai.com/sk-client-secret"


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "json"])
def test_11_tags_of_a_chain_without_a_session(steered: Pair, stream: bool) -> None:
    steered[0].forget()
    chain = Chain(*steered, stream=stream, session=None)
    assert chain.ask("<**!glm**> a chain of its own").startswith("glm.example/")
    assert chain.ask("b").startswith("glm.example/")
    assert chain.ask("<**clear**> c") != ""
    assert chain.ask("d").startswith(("api.openai.com/", "glm.example/"))


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "json"])
@pytest.mark.parametrize("kept", ["previous_response_id", "conversation"])
def test_who_does_not_hold_the_history_is_not_asked(steered: Pair, kept: str, stream: bool) -> None:
    """It lies at the provider that made it: another one would answer something else, in whatever dialect."""
    provider, _ = steered
    provider.forget()
    chain = Chain(*steered, stream=stream, session=f"history-{next(NUMBERS)}")
    if kept == "conversation":
        chain.more = {"conversation": "conv_1"}
    else:
        chain.ask("a")
    before, holds = len(provider.requests), chain.more.get(kept) or chain.previous
    for tag in ("<**glm.glm-4.7**>", "<**anthropic.claude-sonnet-4-5**>"):
        with pytest.raises(AssertionError, match="kept at the provider that made it"):
            chain.ask(f"{tag} b")
    assert len(provider.requests) == before
    assert chain.ask("<**!glm.glm-4.7**> c").startswith("api.openai.com/")
    assert "glm.glm-4.7 cannot be used now" in chain.text
    assert provider.requests[-1].json[kept] == holds


class Namer:
    """A client of the Responses API that repeats no item of an answer, but names it (the AI SDK)."""

    def __init__(self, proxy: Mitmdump, *, stream: bool) -> None:
        self.proxy, self.stream = proxy, stream
        self.history: list[dict[str, Any]] = []

    def ask(self, text: str) -> Answer:
        self.history.append({"role": "user", "content": [{"type": "input_text", "text": text}]})
        body = {"model": "client-model", "stream": self.stream, "input": self.history}
        headers = (CREDENTIALS[Dialect.RESPONSES], ("session-id", "naming"))
        answer = call(HOSTS[Dialect.RESPONSES], "/v1/responses", body, proxy=self.proxy, headers=headers)
        if answer.status == 200:
            ended = json.loads(answer.events[-1][1])["response"] if self.stream else answer.json
            self.history += ({"type": "item_reference", "id": item["id"]} for item in ended["output"])
        return answer


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "json"])
def test_what_was_made_here_may_be_named_later(tmp_path: Path, stream: bool) -> None:
    """No provider knows the name: another dialect's answers, and ours."""
    with FakeProvider() as provider, Mitmdump(script=SCRIPT, config=tool.CONFIG, upstream=provider, folder=tmp_path) as proxy:
        provider.script(lambda received: Behaviour(reply=Reply("well said", thinking="hm")))
        namer = Namer(proxy, stream=stream)
        for text in ("<**!glm.glm-4.7**> a", "<**status**>", "<**echo**> b", "c"):
            assert namer.ask(text).status == 200
        first, last = provider.requests
        assert first.host == last.host == "open.bigmodel.cn"
        said = [(one["role"], one["content"], one.get("reasoning_content")) for one in last.json["messages"]]
        assert said == [
            ("user", "a", None),
            ("assistant", "well said", "hm"),
            ("user", "b", None),
            ("assistant", "b", None),
            ("user", "c", None),
        ]
        assert namer.ask("<**clear**> d").status == 200
        at_home = provider.requests[-1]
        assert at_home.host == "api.openai.com"
        assert b"item_reference" not in at_home.body
        assert at_home.body.count(b"well said") == 2
        proxy.stop()
        proxy.start()
        before = len(provider.requests)
        refused = namer.ask("e")
        assert refused.status == 400
        assert "RouteCodex made it and holds it no longer" in refused.text
        assert len(provider.requests) == before


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "json"])
def test_what_another_provider_made_is_named_to_it_and_to_others_as_it_was(tmp_path: Path, stream: bool) -> None:
    """A name says nothing where the client's own calls go, nor at a third one."""
    with FakeProvider() as provider, Mitmdump(script=SCRIPT, config=CONFIG, upstream=provider, folder=tmp_path) as proxy:
        provider.script(lambda received: Behaviour(reply=Reply(f"well said {len(provider.requests)}")))
        namer = Namer(proxy, stream=stream)
        for text in ("<**!glm.glm-4.7**> a", "b", "<**!openai.gpt-4**> c", "<**clear**> d"):
            assert namer.ask(text).status == 200
        assert [one.host for one in provider.requests] == ["glm.example", "glm.example", "openai.example", "api.openai.com"]
        for number, request in enumerate(provider.requests):
            assert b"item_reference" not in request.body
            assert [f"well said {one + 1}".encode() in request.body for one in range(3)] == [one < number for one in range(3)]
        assert namer.ask("e").status == 200
        assert provider.requests[-1].body.count(b"item_reference") == 1, "what is known there is named"


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "json"])
def test_a_chain_of_answers_that_no_provider_keeps(tmp_path: Path, stream: bool) -> None:
    """They were given in another dialect: the conversation is held here, and goes wherever the next call goes."""
    with FakeProvider() as provider, Mitmdump(script=SCRIPT, config=tool.CONFIG, upstream=provider, folder=tmp_path) as proxy:
        provider.script(lambda received: Behaviour(reply=Reply(f"well said {len(provider.requests)}")))
        chain = Chain(provider, proxy, stream=stream, session="unkept")
        asked = ("<**!glm.glm-4.7**> a", "<**status**>", "b", "<**claude.claude-sonnet-4-5**> c", "<**clear**> d")
        hosts = [chain.ask(text).partition("/")[0] for text in asked]
        assert hosts == ["open.bigmodel.cn", "", "open.bigmodel.cn", "api.anthropic.com", "api.openai.com"]
        said = [one["content"] for one in provider.requests[1].json["messages"]]
        assert said == ["a", "well said 1", "b"]
        at_home = provider.requests[-1]
        assert "previous_response_id" not in at_home.json
        assert [text in at_home.body for text in (b"well said 3", b"<**", b"RouteCodex")] == [True, False, False]
        assert chain.ask("e") == "api.openai.com/sk-client-secret"
        assert len(provider.requests[-1].json["input"]) == 1, "what follows is kept there"


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "json"])
def test_a_tool_call_in_a_chain_that_no_provider_keeps(tmp_path: Path, stream: bool) -> None:
    with FakeProvider() as provider, Mitmdump(script=SCRIPT, config=tool.CONFIG, upstream=provider, folder=tmp_path) as proxy:
        looks = ToolUse("look", {"at": "it"}, "call_1")
        provider.script(lambda received: Behaviour(reply=Reply("I look.", calls=() if b"done" in received.body else (looks,))))
        chain = Chain(provider, proxy, stream=stream, session="unkept")
        chain.ask("<**!glm.glm-4.7**> a")
        chain.ask(OUTPUT)
        chain.ask("b")
        *_, last = provider.requests
        told = [
            (one["role"], one["content"], [call["id"] for call in one.get("tool_calls", ())]) for one in last.json["messages"]
        ]
        assert told == [
            ("user", "a", []),
            ("assistant", "I look.", ["call_1"]),
            ("tool", "done", []),
            ("assistant", "I look.", []),
            ("user", "b", []),
        ]


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "json"])
def test_what_follows_an_answer_that_nobody_kept_goes_to_nobody(tmp_path: Path, stream: bool) -> None:
    """Least of all to where the client's own calls go: a tag has led away from there."""
    folder, config = tmp_path, tool.CONFIG
    with FakeProvider() as provider, Mitmdump(script=SCRIPT, config=config, upstream=provider, folder=folder) as proxy:
        chain = Chain(provider, proxy, stream=stream, session="unkept")
        chain.more = {"store": False}
        assert chain.ask("<**!glm.glm-4.7**> a").startswith("open.bigmodel.cn/")
        before, given = len(provider.requests), chain.previous
        for text in ("b", "<**clear**> c"):
            chain.more = {"store": False, "previous_response_id": given}
            with pytest.raises(AssertionError, match="previous_response_not_found"):
                chain.ask(text)
        assert len(provider.requests) == before
        chain.more = {}
        chain.previous = None
        assert chain.ask("<**!glm.glm-4.7**> d").startswith("open.bigmodel.cn/")


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "json"])
def test_a_local_answer_does_not_break_the_chain(steered: Pair, stream: bool) -> None:
    """Nobody but us knows the id of an answer of ours: no provider may ever be asked for it."""
    provider, _ = steered
    provider.forget()
    chain = Chain(*steered, stream=stream, session=f"local-{stream}")
    chain.ask("a")
    real = chain.previous
    assert chain.ask("<**status**>") == ""
    assert chain.text.startswith(MARK)
    chain.ask("b")
    assert provider.requests[-1].json.get("previous_response_id") == real


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "json"])
def test_a_chain_that_begins_with_a_local_answer(steered: Pair, stream: bool) -> None:
    provider, _ = steered
    provider.forget()
    chain = Chain(*steered, stream=stream, session=None)
    assert chain.ask("<**!glm.glm-4.7**>") == ""
    assert chain.ask("hello").startswith("glm.example/")
    assert "previous_response_id" not in provider.requests[-1].json


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "json"])
def test_an_echo_in_a_chain(steered: Pair, stream: bool) -> None:
    provider, _ = steered
    provider.forget()
    chain = Chain(*steered, stream=stream, session=f"echo-{stream}")
    assert chain.ask("<**echo**> hello") == ""
    assert chain.ask("<**echo**> hello again") == ""
    assert chain.ask("<**clear**> b").startswith("api.openai.com/")
    assert "previous_response_id" not in provider.requests[-1].json


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "json"])
def test_a_chain_does_not_fail_over_to_an_account_that_knows_nothing_of_it(tmp_path: Path, stream: bool) -> None:
    with FakeProvider() as provider, Mitmdump(script=SCRIPT, config=CONFIG, upstream=provider, folder=tmp_path) as proxy:
        chain = Chain(provider, proxy, stream=stream, session="failing")
        first = chain.ask("<**!openai.gpt-4**> a")
        provider.always(Behaviour(status=402, error="no money"), key=first.rsplit("/", 1)[1])
        with pytest.raises(AssertionError, match="PROVIDER_KEY_REFUSED"):
            chain.ask("b")
        assert {one.key for one in provider.requests} == {first.rsplit("/", 1)[1]}


def test_a_chain_survives_a_restart_at_home(tmp_path: Path) -> None:
    with FakeProvider() as provider, Mitmdump(script=SCRIPT, config=CONFIG, upstream=provider, folder=tmp_path) as proxy:
        chain = Chain(provider, proxy, stream=True, session=None)
        chain.ask("a")
        real = chain.previous
        assert chain.ask("<**status**>") == ""
        proxy.stop()
        proxy.start()
        assert chain.ask("b").startswith("api.openai.com/")
        assert provider.requests[-1].json["previous_response_id"] == real


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "json"])
def test_a_provider_that_gives_all_its_answers_one_name(tmp_path: Path, stream: bool) -> None:
    """Nobody can tell which one is meant: that is said, and nothing waits or goes round in circles for it."""
    with FakeProvider() as provider, Mitmdump(script=SCRIPT, config=tool.CONFIG, upstream=provider, folder=tmp_path) as proxy:
        answer: dict[str, Any] = {
            "id": "resp_same",
            "object": "chat.completion",
            "created": 1,
            "model": "m",
            "choices": [{"index": 0}],
        }
        answer["choices"][0] |= {"message": {"role": "assistant", "content": "fine"}, "finish_reason": "stop"}
        provider.always(Behaviour(body=json.dumps(answer).encode()), host="open.bigmodel.cn")
        chain = Chain(provider, proxy, stream=stream, session="same")
        chain.ask("<**!glm.glm-4.7**> a")
        chain.ask("b")
        with pytest.raises(AssertionError, match="previous_response_not_found"):
            chain.ask("c")
        assert chain.ask("<**echo**> d") == "", "the echo needs no history"
