"""Output items as a later call finds them."""

from __future__ import annotations

from typing import Any

import pytest

from routecodex.routing.dialects.answer.events import Block
from routecodex.routing.dialects.answer.responses.history import item_of, seal_fields
from routecodex.routing.dialects.translation.neutral import Seal
from routecodex.routing.values import Dialect


def call(**fields: Any) -> Block:
    block = Block("call", {"type": "function_call", **fields})
    block.id, block.name = "call_1", "read"
    return block


@pytest.mark.parametrize(
    "fields, text, told",
    [
        pytest.param({}, '{"a":1}', {"call_id": "call_1", "name": "read", "arguments": '{"a":1}'}, id="as it grew"),
        pytest.param(
            {"call_id": "own", "name": "own", "arguments": "{}"},
            "",
            {"call_id": "own", "name": "own", "arguments": "{}"},
            id="whole",
        ),
        pytest.param(
            {"status": "completed"}, "", {"status": "completed", "call_id": "call_1", "name": "read"}, id="no arguments"
        ),
    ],
)
def test_a_call(fields: dict[str, Any], text: str, told: dict[str, Any]) -> None:
    assert item_of(call(**fields), text) == {"type": "function_call", **told}


@pytest.mark.parametrize("text, texts", [("Hello", ["Hello"]), ("", [])])
def test_a_message_that_its_provider_never_told_whole(text: str, texts: list[str]) -> None:
    item = item_of(Block("text", {"type": "message", "id": "msg_1", "role": "assistant", "content": []}), text)
    content = item["content"]
    assert isinstance(content, list)
    assert [part["text"] for part in content] == texts
    assert item["id"] == "msg_1"


def test_whose_seal_it_is() -> None:
    assert seal_fields(None) == {}
    own = Seal(Dialect.RESPONSES, "openai", {"encrypted_content": "gAAA", "id": "rs_1"})
    assert seal_fields(own) == {"encrypted_content": "gAAA"}
    (opaque,) = seal_fields(Seal(Dialect.MESSAGES, "acme", {"signature": "EuYB"})).values()
    assert "EuYB" not in str(opaque), "one opaque word, for its maker alone"
