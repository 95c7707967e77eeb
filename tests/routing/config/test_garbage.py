"""Whatever stands in the file: a Config or a ConfigError, never a credential in words."""

from __future__ import annotations

import json
import logging
import warnings
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from routecodex.routing.config import Config, read
from routecodex.routing.config.section import Section
from routecodex.routing.errors import ConfigError
from tests.conftest import LONG

DATA = Path(__file__).parent / "data" / "original.json"
SHIPPED = Path(__file__).parents[3] / "mitm-config.yaml"


def outcome(text: str, env: dict[str, str] | None = None) -> str:
    """Everything a person could get to see."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            config = read(text, name="f.yaml", env=env or {})
        except ConfigError as error:
            seen = f"{error} {error!r} {error.message} {error.details} {error.__cause__} {error.__context__}"
        else:
            assert isinstance(config, Config)
            seen = f"{config!r} {config.warnings} {config.registry!r}"
    return seen + "".join(str(one.message) for one in told)


@settings(max_examples=5_000 if LONG else 60, deadline=None)
@given(st.text(alphabet=st.sampled_from("ab:-[]{}#&*!|>'\"%@`,?<\\ \n\t\u0085$\ud83d\x000~.") | st.characters(), max_size=80))
def test_random_text(text: str) -> None:
    outcome(text)


NAMES = st.sampled_from(
    [
        *sorted(frozenset().union(*(section.spelt for section in Section.__subclasses__()))),
        "default",
        "p",
        "providerType",
        "entries",
        "apiKeys",
        "quota",
        "apikeyDailyResetTime",
        "poolId",
        "isBackup",
    ]
)
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["origin", "echo.x", "p.m", "https://a.example/v1", "${A}", "${", "rr", "none", "client", "", "x-oauth"])
    | st.text(max_size=6)
)
TREES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES | st.text(max_size=4), inner, max_size=4),
    max_leaves=25,
)


@settings(max_examples=5_000 if LONG else 80, deadline=None)
@given(st.dictionaries(NAMES, TREES, max_size=6))
def test_random_trees_with_known_keys(tree: dict[str, object]) -> None:
    outcome(json.dumps(tree))


PROVIDER = st.fixed_dictionaries(
    {"baseURL": st.just("https://a.example") | LEAVES, "auth": TREES},
    optional={"models": TREES, "headers": TREES, "endpoints": TREES, "serverTools": TREES, "type": LEAVES},
)
POOL = st.fixed_dictionaries(
    {"targets": TREES}, optional={"weights": TREES, "mode": LEAVES, "priority": LEAVES, "loadBalancing": TREES, "type": LEAVES}
)


@settings(max_examples=5_000 if LONG else 80, deadline=None)
@given(PROVIDER, st.lists(POOL | LEAVES, max_size=3), TREES)
def test_random_trees_that_reach_far(provider: object, default: object, clock: object) -> None:
    outcome(json.dumps({"providers": {"p": provider}, "routing": {"default": default}, "clock": clock}))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a: &a [*a]\n", id="anchor-in-itself"),
        pytest.param("a: &a {b: *a}\n", id="mapping-in-itself"),
        pytest.param("a: &a\n  <<: *a\n", id="merge-of-itself"),
        pytest.param(
            "a0: &a0 [x,x,x,x,x,x,x,x,x]\n" + "".join(f"a{n}: &a{n} [{f'*a{n - 1},' * 9}]\n" for n in range(1, 12)), id="laughs"
        ),
        pytest.param("{" * 2000, id="braces"),
        pytest.param("a: " * 2000, id="colons"),
        pytest.param("- " * 2000, id="dashes"),
        pytest.param("%YAML 9.9\n---\na: b\n", id="version"),
        pytest.param("%TAG ! x\n---\na: !y b\n", id="tag"),
        pytest.param("<<: 5\n", id="merge-of-a-number"),
        pytest.param("!!python/object:os.system {}\n", id="object"),
        pytest.param('virtualrouter: {routing: {default: ["' + "." * 10_000 + '"]}}', id="dots"),
        pytest.param('virtualrouter: {routing: {default: ["' + "echo:9" * 9_000 + '"]}}', id="suffixes"),
        pytest.param('virtualrouter: {routing: {default: ["' + "echo[" * 9_000 + '"]}}', id="brackets"),
        pytest.param(
            'providers: {p: {baseURL: "http://' + "//@" * 9_000 + '", auth: none}}\nrouting: {default: [echo]}', id="slashes"
        ),
    ],
)
def test_hostile_text_ends_soon(text: str) -> None:
    outcome(text)


def test_merged_and_repeated_tables_are_read() -> None:
    text = """
usual: &usual {baseURL: "https://a.example", auth: none}
routing: {default: [a.m, b.m]}
providers:
  a: &a {<<: *usual, models: {m: {}}}
  b: {<<: [*a], baseURL: "https://b.example"}
