"""The one table of what a running server may be asked from outside, and what it answers. Nothing else changes its state.

1. A question is a JSON object with a `verb`; an answer is one, too. What cannot be done raises, and nothing has changed.
2. Verbs that wait for the disk run in a thread; the others in the loop, whose memories they read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct, field

from ..dialects.fields import list_of, object_of, text_of
from ..errors import RouteCodexError, nearest
from ..router.health import Cooling, Healthy, Tripped
from ..router.registry import ECHO, ORIGIN, Provider
from ..sessions.state import SessionState
from ..sessions.store import SessionKey
from ..sessions.whose import is_of, owned, parted
from ..tags.told import why_lines
from ..usage.spending import FILE_NAME
from ..values import JsonObject, Target, told_without
from . import kept
from .elsewhere import InFiles, KeptSessions
from .overlay import BadOrder, Order, described, ordered

if TYPE_CHECKING:  # only to say types: the desk knows the overlay
    from ..desk.desk import Desk


class Served(Struct, frozen=True):
    """One running server, as its verbs see it."""

    server: str
    pid: int
    listening: tuple[tuple[str, int], ...]
    config: str
    folder: Path
    desk: Desk
    env: Mapping[str, str] = field(default_factory=dict)
    person: str | None = None
    """Who asks and is told of what is theirs alone; None: whoever keeps this server, or may see all of it."""
    elsewhere: KeptSessions | None = None
    """Who keeps the sessions, where they are in no files."""

    def __repr__(self) -> str:
        return told_without(self, "env")

    @property
    def kept(self) -> KeptSessions:
        return self.elsewhere or InFiles(self.folder)


Given: TypeAlias = Mapping[str, object]


class Verb(Struct, frozen=True):
    run: Callable[[Served, Given], JsonObject]
    waits: bool = False
    """For the disk."""
    changes: bool = False
    for_all: bool = False
    """It is about everybody's: no single person may ask it."""


class NotYours(RouteCodexError):
    """It is about everybody's, and this person sees their own alone."""

    code = "NOT_YOURS"


class BadQuestion(RouteCodexError):
    """No such verb, or it lacks something."""

    code = "BAD_QUESTION"


def verb_of(question: Given) -> Verb:
    name = text_of(question.get("verb"))
    if (verb := VERBS.get(name)) is None:
        raise BadQuestion(f"there is no verb {name[:40]!r} (nearest: {', '.join(nearest(name, VERBS))})")
    return verb


def run(verb: Verb, served: Served, given: Given) -> JsonObject:
    if verb.for_all and served.person is not None:
        raise NotYours(f"{text_of(given.get('verb'))} is about everybody's: ask one of `admins`")
    return verb.run(served, given)


def _status(served: Served, given: Given) -> JsonObject:
    ill = served.desk.ill().splitlines()
    if served.person is not None:
        keys = [line for provider in _own(served) for line in _unwell(served, provider)]
        routing = _told(served.desk.overlay.state)
        return {"server": served.server, "person": served.person, "routing": routing, "keys": keys, "warnings": ill}
    return {
        "server": served.server,
        "pid": served.pid,
        "listening": [f"{host}:{port}" for host, port in served.listening],
        "config": served.config,
        "sessions": str(served.folder),
        "routing": _told(served.desk.overlay.state),
        "keys": [line for provider in _own(served) for line in _unwell(served, provider)],
        "warnings": [*served.desk.config.warnings, *ill],
    }


def _routing(served: Served, given: Given) -> JsonObject:
    state = served.desk.overlay.state
    return {"server": served.server, "routing": _told(state), "notes": _notes(served, state)}


def _set_routing(served: Served, given: Given) -> JsonObject:
    """`orders`: a list of [word, targets], obeyed from left to right. `try`: say what would be, and change nothing."""
    desk, registry = served.desk, served.desk.config.registry
    orders = _orders(given.get("orders"))
    if given.get("try"):
        state, said = ordered(orders, desk.overlay.state, registry)
    else:
        state, said = desk.overlay.change(orders, registry)
    return {"server": served.server, "changed": list(said), "routing": _told(state), "notes": _notes(served, state)}


