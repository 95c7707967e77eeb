"""Decides what happens to one call: answered here, refused, or sent on, and where.

A call comes in three steps: `read` (what it is, who sent it) → `obey` (its tags, the session's state) → `decide` (a `Reply` of
our own, or a `Departure` to a provider). Only the last two may wait, each for what its `Carrier` waits for. `decide` itself goes
through `prepare` (what the model is to see) → `participants` (the plugins that take part) → `route` (a target) → `depart`.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from ..clients.client import Client
from ..clients.identify import ALL, client_of, identify, takes_whole_calls
from ..clients.kinds import is_planning
from ..clients.typed import Typed, typed_messages
from ..clock.time_tag import without_tag
from ..config import Config
from ..control.overlay import Overlay, described
from ..dialects import calls
from ..dialects.answer import machine
from ..dialects.calls.following import follow, followed, may_be_named, named_items, own_id, pass_over_ours, was_made_here
from ..dialects.calls.replacing import Swap, raw_items, replace_items
from ..dialects.echo import EchoFailure, delay_of, echo_answer
from ..dialects.estimate import at_most, count_answer, estimate_tokens
from ..dialects.fields import object_of, text_of
from ..dialects.finish import Endings
from ..dialects.translation import going_up
from ..errors import BadCall, ClientLeft, KeysWithheld, NoSuchAnswer, NoTarget, Resting, RouteCodexError, not_found
from ..jsonbytes import dumps, loads
from ..redact import Redactor
from ..router.attempts import PATIENCE_S, Attempts
from ..router.balance import Rotation
from ..router.choose import Decision, Wish, choose
from ..router.classify import classify
from ..router.features import read_features
from ..router.registry import ECHO, ORIGIN, Provider, Registry
from ..sessions.derive import derive_session
from ..sessions.newest import newest_of
from ..sessions.state import EMPTY, SessionState, Sticky
from ..sessions.store import SessionKey, States
from ..sessions.whose import is_of, owned
from ..short_cache import LONGEST
from ..storage.contract import InThread
from ..tags.cleaning import clean
from ..tags.grammar import Usage, parse_name
from ..tags.notice import Cause, take_out
from ..tags.obey import Orders, may_obey
from ..tags.resolve import resolve
from ..tags.scan import strip
from ..tags.status import local_answer
from ..tags.told import Went, spent_lines
from ..tags.unheard import unheard_tags
from ..tags.vocabulary import Vocabulary
from ..turn import upstream
from ..turn.actions import Limits
from ..turn.echoing import converse
from ..turn.hidden import HiddenRounds, put_back
from ..turn.lifecycle import Lifecycle
from ..turn.participants import Participants
from ..turn.plan import Clocks, Plan
from ..turn.plugins import Plugin, TurnInfo
from ..turn.replies import JSON, Replies, Reply
from ..turn.request import Hints
from ..turn.roster import takers
from ..turn.turn import Turn
from ..turn.upstream import Received, Request
from ..usage.flight import Loss
from ..usage.prices import Prices
from ..usage.spending import FILE_NAME, Asker, spent
from ..usage.spending import Spent as SpentRound
from ..values import Answer, Call, Caller, Dialect, Endpoint, JsonObject, Named, Target
from .learned import Learned, Recent
from .meeting import Met
from .notices import Notices, cleared, elsewhere, gave_no_orders
from .obeying import Obeying, Reminders
from .reading import Reading
from .status_now import Standing

DISABLE_STICKY = "x-routecodex-disable-sticky"
ROUTE_HINT = "x-routecodex-route"
_EARLY_HEAD_S = min(client.waits_s for client in ALL) / 2
_WHOLE_ANSWER_S = 600.0
"""A whole JSON answer is silent until it is complete; clients themselves wait this long."""
_PEOPLE = 1_000
REST_TOLD_S = 60.0
"""A client that comes again by itself is told to, for a rest of this length at most."""
_REST_LOOK_S = 0.1
_LOOKED_AT = 40_000
"""So many characters of what a person typed decide the route: no tag reaches from there into those that are classified."""
_COUNTING_HOSTS = frozenset({"api.anthropic.com", "generativelanguage.googleapis.com", "cloudcode-pa.googleapis.com"})


T = TypeVar("T")


class Carrier(Protocol):
    """What is done for a call while it is decided on."""

    async def in_thread(self, work: Callable[[], T], /) -> T:
        """Runs what waits for a disk."""

    async def compute(self, work: Callable[[], T], /) -> T:
        """Runs what computes: at once, or where that takes long so that others have their turns meanwhile."""

    def sleep(self, seconds: float) -> Awaitable[object]: ...

    def when_gone(self, hear: Callable[[], None]) -> None:
        """`hear` is called when the client leaves before its answer has begun."""

    def has_left(self) -> bool:
        """Whether the client is gone already: what a process reads that stood still, may be sent again elsewhere long since."""


class Departure(Struct, frozen=True):
    """A call that goes to a provider: its first request, and the turn that hears what becomes of it."""

    request: Request
    plan: Plan
    turn: Turn
    participants: Participants | None
    """The plugins that take part; None where none does."""

    async def call_off(self, error: Exception) -> None:
        """It could not be sent."""
        if self.participants is not None:
            await self.participants.leave(aborted=False, error=type(error).__name__)


class Rest(Struct, frozen=True):
    """Every key that could serve the call rests for a moment: decide again in so many seconds."""

    seconds: float
    since: float
    """When the call was first told so."""


@dataclass(slots=True)
class Desk:
    config: Config
    store: States
    learned: Learned
    clocks: Clocks
    user_folder: Path
    note: Callable[[str], None] = lambda line: None
    hidden: HiddenRounds | None = None
    """What was said behind the clients' backs; None where nothing can be."""
    plugins: tuple[Plugin, ...] = ()
    reminders: Reminders | None = None
    """The clock's tasks; None where it is switched off."""
    withheld: str = ""
    """Why no configured key is used, where that is so: what is asked with one could be read and repeated by others."""
    overlay: Overlay = field(default_factory=Overlay)
    """What holds for all sessions, under what each of them says itself."""
    spend: Callable[[SpentRound], None] | None = None
    """Writes down what a round cost; None where nobody wants to know."""
    settle_usage: Callable[[], None] = lambda: None
    """Waits for the disk until what was spent so far can be read there."""
    ill: Callable[[], str] = lambda: ""
    """Why what is shared with other processes cannot be reached; empty while all is well."""
    on_seals: Callable[[SessionKey, str, Sequence[bytes]], None] = lambda key, maker, digests: None
    """Hears whose seals a session's history holds, where somebody else is to know it."""
    on_departs: Callable[[SessionKey, str, Target | None], None] = lambda key, mark, target: None
    """Hears where a message's call goes, and None where nobody has answered it."""
    finish_log: Callable[[str], None] | None = None
    """Hears which finish reasons were corrected; None where nobody asked for that."""
    hide: Redactor = field(init=False)
    endings: Endings = field(init=False)
    """How ends of answers are written."""
    _clients: dict[str, Client] = field(init=False, default_factory=dict)
    """With what the configuration adds to them."""
    replies: Replies = field(init=False)
    prices: Prices = field(init=False)
    obeying: Obeying = field(init=False)
    notices: Notices = field(init=False)
    _for_all: Vocabulary = field(init=False)
    _is_shared: bool = field(init=False)
    _theirs: Recent[str, Vocabulary] = field(init=False, default_factory=lambda: Recent(_PEOPLE))
    """What each person may name, where that is not the same for all."""
    close_look_bytes: int = field(init=False)
    """No token is shorter than a byte: a call with fewer bytes fits everywhere and is no long context."""

    def __post_init__(self) -> None:
        providers = self.config.registry.providers.values()
        secrets = [key.value for provider in providers for key in provider.keys]
        secrets += [value for provider in providers for value in provider.headers.values()]
        self.hide = Redactor(secrets)
        self.replies = Replies(self.hide, self.clocks.wall)
        self.prices = Prices(self.config.usage.prices)
        self.notices = Notices(self.learned)
        self._for_all = Vocabulary(self.config.registry)
        self._is_shared = self.config.registry.is_shared
        chosen, log = self.config.finish_reasons, self.finish_log
        told = None if log is None else lambda line: log(self.hide.text(line))
        self.endings = Endings(chosen.tool_use_message_stop, chosen.content_filter, told)
        registry = self.config.registry
        self.obeying = Obeying(
            self.config,
            self.store,
            self.learned,
            self.clocks,
            self.user_folder,
            self.vocabulary,
            lambda: self.reminders,
            lambda: self.overlay.state,
        )
        self.learned.health.use(registry)
        contexts = [model.max_context * registry.warn_ratio for provider in providers for model in provider.models.values()]
        self.close_look_bytes = int(min([registry.classifier.long_context_tokens, *contexts]))

    # What is it, and who sent it

    def vocabulary(self, user: str) -> Vocabulary:
        """The names that a person's tags may mean."""
        if not self._is_shared:
            return self._for_all
        if (known := self._theirs.get(user)) is None:
            known = Vocabulary(self.config.registry.seen_by(user))
            self._theirs.put(user, known)
        return known

    def registry(self, user: str) -> Registry:
        """The configuration, as far as it is for this person."""
        return self.vocabulary(user).registry

    def meet(self, received: Received) -> Met:
        """What the call alone tells."""
        call = calls.read_call(received.body, received.endpoint)
        self._open_items(call, received.user)
        caller = identify(call, received.headers, received.path, received.host)
        client = self._client(caller)
        typed = tuple(typed_messages(call, client))
        derived = None
        if caller.session is None and caller.conversation is None and self.config.derive != "off":
            derived = derive_session(call, caller, received.credential, typed)
            caller = replace(caller, session=derived, derived=derived is not None)
        caller = _owned(caller, received.user)
        named = _named(caller)
        key = named or (SessionKey("session", caller.session) if caller.session is not None else None)
        return Met(received, call, caller, client, typed, key, named is not None, followed(call))

    def _open_items(self, call: Call, user: str) -> None:
        """What was made here stands where its client only names it: whoever is asked then, no provider knows the name."""
        swaps = []
        for index, id in named_items(call):
            if item := self.learned.items.get(user, id):
                swaps.append(Swap(index, index + 1, [item]))
            elif item is not None or (was_made_here(id) and not id.startswith("rs_")):
                why = "RouteCodex made it and holds it no longer" if item is None else "its provider gave several that name"
                raise NoSuchAnswer(
                    f"Item with id {id!r} not found: {why}. Send items themselves (store: false), or begin a new conversation."
                )
        replace_items(call, swaps)

    def _open_conversation(self, reading: Reading) -> None:
        """What follows an answer that no provider keeps stands behind the whole conversation, as far as that is held here."""
        call, said, user = reading.call, reading.said, reading.received.user
        if not may_be_named(call):
            return
        said.follows, said.brought = call.previous_id, tuple(raw_items(call))
        turns: dict[str, list[JsonObject]] = {}
        id = call.previous_id
        while id is not None:
            earlier = self.learned.said.get(user, id)
            if earlier is None or id in turns:  # some providers give all their answers one name
                return
            items = [item for one in earlier.items if (item := self.learned.items.get(user, one))]
            if len(items) < len(earlier.items):
                return
            turns[id] = [*earlier.brought, *items]
            id = earlier.follows
        if turns:
            replace_items(call, [Swap(0, 0, [item for turn in reversed(turns.values()) for item in turn])])
            follow(call, None)

    def _keep_item(self, reading: Reading, plan: Plan | None, item: JsonObject) -> None:
        """Where the client's own calls go, what was made there is known; but not as a part of an answer that began elsewhere."""
        id, user, own = text_of(item.get("id")), reading.received.user, reading.said.items
        if plan is None or plan.target.provider != ORIGIN or was_made_here(id) or own:
            written = dumps(item)
            whole = object_of(loads(written))
            known = self.learned.items.get(user, id)
            is_another = known is not None and known != whole and id not in own
            self.learned.items.put(user, id, {} if is_another else whole, len(written))
            own += [] if id in own else [id]

    def read(self, met: Met | Received) -> Reading:
        if isinstance(met, Received):
            met = self.meet(met)
        received, call, caller, client, typed = met.received, met.call, met.caller, met.client, met.typed
        obeys = may_obey(call, caller)
        key = self._key(met)
        newest = self._newest(key, typed) if obeys else typed[-1] if typed else None
        reading = Reading(
            received,
            call,
            caller,
            client,
            typed,
            newest,
            key,
            obeys,
            opens=obeys and caller.derived and _opens(call, typed),
            unheard=unheard_tags(call, client) if obeys else (),
        )
        if obeys and newest is not None:
            reading = self.obeying.with_tags(reading, newest)
        if obeys and len(typed) > 1 and (passed_over := self.obeying.passed_over(reading)):
            reading = replace(reading, unheard=(*reading.unheard, *passed_over))
        pass_over_ours(call, self.learned.begun.get)
        self._earlier(call, caller.user)
        return reading

    def _client(self, caller: Caller) -> Client:
        client = client_of(caller)
        if not self.config.typed_in:
            return client
        return self._clients.setdefault(client.name, replace(client, typed_in=(*client.typed_in, *self.config.typed_in)))

    def _newest(self, key: SessionKey, typed: tuple[Typed, ...]) -> Typed | None:
        seen = self.learned.seen.get(key)
        newest, now = newest_of(typed, seen)
        if now is not None and now != seen:
            self.learned.seen.put(key, now)
        return newest

    def _key(self, met: Met) -> SessionKey:
        if met.is_named and met.key is not None:
            return met.key
        if (earlier := self._earlier(met.call, met.caller.user)) is not None:
            return earlier[0]
        return met.key or SessionKey("chain", owned(met.caller.user, met.received.id))

    def _earlier(self, call: Call, user: str) -> tuple[SessionKey, Target | None] | None:
        """The answer that the call goes on from, where it is known; nobody goes on from another person's."""
        earlier = self.learned.chains.get(call.previous_id) if call.previous_id else None
        if earlier is not None and not is_of(user, earlier[0].id):
            raise NoSuchAnswer(f"Previous response with id {call.previous_id!r} not found.")
        return earlier

    # Its tags

    async def obey(self, reading: Reading, carrier: Carrier) -> Orders:
        """Waits for the store where the message gives orders or a conversation begins; otherwise only looks."""
        orders = self.obeying.at_once(reading)
        if orders is None and carrier.has_left():
            raise ClientLeft("The client has left; nothing was changed.")
        return orders if orders is not None else await self.obeying.obey(reading, carrier.in_thread)

    async def forget_sticky(self, reading: Reading, sticky: Sticky | None, in_thread: InThread) -> None:
        """The sticky target is used up; one that was set meanwhile stays."""

        def change(state: SessionState) -> SessionState:
            return state.with_(sticky=None) if state.sticky == sticky else state

        await self.store.change(reading.key, change, in_thread)
        self.learned.lapsed.put(reading.key, sticky)

    # What happens to it

    async def decide(self, reading: Reading, orders: Orders, carrier: Carrier) -> Reply | Departure:
        """Plugins that take part see the call first. They hear that the turn is over also where it never begins."""
        spent: list[str] = []
        if Usage() in orders.asks:
            spent = await carrier.in_thread(partial(self._spent, reading))
        if reading.alone:
            reply = self.prepare(reading, orders, spent)
        else:
            reply = await carrier.compute(partial(self.prepare, reading, orders))
        if reply is not None:
            return reply
        participants = self.participants(reading, orders, carrier.in_thread)
        try:
            sent, hints = reading.call, Hints()
            if participants is not None:
                carrier.when_gone(participants.life.abort)
                sent, hints = await participants.begin(), participants.life.hints
            wish = await carrier.compute(partial(self.wish, reading, orders, hints, sent.model))
            outcome = self.route(reading, orders, sent=sent, wish=wish)
            while isinstance(outcome, Rest):  # nothing has left for the client yet
                await carrier.sleep(outcome.seconds)
                outcome = self.route(reading, orders, hints, sent=sent, waits_since=outcome.since)
            if isinstance(outcome, Plan):
                if participants is not None:
                    self.notices.wait(reading.key, *participants.life.turn.tells)
                if outcome.decision.clear_sticky:
                    await self.forget_sticky(reading, orders.state.sticky, carrier.in_thread)
                departure = await self._depart(outcome, participants, carrier)
                if reading.mark:
                    self.on_departs(reading.key, reading.mark, outcome.target)
                return departure
            if participants is not None:
                call = participants.offer(sent, able=True)
                comment = outcome.comment
                said = await converse(
                    participants, call, lambda call: self.echo(replace(reading, call=call), comment), self.endings
                )
                outcome = replace(said, comment=comment, before=outcome.before)
                await participants.leave(aborted=False)
            return outcome
        except Exception as error:
            if participants is not None:
                await participants.leave(aborted=False, error=type(error).__name__)
            raise

    def prepare(self, reading: Reading, orders: Orders, spent: list[str] | None = None) -> Reply | None:
        """The call as the model is to see it: without tags, with what stayed hidden from the client. Or our own answer."""
        call = reading.call
        clean(call, reading.typed, reading.client)
        take_out(call)
        if reading.alone:
            return self._local_answer(reading, orders, spent or [])
        self._open_conversation(reading)
        entries = self.hidden.load(reading.key) if self.hidden is not None else ()
        if entries:
            put_back(call, entries, client=client_of(reading.caller))
        return None

    def participants(self, reading: Reading, orders: Orders, in_thread: InThread) -> Participants | None:
        """The plugins that take part in this call's turn, if any does."""
        if not self.plugins or self.hidden is None or reading.received.endpoint.action != "generate":
            return None
        turn = TurnInfo(
            reading.received.id,
            reading.call,
            reading.caller,
            reading.key,
            orders.state,
            self.clocks.wall,
            self.clocks.monotonic,
            prompt=reading.mark,
        )
        found = takers(self.plugins, turn, self.note)
        if not found:
            return None
        return Participants(Lifecycle(turn, found, warn=self.note), reading.call, self.hidden, reading.key, in_thread, self.note)

    def route(
        self,
        reading: Reading,
        orders: Orders,
        hints: Hints | None = None,
        *,
        sent: Call | None = None,
        wish: Wish | None = None,
        waits_since: float | None = None,
    ) -> Reply | Plan | Rest:
        """`sent`: the call as plugins edited it. It is what goes up; where it goes is decided by the client's own, but for the
        model that is asked for. `wish`: what it comes to, where that is known. `waits_since`: when it was first told to wait."""
        sent = sent or reading.call
        try:
            outcome = self._route(reading, wish or self.wish(reading, orders, hints or Hints(), sent.model), sent, waits_since)
        except RouteCodexError as error:
            self._went(reading, Went(self.clocks.wall(), failed=error.message))
            raise
        if isinstance(outcome, Rest):
            return outcome
        if isinstance(outcome, Plan):
            outcome.aside = _aside(orders)
            if outcome.decision.clear_sticky:
                self.notices.wait(reading.key, cleared(outcome.decision, outcome.wish, outcome.registry))
            if self.obeying.must_keep_end(reading, orders):
                outcome.keep_end = partial(self.obeying.keep_end, reading)
                outcome.end_unheard = partial(self.obeying.not_ended, reading)
            return outcome
        before = partial(self.obeying.keep_end, reading) if self.obeying.must_keep_end(reading, orders) else None
        return replace(outcome, comment=outcome.comment + _aside(orders), before=before)

    def _route(self, reading: Reading, wish: Wish, sent: Call, waits_since: float | None) -> Reply | Plan | Rest:
        if reading.received.endpoint.action == "count":
            return self._count(reading, wish)
        try:
            decision = self._choose(reading, wish)
        except Resting as resting:
            return self._rest(resting, waits_since)
        if decision.target.provider == ECHO:
            return self.echo(reading, f"echo · {decision.route}: {decision.reason}")
        if wish.chained is not None:
            self._check_history(reading, wish.chained)
        if self.withheld:
            if self._has_secrets(decision.target):
                raise KeysWithheld(self.withheld, details={"provider": decision.target.provider})
            decision = replace(decision, clear_sticky=False)
        return self._plan(reading, wish, decision, sent)

    def _rest(self, resting: Resting, since: float | None) -> Rest:
        """A short rest is waited out, and the client notices nothing. Of a longer one it is told; and asked to come again, where
        it does that well."""
        now = self.clocks.monotonic()
        since = now if since is None else since
        if now + resting.seconds <= since + PATIENCE_S:
            return Rest(min(max(resting.seconds, _REST_LOOK_S), 1.0), since)
        seconds = math.ceil(resting.seconds)
        back = time_of_day(self.clocks.wall() + resting.seconds, self.clocks.utc_offset_s())
        resting.message += f": it rests until {back}, for {seconds} s more"
        resting.passes_in_s = seconds if seconds <= REST_TOLD_S else None
        raise resting

    def _has_secrets(self, target: Target) -> bool:
        provider = self.config.registry.providers[target.provider]
        return bool(provider.headers) or any(key.value for key in provider.keys)

    def _size_matters(self, reading: Reading) -> bool:
        """Whether a closer look at the call's size could change anything: even its bytes alone may be too few for that."""
        size, few = len(reading.received.body), self.close_look_bytes
        return reading.received.endpoint.action == "count" or (size >= few and at_most(reading.call, size) >= few)

    def wish(self, reading: Reading, orders: Orders, hints: Hints, model: str) -> Wish:
        """What the call comes to, before it is known who can serve it."""
        estimate = reading.tokens if self._size_matters(reading) else len(reading.received.body) // 4
        return self._wish(reading, orders, estimate, hints, model)

    def _wish(self, reading: Reading, orders: Orders, estimate: int, hints: Hints, model: str) -> Wish:
        call, received, registry = reading.call, reading.received, self.registry(reading.caller.user)
        typed_text = strip(reading.newest.words[:_LOOKED_AT]) if reading.newest else None
        plan = "plan" in registry.routes and is_planning(call, reading.client)
        features = read_features(call, reading.caller, estimate, typed_text, model=model, plan=plan)
        hint = hints.route or received.headers.get(ROUTE_HINT) or None
        asked = received.headers.get(DISABLE_STICKY, "").strip().lower() in ("1", "true", "yes", "on")
        chained = self._chained(call)
        return Wish(
            features=features,
            classified=classify(features, registry.classifier, route_hint=hint, configured=registry.routes),
            state=self.overlay.over(orders.state, registry),
            force=orders.force,
            client_model=model,
            disable_sticky=asked or hints.disable_sticky,
            spares_sticky=self.overlay.spares(orders.state),
            pinned=chained or self.learned.pins.get((reading.key, reading.mark)),
            chained=chained,
            tokens=estimate,
        )

    def _chained(self, call: Call) -> Target | None:
        """Where the answer lives that the call follows."""
        earlier = self.learned.chains.get(call.previous_id) if call.previous_id else None
        return earlier[1] if earlier else None

    def _check_history(self, reading: Reading, chained: Target) -> None:
        """Who gave the answer in another dialect has kept nothing of it. Some clients that are told so send the conversation."""
        provider = self.registry(reading.caller.user).providers.get(chained.provider)
        if provider is None or not upstream.speaks_natively(provider, reading.received):
            raise NoSuchAnswer(
                f"Previous response with id {reading.call.previous_id!r} not found: {chained.provider}.{chained.model} gave it, "
                "and keeps no conversations. Send all of it (without previous_response_id), or begin a new one."
            )

    def _choose(self, reading: Reading, wish: Wish, rotation: Rotation | None = None) -> Decision:
        """The first choice that can be asked; where none can, the first of all: its refusal says why."""
        registry, health = self.registry(reading.caller.user), self.learned.health
        rotation = rotation or self.learned.rotation
        now = self.clocks.monotonic()
        first = decision = choose(wish, registry, health, rotation, now)
        while decision.target.provider != ECHO and not upstream.dialect_for(
            registry.providers[decision.target.provider], reading.received, reading.call, wish.chained
        ):
            wish = replace(wish, excluded=wish.excluded | {decision.target})
            try:
                decision = choose(wish, registry, health, rotation, now)
            except RouteCodexError:
                return first
        return decision

    def _plan(
        self,
        reading: Reading,
        wish: Wish,
        decision: Decision,
        call: Call,
        *,
        counting: bool = False,
    ) -> Plan:
        plan = Plan(
            received=reading.received,
            call=call,
            wish=wish,
            decision=decision,
            registry=self.registry(reading.caller.user),
            memory=self.learned,
            clocks=self.clocks,
            attempts=self._attempts(),
            estimate=(lambda: reading.tokens) if call is reading.call else _once(partial(estimate_tokens, call)),
            chained=self._chained(reading.call),
            session=reading.key.id if reading.key.prefix != "chain" else "",
            hide=self.hide,
            on_answer=lambda target, id, begun: self._remember(reading, target, id, begun),
            on_over=lambda plan, to_the_end: self._over(reading, plan, to_the_end),
            counting=counting,
            note=self.note,
            unheard=reading.unheard,
            client=reading.caller.client,
            asked=reading.call.model,
            typed=reading.words,
            prices=self.prices,
            to_tell=lambda plan: self._notices(reading, plan),
            on_told=lambda causes: self.notices.told(reading.key, causes),
            on_seals=lambda maker, digests: self.on_seals(reading.key, maker, digests),
        )
        plan.keep = partial(self._keep_item, reading, plan)
        return plan

    # By hand

    def named_by_hand(self, target: str) -> Named:
        """What a person names; raises where no key of ours would be used."""
        name = parse_name(target.strip().removeprefix("<**").removesuffix("**>"))
        if name is None:
            raise not_found(target, known=())
        named = resolve(name, self.config.registry)
        provider = self.config.registry.providers[named.provider]
        if provider.id in (ORIGIN, ECHO) or provider.auth == "client":
            raise NoTarget(f"{named} is asked with the tool's own credential, and nobody keeps that: name a provider with a key.")
        if self.withheld:
            raise KeysWithheld(self.withheld, details={"provider": provider.id})
        return named

    def _untagged(self, received: Received) -> Reading:
        """No tag goes to a provider, not even that of a call which was refused, or answered here."""
        reading = self.read(received)
        if reading.alone:
            raise BadCall("it asks a model nothing: its message is tags alone")
        clean(reading.call, reading.typed, reading.client)
        take_out(reading.call)
        return reading

    async def once_more(self, received: Received, target: str, carrier: Carrier) -> Departure:
        """A call that a person sends again: no tag is obeyed, nobody takes part, and no conversation goes on with it."""
        named, read = self.named_by_hand(target), await carrier.compute(partial(self._untagged, received))
        reading = replace(read, key=SessionKey("chain", received.id), obeys=False, tags=(), place=None, newest=None)
        wish = self._wish(reading, Orders(EMPTY, force=named), reading.tokens, Hints(), reading.call.model)
        decision = replace(self._choose(reading, wish), route="again", reason="by hand")
        plan = self._plan(reading, wish, decision, reading.call)
        plan.on_answer, plan.on_over = _unremembered, lambda plan, to_the_end: self._write_down(reading, plan)
        return await self._depart(plan, None, carrier)

    def _notices(self, reading: Reading, plan: Plan) -> tuple[Cause, ...]:
        """In the main conversation alone, and where it is known which one that is."""
        if not (self.config.notices and reading.obeys) or plan.counting or reading.key.prefix == "chain":
            return ()
        now, health = self.clocks.monotonic(), self.learned.health
        causes = elsewhere(plan.decision, plan.wish, plan.registry, health, plan.attempts, now)
        return self.notices.due(reading.key, [*causes, *gave_no_orders(reading.unheard)])

    def _attempts(self) -> Attempts:
        most = 1 if self.withheld else self.config.max_attempts  # the next one might need a key
        return Attempts(most, self.learned.budget, self.config.registry.health.wait_for_same_key_s)

    def _remember(self, reading: Reading, target: Target, id: str | None, begun: str | None = None) -> None:
        if reading.mark:
            self.learned.pins.put((reading.key, reading.mark), target)
        if reading.obeys:
            self.learned.answered.put(reading.key, target)
        if id is not None and len(id) <= LONGEST and reading.call.endpoint.dialect is Dialect.RESPONSES:
            self.learned.chains.put(id, (reading.key, target))
            self._hold(reading, target, id)
            if begun is not None and len(begun) <= LONGEST:
                self.learned.chains.put(begun, (reading.key, target))
                self.learned.begun.put(begun, id)

    def _hold(self, reading: Reading, target: Target, id: str) -> None:
        said, provider = reading.said, self.registry(reading.caller.user).providers.get(target.provider)
        if said.brought and provider is not None and not upstream.speaks_natively(provider, reading.received):
            self.learned.said.put(reading.received.user, id, said, len(dumps(said.brought)))

    def _over(self, reading: Reading, plan: Plan, to_the_end: bool) -> None:
        if to_the_end:
            self.obeying.ended(reading)
        if reading.mark and not plan.settled:
            self.on_departs(reading.key, reading.mark, None)
        failed = "" if plan.settled or not plan.faults else plan.faults[-1]
        outcome = "answered" if to_the_end else "answered, not to its end" if plan.settled else "without an answer"
        bills = tuple(cost.bill for cost in plan.costs)
        self._went(reading, Went(self.clocks.wall(), plan.comment, tuple(plan.faults), outcome, failed, bills, plan.asked))
        self._write_down(reading, plan)

    def _write_down(self, reading: Reading, plan: Plan) -> None:
        if self.spend is not None and plan.costs:
            lost = partial(self._lost, reading.key, plan.on_lost)
            for one in spent(plan.costs, _asker(reading), failed=bool(plan.tried), lost=lost):
                self.spend(one)

    def _lost(self, key: SessionKey, show: Callable[[str], None], loss: Loss) -> None:
        told = self.hide.text(str(loss))
        self.learned.losses.put(key, told)
        show(told)

    def _went(self, reading: Reading, went: Went) -> None:
        """Of the conversation itself; what side calls come to says nothing about it."""
        if not reading.obeys:
            return
        self.learned.went.put(reading.key, went)
        if went.failed:
            self.learned.failures.put(reading.key, went)

    async def _depart(self, plan: Plan, participants: Participants | None, carrier: Carrier) -> Departure:
        """Our tools join, and the answer is there before anything of it has come."""
        endpoint, answer = plan.received.endpoint, self._answer_to(plan, participants)
        try:
            plan.begin()
            request = plan.written(await carrier.compute(plan.write))
        except RouteCodexError:
            plan.over()
            raise
        alone = participants is None
        limits = self.limits(plan, alone=alone)
        turn = Turn(endpoint, plan.call.stream, plan, limits, self.clocks.monotonic(), answer, alone=alone)
        return Departure(request, plan, turn, participants)

    def _answer_to(self, plan: Plan, participants: Participants | None) -> machine.Answer:
        id, alone = plan.received.id, participants is None
        endings, created = self.endings.named(id[:8]), int(self.clocks.wall())
        quiet = alone and not endings.matter and (plan.target.provider == ORIGIN or not may_be_named(plan.call))
        asked = going_up.asked(
            plan.call,
            id,
            created=created,
            estimate=plan.estimate,
            endings=endings,
            passes_usage=quiet,
            whole_calls=takes_whole_calls(plan.client, plan.received.host),
            hears_cost=plan.hears_cost,
            keep=plan.keep,
        )
        if participants is None:
            return machine.Answer(asked, quiet=quiet)
        plan.call = participants.offer(plan.call, able=plan.provider.server_tools)
        plan.added = participants.offered
        participants.life.turn.target = plan.target
        return participants.answer(asked)

    def limits(self, plan: Plan, *, alone: bool = True) -> Limits:
        """What goes home, with nobody else taking part, keeps the client's own patience."""
        first_byte = self.config.first_byte_s
        if plan.at_home_alone or not plan.call.stream:
            first_byte = max(first_byte, _WHOLE_ANSWER_S)
        early = None if plan.at_home_alone and alone else _EARLY_HEAD_S
        return Limits(first_byte, self.config.idle_s, early, content_s=self.config.content_s)

    # Answers of our own

    def _spent(self, reading: Reading) -> list[str]:
        """Waits for the disk."""
        from ..usage import report  # a database, for whoever asks

        self.settle_usage()
        path, now, user = self.user_folder / FILE_NAME, self.clocks.wall(), reading.caller.user
        midnight = now - (now + self.clocks.utc_offset_s()) % 86_400
        session = report.of_file(path, "session", session=reading.key.id)
        day = report.of_file(path, "daily", since_ms=int(midnight * 1000), user=user or None)
        return spent_lines(session["totals"], day["totals"], whose=user)

    def _local_answer(self, reading: Reading, orders: Orders, spent: list[str]) -> Reply:
        clock = self.reminders.status(reading.caller) if self.reminders is not None else ""
        standing = Standing(
            self.registry(reading.caller.user),
            self.learned,
            self.prices,
            self.clocks,
            reading,
            clock,
            spent,
            lambda state: self._next_one(reading, state),
        )
        lines = standing.answer(orders)
        if ill := self.ill():
            lines.append(f"{ill}.")
        if for_all := described(self.overlay.state):
            lines += ["For all sessions of this server (routecodex daemon):", *for_all]
        return self._answer(reading, Answer(local_answer(lines)), "answered by RouteCodex")

    def _next_one(self, reading: Reading, state: SessionState) -> Decision:
        """Where a plain message would go now. Nobody's turn is taken by asking."""
        wish = replace(self._wish(reading, Orders(state), 0, Hints(), reading.call.model), pinned=None)
        return self._choose(reading, wish, self.learned.rotation.copy())

    def echo(self, reading: Reading, comment: str) -> Reply:
        """The built-in provider's answer, in any round of a turn."""
        call = without_tag(reading.call)
        typed = {one.message.index: one.words for one in typed_messages(call, self._client(reading.caller))}
        echoed = echo_answer(call, typed)
        self._remember(reading, Target(ECHO, "local", ""), None)
        is_end = not isinstance(echoed, EchoFailure) and not echoed.calls
        if is_end:
            self.obeying.ended(reading)
        self._went(reading, Went(self.clocks.wall(), comment, outcome="answered" if is_end else "the echo was told otherwise"))
        if isinstance(echoed, EchoFailure):
            return self.replies.error(reading.received.endpoint, echoed.status, echoed.message, echoed.code, {}, comment)
        return replace(self._answer(reading, echoed, comment), delay_s=delay_of(call, typed))

    def _count(self, reading: Reading, wish: Wish) -> Reply | Plan:
        """The target's own count where it has one, else our estimate."""
        decision = self._choose(reading, wish, Rotation())
        provider = self.config.registry.providers[decision.target.provider]
        asks_it = _counts(provider, reading.received) and not (self.withheld and self._has_secrets(decision.target))
        if decision.target.provider == ORIGIN or asks_it:
            return self._plan(reading, wish, decision, reading.call, counting=True)
        target = replace(decision.target, model=decision.target.model or reading.call.model)
        tokens = self.learned.calibration.apply(target, wish.tokens)
        body = count_answer(reading.received.endpoint.dialect, tokens)
        return Reply(200, (JSON,), body, f"{tokens} tokens, estimated by RouteCodex for {target}")

    def _answer(self, reading: Reading, answer: Answer, comment: str) -> Reply:
        keep = partial(self._keep_item, reading, None)
        return self.replies.answer(reading.call, answer, comment, id=self._own_id(reading), keep=keep)

    def _own_id(self, reading: Reading) -> str:
        if reading.received.endpoint.dialect is not Dialect.RESPONSES:
            return reading.received.id
        id = own_id(reading.received.id, reading.call.previous_id)
        self.learned.chains.put(id, (reading.key, None))
        return id

    def refuse(self, endpoint: Endpoint | None, error: RouteCodexError, client: str = "") -> Reply:
        return self.replies.refuse(endpoint, error, client)


