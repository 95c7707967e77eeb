"""Texts edited and exchanges taken out, the same cases in the four dialects."""

import json
import random
from typing import Any

import pytest

from routecodex.routing.dialects.calls import Exchange, drop_exchanges, edit_texts, for_target, read_call
from routecodex.routing.values import Call, Dialect, Endpoint, Text
from tests.rig.work import assert_linear

ENDPOINTS = {
    "messages": Endpoint(Dialect.MESSAGES),
    "chat": Endpoint(Dialect.CHAT),
    "responses": Endpoint(Dialect.RESPONSES),
    "gemini": Endpoint(Dialect.GEMINI, model="g", stream=True),
    "envelope": Endpoint(Dialect.GEMINI, stream=True, envelope=True),
}
EVERY = pytest.mark.parametrize("name", ENDPOINTS)
MARKED = pytest.mark.parametrize("name", ["messages", "chat"])
MARK = {"type": "ephemeral"}
KINDS = "internal_chat_message_metadata_passthrough"


def part(name: str, text: str, **more: object) -> dict[str, object]:
    kind = {"responses": "input_text", "gemini": None, "envelope": None}.get(name, "text")
    return {**({"type": kind} if kind else {}), "text": text, **more}


def item(name: str, role: str, *parts: object, **more: object) -> dict[str, object]:
    """One string stands for a plain string content (a part in Gemini, which has none)."""
    gemini = name in ("gemini", "envelope")
    wire_role = "model" if gemini and role == "assistant" else role
    if len(parts) == 1 and isinstance(parts[0], str) and not gemini:
        return {"role": wire_role, "content": parts[0], **more}
    content = [part(name, each) if isinstance(each, str) else each for each in parts]
    return {"role": wire_role, "parts" if gemini else "content": content, **more}


def call_of(name: str, *items: object) -> Call:
    key = {"responses": "input", "gemini": "contents", "envelope": "contents"}.get(name, "messages")
    body: dict[str, object] = {"model": "m", key: list(items), "unknown": {"kept": [1]}}
    if name == "envelope":
        body = {"model": "m", "project": "p", "request": body}
    return read_call(json.dumps(body).encode(), ENDPOINTS[name])


def sent(call: Call) -> list[dict[str, object]]:
    """The history as it is sent; the views must agree with it."""
    raw = for_target(call, "", foreign=False)
    again = read_call(raw, call.endpoint)
    assert again.messages == call.messages
    body = again.body["request"] if call.endpoint.envelope else again.body
    assert isinstance(body, dict)
    assert body["unknown"] == {"kept": [1]}
    return body[_key(call)]


def _key(call: Call) -> str:
    return {Dialect.RESPONSES: "input", Dialect.GEMINI: "contents"}.get(call.endpoint.dialect, "messages")


@EVERY
@pytest.mark.parametrize(
    "before, edits, after",
    [
        pytest.param(["<**x**> hi"], {0: "hi"}, ["hi"], id="X02 text changed"),
        pytest.param(["a", "<**x**>", "b"], {1: ""}, ["a", "b"], id="part taken out"),
        pytest.param(["a", "<**x**>"], {1: " \n"}, ["a"], id="white space is nothing"),
        pytest.param(["<**x**>", "<**y**>"], {0: "", 1: ""}, ["continue"], id="placeholder"),
        pytest.param(["a", "b", "c"], {0: "", 1: "B", 2: ""}, ["B"], id="several"),
        pytest.param(["a", "b"], {5: "x", -1: "y"}, ["a", "b"], id="no such part"),
    ],
)
def test_edit_texts(name: str, before: list[str], edits: dict[int, str], after: list[str]) -> None:
    parts = [part(name, text, annotation="kept") for text in before]
    call = call_of(name, item(name, "user", *parts), item(name, "assistant", "untouched <**x**>"))
    edit_texts(call, {(0, slot): text for slot, text in edits.items()})
    first, second = sent(call)
    assert first == item(name, "user", *(part(name, text, annotation="kept") for text in after))
    assert second == item(name, "assistant", "untouched <**x**>")
    assert call.changed is (before != after)
    assert call.messages[0].parts == [Text(text, slot) for slot, text in enumerate(after)]


