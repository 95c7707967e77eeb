"""The shape of the file in its canonical spelling: which keys there are, their types, limits and defaults.

1. A key that stands nowhere here is refused.
2. Every key is named as in the file (camelCase); `routing.config.imports` has turned other spellings into these before.
3. What several keys mean together is decided in `routing.config.build`.
4. The text below a key is what docs/configuration.md says of it (`python -m tests.configuration_table`).
5. What a key takes is read off its annotation, which is why annotations are no texts here.
"""

from typing import Annotated, Literal

from .section import Section, field

YEAR_MS = 366 * 24 * 3600 * 1000
MOST_ATTEMPTS = 50

Millis = Annotated[int, field(ge=0, le=YEAR_MS)]
Timeout = Annotated[int, field(ge=1, le=YEAR_MS)]
Tokens = Annotated[int, field(ge=1, le=1_000_000_000)]
Mode = Literal["priority", "round-robin", "weighted", "sticky"]
Weights = dict[str, Annotated[float, field(ge=0, le=1_000_000)]]


class Timeouts(Section):
    first_byte_ms: Timeout = 120_000
    """A provider that says nothing for so long is given up, and the next one asked."""
    idle_ms: Timeout = 300_000
    """… and one that falls silent within an answer."""
    content_ms: Timeout = 600_000
    """… and one that sends signs of life for so long, but nothing of an answer."""


class Proxy(Section):
    intercept_hosts: list[str] | None = None
    """Hosts whose TLS is opened, `"*.example.com"` with quotes; all others are tunnelled unopened. Without it: those of the usual
    providers. Those of your own are added by themselves."""
    allow_remote_clients: bool = False
    """Whether programs on other machines are served; only with mitmproxy's `proxyauth` (docs/team.md)."""
    codex_web_socket: Literal["refuse", "serve"] = "refuse"
    """Codex asks over a WebSocket first: refused it goes on over HTTP at once; served, each of its frames is a call."""
    timeouts: Timeouts = Timeouts()


class Sessions(Section):
    derive: Literal["routing", "all", "off"] = "routing"
    """Of tools that name no session: whether tags and stopMessage, or `all` with reminders, get an id made from how the
    conversation begins."""
    store: str = field("files")
    """Where state is kept: `files` under `~/.routecodex`, or a Redis that several proxies share (`redis://…`, `rediss://…`)."""
    on_store_lost: Literal["refuse", "local"] = "refuse"
    """While that Redis is gone: sessions' calls are refused, or go on with what this proxy knows, without stopMessage, reminders
    and tags that change something."""
    retention_days: int = field(30, ge=1, le=36_500)
    """So long an unused conversation's state is kept."""
    typed_in: list[
        Annotated[str, field(pattern=r"[A-Za-z][\w.:-]{0,63}", else_say="must be a wrapper's name such as pasted_text")]
    ] = []
    """Wrappers in which a tool puts what you typed; known tools need none."""


class FinishReasons(Section):
    tool_use_message_stop: Literal["always", "never"] = "always"
    """Whether `message_stop` follows a tool call; without it real tools hang."""
    content_filter: Literal["stop_sequence", "refusal"] = "stop_sequence"
    """What a filtered answer's reason becomes in Messages."""
    log: bool = False
    """Every mapping goes to `finish-reason-debug.log` in the state's folder."""


class Sticky(Section):
    on_exhausted: Literal["clear", "keep"] = "clear"
    """What becomes of `<**!provider.model**>` when the last of its keys cannot be used."""


class Retries(Section):
    max_attempts: int = field(6, ge=1, le=MOST_ATTEMPTS)
    """For one call, before the first byte of its answer has gone to the tool."""


class Key(Section):
    alias: str | None = None
    """Its name in tags; without one: `key1`, `key2`, …"""
    value: str | None = field(None)
    """`"${NAME}"`, `"${file:~/.keys/name}"`, or the key itself; `""` is none on purpose."""
    secret_ref: str | None = field(None)
    """Of the original; not read here, the key is off."""
    token_file: str | None = None
    """Of the original; not read here, the key is off."""


