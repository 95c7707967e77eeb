"""What a person is told who asks: `help`, `models`, `why`, and what `status` says beside what is in force."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from msgspec import Struct

from ..durations import duration
from ..router.health import Condition, Healthy
from ..router.registry import ECHO, ORIGIN, Key, Provider, Registry
from ..router.resting import READY, how_it_rests
from ..usage.prices import Prices, made_on, money
from ..usage.spending import Bill, paid
from ..values import Target

Health: TypeAlias = Callable[[Target], Condition]
"""How a target is doing at this moment."""

_MOST_MODELS = 40
_MOST_PROVIDERS = 40
_MOST_ATTEMPTS = 12
_MOST_IN_LIST = 3
_MOST_KEYS = 8
"""More keys of a provider are counted, and only those named that are not ready."""

_OTHERS = "Other processes may serve this conversation, too, and have answered since: the log has a line for each call."

HELP = (
    "Type a tag anywhere in a message; it is taken out before the message is sent:",
    "<**p.model**>  this message alone goes to provider p; <**p.key.model**> with that key, <**echo**> to the echo",
    "<**!p.model**>  everything from now on goes there; <**!p.key.model**> or <**!p.2**> with that key alone",
    "<**!p,q**> or <**p**>  only these providers are used",
    "<**#p**>, <**#p.key**>, <**#p.2**>, <**#p.model**>  switched off in this conversation; <**@p.key**>  on again",
    '<**stopMessage:"go on",3**>  each time the model stops, it is told so, three times at most; <**stopMessage:clear**>',
    "<**clear**>  back to normal routing; <**clock:clear**>  no more reminders",
    "<**status**>  what is in force and how the keys are; <**why**>  where the last message went; <**usage**>  what it cost",
    "<**models**>, <**models:p**>  what can be asked for, as tags to copy",
    "A message of tags alone is answered here and sent nowhere. In backticks a tag does nothing, and is taken out, too.",
)


class Went(Struct, frozen=True):
    """What became of a call."""

    at: float
    """Epoch seconds."""
    comment: str = ""
    """Where it went, and why."""
    faults: tuple[str, ...] = ()
    """The attempts that failed."""
    outcome: str = ""
    """How it ended."""
    failed: str = ""
    """What the client was told, where it got no answer."""
    bills: tuple[Bill, ...] = ()
    """What its rounds cost, and failed attempts that had begun to count."""
    asked: str = ""
    """The model that the client named."""


class Outlook(Struct, frozen=True):
    """What `status` says beside what is in force."""

    next_goes: str = ""
    """Where a message goes that is sent now; or why it cannot."""
    providers: tuple[Provider, ...] = ()
    health: Health = lambda target: Healthy()
    now: float = 0.0
    """Monotonic, as the health's."""
    failure: str = ""
    """The last one, with its time."""
    ignored: tuple[str, ...] = ()
    """Tags that were nothing of ours since the last look."""


def outlook_lines(outlook: Outlook) -> list[str]:
    lines = [f"The next message goes to {outlook.next_goes}."] if outlook.next_goes else []
    providers = [provider for provider in outlook.providers if provider.id not in (ORIGIN, ECHO)]
    lines += [_keys_line(provider, outlook) for provider in providers[:_MOST_PROVIDERS]]
    if len(providers) > _MOST_PROVIDERS:
        lines.append(f"… and {len(providers) - _MOST_PROVIDERS} more providers.")
    if outlook.failure:
        lines.append(f"Last failure: {outlook.failure}")
    return [*lines, *outlook.ignored]


def help_lines() -> list[str]:
    return [HELP[0], "```", *HELP[1:-1], "```", HELP[-1]]


def models_lines(registry: Registry, provider: str | None, health: Health, now: float) -> list[str]:
    """Tags that are ready to copy, in a block that no tool prints in another form: it begins on a line of its own."""
    if provider is not None:
        shown, most = [registry.providers[provider]], _MOST_MODELS
    else:
        shown, most = list(registry.listed.values())[:_MOST_PROVIDERS], _MOST_IN_LIST
    rows = [row for one in shown for row in _models_of(one, health, now, most)]
    width = max((len(tag) for tag, state in rows if state), default=0)
    return ["Tags to copy:", "```", *(f"{tag.ljust(width)}  {state}".rstrip() for tag, state in rows), "```"]


def why_lines(went: Went | None, now: float, prices: Prices, loss: str | None = None, *, alone: bool = True) -> list[str]:
    """`loss`: why the provider's cache was lost last. `alone`: no other process serves the conversation, too."""
    if went is None and not alone:
        return ["This process has sent nothing in this conversation.", _OTHERS]
    if went is None:
        return ["Nothing has been sent in this conversation since the server started."]
    lines = [f"{duration(max(0.0, now - went.at))} ago: {went.comment or 'nothing was sent'}."]
    lines += [f"Attempt {number} failed: {fault}." for number, fault in enumerate(went.faults[:_MOST_ATTEMPTS], 1)]
    if len(went.faults) > _MOST_ATTEMPTS:
        lines.append(f"… and {len(went.faults) - _MOST_ATTEMPTS} more.")
    lines.append(f"It ended so: {went.failed or went.outcome}.")
    if went.bills:
        rounds = f" ({len(went.bills)} rounds)" if len(went.bills) > 1 else ""
        lines.append(f"It cost{rounds}: {paid(went.bills, prices, went.asked)}.")
    lines += [f"Before: {loss}."] if loss else []
    return lines if alone else [*lines, _OTHERS]


