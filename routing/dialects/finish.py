"""Why an answer ended: the one table of finish reasons, in both directions, for all four dialects.

1. What the answer holds decides: with a tool call the reason is the tool reason, whatever the provider wrote.
2. A word that the target's dialect itself knows passes as it is (`stop_sequence`, `pause_turn`, `function_call`, …).
3. Only a missing reason is inferred: tool call, then error, then a plain stop.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from ..values import Dialect, FinishReason

ContentFilter = Literal["stop_sequence", "refusal"]
MessageStop = Literal["always", "never"]

_COLUMNS = (Dialect.MESSAGES, Dialect.CHAT, Dialect.RESPONSES, Dialect.GEMINI)
_WRITTEN: dict[FinishReason, tuple[str, str, str, str]] = {
    "stop": ("end_turn", "stop", "completed", "STOP"),
    "length": ("max_tokens", "length", "max_output_tokens", "MAX_TOKENS"),
    "tool_calls": ("tool_use", "tool_calls", "completed", "STOP"),
    "content_filter": ("stop_sequence", "content_filter", "content_filter", "SAFETY"),
    "error": ("stop_sequence", "error", "failed", "OTHER"),
}
_CALLS_UNSAID = frozenset(("STOP", "completed"))
"""Words that end an answer with tool calls as well: nothing is overruled."""

_OWN: dict[Dialect, dict[str, FinishReason]] = {
    Dialect.MESSAGES: {
        "end_turn": "stop",
        "stop_sequence": "stop",
        "pause_turn": "stop",
        "max_tokens": "length",
        "model_context_window_exceeded": "length",
        "tool_use": "tool_calls",
        "refusal": "content_filter",
    },
    Dialect.CHAT: {
        "stop": "stop",
        "length": "length",
        "tool_calls": "tool_calls",
        "function_call": "tool_calls",
        "content_filter": "content_filter",
        "error": "error",
    },
    Dialect.RESPONSES: {
        "completed": "stop",
        "max_output_tokens": "length",
        "content_filter": "content_filter",
        "failed": "error",
        "cancelled": "error",
    },
    Dialect.GEMINI: {
        "STOP": "stop",
        "MAX_TOKENS": "length",
        "SAFETY": "content_filter",
        "RECITATION": "content_filter",
        "LANGUAGE": "content_filter",
        "BLOCKLIST": "content_filter",
        "PROHIBITED_CONTENT": "content_filter",
        "SPII": "content_filter",
        "IMAGE_SAFETY": "content_filter",
        "IMAGE_PROHIBITED_CONTENT": "content_filter",
        "IMAGE_RECITATION": "content_filter",
        "MODEL_ARMOR": "content_filter",
        "MALFORMED_FUNCTION_CALL": "error",
        "UNEXPECTED_TOOL_CALL": "error",
        "TOO_MANY_TOOL_CALLS": "error",
        "MALFORMED_RESPONSE": "error",
        "MISSING_THOUGHT_SIGNATURE": "error",
        "IMAGE_OTHER": "error",
        "NO_IMAGE": "error",
        "OTHER": "error",
    },
}
"""Each dialect's own words."""

_VENDORS: dict[str, FinishReason] = {
    "eos": "stop",
    "eos_token": "stop",
    "complete": "stop",
    "done": "stop",
    "model_length": "length",
    "max_length": "length",
    "max_output": "length",
    "incomplete": "length",
    "tool_call": "tool_calls",
    "sensitive": "content_filter",
    "safety_filter": "content_filter",
    "network_error": "error",
    "insufficient_system_resource": "error",
    "abort": "error",
}
"""Words of providers that speak a dialect loosely."""

_MISSING = frozenset(("", "null", "none", "finish_reason_unspecified"))
_NEUTRAL: dict[str, FinishReason] = {word.lower(): reason for own in _OWN.values() for word, reason in own.items()} | _VENDORS


@dataclass(frozen=True, slots=True)
class Finish:
    """A finish reason: for us, in the target's words, and what there is to say about it."""

    reason: FinishReason
    word: str
    note: str = ""


def read_finish(word: object) -> FinishReason | None:
    """Any dialect's word as ours; None where it is missing or unknown."""
    return _NEUTRAL.get(word.strip().lower()) if isinstance(word, str) else None


