"""Where a call's rounds go: the first target, and the next one when that fails."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import assert_never

from msgspec import Struct, field
from msgspec.structs import replace

from .. import headers
from ..clients.homes import tells_cost
from ..dialects.answer.machine import Round, write_error
from ..dialects.calls.following import begun_id
from ..dialects.estimate import Calibration, count_answer
from ..dialects.failures import read_failure
from ..dialects.seals import Seals
from ..dialects.sse import headers_for
from ..dialects.translation.going_up import wants_cost
from ..dialects.translation.neutral import Tokens
from ..errors import RouteCodexError
from ..masking import NOTHING, Mask, masked
from ..redact import Redactor, is_like_a_key
from ..router.attempts import Attempts, GiveUp, RetryBudget, TryNext, WaitThenSame
from ..router.balance import Rotation
from ..router.choose import Decision, Wish, choose
from ..router.health import Cooling, Health
from ..router.registry import ORIGIN, Provider, Registry
from ..secret_names import is_secret_header
from ..storage.contract import InThread
from ..tags.notice import Cause, line_of
from ..tags.unheard import Unheard, listed
from ..usage.prices import Prices
from ..usage.spending import Cost, Paid, paid
from ..values import Call, Dialect, Headers, JsonObject, ProviderError, Target, Usage
from . import upstream
from .actions import Failed, Head, Refusal
from .opening import Opening
from .upstream import Received, Request, Translated

_ERROR = re.compile(rb'"error"\s{0,4}:\s{0,4}[{"]|"type"\s{0,4}:\s{0,4}"error"')
_KEY_REFUSED = frozenset({401, 402, 403})


class Memory(Struct):
    """What the running server has learned: shared by all calls, and by the configurations that follow one another."""

    health: Health = field(default_factory=Health)
    rotation: Rotation = field(default_factory=Rotation)
    budget: RetryBudget = field(default_factory=RetryBudget)
    calibration: Calibration = field(default_factory=Calibration)
    seals: Seals = field(default_factory=Seals)


class Clocks(Struct, frozen=True):
    """Monotonic seconds, epoch seconds, and the local zone's offset."""

    monotonic: Callable[[], float]
    wall: Callable[[], float]
    utc_offset_s: Callable[[], float]


