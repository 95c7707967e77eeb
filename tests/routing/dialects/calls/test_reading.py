import json

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from routecodex.routing.dialects.calls import edit_texts, for_target, read_call
from routecodex.routing.errors import BadCall
from routecodex.routing.values import (
    Call,
    Dialect,
    Endpoint,
    Media,
    Other,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from tests.conftest import LONG
from tests.rig.work import assert_linear, calls_of
from tests.routing.dialects.calls.recorded import CALLS

MESSAGES, CHAT, RESPONSES = Endpoint(Dialect.MESSAGES), Endpoint(Dialect.CHAT), Endpoint(Dialect.RESPONSES)
GEMINI = Endpoint(Dialect.GEMINI, model="g", stream=True)
ENVELOPE = Endpoint(Dialect.GEMINI, stream=True, envelope=True)
ALL = [MESSAGES, CHAT, RESPONSES, GEMINI, ENVELOPE]


def read(endpoint: Endpoint, body: object) -> Call:
    return read_call(json.dumps(body).encode(), endpoint)


def recorded(name: str) -> Call:
    return next(read_call(request.raw, endpoint) for request, endpoint in CALLS if request.name.startswith(name))


def shape(call: Call) -> list[tuple[str, list[object]]]:
    return [(message.role, message.parts) for message in call.messages]


def test_messages() -> None:
    call = read(
        MESSAGES,
        {
            "model": "m",
            "stream": True,
            "system": [{"type": "text", "text": "x-anthropic-billing-header: cch=1;"}, {"type": "text", "text": "Be kind."}],
            "tools": [{"name": "Bash"}, {"type": "web_search_20250305", "name": "web_search"}, {"type": "unnamed"}, 3],
            "messages": [
                {"role": "user", "content": "plain"},
                {
                    "role": "assistant",
                    "content": [
                        {"type": "thinking", "thinking": "hm", "signature": "s"},
                        {"type": "redacted_thinking", "data": "xx"},
                        {"type": "text", "text": "yes"},
                        {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"a": 1}},
                        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}},
                    ],
                },
                {
                    "role": "user",
                    "content": [
                        {
                            "type": "tool_result",
                            "tool_use_id": "t1",
                            "content": [{"type": "text", "text": "a"}, {"type": "image"}],
                        },
                        {"type": "image", "source": {}},
                        {"type": "document", "source": {}},
                        {"type": "text", "text": "typed"},
                    ],
                },
                {"role": "system", "content": "# Environment"},
            ],
        },
    )
    assert (call.model, call.stream, call.system, call.tools) == ("m", True, "Be kind.", ("Bash", "web_search", "unnamed"))
    assert shape(call) == [
        ("user", [Text("plain")]),
        (
            "assistant",
            [Thinking("hm", 0), Thinking("", 1), Text("yes", 2), ToolCall("t1", "Bash", '{"a":1}', 3), Other(4)],
        ),
        ("user", [ToolResult("t1", "a", 0), Media("image", 1), Media("file", 2), Text("typed", 3)]),
        ("system", [Text("# Environment")]),
    ]


def test_chat() -> None:
    call = read(
        CHAT,
        {
            "model": "m",
            "tools": [
                {"type": "function", "function": {"name": "f"}},
                {"type": "custom", "custom": {"name": "c"}},
                {"type": "x"},
            ],
            "messages": [
                {"role": "developer", "content": "rules"},
                {"role": "user", "content": [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "u"}}]},
                {
                    "role": "assistant",
                    "content": None,
                    "reasoning_content": "let me see",
                    "tool_calls": [
                        {"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"x":1}'}},
                        {"id": "2", "type": "custom", "custom": {"name": "c", "input": "raw"}},
                    ],
                },
                {"role": "tool", "tool_call_id": "1", "content": [{"type": "text", "text": "done"}]},
                {"role": "assistant", "content": "ok"},
            ],
        },
    )
    assert (call.stream, call.tools, call.system) == (False, ("f", "c", "x"), "")
    assert shape(call) == [
        ("system", [Text("rules")]),
        ("user", [Text("look", 0), Media("image", 1)]),
        (
            "assistant",
            [Thinking("let me see"), ToolCall("1", "f", '{"x":1}', -2), ToolCall("2", "c", '{"input":"raw"}', -3)],
        ),
        ("tool", [ToolResult("1", "done")]),
        ("assistant", [Text("ok")]),
    ]


