"""The built-in provider `echo`: answers without a network, from the call alone, the same call always with the same answer.

It repeats the newest text that a person typed, or reports the tool results behind it; a call that demands structured output, also
by a tool that must be called, gets the smallest value that its schema allows. A line of that text may tell it more:

    echo: say TEXT            answer TEXT (several lines add up)
    echo: call NAME {json}    call a tool (several lines: several calls)
    echo: stop length         end with this finish reason (stop, length, content_filter, or any dialect's own word)
    echo: fail 429 [message]  fail with this HTTP status
    echo: slow SECONDS        `delay_of` tells the caller to wait first, at most a minute
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from ..errors import RouteCodexError
from ..jsonbytes import dumps
from ..values import Answer, Call, FinishReason, Message, Text, ToolCall, ToolResult, Usage
from .calls.editing import inner_body
from .fields import read_object
from .finish import read_finish
from .instance import smallest
from .translation.going_up import READ

LONGEST_DELAY_S = 60.0

_ORDER = re.compile(r"^[ \t\"'>]*echo:[ \t]*(say|call|stop|fail|slow)\b(.*)$", re.MULTILINE | re.IGNORECASE)
_WRAPPER = re.compile(r"\s*<([A-Za-z][\w-]{0,60})[^<>]{0,200}>")
_CLOSED = re.compile(r"</([A-Za-z][\w-]{0,60})>\Z")
_MOST_WRAPPERS = 8
_NOTHING = "(nothing to echo)"
_UNTOLD: Mapping[int, str] = {}


class EchoFailure(Struct, frozen=True):
    """The text asked for an error."""

    status: int
    message: str
    code: str = "ECHO_FAILURE"


class _Newest(Struct, frozen=True):
    text: str
    results: tuple[ToolResult, ...]


def echo_answer(call: Call, typed: Mapping[int, str] = _UNTOLD) -> Answer | EchoFailure:
    """`typed`: what a person typed of the messages, by their index, as far as the client's module tells."""
    if call.structured:
        return _said(call, dumps(smallest(call.schema)).decode())
    newest = _newest(call, typed)
    orders = list(_orders(newest.text))
    before = sum(isinstance(part, ToolCall) for message in call.messages for part in message.parts)
    if call.forced_tools and not orders and not newest.results and (demanded := _demanded(call)) is not None:
        name, arguments = demanded
        return _said(call, "", [ToolCall(f"call_echo_{before + 1}", name, arguments)], "tool_calls")
    said: list[str] = []
    calls: list[ToolCall] = []
    finish: FinishReason = "stop"
    for verb, rest in orders:
        match verb:
            case "fail":
                return _failure(rest)
            case "say":
                said.append(rest)
            case "stop":
                finish = read_finish(rest.split(maxsplit=1)[0] if rest else "stop") or "stop"
            case "call":
                name, _, arguments = rest.partition(" ")
                asked = _arguments(arguments)
                if name and asked is not None:
                    calls.append(ToolCall(f"call_echo_{before + len(calls) + 1}", name, asked))
                else:
                    said.append(f"echo cannot call {rest!r}: write `echo: call NAME {{json object}}`")
    text = "\n".join(said)
    if not orders:
        text = "\n".join(f"The tool answered: {result.text}" for result in newest.results) or newest.text.strip() or _NOTHING
    elif not text and not calls:
        text = "ok"
    reason: FinishReason = "tool_calls" if calls else "stop" if finish == "tool_calls" else finish
    return _said(call, text, calls, reason)


def _demanded(call: Call) -> tuple[str, str] | None:
    """The one tool that must be called, and its arguments. Of several nobody knows which is meant."""
    try:
        meant = READ[call.endpoint.dialect](inner_body(call), call.endpoint)
    except RouteCodexError:
        return None
    if meant.choice is None or meant.choice.mode != "required":
        return None
    named = [tool for tool in meant.tools if not meant.choice.named or tool.name in meant.choice.named]
    if len(named) != 1 or named[0].kind != "function":
        return None
    return named[0].name, dumps(smallest(named[0].schema)).decode()


def _said(call: Call, text: str, calls: Sequence[ToolCall] = (), reason: FinishReason = "stop") -> Answer:
    return Answer(text, tuple(calls), reason, Usage(_tokens(len(call.raw)), _tokens(_length(text, calls))))


def delay_of(call: Call, typed: Mapping[int, str] = _UNTOLD) -> float:
    """Seconds that the text asks to wait before the answer; 0 where it asks for nothing."""
    rest = next((rest for verb, rest in _orders(_newest(call, typed).text) if verb == "slow"), "")
    try:
        seconds = float(rest)
    except ValueError:
        return 0.0
    return min(max(seconds, 0.0), LONGEST_DELAY_S) if math.isfinite(seconds) else 0.0


def _newest(call: Call, told: Mapping[int, str]) -> _Newest:
    """The last message with typed text or tool results. What a tool wraps around its own text was typed by nobody."""
    results: list[ToolResult] = []
    typed = ""
    for message in reversed(call.messages):
        found = [part for part in message.parts if isinstance(part, ToolResult)]
        if results and not found:
            break
        results[:0] = found
        typed = typed or (told.get(message.index) or _typed(message) if message.role == "user" else "")
        if typed and not results:
            break
    return _Newest(typed, tuple(results))


def _typed(message: Message) -> str:
    texts = [_unwrapped(part.text) for part in message.parts if isinstance(part, Text) and not _wrapped(part.text)]
    return "\n".join(text for text in texts if text.strip())


def _wrapped(text: str) -> bool:
    opening = _WRAPPER.match(text)
    return opening is not None and text.rstrip().endswith(f"</{opening[1]}>")


def _unwrapped(text: str) -> str:
    """Without what a tool wrapped before and behind the person's words, on lines of its own."""
    for _ in range(_MOST_WRAPPERS):
        opening = _WRAPPER.match(text)
        _, closing, rest = text[opening.end() :].partition(f"</{opening[1]}>") if opening is not None else ("", "", "")
        if not closing or not rest.lstrip(" \t").startswith("\n"):
            break
        text = rest.lstrip()
    for _ in range(_MOST_WRAPPERS):
        text = text.rstrip()
        closed = _CLOSED.search(text[-64:])
        begins = text.rfind(f"\n<{closed[1]}") if closed is not None else -1
        if begins < 0:
            break
        text = text[:begins]
    return text


def _orders(text: str) -> Iterator[tuple[str, str]]:
    quoted = text.strip()
    if len(quoted) > 1 and quoted[0] == quoted[-1] == '"':
        text = quoted[1:-1]
    for found in _ORDER.finditer(text):
        yield found[1].lower(), found[2].strip()


def _arguments(text: str) -> str | None:
    """JSON text of an object, as it was typed; None where it is none."""
    text = text.strip() or "{}"
    return text if read_object(text.encode("utf-8", "surrogatepass")) is not None else None


def _failure(rest: str) -> EchoFailure:
    number, _, message = rest.partition(" ")
    status = int(number) if re.fullmatch(r"[45]\d\d", number, re.ASCII) else 500
    return EchoFailure(status, message.strip() or f"echo was told to fail with {status}")


def _length(text: str, calls: Sequence[ToolCall]) -> int:
    return len(text) + sum(len(call.name) + len(call.arguments) for call in calls)


def _tokens(characters: int) -> int:
    """About four characters each."""
    return (characters + 3) // 4
