"""What leaves the desk: requests that go up, and answers and refusals of our own, in four dialects."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest
from msgspec.structs import replace

from routecodex.routing.clock.moment import moment_at
from routecodex.routing.clock.time_tag import tag_text
from routecodex.routing.codings import zstd
from routecodex.routing.desk.desk import Plan
from routecodex.routing.dialects.calls.ending import with_texts
from routecodex.routing.errors import BadCall, ConfigError
from routecodex.routing.router.health import Healthy
from routecodex.routing.sessions.state import Sticky
from routecodex.routing.sessions.store import SessionKey
from routecodex.routing.tags.status import LOCAL_ANSWER_MARK
from routecodex.routing.values import Dialect, Kind, ProviderError, Target
from tests.rig.proxy import ROOT
from tests.routing.desk.given import OWN, TWO_KEYS, Build
from tests.routing.house import CONFIG_A, HOSTS, House, Tool, config_text, texts_of
from tests.system.talk import ENDS
from tests.system.tool import text_of

DIALECTS = pytest.mark.parametrize("dialect", list(Dialect))
FORMS = pytest.mark.parametrize("dialect, stream", [(dialect, stream) for dialect in Dialect for stream in (False, True)])
ONE = SessionKey("session", "one")
# --- what goes up -------------------------------------------------------------------------------------------------------


@DIALECTS
def test_x01_no_tag_of_the_history_reaches_the_provider(house: House, dialect: Dialect) -> None:
    tool = Tool(house, dialect)
    tool.talk("<**glm**> one", "two <**!glm**>", "<**clear**> three <**123**> ```<**x**>```")
    handled = tool.say("four")
    assert texts_of(dialect, handled.body) == ["one", "fine", "two", "fine", "three ``````", "fine", "four"]


@DIALECTS
def test_x06_a_call_without_tags_goes_home_byte_for_byte(house: House, dialect: Dialect) -> None:
    """White space, key order, numbers and escapes as the client wrote them."""
    tool = Tool(house, dialect)
    tool.history.append({})
    tool.say("ünï")
    tool.history.pop(0)
    path, body = tool.write()
    raw = (json.dumps(body, indent=1)[:-1] + ', "temperature" : 1.0e0, "unknown":{"b":1,"a":[ ]}\n}\n').encode()
    handled = house.handle(house.received(path, raw, host=HOSTS[dialect]))
    request = handled.plan.request()
    assert request.body is handled.received.wire_body
    assert (request.host, request.port, request.path) == (HOSTS[dialect], 443, path)
    assert request.client_credential


def test_x06_a_compressed_body_goes_home_compressed(house: House) -> None:
    raw = json.dumps({"model": "gpt-x", "input": [{"role": "user", "content": "hi"}]}).encode()
    wire = zstd.compress(raw)
    headers = (("Content-Encoding", "zstd"), ("X-Session-Id", "one"))
    path = "/backend-api/codex/responses"
    handled = house.handle(house.received(path, raw, host="chatgpt.com", headers=headers, wire_body=wire))
    request = handled.plan.request()
    assert request.body == wire
    assert ("Content-Encoding", "zstd") in request.headers.shown
    tagged = raw.replace(b"hi", b"hi <**clear**>")
    wire = zstd.compress(tagged)
    request = house.handle(house.received(path, tagged, host="chatgpt.com", headers=headers, wire_body=wire)).plan.request()
    assert json.loads(request.body)["input"] == [{"role": "user", "content": "hi"}]
    assert not [name for name, _ in request.headers.shown if name.lower() == "content-encoding"]


ANOTHER_PROCESS = """
import hashlib, json, sys, tempfile
import tests
from pathlib import Path
from routecodex.routing.values import Dialect
from tests.routing.house import House, Tool

def third(dialect, target, **more):
    with tempfile.TemporaryDirectory() as folder:
        tool = Tool(House(Path(folder)), dialect, **more)
        tool.talk(f"<**!{target}**> one", "two")
        return tool.say("three").plan.request()

