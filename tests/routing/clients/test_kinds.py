"""What a call is for, and whether a client only plans, by what it says itself: alone behind its wrapper, or among other texts
of its own."""

from __future__ import annotations

import json

import pytest

from routecodex.routing.clients.claude_code import CLAUDE_CODE
from routecodex.routing.clients.codex import CODEX
from routecodex.routing.clients.kinds import is_planning, kind_of
from routecodex.routing.clients.unknown import UNKNOWN
from routecodex.routing.dialects.calls import read_call
from routecodex.routing.values import Dialect, Endpoint, Kind

PLANS, GOES_ON = (
    "Plan mode is active. The user indicated that they do not want",
    "## Exited Plan Mode\n\nYou have exited plan mode.",
)
BESIDE = "# Environment\nYou have been invoked in the following environment:\n- init: Initialize a new CLAUDE.md file"


@pytest.mark.parametrize(
    ("said", "plans"),
    [
        ([("user", f"<system-reminder>\n{PLANS}\n</system-reminder>")], True),
        ([("system", f"{BESIDE}\n\n{PLANS}"), ("assistant", "ok"), ("user", "and now?")], True),
        ([("system", f"{BESIDE}\n\n{PLANS}"), ("assistant", "ok"), ("system", GOES_ON)], False),
        ([("system", f"{GOES_ON}\n\n{PLANS}")], True),
        ([("system", f"{PLANS}\n\n{GOES_ON}\n\n{BESIDE}")], False),
        ([("system", f"{BESIDE}. {PLANS}")], False),
        ([("user", f"what is this:\n\n{PLANS}")], False),
        ([("assistant", PLANS)], False),
    ],
)
def test_the_newest_word_about_it_counts(said: list[tuple[str, str]], plans: bool) -> None:
    messages = [{"role": role, "content": text} for role, text in said]
    call = read_call(json.dumps({"model": "m", "messages": messages}).encode(), Endpoint(Dialect.MESSAGES))
    assert is_planning(call, CLAUDE_CODE) is plans
    assert not is_planning(call, CODEX)


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        (
            [
                ("system", "Generate a short, descriptive title (3-7 words) for a conversation that starts with the following."),
                ("user", "User: hi\n\nAssistant: ok"),
            ],
            Kind.TITLE,
        ),
        ([("user", "You are a summarization agent creating a context checkpoint. Treat the turns below as")], Kind.COMPACTION),
        ([("system", "You are Hermes Agent"), ("user", "generate a short, descriptive title (3-7 words)")], Kind.MAIN),
    ],
)
def test_what_hermes_agent_asks_beside_the_conversation(said: list[tuple[str, str]], kind: Kind) -> None:
    messages = [{"role": role, "content": text} for role, text in said]
    call = read_call(json.dumps({"model": "m", "messages": messages}).encode(), Endpoint(Dialect.CHAT))
    assert kind_of(call, {}, UNKNOWN) is kind
