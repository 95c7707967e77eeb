"""A tool that nobody here knows: whatever any known tool marks as its own is nobody's order here either."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from routing.clients.aider import AIDER
from routing.clients.claude_code import CLAUDE_CODE
from routing.clients.client import Client
from routing.clients.cline import CLINE
from routing.clients.codex import CODEX
from routing.clients.continue_ import CONTINUE
from routing.clients.gemini_cli import FRAME, GEMINI_CLI
from routing.clients.kimi import KIMI
from routing.clients.llm import LLM
from routing.clients.opencode import OPENCODE
from routing.clients.pi import PI
from routing.clients.qwen_code import QWEN_CODE
from routing.values import Call, Headers, Kind

KNOWN = (CLAUDE_CODE, CODEX, GEMINI_CLI, QWEN_CODE, OPENCODE, AIDER, CLINE, CONTINUE, PI, KIMI, LLM)


def _declares(call: Call, headers: Headers) -> Kind | None:
    return next((kind for client in KNOWN if (kind := client.declares(call, headers)) is not None), None)


_COMMON = frozenset({"path", "type", "content", "entries", "system", "notice", "error", "tick", "wake", "channel"})
"""Wrappers with names that stand in anybody's text: for others than their tools they hide only where they are closed."""


def _union(lists: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for names in lists for name in names))


def read_strictly(client: Client) -> Client:
    """The client with everything that any known tool marks as its own."""
    return replace(
        client,
        declares=_declares,
        signatures=tuple(one for known in KNOWN for one in known.signatures if one.kind is Kind.COMPACTION),
        wrappers=tuple(name for name in _union(known.wrappers for known in KNOWN) if name not in _COMMON),
        repeats=_union(known.repeats for known in KNOWN),
        commands=CLAUDE_CODE.commands,
        sentences=_union(known.sentences for known in KNOWN),
        retellings=_union(known.retellings for known in KNOWN),
        with_next_part=OPENCODE.with_next_part,
        with_all_behind=OPENCODE.with_all_behind,
        examples=AIDER.examples,
        behind=_union(known.behind for known in KNOWN),
        frame=FRAME,
    )


UNKNOWN = read_strictly(Client(name="unknown", title="other tools", trusts=("NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE")))
