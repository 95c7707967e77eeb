"""OpenAI Responses: an answer from another dialect, told to a client of this one.

1. A stream is response.created and .in_progress, output items one after another, then .completed, .incomplete or .failed. Numbers
   have no gap, and every `done` event repeats its whole content.
2. Texts in a row are parts of one message: some clients show nobody but the last message.
3. A thought is a reasoning item with one summary; a seal of another dialect is one opaque word in its `encrypted_content`. What
   seals a call stands in a reasoning item before it; for that a call's first piece waits for its second.
4. Calls of custom tools and of OpenAI's own are told when they are whole: only then is it known what they say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ....jsonbytes import dumps
from ....values import Dialect, JsonObject
from ...answers import responses as answers
from ...finish import decide_finish, is_cut
from ...sse import write_event
from ..neutral import (
    Asked,
    BlockEnded,
    Broken,
    CallEnded,
    CallPiece,
    CallStarted,
    Event,
    Finished,
    MediaShown,
    Seal,
    Started,
    TextPiece,
    ThoughtEnded,
    ThoughtPiece,
)
from ..seals import wrap
from .responses_items import (
    Call,
    Names,
    built_in,
    ended,
    message_item,
    picture_item,
    response_head,
    text_part,
)
from .words import CUT_OFF, told_media


class Teller:
    """One stream."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._names = Names(asked)
        self._own = built_in(asked)
        self._number = 0
        """The next sequence number."""
        self._head: JsonObject = {}
        """The response object; empty before it has begun."""
        self._output: list[JsonObject] = []
        """The items that are done. The open one has the next index."""
        self._open = ""
        """What is open: a text, a thought, or nothing. An open call is `_call`."""
        self._id = ""
        self._parts: list[JsonObject] = []
        """The parts of the open message that are done."""
        self._pieces: list[str] | None = None
        """The open part's text; None between two parts."""
        self._before = self._behind = b""
        """What stands around a delta of the open part, and its sequence number."""
        self._late: list[Seal] = []
        """They came behind a text, which may go on."""
        self._call: Call | None = None
        self._calls = 0
        self.ended: JsonObject | None = None
        """The response object at its end."""

    def tell(self, event: Event) -> bytes:
        return _TOLD[type(event)](self, event)

    def close(self) -> bytes:
        return b""

    # The response

    def _started(self, event: Started) -> bytes:
        return self._begin(event.id)

    def _begin(self, id: str = "") -> bytes:
        if self._head:
            return b""
        self._head = response_head(self._names.response(id), self._asked)
        return self._event("created", response=self._head) + self._event("in_progress", response=self._head)

    def _finished(self, event: Finished) -> bytes:
        half = self._call if is_cut(event.word) else None
        out = self._begin() + (self._between() if half is None else self._cut(half))
        finish = decide_finish(event.word, Dialect.RESPONSES, calls=bool(self._calls) if half is None else None)
        self.ended = ended(self._head, self._output, finish, event.tokens, self._asked)
        # an `error` beside the response makes the official SDKs raise, as for any failed answer
        error = {"error": self.ended["error"]} if self.ended["error"] else {}
        return out + self._event(str(self.ended["status"]), response=self.ended, **error)

    def _broken(self, event: Broken) -> bytes:
        error, asked = event.error, self._asked
        id = str(self._head.get("id") or self._names.response(""))
        about: dict[str, Any] = {"id": id, "model": asked.model, "created": asked.created, "sequence": self._number}
        return answers.write_error_event(error.status, error.message, error.code, **about)

    def _event(self, kind: str, **body: object) -> bytes:
        number, self._number = self._number, self._number + 1
        kind = f"response.{kind}"
        return write_event(dumps({"type": kind, "sequence_number": number, **body}), kind)

    # Items

    def _between(self) -> bytes:
        """Whatever is open ends here."""
        if self._call is not None:
            return self._call_ended(CallEnded())
        out = self._end_thought(None) if self._open == "thought" else self._end_message() if self._open else b""
        late, self._late = self._late, []
        return out + b"".join([self._sealed(seal) for seal in late])

    def _added(self, item: JsonObject) -> bytes:
        return self._event("output_item.added", output_index=len(self._output), item=item)

    def _done(self, item: JsonObject) -> bytes:
        out = self._event("output_item.done", output_index=len(self._output), item=item)
        self._output.append(item)
        self._open = ""
        return out

    def _about(self, **at: int) -> dict[str, Any]:
        return {"item_id": self._id, "output_index": len(self._output), **at}

    def _deltas(self, kind: str, at: dict[str, Any], tail: bytes = b"}\n\n") -> None:
        """What stands around a delta. Deltas are nearly all of a stream, so they are not built anew each time."""
        name = f"response.{kind}.delta".encode()
        self._before = b'event: %s\ndata: {"type":"%s","sequence_number":' % (name, name)
        self._behind = b"," + dumps(at)[1:-1] + b',"delta":'
        self._tail = tail

    def _delta(self, text: str) -> bytes:
        number, self._number = self._number, self._number + 1
        return b"".join((self._before, b"%d" % number, self._behind, dumps(text), self._tail))

    # Text

    def _text(self, event: TextPiece) -> bytes:
        if self._open == "text" and self._pieces is not None:
            self._pieces.append(event.text)
            return self._delta(event.text)
        if not event.text:
            return b""
        out = self._begin() if self._open == "text" else self._begin() + self._between() + self._begin_message()
        at = self._about(content_index=len(self._parts))
        out += self._event("content_part.added", **at, part=text_part(""))
        self._pieces = [event.text]
        self._deltas("output_text", at, b',"logprobs":[]}\n\n')
        return out + self._delta(event.text)

    def _begin_message(self) -> bytes:
        self._open, self._parts, self._pieces = "text", [], None
        self._id = self._names.item("msg", len(self._output))
        return self._added(message_item(self._id, [], "in_progress"))

    def _end_part(self) -> bytes:
        if self._pieces is None:
            return b""
        text, self._pieces = "".join(self._pieces), None
        at, part = self._about(content_index=len(self._parts)), text_part(text)
        self._parts.append(part)
        done = self._event("output_text.done", **at, text=text, logprobs=[])
        return done + self._event("content_part.done", **at, part=part)

    def _end_message(self) -> bytes:
        return self._end_part() + self._done(message_item(self._id, self._parts, "completed"))

    def _block_ended(self, event: BlockEnded) -> bytes:
        return self._end_part() if self._open == "text" else self._between() if self._open == "thought" else b""

    def _media(self, event: MediaShown) -> bytes:
        media = event.media
        if media.kind != "image" or not media.data:
            return self._text(TextPiece(told_media(media)))
        out = self._begin() + self._between()
        item = picture_item(self._names.item("ig", len(self._output)), media)
        return out + self._added({**item, "status": "in_progress", "result": None}) + self._done(item)

    # Thoughts

    def _thought(self, event: ThoughtPiece) -> bytes:
        if not event.text:
            return b""
        if self._open == "thought" and self._pieces is not None:
            self._pieces.append(event.text)
            return self._delta(event.text)
        out = self._begin() + self._between()
        self._open, self._pieces = "thought", [event.text]
        self._id = self._names.item("rs", len(self._output))
        out += self._added({"id": self._id, "type": "reasoning", "summary": []})
        at = self._about(summary_index=0)
        out += self._event("reasoning_summary_part.added", **at, part={"type": "summary_text", "text": ""})
        self._deltas("reasoning_summary_text", at)
        return out + self._delta(event.text)

    def _thought_ended(self, event: ThoughtEnded) -> bytes:
        if self._open == "thought":
            return self._end_thought(event.seal)
        if event.seal is None:
            return b""
        if self._open == "text":
            self._late.append(event.seal)
            return b""
        return self._begin() + self._between() + self._sealed(event.seal)

    def _end_thought(self, seal: Seal | None) -> bytes:
        text, self._pieces = "".join(self._pieces or ()), None
        at, part = self._about(summary_index=0), {"type": "summary_text", "text": text}
        out = self._event("reasoning_summary_text.done", **at, text=text)
        out += self._event("reasoning_summary_part.done", **at, part=part)
        return out + self._done({"id": self._id, "type": "reasoning", "summary": [part], **_seal_fields(seal)})

    def _sealed(self, seal: Seal) -> bytes:
        """A reasoning item of nothing but its seal."""
        item = {"id": self._names.item("rs", len(self._output)), "type": "reasoning", "summary": [], **_seal_fields(seal)}
        return self._added({**item, "encrypted_content": None}) + self._done(item)

    # Calls

    def _call_started(self, event: CallStarted) -> bytes:
        out = self._begin() + self._between()
        self._call = Call(event, self._asked, self._names, self._own)
        self._calls += 1
        return out

    def _call_piece(self, event: CallPiece) -> bytes:
        call = self._call
        if call is None or not event.arguments:
            return b""
        call.pieces.append(event.arguments)
        if call.live:
            return self._delta(event.arguments)
        if call.kind != "function" or len(call.pieces) < 2:
            return b""
        return self._begin_call(call) + self._delta("".join(call.pieces))

    def _begin_call(self, call: Call) -> bytes:
        call.live = True
        call.id = self._id = self._names.item(call.prefix, len(self._output))
        self._deltas("custom_tool_call_input" if call.kind == "custom" else "function_call_arguments", self._about())
        return self._added(call.item("in_progress", opening=True))

    def _call_ended(self, event: CallEnded) -> bytes:
        call, self._call = self._call, None
        if call is None:
            return b""
        out = b""
        if not call.live:
            out = self._sealed(event.seal) if event.seal is not None else b""
            out += self._begin_call(call)
            out += self._delta(call.arguments) if call.kind in ("function", "custom") else b""
        if call.kind == "function":
            out += self._event("function_call_arguments.done", **self._about(), name=call.tool.name, arguments=call.arguments)
        elif call.kind == "custom":
            out += self._event("custom_tool_call_input.done", **self._about(), input=call.arguments)
        return out + self._done(call.item("completed"))

    def _cut(self, call: Call) -> bytes:
        """The call that the answer broke off in: told as such where the client knows of it already."""
        self._call = None
        return self._done(call.item("incomplete")) if call.live else b""


_TOLD: dict[type, Callable[[Teller, Any], bytes]] = {
    Started: Teller._started,
    TextPiece: Teller._text,
    ThoughtPiece: Teller._thought,
    ThoughtEnded: Teller._thought_ended,
    CallStarted: Teller._call_started,
    CallPiece: Teller._call_piece,
    CallEnded: Teller._call_ended,
    MediaShown: Teller._media,
    BlockEnded: Teller._block_ended,
    Finished: Teller._finished,
    Broken: Teller._broken,
}


def _seal_fields(seal: Seal | None) -> JsonObject:
    if seal is None:
        return {}
    if seal.dialect is not Dialect.RESPONSES:
        return {"encrypted_content": wrap(seal)}
    return {name: value for name in ("content", "encrypted_content") if (value := seal.payload.get(name))}


def tell_whole(events: Iterable[Event], asked: Asked) -> bytes:
    """The whole JSON answer; an error where it broke off or never came to its end."""
    teller = Teller(asked)
    for event in events:
        if isinstance(event, Broken):
            return answers.write_error(event.error.status, event.error.message, event.error.code)
        teller.tell(event)
    return dumps(teller.ended) if teller.ended is not None else answers.write_error(502, CUT_OFF, "UPSTREAM_ERROR")
