"""Why an answer ended: the one table of finish reasons, in both directions, for all four dialects.

1. What the answer holds decides between a stop and the tool reason: complete tool calls win over a plain stop, and over words
   that nobody knows. They win over no cut (length, a filter, an error): half an answer is never told as a whole one.
2. A word that the target's dialect itself knows passes as it is (`stop_sequence`, `pause_turn`, `function_call`, …).
3. Only a missing reason is inferred: tool call, then error, then a plain stop.
4. What is not known corrects nothing: an answer that nobody read, calls that broke off, calls that the provider runs itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from ..values import Dialect, FinishReason, JsonObject
from .fields import object_of, read_json, text_of

CUT_OFF = "The provider's stream ended without its last event."

ContentFilter = Literal["stop_sequence", "refusal"]
MessageStop = Literal["always", "never"]

_CALLS_UNSAID = frozenset(("STOP", "completed"))
"""Words that end an answer with tool calls as well: nothing is overruled."""
_INTERRUPTED = frozenset(("pause_turn", "compaction"))
"""Anthropic's words for an answer that its provider goes on with: calls beside them are not the reason."""
_CALL_FAILED = frozenset(("malformed_function_call", "unexpected_tool_call", "too_many_tool_calls", "malformed_tool_use"))
"""The model's own call failed, and nothing else did. Other dialects have no word for that: their answer just ends."""

_OWN: dict[Dialect, dict[str, FinishReason]] = {
    Dialect.MESSAGES: {
        "end_turn": "stop",
        "stop_sequence": "stop",
        "pause_turn": "stop",
        "compaction": "stop",
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
        "OTHER": "error",
        "MALFORMED_FUNCTION_CALL": "error",
        "UNEXPECTED_TOOL_CALL": "error",
        "TOO_MANY_TOOL_CALLS": "error",
        "MALFORMED_RESPONSE": "error",
        "MISSING_THOUGHT_SIGNATURE": "error",
        "IMAGE_OTHER": "error",
        "NO_IMAGE": "error",
    },
}
"""Each dialect's own words. The first for a reason is the one that we write."""
_WRITTEN: Mapping[Dialect, Mapping[FinishReason, str]] = {
    dialect: {"error": "stop_sequence", **{reason: word for word, reason in reversed(own.items())}}
    for dialect, own in _OWN.items()
}

_VENDORS: dict[str, FinishReason] = {
    "eos": "stop",
    "eos_token": "stop",
    "complete": "stop",
    "done": "stop",
    "model_length": "length",
    "max_length": "length",
    "max_output": "length",
    "incomplete": "length",
    "repetition": "length",
    "tool_call": "tool_calls",
    "sensitive": "content_filter",
    "safety_filter": "content_filter",
    "content_filtered": "content_filter",
    "guardrail_intervened": "content_filter",
    "malformed_tool_use": "error",
    "malformed_model_output": "error",
    "network_error": "error",
    "insufficient_system_resource": "error",
    "abort": "error",
}
"""Words of providers that speak a dialect loosely."""

_MISSING = frozenset(("", "null", "none", "finish_reason_unspecified"))
_NEUTRAL: dict[str, FinishReason] = {word.lower(): reason for own in _OWN.values() for word, reason in own.items()} | _VENDORS


class Finish(Struct, frozen=True):
    """A finish reason: for us, in the target's words, and what there is to say about it."""

    reason: FinishReason
    word: str
    note: str = ""


def said_reason(word: object) -> str:
    """Any dialect's word; empty where an answer has not said yet why it ended. Some hosts write a word for that, too."""
    return word if isinstance(word, str) and word.strip().lower() not in _MISSING else ""


def read_finish(word: object) -> FinishReason | None:
    """Any dialect's word as ours; None where it is missing or unknown."""
    return _NEUTRAL.get(_bare(word)) if isinstance(word, str) else None


def is_cut(word: object) -> bool:
    """Whether an answer that ended with this word may have broken off in the middle of a call."""
    return read_finish(word) in ("length", "content_filter", "error")


