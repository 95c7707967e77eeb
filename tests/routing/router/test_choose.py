"""Which target a call goes to: the cases V, R and S of the router, and what must never happen."""

from __future__ import annotations

from copy import deepcopy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from routecodex.routing.errors import ConfigError, NoTarget, Resting
from routecodex.routing.router.balance import Rotation
from routecodex.routing.router.candidates import Wish
from routecodex.routing.router.choose import Decision, choose
from routecodex.routing.router.classify import EXPLICIT, Classified
from routecodex.routing.router.features import Features
from routecodex.routing.router.health import Health
from routecodex.routing.router.registry import Key, Model, Pool, Registry
from routecodex.routing.sessions.state import EMPTY, SessionState, Sticky
from routecodex.routing.values import Named, Target
from tests.conftest import LONG
from tests.routing.router.builders import (
    ANTIGRAVITY,
    BUILT_IN,
    CLAUDE,
    GEMINI,
    GLM,
    GLM_47,
    GPT_4,
    OPENAI,
    SONNET,
    error,
    pool,
    provider,
    registry,
    targets,
    wish,
)

STICKY = SessionState(sticky=Sticky("antigravity", None, "claude-sonnet-4-5"))
STICKY_GEMINI = SessionState(sticky=Sticky("antigravity", "geminikey", "gemini-3-pro-high"))


def state(**changes: object) -> SessionState:
    return EMPTY.with_(**changes)


def failed(*pairs: tuple[Target, int], times: int = 1, **changes: object) -> Health:
    health = Health()
    for target, status in pairs:
        for _ in range(times):
            health.failed(target, error(status, **changes), 0.0, wall=0.0)
    return health


def pick(one: Wish, found: Registry | None = None, health: Health | None = None, rotation: Rotation | None = None) -> Decision:
    return choose(one, found or registry(), health or Health(), rotation or Rotation(), 1.0)


def picks(one: Wish, times: int, found: Registry | None = None, health: Health | None = None) -> list[Target]:
    rotation = Rotation()
    return [pick(one, found, health, rotation).target for _ in range(times)]


def refusal(one: Wish, found: Registry | None = None, health: Health | None = None) -> NoTarget:
    with pytest.raises(NoTarget) as caught:
        pick(one, found, health)
    assert caught.value.code == "PROVIDER_NOT_AVAILABLE"
    return caught.value


# --- the routes -------------------------------------------------------------------------------------------------------


def tiers() -> Registry:
    pools = [pool(CLAUDE, id="twenty", priority=20), pool(GLM_47, id="ten", priority=10)]
    return registry({"default": [*pools, pool(*GPT_4[:1], id="backup", backup=True)]})


@pytest.mark.parametrize(
    "down, target",
    [
        ([], CLAUDE),
        ([CLAUDE], GLM_47),
        ([CLAUDE, GLM_47], GPT_4[0]),
        ([GLM_47], CLAUDE),
    ],
)
def test_v01_tiers(down: list[Target], target: Target) -> None:
    found = pick(wish(), tiers(), failed(*((one, 401) for one in down)))
    assert (found.target, found.route) == (target, "default")
    assert pick(wish(excluded=frozenset(down)), tiers()).target == target


def test_v02_priority() -> None:
    keys = targets(OPENAI, "gpt-4", "primary", "backup")
    found = registry({"default": [pool(*keys, GLM_47, mode="priority")]})
    assert picks(wish(), 4, found) == [*keys, *keys]
    assert picks(wish(), 2, found, failed((keys[0], 500))) == [keys[1], keys[1]]
    assert picks(wish(), 2, found, failed((keys[0], 500), (keys[1], 500))) == [GLM_47, GLM_47]


def test_v11_longcontext_down() -> None:
    found = registry({"default": [pool(GLM_47)], "longcontext": [pool(CLAUDE, id="long")]})
    assert pick(wish("longcontext"), found).route == "longcontext"
    for status in (401, 429, 500):
        assert pick(wish("longcontext"), found, failed((CLAUDE, status))).target == GLM_47


