"""What happens to a call, from its bytes to where it goes: a real configuration and real files, in four dialects."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace

from routecodex.routing.desk.desk import Plan, Recent, Rest, time_of_day
from routecodex.routing.desk.learned import Held
from routecodex.routing.errors import NoSuchAnswer
from routecodex.routing.sessions.state import EMPTY, Sticky
from routecodex.routing.sessions.store import SessionKey
from routecodex.routing.sessions.whose import parted
from routecodex.routing.values import Dialect, ProviderError, Target
from tests.routing.desk.given import BLIND, SMALL, TWO_KEYS, Build
from tests.routing.house import CONFIG_A, House, Tool, done, inline, texts_of
from tests.system.tool import text_of

DIALECTS = pytest.mark.parametrize("dialect", list(Dialect))
FORMS = pytest.mark.parametrize("dialect, stream", [(dialect, stream) for dialect in Dialect for stream in (False, True)])
ONE = SessionKey("session", "one")


@pytest.mark.parametrize("session", ["s-1", None])
def test_what_a_tool_names_is_its_persons(build: Build, session: str | None) -> None:
    """Two people whose tools give the same name meet in no state."""
    house = build()
    tool = Tool(house, Dialect.MESSAGES)
    tool.session = session
    keys = [house.desk.read(replace(tool.handed(text), user=user)).key.id for text, user in (("a", "alice"), ("b", "bob"))]
    assert len(set(keys)) == 2
    assert [parted(id)[0] for id in keys] == ["alice", "bob"]
    if session is not None:
        assert [id.endswith(session) for id in keys] == [True, True]


def test_what_was_made_here_is_told_to_nobody_else(build: Build) -> None:
    """A tool names an item of an answer, and gets it whole; another person's does not."""
    house = build()
    tool = Tool(house, Dialect.RESPONSES)
    read = partial(replace, user="alice")
    (item,) = json.loads(house.desk.echo(house.desk.read(read(tool.handed("the secret"))), "echo").body)["output"]
    tool.history.append({"type": "item_reference", "id": item["id"]})
    own = house.desk.read(read(tool.handed("and?")))
    assert own.call.body["input"][1] == item
    assert [message.text for message in own.call.messages] == ["the secret", "the secret", "and?"]
    with pytest.raises(NoSuchAnswer, match="not found"):
        house.desk.read(replace(tool.received(), user="bob"))
    tool.history[1]["id"] = "msg_of_the_providers_own"
    kept = house.desk.read(replace(tool.received(), user="bob")).call
    assert (kept.body["input"][1], kept.changed) == (tool.history[1], False)


def test_a_name_that_stands_for_several_items_opens_none(build: Build) -> None:
    """Some providers name the items of each answer alike. Within one answer the newest state of an item is the item."""
    house = build()
    tool = Tool(house, Dialect.RESPONSES)
    tool.history.append({"type": "item_reference", "id": "msg_1"})
    one, other = (house.desk.read(tool.handed(text)) for text in ("a", "b"))
    for text in ("half", "whole"):
        house.desk._keep_item(one, None, {"id": "msg_1", "type": "message", "role": "assistant", "content": text})
    assert one.said.items == ["msg_1"]
    assert house.desk.read(tool.received()).call.messages[0].text == "whole"
    house.desk._keep_item(other, None, {"id": "msg_1", "type": "message", "role": "assistant", "content": "another"})
    with pytest.raises(NoSuchAnswer, match="several"):
        house.desk.read(tool.received())


def test_so_many_items_are_held() -> None:
    items = Held[str](100)
    for number in range(5):
        items.put("alice", f"msg_{number % 4}", f"{number}", 30)
    assert [items.get("alice", f"msg_{number}") for number in range(4)] == ["4", None, "2", "3"]
    items.put("alice", "msg_5", "longer than all", 101)
    assert [items.get("alice", f"msg_{number}") for number in range(6)] == [None] * 6
    items.put("bob", "msg_6", "fits", 100)
    assert (items.get("bob", "msg_6"), items.get("alice", "msg_6")) == ("fits", None)


# --- tags act once ----------------------------------------------------------------------------------------------------


@DIALECTS
def test_p22_a_tool_hop_does_not_obey_again(house: House, dialect: Dialect) -> None:
    tool = Tool(house, dialect)
    first = tool.say('go <**!glm.glm-4.7**> <**stopMessage:"more",3**>')
    assert first.target == "glm.key1.glm-4.7"
    assert first.orders is not None
    assert first.orders.fresh
    first.answered()
    house.store_used(ONE, 2)
    for _ in range(2):
        hop = tool.hop()
        assert hop.orders is not None
        assert not hop.orders.fresh
        state = house.desk.store.load(ONE)
        assert state.stop is not None
        assert (state.stop.used, state.stop.max_repeats) == (2, 3)
        assert hop.target == "glm.key1.glm-4.7"


