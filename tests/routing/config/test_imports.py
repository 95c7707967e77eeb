"""A `config.json` in the original's form, spelling by spelling."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from routecodex.routing.config import Clock, Config, load, read
from routecodex.routing.router.registry import Key, Model, Url
from routecodex.routing.values import Dialect

ORIGINAL = Path(__file__).parent / "data" / "original.json"


@pytest.fixture(scope="module")
def config() -> Config:
    return load(ORIGINAL, {"GLM_2": "canary-glm-2"})


def test_providers(config: Config) -> None:
    providers = config.registry.providers
    assert {name: provider.dialect for name, provider in providers.items()} == {
        "origin": None,
        "echo": None,
        "glm": Dialect.CHAT,
        "crs": Dialect.RESPONSES,
        "claude-gate": Dialect.MESSAGES,
        "lmstudio": Dialect.CHAT,
        "qwen": Dialect.CHAT,
    }
    assert providers["glm"].endpoints == {Dialect.CHAT: Url("https", "open.bigmodel.cn", 443, "/api/coding/paas/v4")}
    assert providers["glm"].models == {"glm-4.7": Model("glm-4.7", 131_072, 8192), "glm-4.6": Model("glm-4.6")}
    assert providers["crs"].endpoints[Dialect.RESPONSES].host == "crs.example.com"
    assert providers["claude-gate"].models["claude-sonnet-4-5"].aliases == ("sonnet",)
    assert (providers["lmstudio"].server_tools, providers["glm"].server_tools) == (False, True)


@pytest.mark.parametrize(
    "provider, keys",
    [
        ("glm", (Key("main", 1, "canary-glm-1"), Key("key2", 2, "canary-glm-2"), Key("main_1", 3, "canary-glm-3"))),
        ("crs", (Key("a", 1, "canary-crs-a"), Key("b", 2, "canary-crs-b"), Key("c", 3, off=True))),
        ("claude-gate", (Key("key1", 1, "canary-gate-1"), Key("key2", 2, "canary-gate-2"))),
        ("lmstudio", (Key("key1", 1, ""),)),
        ("qwen", (Key("1-geetasamodgeetasamoda", 1, off=True),)),
    ],
)
def test_keys(config: Config, provider: str, keys: tuple[Key, ...]) -> None:
    assert config.registry.providers[provider].keys == keys


def test_routes(config: Config) -> None:
    routes = {
        name: [(pool.id, pool.mode, [str(target) for target in pool.targets]) for pool in pools]
        for name, pools in config.registry.routes.items()
    }
    assert routes == {
        "default": [
            ("twenty", "round-robin", ["glm.main_1.glm-4.7"]),
            (
                "ten",
                "round-robin",
                ["glm.main.glm-4.7", "glm.key2.glm-4.7", "glm.main_1.glm-4.7", "crs.a.gpt-5.2", "crs.b.gpt-5.2"],
            ),
            ("late", "sticky", ["lmstudio.key1.minimax-m2-mlx@4bit"]),
            ("last", "sticky", []),
        ],
        "thinking": [
            (
                "thinking:pool0",
                "sticky",
                ["claude-gate.key1.claude-sonnet-4-5", "claude-gate.key2.claude-sonnet-4-5", "glm.key2.glm-4.6"],
            )
        ],
        "default-backup": [("default-backup:pool0", "sticky", ["crs.b.gpt-5.2"])],
    }


def test_the_rest(config: Config) -> None:
    assert config.clock == Clock(retention_ms=600_000)
    assert config.registry.health.quota_reset == "06:30"


def test_warnings_name_what_is_not_used(config: Config) -> None:
    assert [warning.removeprefix("original.json:") for warning in config.warnings] == [
        "2: version is not used here",
        "3: httpserver is not used here",
        "10: compatibilityProfile is not used here",
        "11: process is not used here",
        "12: streaming is not used here",
        "14: supportsStreaming is not used here",
        "19: secret references and token files are not read here: key crs.c is off",
        "20: responses is not used here",
        "39: logins by OAuth are not used here: qwen is off (auth: {type: client} passes the caller's own on)",
        "48: force is not used here",
        "53: healthWeighted is not used here",
        "54: failureThreshold is not used here",
        "54: cooldownMs is not used here",
        "56: webSearch is not used here",
        "57: execCommandGuard is not used here",
    ]


def test_the_same_below_virtualrouter(config: Config) -> None:
    flat = json.loads(ORIGINAL.read_text(encoding="utf-8"))
    top = {name: flat.pop(name) for name in ("version", "httpserver")}
    nested = read(json.dumps({**top, "virtualrouter": flat}), name="config.json", env={"GLM_2": "canary-glm-2"})
    assert nested.registry == config.registry
    assert nested.clock == config.clock
    assert len(nested.warnings) == len(config.warnings)


def test_what_stands_beside_the_router_is_named() -> None:
    router = {"providers": {}, "routing": {"default": ["origin"]}}
    config = read(json.dumps({"virtualrouter": router, "quota": {"daily": 1}}), name="config.json", env={})
    assert config.warnings == ("config.json:1: quota is not used here",)


@pytest.mark.parametrize("text", ["{%s}\t", "\t{%s}", "\n\t{%s}", "{\t%s\t}"])
def test_tabs_between_what_json_says_are_space(text: str) -> None:
    config = read(text % '"virtualrouter":\t{"routing"\t: {"default":\t["echo"]}}', name="config.json", env={})
    assert [target.provider for pool in config.registry.routes["default"] for target in pool.targets] == ["echo"]


def test_json_text_means_what_json_means() -> None:
    text = '{"providers": {"p": {"baseURL": "https:\\/\\/a.example", "auth": {"apiKey": "a\\u0062"},\n'
    text += '\t"models": {"\\ud83d\\ude00": null}}},'
    text += '"routing": {"default": ["p.\\ud83d\\ude00"]}}'
    provider = read(text, name="config.json", env={}).registry.providers["p"]
    assert provider.keys[0].value == "ab"
    assert list(provider.models) == ["😀"]


@pytest.mark.parametrize(
    "value",
    [
        "{entries: [{alias: a, value: k}]}",
        "{keys: {a: k}}",
        "{keys: [{id: a, apiKey: k}]}",
        "{entries: [{alias: a, type: apiKey, value: k}]}",
    ],
)
def test_forms_of_one_key_agree(value: str) -> None:
    text = f"providers: {{p: {{baseURL: 'https://a.example', auth: {value}}}}}\nrouting: {{default: [origin]}}"
    config = read(text, name="c", env={})
    assert config.registry.providers["p"].keys == (Key("a", 1, "k"),)
    assert not [warning for warning in config.warnings if "type" in warning]


@pytest.mark.parametrize("spelling", ["targets", "providers", "pool", "entries", "items", "routes", "target", "provider"])
def test_spellings_of_targets(spelling: str) -> None:
    text = f"routing: {{default: [{{poolId: x, {spelling}: echo, isBackup: false}}]}}"
    (pool,) = read(text, name="c", env={}).registry.routes["default"]
    assert (pool.id, [str(target) for target in pool.targets]) == ("x", ["echo.local"])


@pytest.mark.parametrize(
    "spelling, mode",
    [("rr", "round-robin"), ("round_robin", "round-robin"), ("RoundRobin", "round-robin"), ("Priority", "priority")],
)
@pytest.mark.parametrize("key", ["mode", "strategy", "routingMode"])
def test_spellings_of_modes(key: str, spelling: str, mode: str) -> None:
    text = f"routing: {{default: {{targets: [echo], {key}: {spelling}}}}}"
    assert read(text, name="c", env={}).registry.routes["default"][0].mode == mode


@pytest.mark.parametrize("line", ["serverToolsDisabled: true", "serverTools: {enabled: false}", "serverTools: false"])
def test_v18_providers_without_server_tools(line: str) -> None:
    text = f"providers: {{p: {{baseURL: 'https://a.example', auth: none, {line}}}}}\nrouting: {{default: [origin]}}"
    assert read(text, name="c", env={}).registry.providers["p"].server_tools is False


def test_models_as_a_plain_list() -> None:
    text = "providers: {p: {baseURL: 'https://a.example', auth: none, models: [4.10, b]}}\nrouting: {default: [p.4.10]}"
    assert list(read(text, name="c", env={}).registry.providers["p"].models) == ["4.10", "b"]
