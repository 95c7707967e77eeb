"""A signature goes back to its maker, and to nobody else."""

from __future__ import annotations

import json
from typing import Any

import pytest

from routecodex.routing.dialects.calls import for_target, read_call
from routecodex.routing.dialects.seals import Seals
from routecodex.routing.values import Dialect, Endpoint

SIGNATURE = "EqQBCkYIBxgCKkBsig/with+both=="


def call(signature: str = SIGNATURE):  # type: ignore[no-untyped-def]
    thinking = {"type": "thinking", "thinking": "hm", "signature": signature}
    use = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {}}
    messages = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [thinking, use]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "ok"}]},
    ]
    return read_call(json.dumps({"model": "m", "messages": messages}).encode(), Endpoint(Dialect.MESSAGES))


@pytest.mark.parametrize(
    "said",
    [
        json.dumps({"type": "signature_delta", "signature": SIGNATURE}),
        json.dumps({"type": "signature_delta", "signature": SIGNATURE}, separators=(",", ":")),
        json.dumps({"signature": SIGNATURE}).replace("/", "\\/"),
        'data: {"encrypted_content": "' + SIGNATURE + '"}\n\n',
        '{"thoughtSignature":"' + SIGNATURE + '"}',
    ],
)
def test_a_seal_is_known_by_its_maker_alone(said: str) -> None:
    seals = Seals()
    seals.note("glm", b"before " + said.encode() + b" after")
    assert SIGNATURE in seals.made_by("glm")
    assert SIGNATURE not in seals.made_by("deepseek")
    assert b"signature" in for_target(call(), "", foreign=True, own=seals.made_by("glm"))
    assert b"signature" not in for_target(call(), "", foreign=True, own=seals.made_by("deepseek"))


@pytest.mark.parametrize(
    "item",
    [
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": SIGNATURE}, {"type": "text"}]},
        {"type": "reasoning", "encrypted_content": SIGNATURE},
        {"role": "model", "parts": [{"text": "hm", "thoughtSignature": SIGNATURE}]},
        {"role": "assistant", "tool_calls": [{"extra_content": {"google": {"thought_signature": SIGNATURE}}}]},
    ],
)
def test_a_whole_answer_tells_the_same(item: dict[str, Any]) -> None:
    seals, written = Seals(), Seals()
    seals.note_items("glm", [{"role": "user", "content": "x"}, item])
    written.note("glm", json.dumps(item).encode())
    for known in (seals, written):
        assert SIGNATURE in known.made_by("glm")
        assert SIGNATURE not in known.made_by("deepseek")


def test_what_is_no_seal_is_not_remembered() -> None:
    seals = Seals()
    seals.note_items("glm", [{"signature": 5, "data": ["signature"], "encrypted_content": None, "text": "abcdefghijk"}])
    seals.note_items("glm", [{"signature": "short"}])
    assert "abcdefghijk" not in seals.made_by("glm")
    assert "short" not in seals.made_by("glm")


def test_an_unknown_seal_is_nobodys() -> None:
    assert "abcdefghijk" not in Seals().made_by("glm")


def test_ids_of_the_targets_own_pass_too() -> None:
    made = Seals().made_by("glm", "resp_1")
    assert "resp_1" in made
    assert list(made) == ["resp_1"]


def test_memory_is_bounded() -> None:
    seals = Seals()
    for number in range(60_000):
        seals.note("glm", b'"signature":"%016d"' % number)
    assert f"{0:016}" not in seals.made_by("glm")
    assert f"{59_999:016}" in seals.made_by("glm")