@DIALECTS
def test_p22_what_was_cleared_is_not_armed_again_by_the_history(house: House, dialect: Dialect) -> None:
    tool = Tool(house, dialect)
    tool.talk("<**!glm.glm-4.7**> one", "<**clear**> two")
    assert house.desk.store.load(ONE).idle
    assert tool.hop().target == "origin.client.client-model"
    assert house.desk.store.load(ONE).idle


@DIALECTS
def test_q15_the_same_text_typed_again_is_a_new_message(house: House, dialect: Dialect) -> None:
    tool = Tool(house, dialect)
    tool.talk('<**stopMessage:"more",3**> go')
    house.store_used(ONE, 3)
    tool.talk('<**stopMessage:"more",3**> go')
    stop = house.desk.store.load(ONE).stop
    assert stop is not None
    assert stop.used == 0


@DIALECTS
def test_s12_a_force_holds_for_its_message_and_hops_alone(house: House, dialect: Dialect) -> None:
    tool = Tool(house, dialect)
    assert tool.say("<**openai.backup.gpt-5.2**> one").answered() == "openai.backup.gpt-5.2"
    assert tool.hop().answered() == "openai.backup.gpt-5.2"
    tool.hear()
    assert tool.say("two").target == "origin.client.client-model"
    assert house.files == ["session-one.json"], "the fingerprint of the obeyed message alone"


@pytest.mark.parametrize("file", ["/etc/passwd", "../x", "missing.md", "."])
def test_q12_a_file_that_cannot_be_read_is_refused_and_nothing_is_sent(house: House, file: str) -> None:
    code, message = Tool(house).say(f"<**!glm**> <**stopMessage:<file://{file}>**> hello").error
    assert code == "BAD_TAG"
    assert f"The stopMessage file {file} " in message
    assert house.desk.store.load(ONE).idle


def test_q11_a_stop_message_from_a_file(house: House, tmp_path: Path) -> None:
    (tmp_path / "user" / "stopMessage").mkdir(parents=True)
    (tmp_path / "user" / "stopMessage" / "m.md").write_text("first line\nsecond line\n")
    Tool(house).say("<**stopMessage:<file://stopMessage/m.md>,3**> hello")
    stop = house.desk.store.load(ONE).stop
    assert stop is not None
    assert (stop.text, stop.max_repeats) == ("first line\nsecond line", 3)


@pytest.mark.parametrize(
    "text, setting",
    [
        ('<**stopMessage:"x"**> go', "virtualrouter.stopMessage.enabled"),
        ("<**clock:clear**> go", "virtualrouter.clock.enabled"),
    ],
)
def test_a_feature_that_is_off_says_so_and_nothing_changes(build: Build, text: str, setting: str) -> None:
    house = build(more="  stopMessage: {enabled: false}")
    code, message = Tool(house).say(f"<**!glm**> {text}").error
    assert code == "FEATURE_DISABLED"
    assert setting in message
    assert house.desk.store.load(ONE).idle


# --- whose state it is --------------------------------------------------------------------------------------------------


@DIALECTS
def test_s01_one_session_does_not_steer_another(house: House, dialect: Dialect) -> None:
    a, b = Tool(house, dialect, session="A"), Tool(house, dialect, session="B")
    assert a.say("<**!glm**> hi").target == "glm.key1.glm-4.7"
    assert b.say("hi").target == "origin.client.client-model"
    assert house.desk.store.load(SessionKey("session", "B")) == EMPTY


@DIALECTS
def test_s02_a_restart_changes_nothing(house: House, dialect: Dialect) -> None:
    tool = Tool(house, dialect)
    tool.talk("<**!openai[third].gpt-4**> hi")
    assert house.files == ["session-one.json"]
    house.restart()
    assert tool.hop().answered() == "openai.third.gpt-4"
    tool.hear()
    assert tool.say("next").target == "openai.third.gpt-4"


def test_s06_the_session_that_claude_code_names_in_its_metadata(house: House) -> None:
    uuid = "0f8fad5b-d9cb-469f-a165-70867728950e"
    tool = Tool(house, session=None, more={"metadata": {"user_id": f"user_abc_account__session_{uuid}"}})
    handled = tool.say("<**!glm**> hi")
    assert handled.reading is not None
    assert handled.reading.key == SessionKey("session", uuid)
    assert house.files == [f"session-{uuid}.json"]


