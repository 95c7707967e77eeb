"""Obey the tags of one message: from what was in force to what is in force now.

1. Left to right. An allow replaces the list; the first disable of a message does, further ones add to it.
2. All or nothing: a tag that cannot be read, a name that does not exist, a feature that is off, a target that is down: it raises,
   and nothing has changed.
3. Once (`routing.tags.once`): a message that does not act is only recalled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import assert_never

from msgspec import Struct, field
from msgspec.structs import replace

from ..errors import NoTarget, RouteCodexError, nearest, not_for_you, not_found
from ..router.registry import ECHO, ORIGIN, Registry
from ..sessions.state import EMPTY, SessionState, Sticky, StopMessage
from ..values import Call, Caller, Kind, Named
from . import changes
from .grammar import (
    Allow,
    Ask,
    Asks,
    Clear,
    ClockClear,
    Disable,
    Enable,
    Force,
    Models,
    Name,
    Stick,
    StopClear,
    StopSet,
    Tag,
    Unknown,
    Unreadable,
    Usage,
)
from .resolve import resolve
from .texts import TextRefused
from .wording import shortened, times

CLOCK_CLEARED = "The clock's tasks are cleared."


NOTHING_SENT = "Nothing was sent, and nothing changed."
IF_TEXT = "If this is text and no tag, put it in backticks: there it does nothing (the model is not sent it, either)."
TAKES_AWAY = (Clear, Enable, StopClear, Ask, Unknown)


class BadTag(RouteCodexError):
    """What has the form of a tag of ours and cannot be obeyed as it is written."""

    code = "BAD_TAG"

    def __init__(self, body: str, right: str) -> None:
        shown = shortened(body, 80)
        super().__init__(f"The tag {shown} was not obeyed: {right.rstrip('.')}. {NOTHING_SENT} {IF_TEXT}", details={"tag": shown})


class FeatureDisabled(RouteCodexError):
    """A tag asks for something that the configuration switched off."""

    code = "FEATURE_DISABLED"

    def __init__(self, feature: str, setting: str) -> None:
        super().__init__(f"{feature} is switched off in the configuration ({setting})", details={"setting": setting})


class Orders(Struct, frozen=True):
    """What a message's tags come to."""

    state: SessionState
    force: Named | None = None
    """For this message and its tool hops only."""
    lines: tuple[str, ...] = ()
    """What changed, a sentence each."""
    clock_clear: bool = False
    asks: tuple[Asks, ...] = ()
    """What the person wants to be told."""
    ignored: tuple[str, ...] = ()
    """Which tags are nothing of ours, a sentence each."""
    fresh: bool = False
    """The message acts: `state` is to be stored."""


def may_obey(call: Call, caller: Caller) -> bool:
    """Only calls in which a person talks to the model give orders."""
    return caller.kind is Kind.MAIN and not call.structured and call.endpoint.action == "generate"


class Means(Struct, frozen=True):
    """What orders are obeyed with."""

    registry: Registry
    now_ms: int
    client_model: str
    read_text: Callable[[str], str]
    """The text of a file, or TextRefused."""
    stop_enabled: bool = True
    clock_enabled: bool = True
    usage_enabled: bool = True
    under: SessionState = EMPTY
    """What holds for all sessions."""
    why_not: Callable[[SessionState, Sticky], RouteCodexError | None] = lambda state, sticky: None
    """Why the session cannot keep to that target now."""


def orders_for(tags: Sequence[Tag], state: SessionState, means: Means, *, acts: bool, alone: bool) -> Orders:
    """The orders of the newest typed message: obeyed where it acts, otherwise only recalled. `alone`: it is nothing but tags,
    and is answered here, or was."""
    if not tags:
        return Orders(state)
    return obey(tags, state, means, alone=alone) if acts else _recall(tags, state, means)


def obey(tags: Sequence[Tag], state: SessionState, means: Means, *, alone: bool = True) -> Orders:
    """What the tags come to, applied to `state`; raises where one of them cannot be obeyed."""
    for tag in tags:
        _refuse(tag, means, alone=alone)
    return replace(_applied(_Message(state, means), tags), fresh=not all(isinstance(tag, Unknown) for tag in tags))


def leaves_nothing(orders: Orders, tags: Sequence[Tag]) -> bool:
    """What only takes away may act twice: with nothing left in force there is nothing to remember."""
    return orders.state.idle and all(isinstance(tag, TAKES_AWAY) for tag in tags)


def _recall(tags: Sequence[Tag], state: SessionState, means: Means) -> Orders:
    """What an obeyed message still means: where it goes, and what to say if it is to be said again."""
    still = [tag for tag in tags if isinstance(tag, Force) or _is_known(tag, means.registry)]
    replayed = _applied(_Message(state, replace(means, read_text=str), again=True), still)
    return replace(replayed, state=state, clock_clear=False)


def _is_known(tag: Tag, registry: Registry) -> bool:
    """The configuration may have changed since the tag was obeyed; only a forced target has to be there again."""
    try:
        if isinstance(tag, Allow | Stick | Disable | Enable):
            resolve(tag.name, registry)
    except RouteCodexError:
        return False
    return not isinstance(tag, Unreadable)


