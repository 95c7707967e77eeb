"""Where a call's rounds go when a provider fails: real configuration, health, attempts and choice; only the clock is ours."""

from __future__ import annotations

import json
from collections.abc import Callable
from email.utils import formatdate
from pathlib import Path

import pytest

from routecodex.routing.router.health import Cooling, Healthy, Tripped
from routecodex.routing.turn.actions import Again, Failed, Finish, Forward, Head, OpenHead, Refusal, Refuse
from routecodex.routing.turn.plan import Plan
from routecodex.routing.turn.turn import Turn
from routecodex.routing.values import Dialect, ProviderError, Target, Usage
from tests.routing.house import CONFIG_A, SECRET, House, Tool, config_text, provider_text
from tests.routing.turn.spelled_out import spelled_out
from tests.routing.turn.test_turn import passing

EIGHT = provider_text("eight", "a b c d e f g h", "m")
OWN = """
    own:
      protocol: anthropic-messages
      baseURL: https://api.anthropic.com
      auth: {type: client}
      models: {claude-x: {}}"""
PLAIN = """
    plain:
      protocol: openai-chat
      baseURL: https://plain.example/v1
      auth: {type: none}
      models: {m: {}}"""
CLAUDE_FIRST = "{targets: [anthropic.claude-sonnet-4-5], priority: 3}"
PLAIN_SECOND = "{targets: [plain.m], priority: 2}"
DIALECTS = pytest.mark.parametrize("dialect", list(Dialect))


@pytest.fixture
def house(tmp_path: Path) -> Callable[..., House]:
    return lambda routing="default: [openai.gpt-4]", providers=CONFIG_A, **more: House(
        tmp_path, config_text(routing, providers, **more)
    )


Build = Callable[..., House]


def fail(plan: Plan, house: House, status: int = 500, *, head: bool = True, body: bytes = b"{}", **error: object) -> float | None:
    """The round that the plan asked for goes wrong."""
    plan.request()
    failed = ProviderError(status, str(error.pop("message", f"error {status}")), f"HTTP_{status}", **error)  # type: ignore[arg-type]
    return plan.failed(Failed(failed, Head(status, (("x-request-id", "r1"),)) if head else None, body), house.clock.now)


def state_of(house: House, target: Target) -> object:
    return house.learned.health.state(target, house.clock.now)


def error_in(refusal: Refusal) -> dict[str, object]:
    document = json.loads(refusal.body)
    error = (document[0] if isinstance(document, list) else document)["error"]
    assert isinstance(error, dict)
    return error


# --- the next target --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [401, 402, 403, 408, 425, 429, 500, 502, 503, 504, 529])
def test_h05_the_next_key_is_asked_at_once(house: Build, status: int) -> None:
    found = house()
    plan = Tool(found).say("hello").plan
    first = plan.target
    assert fail(plan, found, status) == 0.0
    assert plan.target != first
    assert plan.target.group == first.group
    assert f"after {first} {status}" in plan.comment
    headers = dict(plan.request().headers.secret)
    assert headers == {"x-api-key": f"sk-openai-{plan.target.key}-secret"}


def test_v19_next_key_then_next_provider_and_none_twice(house: Build) -> None:
    found = house("default: [{id: first, targets: [openai.gpt-4], priority: 2}, {id: second, targets: [glm.glm-4.7]}]")
    plan = Tool(found).say("hello").plan
    seen = [plan.target]
    while fail(plan, found, 503) is not None:
        seen.append(plan.target)
    assert len(set(seen)) == len(seen) == 4
    assert [target.provider for target in seen] == ["openai"] * 3 + ["glm"]


@DIALECTS
def test_h06_when_all_fail_the_first_providers_own_error_is_told(house: Build, dialect: Dialect) -> None:
    found = house()
    plan = Tool(found, dialect).say("hello").plan
    for number in range(3):
        again = fail(plan, found, 503 - number, body=b'{"error":{"message":"words %d"}}' % number)
    assert again is None
    refusal = plan.refusal()
    assert refusal.head == Head(503, (("x-request-id", "r1"), ("x-should-retry", "false")))
    assert refusal.body == b'{"error":{"message":"words 0"}}'


