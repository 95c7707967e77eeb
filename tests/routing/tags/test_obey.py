"""From what was in force to what is in force: one message's tags, once."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from routecodex.routing.clients.typed import typed_messages
from routecodex.routing.errors import NoTarget, RouteCodexError
from routecodex.routing.router.registry import Registry
from routecodex.routing.sessions.state import EMPTY, SessionState, Sticky, StopMessage
from routecodex.routing.tags.cleaning import is_for_us
from routecodex.routing.tags.grammar import Status, Unknown, Unreadable, Why
from routecodex.routing.tags.obey import BadTag, FeatureDisabled, Orders, may_obey, orders_for
from routecodex.routing.tags.once import is_new, placed, remembered
from routecodex.routing.tags.texts import read_text
from routecodex.routing.tags.typed_tags import MOST_TAGS, tags_of
from routecodex.routing.values import Caller, Kind, Named
from tests.routing.sessions.calls import assistant, chat_call, gemini_call, messages_call, responses_call, user
from tests.routing.tags.config_a import NOW, REGISTRY, means, say


def state(**fields: object) -> SessionState:
    return EMPTY.with_(**fields)


ARMED = StopMessage("go on", 3, used=2, updated_at_ms=5, last_used_at_ms=6)
FULL = state(
    sticky=Sticky("glm", None, "glm-4.7"),
    allowed=("glm",),
    disabled_providers=("anthropic",),
    disabled_keys=(("openai", "primary"),),
    disabled_models=(("openai", "gpt-4"),),
    stop=ARMED,
    stop_cleared_at_ms=3,
    stop_last_used_at_ms=4,
)
A_STOP = StopMessage("A", 2, updated_at_ms=NOW)

APPLIED = [
    pytest.param("<**!glm,openai**>", EMPTY, state(allowed=("glm", "openai")), id="P01"),
    pytest.param("<**antigravity**>", state(allowed=("openai", "glm")), state(allowed=("antigravity",)), id="P03"),
    pytest.param("<**!glm**><**openai**>", state(allowed=("echo",)), state(allowed=("openai",)), id="the-later-list-replaces"),
    pytest.param("<**openai**><**!glm,echo**>", EMPTY, state(allowed=("glm", "echo")), id="one-list-adds-up"),
    pytest.param(
        "<**!antigravity.claude-sonnet-4-5**>", EMPTY, state(sticky=Sticky("antigravity", None, "claude-sonnet-4-5")), id="P04"
    ),
    pytest.param(
        "<**!antigravity[geminikey].gemini-3-pro-high**>",
        EMPTY,
        state(sticky=Sticky("antigravity", "geminikey", "gemini-3-pro-high")),
        id="P05",
    ),
    pytest.param("<**!openai.2**>", EMPTY, state(sticky=Sticky("openai", "backup")), id="sticky-key-by-place"),
    pytest.param("<**!echo**>", EMPTY, state(allowed=("echo",)), id="echo-stays"),
    pytest.param("<**!origin**>", state(sticky=Sticky("glm", None, "glm-4.7")), state(allowed=("origin",)), id="origin-unsticks"),
    pytest.param(
        "<**!glm**>",
        state(sticky=Sticky("glm", None, "glm-4.7")),
        state(sticky=Sticky("glm", None, "glm-4.7"), allowed=("glm",)),
        id="a-list-does-not",
    ),
    pytest.param("<**!echo.any**>", EMPTY, state(sticky=Sticky("echo", None, "any")), id="sticky-echo"),
    pytest.param("<**#anthropic.primary**>", EMPTY, state(disabled_keys=(("anthropic", "primary"),)), id="P11"),
    pytest.param("<**#openai.gpt-4**>", EMPTY, state(disabled_models=(("openai", "gpt-4"),)), id="P12"),
    pytest.param("<**#openai.3**>", EMPTY, state(disabled_keys=(("openai", "third"),)), id="P13"),
    pytest.param("<**#openai.primary.gpt-4**>", EMPTY, state(disabled_keys=(("openai", "primary"),)), id="key-of-one-model"),
    pytest.param(
        "<**#glm**>", FULL, FULL.with_(disabled_providers=("glm",), disabled_keys=(), disabled_models=()), id="replaces"
    ),
    pytest.param(
        "<**#openai.1**> <**#openai.2,glm**>",
        state(disabled_providers=("echo",)),
        state(disabled_providers=("glm",), disabled_keys=(("openai", "primary"), ("openai", "backup"))),
        id="disables-add-up",
    ),
    pytest.param(
        "<**@openai.gpt-4**>",
        state(disabled_models=(("openai", "gpt-4"), ("openai", "gpt-5.2"))),
        state(disabled_models=(("openai", "gpt-5.2"),)),
        id="P15",
    ),
    pytest.param(
        "<**#openai.primary**>",
        state(enabled=(("openai", "", ""), ("glm", "primary", ""))),
        state(enabled=(("glm", "primary", ""),), disabled_keys=(("openai", "primary"),)),
        id="disables-what-it-had-enabled-and-nobody-else",
    ),
    pytest.param("<**@openai**>", FULL, FULL.with_(disabled_keys=(), disabled_models=()), id="enable-provider"),
    pytest.param(
        "<**@openai.1**>",
        state(disabled_providers=("glm", "openai")),
        state(disabled_providers=("glm",), disabled_keys=(("openai", "backup"), ("openai", "third"))),
        id="enable-key-of-a-disabled-provider",
    ),
    pytest.param(
        "<**@openai.four**>",
        state(disabled_providers=("openai",)),
        state(disabled_models=(("openai", "gpt-5.2"),)),
        id="enable-model-of-a-disabled-provider",
    ),
    pytest.param(
        "<**!glm**> text <**#openai.1**>",
        EMPTY,
        state(allowed=("glm",), disabled_keys=(("openai", "primary"),)),
        id="P18",
    ),
    pytest.param("<**123**><****><** **>", FULL, FULL, id="P23"),
    pytest.param("x <**broken y", FULL, FULL, id="P24"),
    pytest.param("<**foo:bar**>", FULL, FULL, id="P29"),
    pytest.param('<**stopMessage:"继续"**>继续执行', EMPTY, state(stop=StopMessage("继续", 10, 0, NOW)), id="Q01-Q10"),
    pytest.param('<**stopMessage:"继续",3**>', EMPTY, state(stop=StopMessage("继续", 3, 0, NOW)), id="Q02"),
    pytest.param('<**stopmessage:"A",2**>', EMPTY, state(stop=A_STOP), id="Q06"),
    pytest.param('<**stopMessage:"B"**><**stopMessage:"A",2**>', EMPTY, state(stop=A_STOP), id="last-stop-wins"),
    pytest.param('<**stopMessage:"B"**><**stopMessage:clear**>', EMPTY, EMPTY, id="stop-then-clear"),
    pytest.param('<**stopMessage:clear**><**stopMessage:"A",2**>', FULL, None, id="clear-then-stop"),
    pytest.param("<**stopMessage:clear**>", state(stop=ARMED, stop_cleared_at_ms=3, stop_last_used_at_ms=4), EMPTY, id="Q18"),
    pytest.param('<**stopMessage:"go on",3**>', state(stop=ARMED), state(stop=StopMessage("go on", 3, 0, NOW)), id="Q15"),
    pytest.param("<**clear**>", FULL, EMPTY, id="Q17"),
    pytest.param("<**!glm**><**clear**><**#echo**>", FULL, state(disabled_providers=("echo",)), id="clear-is-in-order"),
]


@pytest.mark.parametrize("text, before, after", APPLIED)
def test_tags_are_applied(text: str, before: SessionState, after: SessionState | None) -> None:
    expected = FULL.with_(stop=A_STOP, stop_cleared_at_ms=None, stop_last_used_at_ms=None) if after is None else after
    assert say(text, before).state == expected


FORCED = [
    pytest.param("<**glm.glm-4.7**>", Named("glm", None, "glm-4.7"), id="P07"),
    pytest.param("<**openai.gpt-5.2**>", Named("openai", None, "gpt-5.2"), id="P08"),
    pytest.param("<**openai.primary.gpt-4**>", Named("openai", "primary", "gpt-4"), id="P09"),
    pytest.param("<**openai.2**>", Named("openai", "backup"), id="key"),
    pytest.param("<**echo**>", Named("echo"), id="echo"),
    pytest.param("<**origin**>", Named("origin"), id="origin"),
    pytest.param("<**origin.some-model**>", Named("origin", None, "some-model"), id="origin"),
    pytest.param("<**glm.glm-4.7**><**openai.four**>", Named("openai", None, "gpt-4"), id="last-wins"),
    pytest.param("<**glm.glm-4.7**><**clear**>", None, id="cleared"),
    pytest.param("<**glm.glm-4.7**><**!openai.four**>", Named("glm", None, "glm-4.7"), id="beside-a-sticky"),
]


@pytest.mark.parametrize("text, force", FORCED)
def test_force_is_no_state(text: str, force: Named | None) -> None:
    orders = say(text)
    assert orders.force == force
    assert orders.state.with_(sticky=None) == EMPTY


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("<**!GLM**>", id="P27"),
        pytest.param("<**!glm.glm-4.7:passthrough**>", id="P28"),
        pytest.param("<**!glm.glm-4.7:foo**>", id="P28-foo"),
        pytest.param("<**#openai.4**>", id="P13"),
        pytest.param("<**nope.x**>", id="R11"),
        pytest.param('<**clear**><**stopMessage:"x"**><**@nope**>', id="all-or-nothing"),
    ],
)
def test_unknown_names_are_refused(text: str) -> None:
    with pytest.raises(NoTarget):
        say(text, FULL)


@pytest.mark.parametrize(
    "text, switches, setting",
    [
        ('<**!glm**><**stopMessage:"x"**>', {"stop_enabled": False}, "virtualrouter.stopMessage.enabled"),
        ("<**clock:clear**>", {"clock_enabled": False}, "virtualrouter.clock.enabled"),
        ("<**usage**>", {"usage_enabled": False}, "usage.enabled"),
    ],
)
def test_a_feature_that_is_off_says_so(text: str, switches: dict[str, bool], setting: str) -> None:
    with pytest.raises(FeatureDisabled) as refused:
        say(text, **switches)
    assert setting in refused.value.message
    assert (refused.value.status, refused.value.code) == (400, "FEATURE_DISABLED")


def test_stop_message_can_be_cleared_where_it_is_off() -> None:
    assert say("<**stopMessage:clear**>", state(stop=ARMED), stop_enabled=False).state == EMPTY


def test_q11_q13_files_are_read_when_the_tag_is_obeyed(tmp_path: Path) -> None:
    (tmp_path / "m.md").write_text("one\ntwo\n")
    first = say("<**stopMessage:<file://m.md>,3**>", read_text=lambda name: read_text(name, tmp_path))
    assert first.state.stop == StopMessage("one\ntwo", 3, 0, NOW)
    (tmp_path / "m.md").write_text("three")
    again = say("<**stopMessage:<file://m.md>**>", first.state, read_text=lambda name: read_text(name, tmp_path))
    assert again.state.stop == StopMessage("three", 10, 0, NOW)


@pytest.mark.parametrize(
    "text, said",
    [
        pytest.param("<**stopMessage:<file://../x>**> <**!glm**>", "The stopMessage file ../x is not there", id="Q12"),
        pytest.param('<**!glm**> <**stopMessage:""**>', "it has no text", id="Q07"),
        pytest.param('<**stopMessage:"A",2**><**stopMessage:on,10**>', "stopMessage:on,10 was not obeyed", id="Q08"),
        pytest.param("<**!glm**> <**clear all**>", "write <**clear**>", id="word"),
    ],
)
def test_what_cannot_be_obeyed_is_refused_with_all_the_rest(text: str, said: str) -> None:
    with pytest.raises(BadTag) as refused:
        say(text, FULL)
    assert said in refused.value.message
    assert (refused.value.status, refused.value.code) == (400, "BAD_TAG")


@pytest.mark.parametrize("word", ["status", "help", "models", "models:glm", "why"])
def test_what_asks_stands_alone(word: str) -> None:
    """A person who asks beside a message would pay for the message and hear nothing."""
    (typed,) = typed_messages(messages_call(user(f"<**{word}**> fix the bug")))
    with pytest.raises(BadTag, match="send it in a message of its own"):
        orders_for(tags_of(typed), EMPTY, means(), acts=True, alone=False)
    assert orders_for(tags_of(typed), EMPTY, means(), acts=True, alone=True).asks


def test_models_of_nobody() -> None:
    with pytest.raises(NoTarget, match="gml not found"):
        say("<**models:gml**>")


def test_a_target_that_is_down_cannot_be_kept_to() -> None:
    """Also one that the same message switched off; nothing of the message is obeyed."""

    def why_not(state: SessionState, sticky: Sticky) -> RouteCodexError | None:
        return NoTarget("it is off") if sticky.provider in state.disabled_providers else None

    assert say("<**@glm**><**!glm.glm-4.7**>", state(disabled_providers=("glm",)), why_not=why_not).state.sticky
    for text, before in (("<**!glm.glm-4.7**>", state(disabled_providers=("glm",))), ("<**#glm**><**!glm.glm-4.7**>", EMPTY)):
        with pytest.raises(NoTarget, match=r"it is off\. Nothing was sent, and nothing changed\."):
            say(text, before, why_not=why_not)


def test_what_is_said() -> None:
    assert say("<**!glm,openai**>").lines == ("Only these providers are used: glm, openai.",)
    assert say("<**!openai.1**>").lines == ("From now on everything goes to openai[primary] (model gpt-5.2).",)
    assert say("<**#glm**>", FULL).lines == (
        "glm is disabled.",
        "Enabled again, because the new list replaces the old one: anthropic, openai key primary, openai model gpt-4.",
    )
    assert say("<**#openai.1**><**#openai.2**>", FULL).lines[-1].endswith("anthropic, openai model gpt-4.")
    assert say("<**#glm**><**clear**>", FULL).lines[-1] == "Everything is cleared: normal routing, no stopMessage."
    assert say("<**@echo**>").lines == ("echo was not disabled.",)
    assert say('<**stopMessage:"say **> and <**!glm**>",1**>').lines == (
        'stopMessage is set: "say *> and <*!glm*>", at most once.',
    )
    assert say("<**foo:bar**>").ignored == ("No such tag: foo:bar.",)


def test_clock_clear_and_status() -> None:
    assert say("<**clock:clear**>").clock_clear
    assert not say("<**clock:clear**>").asks
    assert say("<** Status **><**why**>").asks == (Status(), Why())


# --- one message, seen again and again --------------------------------------------------------------------------------


def seen(*messages: dict[str, object], state: SessionState = EMPTY, registry: Registry = REGISTRY) -> Orders:
    """As the desk does it, with the message remembered."""
    call = messages_call(*messages)
    typed = typed_messages(call)
    tags = tags_of(typed[-1]) if typed else ()
    if not tags:
        return Orders(state)
    place, _ = placed(call, typed, typed[-1])
    acts = is_new(state, place)
    orders = orders_for(tags, state, means(registry=registry), acts=acts, alone=is_for_us(call, typed[-1]))
    return replace(orders, state=remembered(orders.state, place, "open")) if orders.fresh else orders


HOP = (
    {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "x", "input": {}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "<**clear**>"}]},
)
SET = '<**stopMessage:"go on",3**> <**glm.glm-4.7**> <**clock:clear**> do it'


def test_p22_a_tool_hop_changes_nothing() -> None:
    first = seen(user(SET))
    assert first.fresh
    assert first.clock_clear
    assert first.state.stop == StopMessage("go on", 3, 0, NOW)
    used_up = first.state.with_(stop=replace(first.state.stop, used=2))
    for now in (used_up, first.state.with_(stop=None)):
        hop = seen(user(SET), *HOP, state=now)
        assert hop.state is now
        assert not hop.fresh
        assert not hop.clock_clear
        assert hop.force == Named("glm", None, "glm-4.7")


def test_p21_older_tags_are_not_obeyed() -> None:
    orders = seen(user("<**clear**>"), assistant("ok"), user("hi"), state=FULL)
    assert orders == Orders(FULL)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param([{"type": "tool_result", "tool_use_id": "t", "content": "<**clear**>"}], id="P20"),
        pytest.param("<system-reminder><**clear**></system-reminder>", id="reminder"),
        pytest.param("see `<**clear**>`", id="P19-inline"),
        pytest.param("see\n```\n<**clear**>\n```\n", id="P19-fence"),
        pytest.param("see\n```\n<system-reminder>\n```\n</system-reminder>\n<**clear**>\n```\n", id="fence-around-a-wrapper"),
    ],
)
def test_text_that_gives_no_orders(content: object) -> None:
    assert seen({"role": "user", "content": content}, state=FULL).state is FULL


def test_a_tag_before_code_in_its_own_text_is_obeyed() -> None:
    assert seen(user('run `make` <**stopMessage:"run `make` **> now"**> then `x`')).state.stop is not None


def test_q15_the_same_tag_typed_again_arms_again() -> None:
    first = seen(user(SET))
    now = first.state.with_(stop=None)
    again = seen(user(SET), assistant("done"), user(SET), state=now)
    assert again.fresh
    assert again.state.stop == StopMessage("go on", 3, 0, NOW)


def test_a_history_cut_short_arms_nothing() -> None:
    first = seen(user("old"), assistant("ok"), user(SET))
    now = first.state.with_(stop=None)
    assert seen(user(SET), *HOP, state=now).state is now


def test_another_shape_of_the_same_message_is_no_new_one() -> None:
    first = seen(user("<system-reminder>x</system-reminder>", SET))
    assert seen(user(f"{SET}\n"), *HOP, state=first.state).state is first.state


def test_s12_force_ends_with_its_message() -> None:
    first = seen(user("<**glm.glm-4.7**> hi"))
    assert first.force is not None
    assert seen(user("<**glm.glm-4.7**> hi"), assistant("ok"), user("more"), state=first.state).force is None


def test_a_changed_configuration_stops_no_tool_hop_but_a_forced_one() -> None:
    empty = Registry({}, {})
    stuck = seen(user("<**!glm.glm-4.7**> hi"))
    assert seen(user("<**!glm.glm-4.7**> hi"), *HOP, state=stuck.state, registry=empty).state is stuck.state
    forced = seen(user("<**glm.glm-4.7**> hi"))
    with pytest.raises(NoTarget):
        seen(user("<**glm.glm-4.7**> hi"), *HOP, state=forced.state, registry=empty)


def test_unknown_tags_leave_no_trace() -> None:
    assert not seen(user("<**foo:bar**> hi"), state=FULL).fresh
    assert seen(user("<**foo:bar**> hi"), state=FULL).state is FULL


def test_a_repeated_answer_says_the_same() -> None:
    first = seen(user("<**@glm**> <**!openai**> <**status**>"), state=state(disabled_providers=("glm",)))
    again = seen(user("<**@glm**> <**!openai**> <**status**>"), state=first.state)
    assert (again.lines, again.asks, again.fresh) == (first.lines, (Status(),), False)
    assert first.lines == ("glm is enabled.", "Only these providers are used: openai.")


@pytest.mark.parametrize("lines", range(2))
def test_p26_every_dialect(lines: int) -> None:
    text = "<**!glm**>" + "\nhi" * lines
    calls = [
        messages_call(user(text)),
        chat_call(user(text)),
        responses_call({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}),
        gemini_call({"role": "user", "parts": [{"text": text}]}),
    ]
    for call in calls:
        (typed,) = typed_messages(call)
        orders = orders_for(tags_of(typed), EMPTY, means(), acts=True, alone=lines == 0)
        assert orders.state.allowed == ("glm",)


def test_no_more_than_16_tags() -> None:
    """None of them is obeyed: which of them were meant, nobody knows. What is nothing of ours does not count."""
    (typed,) = typed_messages(messages_call(user("<**!glm**>" * 5_000)))
    (tag,) = tags_of(typed)
    assert isinstance(tag, Unreadable)
    assert str(MOST_TAGS) in tag.right
    (typed,) = typed_messages(messages_call(user("<**a b**>" * 5_000 + "<**!glm**>" * MOST_TAGS)))
    assert sum(not isinstance(tag, Unknown) for tag in tags_of(typed)) == 0, "nobody looks at more than a thousand"
    (typed,) = typed_messages(messages_call(user("<**a b**>" * 500 + "<**!glm**>" * MOST_TAGS)))
    assert sum(not isinstance(tag, Unknown) for tag in tags_of(typed)) == MOST_TAGS


@pytest.mark.parametrize(
    "kind, structured, may",
    [(Kind.MAIN, False, True), (Kind.MAIN, True, False), *((kind, False, False) for kind in Kind if kind is not Kind.MAIN)],
)
def test_only_main_calls_may_give_orders(kind: Kind, structured: bool, may: bool) -> None:
    call = messages_call(user("<**clear**>"))
    call.structured = structured
    assert may_obey(call, Caller("x", kind)) is may
