"""Decision 16: the client holds our merged answer, the provider gets the true sequence back, every time the same."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from routecodex.routing.clients.typed import typed_messages
from routecodex.routing.dialects.calls import read_call
from routecodex.routing.dialects.calls.ending import with_texts
from routecodex.routing.dialects.endpoints import endpoint_of
from routecodex.routing.jsonbytes import dumps
from routecodex.routing.tags.cleaning import clean
from routecodex.routing.turn.hidden import Hidden, hidden_in, put_back
from routecodex.routing.values import Call, Dialect
from tests.rig.work import assert_as_many_lines, assert_linear
from tests.routing.turn.hidden_talk import TALKS, Item, Talk

BASH = ("toolu_1", "Bash", {"command": "ls", "n": 1})
CLOCK = ("toolu_own", "clock", {"action": "list"})
by_dialect = pytest.mark.parametrize("talk", TALKS, ids=lambda talk: talk.dialect.value)
with_shape = pytest.mark.parametrize(
    "talk,reshape",
    [pytest.param(talk, shape, id=f"{talk.dialect.value}{shape.__name__}") for talk in TALKS for shape in talk.reshaped],
)
Reshape = Callable[[list[Item]], list[Item]]


def followed(talk: Talk, *, thinking: str = "why") -> tuple[list[Item], list[Item]]:
    """Two rounds with a follow-up between them; and what the client is shown."""
    items = [
        *talk.answer("one is here", thinking=thinking),
        talk.follow("go on"),
        *talk.answer("two", thinking=f"{thinking}2" if thinking else ""),
    ]
    return items, talk.answer("one is here\n\ntwo", thinking=thinking)


def remembered(talk: Talk, call: Call, items: list[Item], merged: list[Item], **more: Any) -> Hidden:
    entry = hidden_in(call, [merged], items, **more)
    assert entry is not None
    return entry


def without_marks(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_marks(child) for key, child in value.items() if key != "cache_control"}
    return [without_marks(child) for child in value] if isinstance(value, list) else value


# Follow-ups


@with_shape
@pytest.mark.parametrize("thinking", ["why", ""])
def test_a_follow_up_comes_back(talk: Talk, reshape: Reshape, thinking: str) -> None:
    items, merged = followed(talk, thinking=thinking)
    first = talk.call(talk.user("do it"))
    entry = remembered(talk, first, items, merged)
    later = talk.call(talk.user("do it"), *reshape(merged), talk.user("next"))
    stored = copy.deepcopy(entry)
    assert put_back(later, [entry], typed_messages(later)) == 1
    assert without_marks(talk.history(later)) == [talk.user("do it"), *items, talk.user("next")]
    assert json.dumps(later.body).count("cache_control") == json.dumps(reshape(merged)).count("cache_control")
    assert later.changed
    assert later.messages == read_call(dumps(later.body), later.endpoint).messages
    assert entry == stored


@by_dialect
def test_every_later_call_gets_the_same_bytes(talk: Talk) -> None:
    """The prompt cache lives on it: the history only ever grows at its end."""
    items, merged = followed(talk)
    history = [talk.user("do it")]
    entries = [remembered(talk, talk.call(*history), items, merged)]
    history += merged
    before = b""
    for number in range(4):
        history.append(talk.user(f"question {number}"))
        call = talk.call(*history)
        assert put_back(call, entries) == 1 + (number > 1)
        sent = dumps(talk.history(call))[:-1]
        assert sent.startswith(before)
        before = sent
        if number == 1:
            again, merged = followed(talk, thinking="later")
            entries.append(remembered(talk, talk.call(*history), again, merged))
            history += merged
        else:
            history += talk.answer(f"answer {number}")


@by_dialect
def test_two_calls_in_other_shapes_get_the_same_bytes(talk: Talk) -> None:
    items, merged = followed(talk)
    entry = remembered(talk, talk.call(talk.user("do it")), items, merged)
    seen = set()
    for reshape in talk.reshaped:
        call = talk.call(talk.user("do it"), *reshape(merged))
        assert put_back(call, [entry]) == 1
        seen.add(dumps(without_marks(talk.history(call))))
    assert len(seen) == 1


# What stood behind the client's message

REMINDER = "[Clock Reminder] look"


@with_shape
def test_a_text_behind_the_clients_message_comes_back(talk: Talk, reshape: Reshape) -> None:
    """A reminder: the answer to it is the client's own copy, and later hops go on behind it."""
    first = talk.call(talk.user("go on"))
    native = talk.answer("I look", BASH)
    entry = remembered(talk, first, native, native, before=["[Clock Reminder] look"])
    assert entry.items == ()
    results = talk.results([(BASH, "a file")])
    seen = []
    for more in ([], [*talk.answer("done"), talk.user("next")]):
        copied = reshape(native)
        later = talk.call(talk.user("go on"), *copied, *results, *more)
        assert put_back(later, [entry]) == 1
        assert talk.history(later) == [*talk.history(with_texts(first, [REMINDER])), *copied, *results, *more]
        assert later.messages == read_call(dumps(later.body), later.endpoint).messages
        seen.append(talk.history(later))
    assert seen[1][: len(seen[0])] == seen[0]