@pytest.mark.parametrize("name", ["messages", "chat", "responses"])
@pytest.mark.parametrize("new, after", [("hi", "hi"), ("", "continue")])
def test_plain_string_stays_a_string(name: str, new: str, after: str) -> None:
    call = call_of(name, item(name, "user", "<**x**> hi"))
    edit_texts(call, {(0, -1): new})
    assert sent(call) == [item(name, "user", after)]


@pytest.mark.parametrize("new, after", [("hi", "hi"), (" ", "continue")])
def test_responses_input_string(new: str, after: str) -> None:
    """P26"""
    call = read_call(b'{"model":"m","input":"<**x**> hi"}', ENDPOINTS["responses"])
    edit_texts(call, {(0, -1): new})
    assert json.loads(for_target(call, "", foreign=False)) == {"model": "m", "input": after}
    assert call.messages[0].parts == [Text(after)]


@MARKED
@pytest.mark.parametrize(
    "marks, gone, after",
    [
        pytest.param([None, "A"], [1], ["A"], id="to the part before"),
        pytest.param(["A", None], [0], ["A"], id="to the next where none is before"),
        pytest.param(["B", "A"], [1], ["B"], id="an heir keeps its own"),
        pytest.param(["A", "B"], [0, 1], ["A"], id="placeholder keeps one"),
        pytest.param([None, "A"], [0, 1], ["A"], id="placeholder inherits"),
        pytest.param([None, None, "A"], [1, 2], ["A"], id="over a part that goes as well"),
    ],
)
def test_cache_marks_move_on(name: str, marks: list[str | None], gone: list[int], after: list[str | None]) -> None:
    parts = [part(name, f"t{slot}", **({"cache_control": {"ttl": mark}} if mark else {})) for slot, mark in enumerate(marks)]
    call = call_of(name, item(name, "user", *parts))
    edit_texts(call, {(0, slot): "" for slot in gone})
    content = sent(call)[0]["content"]
    assert isinstance(content, list)
    assert [each.get("cache_control", {}).get("ttl") for each in content] == after


def test_tool_results_and_thinking_are_never_edited() -> None:
    result = {"type": "tool_result", "tool_use_id": "1", "content": "<**x**>"}
    call = call_of("messages", item("messages", "user", result, "typed"))
    edit_texts(call, {(0, 0): "changed", (0, 1): ""})
    assert sent(call) == [item("messages", "user", result)]
    thinking = {"type": "thinking", "thinking": "<**x**>", "signature": "s"}
    call = call_of("messages", {"role": "assistant", "content": [thinking]})
    edit_texts(call, {(0, 0): ""})
    assert not call.changed


def test_a_mark_passes_over_thinking() -> None:
    thinking = {"type": "thinking", "thinking": "t", "signature": "s"}
    call = call_of("messages", {"role": "assistant", "content": ["x", thinking, part("messages", "a", cache_control=MARK)]})
    edit_texts(call, {(0, 2): ""})
    assert sent(call) == [{"role": "assistant", "content": ["x", thinking]}]


def codex(role: str, *pairs: tuple[str, str]) -> dict[str, object]:
    """A message of Codex: texts and what they are."""
    kinds = {"turn_id": "t", "content_item_kinds": [kind for _, kind in pairs]}
    return item("responses", role, *(part("responses", text) for text, _ in pairs), **{KINDS: kinds})


def test_codex_kinds_keep_in_step() -> None:
    call = call_of("responses", codex("user", ("<**x**>", "user.text"), ("env", "environment"), ("<**y**>", "user.text")))
    edit_texts(call, {(0, 0): "", (0, 2): "hi"})
    assert sent(call) == [codex("user", ("env", "environment"), ("hi", "user.text"))]
    assert call.messages[0].hint == ("environment", "user.text")


@EVERY
def test_exchange_taken_out_whole(name: str) -> None:
    """X03"""
    call = call_of(
        name,
        item(name, "user", "first"),
        item(name, "assistant", "answer"),
        item(name, "user", "<**!glm**>"),
        item(name, "assistant", "now glm"),
        item(name, "user", "go on"),
    )
    slot = call.messages[2].parts[0].slot
    assert drop_exchanges(call, [Exchange(2, 3, {slot})])
    assert sent(call) == [item(name, "user", "first"), item(name, "assistant", "answer"), item(name, "user", "go on")]
    assert call.changed


