"""Google's contents, part by part."""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from collections import defaultdict, deque
from collections.abc import Collection, Mapping
from typing import Literal, NamedTuple

from ....jsonbytes import dumps
from ....short_cache import of_short
from ....values import Dialect, JsonObject, media_kind
from ...fields import list_of, object_of, text_of
from .. import opaque
from ..carried import unloaded
from ..neutral import Block, Feature, Media, Message, Seal, Text, Thought, ToolResult, ToolUse

_ROLES: dict[str, Literal["system", "user", "assistant"]] = {
    "user": "user",
    "function": "user",
    "tool": "user",
    "model": "assistant",
    "assistant": "assistant",
    "system": "system",
    "developer": "system",
}
_NOBODYS = frozenset(
    (
        "skip_thought_signature_validator",
        "context_engineering_is_the_way_to_go",
        "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I=",
        "Y29udGV4dF9lbmdpbmVlcmluZ19pc190aGVfd2F5X3RvX2dv",
    )
)
"""What clients write where a call has no signature, as text and as its base64."""
_PLAIN_ALPHABET = str.maketrans("-_", "+/")
"""Google's SDK for Python writes bytes in the alphabet for addresses, whatever they came in."""
_DATA = ("text", "inlineData", "fileData", "functionCall", "functionResponse", "executableCode", "codeExecutionResult")
_BESIDE = frozenset(("thought", "thoughtSignature", *_DATA))
_NOT_SAID: dict[str, Feature] = {
    "videoMetadata": Feature.VIDEO,
    "mediaProcessing": Feature.VIDEO,
    "mediaResolution": Feature.IMAGE_DETAIL,
    "toolCall": Feature.SERVER_RESULTS,
    "toolResponse": Feature.SERVER_RESULTS,
}
_GOOGLES_FILE = re.compile(r"(?:https://generativelanguage\.googleapis\.com/|gs://|files/)")
_ENDINGS = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "webp": "image/webp",
    "gif": "image/gif",
    "heic": "image/heic",
    "pdf": "application/pdf",
    "mp4": "video/mp4",
    "mov": "video/quicktime",
    "webm": "video/webm",
    "mp3": "audio/mpeg",
    "wav": "audio/wav",
    "txt": "text/plain",
}
_MOST_DIGITS = 18


@of_short(512)
def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word[:1].upper() + word[1:] for word in rest) if head else name


def named(value: object) -> JsonObject:
    """The object with its own fields (not those of what it holds) in camelCase; an empty one where there is none."""
    return {_camel(name) if "_" in name else name: one for name, one in object_of(value).items()}


def whole_of(value: object) -> int | None:
    """A whole number; Google takes them in quotes and with a fraction of nothing."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    if isinstance(value, str):
        digits = value.strip()
        fits = len(digits) <= _MOST_DIGITS and re.fullmatch(r"-?[0-9]+", digits)
        return int(digits) if fits else None
    return int(value) if abs(value) < 10**_MOST_DIGITS else None


def media_type_of(address: str) -> str:
    """What the end of a file's address says that it is."""
    return _ENDINGS.get(address.partition("?")[0].rpartition(".")[2].lower(), "")


class Others:
    """What was met and has no place in a conversation."""

    def __init__(self) -> None:
        self._found: dict[tuple[Feature, str], None] = {}

    def add(self, feature: Feature, what: str) -> None:
        self._found[feature, what] = None

    def unread(self, source: JsonObject, read: Collection[str], known: Mapping[str, Feature]) -> None:
        """Every field that says something and that nobody reads."""
        for name, value in source.items():
            if name not in read and value not in (None, False, "", [], {}):
                self.add(known.get(name, Feature.OTHER), name)

    @property
    def found(self) -> tuple[tuple[Feature, str], ...]:
        return tuple(self._found)


