"""Texts and what becomes of them: values in force, exact messages, warnings."""

from __future__ import annotations

from pathlib import Path

import pytest

from routecodex.routing.config import FILE_NAME, OFFICIAL_HOSTS, Clock, Config, FinishReasons, Ntp, StopSettings, find, load, read
from routecodex.routing.config.values import TelemetrySettings
from routecodex.routing.errors import ConfigError
from routecodex.routing.router.registry import Key, Model, Url
from routecodex.routing.usage.prices import Price
from routecodex.routing.values import Dialect, Target

ROUTED = "virtualrouter: {routing: {default: [origin]}}\n"
NO_STORE = (
    "must be files or an address such as redis://user:password@host:6379/0 "
    "(in a password : / ? # @ % are written %3A %2F %3F %23 %40 %25)"
)
GLM = """\
virtualrouter:
  providers:
    glm:
      protocol: openai-chat
      baseURL: https://open.bigmodel.cn/api/paas/v4
      auth: {type: apikey, keys: [{alias: primary, value: "${GLM_KEY}"}, {alias: backup, value: second-secret}]}
      models: {glm-4.7: {maxContext: 128000}, "odd:7": {}, "vendor/x@4bit.q:free": {aliases: [free]}}
  routing:
    default: [ROUTE]
"""
NAMED = """\
virtualrouter:
  providers:
    NAME: {baseURL: 'https://a.example', auth: none}
  routing: {default: [origin]}
"""
KEYED = {"GLM_KEY": "first-secret"}


def tconfig(text: str, env: dict[str, str] | None = None) -> Config:
    return read(text, name="mitm-config.yaml", env=env or {})


def tglm(route: str, env: dict[str, str] = KEYED) -> Config:
    return tconfig(GLM.replace("ROUTE", route), env)


def tprovider(lines: str, env: dict[str, str] | None = None) -> Config:
    """One provider `p` with these lines, the first of which is line 4."""
    body = "".join(f"      {line}\n" for line in lines.splitlines())
    return tconfig(f"virtualrouter:\n  providers:\n    p:\n{body}  routing: {{default: [origin]}}\n", env)


def refusal(text: str, env: dict[str, str] | None = None) -> str:
    with pytest.raises(ConfigError) as caught:
        tconfig(text, env)
    return str(caught.value)


# --- what is in force ------------------------------------------------------------------------------------------------


def test_defaults_of_a_file_that_only_routes() -> None:
    config = tconfig(ROUTED)
    assert config.intercept_hosts == OFFICIAL_HOSTS
    assert (config.allow_remote_clients, config.first_byte_s, config.idle_s) == (False, 120.0, 300.0)
    assert config.codex_web_socket == "refuse"
    assert (config.derive, config.store, config.retention_days, config.max_attempts) == ("routing", "files", 30, 6)
    assert config.typed_in == ()
    assert config.finish_reasons == FinishReasons("always", "stop_sequence", False)
    assert config.clock is None
    assert config.stop == StopSettings(True, 900.0, 10)
    assert (config.empty_reply, config.plugins, config.warnings) == (False, (), ())
    assert "reasoning" in config.registry.classifier.thinking_keywords
    assert "推理" in config.registry.classifier.thinking_keywords
    assert "上下文" in config.registry.classifier.background_keywords
    with pytest.raises(AttributeError):
        config.idle_s = 1.0  # type: ignore[misc]


def test_every_setting_can_be_set() -> None:
    config = tconfig(
        """
proxy:
  interceptHosts: [API.Example.com., "*.example.org", "bücher.example"]
  allowRemoteClients: yes
  codexWebSocket: serve
  timeouts: {firstByteMs: 1500, idleMs: 2_500, contentMs: 3500}
sessions: {derive: off, store: "redis://:${PW}@cache:6379/1", retentionDays: 7, typedIn: [userRequest, "a:b"]}
finishReasons: {toolUseMessageStop: never, contentFilter: refusal, log: true}
telemetry: {prometheus: true, otlp: "http://127.0.0.1:4318/", headers: {x-team: "a ${PW}"}, content: true}
sticky: {onExhausted: keep}
retries: {maxAttempts: 3}
virtualrouter:
  routing: {default: [origin]}
  classifier: {longContextThresholdTokens: 5, thinkingKeywords: [hm, ""], codingKeywords: [], backgroundModels: ["*haiku*"]}
  contextRouting: {warnRatio: 5, hardLimit: true}
  health:
    {rateLimitLadderMs: [1000], serverErrorLadderMs: [2000], serverErrorTripMs: 3000, authTripMs: 4000,
     quotaResetTime: 6:30, waitForSameKeyMs: 0}
  clock:
    {retentionMs: 1, dueWindowMs: 2, tickMs: 0, holdNonStreaming: false, holdMaxMs: 4,
     ntp: {enabled: false, servers: [a.example], timeoutMs: 5, staleAfterMs: 6}}
  stopMessage: {enabled: false, maxTotalMs: 1500, identicalRounds: 3}
plugins: [one.py, empty_reply]
""",
        {"PW": "redis-password"},
    )
    assert config.intercept_hosts == ("api.example.com", "*.example.org", "xn--bcher-kva.example")
    assert (config.allow_remote_clients, config.first_byte_s, config.idle_s, config.content_s) == (True, 1.5, 2.5, 3.5)
    assert config.codex_web_socket == "serve"
    assert (config.derive, config.store, config.retention_days) == ("off", "redis://:redis-password@cache:6379/1", 7)
    assert config.typed_in == ("userRequest", "a:b")
    assert config.finish_reasons == FinishReasons("never", "refusal", True)
    assert config.telemetry == TelemetrySettings(True, "http://127.0.0.1:4318", {"x-team": "a redis-password"}, True)
    assert (config.registry.on_exhausted, config.max_attempts) == ("keep", 3)
    assert (config.registry.warn_ratio, config.registry.hard_limit) == (0.99, True)
    classifier = config.registry.classifier
    assert (classifier.long_context_tokens, classifier.thinking_keywords, classifier.coding_keywords) == (5, ("hm",), ())
    assert classifier.background_models == ("*haiku*",)
    health = config.registry.health
    assert (health.rate_ladder_s, health.server_ladder_s, health.server_trip_s) == ((1.0,), (2.0,), 3.0)
    assert (health.auth_trip_s, health.quota_reset, health.wait_for_same_key_s) == (4.0, "6:30", 0.0)
    assert config.clock == Clock(1, 2, 0, False, 4, Ntp(False, ("a.example",), 5, 6))
    assert config.stop == StopSettings(False, 1.5, 3)
    assert (config.plugins, config.empty_reply) == (("one.py",), True)


