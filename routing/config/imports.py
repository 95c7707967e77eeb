"""Other spellings, above all those of a RouteCodex `config.json`, turned into the canonical ones of `schema`.

1. Nothing is guessed: a form that is not known is left for the schema to refuse.
2. Every value keeps its line and the name the file gave it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from .notes import Notes, Path
from .schema import VirtualRouter
from .source import Items, Table

NOT_USED = "not used here"

_TOP_ONLY_THERE = ("version", "httpserver", "webSearch", "execCommandGuard", "logging", "oauth", "authDir", "keyMappings")
_ROUTER_ONLY_THERE = ("webSearch", "execCommandGuard")
_PROVIDER_ONLY_THERE = ("compatibilityProfile", "process", "streaming", "responses", "timeout", "maxRetries")
_MODEL_ONLY_THERE = ("supportsStreaming", "streaming", "thinking", "capabilities", "compatibilityProfile")
_POOL_ONLY_THERE = ("force",)
_BALANCING_ONLY_THERE = ("healthWeighted", "contextWeighted", "aliasSelection")
_HEALTH_ONLY_THERE = ("failureThreshold", "cooldownMs", "fatalCooldownMs")

_PROVIDER_SPELLINGS = {"baseUrl": "baseURL", "base_url": "baseURL", "endpoint": "baseURL"}
_MODEL_SPELLINGS = {
    **dict.fromkeys(("maxContextTokens", "max_context", "max_context_tokens", "contextWindow"), "maxContext"),
    **dict.fromkeys(("max_tokens", "maxOutputTokens", "max_output_tokens"), "maxTokens"),
}
_POOL_SPELLINGS = {
    "poolId": "id",
    "isBackup": "backup",
    **dict.fromkeys(("providers", "pool", "entries", "items", "routes", "target", "provider"), "targets"),
    **dict.fromkeys(("strategy", "routingMode"), "mode"),
}
_KEY_SPELLINGS = {**dict.fromkeys(("apiKey", "apikey", "key"), "value"), **dict.fromkeys(("id", "name"), "alias")}
_KEY_FORMS = ("keys", "entries", "apiKeys", "apiKey")
_MODES = {"rr": "round-robin", "roundrobin": "round-robin", "priority": "priority", "weighted": "weighted", "sticky": "sticky"}
_OLD_SHIMS = ("compat", "compatibility_profile")


def normalise(root: Table, notes: Notes) -> None:
    """Rewrite the tree in place."""
    _drop(root, _TOP_ONLY_THERE, notes, ())
    if root.get("virtualrouter") is None:
        _gather_router(root)
    _drop(root, ("quota",), notes, ())
    router = root["virtualrouter"]
    if isinstance(router, Table):
        _normalise_router(router, notes)
    _drop_nulls(root)


def _gather_router(root: Table) -> None:
    router = Table(line=root.line)
    for key in [key for key in root if key in VirtualRouter.spelt or key in ("quota", *_ROUTER_ONLY_THERE)]:
        line = root.line_of(key)
        router.put(key, root.take(key), line=line)
    root.put("virtualrouter", router, line=root.line, name="")


def _normalise_router(router: Table, notes: Notes) -> None:
    top: Path = ("virtualrouter",)
    _drop(router, _ROUTER_ONLY_THERE, notes, top)
    _take_quota(router, notes, top)
    for name, rewrite in _ROUTER_SECTIONS.items():
        section = router.get(name)
        if isinstance(section, Table):
            rewrite(section, notes, (*top, name))


def _take_quota(router: Table, notes: Notes, top: Path) -> None:
    """The time at which spent quotas return is used; the rest of `quota` is not."""
    quota, line = router.get("quota"), router.line_of("quota")
    time = quota.get("apikeyDailyResetTime") if isinstance(quota, Table) else None
    health = router.get("health") or Table(line=line)
    if isinstance(time, str) and re.fullmatch(r"([01]?\d|2[0-3]):[0-5]\d", time) and isinstance(health, Table):
        if "quotaResetTime" not in health:
            health.put("quotaResetTime", time, line=line)
        router.put("health", health, line=router.line_of("health"))
        router.take("quota")
    _drop(router, ("quota",), notes, top)


def _providers(table: Table, notes: Notes, at: Path) -> None:
    for name, provider in table.items():
        if isinstance(provider, Table):
            _provider(provider, notes, (*at, name))


def _provider(provider: Table, notes: Notes, at: Path) -> None:
    for old in _OLD_SHIMS:
        if old in provider:
            notes.refuse((*at, old), "no longer understood: remove it (the dialects are translated without it)")
            provider.take(old)
    _drop(provider, _PROVIDER_ONLY_THERE, notes, at)
    _rename(provider, _PROVIDER_SPELLINGS, notes, at)
    if "providerType" in provider:
        line, kind = provider.line_of("providerType"), provider.take("providerType")
        if "type" not in provider:
            provider.put("type", kind, line=line, name="providerType")
    tools = provider.get("serverTools")
    if isinstance(tools, Table) and set(tools) <= {"enabled"}:
        provider["serverTools"] = tools.get("enabled", True)
    models = provider.get("models")
    if isinstance(models, Items):
        provider["models"] = models = _models_by_name(models)
    if isinstance(models, Table):
        for name, model in models.items():
            if model is None:
                models[name] = Table(line=models.line_of(name))
            elif isinstance(model, Table):
                _drop(model, _MODEL_ONLY_THERE, notes, (*at, "models", name))
                _rename(model, _MODEL_SPELLINGS, notes, (*at, "models", name))
    for name in _KEY_FORMS[2:]:  # a key right beside baseURL
        if name in provider and "auth" not in provider:
            line = provider.line_of(name)
            auth = Table(line=line)
            auth.put(name, provider.take(name), line=line)
            provider.put("auth", auth, line=line, name="")
    if "auth" in provider:
        _auth(provider, notes, (*at, "auth"))


def _models_by_name(models: Items) -> object:
    """A plain list of names, as a mapping; anything else unchanged."""
    if not all(isinstance(name, str) for name in models):
        return models
    table = Table(line=models.line)
    for name, line in zip(models, models.lines, strict=True):
        table.put(str(name), None, line=line)
    return table


class _Entry(NamedTuple):
    value: object
    line: int
    name: str


def _auth(provider: Table, notes: Notes, at: Path) -> None:
    """Every form a credential may take, as one list of keys."""
    auth = provider["auth"]
    if isinstance(auth, str):
        line, word = provider.line_of("auth"), auth
        auth = Table(line=line)
        auth.put("type", word, line=line, name="")
        provider["auth"] = auth
    if not isinstance(auth, Table):
        return
    kind = auth.get("type")
    if isinstance(kind, str) and re.sub(r"[-_ ]", "", kind).lower() in {"apikey", "bearer"}:
        auth["type"] = "apikey"
    oauth = isinstance(kind, str) and "oauth" in kind.lower()
    _gather_key(auth)
    entries: list[_Entry] = []
    for form in [form for form in auth if form in _KEY_FORMS]:
        line = auth.line_of(form)
        entries += _entries(auth.take(form), form, line)
    if oauth:
        for name in [name for name in auth if name != "type"]:
            auth.take(name)
    keys = Items(line=auth.line)
    for entry in entries:
        key = _key(entry.value, entry.line)
        if isinstance(key, Table):
            _rename(key, _KEY_SPELLINGS, notes, at)
            _take_key_type(key, oauth=oauth)
        keys.add(key, line=entry.line, name=entry.name)
    if entries:
        auth.put("keys", keys, line=entries[0].line, name="")


def _gather_key(auth: Table) -> None:
    """One key written straight into `auth`."""
    single = [name for name in ("value", "secretRef", "tokenFile", "alias") if name in auth]
    if not single or any(form in auth for form in _KEY_FORMS):
        return
    line = auth.line_of(single[0])
    key = Table(line=line)
    for name in single:
        key.put(name, auth.take(name), line=line)
    auth.put("apiKey", key, line=line)


def _take_key_type(key: Table, *, oauth: bool) -> None:
    """An entry may say its own type. One that logs in by itself is kept by name, and is off."""
    kind = key.get("type")
    if isinstance(kind, str) and ("oauth" in kind.lower() or kind.lower() == "apikey"):
        oauth = oauth or kind.lower() != "apikey"
        key.take("type")
    if oauth:
        for name in [name for name in key if name != "alias"]:
            key.take(name)
        key.put("tokenFile", "", line=key.line)


def _entries(value: object, form: str, line: int) -> list[_Entry]:
    if isinstance(value, Items):
        return [_Entry(one, where, f"{form}[{at}]") for at, (one, where) in enumerate(zip(value, value.lines, strict=True))]
    if not isinstance(value, Table) or form == "apiKey":
        return [] if value is None else [_Entry(value, line, form)]
    entries = []
    for alias, one in value.items():
        where = value.line_of(alias)
        key = _key(one, where)
        if isinstance(key, Table) and "alias" not in key:
            key.put("alias", alias, line=where)
        entries.append(_Entry(key, where, f"{form}.{alias}"))
    return entries


def _key(value: object, line: int) -> object:
    """A bare text is the key's value."""
    if isinstance(value, Table | Items):
        return value
    key = Table(line=line)
    key.put("value", value, line=line, name="")
    return key


