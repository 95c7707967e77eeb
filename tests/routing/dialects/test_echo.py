from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from routecodex.routing.dialects.calls import read_call
from routecodex.routing.dialects.echo import LONGEST_DELAY_S, EchoFailure, delay_of, echo_answer
from routecodex.routing.jsonbytes import dumps
from routecodex.routing.values import Answer, Call, Dialect, Endpoint, Message, Part, Role, Text, ToolCall, ToolResult


def _call(*turns: tuple[Role, list[Part]]) -> Call:
    messages = [Message(role, parts, index) for index, (role, parts) in enumerate(turns)]
    return Call(Endpoint(Dialect.CHAT), raw=b"{}" * 20, body={}, model="m", stream=False, messages=messages)


def _said(text: str) -> Call:
    return _call(("user", [Text(text)]))


def _answer(call: Call) -> Answer:
    answer = echo_answer(call)
    assert isinstance(answer, Answer)
    return answer


@pytest.mark.parametrize(
    "text, answer",
    [
        pytest.param("hello 世界", "hello 世界", id="the text itself"),
        pytest.param("  hi \n", "hi", id="trimmed"),
        pytest.param("", "(nothing to echo)", id="nothing"),
        pytest.param("before\necho: say one\nafter\necho: SAY two", "one\ntwo", id="say"),
        pytest.param("<now>12:00</now>\n\nhello", "hello", id="behind what a tool wrapped"),
        pytest.param("<a>1</a>\n<b c='d'>\n2\n</b>\nhello\n\n<files>\n* x\n</files>\n", "hello", id="between what tools wrapped"),
        pytest.param("<b>bold</b> words\nand <i>more</i>", "<b>bold</b> words\nand <i>more</i>", id="a person's own marks"),
        pytest.param("<now>12:00</now>\n\necho: say one", "one", id="an order behind what a tool wrapped"),
        pytest.param('"echo: say quoted"', "quoted", id="opencode's quotes"),
        pytest.param("I wrote echo: say x in a sentence", "I wrote echo: say x in a sentence", id="only at a line's start"),
        pytest.param("echo: sayings are not orders", "echo: sayings are not orders", id="only whole words"),
        pytest.param("echo: stop length", "ok", id="an order without words"),
        pytest.param("echo: call", "echo cannot call '': write `echo: call NAME {json object}`", id="no name"),
        pytest.param("echo: call x [1]", "echo cannot call 'x [1]': write `echo: call NAME {json object}`", id="no object"),
    ],
)
def test_what_it_says(text: str, answer: str) -> None:
    assert _answer(_said(text)).text == answer


