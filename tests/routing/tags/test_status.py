"""What is said to be in force."""

from __future__ import annotations

from routecodex.routing.sessions.state import EMPTY, SessionState, Sticky, StopMessage
from routecodex.routing.tags.status import answer_lines, describe, local_answer
from tests.routing.tags.config_a import say

FULL = SessionState(
    sticky=Sticky("glm", None, "glm-4.7"),
    allowed=("glm", "echo"),
    disabled_providers=("anthropic",),
    disabled_keys=(("openai", "primary"),),
    disabled_models=(("openai", "gpt-4"),),
    stop=StopMessage("go <**x**>\non", 3, used=2),
)


def test_everything_in_force() -> None:
    assert describe(FULL, derived=False, session="s") == [
        "Sticky: glm.glm-4.7 (all keys).",
        "Allowed: glm, echo.",
        "Disabled: anthropic, openai key primary, openai model gpt-4.",
        'stopMessage: "go <*x*> on", used 2 of 3 times.',
    ]


def test_one_key() -> None:
    state = EMPTY.with_(sticky=Sticky("openai", "primary"))
    assert describe(state, derived=False, session="s")[0] == "Sticky: openai[primary]."


def test_nothing_in_force() -> None:
    assert describe(EMPTY, derived=False, session="s") == ["Routing: normal.", "stopMessage: none."]


def test_what_the_clock_says_comes_last() -> None:
    assert describe(EMPTY, derived=False, session="s", clock="Reminders: 2.") == [
        "Routing: normal.",
        "stopMessage: none.",
        "Reminders: 2.",
    ]


def test_a_target_that_is_no_longer_declared() -> None:
    lapsed = describe(EMPTY, derived=False, session="s", lapsed=Sticky("glm"), undeclared=lambda sticky: True)
    assert lapsed[1] == "Sticky glm was cleared: it is no longer in the configuration."
    kept = describe(EMPTY.with_(sticky=Sticky("glm")), derived=False, session="s", undeclared=lambda sticky: True)
    assert kept[1] == "glm is no longer in the configuration: it is passed over."


def test_sessions() -> None:
    assert describe(EMPTY, derived=True, session="s")[-1].startswith("This client names no session; ")
    assert describe(EMPTY, derived=False, session=None)[-1].endswith("tags hold for this message only.")


def test_the_answer_says_what_changed_and_what_is_in_force() -> None:
    orders = say("<**glm.glm-4.7**><**!echo**><**foo:bar**>")
    assert answer_lines(orders, describe(orders.state, derived=False, session="s")) == [
        "Only these providers are used: echo.",
        "`<**glm.glm-4.7**>` holds for the message that it stands in, so nothing was sent: write it beside your text. "
        "`<**!glm.glm-4.7**>` keeps the whole conversation there.",
        "No such tag: foo:bar.",
        "Allowed: echo.",
        "stopMessage: none.",
    ]


def test_no_line_of_an_answer_goes_on_in_the_next_one_in_markdown() -> None:
    assert local_answer(["one", "two\nand more of it", "three"]) == "[RouteCodex] one  \ntwo  \nand more of it  \nthree"