bodies = {dialect: third(dialect, "glm").body.decode() for dialect in Dialect}
asked = [third(dialect, target, session="one") for dialect in Dialect for target in ("glm", "openai.gpt-4")]
shown = [hashlib.sha256(request.body + repr(request.headers.shown).encode()).hexdigest() for request in asked]
json.dump({"bodies": bodies, "shown": shown}, sys.stdout)
"""


@pytest.fixture(scope="module")
def elsewhere() -> list[dict[str, Any]]:
    """What three processes write, in each of which sets have another order."""
    running = [
        subprocess.Popen(
            [sys.executable, "-c", ANOTHER_PROCESS],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
        )
        for seed in ("0", "1", "2")
    ]
    return [json.loads(process.communicate(timeout=60)[0]) for process in running]


@DIALECTS
def test_the_same_history_is_written_to_the_same_bytes(house: House, elsewhere: list[dict[str, Any]], dialect: Dialect) -> None:
    """Also in another process: a provider's cache outlives a restart."""
    tool = Tool(house, dialect)
    tool.talk("<**!glm**> one", "two")
    tool.say("three")
    once = tool.ask().plan.request().body
    assert tool.ask().plan.request().body == once
    assert [written["bodies"][dialect].encode() for written in elsewhere] == [once] * 3


def test_another_process_writes_the_same_bytes(elsewhere: list[dict[str, Any]]) -> None:
    """One process alone cannot see the order of its own hashes."""
    first, *others = (written["shown"] for written in elsewhere)
    assert len(first) == 2 * len(Dialect)
    assert others == [first, first]


@DIALECTS
def test_to_another_host_nothing_of_the_caller_goes(house: House, dialect: Dialect) -> None:
    tool = Tool(house, dialect, headers={"authorization": "***", "cookie": "a=b", "x-own": "1"})
    request = tool.say("<**glm.glm-4.7**> hi").plan.request()
    assert request.host == "glm.example"
    assert not request.client_credential
    names = {name.lower() for name, _ in request.headers.shown}
    assert names <= {"content-type", "accept", "accept-encoding", "user-agent", "anthropic-version"}
    assert all("secret" not in value for _, value in request.headers.shown)
    assert [value for _, value in request.headers.secret if "sk-glm-key1-secret" in value]


def test_secrets_stand_in_no_answer_of_ours(build: Build) -> None:
    house = build("default: [glm.glm-4.7]")
    refused = house.desk.refuse(None, ConfigError("the key sk-glm-key1-secret is bad"))
    assert b"secret" not in refused.body
    assert "secret" not in refused.comment
    assert json.loads(refused.body)["error"]["message"] == "the key *** is bad"


# --- messages that are nothing but tags ------------------------------------------------------------------------------------


@FORMS
def test_x03_a_message_of_tags_alone_is_answered_here(house: House, dialect: Dialect, stream: bool) -> None:
    handled = Tool(house, dialect, stream=stream).say("<**!glm.glm-4.7**>")
    reply = handled.reply
    assert reply.status == 200
    text = text_of(dialect, reply.body, stream)
    assert text.startswith(LOCAL_ANSWER_MARK)
    assert "From now on everything goes to glm.glm-4.7." in text
    kind = "text/event-stream; charset=utf-8" if stream else "application/json"
    assert dict(reply.headers)["content-type"] == kind
    assert house.desk.store.load(ONE).sticky == Sticky("glm", None, "glm-4.7")
    assert not house.learned.budget.calls


@DIALECTS
def test_decision_4_the_exchange_is_taken_out_of_the_history_later(house: House, dialect: Dialect) -> None:
    tool = Tool(house, dialect)
    tool.talk("first", "<**!glm.glm-4.7**>", "second", "<**status**>")
    handled = tool.say("third")
    assert handled.target == "glm.key1.glm-4.7"
    assert texts_of(dialect, handled.body) == ["first", "fine", "second", "fine", "third"]
    hop = tool.hop()
    assert texts_of(dialect, hop.body)[:5] == ["first", "fine", "second", "fine", "third"]


def test_decision_4_what_a_tool_put_beside_the_tags_moves_on(house: House) -> None:
    tool = Tool(house)
    reminder = "<system-reminder>\nThe time is ten.\n</system-reminder>"
    tool.history.append(
        {"role": "user", "content": [{"type": "text", "text": reminder}, {"type": "text", "text": "<**!glm.glm-4.7**>"}]}
    )
    handled = tool.ask()
    tool.hear(text_of(Dialect.MESSAGES, handled.reply.body, False))
    assert texts_of(Dialect.MESSAGES, tool.say("hello").body) == [reminder, "hello"]