@by_dialect
def test_a_text_behind_results_and_behind_our_own_among_them(talk: Talk) -> None:
    """The message that it stood behind holds results; those of our own tool join the same message."""
    mixed, shown = talk.answer("look", CLOCK, BASH), talk.answer("look", BASH)
    ours, theirs = talk.results([(CLOCK, "none")]), talk.results([(BASH, "file")])
    beside = remembered(talk, talk.call(talk.user("q")), mixed, shown, results=ours)
    hop = talk.call(talk.user("q"), *shown, *theirs)
    rounds, merged = followed(talk)
    reminded = remembered(talk, hop, rounds, merged, before=[REMINDER])
    put_back(hop, [beside])
    expected = [*talk.history(with_texts(hop, [REMINDER])), *rounds, talk.user("next")]
    later = talk.call(talk.user("q"), *shown, *theirs, *merged, talk.user("next"))
    assert put_back(later, [beside, reminded]) == 2
    assert talk.history(later) == expected
    assert later.messages == read_call(dumps(later.body), later.endpoint).messages


@by_dialect
def test_a_text_behind_a_message_that_is_gone_is_left_out(talk: Talk) -> None:
    native = talk.answer("I look")
    entry = remembered(talk, talk.call(talk.user("go on")), native, native, before=[REMINDER])
    edited = talk.call(talk.user("something else"), *native, talk.user("next"))
    assert put_back(edited, [entry]) == 0
    assert not edited.changed


# Tools of ours


@by_dialect
def test_c16_a_call_of_our_tool_comes_back(talk: Talk) -> None:
    items = [*talk.answer("let me see", CLOCK, thinking="t"), *talk.results([(CLOCK, "none")]), *talk.answer("nothing is due")]
    merged = talk.answer("let me see\n\nnothing is due", thinking="t")
    entry = remembered(talk, talk.call(talk.user("q")), items, merged)
    later = talk.call(talk.user("q"), *merged, talk.user("next"))
    assert put_back(later, [entry]) == 1
    assert talk.history(later) == [talk.user("q"), *items, talk.user("next")]


