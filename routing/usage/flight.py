"""Why a provider's cache was lost: one conversation after the other, the last call of each is kept and compared when it happens.

1. A healthy call costs nothing but a reference to its bytes: they are read only where the counts tell of a loss, and that takes
   long (`Suspicion.loss`).
2. What is kept is bounded in bytes; the conversation that was quiet longest is forgotten first.
3. Who broke it is told only where it is known: the tool, the person, a tag, a failure, the time that went by, or the provider.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Literal, TypeAlias

from msgspec import Struct

from ..dialects.translation.neutral import Tokens
from ..values import Dialect, Target
from ..visible import first_words
from .prefix import Block, Break, blocks_of, parting, settings_of, text_at
from .prices import money

Who: TypeAlias = Literal[
    "the tool", "the person", "a tag", "a failure", "the configuration", "time", "the provider", "RouteCodex"
]

KEPT_BYTES = 32 << 20
_SMALLEST = 2_048
"""Providers cache nothing shorter than a thousand tokens or two."""
_HEALTHY, _FORGETFUL = 0.75, 0.5
"""Of what was cached before, or could have been, so much at least is there again; so much where the call begins as the last one
did: a cache may forget a part of it, and nobody has to be named."""
_LOOKED_BACK = 20
"""So many blocks before a mark a provider looks for what it has in its cache."""
_QUOTED = 40
_SHORT_S, _LONG_S = 300.0, 3600.0


class Flown(Struct):
    """A call and what it cost. Nobody changes it; frozen, it would take longer to make than all else that is done with it."""

    conversation: str
    """Whose beginning is the same from call to call: a session's main line, or one of its agents."""
    target: Target
    sent: bytes
    dialect: Dialect
    """As it was sent."""
    received: bytes
    asked: Dialect
    """As it came."""
    tokens: Tokens | None
    at: float
    """Epoch seconds."""
    route: str = ""
    """`force`, `sticky`, `default`, …"""
    failed: bool = False
    """Another target had failed before."""
    model: str = ""
    """That the client named."""


class Cause(Struct, frozen=True):
    who: Who
    what: str
    became: str = ""
    """What stood there, and what stands there now."""


class Loss(Struct, frozen=True):
    cause: Cause
    tokens: int
    """So many were read anew that had been in the cache."""
    dollars: float | None = None

    def __str__(self) -> str:
        cause, cost = self.cause, f" ({money(self.dollars)})" if self.dollars is not None else ""
        told = f"the cache was lost: {cause.what}, by {cause.who}; {self.tokens:,} tokens were read anew{cost}"
        return f"{told}; {cause.became}" if cause.became else told


class Suspicion(Struct, frozen=True):
    """Less came from the cache than was there."""

    before: Flown
    after: Flown
    tokens: int

    def loss(self) -> Loss | None:
        """Why; None where it cannot be known."""
        before, after = self.before, self.after
        assert before.tokens is not None
        assert after.tokens is not None
        much = after.tokens.cached < _FORGETFUL * min(_expected(before.tokens), after.tokens.input)
        same = before.target == after.target
        cause = _changed(before, after, much=much) if same else _moved(before, after) if much else None
        return Loss(cause, self.tokens) if cause is not None else None


class FlightRecorder:
    def __init__(self, kept_bytes: int = KEPT_BYTES) -> None:
        self._room = kept_bytes
        self._last: OrderedDict[str, Flown] = OrderedDict()
        self._held = 0

    def heard(self, flown: Flown) -> Suspicion | None:
        """None where the cache of this conversation was not lost, or nobody can tell."""
        before = self._last.pop(flown.conversation, None)
        if before is not None:
            self._held -= _weight(before)
        self._keep(flown)
        if before is None or before.tokens is None or flown.tokens is None:
            return None
        expected = _expected(before.tokens)
        if expected < _SMALLEST or flown.tokens.cached >= _HEALTHY * min(expected, flown.tokens.input):
            return None
        return Suspicion(before, flown, max(0, min(expected, flown.tokens.input) - flown.tokens.cached))

    def _keep(self, flown: Flown) -> None:
        weight = _weight(flown)
        if weight > self._room // 2 or flown.tokens is None or _expected(flown.tokens) < _SMALLEST:
            return  # nothing could be missed of it
        self._last[flown.conversation] = flown
        self._held += weight
        while self._held > self._room:
            _, oldest = self._last.popitem(last=False)
            self._held -= _weight(oldest)


def _weight(flown: Flown) -> int:
    return len(flown.sent) + (len(flown.received) if flown.received is not flown.sent else 0) + 500


def _expected(tokens: Tokens) -> int:
    """What the next call can find in the cache: what was read from it and written to it; where nobody tells what is written,
    nearly all that was sent, if any of it ever came from a cache."""
    if tokens.written:
        return tokens.cached + tokens.written
    return tokens.input if tokens.cached else 0


def _changed(before: Flown, after: Flown, *, much: bool) -> Cause | None:
    """`much`: so much is lost that it is told whatever the reason; else where it is the tool's."""
    then, now = blocks_of(before.sent, before.dialect), blocks_of(after.sent, after.dialect)
    sent = parting(then, now)
    came = parting(blocks_of(before.received, before.asked), blocks_of(after.received, after.asked))
    if sent is not None and came is not None:
        who = _whose(came, before, after)
        if not much and (who != "the tool" or _is_at_the_end(came, before)):
            return None
        return Cause(who, _words(came, before, after), _became(came, before, after))
    if not much:
        return None
    if sent is not None and not _is_at_the_end(sent, before):
        return Cause("RouteCodex", _words(sent, before, after))
    if (what := _settings(before, after) or _marks(then, now)) is not None:
        return Cause("the tool", what)
    return _idle(before, after)


