"""Obey the tags of one message: from what was in force to what is in force now.

1. Left to right. The first allow of a message replaces the list, further ones add to it; the same for disable.
2. All or nothing: a name that does not exist, or a feature that is off, raises and nothing has changed.
3. Once: a message that was obeyed before, however often its client repeats it, changes nothing any more.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from ..clients.typed import Typed
from ..errors import RouteCodexError
from ..router.registry import Named, Registry
from ..sessions.state import EMPTY, SessionState, Sticky, StopMessage
from ..stop_message.texts import TextRefused
from ..values import Call, Caller, Kind
from . import changes
from .grammar import (
    Allow,
    Clear,
    ClockClear,
    Disable,
    Enable,
    Force,
    Status,
    Stick,
    StopClear,
    StopSet,
    Tag,
    Unknown,
)
from .resolve import resolve
from .typed_tags import tags_of
from .wording import shortened, times

CLOCK_CLEARED = "The clock's tasks are cleared."


class FeatureDisabled(RouteCodexError):
    """A tag asks for something that the configuration switched off."""

    code = "FEATURE_DISABLED"

    def __init__(self, feature: str, setting: str) -> None:
        super().__init__(f"{feature} is switched off in the configuration ({setting})", details={"setting": setting})


@dataclass(frozen=True, slots=True)
class Orders:
    """What a message's tags come to."""

    state: SessionState
    force: Named | None = None
    """For this message and its tool hops only."""
    lines: tuple[str, ...] = ()
    """What changed, a sentence each."""
    clock_clear: bool = False
    status: bool = False
    ignored: tuple[str, ...] = ()
    """Why a tag did nothing, a sentence each."""
    fresh: bool = False
    """The message is seen for the first time: `state` is to be stored."""


def may_obey(call: Call, caller: Caller) -> bool:
    """Only calls in which a person talks to the model give orders."""
    return caller.kind is Kind.MAIN and not call.structured and call.endpoint.action == "generate"


def fingerprint(ordinal: int, text: str, prompt_id: str | None) -> str:
    """What tells a message from others: its text, and the client's own id of the prompt or else its place."""
    digest = hashlib.sha256(" ".join(text.split()).encode("utf-8", "surrogatepass"))
    if prompt_id is None:
        return f"{ordinal}:{digest.hexdigest()[:32]}"
    digest.update(b"\0" + prompt_id.encode("utf-8", "surrogatepass"))
    return f"prompt:{digest.hexdigest()[:32]}"


def is_same_message(obeyed: str | None, seen: str) -> bool:
    """A client that drops old messages lets the rest move up: the same text further ahead is no new message."""
    if obeyed is None or obeyed == seen:
        return obeyed is not None
    (place, _, text), (seen_place, _, seen_text) = obeyed.partition(":"), seen.partition(":")
    return text == seen_text and place.isdecimal() and seen_place.isdecimal() and int(seen_place) < int(place)


def orders_for(
    typed: Typed | None,
    state: SessionState,
    registry: Registry,
    *,
    prompt_id: str | None,
    now_ms: int,
    client_model: str,
    read_text: Callable[[str], str],
    stop_enabled: bool = True,
    clock_enabled: bool = True,
    under: SessionState = EMPTY,
) -> Orders:
    """The orders of the newest typed message: obeyed at first sight, later only recalled."""
    tags = tags_of(typed) if typed else ()
    if typed is None or not tags:
        return Orders(state)
    seen = fingerprint(typed.ordinal, typed.words, prompt_id)
    if is_same_message(state.obeyed, seen):
        return _recall(tags, state, registry, now_ms=now_ms, client_model=client_model)
    orders = obey(
        tags,
        state,
        registry,
        now_ms=now_ms,
        client_model=client_model,
        read_text=read_text,
        stop_enabled=stop_enabled,
        clock_enabled=clock_enabled,
        under=under,
    )
    if all(isinstance(tag, Unknown) for tag in tags):
        return orders
    # What only takes away may act twice: with nothing left in force there is nothing to remember.
    done = orders.state.idle and all(isinstance(tag, Clear | Enable | StopClear | Status | Unknown) for tag in tags)
    return replace(orders, state=orders.state.with_(obeyed=None if done else seen), fresh=True)