def test_v19_the_next_attempt_takes_another_key() -> None:
    found = registry({"default": [pool(*GPT_4)]})
    tried: set[Target] = set()
    for _ in GPT_4:
        tried.add(pick(wish(excluded=frozenset(tried)), found).target)
    assert tried == set(GPT_4)
    refusal(wish(excluded=frozenset(tried)), found)


def test_an_unknown_or_empty_route_falls_to_default() -> None:
    found = registry({"default": [pool(GLM_47)], "coding": [pool(id="empty")]})
    assert pick(wish("coding"), found).route == "default"
    assert pick(wish("mine"), found).route == "default"


SMALL, LARGE = Model("small", max_context=1000), Model("large", max_context=10_000)
SIZES = provider("sizes", ["k"], [SMALL, LARGE])
TO_SMALL, TO_LARGE = targets(SIZES, "small")[0], targets(SIZES, "large")[0]


@pytest.mark.parametrize(
    "tokens, hard, expected",
    [
        pytest.param(899, False, {TO_SMALL, TO_LARGE}, id="both safe"),
        pytest.param(900, False, {TO_LARGE}, id="the small one risky"),
        pytest.param(1000, False, {TO_LARGE}, id="the small one overflows"),
        pytest.param(9500, False, {TO_LARGE}, id="risky, nothing safer"),
        pytest.param(10_000, False, {TO_SMALL, TO_LARGE}, id="V09 all overflow, default's last resort"),
        pytest.param(10_000, True, set(), id="V09 hard limit"),
    ],
)
def test_v09_context(tokens: int, hard: bool, expected: set[Target]) -> None:
    found = registry({"default": [pool(TO_SMALL, TO_LARGE)]}, SIZES, hard_limit=hard)
    if expected:
        assert set(picks(wish(tokens=tokens), 4, found)) == expected
    else:
        assert refusal(wish(tokens=tokens), found).details == {"provider": "sizes", "reason": "context", "tokens": tokens}


def test_v09_longcontext_too_small_falls_to_default() -> None:
    found = registry({"longcontext": [pool(TO_SMALL, id="long")], "default": [pool(TO_LARGE)]}, SIZES)
    assert pick(wish("longcontext", tokens=5000), found).target == TO_LARGE
    assert pick(wish("longcontext", tokens=50_000), found).route == "default"


def test_a_model_without_a_context_holds_200k() -> None:
    found = registry({"longcontext": [pool(CLAUDE, id="long")], "default": [pool(GLM_47)]})
    assert pick(wish("longcontext", tokens=199_999), found).target == CLAUDE
    assert pick(wish("longcontext", tokens=200_000), found).target == GLM_47


def test_origin_has_the_clients_model_and_no_context_check() -> None:
    found = registry({"default": [pool(Target("origin", "client", ""))]}, hard_limit=True)
    decision = pick(wish(tokens=10**9), found)
    assert decision.target == Target("origin", "client", "claude-test")
    assert decision.sole


@pytest.mark.parametrize(
    "sees, expected",
    [((False, True), {TO_LARGE}), ((None, None), {TO_SMALL, TO_LARGE}), ((False, False), {TO_SMALL, TO_LARGE})],
)
def test_an_image_goes_to_a_model_that_sees_if_there_is_one(sees: tuple[bool | None, bool | None], expected: set[Target]) -> None:
    models = [replace(model, max_context=10**6, vision=seen) for model, seen in zip((SMALL, LARGE), sees, strict=True)]
    found = registry({"default": [pool(TO_SMALL, TO_LARGE)]}, provider("sizes", ["k"], models))
    assert set(picks(wish(image=True), 4, found)) == expected
    assert set(picks(wish(), 4, found)) == {TO_SMALL, TO_LARGE}


def test_a_tool_hop_keeps_its_key() -> None:
    found = registry({"default": [pool(*GPT_4, GLM_47)]})
    for pinned in (*GPT_4, GLM_47):
        assert picks(wish(pinned=pinned), 3, found) == [pinned] * 3
    assert pick(wish(pinned=GPT_4[1], excluded=frozenset({GPT_4[1]})), found).target != GPT_4[1]
    assert pick(wish(pinned=GPT_4[1]), found, failed((GPT_4[1], 500))).target != GPT_4[1]