def test_h07_a_bad_request_is_neither_repeated_nor_held_against_the_key(house: Build) -> None:
    found = house()
    plan = Tool(found).say("hello").plan
    assert fail(plan, found, 400, body=b'{"error":{"message":"prompt is too long"}}') is None
    assert state_of(found, plan.target) == Healthy()
    assert plan.refusal().head.status == 400
    assert b"prompt is too long" in plan.refusal().body


def test_h15_six_attempts_and_no_more(house: Build) -> None:
    found = house("default: [eight.m]", EIGHT)
    plan = Tool(found).say("hello").plan
    steps = [fail(plan, found, 500) for _ in range(6)]
    assert steps == [0.0] * 5 + [None]
    assert len(plan.tried) == 5


def test_max_attempts_is_the_configurations(house: Build) -> None:
    found = house("default: [eight.m]", EIGHT, top="retries: {maxAttempts: 2}")
    plan = Tool(found).say("hello").plan
    assert [fail(plan, found, 500) for _ in range(2)] == [0.0, None]


@pytest.mark.parametrize("status, network", [(502, True), (504, True)])
def test_h11_a_broken_connection_changes_nobodys_health_and_is_repeated(house: Build, status: int, network: bool) -> None:
    found = house()
    plan = Tool(found).say("hello").plan
    first = plan.target
    assert fail(plan, found, status, head=False, network=network) == 0.0
    assert state_of(found, first) == Healthy()
    while fail(plan, found, status, head=False, network=network, message="connection refused") is not None:
        pass
    refusal = plan.refusal()
    assert refusal.head == Head(status, (("content-type", "application/json"), ("x-should-retry", "false")))
    assert error_in(refusal)["message"] == f"Provider openai: error {status}"


def test_a_target_of_another_dialect_is_the_next_as_well(house: Build) -> None:
    found = house(f"default: [{CLAUDE_FIRST}, {PLAIN_SECOND}, {{targets: [glm.glm-4.7]}}]", CONFIG_A + PLAIN)
    plan = Tool(found).say("hello").plan
    plan.request()
    assert plan.round is None
    assert not plan.exact
    assert fail(plan, found, 500) == 0.0
    assert plan.target.provider == "plain"
    assert plan.request().path.endswith("/chat/completions")
    assert plan.round is not None
    chat = Tool(found, Dialect.CHAT, session="two").say("hello").plan
    assert chat.target.provider == "plain", "anthropic rests"


def test_a_target_that_cannot_be_asked_is_passed_over(house: Build) -> None:
    spoken = PLAIN.replace("plain", "spoken").replace("openai-chat", "openai-responses")
    routes = f"default: [{{targets: [spoken.m], priority: 3}}, {PLAIN_SECOND}, {{targets: [glm.glm-4.7]}}]"
    found = house(routes, CONFIG_A + PLAIN + spoken)
    plan = Tool(found, Dialect.RESPONSES).say("hello").plan
    assert plan.target.provider == "spoken"
    plan.call.previous_id = "resp_1"
    assert fail(plan, found, 500) == 0.0
    assert plan.target.provider == "glm", "it speaks the tool's dialect, plain does not"


# --- health -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "status, changes, kind, seconds",
    [
        pytest.param(429, {}, Cooling, 5.0, id="H01"),
        pytest.param(429, {"retry_after_s": 77.0}, Cooling, 77.0, id="said"),
        pytest.param(500, {}, Cooling, 5.0, id="H05"),
        pytest.param(401, {}, Tripped, 600.0, id="H04"),
        pytest.param(429, {"quota": True, "retry_after_s": 3600.0}, Tripped, 3600.0, id="H10"),
    ],
)
def test_a_failure_rests_the_key(house: Build, status: int, changes: dict[str, object], kind: type, seconds: float) -> None:
    found = house()
    plan = Tool(found).say("hello").plan
    first = plan.target
    fail(plan, found, status, **changes)
    state = state_of(found, first)
    assert isinstance(state, kind)
    assert isinstance(state, Cooling | Tripped)
    assert state.until == pytest.approx(found.clock.now + seconds)


def test_h03_an_answer_makes_the_key_well_again(house: Build) -> None:
    found = house("default: [glm.glm-4.7]")
    plan = Tool(found).say("hello").plan
    fail(plan, found, 429)
    assert isinstance(state_of(found, plan.target), Cooling)
    plan = Tool(found, session="two").say("hello").plan
    found.clock.passes(6)
    plan.request()
    plan.answered("", found.clock.now)
    assert state_of(found, plan.target) == Healthy()
    assert plan.settled


