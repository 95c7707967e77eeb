"""What travels to a host that the client did not call, and what stays behind."""

import json

import pytest

from routecodex.routing.dialects.calls import edit_texts, for_target, read_call
from routecodex.routing.dialects.translation.neutral import LeftOut
from routecodex.routing.values import Dialect, Endpoint, JsonObject
from tests.routing.dialects.calls.recorded import CALLS, Recorded

MESSAGES, CHAT, RESPONSES = Endpoint(Dialect.MESSAGES), Endpoint(Dialect.CHAT), Endpoint(Dialect.RESPONSES)
GEMINI = Endpoint(Dialect.GEMINI, model="g", stream=True)
ENVELOPE = Endpoint(Dialect.GEMINI, stream=True, envelope=True)
C = "CANARY"

CARRIERS: list[tuple[Endpoint, JsonObject]] = [
    (
        MESSAGES,
        {
            "model": "m",
            "metadata": {"user_id": f'{{"session_id":"{C}"}}'},
            "diagnostics": {"previous_message_id": C},
            "container": C,
            "mcp_servers": [{"name": "x", "url": "https://x", "authorization_token": C}],
            "context_management": {"edits": [{"type": C}]},
            "cc_version": C,
            "user_profile_id": C,
            "system": [{"type": "text", "text": f"x-anthropic-billing-header: cch={C};"}, {"type": "text", "text": "Be kind."}],
            "tools": [
                {"name": "f", "input_schema": {}, "cache_control": {"type": "ephemeral", "scope": C}},
                {"type": "mcp_toolset", "mcp_server_name": C},
            ],
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral", "scope": C}}]},
                {"role": "system", "content": "# Environment", "output_config": {"effort": C}},
                {"role": "assistant", "content": [{"type": "redacted_thinking", "data": C}]},
                {
                    "role": "assistant",
                    "content": [
                        {"type": "thinking", "thinking": C, "signature": "sealed"},
                        {"type": "thinking", "thinking": "open"},
                        {"type": "text", "text": "yes", "citations": [{"url": "u", "encrypted_index": C}]},
                        {"type": "web_search_tool_result", "content": [{"url": "u", "encrypted_content": C}]},
                    ],
                },
                {"role": "user", "content": "plain"},
            ],
        },
    ),
    (MESSAGES, {"model": "m", "system": f"x-anthropic-billing-header: cch={C}\nBe kind.", "messages": []}),
    (MESSAGES, {"model": "m", "system": f"x-anthropic-billing-header: cch={C}", "messages": []}),
    (
        CHAT,
        {
            "model": "m",
            "user": C,
            "metadata": {"sessionId": C},
            "safety_identifier": C,
            "prompt_cache_key": C,
            "session_id": C,
            "store": C,
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "hi", "cache_control": {"type": C}}]},
                {
                    "role": "assistant",
                    "content": "ok",
                    "extra_content": {"google": {"thought_signature": C}},
                    "reasoning_details": [{"type": "reasoning.encrypted", "data": C}, {"type": "reasoning.text", "text": "open"}],
                    "tool_calls": [{"id": "1", "function": {"name": "f"}, "extra_content": {"google": {"thought_signature": C}}}],
                },
            ],
        },
    ),
    (
        RESPONSES,
        {
            "model": "m",
            "client_metadata": {"session_id": C},
            "prompt_cache_key": C,
            "safety_identifier": C,
            "user": C,
            "metadata": {"k": C},
            "previous_response_id": C,
            "conversation": C,
            "include": ["reasoning.encrypted_content"],
            "input": [
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}],
                 "internal_chat_message_metadata_passthrough": {"turn_id": C, "content_item_kinds": ["user.text"]}},
                {"type": "reasoning", "id": C, "summary": [], "encrypted_content": "sealed"},
                {"type": "compaction", "encrypted_content": C},
                {"type": "item_reference", "id": C},
                {"type": "message", "role": "assistant", "content": [{"type": "x", "encrypted_content": C}]},
                {"type": "function_call_output", "call_id": "1", "output": "o", "encrypted_content": C},
            ],
        },
    ),
    (
        GEMINI,
        {
            "labels": {"k": C},
            "session_id": C,
            "contents": [
                {"role": "user", "parts": [{"text": "hi"}]},
                {"role": "model", "parts": [{"text": C, "thought": True, "thoughtSignature": C}]},
                {"role": "model", "parts": [
                    {"text": "yes", "thoughtSignature": C}, {"text": "", "thought_signature": C},
                    {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": C}]},
            ],
        },
    ),
    (ENVELOPE, {"model": C, "project": C, "user_prompt_id": C, "request": {"contents": [], "session_id": C}}),
]  # fmt: skip


def sent(
    endpoint: Endpoint, body: JsonObject, model: str = "n", *, foreign: bool = True, own: tuple[str, ...] = ()
) -> JsonObject:
    return json.loads(for_target(read_call(json.dumps(body).encode(), endpoint), model, foreign=foreign, own=own))


@pytest.mark.parametrize("endpoint, body", CARRIERS)
def test_no_canary_travels(endpoint: Endpoint, body: JsonObject) -> None:
    """S1"""
    assert C in json.dumps(body)
    assert C not in json.dumps(sent(endpoint, body))
    assert C in json.dumps(sent(endpoint, body, foreign=False))


def test_what_a_messages_call_keeps() -> None:
    body = {**CARRIERS[0][1], "thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}, "max_tokens": 5, "unknown": 1}
    assert sent(MESSAGES, body) == {
        "model": "n",
        "system": [{"type": "text", "text": "Be kind."}],
        "tools": [{"name": "f", "input_schema": {}, "cache_control": {"type": "ephemeral"}}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}]},
            {"role": "system", "content": "# Environment"},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "open"},
                    {"type": "text", "text": "yes", "citations": [{"url": "u"}]},
                    {"type": "web_search_tool_result", "content": [{"url": "u"}]},
                ],
            },
            {"role": "user", "content": "plain"},
        ],
        "thinking": {"type": "adaptive"},
        "output_config": {"effort": "low"},
        "max_tokens": 5,
        "unknown": 1,
    }
    assert sent(*CARRIERS[1])["system"] == "Be kind."
    assert "system" not in sent(*CARRIERS[2])


