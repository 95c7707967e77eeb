"""Calls as they were seen, for tests."""

from __future__ import annotations

from routecodex.routing.dialects.translation.neutral import Tokens
from routecodex.routing.telemetry.seen import Seen
from routecodex.routing.turn.actions import Failed
from routecodex.routing.values import Dialect, ProviderError, Target

GLM, OPENAI = Target("glm", "k1", "glm-4.7"), Target("openai", "k1", "gpt-5.2")
TOKENS = Tokens(1000, 50, cached=600, written=100, reasoning=20)
CALL = "0b5e2c1e-3a52-4a7e-9d0c-5a0d4f7b1c11"
OPENAI_URL = "https://api.openai.com/v1/chat/completions"


def seen(**more: object) -> Seen:
    """A key that is limited, another provider's answer, and a round that a stopMessage asked for."""
    call = Seen(100.0, 1_780_000_000.0, CALL, "@alice:s", "alice", "claude-code", 'claude "x"\\\n')
    call.begins("first", GLM, "http://glm.example:8081/v1/chat/completions", Dialect.CHAT, 100.1)
    for _ in range(2):
        call.failed(_LIMITED, 100.5)
    call.begins("retry", OPENAI, OPENAI_URL, Dialect.CHAT, 100.5)
    call.first = 101.0
    call.begins("round 2:stop_followup", OPENAI, OPENAI_URL, Dialect.CHAT, 102.0)
    call.answered([(OPENAI, TOKENS), (OPENAI, None)])
    call.reminders, call.rested_s = 2, 0.25
    for name, value in more.items():
        setattr(call, name, value)
    return call.over("200", 104.0)


_LIMITED = Failed(ProviderError(429, "slow down"), None, b"")