@EVERY
def test_what_stood_beside_moves_to_the_next_user_message(name: str) -> None:
    call = call_of(
        name,
        item(name, "user", part(name, "<reminder>", extra=1), "<**!glm**>", "<env>"),
        item(name, "assistant", "now glm"),
        item(name, "user", "go", "on"),
        item(name, "assistant", "done"),
    )
    assert drop_exchanges(call, [Exchange(0, 1, [1])])
    assert sent(call) == [
        item(name, "user", part(name, "<reminder>", extra=1), "<env>", "go", "on"),
        item(name, "assistant", "done"),
    ]


@pytest.mark.parametrize("name", ["messages", "chat", "responses"])
def test_a_string_becomes_a_list_only_to_take_something(name: str) -> None:
    call = call_of(
        name,
        item(name, "user", "<reminder>", "<**x**>"),
        item(name, "assistant", "now glm"),
        item(name, "user", "go on"),
        item(name, "assistant", "done"),
        item(name, "user", "stays"),
    )
    assert drop_exchanges(call, [Exchange(0, 1, [1])])
    assert sent(call) == [
        item(name, "user", "<reminder>", "go on"),
        item(name, "assistant", "done"),
        item(name, "user", "stays"),
    ]


@pytest.mark.parametrize("name", ["messages", "chat", "responses"])
def test_system_items_between_go_behind(name: str) -> None:
    environment = item(name, "system", part(name, "# Environment", cache_control=MARK), output_config={"effort": "medium"})
    call = call_of(
        name,
        item(name, "user", "<reminder>", "<**x**>"),
        environment,
        item(name, "user", "<late reminder>"),
        item(name, "assistant", "now glm"),
        item(name, "user", "go on"),
        item(name, "system", "second"),
        item(name, "assistant", "done"),
    )
    assert drop_exchanges(call, [Exchange(0, 3, [1])])
    assert sent(call) == [
        item(name, "user", "<late reminder>"),
        item(name, "user", "<reminder>", "go on"),
        environment,
        item(name, "system", "second"),
        item(name, "assistant", "done"),
    ]


@MARKED
@pytest.mark.parametrize(
    "reminder, typed, answer, after",
    [
        pytest.param(None, "A", None, "A", id="from the typed part"),
        pytest.param(None, None, "A", "A", id="from the answer"),
        pytest.param("B", "A", None, "B", id="an heir keeps its own"),
        pytest.param(None, "A", "C", "C", id="the later one"),
        pytest.param(None, None, None, None, id="none"),
    ],
)
def test_cache_mark_of_an_exchange(
    name: str, reminder: str | None, typed: str | None, answer: str | None, after: str | None
) -> None:
    def marked(text: str, mark: str | None) -> dict[str, object]:
        return part(name, text, **({"cache_control": {"ttl": mark}} if mark else {}))

    call = call_of(
        name,
        item(name, "user", marked("<reminder>", reminder), marked("<**x**>", typed)),
        item(name, "assistant", marked("now glm", answer)),
        item(name, "user", "go on"),
    )
    assert drop_exchanges(call, [Exchange(0, 1, [1])])
    assert sent(call) == [{"role": "user", "content": [marked("<reminder>", after), part(name, "go on")]}]


def test_moved_parts_stand_behind_results_of_tools() -> None:
    result = {"type": "tool_result", "tool_use_id": "1", "content": "x"}
    call = call_of(
        "messages",
        item("messages", "user", "<reminder>", "<**x**>"),
        item("messages", "assistant", "now glm"),
        item("messages", "user", result, "go on"),
    )
    assert drop_exchanges(call, [Exchange(0, 1, [1])])
    assert sent(call) == [item("messages", "user", result, "<reminder>", "go on")]


def test_codex_kinds_move_along() -> None:
    call = call_of(
        "responses",
        codex("user", ("env", "environment"), ("<**x**>", "user.text")),
        item("responses", "assistant", "now glm"),
        codex("user", ("go on", "user.text")),
    )
    assert drop_exchanges(call, [Exchange(0, 1, [1])])
    assert sent(call) == [codex("user", ("env", "environment"), ("go on", "user.text"))]