def test_what_a_messages_call_leaves_behind_is_named() -> None:
    """In the same order each time."""

    def named(endpoint: Endpoint, body: JsonObject) -> str:
        left = LeftOut()
        for_target(read_call(json.dumps(body).encode(), endpoint), "n", foreign=True, left=left)
        return str(left)

    assert named(*CARRIERS[0]) == (
        "metadata (diagnostics, user_profile_id, cc_version, billing line), containers (container), "
        "MCP servers (mcp_servers, toolsets), context management (context_management), cache marks (scope), "
        "effort of reasoning (output_config), thinking of another provider, citations (their seals), "
        "results of tools that the provider ran (their seals)"
    )
    assert named(*CARRIERS[1]) == named(*CARRIERS[2]) == "metadata (billing line)"


def test_what_a_chat_call_keeps() -> None:
    assert sent(*CARRIERS[3]) == {
        "model": "n",
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "hi"}]},
            {
                "role": "assistant",
                "content": "ok",
                "reasoning_details": [{"type": "reasoning.text", "text": "open"}],
                "tool_calls": [{"id": "1", "function": {"name": "f"}}],
            },
        ],
    }


def test_what_a_responses_call_keeps() -> None:
    body = {**CARRIERS[4][1], "store": False, "include": ["reasoning.encrypted_content", "file_search_call.results"]}
    assert sent(RESPONSES, body) == {
        "model": "n",
        "include": ["file_search_call.results"],
        "store": False,
        "input": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
            {"type": "message", "role": "assistant", "content": [{"type": "x"}]},
            {"type": "function_call_output", "call_id": "1", "output": "o"},
        ],
    }
    assert "include" not in sent(RESPONSES, CARRIERS[4][1])
    assert sent(RESPONSES, {"model": "m", "input": "hi", "user": C}) == {"model": "n", "input": "hi"}


def test_what_a_gemini_call_keeps() -> None:
    """A function call without its maker's signature says so in the way Google's interface asks for."""
    call = {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "skip_thought_signature_validator"}
    assert sent(*CARRIERS[5]) == {
        "contents": [{"role": "user", "parts": [{"text": "hi"}]}, {"role": "model", "parts": [{"text": "yes"}, call]}]
    }


def test_an_envelope_stays_at_its_host() -> None:
    body = {
        "model": "g",
        "project": "p",
        "user_prompt_id": "u",
        "request": {"contents": [{"parts": [{"text": "hi"}]}], "session_id": "s"},
    }
    assert sent(ENVELOPE, body) == {"contents": [{"parts": [{"text": "hi"}]}]}
    assert sent(ENVELOPE, body, foreign=False) == {**body, "model": "n"}


@pytest.mark.parametrize(
    "endpoint, body, seal",
    [
        (
            MESSAGES,
            {"messages": [{"role": "assistant", "content": [{"type": "thinking", "thinking": "t", "signature": "s1"}]}]},
            "s1",
        ),
        (MESSAGES, {"messages": [{"role": "assistant", "content": [{"type": "redacted_thinking", "data": "s1"}]}]}, "s1"),
        (CHAT, {"messages": [{"role": "assistant", "content": "", "reasoning_details": [{"signature": "s1"}]}]}, "s1"),
        (RESPONSES, {"input": [{"type": "reasoning", "summary": [], "encrypted_content": "s1"}]}, "s1"),
        (GEMINI, {"contents": [{"role": "model", "parts": [{"text": "t", "thought": True, "thoughtSignature": "s1"}]}]}, "s1"),
    ],
)
def test_thinking_goes_back_to_the_target_that_made_it(endpoint: Endpoint, body: JsonObject, seal: str) -> None:
    assert {**sent(endpoint, body, own=(seal,)), "model": 0} == {**body, "model": 0}
    assert seal not in json.dumps(sent(endpoint, body, own=("another",)))