def test_responses() -> None:
    call = read(
        RESPONSES,
        {
            "model": "m",
            "instructions": "Be kind.",
            "previous_response_id": "resp_1",
            "tools": [{"type": "function", "name": "f"}, {"type": "web_search"}],
            "input": [
                {"type": "additional_tools", "role": "developer", "tools": [
                    {"type": "namespace", "name": "n", "tools": [{"type": "custom", "name": "exec"}]}]},
                {"role": "developer", "content": "rules"},
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}, {"type": "input_image"}],
                 "internal_chat_message_metadata_passthrough": {"content_item_kinds": ["user.text", 7]}},
                {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "x"},
                {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"},
                {"type": "custom_tool_call", "call_id": "2", "name": "exec", "input": "ls"},
                {"type": "local_shell_call", "call_id": "3", "action": {"command": ["ls"]}},
                {"type": "function_call_output", "call_id": "1", "output": "done"},
                {"type": "custom_tool_call_output", "call_id": "2", "output": [{"type": "input_text", "text": "two"}]},
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "ok"}]},
                {"type": "web_search_call", "id": "ws"},
                {"type": "compaction_trigger"},
            ],
        },
    )  # fmt: skip
    assert (call.system, call.previous_id, call.tools) == ("Be kind.", "resp_1", ("f", "web_search", "exec"))
    assert call.messages[2].hint == ("user.text", "")
    assert shape(call) == [
        ("system", [Other()]),
        ("system", [Text("rules")]),
        ("user", [Text("hi", 0), Media("image", 1)]),
        ("assistant", [Thinking("hm")]),
        ("assistant", [ToolCall("1", "f", "{}")]),
        ("assistant", [ToolCall("2", "exec", '{"input":"ls"}')]),
        ("assistant", [ToolCall("3", "local_shell", '{"command":["ls"]}')]),
        ("tool", [ToolResult("1", "done")]),
        ("tool", [ToolResult("2", "two")]),
        ("assistant", [Text("ok", 0)]),
        ("assistant", [Other()]),
        ("system", [Other()]),
    ]


def test_responses_input_string_and_none() -> None:
    """P26"""
    assert shape(read(RESPONSES, {"model": "m", "input": "hi"})) == [("user", [Text("hi")])]
    assert shape(read(RESPONSES, {"model": "m", "previous_response_id": "r"})) == []


@pytest.mark.parametrize("wrap", [lambda call: call, lambda call: {"model": "g", "project": "p", "request": call}])
def test_gemini(wrap) -> None:
    body = {
        "systemInstruction": {"parts": [{"text": "Be"}, {"text": "kind."}]},
        "tools": [{"functionDeclarations": [{"name": "f"}]}, {"googleSearch": {}}],
        "contents": [
            {"parts": [{"text": "hi"}, {"inlineData": {"mimeType": "image/png", "data": "x"}}, {"file_data": {}}]},
            {
                "role": "model",
                "parts": [
                    {"text": "hm", "thought": True},
                    {"functionCall": {"name": "f", "args": {"a": 1}}, "thoughtSignature": "s"},
                    {"executableCode": {}},
                ],
            },
            {"role": "user", "parts": [{"functionResponse": {"id": "1", "name": "f", "response": {"output": "done"}}}]},
        ],
    }
    endpoint = GEMINI if wrap(body) is body else ENVELOPE
    call = read(endpoint, wrap(body))
    assert (call.model, call.stream, call.system, call.tools) == ("g", True, "Be\nkind.", ("f", "googleSearch"))
    assert shape(call) == [
        ("user", [Text("hi", 0), Media("image", 1), Media("file", 2)]),
        ("assistant", [Thinking("hm", 0), ToolCall("f", "f", '{"a":1}', 1), Other(2)]),
        ("user", [ToolResult("1", "done", 0)]),
    ]


