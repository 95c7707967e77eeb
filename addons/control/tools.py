"""What brings each tool to the proxy: one row per command, as the README's table says it, each tried."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePath

BUNDLES = frozenset({"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"})
"""These replace the system's authorities; the others add to them."""


@dataclass(frozen=True, slots=True)
class Tool:
    trusts: tuple[str, ...]
    """Variables through which all its parts trust the proxy."""
    settings: Mapping[str, str] = field(default_factory=dict)
    first: tuple[str, ...] = ()
    """Arguments that it needs before its others."""
    not_before: frozenset[str] = frozenset()
    """… but not where its first word is one of these."""
    bases: Mapping[str, str] = field(default_factory=dict)
    """Variables that lead it to another address, and where it goes without them."""
    avoid: tuple[str, ...] = ()
    """Variables that make it ask in a way that we do not read."""


_NODE = Tool(("NODE_EXTRA_CA_CERTS",))
_ANTHROPIC = {"ANTHROPIC_BASE_URL": "https://api.anthropic.com"}
_OPENAI = {"OPENAI_BASE_URL": "https://api.openai.com"}
_GEMINI = {"GOOGLE_GEMINI_BASE_URL": "https://generativelanguage.googleapis.com"}

_CODEX_WITHOUT_INTERFACE = frozenset(
    "exec e review login logout mcp plugin mcp-server app-server remote-control completion update doctor sandbox debug apply a "
    "archive delete unarchive cloud features help exec-server --help -h --version -V".split()
)

TOOLS: Mapping[str, Tool] = {
    "claude": Tool(
        ("NODE_EXTRA_CA_CERTS",), bases=_ANTHROPIC, avoid=("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY")
    ),
    "codex": Tool(("CODEX_CA_CERTIFICATE",), first=("--no-daemon",), not_before=_CODEX_WITHOUT_INTERFACE, bases=_OPENAI),
    "gemini": Tool(("NODE_EXTRA_CA_CERTS",), bases=_GEMINI, avoid=("GOOGLE_GENAI_USE_VERTEXAI",)),
    "qwen": Tool(("NODE_EXTRA_CA_CERTS",), bases=_OPENAI),
    "opencode": _NODE,
    "pi": _NODE,
    "cn": _NODE,
    "kimi": _NODE,
    "cline": _NODE,
    "aider": Tool(("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"), bases={**_ANTHROPIC, "OPENAI_API_BASE": "https://api.openai.com"}),
    "llm": Tool(("SSL_CERT_FILE",), bases={**_ANTHROPIC, **_OPENAI}),
    "node": Tool(("NODE_EXTRA_CA_CERTS",), {"NODE_USE_ENV_PROXY": "1"}, bases={**_ANTHROPIC, **_OPENAI}),
    "python": Tool(("SSL_CERT_FILE",), bases={**_ANTHROPIC, **_OPENAI}),
}
_LIKE = {"npx": "node", "tsx": "node", "bun": "node", "uv": "python", "uvx": "python", "ipython": "python"}

ANY = Tool(
    ("NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CODEX_CA_CERTIFICATE"),
    {"NODE_USE_ENV_PROXY": "1"},
    bases={**_ANTHROPIC, **_OPENAI, **_GEMINI},
)
"""A program that we do not know gets all of them."""


def tool_of(command: str) -> Tool:
    name = PurePath(command).name.lower().removesuffix(".exe").removesuffix(".cmd")
    if name.startswith("python"):
        name = "python"
    return TOOLS.get(_LIKE.get(name, name), ANY)


def arguments(tool: Tool, given: list[str]) -> list[str]:
    if not tool.first or (given and given[0] in tool.not_before) or set(tool.first) <= set(given):
        return given
    return [*tool.first, *given]