SCHEMA = {"type": "object", "properties": {"title": {"type": "string", "minLength": 2}}, "required": ["title"]}
DEMANDS: dict[str, tuple[Endpoint, dict[str, Any], dict[str, Any]]] = {
    "messages": (
        Endpoint(Dialect.MESSAGES),
        {"messages": [{"role": "user", "content": "x"}], "tools": [{"name": "t", "input_schema": SCHEMA}]},
        {"tool_choice": {"type": "tool", "name": "t"}},
    ),
    "messages, any of one": (
        Endpoint(Dialect.MESSAGES),
        {"messages": [{"role": "user", "content": "x"}], "tools": [{"name": "t", "input_schema": SCHEMA}]},
        {"tool_choice": {"type": "any"}},
    ),
    "chat, one of two": (
        Endpoint(Dialect.CHAT),
        {
            "messages": [{"role": "user", "content": "x"}],
            "tools": [
                {"type": "function", "function": {"name": "a", "parameters": {"type": "object"}}},
                {"type": "function", "function": {"name": "t", "parameters": SCHEMA}},
            ],
        },
        {"tool_choice": {"type": "function", "function": {"name": "t"}}},
    ),
    "responses": (
        Endpoint(Dialect.RESPONSES),
        {"input": "x", "tools": [{"type": "function", "name": "t", "parameters": SCHEMA}]},
        {"tool_choice": "required"},
    ),
    "gemini": (
        Endpoint(Dialect.GEMINI, model="g"),
        {
            "contents": [{"role": "user", "parts": [{"text": "x"}]}],
            "tools": [{"functionDeclarations": [{"name": "t", "parameters": SCHEMA}, {"name": "a"}]}],
        },
        {"toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["t"]}}},
    ),
    "in the envelope": (
        Endpoint(Dialect.GEMINI, envelope=True),
        {"model": "g", "request": {
            "contents": [{"role": "user", "parts": [{"text": "x"}]}],
            "tools": [{"functionDeclarations": [{"name": "t", "parameters": SCHEMA}]}],
            "toolConfig": {"functionCallingConfig": {"mode": "ANY"}},
        }},
        {},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", DEMANDS)
def test_a_tool_that_must_be_called_is_called_with_the_smallest_arguments(case: str) -> None:
    """As programs demand structured output: a text would have them ask again, and again."""
    endpoint, body, demands = DEMANDS[case]
    answer = _answer(read_call(dumps(body | demands), endpoint))
    assert (answer.text, answer.finish) == ("", "tool_calls")
    assert answer.calls == (ToolCall("call_echo_1", "t", '{"title":"a1"}'),)
    if demands:
        assert not _answer(read_call(dumps(body), endpoint)).calls


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({"tool_choice": "none"}, id="none"),
        pytest.param({"tool_choice": "required"}, id="nobody knows which"),
        pytest.param({"tool_choice": {"type": "function", "name": "gone"}}, id="not declared"),
        pytest.param({"tool_choice": {"type": "function", "name": "t"}, "input": "echo: say it"}, id="told otherwise"),
        pytest.param(
            {
                "tool_choice": {"type": "function", "name": "t"},
                "input": [
                    {"role": "user", "content": "x"},
                    {"type": "function_call", "call_id": "1", "name": "t", "arguments": "{}"},
                    {"type": "function_call_output", "call_id": "1", "output": "done"},
                ],
            },
            id="it was called",
        ),
        pytest.param({"tool_choice": {"type": "function", "name": "t"}, "input": 5}, id="no call that anybody can read"),
    ],
)
def test_who_can_be_answered_otherwise_is(more: dict[str, Any]) -> None:
    declared = [{"type": "function", "name": name, "parameters": SCHEMA} for name in "at"]
    call = read_call(dumps({"input": "x", "tools": declared}), Endpoint(Dialect.RESPONSES))
    call.body |= more
    call.forced_tools = "tool_choice" in more
    if isinstance(more.get("input"), str | list):
        call = read_call(dumps(call.body), call.endpoint)
    assert not _answer(call).calls


def test_it_calls_tools() -> None:
    answer = _answer(_said('echo: call read {"path": "a b", "n": 1.0}\necho: say first\necho: call list'))
    assert answer.calls == (
        ToolCall("call_echo_1", "read", '{"path": "a b", "n": 1.0}'),
        ToolCall("call_echo_2", "list", "{}"),
    )
    assert (answer.text, answer.finish) == ("first", "tool_calls")


def test_ids_go_on_where_the_history_ends() -> None:
    before: list[Part] = [ToolCall("call_echo_1", "x", "{}")]
    call = _call(
        ("user", [Text("q")]), ("assistant", before), ("tool", [ToolResult("call_echo_1", "r")]), ("user", [Text("echo: call y")])
    )
    assert _answer(call).calls[0].id == "call_echo_2"


@pytest.mark.parametrize(
    "word, finish",
    [
        ("length", "length"),
        ("max_tokens", "length"),
        ("content_filter", "content_filter"),
        ("tool_use", "stop"),
        ("wibble", "stop"),
        ("", "stop"),
    ],
)
def test_it_stops_as_told(word: str, finish: str) -> None:
    assert _answer(_said(f"echo: stop {word}")).finish == finish


@pytest.mark.parametrize(
    "text, status, message",
    [
        ("echo: fail 429", 429, "echo was told to fail with 429"),
        ("echo: fail 503 out of order", 503, "out of order"),
        ("echo: fail", 500, "echo was told to fail with 500"),
        ("echo: fail 200 no", 500, "no"),
        ("echo: say x\necho: fail 401", 401, "echo was told to fail with 401"),
        ("echo: fail ４２９", 500, "echo was told to fail with 500"),
    ],
)
def test_it_fails_as_told(text: str, status: int, message: str) -> None:
    assert echo_answer(_said(text)) == EchoFailure(status, message)


def test_it_reports_tool_results_instead_of_asking_again() -> None:
    question: tuple[Role, list[Part]] = ("user", [Text("echo: call read {}")])
    asked: tuple[Role, list[Part]] = ("assistant", [ToolCall("a", "read", "{}"), ToolCall("b", "list", "{}")])
    one, two = ToolResult("a", "file text"), ToolResult("b", "two files")
    reminder = Text("<system-reminder>be nice</system-reminder>")
    expected = "The tool answered: file text\nThe tool answered: two files"
    assert _answer(_call(question, asked, ("tool", [one]), ("tool", [two]))).text == expected
    assert _answer(_call(question, asked, ("user", [one, two, reminder]))).text == expected
    assert _answer(_call(question, asked, ("user", [one, two]), ("system", [Text("s")]), ("user", [reminder]))).text == expected
    later = _call(question, asked, ("tool", [one]), ("tool", [two]), ("assistant", [Text("ok")]), ("user", [Text("thanks")]))
    assert _answer(later).text == "thanks"


def test_an_order_beside_a_tool_result_is_obeyed() -> None:
    call = _call(
        ("user", [Text("q")]), ("assistant", [ToolCall("a", "x", "{}")]), ("user", [ToolResult("a", "r"), Text("echo: say now")])
    )
    assert _answer(call).text == "now"


def test_text_that_a_tool_wrapped_is_not_the_newest() -> None:
    wrapped = Text("<environment_context>\n  echo: fail 500\n</environment_context>")
    assert _answer(_call(("user", [wrapped, Text("typed")]), ("user", [wrapped]))).text == "typed"


def test_a_tool_results_text_gives_no_orders() -> None:
    call = _call(("user", [Text("q")]), ("assistant", [ToolCall("a", "x", "{}")]), ("tool", [ToolResult("a", "echo: fail 500")]))
    assert _answer(call).text == "The tool answered: echo: fail 500"


@pytest.mark.parametrize(
    "text, seconds",
    [
        ("hi", 0.0),
        ("echo: slow 2.5", 2.5),
        ("echo: slow 1e9", LONGEST_DELAY_S),
        ("echo: slow -1", 0.0),
        ("echo: slow nan", 0.0),
        ("echo: slow", 0.0),
    ],
)
def test_how_long_it_waits(text: str, seconds: float) -> None:
    assert delay_of(_said(text)) == seconds


@given(
    st.text(max_size=200) | st.text(max_size=60).map("echo: call x ".__add__) | st.text(max_size=60).map("echo: stop ".__add__)
)
def test_the_same_text_has_the_same_answer(text: str) -> None:
    answer = echo_answer(_said(text))
    assert answer == echo_answer(_said(text))
    if isinstance(answer, Answer):
        assert answer.text or answer.calls
        assert answer.usage.input == 10
        assert (answer.finish == "tool_calls") == bool(answer.calls)


def test_a_long_hostile_text_takes_no_time() -> None:
    text = ("echo:" + " " * 1000 + "\n" + '"' * 1000 + "\n<a" + "<" * 500) * 400
    assert isinstance(_answer(_said(text)), Answer)


@pytest.mark.parametrize(
    "schema, text", [(None, "{}"), ({"type": "object", "required": ["a"], "properties": {"a": {"const": 1}}}, '{"a":1}')]
)
def test_structured_output_is_what_its_schema_allows(schema: dict[str, object] | None, text: str) -> None:
    """Whatever the conversation says: a tool's own call must be able to read its answer."""
    call = replace(_said("echo: fail 500"), structured=True, schema=schema)
    assert _answer(call).text == text