class History:
    """Contents in their order: what a result answers depends on the calls before it."""

    def __init__(self, others: Others) -> None:
        self._others = others
        self._open = _Open()
        self._answered: dict[str, ToolResult] = {}
        """By the id that the client gave."""
        self._used: set[str] = set()
        self._calls = self._results = 0

    def messages(self, content: JsonObject) -> list[Message]:
        """One message; two where a model's message holds results of tools as well."""
        parts = content.get("parts")
        blocks = unloaded([block for part in (parts if isinstance(parts, list) else [parts]) for block in self.blocks(part)])
        results = tuple(block for block in blocks if isinstance(block, ToolResult))
        rest = tuple(block for block in blocks if not isinstance(block, ToolResult))
        called = any(isinstance(block, ToolUse) for block in rest)
        role = _ROLES.get(text_of(content.get("role")).lower(), "assistant" if called else "user")
        if role == "user":
            return [Message(role, results + rest)] if blocks else []
        messages = [Message(role, rest)] if rest else []
        return [*messages, Message("user", results)] if results else messages

    def blocks(self, given: object) -> list[Block]:
        """One part; a plain string counts as its text."""
        if isinstance(given, str):
            return [Text(given)] if given else []
        part = named(given)
        self._others.unread(part, _BESIDE, _NOT_SAID)
        kind, *more = [name for name in _DATA if part.get(name) not in (None, "")] or ["text"]
        if more:  # a part is one thing; where some client puts two into one, both were said
            rest = {name: value for name, value in part.items() if name != kind}
            return [*self.blocks({kind: part[kind], "thought": part.get("thought")}), *self.blocks(rest)]
        word = text_of(part.get("thoughtSignature"))
        value = named(part.get(kind))
        match kind:
            case "functionCall":
                return [self._call(value, _seal(word, "call"))]
            case "functionResponse":
                return self._result(value)
            case "text":
                return _spoken(text_of(part.get("text")), word, thought=part.get("thought") is True)
            case "inlineData" | "fileData":
                shown: list[Block] = [_inline(value) if kind == "inlineData" else _filed(value)]
            case _:
                self._others.add(Feature.SERVER_RESULTS, "code execution as text")
                shown = [Text(_ran(value, code=kind == "executableCode"))]
        seal = _seal(word, "part")
        return [*shown, Thought("", seal)] if seal else shown

    def _call(self, call: JsonObject, seal: Seal | None) -> ToolUse:
        self._calls += 1
        name, given = text_of(call.get("name")), text_of(call.get("id"))
        id = given or f"{name}_{self._calls}"
        while id in self._used:  # some hosts give the tool's name as the id of every call
            id = f"{id}_{self._calls}"
        self._used.add(id)
        self._open.put(given, name, id)
        return ToolUse(id, name, dumps(object_of(call.get("args"))).decode(), seal=seal)

    def _result(self, answer: JsonObject) -> list[Block]:
        """Nothing where the client says the same once more: a session that Gemini CLI takes up again holds every result twice."""
        self._results += 1
        name, given = text_of(answer.get("name")), text_of(answer.get("id"))
        found = self._open.take(given, name)
        if found is None:
            id = given or f"{name}_result_{self._results}"
        else:
            name, id = name or found.name, found.id
        text, error = _answered(answer.get("response"))
        media = tuple(self._shown(part) for part in list_of(answer.get("parts")) if isinstance(part, dict))
        blocks = (*((Text(text),) if text else ()), *(one for one in media if one is not None))
        result = ToolResult(id, blocks, error=error, name=name)
        if found is None and given and self._answered.get(given) == result:
            return []
        self._answered[given] = result
        return [result]

    def _shown(self, given: object) -> Media | None:
        part = named(given)
        self._others.unread(part, _BESIDE, _NOT_SAID)
        if isinstance(part.get("inlineData"), dict):
            return _inline(named(part["inlineData"]))
        return _filed(named(part["fileData"])) if isinstance(part.get("fileData"), dict) else None


class _Called(NamedTuple):
    number: int
    name: str
    id: str


