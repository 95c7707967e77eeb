"""What this process shares with others, carried: asked before a call is read, told a moment later.

An answer's end waits until what was learned is told (`unsaid`): whoever asks next, at whichever process, finds it there.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from ..routing.clock.reminders import Claims
from ..routing.clock.shared import RENEW_S, SharedClaims, SharedTasks
from ..routing.clock.store import ClockStore
from ..routing.desk.learned import Learned
from ..routing.desk.meeting import Met
from ..routing.desk.sharing import Sharing, Wanted
from ..routing.errors import StoreError
from ..routing.sessions.shared import SharedStates
from ..routing.sessions.state import SessionState
from ..routing.sessions.store import Change, FileStore, SessionKey, States
from ..routing.storage.contract import InThread, Store
from ..routing.turn.hidden import Hidden, HiddenRounds
from ..routing.turn.hidden_shared import SharedHidden
from ..routing.turn.hidden_store import HiddenStore
from ..routing.turn.plan import Clocks

T = TypeVar("T")

_SOON_S = 0.02
"""What is learned within one moment is told together."""
_THREAD_WAITS_S = 5.0


class Shared:
    """One process's part of a store."""

    def __init__(
        self,
        store: Store,
        learned: Learned,
        clocks: Clocks,
        folder: Path,
        *,
        everything: bool,
        refuses: bool,
        note: Callable[[str], None] = lambda line: None,
    ) -> None:
        """`everything`: conversations lie there, too; else in the files of `folder`, which all processes see. `refuses`: no call
        of a session goes on without the store."""
        self.store = store
        self.everything = everything
        self.refuses = refuses
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._turn = asyncio.Lock()
        self._renewed = time.monotonic()
        self._looked = time.monotonic()
        self.name = uuid.uuid4().hex
        states, hidden = SharedStates(store), SharedHidden(store)
        self.states: States = states if everything else Apart(folder, states)
        self.hidden: HiddenRounds = hidden if everything else ApartHidden(folder, hidden)
        self.tasks = SharedTasks(folder, store, self.bridge) if everything else None
        self.claims = SharedClaims(store, self.bridge, self.name, note) if everything else None
        self.sharing = Sharing(
            learned,
            clocks,
            self.name,
            self._soon,
            states,
            hidden,
            self.tasks.known if self.tasks is not None else None,
            chains_only=not everything,
        )

    def adopt(self, tasks: ClockStore, claims: Claims) -> None:
        """What is being delivered goes on when the script is loaded anew."""
        if isinstance(tasks, SharedTasks):
            self.tasks, self.sharing.tasks = tasks, tasks.known
        if isinstance(claims, SharedClaims):
            self.claims = claims

    async def fetch(self, met: Met) -> None:
        """What others have changed. `Lost` where nothing may go on without."""
        if asked := self.sharing.wanted(met):
            try:
                await self._ask(asked)
                if further := self.sharing.then(met):
                    await self._ask(further)
            except StoreError:
                if self.refuses:
                    raise

    async def _ask(self, asked: Wanted) -> None:
        self._looked = time.monotonic()
        while asked:
            found = await self.store.read(asked)
            self.sharing.heard(asked, found)
            asked = [(key, one.version) for (key, _), one in zip(asked, found, strict=True) if one.more]

    def unsaid(self) -> Awaitable[None] | None:
        """What an answer's end waits for; None: nothing."""
        quiet = self.sharing.silent and not self._turn.locked()
        return None if quiet or self.store.gone else self._say()

    def say(self) -> None:
        """What is known when a call leaves is told while its provider thinks: its answer's end then waits for nobody."""
        if self._timer is not None:
            self._timer.cancel()
            self._begin()

    def _soon(self) -> None:
        if self._timer is None:
            self._timer = self._loop.call_later(_SOON_S, self._begin)

    def _begin(self) -> None:
        self._timer = None
        if self.store.gone or self.sharing.silent:
            return  # said already; or once that is well again
        task = self._loop.create_task(self._say())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _say(self) -> None:
        """All that is known now. What nobody heard is said again, with the next."""
        async with self._turn:
            if puts := self.sharing.taken():
                if self._timer is not None:
                    self._timer.cancel()
                    self._timer = None
                try:
                    await self.store.put(puts)
                except StoreError:
                    self.sharing.again(puts)

    async def tick(self) -> None:
        """Each second, whether calls come or not."""
        now = time.monotonic()
        self.sharing.tick()
        try:
            if not (self.sharing.silent or self.store.gone):
                await self._say()
            if now - self._looked >= 1.0:
                await self._ask(self.sharing.of_all())
            if self.claims is not None:
                renews = now - self._renewed >= RENEW_S
                self._renewed = now if renews else self._renewed
                await self.claims.keep(renews=renews)
        except StoreError:
            pass  # the store itself has said so

    def bridge(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T | None:
        """From a thread into the loop."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            try:
                return asyncio.run_coroutine_threadsafe(work(), self._loop).result(_THREAD_WAITS_S)
            except TimeoutError as error:
                raise StoreError("The sessions' store does not answer") from error
        return None


class Apart(FileStore):
    """Named sessions' states in files, those of request chains in the store."""

    def __init__(self, folder: Path, chains: SharedStates) -> None:
        super().__init__(folder)
        self._chains = chains

    def load(self, key: SessionKey) -> SessionState:
        return self._chains.load(key) if key.prefix == "chain" else super().load(key)

    async def change(self, key: SessionKey, change: Change, in_thread: InThread) -> SessionState:
        if key.prefix == "chain":
            return await self._chains.change(key, change, in_thread)
        return await super().change(key, change, in_thread)


class ApartHidden(HiddenStore):
    """The same of hidden rounds."""

    def __init__(self, folder: Path, chains: SharedHidden) -> None:
        super().__init__(folder)
        self._chains = chains

    def load(self, key: SessionKey) -> tuple[Hidden, ...]:
        return self._chains.load(key) if key.prefix == "chain" else super().load(key)

    async def keep(self, key: SessionKey, hidden: Callable[[], Hidden | None], in_thread: InThread) -> None:
        await (self._chains.keep if key.prefix == "chain" else super().keep)(key, hidden, in_thread)