def test_h09_a_pools_only_target_is_tried_though_tripped() -> None:
    found = registry({"default": [pool(GLM_47)]})
    for status in (401, 429, 500):
        decision = pick(wish(), found, failed((GLM_47, status)))
        assert decision.target == GLM_47
        assert decision.sole
    refusal(wish(excluded=frozenset({GLM_47})), found, failed((GLM_47, 401)))


def test_h09_the_less_ill_of_two_lone_targets() -> None:
    found = registry({"coding": [pool(CLAUDE, id="c")], "default": [pool(GLM_47)]})
    assert pick(wish("coding"), found, failed((CLAUDE, 401), (GLM_47, 429))).target == GLM_47


def test_all_keys_of_a_pool_resting() -> None:
    found = registry({"default": [pool(*GPT_4)]})
    refused = refusal(wish(), found, failed(*((key, 429) for key in GPT_4)))
    assert refused.message == "No key that could answer is ready: openai is not available (health check failed)"
    assert refused.details["retryAfterMs"] == 4000
    assert refused.details["attempted"] == [str(key) for key in GPT_4]


def test_9_an_only_key_is_left_alone_as_long_as_its_provider_says() -> None:
    found, health = registry({"default": [pool(GLM_47)]}), Health()
    health.failed(GLM_47, error(429), 0.0, wall=0.0)
    assert pick(wish(), found, health).target == GLM_47, "our own ladder"
    health.failed(GLM_47, error(429, retry_after_s=20), 1.0, wall=0.0)
    for one in (wish(), wish(force=Named("glm", None, "glm-4.7"))):
        refused = refusal(one, found, health)
        assert isinstance(refused, Resting)
        assert 19 < refused.seconds <= 20


def test_a_chain_is_followed_where_no_route_leads() -> None:
    """The answer that the call goes on from lives at that key."""
    found = registry({"default": [pool(GLM_47)]})
    assert pick(wish(chained=CLAUDE), found).target == CLAUDE
    assert pick(wish(chained=CLAUDE, state=SessionState(allowed=("glm",))), found).target == GLM_47
    assert pick(wish(chained=Target("gone", "k", "m")), found).target == GLM_47
    assert pick(wish(chained=CLAUDE), found, failed((CLAUDE, 401))).target == GLM_47


@pytest.mark.parametrize(
    "pools, sole", [([pool(GLM_47)], True), ([pool(*GPT_4)], False), ([pool(GLM_47), pool(CLAUDE, id="2")], False)]
)
def test_sole(pools: list[Pool], sole: bool) -> None:
    assert pick(wish(), registry({"default": pools})).sole is sole


# --- disable ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "off, expected",
    [
        (state(disabled_providers=("glm",)), set(GPT_4)),
        (state(disabled_keys=(("openai", "primary"),)), {GLM_47, *GPT_4[1:]}),
        (state(disabled_models=(("openai", "gpt-4"),)), {GLM_47}),
        (state(disabled_models=(("glm", "glm-latest"),)), set(GPT_4)),
        (state(disabled_models=(("glm", "gpt-4"),)), {GLM_47, *GPT_4}),
    ],
)
def test_disabled_is_never_chosen(off: SessionState, expected: set[Target]) -> None:
    assert set(picks(wish(state=off), 12)) == expected


def test_everything_disabled() -> None:
    refused = refusal(wish(state=state(disabled_providers=("glm", "openai"))))
    assert refused.message == "Requested provider glm is disabled: <**@glm**> switches it on again"
    assert refused.details == {"provider": "glm", "reason": "disabled"}


def test_routes_whose_keys_are_all_off() -> None:
    refused = refusal(wish("coding"), registry({"default": [pool()]}))
    assert refused.message == "No key is usable in the routes coding, default"


