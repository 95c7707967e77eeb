"""The whole configuration as the rest of the program sees it. Plain values; no secret shows in a repr."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct, field

from ..router.registry import Registry
from ..usage.prices import Price
from ..values import told_without


class FinishReasons(Struct, frozen=True):
    tool_use_message_stop: Literal["always", "never"] = "always"
    """`never`: no `message_stop` after `tool_use`. Real clients hang on that; kept for those who ask for it."""
    content_filter: Literal["stop_sequence", "refusal"] = "stop_sequence"
    """What `content_filter` becomes in the Messages dialect."""
    log: bool = False


class Ntp(Struct, frozen=True):
    enabled: bool = True
    servers: tuple[str, ...] = ("time.google.com", "time.cloudflare.com", "pool.ntp.org")
    timeout_ms: int = 800
    stale_after_ms: int = 21_600_000


class Clock(Struct, frozen=True):
    retention_ms: int = 1_200_000
    due_window_ms: int = 60_000
    tick_ms: int = 60_000
    """0: no regular clean-up."""
    hold_non_streaming: bool = True
    hold_max_ms: int = 60_000
    ntp: Ntp = field(default_factory=Ntp)


class StopSettings(Struct, frozen=True):
    enabled: bool = True
    max_total_s: float = 900.0
    identical_rounds: int = 10


class UsageSettings(Struct, frozen=True):
    enabled: bool = True
    retention_days: int = 400
    prices: Mapping[str, Price] = field(default_factory=dict)
    """By `provider.model`, model, or provider; before the table that comes with the release."""


class TelemetrySettings(Struct, frozen=True):
    prometheus: bool = False
    otlp: str = ""
    """The collector's address, without the path; empty: none."""
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bool = False

    def __repr__(self) -> str:
        return told_without(self, "headers")

    @property
    def enabled(self) -> bool:
        return self.prometheus or bool(self.otlp)


class Config(Struct, frozen=True):
    registry: Registry
    intercept_hosts: tuple[str, ...]
    """Exact names in lower case, or `*.example.com` for every name below."""
    allow_remote_clients: bool = False
    admins: frozenset[str] = frozenset()
    """Who sees what is everybody's."""
    codex_web_socket: Literal["refuse", "serve"] = "refuse"
    """Refused, Codex goes on over HTTP at once; served, each of its frames is a call of its own."""
    first_byte_s: float = 120.0
    idle_s: float = 300.0
    content_s: float = 600.0
    """So long a provider may say nothing but that it is there."""
    derive: Literal["routing", "all", "off"] = "routing"
    """For which features a call without a session id gets a derived one."""
    store: str = "files"
    """`files`, or a redis:// address (which may hold a password)."""
    on_store_lost: Literal["refuse", "local"] = "refuse"
    """What becomes of sessions' calls while that cannot be reached."""
    retention_days: int = 30
    typed_in: tuple[str, ...] = ()
    """Wrappers whose text a person typed, whatever tool writes them."""
    max_attempts: int = 6
    notices: bool = True
    """People are told what changed without being asked."""
    finish_reasons: FinishReasons = field(default_factory=FinishReasons)
    clock: Clock | None = None
    """None: switched off."""
    stop: StopSettings = field(default_factory=StopSettings)
    usage: UsageSettings = field(default_factory=UsageSettings)
    telemetry: TelemetrySettings = field(default_factory=TelemetrySettings)
    empty_reply: bool = False
    """The built-in plugin of that name: an answer with neither text nor calls is asked for once more."""
    plugins: tuple[str, ...] = ()
    secret_files: tuple[str, ...] = ()
    """`.env` and what `${file:…}` names: to be watched."""
    warnings: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return told_without(self, "store")
