"""What brings each tool to the proxy."""

from __future__ import annotations

import pytest

from routecodex.addons.control.tools import ANY, TOOLS, arguments, tool_of


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("claude", "claude"),
        ("/a/b/codex", "codex"),
        ("python3.12", "python"),
        ("uvx", "python"),
        ("npx", "node"),
        ("gemini.cmd", "gemini"),
    ],
)
def test_a_tool_is_known_by_its_command(command: str, name: str) -> None:
    assert tool_of(command) is TOOLS[name]


def test_an_unknown_program_gets_all() -> None:
    assert tool_of("my-agent") is ANY
    for tool in TOOLS.values():
        assert set(tool.trusts) <= set(ANY.trusts)
        assert tool.settings.items() <= ANY.settings.items()


def test_codex_leaves_its_daemon_alone() -> None:
    codex = tool_of("codex")
    assert arguments(codex, ["resume"]) == ["--no-daemon", "resume"]
    assert arguments(codex, ["resume", "--no-daemon"]) == ["resume", "--no-daemon"]
    assert arguments(tool_of("claude"), ["-p", "x"]) == ["-p", "x"]
