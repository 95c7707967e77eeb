"""Names of tags against a configuration."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from routecodex.routing.errors import NoTarget
from routecodex.routing.router.registry import Key
from routecodex.routing.tags.grammar import Allow, ClockClear, Name, StopClear, StopSet, Unknown, parse
from routecodex.routing.tags.resolve import resolve
from routecodex.routing.values import Named
from tests.routing.tags.config_a import REGISTRY


def name_in(body: str) -> Name:
    (tag,) = parse(body)
    assert not isinstance(tag, StopSet | StopClear | ClockClear | Unknown)
    name = getattr(tag, "name", None)
    assert isinstance(name, Name)
    return name


FOUND = [
    pytest.param("glm", Named("glm"), id="provider"),
    pytest.param("!glm[]", Named("glm"), id="empty-brackets"),
    pytest.param("!antigravity.claude-sonnet-4-5", Named("antigravity", None, "claude-sonnet-4-5"), id="P04"),
    pytest.param("!antigravity[geminikey].gemini-3-pro-high", Named("antigravity", "geminikey", "gemini-3-pro-high"), id="P05"),
    pytest.param("glm.glm-4.7", Named("glm", None, "glm-4.7"), id="P07"),
    pytest.param("!glm[].glm-4.7", Named("glm", None, "glm-4.7"), id="P07-empty-brackets"),
    pytest.param("openai.gpt-5.2", Named("openai", None, "gpt-5.2"), id="P08"),
    pytest.param("openai.primary.gpt-4", Named("openai", "primary", "gpt-4"), id="P09"),
    pytest.param("openai.four", Named("openai", None, "gpt-4"), id="model-alias"),
    pytest.param("openai.backup.four", Named("openai", "backup", "gpt-4"), id="key-and-model-alias"),
    pytest.param("#anthropic.primary", Named("anthropic", "primary"), id="P11"),
    pytest.param("#openai.1", Named("openai", "primary"), id="P13-first"),
    pytest.param("#openai.3", Named("openai", "third"), id="P13-third"),
    pytest.param("!openai[2]", Named("openai", "backup"), id="place-in-brackets"),
    pytest.param("!odd.glm-4.7:passthrough", Named("odd", None, "glm-4.7:passthrough"), id="P28-really-named-so"),
    pytest.param("odd.org/m:free@v1", Named("odd", None, "org/m:free@v1"), id="all-signs"),
    pytest.param("odd.a.org/m:free@v1", Named("odd", "a", "org/m:free@v1"), id="key-and-all-signs"),
    pytest.param("odd.1", Named("odd", None, "1"), id="model-before-place"),
    pytest.param("odd.2", Named("odd", "2"), id="place-before-alias"),
    pytest.param("odd.a", Named("odd", None, "a"), id="model-before-alias"),
    pytest.param("odd[a]", Named("odd", "a"), id="brackets-are-always-a-key"),
    pytest.param("echo", Named("echo"), id="echo"),
    pytest.param("!origin", Named("origin"), id="origin"),
    pytest.param("origin.some-model", Named("origin", None, "some-model"), id="no-models-declared"),
    pytest.param("origin.client.some.model", Named("origin", "client", "some.model"), id="no-models-declared-with-key"),
]

MISSING = [
    pytest.param("!GLM", "GLM", ["glm"], id="P27"),
    pytest.param("nope", "nope", [], id="R11"),
    pytest.param("not.found", "not.found", [], id="R11-seed"),
    pytest.param("!glm.glm-4.7:passthrough", "glm.glm-4.7:passthrough", ["glm.glm-4.7"], id="P28"),
    pytest.param("!glm.glm-4.7:foo", "glm.glm-4.7:foo", ["glm.glm-4.7"], id="P28-foo"),
    pytest.param("#openai.4", "openai.4", [], id="P13-fourth"),
    pytest.param("#openai.0", "openai.0", [], id="P13-zeroth"),
    pytest.param("#openai.01", "openai.01", [], id="P13-with-a-zero"),
    pytest.param("#glm.gpt-4", "glm.gpt-4", ["glm.glm-4.7"], id="model-of-another"),
    pytest.param("!glm[gpt]", "glm[gpt]", [], id="no-such-key"),
    pytest.param("!openai[gpt-4]", "openai[gpt-4]", ["openai.gpt-4"], id="brackets-are-never-a-model"),
    pytest.param("!openai[primary].nope", "openai[primary].nope", [], id="key-without-that-model"),
    pytest.param("!openai[].primary", "openai[].primary", ["openai.primary"], id="empty-brackets-are-never-a-key"),
    pytest.param("origin.7", "origin.7", [], id="no-such-place"),
]


@pytest.mark.parametrize("body, expected", FOUND)
def test_found(body: str, expected: Named) -> None:
    assert resolve(name_in(body), REGISTRY) == expected


@pytest.mark.parametrize("body, name, near", MISSING)
def test_missing(body: str, name: str, near: list[str]) -> None:
    with pytest.raises(NoTarget) as refused:
        resolve(name_in(body), REGISTRY)
    error = refused.value
    assert error.status == 400
    assert error.code == "PROVIDER_NOT_AVAILABLE"
    assert error.message.startswith(f"Requested provider {name} not found in provider registry (nearest known: ")
    assert error.details == {"provider": name}
    hint = error.message.partition("nearest known: ")[2].rstrip(")").split(", ")
    assert hint[: len(near)] == near


def test_a_key_that_is_off_is_known() -> None:
    glm = replace(REGISTRY.providers["glm"], keys=(Key("key1", 1, off=True), Key("key2", 2)))
    registry = replace(REGISTRY, providers={"glm": glm})
    assert resolve(Name("glm", "1"), registry) == Named("glm", "key1")
    assert resolve(Name("glm", "2"), registry) == Named("glm", "key2")


def test_an_allow_of_every_provider() -> None:
    for provider in REGISTRY.providers:
        assert parse(f"!{provider}") == (Allow(Name(provider)),)
        assert resolve(Name(provider), REGISTRY) == Named(provider)
