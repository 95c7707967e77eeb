"""What the dialects share: checked reading of JSON, and edits of message lists that leave everything else as it was.

1. A part or message that changes is replaced by a new object; objects that stay are never written to.
2. No message is left without content: where everything would go, `PLACEHOLDER` stays.
3. A cache mark outlives its part: it moves to a neighbour that has none.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, cast

from msgspec import Struct

from ... import jsonbytes
from ...errors import BadCall
from ...values import Call, Dialect, JsonObject, Message, Role, Text, ToolResult
from ..translation.neutral import Feature, LeftOut

PLACEHOLDER = "continue"
DEEPEST = 200
_MANY_PIECES = 20_000
_MOST_PIECES = 100_000
"""So many messages are the most that a provider is known to take."""
_SHORTEST_PIECE = 28
"""No message is shorter, and no part on an average; to walk over a million empty ones would hold up everybody."""
_HOLD_FURTHER = frozenset(
    {"content", "parts", "tool_calls", "summary", "output", "reasoning_details", "functionDeclarations", "function_declarations"}
)
_HOLD_PIECES = _HOLD_FURTHER | frozenset(
    {"messages", "input", "contents", "system", "systemInstruction", "system_instruction", "tools", "functions"}
)
"""Where messages, parts and tools stand, in whatever dialect: in a call, and in one another."""
_SAID_IN, _NESTED = frozenset({dict, str}), frozenset({dict, list})
SPEAK = ("user", "assistant")
_CACHE = "cache_control"
_UNMARKABLE = ("thinking", "redacted_thinking")


def read_body(raw: bytes) -> JsonObject:
    """The JSON object a client sent; BadCall for anything else, or nested deeper than `DEEPEST`."""
    if len(raw) > _MOST_PIECES * _SHORTEST_PIECE and raw.count(b'"role"') > _MOST_PIECES:
        raise _crumbs(raw)  # before it is read: that alone would keep others waiting
    value, count = jsonbytes.loads_counted(raw, deepest=DEEPEST)
    if not isinstance(value, dict):
        raise BadCall("The request body is not a JSON object")
    if count > _MANY_PIECES:
        _count_pieces(value, raw)
    return value


def _count_pieces(body: JsonObject, raw: bytes) -> None:
    """BadCall where there are more of them than anybody can have said something in. What a tool's call or schema holds is data,
    of which there may be any amount: nobody here looks through it."""
    most = min(_MOST_PIECES, max(_MANY_PIECES, len(raw) // _SHORTEST_PIECE))
    holders = [body, *(object_in(body, name) for name in ("request", "generateContentRequest"))]
    count, todo = 0, [holder[name] for holder in holders for name in _HOLD_PIECES & holder.keys()]
    while todo:
        found = todo.pop()
        if isinstance(found, list):
            count += sum(map(_SAID_IN.__contains__, map(type, found)))
            if count > most:
                raise _crumbs(raw)
        todo += [
            value
            for entry in (found if isinstance(found, list) else [found])
            if type(entry) is dict
            for name, value in entry.items()
            if type(value) in _NESTED and name in _HOLD_FURTHER
        ]


def _crumbs(raw: bytes) -> BadCall:
    return BadCall(
        f"The request holds more messages, parts and tools than can say anything in its {len(raw):,} bytes, or over "
        f"{_MOST_PIECES:,}: no known tool does that, and nothing was sent on. Begin a new conversation, or have the tool compact "
        "this one."
    )


def inner_body(call: Call) -> JsonObject:
    """The object that holds the conversation: the body itself, but for Gemini's envelope and its counting form."""
    if call.endpoint.dialect is not Dialect.GEMINI:
        return call.body
    return unwrapped(call.body, envelope=call.endpoint.envelope)


def unwrapped(body: JsonObject, *, envelope: bool) -> JsonObject:
    inner = body.get("request" if envelope else "generateContentRequest")
    if isinstance(inner, dict):
        return inner
    if envelope:
        raise BadCall("The request body has no `request` object")
    return body