def _said_by_a_call(function: JsonObject, **more: object) -> JsonObject:
    return {"messages": [{"role": "assistant", "content": "x", "tool_calls": [{"id": "1", "function": function, **more}]}]}


@pytest.mark.parametrize(
    "endpoint, body, named",
    [
        (MESSAGES, {"messages": [{"role": "user", "content": "x"}]}, ""),
        (
            MESSAGES,
            {"messages": [], "service_tier": "auto", "container": "c"},
            "service tier (service_tier), containers (container)",
        ),
        (MESSAGES, {"messages": [], "mcp_servers": [{"name": "jira"}]}, "MCP servers (mcp_servers)"),
        (
            MESSAGES,
            {"messages": [{"role": "assistant", "content": [{"type": "thinking", "thinking": "t", "signature": "s"}]}]},
            "thinking of another provider",
        ),
        (CHAT, _said_by_a_call({"name": "f", "arguments": "{}"}), ""),
        (CHAT, _said_by_a_call({"name": "f", "thought_signature": "s"}), "thinking of another provider (signatures)"),
        (
            CHAT,
            _said_by_a_call({"name": "f"}, extra_content={"google": {"thought_signature": "s"}}),
            "thinking of another provider (signatures)",
        ),
        (CHAT, {"messages": [], "store": True, "user": "u"}, "stored answers (store), metadata (user)"),
        (RESPONSES, {"input": [{"type": "reasoning", "summary": []}]}, ""),
        (RESPONSES, {"input": [{"type": "item_reference", "id": "rs_1"}]}, "stored answers (items by reference)"),
        (RESPONSES, {"input": [{"type": "compaction", "encrypted_content": "s"}]}, "compacted history"),
        (GEMINI, {"contents": [{"parts": [{"text": "x"}]}], "labels": {"a": "b"}}, "metadata (labels)"),
        (ENVELOPE, {"model": "m", "project": "p", "request": {"contents": []}}, "metadata (project)"),
    ],
)
def test_what_stays_behind_is_named_and_nothing_else(endpoint: Endpoint, body: JsonObject, named: str) -> None:
    left = LeftOut()
    for_target(read_call(json.dumps(body).encode(), endpoint), "n", foreign=True, left=left)
    assert sorted(str(left).split(", ")) == sorted(named.split(", "))


@pytest.mark.parametrize("recorded, endpoint", [pytest.param(*pair, id=pair[0].name) for pair in CALLS])
def test_recorded_calls_leave_their_session_at_home(recorded: Recorded, endpoint: Endpoint) -> None:
    call = read_call(recorded.raw, endpoint)
    written = for_target(call, "n", foreign=True)
    for secret in _identities(call.body):
        assert secret.encode() not in written
    again = json.loads(written)
    assert again.get("model", "n") == "n"
    said = [message for message in call.messages if not message.is_sealed]
    assert len(read_call(written, Endpoint(endpoint.dialect, model="n", stream=endpoint.stream)).messages) == len(said)


def _identities(body: JsonObject) -> list[str]:
    """Every id that a recorded call names its session or installation by."""
    found = [body.get("prompt_cache_key"), body.get("user_prompt_id"), body.get("project")]
    for holder in ("metadata", "client_metadata"):
        values = body.get(holder)
        found += [value for key, value in values.items() if key != "mcp_attribution"] if isinstance(values, dict) else []
    for block in body["system"] if isinstance(body.get("system"), list) else []:
        if "billing" in block["text"]:
            found.append(block["text"])
    return [value for value in found if isinstance(value, str) and len(value) > 6]


@pytest.mark.parametrize(
    "endpoint, body",
    [
        (MESSAGES, {"model": "m", "messages": [{"role": "user", "content": "x"}]}),
        (CHAT, {"model": "m", "messages": [{"role": "user", "content": "x"}]}),
        (RESPONSES, {"model": "m", "input": "x"}),
        (GEMINI, {"contents": [{"parts": [{"text": "x"}]}]}),
        (ENVELOPE, {"model": "m", "request": {"contents": [{"parts": [{"text": "x"}]}]}}),
    ],
)
def test_edits_and_models_are_written(endpoint: Endpoint, body: JsonObject) -> None:
    raw = json.dumps(body, indent=1).encode()
    call = read_call(raw, endpoint)
    assert for_target(call, "", foreign=False) is raw
    assert sent(endpoint, body, "", foreign=True).get("model") == (None if endpoint.dialect is Dialect.GEMINI else "m")
    edit_texts(call, {(0, call.messages[0].parts[0].slot): "y"})
    assert json.loads(for_target(call, "", foreign=False)) == json.loads(json.dumps(body).replace('"x"', '"y"'))