@with_shape
def test_c12_c14_c17_a_call_beside_the_clients_comes_back_every_time(talk: Talk, reshape: Reshape) -> None:
    """Ours stands between text and the client's call, and its result comes before the client's."""
    native = talk.answer("look", CLOCK, BASH, thinking="t")
    ours, theirs = talk.results([(CLOCK, "none")]), talk.results([(BASH, "file")])
    merged = talk.answer("look", BASH, thinking="t")
    entry = remembered(talk, talk.call(talk.user("q")), native, merged, results=ours)
    copied = reshape(merged)
    seen = []
    for more in ([], [*talk.answer("done"), talk.user("next")], [*talk.answer("done"), talk.user("next"), *talk.answer("x")]):
        later = talk.call(talk.user("q"), *copied, *theirs, *more)
        assert put_back(later, [entry]) == 1
        seen.append(talk.history(later))
    both = [{**theirs[0], key: [*ours[0][key], *theirs[0][key]]} for key in ("content", "parts") if key in theirs[0]]
    behind = both if talk.dialect in (Dialect.MESSAGES, Dialect.GEMINI) else [*ours, *theirs]
    expected = [talk.user("q"), *native, *behind]
    for history in seen:
        assert without_ids(without_marks(history[: len(expected)])) == without_ids(without_marks(expected))
    assert json.dumps(seen[1]).startswith(json.dumps(seen[0])[:-1])


def without_ids(value: Any) -> Any:
    """Gemini's clients give their calls ids of their own."""
    if isinstance(value, dict):
        return {key: without_ids(child) for key, child in value.items() if (key, child) != ("id", "own_0")}
    return [without_ids(child) for child in value] if isinstance(value, list) else value


@by_dialect
def test_c14_the_result_of_ours_when_the_clients_never_came(talk: Talk) -> None:
    """No call of ours is left without its result, whatever stands behind it."""
    native, merged = talk.answer("look", CLOCK, BASH), talk.answer("look", BASH)
    ours = talk.results([(CLOCK, "none")])
    entry = remembered(talk, talk.call(talk.user("q")), native, merged, results=ours)
    alone = talk.call(talk.user("q"), *merged)
    assert put_back(alone, [entry]) == 1
    assert talk.history(alone) == [talk.user("q"), *native, *ours]
    talked = talk.call(talk.user("q"), *merged, talk.user("never mind"))
    assert put_back(talked, [entry]) == 1
    assert json.dumps(talk.history(talked)).count("none") == 1
    assert json.dumps(talk.history(talked)).index("none") < json.dumps(talk.history(talked)).index("never mind")


def test_a_reminder_of_claude_code_between_answer_and_results() -> None:
    talk = TALKS[0]
    native, merged = talk.answer("look", CLOCK, BASH), talk.answer("look", BASH)
    ours, theirs = talk.results([(CLOCK, "none")]), talk.results([(BASH, "file")])
    entry = remembered(talk, talk.call(talk.user("q")), native, merged, results=ours)
    reminder = {"role": "system", "content": "# Environment"}
    call = talk.call(talk.user("q"), *merged, reminder, *theirs)
    put_back(call, [entry])
    both = {"role": "user", "content": [*ours[0]["content"], *theirs[0]["content"]]}
    assert talk.history(call) == [talk.user("q"), *native, reminder, both]


# Left alone


@by_dialect
@pytest.mark.parametrize("what", ["text", "typed", "tool", "id", "gone", "dialect", "moved-up"])
def test_what_does_not_match_is_left_alone(talk: Talk, what: str) -> None:
    native, merged = [*talk.answer("a"), talk.follow("go"), *talk.answer("b", BASH)], talk.answer("a\n\nb", BASH)
    entry = remembered(talk, talk.call(talk.user("q")), native, merged)
    later = {
        "text": [talk.user("q"), *talk.answer("a\n\nB", BASH)],
        "typed": [talk.user("Q"), *merged],
        "tool": [talk.user("q"), *talk.answer("a\n\nb", (BASH[0], "Bash", {"command": "rm", "n": 1}))],
        "id": [talk.user("q"), *talk.answer("a\n\nb", ("other", "Grep" if talk.dialect is Dialect.GEMINI else "Bash", BASH[2]))],
        "gone": [talk.user("summary of what happened")],
        "dialect": [talk.user("q"), *merged],
        "moved-up": [talk.user("x"), talk.user("q")],
    }[what]
    other = next(one for one in TALKS if one.dialect is not talk.dialect)
    call = talk.call(*later, talk.user("next"))
    entries = [Hidden(other.dialect, entry.key, entry.ordinal, entry.items)] if what == "dialect" else [entry]
    raw = dumps(call.body)
    assert put_back(call, entries) == 0
    assert not call.changed
    assert dumps(call.body) == raw