def items_in(body: JsonObject, key: str) -> list[JsonObject]:
    """The message list; BadCall where it is not a list of objects."""
    items = body.get(key)
    if not isinstance(items, list) or not set(map(type, items)) <= {dict}:
        raise BadCall(f"`{key}` is not a list of objects")
    return cast("list[JsonObject]", items)


def text_in(source: JsonObject, key: str, default: str = "") -> str:
    """A text field that must be text where it is given."""
    value = source.get(key)
    if value is None:
        return default
    if not isinstance(value, str):
        raise BadCall(f"`{key}` is not a string")
    return value


def loose_text(source: JsonObject, key: str) -> str:
    """A text field of a part; what is not text counts as empty."""
    value = source.get(key)
    return value if isinstance(value, str) else ""


def object_in(source: JsonObject, *keys: str) -> JsonObject:
    """The first of these fields that holds an object; an empty object where none does."""
    for key in keys:
        value = source.get(key)
        if isinstance(value, dict):
            return value
    return {}


def list_in(source: JsonObject, *keys: str) -> list[object]:
    for key in keys:
        value = source.get(key)
        if isinstance(value, list):
            return value
    return []


def objects_in(source: JsonObject, *keys: str) -> list[JsonObject]:
    return [entry for entry in list_in(source, *keys) if isinstance(entry, dict)]


def json_text(value: object) -> str:
    return jsonbytes.dumps(value).decode()


def joined_text(content: object) -> str:
    """The text of a content: a string, or the text parts of a list."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str))
    return ""


def result_text(content: object) -> str:
    """The text of a tool's result."""
    return joined_text(result_of(content))


def result_of(content: object) -> str | list[object]:
    """What a tool answered, as text or parts. Some clients give the value itself (an object, a number): its JSON is told."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list) or (content and not any(map(_is_part, content))):
        return json_text(content)
    return [part if _is_part(part) else {"type": "text", "text": json_text(part)} for part in content]


def _is_part(part: object) -> bool:
    if not isinstance(part, dict):
        return isinstance(part, str)
    return isinstance(part.get("type"), str) or (isinstance(part.get("text"), str) and part.keys() <= {"text", "cache_control"})


def content_of(item: JsonObject, key: str) -> str | list[object]:
    """A message's content; nothing is an empty list, and what is neither text nor list is a BadCall."""
    content = item.get(key)
    if isinstance(content, (str, list)):
        return content
    if content is None:
        return []
    raise BadCall(f"`{key}` of a message is neither text nor a list")


def edits_by_message(call: Call, edits: Mapping[tuple[int, int], str]) -> dict[int, dict[int, str]]:
    """Message index → slot → new text, for the edits that name a text part and change it."""
    found: dict[int, dict[int, str]] = {}
    for index in {index for index, _ in edits}:
        if not 0 <= index < len(call.messages):
            continue
        texts = {part.slot: part.text for part in call.messages[index].parts if isinstance(part, Text)}
        changes = {slot: edits[index, slot] for slot, old in texts.items() if edits.get((index, slot), old) != old}
        if changes:
            found[index] = changes
    return found


def edited(item: JsonObject, key: str, texts: Mapping[int, str]) -> tuple[JsonObject, list[int]]:
    """The message with new texts, and the slots that were taken out because their new text is empty."""
    content = item.get(key)
    if not isinstance(content, list):
        return {**item, key: texts[-1] if texts[-1].strip() else PLACEHOLDER}, []
    parts: list[object] = [{**part, "text": texts[slot]} if slot in texts else part for slot, part in enumerate(content)]
    gone = [slot for slot in range(len(parts)) if slot in texts and not texts[slot].strip()]
    if len(gone) == len(parts):
        parts[gone[0]] = {**content[gone[0]], "text": PLACEHOLDER}
        del gone[0]
    left_out = set(gone)
    heirs = [slot for slot, part in enumerate(parts) if slot not in left_out and _can_carry_mark(part)]
    for slot in gone:
        place = bisect(heirs, slot)
        # the part before it; the first one behind it where there is none before
        _hand_on(_mark_of(content[slot]), parts, heirs[max(place - 1, 0)] if heirs else None)
    return {**item, key: [part for slot, part in enumerate(parts) if slot not in left_out]}, gone


