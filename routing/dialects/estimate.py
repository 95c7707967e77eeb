"""How many tokens a call is, guessed from its text and corrected by what providers count.

1. Only what a model reads counts: text, tools and their schemas, calls, results, thinking, media. Routing metadata never does.
2. The guess costs no loop over characters; the correction is bounded in size and in effect.
"""

from __future__ import annotations

from collections import OrderedDict

from msgspec import Struct, field

from .. import jsonbytes
from ..values import Call, Dialect, JsonObject, Media, Message, Part, Target, Text, ToolCall, ToolResult, Usage, media_kind
from .calls import inner_body
from .calls.replacing import LIST_KEYS

_PER_ASCII = 1 / 3.8
"""Tokens for a character: between English prose (1/4.4) and code (1/3.3)."""
_PER_LETTER = 0.4
"""Beyond ASCII with two bytes: accents, Cyrillic, Greek, Hebrew, Arabic."""
_PER_IDEOGRAPH = 0.8
"""With three bytes: Chinese, Japanese, Korean and most others. Four bytes (emoji) count as two of these less one letter."""
_MOST_PER_BYTE = 0.3
"""Of any text, however it is written: emoji come to so much."""
_TOKENS_PER_MESSAGE = 4
_TOKENS_PER_MEDIA = {"image": 1_200, "audio": 1_000, "video": 5_000, "file": 3_000}
_SEAL_OVERHEAD = 650
"""Bytes of an encrypted thinking that are not the thinking."""

_DECLARATIONS = {
    Dialect.MESSAGES: ("tools",),
    Dialect.CHAT: ("tools", "functions", "response_format"),
    Dialect.RESPONSES: ("tools", "text"),
    Dialect.GEMINI: ("tools",),
}
"""Fields beside the messages that the model is shown as JSON."""

_MEDIA = {
    "image": "image",
    "image_url": "image",
    "input_image": "image",
    "input_audio": "audio",
    "video": "video",
    "video_url": "video",
    "input_video": "video",
    "document": "file",
    "file": "file",
    "input_file": "file",
    "computer_screenshot": "image",
    "image_generation_call": "image",
}
"""Part type → what it is."""
_GEMINI_MEDIA = ("inlineData", "inline_data", "fileData", "file_data")
_AS_JSON = frozenset({"input", "args", "arguments", "response", "action", "operation", "tools"})
"""Fields whose objects the model reads as JSON."""
_SEALS = frozenset({"encrypted_content", "signature", "data"})
"""Thinking that only its maker can read, but counts."""
_UNREAD = frozenset(
    {
        "id",
        "type",
        "role",
        "status",
        "phase",
        "call_id",
        "tool_use_id",
        "tool_call_id",
        "cache_control",
        "output_config",
        "internal_chat_message_metadata_passthrough",
        "extra_content",
        "reasoning_details",
        "thoughtSignature",
        "thought_signature",
        "reasoning_opaque",
        "mimeType",
        "mime_type",
        "media_type",
        "detail",
    }
)
"""Fields that are for the machinery, not for the model."""


_PLAIN_ITEM = frozenset({"role", "content", "type", "parts", "id", "status"})
"""Fields of what nearly all of a long history is made of."""
_TEXT_ALONE: set[type] = {Text}
_PLAIN_TEXT = frozenset({"type", "text", "cache_control"})
_PLAIN_CALL = frozenset({"type", "id", "name", "input", "cache_control"})
_PLAIN_RESULT = frozenset({"type", "tool_use_id", "content", "is_error", "cache_control"})
"""Fields of such parts of which the view says all that there is to count."""