class _Open:
    """The calls whose results have not come; a result belongs to the first that fits."""

    def __init__(self) -> None:
        self._waiting: defaultdict[tuple[str, str], deque[_Called]] = defaultdict(deque)
        self._count = 0
        self._over: set[int] = set()

    def put(self, given: str, name: str, id: str) -> None:
        self._count += 1
        call = _Called(self._count, name, id)
        if given:
            self._waiting["id", given].append(call)
        self._waiting["name of one with an id" if given else "name", name].append(call)

    def take(self, given: str, name: str) -> _Called | None:
        """By its id; else by its name, where not both of them have one."""
        ways = [("name", name)] if given else [("name", name), ("name of one with an id", name)]
        found = self._first("id", given) if given else None
        found = found or min(filter(None, (self._first(*way) for way in ways)), default=None)
        if found is not None:
            self._over.add(found.number)
        return found

    def _first(self, kind: str, word: str) -> _Called | None:
        waiting = self._waiting.get((kind, word), deque())
        while waiting and waiting[0].number in self._over:
            waiting.popleft()
        return waiting[0] if waiting else None


def _seal(word: str, place: Literal["call", "part", ""]) -> Seal | None:
    if not word or word in _NOBODYS:
        return None
    foreign = opaque.unwrap(word.translate(_PLAIN_ALPHABET))
    return foreign or Seal(Dialect.GEMINI, "", {**({"for": place} if place else {}), "thoughtSignature": word})


def _spoken(text: str, word: str, *, thought: bool) -> list[Block]:
    seal = _seal(word, "" if thought else "part")
    if thought:
        return [Thought(text, seal)] if text or seal else []
    blocks: list[Block] = [Text(text)] if text else []
    return [*blocks, Thought("", seal)] if seal else blocks


def _answered(response: object) -> tuple[str, bool]:
    """The text of a result and whether it is an error: `output` or `error`, else the whole of what the tool said."""
    told = object_of(response)
    error = told.get("error") not in (None, "", False)
    if len(told) == 1:
        key, value = next(iter(told.items()))
        if key in ("output", "result", "error"):
            return _as_text(value), error
    return _as_text(told or response), error


def _as_text(value: object) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None or value == {} else dumps(value).decode()


def _inline(blob: JsonObject) -> Media:
    media_type, data = text_of(blob.get("mimeType")).lower(), text_of(blob.get("data"))
    name = text_of(blob.get("displayName"))
    if media_type.startswith("text/") and (text := _decoded(data)) is not None:
        return Media("file", media_type, text=text, name=name)
    return Media(media_kind(media_type), media_type, data=data.translate(_PLAIN_ALPHABET), name=name)


def _decoded(data: str) -> str | None:
    plain = data.translate(_PLAIN_ALPHABET)
    try:
        return b64decode(plain + "=" * (-len(plain) % 4), validate=True).decode()
    except (binascii.Error, ValueError):
        return None


def _filed(file: JsonObject) -> Media:
    """Files that Google keeps have an id; what anybody can fetch has an address."""
    address, name = text_of(file.get("fileUri")), text_of(file.get("displayName"))
    media_type = text_of(file.get("mimeType")).lower() or media_type_of(address)
    if _GOOGLES_FILE.match(address):
        return Media(media_kind(media_type), media_type, file_id=address, name=name)
    return Media(media_kind(media_type), media_type, url=address, name=name)


def _ran(value: JsonObject, *, code: bool) -> str:
    """Code that Google ran, and what came out, as the model's own text: no other dialect has its shape."""
    if code:
        return f"```{text_of(value.get('language')).lower()}\n{text_of(value.get('code'))}\n```"
    outcome, output = text_of(value.get("outcome")), text_of(value.get("output"))
    failed = "" if outcome in ("", "OUTCOME_OK") else f"{outcome}\n"
    return f"```output\n{failed}{output}\n```"
