"""The values everybody passes around."""

from __future__ import annotations

import json

import pytest
from msgspec import Struct

from routecodex.routing import values
from routecodex.routing.values import (
    Call,
    Dialect,
    Endpoint,
    Kind,
    Media,
    Message,
    Other,
    Part,
    Target,
    Text,
    ToolResult,
    media_kind,
)


@pytest.mark.parametrize(
    "target, text, group",
    [
        (Target("glm", "key1", "glm-4.7"), "glm.key1.glm-4.7", ("glm", "glm-4.7")),
        (Target("origin", "client", ""), "origin.client", ("origin", "")),
        (Target("local", "", "m"), "local.m", ("local", "m")),
    ],
)
def test_a_target_says_where(target: Target, text: str, group: tuple[str, str]) -> None:
    assert str(target) == text
    assert target.group == group


def test_a_messages_text_is_its_text_parts() -> None:
    message = Message("user", [Text("a", 0), Media("image", 1), ToolResult("id", "result", 2), Text("b", 3)], 0)
    assert message.text == "a\nb"
    assert Message("user", [], 0).text == ""


@pytest.mark.parametrize(
    "role, parts, sealed",
    [
        ("assistant", [Other(0)], True),
        ("assistant", [Other(0), Other(1)], True),
        ("assistant", [], False),
        ("assistant", [Other(0), Text("a", 1)], False),
        ("user", [Other(0)], False),
        ("user", [], False),
    ],
)
def test_what_nobody_but_the_model_can_read(role: str, parts: list[Part], sealed: bool) -> None:
    assert Message(role, parts, 0).is_sealed is sealed


def test_words_of_the_wire_are_words() -> None:
    """They stand in error texts, file names and JSON as they are."""
    assert f"{Dialect.CHAT} {Kind.MAIN}" == "openai-chat main"
    assert json.dumps({Dialect.GEMINI: Kind.SIDE}) == '{"gemini-chat": "side"}'
    assert [str(dialect) for dialect in Dialect] == ["anthropic-messages", "openai-chat", "openai-responses", "gemini-chat"]


def test_a_call_that_nobody_changed_says_so() -> None:
    call = Call(Endpoint(Dialect.CHAT), b"{}", {}, "m", False, [])
    assert call.changed is False
    assert (call.tools, call.structured, call.previous_id) == ((), False, None)


def test_what_is_passed_around_has_its_fields_and_no_others_and_what_is_shared_is_frozen() -> None:
    kinds = [kind for kind in vars(values).values() if isinstance(kind, type) and issubclass(kind, Struct) and kind is not Struct]
    assert len(kinds) > 10
    changeable = {kind.__name__ for kind in kinds if not kind.__struct_config__.frozen}
    assert changeable == {"Text", "Media", "Thinking", "ToolCall", "ToolResult", "Other", "Message", "Call"}
    assert not any(kind.__struct_config__.dict for kind in kinds)


def test_media_by_their_type() -> None:
    kinds = {
        "image/png": "image",
        "audio/L16;rate=24000": "audio",
        "video": "video",
        "text/plain": "file",
        "file/x": "file",
        "": "file",
    }
    assert {media_type: media_kind(media_type) for media_type in kinds} == kinds