@DIALECTS
def test_status_says_what_is_in_force(house: House, dialect: Dialect) -> None:
    tool = Tool(house, dialect)
    tool.talk('<**!glm.glm-4.7**> <**glm,openai**> <**#openai.1**> <**stopMessage:"carry on",3**> hi')
    text = text_of(dialect, tool.say("<**status**>").reply.body, False)
    assert text.split(ENDS)[:4] == [
        "[RouteCodex] Sticky: glm.glm-4.7 (all keys).",
        "Allowed: glm, openai.",
        "Disabled: openai key primary.",
        'stopMessage: "carry on", used 0 of 3 times.',
    ]
    assert text_of(dialect, Tool(house, dialect, session="new").say("<**status**>").reply.body, False).split(ENDS)[:2] == [
        "[RouteCodex] Routing: normal.",
        "stopMessage: none.",
    ]


def test_status_says_that_a_sticky_was_used_up(build: Build) -> None:
    house = build("default: [glm.glm-4.7]")
    tool = Tool(house)
    tool.talk("<**!anthropic.claude-sonnet-4-5**> hi")
    target = Target("anthropic", "primary", "claude-sonnet-4-5")
    house.learned.health.failed(target, ProviderError(401), house.clock.now, wall=0.0)
    tool.talk("next")
    text = text_of(Dialect.MESSAGES, tool.say("<**status**>").reply.body, False)
    assert "Sticky anthropic.claude-sonnet-4-5 was cleared: none of its keys works any more." in text


def test_a_repeated_message_of_tags_is_answered_again_and_acts_once(house: House) -> None:
    tool = Tool(house)
    tool.say("<**!glm.glm-4.7**>")
    state = house.desk.store.load(ONE)
    again = tool.ask()
    assert again.reply.status == 200
    assert house.desk.store.load(ONE) == state


# --- calls that obey nothing ------------------------------------------------------------------------------------------------


def test_side_calls_obey_nothing_but_are_cleaned_and_routed_by_the_standing_state(house: House) -> None:
    tool = Tool(house)
    tool.talk("<**!openai.gpt-4**> hi")
    standing = house.desk.store.load(ONE)
    for kind in ("subagent", "compaction", "summary-extraction", "never-heard-of"):
        side = Tool(house, headers={"x-claude-code-request-class": kind})
        handled = side.say("<**!glm.glm-4.7**>")
        assert handled.reading is not None
        assert handled.reading.caller.kind is not Kind.MAIN
        assert handled.sent, "never answered here"
        assert handled.target.startswith("openai."), "the standing state holds"
        assert "<**" not in handled.plan.request().body.decode()
        (placeholder,) = texts_of(Dialect.MESSAGES, handled.body)
        assert placeholder.strip()
        assert house.desk.store.load(ONE) == standing


STRUCTURED: dict[Dialect, dict[str, Any]] = {
    Dialect.MESSAGES: {"output_config": {"format": {"type": "json_schema", "schema": {}}}},
    Dialect.CHAT: {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {}}}},
    Dialect.RESPONSES: {"text": {"format": {"type": "json_schema", "name": "a", "schema": {}}}},
    Dialect.GEMINI: {"generationConfig": {"responseMimeType": "application/json"}},
}


@DIALECTS
def test_calls_that_demand_structured_output_obey_nothing(house: House, dialect: Dialect) -> None:
    handled = Tool(house, dialect, more=STRUCTURED[dialect]).say("<**!glm.glm-4.7**>")
    assert handled.target == "origin.client.client-model"
    assert "<**" not in handled.plan.request().body.decode()
    assert texts_of(dialect, handled.body) != [""]
    assert house.files == []


@pytest.mark.parametrize(
    "text", ["Look: `<**!glm**>`", "```\n<**!glm**>\n```", "<system-reminder><**!glm**></system-reminder> hi"]
)
def test_p19_p20_what_nobody_typed_gives_no_orders(house: House, text: str) -> None:
    handled = Tool(house).say(text)
    assert handled.target == "origin.client.client-model"
    assert house.files == []


@DIALECTS
def test_p20_tool_results_and_answers_give_no_orders_and_stay_as_they_are(house: House, dialect: Dialect) -> None:
    tool = Tool(house, dialect)
    tool.talk("hi")
    tool.hear("the assistant says <**!glm**>")
    tool.say("go on")
    handled = tool.hop("a file with <**!glm.glm-4.7**> in it")
    assert handled.target == "origin.client.client-model"
    sent = handled.plan.request().body.decode()
    assert "a file with <**!glm.glm-4.7**> in it" in sent
    assert "the assistant says <**!glm**>" in sent