def _mark_of(part: object) -> object:
    return part.get(_CACHE) if isinstance(part, dict) else None


def _can_carry_mark(part: object) -> bool:
    return isinstance(part, dict) and part.get("type") not in _UNMARKABLE


def _hand_on(mark: object, parts: list[object], heir: int | None) -> None:
    """Give a cache mark to a part; one that has its own keeps it."""
    if mark is not None and heir is not None and _mark_of(parts[heir]) is None:
        parts[heir] = {**cast(JsonObject, parts[heir]), _CACHE: mark}


class Exchange(NamedTuple):
    """A question that was nothing but tags, and our answer to it; `asked` once more where that is not there any more."""

    asked: int
    answered: int
    typed_slots: Collection[int]


class Moved(NamedTuple):
    """A part that leaves its message, and where it stood."""

    part: object
    source: JsonObject
    slot: int


def _alone(item: JsonObject, at: int, moved: Sequence[Moved]) -> JsonObject:
    return item


class Shape(Struct, frozen=True):
    """How a dialect writes a message: the field of its content, what stands before the text of a text part, and what else
    changes with a content that took others' parts in at a place."""

    key: str
    text_part: Mapping[str, object]
    beside: Callable[[JsonObject, int, Sequence[Moved]], JsonObject] = _alone

    def as_parts(self, content: object) -> list[object]:
        if isinstance(content, str):
            return [{**self.text_part, "text": content}]
        return list(content) if isinstance(content, list) else []


class _Backwards:
    """A history written anew from its end: each item is looked at once, however much is taken out."""

    def __init__(self, shape: Shape) -> None:
        self.written: list[JsonObject] = []
        """From the end; last is the nearest user message."""
        self.before: list[JsonObject] = []
        """What stands before that message, likewise."""
        self.receiver: Message | None = None
        """That message as it was; its item takes in what questions before it held."""
        self._shape = shape
        self._results: list[Moved] = []
        self._others: list[Moved] = []

    def put(self, item: JsonObject, view: Message) -> None:
        if view.role != "user":
            self.before.append(item)
            return
        self._settle()
        self.written += [*self.before, item]
        self.before, self.receiver = [], view

    def put_behind(self, items: Sequence[JsonObject]) -> None:
        """Directly behind the nearest user message."""
        self.written[-1:] = [*reversed(items), self.written[-1]]

    def give(self, moved: Sequence[Moved], view: Message) -> None:
        """To the nearest user message: in front of what it says, but behind results of tools, which come first."""
        of_tools = {part.slot for part in view.parts if isinstance(part, ToolResult)}
        first = next((place for place, one in enumerate(moved) if one.slot not in of_tools), len(moved))
        self._results += moved[:first]
        self._others += reversed(moved[first:])

    def items(self) -> list[JsonObject]:
        self._settle()
        return [*reversed(self.before), *reversed(self.written)]

    def _settle(self) -> None:
        moved = [*self._results, *reversed(self._others)]
        if moved and self.receiver is not None:
            item, at = self.written[-1], 0
            while at < len(self.receiver.parts) and isinstance(self.receiver.parts[at], ToolResult):
                at += 1
            old = self._shape.as_parts(item.get(self._shape.key))
            grown = {**item, self._shape.key: [*old[:at], *(part for part, _, _ in moved), *old[at:]]}
            self.written[-1] = self._shape.beside(grown, at, moved)
        self._results, self._others = [], []


def without_exchanges(
    items: list[JsonObject], views: list[Message], exchanges: Iterable[Exchange], shape: Shape
) -> list[JsonObject]:
    """The history without the typed parts of each question and without its answer; one that no user message follows stays."""
    history, end = _Backwards(shape), len(items)
    for exchange in sorted(exchanges, key=lambda one: one.asked, reverse=True):
        asked, answered, typed = exchange
        if not 0 <= asked <= answered < end or views[asked].role != "user":
            continue
        if asked < answered and views[answered].role != "assistant":
            continue
        for index in reversed(range(answered + 1, end)):
            history.put(items[index], views[index])
        end = answered + 1
        if history.receiver is None:
            continue
        answer = shape.as_parts(items[answered].get(shape.key)) if asked < answered else []
        history.give(_moved(items[asked], typed, answer, shape), views[asked])
        between = range(asked + 1, answered)
        history.put_behind([items[index] for index in between if views[index].role == "system"])
        for index in reversed(between):
            if views[index].role != "system":
                history.put(items[index], views[index])
        end = asked
    for index in reversed(range(end)):
        history.put(items[index], views[index])
    return history.items()