class Auth(Section):
    type: str = "apikey"
    """`apikey`; `client` passes the caller's own credential on, to the host it was meant for; `none`."""
    keys: list[Key] = []
    """They take turns, message by message."""


class Model(Section):
    max_context: Tokens = 200_000
    """Its window: fuller calls go elsewhere first."""
    max_tokens: Tokens | None = None
    """Its longest answer: where a tool asks for a longer one (`max_tokens`), this is asked for instead."""
    aliases: list[str] = []
    """Further names in tags and targets."""
    vision: bool | None = None
    """Whether it sees pictures; unsaid, it may."""


class Provider(Section):
    id: str | None = None
    """Its name in tags, where that is not the key it stands under."""
    enabled: bool = True
    protocol: str | None = None
    """Its dialect: `anthropic-messages`, `openai-chat`, `openai-responses` or `gemini-chat`."""
    type: str | None = None
    """Of the original: where `protocol` is missing it tells the dialect."""
    base_url: str | None = field(None, alias="baseURL")
    """The address of its dialect, as its documentation names it; `${NAME}` may stand in it."""
    endpoints: dict[str, str] = {}
    """Further dialects that it speaks, each with its address; a tool's own is preferred."""
    auth: Auth | None = None
    """Must be said."""
    models: dict[str, Model] = {}
    """By name. A provider that names none takes any model, unlisted: `<**provider.any-name**>`."""
    headers: dict[str, str] = field({})
    """Sent with each call to it."""
    server_tools: bool = True
    """Whether the clock's tool and plugins' may be offered to its models."""
    server_tools_disabled: bool = False
    """Of the original: the same, the other way round."""
    count_tokens: bool | None = None
    """Whether it counts tokens (`count_tokens`, `:countTokens`); unsaid, its host tells."""
    users: list[str] | None = None
    """Who may use it, by the names that people give at the proxy (docs/team.md); unsaid, everybody."""
    compaction: bool | None = None
    """Whether it makes Codex's compaction items; unsaid, its host tells."""
    ask_usage: bool | None = None
    """Whether it is asked for the usage of its Chat streams (`include_usage`); unsaid, its name and model tell."""


class LoadBalancing(Section):
    strategy: Mode | None = None
    """How targets take turns."""
    weights: Weights = {}
    """For `weighted`: by target or provider."""


class Pool(Section):
    id: str | None = None
    """Its name in the log."""
    targets: list[str] = []
    """`provider.model` (all its keys), `provider.key.model`, `origin`, `echo`; `:200` behind one puts it first."""
    priority: int | None = field(None, ge=-1_000_000, le=1_000_000)
    """The higher is tried first; without it, the earlier."""
    backup: bool = False
    """Only when no other pool can answer."""
    mode: Mode | None = None
    """How its targets take turns."""
    weights: Weights = {}
    """For `weighted`: by target or provider."""
    load_balancing: LoadBalancing = LoadBalancing()
    """Of the original: mode and weights."""


class Classifier(Section):
    long_context_threshold_tokens: Tokens = 180_000
    """From so many tokens on a call is `longcontext`."""
    thinking_keywords: list[str] | None = None
    """In what you typed; a list replaces the usual words."""
    coding_keywords: list[str] | None = None
    """The same for `coding`."""
    background_keywords: list[str] | None = None
    """The same for `background`."""
    vision_keywords: list[str] | None = None
    """The same for `vision`, where a file is in the message."""
    background_models: list[str] = []
    """What a tool asks of these models is `background`: `["*haiku*"]`."""


class ContextRouting(Section):
    warn_ratio: float = 0.9
    """A model whose window is filled beyond this is tried last."""
    hard_limit: bool = False
    """Never beyond the whole window."""


class Health(Section):
    rate_limit_ladder_ms: list[Timeout] = field([5_000, 15_000, 30_000, 60_000], max_length=20)
    """How long a key rests after a rate limit: a step per error in a row; `Retry-After` beats it."""
    server_error_ladder_ms: list[Timeout] = field([5_000, 15_000, 30_000], max_length=20)
    """The same after a provider's own error."""
    server_error_trip_ms: Timeout = 300_000
    """… and after three of these in a row."""
    auth_trip_ms: Timeout = 600_000
    """A refused key; corrected here, it is asked at once."""
    quota_reset_time: str = field(
        "12:00", pattern=r"([01]?[0-9]|2[0-3]):[0-5][0-9]", else_say="must be a time of day such as 12:00"
    )
    """When a spent quota is tried again, if the provider does not say."""
    wait_for_same_key_ms: Millis = 5_000
    """A limit that ends this soon is waited for: the prompt cache lives at that key."""