def test_v20_a_key_without_its_variable_and_a_provider_switched_off() -> None:
    off = replace(OPENAI, keys=(Key("primary", 1, off=True), *OPENAI.keys[1:]))
    assert set(picks(wish(), 12, registry(None, off))) == {GLM_47, *GPT_4[1:]}
    assert set(picks(wish(), 4, registry(None, replace(GLM, enabled=False)))) <= set(GPT_4)


# --- force ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "force, expected",
    [
        pytest.param(Named("openai", None, "gpt-5.2"), targets(OPENAI, "gpt-5.2"), id="model"),
        pytest.param(Named("openai", "backup", "gpt-4"), GPT_4[1:2], id="key and model"),
        pytest.param(Named("openai", "backup"), targets(OPENAI, "gpt-4", "backup"), id="key: the first model"),
        pytest.param(Named("glm", None, "glm-latest"), (GLM_47,), id="alias of a model"),
        pytest.param(Named("antigravity", None, "claude-sonnet-4-5"), SONNET, id="the keys that the routes hold for it"),
        pytest.param(Named("anthropic", None, "claude-sonnet-4-5"), (CLAUDE,), id="in no route"),
        pytest.param(Named("echo"), (Target("echo", "none", "claude-test"),), id="echo"),
    ],
)
def test_force(force: Named, expected: tuple[Target, ...]) -> None:
    for standing in (EMPTY, STICKY, state(allowed=("glm",))):
        one = wish("vision", state=standing, force=force, image=True)
        assert set(picks(one, 6)) == set(expected)
        assert pick(one).route == "force"


def test_force_with_a_key_takes_the_clients_model_where_it_is_declared() -> None:
    assert pick(wish(force=Named("openai", "third"), client_model="gpt-5.2")).target == Target("openai", "third", "gpt-5.2")
    assert pick(wish(force=Named("glm", "key1"), client_model="glm-latest")).target == GLM_47


@pytest.mark.parametrize(
    "force, standing, message, details",
    [
        pytest.param(
            Named("glm", None, "glm-4.7"),
            state(disabled_providers=("glm",)),
            "Requested provider glm is disabled: <**@glm**> switches it on again",
            {"provider": "glm", "reason": "disabled"},
            id="R10",
        ),
        pytest.param(
            Named("openai", "primary", "gpt-4"),
            state(disabled_keys=(("openai", "primary"),)),
            "Requested provider openai.primary is disabled: <**@openai.primary**> switches it on again",
            {"provider": "openai.primary", "reason": "disabled"},
            id="R10 key",
        ),
        pytest.param(
            Named("glm", None, "glm-4.7"),
            state(disabled_models=(("glm", "glm-4.7"),)),
            "Requested provider glm.glm-4.7 is disabled: <**@glm.glm-4.7**> switches it on again",
            {"provider": "glm.glm-4.7", "reason": "disabled"},
            id="R10 model",
        ),
        pytest.param(
            Named("not", None, "found"),
            EMPTY,
            "Requested provider not.found not found in provider registry (nearest known: anthropic, echo, antigravity)",
            {"provider": "not.found"},
            id="R11",
        ),
        pytest.param(
            Named("GLM", None, "glm-4.7"),
            EMPTY,
            "Requested provider GLM.glm-4.7 not found in provider registry (nearest known: glm, origin, antigravity)",
            {"provider": "GLM.glm-4.7"},
            id="R11 case counts",
        ),
        pytest.param(
            Named("glm", None, "zzz"),
            EMPTY,
            "Requested provider glm.zzz not found in provider registry (nearest known: glm.key1, glm.glm-4.7, glm.glm-latest)",
            {"provider": "glm.zzz"},
            id="R11 model",
        ),
        pytest.param(
            Named("openai", "secondary", "gpt-4"),
            EMPTY,
            "Requested provider openai.secondary.gpt-4 not found in provider registry"
            " (nearest known: openai.gpt-4, openai.gpt-5.2, openai.primary)",
            {"provider": "openai.secondary.gpt-4"},
            id="R11 key",
        ),
    ],
)
def test_force_refused(force: Named, standing: SessionState, message: str, details: dict[str, object]) -> None:
    refused = refusal(wish(force=force, state=standing))
    assert refused.message == message
    assert refused.details == details