@pytest.mark.parametrize(
    "clock, expected",
    [
        pytest.param("", None, id="missing"),
        pytest.param("clock:", None, id="all-commented-out"),
        pytest.param("clock: {enabled: false}", None, id="off"),
        pytest.param('clock: {enabled: "true"}', Clock(), id="text-true"),
        pytest.param("clock: {enabled: 1}", Clock(), id="one"),
        pytest.param("clock: {tickMs: 5}", Clock(tick_ms=5), id="present"),
    ],
)
def test_clock_is_off_where_nobody_switched_it_on(clock: str, expected: Clock | None) -> None:
    assert tconfig(f"virtualrouter:\n  routing: {{default: [origin]}}\n  {clock}\n").clock == expected


def test_a_provider_in_full() -> None:
    config = tprovider(
        """\
protocol: anthropic-messages
baseURL: https://[2001:DB8::1]:8443/base/
endpoints: {openai-chat: http://localhost/v1}
auth: {keys: [one-secret, {alias: two, value: "x-${TWO}"}]}
models: {4.10: {maxContext: 10, maxTokens: 5, aliases: [1.20], vision: false}, plain: }
headers: {X-Team: "${TEAM}", X-Gone: "${GONE}"}
serverTools: false
countTokens: true""",
        {"TWO": " two-secret\n", "TEAM": "blue"},
    )
    provider = config.registry.providers["p"]
    assert provider.dialect is Dialect.MESSAGES
    assert provider.endpoints == {
        Dialect.MESSAGES: Url("https", "2001:db8::1", 8443, "/base"),
        Dialect.CHAT: Url("http", "localhost", 80, "/v1"),
    }
    assert provider.keys == (Key("key1", 1, "one-secret"), Key("two", 2, "x-two-secret"))
    assert provider.models == {"4.10": Model("4.10", 10, 5, ("1.20",), False), "plain": Model("plain")}
    assert (provider.headers, provider.server_tools, provider.count_tokens) == ({"x-team": "blue"}, False, True)
    assert config.intercept_hosts[-2:] == ("2001:db8::1", "localhost")
    assert config.warnings == ("mitm-config.yaml:9: GONE is not set: p is asked without the header x-gone",)


@pytest.mark.parametrize(
    "lines, dialect",
    [
        pytest.param("type: claude-code\nbaseURL: https://a.example", Dialect.MESSAGES, id="claude"),
        pytest.param("providerType: OpenAI-Responses\nbaseURL: https://a.example", Dialect.RESPONSES, id="responses"),
        pytest.param("type: gemini-cli\nbaseURL: https://a.example", Dialect.GEMINI, id="gemini"),
        pytest.param("type: something-else\nbaseURL: https://a.example", Dialect.CHAT, id="anything-else"),
        pytest.param(
            "type: openai\nprotocol: anthropic-messages\nbaseURL: https://a.example", Dialect.MESSAGES, id="protocol-first"
        ),
        pytest.param("baseURL: https://a.example", Dialect.CHAT, id="neither"),
        pytest.param("endpoints: {gemini-chat: https://a.example}", Dialect.GEMINI, id="only-endpoints"),
    ],
)
def test_the_dialect_of_a_provider(lines: str, dialect: Dialect) -> None:
    provider = tprovider(f"{lines}\nauth: none").registry.providers["p"]
    assert provider.dialect is dialect
    assert set(provider.endpoints) == {dialect}


def test_a_provider_without_protocol_is_known_by_its_name() -> None:
    text = "providers: {my-claude: {baseURL: 'https://a.example', auth: client}}\nrouting: {default: [origin]}"
    assert tconfig(text).registry.providers["my-claude"].dialect is Dialect.MESSAGES


def test_origin_and_echo_are_always_there() -> None:
    providers = tconfig(ROUTED).registry.providers
    assert list(providers) == ["origin", "echo"]
    for name, alias, auth in (("origin", "client", "client"), ("echo", "local", "none")):
        provider = providers[name]
        assert (provider.dialect, provider.endpoints, provider.models) == (None, {}, {})
        assert (provider.keys, provider.auth) == ((Key(alias, 1),), auth)


@pytest.mark.parametrize("name", ["origin", "echo", "Echo"])
def test_nobody_redefines_what_is_built_in(name: str) -> None:
    text = NAMED.replace("NAME", name)
    assert refusal(text) == f"mitm-config.yaml:3: virtualrouter.providers.{name}: is built in: choose another name"


# --- credentials -----------------------------------------------------------------------------------------------------

_BASE = "baseURL: https://a.example/v1\n"
_NO_AUTH = (
    'add auth: {type: apikey, keys: [{alias: primary, value: "${YOUR_KEY}"}]}, '
    "or auth: {type: none} for a server without keys, or auth: {type: client} to pass the caller's own credential on"
)


@pytest.mark.parametrize(
    "auth, keys, kind",
    [
        pytest.param('auth: {apiKey: ""}', (Key("key1", 1, ""),), "apikey", id="V20-empty-on-purpose"),
        pytest.param("auth: {type: API-Key, apiKey: k}", (Key("key1", 1, "k"),), "apikey", id="one-apiKey"),
        pytest.param("auth: {apiKey: [k, l]}", (Key("key1", 1, "k"), Key("key2", 2, "l")), "apikey", id="apiKey-list"),
        pytest.param("auth: {apiKeys: k}", (Key("key1", 1, "k"),), "apikey", id="apiKeys-text"),
        pytest.param("apiKey: k", (Key("key1", 1, "k"),), "apikey", id="beside-baseURL"),
        pytest.param("auth: {keys: {a: k, b: {apiKey: l}}}", (Key("a", 1, "k"), Key("b", 2, "l")), "apikey", id="map"),
        pytest.param(
            "auth: {entries: [{alias: a, value: k}, {alias: a, value: l}, {alias: a, key: m}]}",
            (Key("a", 1, "k"), Key("a_1", 2, "l"), Key("a_2", 3, "m")),
            "apikey",
            id="same-alias",
        ),
        pytest.param("auth: {value: k, alias: a}", (Key("a", 1, "k"),), "apikey", id="straight-into-auth"),
        pytest.param("auth: {type: client}", (Key("client", 1),), "client", id="client"),
        pytest.param("auth: {type: none}", (Key("local", 1),), "none", id="none"),
        pytest.param("auth: none", (Key("local", 1),), "none", id="none-short"),
    ],
)
def test_forms_of_credentials(auth: str, keys: tuple[Key, ...], kind: str) -> None:
    config = tprovider(_BASE + auth)
    assert (config.registry.providers["p"].keys, config.registry.providers["p"].auth) == (keys, kind)
    assert config.warnings == ()


