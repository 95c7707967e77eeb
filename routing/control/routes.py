"""Where calls go, as people read it."""

from __future__ import annotations

from collections.abc import Iterable

from ..router.classify import DEFAULT, ROUTES
from ..router.registry import ECHO, ORIGIN, Pool, Provider, Registry
from ..values import JsonObject, Target

_SORTED_ON = frozenset({"side", "subagent", "plan"})
"""Without these routes such calls are sorted like any other."""


def route_lines(registry: Registry) -> list[str]:
    """One line per pool: its route, then what is tried in which order."""
    rows: list[tuple[str, str]] = []
    for route, pools in registry.routes.items():
        for place, pool in enumerate(pools):
            rows.append((route if place == 0 else "", f"{'then ' if place else ''}{_pool(pool, registry)}"))
    rest = [name for name in sorted(ROUTES - _SORTED_ON) if name not in registry.routes and name != DEFAULT]
    width = max((len(route) for route, _ in rows), default=0)
    lines = [f"{route:{width}}  {said}" for route, said in rows]
    return [*lines, f"Answered by {DEFAULT}: {', '.join(rest)}"] if rest else lines


def route_table(registry: Registry) -> JsonObject:
    return {
        route: [
            {"id": pool.id, "mode": pool.mode, "backup": pool.backup, "targets": [str(target) for target in pool.targets]}
            for pool in pools
        ]
        for route, pools in registry.routes.items()
    }


def provider_lines(registry: Registry) -> list[str]:
    """What each provider of one's own can be asked for."""
    return [_provider(provider) for provider in registry.providers.values() if provider.id not in (ORIGIN, ECHO)]


def _provider(provider: Provider) -> str:
    keys = [f"{key.alias}{' (off)' if key.off else ''}" for key in provider.keys]
    state = "" if provider.enabled else " · off"
    models = ", ".join(provider.models) or "any model"
    return f"{provider.id}: {models} · {'key' if len(keys) == 1 else 'keys'} {', '.join(keys)}{state}"


def _pool(pool: Pool, registry: Registry) -> str:
    targets = [_target(provider, model, keys, registry) for (provider, model), keys in _together(pool.targets).items()]
    how = f" ({pool.mode})" if len(targets) > 1 else ""
    return (", ".join(targets) or f"nothing: every key of {pool.id} is off") + how


def _together(targets: Iterable[Target]) -> dict[tuple[str, str], list[str]]:
    """By provider and model: the keys that take turns."""
    found: dict[tuple[str, str], list[str]] = {}
    for target in targets:
        found.setdefault((target.provider, target.model), []).append(target.key)
    return found


def _target(name: str, model: str, keys: list[str], registry: Registry) -> str:
    if name == ORIGIN:
        return "origin: where the tool was going, with its own credential"
    if name == ECHO:
        return "echo: answered here"
    every = [key.alias for key in registry.providers[name].keys]
    only = "" if keys == every else f" [{', '.join(keys)}]"
    return f"{name}.{model}{only}"
