"""OpenAI Chat, a provider's call: how much it is to think, in the fields of each host.

1. Nothing is sent where the client said nothing, but for the one case in which OpenAI would refuse the call.
2. What a host cannot say is named: as its nearest word where there is one, else as left out.
3. A host that nobody knows is told nothing: models that do not think answer such fields with an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from msgspec import Struct

from ....values import JsonObject
from ..neutral import Effort, Feature, LeftOut, Reasoning
from .chat_hosts import Host, samples_freely

_ORDER: tuple[Effort, ...] = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
_BUDGETS: tuple[tuple[int, Effort], ...] = ((2_048, "low"), (12_288, "medium"))
"""Up to so many tokens → effort; `high` beyond."""

_EFFORTS: tuple[tuple[re.Pattern[str], tuple[Effort, ...]], ...] = (
    (re.compile(r"o\d"), ("low", "medium", "high")),
    (re.compile(r"gpt-5(?!\.)"), ("minimal", "low", "medium", "high")),
    (re.compile(r"gpt-5\.1(?!\d|-codex-max)"), ("none", "low", "medium", "high")),
    (re.compile(r"gpt-5\.[1-5](?!\d)"), ("none", "low", "medium", "high", "xhigh")),
    (re.compile(r""), ("none", "low", "medium", "high", "xhigh", "max")),
)
"""What OpenAI's models take, by how their names begin: the first that fits."""
_NOT_WITH_TOOLS = re.compile(r"gpt-(?:5\.(?:[2-9]|\d\d)|[6-9]|[12]\d)(?!.*-chat)")
"""OpenAI's models that take function tools in this dialect only while they do not think; the newer ones want to hear so."""
_SWITCHED_OFF_GEMINI = re.compile(r"gemini-2\.5-flash")


def _distance(one: Effort, other: Effort) -> int:
    return abs(_ORDER.index(one) - _ORDER.index(other))


class Asked(Struct, frozen=True):
    reasoning: Reasoning
    model: str
    """In lower case, without what stands before a slash."""
    tools: bool
    stream: bool
    left: LeftOut

    @property
    def off(self) -> bool:
        return self.reasoning.on is False or self.reasoning.effort == "none"

    def effort(self) -> Effort | None:
        """As the client said it; from its budget where it said only that."""
        if self.off:
            return "none"
        asked, budget = self.reasoning.effort, self.reasoning.budget
        if budget is not None:
            near = asked or next((effort for most, effort in _BUDGETS if budget <= most), "high")
            self.left.add(Feature.BUDGET, f"{budget} as {near}")
            return near
        return asked

    def near(self, allowed: tuple[Effort, ...]) -> Effort | None:
        wanted = self.effort()
        if wanted is None or wanted in allowed:
            return wanted
        thinking = [effort for effort in allowed if effort != "none"]
        found = min(thinking, key=lambda effort: (_distance(effort, wanted), _distance(effort, "high")))
        self.left.add(Feature.EFFORT, f"{wanted} as {found}")
        return found

    def amount_unsaid(self) -> None:
        """The host can think or not think; how much is left out."""
        if not self.off and self.reasoning.effort:
            self.left.add(Feature.EFFORT, self.reasoning.effort)
        if not self.off and self.reasoning.budget:
            self.left.add(Feature.BUDGET, str(self.reasoning.budget))

    @property
    def said(self) -> bool:
        reasoning = self.reasoning
        return reasoning.on is not None or reasoning.effort is not None or reasoning.budget is not None


def write_reasoning(reasoning: Reasoning, host: Host, model: str, *, tools: bool, stream: bool, left: LeftOut) -> JsonObject:
    asked = Asked(reasoning, model.lower().rpartition("/")[2], tools, stream, left)
    if host.thinking == "openai" and tools and _NOT_WITH_TOOLS.match(asked.model):
        if not asked.off:
            left.add(Feature.EFFORT, "with tools the model thinks in Responses only")
        return {"reasoning_effort": "none"}
    return _STYLES[host.thinking](asked) if asked.said else {}


def thinks(reasoning: Reasoning) -> bool:
    """Whether the call leaves the host's thinking on: hosts that can think do so unasked."""
    return reasoning.on is not False and reasoning.effort != "none"


def _openai(asked: Asked) -> JsonObject:
    if samples_freely(asked.model):
        return {} if asked.off else _unknown(asked)
    allowed = next(efforts for pattern, efforts in _EFFORTS if pattern.match(asked.model))
    return _effort(asked.near(allowed))


def _openrouter(asked: Asked) -> JsonObject:
    if asked.off:
        return {"reasoning": {"enabled": False}}
    if asked.reasoning.effort is None and asked.reasoning.budget is not None:
        return {"reasoning": {"max_tokens": asked.reasoning.budget}}
    effort = asked.near(("minimal", "low", "medium", "high", "xhigh"))
    return {"reasoning": {"effort": effort} if effort else {"enabled": True}}


def _deepseek(asked: Asked) -> JsonObject:
    """It takes every word, and says which of its own each means."""
    return _switched(asked) | ({} if asked.off else _effort(asked.effort()))


def _switch(asked: Asked) -> JsonObject:
    asked.amount_unsaid()
    return _switched(asked)


def _kimi(asked: Asked) -> JsonObject:
    if asked.model.startswith("moonshot-"):
        return _unknown(asked)
    if not asked.model.startswith("kimi-k3"):
        return _switch(asked)
    return _effort(asked.near(("low", "high", "max")))


def _qwen(asked: Asked) -> JsonObject:
    """Its open models refuse to think in an answer that is not streamed."""
    if asked.off:
        return {"enable_thinking": False}
    if not asked.stream:
        return _unknown(asked)
    if asked.reasoning.effort:
        asked.left.add(Feature.EFFORT, asked.reasoning.effort)
    budget = asked.reasoning.budget
    return {"enable_thinking": True} | ({"thinking_budget": budget} if budget else {})


def _minimax(asked: Asked) -> JsonObject:
    asked.amount_unsaid()
    return {"thinking": {"type": "disabled" if asked.off else "adaptive"}}


def _google(asked: Asked) -> JsonObject:
    allowed: tuple[Effort, ...] = ("minimal", "low", "medium", "high")
    return _effort(asked.near(("none", *allowed) if _SWITCHED_OFF_GEMINI.match(asked.model) else allowed))


def _gpt_oss(asked: Asked) -> JsonObject:
    return _effort(asked.near(("low", "medium", "high"))) if "gpt-oss" in asked.model else _unknown(asked)


def _unknown(asked: Asked) -> JsonObject:
    if "gpt-oss" in asked.model:
        return _effort(asked.near(("low", "medium", "high")))
    if asked.reasoning.effort and not asked.off:
        asked.left.add(Feature.EFFORT, asked.reasoning.effort)
    elif asked.reasoning.budget and not asked.off:
        asked.left.add(Feature.BUDGET, str(asked.reasoning.budget))
    else:
        asked.left.add(Feature.EFFORT, "thinking off" if asked.off else "thinking on")
    return {}


def _effort(effort: Effort | None) -> JsonObject:
    return {"reasoning_effort": effort} if effort else {}


def _switched(asked: Asked) -> JsonObject:
    return {"thinking": {"type": "disabled" if asked.off else "enabled"}}


_STYLES: dict[str, Callable[[Asked], JsonObject]] = {
    "": _unknown,
    "openai": _openai,
    "openrouter": _openrouter,
    "deepseek": _deepseek,
    "switch": _switch,
    "kimi": _kimi,
    "qwen": _qwen,
    "minimax": _minimax,
    "google": _google,
    "gpt-oss": _gpt_oss,
}
