"""From the checked document to the configuration in force."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from ..router.registry import Classifier, HealthSettings, Provider, Registry
from ..usage.prices import Price
from . import schema
from .environment import expand, unset
from .hosts import OFFICIAL_HOSTS, check_store, read_host
from .notes import Notes
from .providers import build_providers
from .routes import build_routes
from .values import Clock, Config, FinishReasons, Ntp, StopSettings, TelemetrySettings, UsageSettings

THINKING = ("think step", "analysis", "reasoning", "仔细思考", "深入思考", "逐步思考", "分析", "推理")
BACKGROUND = ("background", "context dump", "上下文", "后台")

_EMPTY_REPLY = frozenset({"empty_reply", "gemini_empty_reply_continue"})
_REFUSED_PLUGIN = "vision_auto"


def build(document: schema.Document, env: Mapping[str, str], notes: Notes) -> Config:
    """The configuration; worth nothing where `notes` holds a problem afterwards."""
    router = document.virtualrouter
    providers = build_providers(router.providers, env, notes)
    routes = build_routes(router, providers, notes)
    plugins, empty_reply = _build_plugins(document.plugins, notes)
    timeouts, finish, stop = document.proxy.timeouts, document.finish_reasons, router.stop_message
    return Config(
        registry=Registry(
            providers=providers,
            routes=routes,
            classifier=_build_classifier(router.classifier),
            warn_ratio=min(0.99, max(0.1, router.context_routing.warn_ratio)),
            hard_limit=router.context_routing.hard_limit,
            on_exhausted=document.sticky.on_exhausted,
            health=_build_health(router.health),
        ),
        intercept_hosts=_build_hosts(document.proxy.intercept_hosts, providers, notes),
        allow_remote_clients=document.proxy.allow_remote_clients,
        admins=frozenset(document.admins),
        codex_web_socket=document.proxy.codex_web_socket,
        first_byte_s=timeouts.first_byte_ms / 1000,
        idle_s=timeouts.idle_ms / 1000,
        content_s=timeouts.content_ms / 1000,
        derive=document.sessions.derive,
        store=_build_store(document.sessions.store, env, notes),
        on_store_lost=document.sessions.on_store_lost,
        retention_days=document.sessions.retention_days,
        typed_in=tuple(dict.fromkeys(document.sessions.typed_in)),
        max_attempts=document.retries.max_attempts,
        notices=document.notices,
        finish_reasons=FinishReasons(finish.tool_use_message_stop, finish.content_filter, finish.log),
        clock=_build_clock(router.clock, notes),
        stop=StopSettings(stop.enabled, stop.max_total_ms / 1000, stop.identical_rounds),
        usage=_build_usage(document.usage),
        telemetry=_build_telemetry(document.telemetry, env, notes),
        empty_reply=empty_reply,
        plugins=plugins,
    )


def _build_usage(document: schema.Usage) -> UsageSettings:
    prices = {name: Price(one.input, one.output, one.cached, one.written) for name, one in document.prices.items()}
    return UsageSettings(document.enabled, document.retention_days, prices)


def _build_telemetry(document: schema.Telemetry, env: Mapping[str, str], notes: Notes) -> TelemetrySettings:
    headers: dict[str, str] = {}
    for name, text in document.headers.items():
        full = expand(text, env, notes)
        if full.missing:
            notes.warn(("telemetry", "headers", name), f"{unset(full)}: sent without it")
        else:
            headers[name] = full.text
    otlp = (document.otlp or "").rstrip("/")
    if otlp and urlsplit(otlp).scheme not in ("http", "https"):
        notes.refuse(("telemetry", "otlp"), f"must be an address such as http://127.0.0.1:4318: {notes.quote(otlp)}")
    return TelemetrySettings(document.prometheus, otlp, headers, document.content)


def _build_hosts(written: list[str] | None, providers: Mapping[str, Provider], notes: Notes) -> tuple[str, ...]:
    """The list of the file, else the official one; a configured provider's own hosts always."""
    hosts: dict[str, None] = dict.fromkeys(OFFICIAL_HOSTS if written is None else ())
    for place, text in enumerate(written or ()):
        try:
            hosts[read_host(text)] = None
        except ValueError as error:
            notes.refuse(("proxy", "interceptHosts", place), f"{error}: {notes.quote(text)}")
    for provider in providers.values():
        hosts.update((url.host, None) for url in provider.endpoints.values())
    return tuple(hosts)


def _build_store(text: str, env: Mapping[str, str], notes: Notes) -> str:
    place = ("sessions", "store")
    full = expand(text, env, notes)
    if full.missing:
        notes.refuse(place, f"{unset(full)}: set it, or write store: files")
    elif full.text != "files":
        try:
            check_store(full.text)
        except ValueError as error:
            notes.refuse(place, str(error))
    return full.text


def _build_plugins(written: list[str], notes: Notes) -> tuple[tuple[str, ...], bool]:
    """Files of one's own, and whether the built-in `empty_reply` is wanted."""
    files: list[str] = []
    for place, text in enumerate(written):
        at = ("plugins", place)
        if text == _REFUSED_PLUGIN:
            notes.refuse(at, f"{_REFUSED_PLUGIN} is not needed: images choose the vision route by themselves")
        elif text not in _EMPTY_REPLY and not text.endswith(".py"):
            notes.refuse(at, f"must be a .py file or empty_reply: {notes.quote(text)}")
        elif text not in _EMPTY_REPLY:
            files.append(text)
    return tuple(dict.fromkeys(files)), any(text in _EMPTY_REPLY for text in written)


def _build_classifier(document: schema.Classifier) -> Classifier:
    """Coding is told by the last tool and vision by images, so only two routes have keywords of their own accord."""
    return Classifier(
        long_context_tokens=document.long_context_threshold_tokens,
        thinking_keywords=_keywords(document.thinking_keywords, THINKING),
        coding_keywords=_keywords(document.coding_keywords, ()),
        background_keywords=_keywords(document.background_keywords, BACKGROUND),
        vision_keywords=_keywords(document.vision_keywords, ()),
        background_models=tuple(document.background_models),
    )


def _keywords(written: list[str] | None, usual: tuple[str, ...]) -> tuple[str, ...]:
    """An empty keyword would be found in every text."""
    return usual if written is None else tuple(word for word in written if word.strip())


def _build_health(document: schema.Health) -> HealthSettings:
    return HealthSettings(
        rate_ladder_s=tuple(step / 1000 for step in document.rate_limit_ladder_ms),
        server_ladder_s=tuple(step / 1000 for step in document.server_error_ladder_ms),
        server_trip_s=document.server_error_trip_ms / 1000,
        auth_trip_s=document.auth_trip_ms / 1000,
        quota_reset=document.quota_reset_time,
        wait_for_same_key_s=document.wait_for_same_key_ms / 1000,
    )


def _build_clock(document: schema.Clock | None, notes: Notes) -> Clock | None:
    if document is None or not document.enabled:
        return None
    for place, server in enumerate(document.ntp.servers):
        try:
            read_host(server)
        except ValueError as error:
            notes.refuse(("virtualrouter", "clock", "ntp", "servers", place), f"{error}: {notes.quote(server)}")
    return Clock(
        retention_ms=document.retention_ms,
        due_window_ms=document.due_window_ms,
        tick_ms=document.tick_ms,
        hold_non_streaming=document.hold_non_streaming,
        hold_max_ms=document.hold_max_ms,
        ntp=Ntp(document.ntp.enabled, tuple(document.ntp.servers), document.ntp.timeout_ms, document.ntp.stale_after_ms),
    )