def test_the_provider_says_when_as_a_date_of_the_wall_clock(house: Build) -> None:
    """The turn counts monotonic seconds; a date is one of the epoch."""
    found = house()
    handled = Tool(found).say("hello")
    plan = handled.plan
    first = plan.target
    turn = Turn(
        handled.received.endpoint,
        False,
        plan,
        found.desk.limits(plan),
        found.clock.now,
        passing(handled.received.endpoint, False),
        alone=True,
    )
    plan.request()
    turn.head(429, {"retry-after": formatdate(found.clock.epoch + 40, usegmt=True)}, found.clock.now)
    turn.end(found.clock.now)
    state = state_of(found, first)
    assert isinstance(state, Cooling)
    assert state.until == pytest.approx(found.clock.now + 40, abs=1)


def test_a_client_that_leaves_frees_the_probe_and_harms_no_key(house: Build) -> None:
    found = house("default: [glm.glm-4.7]")
    tool = Tool(found)
    fail(tool.say("hello").plan, found, 503)
    found.clock.passes(6)
    probing = tool.ask().plan
    probing.request()
    assert isinstance(state_of(found, probing.target), Cooling), "one probe at a time"
    probing.over()
    assert state_of(found, probing.target) == Healthy()


def test_over_gives_the_place_in_the_retry_budget_back(house: Build) -> None:
    found = house()
    plan = Tool(found).say("hello").plan
    fail(plan, found, 503)
    assert plan.place(found.clock.now) == 0.0
    budget = found.learned.budget
    assert (budget.calls, budget.retrying) == (1, 1)
    plan.over()
    plan.over()
    assert (budget.calls, budget.retrying) == (0, 0)


# --- nobody to fail over to ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "routing, status, changes, steps",
    [
        pytest.param("default: [glm.glm-4.7]", 500, {}, [0.5, 2.0, None], id="a stumbling server is asked again"),
        pytest.param("default: [glm.glm-4.7]", 502, {"network": True}, [0.5, 2.0, None], id="a broken connection too"),
        pytest.param("default: [glm.glm-4.7]", 429, {}, [5.0, None], id="a limit of unsaid length: as long as the key rests"),
        pytest.param("default: [glm.glm-4.7]", 429, {"retry_after_s": 2.0}, [2.0, 2.0, 2.0, 2.0, 2.0, None], id="a short limit"),
        pytest.param("default: [glm.glm-4.7]", 429, {"retry_after_s": 30.0}, [None], id="a long limit"),
        pytest.param("default: [glm.glm-4.7]", 429, {"quota": True}, [None], id="a spent quota"),
        pytest.param("default: [glm.glm-4.7]", 401, {}, [None], id="a refused key"),
        pytest.param("default: [openai.gpt-4]", 429, {}, [0.0, 0.0, None], id="others are there: nobody waits"),
        pytest.param(
            "default: [openai.gpt-4]", 429, {"retry_after_s": 2}, [2, 0, 2, 0, 2, None], id="the cache is worth a short wait"
        ),
    ],
)
def test_waiting(house: Build, routing: str, status: int, changes: dict[str, object], steps: list[float | None]) -> None:
    found = house(routing)
    plan = Tool(found).say("hello").plan
    for expected in steps:
        again = fail(plan, found, status, **changes)
        assert again == (None if expected is None else pytest.approx(expected))
        found.clock.passes(again or 0.0)


def test_waiting_for_the_same_key_can_be_configured_away(house: Build) -> None:
    found = house("default: [glm.glm-4.7]", more="  health: {waitForSameKeyMs: 1000}")
    assert fail(Tool(found).say("hello").plan, found, 429) is None


