"""Tags typed in a chat, in every dialect, streaming and not: where the call goes, what the provider sees, what is remembered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from routecodex.routing.values import Dialect
from tests.rig.behaviour import Behaviour
from tests.rig.provider import FakeProvider
from tests.rig.proxy import SCRIPT, Mitmdump
from tests.rig.reply import Reply
from tests.system.talk import CONFIG, FORMS, IDS, Talk

pytestmark = pytest.mark.system


@dataclass(frozen=True)
class Step:
    types: str
    sent: str | None = None
    """What the provider sees of it; None: just as typed."""
    goes: str = "home"
    """`provider.key.model`, where `*` is any key; `home`; empty: nothing is sent."""
    shown: tuple[str, ...] = ()
    state: dict[str, Any] | None = None
    """What is in force afterwards; None: not looked at."""
    key: str = ""
    """`same` or `other` than the request before."""
    status: int = 200


GLM = {"model": "glm-4.7", "provider": "glm"}
STUCK = {"stickyTarget": GLM}
FORCE_GLM = "<**glm.glm-4.7**>"
HOP = "HOP"
REPEAT = "REPEAT"


def refused(types: str, *shown: str, sent: str | None = None, state: dict[str, Any] | None = None) -> Step:
    return Step(types, sent, "", shown, state, status=400)


SCENES: dict[str, tuple[Step, ...]] = {
    # --- force ---------------------------------------------------------------------------------------------------------
    "S12 force holds for one message and its hops": (
        Step(f"{FORCE_GLM}\nhelp me", "help me", "glm.*.glm-4.7", state={}),
        Step(HOP, goes="glm.*.glm-4.7", key="same", state={}),
        Step(HOP, goes="glm.*.glm-4.7", key="same", state={}),
        Step("and now?", goes="home", state={}),
        Step(HOP, goes="home", state={}),
    ),
    "P08 force a model with a dot": (Step("<**openai.gpt-5.2**> x", "x", "openai.*.gpt-5.2", state={}),),
    "P09 force key and model": (Step("<**openai.primary.gpt-4**> x", "x", "openai.primary.gpt-4", state={}),),
    "force a key by its place": (Step("x <**openai.3**>", "x", "openai.third.gpt-4", state={}),),
    "force a key by its alias": (
        Step("<**antigravity.geminikey**> x", "x", "antigravity.geminikey.claude-sonnet-4-5", state={}),
    ),
    "P05 force with brackets": (
        Step("<**antigravity[geminikey].gemini-3-pro-high**> x", "x", "antigravity.geminikey.gemini-3-pro-high", state={}),
    ),
    "force a model with a slash and a colon": (Step("<**one.qwen/qwen3:free**> x", "x", "one.only.qwen/qwen3:free", state={}),),
    "force leaves a sticky target alone": (
        Step("<**!glm.glm-4.7**> a", "a", "glm.*.glm-4.7", state=STUCK),
        Step("<**openai.third.gpt-4**> b", "b", "openai.third.gpt-4", state=STUCK),
        Step(HOP, goes="openai.third.gpt-4", state=STUCK),
        Step("c", goes="glm.*.glm-4.7", state=STUCK),
    ),
    # --- sticky --------------------------------------------------------------------------------------------------------
    "R01 P04 sticky: keys alternate by message, hops keep theirs": (
        Step("<**!glm.glm-4.7**> a", "a", "glm.*.glm-4.7", state=STUCK),
        Step(HOP, goes="glm.*.glm-4.7", key="same", state=STUCK),
        Step("b", goes="glm.*.glm-4.7", key="other", state=STUCK),
        Step(HOP, goes="glm.*.glm-4.7", key="same", state=STUCK),
        Step(HOP, goes="glm.*.glm-4.7", key="same", state=STUCK),
        Step("c", goes="glm.*.glm-4.7", key="other", state=STUCK),
        Step(REPEAT, goes="glm.*.glm-4.7", key="same", state=STUCK),
    ),
    "sticky to one key by alias": (
        Step(
            "<**!glm.backup.glm-4.5-air**> a",
            "a",
            "glm.backup.glm-4.5-air",
            state={"stickyTarget": {"model": "glm-4.5-air", "keyAlias": "backup", "provider": "glm"}},
        ),
        Step("b", goes="glm.backup.glm-4.5-air", key="same"),
        Step("c", goes="glm.backup.glm-4.5-air", key="same"),
    ),
    "sticky to one key by place, kept as its alias": (
        Step(
            "<**!openai.2**> a",
            "a",
            "openai.backup.gpt-4",
            state={"stickyTarget": {"keyAlias": "backup", "provider": "openai"}},
        ),
        Step("b", goes="openai.backup.gpt-4"),
    ),
    "P07 sticky with empty brackets": (Step("<**!glm[].glm-4.7**> a", "a", "glm.*.glm-4.7", state=STUCK),),
    "sticky beats allow, disable beats sticky": (
        Step("<**!openai**><**!glm.glm-4.7**> a", "a", "glm.*.glm-4.7", state=STUCK | {"allowedProviders": ["openai"]}),
        Step(
            "<**#glm.primary**> b",
            "b",
            "glm.backup.glm-4.7",
            state=STUCK | {"allowedProviders": ["openai"], "disabledKeys": [{"provider": "glm", "keys": ["primary"]}]},
        ),
        Step("c", goes="glm.backup.glm-4.7"),
    ),
    "R04 a sticky model that is disabled is forgotten": (
        Step("<**!glm.glm-4.7**> a", "a", "glm.*.glm-4.7", state=STUCK),
        Step("<**#glm.glm-4.7**> b", "b", "home", state={"disabledModels": [{"provider": "glm", "models": ["glm-4.7"]}]}),
        Step("<**@glm**> c", "c", "home", state={}),
    ),
    # --- allow ---------------------------------------------------------------------------------------------------------
    "allow one provider, then another, then none": (
        Step("<**!glm**> a", "a", "glm.*.glm-4.7", state={"allowedProviders": ["glm"]}),
        Step(HOP, goes="glm.*.glm-4.7", key="same", state={"allowedProviders": ["glm"]}),
        Step("b", goes="glm.*.glm-4.7", key="other"),
        Step("<**antigravity**>c", "c", "antigravity.*.claude-sonnet-4-5", state={"allowedProviders": ["antigravity"]}),
        Step("d", goes="antigravity.*.claude-sonnet-4-5", key="other"),
        Step("<**clear**> continue", "continue", "home", state={}),
    ),
    "P01 P03 allow two: the list of a message replaces the old one": (
        Step("<**!openai,glm**> a", "a", "openai.*.gpt-4", state={"allowedProviders": ["openai", "glm"]}),
        Step("<**!anthropic**><**!glm**> b", "b", "glm.*.glm-4.7", state={"allowedProviders": ["glm"]}),
        Step("<**antigravity**> c", "c", "antigravity.*.claude-sonnet-4-5", state={"allowedProviders": ["antigravity"]}),
    ),
    # --- disable, enable -----------------------------------------------------------------------------------------------
    "P13 disable keys by place; the new list replaces the old one": (
        Step(
            "<**!openai.gpt-4**> <**#openai.1,openai.2**> a",
            "a",
            "openai.third.gpt-4",
            state={
                "stickyTarget": {"model": "gpt-4", "provider": "openai"},
                "disabledKeys": [{"provider": "openai", "keys": ["primary", "backup"]}],
            },
        ),
        Step("b", goes="openai.third.gpt-4"),
        Step(
            "<**#openai.3**> c",
            "c",
            "openai.*.gpt-4",
            key="other",
            state={
                "stickyTarget": {"model": "gpt-4", "provider": "openai"},
                "disabledKeys": [{"provider": "openai", "keys": ["third"]}],
            },
        ),
        Step("<**@openai.3**> <**#openai.1**><**#openai.backup**> d", "d", "openai.third.gpt-4"),
    ),
    "P11 disable a key by its alias": (
        refused(
            "<**#anthropic.primary**> <**anthropic.claude-sonnet-4-5**> a",
            "Requested provider anthropic is disabled",
            sent="a",
            state={"disabledKeys": [{"provider": "anthropic", "keys": ["primary"]}]},
        ),
        Step("<**@anthropic.1**> <**anthropic.claude-sonnet-4-5**> b", "b", "anthropic.primary.claude-sonnet-4-5", state={}),
    ),
    "R10 force of a disabled provider": (
        Step("<**#glm**> a", "a", "home", state={"disabledProviders": ["glm"]}),
        refused("<**glm.glm-4.7**> b", "Requested provider glm is disabled", sent="b", state={"disabledProviders": ["glm"]}),
        Step("<**@glm**> <**glm.glm-4.7**> c", "c", "glm.*.glm-4.7", state={}),
    ),
    "enable one key of a disabled provider": (
        Step("<**#openai**> a", "a", "home", state={"disabledProviders": ["openai"]}),
        Step(
            "<**@openai.2**> <**!openai**> b",
            "b",
            "openai.backup.gpt-4",
            state={"allowedProviders": ["openai"], "disabledKeys": [{"provider": "openai", "keys": ["primary", "third"]}]},
        ),
    ),
    "the seed's list of a provider and a key": (
        Step(
            "<**#glm,openai.1**> a",
            "a",
            "home",
            state={"disabledProviders": ["glm"], "disabledKeys": [{"provider": "openai", "keys": ["primary"]}]},
        ),
    ),
    # --- several tags, and what is no tag --------------------------------------------------------------------------------
    "P18 several tags, left to right": (
        Step(
            "<**!glm**> text <**#openai.1**>",
            "text",
            "glm.*.glm-4.7",
            state={"allowedProviders": ["glm"], "disabledKeys": [{"provider": "openai", "keys": ["primary"]}]},
        ),
        Step("<**clear**><**!openai.gpt-5.2**> more", "more", "openai.*.gpt-5.2"),
    ),
    "what stands before clear is cleared": (Step("<**!glm.glm-4.7**> <**glm.glm-4.7**> <**clear**> a", "a", "home", state={}),),
    "tags in the middle of words and lines": (
        Step("one<**!glm**>two\nthree <**#openai.1**> four\n<**@openai.1**>\nfive", "onetwo\nthree four\nfive", "glm.*.glm-4.7"),
    ),
    "P19 tags in code are stripped and not obeyed": (
        Step("```\n<**!glm.glm-4.7**>\n```\nand `<**#glm**>` too", "```\n```\nand `` too", "home"),
        Step("~~~ts\nlet a = '<**openai.gpt-4**>';\n~~~", "~~~ts\nlet a = '';\n~~~", "home"),
    ),
    "P23 P29 what has no form of ours is stripped and does nothing": (
        Step("<**123**> <****> <** **> <**foo:bar**> <**two words**> hi", "hi", "home", state={}),
    ),
    "full-width twins are read": (
        Step("＜＊＊！glm．glm-4.7＊＊＞ 你好", "你好", "glm.*.glm-4.7", state=STUCK),
        Step(
            "<**＃openai．１**> b",
            "b",
            "glm.*.glm-4.7",
            state=STUCK | {"disabledKeys": [{"provider": "openai", "keys": ["primary"]}]},
        ),
    ),
    "what is ours and cannot be read is refused with the right form": (
        Step("<**!glm.glm-4.7**> a", "a", "glm.*.glm-4.7", state=STUCK),
        refused("b <**claer**>", "clear", sent="b", state=STUCK),
        refused("b <**glm/glm-4.7**>", "<**glm.glm-4.7**>", sent="b", state=STUCK),
        refused("b <**gpt-4**>", "openai.gpt-4", sent="b", state=STUCK),
        refused('b <**stopMessage:"x",0**>', '<**stopMessage:"text",3**>', sent="b", state=STUCK),
        refused('b <**stopMessage:"A",2**><**stopMessage:on,10**>', "stopMessage:on,10 was not obeyed", sent="b", state=STUCK),
        refused(
            'b <**stopMessage:"never closed', '<**stopMessage:"text",3**>', sent='b <**stopMessage:"never closed', state=STUCK
        ),
        refused("<**#!glm**> b", "names are written", sent="b", state=STUCK),
        refused("<**status**> b", "in a message of its own", sent="b", state=STUCK),
        refused("<**budget:5**> b", "there is no <**budget**> yet", sent="b", state=STUCK),
        Step("c", goes="glm.*.glm-4.7", key="other", state=STUCK),
    ),
    "a target that was switched off cannot be kept to": (
        Step("<**#glm**> a", "a", "home", state={"disabledProviders": ["glm"]}),
        refused("<**!glm.glm-4.7**> b", "Requested provider glm is disabled", sent="b", state={"disabledProviders": ["glm"]}),
        Step("<**@glm**><**!glm.glm-4.7**> c", "c", "glm.*.glm-4.7", state=STUCK),
    ),
    "origin is a force": (
        Step("<**!glm.glm-4.7**> a", "a", "glm.*.glm-4.7", state=STUCK),
        Step("<**origin**> b", "b", "home", state=STUCK),
        Step(HOP, goes="home", state=STUCK),
        Step("c", goes="glm.*.glm-4.7", state=STUCK),
    ),
    "P24 an opening that is never closed stays": (Step("x <**broken y\nnext line", goes="home"),),
    "Q07 a stopMessage without text": (refused('<**stopMessage:""**> a', "it has no text", sent="a", state={}),),
    "longer than a tag may be": (Step(f"a <**{'g' * 520}**> b", goes="home"),),
    "beyond ASCII": (Step("你好 <**!glm**> ünï — 🎉", "你好 ünï — 🎉", "glm.*.glm-4.7", state={"allowedProviders": ["glm"]}),),
    # --- refused -------------------------------------------------------------------------------------------------------
    "R11 unknown names: refused, and nothing changes": (
        Step("<**!glm.glm-4.7**> a", "a", "glm.*.glm-4.7", state=STUCK),
        refused("<**!nowhere**> b", "Requested provider nowhere not found in provider registry", sent="b", state=STUCK),
        refused("<**clear**> <**glm.glm-9**> c", "glm.glm-9 not found", "glm.glm-4.7", sent="c", state=STUCK),
        refused("<**#openai.4**> d", "openai.4 not found", sent="d", state=STUCK),
        refused("<**#openai.0**> e", "openai.0 not found", sent="e", state=STUCK),
        refused("<**@openai.fourth**> f", "openai.fourth not found", sent="f", state=STUCK),
        Step("g", goes="glm.*.glm-4.7", key="other", state=STUCK),
    ),
    "P27 case counts": (refused("<**!GLM**> a", "Requested provider GLM not found", "glm", sent="a"),),
    "P28 no such suffix": (refused("<**!glm.glm-4.7:passthrough**> a", "glm.glm-4.7:passthrough not found", sent="a"),),
    "all or nothing": (refused("<**!glm**> <**#nowhere**> a", "nowhere not found", sent="a"), Step("b", goes="home")),
    # --- the history -----------------------------------------------------------------------------------------------------
    "X01 P21 P22 old tags are stripped and never obeyed again": (
        Step("<**!glm.glm-4.7**> a", "a", "glm.*.glm-4.7", state=STUCK),
        Step("<**#openai.1**> b", "b", "glm.*.glm-4.7"),
        Step("<**clear**> c", "c", "home", state={}),
        Step(HOP, goes="home", state={}),
        Step("d", goes="home", state={}),
        Step(REPEAT, goes="home", state={}),
    ),
    "a repeated call obeys nothing twice": (
        Step("<**!glm.glm-4.7**> a", "a", "glm.*.glm-4.7", state=STUCK),
        Step("<**#openai.1**> b", "b", "glm.*.glm-4.7", key="other"),
        Step(REPEAT, goes="glm.*.glm-4.7", key="same"),
    ),
    "the same words typed again are a new message": (
        Step("<**!glm.glm-4.7**> go", "go", "glm.*.glm-4.7", state=STUCK),
        Step("<**clear**> no", "no", "home", state={}),
        Step("<**!glm.glm-4.7**> go", "go", "glm.*.glm-4.7", state=STUCK),
    ),
    "P20 a tag in a tool's result": (
        Step("run it", goes="home", state={}),
        Step(HOP + "see <**!glm**> here", goes="home", state={}),
        Step("thanks", goes="home", state={}),
    ),
}


@pytest.fixture(scope="module")
def steered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[FakeProvider, Mitmdump]]:
    with FakeProvider() as provider, Mitmdump(script=SCRIPT, config="notices: off\n" + CONFIG, upstream=provider) as proxy:
        yield provider, proxy
        assert proxy.alive
        assert "Traceback" not in proxy.log


@pytest.fixture(params=FORMS, ids=IDS)
def talk(steered: tuple[FakeProvider, Mitmdump], request: pytest.FixtureRequest) -> Talk:
    steered[0].forget()
    return Talk(*steered, *request.param)


def _target(talk: Talk, goes: str, received_key: str) -> str:
    if goes == "home":
        return talk.home
    provider, key, model = goes.split(".", 2)
    value = received_key if key == "*" else f"{provider}-{key}-value"
    assert value.startswith(f"{provider}-")
    return f"{provider}.example/{value}/{model}"


@pytest.mark.parametrize("scene", SCENES.values(), ids=SCENES.keys())
def test_scene(talk: Talk, scene: tuple[Step, ...]) -> None:
    key = ""
    for step in scene:
        if step.types.startswith(HOP):
            heard = talk.hop(step.types.removeprefix(HOP) or "done")
        elif step.types == REPEAT:
            heard = talk.again()
        else:
            heard = talk.say(step.types, step.sent)
        assert heard.answer.status == step.status, heard.text
        assert all(words in heard.text for words in step.shown), heard.text
        if step.goes:
            assert heard.target == _target(talk, step.goes, heard.key)
            assert (heard.key == key) == (step.key == "same") or not step.key
            key = heard.key
            assert heard.answer.body == heard.provider_bytes
        else:
            assert heard.received == []
        if step.state is not None:
            assert (talk.state or {}) == step.state


def test_s05_a_state_that_becomes_empty_has_no_file(talk: Talk) -> None:
    talk.say("<**!glm.glm-4.7**> a", "a")
    path = talk.proxy.sessions / f"session-{talk.session}.json"
    assert path.exists()
    talk.say("<**clear**> b", "b")
    assert not path.exists()


def test_x01_x08_a_history_that_was_never_seen_before(talk: Talk) -> None:
    """Only the newest message gives orders; the model's own words stay as they are, whatever they hold."""
    old = [
        ("user", "<**!glm.glm-4.7**> first", "first"),
        ("assistant", "I saw <**!openai**> there", "I saw <**!openai**> there"),
        ("user", "second <**#openai.1**>", "second"),
        ("assistant", "[RouteCodex] is not what I am", "[RouteCodex] is not what I am"),
    ]
    talk.typed = [(role, text) for role, text, _ in old]
    talk.seen = [(role, text) for role, _, text in old]
    assert talk.say("third").target == talk.home
    assert talk.state is None