def test_r12_an_unhealthy_forced_target_is_refused() -> None:
    force = Named("glm", None, "glm-4.7")
    refused = refusal(wish(force=force), health=failed((GLM_47, 401)))
    assert refused.message == (
        "Requested provider glm is not available (health check failed): glm.key1 is down for 10 min (key refused)"
        "; corrected in the configuration, it is used at once"
    )
    assert refused.details == {"provider": "glm", "reason": "unhealthy"}


def test_r12_a_cooling_single_key_is_tried_once() -> None:
    force = Named("glm", None, "glm-4.7")
    health = failed((GLM_47, 429))
    assert pick(wish(force=force), health=health).target == GLM_47
    refusal(wish(force=force, excluded=frozenset({GLM_47})), health=health)
    refusal(wish(force=Named("openai", None, "gpt-4")), health=failed(*((key, 429) for key in GPT_4)))


def test_r12_a_forced_key_is_named() -> None:
    refused = refusal(wish(force=Named("openai", "backup", "gpt-4")), health=failed((GPT_4[1], 403)))
    assert refused.details["provider"] == "openai.backup"


# --- sticky -----------------------------------------------------------------------------------------------------------


def test_r01_keys_alternate_by_message() -> None:
    first, second, third = picks(wish("thinking", state=STICKY), 3)
    assert {first, second} == set(SONNET)
    assert third == first
    assert pick(wish("coding", state=STICKY)).route == "sticky"
    assert picks(wish(state=STICKY, pinned=SONNET[1]), 3) == [SONNET[1]] * 3


def test_a_failing_sticky_key_leaves_the_pool_alone() -> None:
    for health, excluded in ((failed((SONNET[0], 429)), frozenset[Target]()), (Health(), frozenset({SONNET[0]}))):
        assert picks(wish(state=STICKY, excluded=excluded), 3, health=health) == [SONNET[1]] * 3


def test_a_sticky_key_is_bound_hard() -> None:
    one = wish(state=state(sticky=Sticky("antigravity", "sonnetbackup", "claude-sonnet-4-5")))
    assert picks(one, 3) == [SONNET[1]] * 3


def test_a_sticky_target_in_no_route_is_used_directly() -> None:
    decision = pick(wish(state=state(sticky=Sticky("anthropic", None, "claude-sonnet-4-5"))))
    assert (decision.target, decision.route, decision.clear_sticky) == (CLAUDE, "sticky", False)


def test_sticky_beats_allow() -> None:
    assert pick(wish(state=STICKY.with_(allowed=("glm",)))).route == "sticky"


@pytest.mark.parametrize(
    "pairs, changes",
    [
        pytest.param([(key, 429) for key in SONNET], {}, id="429"),
        pytest.param([(key, 500) for key in SONNET], {}, id="5xx"),
        pytest.param([(SONNET[0], 401), (SONNET[1], 429)], {}, id="one tripped, one cooling"),
        pytest.param([(key, 429) for key in SONNET], {"retry_after_s": 61.0}, id="a minute left"),
    ],
)
def test_r03_sticky_cools_down(pairs: list[tuple[Target, int]], changes: dict[str, object]) -> None:
    decision = pick(wish(state=STICKY), health=failed(*pairs, **changes))
    assert (decision.route, decision.clear_sticky) == ("default", False)


USED_UP = [
    pytest.param(STICKY, failed((SONNET[0], 401), (SONNET[1], 403)), id="credentials refused"),
    pytest.param(STICKY, failed(*((key, 429) for key in SONNET), quota=True), id="quota"),
    pytest.param(STICKY, failed(*((key, 500) for key in SONNET), times=3), id="three 5xx"),
    pytest.param(STICKY, failed(*((key, 429) for key in SONNET), retry_after_s=62.0), id="a long rest"),
    pytest.param(STICKY.with_(disabled_providers=("antigravity",)), Health(), id="R04 provider disabled"),
    pytest.param(STICKY.with_(disabled_models=(("antigravity", "claude-sonnet-4-5"),)), Health(), id="R04 model disabled"),
    pytest.param(
        STICKY.with_(disabled_keys=(("antigravity", "sonnetkey"), ("antigravity", "sonnetbackup"))),
        Health(),
        id="R04 keys disabled",
    ),
    pytest.param(state(sticky=Sticky("gone", None, "m")), Health(), id="provider removed"),
    pytest.param(state(sticky=Sticky("glm", "gone", "glm-4.7")), Health(), id="key removed"),
    pytest.param(state(sticky=Sticky("glm", None, "gone")), Health(), id="model removed"),
]


