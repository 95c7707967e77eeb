"""OpenAI Chat's assistant message: as it grows in a stream, as a history holds it, and those of several rounds as one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from ...jsonbytes import dumps
from ...turn.said import Said
from ...values import Dialect, JsonObject, ProviderError, ToolCall
from ..calls.replacing import view_of
from ..fields import list_of, object_of, text_of
from ..finish import Endings, holds_calls, is_whole_call
from .common import BLANK_LINE, GrowingText, usage_in

_BODIES = {"function": "arguments", "custom": "input"}
"""The kinds of tool calls, and where what the model wrote for the tool stands in each."""
_THINKING = ("reasoning", "thinking")
"""How the names of fields and parts begin that hold thinking: of a later round only the history holds it."""


def is_thinking(name: object) -> bool:
    return isinstance(name, str) and name.startswith(_THINKING)


@dataclass(slots=True)
class GrowingCall:
    """One tool call of a stream."""

    kind: str = "function"
    name: str = ""
    own: bool | None = None
    """Whether its tool is ours; None while its name has not come."""
    place: int = -1
    """Its index as the client counts."""
    waiting: list[JsonObject] = field(default_factory=list)
    """Its entries from before its name came."""
    _entry: JsonObject = field(default_factory=dict)
    _body: JsonObject = field(default_factory=dict)
    _written: GrowingText = field(default_factory=GrowingText)

    @property
    def id(self) -> str:
        return text_of(self._entry.get("id"))

    def add(self, entry: JsonObject) -> None:
        """Names and ids come once, some providers repeat them; only what the model writes for the tool grows."""
        for name, value in entry.items():
            if name in _BODIES and isinstance(value, dict):
                self.kind = name
                self._add_to_body(value)
            elif name != "index" and not self._entry.get(name) and value is not None:
                self._entry[name] = value

    def _add_to_body(self, body: JsonObject) -> None:
        for name, value in body.items():
            if name == _BODIES[self.kind]:
                self._written.add(value if isinstance(value, str) else dumps(value).decode() if value else "")
            elif not self._body.get(name) and value is not None:
                self._body[name] = value
        self.name = text_of(self._body.get("name"))

    @property
    def written(self) -> JsonObject:
        body = {"name": self.name, **self._body, _BODIES[self.kind]: str(self._written)}
        return {"id": "", "type": self.kind, **self._entry, self.kind: body}


class GrowingMessage:
    """One round's message, from its deltas."""

    def __init__(self, own_tools: frozenset[str]) -> None:
        self._own = own_tools
        self._at: dict[object, GrowingCall] = {}
        """The call that an index names at the moment."""
        self.calls: list[GrowingCall] = []
        self._function: GrowingCall | None = None
        """The call of the old kind: there is only one."""
        self._content: GrowingText | list[JsonObject] = GrowingText()
        self._fields: dict[str, object] = {}

    def add(self, delta: JsonObject) -> list[GrowingCall]:
        """Take a delta in; the calls that its entries belong to, one for each."""
        calls: list[GrowingCall] = []
        for name, value in delta.items():
            if value is None or name == "role":
                continue
            if name == "content":
                self._add_content(value)
            elif name == "tool_calls":
                calls += [self._add_call(entry) for entry in list_of(value) if isinstance(entry, dict)]
            elif name == "function_call":
                calls.append(self._add_function(object_of(value)))
            else:
                self._add_field(name, value)
        return calls

    def _add_call(self, entry: JsonObject) -> GrowingCall:
        index = entry.get("index") if isinstance(entry.get("index"), int) else None
        id = text_of(entry.get("id"))
        name = next((text_of(object_of(entry.get(kind)).get("name")) for kind in _BODIES if kind in entry), "")
        known = self._at.get(index)
        # some providers give every call the same index, or none; then a new id and a name begin a call
        begins = known is None or (bool(name) and bool(known.name) and (id != known.id if id else index is None))
        if known is None or begins:
            known = self._at[index] = GrowingCall()
            self.calls.append(known)
        known.add(entry)
        if known.own is None and known.name:
            known.own = known.name in self._own
        return known

    def _add_function(self, body: JsonObject) -> GrowingCall:
        if self._function is None:
            self._function = GrowingCall()
        self._function.add({"function": body})
        self._function.own = self._function.name in self._own
        return self._function

    def _add_content(self, value: object) -> None:
        """Text, or (some providers) a list of parts."""
        if isinstance(self._content, GrowingText):
            if isinstance(value, str):
                self._content.add(value)
                return
            text = str(self._content)
            self._content = [{"type": "text", "text": text}] if text else []
        added = [{"type": "text", "text": value}] if isinstance(value, str) and value else list_of(value)
        for part in added:
            last = self._content[-1] if self._content else {}
            if not isinstance(part, dict):
                continue
            if part.get("type") == last.get("type") == "text":
                self._content[-1] = {**last, **part, "text": text_of(last.get("text")) + text_of(part.get("text"))}
            else:
                self._content.append(part)

    def _add_field(self, name: str, value: object) -> None:
        old = self._fields.get(name)
        if isinstance(value, str):
            if isinstance(old, GrowingText):
                old.add(value)
            else:
                self._fields[name] = GrowingText(value)
        elif isinstance(value, list):
            self._fields[name] = _with_entries(list_of(old), value)
        elif isinstance(value, dict):
            self._fields[name] = {**object_of(old), **value}
        else:
            self._fields[name] = value

    @property
    def breaks_off(self) -> bool:
        """The last call is not whole."""
        last = self.calls[-1] if self.calls else self._function
        return (
            last is not None
            and last.kind == "function"
            and not is_whole_call(text_of(object_of(last.written["function"])["arguments"]))
        )

    @property
    def message(self) -> JsonObject:
        """The message as a whole answer has it."""
        content: object = str(self._content) if isinstance(self._content, GrowingText) else self._content
        whole: JsonObject = {"role": "assistant", "content": content or None}
        whole |= {name: str(value) if isinstance(value, GrowingText) else value for name, value in self._fields.items()}
        if self.calls:
            whole["tool_calls"] = [call.written for call in self.calls]
        if self._function is not None:
            whole["function_call"] = self._function.written["function"]
        return whole