def test_an_empty_text_beside_a_call_or_its_result_is_none() -> None:
    """Some clients leave no field of a part out."""
    call, result = {"functionCall": {"name": "f"}}, {"functionResponse": {"name": "f", "response": {"output": "done"}}}
    contents = [
        {"role": "model", "parts": [{"text": "", **call}]},
        {"role": "user", "parts": [{"text": "", **result}, {"text": ""}]},
    ]
    assert shape(read(GEMINI, {"contents": contents})) == [
        ("assistant", [ToolCall("f", "f", "{}", 0)]),
        ("user", [ToolResult("f", "done", 0), Text("", 1)]),
    ]


@pytest.mark.parametrize("wrap, envelope", [("generateContentRequest", False), ("request", True)])
def test_gemini_counting_forms(wrap: str, envelope: bool) -> None:
    endpoint = Endpoint(Dialect.GEMINI, action="count", stream=False, envelope=envelope)
    call = read(endpoint, {wrap: {"model": "models/g", "contents": [{"parts": [{"text": "<**x**> hi"}]}]}})
    assert call.model == "g"
    edit_texts(call, {(0, 0): "hi"})
    sent = json.loads(for_target(call, "other", foreign=False))
    assert sent == {wrap: {"model": "models/other", "contents": [{"parts": [{"text": "hi"}]}]}}


@pytest.mark.parametrize("endpoint", [GEMINI, ENVELOPE], ids=["plain", "envelope"])
def test_gemini_takes_one_thing_for_a_list_of_one(endpoint: Endpoint) -> None:
    """As the examples of its maker are written. Nobody edits such a call: it is sent as it came."""
    one = {"name": "look", "parameters": {"type": "object"}}
    single = {"contents": {"role": "user", "parts": {"text": "<**glm**> hi"}}, "tools": {"functionDeclarations": one}}
    listed = {"contents": [{"role": "user", "parts": [{"text": "<**glm**> hi"}]}], "tools": [{"functionDeclarations": [one]}]}
    first, second = (read(endpoint, {"request": body} if endpoint.envelope else body) for body in (single, listed))
    assert first.messages == second.messages
    assert first.tools == second.tools == ("look",)
    assert for_target(first, "", foreign=False) is first.raw
    for call in (first, second):
        edit_texts(call, {(0, 0): "hi"})
    assert for_target(first, "", foreign=False) == for_target(second, "", foreign=False)
    assert for_target(first, "", foreign=True) == for_target(second, "", foreign=True)


M = {"model": "m", "messages": []}
R = {"model": "m", "input": "x"}
G = {"contents": []}
STRUCTURED = [
    (MESSAGES, M, False),
    (MESSAGES, {**M, "output_config": {"effort": "low"}}, False),
    (MESSAGES, {**M, "output_config": {"format": {"type": "json_schema"}}}, True),
    (MESSAGES, {**M, "output_format": {"type": "json_schema"}}, True),
    (CHAT, {**M, "response_format": {"type": "text"}}, False),
    (CHAT, {**M, "response_format": {"type": "json_object"}}, True),
    (CHAT, {**M, "response_format": {"type": "json_schema"}}, True),
    (RESPONSES, {**R, "text": {"verbosity": "low"}}, False),
    (RESPONSES, {**R, "text": {"format": {"type": "text"}}}, False),
    (RESPONSES, {**R, "text": {"format": {"type": "json_schema"}}}, True),
    (GEMINI, {**G, "generationConfig": {"responseMimeType": "text/plain"}}, False),
    (GEMINI, {**G, "generationConfig": {"responseMimeType": "application/json"}}, True),
    (GEMINI, {**G, "generationConfig": {"responseSchema": {}}}, True),
    (GEMINI, {**G, "generation_config": {"response_json_schema": {}}}, True),
    (ENVELOPE, {"request": {**G, "generationConfig": {"responseJsonSchema": {}}}}, True),
]