@pytest.mark.parametrize("standing, health", USED_UP)
def test_r05_sticky_used_up(standing: SessionState, health: Health) -> None:
    decision = pick(wish(state=standing), health=health)
    assert (decision.route, decision.clear_sticky) == ("default", True)
    kept = pick(wish(state=standing), registry(on_exhausted="keep"), health)
    assert (kept.route, kept.clear_sticky) == ("default", False)


def test_r07_an_image_goes_to_the_vision_route_and_sticky_stays() -> None:
    decision = pick(wish("vision", state=STICKY, image=True))
    assert (decision.target, decision.route, decision.clear_sticky) == (GEMINI, "vision", False)


@pytest.mark.parametrize("route", ["vision", "web_search", "longcontext"])
def test_explicit_routes_come_before_sticky(route: str) -> None:
    found = registry({"default": [pool(GLM_47)], route: [pool(CLAUDE, id=route)]})
    assert pick(wish(route, state=STICKY), found).route == route
    assert pick(wish(route, state=STICKY), found, failed((CLAUDE, 429))).route == "sticky"
    assert pick(wish(route, state=STICKY), registry({"default": [pool(GLM_47)]})).route == "sticky"


@pytest.mark.parametrize("route", ["coding", "thinking", "tools", "search", "background"])
def test_other_routes_do_not(route: str) -> None:
    found = registry({"default": [pool(GLM_47)], route: [pool(CLAUDE, id=route)]})
    assert pick(wish(route, state=STICKY), found).route == "sticky"


def test_s11_disable_sticky_for_one_call() -> None:
    one = wish("thinking", state=STICKY_GEMINI)
    decision = pick(replace(one, disable_sticky=True))
    assert (decision.route, decision.clear_sticky) == ("thinking", False)
    assert pick(one).target == GEMINI


def test_s12_force_then_not() -> None:
    rotation = Rotation()
    assert pick(wish(force=Named("anthropic", None, "claude-sonnet-4-5")), rotation=rotation).route == "force"
    assert pick(wish(), rotation=rotation).route == "default"


def test_a_sticky_model_too_small() -> None:
    small = state(sticky=Sticky("sizes", None, "small"))
    found = registry({"default": [pool(TO_LARGE)]}, SIZES)
    assert pick(wish(state=small, tokens=5000), found).target == TO_SMALL
    hard = pick(wish(state=small, tokens=5000), replace(found, hard_limit=True))
    assert (hard.target, hard.clear_sticky) == (TO_LARGE, False)


# --- allow ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "allowed, route, targets_",
    [
        pytest.param(("glm",), "default", {GLM_47}, id="in a candidate route"),
        pytest.param(("openai", "glm"), "default", {GLM_47, *GPT_4}, id="two"),
        pytest.param(("antigravity",), "thinking", set(SONNET), id="R09 in a route that is no candidate"),
        pytest.param(("anthropic",), "allow", {CLAUDE}, id="R09 in no route"),
        pytest.param(("echo",), "allow", {Target("echo", "none", "claude-test")}, id="R09 echo"),
        pytest.param(("gone", "glm"), "default", {GLM_47}, id="one of them removed"),
    ],
)
def test_r09_allow(allowed: tuple[str, ...], route: str, targets_: set[Target]) -> None:
    one = wish("coding", state=state(allowed=allowed))
    assert pick(one).route == route
    assert set(picks(one, 12)) == targets_