def obey(
    tags: Sequence[Tag],
    state: SessionState,
    registry: Registry,
    *,
    now_ms: int,
    client_model: str,
    read_text: Callable[[str], str],
    stop_enabled: bool = True,
    clock_enabled: bool = True,
    under: SessionState = EMPTY,
) -> Orders:
    """What the tags come to, applied to `state`."""
    _refuse_disabled(tags, stop_enabled=stop_enabled, clock_enabled=clock_enabled)
    return _applied(_Message(state, registry, now_ms, client_model, read_text, under), tags)


def _recall(tags: Sequence[Tag], state: SessionState, registry: Registry, *, now_ms: int, client_model: str) -> Orders:
    """What an obeyed message still means: where it goes, and what to say if it is to be said again."""
    still = [tag for tag in tags if isinstance(tag, Force) or _is_known(tag, registry)]
    replayed = _applied(_Message(state, registry, now_ms, client_model, str, again=True), still)
    return replace(replayed, state=state, clock_clear=False)


def _is_known(tag: Tag, registry: Registry) -> bool:
    """The configuration may have changed since the tag was obeyed; only a forced target has to be there again."""
    try:
        if isinstance(tag, Allow | Stick | Disable | Enable):
            resolve(tag.name, registry)
    except RouteCodexError:
        return False
    return True


def _refuse_disabled(tags: Sequence[Tag], *, stop_enabled: bool, clock_enabled: bool) -> None:
    for tag in tags:
        if isinstance(tag, StopSet) and not stop_enabled:
            raise FeatureDisabled("stopMessage", "virtualrouter.stopMessage.enabled")
        if isinstance(tag, ClockClear) and not clock_enabled:
            raise FeatureDisabled("clock", "virtualrouter.clock.enabled")


@dataclass(slots=True)
class _Message:
    """One message while its tags are obeyed."""

    state: SessionState
    registry: Registry
    now_ms: int
    client_model: str
    read_text: Callable[[str], str]
    under: SessionState = EMPTY
    """What holds for all sessions."""
    again: bool = False
    """The message was obeyed before and is only replayed: no file is read."""
    force: Named | None = None
    lines: list[str] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    clock_clear: bool = False
    status: bool = False
    allows: bool = False
    """An allow was obeyed: the next one adds."""
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
        message.status,
        tuple(message.ignored),
    )


def _apply(message: _Message, tag: Tag) -> None:
    match tag:
        case Force(name):
            message.force = resolve(name, message.registry)
            message.lines.append(f"This message goes to {_target(message, message.force)}.")
        case Stick(name):
            named = resolve(name, message.registry)
            message.state = message.state.with_(sticky=Sticky(named.provider, named.key, named.model))
            message.lines.append(f"From now on everything goes to {_target(message, named)}.")
        case Allow(name):
            _allow(message, resolve(name, message.registry))
        case Disable(name):
            _disable(message, resolve(name, message.registry))
        case Enable(name):
            _enable(message, resolve(name, message.registry))
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
        case Status():
            message.status = True
        case Unknown(body, reason):
            message.ignored.append(reason or f"No such tag: {shortened(body, 60)}.")


def _target(message: _Message, named: Named) -> str:
    provider = message.registry.providers[named.provider]
    model = "" if named.model or not provider.models else provider.model_for(message.client_model)
    key = provider.key(named.key) if named.key else None
    notes = [
        f"model {model}" if model else "",
        "this key is switched off in the configuration" if key and key.off else "",
        "" if provider.enabled else "this provider is switched off in the configuration",
    ]
    said = "; ".join(note for note in notes if note)
    return f"{named} ({said})" if said else str(named)


def _allow(message: _Message, named: Named) -> None:
    message.state = changes.allowed(message.state, named.provider, adding=message.allows)
    message.allows = True


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
    message.state = changes.enabled_over(before, named, message.registry.providers[named.provider], message.under)
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
            text = message.read_text(tag.file or "")
        except TextRefused as refused:
            message.ignored.append(f"{refused}.")
            return
    stop = StopMessage(text, tag.max_repeats, updated_at_ms=message.now_ms)
    message.state = changes.without_stop(message.state).with_(stop=stop)
    message.lines.append(f'stopMessage is set: "{shortened(text)}", at most {times(tag.max_repeats)}.')
