"""What one process learns, told to the others that serve the same people; and what they learned, told to it.

1. Before a call is read, what others have changed on its shelves is asked for at once (`wanted`, `heard`). A call that names no
   session, and follows no answer, needs none.
2. What is learned is noted as it happens, and said together a little later (`taken`). What has not been said yet is newer than
   what is heard.
3. What the store forgot, or nobody here can read, is simply not known: at worst a cache is missed, or a person told twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from ..clock.shared import KeptTasks
from ..dialects.fields import list_of, object_of, text_of
from ..errors import BadCall
from ..jsonbytes import dumps, loads
from ..router.health import Scope
from ..sessions.newest import Seen
from ..sessions.shared import SharedStates, key_of, name_of
from ..sessions.state import Sticky
from ..sessions.store import SessionKey
from ..storage.contract import NEVER, Found, Key, Kind, Put, Version
from ..storage.known import Known
from ..turn.hidden_shared import SharedHidden
from ..turn.plan import Clocks
from ..values import Target
from .learned import Learned, Recent
from .meeting import Met

Wanted = list[tuple[Key, Version]]
_Message = tuple[SessionKey, str]

SERVER = Key(Kind.SERVER, "")
_BUSY_S = 15
"""So long it holds what a process said of its repetitions; it says so again before."""


@dataclass(slots=True)
class Sharing:
    learned: Learned
    clocks: Clocks
    own: str
    """This process's name."""
    soon: Callable[[], None]
    """There is something to be said."""
    states: SharedStates | None = None
    hidden: SharedHidden | None = None
    tasks: Known[KeptTasks] | None = None
    chains_only: bool = False
    """Sessions that are named lie in files which all processes see; request chains do not."""
    _versions: dict[Kind, Known[None]] = field(init=False)
    _waiting: dict[tuple[Key, str], Callable[[], bytes]] = field(init=False, default_factory=dict)
    """What is to be said: the newest of each place."""
    _ends: dict[tuple[SessionKey, str], bool | None] = field(init=False, default_factory=dict)
    """Messages that were answered to the end. Said a little later, never before that end has left: of a process that dies in
    between, the client has no answer, and what it repeats must not act again."""
    _expected: Recent[_Message, Target] = field(init=False, default_factory=Recent)
    """Where messages go whose answers are still to come."""
    _until: dict[str, float] = field(init=False, default_factory=dict)
    """How long it holds what each other process said of its repetitions."""

    def __post_init__(self) -> None:
        self._versions = {kind: Known(kind, None, lambda before, _: before) for kind in (Kind.MEMO, Kind.SEALS, Kind.SERVER)}
        learned = self.learned
        learned.seen.changed = lambda key, seen: self._memo(key, "seen", seen and [seen.ordinal, list(seen.words), seen.old])
        learned.lapsed.changed = lambda key, sticky: self._memo(
            key, "lapsed", sticky and [sticky.provider, sticky.key, sticky.model]
        )
        learned.pins.changed = self._pinned
        learned.ended.changed = self._ends.__setitem__
        learned.noticed.changed = self._noticed
        learned.chains.changed = self._chained
        learned.begun.changed = lambda id, known: self._note(Key(Kind.ANSWER, id), "begun", partial(_written, known))
        learned.health.changed = self._health
        learned.rotation.turned = self._turned
        learned.rotation.stays = self._stays
        learned.budget.changed = self._busy
        learned.seals.collects = []

    # What others know

    def wanted(self, met: Met) -> Wanted:
        """To be asked for before the call is read."""
        follows = [id for id in met.follows if self.learned.chains.get(id) is None]
        asked = [(Key(Kind.ANSWER, id), NEVER) for id in follows]
        if met.key is not None:
            asked += self._of_session(met.key)
        if met.session is not None and self.tasks is not None:
            asked.append(self.tasks.wanted(met.session))
        return [*asked, self._versions[Kind.SERVER].wanted(SERVER.id)] if asked else []

    def then(self, met: Met) -> Wanted:
        """What is still to be asked for, once `wanted` was heard: only now is it known whose call it is."""
        earlier = next((known for id in met.follows if (known := self.learned.chains.get(id)) is not None), None)
        if earlier is None or earlier[0] == met.key or met.is_named:
            return []
        return self._of_session(earlier[0])

    def _of_session(self, key: SessionKey) -> Wanted:
        name = name_of(key)
        asked = [self._versions[Kind.MEMO].wanted(name), self._versions[Kind.SEALS].wanted(name)]
        if not self.chains_only or key.prefix == "chain":
            asked += [store.known.wanted(name) for store in (self.states, self.hidden) if store is not None]
        return asked

    def of_all(self) -> Wanted:
        """What is looked at also where no call comes."""
        return [self._versions[Kind.SERVER].wanted(SERVER.id)]

    def heard(self, asked: Wanted, found: Sequence[Found]) -> None:
        for (key, _), one in zip(asked, found, strict=True):
            match key.kind:
                case Kind.STATE if self.states is not None:
                    self.states.known.heard(key.id, one)
                case Kind.HIDDEN if self.hidden is not None:
                    self.hidden.known.heard(key.id, one)
                case Kind.TASKS if self.tasks is not None:
                    self.tasks.heard(key.id, one)
                case Kind.MEMO | Kind.SEALS | Kind.SERVER:
                    self._versions[key.kind].heard(key.id, one)
                    self._learn(key, one)
                case _:
                    self._learn(key, one)

    def _learn(self, key: Key, found: Found) -> None:
        for place, entry in found.entries:
            if (key, place) in self._waiting or len(place) > _LONGEST_PLACE or len(entry) > _LONGEST_ENTRY:
                continue
            try:
                value = loads(entry) if entry else None
                _LEARN[key.kind](self, key.id, place, value)
            except (BadCall, ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
                continue

    def _learn_memo(self, name: str, place: str, value: object) -> None:
        key, learned = key_of(name), self.learned
        what, _, which = place.partition(":")
        match what, value:
            case "seen", [int(ordinal), list(words), int(old)]:
                learned.seen.learn(key, Seen(ordinal, tuple(map(int, words)), old))
            case "lapsed", [str(provider), alias, model]:
                learned.lapsed.learn(key, Sticky(provider, key=_text(alias), model=_text(model)))
            case "lapsed", _:
                learned.lapsed.learn(key, None)
            case "pin", list(target):
                learned.pins.learn((key, which), _target(target))
            case "pin", None:
                learned.pins.forget((key, which))
            case "end", True:
                learned.ended.learn((key, which), True)
            case "end", _:
                learned.ended.forget((key, which))
            case "told", _ if len(told := learned.noticed.get(key) or frozenset()) < _MOST_TOLD:
                learned.noticed.learn(key, told | {which})

    def _learn_seal(self, name: str, place: str, value: object) -> None:
        self.learned.seals.learn(bytes.fromhex(place), text_of(value))

    def _learn_answer(self, id: str, place: str, value: object) -> None:
        match place, value:
            case "chain", [str(name), target]:
                self.learned.chains.learn(id, (key_of(name), _target(target) if isinstance(target, list) else None))
            case "begun", str(known):
                self.learned.begun.learn(id, known)
                if (chain := self.learned.chains.get(id)) is not None:
                    self.learned.chains.learn(known, chain)  # the same answer

    def _learn_server(self, _: str, place: str, value: object) -> None:
        what, _, which = place.partition(":")
        learned = self.learned
        match what, value:
            case "health", _:
                target = _target(loads(which.encode()))
                scope = (target.provider, target.key, target.model)
                learned.health.learn(scope, object_of(value), self.clocks.monotonic(), self.clocks.wall())
            case "turn", dict(weights):
                learned.rotation.learn_wheel(which, {str(name): float(weight) for name, weight in weights.items()})
            case "stays", list(target):
                learned.rotation.learn_kept(which, _target(target))
            case "busy", [int(calls), int(retrying), int(until)] if which != self.own and len(self._until) < _MOST_PROCESSES:
                learned.budget.others[which] = (min(max(calls, 0), _MOST_CALLS), min(max(retrying, 0), _MOST_CALLS))
                self._until[which] = min(until, round(self.clocks.wall()) + 2 * _BUSY_S)

    # What others are told

    def taken(self) -> list[Put]:
        """All that is to be said; given back with `again` where nobody hears it."""
        waiting, self._waiting = self._waiting, {}
        return [Put(key, place, said()) for (key, place), said in waiting.items()]

    def again(self, puts: Sequence[Put]) -> None:
        """What was learned meanwhile is newer."""
        older = {(key, place): (lambda entry=entry: entry) for key, place, entry in puts[-_MOST_UNSAID:]}
        self._waiting = {**older, **self._waiting}

    @property
    def silent(self) -> bool:
        """There is nothing to be said."""
        return not self._waiting

    def _note(self, key: Key, place: str, said: Callable[[], bytes]) -> None:
        if not self._waiting:
            self.soon()
        self._waiting[key, place] = said
        if len(self._waiting) > _MOST_UNSAID:  # nobody hears it: the store is gone, and calls go on
            del self._waiting[next(iter(self._waiting))]

    def _memo(self, key: SessionKey, place: str, value: object) -> None:
        self._note(Key(Kind.MEMO, name_of(key)), place, partial(_written, value))

    def _noticed(self, key: SessionKey, told: frozenset[str] | None) -> None:
        for cause in (told or frozenset()) - (self.learned.noticed.get(key) or frozenset()):
            self._memo(key, f"told:{cause}", True)

    def _chained(self, id: str, known: tuple[SessionKey, Target | None] | None) -> None:
        if known is not None:
            key, target = known
            said = [name_of(key), _listed(target) if target is not None else None]
            self._note(Key(Kind.ANSWER, id), "chain", partial(_written, said))

    def departs(self, key: SessionKey, mark: str, target: Target | None) -> None:
        """A message's call leaves: where its hops will go, if it is answered there, is told with all else that is known of it,
        while its provider thinks. None: nobody has answered."""
        at, pinned = (key, mark), self.learned.pins.get((key, mark))
        if target is None:
            if self._expected.get(at) is not None:
                self._expected.drop(at)
                self._tell_pin(at, pinned)
        elif target != pinned:
            self._expected.put(at, target)
            self._tell_pin(at, target)

    def _pinned(self, at: _Message, target: Target | None) -> None:
        expected = self._expected.get(at)
        self._expected.drop(at)
        if target is None or target != expected:
            self._tell_pin(at, target)

    def _tell_pin(self, at: _Message, target: Target | None) -> None:
        self._memo(at[0], f"pin:{at[1]}", target and _listed(target))

    def seals(self, key: SessionKey, maker: str, digests: Sequence[bytes]) -> None:
        for digest in digests:
            self._note(Key(Kind.SEALS, name_of(key)), digest.hex(), partial(_written, maker))

    def _health(self, scope: Scope) -> None:
        def said() -> bytes:
            return _written(self.learned.health.told(scope, self.clocks.monotonic(), self.clocks.wall()))

        self._note(SERVER, f"health:{dumps(list(scope)).decode('utf-8', 'replace')}", said)

    def _turned(self, wheel: str) -> None:
        self._note(SERVER, f"turn:{wheel}", lambda: _written(self.learned.rotation.wheels.get(wheel)))

    def _stays(self, pool: str) -> None:
        target = self.learned.rotation.kept[pool]
        self._note(SERVER, f"stays:{pool}", lambda: _written(_listed(target)))

    def _busy(self) -> None:
        budget = self.learned.budget
        self._note(
            SERVER, f"busy:{self.own}", lambda: _written([budget.calls, budget.retrying, round(self.clocks.wall()) + _BUSY_S])
        )

    def tick(self) -> None:
        """Now and then: a process that says no more does not repeat any more either."""
        budget, now = self.learned.budget, self.clocks.wall()
        for (key, place), ended in self._ends.items():
            self._memo(key, f"end:{place}", ended)
        self._ends.clear()
        if budget.retrying:
            self._busy()
        for other in [other for other, until in self._until.items() if until <= now]:
            del self._until[other], budget.others[other]


_MOST_UNSAID = 10_000
_LONGEST_PLACE, _LONGEST_ENTRY = 2_048, 65_536
"""What nobody here says: it would be remembered as long as it is."""
_MOST_TOLD = 200
_MOST_PROCESSES, _MOST_CALLS = 1_000, 100_000
_LEARN = {
    Kind.MEMO: Sharing._learn_memo,
    Kind.SEALS: Sharing._learn_seal,
    Kind.ANSWER: Sharing._learn_answer,
    Kind.SERVER: Sharing._learn_server,
}


def _written(value: object) -> bytes:
    """Empty where there is nothing."""
    return dumps(value) if value or value == 0 else b""


def _listed(target: Target) -> list[str]:
    return [target.provider, target.key, target.model]


def _target(value: object) -> Target:
    provider, key, model = map(str, list_of(value))
    return Target(provider, key, model)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
