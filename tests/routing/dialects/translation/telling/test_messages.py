from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from routecodex.routing.dialects.sse import Events
from routecodex.routing.dialects.translation import opaque
from routecodex.routing.dialects.translation.neutral import Media, Seal, Tokens, ToolName
from routecodex.routing.values import Dialect, ProviderError
from tests.routing.dialects.answer import rounds, streams
from tests.routing.dialects.answer.plain import (
    BlockEnded,
    Broken,
    CallEnded,
    CallPiece,
    CallStarted,
    Event,
    Finished,
    MediaShown,
    Started,
    Teller,
    TextPiece,
    ThoughtEnded,
    ThoughtPiece,
)
from tests.routing.dialects.answer.rounds import Spoken, spoken
from tests.routing.dialects.translation import coming_down as down
from tests.routing.dialects.translation.coming_down import MESSAGES, asked, call, thought, whole

OWN = Seal(Dialect.MESSAGES, "acme", {"signature": "Eu+/=="})
REDACTED = Seal(Dialect.MESSAGES, "acme", {"data": "EmwK"})
REDACTED_BLOCK = {"type": "redacted_thinking", "data": "EmwK"}
SIGNED = Seal(Dialect.RESPONSES, "acme", {"encrypted_content": "gAAA", "id": "rs_1"})
ON_CALL = Seal(Dialect.GEMINI, "acme", {"for": "call", "thoughtSignature": "Eg=="})
ON_TEXT = Seal(Dialect.GEMINI, "acme", {"for": "part", "thoughtSignature": "Eg=="})


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _thinking(text: str, seal: Seal | str = "") -> dict[str, Any]:
    return {"type": "thinking", "thinking": text, "signature": seal if isinstance(seal, str) else opaque.wrap(seal)}