@pytest.mark.parametrize("endpoint, body, expected", STRUCTURED)
def test_structured(endpoint: Endpoint, body: object, expected: bool) -> None:
    assert read(endpoint, body).structured is expected


FORCED = [
    (MESSAGES, M, False),
    (MESSAGES, {**M, "tool_choice": {"type": "auto"}}, False),
    (MESSAGES, {**M, "tool_choice": {"type": "any"}}, True),
    (MESSAGES, {**M, "tool_choice": {"type": "tool", "name": "f"}}, True),
    (MESSAGES, {**M, "tool_choice": {"type": "none"}}, True),
    (CHAT, {**M, "tool_choice": "auto"}, False),
    (CHAT, {**M, "tool_choice": None}, False),
    (CHAT, {**M, "tool_choice": "none"}, True),
    (CHAT, {**M, "tool_choice": {"type": "function"}}, True),
    (CHAT, {**M, "function_call": "none"}, True),
    (RESPONSES, {**R, "tool_choice": "auto"}, False),
    (RESPONSES, {**R, "tool_choice": "required"}, True),
    (GEMINI, {**G, "toolConfig": {"functionCallingConfig": {"mode": "AUTO"}}}, False),
    (GEMINI, {**G, "toolConfig": {"functionCallingConfig": {"mode": "ANY"}}}, True),
    (GEMINI, {**G, "tool_config": {"function_calling_config": {"mode": "none"}}}, True),
]


@pytest.mark.parametrize("endpoint, body, expected", FORCED)
def test_forced_tools(endpoint: Endpoint, body: object, expected: bool) -> None:
    assert read(endpoint, body).forced_tools is expected


def test_recorded_side_requests_demand_structure() -> None:
    assert recorded("gemini-cli/02").structured
    assert recorded("claude-code/02").structured
    assert not recorded("claude-code/03").structured
    assert recorded("codex/10").structured


def test_codex_says_what_each_part_is() -> None:
    call = recorded("codex/01")
    assert [message.hint for message in call.messages if message.role == "user"][-1] == ("user.text",)
    assert {"exec", "wait", "sleep"} <= set(call.tools)


@pytest.mark.parametrize("endpoint", ALL)
@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\xff\xfe",
        b"{",
        b"null",
        b"[]",
        b'"x"',
        b"1" * 5000,
        b'{"model":1,"messages":[],"input":[],"contents":1,"request":{"model":[]}}',
        b'{"messages":{},"input":{},"contents":1,"request":1}',
        b'{"messages":[1],"input":[1],"contents":[1],"request":{"contents":[1]}}',
        b'{"messages":[{"role":1}],"input":[{"role":1}],"contents":[{"role":1}],"request":{"contents":[{"role":1}]}}',
        b'{"messages":[{"role":"user","content":1}],"input":[{"content":1}],"contents":[{"parts":1}],"request":{"contents":[{"parts":1}]}}',
        b"[" * 100_000,
        b'{"a":' * 300 + b"1" + b"}" * 300,
        b'{"model":"m","messages":[],"input":[],"contents":[],"request":{"contents":[]},"deep":' + b"[" * 210 + b"]" * 210 + b"}",
    ],
)
def test_what_is_no_call(endpoint: Endpoint, raw: bytes) -> None:
    with pytest.raises(BadCall):
        read_call(raw, endpoint)


@pytest.mark.parametrize("endpoint", ALL)
def test_depth_that_is_read_is_written(endpoint: Endpoint) -> None:
    """S11"""
    deep: object = 1
    for _ in range(190):
        deep = [deep]
    items = [{"role": "user", "content": "x"}]
    body = {"model": "m", "messages": items, "input": items, "contents": [], "deep": deep}
    call = read(endpoint, {**body, "request": body} if endpoint.envelope else body)
    assert json.loads(for_target(call, "other", foreign=True))["deep"] == deep


