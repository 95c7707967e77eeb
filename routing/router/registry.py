"""The configuration as the router and the tags see it: providers, keys, models, routes. Pure values, made by `routing.config`.

`origin` (where the client was going) and `echo` (answers by itself) are providers like any other, always present.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import force_setattr, replace

from ..values import Dialect, Target, alike_without, told_without

ORIGIN = "origin"
ECHO = "echo"


class Key(Struct, frozen=True):
    """One credential of a provider. `index` counts from 1 in the order of the auth list."""

    alias: str
    index: int
    value: str = ""
    """Empty: no credential on purpose."""
    off: bool = False
    """Its environment variable is missing: never used, but known by name."""
    why: str = ""
    """Why it is off, and what to do."""

    def __repr__(self) -> str:
        return told_without(self, "value")

    def __eq__(self, other: object) -> bool:
        return alike_without(self, other, "why")

    __hash__ = None  # type: ignore[assignment]


class Model(Struct, frozen=True):
    id: str
    max_context: int = 200_000
    max_tokens: int | None = None
    aliases: tuple[str, ...] = ()
    vision: bool | None = None
    """None: not said, so believed to see images."""


class Url(Struct, frozen=True):
    """A provider's base address: a dialect's path is appended to `path`."""

    scheme: Literal["http", "https"]
    host: str
    port: int
    path: str = ""


class Provider(Struct, frozen=True):
    id: str
    dialect: Dialect | None
    """Its own dialect; None for `origin` and `echo`, which speak the client's."""
    endpoints: Mapping[Dialect, Url]
    """Every dialect it speaks, its own included."""
    keys: tuple[Key, ...]
    models: Mapping[str, Model]
    auth: Literal["apikey", "client", "none"] = "apikey"
    enabled: bool = True
    headers: Mapping[str, str] = field(default_factory=dict)
    server_tools: bool = True
    count_tokens: bool | None = None
    """Whether it counts tokens; None: its official dialect decides."""
    compaction: bool | None = None
    """Whether it compacts Responses conversations; None: OpenAI's and Azure's hosts do."""
    ask_usage: bool | None = None
    """Whether it is asked for the usage of its Chat streams; None: where it is not known to refuse."""
    why: str = ""
    """Why it is not enabled."""
    users: tuple[str, ...] | None = None
    """Who may use it; None: everybody."""
    shut: bool = False
    """Not for the person who asks: named to nobody who does not name it."""
    _by_alias: Mapping[str, Key] = field(default_factory=dict)
    """A pool may hold a thousand keys of one provider, and each is looked up."""

    def __post_init__(self) -> None:
        force_setattr(self, "_by_alias", {key.alias: key for key in reversed(self.keys)})

    def __repr__(self) -> str:
        return told_without(self, "headers", "_by_alias")

    def __eq__(self, other: object) -> bool:
        return alike_without(self, other, "why", "_by_alias")

    __hash__ = None  # type: ignore[assignment]

    def is_for(self, user: str) -> bool:
        return self.users is None or user in self.users

    def shut_to(self, user: str) -> Provider:
        who = f"it is not for {user}" if user else "it is for some people alone, and this call came without a name"
        return replace(self, enabled=False, shut=True, why=f"{who} (providers.{self.id}.users)")

    def key(self, alias: str) -> Key | None:
        return self._by_alias.get(alias)

    def model_named(self, name: str) -> str | None:
        """The declared model of that name or alias, if any."""
        if name in self.models:
            return name
        return next((model.id for model in self.models.values() if name in model.aliases), None)

    def declared(self, name: str) -> str | None:
        """The declared model of that name or alias; a provider that declares none takes any."""
        return self.model_named(name) if self.models else name

    def model_for(self, client_model: str) -> str:
        """For who asks for none: the client's if it is declared here, else the first; the client's where none is declared."""
        own_name = client_model.removeprefix(f"{self.id}.")
        return self.declared(client_model) or self.declared(own_name) or next(iter(self.models), client_model)

    def targets(self, model: str, key: str | None = None) -> list[Target]:
        """One target for each key, or for the key named; a provider without keys has one target."""
        if key:
            return [Target(self.id, key, model)] if self.key(key) is not None else []
        return [Target(self.id, entry.alias, model) for entry in self.keys] or [Target(self.id, "", model)]

    def why_off(self, key: str | None = None) -> str:
        """Why the configuration lets nobody use it, or that key of it; empty where it does, or nothing more is known."""
        if not self.enabled:
            return self.why
        keys = [entry for entry in self.keys if not key or entry.alias == key]
        return keys[0].why if keys and all(entry.off for entry in keys) else ""

    @property
    def names(self) -> Iterator[str]:
        """Everything that can be asked for behind the provider's name."""
        for model in self.models.values():
            yield from (f"{self.id}.{name}" for name in (model.id, *model.aliases))
        yield from (f"{self.id}.{key.alias}" for key in self.keys)


class Pool(Struct, frozen=True):
    """One tier of a route. The next tier is used only when this one has no candidate."""

    id: str
    targets: tuple[Target, ...]
    priority: int
    backup: bool = False
    mode: Literal["priority", "round-robin", "weighted", "sticky"] = "round-robin"
    weights: Mapping[str, float] = field(default_factory=dict)
    """By `provider.alias`, `provider.model` or provider."""
    off: Mapping[str, str] = field(default_factory=dict)
    """Providers whose targets would stand here, and what the environment lacks for them."""

    def __eq__(self, other: object) -> bool:
        return alike_without(self, other, "off")

    __hash__ = None  # type: ignore[assignment]


class Classifier(Struct, frozen=True):
    long_context_tokens: int = 180_000
    thinking_keywords: tuple[str, ...] = ()
    coding_keywords: tuple[str, ...] = ()
    background_keywords: tuple[str, ...] = ()
    vision_keywords: tuple[str, ...] = ()
    background_models: tuple[str, ...] = ()
    """Shell patterns of client model names that go to the background route."""


class HealthSettings(Struct, frozen=True):
    """How long a key rests after what. Seconds."""

    rate_ladder_s: tuple[float, ...] = (5, 15, 30, 60)
    """Per-minute limits without a hint from the provider, one after another."""
    server_ladder_s: tuple[float, ...] = (5, 15, 30)
    """5xx answers; the third in a row trips the key."""
    server_trip_s: float = 300
    auth_trip_s: float = 600
    quota_reset: str = "12:00"
    """Local time of day at which a spent quota without a hint is tried again."""
    wait_for_same_key_s: float = 5
    """A per-minute limit that is over within this time is waited for: the prompt cache lives at that key."""


class Registry(Struct, frozen=True):
    providers: Mapping[str, Provider]
    routes: Mapping[str, tuple[Pool, ...]]
    """Sorted: normal pools before backups, then by priority. `default` is always there."""
    classifier: Classifier = field(default_factory=Classifier)
    warn_ratio: float = 0.9
    hard_limit: bool = False
    on_exhausted: Literal["clear", "keep"] = "clear"
    health: HealthSettings = field(default_factory=HealthSettings)

    @property
    def is_shared(self) -> bool:
        """Some of it is for some people alone."""
        return any(provider.users is not None for provider in self.providers.values())

    def seen_by(self, user: str) -> Registry:
        """The same, where what is not for this person is shut."""
        providers = {
            name: provider if provider.is_for(user) else provider.shut_to(user) for name, provider in self.providers.items()
        }
        return replace(self, providers=providers)

    @property
    def listed(self) -> dict[str, Provider]:
        """What may be told of it."""
        return {name: provider for name, provider in self.providers.items() if not provider.shut}