def _moved(question: JsonObject, typed: Collection[int], answer: list[object], shape: Shape) -> list[Moved]:
    """What is not typed; the last of it inherits a cache mark of what goes."""
    content = question.get(shape.key)
    parts = shape.as_parts(content)
    is_typed = [-1 in typed] if isinstance(content, str) else [slot in typed for slot in range(len(parts))]
    slots = [slot for slot, yes in enumerate(is_typed) if not yes]
    kept = [parts[slot] for slot in slots]
    heir = next((place for place in reversed(range(len(kept))) if _can_carry_mark(kept[place])), None)
    for part in reversed([*(part for part, yes in zip(parts, is_typed, strict=True) if yes), *answer]):
        _hand_on(_mark_of(part), kept, heir)
    return [Moved(part, question, slot) for part, slot in zip(kept, slots, strict=True)]


View = Callable[[int, JsonObject], Message]
"""The message at an index, as it is seen."""


def views_of(holder: JsonObject, field: str, view: View) -> list[Message]:
    """What is nothing but somebody's text is that in three dialects: most of a long history, so that nobody is asked about it."""
    views: list[Message] = []
    for index, item in enumerate(items_in(holder, field)):
        text = item.get("content")
        if type(text) is str and len(item) == 2 and (role := item.get("role")) in SPEAK:
            views.append(Message(cast("Role", role), [Text(text)], index))
        else:
            views.append(view(index, item))
    return views


def edit_history(
    call: Call, holder: JsonObject, field: str, edits: Mapping[tuple[int, int], str], shape: Shape, view: View
) -> None:
    """`edit_texts` where the history is a list of messages."""
    found = edits_by_message(call, edits)
    items = items_in(holder, field) if found else []
    for index, texts in found.items():
        items[index], _ = edited(items[index], shape.key, texts)
        call.messages[index] = view(index, items[index])
        call.changed = True


def drop_from_history(
    call: Call, holder: JsonObject, field: str, exchanges: Iterable[Exchange], shape: Shape, view: View
) -> bool:
    """`drop_exchanges`, likewise."""
    items = items_in(holder, field)
    left = without_exchanges(items, call.messages, exchanges, shape)
    if len(left) == len(items):
        return False
    holder[field] = left
    call.messages[:] = views_of(holder, field, view)
    call.changed = True
    return True


def sent(call: Call, model: str) -> bytes:
    """To the host that the client called, which is told its model in the body."""
    if not call.changed and model in ("", call.model):
        return call.raw
    return jsonbytes.dumps(renamed(call.body, model))


def renamed(body: JsonObject, model: str) -> JsonObject:
    """The body for this model; an empty one means that it names."""
    return {**body, "model": model} if model else body


def without(source: JsonObject, keys: Collection[str]) -> JsonObject:
    return {key: value for key, value in source.items() if key not in keys}


def left_behind(source: JsonObject, fields: Mapping[str, Feature], left: LeftOut) -> JsonObject:
    """The object without the fields that stay at the host the client called, each of them named; itself where it has none."""
    if fields.keys().isdisjoint(source):
        return source
    for name, feature in fields.items():
        if source.get(name) not in (None, "", {}, []):
            left.add(feature, name)
    return without(source, fields)


def without_deep(value: object, keys: Collection[str]) -> object:
    """The value without these fields, at any depth (the depth of a call is bounded)."""
    if isinstance(value, dict):
        return {key: without_deep(child, keys) for key, child in value.items() if key not in keys}
    if isinstance(value, list):
        return [without_deep(child, keys) for child in value]
    return value
