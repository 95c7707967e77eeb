"""Several rounds in one answer: provider bytes in, the client's bytes out, in the client's dialect and form.

1. The client gets one start and one end, and between them the text of all rounds in order, a blank line between two of them.
2. Bytes leave at once, whole events only; what ends an answer leaves with `finish` or `fail` alone.
3. Where one round ran and held no tool of ours, the bytes of `feed` and `finish`, joined, are the provider's own.
4. What the output is does not depend on where the chunks were cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from ...values import Dialect, Endpoint
from ..answer.machine import Answer
from ..finish import AS_USUAL, Endings
from ..said import Said
from ..translation.neutral import Asked
from . import responses
from .common import BLANK_LINE, Form

__all__ = ["BLANK_LINE", "Form", "Merger", "Opener", "merger_for", "opener_for"]


class Merger(Protocol):
    """One per turn. Each round is begin_round, any number of feeds, end_round; then another round, or `finish`, or `fail`."""

    def begin_round(self, *, exact: bool = False) -> None:
        """A round begins. One that was not complete and showed nothing counts as if it had never been.

        `exact`: its reason is not corrected, even where it is wrong.
        """

    def feed(self, chunk: bytes) -> bytes:
        """The provider's bytes; for the client as many as may leave.

        `feed(b"")` between two rounds: another round follows, so what the one before held back may leave (Gemini's last text).
        """

    def end_round(self) -> Said:
        """The round's bytes are over."""

    def finish(self) -> Iterable[bytes]:
        """The one end of the answer: everything closed, usage summed (output of all rounds, input of the last).

        A long one is written piece by piece, as it is taken.
        Where the last round broke off after it had shown something, it is an error: no clean end is invented.
        """

    def fail(self, status: int, message: str, code: str) -> bytes:
        """Instead of `finish`: the error that ends a stream which has begun. In JSON: the whole error answer."""

    def keep_alive(self) -> bytes:
        """What keeps the connection open and is valid at this very moment."""

    @property
    def id(self) -> str:
        """After `finish`: who the answer says it is."""


class Opener(Merger, Protocol):
    """A merger that can begin the answer before any round has said anything; then the rounds go on in it."""

    def open(self, *, id: str, model: str, created: int) -> bytes:
        """How the answer begins; `id` is what the client will know it by."""


class _Module(Protocol):
    """What the module of a dialect offers that has not moved into `dialects/answer`: `Merging` for a stream, `Whole` for JSON."""

    def Merging(self, form: Form) -> Merger: ...
    def Whole(self, form: Form) -> Merger: ...


_MODULES: Mapping[Dialect, _Module] = {
    Dialect.RESPONSES: responses,
}


def merger_for(
    endpoint: Endpoint,
    *,
    stream: bool,
    own_tools: frozenset[str] = frozenset(),
    include_usage: bool = False,
    endings: Endings = AS_USUAL,
) -> Merger:
    """The merger of one turn. `include_usage`: a Chat client asked for the usage of its stream."""
    if endpoint.dialect not in _MODULES:
        asked = Asked(endpoint, stream, id="", model="", created=0, maker="", include_usage=include_usage, endings=endings)
        return Answer(asked, own=own_tools)
    form = Form(own_tools, include_usage, stream and endpoint.json_array, endpoint.envelope, endings)
    module = _MODULES[endpoint.dialect]
    return module.Merging(form) if stream else module.Whole(form)


def opener_for(dialect: Dialect, merger: Merger | None) -> Opener | None:
    """Who can begin a stream, and goes on as its merger; None where keep-alives may stand before a stream's first event.

    Codex's patience is renewed by events alone, and a Responses stream may hold none before `response.created`.
    """
    if dialect is not Dialect.RESPONSES:
        return None
    return merger if isinstance(merger, responses.Merging) else responses.Merging(Form())
