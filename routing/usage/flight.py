"""Why a provider's cache was lost: one conversation after the other, the last call of each is kept and compared when it happens.

1. A healthy call costs nothing but a reference to its bytes: they are read only where the counts tell of a loss, and that takes
   long (`Suspicion.loss`).
2. What is kept is bounded in bytes; the conversation that was quiet longest is forgotten first.
3. Who broke it is told only where it is known: the tool, the person, a tag, a failure, the time that went by, or the provider.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ..dialects.translation.neutral import Tokens
from ..values import Dialect, Target
from .prefix import Block, Break, blocks_of, parting

Who: TypeAlias = Literal["the tool", "the person", "a tag", "a failure", "time", "the provider", "RouteCodex"]

KEPT_BYTES = 32 << 20
_SMALLEST = 2_048
"""Providers cache nothing shorter than a thousand tokens or two."""
_HEALTHY = 0.5
"""Of what was cached before, or could have been, so much at least is there again."""
_SHORT_S, _LONG_S = 300.0, 3600.0


@dataclass(frozen=True, slots=True)
class Flown:
    """A call and what it cost."""

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


@dataclass(frozen=True, slots=True)
class Loss:
    who: Who
    what: str
    tokens: int
    """So many were read anew that had been in the cache."""
    dollars: float | None = None

    def __str__(self) -> str:
        cost = f" (${self.dollars:.2f})" if self.dollars is not None else ""
        return f"the cache was lost: {self.what}, by {self.who}; {self.tokens:,} tokens were read anew{cost}"


@dataclass(frozen=True, slots=True)
class Suspicion:
    """Less came from the cache than was there."""

    before: Flown
    after: Flown
    tokens: int

    def loss(self) -> Loss | None:
        """Why; None where it cannot be known."""
        cause = _cause(self.before, self.after)
        return Loss(*cause, self.tokens) if cause is not None else None


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


def _cause(before: Flown, after: Flown) -> tuple[Who, str] | None:
    if before.target != after.target:
        return _moved(before, after)
    sent = parting(blocks_of(before.sent, before.dialect), blocks_of(after.sent, after.dialect))
    if sent is None:
        return _idle(before, after)
    came = parting(blocks_of(before.received, before.asked), blocks_of(after.received, after.asked))
    if came is None:
        return _idle(before, after) if _is_at_the_end(sent, before) else ("RouteCodex", _words(sent))
    return _whose(came, before, after), _words(came)


def _is_at_the_end(sent: Break, before: Flown) -> bool:
    """What joins a call behind everything else (the time, a reminder) was in no cache."""
    last = max((block.message for block in blocks_of(before.sent, before.dialect)), default=-1)
    return sent.block.kind == "message" and sent.block.message >= last


def _moved(before: Flown, after: Flown) -> tuple[Who, str]:
    old, new = before.target, after.target
    if (old.provider, old.model) == (new.provider, new.model):
        what = f"the call went to key {new.key} instead of {old.key}"
    elif old.provider == new.provider:
        what = f"the call went to model {new.model or 'of its own'} instead of {old.model or 'its own'}"
    else:
        what = f"the call went to {new.provider} instead of {old.provider}"
    if after.failed or before.failed:
        return "a failure", what
    if "force" in (before.route, after.route) or "sticky" in (before.route, after.route):
        return "a tag", what
    return "RouteCodex", what


def _idle(before: Flown, after: Flown) -> tuple[Who, str]:
    """The beginning is the same: it was forgotten."""
    quiet = after.at - before.at
    lasts = _LONG_S if b'"1h"' in before.sent else _SHORT_S
    if quiet >= lasts:
        return "time", f"nothing was asked for {quiet / 60:.0f} minutes, and it lasts {lasts / 60:.0f}"
    return "the provider", "the call begins as the last one did, and it was forgotten all the same"


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


def _words(broken: Break) -> str:
    block = broken.block
    about = f" ({block.role + ' ' if block.role else ''}{block.about})" if block.kind == "message" else ""
    was = {"changed": "changed", "inserted": "came in", "removed": "is gone"}[broken.how]
    return f"{block.place}{about} {was}"
