"""Thirty ways to lose a cache, each named; a thousand healthy calls, none of them blamed."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from msgspec.structs import replace

from routecodex.routing.dialects.translation.neutral import Tokens
from routecodex.routing.usage.flight import FlightRecorder, Flown, Loss, Suspicion
from routecodex.routing.values import Dialect, Target

GLM = Target("glm", "k1", "glm-4.7")
WARM, COLD = Tokens(30_000, 100, cached=29_000, written=900), Tokens(30_000, 100, cached=0, written=30_000)


def _text(words: str, kind: str = "text") -> dict[str, Any]:
    return {"type": kind, "text": words}


THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBOR"}}


def messages_body() -> dict[str, Any]:
    return {
        "model": "claude-opus-5-5",
        "system": [_text("billing"), {**_text("You are a coding agent. " * 50), "cache_control": {"type": "ephemeral"}}],
        "tools": [
            {"name": name, "description": f"{name} things", "input_schema": {"type": "object"}} for name in ("Read", "Bash")
        ],
        "thinking": {"type": "adaptive"},
        "messages": [
            {"role": "user", "content": [_text("<reminder>date</reminder>"), _text("fix the bug")]},
            {
                "role": "assistant",
                "content": [THOUGHT, {"type": "tool_use", "id": "t1", "name": "Read", "input": {"a": 1, "b": 2}}],
            },
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "a file " * 100}]},
            {"role": "assistant", "content": [_text("done")]},
            {"role": "user", "content": [_text("and now the tests")]},
        ],
    }


def chat_body() -> dict[str, Any]:
    return {
        "model": "gpt-5",
        "messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hello"}],
        "tools": [{"type": "function", "function": {"name": "read", "parameters": {}}}],
    }


def responses_body() -> dict[str, Any]:
    return {
        "model": "gpt-5-codex",
        "instructions": "You are Codex.",
        "tools": [{"type": "function", "name": "shell"}],
        "input": [
            {"type": "message", "role": "user", "content": [_text("hello", "input_text")]},
            {"type": "function_call", "call_id": "c", "name": "shell", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": "ok"},
        ],
    }


def gemini_body() -> dict[str, Any]:
    return {
        "systemInstruction": {"parts": [{"text": "You are Gemini."}]},
        "tools": [{"functionDeclarations": [{"name": "read"}]}],
        "contents": [{"role": "user", "parts": [{"text": "hello"}]}],
    }


BODIES: dict[Dialect, Callable[[], dict[str, Any]]] = {
    Dialect.MESSAGES: messages_body,
    Dialect.CHAT: chat_body,
    Dialect.RESPONSES: responses_body,
    Dialect.GEMINI: gemini_body,
}
LISTS = {Dialect.MESSAGES: "messages", Dialect.CHAT: "messages", Dialect.RESPONSES: "input", Dialect.GEMINI: "contents"}


def flown(body: dict[str, Any], dialect: Dialect = Dialect.MESSAGES, **fields: Any) -> Flown:
    raw = json.dumps(body).encode()
    made = Flown("s", GLM, raw, dialect, raw, dialect, WARM, at=1000.0)
    return replace(made, **fields)


@dataclass
class Cause:
    name: str
    change: Callable[[dict[str, Any]], object]
    who: str
    what: str
    dialect: Dialect = Dialect.MESSAGES
    later: dict[str, Any] = field(default_factory=dict)


def _goes_on(body: dict[str, Any]) -> None:
    body["messages"] += [{"role": "assistant", "content": [_text("ok")]}, {"role": "user", "content": [_text("go on")]}]


def _nothing(body: dict[str, Any]) -> None: ...


def _gone_back(body: dict[str, Any]) -> None:
    _item(body, 4).update(text="no, the docs")


def _item(body: dict[str, Any], at: int, part: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = body["messages"][at]["content"][part]
    return found


def _reorder(body: dict[str, Any], *order: int) -> None:
    body["tools"] = [body["tools"][at] for at in order]


def _mcp(count: int) -> list[dict[str, Any]]:
    return [{"name": f"mcp__{at}"} for at in range(count)]


def _mark(body: dict[str, Any], at: int, mark: object) -> None:
    body["system"][at]["cache_control"] = mark


def _far(body: dict[str, Any]) -> None:
    """Its last mark goes along, behind more than is looked back."""
    mark = body["system"][1].pop("cache_control")
    body["messages"] += [{"role": "user", "content": [_text(f"part {at}") for at in range(20)]}]
    body["messages"][-1]["content"].append({**_text("now"), "cache_control": mark})


TOOL, OURS = "the tool", "RouteCodex"
CAUSES = [
    Cause("a date in the instructions", lambda b: b["system"][0].update(text="tomorrow"), TOOL, "instructions, part 1 changed"),
    Cause("other instructions", lambda b: b["system"].pop(), TOOL, "instructions, part 2 is gone"),
    Cause("more instructions", lambda b: b["system"].insert(0, _text("new")), TOOL, "instructions, part 1 came in"),
    Cause("tools in another order", lambda b: b["tools"].reverse(), TOOL, "tool"),
    Cause("a server of tools joined", lambda b: b["tools"].insert(1, {"name": "mcp__x"}), TOOL, "tool mcp__x came in"),
    Cause("a tool behind the others", lambda b: b["tools"].append({"name": "mcp__y"}), TOOL, "tool mcp__y came in"),
    Cause("a tool went", lambda b: b["tools"].pop(0), TOOL, "tool Read is gone"),
    Cause("the last tool went", lambda b: b["tools"].pop(), TOOL, "tool Bash is gone"),
    Cause("a tool is described anew", lambda b: b["tools"][1].update(description="new"), TOOL, "tool Bash changed"),
    Cause("a tool's schema", lambda b: b["tools"][0]["input_schema"].update(x=1), TOOL, "tool Read changed"),
    Cause("two tools in each other's place", lambda b: _reorder(b, 1, 0), TOOL, "tool Read stands in another place"),
    Cause("several tools joined", lambda b: b["tools"].__setitem__(slice(1, 1), _mcp(3)), TOOL, "tool mcp__0 came in"),
    Cause("several tools went", lambda b: b["tools"].__setitem__(slice(2), _mcp(1)), TOOL, "tool Read changed"),
    Cause("thinking switched off", lambda b: b.pop("thinking"), TOOL, "thinking is gone"),
    Cause("thinking differently", lambda b: b["thinking"].update(type="disabled"), TOOL, "thinking changed"),
    Cause("a choice of tools", lambda b: b.update(tool_choice={"type": "any"}), TOOL, "tool_choice came in"),
    Cause("another model by the tool", lambda b: b.update(model="claude-haiku"), TOOL, "model changed"),
    Cause("a reminder renewed", lambda b: _item(b, 0).update(text="<reminder>x</reminder>"), TOOL, "message 1, part 1"),
    Cause("a result cleared", lambda b: _item(b, 2).update(content="[cleared]"), TOOL, "message 3 (user tool_result) changed"),
    Cause(
        "keys in another order",
        lambda b: _item(b, 1, 1).update(input={"b": 2, "a": 1}),
        TOOL,
        "message 2, part 2 (assistant tool_use)",
    ),
    Cause("an answer rewritten", lambda b: _item(b, 3).update(text="all done"), TOOL, "message 4 (assistant text) changed"),
    Cause("the oldest dropped", lambda b: b["messages"].pop(0), TOOL, "message 1"),
    Cause("compacted", lambda b: b.update(messages=[{"role": "user", "content": [_text("Summary: …")]}]), TOOL, "message 1"),
    Cause("gone back", _gone_back, "the person", "message 5 (user text) changed"),
    Cause(
        "a thought dropped", lambda b: b["messages"][1]["content"].pop(0), TOOL, "message 2, part 1 (assistant thinking) is gone"
    ),
    Cause(
        "a picture in an old message", lambda b: b["messages"][0]["content"].insert(1, PICTURE), TOOL, "part 2 (user image) came"
    ),
    Cause("nothing marked any more", lambda b: b["system"][1].pop("cache_control"), TOOL, "nothing is marked"),
    Cause(
        "a mark further ahead", lambda b: _mark(b, 0, b["system"][1].pop("cache_control")), TOOL, "stands at instructions, part 1"
    ),
    Cause("another length", lambda b: b["system"][1]["cache_control"].update(ttl="1h"), TOOL, "for 1h instead of 5m"),
    Cause("a long way to the next mark", lambda b: _far(b), TOOL, "stands 28 blocks behind the last one"),
    Cause("a faster model", lambda b: b.update(speed="fast"), TOOL, "speed came in"),
    Cause("Responses: its place", lambda b: b.update(prompt_cache_key="k"), TOOL, "prompt_cache_key came in", Dialect.RESPONSES),
    Cause(
        "Gemini: thinking", lambda b: b.update(generationConfig={"thinkingConfig": {}}), TOOL, "thinkingConfig", Dialect.GEMINI
    ),
    Cause("the tool names another model", _nothing, TOOL, "to model x", later={"target": replace(GLM, model="x"), "model": "x"}),
    Cause(
        "a route for it", _nothing, "the configuration", "(route long", later={"target": replace(GLM, model="x"), "route": "long"}
    ),
    Cause("another key", _nothing, OURS, "to key k2 instead of k1", later={"target": replace(GLM, key="k2")}),
    Cause("a failed key", _nothing, "a failure", "to key k2", later={"target": replace(GLM, key="k2"), "failed": True}),
    Cause(
        "a forced provider", _nothing, "a tag", "to ds instead of glm", later={"target": Target("ds", "k", "m"), "route": "force"}
    ),
    Cause("a forced model", _nothing, "a tag", "to model x", later={"target": replace(GLM, model="x"), "route": "sticky"}),
    Cause("five minutes", _goes_on, "time", "6 minutes", later={"at": 1000.0 + 360}),
    Cause("forgotten", _goes_on, "the provider", "forgotten all the same", later={"at": 1010.0}),
    Cause("Chat: instructions", lambda b: b["messages"][0].update(content="be long"), TOOL, "message 1 (system", Dialect.CHAT),
    Cause("Responses: instructions", lambda b: b.update(instructions="x"), TOOL, "instructions changed", Dialect.RESPONSES),
    Cause("Responses: a result", lambda b: b["input"][2].update(output="no"), TOOL, "message 3", Dialect.RESPONSES),
    Cause("Gemini: tools", lambda b: b["tools"][0].update(x=1), TOOL, "tool 1 changed", Dialect.GEMINI),
    Cause("Gemini: instructions", lambda b: b["systemInstruction"]["parts"][0].update(text="x"), TOOL, "instr", Dialect.GEMINI),
]


def _lost(recorder: FlightRecorder, flown: Flown) -> Loss:
    suspicion = recorder.heard(flown)
    assert suspicion is not None
    loss = suspicion.loss()
    assert loss is not None
    return loss


@pytest.mark.parametrize("cause", CAUSES, ids=lambda cause: cause.name)
def test_each_cause_is_named(cause: Cause) -> None:
    body = BODIES[cause.dialect]()
    recorder = FlightRecorder()
    assert recorder.heard(flown(body, cause.dialect)) is None
    later = copy.deepcopy(body)
    cause.change(later)
    loss = _lost(recorder, flown(later, cause.dialect, tokens=COLD, **{"at": 1010.0, **cause.later}))
    assert (loss.cause.who, cause.what in loss.cause.what) == (cause.who, True), loss
    assert loss.tokens == 29_900


def test_thirty_causes_stand_there() -> None:
    assert len(CAUSES) >= 30


_HOSTILE = '“iption":"Bash things","input_schema":{"…” became “iption":"Bash\\u001bxxxxxxxxxxxxxxxxxxxx…”'


@pytest.mark.parametrize(
    ("change", "became"),
    [
        (lambda b: _item(b, 4).update(text="and now the docs"), "“and now the tests” became “and now the docs”"),
        (lambda b: b["thinking"].update(type="off"), '“{"type":"adaptive"}” became “{"type":"off"}”'),
        (lambda b: b["tools"][1].update(description="Bash\x1b" + "x" * 999), _HOSTILE),
        (lambda b: b["system"][0].update(text="billing, on Tuesday"), "“billing” became “billing, on Tuesday”"),
        (lambda b: b["tools"].pop(), ""),
    ],
)
def test_what_stood_there_and_what_stands_there_now(change: Callable[[dict[str, Any]], object], became: str) -> None:
    recorder = FlightRecorder()
    body, later = messages_body(), messages_body()
    change(later)
    recorder.heard(flown(body))
    loss = _lost(recorder, flown(later, tokens=COLD, at=1010.0))
    assert loss.cause.became == became
    assert str(loss).endswith(f"; {became}" if became else "read anew")


PARTLY = Tokens(30_000, 100, cached=19_000, written=11_000)


def test_a_part_that_the_tool_broke_is_told_and_one_that_was_forgotten_is_not() -> None:
    for change, told in ((lambda b: _item(b, 2).update(content="[cleared]"), True), (_nothing, False), (_gone_back, False)):
        recorder, later = FlightRecorder(), messages_body()
        recorder.heard(flown(messages_body()))
        change(later)
        suspicion = recorder.heard(flown(later, tokens=PARTLY, at=1010.0))
        assert suspicion is not None
        loss = suspicion.loss()
        assert (loss is not None) == told, loss
        assert loss is None or (loss.cause.who, loss.tokens) == ("the tool", 10_900)


def test_a_text_by_itself_is_the_same_as_one_in_a_part() -> None:
    recorder, later = FlightRecorder(), messages_body()
    for message in later["messages"][3:]:
        message["content"] = message["content"][0]["text"]
    recorder.heard(flown(messages_body()))
    assert _lost(recorder, flown(later, tokens=COLD, at=1010.0)).cause.who == "the provider"


def test_an_hour_where_an_hour_was_asked_for() -> None:
    body = messages_body()
    body["system"][1]["cache_control"]["ttl"] = "1h"
    for quiet, who in ((1800, "the provider"), (3700, "time")):
        recorder = FlightRecorder()
        recorder.heard(flown(body))
        loss = _lost(recorder, flown(body, tokens=COLD, at=1000.0 + quiet))
        assert loss.cause.who == who
        body = json.loads(json.dumps(body).replace("'", '"'))


def test_what_only_we_changed_is_told_as_ours() -> None:
    recorder = FlightRecorder()
    body, other = messages_body(), messages_body()
    other["system"][0]["text"] = "ours"
    recorder.heard(flown(body))
    loss = _lost(recorder, replace(flown(body, tokens=COLD), sent=json.dumps(other).encode()))
    assert loss.cause.who == "RouteCodex"


def _with_time(body: dict[str, Any], time: str, dialect: Dialect) -> dict[str, Any]:
    """As the clock adds it: to the end of every call, and never again to what went before."""
    body = copy.deepcopy(body)
    last = body["messages"][-1]
    if dialect is Dialect.CHAT:
        last["content"] += f"\n\n{time}"
    else:
        last["content"].append(_text(time))
    return body


@pytest.mark.parametrize("dialect", [Dialect.MESSAGES, Dialect.CHAT], ids=str)
@pytest.mark.parametrize(("quiet", "who"), [(10, "the provider"), (600, "time")])
def test_the_time_that_is_told_with_each_call_is_not_blamed(dialect: Dialect, quiet: float, who: str) -> None:
    body = BODIES[dialect]()
    later = copy.deepcopy(body)
    asked = "go on" if dialect is Dialect.CHAT else [_text("go on")]
    later["messages"] += [{"role": "assistant", "content": "ok"}, {"role": "user", "content": asked}]
    recorder = FlightRecorder()
    sent = [json.dumps(_with_time(one, f"[Time/Date]: {at}", dialect)).encode() for at, one in enumerate((body, later))]
    recorder.heard(replace(flown(body, dialect), sent=sent[0]))
    loss = _lost(recorder, replace(flown(later, dialect, tokens=COLD, at=1000.0 + quiet), sent=sent[1]))
    assert loss.cause.who == who


def _healthy(seed: int) -> tuple[int, list[Suspicion]]:
    """A conversation as agents lead it: marks move, calls go on, several talk at once, counts jitter."""
    random_ = random.Random(seed)
    recorder, suspicions, calls = FlightRecorder(), [], 0
    talks = {f"s{at}": (dialect, BODIES[dialect]()) for at, dialect in enumerate(Dialect)}
    sizes = dict.fromkeys(talks, 3_000)
    at = 1000.0
    for _ in range(250):
        name = random_.choice(list(talks))
        dialect, body = talks[name]
        role = "model" if dialect is Dialect.GEMINI else "assistant"
        key = "parts" if dialect is Dialect.GEMINI else "content"
        body[LISTS[dialect]] += [{"role": role, key: [_text("ok")]}, {"role": "user", key: [_text(f"go on {at}")]}]
        if dialect is Dialect.MESSAGES:
            for message in body["messages"]:
                for part in message["content"]:
                    part.pop("cache_control", None)
            body["messages"][-1]["content"][-1]["cache_control"] = {"type": "ephemeral"}
        known, grown = sizes[name], random_.randrange(50, 2_000)
        sizes[name] += grown
        written = grown if dialect is Dialect.MESSAGES else 0
        cached = known if written else known // 128 * 128
        at += random_.uniform(1, 60)
        calls += 1
        tokens = Tokens(known + grown, 50, cached=cached, written=written)
        if (suspicion := recorder.heard(flown(body, dialect, conversation=name, tokens=tokens, at=at))) is not None:
            suspicions.append(suspicion)
    return calls, suspicions


def test_a_thousand_healthy_calls_are_not_blamed() -> None:
    found = [_healthy(seed) for seed in range(4)]
    assert sum(calls for calls, _ in found) == 1000
    assert [suspicion for _, suspicions in found for suspicion in suspicions] == []


def test_memory_is_bounded_and_the_quietest_is_forgotten() -> None:
    recorder = FlightRecorder(kept_bytes=100_000)
    for at in range(200):
        body = messages_body()
        body["messages"][0]["content"][0]["text"] = "x" * random.Random(at).randrange(60_000)
        recorder.heard(flown(body, conversation=f"c{at}"))
        assert recorder._held <= 100_000
        assert recorder._held == sum(len(one.sent) + 500 for one in recorder._last.values())
    assert list(recorder._last)[-1] != "c0"


def test_without_counts_nobody_knows() -> None:
    recorder = FlightRecorder()
    for tokens in (None, Tokens(30_000, 1), COLD, None):
        assert recorder.heard(flown(messages_body(), tokens=tokens)) is None or tokens is COLD
