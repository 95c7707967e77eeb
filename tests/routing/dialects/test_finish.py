from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecodex.routing.dialects.finish import (
    AS_USUAL,
    Endings,
    decide_finish,
    holds_calls,
    infer_finish,
    is_cut,
    is_served,
    read_finish,
    read_response_finish,
    response_status,
    sends_message_stop,
    write_finish,
)
from routecodex.routing.values import Dialect, FinishReason

MESSAGES, CHAT, RESPONSES, GEMINI = Dialect.MESSAGES, Dialect.CHAT, Dialect.RESPONSES, Dialect.GEMINI
REASONS: tuple[FinishReason, ...] = ("stop", "length", "tool_calls", "content_filter", "error")


@pytest.mark.parametrize(
    "word, target, expected",
    [
        pytest.param("stop", MESSAGES, "end_turn", id="F02-stop"),
        pytest.param("length", MESSAGES, "max_tokens", id="F02-length"),
        pytest.param("tool_calls", MESSAGES, "tool_use", id="F02-tool_calls"),
        pytest.param("function_call", MESSAGES, "tool_use", id="F02-function_call"),
        pytest.param("content_filter", MESSAGES, "stop_sequence", id="F02-content_filter"),
        pytest.param("end_turn", CHAT, "stop", id="F03-end_turn"),
        pytest.param("max_tokens", CHAT, "length", id="F03-max_tokens"),
        pytest.param("tool_use", CHAT, "tool_calls", id="F03-tool_use"),
        pytest.param("stop_sequence", CHAT, "stop", id="F03-stop_sequence"),
        pytest.param("end_turn", MESSAGES, "end_turn", id="F05-end_turn"),
        pytest.param("stop_sequence", MESSAGES, "stop_sequence", id="F05-stop_sequence"),
        pytest.param("pause_turn", MESSAGES, "pause_turn", id="F05-pause_turn"),
        pytest.param("refusal", MESSAGES, "refusal", id="F05-refusal"),
        pytest.param("function_call", CHAT, "function_call", id="F05-chat"),
        pytest.param("RECITATION", GEMINI, "RECITATION", id="F05-gemini"),
        pytest.param("refusal", CHAT, "content_filter", id="refusal"),
        pytest.param("model_context_window_exceeded", CHAT, "length", id="window"),
        pytest.param("STOP", MESSAGES, "end_turn", id="gemini-stop"),
        pytest.param("MAX_TOKENS", CHAT, "length", id="gemini-length"),
        pytest.param("SAFETY", MESSAGES, "stop_sequence", id="gemini-safety"),
        pytest.param("MALFORMED_FUNCTION_CALL", CHAT, "stop", id="gemini-broken-call-chat"),
        pytest.param("MALFORMED_FUNCTION_CALL", MESSAGES, "end_turn", id="gemini-broken-call-messages"),
        pytest.param("MALFORMED_FUNCTION_CALL", RESPONSES, "failed", id="gemini-broken-call-responses"),
        pytest.param("function_call_filter: MALFORMED_FUNCTION_CALL", MESSAGES, "end_turn", id="google-on-chat-broken-call"),
        pytest.param("content_filter: RECITATION", CHAT, "content_filter", id="google-on-chat-filter"),
        pytest.param("compaction", MESSAGES, "compaction", id="compaction"),
        pytest.param("compaction", CHAT, "stop", id="compaction-chat"),
        pytest.param("guardrail_intervened", MESSAGES, "stop_sequence", id="bedrock-guardrail"),
        pytest.param("completed", CHAT, "stop", id="responses-completed"),
        pytest.param("max_output_tokens", MESSAGES, "max_tokens", id="responses-length"),
        pytest.param("failed", MESSAGES, "stop_sequence", id="responses-failed"),
        pytest.param("end_turn", GEMINI, "STOP", id="to-gemini"),
        pytest.param("length", RESPONSES, "max_output_tokens", id="to-responses"),
        pytest.param("sensitive", MESSAGES, "stop_sequence", id="glm-sensitive"),
        pytest.param("insufficient_system_resource", CHAT, "error", id="deepseek"),
        pytest.param("Stop", MESSAGES, "end_turn", id="another-case"),
    ],
)
def test_the_table(word: str, target: Dialect, expected: str) -> None:
    finish = decide_finish(word, target)
    assert finish.word == expected
    assert finish.note == ""
    assert finish.reason == read_finish(word)


def test_f02_refusal_by_option() -> None:
    assert decide_finish("content_filter", MESSAGES, content_filter="refusal").word == "refusal"
    assert write_finish("content_filter", CHAT, content_filter="refusal") == "content_filter"