def test_the_hosts_own_session_header_comes_first(house: House) -> None:
    handled = Tool(house, headers={"x-routecodex-session": "mine"}).say("<**!glm**> hi")
    assert handled.reading is not None
    assert handled.reading.key == SessionKey("session", "mine")
    assert not [name for name, _ in handled.plan.request().headers.shown if name.startswith("x-routecodex")]


def test_a_conversation_where_no_session_is_named(house: House) -> None:
    tool = Tool(house, Dialect.RESPONSES, session=None, more={"conversation": {"id": "conv_1"}})
    tool.say("<**!glm**> hi")
    assert house.files == ["conversation-conv_1.json"]


def test_s08_a_chain_is_one_conversation(build: Build) -> None:
    """The first call is known by its own id, the resumed one by the answer that it follows."""
    house = build("default: [openai.gpt-4]", top="sessions: {derive: off}")
    tool = Tool(house, Dialect.RESPONSES, session=None)
    first = tool.say("<**!openai.gpt-5.2**> hi")
    assert first.reading is not None
    assert first.reading.key == SessionKey("chain", first.received.id)
    first.answered("resp_1")
    resumed = Tool(house, Dialect.RESPONSES, session=None, more={"previous_response_id": "resp_1"}).say("and then?")
    assert resumed.reading is not None
    assert resumed.reading.key == first.reading.key
    assert resumed.plan.target == first.plan.target, "the answer lives at that key"
    resumed.answered("resp_2")
    third = Tool(house, Dialect.RESPONSES, session=None, more={"previous_response_id": "resp_2"}).say("and then?")
    assert third.plan.target == first.plan.target
    stranger = Tool(house, Dialect.RESPONSES, session=None, more={"previous_response_id": "resp_unknown"}).say("hi")
    assert stranger.plan.target.model == "gpt-4"
    assert house.files == [], "chains live in memory"


def test_s08_an_answer_that_began_before_its_provider_is_in_the_chain_all_the_same(build: Build) -> None:
    """The client knows it by an id of ours, the provider by its own."""
    house = build("default: [openai.gpt-4]", top="sessions: {derive: off}")
    tool = Tool(house, Dialect.RESPONSES, session=None)
    first = tool.say("<**!openai.gpt-5.2**> hi")
    assert first.reading is not None
    opening = first.plan.opening()
    assert (opening.model, opening.created) == ("client-model", int(house.clock.epoch))
    first.answered("resp_1")
    resumed = Tool(house, Dialect.RESPONSES, session=None, more={"previous_response_id": opening.id}).say("and then?")
    assert resumed.reading is not None
    assert resumed.reading.key == first.reading.key
    assert resumed.plan.target == first.plan.target
    assert resumed.body["previous_response_id"] == "resp_1"
    first.answered("resp_2")
    again = Tool(house, Dialect.RESPONSES, session=None, more={"previous_response_id": opening.id}).say("and then?")
    assert again.body["previous_response_id"] == "resp_1", "a later round's answer is not what the id stands for"


def test_s08_explicit_tags_go_to_the_session_if_the_client_names_one(build: Build) -> None:
    house = build("default: [openai.gpt-4]")
    tool = Tool(house, Dialect.RESPONSES)
    tool.say("<**!glm**> hi").answered("resp_1")
    assert house.desk.store.load(ONE).allowed == ("glm",)
    other = Tool(house, Dialect.RESPONSES, session="other", more={"previous_response_id": "resp_1"}).say("hi")
    assert other.reading is not None
    assert other.reading.key == SessionKey("session", "other")


def test_s10_two_servers_know_nothing_of_each_other(tmp_path: Path) -> None:
    left, right = House(tmp_path / "127.0.0.1_8080"), House(tmp_path / "127.0.0.1_8081")
    Tool(left).say("<**!glm**> hi")
    assert Tool(right).say("hi").target == "origin.client.client-model"
    assert (left.files, right.files) == (["session-one.json"], [])


