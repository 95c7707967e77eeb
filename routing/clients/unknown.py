"""A tool that nobody here knows: whatever any known tool marks as its own is nobody's order here either."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from ..values import Call, Headers, Kind
from .aider import AIDER, CECLI
from .claude_code import CLAUDE_CODE
from .client import Client, Signature
from .cline import CLINE
from .code_puppy import CODE_PUPPY
from .codex import CODEX
from .continue_ import CONTINUE
from .copilot import COPILOT
from .deepagents import DEEPAGENTS
from .gemini_cli import FRAME, GEMINI_CLI
from .gptme import GPTME
from .kilo import KILO
from .kimi import KIMI
from .llm import LLM
from .mini_swe_agent import MINI_SWE_AGENT
from .opencode import OPENCODE
from .openhands import OPENHANDS
from .pi import PI
from .qwen_code import QWEN_CODE
from .vibe import VIBE

KNOWN = (
    *(CLAUDE_CODE, CODEX, GEMINI_CLI, QWEN_CODE, OPENCODE, AIDER, CECLI, CLINE, CONTINUE, PI, KIMI, LLM, COPILOT, KILO, VIBE),
    *(GPTME, CODE_PUPPY, OPENHANDS, DEEPAGENTS, MINI_SWE_AGENT),
)


def _declares(call: Call, headers: Headers) -> Kind | None:
    return next((kind for client in KNOWN if (kind := client.declares(call, headers)) is not None), None)


_NO_END = r"(?!)"
_NAMELESS = (
    # People lead it here by its base URL: it goes round any proxy by itself.
    Client(name="nanocoder", title="nanocoder", attached=((r"=== File: [^\n=]{1,255} ===\n", r"^={16,}"),)),
    Client(
        name="hermes",
        title="Hermes Agent",
        signatures=(
            Signature("system", "generate a short, descriptive title (3-7 words) for a conversation", Kind.TITLE),
            Signature("last", "you are a summarization agent creating a context checkpoint.", Kind.COMPACTION),
        ),
        attached=((r"^--- Attached Context ---$", _NO_END),),
        sentences=(
            *(
                "[important: background process ",
                "[important: mcp servers have been reloaded.",
                "[background process ",
                "[system: ",
            ),
            "review the conversation above and ",
        ),
        # A skill, and what the person typed behind its name
        retellings=("[important: the user has invoked the ", "[important: the user launched this cli session with the "),
    ),
    # What a tool came to, told as the user's text; it may hold anything, what would end it, too. Some explain the form first.
    Client(
        name="libraries",
        title="smolagents, LlamaIndex, LangChain, DSPy",
        attached=((r"^(?:Observation:(?! the result of the action\b)|\[\[ ## observation_\d+ ## \]\]$)", _NO_END),),
    ),
    # So may the diff that is to be described.
    Client(name="aicommits", title="aicommits", attached=((r"^diff --git a/.* b/", _NO_END),)),
)
"""Nothing tells these from others: what they put beside a person's words hides in anybody's text."""
_COMMON = frozenset(
    (
        "browser",
        "channel",
        "context",
        "file",
        "notification",
        "permissions",
        "rule",
        "skill",
        "system",
        "terminal",
        "tick",
        "wake",
    )
)
"""Wrappers with names that stand in anybody's text: for others than their tools they hide only where they are closed."""


def _union(lists: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for names in lists for name in names))


def read_strictly(client: Client) -> Client:
    """The client with everything that any tool marks as its own."""
    marks = (*KNOWN, *_NAMELESS)
    compactions = (one for known in KNOWN for one in known.signatures if one.kind is Kind.COMPACTION)
    return replace(
        client,
        declares=_declares,
        signatures=(*compactions, *(one for nameless in _NAMELESS for one in nameless.signatures)),
        wrappers=tuple(name for name in _union(known.wrappers for known in KNOWN) if name not in _COMMON),
        repeats=_union(known.repeats for known in KNOWN),
        transcript=(("user", "human"), ("assistant", "ai")),
        attached=tuple(pair for one in marks for pair in one.attached),
        commands=CLAUDE_CODE.commands,
        sentences=_union(one.sentences for one in marks),
        retellings=_union(one.retellings for one in marks),
        with_next_part=OPENCODE.with_next_part,
        with_all_behind=OPENCODE.with_all_behind,
        printed=PI.printed,
        contexts=CODEX.contexts,
        requests=CODEX.requests,
        examples=AIDER.examples,
        before=COPILOT.before,
        behind=_union(known.behind for known in KNOWN),
        frame=FRAME,
        cuts=_union(known.cuts for known in KNOWN),
    )


UNKNOWN = read_strictly(
    Client(
        name="unknown",
        title="other tools",
        # What brings it to the proxy: whatever any tool needs
        trusts=("NODE_EXTRA_CA_CERTS",),
        trusts_also=tuple(
            name for name in (*_union(known.needs for known in KNOWN), "CURL_CA_BUNDLE") if name != "NODE_EXTRA_CA_CERTS"
        ),
        settings={"NODE_USE_ENV_PROXY": "1"},
        bases={name: where for known in KNOWN for name, where in known.bases.items() if not name.startswith("-")},
        avoid=_union(known.avoid for known in KNOWN),
    )
)