@pytest.mark.parametrize("value", [2**64, -(2**70), 12345678901234567890, "\ud800", 0.1, 1794988303.5303462, True, None])
def test_values_survive_a_rewrite(value: object) -> None:
    call = read(CHAT, {**M, "x": value})
    assert json.loads(for_target(call, "other", foreign=True))["x"] == value


# fmt: off
WORDS = [
    "model", "messages", "role", "content", "type", "text", "user", "assistant", "system", "tool_use", "id", "input", "name",
    "tool_result", "thinking", "signature", "data", "contents", "parts", "request", "functionCall", "args",
    "functionResponse", "response", "thought", "thoughtSignature", "message", "function_call", "call_id", "output",
    "reasoning", "summary", "encrypted_content", "tool_calls", "function", "arguments", "tools", "cache_control", "image_url",
    "inlineData", "mimeType", "internal_chat_message_metadata_passthrough", "content_item_kinds", "additional_tools",
    "metadata", "generateContentRequest",
]
# fmt: on
LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8)
JSON = st.recursive(
    LEAVES | st.sampled_from(WORDS),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(WORDS) | st.text(max_size=3), inner, max_size=5),
    max_leaves=25,
)
ITEM = st.dictionaries(st.sampled_from(WORDS), JSON, max_size=5)
PART = st.dictionaries(st.sampled_from(WORDS), JSON, max_size=4)
ITEMS = st.lists(
    ITEM
    | st.fixed_dictionaries(
        {"role": st.sampled_from(["user", "assistant", "model", "tool", "system"]), "content": st.lists(PART, max_size=3)}
    ),
    max_size=4,
)
BODIES = JSON | st.fixed_dictionaries(
    {"messages": ITEMS, "input": ITEMS, "contents": ITEMS},
    optional={"request": ITEM, "tools": JSON, "system": JSON, "text": JSON},
)


@pytest.mark.parametrize("endpoint", ALL, ids=["messages", "chat", "responses", "gemini", "envelope"])
@given(body=BODIES)
@settings(max_examples=5_000 if LONG else 50, deadline=None)
def test_any_json_is_a_call_or_a_bad_call(endpoint: Endpoint, body: object) -> None:
    try:
        call = read(endpoint, body)
    except BadCall:
        return
    assert for_target(call, "", foreign=False) is call.raw
    json.loads(for_target(call, "other", foreign=True))
    edit_texts(call, {(m.index, p.slot): "" for m in call.messages for p in m.parts if isinstance(p, Text)})
    assert read_call(for_target(call, "", foreign=False), endpoint).messages == call.messages


@given(raw=st.binary(max_size=60))
@settings(max_examples=100, deadline=None)
def test_any_bytes_are_a_call_or_a_bad_call(raw: bytes) -> None:
    for endpoint in ALL:
        try:
            read_call(raw, endpoint)
        except BadCall:
            pass


def test_reading_is_little_work() -> None:
    """A call of 320 kB with 100 messages: some steps for each message, however long its text is."""

    def raw(messages: int, words: int) -> bytes:
        parts = [{"type": "text", "text": "Hello world, this is a text of some length. " * words}]
        roles = ("user", "assistant")
        return orjson.dumps({**M, "messages": [{"role": roles[i % 2], "content": parts} for i in range(messages)]})

    long = calls_of(lambda: read_call(raw(100, 72), MESSAGES))
    assert long < 100 * 60, "calls of functions, those of C included"
    assert long - calls_of(lambda: read_call(raw(100, 1), MESSAGES)) < 100
    assert_linear(lambda given: read_call(given, MESSAGES), lambda size: raw(size, 4), 2_000)


# ---- what says nothing, by the hundred thousand (A4) ----