@pytest.mark.parametrize("value, off", [("true", True), ("1", True), (" ON ", True), ("0", False), ("", False), ("no", False)])
def test_s11_sticky_is_left_out_for_one_request(build: Build, value: str, off: bool) -> None:
    house = build("default: [glm.glm-4.7]")
    tool = Tool(house)
    tool.talk("<**!openai.gpt-4**> hi")
    tool.headers = {"x-routecodex-disable-sticky": value}
    once = tool.say("this once")
    assert once.plan.target.provider == ("glm" if off else "openai")
    assert not [name for name, _ in once.plan.request().headers.shown if name.startswith("x-routecodex")]
    tool.headers = {}
    tool.hear()
    assert tool.say("again").plan.target.provider == "openai"


@pytest.mark.parametrize("dialect", Dialect)
def test_a_route_hint_chooses_the_route(build: Build, dialect: Dialect) -> None:
    """R8: `default` as well, where something else would fit."""
    house = build("default: [glm.glm-4.7], thinking: [openai.gpt-5.2]")
    hinted = {hint: Tool(house, dialect, hint, headers={"x-routecodex-route": hint}) for hint in ("thinking", "default")}
    assert hinted["thinking"].say("hi").plan.target.model == "gpt-5.2"
    assert Tool(house, dialect).say("think step by step").plan.target.model == "gpt-5.2"
    assert hinted["default"].say("think step by step").plan.target.model == "glm-4.7"


@DIALECTS
def test_s04_a_cut_off_file_costs_no_call(house: House, dialect: Dialect) -> None:
    tool = Tool(house, dialect)
    tool.talk("<**!glm**> hi")
    file = house.folder / "sessions" / "session-one.json"
    file.write_bytes(file.read_bytes()[:40])
    house.restart()
    assert tool.say("next").sent
    assert any("session-one.json" in warning for warning in house.desk.store.warnings)


# --- who names no session -----------------------------------------------------------------------------------------------


@DIALECTS
def test_decision_12_a_session_is_recognised_by_its_beginning(house: House, dialect: Dialect) -> None:
    tool = Tool(house, dialect, session=None)
    first = tool.talk("hello there", "<**!glm.glm-4.7**> next")[1]
    assert first.reading is not None
    assert first.reading.caller.derived
    (name,) = house.files
    assert name.startswith("session-derived-")
    assert "secret" not in (house.folder / "sessions" / name).read_text()
    assert tool.say("and now?").target == "glm.key1.glm-4.7"
    status = Tool(house, dialect, session=None, history=list(tool.history)).say("<**status**>")
    text = text_of(dialect, status.reply.body, False)
    assert "recognised by its beginning" in text
    assert "glm.glm-4.7" in text
    other = Tool(house, dialect, session=None).say("another beginning")
    assert other.target == "origin.client.client-model"


def test_a_conversation_that_begins_like_an_earlier_one_is_another(house: House) -> None:
    """Its client names no session; nothing that the other had set holds in it."""
    Tool(house, session=None).talk("hello", "<**!glm.glm-4.7**>")
    again = Tool(house, session=None)
    assert again.talk("hello", "and now")[-1].target == "origin.client.client-model"


@DIALECTS
def test_q14_without_any_session_a_tag_holds_for_its_message_alone(build: Build, dialect: Dialect) -> None:
    house = build(top="sessions: {derive: off}")
    tool = Tool(house, dialect, session=None)
    first = tool.say('<**stopMessage:"more",3**> <**!glm.glm-4.7**> hi')
    assert first.reading is not None
    assert first.reading.key.prefix == "chain"
    assert first.target == "glm.key1.glm-4.7"
    assert texts_of(dialect, first.body) == ["hi"]
    state = house.desk.store.load(first.reading.key)
    assert state.stop is not None
    assert state.stop.text == "more"
    tool.hear()
    assert tool.say("next").target == "origin.client.client-model"
    assert house.files == []


@DIALECTS
def test_decision_12_where_nothing_holds_the_answer_says_so(build: Build, dialect: Dialect) -> None:
    house = build(top="sessions: {derive: off}")
    reply = Tool(house, dialect, session=None).say("<**!glm**>").reply
    assert "This client names no session, so tags hold for this message only." in text_of(dialect, reply.body, False)


@pytest.mark.parametrize("derive", ["routing", "all"])
def test_decision_12_both_kinds_of_deriving_give_tags_a_session(build: Build, derive: str) -> None:
    house = build(top=f"sessions: {{derive: {derive}}}")
    tool = Tool(house, Dialect.CHAT, session=None)
    tool.talk("<**!glm**> hi")
    assert tool.say("next").target == "glm.key1.glm-4.7"


def test_decision_12_another_credential_is_another_session(house: House) -> None:
    tool = Tool(house, session=None)
    tool.talk("<**!glm**> hi")
    tool.say("next")
    stranger = replace(tool.received(), credential="sk-of-somebody-else")
    assert house.handle(stranger).target == "origin.client.client-model"