@pytest.mark.parametrize("word", ["wibble", "42", "x" * 5000, "結束"])
def test_f06_an_unknown_reason_ends_plainly_and_says_so(word: str) -> None:
    finish = decide_finish(word, MESSAGES)
    assert (finish.reason, finish.word) == ("stop", "end_turn")
    assert "unknown finish reason" in finish.note
    assert len(finish.note) < 200


@pytest.mark.parametrize("word", [None, "", "null", " ", 7, [], "FINISH_REASON_UNSPECIFIED"])
@pytest.mark.parametrize(
    "calls, error, expected",
    [
        (True, False, "tool_use"),
        (True, True, "tool_use"),
        (False, True, "stop_sequence"),
        (False, False, "end_turn"),
        (None, False, "end_turn"),
    ],
)
def test_f12_a_missing_reason_is_inferred(word: object, calls: bool | None, error: bool, expected: str) -> None:
    finish = decide_finish(word, MESSAGES, calls=calls, error=error)
    assert finish.word == expected
    assert "no finish reason" in finish.note
    assert infer_finish(calls=bool(calls), error=error) == finish.reason


@pytest.mark.parametrize("word", ["stop", "end_turn", "stop_sequence", "wibble"])
@pytest.mark.parametrize(
    "target, expected", [(MESSAGES, "tool_use"), (CHAT, "tool_calls"), (RESPONSES, "completed"), (GEMINI, "STOP")]
)
def test_a_tool_call_decides(word: str, target: Dialect, expected: str) -> None:
    finish = decide_finish(word, target, calls=True)
    assert (finish.reason, finish.word) == ("tool_calls", expected)
    assert finish.note


@pytest.mark.parametrize(
    "word",
    [
        "length",
        "max_tokens",
        "model_context_window_exceeded",
        "content_filter",
        "refusal",
        "SAFETY",
        "error",
        "failed",
        "incomplete",
    ],
)
@pytest.mark.parametrize("calls", [True, False, None])
def test_a_cut_stays_a_cut(word: str, calls: bool | None) -> None:
    """R14: no client is told that half an answer is whole, whatever calls stand in it."""
    assert decide_finish(word, MESSAGES, calls=calls) == decide_finish(word, MESSAGES)
    assert decide_finish(word, CHAT, calls=calls).reason == read_finish(word)
    assert is_cut(word)


@pytest.mark.parametrize("word", ["compaction", "pause_turn"])
@pytest.mark.parametrize("calls", [True, False, None])
def test_an_answer_that_its_provider_goes_on_with_keeps_its_word(word: str, calls: bool | None) -> None:
    assert decide_finish(word, MESSAGES, calls=calls).word == word
    assert not is_cut(word)


@pytest.mark.parametrize("word", ["stop", "end_turn", "tool_calls", "tool_use", "function_call", "length"])
def test_what_is_not_known_corrects_nothing(word: str) -> None:
    assert decide_finish(word, CHAT, calls=None).reason == read_finish(word)


@pytest.mark.parametrize(
    "written, served, calls",
    [
        ([], False, False),
        ([], True, None),
        (["{}"], False, True),
        ([""], False, True),
        (["null"], False, True),
        ([' {"a": [1]}'], True, True),
        (['{"a": "x'], False, None),
        (['{"a":1}', '{"a'], False, None),
    ],
)
def test_what_an_answer_holds(written: list[str], served: bool, calls: bool | None) -> None:
    assert holds_calls(written, served=served) is calls


@pytest.mark.parametrize(
    "block, served",
    [
        ({"type": "tool_use"}, False),
        ({"type": "tool_use", "caller": {"type": "direct"}}, False),
        ({"type": "tool_use", "caller": None}, False),
        ({"type": "tool_use", "caller": {"type": "code_execution_20250825", "tool_id": "srvtoolu_1"}}, True),
        ({"type": "server_tool_use"}, True),
        ({"type": "mcp_tool_use"}, True),
        ({"type": "text"}, False),
        ({}, False),
        ({"type": 7}, False),
    ],
)
def test_whose_call_it_is(block: dict[str, object], served: bool) -> None:
    assert is_served(block) is served


@pytest.mark.parametrize("word", ["STOP", "completed"])
def test_dialects_that_end_calls_with_a_plain_word_are_not_noted(word: str) -> None:
    assert decide_finish(word, CHAT, calls=True).word == "tool_calls"
    assert decide_finish(word, CHAT, calls=True).note == ""