CRUMBS = {"empty": {}, "a field": {"a": 1}, "a string": "a"}
PLACES = {
    "messages": lambda crumbs: {"messages": crumbs, "input": crumbs, "contents": crumbs},
    "parts": lambda crumbs: _saying({"role": "user", "content": crumbs, "parts": crumbs}),
    "tools": lambda crumbs: {**_saying(), "tools": crumbs},
    "declarations": lambda crumbs: {**_saying(), "tools": [{"functionDeclarations": crumbs}]},
    "calls": lambda crumbs: _saying({"role": "assistant", "tool_calls": crumbs}),
    "a result": lambda crumbs: _saying({"role": "user", "content": [{"type": "tool_result", "content": crumbs}]}),
    "outputs": lambda crumbs: _saying({"type": "function_call_output", "output": crumbs}),
    "system": lambda crumbs: {**_saying(), "system": crumbs, "systemInstruction": {"parts": crumbs}},
}


def _saying(*messages: object) -> dict[str, object]:
    return {**M, "messages": messages, "input": messages, "contents": messages}


@pytest.mark.parametrize("endpoint", [MESSAGES, ENVELOPE], ids=["plain", "envelope"])
@pytest.mark.parametrize("crumb", CRUMBS)
@pytest.mark.parametrize("place", PLACES)
def test_more_pieces_than_can_say_anything_are_refused(endpoint: Endpoint, crumb: str, place: str) -> None:
    body = PLACES[place]([CRUMBS[crumb]] * 20_001)
    with pytest.raises(BadCall, match=r"more messages, parts and tools than can say anything in its .* bytes.*Begin a new"):
        read_call(orjson.dumps({"request": body} if endpoint is ENVELOPE else body), endpoint)


@pytest.mark.parametrize("endpoint", ALL, ids=["messages", "chat", "responses", "gemini", "envelope"])
def test_nobody_walks_over_what_says_nothing(endpoint: Endpoint) -> None:
    """It took a quarter of a second for each MiB."""

    def work(pieces: int) -> int:
        body = PLACES["messages"]([{}] * pieces)
        raw = orjson.dumps({"request": body} if endpoint is ENVELOPE else body)

        def read() -> None:
            with pytest.raises(BadCall):
                read_call(raw, endpoint)

        return calls_of(read)

    assert work(60_000) - work(30_000) < 4 * 3 * 30_000, "in three lists: not a step of ours for each"


@pytest.mark.parametrize("endpoint", [MESSAGES, CHAT, RESPONSES])
def test_more_messages_than_any_provider_takes_are_not_even_read(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = orjson.dumps(_saying(*[{"role": "user", "content": "some words"}] * 100_001))
    monkeypatch.setattr("routecodex.routing.jsonbytes.orjson.loads", lambda raw: pytest.fail("it is read"))
    with pytest.raises(BadCall, match="over 100,000"):
        read_call(raw, endpoint)


def test_many_that_say_something_are_read() -> None:
    """Also text about such calls, and data that a tool was given, however short its pieces are."""
    many = [{"role": "user", "content": "a"}] * 30_000
    assert len(read(MESSAGES, {**M, "messages": many}).messages) == 30_000
    points: object = [{"x": 1}] * 50_000
    used = {"type": "tool_use", "id": "t", "name": "plot", "input": {"points": points, "content": points}}
    call = read(
        MESSAGES, {**M, "messages": [{"role": "assistant", "content": [used]}], "tools": [{"input_schema": {"enum": points}}]}
    )
    assert isinstance(call.messages[0].parts[0], ToolCall)
    about = json.dumps([{"role": "user", "content": "{},{},"}] * 150_000)
    assert read(MESSAGES, {**M, "messages": [{"role": "user", "content": about}]}).messages[0].text == about
    assert read(CHAT, {**M, "messages": [{"role": "tool", "tool_call_id": "t", "content": list(range(50_000))}]}).messages
