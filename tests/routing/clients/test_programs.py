"""Which client is typed in the shell."""

from __future__ import annotations

import pytest

from routecodex.routing.clients.claude_code import CLAUDE_CODE
from routecodex.routing.clients.client import Client
from routecodex.routing.clients.codex import CODEX
from routecodex.routing.clients.gemini_cli import GEMINI_CLI
from routecodex.routing.clients.programs import arguments, base_url_line, client_of_program
from routecodex.routing.clients.sdk import SDK, SDKS
from routecodex.routing.clients.unknown import KNOWN, UNKNOWN
from routecodex.routing.values import Dialect


@pytest.mark.parametrize(
    ("command", "client"),
    [
        ("claude", CLAUDE_CODE),
        ("/a/b/codex", CODEX),
        ("python3.12", SDK),
        ("uvx", SDK),
        ("npx", SDK),
        ("gemini.cmd", GEMINI_CLI),
        ("my-agent", UNKNOWN),
    ],
)
def test_a_client_is_known_by_its_program(command: str, client: Client) -> None:
    assert client_of_program(command) is client


def test_an_unknown_program_gets_whatever_any_client_needs() -> None:
    for client in (*KNOWN, *SDKS):
        assert set(client.needs) <= set(UNKNOWN.needs)
        assert client.settings.items() <= UNKNOWN.settings.items()
        assert {name for name in client.bases if not name.startswith("-")} <= set(UNKNOWN.bases)
        assert set(client.avoid) <= set(UNKNOWN.avoid)


def test_codex_leaves_its_daemon_alone() -> None:
    assert arguments(CODEX, ["resume"]) == ["--no-daemon", "resume"]
    assert arguments(CODEX, ["resume", "--no-daemon"]) == ["resume", "--no-daemon"]
    assert arguments(CLAUDE_CODE, ["-p", "x"]) == ["-p", "x"]


@pytest.mark.parametrize(
    ("agent", "dialect", "program", "variable"),
    [
        ("claude-cli/2.1.327 (external, cli)", Dialect.MESSAGES, "claude", "ANTHROPIC_BASE_URL=http://127.0.0.1:8081"),
        ("codex_cli_rs/0.169.0", Dialect.RESPONSES, "codex", '-c openai_base_url="http://127.0.0.1:8081/v1"'),
        ("litellm/1.81", Dialect.CHAT, "aider", "OPENAI_API_BASE=http://127.0.0.1:8081/v1"),
        ("OpenAI/Python 3.51.0", Dialect.CHAT, "python", "OPENAI_BASE_URL=http://127.0.0.1:8081/v1"),
        ("opencode/1.18.33", Dialect.MESSAGES, "TOOL", "ANTHROPIC_BASE_URL=http://127.0.0.1:8081"),
        ("GeminiCLI/0.61.0", Dialect.GEMINI, "gemini", "GOOGLE_GEMINI_BASE_URL=http://127.0.0.1:8081"),
        ("curl/8", None, "TOOL", "ANTHROPIC_BASE_URL="),
    ],
)
def test_the_line_for_a_tool_without_a_proxy(agent: str, dialect: Dialect | None, program: str, variable: str) -> None:
    line = base_url_line(agent, dialect)
    assert f"`routecodex run --base-url {program}`" in line
    assert variable in line
