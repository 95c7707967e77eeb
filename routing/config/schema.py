"""The shape of the file in its canonical spelling: which keys there are, their types, limits and defaults.

1. A key that stands nowhere here is refused.
2. Every key is named as in the file (camelCase); `routing.config.imports` has turned other spellings into these before.
3. What several keys mean together is decided in `routing.config.build`.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

YEAR_MS = 366 * 24 * 3600 * 1000

Millis = Annotated[int, Field(ge=0, le=YEAR_MS)]
Timeout = Annotated[int, Field(ge=1, le=YEAR_MS)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Tokens = Annotated[int, Field(ge=1, le=1_000_000_000)]
Mode = Literal["priority", "round-robin", "weighted", "sticky"]
Weights = dict[str, Annotated[float, Field(ge=0, le=1_000_000, allow_inf_nan=False)]]


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=to_camel, hide_input_in_errors=True)


class Timeouts(Section):
    first_byte_ms: Timeout = 120_000
    idle_ms: Timeout = 300_000
    content_ms: Timeout = 600_000


class Proxy(Section):
    intercept_hosts: list[str] | None = None
    allow_remote_clients: bool = False
    codex_web_socket: Literal["refuse", "serve"] = "refuse"
    timeouts: Timeouts = Timeouts()


class Sessions(Section):
    derive: Literal["routing", "all", "off"] = "routing"
    store: str = Field(default="files", repr=False)
    retention_days: int = Field(default=30, ge=1, le=36_500)
    typed_in: list[Annotated[str, Field(pattern=r"^[A-Za-z][\w.:-]{0,63}$")]] = []


class FinishReasons(Section):
    tool_use_message_stop: Literal["always", "never"] = "always"
    content_filter: Literal["stop_sequence", "refusal"] = "stop_sequence"
    log: bool = False


class Sticky(Section):
    on_exhausted: Literal["clear", "keep"] = "clear"


class Retries(Section):
    max_attempts: int = Field(default=6, ge=1, le=50)


class Key(Section):
    alias: str | None = None
    value: str | None = Field(default=None, repr=False)
    secret_ref: str | None = Field(default=None, repr=False)
    token_file: str | None = None


class Auth(Section):
    type: str = "apikey"
    keys: list[Key] = []


class Model(Section):
    max_context: Tokens = 200_000
    max_tokens: Tokens | None = None
    aliases: list[str] = []
    vision: bool | None = None
    tools: bool = True


class Provider(Section):
    id: str | None = None
    enabled: bool = True
    protocol: str | None = None
    type: str | None = None
    base_url: str | None = Field(default=None, alias="baseURL")
    endpoints: dict[str, str] = {}
    auth: Auth | None = None
    models: dict[str, Model] = {}
    headers: dict[str, str] = Field(default={}, repr=False)
    server_tools: bool = True
    server_tools_disabled: bool = False
    count_tokens: bool | None = None
    compaction: bool | None = None


class LoadBalancing(Section):
    strategy: Mode | None = None
    weights: Weights = {}


class Pool(Section):
    id: str | None = None
    targets: list[str] = []
    priority: int | None = Field(default=None, ge=-1_000_000, le=1_000_000)
    backup: bool = False
    mode: Mode | None = None
    weights: Weights = {}
    load_balancing: LoadBalancing = LoadBalancing()


class Classifier(Section):
    long_context_threshold_tokens: Tokens = 180_000
    thinking_keywords: list[str] | None = None
    coding_keywords: list[str] | None = None
    background_keywords: list[str] | None = None
    vision_keywords: list[str] | None = None
    background_models: list[str] = []


class ContextRouting(Section):
    warn_ratio: Number = 0.9
    hard_limit: bool = False


class Health(Section):
    rate_limit_ladder_ms: list[Timeout] = Field(default=[5_000, 15_000, 30_000, 60_000], min_length=1, max_length=20)
    server_error_ladder_ms: list[Timeout] = Field(default=[5_000, 15_000, 30_000], min_length=1, max_length=20)
    server_error_trip_ms: Timeout = 300_000
    auth_trip_ms: Timeout = 600_000
    quota_reset_time: str = Field(default="12:00", pattern=r"^([01]?\d|2[0-3]):[0-5]\d$")
    wait_for_same_key_ms: Millis = 5_000


class Ntp(Section):
    enabled: bool = True
    servers: list[str] = ["time.google.com", "time.cloudflare.com", "pool.ntp.org"]
    timeout_ms: Timeout = 800
    stale_after_ms: Timeout = 21_600_000


class Clock(Section):
    enabled: bool = True
    retention_ms: Millis = 1_200_000
    due_window_ms: Millis = 60_000
    tick_ms: Millis = 60_000
    hold_non_streaming: bool = True
    hold_max_ms: Millis = 60_000
    ntp: Ntp = Ntp()


class StopMessage(Section):
    enabled: bool = True
    max_total_ms: Timeout = 900_000
    identical_rounds: int = Field(default=10, ge=2, le=1_000_000)


Dollars = Annotated[float, Field(ge=0, le=1_000_000, allow_inf_nan=False)]


class Price(Section):
    input: Dollars
    output: Dollars
    cached: Dollars | None = None
    written: Dollars | None = None


class Usage(Section):
    enabled: bool = True
    retention_days: int = Field(default=400, ge=1, le=36_500)
    prices: dict[str, Price] = {}


class VirtualRouter(Section):
    providers: dict[str, Provider] = {}
    routing: dict[str, list[Pool]] = {}
    classifier: Classifier = Classifier()
    load_balancing: LoadBalancing = LoadBalancing()
    context_routing: ContextRouting = ContextRouting()
    health: Health = Health()
    clock: Clock | None = None
    stop_message: StopMessage = StopMessage()


class Document(Section):
    proxy: Proxy = Proxy()
    sessions: Sessions = Sessions()
    finish_reasons: FinishReasons = FinishReasons()
    sticky: Sticky = Sticky()
    retries: Retries = Retries()
    usage: Usage = Usage()
    virtualrouter: VirtualRouter = VirtualRouter()
    plugins: list[str] = []


def _names(section: type[BaseModel]) -> frozenset[str]:
    return frozenset(field.alias or name for name, field in section.model_fields.items())


ROUTER_KEYS = _names(VirtualRouter)
ALL_KEYS = frozenset().union(*(_names(section) for section in Section.__subclasses__()))
