"""What a window shows of every recorded call and every host's answer, whole and damaged."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from routecodex.routing.dialects.endpoints import endpoint_of
from routecodex.routing.values import Dialect, Endpoint
from routecodex.routing.window import call, page
from routecodex.routing.window.text import EMPTY, WIDTH, rule
from tests.routing.dialects.hosts import chat, gemini, messages, responses

FOLDER = Path(__file__).parents[2] / "fixtures"
SAMPLES = (*chat.SAMPLES, *messages.SAMPLES, *responses.SAMPLES, *gemini.SAMPLES)
MESSAGES = Endpoint(Dialect.MESSAGES)


def _fixtures() -> list[tuple[str, bytes, Endpoint]]:
    found = []
    for path in sorted(FOLDER.rglob("*.json")):
        recorded = json.loads(path.read_text())
        endpoint = endpoint_of(recorded.get("method", ""), recorded.get("path", ""))
        if endpoint is not None and isinstance(recorded.get("body"), dict):
            found.append((f"{path.parent.name}/{path.name}", json.dumps(recorded["body"]).encode(), endpoint))
    return found


def _damaged(body: bytes, seed: int) -> bytes:
    random_ = random.Random(seed)
    cut = bytearray(body[: random_.randrange(len(body) + 1)])
    for _ in range(random_.randrange(4)):
        if cut:
            cut[random_.randrange(len(cut))] = random_.randrange(256)
    return bytes(cut)


def test_every_recorded_call_is_a_conversation() -> None:
    fixtures = _fixtures()
    assert len(fixtures) > 50
    for name, body, endpoint in fixtures:
        lines = list(page.request_lines({}, body, endpoint))
        assert any(line.startswith("── CONVERSATION") for line in lines), (name, lines[:3])
        assert max(map(len, lines)) <= WIDTH + 2, name
        assert "" not in lines, f"{name}: an empty line collapses in a browser"
        for line in _newest_typed(body, endpoint).splitlines()[:3]:
            shown, whole = "\n".join(lines), "".join(map(str.strip, lines))  # a long word goes on in the next line
            assert all(word in shown or word in whole for word in line.split()[:3]), (name, line)


def _newest_typed(body: bytes, endpoint: Endpoint) -> str:
    return call.newest_text(body, endpoint)


def test_every_hosts_answer_is_shown_with_what_it_says() -> None:
    for sample in SAMPLES:
        lines = list(page.answer_lines({}, sample.raw, sample.dialect))
        shown = " ".join(" ".join(lines).split())
        for word in (sample.expected.text or "").split()[:5]:
            assert word in shown, (sample.name, shown)
        for name, _ in sample.expected.calls:
            assert f"calls {name}" in shown, (sample.name, shown)


@pytest.mark.parametrize("seed", range(3))
def test_what_is_damaged_is_shown_as_far_as_it_is_there(seed: int) -> None:
    for name, body, endpoint in _fixtures():
        assert list(page.request_lines({}, _damaged(body, seed), endpoint)), name
    for sample in SAMPLES:
        for dialect in Dialect:
            assert list(page.answer_lines({}, _damaged(sample.raw, seed), dialect)), sample.name


STRANGE = b'{"messages": [{"role": 1, "content": {"a": []}}]}'


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"null", b'{"messages": 3}', b'{"messages": [3]}', STRANGE, b"\xff\xfe"])
@pytest.mark.parametrize("dialect", Dialect)
def test_what_is_no_call_is_said(body: bytes, dialect: Dialect) -> None:
    assert list(page.request_lines({"target": 3, "why": ["x"], "dialects": "no", "usage": 1}, body, Endpoint(dialect)))


def test_typed_and_sent_say_what_was_changed_in_words() -> None:
    body = _call("explain this\n[Time/Date]: utc=`2026-01-01T00:00:00Z` local=`x` tz=`UTC` nowMs=`1` ntpOffsetMs=`0`")
    record = {
        "target": "glm.k1.glm-4.7",
        "why": "force: <**!glm**>",
        "asked": "claude-opus-4",
        "model": "glm-4.7",
        "dialects": ["anthropic-messages", "openai-chat"],
        "typed": "<**!glm**> explain this",
        "session": "s1",
        "call": "0123456789ab",
    }
    lines = list(page.request_lines(record, body, MESSAGES))
    assert lines[0] == "glm.k1.glm-4.7 · force: <**!glm**>"
    assert lines[1] == "claude-opus-4 → glm-4.7 · anthropic-messages → openai-chat"
    assert "call 01234567" in lines[2]
    assert "  (taken out: <**!glm**>; time tag added)" in lines
    lines = list(page.request_lines(record | {"target": "RouteCodex"}, body, MESSAGES))
    assert lines[lines.index(rule("SENT")) + 1] == "  (nothing: RouteCodex answered)"


def test_a_tool_of_ours_is_marked_in_words() -> None:
    body = json.dumps(
        json.loads(_call("hi")) | {"tools": [{"name": "Read", "input_schema": {}}, {"name": "clock", "input_schema": {}}]}
    )
    record = {"typed": "hi", "target": "glm.k1.glm-4.7", "added": ["clock"]}
    lines = list(page.request_lines(record, body.encode(), MESSAGES))
    assert "  (tool added: clock)" in lines
    assert "  clock (added by RouteCodex), Read" in lines


def test_an_answer_says_what_failed_before_it() -> None:
    lines = list(page.answer_lines({"answered": "b.k.m", "attempts": ["a.k.m: status 503, busy"]}, b"", Dialect.CHAT))
    assert lines[:2] == ["failed before: a.k.m: status 503, busy", "answered by b.k.m"]


def test_a_stream_with_a_gap_says_how_much_is_missing() -> None:
    one = b'data: {"id":"a","choices":[{"index":0,"delta":{"content":"%s"}}]}\n\n'
    body = (
        one % b"begin" + (one % b"cut")[:40] + b"\n\n: 5000000 bytes were not kept here\n\n" + (one % b"half")[30:] + one % b"end"
    )
    shown = "\n".join(page.answer_lines({"stop": ["stop", "end_turn"]}, body, Dialect.CHAT))
    assert "stop reason: stop → end_turn" in shown
    assert "beginend" in shown.replace(" ", "")
    assert "5.0 MB of it were not kept" in shown
    assert "half" not in shown


def test_a_provider_that_says_itself_how_much_is_missing() -> None:
    body = b'data: {"id":"a","choices":[{"index":0,"delta":{"content":"hi"}}]}\n\n: %s bytes were not kept here\n\n' % (
        b"9" * 5000
    )
    assert "  hi" in list(page.answer_lines({}, body, Dialect.CHAT))


def test_of_a_long_history_the_newest_is_shown_and_the_rest_is_folded() -> None:
    turns = [
        {"role": "user" if at % 2 == 0 else "assistant", "content": f"message number {at} " + "x" * 1000} for at in range(1001)
    ]
    lines = list(call.lines(json.dumps({"model": "m", "messages": turns}).encode(), MESSAGES))
    assert lines[0].startswith("── CONVERSATION, newest first (1,001 messages")
    assert lines[1].startswith("── 1001 · user")
    assert any("message number 1000" in line for line in lines[:4])
    assert lines[-1] == "… and 701 older messages"
    assert len(lines) < 1000


DOCUMENTS = {
    Dialect.MESSAGES: '{"id":"i","type":"message","model":"m","content":[{"type":"text","text":"%s"}],"stop_reason":"end_turn"}',
    Dialect.CHAT: '{"id":"i","model":"m","choices":[{"index":0,"message":{"content":"%s"},"finish_reason":"stop"}]}',
    Dialect.RESPONSES: '{"id":"i","output":[{"type":"message","content":[{"type":"output_text","text":"%s"}]}],"status":"x"}',
    Dialect.GEMINI: '[{"candidates":[{"content":{"parts":[{"text":"%s"}]},"finishReason":"STOP"}]}]',
}


@pytest.mark.parametrize("dialect", Dialect)
def test_a_document_that_breaks_off_says_what_it_says_as_far_as_it_goes(dialect: Dialect) -> None:
    """Wherever that is; of what is kept in part the last bytes are shown as they came."""
    whole = (DOCUMENTS[dialect] % 'begin, \\u00e9\\"{[ and on, 漢').encode()
    for cut in range(len(whole)):
        shown = "\n".join(page.answer_lines({}, whole[:cut], dialect))
        assert "BAD_ANSWER" not in shown
        assert ("begin" in shown) or cut < whole.index(b"begin") + 5
        assert "nothing of it could be read" not in shown or cut <= whole.index(b"begin")
    assert list(page.answer_lines({}, b"[" * (1 << 20), dialect)), "at once"
    long = (DOCUMENTS[dialect] % f"begin {'and on ' * 30_000}the end").encode()
    parts = list(page.answer_lines({}, long[:9_000] + b"\n\n: 200000 bytes were not kept here\n\n" + long[-500:], dialect))
    assert "begin and on" in "\n".join(parts)
    assert "  200.0 kB of it were not kept: the text has a gap" in parts
    assert "the end" in "\n".join(parts[parts.index("  its last bytes, as they came:") :])


def test_a_large_call_with_half_a_letter_is_shown_and_a_damaged_one_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    much = "x" * (5 << 20)
    assert any("CONVERSATION" in line for line in page.request_lines({}, _call(f"{much} \ud83d"), MESSAGES))
    monkeypatch.setattr(call, "read_body", None)
    lines = list(page.request_lines({}, _call(much)[:-2], MESSAGES))
    assert "THE CALL CANNOT BE READ" in lines[0]
    assert "is not valid JSON: unexpected end of data" in lines[1]


def test_too_many_objects_are_not_read_for_a_look() -> None:
    body = b'{"messages":[' + b",".join([b"{}"] * 200_000) + b"]}"
    lines = list(call.lines(body, MESSAGES))
    assert "more values than can be read for a look" in lines[1]
    assert (
        "more values than can be read for a look" in list(call.lines(b'{"messages":[' + b"1," * 3_000_001 + b"1]}", MESSAGES))[1]
    )


def test_a_long_stream_that_somebody_else_kept_is_read_in_part() -> None:
    one = b'data: {"id":"a","choices":[{"index":0,"delta":{"content":"%s "}}]}\n\n'
    parts = list(page.answer_lines({}, one % b"begin" + one % b"more" * 20_000 + one % b"end", Dialect.CHAT))
    assert "begin more" in "".join(parts)
    assert "more end" in "".join(parts)
    assert "  1.1 MB of it were not read for a look: the text has a gap" in parts


def test_no_line_moves_a_terminals_cursor() -> None:
    lines = list(call.lines(_call("a\x1b[2Jb\r\n\n\tc\x07"), MESSAGES))
    assert not any(char < " " or char == "\x7f" for line in lines for char in line)
    assert EMPTY in lines


def _call(text: str) -> bytes:
    body: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": text}]}
    return json.dumps(body).encode()


def test_of_what_was_left_out_four_lines_are_told() -> None:
    lines = list(page.request_lines({"leftOut": "word " * 500}, b"{}", MESSAGES))
    (first,) = (at for at, line in enumerate(lines) if line.startswith("left out of what was sent: "))
    assert [line.startswith("… ") for line in lines[first : first + 5]] == [False] * 4 + [True]
