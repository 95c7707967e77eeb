"""Orders for all sessions of one server: what `routecodex daemon set routing` says, and what it comes to for a call.

1. It lies under the sessions' own states: what a session says itself about a target, its list or its sticky comes first.
2. A session's `<**@p**>` lifts for that session what the overlay disables; `<**clear**>` leaves the overlay's word again.
3. It changes by `change` alone, whole and on disk before it holds. No call ever clears it: a sticky target of all is passed over
   while it cannot be used.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Protocol, TypeAlias, TypeVar, assert_never

from ..dialects.fields import object_of, read_object
from ..errors import RouteCodexError, StoreError
from ..jsonbytes import dumps
from ..router.registry import Registry
from ..sessions.record import from_json, to_json
from ..sessions.state import EMPTY, SessionState, Sticky
from ..storage.cached import Warnings
from ..storage.disk import Folder, NotRegular, make_private
from ..tags import changes
from ..tags.grammar import Name, parse_name
from ..tags.resolve import resolve
from ..values import Named

Word: TypeAlias = Literal["sticky", "disable", "enable", "allow", "clear"]
Order: TypeAlias = tuple[Word, str]

_T = TypeVar("_T")
_MARKS = {"sticky": "!！", "allow": "!！", "disable": "#＃", "enable": "@＠"}


class BadOrder(RouteCodexError):
    """What was asked for cannot be read."""

    code = "BAD_ORDER"


class Changes(Protocol):
    """Between several processes of one server: how often the orders were changed."""

    def now(self) -> int: ...
    def up(self) -> None:
        """With the file's lock held."""


class Overlay:
    def __init__(self, folder: Path | None = None, server: str = "", changes: Changes | None = None) -> None:
        self.warnings = Warnings()
        self._name = f"routing-{server}.json"
        self._folder = Folder(folder) if folder is not None else None
        self._changes = changes
        self._seen = changes.now() if changes is not None else 0
        self._state = self._read(self._folder) if self._folder is not None else EMPTY

    @property
    def state(self) -> SessionState:
        """Read again only where another process has changed it."""
        if self._changes is not None and self._folder is not None and (now := self._changes.now()) != self._seen:
            self._seen, self._state = now, self._read(self._folder)
        return self._state

    def change(self, orders: Sequence[Order], registry: Registry) -> tuple[SessionState, list[str]]:
        """All of them or none; what changed, a sentence each. Waits for the disk."""
        if self._folder is None:
            self._state, lines = ordered(orders, self._state, registry)
            return self._state, lines
        make_private(self._folder.path)
        with self._folder.locked(self._name):
            state, lines = ordered(orders, self.state, registry)
            if state == EMPTY:
                self._folder.remove(self._name)
            elif state != self.state:
                self._folder.write(self._name, dumps(to_json(state)))
            self._state = state
            if self._changes is not None:
                self._changes.up()
        return state, lines

    def over(self, session: SessionState, registry: Registry) -> SessionState:
        """What holds for a session."""
        return over(self.state, session, registry)

    def spares(self, session: SessionState) -> bool:
        """Whether a call's sticky target is not the session's to lose: the overlay's own, or one that the overlay disables."""
        sticky = session.sticky
        return sticky is None or any(named.provider == sticky.provider for named in changes.disabled_in(self.state))

    def _read(self, folder: Folder) -> SessionState:
        try:
            found = folder.read(self._name)
        except (NotRegular, StoreError):
            found = None
            self.warnings.say(f"{self._name} cannot be read: no orders hold for all sessions")
        if found is None:
            return EMPTY
        document = read_object(found[1])
        if document is None:
            self.warnings.say(f"{self._name} is damaged: no orders hold for all sessions")
        return from_json(object_of(document))


def over(overlay: SessionState, session: SessionState, registry: Registry) -> SessionState:
    if overlay == EMPTY:
        return session
    for provider, key, model in session.enabled:
        if (known := registry.providers.get(provider)) is not None:
            overlay = changes.enabled(overlay, Named(provider, key or None, model or None), known)
    sticky = session.sticky or overlay.sticky
    if session.sticky is None and sticky is not None and session.allowed and sticky.provider not in session.allowed:
        sticky = None
    return session.with_(
        sticky=sticky,
        allowed=session.allowed or overlay.allowed,
        disabled_providers=_both(overlay.disabled_providers, session.disabled_providers),
        disabled_keys=_both(overlay.disabled_keys, session.disabled_keys),
        disabled_models=_both(overlay.disabled_models, session.disabled_models),
    )


def ordered(orders: Sequence[Order], state: SessionState, registry: Registry) -> tuple[SessionState, list[str]]:
    """From left to right, as tags: a list of disabled or allowed ones replaces the one before it, once for all orders."""
    said: list[str] = []
    seen: set[str] = set()
    for word, text in orders:
        if word == "clear":
            state, seen = EMPTY, set()
            said.append("Everything that was set for all sessions is cleared.")
            continue
        for named in [resolve(name, registry) for name in _names(word, text, registry)]:
            before = state
            match word:
                case "sticky":
                    state = state.with_(sticky=Sticky(named.provider, named.key, named.model))
                    said.append(f"Everything goes to {named} from now on.")
                case "allow":
                    state = changes.allowed(state, named.provider, adding=word in seen)
                    said.append(f"{named.provider} is allowed.")
                case "disable":
                    if word not in seen and (lifted := changes.disabled_in(state)):
                        said.append(f"This list takes the place of: {', '.join(one.spoken for one in lifted)}.")
                        state = changes.nothing_disabled(state)
                    state = changes.disabled(state, named)
                    said.append(f"{named.spoken} is disabled.")
                case "enable":
                    state = changes.enabled(state, named, registry.providers[named.provider])
                    said.append(f"{named.spoken} {'is enabled' if state != before else 'was not disabled'}.")
                case never:
                    assert_never(never)
            seen.add(word)
    return state, said


def described(state: SessionState) -> list[str]:
    """What holds for all sessions, a sentence each."""
    disabled = ", ".join(named.spoken for named in changes.disabled_in(state))
    lines = (
        f"Sticky: {state.sticky}{'' if state.sticky.key else ' (all keys)'}." if state.sticky else "",
        f"Allowed: {', '.join(state.allowed)}." if state.allowed else "",
        f"Disabled: {disabled}." if disabled else "",
    )
    return [line for line in lines if line]


def _names(word: str, text: str, registry: Registry) -> list[Name]:
    """Targets as tags name them, with or without the tag's mark."""
    items = [item.strip().lstrip(_MARKS[word]).strip() for item in text.split(",")]
    names = [parse_name(item) for item in items if item]
    if word == "sticky" and len(names) == 1 and names[0] is not None and names[0].is_provider:
        resolve(names[0], registry)  # what nobody knows is told first
    found = [name for name in names if name is not None]
    if not found or len(found) != len(names):
        raise BadOrder(f"--{word} {text}: no target; written provider, provider.model, provider.key or provider.key.model")
    if word == "sticky" and (len(found) > 1 or found[0].is_provider):
        raise BadOrder(
            f"--sticky {text}: one provider.model or provider.key.model; for whole providers: --allow {text.lstrip('!')}"
        )
    if word == "allow" and not all(name.is_provider for name in found):
        raise BadOrder(f"--allow {text}: whole providers only; for one target: --sticky {text.lstrip('!')}")
    return found


def _both(first: tuple[_T, ...], second: tuple[_T, ...]) -> tuple[_T, ...]:
    return tuple(dict.fromkeys((*first, *second)))
