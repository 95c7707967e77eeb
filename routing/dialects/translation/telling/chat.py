"""OpenAI Chat Completions: an answer from another dialect, told to a client of this one.

1. A stream is a role chunk, deltas, one chunk with the finish reason, the usage chunk if asked for, and `[DONE]`.
2. Thoughts are `reasoning_content`; what seals them is an entry of `reasoning_details`, as OpenRouter has them; what seals a call
   is its `extra_content`, as Google has it. A seal of another dialect is one opaque word there.
3. The message has one text: texts in a row are joined as they are, since some dialects cut a sentence into several.
4. A custom tool's call is told when it is whole: only then is its text known.
"""

from __future__ import annotations

from collections.abc import Iterable

from ....jsonbytes import dumps
from ....values import Dialect, JsonObject
from ...answers import chat as answers
from ...finish import decide_finish, is_cut
from ...signed import signed_fields
from ..ids import digest
from ..neutral import (
    Asked,
    Broken,
    CallEnded,
    CallPiece,
    CallStarted,
    Event,
    Finished,
    Media,
    MediaShown,
    Seal,
    Started,
    TextPiece,
    ThoughtEnded,
    ThoughtPiece,
    Tokens,
    ToolName,
)
from ..seals import wrap
from .words import CUT_OFF, free_text, told_media

_PREFIX = "chatcmpl-"
_DONE = b"data: [DONE]\n\n"


class Teller:
    """One stream."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._head = self._tail = b""
        """What stands around a chunk's delta; empty before the first one."""
        self._calls = 0
        self._thoughts = _Thoughts()
        self._tool = ToolName("")
        self._custom: list[str] | None = None
        """The arguments of an open custom call."""
        self._written = False
        """The open call has arguments."""
        self._id = ""
        self._half = False
        """The open call has not ended."""
        self._finished = False

    def tell(self, event: Event) -> bytes:
        # the many first
        if isinstance(event, TextPiece):
            return self._delta({"content": event.text})
        if isinstance(event, CallPiece):
            return self._call_piece(event.arguments)
        if isinstance(event, ThoughtPiece):
            return self._delta({"reasoning_content": self._thoughts.piece(event.text)})
        if isinstance(event, Started):
            return self._start(event.id)
        if isinstance(event, CallStarted):
            return self._call(event)
        if isinstance(event, CallEnded):
            return self._end_call(event.seal)
        if isinstance(event, ThoughtEnded):
            details = self._thoughts.end(event.seal)
            return self._delta({"reasoning_details": details}) if details else b""
        if isinstance(event, MediaShown):
            return self._delta(_shown(event.media))
        if isinstance(event, Finished):
            return self._finish(event)
        if isinstance(event, Broken):
            error = event.error
            return answers.write_error_event(error.status, error.message, error.code)
        return b""

    def close(self) -> bytes:
        return _DONE if self._finished else b""

    def _start(self, id: str) -> bytes:
        if self._head:
            return b""
        asked = self._asked
        chunk = {"id": answer_id(id, asked), "object": "chat.completion.chunk", "created": asked.created, "model": asked.model}
        choice = b',"choices":[{"index":0,"delta":'
        self._head = b"data: " + dumps(chunk)[:-1] + choice
        self._tail = b',"logprobs":null,"finish_reason":null}]' + (b',"usage":null' if asked.include_usage else b"") + b"}\n\n"
        return self._delta({"role": "assistant", "content": ""})

    def _delta(self, delta: JsonObject) -> bytes:
        started = b"" if self._head else self._start("")
        return started + self._head + dumps(delta) + self._tail

    # Calls

    def _call(self, event: CallStarted) -> bytes:
        self._tool = self._asked.tools.get(event.name, ToolName(event.name))
        self._id, self._written = call_id(event.id, self._calls, self._asked), False
        self._calls += 1
        self._half = True
        self._custom = [] if self._tool.custom else None
        return b"" if self._tool.custom else self._entry(_function(self._id, self._tool.name, ""))

    def _call_piece(self, arguments: str) -> bytes:
        if self._custom is not None:
            self._custom.append(arguments)
            return b""
        self._written = self._written or bool(arguments)
        return self._entry({"function": {"arguments": arguments}})

    def _end_call(self, seal: Seal | None) -> bytes:
        self._half = False
        sealed = _extra(seal)
        if self._custom is not None:
            whole, self._custom = "".join(self._custom), None
            return self._entry({**_custom(self._id, self._tool.name, free_text(whole)), **sealed})
        if self._written and not sealed:
            return b""
        return self._entry({"function": {"arguments": "" if self._written else "{}"}, **sealed})

    def _entry(self, entry: JsonObject) -> bytes:
        return self._delta({"tool_calls": [{"index": self._calls - 1, **entry}]})

    # The end

    def _finish(self, event: Finished) -> bytes:
        self._finished = True
        started = b"" if self._head else self._start("")
        half = self._half and is_cut(event.word)
        word = decide_finish(event.word, Dialect.CHAT, calls=None if half else bool(self._calls)).word
        out = started + self._head + b"{}" + self._tail.replace(b'"finish_reason":null', b'"finish_reason":' + dumps(word), 1)
        if not self._asked.include_usage:
            return out
        counts = self._head[: self._head.rindex(b',"choices":[')] + b',"choices":[],"usage":'
        return out + counts + dumps(_usage(event.tokens, self._asked)) + b"}\n\n"


