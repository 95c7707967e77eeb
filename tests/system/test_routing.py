"""Where calls go by what they are: routes, pools, headers of the host, models named in the call; and what a sick key changes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from routecodex.routing.values import Dialect
from tests.rig.client import call
from tests.rig.provider import FakeProvider
from tests.rig.proxy import SCRIPT, Mitmdump
from tests.rig.received import Received
from tests.system.talk import FORMS, IDS, Talk, configured, host, request
from tests.system.tool import CREDENTIALS, HOSTS

pytestmark = pytest.mark.system

Pair = tuple[FakeProvider, Mitmdump]

_THRESHOLD = 3000


BY_KIND = configured(
    {
        "plain": (2, "plain-1"),
        "seer": (1, "seer-1"),
        "long": (1, "long-1"),
        "cheap": (1, "cheap-1"),
        "web": (1, "web-1"),
        "glm": (2, "glm-4.7"),
        "elsewhere": (1, "else-1"),
    },
    """    default: [plain.plain-1]
    vision: [seer.seer-1]
    longcontext: [long.long-1]
    background: [cheap.cheap-1]
    web_search: [web.web-1]
    mine: [elsewhere.else-1]
""",
    f'  classifier: {{longContextThresholdTokens: {_THRESHOLD}, backgroundModels: ["*haiku*"]}}\n',
)

BY_TOOL = configured(
    {name: (1, f"{name}-1") for name in ("think", "code", "search", "tools", "rest")},
    """    default: [rest.rest-1]
    thinking: [think.think-1]
    coding: [code.code-1]
    search: [search.search-1]
    tools: [tools.tools-1]