@pytest.mark.parametrize(
    "standing, health, message",
    [
        (
            state(allowed=("gone",)),
            Health(),
            "Requested provider gone not found in provider registry (nearest known: origin, openai, glm)",
        ),
        (
            state(allowed=("glm",), disabled_providers=("glm",)),
            Health(),
            "Requested provider glm is disabled: <**@glm**> switches it on again",
        ),
        (
            state(allowed=("glm",)),
            failed((GLM_47, 401)),
            "Requested provider glm is not available (health check failed): glm.key1 is down for 10 min (key refused)"
            "; corrected in the configuration, it is used at once",
        ),
        (
            state(allowed=("anthropic",)),
            failed((CLAUDE, 401)),
            "Requested provider anthropic is not available (health check failed): anthropic.primary is down for 10 min "
            "(key refused); corrected in the configuration, it is used at once",
        ),
    ],
)
def test_r09_undeclared_or_down(standing: SessionState, health: Health, message: str) -> None:
    assert refusal(wish(state=standing), health=health).message == message


def test_allow_takes_another_declared_model_where_the_first_is_too_small() -> None:
    found = registry(None, SIZES)
    one = wish(state=state(allowed=("sizes",)), tokens=100)
    assert pick(one, found).target == TO_SMALL
    assert pick(replace(one, tokens=5000), found).target == TO_LARGE
    assert pick(replace(one, client_model="large"), found).target == TO_LARGE


# --- direct -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model, expected",
    [
        ("glm.glm-4.7", {GLM_47}),
        ("glm.glm-latest", {GLM_47}),
        ("openai.gpt-4", set(GPT_4)),
        ("openai.backup.gpt-5.2", {Target("openai", "backup", "gpt-5.2")}),
        ("echo.anything.at-all", {Target("echo", "none", "anything.at-all")}),
    ],
)
def test_r14_direct(model: str, expected: set[Target]) -> None:
    one = wish("thinking", client_model=model)
    assert pick(one).route == "direct"
    assert set(picks(one, 6)) == expected


@pytest.mark.parametrize("model", ["glm.nothing", "openai.backup.nothing", "openai.nothing.gpt-4", "openai.backup"])
def test_r14_unknown_model_of_a_known_provider(model: str) -> None:
    with pytest.raises(ConfigError) as caught:
        pick(wish(client_model=model))
    assert caught.value.code == "CONFIG_ERROR"


@pytest.mark.parametrize("model", ["gpt-4.1", "glm.", ".glm-4.7", "glm", "", "GLM.glm-4.7"])
def test_r14_other_models_are_only_models(model: str) -> None:
    assert pick(wish(client_model=model)).route == "default"


def test_tags_come_before_the_calls_model() -> None:
    direct = wish(client_model="glm.glm-4.7")
    assert pick(replace(direct, state=STICKY)).route == "sticky"
    assert pick(replace(direct, force=Named("openai", None, "gpt-4"))).route == "force"
    assert pick(replace(direct, state=state(allowed=("openai",)))).target.provider == "openai"
    assert refusal(replace(direct, state=state(disabled_providers=("glm",)))).details["reason"] == "disabled"
    assert refusal(direct, health=failed((GLM_47, 401))).details["reason"] == "unhealthy"


# --- what must never happen -------------------------------------------------------------------------------------------

NAMES = st.sampled_from(["glm", "openai", "antigravity", "origin", "echo", "gone"])
KEYS = st.sampled_from(["key1", "primary", "backup", "sonnetkey", "client", "gone"])
MODELS = st.sampled_from(["glm-4.7", "gpt-4", "gpt-5.2", "claude-sonnet-4-5", "gemini-3-pro-high", "gone", ""])
TARGETS = st.sampled_from(
    [GLM_47, *GPT_4, *targets(OPENAI, "gpt-5.2"), *SONNET, GEMINI, Target("origin", "client", ""), Target("echo", "none", "")]
)
SOME_TARGETS = st.builds(Target, NAMES, KEYS, MODELS) | TARGETS
ROUTES = st.sampled_from(["default", "thinking", "vision", "longcontext", "web_search", "mine"])


