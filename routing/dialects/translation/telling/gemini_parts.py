"""What a stream and a whole answer of Gemini's share: parts, ids, seals, counts."""

from __future__ import annotations

from ....values import Dialect, JsonObject
from ...fields import arguments_of, text_of
from ..carried import carry
from ..ids import digest
from ..neutral import (
    Asked,
    CallEnded,
    CallPiece,
    CallStarted,
    Event,
    Media,
    MediaShown,
    Seal,
    TextPiece,
    Thought,
    ThoughtEnded,
    ThoughtPiece,
    Tokens,
)
from ..seals import wrap

_PLAIN = frozenset(("text", "thought"))


class Parts:
    """Parts as they are complete."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._call: CallStarted | None = None
        self._pieces: list[str] = []
        self._given: set[str] = set()
        self._thinking: list[str] = []
        """Pieces of the thought that has not ended."""
        self._thoughts: list[Thought] = []
        """Of another dialect: the next call carries them."""
        self._first = True
        """They began the answer."""
        self.spoken = False
        """Something else than thinking has been told."""
        self.calls = 0

    @property
    def is_idle(self) -> bool:
        """No call is open."""
        return self._call is None

    def of(self, event: Event) -> list[JsonObject]:
        match event:
            case CallPiece():
                self._pieces.append(event.arguments)
                return []
            case CallEnded():
                return self.rest(event.seal)
            case CallStarted():
                rest = self.rest()
                self._call = event
                return rest
            case TextPiece() if event.text:
                self.spoken = True
                return [*self.rest(), {"text": event.text}]
            case ThoughtPiece() if event.text:
                self._thinking.append(event.text)
                return [*self.rest(), {"text": event.text, "thought": True}]
            case ThoughtEnded():
                return self._thought(event.seal)
            case MediaShown():
                return [*self.rest(), media_part(event.media)]
            case _:
                return []

    def _thought(self, seal: Seal | None) -> list[JsonObject]:
        text = "".join(self._thinking)
        self._thinking.clear()
        if seal is None:
            return []
        rest = self.rest()
        if seal.dialect is not Dialect.GEMINI:
            self._first = not self.spoken if not self._thoughts else self._first
            self._thoughts.append(Thought(text, seal))
        return [*rest, sealed_part(seal)]

    def _carried(self) -> Seal | None:
        """Of the open call: clients keep its signature, and not every one keeps thoughts."""
        seal = carry(self._thoughts, first=self._first)
        self._thoughts.clear()
        return seal

    def drop(self) -> bool:
        """The open call broke off: it is not told. Whether there is one."""
        half, self._call = self._call is not None, None
        self._pieces.clear()
        return half

    def rest(self, seal: Seal | None = None) -> list[JsonObject]:
        """The open call, which is over."""
        call, self._call = self._call, None
        arguments = "".join(self._pieces)
        self._pieces.clear()
        if call is None:
            return []
        self.calls += 1
        self.spoken = True
        seal = seal or self._carried()
        known = self._asked.tools.get(call.name)
        name = known.name if known is not None else call.name
        part: JsonObject = {"functionCall": {"id": self._id(call), "name": name, "args": args_of(arguments)}}
        return [{**part, "thoughtSignature": word_of(seal)} if seal is not None else part]

    def _id(self, call: CallStarted) -> str:
        id = call.id
        if not id or id in self._given:
            id = f"call_{digest(f'{self._asked.id} {self.calls} {call.name}', 24)}"
        self._given.add(id)
        return id


class Joined:
    """The parts of a whole answer: neighbouring pieces of one text are one part, and a thought's seal stands on it."""

    def __init__(self) -> None:
        self._parts: list[JsonObject] = []
        self._pieces: list[str] = []
        """Of the last part, where it may grow."""

    def add(self, parts: list[JsonObject]) -> None:
        for part in parts:
            last = self._parts[-1] if self._pieces else {}
            if self._pieces and last.get("thought") == part.get("thought") and not part.keys() - _PLAIN:
                self._pieces.append(text_of(part["text"]))
            elif last.get("thought") is True and part.get("thought") is True:
                self.close()
                last["thoughtSignature"] = part["thoughtSignature"]
            else:
                self.close()
                self._parts.append(dict(part))
                if not part.keys() - _PLAIN:
                    self._pieces.append(text_of(part["text"]))

    def close(self) -> None:
        """What comes next is another part."""
        if self._pieces:
            self._parts[-1]["text"] = "".join(self._pieces)
            self._pieces.clear()

    @property
    def parts(self) -> list[JsonObject]:
        """All of them, and never none."""
        self.close()
        return self._parts or [{"text": ""}]


def identity_of(id: str, asked: Asked) -> JsonObject:
    return {"modelVersion": asked.model, "responseId": id or digest(asked.id, 24)}


def usage_of(tokens: Tokens) -> JsonObject:
    cached: JsonObject = {"cachedContentTokenCount": tokens.cached} if tokens.cached else {}
    thoughts: JsonObject = {"thoughtsTokenCount": tokens.reasoning} if tokens.reasoning else {}
    return {
        "promptTokenCount": tokens.input,
        **cached,
        "candidatesTokenCount": max(0, tokens.output - tokens.reasoning),
        **thoughts,
        "totalTokenCount": tokens.input + max(tokens.output, tokens.reasoning),
    }


def sealed_part(seal: Seal) -> JsonObject:
    """An empty part with a seal. Gemini CLI keeps no thoughts, so one that stood on a text stays on a text."""
    thought: JsonObject = {} if seal.dialect is Dialect.GEMINI and seal.payload.get("for") == "part" else {"thought": True}
    return {"text": "", **thought, "thoughtSignature": word_of(seal)}


def word_of(seal: Seal) -> str:
    own = text_of(seal.payload.get("thoughtSignature")) if seal.dialect is Dialect.GEMINI else ""
    return own or wrap(seal)


def media_part(media: Media) -> JsonObject:
    kind = {"mimeType": media.media_type} if media.media_type else {}
    if media.data:
        return {"inlineData": {**kind, "data": media.data}}
    return {"fileData": {**kind, "fileUri": media.url or media.file_id}}


def args_of(text: str) -> JsonObject:
    """Some providers write `null` for a tool without parameters."""
    return {} if text.strip() == "null" else arguments_of(text)