# --- routing with instructions -------------------------------------------------------------------------------------------


@DIALECTS
def test_r01_keys_alternate_by_message_and_hops_keep_theirs(build: Build, dialect: Dialect) -> None:
    house = build("default: [origin]", TWO_KEYS)
    tool = Tool(house, dialect)
    used = []
    for text in ("<**!two.m**> one", "two", "three", "four"):
        key = tool.say(text).answered().split(".")[1]
        for _ in range(3):
            assert tool.hop().answered().split(".")[1] == key
        used.append(key)
        tool.hear()
    assert used in (["a", "b", "a", "b"], ["b", "a", "b", "a"])


def test_r01_the_hops_follow_the_key_that_answered(build: Build) -> None:
    house = build("default: [two.m]", TWO_KEYS)
    tool = Tool(house)
    first = tool.say("hello")
    before = first.plan.target
    assert first.failed(500) == 0.0
    after = first.answered()
    assert after != str(before)
    house.clock.passes(60)
    assert tool.hop().target == after


def test_r04_a_sticky_whose_model_is_disabled_is_cleared(house: House) -> None:
    tool = Tool(house)
    tool.talk("<**!glm.glm-4.7**> one", "<**#glm.glm-4.7**> two")
    assert house.desk.store.load(ONE).sticky is None
    assert tool.say("<**@glm.glm-4.7**> three").target == "origin.client.client-model"


@pytest.mark.parametrize("keep", [False, True])
def test_r05_a_sticky_with_no_key_left_is_cleared_unless_it_is_to_be_kept(build: Build, keep: bool) -> None:
    house = build("default: [glm.glm-4.7]", CONFIG_A, top="sticky: {onExhausted: keep}" if keep else "")
    tool = Tool(house)
    tool.talk("<**!openai.gpt-4**> hi")
    for key in ("primary", "backup", "third"):
        house.learned.health.failed(Target("openai", key, "gpt-4"), ProviderError(401), house.clock.now, wall=0.0)
    assert tool.say("next").target == "glm.key1.glm-4.7"
    tool.hear()
    state = house.desk.store.load(ONE)
    assert (state.sticky is not None) is keep
    house.clock.passes(3600)
    assert tool.say("later").plan.target.provider == ("openai" if keep else "glm")


def test_forgetting_a_sticky_leaves_one_that_was_set_meanwhile(house: House) -> None:
    tool = Tool(house)
    handled = tool.say("<**!glm.glm-4.7**> hi")
    assert handled.reading is not None
    done(house.desk.forget_sticky(handled.reading, Sticky("openai", None, "gpt-4"), inline))
    assert house.desk.store.load(ONE).sticky == Sticky("glm", None, "glm-4.7")
    done(house.desk.forget_sticky(handled.reading, Sticky("glm", None, "glm-4.7"), inline))
    assert house.desk.store.load(ONE).sticky is None


@DIALECTS
def test_r07_an_image_goes_where_it_is_seen_and_the_sticky_stays(build: Build, dialect: Dialect) -> None:
    house = build("default: [origin], vision: [antigravity.gemini-3-pro-high]", CONFIG_A + BLIND)
    tool = Tool(house, dialect)
    tool.talk("<**!blind.m**> hi")
    assert tool.say("what is this?", image=True).plan.target.model == "gemini-3-pro-high"
    tool.hear()
    assert tool.say("thanks").target == "blind.k.m"


@DIALECTS
def test_r09_an_allowed_provider_in_no_route_is_reached(house: House, dialect: Dialect) -> None:
    assert Tool(house, dialect).say("<**glm**> hi").target == "glm.key1.glm-4.7"


REFUSED = [
    pytest.param("<**#glm**> <**glm.glm-4.7**>", "PROVIDER_NOT_AVAILABLE", "Requested provider glm is disabled", id="R10"),
    pytest.param(
        "<**#openai.2**> <**openai.backup.gpt-4**>", "PROVIDER_NOT_AVAILABLE", "openai.backup is disabled", id="R10-key"
    ),
    pytest.param(
        "<**not.found**>", "PROVIDER_NOT_AVAILABLE", "Requested provider not.found not found in provider registry", id="R11"
    ),
    pytest.param("<**!GLM**>", "PROVIDER_NOT_AVAILABLE", "(nearest known: glm", id="P27"),
    pytest.param("<**!glm.glm-4.7:passthrough**>", "PROVIDER_NOT_AVAILABLE", "not found in provider registry", id="P28"),
    pytest.param("<**#openai.4**>", "PROVIDER_NOT_AVAILABLE", "openai.4 not found", id="P13"),
]