class Plan(Struct):
    """One call's way through the providers. The turn asks it what to do; it never sends anything itself."""

    received: Received
    call: Call
    wish: Wish
    decision: Decision
    registry: Registry
    memory: Memory
    clocks: Clocks
    attempts: Attempts
    estimate: Callable[[], int]
    """Our own count of the call's tokens, made once, and only when it is needed."""
    hide: Redactor
    on_answer: Callable[[Target, str | None, str | None], None] = lambda target, id, begun: None
    """Hears which target answers, the answer's id where it tells one, and the id that the client was told before it."""
    on_over: Callable[[Plan, bool], None] = lambda plan, ended: None
    """Hears that nothing more is sent, and whether the answer came to its end with nothing left to do for the client."""
    on_seals: Callable[[str, Sequence[bytes]], None] = lambda maker, digests: None
    """Hears whose seals the answer holds."""
    keep: Callable[[JsonObject], None] = lambda item: None
    """Hears of each Responses item of the answer."""
    keep_end: Callable[[InThread], Awaitable[object]] | None = None
    """Keeps that end; None where nobody has to know of it later."""
    end_unheard: Callable[[], None] = lambda: None
    """The client has left before it was told."""
    aside: str = ""
    """What else the comment says."""
    chained: Target | None = None
    """Where the answer lives that the call follows (Responses): only there can its id be used."""
    counting: bool = False
    """A count of tokens: it says nothing about keys, and we can answer it ourselves."""
    note: Callable[[str], None] = lambda line: None
    began: float = 0.0
    first: Failed | None = None
    first_target: Target | None = None
    last: Failed | None = None
    """The attempt that failed last, if nothing was answered since."""
    tried: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    """Every attempt that failed, in words."""
    session: str = ""
    """Names the conversation to a provider's cache."""
    client: str = ""
    asked: str = ""
    """The model that the client named."""
    costs: list[Cost] = field(default_factory=list)
    """Of every round that was answered, and of every attempt that failed when its provider had begun to count."""
    prices: Prices = field(default_factory=Prices)
    on_lost: Callable[[str], None] = lambda loss: None
    """Hears later, where the provider's cache was lost, why."""
    typed: str = ""
    """What the person typed last, tags and all: for whoever looks at the flow."""
    translated: Translated | None = None
    """How the running round's request differs in its dialect from the client's."""
    left_out: str = ""
    """What of the call the running round's request does not hold."""
    unsaid: list[str] = field(default_factory=list)
    """What of the answer the client's dialect cannot say."""
    added: Sequence[str] = ()
    """Tools of ours that are offered beside the client's own."""
    hides_count: bool = False
    """The running round tells a count that the client did not ask for."""
    unheard: tuple[Unheard, ...] = ()
    """Tags that stand where they give no orders."""
    to_tell: Callable[[Plan], tuple[Cause, ...]] = lambda plan: ()
    """What the person is to be told before the answer's first text."""
    on_told: Callable[[tuple[Cause, ...]], None] = lambda causes: None
    """Hears that it stands there."""
    telling: tuple[Cause, ...] = ()
    _place: str = ""
    """Where the running round goes."""
    _sent: bytes = b""
    _secrets: tuple[str, ...] = ()
    _sent_to: Target | None = None
    """Whose they are."""
    begun_as: str | None = None
    """The id of the answer where it began before any provider's."""
    settled: bool = False
    crowded: bool = False
    """Given up only because too many other calls are being repeated: the client may well ask again."""

    @property
    def target(self) -> Target:
        return self.decision.target

    @property
    def provider(self) -> Provider:
        return self.registry.providers[self.decision.target.provider]

    @property
    def place_asked(self) -> str:
        """Where the running round goes."""
        return self._place

    @property
    def comment(self) -> str:
        target = self.target
        key = "" if self.provider.auth == "client" else target.key
        name = str(Target(target.provider, key, target.model)) if target.model else f"{target.provider} {self.call.model}".strip()
        again = f" · after {', '.join(self.tried)}" if self.tried else ""
        return f"{name} · {self.decision.route}: {self.decision.reason}{again}{self._translation}{self.aside}"

    @property
    def long_comment(self) -> str:
        """The comment for those who look at the flow: the model first, since a list shows no more than its beginning. What the
        client sent stands in it: it goes into no log."""
        target, decision = self.target, self.decision
        place = f"{target.provider}.{target.key}" if target.key else target.provider
        again = f" · after {', '.join(self.tried)}" if self.tried else ""
        unheard = f" · tags that give no orders: {listed(self.unheard)}" if self.unheard else ""
        head = f"{target.model or self.call.model} · {decision.route} · {place} · {decision.reason}"
        return f"{head}{again}{self._translation}{self.aside}{unheard}"

    @property
    def _translation(self) -> str:
        """The dialect, where it is not the client's, and what did not go up."""
        parts = []
        if self.translated is not None and self.translated.dialect is not self.received.endpoint.dialect:
            parts.append(f"in {self.translated.dialect}")
        if self.translated is not None and self.translated.compacts:
            parts.append("compacted in words")
        if self.left_out:
            parts.append(f"left out: {self.left_out}")
        if self.unsaid:
            parts.append(f"left out of the answer: {', '.join(self.unsaid)}")
        return f" · {', '.join(parts)}" if parts else ""

    @property
    def at_home_alone(self) -> bool:
        """Nothing but `origin` is routed for this call: its errors are the client's own business."""
        return self.target.provider == ORIGIN and self.decision.sole and not self.tried

    @property
    def spoken(self) -> Dialect:
        """What the running round's provider speaks."""
        return self.translated.dialect if self.translated is not None else self.received.endpoint.dialect

    def request(self) -> Request:
        """The request for the target now decided on."""
        self.begin()
        return self.written(self.write())

    def begin(self) -> None:
        """It is about to be asked."""
        now = self.clocks.monotonic()
        self.began = now
        if not self.counting:
            self.memory.health.begin(self.target, now)

    def write(self) -> Request:
        """What it is asked; only computes."""
        provider = self.provider
        return upstream.write(
            self.received,
            self.call,
            provider,
            self.target,
            own=self.memory.seals.made_by(provider.id, *self._sent_ids()),
            session=self.session,
            maker_of=self.memory.seals.maker_of,
        )

    def written(self, request: Request) -> Request:
        self.translated, self.left_out = request.translated, request.left_out
        self.hides_count = request.counts and not self.hears_cost
        self._place = f"{request.scheme}://{request.host}{request.path}"
        known = any(cost.answered for cost in self.costs)
        self._sent = b"" if known else request.body  # later rounds hold all that was said so far: that is not kept twice
        return request

    def go_on(self, call: Call, attempts: Attempts) -> None:
        """A later round of the same turn: the same target, every attempt anew."""
        self.attempts.done()
        self.attempts = attempts
        self.call = call
        self.wish = replace(self.wish, pinned=self.target)
        self.first = self.first_target = None
        self.tried = []
        self.settled = self.crowded = False

    # What the turn asks

    def opening(self) -> Opening:
        self.begun_as = begun_id(self.received.id)
        return Opening(self.begun_as, self.call.model, int(self.clocks.wall()))

    def head(self, status: int, back: Headers) -> Head:
        pairs = headers.answer(back.items(), foreign=not upstream.goes_home(self.provider, self.received))
        secrets = self.secrets
        if secrets:
            pairs = tuple((name, masked(value, secrets)) for name, value in pairs)
        if self.translated is not None:
            form = headers_for(self.call.stream, self.received.endpoint.json_array)
            pairs = (*(pair for pair in pairs if pair[0].lower() not in form), *form.items())
        return Head(status, pairs)

    @property
    def secrets(self) -> tuple[str, ...]:
        """The credentials that this provider was sent: those that are none of a language's words, as a local model's key
        (`ollama`) may be."""
        target = self.decision.target
        if self._sent_to is not target:
            key = self.provider.key(target.key)
            sent = [value for name, value in self.provider.headers.items() if is_secret_header(name)]
            self._secrets = tuple(filter(is_like_a_key, [*sent, *([key.value] if key is not None else ())]))
            self._sent_to = target
        return self._secrets

    def mask(self) -> Mask:
        """What takes them out of the round's answer."""
        return Mask(secrets) if (secrets := self.secrets) else NOTHING

    def without_quotes(self, chunk: bytes) -> bytes:
        """An error may quote any of them, and is no text that a person asked for."""
        return self.hide.known(chunk) if _ERROR.search(chunk) else chunk

    def unsay(self, left_out: str) -> None:
        """Of the answer, since the client's dialect cannot say it."""
        if left_out and left_out not in self.unsaid:
            self.unsaid.append(left_out)

    def failure(self, status: int, back: Headers, body: bytes) -> ProviderError:
        return read_failure(status, back, body, now=self.clocks.wall())

    def failed(self, failed: Failed, now: float) -> float | None:
        target, error, self.last = self.target, failed.error, failed
        if self.first is None:
            self.first, self.first_target = replace(failed, translated=self.translated is not None), target
        if self.counting:
            return None
        wall, zone = self.clocks.wall(), self.clocks.utc_offset_s()
        self.memory.health.failed(target, error, now, wall=wall, utc_offset_s=zone, began=self.began)
        if self.at_home_alone and not error.network:
            return None
        sole = self.decision.sole or bool(self._own_ids())
        ready = self._ready_in(now) if sole else None
        step = self.attempts.after(target, error, sole=sole, ready_in_s=ready)
        self.note(f"{target} failed: {describe(error)}")
        self.faults.append(f"{target}: {describe(error)}")
        match step:
            case GiveUp():
                return None
            case WaitThenSame(seconds):
                return seconds
            case TryNext():
                pass
            case never:
                assert_never(never)
        if self._own_ids():
            return None  # nobody else knows what came before
        self.tried.append(f"{target} {error.status}")
        return 0.0 if self._move_on(now) else None

    def place(self, now: float) -> float | None:
        """Whether the round that was decided on may begin (`Attempts.place`)."""
        seconds = self.attempts.place(now)
        self.crowded = seconds is None
        return seconds

    @property
    def at_home(self) -> bool:
        """The running round is with the server that the client called: whose seals are whose is the client's business."""
        return upstream.goes_home(self.provider, self.received)

    @property
    def round(self) -> Round | None:
        """Who speaks in the running round, and how; None: as the client does."""
        there = self.translated
        return Round(there.dialect, self.provider.id, there.tools, there.compacts) if there is not None else None

    @property
    def exact(self) -> bool:
        """The client went there by itself: what it is told of the end is the server's own word, even a wrong one."""
        return self.target.provider == ORIGIN

    @property
    def hears_cost(self) -> bool:
        """The client counts on being told what a stream has cost, whatever it asked for."""
        return wants_cost(self.call) or tells_cost(self.received.host)

    @property
    def notice(self) -> str:
        self.telling = self.to_tell(self)
        return self.hide.text(line_of(self.telling))

    def noticed(self) -> None:
        self.on_told(self.telling)

    def note_seals(self, raw: bytes) -> None:
        """Whole events or documents of the provider's: seals that it made may go back to it."""
        if not self.at_home:
            self.memory.seals.note(self.provider.id, raw)
            self._share_seals()

    def note_seals_of(self, items: Sequence[JsonObject]) -> None:
        """The same of a whole answer, as a history holds it."""
        if not self.at_home:
            self.memory.seals.note_items(self.provider.id, items)
            self._share_seals()

    def _share_seals(self) -> None:
        if found := self.memory.seals.collects:
            self.on_seals(self.provider.id, found)
            found.clear()

    def cost(self, tokens: Tokens | None, *, answered: bool = True) -> None:
        if self.counting:
            return
        target, route = self.decision.target, self.decision.route
        sent = self._sent if answered else b""
        self.costs.append(Cost(target, tokens, sent, self.spoken, self._place, self.clocks.wall(), route, answered))

    def paid(self, *, since: int = 0) -> Paid:
        """What all rounds cost, or those from that one on."""
        return paid([cost.bill for cost in self.costs[since:]], self.prices, self.asked)

    def answered(self, id: str, now: float) -> None:
        self.settled, self.last = True, None
        if self.counting:
            return
        self.attempts.settled()
        self.memory.health.succeeded(self.target, now, began=self.began)
        begun, self.begun_as = self.begun_as, None  # it stands for the first round's answer
        self.on_answer(self.target, id or None, begun)

    def used(self, usage: Usage) -> None:
        """What the answer cost: our estimates learn from it. `origin` is asked for its own counts."""
        if not self.counting and self.target.provider != ORIGIN:
            self.memory.calibration.learn(self.target, self.estimate(), usage)

    def over(self, *, ended: bool = False) -> None:
        self.attempts.done()
        if not self.settled and not self.counting:
            self.memory.health.released(self.target)
        self.on_over(self, ended)

    def refusal(self) -> Refusal:
        """The first provider's own error; a refusal of our own key names the key instead of passing for the caller's."""
        first, target = self.first, self.first_target
        assert first is not None
        assert target is not None
        if self.counting and target.provider != ORIGIN:
            return self._counted()
        if self.registry.providers[target.provider].auth == "client" and first.head is not None:
            return Refusal(first.head, first.readable)
        if target.provider == ORIGIN:
            return self._written(502, first.error.message)
        if first.error.status in _KEY_REFUSED:
            message = f"Provider {target.provider} refused the key {target.key} ({describe(first.error)})"
            return self._written(400, message, "PROVIDER_KEY_REFUSED")
        if first.head is None or first.translated:
            status = first.error.status if first.error.status >= 400 else 502
            return self._written(status, f"Provider {target.provider}: {first.error.message}")
        own = tuple(pair for pair in first.head.headers if pair[0].lower() != "x-should-retry")
        return Refusal(Head(first.head.status, (*own, *self._finality)), self.hide.bytes(first.readable))

    @property
    def _finality(self) -> tuple[tuple[str, str], ...]:
        """What keeps clients from repeating a call that was repeated here already."""
        return () if self.crowded else (("x-should-retry", "false"),)

    def _own_ids(self) -> tuple[str, ...]:
        """Ids in the call that this target's account has made itself."""
        chained, id = self.chained, self.call.previous_id
        is_there = chained is not None and (chained.provider, chained.key) == (self.target.provider, self.target.key)
        return (id,) if id and is_there else ()

    def _sent_ids(self) -> tuple[str, ...]:
        """These, or one that nobody knows who made: whoever did not says so, and nothing is lost in silence."""
        id = self.call.previous_id
        return (id,) if id and self.chained is None else self._own_ids()

    # The next target

    def _ready_in(self, now: float) -> float | None:
        """Seconds until the target may be asked again, where it rests."""
        state = self.memory.health.state(self.target, now)
        return state.until - now if isinstance(state, Cooling) else None

    def _move_on(self, now: float) -> bool:
        """Whether there is another target that speaks the client's dialect."""
        excluded = self.attempts.excluded
        while True:
            try:
                decision = choose(
                    replace(self.wish, excluded=excluded), self.registry, self.memory.health, self.memory.rotation, now
                )
            except RouteCodexError:
                return False
            provider = self.registry.providers[decision.target.provider]
            if upstream.dialect_for(provider, self.received, self.call, self.chained) and self._reads(provider):
                self.decision = decision
                return True
            excluded |= {decision.target}

    def _reads(self, provider: Provider) -> bool:
        """Nobody else has sealed the history."""
        seals = self.memory.seals
        reader = upstream.who_can_read(self.received, self.call, provider, seals.made_by(provider.id), seals.maker_of)
        return reader is None

    def _counted(self) -> Refusal:
        tokens = self.memory.calibration.apply(self.target, self.estimate())
        return Refusal(Head(200, (("content-type", "application/json"),)), count_answer(self.received.endpoint.dialect, tokens))

    def _written(self, status: int, message: str, code: str = "UPSTREAM_ERROR") -> Refusal:
        target = self.first_target
        details: dict[str, object] = {"provider": target.provider, "key": target.key} if target is not None else {}
        endpoint = self.received.endpoint
        message = self.hide.text(message)
        body = write_error(endpoint.dialect, status, message, code, details, json_array=endpoint.json_array)
        return Refusal(Head(status, (("content-type", "application/json"), *self._finality)), body)


def describe(error: ProviderError) -> str:
    """In a few words, without the provider's own text: that may hold anything."""
    if error.network:
        return error.message
    return f"status {error.status}" + (f", {error.code}" if error.code and error.code != str(error.status) else "")