"""
    message = outcome(text)
    assert "f.yaml:2: usual: unknown key" in message
    config = read(text.replace("usual: &usual {", "version: &usual {"), name="f.yaml", env={})
    assert [
        provider.endpoints[provider.dialect].host for provider in list(config.registry.providers.values())[2:] if provider.dialect
    ] == [
        "a.example",
        "b.example",
    ]


# --- credentials -----------------------------------------------------------------------------------------------------

CANARY = "sk-canary-7f3a9b2c4d5e6f70"
PLAIN = "Qm9yaW5nV29yZHM"
"""Looks like nothing in particular."""

_PROVIDER = "routing: {default: [origin]}\nproviders:\n  p:\n    baseURL: https://a.example\n"


@pytest.mark.parametrize("secret", [CANARY, PLAIN])
@pytest.mark.parametrize(
    "text",
    [
        pytest.param(_PROVIDER + "    auth: {apiKey: SECRET}\n", id="fine"),
        pytest.param(_PROVIDER + "    auth: {apiKey: SECRET}\n    headers: {x-key: SECRET-2}\n", id="header"),
        pytest.param(_PROVIDER + "    auth: {apiKey: SECRET\n", id="syntax-open"),
        pytest.param(_PROVIDER + "    auth: {apiKey: *SECRET}\n", id="syntax-alias"),
        pytest.param(_PROVIDER + "    auth: {apiKey: !SECRET }\n", id="syntax-tag"),
        pytest.param(_PROVIDER + "    auth: {apiKey: &SECRET x, b: &SECRET y}\n", id="syntax-anchor-twice"),
        pytest.param(_PROVIDER + '    auth: {apiKey: "SECRET\\q"}\n', id="syntax-escape"),
        pytest.param(_PROVIDER + "    auth: {apiKey: a: SECRET: b}\n", id="syntax-colon"),
        pytest.param(_PROVIDER + "    auth: SECRET\n", id="auth-is-the-key"),
        pytest.param(_PROVIDER + "    auth: [SECRET]\n", id="auth-is-a-list"),
        pytest.param(_PROVIDER + "    auth: {type: apikey, tokn: SECRET}\n", id="unknown-name"),
        pytest.param(_PROVIDER + "    auth: {apiKey: [{value: SECRET, x: SECRET}]}\n", id="entry"),
        pytest.param(_PROVIDER + "    auth: {apiKey: [[SECRET]]}\n", id="list-in-list"),
        pytest.param(_PROVIDER + "    auth: {apiKey: SECRET}\n    models: {m: {maxContext: SECRET}}\n", id="in-a-number"),
        pytest.param(_PROVIDER + '    auth: {apiKey: "SECRET\\n"}\n', id="line-break"),
        pytest.param(_PROVIDER + "    auth: {apiKey: 'SECRET${'}\n", id="malformed"),
        pytest.param(_PROVIDER + "    auth: {type: client, apiKey: SECRET}\n", id="client"),
        pytest.param(_PROVIDER + "    auth: {apiKey: '${KEY}'}\n", id="environment"),
        pytest.param(_PROVIDER + "    auth: {apiKey: '${KEY}é'}\n", id="environment-refused"),
        pytest.param(_PROVIDER + "    apiKey: SECRET\n    nonsense: 1\n", id="beside"),
        pytest.param(_PROVIDER.replace("https://a", "https://u:${KEY}@a") + "    auth: none\n", id="address"),
        pytest.param(_PROVIDER.replace("https://a", "https://SECRET@a") + "    auth: {apiKey: SECRET}\n", id="address-literal"),
        pytest.param(_PROVIDER.replace("origin", "SECRET") + "    auth: {apiKey: SECRET}\n", id="also-in-a-route"),
        pytest.param("routing: {default: [origin]}\nsessions: {store: 'redis://:SECRET@h'}\n", id="store"),
        pytest.param("routing: {default: [origin]}\nsessions: {store: 'memcached://:SECRET@h'}\n", id="store-refused"),
        pytest.param("routing: {default: [origin]}\nversion: SECRET\nhttpserver: {apikey: SECRET}\n", id="not-used"),
    ],
)
def test_no_credential_in_any_message(
    text: str, secret: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    seen = outcome(text.replace("SECRET", secret), {"KEY": secret})
    captured = capfd.readouterr()
    for shown in (seen, caplog.text, captured.out, captured.err):
        assert secret not in shown
        assert secret[4:] not in shown


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"routing: {{default: [{CANARY}]}}\n", id="target"),
        pytest.param(f"routing: {{default: [origin]}}\n{CANARY}: 1\n", id="key"),
        pytest.param(f"routing: {{default: [origin]}}\nproxy: {{interceptHosts: ['{CANARY}/']}}\n", id="host"),
        pytest.param(f"routing: {{default: [origin]}}\nplugins: [{CANARY}]\n", id="plugin"),
        pytest.param(f"routing: {{default: [origin]}}\nproviders: {{p: {{baseURL: {CANARY}, auth: none}}}}\n", id="address"),
    ],
)
def test_what_looks_like_a_credential_is_never_repeated(text: str) -> None:
    assert "***" in outcome(text)
    assert "canary" not in outcome(text)


def test_a_long_credential_is_hidden_before_messages_are_cut() -> None:
    secret = "word " * 40 + "end"
    seen = outcome(
        f"routing: {{default: ['{secret}']}}\nproviders: {{p: {{baseURL: 'https://a.example', apiKey: '{secret}'}}}}\n"
    )
    assert "word word" not in seen


@pytest.mark.parametrize("path", [DATA, SHIPPED], ids=["original", "shipped"])
def test_cut_files(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for end in range(0, len(text), max(1, len(text) // 60)):
        seen = outcome(text[:end], {"GLM_2": CANARY})
        assert "canary" not in seen
