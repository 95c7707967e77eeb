"""Wrapped seals stay behind, and what is nothing without them goes with them."""

from __future__ import annotations

import json
from base64 import b64decode

import pytest

from routecodex.routing.dialects.calls import read_call
from routecodex.routing.dialects.endpoints import endpoint_of
from routecodex.routing.dialects.translation.neutral import Seal
from routecodex.routing.dialects.translation.opaque import MARK, unwrap, wrap
from routecodex.routing.dialects.translation.wrapped import MARKED, unsealed
from routecodex.routing.values import Dialect

SEAL = Seal(Dialect.GEMINI, "google", {"for": "call", "thoughtSignature": "abc="})
WORD = wrap(SEAL)


def cleaned(path: str, body: dict[str, object]) -> dict[str, object]:
    endpoint = endpoint_of("POST", path)
    assert endpoint is not None
    found = unsealed(read_call(json.dumps(body).encode(), endpoint))
    assert MARKED not in json.dumps(found.body).encode()
    return found.body


@pytest.mark.parametrize("more, fits", [(0, True), (1, False)])
def test_a_word_of_more_than_four_megabytes_is_none_of_ours(more: int, fits: bool) -> None:
    around = len(b64decode(wrap(Seal(Dialect.GEMINI, "google", {"a": ""}))))
    word = wrap(Seal(Dialect.GEMINI, "google", {"a": "x" * ((3 << 20) - around + more)}))
    assert len(word) == (4 << 20) + 4 * more
    assert (unwrap(word) is not None) is fits


def test_messages() -> None:
    thought = {"type": "thinking", "thinking": "", "signature": WORD}
    use = {"type": "tool_use", "id": "t", "name": "Bash", "input": {}}
    plain = {"type": "thinking", "thinking": "x", "signature": "theirs"}
    said = [{"role": "assistant", "content": [plain, thought, use]}, {"role": "assistant", "content": [thought]}]
    body = cleaned("/v1/messages", {"model": "m", "messages": said, "x": {"y": [1]}})
    assert body == {"model": "m", "messages": [{"role": "assistant", "content": [plain, use]}], "x": {"y": [1]}}


def test_responses() -> None:
    items = [{"type": "reasoning", "summary": [], "encrypted_content": WORD}, {"type": "reasoning", "encrypted_content": "own"}]
    assert cleaned("/v1/responses", {"model": "m", "input": items})["input"] == items[1:]


def test_chat() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    sealed = {**call, "extra_content": {"google": {"thought_signature": WORD}}}
    details = [{"type": "reasoning.encrypted", "data": WORD}, {"type": "reasoning.text", "text": "t"}]
    message = {"role": "assistant", "content": "a", "tool_calls": [sealed], "reasoning_details": details}
    body = cleaned("/v1/chat/completions", {"model": "m", "messages": [message]})
    kept = {"role": "assistant", "content": "a", "tool_calls": [call], "reasoning_details": details[1:]}
    assert body["messages"] == [kept]


def test_gemini() -> None:
    parts = [{"text": "t", "thought": True, "thoughtSignature": WORD}, {"functionCall": {"name": "f"}, "thoughtSignature": WORD}]
    body = cleaned("/v1beta/models/m:generateContent", {"contents": [{"role": "model", "parts": parts}]})
    bare = {"functionCall": {"name": "f"}, "thoughtSignature": "skip_thought_signature_validator"}
    assert body["contents"] == [{"role": "model", "parts": [bare]}], "Google takes no call without some signature"


@pytest.mark.parametrize("seal", [SEAL, Seal(Dialect.CHAT, "", {}), Seal(Dialect.RESPONSES, "ü", {"a": [1, {"b": None}]})])
def test_a_seal_is_one_word_and_comes_back(seal: Seal) -> None:
    assert wrap(seal) == wrap(seal)
    assert wrap(seal).startswith(MARK)
    assert unwrap(wrap(seal)) == seal


@pytest.mark.parametrize("word", ["", "abc", MARK, MARK + "====", WORD[:-8], "x" + WORD, WORD.replace("J", "!", 1), WORD + "ü"])
def test_anything_else_is_somebody_elses(word: str) -> None:
    assert unwrap(word) is None
