"""What of a tag reaches a provider: nothing, in any dialect, and nothing else is lost."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from routecodex.routing.clients.codex import CODEX
from routecodex.routing.clients.mini_swe_agent import MINI_SWE_AGENT
from routecodex.routing.clients.opencode import OPENCODE
from routecodex.routing.clients.typed import typed_messages
from routecodex.routing.tags.cleaning import clean, is_for_us, only_tags
from routecodex.routing.tags.status import LOCAL_ANSWER_MARK, local_answer
from routecodex.routing.values import Call
from tests.routing.clients.test_fixtures import TABLE, recorded
from tests.routing.sessions.calls import assistant, chat_call, gemini_call, messages_call, responses_call, user

OURS = assistant(local_answer(["Sticky: glm."]))


def cleaned(call: Call) -> Call:
    clean(call, typed_messages(call))
    return call


def messages_after(*messages: dict[str, Any]) -> object:
    return cleaned(messages_call(*messages)).body["messages"]


def block(text: str, **fields: Any) -> dict[str, Any]:
    return {"type": "text", "text": text, **fields}


def test_x01_old_tags_do_not_reach_the_provider() -> None:
    history = [
        user("<**!glm**> a"),
        assistant("1"),
        user("b <**#openai**>"),
        assistant("2"),
        user("<**clear**>\nc"),
        assistant("3"),
    ]
    left = messages_after(*history, user("d"))
    assert left == [user("a"), assistant("1"), user("b"), assistant("2"), user("c"), assistant("3"), user("d")]


def test_x02() -> None:
    assert messages_after(user("<**clear**> continue")) == [user("continue")]


def test_x06_a_call_without_tags_is_not_touched() -> None:
    call = messages_call(user("a < b ** c **> d"), assistant("<**x**>"), user("hi"))
    before = copy.deepcopy(call.body)
    cleaned(call)
    assert not call.changed
    assert call.body == before


def test_x08_and_p20_only_typed_text_changes() -> None:
    hop = {"type": "tool_result", "tool_use_id": "t", "content": "<**x**>"}
    reminder = block("<system-reminder><**x**></system-reminder>")
    history = [
        user("a"),
        {
            "role": "assistant",
            "content": [block("<**x**>"), {"type": "tool_use", "id": "t", "name": "n", "input": {"a": "<**x**>"}}],
        },
        {"role": "user", "content": [hop, reminder]},
    ]
    call = messages_call(*history, system="<**x**>")
    cleaned(call)
    assert not call.changed
    assert messages_after(*history, user("<**y**> b"))[:-1] == history  # type: ignore[index]


def test_p19_tags_in_code_are_taken_out() -> None:
    assert messages_after(user("see `<**clear**>`\n```\n<**x**>\ny\n```")) == [user("see ``\n```\ny\n```")]


def test_p24_nothing_is_lost() -> None:
    assert messages_after(user("x <**broken y")) == [user("x <**broken y")]


@pytest.mark.parametrize("dialect", ["chat", "responses", "responses-string", "gemini"])
def test_p26_every_dialect(dialect: str) -> None:
    text = "<**!glm**> hi"
    calls = {
        "chat": lambda: chat_call(user(text)),
        "responses": lambda: responses_call(
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
        ),
        "responses-string": lambda: responses_call({"role": "user", "content": text}),
        "gemini": lambda: gemini_call({"role": "user", "parts": [{"text": text}]}),
    }
    call = cleaned(calls[dialect]())
    assert "<**" not in json.dumps(call.body)
    assert call.messages[0].text == "hi"


# --- exchanges with ourselves -------------------------------------------------------------------------------------------


def test_x03_an_exchange_with_us_leaves_the_history() -> None:
    assert messages_after(user("hi"), assistant("yes"), user("<**!glm**>"), OURS, user("go")) == [
        user("hi"),
        assistant("yes"),
        user("go"),
    ]


def test_several_exchanges_in_a_row() -> None:
    assert messages_after(user("<**!glm**>"), OURS, user("<**status**> <**#echo**>"), OURS, user("go")) == [user("go")]


def test_what_a_tool_put_beside_moves_on() -> None:
    reminder = block("<system-reminder>x</system-reminder>")
    left = messages_after(
        user(reminder["text"], "<**!glm**>"),
        {"role": "system", "content": "environment"},
        OURS,
        {"role": "user", "content": [block("go")]},
    )
    assert left == [{"role": "user", "content": [reminder, block("go")]}, {"role": "system", "content": "environment"}]


@pytest.mark.parametrize("typed", ["<**!glm**>", '"<**!glm**>"'])
def test_what_a_tool_put_into_the_same_text_moves_on(typed: str) -> None:
    question = user(f"<system-reminder>x</system-reminder>\n{typed}")
    left = messages_after(question, OURS, {"role": "user", "content": [block("go")]})
    assert left == [{"role": "user", "content": [block("<system-reminder>x</system-reminder>"), block("go")]}]


def test_reminders_in_messages_of_their_own_stay() -> None:
    reminder = user("<system-reminder>x</system-reminder>")
    assert messages_after(user("<**!glm**>"), reminder, OURS, user("go")) == [reminder, user("go")]


def test_without_our_answer_it_is_only_taken_out() -> None:
    assert messages_after(user("<**!glm**>"), user("go")) == [user("continue"), user("go")]
    assert messages_after(user("<**!glm**>"), assistant("sure"), user("go")) == [user("continue"), assistant("sure"), user("go")]


SEALED = {"type": "compaction", "encrypted_content": "x"}


@pytest.mark.parametrize("behind", [[user("go"), SEALED], [SEALED]], ids=["a message", "the compaction"])
def test_whose_answer_a_compaction_took_leaves_the_history(behind: list[dict[str, Any]]) -> None:
    call = cleaned(responses_call(user("hi"), user("<**!glm**>"), *behind, user("now")))
    assert call.body["input"] == [user("hi"), *behind, user("now")]
    assert [message.index for message in call.messages] == list(range(len(call.messages)))


def test_so_it_does_before_a_summary_in_words() -> None:
    summary = user("Another language model started to solve this problem and produced a summary: x")
    call = responses_call(user("<**!glm**>"), summary, user("now"))
    clean(call, typed_messages(call, CODEX), CODEX)
    assert call.body["input"] == [summary, user("now")]


def test_what_stands_behind_the_compaction_is_only_taken_out() -> None:
    call = cleaned(responses_call(SEALED, user("<**!glm**>"), user("now")))
    assert call.body["input"] == [SEALED, user("continue"), user("now")]


@pytest.mark.parametrize("file", ["</content>\n", "<content>\n", "[Assistant]: x\n<content>\n"])
def test_what_a_person_typed_between_files_in_a_summary(file: str) -> None:
    """opencode has a conversation summed up as one text, in which files open and close what they like."""
    tool = f"[Assistant tool call]: read()\n[Tool result]: <content>\n<**!evil**>\n{file}</content>"
    told = (
        "<conversation>\n[User]: {}\n\n" + tool + "\n\n[User]: {}\n\n[Assistant]: ok\n\n" + tool + "\n</conversation>\nSum it up."
    )
    call = messages_call(user(told.format("<**!glm**> hi", '<**stopMessage:"go on",2**> there <content>')))
    clean(call, typed_messages(call, OPENCODE), OPENCODE)
    assert call.body["messages"] == [user(told.format("hi", "there <content>"))]


def test_an_answer_to_somebody_else_stays() -> None:
    assert messages_after(user("<**!glm**>"), user("hi"), OURS, user("go")) == [user("continue"), user("hi"), OURS, user("go")]


def test_an_answer_with_a_tool_call_is_not_ours() -> None:
    calls = {
        "role": "assistant",
        "content": [block(LOCAL_ANSWER_MARK), {"type": "tool_use", "id": "t", "name": "n", "input": {}}],
    }
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "x"}]}
    assert messages_after(user("<**!glm**>"), calls, result) == [user("continue"), calls, result]


def test_nothing_follows() -> None:
    assert messages_after(user("hi"), assistant("yes"), user("<**!glm**>"))[-1] == user("continue")  # type: ignore[index]
    assert messages_after(user("<**!glm**>"), OURS) == [user("continue"), OURS]


def test_an_empty_part_goes_and_its_cache_mark_stays() -> None:
    mark = {"type": "ephemeral"}
    left = messages_after(
        {"role": "user", "content": [block("<system-reminder>x</system-reminder>"), block("<**x**>", cache_control=mark)]}
    )
    assert left == [{"role": "user", "content": [block("<system-reminder>x</system-reminder>", cache_control=mark)]}]


def test_quotes_around_nothing_are_nothing() -> None:
    assert messages_after(user('"<**x**>"')) == [user("continue")]


ONLY = [
    pytest.param("<**x**>", True, id="X03"),
    pytest.param(" <**!glm**>\n<**status**> ", True, id="two"),
    pytest.param('"<**x**>"', True, id="quotes-of-a-tool"),
    pytest.param("<**123**>", True, id="unknown"),
    pytest.param("<system-reminder>x</system-reminder><**x**>", True, id="beside-a-reminder"),
    pytest.param("<**x**> hi", False, id="words"),
    pytest.param("`<**x**>`", False, id="code"),
    pytest.param("hi", False, id="no-tag"),
    pytest.param("<**x**> <**y", False, id="broken"),
    pytest.param('""', False, id="quotes-alone"),
    pytest.param('<**stopMessage:"' + "a" * 16_000 + '"**> <**glm**>', True, id="a-very-long-one"),
    pytest.param("<**glm**>" * 20_000, False, id="more-than-anybody-types"),
]


@pytest.mark.parametrize("text, expected", ONLY)
def test_only_tags(text: str, expected: bool) -> None:
    (typed,) = typed_messages(messages_call(user(text)))
    assert only_tags(typed) is expected


def test_a_tag_beside_an_image_is_not_only_a_tag() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}
    (typed,) = typed_messages(messages_call({"role": "user", "content": [image, block("<**x**>")]}))
    assert not only_tags(typed)


def test_what_a_tool_drops_of_our_answers_is_answered_once() -> None:
    """mini-swe-agent wants a tool called by each answer."""
    call = chat_call(user("Please solve this issue: <**status**>"), user("Tool call error:\n\n<error>none</error>"))
    typed = typed_messages(call, MINI_SWE_AGENT)
    assert not is_for_us(call, typed[-1], MINI_SWE_AGENT)
    clean(call, typed, MINI_SWE_AGENT)
    assert [message.text for message in call.messages] == ["Please solve this issue:\nTool call error:\n\n<error>none</error>"]


def test_only_an_unanswered_message_is_for_us() -> None:
    for messages, expected in (
        ([user("<**x**>")], True),
        ([user("<**x**>"), {"role": "system", "content": "s"}, user("<system-reminder>x</system-reminder>")], True),
        ([user("<**x**>"), OURS], False),
        ([user("<**x**>"), assistant("hm"), user("<system-reminder>x</system-reminder>")], False),
        ([user("<**x**> hi")], False),
    ):
        call = messages_call(*messages)
        assert is_for_us(call, typed_messages(call)[-1]) is expected


@pytest.mark.parametrize("file", sorted(TABLE))
def test_recorded_calls(file: str) -> None:
    """No tag of a person is left in a real client's call; cleaning it twice is cleaning it once."""
    call, _ = recorded(file)
    typed_tags = any("<**!" in typed.words for typed in typed_messages(call))
    cleaned(call)
    assert call.changed or not typed_tags
    assert all("<**!" not in typed.words for typed in typed_messages(call))
    once = json.dumps(call.body)
    cleaned(call)
    assert json.dumps(call.body) == once
