"""Names of the configuration: what a provider declares, and what is meant where somebody leaves something out."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from routecodex.routing.router.registry import ORIGIN, Key, Model, Provider
from routecodex.routing.values import Named, Target
from tests.routing.router.builders import BUILT_IN, OPENAI, provider

ALIASED = provider("openai", ["primary", "backup"], [Model("gpt-4", aliases=("four", "4")), "gpt-5.2"])
NO_KEYS = replace(OPENAI, keys=())
HOME = BUILT_IN[ORIGIN]


@pytest.mark.parametrize(
    "found, name, model",
    [(ALIASED, "gpt-4", "gpt-4"), (ALIASED, "four", "gpt-4"), (ALIASED, "GPT-4", None), (ALIASED, "", None), (HOME, "x", None)],
)
def test_a_model_by_its_name_or_alias(found: Provider, name: str, model: str | None) -> None:
    assert found.model_named(name) == model


@pytest.mark.parametrize(
    "found, name, model", [(ALIASED, "four", "gpt-4"), (ALIASED, "other", None), (HOME, "anything", "anything"), (HOME, "", "")]
)
def test_who_declares_no_models_takes_any(found: Provider, name: str, model: str | None) -> None:
    assert found.declared(name) == model


@pytest.mark.parametrize(
    "found, client, model",
    [
        pytest.param(ALIASED, "gpt-5.2", "gpt-5.2", id="the client's"),
        pytest.param(ALIASED, "four", "gpt-4", id="by an alias"),
        pytest.param(ALIASED, "openai.gpt-5.2", "gpt-5.2", id="with the provider's name in front"),
        pytest.param(ALIASED, "openai.", "gpt-4", id="half a name"),
        pytest.param(ALIASED, "claude", "gpt-4", id="else the first"),
        pytest.param(ALIASED, "", "gpt-4", id="the client names none"),
        pytest.param(HOME, "claude", "claude", id="none is declared: the client's own"),
        pytest.param(HOME, "", "", id="none at all"),
    ],
)
def test_the_model_for_who_asks_for_none(found: Provider, client: str, model: str) -> None:
    assert found.model_for(client) == model


def test_targets_of_a_model() -> None:
    assert ALIASED.targets("m") == [Target("openai", "primary", "m"), Target("openai", "backup", "m")]
    assert ALIASED.targets("m", "backup") == [Target("openai", "backup", "m")]
    assert ALIASED.targets("m", "gone") == []
    assert NO_KEYS.targets("m") == [Target("openai", "", "m")]
    assert ALIASED.targets("m", "") == ALIASED.targets("m")


def test_a_key_by_its_alias() -> None:
    assert ALIASED.key("backup") == Key("backup", 2)
    assert ALIASED.key("2") is None


def test_everything_that_can_be_asked_for() -> None:
    assert list(ALIASED.names) == [
        "openai.gpt-4",
        "openai.four",
        "openai.4",
        "openai.gpt-5.2",
        "openai.primary",
        "openai.backup",
    ]
    assert list(HOME.names) == ["origin.client"]


@pytest.mark.parametrize(
    "named, text, spoken",
    [
        (Named("glm"), "glm", "glm"),
        (Named("glm", "key1"), "glm[key1]", "glm key key1"),
        (Named("glm", None, "glm-4.7"), "glm.glm-4.7", "glm model glm-4.7"),
        (Named("glm", "key1", "glm-4.7"), "glm[key1].glm-4.7", "glm key key1 model glm-4.7"),
    ],
)
def test_what_a_tag_names_is_written_and_spoken(named: Named, text: str, spoken: str) -> None:
    assert str(named) == text
    assert named.spoken == spoken


def test_no_secret_shows() -> None:
    secret = replace(OPENAI, keys=(Key("a", 1, "sk-secret"),), headers={"x": "sk-other"})
    assert "secret" not in repr(secret)
    assert "other" not in repr(secret)


def test_why_nobody_uses_it() -> None:
    off = [replace(key, off=True, why=f"{key.alias} is unset") for key in OPENAI.keys]
    assert OPENAI.why_off() == ""
    assert replace(OPENAI, enabled=False, why="switched off").why_off("primary") == "switched off"
    assert replace(OPENAI, keys=(off[0], *OPENAI.keys[1:])).why_off() == "", "another key works"
    assert replace(OPENAI, keys=(off[0], *OPENAI.keys[1:])).why_off("primary") == "primary is unset"
    assert replace(OPENAI, keys=tuple(off)).why_off() == "primary is unset"