@DIALECTS
@pytest.mark.parametrize("tag, code, message", REFUSED)
def test_refused_and_nothing_changes(house: House, dialect: Dialect, tag: str, code: str, message: str) -> None:
    tool = Tool(house, dialect)
    tool.talk("<**!anthropic**> before")
    before = house.desk.store.load(ONE).allowed
    refused = tool.say(f"{tag} hi")
    assert refused.reply.status == 400
    assert dict(refused.reply.headers)["x-should-retry"] == "false"
    assert refused.error[0] == code
    assert message in refused.error[1]
    assert house.desk.store.load(ONE).allowed == before


@DIALECTS
def test_r12_an_unhealthy_forced_target_is_refused_and_a_cooling_single_key_is_tried(house: House, dialect: Dialect) -> None:
    tool = Tool(house, dialect)
    target = Target("glm", "key1", "glm-4.7")
    house.learned.health.failed(target, ProviderError(429), house.clock.now, wall=0.0)
    assert tool.say("<**glm.glm-4.7**> hi").plan.target == target
    house.learned.health.failed(target, ProviderError(401), house.clock.now, wall=0.0)
    code, message = Tool(house, dialect, session="two").say("<**glm.glm-4.7**> hi").error
    assert code == "PROVIDER_NOT_AVAILABLE"
    assert message == (
        "Requested provider glm is not available (health check failed): glm.key1 is down for 10 min (key refused)"
        "; corrected in the configuration, it is used at once"
    )


@DIALECTS
def test_r14_a_model_named_with_its_provider_goes_there(house: House, dialect: Dialect) -> None:
    handled = Tool(house, dialect, model="glm.glm-4.7").say("hi")
    assert handled.target == "glm.key1.glm-4.7"
    assert handled.plan.decision.route == "direct"
    request = handled.plan.request()
    assert "glm.glm-4.7" not in request.path + request.body.decode(), "the provider knows it by its own name"
    code, message = Tool(house, dialect, model="glm.glm-9").say("hi").error
    assert (code, message) == ("CONFIG_ERROR", "Provider glm declares no model glm-9")


def test_a_size_that_matters_is_looked_at_closely(build: Build) -> None:
    """Few bytes are never counted; many are, before a small model gets them."""
    house = build("default: [{targets: [small.m], priority: 2}, {targets: [glm.glm-4.7]}]", CONFIG_A + SMALL)
    assert house.desk.close_look_bytes == 900
    assert Tool(house).say("hi").target == "small.k.m"
    assert Tool(house).say("many words " * 1000).target == "glm.key1.glm-4.7"


def test_a_pin_does_not_outlive_its_message(build: Build) -> None:
    house = build("default: [two.m]", TWO_KEYS)
    tool = Tool(house)
    seen = []
    for text in ("one", "two"):
        handled = tool.say(text)
        seen.append(handled.answered())
        assert tool.hop().answered() == seen[-1]
        tool.hear()
    assert seen[0] != seen[1]


def test_what_is_remembered_is_bounded() -> None:
    recent: Recent[int, int] = Recent(3)
    for number in (1, 2, 3, 1, 4):
        recent.put(number, number * 10)
    assert [recent.get(number) for number in (1, 2, 3, 4)] == [10, None, 30, 40]


# --- when every key rests -------------------------------------------------------------------------------------------------


def resting(build: Build, seconds: float, status: int = 429) -> House:
    house = build("default: [openai.gpt-4]")
    for key in ("primary", "backup", "third"):
        error = ProviderError(status, retry_after_s=seconds)
        house.learned.health.failed(Target("openai", key, "gpt-4"), error, house.clock.now, wall=house.clock.epoch)
    return house


def test_23_a_short_rest_is_waited_for(build: Build) -> None:
    """Whoever asks: nothing is told, and nothing sent."""
    house = resting(build, 15)
    received = Tool(house, Dialect.CHAT).handed("hi")
    outcome = house.handle(received).outcome
    assert isinstance(outcome, Rest)
    waited = 0.0
    while isinstance(outcome, Rest):
        house.clock.passes(outcome.seconds)
        waited += outcome.seconds
        reading = house.desk.read(received)
        outcome = house.desk.route(reading, done(house.desk.obeying.obey(reading, inline)), waits_since=outcome.since)
    assert isinstance(outcome, Plan)
    assert 15 <= waited <= 16


