"""Who takes part in a turn besides the client and the provider: its plugins, and the memory of what stays hidden.

1. What the next call of the client needs is remembered before the end of the answer leaves (`settle`).
2. A round's call is the client's, with everything appended since; what a plugin edits in one round holds for that round alone.
3. Whatever happens, `leave` is called once, and the plugins' clean-ups run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

from msgspec import Struct

from ..clients.identify import client_of
from ..dialects.answer.machine import Answer
from ..dialects.calls import growing
from ..dialects.calls.without_tools import without_tools
from ..dialects.said import Said
from ..dialects.translation.neutral import Asked
from ..errors import RouteCodexError, StoreError
from ..sessions.store import SessionKey
from ..storage.contract import InThread
from ..values import Call, JsonObject
from .hidden import Hidden, HiddenRounds, hidden_in
from .lifecycle import Lifecycle
from .record import Record, hides


class NextCall(Struct, frozen=True):
    """The call of the round that follows, and the suffix of its request id."""

    call: Call
    suffix: str
    plugin: str


class Participants:
    def __init__(
        self,
        life: Lifecycle,
        call: Call,
        store: HiddenRounds,
        key: SessionKey,
        in_thread: InThread,
        note: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.life = life
        self.call = call
        """The history as it goes up: the client's call, and what was appended since."""
        self._client_call = call
        self._store = store
        self._key = key
        self._in_thread = in_thread
        self._note = note
        self._ids: list[str] = []
        """Of the rounds' answers."""
        self._shown: list[tuple[JsonObject, ...]] = []
        """What the client holds of each of them."""
        self._own: frozenset[str] = frozenset()

    async def begin(self) -> Call:
        """The first round's call."""
        await self.life.start()
        return await self.life.before_request(self.call)

    def offer(self, call: Call, *, able: bool) -> Call:
        """Our tools join once the target is known; the answer keeps their calls from the client."""
        offered = self.life.offer(call, able=able)
        self._own = offered.names
        if offered.left_out and not self.life.turn.rounds:
            self.life.turn.notes.append(f"tools of ours are left out: {offered.left_out}")
        return offered.call

    @property
    def offered(self) -> Sequence[str]:
        """Names of our tools in the call."""
        return sorted(self._own)

    def answer(self, asked: Asked) -> Answer:
        return Answer(asked, own=self._own)

    def listen(self, answer: Answer) -> None:
        """A round's head has come: from here on `stream_data` tells what is said."""
        self.life.listen(answer.alone())

    def begun(self) -> None:
        """The first content of the round that is heard goes to the client."""
        self.life.begun(self.life.turn.rounds + 1)

    async def next(self, said: Said, *, able: bool) -> NextCall | None:
        """Whether another round follows this answer."""
        self._ids.append(said.id)
        self._shown.append(without_tools(self.life.turn.dialect, said.native, self._own))
        wish = await self.life.after_request(said)
        if wish is None:
            return None
        self.call = growing.with_messages(self.call, wish.items)
        call = await self.life.before_request(self.call, id=self.life.turn.id + wish.suffix)
        return NextCall(self.offer(call, able=able), wish.suffix, wish.plugin)

    async def settle(self, id: str) -> None:
        """The answer is complete, and its end has not left yet. `id`: what the client knows it by."""
        if hides(self.life.turn):
            record = self.life.record()
            try:
                await self._store.keep(self._key, partial(self._hidden, id, record), self._in_thread)
            except StoreError as error:
                if record.results:  # without them the client's next call makes no sense
                    raise
                self._note(f"{self.life.turn.id[:8]}: later calls will not know this answer's rounds ({error.message})")
        self.life.begun(self.life.turn.rounds)  # where the client has waited for the whole of it
        await self.life.end()

    def _hidden(self, id: str, record: Record) -> Hidden | None:
        begun = () if id in self._ids else (id,)  # the client's own, where the answer began before any provider's
        ids = (*begun, *self._ids)
        stays, client = self.life.turn.stays, client_of(self.life.turn.caller)
        return hidden_in(
            self._client_call,
            self._shown,
            record.items,
            results=record.results,
            ids=ids,
            before=stays,
            behind=record.behind,
            client=client,
        )

    async def leave(self, *, aborted: bool, error: str = "") -> None:
        """The turn is over, however it ended. What a plugin fails at now is logged, and changes nothing any more."""
        if self.life.over:
            return
        with suppress(Exception):
            if aborted:
                self.life.abort()
                await self.life.end()
            elif error:
                self.life.fail(RouteCodexError(error))
        with suppress(Exception):
            await self.life.clean_up()
