"""F8: credentials of third parties stay at the host the client called; what is said, schemas and arguments stay as they are."""

from __future__ import annotations

import json

import pytest

from routecodex.routing.dialects.calls import for_target, read_call
from routecodex.routing.dialects.calls.credentials import without_credentials
from routecodex.routing.dialects.translation.neutral import LeftOut
from routecodex.routing.values import Dialect, Endpoint, JsonObject

C = "CANARY"
SERVER = {"type": "mcp", "server_label": "jira", "server_url": "https://mcp.example"}
TOOL = {"type": "function", "name": "f", "parameters": {"properties": {"api_key": {"type": "string"}, "headers": {}}}}
NESTED = {"type": "function", "function": {"name": "f", "parameters": {"properties": {"authorization": {"type": "string"}}}}}


def bare(body: JsonObject) -> tuple[JsonObject, str]:
    left = LeftOut()
    return without_credentials(body, left), str(left)


@pytest.mark.parametrize(
    "body, kept, named",
    [
        pytest.param({"api_key": C, "top_k": 1}, {"top_k": 1}, "credentials (api_key)", id="a gateway's key"),
        pytest.param({"extra_headers": {"x": C}}, {}, "credentials (extra_headers)", id="extra headers"),
        pytest.param({"headers": {"Authorization": C}}, {}, "credentials (headers)", id="headers"),
        pytest.param(
            {"plugins": [{"id": "web", "key": C, "max_results": 3}]},
            {"plugins": [{"id": "web", "max_results": 3}]},
            "credentials (key)",
            id="a plugin's key",
        ),
        pytest.param(
            {"providerOptions": {"gateway": {"order": ["a"], "byok": {"anthropic": [{"apiKey": C}]}}}},
            {"providerOptions": {"gateway": {"order": ["a"]}}},
            "credentials (byok)",
            id="bring your own key",
        ),
        pytest.param({"aws_access_key_id": C, "aws_session_token": C}, {}, None, id="a cloud's keys"),
        pytest.param({"vertex_credentials": {"private_key": C}, "azure_ad_token": C}, {}, None, id="other clouds' keys"),
        pytest.param(
            {"data_sources": [{"type": "azure_search", "parameters": {"authentication": {"key": C}, "index_name": "i"}}]},
            {"data_sources": [{"type": "azure_search", "parameters": {"index_name": "i"}}]},
            "credentials (authentication)",
            id="Azure's data sources",
        ),
        pytest.param(
            {"extra_body": {"deep": [{"deeper": {"client_secret": C}}]}},
            {"extra_body": {"deep": [{"deeper": {}}]}},
            "credentials (client_secret)",
            id="at any depth",
        ),
        pytest.param({"callback": f"https://user:{C}@x.example/"}, {}, "credentials (callback)", id="an address with a user"),
        pytest.param({"hook": f"https://x.example/?a=1&%6bey={C}"}, {}, "credentials (hook)", id="an address with a key"),
        pytest.param({"anything": f"Bearer {C}123456"}, {}, "credentials (anything)", id="what looks like one"),
        pytest.param({"more": ["a", f"Basic {C}123456"]}, {"more": ["a"]}, "credentials", id="in a list"),
        pytest.param({"tools": [TOOL, {**SERVER, "authorization": C}]}, {"tools": [TOOL]}, "MCP servers (jira)", id="MCP"),
        pytest.param({"tools": [{**SERVER, "headers": {"x": C}}], "tool_choice": "auto"}, {}, "MCP servers (jira)", id="alone"),
        pytest.param({"tools": [{**SERVER, "server_url": f"https://a:{C}@m.example"}]}, {}, "MCP servers (jira)", id="address"),
        pytest.param(
            {"tools": [{"type": "mcp", "mcp": {"server_label": "zh", "headers": {"Authorization": C}}}]}, {}, "MCP servers (zh)",
            id="an MCP server, nested",
        ),
        pytest.param(
            {"tools": [TOOL, {**SERVER, "headers": {"x": C}}], "tool_choice": {"type": "mcp", "server_label": "jira"}},
            {"tools": [TOOL]},
            None,
            id="chosen by name",
        ),
        pytest.param(
            {
                "tools": [TOOL, {**SERVER, "authorization": C}],
                "tool_choice": {"type": "allowed_tools", "tools": [{"type": "mcp", "server_label": "jira"}, {"name": "f"}]},
            },
            {"tools": [TOOL], "tool_choice": {"type": "allowed_tools", "tools": [{"name": "f"}]}},
            None,
            id="one choice of several",
        ),
        pytest.param(
            {"tools": [{"mcpServers": [{"name": "a", "streamableHttpTransport": {"url": "https://a", "headers": {"x": C}}},
                                       {"name": "b", "streamableHttpTransport": {"url": "https://b"}}]}]},
            {"tools": [{"mcpServers": [{"name": "b", "streamableHttpTransport": {"url": "https://b"}}]}]},
            "MCP servers (a)",
            id="Gemini's MCP servers",
        ),
        pytest.param(
            {"tools": [{"googleMaps": {"authConfig": {"apiKeyConfig": {"apiKeyString": C}}, "enableWidget": True}}]},
            {"tools": [{"googleMaps": {"enableWidget": True}}]},
            "credentials (authConfig)",
            id="Gemini's maps",
        ),
        pytest.param(
            {"tools": [{"type": "code_interpreter", "container": {"network_policy": {"domain_secrets": [{"value": C}]}}}]},
            {"tools": [{"type": "code_interpreter", "container": {"network_policy": {}}}]},
            "credentials (domain_secrets)",
            id="secrets of a container",
        ),
        pytest.param(
            {"tools": [{"type": "openrouter:web_search", "parameters": {"api_key": C, "engine": "exa"}}]},
            {"tools": [{"type": "openrouter:web_search", "parameters": {"engine": "exa"}}]},
            "credentials (api_key)",
            id="a tool that the provider runs",
        ),
        pytest.param(
            {"tools": [{"type": "namespace", "name": "n", "tools": [TOOL, {**SERVER, "authorization": C}]}]},
            {"tools": [{"type": "namespace", "name": "n", "tools": [TOOL]}]},
            "MCP servers (jira)",
            id="in a namespace",
        ),
    ],
)  # fmt: skip
def test_what_stays_behind(body: JsonObject, kept: JsonObject, named: str | None) -> None:
    assert C in json.dumps(body)
    found, left = bare(body)
    assert found == kept
    assert named is None or left == named


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({"messages": [{"role": "user", "content": "api_key=1", "api_key": C}]}, id="what is said"),
        pytest.param({"tools": [TOOL, NESTED, {"name": "g", "input_schema": {"properties": {"cookie": {}}}}]}, id="schemas"),
        pytest.param(
            {"tools": [{"functionDeclarations": [{"name": "f", "parameters": {"headers": {}}}]}]}, id="Gemini's schemas"
        ),
        pytest.param({"response_format": {"json_schema": {"schema": {"properties": {"password": {}}}}}}, id="a format"),
        pytest.param({"tools": [SERVER], "tool_choice": {"type": "mcp", "server_label": "jira"}}, id="a public MCP server"),
        pytest.param({"max_tokens": 1, "stop_token_ids": [1], "return_token_ids": True, "eos_token": "</s>"}, id="others"),
        pytest.param(
            {"tools": [{"type": "file_search", "filters": {"type": "eq", "key": "region", "value": "us"}}]}, id="a filter"
        ),
        pytest.param({"site": "https://x.example/?q=1", "mail": "mailto:a@b", "when": "at 5 @ noon"}, id="addresses"),
        pytest.param({"api_key": "", "authorization": None, "headers": {}, "auth": False}, id="nothing in it"),
        pytest.param({"tools": []}, id="no tools"),
        pytest.param({"tools": "none", "plugins": 3}, id="what is no list"),
        pytest.param({"tools": [3, None]}, id="what is no tool"),
    ],
)
def test_what_travels_as_it_is(body: JsonObject) -> None:
    before = json.dumps(body)
    found, left = bare(body)
    assert found is body
    assert json.dumps(found) == before
    assert left == ""


def test_tools_that_stand_in_the_input() -> None:
    body = {
        "model": "m",
        "input": [
            {"type": "additional_tools", "tools": [TOOL, {**SERVER, "authorization": C}]},
            {"type": "message", "role": "user", "content": f"authorization: {C}"},
            {"type": "function_call", "name": "f", "call_id": "1", "arguments": json.dumps({"api_key": C})},
        ],
    }
    left = LeftOut()
    raw = json.dumps(body).encode()
    sent = json.loads(for_target(read_call(raw, Endpoint(Dialect.RESPONSES)), "n", foreign=True, left=left))
    assert sent["input"] == [{"type": "additional_tools", "tools": [TOOL]}, *body["input"][1:]]  # type: ignore[misc]
    assert str(left) == "MCP servers (jira)"
    home = LeftOut()
    assert for_target(read_call(raw, Endpoint(Dialect.RESPONSES)), "m", foreign=False, left=home) == raw
    assert str(home) == ""