@pytest.mark.parametrize(
    "auth, env, warning",
    [
        pytest.param('{apiKey: "${NOPE}"}', {}, "mitm-config.yaml:5: NOPE is not set: key p.key1 is off", id="V20-unset"),
        pytest.param(
            '{apiKey: "${NOPE}"}', {"NOPE": " "}, "mitm-config.yaml:5: NOPE is empty: key p.key1 is off", id="V20-blank"
        ),
        pytest.param(
            '{apiKey: "${A}${B}"}', {}, "mitm-config.yaml:5: A and B are not set: key p.key1 is off", id="V20-two-in-one"
        ),
        pytest.param(
            "{keys: {key1: {secretRef: x.y}}}",
            {},
            "mitm-config.yaml:5: secret references and token files are not read here: key p.key1 is off",
            id="secretRef",
        ),
        pytest.param(
            "{type: p-oauth, tokenFile: x, clientId: y}",
            {},
            "mitm-config.yaml:5: logins by OAuth are not used here: p is off (auth: {type: client} passes the caller's own on)",
            id="oauth",
        ),
    ],
)
def test_a_key_without_value_is_off_and_the_provider_known(auth: str, env: dict[str, str], warning: str) -> None:
    config = tprovider(f"{_BASE}auth: {auth}", env)
    assert config.registry.providers["p"].keys == (Key("key1", 1, "", off=True),)
    assert config.warnings == (warning,)


