import base64
import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from routecodex.routing.dialects.calls import read_call
from routecodex.routing.dialects.estimate import Calibration, at_most, count_answer, estimate_tokens
from routecodex.routing.values import Dialect, Endpoint, Target, Usage
from tests.routing.dialects.calls.recorded import CALLS, Recorded

MESSAGES, CHAT, RESPONSES = Endpoint(Dialect.MESSAGES), Endpoint(Dialect.CHAT), Endpoint(Dialect.RESPONSES)
GEMINI = Endpoint(Dialect.GEMINI, model="g", stream=True)
TEXT = "The quick brown fox jumps over the lazy dog. " * 100
BLOB = base64.b64encode(random.Random(1).randbytes(300_000)).decode()


def estimated(endpoint: Endpoint, body: dict[str, object]) -> int:
    raw = json.dumps({"model": "m", **body}, ensure_ascii=False).encode()
    call = read_call(raw, endpoint)
    tokens = estimate_tokens(call)
    assert tokens <= at_most(call, len(raw))
    return tokens


def typed(endpoint: Endpoint, text: str) -> dict[str, object]:
    if endpoint.dialect is Dialect.GEMINI:
        return {"contents": [{"role": "user", "parts": [{"text": text}]}]}
    if endpoint.dialect is Dialect.RESPONSES:
        return {"input": [{"role": "user", "content": [{"type": "input_text", "text": text}]}]}
    return {"messages": [{"role": "user", "content": text}]}


ALL = [MESSAGES, CHAT, RESPONSES, GEMINI]


@pytest.mark.parametrize("endpoint", ALL)
@pytest.mark.parametrize(
    "text, low, high",
    [
        pytest.param(TEXT, 900, 1300, id="English, 1000 by the tokenizers of the day"),
        pytest.param("今天天气很好，我们去公园散步。" * 100, 900, 1500, id="Chinese"),
        pytest.param("Быстрая коричневая лиса прыгает. " * 100, 700, 1600, id="Cyrillic"),
    ],
)
def test_kinds_of_text(endpoint: Endpoint, text: str, low: int, high: int) -> None:
    assert low <= estimated(endpoint, typed(endpoint, text)) <= high