def test_too_many_repeated_calls_leave_the_repeating_to_the_clients(house: Build) -> None:
    """A give-up for our own sake does not tell the client to give up too."""
    found = house("default: [eight.m]", EIGHT)
    plans = [Tool(found, session=str(number)).say("hello").plan for number in range(8)]
    assert [fail(plan, found, 502, head=False, network=True) for plan in plans] == [0.0] * 8
    waiting = [plan for plan in plans if plan.place(found.clock.now)]
    assert len(waiting) == 5
    found.clock.passes(60)
    for plan in waiting:
        assert plan.place(found.clock.now) is None
        assert dict(plan.refusal().head.headers) == {"content-type": "application/json"}
    late = Tool(found, session="late").say("hello").plan
    assert fail(late, found, 503) == 0.0
    assert late.place(found.clock.now)
    found.clock.passes(60)
    assert late.place(found.clock.now) is None
    assert dict(late.refusal().head.headers) == {"x-request-id": "r1"}
    for plan in plans:
        plan.over()
    alone = Tool(found, session="alone").say("hello").plan
    while fail(alone, found, 500) is not None:
        assert alone.place(found.clock.now) == 0.0
    assert dict(alone.refusal().head.headers)["x-should-retry"] == "false"


# --- our keys and the caller's ----------------------------------------------------------------------------------------


@DIALECTS
@pytest.mark.parametrize("status", [401, 402, 403])
def test_a_refusal_of_our_key_names_provider_and_alias_and_never_the_key(house: Build, dialect: Dialect, status: int) -> None:
    found = house("default: [glm.glm-4.7]")
    plan = Tool(found, dialect).say("hello").plan
    body = b'{"error":{"message":"invalid x-api-key sk-glm-key1-secret"}}'
    assert fail(plan, found, status, body=body, message="invalid x-api-key sk-glm-key1-secret") is None
    refusal = plan.refusal()
    assert refusal.head == Head(400, (("content-type", "application/json"), ("x-should-retry", "false")))
    assert error_in(refusal)["message"] == f"Provider glm refused the key key1 (status {status}, HTTP_{status})"
    assert b"secret" not in refusal.body
    assert b"PROVIDER_KEY_REFUSED" in refusal.body


def test_a_providers_words_are_passed_on_without_the_key_in_them(house: Build) -> None:
    found = house("default: [glm.glm-4.7]")
    plan = Tool(found).say("hello").plan
    fail(plan, found, 404, body=b'{"error":"no model for sk-glm-key1-secret"}')
    assert plan.refusal().body == b'{"error":"no model for ***"}'


def test_an_early_head_ends_in_the_same_words_without_the_key_in_them(house: Build) -> None:
    found = house("default: [glm.glm-4.7]")
    handled = Tool(found, stream=True).say("hello")
    turn = Turn(
        handled.received.endpoint,
        True,
        handled.plan,
        found.desk.limits(handled.plan),
        found.clock.now,
        passing(handled.received.endpoint, True),
        alone=True,
    )
    handled.plan.request()
    turn.tick(found.clock.now + 30)
    turn.head(401, {}, found.clock.now + 31)
    turn.data(b'{"error":{"message":"bad key sk-glm-key1-secret"}}', found.clock.now + 31)
    turn.end(found.clock.now + 31)
    body = b"".join(action.data for action in turn.actions if isinstance(action, Forward))
    assert b"secret" not in body
    assert b"Provider glm refused the key key1" in body
    assert isinstance(turn.actions[-1], Finish)


@DIALECTS
@pytest.mark.parametrize("status", [400, 401, 403, 429, 500, 529])
def test_errors_of_origin_alone_pass_untouched_and_at_once(house: Build, dialect: Dialect, status: int) -> None:
    found = house("default: [origin]")
    plan = Tool(found, dialect).say("hello").plan
    assert plan.at_home_alone
    assert found.desk.limits(plan).early_head_s is None
    words = b"the vendor's own words to " + SECRET.encode()
    assert fail(plan, found, status, body=words, retry_after_s=1.0) is None
    assert plan.refusal() == Refusal(Head(status, (("x-request-id", "r1"),)), words)
    assert state_of(found, plan.target) == Healthy()


def test_origin_keeps_the_headers_of_its_errors(house: Build) -> None:
    found = house("default: [origin]")
    plan = Tool(found).say("hello").plan
    headers = {"retry-after": "7", "x-own": "kept", "x-should-retry": "true", "connection": "close", "content-length": "3"}
    assert plan.head(429, headers) == Head(429, (("retry-after", "7"), ("x-own", "kept"), ("x-should-retry", "true")))
    foreign = Tool(house(), session="two").say("hello").plan
    assert foreign.head(429, headers) == Head(429, (("retry-after", "7"),))


