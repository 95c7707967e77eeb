"""R5: a compaction asked in words, and answered by an item that anybody can open."""

from __future__ import annotations

import json

import pytest

from routecodex.routing.dialects.calls import compaction, read_call
from routecodex.routing.values import Call, Dialect, Endpoint, JsonObject

TRIGGER = {"type": "compaction_trigger"}
HI = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}
TOOL = {"type": "function", "name": "f", "parameters": {}}


def call(*items: JsonObject, **fields: object) -> Call:
    body = {"model": "m", "input": list(items), **fields}
    return read_call(json.dumps(body).encode(), Endpoint(Dialect.RESPONSES))


@pytest.mark.parametrize(
    "asked, yes",
    [
        (call(HI, TRIGGER), True),
        (call(TRIGGER), True),
        (call(TRIGGER, HI), False),
        (call(HI), False),
        (call(), False),
        (read_call(b'{"model":"m","messages":[{"role":"user","type":"compaction_trigger"}]}', Endpoint(Dialect.CHAT)), False),
        (read_call(b'{"model":"m","input":"compaction_trigger"}', Endpoint(Dialect.RESPONSES)), False),
    ],
)
def test_which_call_asks(asked: Call, yes: bool) -> None:
    assert compaction.asks(asked) is yes


@pytest.mark.parametrize("tools, choice", [([TOOL], "none"), ([], None)])
def test_asked_in_words(tools: list[JsonObject], choice: str | None) -> None:
    asked = call(HI, TRIGGER, tools=tools, tool_choice="auto", stream=True)
    before = json.dumps(asked.body)
    words = compaction.asked_in_words(asked)
    assert words.changed
    assert words.body["input"][0] == HI
    (question,) = words.body["input"][1:]
    assert question["role"] == "user"
    assert "summary" in question["content"][0]["text"]
    assert words.body.get("tool_choice") == choice
    assert words.body["tools"] == tools, "what the history calls stays declared"
    assert json.dumps(asked.body) == before


def test_what_is_written_down_is_opened() -> None:
    item = compaction.item_of("We built a shed.", "cmp_1")
    assert item["type"] == "compaction"
    kept = call(HI, item, HI)
    opened = compaction.opened(kept)
    assert opened.changed
    assert opened.body["input"][::2] == [HI, HI]
    told = opened.body["input"][1]
    assert told["role"] == "user"
    assert told["content"][0]["text"].endswith("\n\nWe built a shed.")
    assert kept.body["input"][1] == item
    assert compaction.opened(opened) is opened
    assert list(compaction.sealed(kept)) == []


@pytest.mark.parametrize("kind", sorted(compaction.KINDS))
def test_what_others_have_sealed(kind: str) -> None:
    sealed = {"type": kind, "encrypted_content": "gAAA"}
    found = call(HI, sealed)
    assert list(compaction.sealed(found)) == ["gAAA"]
    assert compaction.opened(found) is found
    nothing = call({"type": kind}, {"type": kind, "encrypted_content": None}, {"type": "reasoning", "encrypted_content": "g"})
    assert list(compaction.sealed(nothing)) == []
