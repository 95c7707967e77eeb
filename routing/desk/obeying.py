"""Obeys the tags of a call and keeps what they change: at once where nothing has to be written, else with the disk waited for."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from ..clients.identify import client_of
from ..clients.typed import Typed
from ..config import Config
from ..errors import RouteCodexError, StoreError
from ..router.choose import why_not_stick
from ..sessions.state import EMPTY, SessionState
from ..sessions.store import SessionKey, States
from ..storage.contract import InThread
from ..tags.cleaning import is_for_us
from ..tags.grammar import Ask, Clear, ClockClear, StopSet
from ..tags.obey import CLOCK_CLEARED, TAKES_AWAY, Means, Orders, leaves_nothing, orders_for
from ..tags.once import (
    Place,
    ended,
    has_ended,
    is_new,
    may_be_joined,
    obeyed_before,
    placed,
    places_of,
    remembered,
    without_old_texts,
    without_refused,
)
from ..tags.scan import strip
from ..tags.texts import read_text, texts_of
from ..tags.typed_tags import tags_of
from ..tags.unheard import MOST, Unheard, answered_up_to, sentences, tags_before
from ..tags.vocabulary import Vocabulary
from ..turn.plan import Clocks
from ..values import Caller
from .learned import Learned
from .reading import Reading

_BEGINS_CHARS = 40


class Reminders(Protocol):
    """What the clock keeps for a session."""

    def clear(self, caller: Caller) -> str:
        """Remove all of them at once, and say how many. Waits for the disk."""

    def status(self, caller: Caller) -> str:
        """How many wait, in a sentence."""


class Obeying(Struct):
    config: Config
    store: States
    learned: Learned
    clocks: Clocks
    user_folder: Path
    vocabulary: Callable[[str], Vocabulary]
    """The names that a person's tags may mean."""
    reminders: Callable[[], Reminders | None]
    under: Callable[[], SessionState]
    """What holds for all sessions of this server."""

    def with_tags(self, reading: Reading, newest: Typed) -> Reading:
        vocabulary = self.vocabulary(reading.caller.user)
        tags = tags_of(newest, vocabulary)
        if not tags:
            return reading
        place, ends = placed(reading.call, reading.typed, newest)
        rest = newest
        if len(ends) > 1 or may_be_joined(newest):
            state = self.store.load(reading.key)
            if len((old := without_old_texts(reading.typed[-1], ends, state)).texts) < len(newest.texts):
                rest = old
            rest = without_refused(reading.call, reading.typed, rest, state)
        if rest is not newest:
            newest = rest
            tags = tags_of(newest, vocabulary)
            place, _ = placed(reading.call, reading.typed, newest)
        alone = bool(tags) and is_for_us(reading.call, newest, client_of(reading.caller))
        return replace(reading, newest=newest, tags=tags, place=place if tags else None, alone=alone)

    def passed_over(self, reading: Reading) -> tuple[Unheard, ...]:
        """Tags that the person sent before the newest message, and that got no answer either: some tools send what was typed
        meanwhile as several messages. What was obeyed when it was the newest is none of them."""
        answered = answered_up_to(reading.call, client_of(reading.caller))
        before = reading.typed[:-1]
        places: list[str] = []
        obeyed: set[str] = set()
        found: dict[Unheard, None] = {}
        for count, typed in zip(range(len(before), 0, -1), reversed(before), strict=True):
            if typed.message.index < answered or len(found) >= MOST:
                break
            tags = tags_of(typed, self.vocabulary(reading.caller.user))
            if any(isinstance(tag, Clear) for tag in tags):
                break  # nobody remembers what was obeyed before, and nothing of it holds
            if all(isinstance(tag, TAKES_AWAY) for tag in tags):
                continue  # none, or nobody remembers whether they were obeyed
            if not places:
                places = places_of(reading.call, before)
                obeyed = {message.place for message in self.store.load(reading.key).obeyed}
            if places[count - 1] not in obeyed:
                found |= dict.fromkeys(tags_before(typed))
        return tuple(found)[:MOST]

    def at_once(self, reading: Reading) -> Orders | None:
        """The orders where nothing of them has to be written; else None, and `obey` is to be called."""
        state, place = self.store.load(reading.key), reading.place
        if place is None:
            return None if reading.opens and not state.empty else self._heard(reading, Orders(state))
        known = self._with_ends(reading.key, state)
        acts = self._acts(reading, place, known)
        begins = reading.opens and not (state.empty and _only_asks(reading))
        if acts and (begins or any(isinstance(tag, ClockClear | StopSet) for tag in reading.tags)):
            return None  # the one tag removes a file, the other may read one
        try:
            orders = self._obeyed(reading, place, known, acts=acts)
        except RouteCodexError:
            if any(message.place == place.place and message.standing == "refused" for message in state.obeyed):
                raise
            return None
        return self._heard(reading, orders) if orders.state == known else None

    async def obey(self, reading: Reading, in_thread: InThread) -> Orders:
        """Waits for the store where the message gives orders or a conversation begins; otherwise only looks."""
        place = reading.place
        if place is None:
            state = self.store.load(reading.key)
            if reading.opens and not state.empty:
                state = await self.store.change(reading.key, lambda old: EMPTY, in_thread)
            return self._heard(reading, Orders(state))
        came = self._with_ends(reading.key, self.store.load(reading.key))
        cleared = await self._clear_clock(reading, place, in_thread)
        tried: list[tuple[Orders | RouteCodexError, bool]] = []

        def change(state: SessionState) -> SessionState:
            tried.append(self._tried(reading, place, state, came))
            outcome, acts = tried[-1]
            if isinstance(outcome, Orders):
                return _signed(outcome.state, reading)
            state = self._with_ends(reading.key, state)
            return remembered(EMPTY if reading.opens and acts else state, place, "refused") if acts else state

        await self.store.change(reading.key, change, in_thread)
        outcome, acts = tried[-1]
        if not isinstance(outcome, Orders):
            raise outcome
        if acts:
            self.learned.ended.drop((reading.key, place.place))
        outcome = replace(outcome, lines=tuple(cleared if cleared and line == CLOCK_CLEARED else line for line in outcome.lines))
        return self._heard(reading, outcome)

    def _tried(
        self, reading: Reading, place: Place, state: SessionState, came: SessionState
    ) -> tuple[Orders | RouteCodexError, bool]:
        """What the message comes to in that state, or why nothing of it is obeyed; and whether it acts at all. `came`: what was
        in force when the call came: whose turn has ended only since then was not sent once more by a person."""
        state = self._with_ends(reading.key, state)
        acts = self._acts(reading, place, state) and (came == state or not has_ended(state, place) or has_ended(came, place))
        try:
            return self._obeyed(reading, place, EMPTY if reading.opens and acts else state, acts=acts), acts
        except StoreError:
            raise
        except RouteCodexError as error:
            return error, acts

    def _heard(self, reading: Reading, orders: Orders) -> Orders:
        """What the next status names is kept."""
        if orders.lines:
            self.learned.lapsed.put(reading.key, None)
        if (orders.ignored or reading.unheard) and not reading.alone:
            self.learned.ignored.put(reading.key, (*orders.ignored, *sentences(reading.unheard)))
        return orders

    def _acts(self, reading: Reading, place: Place, state: SessionState) -> bool:
        newest, before = reading.newest, state.obeyed_before
        if before is None or newest is None:
            return is_new(state, place)
        return not (place.answered or obeyed_before(before, newest.ordinal, newest.words, reading.caller.prompt))

    def _with_ends(self, key: SessionKey, state: SessionState) -> SessionState:
        """What has been answered to the end is known here before it is on disk."""
        for message in state.obeyed:
            if message.standing == "open" and self.learned.ended.get((key, message.place)):
                state = ended(state, message.place)
        return state

    def _obeyed(self, reading: Reading, place: Place, state: SessionState, *, acts: bool) -> Orders:
        """With the state as it is to be kept."""
        alone = reading.alone or _was_answered(reading)
        orders = orders_for(reading.tags, state, self._means(reading), acts=acts, alone=alone)
        if not orders.fresh:
            return orders
        if leaves_nothing(orders, reading.tags) and reading.newest is reading.typed[-1]:  # else it is told from what was refused
            return replace(orders, state=orders.state.with_(obeyed=(), obeyed_before=None))
        unchanged = orders.state == state and not orders.clock_clear
        if unchanged and _only_asks(reading):
            return orders  # asked again, it is told again
        if unchanged and any(message.place == place.place and message.standing == "ended" for message in state.obeyed):
            return orders
        return replace(orders, state=remembered(orders.state, place, "ended" if reading.alone else "open"))

    def _means(self, reading: Reading) -> Means:
        user, model = reading.caller.user, reading.call.model
        registry = self.vocabulary(user).registry
        return Means(
            registry,
            now_ms=round(self.clocks.wall() * 1000),
            client_model=model,
            read_text=lambda relative: read_text(relative, texts_of(user, self.user_folder)),
            stop_enabled=self.config.stop.enabled,
            clock_enabled=self.config.clock is not None,
            usage_enabled=self.config.usage.enabled,
            under=self.under(),
            why_not=lambda state, sticky: why_not_stick(
                sticky, state, registry, self.learned.health, model, self.clocks.monotonic()
            ),
        )

    def ended(self, reading: Reading) -> None:
        """The newest message was answered to the end: sent once more, it acts again."""
        if reading.place is not None:
            self.learned.ended.put((reading.key, reading.place.place), True)

    def not_ended(self, reading: Reading) -> None:
        """So it seemed, and nobody was there to hear it: the client sends it again, and it does not act."""
        if reading.place is not None:
            self.learned.ended.drop((reading.key, reading.place.place))

    async def keep_end(self, reading: Reading, in_thread: InThread) -> None:
        """The same, kept. A loss costs no more than that the same message does not act after a restart."""
        await self.store.change(reading.key, lambda state: self._with_ends(reading.key, state), in_thread)

    def must_keep_end(self, reading: Reading, orders: Orders) -> bool:
        place = reading.place
        return place is not None and any(
            message.place == place.place and message.standing == "open" for message in orders.state.obeyed
        )

    async def _clear_clock(self, reading: Reading, place: Place, in_thread: InThread) -> str:
        """Before anything else is kept: where the tasks cannot be removed (StoreError), nothing of the message is obeyed."""
        if not any(isinstance(tag, ClockClear) for tag in reading.tags) or (reminders := self.reminders()) is None:
            return ""
        state = self.store.load(reading.key)
        outcome, _ = self._tried(reading, place, state, state)
        if not isinstance(outcome, Orders) or not outcome.clock_clear:
            return ""
        return await in_thread(partial(reminders.clear, reading.caller))


def _only_asks(reading: Reading) -> bool:
    return all(isinstance(tag, Ask) for tag in reading.tags)


def _was_answered(reading: Reading) -> bool:
    """The tool goes on by itself."""
    newest = reading.newest
    return newest is not None and newest.message.index < answered_up_to(reading.call, client_of(reading.caller))


def _signed(state: SessionState, reading: Reading) -> SessionState:
    """Whose state it is, as `routecodex sessions` shows it."""
    if state.empty or state.begins:
        return state
    begins = " ".join(strip(reading.typed[0].words).split()) if reading.typed else ""
    return state.with_(client=reading.caller.client, begins=begins[:_BEGINS_CHARS])