def _with_entries(old: list[object], new: list[object]) -> list[object]:
    """A list that grows. OpenRouter sends one piece of reasoning as many entries of one index, its signature in the last."""
    entries = list(old)
    for entry in new:
        last = entries[-1] if entries else None
        if isinstance(entry, dict) and isinstance(last, dict) and _goes_on(last, entry):
            told = {name: value for name, value in entry.items() if value is not None}
            grown = {name: text_of(last.get(name)) + text_of(told[name]) for name in ("text", "summary") if name in told}
            entries[-1] = {**last, **told, **grown}
        else:
            entries.append(entry)
    return entries


def _goes_on(last: JsonObject, entry: JsonObject) -> bool:
    return "index" in entry and all(last.get(name) == entry.get(name) for name in ("type", "index")) and "data" not in last


# --- what a message says ------------------------------------------------------------------------------------------------


def said_of(
    message: JsonObject,
    *,
    word: object,
    usage: JsonObject,
    id: str,
    own_tools: frozenset[str],
    endings: Endings,
    complete: bool = True,
    error: ProviderError | None = None,
) -> Said:
    """What a round said. A refusal is no plain stop, though its reason says so."""
    calls = calls_in(message)
    finish = endings.read(word, Dialect.CHAT, calls=holds_calls(call.arguments for call in calls), error=error is not None)
    if finish == "stop" and message.get("refusal"):
        finish = "content_filter"
    return Said(
        text=text_in(message),
        calls=calls,
        own=tuple(call for call in calls if call.name in own_tools),
        finish=finish,
        usage=usage_in(Dialect.CHAT, usage),
        id=id,
        native=as_history(message),
        complete=complete,
        error=error,
    )