@pytest.mark.parametrize(
    "auth, message",
    [
        pytest.param("", f"3: virtualrouter.providers.p: no auth: {_NO_AUTH}", id="V20-no-auth"),
        pytest.param("auth:", f"3: virtualrouter.providers.p: no auth: {_NO_AUTH}", id="V20-commented-out"),
        pytest.param("auth: {type: apikey}", f"5: virtualrouter.providers.p.auth: no keys: {_NO_AUTH}", id="V20-no-keys"),
        pytest.param("auth: {keys: []}", f"5: virtualrouter.providers.p.auth: no keys: {_NO_AUTH}", id="V20-empty-list"),
        pytest.param(
            "auth: {keys: [{alias: a}]}",
            '5: virtualrouter.providers.p.auth.keys[0]: no value: write value: "${YOUR_KEY}", or value: "" for none on purpose',
            id="no-value",
        ),
        pytest.param(
            "auth:\n  keys:\n    a:\n",
            '7: virtualrouter.providers.p.auth.keys.a: no value: write value: "${YOUR_KEY}", or value: "" for none on purpose',
            id="no-value-in-map",
        ),
        pytest.param(
            'auth: {apiKey: "${A:-b}"}',
            "5: virtualrouter.providers.p.auth.apiKey: holds a ${ that is neither ${NAME} nor ${file:PATH}",
            id="shell-default",
        ),
        pytest.param(
            'auth: {apiKey: "canary\\nx: y"}',
            "5: virtualrouter.providers.p.auth.apiKey: holds characters that a header cannot carry",
            id="line-break",
        ),
        pytest.param(
            "auth: {type: magic, apiKey: k}",
            '5: virtualrouter.providers.p.auth.type: unknown type "magic": one of apikey, client, none',
            id="type",
        ),
        pytest.param(
            "auth: {type: client, apiKey: k}",
            "5: virtualrouter.providers.p.auth: keys have no use with type client: remove them, or write type: apikey",
            id="client-with-key",
        ),
        pytest.param(
            "auth: {keys: [{alias: a b, value: k}]}",
            "5: virtualrouter.providers.p.auth.keys[0].alias: an alias is typed in tags: only letters, digits, _ and -",
            id="alias",
        ),
    ],
)
def test_credentials_that_cannot_be(auth: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        tprovider(_BASE + auth)
    assert str(caught.value) == f"mitm-config.yaml:{message}"


# --- routes ----------------------------------------------------------------------------------------------------------

_BOTH = (Target("glm", "primary", "glm-4.7"), Target("glm", "backup", "glm-4.7"))


@pytest.mark.parametrize(
    "written, targets",
    [
        pytest.param("origin", (Target("origin", "client", ""),), id="origin"),
        pytest.param("origin.some.model:x", (Target("origin", "client", "some.model:x"),), id="origin-model"),
        pytest.param("echo", (Target("echo", "local", ""),), id="echo"),
        pytest.param("glm.glm-4.7", _BOTH, id="all-keys"),
        pytest.param("glm.backup.glm-4.7", _BOTH[1:], id="alias"),
        pytest.param("glm.1.glm-4.7", _BOTH[:1], id="place"),
        pytest.param('"glm[backup].glm-4.7"', _BOTH[1:], id="brackets"),
        pytest.param("glm.glm-4.7, glm.backup.glm-4.7", _BOTH, id="no-target-twice"),
        pytest.param("glm.primary.glm-4.7, glm.backup.glm-4.7:200", _BOTH[::-1], id="priority-suffix"),
        pytest.param('"glm.primary.odd:7"', (Target("glm", "primary", "odd:7"),), id="name-that-looks-like-a-suffix"),
        pytest.param(
            '"glm.primary.vendor/x@4bit.q:free"', (Target("glm", "primary", "vendor/x@4bit.q:free"),), id="odd-characters"
        ),
        pytest.param("glm.backup.free", (Target("glm", "backup", "vendor/x@4bit.q:free"),), id="model-alias"),
        pytest.param("echo:5, origin:6", (Target("origin", "client", ""), Target("echo", "local", "")), id="suffix-of-built-in"),
    ],
)
def test_targets(written: str, targets: tuple[Target, ...]) -> None:
    (pool,) = tglm(written).registry.routes["default"]
    assert pool.targets == targets
    assert (pool.id, pool.mode, pool.backup) == ("default:pool0", "round-robin", False)


def test_keys_that_are_off_are_in_no_pool() -> None:
    config = tglm("glm.glm-4.7, glm.primary.glm-4.7", {})
    assert config.registry.routes["default"][0].targets == _BOTH[1:]
    assert config.warnings == ("mitm-config.yaml:6: GLM_KEY is not set: key glm.primary is off",)


def test_a_default_route_of_keys_that_are_off_is_warned_about() -> None:
    config = tglm("glm.primary.glm-4.7", {})
    assert config.registry.routes["default"][0].targets == ()
    assert config.warnings[-1] == "mitm-config.yaml:9: the default route has no usable target: all its keys are off"


@pytest.mark.parametrize(
    "written, sent, said",
    [
        pytest.param("  key-1 \t", "key-1", "", id="white-space-around"),
        pytest.param("$GLM_KEY", "$GLM_KEY", 'is sent as it stands: a variable is written "${NAME}"', id="shell"),
        pytest.param("$env:GLM_KEY", "$env:GLM_KEY", 'is sent as it stands: a variable is written "${NAME}"', id="powershell"),
        pytest.param("%GLM_KEY%", "%GLM_KEY%", 'is sent as it stands: a variable is written "${NAME}"', id="windows"),
        pytest.param("{{ GLM_KEY }}", "{{ GLM_KEY }}", 'is sent as it stands: a variable is written "${NAME}"', id="template"),
        pytest.param(
            "Bearer key-1",
            "Bearer key-1",
            "begins with Bearer: write the key alone",
            id="bearer",
        ),
        pytest.param("GLM_KEY=k1", "GLM_KEY=k1", "begins with a variable's name and =: write the key alone", id="assignment"),
        pytest.param("${QUOTED}", '"key-1"', "is sent with the quotes around it: take them out", id="quotes"),
        pytest.param("key 1", "key 1", "has white space in it: no provider gives such keys", id="white-space-within"),
    ],
)
def test_keys_that_can_hardly_be_ones(written: str, sent: str, said: str) -> None:
    lines = f"baseURL: http://localhost/v1\nauth: {{keys: [{{alias: one, value: '{written}'}}]}}".replace("\t", " ")
    config = tprovider(lines, {"QUOTED": '"key-1"'})
    assert [key.value for key in config.registry.providers["p"].keys] == [sent]
    assert config.warnings == ((f"mitm-config.yaml:5: key p.one {said}",) if said else ())


def test_a_provider_that_declares_no_models_takes_any() -> None:
    text = """
providers: {lm: {baseURL: "http://localhost:1234/v1", auth: none}}
routing: {default: [lm.qwen3, lm.local.a.b, "lm.gemma3:4b", "lm.x:7"]}
"""
    (pool,) = tconfig(text).registry.routes["default"]
    assert [target.model for target in pool.targets] == ["qwen3", "a.b", "gemma3:4b", "x"]


def test_a_disabled_provider_is_known_but_in_no_pool() -> None:
    config = tconfig(GLM.replace("protocol: openai-chat", "enabled: false").replace("ROUTE", "origin, glm.glm-4.7"), KEYED)
    assert config.registry.providers["glm"].enabled is False
    assert [target.provider for target in config.registry.routes["default"][0].targets] == ["origin"]


def test_a_provider_whose_address_is_not_set_is_off() -> None:
    config = tprovider('baseURL: "https://${HOST}/v1"\nauth: none')
    assert config.registry.providers["p"].enabled is False
    assert config.warnings == ("mitm-config.yaml:4: HOST is not set: provider p is off",)


POOLS = """
virtualrouter:
  loadBalancing: {strategy: sticky, weights: {echo: 2}}
  routing:
    default:
      - {id: b, targets: [echo], backup: true, priority: 99}
      - {id: ten, targets: [echo], priority: 10, mode: round-robin}
      - {id: twenty, targets: [origin], priority: 20, loadBalancing: {strategy: Weighted, weights: {origin: 1.5}}}
      - {targets: [origin]}
      - {id: also, targets: [origin], priority: 1, mode: PRIORITY}
    vision: []
    search: [echo]
"""


def test_pools_are_sorted() -> None:
    routes = tconfig(POOLS).registry.routes
    assert list(routes) == ["default", "search"]
    assert [(pool.id, pool.priority, pool.mode, dict(pool.weights)) for pool in routes["default"]] == [
        ("twenty", 20, "weighted", {"origin": 1.5}),
        ("ten", 10, "round-robin", {"echo": 2.0}),
        ("default:pool3", 2, "sticky", {"echo": 2.0}),
        ("also", 1, "priority", {"echo": 2.0}),
        ("b", 99, "sticky", {"echo": 2.0}),
    ], "V01"


def test_weights_alone_are_a_wish_for_weighted() -> None:
    text = "loadBalancing: {weights: {echo: 2}}\nrouting: {default: [echo, origin]}"
    assert tconfig(text).registry.routes["default"][0].mode == "weighted"


@pytest.mark.parametrize(
    "routing, message",
    [
        pytest.param("{}", "missing: every call needs a route in the end; write default: [origin]", id="V06-none"),
        pytest.param("{default: []}", "missing: every call needs a route in the end; write default: [origin]", id="V06-empty"),
        pytest.param(
            "{vision: [origin]}", "missing: every call needs a route in the end; write default: [origin]", id="V06-other"
        ),
        pytest.param(
            "{default: [{targets: [origin], backup: true}]}",
            "holds only backup pools: one pool must be a normal one",
            id="V06-only-backup",
        ),
    ],
)
def test_no_default_route(routing: str, message: str) -> None:
    assert refusal(f"virtualrouter:\n  routing: {routing}\n") == f"mitm-config.yaml:2: virtualrouter.routing.default: {message}"


@pytest.mark.parametrize(
    "written, message",
    [
        pytest.param("glm.glm-4.6", '[0]: glm declares no model "glm-4.6" (nearest: glm-4.7)', id="V07-model"),
        pytest.param("glm.backup.glm-9", '[0]: glm declares no model "glm-9" (nearest: glm-4.7)', id="V07-model-of-key"),
        pytest.param("origin, gml.glm-4.7", '[1]: unknown provider "gml" (did you mean glm?)', id="V07-provider"),
        pytest.param("zzzzzz", '[0]: unknown provider "zzzzzz" (known: origin, echo, glm)', id="V07-nothing-near"),
        pytest.param("glm", "[0]: names no model: write glm.glm-4.7", id="V07-no-model"),
        pytest.param("glm.backup", "[0]: names no model: write glm.backup.glm-4.7", id="V07-key-only"),
        pytest.param('"glm[x].glm-4.7"', '[0]: glm has no key "x" (known: primary, backup)', id="V07-key"),
    ],
)
def test_targets_that_are_not_there(written: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        tglm(written)
    assert str(caught.value) == f"mitm-config.yaml:9: virtualrouter.routing.default{message}"


# --- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, message",
    [
        pytest.param("", "mitm-config.yaml: the file is empty", id="empty"),
        pytest.param("# only words\n", "mitm-config.yaml: the file is empty", id="only-comments"),
        pytest.param("- a\n", "mitm-config.yaml:1: the file must hold named sections (name: value)", id="list"),
        pytest.param("a: 1\na: 2\n", "mitm-config.yaml:2: the same key stands twice here (first in line 1)", id="twice"),
        pytest.param("? [a]\n: b\n", "mitm-config.yaml:1: a key must be plain text", id="key"),
        pytest.param(
            "proxy:\n  interceptHosts:\n    - *.example.com\n",
            "mitm-config.yaml:3: not valid YAML: a text that begins with * needs quotes",
            id="bare-star",
        ),
        pytest.param(
            "a: b\n c: d\n",
            "mitm-config.yaml:2: not valid YAML: "
            "a colon that cannot stand here: check the indentation or put the text into quotes",
            id="indentation",
        ),
        *(
            pytest.param(f"{text}\n", f"mitm-config.yaml:{line}: not valid YAML: {said}", id=name)
            for name, text, line, said in (
                ("tab", "a:\n\tb: c", 2, "a tab that cannot stand here: write spaces"),
                ("tab-behind", "a: b\t", 1, "a tab that cannot stand here: write spaces"),
                ("at", "a: @b", 1, "a character that cannot stand here: put the text into quotes"),
                ("bare-variable", "a: [{b: ${C}}]", 1, 'a text with braces, such as ${NAME}, needs quotes here: "${NAME}"'),
                ("typographic", "a: {b: “${C}”}", 1, 'a text with braces, such as ${NAME}, needs quotes here: "${NAME}"'),
                ("open", "a: {b: c\nd: e", 2, "a comma or a closing bracket is missing before this (line 1 opened one)"),
                ("no-comma", "a: [b,\n'c' 'd']", 2, "a comma or a closing bracket is missing before this (line 1 opened one)"),
                ("closed-twice", "a: [b]]", 1, "a closing bracket that nothing opened"),
                ("dedent", "a:\n  b: 1\n c: 2", 3, "indented otherwise than the lines that it belongs to (they begin in line 1)"),
                ("apostrophe", "a: 'it's'", 1, "text behind a closing quote: use the other kind of quotes around it"),
                ("no-colon", "a:\n  b: 1\n  c\n  d: 1", 4, "line 3 is no name with a colon and a space behind it (name: value)"),
                ("open-quote", 'a: 1\nb: "c\nd: e', 4, "the quote that line 2 opened is never closed"),
                ("dash", "a: - b", 1, "a list's - cannot stand here: it begins a line of its own"),
                ("ampersand", "a: & b", 1, "a text that begins with & needs quotes"),
                ("pipe", "a: |b", 1, "a text that begins with | or > needs quotes"),
                ("no-value", "a: ,", 1, "a value is missing before this"),
                ("backslash", 'a: "C:\\keys"', 1, "a \\ begins an escape in this text: put it into single quotes"),
            )
        ),
        pytest.param(
            "a: 1\n---\nb: 2\n", "mitm-config.yaml:2: not valid YAML: only one document may stand in the file", id="two"
        ),
        pytest.param("a: \x00", "mitm-config.yaml: not valid YAML: it holds characters that text files do not have", id="nul"),
        pytest.param('a: "\\UFFFFFFFF"', "mitm-config.yaml: not valid YAML: not readable", id="character"),
        pytest.param("[" * 5000, "mitm-config.yaml: not valid YAML: too deeply nested", id="deep"),
        pytest.param(
            ROUTED + "clock: {}\n", "mitm-config.yaml:2: clock: unknown key here: it belongs under virtualrouter", id="place"
        ),
        pytest.param(ROUTED + "proxi: {}\n", "mitm-config.yaml:2: proxi: unknown key (did you mean proxy?)", id="near"),
        *(
            pytest.param(
                f"virtualrouter: {{providers: {{p: {{{word}: 1, auth: {{type: none}}}}}}}}\n",
                f"mitm-config.yaml:1: virtualrouter.providers.p.{word}: unknown key{told}",
                id=word,
            )
            for word, told in {
                "keys": " here: it belongs under auth",
                "alias": " here: it belongs under auth.keys[]",
                "api_key": " (did you mean auth.keys[].value?)",
                "url": " (did you mean baseURL?)",
                "max_context": " (did you mean maxContext, under models.NAME?)",
                "maxTokens": " here: it belongs under models.NAME",
                "priority": " here: it belongs under virtualrouter.routing.NAME[]",
                "retries": " here: it belongs to the left margin, under nothing",
                "contextWindow": "",
            }.items()
        ),
        pytest.param(ROUTED + "qqqq: {}\n", "mitm-config.yaml:2: qqqq: unknown key", id="unknown"),
        pytest.param(ROUTED + "proxy: 5\n", "mitm-config.yaml:2: proxy: must be a mapping (name: value)", id="section"),
        pytest.param(ROUTED + "plugins: x.py\n", "mitm-config.yaml:2: plugins: must be a list", id="not-a-list"),
        pytest.param(
            ROUTED + "proxy:\n  timeouts:\n    idleMs: soon\n",
            "mitm-config.yaml:4: proxy.timeouts.idleMs: must be a whole number",
            id="number",
        ),
        pytest.param(
            ROUTED + "proxy: {timeouts: {idleMs: 0}}\n", "mitm-config.yaml:2: proxy.timeouts.idleMs: must be at least 1", id="low"
        ),
        pytest.param(
            ROUTED + f"retries: {{maxAttempts: {'9' * 5000}}}\n",
            "mitm-config.yaml:2: retries.maxAttempts: is too large a number",
            id="huge",
        ),
        pytest.param(
            ROUTED + "retries: {maxAttempts: 99}\n", "mitm-config.yaml:2: retries.maxAttempts: must be at most 50", id="high"
        ),
        pytest.param(
            ROUTED + "sessions: {derive: some}\n",
            "mitm-config.yaml:2: sessions.derive: must be one of 'routing', 'all' or 'off'",
            id="choice",
        ),
        pytest.param(
            ROUTED + "sessions: {store: memcached://x}\n",
            f"mitm-config.yaml:2: sessions.store: {NO_STORE}",
            id="store",
        ),
        pytest.param(
            ROUTED + "sessions: {store: 'redis://:${PW}@x'}\n",
            "mitm-config.yaml:2: sessions.store: PW is not set: set it, or write store: files",
            id="store-unset",
        ),
        pytest.param(
            ROUTED + "sessions: {store: 'redis://[x'}\n",
            f"mitm-config.yaml:2: sessions.store: {NO_STORE}",
            id="store-address",
        ),
        pytest.param(
            ROUTED + "sessions: {store: 'redis://h?wait=nan'}\n",
            "mitm-config.yaml:2: sessions.store: wait must be a number of seconds above 0",
            id="store-wait",
        ),
        pytest.param(
            "clock: {ntp: {servers: ['a.example:123']}}\n" + "routing: {default: [origin]}\n",
            'mitm-config.yaml:1: clock.ntp.servers[0]: must be a host name without port: "a.example:123"',
            id="time-server",
        ),
        pytest.param("routing: 5\n", "mitm-config.yaml:1: routing: must be a mapping (name: value)", id="routing"),
        pytest.param("routing:\n  default: {a: [b]}\n", "mitm-config.yaml:2: routing.default.a: unknown key", id="pool-key"),
        pytest.param(
            ROUTED + "proxy: {interceptHosts: [a.example, 'https://b.example/x']}\n",
            'mitm-config.yaml:2: proxy.interceptHosts[1]: must be a host name without scheme and path: "https://b.example/x"',
            id="host",
        ),
        pytest.param(
            ROUTED + "plugins: [vision_auto]\n",
            "mitm-config.yaml:2: plugins[0]: vision_auto is not needed: images choose the vision route by themselves",
            id="vision_auto",
        ),
        pytest.param(
            ROUTED + "plugins: [other]\n",
            'mitm-config.yaml:2: plugins[0]: must be a .py file or empty_reply: "other"',
            id="plugin",
        ),
        pytest.param(
            "virtualrouter:\n  health: {quotaResetTime: 25:00, authTripMs: x}\n  routing: {default: [origin]}\n",
            "mitm-config.yaml:2: virtualrouter.health.authTripMs: must be a whole number\n"
            "mitm-config.yaml:2: virtualrouter.health.quotaResetTime: must be a time of day such as 12:00",
            id="two-at-once",
        ),
        pytest.param(
            ROUTED + "sessions: {typedIn: [pasted, 3d]}\n",
            "mitm-config.yaml:2: sessions.typedIn[1]: must be a wrapper's name such as pasted_text",
            id="wrapper",
        ),
        pytest.param(
            ROUTED + "retries: {maxAttempts: 3.5}\nnotices: [on]\nusage: {prices: {m: {input: nan, output: 1_0}}}\n",
            "mitm-config.yaml:2: retries.maxAttempts: must be a whole number\n"
            "mitm-config.yaml:3: notices: must be true or false\n"
            "mitm-config.yaml:4: usage.prices.m.input: must be a finite number",
            id="numbers",
        ),
        pytest.param(
            "virtualrouter:\n  routing:\n    default: [origin, {targets: [echo]}]\n",
            "mitm-config.yaml:3: virtualrouter.routing.default[0]: must be a mapping (name: value)",
            id="mixed-list",
        ),
        pytest.param(
            "virtualrouter:\n  routing:\n    default: [{targets: [origin], mode: dice}]\n",
            "mitm-config.yaml:3: virtualrouter.routing.default[0].mode: "
            "must be one of 'priority', 'round-robin', 'weighted' or 'sticky'",
            id="mode",
        ),
        pytest.param(
            "virtualrouter:\n  routing:\n    default: [{id: a, targets: [origin]}, {id: a, targets: []}]\n",
            'mitm-config.yaml:3: virtualrouter.routing.default[1]: a pool with the id "a" is already there\n'
            "mitm-config.yaml:3: virtualrouter.routing.default[1]: the pool has no targets",
            id="pools",
        ),
        pytest.param(
            "virtualrouter:\n  loadBalancing: {weights: {ehco.local: 2}}\n  routing: {default: [origin]}\n",
            'mitm-config.yaml:3: virtualrouter.routing.default: weights name an unknown provider "ehco" (did you mean echo?)',
            id="weights",
        ),
    ],
)
def test_files_that_are_refused(text: str, message: str) -> None:
    assert refusal(text) == message


@pytest.mark.parametrize("place", ["h:x", "h:0", "h:65536", "h/db", "h/0/x", "h#x", "h?a/b", "", "/0", "[h"])
@pytest.mark.parametrize("password", ["", "secret-word", "12"])
@pytest.mark.parametrize("between", "/?#")
def test_of_a_store_that_is_written_wrong_no_part_is_told(place: str, password: str, between: str) -> None:
    """`/`, `?` and `#` of a password end the host of an address: what a reader takes for the port is the password's beginning."""
    for address in (f"redis://user:{password}@{place}", f"redis://user:{password}{between}rest@h:6379/0"):
        assert refusal(f"{ROUTED}sessions: {{store: '{address}'}}\n") == f"mitm-config.yaml:2: sessions.store: {NO_STORE}"


@pytest.mark.parametrize(
    "address",
    [
        "redis://h",
        "rediss://h:6380/",
        "redis://user:secret%2F%23@h:6379/12?wait=.5&prefix=us",
        "redis://[::1]:6379/0",
        "redis://u:a@b:c@h/0",
        "rediss://h?ssl_ca_certs=/path/ca.pem&ssl_cert_reqs=required",
    ],
)
def test_stores_that_are_addresses(address: str) -> None:
    assert read(f"{ROUTED}sessions: {{store: '{address}'}}\n", name="mitm-config.yaml", env={}).store == address


@pytest.mark.parametrize(
    "lines, message",
    [
        pytest.param(
            "baseURL: open.bigmodel.cn", '4: virtualrouter.providers.p.baseURL: not a URL: "open.bigmodel.cn"', id="url"
        ),
        pytest.param(
            "baseURL: ftp://a.example", '4: virtualrouter.providers.p.baseURL: not a URL: "ftp://a.example"', id="scheme"
        ),
        pytest.param(
            "baseURL: https://a.example/v1/messages",
            "4: virtualrouter.providers.p.baseURL: ends with the path of anthropic-messages, which is not what is asked there"
            " (openai-chat): name its documentation's address for that, or say protocol: anthropic-messages",
            id="another dialect's path",
        ),
        pytest.param("baseUrl: https://[::1", '4: virtualrouter.providers.p.baseUrl: not a URL: "https://[::1"', id="bracket"),
        pytest.param(
            "endpoint: https://a.example:99999",
            '4: virtualrouter.providers.p.endpoint: not a URL: "https://a.example:99999"',
            id="port",
        ),
        pytest.param(
            "baseURL: https://me:canary-pw@a.example",
            "4: virtualrouter.providers.p.baseURL: must not hold a user name or password "
            '(write the credential under auth): "https://***a.example"',
            id="userinfo",
        ),
        pytest.param(
            "baseURL: https://a.example/v1?key=canary",
            '4: virtualrouter.providers.p.baseURL: must end with its path (no ? and no #): "https://a.example/v1?***"',
            id="query",
        ),
        pytest.param(
            "models: {}",
            "3: virtualrouter.providers.p: baseURL is missing: the address that the provider's documentation names",
            id="no-url",
        ),
        pytest.param(
            "baseURL: https://a.example\nbaseUrl: https://b.example",
            "5: virtualrouter.providers.p.baseUrl: says the same as baseURL: keep one of them",
            id="twice",
        ),
        pytest.param(
            "protocol: antropic\nbaseURL: https://a.example",
            '4: virtualrouter.providers.p.protocol: unknown protocol "antropic": '
            "one of anthropic-messages, openai-chat, openai-responses, gemini-chat",
            id="protocol",
        ),
        pytest.param(
            "baseURL: https://a.example\nendpoints: {chat: https://a.example}",
            "5: virtualrouter.providers.p.endpoints.chat: unknown protocol: "
            "one of anthropic-messages, openai-chat, openai-responses, gemini-chat",
            id="endpoint",
        ),
        pytest.param(
            "baseURL: https://a.example\ncompat: glm",
            "5: virtualrouter.providers.p.compat: no longer understood: remove it (the dialects are translated without it)",
            id="compat",
        ),
        pytest.param(
            "baseURL: https://a.example\ncompatibility_profile: x",
            "5: virtualrouter.providers.p.compatibility_profile: "
            "no longer understood: remove it (the dialects are translated without it)",
            id="compatibility_profile",
        ),
        pytest.param(
            "baseURL: https://a.example\nheaders: {Host: x}",
            "5: virtualrouter.providers.p.headers.Host: is not a header that can be set here",
            id="header-name",
        ),
        pytest.param(
            'baseURL: https://a.example\nheaders: {X-A: "a\\r\\nb"}',
            "5: virtualrouter.providers.p.headers.X-A: holds characters that a header cannot carry",
            id="header-value",
        ),
        pytest.param(
            "baseURL: https://a.example\nmodels: {a: {aliases: [b]}, b: {}}",
            '5: virtualrouter.providers.p.models.a.aliases[0]: "b" already names a model',
            id="model-alias",
        ),
        pytest.param(
            'baseURL: https://a.example\nmodels: {" ": {}}',
            "5: virtualrouter.providers.p.models: a model must have a name",
            id="no-name",
        ),
        pytest.param(
            "baseURL: https://a.example\nmodels: {a: {maxContext: many}}",
            "5: virtualrouter.providers.p.models.a.maxContext: must be a whole number",
            id="model-size",
        ),
        pytest.param(
            "baseURL: https://a.example\nmodels: {a: {contextWindow: -1}}",
            "5: virtualrouter.providers.p.models.a.contextWindow: must be at least 1",
            id="the-spelling-of-the-file",
        ),
    ],
)
def test_providers_that_are_refused(lines: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        tprovider(f"{lines}\nauth: none")
    assert str(caught.value) == f"mitm-config.yaml:{message}"


@pytest.mark.parametrize("name", ["a.b", "a b", "é", "12", "clear", "STATUS", "a[b]", '""'])
def test_a_providers_name_can_be_typed_in_a_tag(name: str) -> None:
    text = NAMED.replace("NAME", name)
    assert refusal(text).startswith("mitm-config.yaml:3: virtualrouter.providers")


def test_no_two_providers_share_an_id() -> None:
    text = "providers:\n  a: {baseURL: 'https://a', auth: none}\n  b: {id: a, baseURL: 'https://b', auth: none}\n"
    text += "routing: {default: [a.m]}"
    assert refusal(text) == "mitm-config.yaml:3: providers.b: a provider with this id is already there"


def test_all_problems_of_a_file_are_told_at_once() -> None:
    text = GLM.replace("ROUTE", "glm.x, y").replace("https://open", "open")
    assert [line.split(": ")[0] for line in refusal(text, KEYED).splitlines()] == [
        "mitm-config.yaml:5",
        "mitm-config.yaml:9",
        "mitm-config.yaml:9",
    ]
    both = refusal(GLM.replace("ROUTE", "nobody.x") + "nonsense: 1\nproxy: {timeouts: {idleMs: soon}}\n", KEYED)
    assert [word in both for word in ("nonsense", "idleMs", "nobody")] == [True] * 3, "what is wrong elsewhere is looked for, too"
    many = "".join(f"unknown{number}: 1\n" for number in range(50))
    lines = refusal(ROUTED + many).splitlines()
    assert (len(lines), lines[-1]) == (31, "mitm-config.yaml: … and 20 more")


@pytest.mark.parametrize(
    "text, warning",
    [
        pytest.param(
            "routing: {default: [origin], longcontxt: [echo]}",
            'no call is sorted into the route "longcontxt": did you mean longcontext?',
            id="route-slip",
        ),
        pytest.param(
            "routing: {default: [origin], longContext: [echo]}",
            'no call is sorted into the route "longContext": did you mean longcontext?',
            id="route",
        ),
        pytest.param(
            "routing: {default: [origin]}\nproviders: {p: {baseURL: 'http://a.example.com', apiKey: k}}",
            "p: http:// sends the key unencrypted to a.example.com",
            id="plain-http",
        ),
        pytest.param(
            "routing: {default: [origin]}\nproviders: {p: {baseURL: 'http://localhost', auth: {keys: {'2': k}}}}",
            "the alias 2 can be typed as provider[2] only: digits alone mean a key's place",
            id="digits",
        ),
    ],
)
def test_what_is_only_odd_is_warned_about(text: str, warning: str) -> None:
    (told,) = tconfig(text).warnings
    assert told.partition(": ")[2] == warning


@pytest.mark.parametrize(
    "env, expected",
    [
        pytest.param({"ROUTECODEX_CLOCK_NTP": "0"}, Ntp(enabled=False), id="off"),
        pytest.param({"ROUTECODEX_CLOCK_NTP": "disable"}, Ntp(enabled=False), id="off-in-a-word"),
        pytest.param({"ROUTECODEX_CLOCK_NTP": "1"}, Ntp(), id="on"),
        pytest.param(
            {"ROUTECODEX_CLOCK_NTP_SERVERS": "a.example, b.example"}, Ntp(servers=("a.example", "b.example")), id="servers"
        ),
        pytest.param({"ROUTECODEX_CLOCK_NTP_TIMEOUT_MS": "70"}, Ntp(timeout_ms=70), id="timeout"),
        pytest.param({"ROUTECODEX_CLOCK_NTP_STALE_AFTER_MS": "x"}, Ntp(), id="nonsense"),
    ],
)
def test_the_environment_beats_the_file(env: dict[str, str], expected: Ntp) -> None:
    clock = tconfig("clock: {}\nrouting: {default: [origin]}", env).clock
    assert clock is not None
    assert clock.ntp == expected
    assert tconfig(ROUTED, env).clock is None


def test_the_environment_sets_the_number_of_attempts() -> None:
    assert tconfig(ROUTED, {"ROUTECODEX_MAX_PROVIDER_ATTEMPTS": "4"}).max_attempts == 4
    for wrong in ("-1", "51", "999999999"):
        config = tconfig(ROUTED, {"ROUTECODEX_MAX_PROVIDER_ATTEMPTS": wrong})
        (warning,) = config.warnings
        assert config.max_attempts == 6
        assert "ROUTECODEX_MAX_PROVIDER_ATTEMPTS is not a whole number from 1 to 50" in warning


# --- files -----------------------------------------------------------------------------------------------------------


def test_load_resolves_plugins_beside_the_file(tmp_path: Path) -> None:
    path = tmp_path / "my.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + (ROUTED + "plugins: [mine.py]\n").encode())
    assert load(path, {}).plugins == (str(tmp_path / "mine.py"),)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: "):
        load(tmp_path / "none.yaml", {})
    with pytest.raises(ConfigError, match="cannot be read: "):
        load(tmp_path, {})
    (tmp_path / "a.yaml").write_bytes(b"a: b\nc: \xff\n")
    with pytest.raises(ConfigError, match=r"^a\.yaml:2: not UTF-8 text$"):
        load(tmp_path / "a.yaml", {})
    (tmp_path / "big.yaml").write_bytes(b"#" * 2_000_000)
    with pytest.raises(ConfigError, match="longer than"):
        load(tmp_path / "big.yaml", {})


def test_find(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Named, else of the variable, else one's own, else shipped; never the working directory's."""
    home, root, work = tmp_path / "home", tmp_path / "root", tmp_path / "work"
    for folder in (home, root, work):
        folder.mkdir()
    monkeypatch.chdir(work)
    (work / FILE_NAME).touch()
    with pytest.raises(ConfigError, match="put one there, or start with --set routecodex_config=PATH"):
        find("", {}, home, root)
    (root / FILE_NAME).touch()
    assert find("", {}, home, root) == root / FILE_NAME
    own = home / ".config" / "routecodex" / FILE_NAME
    own.parent.mkdir(parents=True)
    own.touch()
    assert find("", {}, home, root) == own
    (work / "other.yaml").touch()
    assert find("", {"ROUTECODEX_CONFIG": str(work / "other.yaml")}, home, root) == work / "other.yaml"
    assert find("other.yaml", {"ROUTECODEX_CONFIG": "gone.yaml"}, home, root) == work / "other.yaml"
    with pytest.raises(ConfigError, match=r"there is no such file \(routecodex_config names it\)"):
        find("gone.yaml", {}, home, root)
    with pytest.raises(ConfigError, match=r"there is no such file \(ROUTECODEX_CONFIG names it\)"):
        find("", {"ROUTECODEX_CONFIG": "gone.yaml"}, home, root)


def test_prices_of_ones_own() -> None:
    text = "usage:\n  retentionDays: 30\n  prices:\n    glm.glm-4.7: {input: 0.6, cached: 0.11, output: 2.2}\n" + ROUTED
    found = read(text, name="c.yaml", env={}).usage
    assert (found.enabled, found.retention_days) == (True, 30)
    assert found.prices["glm.glm-4.7"] == Price(0.6, 2.2, 0.11)


@pytest.mark.parametrize("price", ["{input: -1, output: 1}", "{input: 1}", "{input: .nan, output: 1}", "free"])
def test_a_price_that_is_none(price: str) -> None:
    with pytest.raises(ConfigError, match="prices"):
        read(f"usage: {{prices: {{m: {price}}}}}\n{ROUTED}", name="c.yaml", env={})
