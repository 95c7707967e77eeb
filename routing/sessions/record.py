"""A session's state as JSON, under the published names.

1. Reading never fails on a wrong type: what is not understood is left out, so files of other versions and hand-written ones load.
2. `stopMessageText` is written last, and a sticky target's provider: of a file that was cut short no stopMessage
   comes back without its count, and no target without its key and model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from ..dialects.fields import list_of, object_of
from .state import Obeyed, SessionState, Sticky, StopMessage

VERSION = 1

_LARGEST = 2**63 - 1


def to_json(state: SessionState) -> dict[str, object]:
    """`{"version": 1, "state": {…}}`; what is not set is left out."""
    stop = state.stop
    last_used = stop.last_used_at_ms if stop else state.stop_last_used_at_ms
    fields: dict[str, object] = {
        "obeyedFingerprint": state.obeyed_before,
        "obeyedMessages": [list(message) for message in state.obeyed],
        "stickyTarget": _sticky_json(state.sticky),
        "allowedProviders": list(state.allowed),
        "disabledProviders": list(state.disabled_providers),
        "disabledKeys": _grouped(state.disabled_keys, "keys"),
        "disabledModels": _grouped(state.disabled_models, "models"),
        "enabledTargets": [list(named) for named in state.enabled],
        "stopMessageClearedAt": state.stop_cleared_at_ms,
        "stopMessageLastUsedAt": last_used,
        "stopMessageEarlierUsedAt": state.stop_last_used_at_ms if stop else None,
        "stopMessageUsed": stop.used if stop else None,
        "stopMessageMaxRepeats": stop.max_repeats if stop else None,
        "stopMessageUpdatedAt": stop.updated_at_ms if stop else None,
        "stopMessageText": stop.text if stop else None,
    }
    about = {name: value for name, value in (("client", state.client), ("begins", state.begins)) if value}
    document: dict[str, object] = {"version": VERSION, "about": about} if about else {"version": VERSION}
    document["state"] = {name: value for name, value in fields.items() if value is not None and value != []}
    return document


def from_json(document: object) -> SessionState:
    """The state; also from the bare inner object."""
    root = object_of(document)
    fields = object_of(root.get("state")) if "state" in root else root
    about = object_of(root.get("about"))
    stop = _stop(fields)
    last_used = _whole(fields.get("stopMessageLastUsedAt"))
    return SessionState(
        sticky=_sticky(fields.get("stickyTarget")),
        allowed=_names(fields.get("allowedProviders")),
        disabled_providers=_names(fields.get("disabledProviders")),
        disabled_keys=tuple(_pairs(fields.get("disabledKeys"), "keys")),
        disabled_models=tuple(_pairs(fields.get("disabledModels"), "models")),
        enabled=tuple(_targets(fields.get("enabledTargets"))),
        client=_text(about.get("client")) or "",
        begins=_text(about.get("begins")) or "",
        stop=stop,
        stop_cleared_at_ms=_whole(fields.get("stopMessageClearedAt")),
        stop_last_used_at_ms=_whole(fields.get("stopMessageEarlierUsedAt")) if stop else last_used,
        obeyed=tuple(_obeyed(fields.get("obeyedMessages"))),
        obeyed_before=_text(fields.get("obeyedFingerprint")),
    )


def _sticky_json(sticky: Sticky | None) -> dict[str, object] | None:
    if sticky is None:
        return None
    fields = {"model": sticky.model, "keyAlias": sticky.key, "provider": sticky.provider}
    return {name: value for name, value in fields.items() if value is not None}


def _grouped(pairs: Iterable[tuple[str, str]], name: str) -> list[dict[str, object]]:
    """Neighbours of one provider share an entry, so that the order survives."""
    return [
        {"provider": provider, name: [value for _, value in group]}
        for provider, group in groupby(pairs, key=lambda pair: pair[0])
    ]


def _sticky(value: object) -> Sticky | None:
    fields = object_of(value)
    provider = _text(fields.get("provider"))
    if provider is None:
        return None
    return Sticky(provider, key=_name(fields.get("keyAlias")), model=_text(fields.get("model")))


def _stop(fields: dict[str, object]) -> StopMessage | None:
    text = _text(fields.get("stopMessageText"))
    most = _whole(fields.get("stopMessageMaxRepeats"))
    if text is None or not most:
        return None
    return StopMessage(
        text=text,
        max_repeats=most,
        used=_whole(fields.get("stopMessageUsed")) or 0,
        updated_at_ms=_whole(fields.get("stopMessageUpdatedAt")) or 0,
        last_used_at_ms=_whole(fields.get("stopMessageLastUsedAt")),
    )


def _obeyed(value: object) -> Iterator[Obeyed]:
    for entry in list_of(value):
        match entry:
            case [str(place), str(text), "open" | "ended" | "refused" as standing] if place:
                yield Obeyed(place, text, standing)


def _pairs(value: object, name: str) -> Iterator[tuple[str, str]]:
    for entry in list_of(value):
        fields = object_of(entry)
        provider = _text(fields.get("provider"))
        if provider is not None:
            yield from ((provider, item) for item in _names(fields.get(name)))


def _targets(value: object) -> Iterator[tuple[str, str, str]]:
    for entry in list_of(value):
        names = list_of(entry)
        if len(names) == 3 and all(isinstance(name, str) for name in names) and names[0]:
            yield str(names[0]), str(names[1]), str(names[2])


def _names(value: object) -> tuple[str, ...]:
    return tuple(name for item in list_of(value) if (name := _name(item)) is not None)


def _name(value: object) -> str | None:
    """A name, or a key's number as it was once written."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LARGEST:
        return str(value)
    return _text(value)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _whole(value: object) -> int | None:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LARGEST else None