@by_dialect
def test_equal_answers_are_told_apart_by_their_order(talk: Talk) -> None:
    """The same question, the same words in the answer: only the second one had hidden rounds."""
    items, merged = followed(talk, thinking="")
    plain = talk.answer("one is here two")
    history = [talk.user("go"), *plain, talk.user("go")]
    entry = remembered(talk, talk.call(*history), items, merged)
    assert entry.ordinal == 1
    later = talk.call(*history, *merged, talk.user("go"), *plain, talk.user("end"))
    assert put_back(later, [entry]) == 1
    assert talk.history(later) == [*history, *items, talk.user("go"), *plain, talk.user("end")]


@by_dialect
def test_nothing_is_remembered_where_nothing_is_hidden_or_shown(talk: Talk) -> None:
    call = talk.call(talk.user("q"))
    answer = talk.answer("all", BASH, thinking="t")
    assert hidden_in(call, [answer], answer) is None
    assert hidden_in(call, [answer], [*answer, talk.user("a follow-up that failed")]) is None
    assert hidden_in(call, [], [*answer, talk.follow("go"), *talk.answer("x")]) is None
    assert hidden_in(call, [talk.answer(" \n")], [*answer, talk.follow("go"), *talk.answer("x")]) is None
    assert hidden_in(call, [answer], []) is None


@by_dialect
def test_m17_m18_what_was_not_answered_does_not_come_back(talk: Talk) -> None:
    items, merged = followed(talk)
    entry = remembered(talk, talk.call(talk.user("q")), [*items, talk.follow("go on"), talk.follow("go on")], merged)
    assert list(entry.items) == items


# What is typed


@pytest.mark.parametrize(
    "first,later",
    [
        ("do it", [{"type": "text", "text": "do it", "cache_control": {"type": "ephemeral"}}]),
        ([{"type": "text", "text": "do"}, {"type": "text", "text": "it"}], "do\n\nit"),
        ([{"type": "text", "text": "<system-reminder>\nx\n</system-reminder>"}, {"type": "text", "text": "do it"}], "do it"),
        ('<**stopMessage:"go on",1**> do it', '<**stopMessage:"go on",1**> do it'),
        ('<**stopMessage:"go on",1**> do it', "do it"),
        ('"do it"', '"do it"'),
    ],
)
@pytest.mark.parametrize("cleaned", [False, True])
def test_the_person_s_words_in_any_shape(first: Any, later: Any, cleaned: bool) -> None:
    talk = TALKS[0]
    items, merged = followed(talk)
    call = talk.call({"role": "user", "content": first})
    clean(call, typed_messages(call))
    entry = remembered(talk, call, items, merged)
    again = talk.call({"role": "user", "content": later}, *merged)
    if cleaned:
        clean(again, typed_messages(again))
    assert put_back(again, [entry]) == 1


@by_dialect
def test_a_local_exchange_between_does_no_harm(talk: Talk) -> None:
    """It leaves the history before anything is put back."""
    items, merged = followed(talk)
    history = [talk.user("a"), *talk.answer("b"), talk.user("<**status**>"), *talk.answer("[RouteCodex] Routing: normal.")]
    call = talk.call(*history, talk.user("do it"))
    clean(call, typed_messages(call))
    entry = remembered(talk, call, items, merged)
    later = talk.call(*history, talk.user("do it"), *merged, talk.user("next"))
    clean(later, typed_messages(later))
    assert put_back(later, [entry]) == 1
    assert talk.history(later) == [talk.user("a"), *talk.answer("b"), talk.user("do it"), *items, talk.user("next")]