def test_a_tool_reason_without_a_tool_call_is_a_plain_stop() -> None:
    finish = decide_finish("tool_calls", MESSAGES, calls=False)
    assert finish.word == "end_turn"
    assert "overruled" in finish.note


@given(st.sampled_from(REASONS), st.sampled_from(list(Dialect)))
def test_what_is_written_is_understood_by_its_own_dialect(reason: FinishReason, dialect: Dialect) -> None:
    word = write_finish(reason, dialect)
    assert decide_finish(word, dialect).word == word


@given(st.sampled_from(REASONS))
def test_chat_words_survive_the_way_there_and_back(reason: FinishReason) -> None:
    """Only content_filter and error have no Messages word of their own (seed 003)."""
    there = decide_finish(write_finish(reason, CHAT), MESSAGES).word
    assert read_finish(there) == ("stop" if reason in ("content_filter", "error") else reason)


@given(st.text() | st.none() | st.integers(), st.sampled_from(list(Dialect)), st.sampled_from([None, True, False]), st.booleans())
def test_anything_gives_a_word_of_the_target(word: object, target: Dialect, calls: bool | None, error: bool) -> None:
    finish = decide_finish(word, target, calls=calls, error=error)
    assert decide_finish(finish.word, target).word == finish.word
    assert not (calls and finish.reason == "stop" and word not in ("pause_turn", "compaction"))


@pytest.mark.parametrize(
    "response, word",
    [
        ({"status": "completed"}, "completed"),
        ({"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}, "content_filter"),
        ({"status": "incomplete", "incomplete_details": None}, "max_output_tokens"),
        ({"status": "failed"}, "failed"),
        ({}, ""),
        ({"status": 3}, ""),
    ],
)
def test_how_a_responses_object_ended(response: dict[str, object], word: str) -> None:
    assert read_response_finish(response) == word


def test_how_a_responses_object_is_made_to_end() -> None:
    assert [response_status(reason) for reason in REASONS] == [
        ("completed", None),
        ("incomplete", "max_output_tokens"),
        ("completed", None),
        ("incomplete", "content_filter"),
        ("failed", None),
    ]


def test_message_stop_is_withheld_only_by_option_and_only_after_tool_use() -> None:
    assert sends_message_stop("tool_use")
    assert sends_message_stop("end_turn", "never")
    assert not sends_message_stop("tool_use", "never")


def test_endings_write_and_read_by_the_table() -> None:
    assert AS_USUAL.write("content_filter", MESSAGES, calls=False) == "stop_sequence"
    assert Endings(content_filter="refusal").write("content_filter", MESSAGES, calls=False) == "refusal"
    assert Endings(content_filter="refusal").write("content_filter", CHAT, calls=False) == "content_filter"
    assert AS_USUAL.read("end_turn", MESSAGES, calls=True) == "tool_calls"
    assert AS_USUAL.read("", MESSAGES, calls=False, error=True) == "error"


@pytest.mark.parametrize(
    "endings, matter",
    [(AS_USUAL, False), (Endings(content_filter="refusal"), False), (Endings("never"), True), (Endings(log=print), True)],
)
def test_whether_an_answer_of_one_round_is_looked_at(endings: Endings, matter: bool) -> None:
    assert endings.matter is matter


def test_each_mapping_is_told() -> None:
    lines: list[str] = []
    endings = Endings(log=lines.append).named("1a2b")
    endings.read("end_turn", MESSAGES, calls=False)
    endings.read("stop", CHAT, calls=True)
    endings.write("wibble\n" + "x" * 5000, GEMINI, calls=False)
    endings.write(None, MESSAGES, calls=True)
    endings.read(7, RESPONSES, calls=False)
    assert [line.count("\n") for line in lines] == [0] * 5
    assert lines[0] == "1a2b: anthropic-messages: 'end_turn' taken as stop"
    assert lines[1] == "1a2b: openai-chat: 'stop' taken as tool_calls (finish reason 'stop' overruled: tool calls are there)"
    assert lines[2].startswith("1a2b: gemini-chat: 'wibble\\nx")
    assert "written as STOP (unknown finish reason" in lines[2]
    assert len(lines[2]) < 300
    assert lines[3] == "1a2b: anthropic-messages: nothing written as tool_use (no finish reason given, taken as tool_calls)"
    assert lines[4].startswith("1a2b: openai-responses: int taken as stop")


def test_without_a_listener_nothing_is_named() -> None:
    assert AS_USUAL.named("1a2b") is AS_USUAL
