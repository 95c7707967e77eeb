"""Whether a message acts: every case of decision 2, without a desk around it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecodex.routing.clients.typed import typed_messages
from routecodex.routing.sessions.state import EMPTY, SessionState, Standing
from routecodex.routing.tags.once import Place, ended, is_new, mark_of, placed, remembered, without_old_texts
from tests.routing.sessions.calls import assistant, chat_call, messages_call, responses_call, user

TAG = "<**!glm**> go"
CALLS = {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "x", "input": {}}]}
RESULT = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "done"}]}
HOP = (CALLS, RESULT)
OTHERS = (user("one"), assistant("1"), user("two"), assistant("2"))


def place_of(*messages: dict[str, Any]) -> Place:
    call = messages_call(*messages)
    typed = typed_messages(call)
    return placed(call, typed, typed[-1])[0]


def after(*messages: dict[str, Any], standing: Standing) -> SessionState:
    return remembered(EMPTY, place_of(*messages), standing)


ACTS = [
    pytest.param(EMPTY, (user(TAG),), True, id="never-seen"),
    pytest.param(after(user(TAG), standing="open"), (user(TAG),), False, id="repeated-after-a-cut"),
    pytest.param(after(user(TAG), standing="ended"), (user(TAG),), True, id="sent-once-more-after-a-rewind"),
    pytest.param(after(user(TAG), standing="ended"), (user(TAG), assistant("a"), *HOP), False, id="an-answer-stands-behind"),
    pytest.param(after(user(TAG), standing="open"), (user(TAG), *HOP), False, id="hop"),
    pytest.param(after(user(TAG), standing="ended"), (user(TAG), *HOP), False, id="notice"),
    pytest.param(after(*OTHERS, user(TAG), standing="open"), (user("sum"), user(TAG)), False, id="cut-short-in-the-work"),
    pytest.param(after(*OTHERS, user(TAG), standing="ended"), (user("sum"), user(TAG)), True, id="typed-anew-after-a-compaction"),
    pytest.param(
        after(*OTHERS, user(TAG), standing="ended"), (user("sum"), user(TAG), *HOP), False, id="cut-short-behind-an-answer"
    ),
    pytest.param(after(user(TAG), standing="open"), (user(TAG), assistant("a"), user(TAG)), True, id="the-old-one-stands-before"),
    pytest.param(after(user(TAG), standing="ended"), (user(TAG), assistant("a"), user(TAG)), True, id="typed-again"),
    pytest.param(after(user(TAG), standing="open"), (user(TAG), assistant("a"), user("x <**!glm**>")), True, id="another"),
    pytest.param(after(user(TAG), standing="refused"), (user(TAG),), True, id="refused-is-looked-at-anew"),
    pytest.param(after(*OTHERS, user(TAG), standing="refused"), (user("sum"), user(TAG)), True, id="refused-elsewhere"),
]


@pytest.mark.parametrize("state, messages, acts", ACTS)
def test_acts(state: SessionState, messages: tuple[dict[str, Any], ...], acts: bool) -> None:
    assert is_new(state, place_of(*messages)) is acts


def test_how_a_client_cuts_what_was_typed_does_not_matter() -> None:
    """Blocks become strings, messages are put together, white space is folded; what a tool wrote is no part of it."""
    reminder = "<system-reminder>x</system-reminder>"
    same = {
        place_of(user("one"), assistant("a"), user(TAG)).place,
        place_of(user("one"), user(TAG)).place,
        place_of(user("one", TAG)).place,
        place_of(user(" one\r\n"), user(f"{reminder}\n{TAG}\n")).place,
        place_of(user("one"), user(reminder, TAG), {"role": "system", "content": "s"}).place,
    }
    assert len(same) == 1
    assert place_of(user("other"), user(TAG)).place not in same
    assert place_of(user(TAG)).place not in same


def test_of_long_words_the_beginning_and_the_end_count_however_white_space_was_folded() -> None:
    lines = [f"line {number} of a long text" for number in range(8_000)]
    loose, tight = (f"{TAG} {between.join(lines)}" for between in ("\r\n  ", " "))
    assert len(tight) > 4 * (16 << 10)
    assert place_of(user(loose)) == place_of(user(tight))
    for changed in (lines[1:], lines[:-1], [*lines, "more"]):
        assert place_of(user(f"{TAG} {' '.join(changed)}")).place != place_of(user(tight)).place


def test_every_dialect_and_an_answer_that_the_call_follows() -> None:
    places = set()
    for call in (chat_call(user(TAG)), messages_call(user(TAG)), responses_call(user(TAG))):
        typed = typed_messages(call)
        places.add(placed(call, typed, typed[-1])[0].place)
    assert len(places) == 1
    following = responses_call(user(TAG), previous_response_id="resp_1")
    typed = typed_messages(following)
    assert placed(following, typed, typed[-1])[0].place not in places


def test_texts_that_were_a_message_of_their_own_once() -> None:
    state = after(user("one <**!glm**>"), standing="refused")
    for texts, new in (
        (("one <**!glm**>", "two"), ("two",)),
        (("one <**!glm**>",), ("one <**!glm**>",)),
        (("other", "two"), ("other", "two")),
        (("one <**!glm**>", "two", "three"), ("two", "three")),
    ):
        call = messages_call(user(*texts))
        typed = typed_messages(call)
        _, ends = placed(call, typed, typed[-1])
        left = without_old_texts(typed[-1], ends, state)
        assert tuple(text.words for text in left.texts) == new


def test_no_more_than_some_are_remembered_and_each_once() -> None:
    state = EMPTY
    for number in range(100):
        state = remembered(state, place_of(user(f"{TAG} {number}")), "open")
    assert len(state.obeyed) == 32
    last = place_of(user(f"{TAG} 99"))
    again = remembered(state, last, "open")
    assert again == state
    assert ended(state, last.place).obeyed[-1].standing == "ended"
    assert ended(state, "elsewhere") == state
    assert remembered(EMPTY.with_(obeyed_before="0:x"), last, "open").obeyed_before is None


@given(st.text(max_size=50), st.text(max_size=50))
def test_any_text_has_a_place(a: str, b: str) -> None:
    call = messages_call(user(f"x{a}"), user(f"y{b}"))
    typed = typed_messages(call)
    if typed:
        place, ends = placed(call, typed, typed[-1])
        assert ends[-1] == place.place


def test_marks() -> None:
    assert mark_of(1, "a  b\n", None) == mark_of(1, "a b", None)
    assert len({mark_of(1, "a", None), mark_of(2, "a", None), mark_of(1, "b", None), mark_of(1, "a", "p")}) == 4
    assert mark_of(1, "a", "p") == mark_of(2, "a", "p")
    assert mark_of(0, "\ud800", "\ud800")
    long = "word " * 20_000
    assert len({mark_of(0, text, None) for text in (long, f"{long}x", f"x{long}", long[:-500])}) == 4