# Responses that follow an id


def test_s08_a_client_that_follows_our_answer_follows_the_last_round() -> None:
    talk = TALKS[2]
    items, merged = followed(talk)
    entry = remembered(talk, talk.call(talk.user("q")), items, merged, ids=["resp_1", "", "resp_2"])
    assert entry.ids == ("resp_1", "resp_2")
    later = talk.call(talk.user("next"), previous_response_id="resp_1")
    assert put_back(later, [entry]) == 1
    assert (later.previous_id, later.body["previous_response_id"], later.changed) == ("resp_2", "resp_2", True)
    assert talk.history(later) == [talk.user("next")]
    other = talk.call(talk.user("next"), previous_response_id="resp_9")
    assert put_back(other, [entry]) == 0


def test_s08_results_of_our_tools_come_before_the_clients() -> None:
    talk = TALKS[2]
    native, merged = talk.answer("", CLOCK, BASH), talk.answer("", BASH)
    ours, theirs = talk.results([(CLOCK, "none")]), talk.results([(BASH, "file")])
    entry = remembered(talk, talk.call(talk.user("q")), native, merged, results=ours, ids=["resp_1"])
    later = talk.call(*theirs, previous_response_id="resp_1")
    assert put_back(later, [entry]) == 1
    assert talk.history(later) == [*ours, *theirs]
    text = read_call(b'{"model": "m", "input": "hi", "previous_response_id": "resp_1"}', later.endpoint)
    assert put_back(text, [entry]) == 1
    assert talk.history(text) == [*ours, {"type": "message", "role": "user", "content": "hi"}]


def test_s08_a_conversation_that_the_provider_keeps() -> None:
    """Nothing of it is in the client's calls; only our results are missing there."""
    talk = TALKS[2]
    native, merged = talk.answer("", CLOCK, BASH), talk.answer("", BASH)
    ours, theirs = talk.results([(CLOCK, "none")]), talk.results([(BASH, "file")])
    entry = remembered(talk, talk.call(talk.user("q"), conversation="conv_1"), native, merged, results=ours)
    later = talk.call(*theirs, conversation="conv_1")
    assert put_back(later, [entry]) == 1
    assert talk.history(later) == [*ours, *theirs]
    next_one = talk.call(talk.user("next"), conversation="conv_1")
    assert put_back(next_one, [entry]) == 0
    assert talk.history(next_one) == [talk.user("next")]


# Recorded clients

FIXTURES = Path(__file__).parents[2] / "fixtures"


def _recorded(name: str) -> Call:
    data = json.loads((FIXTURES / f"{name}.json").read_text(encoding="utf-8"))
    endpoint = endpoint_of(data["method"], data["path"])
    assert endpoint is not None
    return read_call(json.dumps(data["body"]).encode(), endpoint)


LATER = [
    "claude-code/04-messages-interactive-second-turn-tag-in-history",
    "claude-code/05-messages-tool-result-turn",
    "claude-code/16-messages-continued-session",
    "codex/08-responses-tool-output-turn",
    "codex/09-responses-resumed-second-turn-tag-in-history",
    "gemini-cli/03-streamGenerateContent-function-response",
    "gemini-cli/04-streamGenerateContent-resumed-second-turn",
    "opencode/03-messages-second-turn",
    "qwen-code/03-chat-continued-second-turn-openai-host",
]


@pytest.mark.parametrize("name", LATER)
def test_recorded_clients(name: str) -> None:
    """The first answer of a recorded history is taken for a merged one."""
    later = _recorded(name)
    talk = next(one for one in TALKS if one.dialect is later.endpoint.dialect)
    start = next(view.index for view in later.messages if view.role == "assistant")
    end = next(view.index for view in later.messages[start:] if view.role != "assistant")
    history = talk.history(later)
    first = copy.deepcopy(later)
    talk.history(first)[start:] = []
    first = read_call(dumps(first.body), first.endpoint)
    items = [*talk.answer("one", thinking="t"), talk.follow("go on"), *history[start:end]]
    entry = remembered(talk, first, items, history[start:end])
    expected = [*history[:start], *items, *history[end:]]
    clean(later, typed_messages(later))
    assert put_back(later, [entry]) == 1
    assert without_ids(without_marks(talk.history(later)[start : start + len(items)])) == without_ids(without_marks(items))
    assert len(talk.history(later)) == len(expected)