def test_origin_is_asked_again_where_the_connection_broke(house: Build) -> None:
    found = house("default: [origin]")
    plan = Tool(found).say("hello").plan
    steps = [fail(plan, found, 502, head=False, network=True, message="connection refused") for _ in range(3)]
    assert steps == [0.5, 2.0, None]
    refusal = plan.refusal()
    assert refusal.head.status == 502
    assert error_in(refusal)["message"] == "connection refused"


def test_origin_with_others_beside_it_fails_over(house: Build) -> None:
    found = house("default: [{targets: [origin], priority: 2}, {targets: [glm.glm-4.7]}]")
    plan = Tool(found).say("hello").plan
    assert not plan.at_home_alone
    assert plan.exact
    assert fail(plan, found, 529) == 0.0
    assert plan.target.provider == "glm"
    assert not plan.at_home_alone
    assert not plan.exact, "its word for the end is corrected"


@pytest.mark.parametrize("status", [401, 403, 429, 500])
def test_what_a_provider_says_to_the_callers_own_credential_is_the_callers_business(house: Build, status: int) -> None:
    """`auth: client`: no key of ours is to blame, and a 401 lets the tool renew its token."""
    found = house("default: [own.claude-x]", CONFIG_A + OWN)
    plan = Tool(found, model="claude-x").say("hello").plan
    assert plan.request().client_credential
    fail(plan, found, status, body=b"their words")
    assert state_of(found, plan.target) == Healthy(), "its health says nothing of a key of ours"
    while fail(plan, found, status) is not None:
        pass
    assert plan.refusal() == Refusal(Head(status, (("x-request-id", "r1"),)), b"their words")


# --- counting ---------------------------------------------------------------------------------------------------------


def counting(found: House, host: str = "api.anthropic.com") -> Plan:
    body = {"model": "claude-x", "messages": [{"role": "user", "content": "hello " * 100}]}
    return found.handle(found.received("/v1/messages/count_tokens", body, host=host)).plan


COUNTS = """
    counts:
      protocol: anthropic-messages
      baseURL: https://counts.example
      auth: {type: apikey, keys: [{alias: a, value: sk-counts-a-secret}, {alias: b, value: sk-counts-b-secret}]}
      countTokens: true
      models: {m: {}}"""


@pytest.mark.parametrize("status, network", [(401, False), (429, False), (500, False), (404, False), (502, True)])
def test_counting_never_touches_health_and_is_answered_by_our_own_count(house: Build, status: int, network: bool) -> None:
    found = house("default: [counts.m]", COUNTS)
    plan = counting(found)
    assert plan.counting
    assert fail(plan, found, status, head=not network, network=network) is None
    assert state_of(found, plan.target) == Healthy()
    refusal = plan.refusal()
    assert refusal.head.status == 200
    assert 80 <= json.loads(refusal.body)["input_tokens"] <= 400
    plan.over()
    assert found.learned.budget.calls == 0


def test_counting_neither_probes_nor_heals(house: Build) -> None:
    found = house("default: [counts.m]", COUNTS.replace(", {alias: b, value: sk-counts-b-secret}", ""))
    target = Target("counts", "a", "m")
    found.learned.health.failed(target, ProviderError(503), found.clock.now, wall=0.0)
    found.clock.passes(6)
    plan = counting(found)
    plan.request()
    assert state_of(found, target) == Healthy(), "no probe is under way"
    plan.answered("", found.clock.now)
    found.learned.health.failed(target, ProviderError(503), found.clock.now, wall=0.0)
    state = state_of(found, target)
    assert isinstance(state, Cooling)
    assert state.until - found.clock.now == pytest.approx(15.0), "the second step of the ladder: nothing was healed"


def test_origins_own_count_fails_as_its_own(house: Build) -> None:
    found = house("default: [origin]")
    plan = counting(found)
    assert fail(plan, found, 404, body=b"no such path") is None
    assert plan.refusal() == Refusal(Head(404, (("x-request-id", "r1"),)), b"no such path")


# --- the turn and its plan ------------------------------------------------------------------------------------------------