def spent_lines(session: Mapping[str, object], day: Mapping[str, object], *, whose: str = "") -> list[str]:
    """Totals as `usage.report` has them."""
    told = [f"This session: {_spent(session)}.", f"Today, all sessions{f' of {whose}' if whose else ''}: {_spent(day)}."]
    return [*told, f"Prices are of {made_on()}, in US dollars, where the configuration names none."]


def _spent(totals: Mapping[str, object]) -> str:
    def number(name: str) -> int:
        value = totals.get(name)
        return value if isinstance(value, int) else 0

    requests = number("requests")
    if not requests:
        return "nothing was used yet"
    read = number("inputTokens") + number("cacheReadTokens") + number("cacheCreationTokens")
    cached = f" ({number('cacheReadTokens'):,} of them from the cache)" if number("cacheReadTokens") else ""
    cost, unknown = totals.get("totalCost"), number("unpricedRequests")
    price = money(cost) if isinstance(cost, float) else "the cost is unknown"
    if isinstance(cost, float) and unknown:
        price += f", and {unknown} of unknown cost"
    asked = "1 request" if requests == 1 else f"{requests:,} requests"
    return f"{asked}, {read:,} tokens read{cached}, {number('outputTokens'):,} written; {price}"


def _models_of(provider: Provider, health: Health, now: float, most: int) -> list[tuple[str, str]]:
    """Each tag, and what is said of it."""
    if provider.id in (ORIGIN, ECHO):
        what = "where the tool itself was going" if provider.id == ORIGIN else "answers by itself, for trying things out"
        return [(f"<**{provider.id}**>", what)]
    names = list(provider.models)
    if not names:
        state = _state_of_keys(provider, "", health, now)
        return [(f"<**!{provider.id}**>", f"{state} (it takes any model: <**!{provider.id}.MODEL**>)")]
    rows = [(f"<**!{provider.id}.{name}**>", _state_of_keys(provider, name, health, now)) for name in names[:most]]
    if len(names) > most:
        rest = f": <**models:{provider.id}**>" if most < _MOST_MODELS else ""
        rows.append((f"… and {len(names) - most} more{rest}", ""))
    return rows


def _state_of_keys(provider: Provider, model: str, health: Health, now: float) -> str:
    """How a model is doing: as its best key is."""
    if not provider.enabled:
        return _off(provider.why)
    states = [(key, None if key.off else health(Target(provider.id, key.alias, model))) for key in provider.keys]
    ready = [key for key, state in states if isinstance(state, Healthy)]
    if ready:
        return READY if len(ready) == len(states) else f"ready ({len(ready)} of {len(states)} keys)"
    resting = [state for _, state in states if state is not None and not isinstance(state, Healthy)]
    if resting:
        return how_it_rests(min(resting, key=lambda state: state.until), now)
    return _off(states[0][0].why) if states else "no key"


def _keys_line(provider: Provider, outlook: Outlook) -> str:
    if not provider.enabled:
        return f"{provider.id}: {_off(provider.why)}."
    told = [(key.alias, _state_of_key(provider, key, outlook)) for key in provider.keys]
    if len(told) <= _MOST_KEYS:
        return f"{provider.id}: {', '.join(f'{alias} {state}' for alias, state in told)}."
    others = [f"{alias} {state}" for alias, state in told if state != READY]
    more = [f"and {len(others) - _MOST_KEYS} more that are not"] if len(others) > _MOST_KEYS else []
    return f"{provider.id}: {', '.join([f'{len(told) - len(others)} of {len(told)} keys ready', *others[:_MOST_KEYS], *more])}."


def _state_of_key(provider: Provider, key: Key, outlook: Outlook) -> str:
    """The key with all its models, or those of its models that rest."""
    if key.off:
        return _off(key.why)
    whole = outlook.health(Target(provider.id, key.alias, ""))
    if not isinstance(whole, Healthy):
        return how_it_rests(whole, outlook.now)
    states = [(model, outlook.health(Target(provider.id, key.alias, model))) for model in provider.models]
    resting = [f"{how_it_rests(state, outlook.now)} for {model}" for model, state in states if not isinstance(state, Healthy)]
    more = f" and {len(resting) - _MOST_IN_LIST} more models" if len(resting) > _MOST_IN_LIST else ""
    return READY if not resting else ", ".join(resting[:_MOST_IN_LIST]) + more


def _off(why: str) -> str:
    return f"off: {why}" if why else "off"