# Any conversation: what the provider gets is what was said

WORDS = st.sampled_from(["a", "b", "a b", "ab"])
TURNS = st.lists(
    st.tuples(WORDS, st.lists(WORDS, min_size=1, max_size=3), st.booleans(), st.integers(0, 5)), min_size=1, max_size=8
)


@by_dialect
@given(turns=TURNS)
@example(turns=[("a", ["a"], False, 0), ("a", ["a", "a"], True, 5), ("a", ["a", "a"], False, 0)])
def test_the_provider_always_gets_the_true_history(talk: Talk, turns: list[tuple[str, list[str], bool, int]]) -> None:
    held: list[Item] = []
    true: list[Item] = []
    entries: list[Hidden] = []
    for number, (typed, texts, calls, shape) in enumerate(turns):
        held.append(talk.user(typed))
        true.append(talk.user(typed))
        tools = ((f"id{number}", "Bash", {"n": number}),) if calls else ()
        call = talk.call(*held)
        *early, last = texts
        items = [item for text in early for item in (*talk.answer(text), talk.follow("go on"))] + talk.answer(last, *tools)
        merged = talk.answer("\n\n".join(texts), *tools)
        entry = hidden_in(call, [merged], items)
        assert (entry is not None) is bool(early)
        entries += [entry] if entry is not None else []
        results = talk.results([(tool, "ok") for tool in tools]) if tools else []
        reshape = talk.reshaped[shape % len(talk.reshaped)]
        copied = reshape(merged)
        held += [*copied, *results]
        true += [*(items if early else copied), *results]
        later = talk.call(*held)
        assert put_back(later, entries, typed_messages(later)) == len(entries)
        assert without_ids(without_marks(talk.history(later))) == without_ids(without_marks(true))


def test_a_long_history_is_linear_work() -> None:
    talk = TALKS[2]
    items, merged = followed(talk)

    def make(turns: int) -> tuple[Call, Hidden]:
        history = [
            item
            for n in range(turns)
            for item in (talk.user(f"q{n}"), *talk.answer("w " * 100 + str(n), BASH), *talk.results([(BASH, "r")]))
        ]
        entry = remembered(talk, talk.call(*history, talk.user("q")), items, merged)
        return talk.call(*history, talk.user("q"), *merged), entry

    def work(given: tuple[Call, Hidden]) -> None:
        call, entry = given
        assert put_back(call, [entry]) == 1

    assert_linear(work, make, 400)


def test_very_many_answers_that_are_all_the_same_are_linear_work() -> None:
    talk = TALKS[2]
    items, merged = followed(talk)

    def make(turns: int) -> tuple[Call, Hidden]:
        entry = remembered(talk, talk.call(talk.user("q")), items, merged)
        return talk.call(*[one for n in range(turns) for one in (talk.user(f"q{n}"), *merged)], talk.user("q"), *merged), entry

    assert_as_many_lines(lambda given: put_back(given[0], [given[1]]), make, 60)


@by_dialect
def test_an_answer_is_known_by_what_its_rounds_say(talk: Talk) -> None:
    """Nobody has to join them for it."""
    items = [*talk.answer("one"), talk.follow("go"), *talk.answer("two")]
    entry = hidden_in(talk.call(talk.user("q")), [talk.answer("one"), (), talk.answer("two")], items)
    assert entry is not None
    assert put_back(talk.call(talk.user("q"), *talk.answer("one two")), [entry]) == 1