def with_calls(reason: FinishReason, calls: object) -> FinishReason:
    """Why an answer of ours ended that holds these calls, all of them whole."""
    return "tool_calls" if calls and reason == "stop" else reason


def holds_calls(written: Iterable[str], *, served: bool = False) -> bool | None:
    """What a reason can be corrected by: whether the answer holds calls that its client may run.

    `written`: the arguments of each, as the model wrote them. None where nothing can be said: one of them broke off, or
    (`served`) there are no others than the provider's own.
    """
    whole = [is_whole_call(arguments) for arguments in written]
    return all(whole) or None if whole else None if served else False


def is_whole_call(arguments: str) -> bool:
    """Arguments that did not break off; nothing at all stands for a tool without parameters."""
    return (
        not arguments
        or arguments.isspace()
        or read_json(arguments.encode("utf-8", "surrogatepass")) is not None
        or (arguments.strip() == "null")
    )


def is_served(block: JsonObject) -> bool:
    """A Messages block that is a call which the provider runs itself: `server_tool_use`, or what such a tool calls in turn."""
    kind = text_of(block.get("type"))
    if kind == "tool_use":
        return text_of(object_of(block.get("caller")).get("type")) not in ("", "direct")
    return kind in ("server_tool_use", "mcp_tool_use")


def infer_finish(*, calls: bool, error: bool = False) -> FinishReason:
    """Why an answer ended that did not say so."""
    return "tool_calls" if calls else "error" if error else "stop"


def write_finish(reason: FinishReason, target: Dialect, *, content_filter: ContentFilter = "stop_sequence") -> str:
    if reason == "content_filter" and target is Dialect.MESSAGES:
        return content_filter
    words = _WRITTEN[target]
    return words.get(reason) or words["stop"]


def decide_finish(
    word: object,
    target: Dialect,
    *,
    calls: bool | None = None,
    error: bool = False,
    content_filter: ContentFilter = "stop_sequence",
) -> Finish:
    """The finish reason of an answer in the target's dialect.

    `calls` says whether the answer holds tool calls that the client may run (None: not known, believe the word; see
    `holds_calls`); `error` that it broke.
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
    if calls and reason == "stop" and given not in _INTERRUPTED:
        reason, note = "tool_calls", note or _overruled(given, "tool calls are there")
    elif calls is False and reason == "tool_calls":
        reason, note = "stop", _overruled(given, "no tool call is there")
    if _OWN[target].get(given) == reason:
        return Finish(reason, given, note)
    if reason == "error" and target in (Dialect.MESSAGES, Dialect.CHAT) and _bare(given) in _CALL_FAILED:
        return Finish(reason, write_finish("stop", target), note)
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


class Endings(Struct, frozen=True):
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

    def read(self, word: object, dialect: Dialect, *, calls: bool | None, error: bool = False) -> FinishReason:
        """Why a provider's answer ended."""
        finish = decide_finish(word, dialect, calls=calls, error=error)
        self._tell(word, f"taken as {finish.reason}", dialect, finish)
        return finish.reason

    def write(self, word: object, target: Dialect, *, calls: bool | None) -> str:
        """The client's word for why the whole answer ended; `word`: the provider's."""
        finish = decide_finish(word, target, calls=calls, content_filter=self.content_filter)
        self._tell(word, f"written as {finish.word}", target, finish)
        return finish.word

    def _tell(self, word: object, what: str, dialect: Dialect, finish: Finish) -> None:
        if self.log is not None:
            given = ascii(word[:80]) if isinstance(word, str) else type(word).__name__ if word is not None else "nothing"
            self.log(f"{dialect}: {given} {what}" + (f" ({finish.note})" if finish.note else ""))


AS_USUAL = Endings()


def _bare(word: str) -> str:
    """The word to look up. Google's OpenAI-compatible address puts the kind before it: `content_filter: RECITATION`. Some
    gateways write it with hyphens."""
    return word.strip().rpartition(": ")[2].lower().replace("-", "_")


def _overruled(word: str, why: str) -> str:
    return "" if word in _CALLS_UNSAID else f"finish reason {word[:80]!r} overruled: {why}"