@pytest.mark.parametrize(
    "dialect, field, instructions",
    [
        (Dialect.MESSAGES, "system", "Type <**!glm**> to switch."),
        (Dialect.RESPONSES, "instructions", "Type <**!glm**> to switch."),
        (Dialect.GEMINI, "systemInstruction", {"parts": [{"text": "Type <**!glm**> to switch."}]}),
    ],
)
def test_tags_in_instructions_are_none(
    steered: tuple[FakeProvider, Mitmdump], dialect: Dialect, field: str, instructions: Any
) -> None:
    talk = Talk(*steered, dialect, more={field: instructions})
    assert talk.say("hello").target == talk.home
    assert talk.say("<**!openai**> hello", "hello").target.startswith("openai.example/")
    assert talk.state == {"allowedProviders": ["openai"]}


def test_q19_tags_inside_a_quoted_stop_message_are_text(talk: Talk) -> None:
    talk.provider.enqueue(Behaviour(reply=Reply("cut", stop="length")))  # not a plain stop: nothing is continued
    heard = talk.say('<**stopMessage:"say **> and <**!glm**> \\"x\\"",2**> hi', "hi")
    assert heard.target == talk.home
    assert talk.state == {"stopMessageText": 'say **> and <**!glm**> "x"', "stopMessageMaxRepeats": 2, "stopMessageUsed": 0}


def test_s01_sessions_do_not_know_each_other(talk: Talk) -> None:
    other = Talk(talk.provider, talk.proxy, talk.dialect, talk.stream)
    talk.say("<**!glm.glm-4.7**> a", "a")
    assert other.say("b").target == other.home
    other.say("<**#glm**> c", "c")
    assert talk.say("d").target.startswith("glm.example/")