def _routing(table: Table, notes: Notes, at: Path) -> None:
    for route, value in table.items():
        if isinstance(value, str | Table):
            items = Items(line=table.line_of(route))
            items.add(value, line=table.line_of(route), name="")
            value = table[route] = items
        if not isinstance(value, Items):
            continue
        if value and not any(isinstance(one, Table) for one in value):
            table[route] = _single_pool(route, value)
            continue
        for place, pool in enumerate(value):
            if isinstance(pool, Table):
                _pool(pool, notes, (*at, route, place))


def _single_pool(route: str, targets: Items) -> Items:
    pool = Table(line=targets.line)
    pool.put("id", f"{route}:pool0", line=targets.line)
    pool.put("targets", targets, line=targets.line, name="")
    pools = Items(line=targets.line)
    pools.add(pool, line=targets.line, name="")
    return pools


def _pool(pool: Table, notes: Notes, at: Path) -> None:
    _drop(pool, _POOL_ONLY_THERE, notes, at)
    _rename(pool, _POOL_SPELLINGS, notes, at)
    if "type" in pool and pool["type"] in ("backup", "normal"):
        line, kind = pool.line_of("type"), pool.take("type")
        pool.put("backup", kind == "backup", line=line, name="type")
    targets = pool.get("targets")
    if isinstance(targets, str):
        items = Items(line=pool.line_of("targets"))
        items.add(targets, line=pool.line_of("targets"), name="")
        pool["targets"] = items
    _spell_mode(pool, "mode")
    balancing = pool.get("loadBalancing")
    if isinstance(balancing, Table):
        _balancing(balancing, notes, (*at, "loadBalancing"))


