"""OpenAI Chat, a provider's call: neutral messages as its own.

1. The results of a message's calls stand right behind it, in the order of the calls, wherever they stood before. A call without
   a result gets one that says so; a result without a call is told as the user's text.
2. A tool's message holds text alone. Pictures and files of results follow all of them in one user message that says whose they
   are; a failed result says so in its text.
3. Content is plain text wherever there is nothing but text: several hosts take no list there.
4. System text at the beginning is one message. Later system messages stay where they were; for hosts that refuse them there they
   are user messages marked as reminders.
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from itertools import groupby

from msgspec import Struct, field

from ....jsonbytes import dumps
from ....values import Dialect, JsonObject
from ...fields import THOUGHTS, arguments_of, list_of, object_of, read_object, text_of
from ...signed import signed_fields
from .. import ids
from ..neutral import Block, Feature, LeftOut, Media, Message, Seal, Text, Thought, ToolResult, ToolUse
from .chat_hosts import Host
from .chat_parts import missing, text_part, write_part
from .chat_tools import Tools

_GAP = "\n\n"
_NO_RESULT = "No result of this call is known."
_NOTHING = "(no output)"
_FAILED = "Error: "
_SAYS_SO = ("error", "<tool_use_error")
"""How a text begins that says itself that the tool failed."""
_BLANK = " "
"""For hosts that miss earlier thinking; they refuse an empty text."""
_REMINDER = "<system-reminder>\n{}\n</system-reminder>"
_MARKED = "<system-reminder>"
_GO_ON = "OK."
"""What the assistant says between a tool and a user, where the order of roles demands it."""

_ID = re.compile(r"[a-zA-Z0-9_-]+")
_KIMI_ID = re.compile(r"[a-zA-Z0-9_.:-]+")
_LONGEST_ID = 40
_MISTRAL_ID = re.compile(r"[a-zA-Z0-9]{9}")


def write_messages(
    messages: Sequence[Message], tools: Tools, *, maker: str, thinks: bool, left: LeftOut, instruction: str = ""
) -> list[JsonObject]:
    """`instruction`: more system text, behind what stands at the beginning."""
    first = next((place for place, message in enumerate(messages) if message.role != "system"), len(messages))
    writer = _Writer(tools, maker, thinks and tools.host.misses_thoughts, left)
    head = _joined([*(block for message in messages[:first] for block in message.blocks), Text(instruction)])
    if head:
        writer.messages.append({"role": "system", "content": head})
    writer.write(_merged(messages[first:]))
    return _in_order(writer.messages) if tools.host.strict_order else writer.messages


def call_id(id: str, host: Host) -> str:
    """The same for the call and its result."""
    match host.call_ids:
        case "mistral":
            return id if _MISTRAL_ID.fullmatch(id) else ids.digest(id, 9)
        case "kimi":
            return ids.fitting(id, _KIMI_ID, _LONGEST_ID)
        case "usual":
            return ids.fitting(id, _ID, _LONGEST_ID)


def _merged(messages: Sequence[Message]) -> list[Message]:
    """The assistant's messages in a row as one: what it calls in parallel must stand in one message."""
    merged: list[Message] = []
    for role, row in groupby(messages, key=lambda message: message.role):
        if role == "assistant":
            merged.append(Message(role, tuple(block for message in row for block in message.blocks)))
        else:
            merged += row
    return merged