class _Reading(Struct):
    """What was found in a call."""

    texts: list[str] = field(default_factory=list)
    media: int = 0
    sealed: int = 0

    def add_history(self, items: object, messages: list[Message]) -> None:
        """The items, of which these are the views; most views say all that there is to count."""
        if not isinstance(items, list) or len(items) != len(messages):
            self.add(items)
            return
        for item, message in zip(items, messages, strict=True):
            if not isinstance(item, dict) or not item.keys() <= _PLAIN_ITEM:
                self.add(item)
            elif set(map(type, message.parts)) <= _TEXT_ALONE:
                for part in message.parts:
                    self._add_text(part.text)  # type: ignore[union-attr]
            elif isinstance(content := item.get("content"), list) and len(content) == len(message.parts):
                for raw, part in zip(content, message.parts, strict=True):
                    self._add_part(raw, part)
            else:
                self.add(item)

    def _add_part(self, raw: object, part: Part) -> None:
        if not isinstance(raw, dict):
            self.add(raw)
        elif isinstance(part, ToolResult) and isinstance(raw.get("content"), str) and raw.keys() <= _PLAIN_RESULT:
            self._add_text(part.text)
        elif isinstance(part, ToolCall) and isinstance(raw.get("input"), dict) and raw.keys() <= _PLAIN_CALL:
            self.texts += (part.name, part.arguments)
        elif isinstance(part, Text) and raw.keys() <= _PLAIN_TEXT:
            self._add_text(part.text)
        else:
            self.add(raw)

    def add(self, value: object) -> None:
        """Everything below `value` that a model reads."""
        todo = [value]
        while todo:
            found = todo.pop()
            if isinstance(found, str):
                self._add_text(found)
            elif isinstance(found, list):
                todo.extend(found)
            elif isinstance(found, dict):
                kind = _media_kind(found)
                if kind is not None:
                    self.media += _TOKENS_PER_MEDIA[kind]
                else:
                    self._add_object(found, todo)

    def _add_text(self, text: str) -> None:
        if text.startswith("data:") and ";base64," in text[:100]:
            self.media += _TOKENS_PER_MEDIA["image"]
        else:
            self.texts.append(text)

    def _add_object(self, entry: JsonObject, todo: list[object]) -> None:
        for key, value in entry.items():
            if key in _UNREAD:
                continue
            if key in _SEALS and entry.get("type") != "text":
                # thinking that stands there in the open is not counted a second time
                if isinstance(value, str) and not entry.get("thinking") and not entry.get("summary"):
                    self.sealed += max(0, len(value) * 3 // 4 - _SEAL_OVERHEAD)
            elif key in _AS_JSON and isinstance(value, (dict, list)):
                self.texts.append(jsonbytes.dumps(value).decode())
            else:
                todo.append(value)


def _media_kind(entry: JsonObject) -> str | None:
    kind = entry.get("type")
    if isinstance(kind, str) and kind in _MEDIA:
        source = entry.get("source")
        readable = isinstance(source, dict) and source.get("type") in ("text", "content")
        return None if readable else _MEDIA[kind]
    for key in _GEMINI_MEDIA:
        if key not in entry:
            continue
        blob = entry[key]
        mime = blob.get("mimeType", blob.get("mime_type")) if isinstance(blob, dict) else None
        return media_kind(mime) if isinstance(mime, str) else "file"
    return None


def estimate_tokens(call: Call) -> int:
    """A guess at the input tokens of a call; see `Calibration` for making it a good one."""
    body = inner_body(call)
    reading = _Reading([call.system])
    reading.add_history(body.get(LIST_KEYS[call.endpoint.dialect]), call.messages)
    for name in _DECLARATIONS[call.endpoint.dialect]:
        if declared := body.get(name):
            reading.texts.append(jsonbytes.dumps(declared).decode())
    guess = sum(map(_text_tokens, reading.texts)) + reading.sealed / 4
    return max(1, round(guess) + reading.media + _TOKENS_PER_MESSAGE * len(call.messages))


def at_most(call: Call, size: int) -> float:
    """No call of so many bytes is more tokens than this, by the same guess; told without a look at its texts."""
    media = list(map(type, call.parts)).count(Media)
    return size * _MOST_PER_BYTE + _TOKENS_PER_MESSAGE * len(call.messages) + max(_TOKENS_PER_MEDIA.values()) * media


def _text_tokens(text: str) -> float:
    if text.isascii():
        return len(text) * _PER_ASCII
    ascii_only = len(text.encode("ascii", "ignore"))
    beyond = len(text) - ascii_only
    ideographs = len(text.encode("utf-8", "surrogatepass")) - ascii_only - 2 * beyond
    return ascii_only * _PER_ASCII + (beyond - ideographs) * _PER_LETTER + ideographs * _PER_IDEOGRAPH


def count_answer(dialect: Dialect, tokens: int) -> bytes:
    """The answer to a call that asks for a count."""
    return jsonbytes.dumps({"totalTokens" if dialect is Dialect.GEMINI else "input_tokens": tokens})


_LARGEST_TABLE = 1_000
_FACTORS = (0.3, 4.0)
_MEMORY = 0.7
"""How much of what was learned before still counts after the next answer."""


class _Seen(Struct):
    estimated: float = 0.0
    counted: float = 0.0


class Calibration:
    """What providers' counts say about our estimates, by provider and model and by how large the call was.

    Calls of one size resemble each other (a title request, a first turn, a long history), so each size learns for itself; a
    size that was never seen uses the nearest one that was.
    """

    def __init__(self) -> None:
        self._seen: OrderedDict[tuple[str, str], dict[int, _Seen]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._seen)

    def learn(self, target: Target, estimated: int, usage: Usage) -> None:
        """An answer has come: `estimated` is the uncorrected estimate of its call."""
        if estimated <= 0 or usage.input <= 0:
            return
        sizes = self._seen.setdefault(target.group, {})
        self._seen.move_to_end(target.group)
        if len(self._seen) > _LARGEST_TABLE:
            self._seen.popitem(last=False)
        # a provider that counts wildly wrong must not weigh more than its bound
        low, high = _FACTORS
        counted = min(max(float(usage.input), low * estimated), high * estimated)
        seen = sizes.setdefault(_size(estimated), _Seen())
        seen.estimated = seen.estimated * _MEMORY + estimated
        seen.counted = seen.counted * _MEMORY + counted

    def apply(self, target: Target, estimate: int) -> int:
        """The estimate as this target would count; unchanged where nothing is known."""
        sizes = self._seen.get(target.group)
        if not sizes:
            return estimate
        self._seen.move_to_end(target.group)
        size = _size(estimate)
        seen = sizes[min(sizes, key=lambda known: (abs(known - size), known))]
        return max(1, round(estimate * seen.counted / seen.estimated))


def _size(estimate: int) -> int:
    """Calls within a factor of four are of one size."""
    return min(max(estimate, 1).bit_length(), 64) // 2
