"""A conversation's messages as Google's contents.

1. User and model take turns; what follows a model's calls begins with one answer for each, in their order.
2. Only our own maker's signatures are written. A model of version 3 or later wants one on the first call of every answer;
   where there is none, the word stands that Google gives for calls that another model made.
   It is written as the plain word (as in Google's documentation and Gemini CLI): its 32 letters are valid base64 themselves.
3. Pictures in a tool's result stand inside it from version 3 on, before that behind all results, each with its label.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Sequence

from msgspec import Struct, field

from ....values import Dialect, JsonObject
from ...fields import arguments_of, text_of
from ..neutral import (
    Block,
    Feature,
    LeftOut,
    Media,
    Message,
    Seal,
    Text,
    Thought,
    ToolResult,
    ToolUse,
)
from .gemini_media import is_for_results, media_parts
from .gemini_models import Family
from .gemini_tools import Names

NO_SIGNATURE = "skip_thought_signature_validator"
MISSING_RESULT = "The result of this call is missing."
_OPENING = "(The conversation begins with your own message.)"
_CONTINUE = "Continue exactly where your last message ends."

_SIGNABLE = frozenset(("text", "inlineData"))


class Form(Struct):
    """What the contents are written for."""

    family: Family
    maker: str
    names: Names
    left_out: LeftOut

    def own_signature(self, seal: Seal | None) -> str:
        """The signature, where it is ours to give back."""
        if seal is None or seal.dialect is not Dialect.GEMINI or seal.maker not in ("", self.maker):
            return ""
        return text_of(seal.payload.get("thoughtSignature")) or text_of(seal.payload.get("signature"))


def write_system(messages: Sequence[Message], form: Form) -> tuple[list[JsonObject], Sequence[Message]]:
    """The parts of the instructions, and the messages behind them."""
    count = next((place for place, message in enumerate(messages) if message.role != "system"), len(messages))
    texts = [block.text for message in messages[:count] for block in message.blocks if isinstance(block, Text) and block.text]
    if any(not isinstance(block, Text) for message in messages[:count] for block in message.blocks):
        form.left_out.add(Feature.FILES, "in the instructions")
    return [{"text": text} for text in texts], messages[count:]


def write_contents(messages: Sequence[Message], form: Form) -> list[JsonObject]:
    contents = _Contents(form, _results_by_id(messages))
    for role, blocks in _grouped(messages, form):
        if role == "assistant":
            contents.add_model(blocks)
        else:
            contents.add_user(blocks)
    return contents.ended()


def _results_by_id(messages: Sequence[Message]) -> dict[str, deque[ToolResult]]:
    found: dict[str, deque[ToolResult]] = defaultdict(deque)
    for block in (block for message in messages for block in message.blocks):
        if isinstance(block, ToolResult):
            found[block.id].append(block)
    return found


def _grouped(messages: Sequence[Message], form: Form) -> Iterable[tuple[str, list[Block]]]:
    """Neighbours of one side as one; without what cannot be written."""
    groups: list[tuple[str, list[Block]]] = []
    for message in messages:
        blocks = [block for block in message.blocks if _is_written(block, message, form)]
        if message.role == "system":
            blocks = [_as_reminder(block) for block in blocks]
        role = "assistant" if message.role == "assistant" else "user"
        if blocks and groups and groups[-1][0] == role:
            groups[-1][1].extend(blocks)
        elif blocks:
            groups.append((role, blocks))
    return groups


def _is_written(block: Block, message: Message, form: Form) -> bool:
    if getattr(block, "cached", False):
        form.left_out.add(Feature.CACHE_MARKS)
    if isinstance(block, Thought):
        if message.role == "assistant" and form.own_signature(block.seal):
            return True
        form.left_out.add(Feature.THOUGHTS, "" if block.seal else "unsigned")
        return False
    return not isinstance(block, Text) or bool(block.text)


def _as_reminder(block: Block) -> Block:
    """Instructions in the middle: Google has no place for them but the user's message, so they are marked as what they are."""
    return Text(f"<system>\n{block.text}\n</system>") if isinstance(block, Text) else block