def _is_at_the_end(broken: Break, before: Flown) -> bool:
    """What joins a call behind everything else (the time, a reminder) was in no cache."""
    last = max((block.message for block in blocks_of(before.sent, before.dialect)), default=-1)
    return broken.block.kind == "message" and broken.block.message >= last


def _moved(before: Flown, after: Flown) -> Cause:
    old, new = before.target, after.target
    if (old.provider, old.model) == (new.provider, new.model):
        what = f"the call went to key {new.key} instead of {old.key}"
    elif old.provider == new.provider:
        what = f"the call went to model {new.model or 'of its own'} instead of {old.model or 'its own'}"
    else:
        what = f"the call went to {new.provider} instead of {old.provider}"
    who: Who = "RouteCodex"
    if after.failed or before.failed:
        who = "a failure"
    elif {"force", "sticky", "allow"} & {before.route, after.route}:
        who = "a tag"
    elif before.model != after.model:
        who = "the tool"
    elif before.route != after.route:
        who, what = "the configuration", f"{what} (route {after.route}, before {before.route})"
    return Cause(who, what)


def _idle(before: Flown, after: Flown) -> Cause:
    """The beginning is the same: it was forgotten."""
    quiet = after.at - before.at
    lasts = _LONG_S if b'"1h"' in before.sent else _SHORT_S
    if quiet >= lasts:
        return Cause("time", f"nothing was asked for {quiet / 60:.0f} minutes, and it lasts {lasts / 60:.0f}")
    return Cause("the provider", "the call begins as the last one did, and it was forgotten all the same")


def _settings(before: Flown, after: Flown) -> str | None:
    """What the conversation does not say, and changes where it is looked for."""
    old, new = settings_of(before.sent, before.dialect), settings_of(after.sent, after.dialect)
    for name in {**old, **new}:
        if old.get(name) != new.get(name):
            return f"{name} {'came in' if name not in old else 'is gone' if name not in new else 'changed'}"
    return None


def _marks(then: list[Block], now: list[Block]) -> str | None:
    """How far to cache, and from where to look, is the tool's to say (`cache_control`)."""
    marked = [at for at, block in enumerate(then) if block.mark]
    if not marked:
        return None
    last, marks = marked[-1], [at for at, block in enumerate(now) if block.mark]
    if not marks:
        return "nothing is marked to be cached any more (cache_control)"
    near = next((at for at in marks if at >= last), None)
    if near is None:
        return f"the last mark (cache_control) stands at {now[marks[-1]].place} instead of {then[last].place}"
    if (far := near - last) > _LOOKED_BACK:
        return f"the next mark (cache_control) stands {far} blocks behind the last one, and {_LOOKED_BACK} are looked back"
    if (old := then[last].mark) != now[near].mark:
        return f"it is to be cached for {now[near].mark} instead of {old} (cache_control)"
    return None


def _whose(came: Break, before: Flown, after: Flown) -> Who:
    """A person goes back and types something else; all other changes are the tool's own."""
    block = came.block
    if block.kind != "message" or block.role != "user" or came.how == "inserted":
        return "the tool"
    if block.message == 0 and not came.of_kind:
        return "the tool"  # it begins anew: compacted
    old, new = _last_message(before), _last_message(after)
    went_back = new is not None and old is not None and new.message <= old.message and block.message == new.message
    return "the person" if went_back and block.about in ("text", "input_text") else "the tool"


def _last_message(flown: Flown) -> Block | None:
    blocks = [block for block in blocks_of(flown.received, flown.asked) if block.kind == "message"]
    return blocks[-1] if blocks else None


def _words(broken: Break, before: Flown, after: Flown) -> str:
    block = broken.block
    about = f" ({block.role + ' ' if block.role else ''}{block.about})" if block.kind == "message" else ""
    was = {"changed": "changed", "inserted": "came in", "removed": "is gone", "moved": "stands in another place"}[broken.how]
    told = f"{block.place}{about} {was}"
    old, new = _last_message(before), _last_message(after)
    if block.kind == "message" and old is not None and new is not None and new.message < old.message // 2:
        told += f", and {old.message + 1} messages became {new.message + 1}"
    return told


def _became(broken: Break, before: Flown, after: Flown) -> str:
    if broken.how != "changed":
        return ""
    old = " ".join(text_at(before.received, before.asked, broken.at).split())
    new = " ".join(text_at(after.received, after.asked, broken.at).split())
    same = next((at for at, (one, other) in enumerate(zip(old, new, strict=False)) if one != other), min(len(old), len(new)))
    begin = old.rfind(" ", max(0, same - _QUOTED), max(0, same - _QUOTED // 3)) + 1
    if not begin and same > _QUOTED // 2:
        begin = same - _QUOTED // 3
    elif broken.block.kind == "setting":
        begin = 0
    return " became ".join(f"“{first_words(text[begin : begin + 4 * _QUOTED], _QUOTED)}”" for text in (old, new))