class _Writer(Struct):
    tools: Tools
    maker: str
    fills_thoughts: bool
    left: LeftOut
    messages: list[JsonObject] = field(default_factory=list)
    _results: defaultdict[str, deque[tuple[int, ToolResult]]] = field(default_factory=lambda: defaultdict(deque))
    _told: set[int] = field(default_factory=set)
    """The results that stand behind their calls, by their ordinal."""

    def write(self, messages: Sequence[Message]) -> None:
        for message, ordinal in zip(messages, self._find_results(messages), strict=True):
            match message.role:
                case "assistant":
                    self._assistant(message.blocks, ordinal)
                case "user":
                    self._user(message.blocks, ordinal)
                case "system":
                    self._system(message.blocks)

    def _find_results(self, messages: Sequence[Message]) -> list[int]:
        """For every message the ordinal of its first result."""
        begins: list[int] = []
        count = 0
        for message in messages:
            begins.append(count)
            for block in message.blocks:
                if isinstance(block, ToolResult):
                    self._results[block.id].append((count, block))
                    count += 1
        return begins

    def _result_of(self, call: ToolUse, behind: int) -> ToolResult | None:
        waiting = self._results.get(call.id, deque())
        while waiting:
            ordinal, result = waiting.popleft()
            if ordinal >= behind:
                self._told.add(ordinal)
                return result
        return None

    # The roles

    def _system(self, blocks: Iterable[Block]) -> None:
        if not (text := _joined(blocks)):
            return
        if self.tools.host.late_system:
            self.messages.append({"role": "system", "content": text})
        else:
            text = text if text.startswith(_MARKED) else _REMINDER.format(text)
            self.messages.append({"role": "user", "content": text})

    def _user(self, blocks: Iterable[Block], ordinal: int) -> None:
        said: list[Text | Media] = []
        for block in blocks:
            if isinstance(block, ToolResult):
                if ordinal not in self._told:
                    name = f" of {block.name}" if block.name else ""
                    said += [Text(f"The result{name} of an earlier call:\n{self._text_of(block)}"), *_media_in(block)]
                ordinal += 1
            elif isinstance(block, Text | Media):
                said.append(block)
        self._say(said)

    def _say(self, blocks: Sequence[Text | Media]) -> None:
        parts = [write_part(block, self.tools.host, self.left) for block in blocks if not _is_empty(block)]
        if parts:
            self.messages.append({"role": "user", "content": _content(parts)})

    def _assistant(self, blocks: Iterable[Block], ordinal: int) -> None:
        texts: list[Text] = []
        calls: list[ToolUse] = []
        thoughts: list[Thought] = []
        for block in blocks:
            if isinstance(block, Text):
                texts.append(block)
            elif isinstance(block, ToolUse):
                calls.append(block)
            elif isinstance(block, Thought):
                thoughts.append(block)
            elif isinstance(block, Media):
                self.left.add(Feature.ASSISTANT_MEDIA)
                texts.append(Text(missing(block)))
        told = _joined(texts)
        message: JsonObject = {"role": "assistant", "content": told or None}
        message |= self._thinking(thoughts)
        if self.fills_thoughts and len(message) == 2:
            message["reasoning_content"] = _BLANK
        if calls:
            message["tool_calls"] = [self._call(call) for call in calls]
        elif not told:
            return
        self.messages.append(message)
        self._answers(calls, ordinal)

    def _thinking(self, thoughts: Iterable[Thought]) -> JsonObject:
        texts: list[str] = []
        details: list[object] = []
        name = ""
        signed: JsonObject = {}
        for thought in thoughts:
            if thought.seal is not None and thought.seal.payload.get("for") == "message" and self._is_own(thought.seal):
                signed |= signed_fields(thought.seal.payload)
                continue
            if not self._is_own(thought.seal) or not self.tools.host.keeps_thoughts:
                self.left.add(Feature.THOUGHTS)
                continue
            payload = thought.seal.payload if thought.seal else {}
            name = name or next((known for known in THOUGHTS if payload.get(known)), "")
            details += list_of(payload.get("reasoning_details"))
            if thought.text:
                texts.append(thought.text)
        kept: JsonObject = {name or ("reasoning" if details else "reasoning_content"): _GAP.join(texts)} if texts else {}
        return kept | ({"reasoning_details": details} if details else {}) | signed

    def _is_own(self, seal: Seal | None) -> bool:
        return seal is not None and seal.dialect is Dialect.CHAT and seal.maker in ("", self.maker)

    # Calls and results

    def _call(self, call: ToolUse) -> JsonObject:
        host = self.tools.host
        id, name = call_id(call.id, host), self.tools.name(call.namespace, call.name)
        if call.custom and host.custom_tools:
            return {"id": id, "type": "custom", "custom": {"name": name, "input": call.arguments}}
        arguments = dumps({"input": call.arguments}).decode() if call.custom else _arguments(call.arguments)
        written: JsonObject = {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
        if call.seal is not None:
            signed, inner = signed_fields(call.seal.payload), signed_fields(object_of(call.seal.payload.get("function")))
            if self._is_own(call.seal) and (signed or inner):
                written |= {**signed, "function": {"name": name, "arguments": arguments, **inner}}
            else:
                self.left.add(Feature.THOUGHTS)
        return written

    def _answers(self, calls: Sequence[ToolUse], behind: int) -> None:
        shown: list[Text | Media] = []
        for call in calls:
            result = self._result_of(call, behind)
            media = _media_in(result)
            message: JsonObject = {"role": "tool", "tool_call_id": call_id(call.id, self.tools.host)}
            if self.tools.host.named_results:
                message["name"] = self.tools.name(call.namespace, call.name)
            self.messages.append({**message, "content": self._text_of(result)})
            if media:
                shown += [Text(f"From the result of {call.name} (call {call_id(call.id, self.tools.host)}):"), *media]
        self._say(shown)

    def _text_of(self, result: ToolResult | None) -> str:
        if result is None:
            return _NO_RESULT
        text = _joined(result.blocks, between="\n")
        if media := len(_media_in(result)):
            note = f"[{media} {'attachment' if media == 1 else 'attachments'}: see the message behind the results]"
            text = f"{text}\n{note}" if text else note
        if result.error and not text.lstrip().lower().startswith(_SAYS_SO):
            text = _FAILED + (text or "the tool failed and said nothing")
        return text or _NOTHING


def _media_in(result: ToolResult | None) -> list[Media]:
    return [block for block in result.blocks if isinstance(block, Media)] if result else []


def _is_empty(block: Text | Media) -> bool:
    return isinstance(block, Text) and not block.text


def _joined(blocks: Iterable[Block], between: str = _GAP) -> str:
    return between.join(block.text for block in blocks if isinstance(block, Text) and block.text)


def _content(parts: Sequence[JsonObject]) -> str | list[JsonObject]:
    if all(part.get("type") == "text" for part in parts):
        return _GAP.join(text_of(part.get("text")) for part in parts)
    return list(parts)


def _arguments(text: str) -> str:
    """As the model wrote them; an object in any case, for some hosts read them."""
    if read_object(text.encode("utf-8", "surrogatepass")) is not None:
        return text
    return dumps(arguments_of(text)).decode()


# --- Mistral's order ----------------------------------------------------------------------------------------------------


def _in_order(messages: Sequence[JsonObject]) -> list[JsonObject]:
    ordered: list[JsonObject] = []
    for role, together in groupby(messages, key=lambda message: message["role"]):
        row = list(together)
        if role == "user":
            if ordered and ordered[-1]["role"] == "tool":
                ordered.append({"role": "assistant", "content": _GO_ON})
            if len(row) > 1:
                row = [{"role": "user", "content": _content([part for message in row for part in _parts(message)])}]
        ordered += row
    if ordered and ordered[-1]["role"] == "assistant":
        ordered[-1] = {**ordered[-1], "prefix": True}
    return ordered


def _parts(message: JsonObject) -> list[JsonObject]:
    content = message.get("content")
    if isinstance(content, str):
        return [text_part(content)]
    return [part for part in list_of(content) if isinstance(part, dict)]
