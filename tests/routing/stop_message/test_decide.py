"""When a conversation goes on by itself, and the count that ends it (M, S5)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from routecodex.routing.clients.kinds import starts_as_compaction
from routecodex.routing.dialects.calls import read_call
from routecodex.routing.dialects.endpoints import endpoint_of
from routecodex.routing.dialects.said import Said, is_empty, waits_for_client
from routecodex.routing.sessions.state import EMPTY, SessionState, StopMessage
from routecodex.routing.sessions.store import FileStore, SessionKey
from routecodex.routing.stop_message.decide import (
    Continue,
    Info,
    No,
    claim,
    should_continue,
    spent,
)
from routecodex.routing.stop_message.guards import Loop
from routecodex.routing.stop_message.work_state import Work
from routecodex.routing.values import Call, Dialect, Endpoint, JsonObject, ProviderError, ToolCall, Usage

STOP = StopMessage("go on", 3, updated_at_ms=5)
PLAIN = Said("an answer", (), (), "stop", Usage(), "id", ({"role": "assistant", "content": "an answer"},))
CALL = ToolCall("c1", "Bash", "{}")
ERROR = ProviderError(500, "broken")


def item(kind: str) -> tuple[JsonObject, ...]:
    return ({"type": "message", "role": "assistant", "content": []}, {"type": kind})


def block(kind: str) -> tuple[JsonObject, ...]:
    return ({"role": "assistant", "content": [{"type": "text", "text": "x"}, {"type": kind}]},)


CASES: list[tuple[str, Said, StopMessage | None, Info, str]] = [
    ("M01", PLAIN, replace(STOP, max_repeats=1), Info(), ""),
    ("M02", replace(PLAIN, calls=(CALL,)), STOP, Info(), "a tool call"),
    ("M02-own", replace(PLAIN, calls=(CALL,), own=(CALL,)), STOP, Info(), "a tool call"),
    ("M03-length", replace(PLAIN, finish="length"), STOP, Info(), "the answer ended with length"),
    ("M03-filter", replace(PLAIN, finish="content_filter"), STOP, Info(), "the answer ended with content_filter"),
    ("M03-tools", replace(PLAIN, finish="tool_calls"), STOP, Info(), "the answer ended with tool_calls"),
    ("M03-error", replace(PLAIN, finish="error"), STOP, Info(), "the answer ended with error"),
    ("M05", replace(PLAIN, native=item("reasoning")), STOP, Info(), ""),
    ("M05-web-search", replace(PLAIN, native=item("web_search_call")), STOP, Info(), ""),
    ("M06-function", replace(PLAIN, native=item("function_call")), STOP, Info(), "a tool call"),
    ("M06-approval", replace(PLAIN, native=item("mcp_approval_request")), STOP, Info(), "a tool call"),
    ("M06-computer", replace(PLAIN, native=item("computer_call")), STOP, Info(), "a tool call"),
    ("M06-pause-turn", replace(PLAIN, native=block("server_tool_use")), STOP, Info(), "a tool call"),
    ("M06-server-tool-answered", replace(PLAIN, native=block("web_search_tool_result")), STOP, Info(), ""),
    ("M11-all-used", PLAIN, replace(STOP, used=3), Info(), "used up"),
    ("M11-one-left", PLAIN, replace(STOP, used=2), Info(), ""),
    ("M13", PLAIN, STOP, Info(client_present=False), "the client has left"),
    ("M18-error", replace(PLAIN, error=ERROR), STOP, Info(), "the answer broke off"),
    ("M18-cut", replace(PLAIN, complete=False), STOP, Info(), "the answer broke off"),
    ("M21-time", PLAIN, STOP, Info(loop=Loop(100.0), now=1000.1), "900 s are over"),
    ("M21-in-time", PLAIN, STOP, Info(loop=Loop(100.0), now=1000.0), ""),
    ("M21-identical", PLAIN, STOP, Info(loop=Loop(0.0, b"x", 10)), "10 identical rounds"),
    ("M21-nine", PLAIN, STOP, Info(loop=Loop(0.0, b"x", 9)), ""),
    ("M24", PLAIN, None, Info(), "not armed"),
    ("M25", PLAIN, STOP, Info(work=Work.ACTIVE), ""),
    ("M26", PLAIN, STOP, Info(work=Work.IDLE), "bd_idle"),
    ("M28", PLAIN, STOP, Info(work=Work.UNKNOWN), ""),
    ("empty-first-answer", replace(PLAIN, text="", native=()), STOP, Info(), ""),
    ("X07-nothing-left", PLAIN, replace(STOP, text="<**!glm**>"), Info(), "the text is nothing but tags"),
]


@pytest.mark.parametrize("said,stop,info,reason", [pytest.param(*case[1:], id=case[0]) for case in CASES])
def test_decision(said: Said, stop: StopMessage | None, info: Info, reason: str) -> None:
    assert should_continue(said, stop, info) == (No(reason) if reason else Continue("go on"))


@pytest.mark.parametrize(
    "text,sent",
    [
        ("go <**!glm**>on", "go on"),
        ('say **> and <**!glm**> "x"', 'say **> and "x"'),
        ("第一行\n<**clear**>\n第二行", "第一行\n第二行"),
        ("  plain  ", "plain"),
        ('x <**stopMessage:"a",2**> <*<**a**>*!glm**>', "x"),
    ],
)
def test_x07_what_is_sent_holds_no_tag(text: str, sent: str) -> None:
    assert should_continue(PLAIN, replace(STOP, text=text), Info()) == Continue(sent)


# The count

KEPT = EMPTY.with_(allowed=("glm",), obeyed_before="0:abc")


def test_m01_the_last_round_clears_and_keeps_the_times() -> None:
    state, may_send = claim(KEPT.with_(stop=StopMessage("go", 1, updated_at_ms=5)), 77)
    assert may_send
    assert state == KEPT.with_(stop_cleared_at_ms=77, stop_last_used_at_ms=77)


def test_m11_three_and_never_a_fourth() -> None:
    state, answers = KEPT.with_(stop=StopMessage("go", 3)), []
    for now in range(1, 6):
        state, may_send = claim(state, now)
        answers.append((may_send, state.stop.used if state.stop else None))
    assert answers == [(True, 1), (True, 2), (True, None), (False, None), (False, None)]
    assert (state.stop_last_used_at_ms, state.obeyed_before, state.allowed) == (3, "0:abc", ("glm",))


@pytest.mark.parametrize("stop", [None, StopMessage("go", 2, used=2), StopMessage("go", 2, used=9)])
def test_nothing_to_claim(stop: StopMessage | None) -> None:
    state = KEPT.with_(stop=stop)
    assert claim(state, 1) == (state, False)


def test_spent_keeps_when_it_was_used_last() -> None:
    state = spent(KEPT.with_(stop=StopMessage("go", 5, used=2, last_used_at_ms=40)), 50)
    assert state == KEPT.with_(stop_cleared_at_ms=50, stop_last_used_at_ms=40)
    assert spent(state, 60).stop_last_used_at_ms == 40


def test_the_count_is_on_disk(tmp_path: Path) -> None:
    key = SessionKey("session", "s")
    FileStore(tmp_path).update(key, lambda state: state.with_(stop=StopMessage("go", 2), obeyed_before="0:a"))
    sent = 0

    def change(state: SessionState) -> SessionState:
        nonlocal sent
        new, may_send = claim(state, 9)
        sent += may_send
        return new

    for _ in range(5):
        FileStore(tmp_path).update(key, change)
    assert sent == 2
    fields = json.loads((tmp_path / "session-s.json").read_bytes())["state"]
    assert fields == {"obeyedFingerprint": "0:a", "stopMessageClearedAt": 9, "stopMessageLastUsedAt": 9}


# Compaction: only at the start (M19)

PHRASE = "  Context checkpoint compaction: summarise."
HANDOFF = "Handoff summary for another LLM\n…"


def chat(*messages: tuple[str, Any], **fields: Any) -> Call:
    body = {"model": "m", "messages": [{"role": role, "content": content} for role, content in messages], **fields}
    return read_call(json.dumps(body).encode(), Endpoint(Dialect.CHAT))


def anthropic(system: Any, *messages: tuple[str, Any]) -> Call:
    body = {"model": "m", "system": system, "messages": [{"role": role, "content": content} for role, content in messages]}
    return read_call(json.dumps(body).encode(), Endpoint(Dialect.MESSAGES))


@pytest.mark.parametrize(
    "call,expected",
    [
        pytest.param(chat(("system", PHRASE), ("user", "hi")), True, id="M19-system"),
        pytest.param(chat(("user", HANDOFF)), True, id="M19-first-user"),
        pytest.param(chat(("system", "You are"), ("user", HANDOFF), ("user", "x")), True, id="M19-first-user-behind-system"),
        pytest.param(chat(("developer", "checkpoint compaction"), ("user", "x")), True, id="M19-developer"),
        pytest.param(anthropic([{"type": "text", "text": HANDOFF}], ("user", "x")), True, id="M19-system-block"),
        pytest.param(
            anthropic("x", ("user", [{"type": "text", "text": " "}, {"type": "text", "text": PHRASE}])), True, id="M19-p"
        ),
        pytest.param(chat(("user", "look: Handoff summary for another LLM")), False, id="in-the-middle"),
        pytest.param(chat(("user", "hi"), ("assistant", "yes"), ("user", HANDOFF)), False, id="pasted-later"),
        pytest.param(chat(("user", "hi"), ("assistant", PHRASE)), False, id="said-by-the-model"),
        pytest.param(chat(), False, id="no-message"),
    ],
)
def test_m19_compaction(call: Call, expected: bool) -> None:
    assert starts_as_compaction(call) is expected


def test_m19_no_recorded_main_call_looks_like_one() -> None:
    folder = Path(__file__).parents[2] / "fixtures"
    seen = 0
    for file in sorted(folder.glob("*/[0-9][0-9]-*.json")):
        data = json.loads(file.read_text(encoding="utf-8"))
        endpoint = endpoint_of(data["method"], data["path"]) if "method" in data else None
        if endpoint is not None:
            seen += 1
            assert not starts_as_compaction(read_call(json.dumps(data["body"]).encode(), endpoint)), file
    assert seen > 30


# Empty answers (M17)

THINKING: tuple[JsonObject, ...] = ({"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": "s"}]},)
IMAGE: tuple[JsonObject, ...] = ({"role": "model", "parts": [{"inlineData": {"mimeType": "image/png", "data": "AA=="}}]},)


@pytest.mark.parametrize(
    "said,dialect,expected",
    [
        (replace(PLAIN, text="", native=()), Dialect.CHAT, True),
        (replace(PLAIN, text=" \n", native=THINKING), Dialect.MESSAGES, True),
        (replace(PLAIN, text="", native=({"type": "reasoning", "summary": []},)), Dialect.RESPONSES, True),
        (replace(PLAIN, text="", native=IMAGE), Dialect.GEMINI, False),
        (replace(PLAIN, text="", calls=(CALL,)), Dialect.CHAT, False),
        (replace(PLAIN, text="", native=(), finish="length"), Dialect.CHAT, False),
        (replace(PLAIN, text="", native=(), complete=False), Dialect.CHAT, False),
        (replace(PLAIN, text="", native=(), error=ERROR), Dialect.CHAT, False),
        (PLAIN, Dialect.CHAT, False),
    ],
)
def test_m17_empty(said: Said, dialect: Dialect, expected: bool) -> None:
    assert is_empty(said, dialect) is expected


def test_what_waits_for_the_client_may_be_any_json() -> None:
    odd: list[JsonObject] = [{}, {"content": None}, {"content": []}, {"content": [None]}, {"content": ["x"]}, {"type": 3}]
    assert not waits_for_client(tuple(odd))