""",
)


def _run(config: str) -> Iterator[Pair]:
    with FakeProvider() as provider, Mitmdump(script=SCRIPT, config=config, upstream=provider) as proxy:
        yield provider, proxy
        assert proxy.alive
        assert "Traceback" not in proxy.log


@pytest.fixture(scope="module")
def by_kind() -> Iterator[Pair]:
    yield from _run(BY_KIND)


@pytest.fixture(scope="module")
def by_tool() -> Iterator[Pair]:
    yield from _run(BY_TOOL)


@pytest.fixture(params=FORMS, ids=IDS)
def talk(by_kind: Pair, request: pytest.FixtureRequest) -> Talk:
    by_kind[0].forget()
    return Talk(*by_kind, *request.param)


# --- what a call is about ------------------------------------------------------------------------------------------------

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
IMAGES: dict[Dialect, dict[str, Any]] = {
    Dialect.MESSAGES: {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
    Dialect.CHAT: {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}},
    Dialect.RESPONSES: {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}"},
    Dialect.GEMINI: {"inlineData": {"mimeType": "image/png", "data": PIXEL}},
}
TEXTS = {Dialect.MESSAGES: "text", Dialect.CHAT: "text", Dialect.RESPONSES: "input_text"}


def with_image(dialect: Dialect, text: str) -> dict[str, Any]:
    words = {"text": text} if dialect is Dialect.GEMINI else {"type": TEXTS[dialect], "text": text}
    item = {"role": "user", "parts" if dialect is Dialect.GEMINI else "content": [words, IMAGES[dialect]]}
    return {"type": "message", **item} if dialect is Dialect.RESPONSES else item


def _ask(talk: Talk, *items: dict[str, Any]) -> Received:
    """A call with items of its own."""
    path, body = request(talk.dialect, talk.model, [], talk.stream)
    key = next(name for name, value in body.items() if value == [])
    headers = (CREDENTIALS[talk.dialect], ("x-session-id", str(talk.session)))
    answer = call(HOSTS[talk.dialect], path, body | {key: list(items)} | talk.more, proxy=talk.proxy, headers=headers)
    assert answer.status == 200, answer.text
    return talk.provider.requests[-1]


def _user(talk: Talk, text: str) -> dict[str, Any]:
    _, body = request(talk.dialect, "", [("user", text)], False)
    return next(value[0] for value in body.values() if isinstance(value, list))


def _assistant(talk: Talk, text: str) -> dict[str, Any]:
    _, body = request(talk.dialect, "", [("assistant", text)], False)
    return next(value[0] for value in body.values() if isinstance(value, list))


def test_v14_an_image_in_the_newest_message(talk: Talk) -> None:
    dialect = talk.dialect
    seen = _ask(talk, with_image(dialect, "what is this?"))
    assert host(seen) == "seer"
    assert PIXEL in seen.body.decode()
    assert host(_ask(talk, with_image(dialect, "what is this?"), _assistant(talk, "a dot"), _user(talk, "thanks"))) == "plain"


def test_r07_sticky_and_an_image(talk: Talk) -> None:
    dialect = talk.dialect
    assert host(_ask(talk, _user(talk, "<**!glm.glm-4.7**> hello"))) == "glm"
    history = (_user(talk, "<**!glm.glm-4.7**> hello"), _assistant(talk, "hi"))
    assert host(_ask(talk, *history, with_image(dialect, "look"))) == "seer"
    assert talk.state == {"stickyTarget": {"model": "glm-4.7", "provider": "glm"}}
    more = (with_image(dialect, "look"), _assistant(talk, "a dot"), _user(talk, "go on"))
    assert host(_ask(talk, *history, *more)) == "glm"
    forced = (with_image(dialect, "<**glm.glm-4.7**> look again"),)
    assert host(_ask(talk, *history, *more, *forced)) == "glm"


def test_v10_long_context(talk: Talk) -> None:
    words = "the quick brown fox " * (_THRESHOLD // 4 + 200)
    assert host(_ask(talk, _user(talk, words))) == "long"
    assert host(_ask(talk, _user(talk, "short"))) == "plain"
    assert host(_ask(talk, _user(talk, "a"), _assistant(talk, words), _user(talk, "b"))) == "long"


def test_v10_metadata_makes_no_long_context(talk: Talk) -> None:
    talk.more = {"metadata": {"note": "words of the machinery " * _THRESHOLD}}
    assert host(_ask(talk, _user(talk, "short"))) == "plain"


def test_background_models(talk: Talk) -> None:
    talk.model = "claude-haiku-4-5"
    assert talk.say("name this session").target == "cheap.example/cheap-k1-value/cheap-1"
    talk.model = "claude-sonnet"
    assert talk.say("and now?").target.startswith("plain.example/")


def test_v12_web_search(talk: Talk) -> None:
    assert talk.say("Please search the web for the newest Python release").target.startswith("web.example/")
    assert talk.say("Do not search the web, just tell me").target.startswith("plain.example/")
    talk.more = {"tools": [{"type": "web_search_20250305", "name": "web_search"}]}
    assert talk.say("hello").target.startswith("plain.example/")


CALLED = {
    "V15 apply_patch": ("apply_patch", {"input": "*** Begin Patch"}, "code"),
    "reading a file": ("Read", {"file_path": "/a"}, "think"),
    "a shell that searches": ("Bash", {"command": "rg -n x ."}, "search"),
    "a shell that writes": ("Bash", {"command": "sed -i s/a/b/ c"}, "code"),
    "a shell that does something else": ("Bash", {"command": "make"}, "tools"),
}


@pytest.mark.parametrize("name, arguments, goes", CALLED.values(), ids=CALLED.keys())
@pytest.mark.parametrize("dialect, stream", FORMS, ids=IDS)
def test_a_tool_hop_goes_by_its_tool(
    by_tool: Pair, dialect: Dialect, stream: bool, name: str, arguments: dict[str, Any], goes: str
) -> None:
    by_tool[0].forget()
    talk = Talk(*by_tool, dialect, stream, tool=(name, arguments))
    assert talk.say("please do it").target.startswith("think.example/")
    assert talk.hop().target.startswith(f"{goes}.example/")
    assert talk.say("thanks").target.startswith("think.example/")


# --- whose turn it is ----------------------------------------------------------------------------------------------------


def test_7_a_subagents_hops_keep_their_key_too(by_kind: Pair) -> None:
    """Claude Code's subagents speak in the session of the conversation that called them."""
    by_kind[0].forget()
    talk = Talk(*by_kind, Dialect.MESSAGES)
    talk.tell("<**!glm.glm-4.7**>")
    subagent = Talk(*by_kind, Dialect.MESSAGES, session=talk.session, headers=(("x-claude-code-request-class", "subagent"),))
    first = talk.say("use a subagent").key
    other = subagent.say("find the bug").key
    assert [subagent.hop().key for _ in range(3)] == [other] * 3
    assert talk.hop().key == first


def test_7_a_side_call_before_each_message_takes_no_turn_of_its_own(by_kind: Pair) -> None:
    """Gemini CLI asks its router about every message first: both go to one key, and the next message to the next."""
    by_kind[0].forget()
    talk = Talk(*by_kind, Dialect.GEMINI)
    talk.tell("<**!glm.glm-4.7**>")
    keys = []
    for number in range(4):
        text = f"message {number}"
        router = (*talk.typed, ("user", text))
        path, body = request(talk.dialect, "gemini-3.5-flash-lite", list(router), False)
        body |= {"generationConfig": {"responseMimeType": "application/json"}}
        call(HOSTS[talk.dialect], path, body, proxy=talk.proxy, headers=(("x-session-id", str(talk.session)),))
        asked = talk.provider.requests[-1].key
        keys.append(talk.say(text).key)
        assert keys[-1] == asked
    assert keys[0] != keys[1]
    assert keys == keys[:2] * 2


