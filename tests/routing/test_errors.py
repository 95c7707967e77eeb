"""Every no has a sentence, a code and a status; and what is not found says what is nearest."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecodex.routing import errors
from routecodex.routing.errors import (
    EXAMPLES,
    BadAnswer,
    BadCall,
    ClientLeft,
    ConfigError,
    KeysWithheld,
    Locked,
    NoSuchAnswer,
    NoTarget,
    Resting,
    RouteCodexError,
    StoreError,
    TooLarge,
    disabled,
    nearest,
    not_found,
    unhealthy,
)
from tests.rig.work import assert_linear

KINDS: dict[type[RouteCodexError], tuple[str, int]] = {
    RouteCodexError: ("ROUTECODEX_ERROR", 400),
    BadCall: ("BAD_REQUEST", 400),
    TooLarge: ("REQUEST_TOO_LARGE", 413),
    BadAnswer: ("BAD_ANSWER", 502),
    NoTarget: ("PROVIDER_NOT_AVAILABLE", 400),
    ConfigError: ("CONFIG_ERROR", 400),
    StoreError: ("STORE_ERROR", 500),
    Locked: ("SESSION_LOCKED", 400),
    KeysWithheld: ("KEYS_WITHHELD", 400),
    ClientLeft: ("CLIENT_LEFT", 499),
    NoSuchAnswer: ("previous_response_not_found", 400),
}


@pytest.mark.parametrize("kind", KINDS)
def test_code_and_status(kind: type[RouteCodexError]) -> None:
    error = kind("a sentence", details={"a": 1})
    assert (error.code, error.status) == KINDS[kind]
    assert error.message == str(error) == "a sentence"
    assert error.details == {"a": 1}
    assert kind("x").details == {}


def test_every_kind_is_in_the_table() -> None:
    found = {kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, RouteCodexError)}
    assert found == {*KINDS, Resting}


@pytest.mark.parametrize(
    "requested, begins", [(True, "Requested provider glm is not"), (False, "No key that could answer is ready: glm is not")]
)
def test_a_rest_is_one_that_passes(requested: bool, begins: str) -> None:
    error = Resting("glm", 1.5, requested=requested)
    assert (error.code, error.status, error.seconds, error.details["retryAfterMs"]) == ("PROVIDER_NOT_AVAILABLE", 400, 1.5, 1500)
    assert error.message.startswith(begins)


def test_details_are_the_errors_own() -> None:
    given_details: dict[str, object] = {"a": 1}
    error = NoTarget("x", details=given_details)
    error.details["b"] = 2
    assert given_details == {"a": 1}


@pytest.mark.parametrize(
    "error, message, details",
    [
        (
            not_found("nope.x"),
            "Requested provider nope.x not found in provider registry",
            {"provider": "nope.x"},
        ),
        (
            not_found("glm.x", known=("glm.y", "glm.z")),
            "Requested provider glm.x not found in provider registry (nearest known: glm.y, glm.z)",
            {"provider": "glm.x"},
        ),
        (
            disabled("glm"),
            "Requested provider glm is disabled: <**@glm**> switches it on again",
            {"provider": "glm", "reason": "disabled"},
        ),
        (
            unhealthy("glm"),
            "Requested provider glm is not available (health check failed)",
            {"provider": "glm", "reason": "unhealthy"},
        ),
    ],
)
def test_r10_r11_r12_the_published_sentences(error: NoTarget, message: str, details: dict[str, object]) -> None:
    assert (error.message, error.details, error.code) == (message, details, "PROVIDER_NOT_AVAILABLE")


KNOWN = ("glm", "openai", "anthropic", "origin", "echo")


@pytest.mark.parametrize(
    "name, first",
    [("glm4", "glm"), ("GLM", "glm"), ("open-ai", "openai"), ("Antropic", "anthropic"), ("ekko", "echo"), ("orgin", "origin")],
)
def test_p27_what_is_nearest(name: str, first: str) -> None:
    found = nearest(name, KNOWN)
    assert found[0] == first
    assert len(found) == 3


def test_nearest_of_few_of_none_and_of_the_same() -> None:
    assert nearest("x", []) == ()
    assert nearest("x", ["a", "a"]) == ("a",)
    assert nearest("a", ["A", "a"]) == ("A", "a"), "case does not count in what is near"


@given(st.text(max_size=600), st.lists(st.text(max_size=20), max_size=8))
def test_nearest_takes_anything(name: str, known: list[str]) -> None:
    found = nearest(name, known)
    assert set(found) <= set(known)
    assert len(found) == len(set(found)) == min(3, len(set(known)))


def test_nearest_is_little_work_for_a_hostile_name() -> None:
    known = [f"model-{number}" for number in range(300)]
    assert_linear(lambda name: nearest(name, [name[: len(name) // 10]] * 3 + known), lambda size: "a" * size, 250_000)


def test_an_example_of_the_shipped_file_is_named_as_one() -> None:
    shipped = (Path(__file__).parents[2] / "mitm-config.yaml").read_text("utf-8")
    assert tuple(re.findall(r"^    # ([a-z]+):\n    #   protocol:", shipped, flags=re.MULTILINE)) == EXAMPLES
    assert "`routecodex provider add glm`" in not_found("glm").message
    assert "`routecodex provider add glm`" in not_found("glm.glm-4.7", known=("help", "clear")).message
    assert "provider add" not in not_found("glm.glm-4.8", known=("glm.glm-4.7",)).message
    assert "provider add" not in not_found("gml").message
