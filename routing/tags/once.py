"""Whether the tags of a message act now: once, however often its client repeats it.

1. A message is known by its place: its words and everything typed before it, white space aside; of long words the beginning
   and the end. How a client cuts that into messages and parts does not matter, nor what ids it gives its prompts.
2. At its place a message acts again only if its turn was answered to the end and no answer of the model stands behind it now:
   then a person has gone back and sent it once more. A tool hop, a notice of the tool's own, a call repeated after an answer
   that was cut off: nothing of that acts again.
3. The same words elsewhere were typed anew if the old message still stands before them, or if its turn had ended; if not, a
   history that was cut short in the middle of the work repeats them.
4. A message that was refused is looked at anew each time, but not as a part of a longer one.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ..clients.typed import Typed
from ..sessions.state import Obeyed, SessionState, Standing
from ..values import Call

_REMEMBERED = 32
"""Messages of a session."""
_LOOKED_AT = 2000
"""Messages before the newest one of which places are known; a longer history was cut short long ago."""
_DIGITS = 24
_SAMPLE = 16 << 10
_SPACE = b" \t\n\r\x0b\x0c"
_LINE = re.compile(r"\n+")


class Place(Struct, frozen=True):
    """Where a message stands in its conversation."""

    place: str
    text: str
    before: frozenset[str]
    """The places of what was typed before it."""
    answered: bool
    """An answer of the model stands behind it."""


def placed(call: Call, typed: Sequence[Typed], newest: Typed) -> tuple[Place, tuple[str, ...]]:
    """The place of the newest typed message; and the places at which each of the texts before its last one ends."""
    places: list[str] = []
    cores: list[bytes] = []
    for number, core, digest in _summed(call, typed):
        if len(typed) - number <= _LOOKED_AT:
            places.append(digest.hexdigest()[:_DIGITS])
        if number == len(typed) - 1:
            cores.append(core)
    own = hashlib.sha256(b"\n".join(cores[-len(newest.texts) :])).hexdigest()[:_DIGITS]
    answered = any(message.role == "assistant" for message in call.messages[newest.message.index + 1 :])
    return Place(places[-1], own, frozenset(places[:-1]), answered), tuple(places[-len(typed[-1].texts) :])


def places_of(call: Call, typed: Sequence[Typed]) -> list[str]:
    """The place of each of these messages when it was the newest."""
    places = [""] * len(typed)
    for number, _, digest in _summed(call, typed):
        places[number] = digest.hexdigest()[:_DIGITS]
    return places


def _summed(call: Call, typed: Sequence[Typed]) -> Iterator[tuple[int, bytes, hashlib._Hash]]:
    """Each text of each message, and a sum over all that was typed up to its end."""
    digest = _sum(call)
    for number, message in enumerate(typed):
        for text in message.texts:
            core = _core(text.words)
            digest.update(core)
            yield number, core, digest


def _sum(call: Call) -> hashlib._Hash:
    return hashlib.sha256((call.previous_id or "").encode("utf-8", "surrogatepass"))


def _core(words: str) -> bytes:
    """Clients fold white space in many ways. Of long words the beginning and the end: as much of both as is the same whatever
    white space was folded."""
    if len(words) <= 4 * _SAMPLE:
        return _bare(words)
    return _bare(words[: 2 * _SAMPLE])[:_SAMPLE] + b"\n" + _bare(words[-2 * _SAMPLE :])[-_SAMPLE:]


def _bare(words: str) -> bytes:
    return words.encode("utf-8", "surrogatepass").translate(None, _SPACE)


def is_new(state: SessionState, place: Place) -> bool:
    """Whether its tags act now."""
    here = next((message for message in state.obeyed if message.place == place.place), None)
    if here is not None:
        return here.standing == "refused" or (here.standing == "ended" and not place.answered)
    elsewhere = next((message for message in reversed(state.obeyed) if message.text == place.text), None)
    if elsewhere is None or elsewhere.place in place.before:
        return True
    return elsewhere.standing != "open" and not place.answered


def remembered(state: SessionState, place: Place, standing: Standing) -> SessionState:
    """The same message at another place is known by its new one."""
    others = [message for message in state.obeyed if message.place != place.place]
    now = Obeyed(place.place, place.text, standing)
    return state.with_(obeyed=(*others, now)[-_REMEMBERED:], obeyed_before=None)


def ended(state: SessionState, place: str) -> SessionState:
    """The turn of that message was answered to the end."""
    return state.with_(
        obeyed=tuple(message._replace(standing="ended") if message.place == place else message for message in state.obeyed)
    )


def has_ended(state: SessionState, place: Place) -> bool:
    return any(message.place == place.place and message.standing == "ended" for message in state.obeyed)


def without_old_texts(newest: Typed, places: Sequence[str], state: SessionState) -> Typed:
    """Without the texts that were a message of their own once: a tool has put what got no answer and what is new into one."""
    known = {message.place for message in state.obeyed}
    old = max((count for count, place in enumerate(places[:-1], 1) if place in known), default=0)
    return replace(newest, texts=newest.texts[old:]) if old else newest


def may_be_joined(newest: Typed) -> bool:
    """A tool may have put what was several messages into its one text, a line or more each."""
    text = newest.texts[0]
    return len(text.commands) == 1 and not text.quoted and "\n" in text.part.text[slice(*text.commands[0])]


def without_refused(call: Call, typed: Sequence[Typed], newest: Typed, state: SessionState) -> Typed:
    """Without the lines that were a message of their own once and were refused: a tool has put them and what is new into one
    text."""
    refused = {message.place for message in state.obeyed if message.standing == "refused"}
    text = newest.texts[0]
    if not refused or not may_be_joined(newest):
        return newest
    texts = [one for message in typed for one in message.texts]
    digest = _sum(call)
    for one in texts[: len(texts) - len(newest.texts)]:
        digest.update(_core(one.words))
    ((start, end),) = text.commands
    at = cut = start
    for line in _LINE.finditer(text.part.text, start, min(end, start + 4 * _SAMPLE)):
        digest.update(_bare(text.part.text[at : line.end()]))
        at = line.end()
        if digest.hexdigest()[:_DIGITS] in refused:
            cut = at
    return replace(newest, texts=(text._replace(commands=((cut, end),)), *newest.texts[1:])) if cut > start else newest


def mark_of(ordinal: int, words: str, prompt_id: str | None) -> str:
    """Tells a message from the others of its session, as long as the server runs: where its hops go, what it scheduled. Of long
    words the beginning and the end."""
    if len(words) > 2 * _SAMPLE:
        words = f"{words[:_SAMPLE]}{len(words)}{words[-_SAMPLE:]}"
    digest = hashlib.sha256(_core(words))
    if prompt_id is None:
        return f"{ordinal}:{digest.hexdigest()[:32]}"
    digest.update(b"\0" + prompt_id.encode("utf-8", "surrogatepass"))
    return f"prompt:{digest.hexdigest()[:32]}"


# What earlier versions wrote


def obeyed_before(obeyed: str, ordinal: int, words: str, prompt_id: str | None) -> bool:
    """Whether a session of an earlier version has obeyed this message: it kept the newest one, by its text and the client's id
    of the prompt or else its place. A client that drops old messages lets the rest move up."""
    digest = hashlib.sha256(" ".join(words.split()).encode("utf-8", "surrogatepass"))
    if obeyed.startswith("prompt:"):
        digest.update(b"\0" + (prompt_id or "").encode("utf-8", "surrogatepass"))
        return obeyed == f"prompt:{digest.hexdigest()[:32]}"
    place, _, text = obeyed.partition(":")
    return text == digest.hexdigest()[:32] and place.isdecimal() and ordinal <= int(place)