def tell_whole(events: Iterable[Event], asked: Asked) -> bytes:
    """The whole JSON answer; an error where it broke off or never came to its end."""
    whole = _Whole(asked)
    for event in events:
        whole.hear(event)
    return whole.written()


class _Whole:
    """One message as it is put together."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._id = ""
        self._texts: list[str] = []
        self._reasoning: list[str] = []
        self._thoughts = _Thoughts()
        self._details: list[JsonObject] = []
        self._images: list[object] = []
        self._calls: list[JsonObject] = []
        self._started: CallStarted | None = None
        """The call that has not ended."""
        self._arguments: list[str] = []
        self._end: Finished | Broken | None = None

    def hear(self, event: Event) -> None:
        if isinstance(event, TextPiece):
            self._texts.append(event.text)
        elif isinstance(event, ThoughtPiece):
            self._reasoning.append(self._thoughts.piece(event.text))
        elif isinstance(event, ThoughtEnded):
            self._details += self._thoughts.end(event.seal)
        elif isinstance(event, CallStarted):
            self._started, self._arguments = event, []
        elif isinstance(event, CallPiece):
            self._arguments.append(event.arguments)
        elif isinstance(event, CallEnded):
            self._end_call(event.seal)
        elif isinstance(event, MediaShown):
            self._show(event.media)
        elif isinstance(event, Started):
            self._id = event.id
        elif isinstance(event, Finished | Broken):
            self._end = event

    def _show(self, media: Media) -> None:
        shown = _shown(media)
        if images := shown.get("images"):
            assert isinstance(images, list)
            self._images += images
        else:
            self._texts.append(str(shown["content"]))

    def _end_call(self, seal: Seal | None) -> None:
        started, self._started = self._started, None
        if started is None:
            return
        tool = self._asked.tools.get(started.name, ToolName(started.name))
        id, arguments = call_id(started.id, len(self._calls), self._asked), "".join(self._arguments)
        call = _custom(id, tool.name, free_text(arguments)) if tool.custom else _function(id, tool.name, arguments or "{}")
        self._calls.append({**call, **_extra(seal)})

    def written(self) -> bytes:
        if isinstance(self._end, Broken):
            error = self._end.error
            return answers.write_error(error.status, error.message, error.code)
        if self._end is None:
            return answers.write_error(502, CUT_OFF, "UPSTREAM_ERROR")
        asked = self._asked
        message: JsonObject = {"role": "assistant", "content": "".join(self._texts) or None, "refusal": None, "annotations": []}
        told: JsonObject = {"reasoning_content": "".join(self._reasoning), "reasoning_details": self._details}
        told |= {"images": self._images}
        half = self._started is not None and is_cut(self._end.word)
        if not half:
            self._end_call(None)
        told["tool_calls"] = self._calls
        message |= {name: value for name, value in told.items() if value}
        calls = None if half else bool(self._calls)
        word = decide_finish(self._end.word, Dialect.CHAT, calls=calls).word
        choice: JsonObject = {"index": 0, "message": message, "logprobs": None, "finish_reason": word}
        head: JsonObject = {"id": answer_id(self._id, asked), "object": "chat.completion", "created": asked.created}
        return dumps({**head, "model": asked.model, "choices": [choice], "usage": _usage(self._end.tokens, asked)})


class _Thoughts:
    """What stands between thoughts, and the entries that seal them."""

    def __init__(self) -> None:
        self._spoke = False
        self._open: list[str] = []
        self._details = 0

    def piece(self, text: str) -> str:
        """Two thoughts in one field have a blank line between them."""
        glue = "\n\n" if self._spoke and not self._open else ""
        self._spoke = True
        self._open.append(text)
        return glue + text

    def end(self, seal: Seal | None) -> list[JsonObject]:
        """A seal holds for its own text alone, so that it is repeated beside it. Entries are numbered: clients put lists without
        numbers together only once."""
        text, self._open = "".join(self._open), []
        if seal is None:
            return []
        if seal.dialect is Dialect.CHAT:
            given = seal.payload.get("reasoning_details")
            entries = [entry for entry in given if isinstance(entry, dict)] if isinstance(given, list) else []
        elif text:
            entries = [{"type": "reasoning.text", "text": text, "signature": wrap(seal)}]
        else:
            entries = [{"type": "reasoning.encrypted", "data": wrap(seal)}]
        first, self._details = self._details, self._details + len(entries)
        return [{**entry, "index": first + number} for number, entry in enumerate(entries)]


def answer_id(id: str, asked: Asked) -> str:
    return id if id.startswith(_PREFIX) else _PREFIX + digest(asked.id, 24)


def call_id(id: str, number: int, asked: Asked) -> str:
    return id or "call_" + digest(f"{asked.id}:{number}", 24)


def _function(id: str, name: str, arguments: str) -> JsonObject:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def _custom(id: str, name: str, input: str) -> JsonObject:
    return {"id": id, "type": "custom", "custom": {"name": name, "input": input}}


def _extra(seal: Seal | None) -> JsonObject:
    if seal is None:
        return {}
    if seal.dialect is Dialect.CHAT:
        return signed_fields(seal.payload)
    return {"extra_content": {"google": {"thought_signature": wrap(seal)}}}


def _shown(media: Media) -> JsonObject:
    """Pictures as OpenRouter and its clients have them; the message has no place for anything else."""
    if media.kind != "image" or not (media.data or media.url):
        return {"content": told_media(media)}
    url = media.url or f"data:{media.media_type or 'image/png'};base64,{media.data}"
    return {"images": [{"index": 0, "type": "image_url", "image_url": {"url": url}}]}


def _usage(tokens: Tokens | None, asked: Asked) -> JsonObject:
    """A provider that counted nothing leaves us our own count of the call."""
    counted = tokens or Tokens(input=asked.estimate)
    prompt: JsonObject = {"cached_tokens": counted.cached}
    if counted.written:
        prompt["cache_write_tokens"] = counted.written
    return {
        "prompt_tokens": counted.input,
        "completion_tokens": counted.output,
        "total_tokens": counted.input + counted.output,
        "prompt_tokens_details": prompt,
        "completion_tokens_details": {"reasoning_tokens": counted.reasoning},
    }