CLAUDE_CODE = {"x-claude-code-request-class": "main"}


@pytest.mark.parametrize(
    "seconds, headers, status",
    [
        pytest.param(16, {}, 400, id="an unknown client"),
        pytest.param(16, CLAUDE_CODE, 429, id="one that waits well"),
        pytest.param(60, {"user-agent": "OpenAI/Python 3.51.0"}, 429, id="an SDK"),
        pytest.param(61, CLAUDE_CODE, 400, id="nobody waits for more than a minute"),
    ],
)
def test_23_a_longer_rest_is_told(build: Build, seconds: int, headers: dict[str, str], status: int) -> None:
    house = resting(build, seconds)
    handled = Tool(house, headers=headers).say("hi")
    fields = dict(handled.reply.headers)
    code, message = handled.error
    assert (handled.reply.status, code) == (status, "PROVIDER_NOT_AVAILABLE")
    assert message.startswith("No key that could answer is ready: openai is not available")
    assert message.endswith(f", for {seconds} s more")
    assert f": it rests until {time_of_day(house.clock.epoch + seconds, house.desk.clocks.utc_offset_s())}, for" in message
    assert ("x-should-retry" in fields) is (status == 400)
    assert fields.get("retry-after") == (str(seconds) if status == 429 else None)


@pytest.mark.parametrize("dialect", Dialect)
@pytest.mark.parametrize("stream", [True, False])
def test_23_it_is_told_in_every_dialect(build: Build, dialect: Dialect, stream: bool) -> None:
    """As a document, also where a stream was asked for: nothing of it has begun."""
    handled = Tool(resting(build, 16), dialect, stream=stream).say("hi")
    code, message = handled.error
    assert (handled.reply.status, code) == (400, "PROVIDER_NOT_AVAILABLE")
    assert message.endswith(", for 16 s more")
    assert dict(handled.reply.headers)["x-should-retry"] == "false"


def test_23_what_waiting_cannot_mend_is_a_400(build: Build) -> None:
    handled = Tool(resting(build, 5, status=401), headers=CLAUDE_CODE).say("hi")
    assert handled.reply.status == 400
    assert "rests until" not in handled.error[1]


def test_s08_a_chain_is_followed_where_the_default_route_does_not_lead(build: Build) -> None:
    house = build("default: [openai.gpt-4]", top="sessions: {derive: off}")
    first = Tool(house, Dialect.RESPONSES, session=None).say("<**openai.gpt-5.2**> hi")
    assert first.target == "openai.primary.gpt-5.2"
    first.answered("resp_1")
    resumed = Tool(house, Dialect.RESPONSES, session=None, more={"previous_response_id": "resp_1"}).say("and then?")
    assert resumed.target == first.target
    assert resumed.plan.decision.route == "chain"


# --- what a tool put around it ------------------------------------------------------------------------------------------

WRAPPED = "<userRequest>\n<**!glm.glm-4.7**> hi\n</userRequest>"


@DIALECTS
def test_a_tag_in_an_unknown_wrapper_is_named_and_passes_as_it_came(house: House, dialect: Dialect) -> None:
    tool = Tool(house, dialect)
    sent = tool.say(WRAPPED)
    assert sent.target == "origin.client.client-model"
    assert texts_of(dialect, sent.body) == [WRAPPED]
    assert sent.plan.long_comment.startswith("client-model · default · origin")
    assert sent.plan.long_comment.endswith(" · tags that give no orders: <**!glm.glm-4.7**> in `<userRequest>`")
    assert "<**" not in sent.plan.comment, "that goes into the log"
    assert house.files == []
    sent.answered()
    tool.hear()
    assert "give no orders" not in tool.say("and now?").plan.long_comment


@DIALECTS
def test_a_wrapper_that_the_configuration_names_holds_orders(build: Build, dialect: Dialect) -> None:
    house = build(top="sessions: {typedIn: [userRequest]}")
    sent = Tool(house, dialect).say(f"<context>\n<**x**>\n</context>\n{WRAPPED}")
    assert sent.target == "glm.key1.glm-4.7"
    assert texts_of(dialect, sent.body) == ["<context>\n<**x**>\n</context>\n<userRequest>\nhi\n</userRequest>"]
    assert sent.plan.long_comment.endswith("<**x**> in `<context>`")