def _tool(id: str, name: str, **input: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": name, "input": input}


CASES: dict[str, tuple[list[Event], list[dict[str, Any]], str]] = {
    # events → the blocks that the client holds, and why it ended
    "text": (whole(TextPiece("Grüße, "), TextPiece(""), TextPiece("世界")), [_text("Grüße, 世界")], "end_turn"),
    "nothing": (whole(word="stop"), [], "end_turn"),
    "two texts": (whole(TextPiece("a"), BlockEnded(), TextPiece("b"), BlockEnded()), [_text("a"), _text("b")], "end_turn"),
    "a thought nobody signed": (whole(thought("hm"), TextPiece("a")), [_thinking("hm"), _text("a")], "end_turn"),
    "a thought that only ends": (whole(ThoughtEnded(), TextPiece("a")), [_text("a")], "end_turn"),
    "a thought that a text ends": (whole(ThoughtPiece("hm"), TextPiece("a")), [_thinking("hm"), _text("a")], "end_turn"),
    "a thought of this dialect": (
        whole(thought("hm", seal=OWN), TextPiece("a")), [_thinking("hm", "Eu+/=="), _text("a")], "end_turn",
    ),
    "redacted thoughts of this dialect": (
        whole(ThoughtEnded(REDACTED), thought("hm", seal=REDACTED), TextPiece("a")),
        [REDACTED_BLOCK, _thinking("hm"), REDACTED_BLOCK, _text("a")],
        "end_turn",
    ),
    "a foreign seal": (whole(thought("hm", seal=SIGNED), TextPiece("a")), [_thinking("hm", SIGNED), _text("a")], "end_turn"),
    "a seal without a thought": (whole(ThoughtEnded(SIGNED), TextPiece("a")), [_thinking("", SIGNED), _text("a")], "end_turn"),
    "parallel calls": (
        whole(TextPiece("a"), call("t1", "A", '{"a":', '"é"}'), call("t2", "B", "{}"), word="STOP"),
        [_text("a"), _tool("t1", "A", a="é"), _tool("t2", "B")],
        "tool_use",
    ),
    "a call without arguments": (whole(call("t1", "A"), call("t2", "B", ""), call("t3", "C", " ", " ")), [
        _tool("t1", "A"), _tool("t2", "B"), _tool("t3", "C")], "tool_use"),
    "null for no arguments": (whole(call("t1", "A", "nu", "ll")), [_tool("t1", "A")], "tool_use"),
    "arguments that are no object": (whole(call("t1", "A", "[1,", "2]")), [_tool("t1", "A", arguments="[1,2]")], "tool_use"),
    "arguments that are not JSON": (whole(call("t1", "A", "ls -la")), [_tool("t1", "A", arguments="ls -la")], "tool_use"),
    "arguments behind white space": (whole(call("t1", "A", "\n", ' {"a"', ":1}")), [_tool("t1", "A", a=1)], "tool_use"),
    "a seal on a call": (
        whole(TextPiece("a"), call("t1", "A", "{}", seal=ON_CALL), call("t2", "B", "{}")),
        [_text("a"), _thinking("", ON_CALL), _tool("t1", "A"), _tool("t2", "B")],
        "tool_use",
    ),
    "a call that the end ends": (whole(CallStarted("t1", "A"), CallPiece('{"a":1}')), [_tool("t1", "A", a=1)], "tool_use"),
    "a call that a text ends": (whole(CallStarted("t1", "A"), TextPiece("a")), [_tool("t1", "A"), _text("a")], "tool_use"),
    "pieces of no call": (whole(CallPiece("{}"), CallEnded(), TextPiece("a")), [_text("a")], "end_turn"),
    "a text's seal at the end is not shown": (whole(TextPiece("a"), ThoughtEnded(ON_TEXT)), [_text("a")], "end_turn"),
    "a text's seal before a call": (
        whole(TextPiece("a"), ThoughtEnded(ON_TEXT), call("t1", "A", "{}")),
        [_text("a"), _thinking("", ON_TEXT), _tool("t1", "A")],
        "tool_use",
    ),
    "a text's seal before a text": (
        whole(TextPiece("a"), BlockEnded(), ThoughtEnded(ON_TEXT), TextPiece("b")),
        [_text("a"), _thinking("", ON_TEXT), _text("b")],
        "end_turn",
    ),
    "a picture": (
        whole(TextPiece("see"), MediaShown(Media("image", "image/png", "iVBO")), TextPiece("that")),
        [_text("see"), _text("\n\n[image: image/png]\n\n"), _text("that")], "end_turn",
    ),
    "a picture alone": (whole(MediaShown(Media("image", url="https://x/y"))), [_text("[image: https://x/y]\n\n")], "end_turn"),
    "max tokens": (whole(TextPiece("a"), word="length"), [_text("a")], "max_tokens"),
    "a refusal": (whole(TextPiece("a"), word="SAFETY"), [_text("a")], "stop_sequence"),
    "a word of its own": (whole(TextPiece("a"), word="pause_turn"), [_text("a")], "pause_turn"),
    "no word": (whole(TextPiece("a"), word=""), [_text("a")], "end_turn"),
    "a call, whatever the word": (whole(call("t1", "A", "{}"), word="stop"), [_tool("t1", "A")], "tool_use"),
    "calls in words only": (whole(TextPiece("a"), word="tool_calls"), [_text("a")], "end_turn"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_the_client_holds(case: str) -> None:
    events, content, reason = CASES[case]
    raw = down.tell(events, asked(MESSAGES))
    streams.check_messages(Events().feed(raw))
    message = rounds.accumulated(down.documents_of(MESSAGES, raw))
    assert message["content"] == content
    assert message["stop_reason"] == reason
    assert (message["id"], message["model"], message["role"]) == ("id-1", "asked-model", "assistant")
    said = down.said(MESSAGES, raw)
    assert said.complete
    assert [one.id for one in said.calls] == [block["id"] for block in content if block["type"] == "tool_use"]


@pytest.mark.parametrize("case", CASES)
def test_a_whole_message_is_what_its_stream_adds_up_to(case: str) -> None:
    events, *_ = CASES[case]
    streamed = rounds.accumulated(down.documents_of(MESSAGES, down.tell(events, asked(MESSAGES))))
    assert down.tell_whole(events, asked(MESSAGES, stream=False)) == streamed


def test_halves_of_a_letter_stay_in_order() -> None:
    events = whole(TextPiece("a\ud83d"), TextPiece("\ude00"))
    streamed = rounds.accumulated(down.documents_of(MESSAGES, down.tell(events, asked(MESSAGES))))["content"][0]["text"]
    assert streamed.encode("utf-16-le", "surrogatepass").decode("utf-16-le") == "a😀"
    assert down.tell_whole(events, asked(MESSAGES))["content"] == [_text("a😀")]


def test_arguments_leave_as_they_come() -> None:
    teller = Teller(asked(MESSAGES))
    assert b"content_block_stop" in [*map(teller.tell, [Started("i", "m"), TextPiece("a"), CallStarted("t1", "A")])][-1]
    assert teller.tell(CallPiece('{"a"')) == b"", "a seal may still come"
    assert [one["type"] for one in rounds.sse_documents(teller.tell(CallPiece(':"')))] == [
        "content_block_start",
        "content_block_delta",
    ]
    (delta,) = rounds.sse_documents(teller.tell(CallPiece('x\\n"}')))
    assert delta == {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": 'x\\n"}'}}
    assert [one["type"] for one in rounds.sse_documents(teller.tell(CallEnded()))] == ["content_block_stop"]


def test_there_is_always_a_delta_of_arguments() -> None:
    documents = down.documents_of(MESSAGES, down.tell(whole(call("t1", "A")), asked(MESSAGES)))
    assert [one["delta"]["partial_json"] for one in documents if one["type"] == "content_block_delta"] == ["{}"]


COUNTS: dict[str, tuple[Tokens | None, Tokens | None, int, dict[str, Any], dict[str, Any]]] = {
    # at the start, at the end, our estimate → in message_start, at last
    "known at the end": (
        None, Tokens(input=117, output=88, cached=100, written=7, reasoning=30), 90,
        {"input_tokens": 90, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 0},
        {"input_tokens": 10, "cache_creation_input_tokens": 7, "cache_read_input_tokens": 100, "output_tokens": 88,
         "output_tokens_details": {"thinking_tokens": 30}},
    ),
    "known at the start": (
        Tokens(input=117, output=1, cached=100), None, 90,
        {"input_tokens": 17, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 100, "output_tokens": 1},
        {"input_tokens": 17, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 100, "output_tokens": 1},
    ),
    "never known": (
        None, None, 90,
        {"input_tokens": 90, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 0},
        {"input_tokens": 90, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 0},
    ),
    "more cached than read": (
        None, Tokens(input=5, output=1, cached=100), 0,
        {"input_tokens": 0, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 0},
        {"input_tokens": 0, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 100, "output_tokens": 1},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", COUNTS)
def test_counts(case: str) -> None:
    early, late, estimate, start, last = COUNTS[case]
    events = [Started("i", "m", early), TextPiece("a"), Finished("stop", late)]
    documents = down.documents_of(MESSAGES, down.tell(events, asked(MESSAGES, estimate=lambda: estimate)))
    assert documents[0]["message"]["usage"] == start
    assert documents[-2]["usage"] == last
    assert down.tell_whole(events, asked(MESSAGES, estimate=lambda: estimate))["usage"] == last


def test_the_stop_sequence_is_told() -> None:
    events = whole(TextPiece("a"), word="stop", stop_sequence="END")
    delta = down.documents_of(MESSAGES, down.tell(events, asked(MESSAGES)))[-2]["delta"]
    assert delta == {"stop_reason": "stop_sequence", "stop_sequence": "END"}


def test_ids_are_made_where_there_are_none_and_always_the_same() -> None:
    events = [
        Started("", ""),
        *call("", "A", "{}"),
        *call("", "A", "{}"),
        *call("c", "A", "{}"),
        *call("c", "A", "{}"),
        Finished(""),
    ]
    first, again = (down.tell_whole(events, asked(MESSAGES)) for _ in range(2))
    assert first == again
    ids = [block["id"] for block in first["content"]]
    assert len(set(ids)) == 4
    assert ids[2] == "c"
    assert all(id.startswith("toolu_") and len(id) == 30 for id in (*ids[:2], ids[3]))
    assert first["id"].startswith("msg_")
    other = down.tell_whole(events, asked(MESSAGES, id="round-2"))
    assert first["id"] != other["id"]
    assert set(ids).isdisjoint({block["id"] for block in other["content"]} - {"c"})


@pytest.mark.parametrize("id", ["functions.Bash:0", "x" * 200, "é", "call 1"])
def test_ids_that_the_dialect_does_not_take(id: str) -> None:
    told = down.tell_whole(whole(call(id, "A", "{}")), asked(MESSAGES))["content"][0]["id"]
    assert told.startswith("toolu_")
    assert len(told) <= 64
    assert told.replace("_", "").replace("-", "").isascii()
    assert told.replace("_", "").replace("-", "").isalnum()


def test_tools_have_the_names_that_the_client_knows() -> None:
    tools = {"mcp_long_1a2b": ToolName("mcp.long")}
    events = whole(call("t1", "mcp_long_1a2b", "{}"), call("t2", "Other", "{}"))
    content = down.tell_whole(events, asked(MESSAGES, tools=tools))["content"]
    assert [block["name"] for block in content] == ["mcp.long", "Other"]


def test_content_before_a_start_has_one() -> None:
    raw = down.tell([TextPiece("a"), Started("late", "m"), Finished("stop")], asked(MESSAGES))
    streams.check_messages(Events().feed(raw))
    assert rounds.accumulated(down.documents_of(MESSAGES, raw))["id"].startswith("msg_")


@pytest.mark.parametrize(
    "status, kind", [(529, "overloaded_error"), (429, "rate_limit_error"), (500, "api_error"), (400, "invalid_request_error")]
)
def test_an_error_ends_the_stream(status: int, kind: str) -> None:
    broken = Broken(ProviderError(status, "so it is", "BUSY"))
    raw = down.tell([Started("i", "m"), TextPiece("a"), broken, TextPiece("b"), Finished("stop")], asked(MESSAGES))
    documents = down.documents_of(MESSAGES, raw)
    assert documents[-1]["type"] == "error"
    assert (documents[-1]["error"]["type"], documents[-1]["error"]["message"]) == (kind, "so it is")
    said = down.said(MESSAGES, raw)
    assert not said.complete
    assert said.text == "a"
    assert said.error is not None
    assert said.error.status == status
    assert rounds.sse_documents(down.tell([broken], asked(MESSAGES)))[0]["type"] == "error", "nothing before it"
    assert down.tell_whole([Started("i", "m"), TextPiece("a"), broken], asked(MESSAGES))["error"]["type"] == kind


def test_a_stream_that_breaks_off_gets_no_end() -> None:
    raw = down.tell([Started("i", "m"), TextPiece("a"), CallStarted("t", "A"), CallPiece('{"a')], asked(MESSAGES))
    said = down.said(MESSAGES, raw)
    assert (said.complete, said.calls, said.text) == (False, (), "a")
    assert b"message_stop" not in raw
    assert down.tell_whole([Started("i", "m"), TextPiece("a")], asked(MESSAGES))["type"] == "error"


def test_nothing_is_told_behind_the_end() -> None:
    teller = Teller(asked(MESSAGES))
    assert b"".join(map(teller.tell, whole(TextPiece("a"))))
    assert [teller.tell(event) for event in whole(TextPiece("a"), BlockEnded())] == [b""] * 4
    assert teller.close() == b""


# --- through the other dialect, and through our own merger -----------------------------------------------------------------

ROUNDS: dict[str, Spoken] = {
    "text": spoken(("text", "Grüße, 世界 😀")),
    "thinking and text": spoken(("thinking", "let me see"), ("text", "so"), input=7, output=3),
    "two calls": spoken(("thinking", "hm"), ("text", "now"), ("tool", '{"command":"ls"}'), ("tool", '{"a":[1,{"b":"é\\n"}]}')),
    "a call alone": spoken(("tool", "{}")),
    "nothing": spoken(),
}


@pytest.mark.parametrize("way", rounds.WAYS)
@pytest.mark.parametrize("case", ROUNDS)
@pytest.mark.parametrize("provider", [Dialect.MESSAGES, Dialect.GEMINI])
def test_our_merger_reads_what_the_provider_said(provider: Dialect, case: str, way: str) -> None:
    round_ = ROUNDS[case]
    raw = rounds.messages_stream(round_, 1) if provider is Dialect.MESSAGES else rounds.gemini_stream(round_, 1)
    endpoint = MESSAGES if provider is Dialect.MESSAGES else down.GEMINI
    there = down.said(endpoint, raw)
    told = down.tell(down.hear(provider, raw, rounds.WAYS[way]), asked(MESSAGES))
    here = down.said(MESSAGES, told, rounds.WAYS[way])
    assert (here.text, here.finish, here.usage, here.complete) == (there.text, there.finish, there.usage, True)
    assert [(one.name, one.arguments) for one in here.calls] == [(one.name, one.arguments) for one in there.calls]
    assert here.text == round_.text


@given(rounds.random_rounds(most=1))
def test_an_answer_of_its_own_dialect_comes_out_the_same(given_: list[Spoken]) -> None:
    (round_,) = given_
    events = down.hear(Dialect.MESSAGES, rounds.messages_stream(round_, 1))
    raw = down.tell(events, asked(MESSAGES))
    assert down.joined(down.hear(Dialect.MESSAGES, raw)) == down.joined(
        [Started("msg_1", "asked-model", *_tokens(events)), *events[1:]]
    )
    streams.check_messages(Events().feed(raw))
    message = rounds.accumulated(down.documents_of(MESSAGES, raw))
    assert message["content"] == rounds.messages_blocks(round_, 1)


def _tokens(events: list[Event]) -> list[Tokens | None]:
    return [event.tokens for event in events if isinstance(event, Started)]


@given(down.ANY_EVENTS)
def test_whatever_comes_the_stream_is_well_formed(events: list[Event]) -> None:
    raw = down.tell([*events, Finished("stop")], asked(MESSAGES))
    streams.check_messages(Events().feed(raw))
    said = down.said(MESSAGES, raw)
    assert said.complete
    assert len({one.id for one in said.calls}) == sum(isinstance(event, CallStarted) for event in events)
    if not any(isinstance(event, MediaShown) for event in events):
        assert said.text == "".join(event.text for event in events if isinstance(event, TextPiece))
    streamed = [one["content_block"] for one in down.documents_of(MESSAGES, raw) if one["type"] == "content_block_start"]
    told = down.tell_whole([*events, Finished("stop")], asked(MESSAGES))["content"]
    assert _shown(told) == _shown(streamed)


def _shown(blocks: list[dict[str, Any]]) -> list[tuple[str, str | None]]:
    """Without thoughts: in a stream, a seal comes too late for a call whose arguments have begun to leave."""
    return [(block["type"], block.get("id")) for block in blocks if "thinking" not in block["type"]]


def test_a_seal_that_comes_too_late_is_left_out() -> None:
    events = whole(call("t1", "A", '{"a"', ":1}", seal=ON_CALL))
    streamed = rounds.accumulated(down.documents_of(MESSAGES, down.tell(events, asked(MESSAGES))))["content"]
    assert streamed == [_tool("t1", "A", a=1)]
    assert down.tell_whole(events, asked(MESSAGES))["content"] == [_thinking("", ON_CALL), _tool("t1", "A", a=1)]
