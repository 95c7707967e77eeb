"""The file that is shipped: it works untouched, and so does every example in it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from routecodex.routing.config import OFFICIAL_HOSTS, Clock, load, read
from routecodex.routing.dialects.endpoints import upstream_path
from routecodex.routing.router.registry import Classifier, HealthSettings
from routecodex.routing.values import Dialect, Endpoint

SHIPPED = Path(__file__).parents[3] / "mitm-config.yaml"
TEXT = SHIPPED.read_text(encoding="utf-8")
_EXAMPLE = re.compile(r"^    # --- example(?:: | )(?P<name>.+)\n(?P<body>(?:    # .*\n)+)", re.M)
EXAMPLES = {match["name"].split(":")[0].split(",")[0].split(" ")[0]: match["body"] for match in _EXAMPLE.finditer(TEXT)}
ENV = dict.fromkeys(re.findall(r"\$\{(\w+_KEY\w*)\}", TEXT), "a-key")

PROVIDERS = {
    "Anthropic": ("anthropic", {Dialect.MESSAGES: "/v1/messages"}),
    "OpenAI": ("openai", {Dialect.RESPONSES: "/v1/responses", Dialect.CHAT: "/v1/chat/completions"}),
    "GLM": ("glm", {Dialect.CHAT: "/api/paas/v4/chat/completions", Dialect.MESSAGES: "/api/anthropic/v1/messages"}),
    "DeepSeek": ("deepseek", {Dialect.CHAT: "/v1/chat/completions", Dialect.MESSAGES: "/anthropic/v1/messages"}),
    "OpenRouter": ("openrouter", {Dialect.CHAT: "/api/v1/chat/completions"}),
    "Gemini": ("gemini", {Dialect.GEMINI: "/v1beta/models/m:generateContent"}),
    "a": ("local", {Dialect.CHAT: "/v1/chat/completions"}),
}


def uncomment(*names: str) -> str:
    text = TEXT
    for name in names:
        text = text.replace(EXAMPLES[name], EXAMPLES[name].replace("    # ", "    "))
    return text


def test_it_is_plain_ascii() -> None:
    """The reader of YAML looks through anything else with an expression that takes longer to make than this file to read."""
    assert SHIPPED.read_bytes().isascii()


def test_untouched_it_needs_no_key() -> None:
    config = load(SHIPPED, {})
    assert config.warnings == ()
    assert [str(target) for pool in config.registry.routes["default"] for target in pool.targets] == ["origin.client"]
    assert list(config.registry.routes) == ["default"]
    assert list(config.registry.providers) == ["origin", "echo"]
    assert config.clock == Clock()
    assert config.intercept_hosts == OFFICIAL_HOSTS
    assert config.allow_remote_clients is False


def test_what_it_says_is_what_holds_without_it() -> None:
    bare = read("virtualrouter: {routing: {default: [origin]}, clock: {}}", name="bare", env={})
    shipped = load(SHIPPED, {})
    for field in (
        "first_byte_s",
        "idle_s",
        "derive",
        "store",
        "retention_days",
        "max_attempts",
        "finish_reasons",
        "stop",
        "plugins",
    ):
        assert getattr(shipped, field) == getattr(bare, field), field
    assert shipped.registry.health == bare.registry.health == HealthSettings()
    assert shipped.registry.classifier.long_context_tokens == Classifier().long_context_tokens
    assert shipped.registry.warn_ratio == bare.registry.warn_ratio


def test_all_examples_are_tried() -> None:
    assert set(EXAMPLES) == {*PROVIDERS, "routes"}


@pytest.mark.parametrize("example", PROVIDERS)
def test_each_example_alone(example: str) -> None:
    name, paths = PROVIDERS[example]
    config = read(uncomment(example), name="shipped", env=ENV)
    provider = config.registry.providers[name]
    assert config.warnings == ()
    assert provider.dialect is next(iter(paths))
    assert set(provider.endpoints) == set(paths)
    assert provider.models
    assert all(provider.targets(model) for model in provider.models)
    assert not any(key.off for key in provider.keys)
    assert {url.host for url in provider.endpoints.values()} <= set(config.intercept_hosts)


@pytest.mark.parametrize("example", PROVIDERS)
def test_each_example_asks_at_the_right_path(example: str) -> None:
    name, paths = PROVIDERS[example]
    provider = read(uncomment(example), name="shipped", env=ENV).registry.providers[name]
    asked = {
        dialect: upstream_path(Endpoint(dialect, stream=False), url.path, "m", query="")
        for dialect, url in provider.endpoints.items()
    }
    assert asked == paths


@pytest.mark.parametrize("example", PROVIDERS)
def test_each_example_starts_without_its_key(example: str) -> None:
    config = read(uncomment(example), name="shipped", env={})
    provider = config.registry.providers[PROVIDERS[example][0]]
    keyed = provider.auth == "apikey"
    assert all(key.off is keyed for key in provider.keys)
    assert len(config.warnings) == (len(provider.keys) if keyed else 0)
    assert all("is not set" in warning for warning in config.warnings)


def test_all_examples_together() -> None:
    config = read(uncomment(*EXAMPLES), name="shipped", env=ENV)
    assert config.warnings == ()
    assert set(config.registry.routes) == {"default", "thinking", "longcontext", "background", "coding"}
    assert [pool.id for pool in config.registry.routes["coding"]] == ["first", "reserve"]
