"""What a program expects that was made for one host, told by where it was going: some libraries read what that host says, and
nothing else of the same dialect."""

from __future__ import annotations

_WHOLE_CALLS = ("mistral.ai", "x.ai", "bigmodel.cn", "z.ai")
"""These tell each call of a Chat stream in one delta."""
_TELLS_COST = ("openrouter.ai", "cerebras.ai")
"""These tell what a stream has cost though nobody asks."""


def tells_whole_calls(host: str) -> bool:
    return _is_one(host, _WHOLE_CALLS)


def tells_cost(host: str) -> bool:
    return _is_one(host, _TELLS_COST)


def _is_one(host: str, known: tuple[str, ...]) -> bool:
    return host.endswith(known) and any(host == one or host.endswith(f".{one}") for one in known)