def _counts(provider: Provider, received: Received) -> bool:
    url = provider.endpoints.get(received.endpoint.dialect)
    if url is None:
        return False
    return provider.count_tokens if provider.count_tokens is not None else url.host in _COUNTING_HOSTS


def time_of_day(epoch_s: float, utc_offset_s: float) -> str:
    """As a person's clock shows it."""
    seconds = int(epoch_s + utc_offset_s) % 86_400
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def _named(caller: Caller) -> SessionKey | None:
    if caller.session is not None and not caller.derived:
        return SessionKey("session", caller.session)
    return SessionKey("conversation", caller.conversation) if caller.conversation is not None else None


def _once(work: Callable[[], T]) -> Callable[[], T]:
    """Done when somebody asks for it. (`functools.cache` takes longer to make than most calls take to be written.)"""
    known: list[T] = []

    def asked() -> T:
        if not known:
            known.append(work())
        return known[0]

    return asked


def _aside(orders: Orders) -> str:
    """What was taken out and did nothing."""
    return f" · {' '.join(orders.ignored)}" if orders.ignored else ""


def _opens(call: Call, typed: tuple[Typed, ...]) -> bool:
    """Nobody has answered the first message yet."""
    return len(typed) == 1 and all(message.role != "assistant" for message in call.messages[typed[0].message.index :])


__all__ = ["Desk", "Learned", "Plan", "Reading", "Recent", "Reply"]


def _unremembered(target: Target, id: str | None, begun: str | None) -> None:
    pass


def _asker(reading: Reading) -> Asker:
    received, caller, call = reading.received, reading.caller, reading.call
    session = reading.key.id if reading.key.prefix != "chain" else ""
    return Asker(
        received.id, session, caller.client, call.model, received.body, call.endpoint.dialect, reading.obeys, user=caller.user
    )


def _owned(caller: Caller, user: str) -> Caller:
    """Whatever its tool calls them: sessions and conversations are this person's."""
    session, conversation = (owned(user, id) if id is not None else None for id in (caller.session, caller.conversation))
    if not user and (session, conversation) == (caller.session, caller.conversation):
        return caller
    return replace(caller, user=user, session=session, conversation=conversation)