class _Contents(Struct):
    """The contents so far."""

    _form: Form
    _results: dict[str, deque[ToolResult]]
    """Results that no call has taken."""
    _written: list[JsonObject] = field(default_factory=list)
    _open: list[tuple[ToolUse, str]] = field(default_factory=list)
    """The calls of the last message, each with its tool's name as it was sent."""
    _taken: Counter[str] = field(default_factory=Counter)
    """How many results of an id a call has taken that were not met yet."""

    def add_model(self, blocks: list[Block]) -> None:
        if not self._written:
            self._add("user", [{"text": _OPENING}])
        parts: list[JsonObject] = []
        for block in blocks:
            match block:
                case ToolUse():
                    parts.append(self._call(block, first=not self._open))
                case Thought():
                    self._sign(parts, block)
                case Text():
                    parts.append({"text": block.text})
                case Media():
                    parts.extend(media_parts(block, self._form.left_out))
                case ToolResult():
                    parts.append({"text": _told(block)})
        self._add("model", _placed(parts))

    def add_user(self, blocks: list[Block]) -> None:
        parts, behind = self._answers()
        for block in blocks:
            match block:
                case Text():
                    behind.append({"text": block.text})
                case Media():
                    behind.extend(media_parts(block, self._form.left_out))
                case ToolResult() if self._taken[block.id]:
                    self._taken[block.id] -= 1
                case ToolResult():
                    self._results[block.id].popleft()
                    behind.append({"text": _told(block)})
                    behind.extend(
                        part for one in block.blocks if isinstance(one, Media) for part in media_parts(one, self._form.left_out)
                    )
                case ToolUse():
                    behind.append({"text": f"Call of the tool {block.name}: {block.arguments}"})
        if parts or behind:
            self._add("user", parts + behind)

    def ended(self) -> list[JsonObject]:
        if self._open:
            self.add_user([])
        if self._written and self._written[-1]["role"] == "model" and self._form.family.modern:
            # these models refuse to go on with a message that was begun for them
            self._add("user", [{"text": _CONTINUE}])
        return self._written

    def _add(self, role: str, parts: list[JsonObject]) -> None:
        self._written.append({"role": role, "parts": parts})

    def _call(self, call: ToolUse, *, first: bool) -> JsonObject:
        name = self._form.names.sent(call.name, call.namespace, custom=call.custom)
        self._open.append((call, name))
        arguments: JsonObject = {"input": call.arguments} if call.custom else arguments_of(call.arguments)
        part: JsonObject = {"functionCall": {**({"id": call.id} if call.id else {}), "name": name, "args": arguments}}
        signature = self._form.own_signature(call.seal)
        if call.seal is not None and not signature:
            self._form.left_out.add(Feature.THOUGHTS)
        if not signature and first and self._form.family.modern:
            signature = NO_SIGNATURE
        return {**part, "thoughtSignature": signature} if signature else part

    def _sign(self, parts: list[JsonObject], thought: Thought) -> None:
        """A thought; or the signature of the text or picture before it, which `_placed` may still move."""
        signature = self._form.own_signature(thought.seal)
        place = thought.seal.payload.get("for") if thought.seal else None
        if place is None or thought.text:
            parts.append({"text": thought.text, "thought": True, "thoughtSignature": signature})
        elif parts and parts[-1].keys() <= _SIGNABLE:
            parts[-1]["thoughtSignature"] = signature
        else:
            parts.append({"text": "", "thoughtSignature": signature})

    def _answers(self) -> tuple[list[JsonObject], list[JsonObject]]:
        """One answer for each open call, and what must stand behind them all."""
        parts: list[JsonObject] = []
        behind: list[JsonObject] = []
        for call, name in self._open:
            head: JsonObject = {**({"id": call.id} if call.id else {}), "name": name}
            waiting = self._results.get(call.id)
            if not waiting:
                parts.append({"functionResponse": {**head, "response": {"error": MISSING_RESULT}}})
                continue
            result = waiting.popleft()
            self._taken[call.id] += 1
            if result.cached:
                self._form.left_out.add(Feature.CACHE_MARKS)
            inside, beside = self._result_media(result)
            labels = [text_of(part["text"]) for part in inside if "text" in part]
            text = "\n".join(filter(None, (_text_of(result), *labels)))
            inside = [part for part in inside if "text" not in part]
            answer: JsonObject = {**head, "response": {"error" if result.error else "output": text}}
            parts.append({"functionResponse": {**answer, **({"parts": inside} if inside else {})}})
            if beside:
                behind += [{"text": f"From the result of {name}{f' ({call.id})' if call.id else ''}:"}, *beside]
        self._open = []
        return parts, behind

    def _result_media(self, result: ToolResult) -> tuple[list[JsonObject], list[JsonObject]]:
        """What may stand inside the answer, and what must stand behind it; either with its labels."""
        inside: list[JsonObject] = []
        beside: list[JsonObject] = []
        for media in (block for block in result.blocks if isinstance(block, Media)):
            written = media_parts(media, self._form.left_out)
            fits = self._form.family.modern and is_for_results(written[-1])
            (inside if fits else beside).extend(written)
        return inside, beside


def _placed(parts: list[JsonObject]) -> list[JsonObject]:
    """A signature on its own goes to the text behind it: some dialects put all thoughts before the text."""
    placed: list[JsonObject] = []
    for part in parts:
        before = placed[-1] if placed else {}
        if before.get("text") == "" and "thought" not in before and part.keys() <= _SIGNABLE:
            placed[-1] = {**part, "thoughtSignature": before["thoughtSignature"]}
        else:
            placed.append(part)
    return placed


def _text_of(result: ToolResult) -> str:
    return "\n".join(block.text for block in result.blocks if isinstance(block, Text))


def _told(result: ToolResult) -> str:
    """A result without its call, in words: Google refuses an answer that nobody asked for."""
    failed = " (failed)" if result.error else ""
    return f"Result of the tool {result.name or result.id}{failed}:\n{_text_of(result)}"