TOOL = {"name": "f", "description": TEXT, "input_schema": {}, "parameters": {}}
COUNTED = [
    (MESSAGES, {"system": TEXT}),
    (MESSAGES, {"system": [{"type": "text", "text": TEXT}]}),
    (MESSAGES, {"tools": [TOOL]}),
    (MESSAGES, {"messages": [{"role": "assistant", "content": [{"type": "thinking", "thinking": TEXT, "signature": "s"}]}]}),
    (MESSAGES, {"messages": [{"role": "assistant", "content": [{"type": "tool_use", "input": {"x": TEXT}}]}]}),
    (MESSAGES, {"messages": [{"role": "user", "content": [{"type": "tool_result", "content": TEXT}]}]}),
    (
        MESSAGES,
        {"messages": [{"role": "user", "content": [{"type": "tool_result", "content": [{"type": "text", "text": TEXT}]}]}]},
    ),
    (
        MESSAGES,
        {"messages": [{"role": "user", "content": [{"type": "document", "source": {"type": "text", "data": TEXT}}]}]},
    ),
    (CHAT, {"tools": [{"type": "function", "function": TOOL}]}),
    (CHAT, {"messages": [{"role": "assistant", "reasoning_content": TEXT, "content": ""}]}),
    (CHAT, {"messages": [{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": TEXT}}]}]}),
    (CHAT, {"messages": [{"role": "tool", "content": TEXT}]}),
    (RESPONSES, {"input": TEXT}),
    (RESPONSES, {"instructions": TEXT}),
    (RESPONSES, {"tools": [TOOL]}),
    (RESPONSES, {"input": [{"type": "additional_tools", "tools": [TOOL]}]}),
    (RESPONSES, {"input": [{"type": "reasoning", "summary": [{"text": TEXT}], "encrypted_content": BLOB}]}),
    (RESPONSES, {"input": [{"type": "function_call", "arguments": TEXT}]}),
    (RESPONSES, {"input": [{"type": "function_call_output", "output": TEXT}]}),
    (GEMINI, {"systemInstruction": {"parts": [{"text": TEXT}]}}),
    (GEMINI, {"tools": [{"functionDeclarations": [TOOL]}]}),
    (GEMINI, {"contents": [{"parts": [{"functionCall": {"args": {"x": TEXT}}}]}]}),
    (GEMINI, {"contents": [{"parts": [{"functionResponse": {"response": {"output": TEXT}}}]}]}),
]


@pytest.mark.parametrize("endpoint, extra", COUNTED)
def test_everything_a_model_reads_counts(endpoint: Endpoint, extra: dict[str, object]) -> None:
    empty: dict[str, object] = {"messages": [], "input": [], "contents": []}
    assert 900 <= estimated(endpoint, {**empty, **extra}) - estimated(endpoint, empty) <= 1400


NOT_COUNTED = [
    (MESSAGES, {"metadata": {"user_id": TEXT}}),
    (MESSAGES, {"diagnostics": {"x": TEXT}}),
    (MESSAGES, {"system": [{"type": "text", "text": f"x-anthropic-billing-header: {TEXT}"}]}),
    (CHAT, {"metadata": {"x": TEXT}, "user": TEXT, "prompt_cache_key": TEXT}),
    (RESPONSES, {"client_metadata": {"x": TEXT}}),
    (RESPONSES, {"input": [{"role": "user", "content": [], "internal_chat_message_metadata_passthrough": {"x": TEXT}}]}),
    (GEMINI, {"labels": {"x": TEXT}, "session_id": TEXT}),
]


@pytest.mark.parametrize("endpoint, extra", NOT_COUNTED)
def test_routing_metadata_does_not_count(endpoint: Endpoint, extra: dict[str, object]) -> None:
    """V10"""
    empty: dict[str, object] = {"messages": [], "input": [], "contents": []}
    assert estimated(endpoint, {**empty, **extra}) <= estimated(endpoint, empty) + 5


IMAGE = {"type": "image", "source": {"type": "base64", "data": BLOB}}
URL = f"data:image/png;base64,{BLOB}"
MEDIA = [
    (MESSAGES, {"messages": [{"role": "user", "content": [IMAGE]}]}, 1_200),
    (MESSAGES, {"messages": [{"role": "user", "content": [{"type": "tool_result", "content": [IMAGE, IMAGE]}]}]}, 2_400),
    (MESSAGES, {"messages": [{"role": "user", "content": [{**IMAGE, "type": "document"}]}]}, 3_000),
    (CHAT, {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": URL}}]}]}, 1_200),
    (RESPONSES, {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": URL}]}]}, 1_200),
    (RESPONSES, {"input": [{"type": "unheard_of_output", "output": {"picture": URL}}]}, None),
    (RESPONSES, {"input": [{"type": "image_generation_call", "result": BLOB}]}, 1_200),
    (GEMINI, {"contents": [{"parts": [{"inlineData": {"mimeType": "image/png", "data": BLOB}}]}]}, 1_200),
    (GEMINI, {"contents": [{"parts": [{"file_data": {"mime_type": "video/mp4", "file_uri": "u"}}]}]}, 5_000),
    (GEMINI, {"contents": [{"parts": [{"inlineData": {"mimeType": 7}}]}]}, 3_000),
]


@pytest.mark.parametrize("endpoint, body, tokens", MEDIA)
def test_media_count_flat(endpoint: Endpoint, body: dict[str, object], tokens: int | None) -> None:
    assert abs(estimated(endpoint, body) - (tokens or 1_200)) <= 30


def test_encrypted_thinking_counts_by_its_size() -> None:
    part = {"type": "redacted_thinking", "data": "x" * 20_000}
    tokens = estimated(MESSAGES, {"messages": [{"role": "assistant", "content": [part]}]})
    assert 2_500 <= tokens <= 4_500


def test_a_view_counts_as_what_it_shows() -> None:
    """A mark of a cache is for the machinery; a field that no view knows makes nothing count less."""
    parts: list[dict[str, object]] = [
        {"type": "text", "text": "words " * 100},
        {"type": "tool_use", "id": "a", "name": "read", "input": {"path": "x" * 400}},
        {"type": "tool_result", "tool_use_id": "a", "content": "line " * 100},
        {"type": "thinking", "thinking": "hm " * 100},
    ]

    def count(more: dict[str, object]) -> int:
        history = [{"role": "user", "content": [{**part, **more} for part in parts]}]
        return estimated(Endpoint(Dialect.MESSAGES), {"model": "m", "messages": history})

    plain = count({})
    assert count({"cache_control": {"type": "ephemeral"}}) == plain
    assert count({"odd": ""}) == plain
    assert count({"odd": "words " * 100}) > plain + 300


@pytest.mark.parametrize("recorded, endpoint", [pytest.param(*pair, id=pair[0].name) for pair in CALLS])
def test_recorded_calls(recorded: Recorded, endpoint: Endpoint) -> None:
    call = read_call(recorded.raw, endpoint)
    assert 1 <= estimate_tokens(call) <= min(len(recorded.raw) // 3, at_most(call, len(recorded.raw)))


@given(text=st.text())
@settings(max_examples=100, deadline=None)
def test_any_text_has_an_estimate(text: str) -> None:
    raw = json.dumps(typed(CHAT, text), ensure_ascii=False).encode("utf-8", "surrogatepass")
    call = read_call(raw, CHAT)
    assert 1 <= estimate_tokens(call) <= min(10 + 2 * len(text), at_most(call, len(raw)))


@pytest.mark.parametrize("dialect, expected", [(Dialect.MESSAGES, {"input_tokens": 7}), (Dialect.GEMINI, {"totalTokens": 7})])
def test_count_answer(dialect: Dialect, expected: dict[str, int]) -> None:
    assert json.loads(count_answer(dialect, 7)) == expected


GLM = Target("glm", "k1", "glm-4.7")


def test_nothing_known_changes_nothing() -> None:
    assert Calibration().apply(GLM, 1234) == 1234


@pytest.mark.parametrize("ratio", [0.4, 0.7, 1.0, 1.3, 2.5, 3.9])
@pytest.mark.parametrize("size", [60, 3_000, 40_000, 250_000])
def test_a_similar_call_is_within_15_percent_of_the_count(ratio: float, size: int) -> None:
    calibration = Calibration()
    dice = random.Random(size)
    calibration.learn(GLM, size, Usage(input=round(size * ratio)))
    for _ in range(50):
        estimate = round(size * dice.uniform(0.7, 1.4))
        counted = round(estimate * ratio * dice.uniform(0.93, 1.07))
        assert abs(calibration.apply(GLM, estimate) - counted) <= 0.15 * counted + 1
        calibration.learn(GLM, estimate, Usage(input=counted))


def test_small_calls_do_not_spoil_large_ones() -> None:
    calibration = Calibration()
    calibration.learn(GLM, 100_000, Usage(input=130_000))
    for _ in range(100):
        calibration.learn(GLM, 20, Usage(input=60))
    assert calibration.apply(GLM, 100_000) == 130_000
    assert calibration.apply(GLM, 20) == 60


def test_it_follows_a_change_within_a_few_calls() -> None:
    calibration = Calibration()
    for _ in range(50):
        calibration.learn(GLM, 1_000, Usage(input=1_000))
    for _ in range(8):
        calibration.learn(GLM, 1_000, Usage(input=2_000))
    assert 1_850 <= calibration.apply(GLM, 1_000) <= 2_000


def test_keys_of_one_model_learn_together_and_models_apart() -> None:
    calibration = Calibration()
    calibration.learn(GLM, 1_000, Usage(input=2_000))
    assert calibration.apply(Target("glm", "k2", "glm-4.7"), 1_000) == 2_000
    assert calibration.apply(Target("glm", "k1", "other"), 1_000) == 1_000
    assert calibration.apply(Target("other", "k1", "glm-4.7"), 1_000) == 1_000


@pytest.mark.parametrize("counted, expected", [(1, 300), (10**9, 4_000), (0, 1_000), (-5, 1_000)])
def test_a_factor_is_bounded(counted: int, expected: int) -> None:
    calibration = Calibration()
    calibration.learn(GLM, 1_000, Usage(input=counted))
    assert calibration.apply(GLM, 1_000) == expected


def test_an_empty_estimate_teaches_nothing() -> None:
    calibration = Calibration()
    calibration.learn(GLM, 0, Usage(input=10))
    assert len(calibration) == 0


def test_the_table_is_bounded_and_forgets_the_least_used() -> None:
    calibration = Calibration()
    for number in range(1_000):
        calibration.learn(Target("p", "k", f"m{number}"), 100, Usage(input=200))
    calibration.apply(Target("p", "k", "m0"), 100)
    for number in range(1_000, 1_500):
        calibration.learn(Target("p", "k", f"m{number}"), 100, Usage(input=200))
    assert len(calibration) == 1_000
    assert calibration.apply(Target("p", "k", "m0"), 100) == 200
    assert calibration.apply(Target("p", "k", "m1"), 100) == 100