def _refuse(tag: Tag, means: Means, *, alone: bool) -> None:
    """What cannot be obeyed, whatever is in force."""
    match tag:
        case Unreadable(body, right):
            raise BadTag(body, right)
        case StopSet() if not means.stop_enabled:
            raise FeatureDisabled("stopMessage", "virtualrouter.stopMessage.enabled")
        case ClockClear() if not means.clock_enabled:
            raise FeatureDisabled("clock", "virtualrouter.clock.enabled")
        case Usage() if not means.usage_enabled:
            raise FeatureDisabled("usage", "usage.enabled")
        case Ask() if not alone:
            word = type(tag).__name__.lower()
            raise BadTag(word, "it is answered here, without a model: send it in a message of its own")
        case Models(provider) if provider is not None and provider not in means.registry.listed:
            if (shut := means.registry.providers.get(provider)) is not None:
                raise not_for_you(provider, shut.why)
            raise not_found(provider, known=nearest(provider, means.registry.listed))


class _Message(Struct):
    """One message while its tags are obeyed."""

    state: SessionState
    means: Means
    again: bool = False
    """The message was obeyed before and is only replayed: no file is read."""
    force: Named | None = None
    lines: list[str] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    clock_clear: bool = False
    asks: list[Asks] = field(default_factory=list)
    allows: bool = False
    """An allow was obeyed."""
    disables: bool = False
    replaced: list[Named] = field(default_factory=list)
    """What was disabled before this message's own list."""


def _applied(message: _Message, tags: Sequence[Tag]) -> Orders:
    for tag in tags:
        _apply(message, tag)
    if message.allows and message.state.allowed:
        message.lines.append(f"Only these providers are used: {', '.join(message.state.allowed)}.")
    now = changes.disabled_in(message.state)
    again = [named.spoken for named in message.replaced if named not in now]
    if again:
        message.lines.append(f"Enabled again, because the new list replaces the old one: {', '.join(again)}.")
    return Orders(
        message.state,
        message.force,
        tuple(message.lines),
        message.clock_clear,
        tuple(message.asks),
        tuple(message.ignored),
    )


def _apply(message: _Message, tag: Tag) -> None:
    match tag:
        case Force(name):
            message.force = _named(message, name)
        case Stick(name):
            _stick(message, _named(message, name))
        case Allow(name, adds):
            provider = _named(message, name).provider
            message.state = changes.allowed(message.state, provider, adding=adds)
            if provider in (ECHO, ORIGIN):  # who says `!origin` while stuck elsewhere wants to go there, and to stay
                message.state = message.state.with_(sticky=None)
            message.allows = True
        case Disable(name):
            _disable(message, _named(message, name))
        case Enable(name):
            _enable(message, _named(message, name))
        case Clear():
            _clear(message)
        case StopSet():
            _set_stop(message, tag)
        case StopClear():
            message.state = changes.without_stop(message.state)
            message.lines.append("stopMessage is cleared.")
        case ClockClear():
            message.clock_clear = True
            message.lines.append(CLOCK_CLEARED)
        case Ask():
            message.asks.append(tag)
        case Unknown(body):
            message.ignored.append(f"No such tag: {shortened(body, 60)}.")
        case Unreadable():
            pass  # refused before
        case never:
            assert_never(never)


def _named(message: _Message, name: Name) -> Named:
    try:
        return resolve(name, message.means.registry)
    except NoTarget as error:
        raise NoTarget(f"{error.message}. {NOTHING_SENT} {IF_TEXT}", details=error.details) from None


def _target(message: _Message, named: Named) -> str:
    provider = message.means.registry.providers[named.provider]
    model = "" if named.model or not provider.models else provider.model_for(message.means.client_model)
    return f"{named} (model {model})" if model else str(named)


def _stick(message: _Message, named: Named) -> None:
    sticky = Sticky(named.provider, named.key, named.model)
    refusal = None if message.again else message.means.why_not(message.state, sticky)
    if refusal is not None:
        raise NoTarget(f"{refusal.message}. {NOTHING_SENT}", details=refusal.details)
    message.state = message.state.with_(sticky=sticky)
    message.lines.append(f"From now on everything goes to {_target(message, named)}.")


def _disable(message: _Message, named: Named) -> None:
    if not message.disables:
        message.disables = True
        message.replaced = changes.disabled_in(message.state)
        message.state = changes.nothing_disabled(message.state)
    message.state = changes.disabled(message.state, named)
    for_all = " for every model" if named.key and named.model else ""
    message.lines.append(f"{replace(named, model=None if named.key else named.model).spoken} is disabled{for_all}.")


def _enable(message: _Message, named: Named) -> None:
    before = message.state
    message.state = changes.enabled_over(before, named, message.means.registry.providers[named.provider], message.means.under)
    was_disabled = message.again or message.state != before
    message.lines.append(f"{named.spoken} {'is enabled' if was_disabled else 'was not disabled'}.")


def _clear(message: _Message) -> None:
    message.force = None
    message.replaced = []
    message.state = changes.cleared(message.state)
    message.lines.append("Everything is cleared: normal routing, no stopMessage.")


def _set_stop(message: _Message, tag: StopSet) -> None:
    text = tag.text
    if text is None and message.again:
        text = message.state.stop.text if message.state.stop else tag.file or ""
    elif text is None:
        try:
            text = message.means.read_text(tag.file or "")
        except TextRefused as refused:
            raise BadTag(f"stopMessage:<file://{tag.file}>", str(refused)) from None
    stop = StopMessage(text, tag.max_repeats, updated_at_ms=message.means.now_ms)
    message.state = changes.without_stop(message.state).with_(stop=stop)
    message.lines.append(f'stopMessage is set: "{shortened(text)}", at most {times(tag.max_repeats)}.')