def text_in(message: JsonObject) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    return "".join(
        text_of(part.get("text")) for part in list_of(content) if isinstance(part, dict) and part.get("type") == "text"
    )


def calls_in(message: JsonObject) -> tuple[ToolCall, ...]:
    """As a history is read."""
    item: JsonObject = {"role": "assistant"}
    item |= {name: message[name] for name in ("tool_calls", "function_call") if name in message}
    parts = view_of(Dialect.CHAT, 0, item).parts
    return tuple(replace(part, slot=-1) for part in parts if isinstance(part, ToolCall))


def as_history(message: JsonObject) -> tuple[JsonObject, ...]:
    """The message as a history takes it; none where it holds nothing but thinking and white space."""
    kept = {name: value for name, value in message.items() if value not in (None, [])}
    if not any(_says_something(value) and name != "role" and not is_thinking(name) for name, value in kept.items()):
        return ()
    if isinstance(audio := kept.get("audio"), dict):
        kept["audio"] = {"id": audio.get("id")}
    content = message.get("content")
    return ({**kept, "role": "assistant", "content": content if isinstance(content, str | list) else None},)


def _says_something(value: object) -> bool:
    return bool(value.strip()) if isinstance(value, str) else bool(value)


# --- several rounds -------------------------------------------------------------------------------------------------------


def merged_message(messages: Sequence[JsonObject], own_tools: frozenset[str]) -> JsonObject:
    """What the client holds of several rounds' messages. A stream shows the same: `chat.Merging`."""
    merged = {name: value for name, value in messages[0].items() if name not in ("tool_calls", "function_call")}
    for message in messages[1:]:
        for name, value in message.items():
            if name in ("role", "content", "tool_calls", "function_call") or is_thinking(name) or value is None:
                continue
            old = merged.get(name)
            if isinstance(old, list) and isinstance(value, list):
                merged[name] = [*old, *value]
            elif isinstance(old, str) and isinstance(value, str):
                merged[name] = old + value
            else:
                merged[name] = value
    merged["content"] = _merged_content([message.get("content") for message in messages])
    if calls := [call for message in messages for call in list_of(message.get("tool_calls")) if not _is_own(call, own_tools)]:
        merged["tool_calls"] = calls
    functions = [message.get("function_call") for message in messages]
    if functions := [call for call in functions if call and object_of(call).get("name") not in own_tools]:
        merged["function_call"] = functions[0]
    return merged


def _is_own(call: object, own_tools: frozenset[str]) -> bool:
    bodies = (object_of(object_of(call).get(kind)) for kind in _BODIES)
    return any(body.get("name") in own_tools for body in bodies)


def _merged_content(contents: Sequence[object]) -> object:
    texts = [content for content in contents if isinstance(content, str) and content]
    parts = [content for content in contents if isinstance(content, list)]
    if not parts:
        return BLANK_LINE.join(texts) or contents[0]
    merged: list[object] = []
    for number, content in enumerate(contents):
        shown = as_parts(content)
        if number:
            shown = with_glue(shown_parts(shown)) if any(_text_of_part(part) for part in merged) else shown_parts(shown)
        merged += shown
    return merged


def as_parts(content: object) -> list[object]:
    return [{"type": "text", "text": content}] if isinstance(content, str) and content else list_of(content)


def shown_parts(parts: Iterable[object]) -> list[object]:
    """The parts of a later round that the client sees."""
    return [part for part in parts if not (isinstance(part, dict) and is_thinking(part.get("type")))]


def with_glue(parts: list[object]) -> list[object]:
    """The parts with a blank line in front of their text; as they are where they have none."""
    return [{"type": "text", "text": BLANK_LINE}, *parts] if any(map(_text_of_part, parts)) else parts


def _text_of_part(part: object) -> str:
    return text_of(part.get("text")) if isinstance(part, dict) and part.get("type") == "text" else ""
