"""OpenAI Chat, a client's call: its messages as neutral ones.

1. Results of tools that stand in a row are one user message; every other message is one of its own.
2. Calls and results are paired in order. A call without an id, and a later one with the same id, get an id that is made from
   what they have, so that no two calls of a conversation share one.
3. Where thinking stands (several hosts, several fields): see `_thoughts`.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ....errors import BadCall
from ....values import Dialect, JsonObject
from ...calls.editing import content_of, json_text, result_of
from ...fields import THOUGHTS, list_of, object_of, text_of
from ...signed import call_words, words_in
from .. import opaque
from ..neutral import Block, Feature, Media, Message, Seal, Text, Thought, ToolResult, ToolUse
from .chat_parts import Notes, Part, is_cached, read_content

_SYSTEM = ("system", "developer")
_RESULTS = ("tool", "function")
_THINKING_FIELDS = (*THOUGHTS, "thinking")


def read_messages(messages: Sequence[JsonObject], notes: Notes) -> tuple[Message, ...]:
    pairs = _Pairs()
    found: list[Message] = []
    results: list[Block] = []
    for place, message in enumerate(messages):
        role = message.get("role")
        if role in _RESULTS:
            results.append(_result(message, pairs, notes))
            continue
        if results:
            found.append(Message("user", tuple(results)))
            results = []
        if blocks := _blocks(role, place, message, pairs, notes):
            found.append(Message("system" if role in _SYSTEM else "user" if role == "user" else "assistant", blocks))
    if results:
        found.append(Message("user", tuple(results)))
    return tuple(found)


def _blocks(role: object, place: int, message: JsonObject, pairs: _Pairs, notes: Notes) -> tuple[Block, ...]:
    if text_of(message.get("name")):
        notes[Feature.OTHER, "names of who speaks"] = None
    if role == "assistant":
        return tuple(_answer(message, pairs, notes))
    if role != "user" and role not in _SYSTEM:
        raise BadCall(
            f"`messages[{place}].role` is {str(role)[:40]!r}; known are system, developer, user, assistant, tool and function"
        )
    blocks = _marked(read_content(content_of(message, "content"), notes), message)
    if role == "user":
        return blocks
    for block in blocks:
        if isinstance(block, Media):
            notes[Feature.OTHER, "pictures and files in system messages"] = None
    return tuple(block for block in blocks if isinstance(block, Text))


def _marked(blocks: tuple[Part, ...], message: JsonObject) -> tuple[Part, ...]:
    """A mark on the message itself belongs to its last block."""
    if blocks and is_cached(message) and not isinstance(blocks[-1], Thought):
        return (*blocks[:-1], replace(blocks[-1], cached=True))
    return blocks


# --- what the model said ------------------------------------------------------------------------------------------------


def _answer(message: JsonObject, pairs: _Pairs, notes: Notes) -> Iterator[Block]:
    yield from _thoughts(message)
    blocks = _marked(read_content(content_of(message, "content"), notes), message)
    yield from blocks
    if (refusal := text_of(message.get("refusal"))) and not any(isinstance(one, Text) and one.text == refusal for one in blocks):
        yield Text(refusal)
    if word := next(iter(words_in(message)), ""):
        yield Thought("", _seal_of(word, "part"))
    yield from read_content(list_of(message.get("images")), notes)
    if message.get("audio"):
        notes[Feature.AUDIO, "an earlier spoken answer"] = None
    calls = [object_of(call) for call in list_of(message.get("tool_calls"))]
    for call in calls:
        yield _call(call, pairs)
    if not calls and (old := object_of(message.get("function_call"))):
        yield _call({"function": old}, pairs)


def _thoughts(message: JsonObject) -> Iterator[Thought]:
    """The message's thinking.

    `reasoning_details` (OpenRouter's) may hold words of ours that seal other dialects' thoughts: each is a thought of its own,
    whose text stands beside it; where none has a text, the first has that of the message's field. Everything else is the
    host's own, and one thought: its seal says in which field it stood.
    """
    field = next((name for name in _THINKING_FIELDS if text_of(message.get(name))), "")
    text = text_of(message.get(field))
    sealed: list[Thought] = []
    own: list[object] = []
    for entry in list_of(message.get("reasoning_details")):
        if seal := _foreign_seal(object_of(entry)):
            sealed.append(Thought(_text_of_detail(entry), seal))
        else:
            own.append(entry)
    if sealed and not own and not any(thought.text for thought in sealed):
        sealed[0] = replace(sealed[0], text=text)
    yield from sealed
    if own or (text and not sealed):
        payload: JsonObject = ({field: True} if field else {}) | ({"reasoning_details": own} if own else {})
        told = "" if sealed else text
        yield Thought(told or "".join(map(_text_of_detail, own)), Seal(Dialect.CHAT, "", payload))


def _foreign_seal(entry: JsonObject) -> Seal | None:
    word = text_of(entry.get("data")) or text_of(entry.get("signature"))
    return opaque.unwrap(word) if word else None


def _text_of_detail(entry: object) -> str:
    return text_of(object_of(entry).get("text")) or text_of(object_of(entry).get("summary"))


def _call(raw: JsonObject, pairs: _Pairs) -> ToolUse:
    custom = object_of(raw.get("custom"))
    body = custom or object_of(raw.get("function"))
    name = text_of(body.get("name"))
    told = body.get("input" if custom else "arguments")
    arguments = told if isinstance(told, str) else "" if told is None else json_text(told)
    id = pairs.begin(text_of(raw.get("id")), name, custom=bool(custom))
    return ToolUse(id, name, arguments, custom=bool(custom), seal=_call_seal(raw), cached=is_cached(raw))


def _call_seal(raw: JsonObject) -> Seal | None:
    """The places of a call's signature hold a word of ours, or Gemini's own signature."""
    word = next(iter(call_words(raw)), "")
    return _seal_of(word, "call") if word else None


def _seal_of(word: str, place: str) -> Seal:
    return opaque.unwrap(word) or Seal(Dialect.GEMINI, "", {"for": place, "signature": word})


# --- what the tools answered --------------------------------------------------------------------------------------------


def _result(message: JsonObject, pairs: _Pairs, notes: Notes) -> ToolResult:
    call = pairs.end(text_of(message.get("tool_call_id")), text_of(message.get("name")))
    blocks = read_content(result_of(message.get("content")), notes)
    return ToolResult(
        call.id,
        tuple(block for block in blocks if isinstance(block, Text | Media)),
        custom=call.custom,
        name=call.name,
        cached=is_cached(message),
    )


class _Call(Struct):
    id: str
    name: str
    custom: bool = False
    answered: bool = False


class _Pairs:
    """Calls that wait for their results, by what a result may name: the call's id, the tool's name, or nothing."""

    def __init__(self) -> None:
        self._ids: set[str] = set()
        self._times: defaultdict[str, int] = defaultdict(int)
        self._waiting: defaultdict[tuple[str, str], deque[_Call]] = defaultdict(deque)

    def begin(self, id: str, name: str, *, custom: bool) -> str:
        given = id or f"call_{name}"
        self._times[given] += 1
        unique = given if id and self._times[given] == 1 else f"{given}_{self._times[given]}"
        while unique in self._ids:
            self._times[given] += 1
            unique = f"{given}_{self._times[given]}"
        self._ids.add(unique)
        call = _Call(unique, name, custom)
        for key in (("id", id), ("name", name), ("", "")):
            self._waiting[key].append(call)
        return unique

    def end(self, id: str, name: str) -> _Call:
        """The call that this is the result of. Nobody's result keeps what it names."""
        key = ("id", id) if id else ("name", name) if name else ("", "")
        waiting = self._waiting.get(key, deque())
        while waiting:
            call = waiting.popleft()
            if not call.answered:
                call.answered = True
                return call
        return _Call(id or name or "unknown", name)
