"""Who sent a call, and what for: client, kind of call, session, prompt, working directory.

1. What a client says itself decides: headers first, then metadata in the body, then what its texts begin with.
2. The working directory is read only from text that tools wrote.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..values import Call, Caller, Headers, Text
from .ids import conversation_of, prompt_of, session_of
from .kinds import kind_of, system_head


def identify(call: Call, headers: Headers, path: str, host: str) -> Caller:
    """What the headers (lower-case names) and the body of a call tell about its sender."""
    client = _client(call, headers)
    session = session_of(call, headers, client)
    return Caller(
        client=client,
        kind=kind_of(call, headers, client),
        session=session,
        conversation=conversation_of(call, headers, session),
        prompt=prompt_of(call, headers, session),
    )


_AGENTS = (
    ("claude-cli/", "claude-code"),
    ("claude-code/", "claude-code"),
    ("codex", "codex"),
    ("geminicli", "gemini-cli"),
    ("qwencode", "qwen-code"),
    ("opencode/", "opencode"),
    ("kimi", "kimi-code"),
    ("litellm/", "aider"),
)
"""How user agents begin, in lower case."""

_OWN_HEADERS = (
    ("x-claude-code-session-id", "claude-code"),
    ("x-claude-code-request-class", "claude-code"),
    ("x-codex-turn-metadata", "codex"),
)

_INTRODUCTIONS = (
    ("you are cline,", "cline"),
    ("you are an agent in the continue cli", "continue"),
    ("operating inside pi, a coding agent harness", "pi"),
    ("act as an expert software developer", "aider"),
    ("act as an expert code analyst", "aider"),
)
"""What the system text says to whom the user agent is only a library."""

KNOWN_CLIENTS = frozenset(name for _, name in (*_AGENTS, *_OWN_HEADERS, *_INTRODUCTIONS))


def _client(call: Call, headers: Headers) -> str:
    agent = headers.get("user-agent", "").strip().lower()[:200]
    for header, name in _OWN_HEADERS:
        if header in headers:
            return name
    for start, name in _AGENTS:
        if agent.startswith(start):
            return name
    system = system_head(call)
    for phrase, name in _INTRODUCTIONS:
        if phrase in system:
            return name
    first_word = agent.split(maxsplit=1)[0] if agent else ""
    return re.sub(r"/[\d.].*$|[^a-z0-9_./-]", "", first_word)[:64] or "unknown"


_ASK_AGAIN = ("claude-code", "opencode", "anthropic/", "asyncanthropic/", "openai/", "asyncopenai/")


def asks_again(client: str) -> bool:
    """Whether it bears a 429: waits as `Retry-After` says, tries again, and shows the sentence if that does not help."""
    return client.startswith(_ASK_AGAIN)


_WORKDIR = re.compile(
    r"(?:\b(?:Primary working directory|Working directory|working in the directory):[ \t]*"
    r"|Workspace Directories:\*{0,2}[ \t]*\n[ \t]*-[ \t]*"
    r"|<cwd>)"
    r"([^\n<>\x00]{1,4096})"
)
_ABSOLUTE = re.compile(r"/|[A-Za-z]:[\\/]|\\\\")
_ENVIRONMENTS = ("<environment_context>", "<session_context>", "<system-reminder>\nThis is the ")
"""How parts of a user's message begin in which tools describe where they run."""
_LONGEST_SEARCHED = 100_000


def workdir_of(call: Call) -> str | None:
    """The newest one that a tool states."""
    for text in _environment_texts(call):
        for found in reversed(_WORKDIR.findall(text[:_LONGEST_SEARCHED])):
            if _ABSOLUTE.match(path := str(found).strip()):
                return path
    return None


def _environment_texts(call: Call) -> Iterator[str]:
    """Newest first, the instructions last."""
    for message in reversed(call.messages):
        for part in reversed(message.parts):
            if isinstance(part, Text) and (
                message.role == "system" or (message.role == "user" and part.text.startswith(_ENVIRONMENTS))
            ):
                yield part.text
    yield call.system