@EVERY
@pytest.mark.parametrize(
    "asked, answered",
    [pytest.param(2, 3, id="no user message follows"), (1, 2), (3, 2), (1, 1), (-1, 1), (0, 99), (0, 2)],
)
def test_what_cannot_be_taken_out(name: str, asked: int, answered: int) -> None:
    history = [item(name, role, f"t{place}") for place, role in enumerate(["user", "assistant", "user", "assistant"])]
    call = call_of(name, *history)
    assert not drop_exchanges(call, [Exchange(asked, answered, [0, -1])])
    assert not call.changed
    assert sent(call) == history


@pytest.mark.parametrize("name", list(ENDPOINTS))
def test_a_question_whose_answer_is_gone(name: str) -> None:
    history = [item(name, role, f"t{place}") for place, role in enumerate(["user", "user", "assistant"])]
    call = call_of(name, *history)
    assert drop_exchanges(call, [Exchange(0, 0, [0, -1])])
    assert sent(call) == history[1:]


def test_responses_string_holds_no_exchange() -> None:
    call = read_call(b'{"model":"m","input":"x"}', ENDPOINTS["responses"])
    assert not drop_exchanges(call, [Exchange(0, 1, [-1])])


@EVERY
def test_two_exchanges(name: str) -> None:
    history = []
    for place in range(3):
        history += [item(name, "user", f"<r{place}>", f"t{place}"), item(name, "assistant", f"a{place}")]
    call = call_of(name, *history)
    assert drop_exchanges(call, [Exchange(0, 1, [1]), Exchange(2, 3, [1])])
    assert sent(call) == [item(name, "user", "<r0>", "<r1>", "<r2>", "t2"), item(name, "assistant", "a2")]


def test_a_message_of_very_many_tags_is_edited_in_linear_time() -> None:
    """A4"""

    def edited(call: Call) -> list[Any]:
        edit_texts(call, {(0, slot): "" for slot in range(len(call.messages[0].parts) - 1)})
        return sent(call)

    def make(count: int) -> Call:
        parts = [part("messages", "x", cache_control=MARK) for _ in range(count)]
        return call_of("messages", item("messages", "user", *parts, "last"))

    assert edited(make(30_000)) == [{"role": "user", "content": [part("messages", "last", cache_control=MARK)]}]
    assert_linear(edited, make, 8_000)


@EVERY
def test_many_exchanges_at_once_are_as_one_by_one(name: str) -> None:
    """X03"""
    chance = random.Random(7)
    for _ in range(60):
        history, exchanges = _with_exchanges(name, chance)
        once, single = call_of(name, *history), call_of(name, *history)
        drop_exchanges(once, exchanges)
        for exchange in reversed(exchanges):
            drop_exchanges(single, [exchange])
        assert sent(once) == sent(single)


def _with_exchanges(name: str, chance: random.Random) -> tuple[list[dict[str, object]], list[Exchange]]:
    history: list[dict[str, object]] = []
    exchanges = []
    for place in range(chance.randrange(1, 8)):
        parts = [f"{place}.{slot}" for slot in range(chance.randrange(1, 4))]
        result = {"type": "tool_result", "tool_use_id": "1", "content": "x"}
        history.append(item(name, "user", *([result] if name == "messages" and chance.random() < 0.3 else []), *parts))
        asked = len(history) - 1
        for role in chance.choices(["user", "system"], k=chance.randrange(3)):
            history.append(item(name, role if name not in ("gemini", "envelope") else "user", f"beside {len(history)}"))
        if chance.random() < 0.8:
            history.append(item(name, "assistant", "ours"))
            answered = len(history) - 1
        else:
            answered = asked
        if chance.random() < 0.7:
            exchanges.append(Exchange(asked, answered, [-1, *chance.sample(range(4), 2)]))
    return history, exchanges


@MARKED
def test_a_mark_of_what_stays_is_not_doubled(name: str) -> None:
    """Where our answer is gone: a provider takes four of them at most."""
    kept = [part(name, "<reminder>", cache_control=MARK), part(name, "<env>")]
    call = call_of(name, item(name, "user", *kept, "<**x**>"), item(name, "user", "go on"))
    assert drop_exchanges(call, [Exchange(0, 0, [2])])
    assert sent(call) == [{"role": "user", "content": [*kept, part(name, "go on")]}]