@st.composite
def registries(draw: st.DrawFn) -> Registry:
    providers = dict(BUILT_IN)
    for one in draw(st.lists(st.sampled_from([GLM, OPENAI, ANTIGRAVITY]), min_size=1, unique_by=lambda one: one.id)):
        keys = tuple(replace(key, off=draw(st.integers(0, 4)) == 0) for key in one.keys)
        models = {name: replace(model, max_context=draw(st.sampled_from([100, 200_000]))) for name, model in one.models.items()}
        providers[one.id] = replace(one, keys=keys, models=models, enabled=draw(st.integers(0, 5)) > 0)
    pools = st.builds(
        Pool,
        st.sampled_from(["a", "b"]),
        st.lists(SOME_TARGETS, max_size=5).map(tuple),
        st.just(1),
        mode=st.sampled_from(["priority", "round-robin", "weighted", "sticky"]),
    )
    routes = draw(st.dictionaries(ROUTES, st.lists(pools, max_size=3).map(tuple), max_size=4))
    return Registry(providers, {"default": (), **routes}, hard_limit=draw(st.booleans()))


def classified(routes: list[str]) -> Classified:
    return Classified((*dict.fromkeys([*routes, "default"]),), "why", EXPLICIT & {*routes})


STATES = st.builds(
    SessionState,
    sticky=st.none() | st.builds(Sticky, NAMES, st.none() | KEYS, st.none() | MODELS),
    allowed=st.lists(NAMES, max_size=2).map(tuple),
    disabled_providers=st.lists(NAMES, max_size=2).map(tuple),
    disabled_keys=st.lists(st.tuples(NAMES, KEYS), max_size=3).map(tuple),
    disabled_models=st.lists(st.tuples(NAMES, MODELS), max_size=2).map(tuple),
)
WISHES = st.builds(
    Wish,
    features=st.builds(Features, media=st.sampled_from([frozenset(), frozenset({"image"})])),
    classified=st.lists(ROUTES, max_size=2).map(
        lambda routes: Classified((*dict.fromkeys([*routes, "default"]),), "why", EXPLICIT & {*routes})
    ),
    state=STATES,
    force=st.none() | st.builds(Named, NAMES, st.none() | KEYS, st.none() | MODELS),
    client_model=st.sampled_from(["claude-test", "gpt-4", "glm.glm-4.7", "openai.gone", "gone.x", ""]),
    excluded=st.frozensets(SOME_TARGETS, max_size=3),
    disable_sticky=st.booleans(),
    pinned=st.none() | SOME_TARGETS,
    tokens=st.sampled_from([1, 150, 10**6]),
)
FAILURES = st.lists(st.tuples(TARGETS, st.sampled_from([401, 402, 429, 500])), max_size=6)


@settings(max_examples=5_000 if LONG else 250)
@given(registries(), WISHES, FAILURES)
def test_never_what_is_disabled_unknown_or_excluded(found: Registry, one: Wish, failures: list[tuple[Target, int]]) -> None:
    health, rotation = failed(*failures), Rotation()
    once, twice = (outcome(one, found, deepcopy(health), deepcopy(rotation)) for _ in range(2))
    assert once == twice
    if not isinstance(once, Decision):
        return
    target = once.target
    served = found.providers[target.provider]
    key = served.key(target.key)
    assert key is not None
    assert not key.off
    assert served.enabled
    assert target.model in served.models or not served.models
    assert target not in one.excluded
    assert target.provider not in one.state.disabled_providers
    assert (target.provider, target.key) not in one.state.disabled_keys
    assert (target.provider, target.model) not in one.state.disabled_models
    if once.route not in ("force", "sticky"):
        assert not one.state.allowed or target.provider in one.state.allowed
    assert once.reason


def outcome(one: Wish, found: Registry, health: Health, rotation: Rotation) -> Decision | str:
    try:
        return choose(one, found, health, rotation, 1.0)
    except (NoTarget, ConfigError) as refused:
        return f"{refused.code} {refused.message} {refused.details}"