def test_a_turn_asks_its_plan_and_the_client_gets_the_second_keys_answer(house: Build) -> None:
    found = house()
    handled = Tool(found).say("hello")
    plan = handled.plan
    first = plan.target
    turn = Turn(
        handled.received.endpoint,
        False,
        plan,
        found.desk.limits(plan),
        found.clock.now,
        passing(handled.received.endpoint, False),
        alone=True,
    )
    plan.request()
    turn.head(529, {"content-type": "application/json"}, found.clock.now)
    turn.end(found.clock.now)
    assert turn.actions[-1] == Again(0.0)
    turn.begin(found.clock.now)
    plan.request()
    answer = (
        b'{"id":"msg_1","type":"message","content":[{"type":"text","text":"x"}],"usage":{"input_tokens":2,"output_tokens":3}}'
    )
    turn.head(200, {"content-type": "application/json", "server": "hidden"}, found.clock.now)
    turn.data(answer, found.clock.now)
    turn.end(found.clock.now)
    assert list(spelled_out(turn.actions))[-3:] == [
        OpenHead(Head(200, (("content-type", "application/json"),))),
        Forward(answer),
        Finish(),
    ]
    assert plan.target != first
    assert turn.usage() == Usage(2, 3)
    assert not any(isinstance(action, Refuse) for action in turn.actions)
    assert [note for note in found.notes if "failed" in note] == [f"{first} failed: status 529, HTTP_529"]


def test_notes_tell_no_words_of_the_provider(house: Build) -> None:
    found = house()
    plan = Tool(found).say("hello").plan
    fail(plan, found, 500, message="your prompt was: hello")
    assert not any("hello" in note for note in found.notes)


def test_our_estimates_learn_from_what_answers_cost(house: Build) -> None:
    found = house()
    plan = Tool(found).say("hello " * 200).plan
    before = found.learned.calibration.apply(plan.target, 1000)
    plan.used(Usage(plan.estimate() * 2, 1))
    assert found.learned.calibration.apply(plan.target, 1000) > before
    at_home = Tool(house("default: [origin]"), session="two").say("hello " * 200).plan
    at_home.used(Usage(at_home.estimate() * 2, 1))
    assert at_home.memory.calibration.apply(at_home.target, 1000) == 1000


# --- what a provider may not repeat -----------------------------------------------------------------------------------


@DIALECTS
def test_what_the_provider_was_sent_is_masked_in_what_it_says(house: Build, dialect: Dialect) -> None:
    plan = Tool(house(), dialect).say("hello").plan
    key = plan.provider.key(plan.target.key)
    assert key is not None
    assert plan.mask().feed(f"bad key {key.value}!".encode(), 0.0) == b"bad key ***!"
    head = plan.head(200, {"x-request-id": f"r-{key.value}", "x-ratelimit-limit-tokens": "9", "content-type": "application/json"})
    assert dict(head.headers)["x-request-id"] == "r-***"
    assert dict(head.headers)["x-ratelimit-limit-tokens"] == "9"


def test_the_clients_own_credential_is_its_own_business(house: Build) -> None:
    plan = Tool(house("default: [origin]")).say("hello").plan
    assert not plan.mask()


def test_a_key_that_is_a_word_is_no_secret_in_a_text(house: Build) -> None:
    local = PLAIN.replace(
        "{type: none}", "{type: apikey, keys: [{alias: k, value: ollama}]}\n      headers: {accept: application/json}"
    )
    plan = Tool(house("default: [plain.m]", CONFIG_A + local), Dialect.CHAT).say("hello").plan
    assert plan.target.provider == "plain"
    assert not plan.mask()
    assert dict(plan.head(200, {"content-type": "application/json"}).headers) == {"content-type": "application/json"}
    assert plan.without_quotes(b"I am ollama") == b"I am ollama"
    assert plan.without_quotes(b'{"error": {"message": "no ollama"}}') == b'{"error": {"message": "no ***"}}'


def test_what_an_answer_could_not_be_told_stands_in_the_comment(house: Build) -> None:
    plan = Tool(house()).say("hello").plan
    plan.request()
    plan.unsay("")
    assert "left out of the answer" not in plan.comment + plan.long_comment
    plan.unsay("citations")
    assert "left out of the answer: citations" in plan.comment
    assert "left out of the answer: citations" in plan.long_comment