def infer_finish(*, calls: bool, error: bool = False) -> FinishReason:
    """Why an answer ended that did not say so."""
    return "tool_calls" if calls else "error" if error else "stop"


def write_finish(reason: FinishReason, target: Dialect, *, content_filter: ContentFilter = "stop_sequence") -> str:
    if reason == "content_filter" and target is Dialect.MESSAGES:
        return content_filter
    return _WRITTEN[reason][_COLUMNS.index(target)]


def decide_finish(
    word: object,
    target: Dialect,
    *,
    calls: bool | None = None,
    error: bool = False,
    content_filter: ContentFilter = "stop_sequence",
) -> Finish:
    """The finish reason of an answer in the target's dialect.

    `calls` says whether the answer holds tool calls (None: not known, believe the word); `error` that it broke.
    """
    given = word.strip() if isinstance(word, str) else ""
    note = ""
    if given.lower() in _MISSING:
        reason: FinishReason = infer_finish(calls=bool(calls), error=error)
        note = f"no finish reason given, taken as {reason}"
    elif (known := read_finish(given)) is None:
        reason, note = "stop", f"unknown finish reason {given[:80]!r} taken as a plain stop"
    else:
        reason = known
    if calls and reason != "tool_calls":
        reason, note = "tool_calls", note or _overruled(given, "tool calls are there")
    elif calls is False and reason == "tool_calls":
        reason, note = "stop", _overruled(given, "no tool call is there")
    if _OWN[target].get(given) == reason:
        return Finish(reason, given, note)
    return Finish(reason, write_finish(reason, target, content_filter=content_filter), note)


def read_response_finish(response: dict[str, object]) -> str:
    """The word for how a Responses object ended: its status, or why it is incomplete."""
    status = response.get("status")
    if status == "incomplete":
        details = response.get("incomplete_details")
        reason = details.get("reason") if isinstance(details, dict) else None
        return reason if isinstance(reason, str) and reason else "max_output_tokens"
    return status if isinstance(status, str) else ""


def response_status(reason: FinishReason) -> tuple[str, str | None]:
    """A Responses object's status, and the reason where it is incomplete."""
    word = write_finish(reason, Dialect.RESPONSES)
    return (word, None) if word in ("completed", "failed") else ("incomplete", word)


def sends_message_stop(stop_reason: object, tool_use: MessageStop = "always") -> bool:
    """Whether a Messages stream ends with `message_stop`. Anything but "always" makes real clients hang or throw."""
    return tool_use == "always" or stop_reason != "tool_use"


@dataclass(frozen=True, slots=True)
class Endings:
    """How ends of answers are read and written: what a person chose (`finishReasons`), and who hears of it."""

    message_stop: MessageStop = "always"
    content_filter: ContentFilter = "stop_sequence"
    log: Callable[[str], None] | None = None
    """Hears a line for each mapping."""

    @property
    def matter(self) -> bool:
        """An answer of one round, too, must be looked at for them."""
        return self.log is not None or self.message_stop != "always"

    def named(self, name: str) -> Endings:
        """The same; each line says of which answer it tells."""
        log = self.log
        return self if log is None else replace(self, log=lambda line: log(f"{name}: {line}"))

    def read(self, word: object, dialect: Dialect, *, calls: bool, error: bool = False) -> FinishReason:
        """Why a provider's answer ended."""
        finish = decide_finish(word, dialect, calls=calls, error=error)
        self._tell(word, f"taken as {finish.reason}", dialect, finish)
        return finish.reason

    def write(self, word: object, target: Dialect, *, calls: bool) -> str:
        """The client's word for why the whole answer ended; `word`: the provider's."""
        finish = decide_finish(word, target, calls=calls, content_filter=self.content_filter)
        self._tell(word, f"written as {finish.word}", target, finish)
        return finish.word

    def _tell(self, word: object, what: str, dialect: Dialect, finish: Finish) -> None:
        if self.log is not None:
            given = ascii(word[:80]) if isinstance(word, str) else type(word).__name__ if word is not None else "nothing"
            self.log(f"{dialect}: {given} {what}" + (f" ({finish.note})" if finish.note else ""))


AS_USUAL = Endings()


def _overruled(word: str, why: str) -> str:
    return "" if word in _CALLS_UNSAID else f"finish reason {word[:80]!r} overruled: {why}"