def _balancing(table: Table, notes: Notes, at: Path) -> None:
    _drop(table, _BALANCING_ONLY_THERE, notes, at)
    _spell_mode(table, "strategy")


def _spell_mode(table: Table, key: str) -> None:
    mode = table.get(key)
    if isinstance(mode, str):
        table[key] = _MODES.get(re.sub(r"[-_ ]", "", mode).lower(), mode)


def _health(table: Table, notes: Notes, at: Path) -> None:
    _drop(table, _HEALTH_ONLY_THERE, notes, at)


_ROUTER_SECTIONS: Mapping[str, Callable[[Table, Notes, Path], None]] = {
    "providers": _providers,
    "routing": _routing,
    "loadBalancing": _balancing,
    "health": _health,
}


def _drop(table: Table, keys: tuple[str, ...], notes: Notes, at: Path) -> None:
    for key in keys:
        if key in table:
            notes.warn((*at, key), f"{key} is {NOT_USED}")
            table.take(key)


def _rename(table: Table, spellings: Mapping[str, str], notes: Notes, at: Path) -> None:
    for written in [key for key in table if key in spellings]:
        name, line = spellings[written], table.line_of(written)
        if name in table and table[name] != table[written]:
            notes.refuse((*at, written), f"says the same as {table.names.get(name, name)}: keep one of them")
        value = table.take(written)
        if name not in table:
            table.put(name, value, line=line, name=written)


def _drop_nulls(node: object) -> None:
    """A section whose lines are all commented out is a section that is not there."""
    if isinstance(node, Table):
        for key in [key for key, value in node.items() if value is None]:
            node.take(key)
    if isinstance(node, Table | Items):
        for value in node.values() if isinstance(node, Table) else node:
            _drop_nulls(value)