# --- counts ----------------------------------------------------------------------------------------------------------------

COUNTED = {
    Dialect.MESSAGES: (
        "/v1/messages/count_tokens",
        {"model": "m", "messages": [{"role": "user", "content": "hello " * 50}]},
        "input_tokens",
    ),
    Dialect.GEMINI: (
        "/v1beta/models/m:countTokens",
        {"contents": [{"role": "user", "parts": [{"text": "hello " * 50}]}]},
        "totalTokens",
    ),
}


@pytest.mark.parametrize("dialect", COUNTED)
def test_counts_go_home_or_are_estimated(build: Build, dialect: Dialect) -> None:
    path, body, name = COUNTED[dialect]
    home = build("default: [origin]")
    plan = home.handle(home.received(path, body, host=HOSTS[dialect])).plan
    assert plan.counting
    assert plan.request().path == path
    away = build("default: [glm.glm-4.7]")
    reply = away.handle(away.received(path, body, host=HOSTS[dialect])).reply
    assert reply.status == 200
    assert 40 <= json.loads(reply.body)[name] <= 200
    assert "estimated by RouteCodex for glm.key1.glm-4.7" in reply.comment
    assert away.learned.health.state(Target("glm", "key1", "glm-4.7"), away.clock.now) == Healthy()


def test_counts_go_to_a_target_that_counts(build: Build) -> None:
    house = build(
        "default: [glm.glm-4.7]",
        CONFIG_A.replace(
            "      auth: {type: apikey, keys: [{alias: key1",
            "      countTokens: true\n      auth: {type: apikey, keys: [{alias: key1",
        ),
    )
    path, body, _ = COUNTED[Dialect.MESSAGES]
    plan = house.handle(house.received(path, body, host="api.anthropic.com")).plan
    assert plan.counting
    assert plan.request().path == "/v1/messages/count_tokens"


def test_counts_take_no_turn_and_obey_no_tag(build: Build) -> None:
    house = build("default: [two.m]", TWO_KEYS)
    path = "/v1/messages/count_tokens"
    body = {"model": "m", "messages": [{"role": "user", "content": "<**!glm**> hello"}]}
    turns = []
    for number in range(4):
        turns.append(Tool(house, session=str(number)).say("hi").plan.target.key)
        house.handle(house.received(path, body, host="api.anthropic.com"))
    assert turns in (["a", "b", "a", "b"], ["b", "a", "b", "a"])
    assert house.files == []


# --- echo -------------------------------------------------------------------------------------------------------------------


@FORMS
def test_echo_answers_here_in_every_dialect(house: House, dialect: Dialect, stream: bool) -> None:
    handled = Tool(house, dialect, stream=stream).say("<**echo**> hello you")
    assert text_of(dialect, handled.reply.body, stream) == "hello you"
    assert handled.reply.comment.startswith("echo · ")


def test_echo_repeats_what_was_typed_wherever_the_tool_puts_it(house: House) -> None:
    tool = Tool(house, headers={"user-agent": "cecli/1.10.0"})
    tells = '<context name="environment_info" from="agent">\nx\n</context>\n\n---\n'
    handled = tool.say(f'{tells}<context name="user_input" from="agent">\n<**echo**> hello you\n</context>')
    assert text_of(Dialect.MESSAGES, handled.reply.body, stream=False) == "hello you"


@DIALECTS
def test_echo_fails_and_waits_when_it_is_told_to(house: House, dialect: Dialect) -> None:
    tool = Tool(house, dialect)
    failed = tool.say("<**!echo**> echo: fail 529 overloaded")
    assert failed.reply.status == 529
    assert "overloaded" in failed.error[1] or b"overloaded" in failed.reply.body
    assert tool.say("echo: slow 2").reply.delay_s == 2.0


def test_f01_a_tool_call_ends_with_tool_use_and_then_message_stop(house: House) -> None:
    reply = Tool(house, stream=True).say('<**echo**> echo: call Bash {"command":"ls"}').reply
    events = [json.loads(line[6:]) for line in reply.body.decode().splitlines() if line.startswith("data: ")]
    assert [event["type"] for event in events[-3:]] == ["content_block_stop", "message_delta", "message_stop"]
    assert events[-2]["delta"]["stop_reason"] == "tool_use"


