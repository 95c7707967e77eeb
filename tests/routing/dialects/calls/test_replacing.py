"""Items of a history give way to others, in every dialect; and what clients add to their copies comes along."""

from __future__ import annotations

import json
from typing import Any

import pytest

from routecodex.routing.dialects.calls import for_target, read_call
from routecodex.routing.dialects.calls.replacing import Swap, raw_items, replace_items
from routecodex.routing.dialects.calls.restoring import as_client_sends, join_results
from routecodex.routing.dialects.calls.same import canonical
from routecodex.routing.values import Call, Dialect, Endpoint

DIALECTS = list(Dialect)
FIELDS = {Dialect.MESSAGES: "messages", Dialect.CHAT: "messages", Dialect.RESPONSES: "input", Dialect.GEMINI: "contents"}


def said(dialect: Dialect, role: str, text: str) -> dict[str, Any]:
    if dialect is Dialect.GEMINI:
        return {"role": "model" if role == "assistant" else role, "parts": [{"text": text}]}
    return {"role": role, "content": text}


def call_of(dialect: Dialect, *items: Any, envelope: bool = False) -> Call:
    inner: dict[str, Any] = {"a": 1, FIELDS[dialect]: list(items), "z": 2}
    body = {"project": "p", "request": inner} if envelope else {"model": "m", **inner}
    model = "m" if dialect is Dialect.GEMINI else None
    return read_call(json.dumps(body).encode(), Endpoint(dialect, model=model, envelope=envelope))


def words(call: Call) -> list[str]:
    assert [view.index for view in call.messages] == list(range(len(call.messages)))
    again = read_call(json.dumps(call.body).encode(), call.endpoint)
    assert call.messages == again.messages
    return [view.text for view in call.messages]


SWAPS: list[tuple[list[tuple[int, int, str]], str]] = [
    ([], "uavb"),
    ([(1, 2, "xyz")], "uxyzvb"),
    ([(0, 0, "x")], "xuavb"),
    ([(4, 4, "x")], "uavbx"),
    ([(1, 1, "x"), (1, 2, ""), (3, 4, "yz")], "uxvyz"),
    ([(0, 4, "")], ""),
    ([(0, 1, "x"), (1, 2, "y")], "xyvb"),
]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("swaps,expected", SWAPS)
def test_swaps(dialect: Dialect, swaps: list[tuple[int, int, str]], expected: str) -> None:
    call = call_of(dialect, *(said(dialect, "assistant" if word in "ab" else "user", word) for word in "uavb"))
    old, views = raw_items(call), list(call.messages)
    before = json.dumps(old)
    replace_items(call, [Swap(start, end, [said(dialect, "user", word) for word in new]) for start, end, new in swaps])
    assert words(call) == list(expected)
    assert json.dumps(old) == before
    assert call.changed is bool(swaps)
    assert list(call.body)[:2] == ["model", "a"]
    kept = [view for view in views if any(view is now for now in call.messages)]
    assert [view.text for view in kept] == [word for word in "uavb" if word in expected]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_edited_call_is_written_with_what_came_in(dialect: Dialect) -> None:
    call = call_of(dialect, said(dialect, "user", "u"), said(dialect, "assistant", "merged"))
    replace_items(call, [Swap(1, 2, [said(dialect, "assistant", "one"), said(dialect, "user", "two")])])
    sent = json.loads(for_target(call, "", foreign=False))
    assert sent[FIELDS[dialect]] == [
        said(dialect, role, text) for role, text in [("user", "u"), ("assistant", "one"), ("user", "two")]
    ]


def test_geminis_envelope() -> None:
    call = call_of(Dialect.GEMINI, said(Dialect.GEMINI, "user", "u"), envelope=True)
    replace_items(call, [Swap(1, 1, [said(Dialect.GEMINI, "assistant", "a")])])
    assert words(call) == ["u", "a"]
    assert list(call.body) == ["project", "request"]


def test_a_responses_input_that_is_one_text() -> None:
    call = read_call(b'{"model": "m", "input": "hello"}', Endpoint(Dialect.RESPONSES))
    replace_items(call, [Swap(0, 0, [{"type": "function_call_output", "call_id": "c", "output": "x"}])])
    assert call.body["input"] == [
        {"type": "function_call_output", "call_id": "c", "output": "x"},
        {"type": "message", "role": "user", "content": "hello"},
    ]
    assert [view.role for view in call.messages] == ["tool", "user"]


@pytest.mark.parametrize("swaps", [[(2, 1)], [(0, 2), (1, 2)], [(3, 9)], [(-1, 0)]])
def test_swaps_that_cannot_be(swaps: list[tuple[int, int]]) -> None:
    call = call_of(Dialect.CHAT, *(said(Dialect.CHAT, "user", word) for word in "abcd"))
    before = json.dumps(call.body)
    with pytest.raises(ValueError):
        replace_items(call, [Swap(start, end, []) for start, end in swaps])
    assert json.dumps(call.body) == before
    assert words(call) == list("abcd")


# What clients add

MARK = {"type": "ephemeral"}


def text(value: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": value, **more}


THINKING = {"type": "thinking", "thinking": "t", "signature": "s"}
USE = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {}}


def assistant(*parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(parts), **more}


USER = {"role": "user", "content": [text("go on")]}