# --- what the caller's host says (29b) -------------------------------------------------------------------------------------


def test_s11_disable_sticky_for_one_call(talk: Talk) -> None:
    talk.say("<**!glm.glm-4.7**> a", "a")
    heard = talk.say("b", headers=(("x-routecodex-disable-sticky", "true"),))
    assert heard.target.startswith("plain.example/")
    assert not any(name.lower().startswith("x-routecodex") for name, _ in heard.received[0].headers)
    assert talk.say("c", headers=(("x-routecodex-disable-sticky", "0"),)).target.startswith("glm.example/")
    assert talk.say("d").target.startswith("glm.example/")


def test_29b_a_route_hint(talk: Talk) -> None:
    heard = talk.say("a", headers=(("x-routecodex-route", "mine"),))
    assert heard.target == "elsewhere.example/elsewhere-k1-value/else-1"
    assert not any(name.lower().startswith("x-routecodex") for name, _ in heard.received[0].headers)
    assert talk.say("b").target.startswith("plain.example/")
    assert talk.say("c", headers=(("x-routecodex-route", "no-such-route"),)).target.startswith("plain.example/")


def test_29b_a_session_of_the_host(talk: Talk) -> None:
    talk.session = None
    talk.headers = (("x-routecodex-session", f"host-{talk.dialect}-{talk.stream}"),)
    talk.say("<**!glm.glm-4.7**> a", "a")
    heard = talk.say("b")
    assert heard.target.startswith("glm.example/")
    assert not any(name.lower().startswith("x-routecodex") for name, _ in heard.received[0].headers)


def test_29b_headers_of_ours_do_not_go_home_either(tmp_path: Path) -> None:
    config = configured({"glm": (1, "glm-4.7")}, "    default: [origin]\n")
    with FakeProvider() as provider, Mitmdump(script=SCRIPT, config=config, upstream=provider, folder=tmp_path) as proxy:
        for dialect, stream in FORMS:
            ours = (("X-RouteCodex-Session", "s"), ("x-routecodex-route", "default"), ("x-routecodex-disable-sticky", "1"))
            talk = Talk(provider, proxy, dialect, stream, session=None, headers=(*ours, ("x-own", "kept")))
            heard = talk.say("a")
            assert heard.target == talk.home
            names = [name.lower() for name, _ in heard.received[0].headers]
            assert [name for name in names if "routecodex" in name] == []
            assert "x-own" in names


# --- a model that the call itself names ------------------------------------------------------------------------------------


def test_r14_provider_and_model_in_the_call(talk: Talk) -> None:
    talk.model = "glm.glm-4.7"
    first = talk.say("a")
    assert first.target in ("glm.example/glm-k1-value/glm-4.7", "glm.example/glm-k2-value/glm-4.7")
    assert talk.hop().key == first.key
    assert talk.say("b").key != first.key
    talk.model = "glm.k2.glm-4.7"
    assert talk.say("c").target == "glm.example/glm-k2-value/glm-4.7"
    talk.model = "glm.glm-99"
    refused = talk.say("d")
    assert refused.answer.status == 400
    assert refused.received == []
    assert refused.text == "Provider glm declares no model glm-99"
    assert "CONFIG_ERROR" in refused.answer.text
    talk.model = "nobody.glm-4.7"
    assert talk.say("e").target.startswith("plain.example/")


def test_r14_tags_go_before_the_model_of_the_call(talk: Talk) -> None:
    talk.model = "glm.glm-4.7"
    assert talk.say("<**seer.seer-1**> a", "a").target.startswith("seer.example/")
    assert talk.say("<**!plain.plain-1**> b", "b").target.startswith("plain.example/")
    refused = talk.say("<**clear**><**#glm**> c", "c")
    assert refused.answer.status == 400
    assert refused.text == "Requested provider glm is disabled: <**@glm**> switches it on again"


def test_r09_allow_reaches_what_no_candidate_route_holds(talk: Talk) -> None:
    assert talk.say("<**!elsewhere**> a", "a").target.startswith("elsewhere.example/")
    assert talk.say("<**!glm**> b", "b").target.startswith("glm.example/")
    assert talk.say("c").target.startswith("glm.example/")
    refused = talk.say("<**#glm**> d", "d")
    assert refused.answer.status == 400
    assert refused.text == "Requested provider glm is disabled: <**@glm**> switches it on again"
