"""What each kind of order does to a session's state. Values in, values out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from ..router.registry import Provider
from ..sessions.state import SessionState
from ..values import Named

_T = TypeVar("_T")


def allowed(state: SessionState, provider: str, *, adding: bool) -> SessionState:
    return state.with_(allowed=_distinct((*(state.allowed if adding else ()), provider)))


def disabled(state: SessionState, named: Named) -> SessionState:
    """A key of one model cannot be disabled alone: the key is disabled."""
    state = state.with_(enabled=tuple(one for one in state.enabled if one[0] != named.provider))
    if named.key:
        return state.with_(disabled_keys=_distinct((*state.disabled_keys, (named.provider, named.key))))
    if named.model:
        return state.with_(disabled_models=_distinct((*state.disabled_models, (named.provider, named.model))))
    return state.with_(disabled_providers=_distinct((*state.disabled_providers, named.provider)))


def enabled_over(state: SessionState, named: Named, provider: Provider, under: SessionState) -> SessionState:
    """Also where it is not the session that disabled it, but `under`, which holds for all."""
    if enabled(under, named, provider) != under:
        state = state.with_(enabled=_distinct((*state.enabled, (named.provider, named.key or "", named.model or ""))))
    return enabled(state, named, provider)


def enabled(state: SessionState, named: Named, provider: Provider) -> SessionState:
    """Lifts what disables the named thing; of a disabled provider the rest stays disabled."""
    keys = [pair for pair in state.disabled_keys if pair != (provider.id, named.key)]
    models = [pair for pair in state.disabled_models if pair != (provider.id, named.model)]
    if named.key is None and named.model is None:
        keys = [pair for pair in keys if pair[0] != provider.id]
        models = [pair for pair in models if pair[0] != provider.id]
    elif provider.id in state.disabled_providers and named.key:
        keys += [(provider.id, key.alias) for key in provider.keys if key.alias != named.key]
    elif provider.id in state.disabled_providers:
        models += [(provider.id, model) for model in provider.models if model != named.model]
    return state.with_(
        disabled_providers=tuple(name for name in state.disabled_providers if name != provider.id),
        disabled_keys=_distinct(keys),
        disabled_models=_distinct(models),
    )


def nothing_disabled(state: SessionState) -> SessionState:
    return state.with_(disabled_providers=(), disabled_keys=(), disabled_models=())


def disabled_in(state: SessionState) -> list[Named]:
    return [
        *(Named(provider) for provider in state.disabled_providers),
        *(Named(provider, key=key) for provider, key in state.disabled_keys),
        *(Named(provider, model=model) for provider, model in state.disabled_models),
    ]


def without_stop(state: SessionState) -> SessionState:
    """No field of a stopMessage is left."""
    return state.with_(stop=None, stop_cleared_at_ms=None, stop_last_used_at_ms=None)


def cleared(state: SessionState) -> SessionState:
    return without_stop(nothing_disabled(state)).with_(sticky=None, allowed=(), enabled=())


def _distinct(items: Iterable[_T]) -> tuple[_T, ...]:
    return tuple(dict.fromkeys(items))