MARKS: list[tuple[str, Dialect, list[dict[str, Any]], list[dict[str, Any]], list[dict[str, Any]]]] = [
    ("none", Dialect.MESSAGES, [assistant(text("m"))], [assistant(text("a"))], [assistant(text("a"))]),
    (
        "on-text",
        Dialect.MESSAGES,
        [assistant(text("m", cache_control=MARK))],
        [assistant(text("a")), USER, assistant(THINKING, text("b"))],
        [assistant(text("a")), USER, assistant(THINKING, text("b", cache_control=MARK))],
    ),
    (
        "behind-the-last-thinking",
        Dialect.MESSAGES,
        [assistant(text("m", cache_control=MARK))],
        [assistant(text("a"), THINKING)],
        [assistant(text("a", cache_control=MARK), THINKING)],
    ),
    (
        "not-on-empty-text",
        Dialect.MESSAGES,
        [assistant(text("m", cache_control=MARK))],
        [assistant(USE, text(""))],
        [assistant({**USE, "cache_control": MARK}, text(""))],
    ),
    (
        "nowhere-in-the-last",
        Dialect.MESSAGES,
        [assistant(text("m", cache_control=MARK))],
        [assistant(text("a")), USER, assistant(THINKING)],
        [assistant(text("a", cache_control=MARK)), USER, assistant(THINKING)],
    ),
    (
        "on-a-tool",
        Dialect.MESSAGES,
        [assistant(text("m"), {**USE, "cache_control": {"type": "ephemeral", "ttl": "1h"}})],
        [assistant(text("a"), USE)],
        [assistant(text("a"), {**USE, "cache_control": {"type": "ephemeral", "ttl": "1h"}})],
    ),
    (
        "on-a-string",
        Dialect.CHAT,
        [assistant(text("m", cache_control=MARK))],
        [{"role": "assistant", "content": "a"}],
        [assistant(text("a", cache_control=MARK))],
    ),
    (
        "on-the-message",
        Dialect.CHAT,
        [assistant(text("m"), cache_control=MARK)],
        [{"role": "assistant", "content": None, "tool_calls": [{}]}],
        [{"role": "assistant", "content": None, "tool_calls": [{}], "cache_control": MARK}],
    ),
    (
        "no-place-in-chat",
        Dialect.CHAT,
        [assistant(text("m", cache_control=MARK))],
        [{"role": "assistant", "content": None, "tool_calls": [{}]}],
        [{"role": "assistant", "content": None, "tool_calls": [{}]}],
    ),
]


@pytest.mark.parametrize("dialect,old,new,expected", [pytest.param(*case[1:], id=case[0]) for case in MARKS])
def test_marks_move(
    dialect: Dialect, old: list[dict[str, Any]], new: list[dict[str, Any]], expected: list[dict[str, Any]]
) -> None:
    before = json.dumps([old, new])
    assert as_client_sends(dialect, old, new) == expected
    assert json.dumps([old, new]) == before


def test_gemini_calls_get_the_ids_that_their_client_gave_them() -> None:
    def asks(name: str, args: dict[str, Any], **more: Any) -> dict[str, Any]:
        return {"functionCall": {"name": name, "args": args, **more}}

    old = [{"role": "model", "parts": [asks("sh", {"a": 1}, id="sh_1"), asks("sh", {"a": 2}, id="sh_2")]}]
    first = {**asks("sh", {"a": 1}), "thoughtSignature": "true"}
    new = [{"role": "model", "parts": [{"text": "x"}, asks("clock", {}), first, asks("sh", {"a": 2})]}]
    assert as_client_sends(Dialect.GEMINI, old, new) == [
        {
            "role": "model",
            "parts": [
                {"text": "x"},
                asks("clock", {}),
                {**asks("sh", {"a": 1}, id="sh_1"), "thoughtSignature": "true"},
                asks("sh", {"a": 2}, id="sh_2"),
            ],
        }
    ]


RESULT = {"type": "tool_result", "tool_use_id": "c", "content": "ok"}
THEIRS = {"type": "tool_result", "tool_use_id": "t1", "content": "x"}


@pytest.mark.parametrize(
    "dialect,results,following,expected",
    [
        (
            Dialect.MESSAGES,
            [{"role": "user", "content": [RESULT]}],
            {"role": "user", "content": [THEIRS]},
            {"role": "user", "content": [RESULT, THEIRS]},
        ),
        (
            Dialect.MESSAGES,
            [{"role": "user", "content": [RESULT]}],
            {"role": "user", "content": "no"},
            {"role": "user", "content": [RESULT, text("no")]},
        ),
        (Dialect.GEMINI, [{"role": "user", "parts": [1]}], {"role": "user", "parts": [2]}, {"role": "user", "parts": [1, 2]}),
        (Dialect.MESSAGES, [{"role": "user", "content": [RESULT]}], None, None),
        (Dialect.CHAT, [{"role": "tool"}], {"role": "user", "content": "x"}, None),
        (Dialect.RESPONSES, [{"type": "function_call_output"}], {"role": "user"}, None),
    ],
)
def test_results_join_the_clients(dialect: Dialect, results: list[Any], following: Any, expected: Any) -> None:
    assert join_results(dialect, results, following) == expected


@pytest.mark.parametrize(
    "one,other,same",
    [
        ('{"a": 1, "b": [1.0]}', '{"b":[1],"a":1}', True),
        ("", "{}", True),
        (" ", "{}", True),
        ('{"a": 1}', '{"a": "1"}', False),
        ('{"a": true}', '{"a": 1}', False),
        ('{"a": null}', "{}", False),
        ('"é"', '"\\u00e9"', True),
        ("not json", "not  json", True),
        ("[1, 2]", "[2, 1]", False),
        ("12345678901234567890", "12345678901234567891", False),
        ("[" * 4000, "[" * 4001, False),
        ("[" * 4000 + "]" * 4000, "[ " * 4000 + "]" * 4000, True),
    ],
)
def test_the_same_arguments(one: str, other: str, same: bool) -> None:
    assert (canonical(one) == canonical(other)) is same