def _orders(value: object) -> list[Order]:
    found: list[Order] = []
    for entry in list_of(value):
        pair = [text_of(item) for item in list_of(entry)]
        match pair:
            case ["sticky" | "disable" | "enable" | "allow" | "clear" as word, text]:
                found.append((word, text))
            case _:
                raise BadOrder(f"no such order: {entry!r:.80}")
    if not found:
        raise BadOrder("nothing is asked for: --sticky, --disable, --enable, --allow or --clear")
    return found


def _told(state: SessionState) -> JsonObject:
    sticky = state.sticky
    return {
        "sticky": str(sticky) if sticky else None,
        "allowed": list(state.allowed),
        "disabled": [
            *state.disabled_providers,
            *(f"{provider}[{key}]" for provider, key in state.disabled_keys),
            *(f"{provider}.{model}" for provider, model in state.disabled_models),
        ],
        "lines": list(described(state)),
    }


def _notes(served: Served, state: SessionState) -> list[object]:
    """What keeps the orders from having an effect."""
    sticky = state.sticky
    if sticky is None:
        return []
    provider = served.desk.config.registry.providers.get(sticky.provider)
    if provider is None:
        return [f"{sticky.provider} is not in the configuration any more: the sticky target is passed over."]
    targets = provider.targets(sticky.model or next(iter(provider.models), ""), sticky.key)
    now = served.desk.clocks.monotonic()
    off = {key.alias for key in provider.keys if key.off} | {key for name, key in state.disabled_keys if name == provider.id}
    usable = [target for target in targets if target.key not in off and provider.enabled]
    if provider.id in state.disabled_providers or not usable:
        return [f"Every key of {sticky} is off or disabled: the sticky target is passed over."]
    if not any(isinstance(served.desk.learned.health.state(target, now), Healthy) for target in usable):
        return [f"Every key of {sticky} rests now: until one is back, the sticky target is passed over."]
    return []


def _models(served: Served, given: Given) -> JsonObject:
    name = text_of(given.get("provider"))
    providers = [provider for provider in _own(served) if not name or provider.id == name]
    if name and not providers:
        known = [provider.id for provider in _own(served)]
        raise BadQuestion(f"there is no provider {name[:40]!r} (nearest: {', '.join(nearest(name, known))})")
    return {
        "server": served.server,
        "providers": [
            {
                "name": provider.id,
                "enabled": provider.enabled,
                "models": list(provider.models),
                "keys": [key.alias for key in provider.keys if not key.off],
                "off": [key.alias for key in provider.keys if key.off],
                "notes": [*_unwell(served, provider)],
            }
            for provider in providers
        ],
    }


def _own(served: Served) -> list[Provider]:
    desk = served.desk
    providers = desk.config.registry.providers if served.person is None else desk.registry(served.person).listed
    return [provider for provider in providers.values() if provider.id not in (ORIGIN, ECHO)]


def _unwell(served: Served, provider: Provider) -> list[str]:
    """Which keys are not ready, and until when."""
    lines = []
    now, health = served.desk.clocks.monotonic(), served.desk.learned.health
    for key in provider.keys:
        if key.off:
            lines.append(f"{provider.id}.{key.alias} is off")
            continue
        for model in ["", *provider.models]:
            match health.state(Target(provider.id, key.alias, model), now):
                case Cooling(until):
                    lines.append(f"{provider.id}.{key.alias} {model} rests for {max(1, round(until - now))} s".replace("  ", " "))
                case Tripped(until, reason):
                    left = max(1, round(until - now))
                    lines.append(f"{provider.id}.{key.alias} {model} rests for {left} s: {reason}".replace("  ", " "))
                case _:
                    continue
            break
    return lines


def _sessions(served: Served, given: Given) -> JsonObject:
    return {"server": served.server, "sessions": [one.told for one in served.kept.sessions(served.person)]}


def _reminders(served: Served, given: Given) -> JsonObject:
    return {"server": served.server, "reminders": served.kept.reminders(served.person)}


def _session(served: Served, given: Given) -> JsonObject:
    return {"server": served.server, **served.kept.session(text_of(given.get("id")), served.person)}