def test_echo_calls_a_tool_and_reports_its_result(house: House) -> None:
    tool = Tool(house)
    called = json.loads(tool.say('<**!echo**> echo: call Bash {"command":"ls"}').reply.body)
    assert called["stop_reason"] == "tool_use"
    assert called["content"][-1]["input"] == {"command": "ls"}
    assert text_of(Dialect.MESSAGES, tool.hop("two files").reply.body, False) == "The tool answered: two files"


# --- refusals ---------------------------------------------------------------------------------------------------------------

CHAT_ONLY = """
    plain:
      protocol: openai-chat
      baseURL: https://plain.example/v1
      auth: {type: none}
      models: {m: {}}"""


@pytest.mark.parametrize("dialect", list(Dialect))
def test_a_provider_of_another_dialect_is_asked_in_its_own(build: Build, dialect: Dialect) -> None:
    house = build("default: [plain.m]", CHAT_ONLY)
    plan = Tool(house, dialect).say("hi").plan
    request = plan.request()
    assert (request.host, request.path) == ("plain.example", "/v1/chat/completions")
    assert (plan.round is None) is (dialect is Dialect.CHAT)
    assert ("in openai-chat" in plan.comment) is (dialect is not Dialect.CHAT)


def test_a_call_that_only_its_own_dialect_can_answer_passes_others_over(build: Build) -> None:
    other = CHAT_ONLY.replace("plain", "spoken").replace("openai-chat", "openai-responses")
    house = build("default: [{targets: [plain.m], priority: 2}, {targets: [spoken.m]}]", CHAT_ONLY + other)
    tool = Tool(house, Dialect.RESPONSES, session="a", more={"previous_response_id": "resp_of_somebody"})
    assert tool.say("hi").target == "spoken.local.m"
    assert Tool(house, Dialect.RESPONSES, session="b").say("hi").target == "plain.local.m"


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"null", b'{"messages": 3}', b"\xff", b'{"model":"m","messages":[{"role":"user"']
)
@DIALECTS
def test_bytes_that_are_no_call_are_refused(house: House, dialect: Dialect, body: bytes) -> None:
    path = Tool(house, dialect).write()[0]
    handled = house.handle(house.received(path, body, host=HOSTS[dialect]))
    if isinstance(handled.outcome, Plan):
        assert handled.plan.request().body == body, "it is the vendor's to refuse"
    else:
        assert handled.reply.status == 400
        assert handled.error[0] == BadCall.code


def test_limits_keep_the_clients_own_patience_at_home(build: Build) -> None:
    house = build("default: [glm.glm-4.7]", top="proxy: {timeouts: {firstByteMs: 20000, idleMs: 50000}}")
    streamed = Tool(house, stream=True).say("hi").plan
    assert house.desk.limits(streamed).first_byte_s == 20.0
    assert house.desk.limits(streamed).idle_s == 50.0
    assert house.desk.limits(streamed).early_head_s is not None
    assert house.desk.limits(Tool(house, session="b").say("hi").plan).first_byte_s == 600.0
    home = build("default: [origin]", top="proxy: {timeouts: {firstByteMs: 20000}}")
    limits = home.desk.limits(Tool(home, stream=True, session="c").say("hi").plan)
    assert (limits.first_byte_s, limits.early_head_s) == (600.0, None)


def test_a_changed_configuration_keeps_what_was_learned(build: Build) -> None:
    house = build("default: [glm.glm-4.7, openai.gpt-4]")
    house.learned.health.failed(Target("glm", "key1", "glm-4.7"), ProviderError(401), house.clock.now, wall=0.0)
    house.config = config_text("default: [glm.glm-4.7, openai.gpt-4]", CONFIG_A + OWN, more="  health: {authTripMs: 1000}")
    house.open()
    assert Tool(house).say("hi").plan.target.provider == "openai"
    assert house.learned.health.exempt == {"origin", "echo", "own"}
    assert house.learned.health.settings.auth_trip_s == 1.0


@DIALECTS
def test_echo_waits_where_the_time_stands_behind_the_text_too(house: House, dialect: Dialect) -> None:
    """What a plugin has put behind the call is nothing that a person typed."""
    tool = Tool(house, dialect)
    tool.say("echo: slow 2")
    reading = house.desk.read(tool.received())
    grown = replace(reading, call=with_texts(reading.call, [tag_text(moment_at(1_800_000_000_123, 0, "UTC"))]))
    assert house.desk.echo(grown, "echo").delay_s == 2.0