class Ntp(Section):
    enabled: bool = True
    """Whether time servers are asked how far this clock is off."""
    servers: list[str] = ["time.google.com", "time.cloudflare.com", "pool.ntp.org"]
    """Where there are several, two must agree."""
    timeout_ms: Timeout = 800
    stale_after_ms: Timeout = 21_600_000
    """An older answer is called stale."""


class Clock(Section):
    enabled: bool = True
    """`false`: a model that still calls the tool is told so."""
    retention_ms: Millis = 1_200_000
    """So long after its time a reminder may still come."""
    due_window_ms: Millis = 60_000
    """So long before its time a reminder is due."""
    tick_ms: Millis = 60_000
    """How often old reminders are removed; 0: only at the start."""
    hold_non_streaming: bool = True
    """Answers that are not streamed are held, too."""
    hold_max_ms: Millis = 60_000
    """So long at most an answer is held for a reminder that is nearly due; 0: never."""
    ntp: Ntp = Ntp()


class StopMessage(Section):
    enabled: bool = True
    max_total_ms: Timeout = 900_000
    """A turn carries on no longer than this."""
    identical_rounds: int = field(10, ge=2, le=1_000_000)
    """It stops when the model says the same so often."""


Dollars = Annotated[float, field(ge=0, le=1_000_000)]


class Price(Section):
    input: Dollars
    """Dollars for a million tokens that are read."""
    output: Dollars
    """… that are written."""
    cached: Dollars | None = None
    """… that come from the provider's cache; unsaid, as `input`."""
    written: Dollars | None = None
    """… that go into it."""


class Usage(Section):
    enabled: bool = True
    """Whether it is written down what calls cost."""
    retention_days: int = field(400, ge=1, le=36_500)
    """How long."""
    prices: dict[str, Price] = {}
    """By `provider.model`, model or provider; they come before the table of the release."""


class Telemetry(Section):
    prometheus: bool = False
    """Whether `/metrics` tells numbers, where the page `/routecodex` is served and to whom it is."""
    otlp: str | None = None
    """A collector that takes OTLP over HTTP as JSON, such as `http://127.0.0.1:4318`: it is sent spans and numbers."""
    headers: dict[str, str] = field({})
    """Sent with each of them; `${NAME}` may stand in it."""
    content: bool = False
    """Whether spans hold what the person typed last."""


class VirtualRouter(Section):
    providers: dict[str, Provider] = {}
    """By name. `origin` (where the tool was going) and `echo` (answers by itself) are built in."""
    routing: dict[str, list[Pool]] = {}
    """Routes by name, each a list of targets or of pools; `default` must be there."""
    classifier: Classifier = Classifier()
    load_balancing: LoadBalancing = LoadBalancing()
    """For pools that say nothing themselves."""
    context_routing: ContextRouting = ContextRouting()
    health: Health = Health()
    clock: Clock | None = None
    """Without this section there is no clock."""
    stop_message: StopMessage = StopMessage()


class Document(Section):
    proxy: Proxy = Proxy()
    sessions: Sessions = Sessions()
    finish_reasons: FinishReasons = FinishReasons()
    sticky: Sticky = Sticky()
    retries: Retries = Retries()
    usage: Usage = Usage()
    telemetry: Telemetry = Telemetry()
    virtualrouter: VirtualRouter = VirtualRouter()
    notices: bool = True
    """Whether one line before an answer's first text says what changed without your asking; no model sees it."""
    admins: list[str] = []
    """Who of a team sees everybody's sessions, calls and usage (docs/team.md)."""
    plugins: list[str] = []
    """Python files, beside this file; and the built-in `empty_reply` (an empty answer is asked for once more)."""