def _clear_session(served: Served, given: Given) -> JsonObject:
    erased = served.kept.clear(text_of(given.get("id")), served.person)
    return {"server": served.server, "erased": list(erased)}


def _clear_sessions(served: Served, given: Given) -> JsonObject:
    return {"server": served.server, "erased": list(served.kept.clear_all())}


def _usage(served: Served, given: Given) -> JsonObject:
    """`by`: as `routecodex usage` says it; `days`: so many back."""
    from ..usage import prices, report  # sqlite is for whoever asks

    name = text_of(given.get("by")) or "daily"
    by = next((verb for verb in report.VERBS if verb == name), None)
    if by is None:
        raise BadQuestion(f"there is no usage by {name[:40]!r} (nearest: {', '.join(nearest(name, report.VERBS))})")
    days = given.get("days")
    since = int((served.desk.clocks.wall() - days * 86_400) * 1000) if isinstance(days, int) and days > 0 else 0
    told = report.of_file(served.desk.user_folder / FILE_NAME, by, since_ms=since, user=served.person)
    return {**told, "pricesOf": prices.made_on()}


def _why(served: Served, given: Given) -> JsonObject:
    """Where a session's last call went, and why; `id`: how the session's begins, none: the one that was asked for last."""
    person = served.person
    desk, begins = served.desk, text_of(given.get("id"))
    learned, now, prices = desk.learned, desk.clocks.wall(), desk.prices
    mine = [key for key in learned.went.newest() if key.prefix != "chain" and (person is None or is_of(person, key.id))]
    keys = [key for key in mine if key.id.startswith(begins) or parted(key.id)[1].startswith(begins)]
    if begins and len({key.id for key in keys}) > 1 and not any(begins in (key.id, parted(key.id)[1]) for key in keys):
        raise BadQuestion(f"{len(keys)} sessions begin with {begins[:40]!r}")
    if not keys:
        others = " by this process; others may serve it, too" if learned.is_shared else ""
        raise BadQuestion(f"no call {f'of a session {begins[:40]!r} ' if begins else ''}is remembered{others}")
    key = next((key for key in keys if begins in (key.id, parted(key.id)[1])), keys[0])
    lines = why_lines(learned.went.get(key), now, prices, learned.losses.get(key), alone=not learned.is_shared)
    return {"server": served.server, "session": key.id, "lines": [*lines]}


def _line(served: Served, given: Given) -> JsonObject:
    """For a status line: where the session's last call went, and what is in force."""
    id = text_of(given.get("session"))
    key = SessionKey("session", id if served.person is None else owned(served.person, id))
    target = served.desk.learned.answered.get(key)
    state = served.desk.store.load(key)
    return {
        "server": served.server,
        "known": target is not None or not state.idle,
        "provider": target.provider if target else None,
        "model": target.model if target else None,
        "key": target.key if target else None,
        "session": kept.in_force(state),
        "all": list(described(served.desk.overlay.state)),
    }


def _compare(served: Served, given: Given) -> JsonObject:
    """`variables`: names with a fingerprint of each value. Which of them have another value here, or none; no value is told."""
    asked = object_of(given.get("variables"))
    other = [name for name, said in asked.items() if fingerprint(served.env.get(name, "")) != said]
    return {"server": served.server, "other": list(other)}


def fingerprint(value: str) -> str:
    return hashlib.sha256(b"routecodex " + value.encode("utf-8", "surrogatepass")).hexdigest()[:16] if value else ""


VERBS: Mapping[str, Verb] = {
    "status": Verb(_status),
    "routing": Verb(_routing, for_all=True),
    "set routing": Verb(_set_routing, waits=True, changes=True, for_all=True),
    "models": Verb(_models),
    "compare": Verb(_compare, for_all=True),
    "sessions": Verb(_sessions, waits=True),
    "session": Verb(_session, waits=True),
    "reminders": Verb(_reminders, waits=True),
    "clear session": Verb(_clear_session, waits=True, changes=True),
    "clear sessions": Verb(_clear_sessions, waits=True, changes=True, for_all=True),
    "usage": Verb(_usage, waits=True),
    "why": Verb(_why),
    "line": Verb(_line, waits=True),
}