def test_r2_what_opencode_quoted_is_obeyed_and_quoted_again(house: House) -> None:
    tool = Tool(house, headers={"User-Agent": "opencode/1.18.33 ai-sdk/provider-utils/4.0.46"})
    sent = tool.say(r'"<**stopMessage:\"go on\",3**> say \"hi\" now"')
    stop = house.desk.store.load(ONE).stop
    assert stop is not None
    assert (stop.text, stop.max_repeats) == ("go on", 3)
    assert texts_of(Dialect.MESSAGES, sent.body) == [r'"say \"hi\" now"']
    sent.answered()
    tool.hear()
    alone = tool.say(r'"<**stopMessage:\"carry on\",2**>"')
    assert alone.reply.status == 200
    tool.hear(text_of(Dialect.MESSAGES, alone.reply.body, False))
    assert texts_of(Dialect.MESSAGES, tool.say("next").body) == [r'"say \"hi\" now"', "fine", "next"]


def test_r2_another_tools_quotes_are_the_persons(house: House) -> None:
    """The outer ones stay; what is escaped within the tag can be read in one way only."""
    sent = Tool(house).say(r'"<**stopMessage:\"go on\",3**> hi"')
    stop = house.desk.store.load(ONE).stop
    assert stop is not None
    assert (stop.text, stop.max_repeats) == ("go on", 3)
    assert texts_of(Dialect.MESSAGES, sent.body)[0] == '" hi"'


def test_r1_a_notification_of_a_background_agent_is_nothing_typed(house: House) -> None:
    tool = Tool(house, headers={"User-Agent": "claude-cli/2.1.327 (external, sdk-cli)", "x-claude-code-prompt-id": "one"})
    tool.talk("<**!glm.glm-4.7**> delegate it")
    tool.headers["x-claude-code-prompt-id"] = "two"
    notice = "<system-reminder>\n[SYSTEM NOTIFICATION - NOT USER INPUT]\n<**clear**>\n</system-reminder>"
    sent = tool.say(notice)
    assert sent.reading is not None
    assert sent.reading.newest is not None
    assert sent.reading.newest.ordinal == 0
    assert sent.target == "glm.key1.glm-4.7"
    assert notice in texts_of(Dialect.MESSAGES, sent.body)


# --- what a tool says of its call -------------------------------------------------------------------------------------------

AGENT = {"User-Agent": "claude-cli/2.1.327 (external, cli)", "x-claude-code-request-class": "subagent"}
PLANS = "<system-reminder>\nPlan mode is active. The user indicated that they do not want you to execute yet\n</system-reminder>"
GOES_ON = "<system-reminder>\n## Exited Plan Mode\n\nYou have exited plan mode.\n</system-reminder>"
ROUTES = "default: [openai.gpt-4], side: [glm.glm-4.7], {}: [anthropic.claude-sonnet-4-5]"


@pytest.mark.parametrize(
    "route, agent, provider",
    [
        ("subagent", "general-purpose", "anthropic"),
        ("subagent.explore", "Explore", "anthropic"),
        ("subagent.explore", "other", "openai"),
    ],
)
def test_subagents_have_routes_of_their_own(build: Build, route: str, agent: str, provider: str) -> None:
    """By type where their tool tells it; they are never `side`, and go before a sticky target."""
    house = build(ROUTES.format(route))
    Tool(house).say("<**!openai.gpt-5.2**> hi")
    helper = Tool(house, headers={**AGENT, "x-claude-code-agent-type": agent}).say("look around")
    assert helper.plan.target.provider == provider
    assert helper.plan.target.model != "glm-4.7"


@pytest.mark.parametrize(
    "said, route", [([PLANS], "plan"), ([PLANS, GOES_ON], "default"), ([], "default"), ([GOES_ON, PLANS], "plan")]
)
def test_planning_has_a_route_of_its_own(build: Build, said: list[str], route: str) -> None:
    house = build(ROUTES.format("plan"))
    tool = Tool(house, headers={**AGENT, "x-claude-code-request-class": "main"})
    for text in said:
        tool.say(text)
        tool.hear()
    assert tool.say("and now?").plan.decision.route == route


def test_a_side_call_goes_to_its_route_over_a_sticky_target(build: Build) -> None:
    house = build(ROUTES.format("plan"))
    Tool(house).say("<**!openai.gpt-5.2**> hi")
    title = Tool(house, headers={**AGENT, "x-claude-code-request-class": "auxiliary"}).say("a title, please")
    assert title.target == "glm.key1.glm-4.7"
    assert (
        Tool(house, headers={**AGENT, "x-claude-code-request-class": "auxiliary"}).say("<**#glm**> t").target
        == "glm.key1.glm-4.7"
    )
