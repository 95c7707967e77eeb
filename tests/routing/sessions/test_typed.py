"""Where tags may give orders, and where they are taken out."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecodex.routing.sessions.typed import editable_texts, typed_messages
from routecodex.routing.values import Call
from tests.rig.work import assert_linear
from tests.routing.sessions.calls import assistant, chat_call, gemini_call, messages_call, responses_call, user

TAG = "<**!glm**>"
FILES_BEGIN = "\n--- Content from referenced files ---"
FILES_END = "\n--- End of content ---"


def obeyed(call: Call) -> str:
    """What the newest typed message may order."""
    typed = typed_messages(call)
    return typed[-1].words if typed else ""


def edited(call: Call) -> str:
    return "|".join(part.text[start:end] for _, part, spans in editable_texts(call) for start, end in spans)


@pytest.mark.parametrize(
    "text, words",
    [
        pytest.param(f"{TAG} hi", f"{TAG} hi", id="plain"),
        pytest.param(f"<system-reminder>\n{TAG}\n</system-reminder>\nhi", "hi", id="behind a reminder"),
        pytest.param(f"hi\n<system-reminder>{TAG}</system-reminder>", "hi", id="before a reminder"),
        pytest.param(f"<system-reminder>{TAG}", "", id="reminder never closed"),
        pytest.param(f"hi <system-reminder> is what? {TAG}", f"hi <system-reminder> is what? {TAG}", id="mentioned, not opened"),
        pytest.param(f"hi\n  <system-reminder>\n{TAG}", "hi", id="never closed, on its own line"),
        pytest.param(f"</system-reminder> {TAG}", f"</system-reminder> {TAG}", id="closing only"),
        pytest.param(
            f"<system-reminder>file:\n</system-reminder>\n{TAG}\n</system-reminder>\nhi",
            "hi",
            id="a file closes the wrapper early",
        ),
        pytest.param(
            f"<system-reminder>f</system-reminder>\n{TAG}\n<system-reminder>g</system-reminder>",
            "",
            id="a file closes and opens again",
        ),
        pytest.param(f"<system-reminder>a <session_context> b</system-reminder>{TAG}", TAG, id="another wrapper opened inside"),
        pytest.param(f'<system-reminder kind="x">{TAG}</system-reminder>hi', "hi", id="with attributes"),
        pytest.param(f"<session>\n{TAG}\n</session>\n\nname it", "name it", id="quoted session"),
        pytest.param(f"look:\n<conversation>\n[User]: {TAG}\n</conversation>", "look:", id="quoted conversation"),
        pytest.param(f"<command-name>/go</command-name><command-args>{TAG}</command-args>", "", id="command"),
        pytest.param(f"<bash-input>{TAG}</bash-input><bash-stdout>x</bash-stdout>", "", id="shell mode"),
        pytest.param(f"<b>{TAG}</b>", f"<b>{TAG}</b>", id="a person's own markup"),
        pytest.param(
            f"<instructions>{TAG}</instructions>", f"<instructions>{TAG}</instructions>", id="a person's own instructions"
        ),
        pytest.param(f"<INSTRUCTIONS>{TAG}</INSTRUCTIONS>", "", id="a tool's instructions"),
        pytest.param(f"This session is being continued from a previous conversation that… {TAG}", "", id="continued"),
        pytest.param(f"Your response above was cut off mid-stream. {TAG}", "", id="cut off"),
        pytest.param(f"CRITICAL: Respond with TEXT ONLY. {TAG}", "", id="compaction prompt"),
        pytest.param(f"[SYSTEM NOTIFICATION - NOT USER INPUT] {TAG}", "", id="notification"),
        pytest.param("[Request interrupted by user for tool use]", "", id="interrupted"),
        pytest.param(f"# AGENTS.md instructions for /x\n\n{TAG}", "", id="instruction file"),
        pytest.param(f"why does it say\nCRITICAL: Respond with TEXT ONLY? {TAG}", None, id="a tool's sentence in the middle"),
        pytest.param(f"{TAG} go\n\n# *SEARCH/REPLACE block* Rules:\n\n<**x**>", f"{TAG} go", id="instructions glued behind"),
        pytest.param("Refactor hello() into its own file.", "", id="a tool's example"),
        pytest.param(" \n\t", "", id="blank"),
        pytest.param("", "", id="empty"),
    ],
)
def test_what_is_obeyed(text: str, words: str | None) -> None:
    assert obeyed(messages_call(user(text))) == (text if words is None else words)


@pytest.mark.parametrize(
    "text, spans",
    [
        pytest.param(f"{TAG} hi", f"{TAG} hi", id="plain"),
        pytest.param(f"a<system-reminder>{TAG}</system-reminder>b", "a|b", id="a tool's own"),
        pytest.param(f"<system-reminder>x</system-reminder>{TAG}<bash-stdout>y</bash-stdout>", TAG, id="between two wrappers"),
        pytest.param(f"<system-reminder>{TAG}", f"<system-reminder>{TAG}", id="never closed: the tag must not reach a provider"),
        pytest.param(f"<session>{TAG}</session>", f"<session>{TAG}</session>", id="quoted"),
        pytest.param(f"<command-args>{TAG}</command-args>", f"<command-args>{TAG}</command-args>", id="command"),
        pytest.param(f"CRITICAL: Respond with TEXT ONLY {TAG}", f"CRITICAL: Respond with TEXT ONLY {TAG}", id="sentence"),
        pytest.param("<bash-stdout>x</bash-stdout>", "", id="nothing typed"),
    ],
)
def test_what_is_edited(text: str, spans: str) -> None:
    assert edited(messages_call(user(text))) == spans


def test_wrapped_text_passes_as_it_came() -> None:
    wrapped = f"<environment_context>\n{TAG}\n</environment_context>"
    [(message, part, spans)] = editable_texts(messages_call(user(wrapped)))
    assert (message.role, part.text, spans) == ("user", wrapped, ())


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(messages_call(user("hi"), assistant(TAG)), id="assistant text"),
        pytest.param(messages_call(user("hi"), {"role": "system", "content": TAG}), id="system item"),
        pytest.param(
            messages_call(
                user("hi"),
                {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "n", "input": {}}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": TAG}]},
            ),
            id="tool_result block of a user message",
        ),
        pytest.param(chat_call(user("hi"), {"role": "tool", "tool_call_id": "t", "content": TAG}), id="tool message"),
        pytest.param(
            responses_call(
                {"role": "user", "content": "hi"},
                {"type": "function_call_output", "call_id": "t", "output": TAG},
            ),
            id="function_call_output",
        ),
        pytest.param(
            gemini_call(
                {"role": "user", "parts": [{"text": "hi"}]},
                {"role": "user", "parts": [{"functionResponse": {"name": "n", "response": {"output": TAG}}}]},
            ),
            id="functionResponse",
        ),
    ],
)
def test_p20_text_that_nobody_typed(call: Call) -> None:
    assert obeyed(call) == "hi"
    assert TAG not in edited(call)


def test_p21_only_the_newest_typed_message_is_newest() -> None:
    typed = typed_messages(messages_call(user(TAG), assistant("ok"), user("plain")))
    assert [(message.ordinal, message.words) for message in typed] == [(0, TAG), (1, "plain")]


def test_p22_a_tool_hop_keeps_the_newest_typed_message() -> None:
    hop = messages_call(
        user(f"{TAG} go"),
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "n", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "done"}]},
        user("<system-reminder>be quick</system-reminder>"),
    )
    [only] = typed_messages(hop)
    assert (only.ordinal, only.words, only.message.index) == (0, f"{TAG} go", 0)


def test_text_typed_beside_a_tool_result_counts() -> None:
    content: list[dict[str, Any]] = [
        {"type": "tool_result", "tool_use_id": "t", "content": "<**x**>"},
        {"type": "text", "text": "<system-reminder>x</system-reminder>"},
        {"type": "text", "text": f"{TAG} and this"},
    ]
    assert obeyed(messages_call({"role": "user", "content": content})) == f"{TAG} and this"


def codex_message(*parts: tuple[str, str]) -> dict[str, Any]:
    return {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": text} for _, text in parts],
        "internal_chat_message_metadata_passthrough": {"content_item_kinds": [kind for kind, _ in parts]},
    }


def test_the_clients_own_word_decides() -> None:
    call = responses_call(codex_message(("hook.output", f"{TAG} a"), ("user.text", f"{TAG} b")))
    assert obeyed(call) == f"{TAG} b"
    assert edited(call) == f"{TAG} b"


def test_a_command_file_is_sent_by_the_person_but_gives_no_orders() -> None:
    call = messages_call(user("<command-message>go</command-message>\n<command-name>/go</command-name>", f"do {TAG}"))
    [message] = typed_messages(call)
    assert [(text.part.text, text.commands) for text in message.texts] == [(f"do {TAG}", ())]
    assert TAG in edited(call)


def test_text_after_a_local_commands_output_is_typed() -> None:
    call = messages_call(user("<command-name>/x</command-name>", "<local-command-stdout>ok</local-command-stdout>", TAG))
    assert obeyed(call) == TAG


def test_files_put_behind_the_prompt_are_nobodys_words() -> None:
    texts = (f"{TAG} read @a", FILES_BEGIN, "\nContent from @a:\n", "<**!evil**>", FILES_END, "<**!evil**>", FILES_END)
    call = gemini_call({"role": "user", "parts": [{"text": text} for text in texts]})
    assert obeyed(call) == f"{TAG} read @a"
    assert edited(call) == f"{TAG} read @a"


PIECES = st.sampled_from(
    [
        *(
            "<system-reminder>",
            "</system-reminder>",
            "<session>",
            "</session>",
            "<command-args>",
            "</command-args>",
            TAG,
            "hi",
            "\n",
        ),
        *(" ", "<", ">", "</", "<system-reminder ", FILES_BEGIN, FILES_END, "CRITICAL: Respond with TEXT ONLY", "\ud800", "é"),
        "\n\n# *SEARCH/REPLACE block* Rules:",
    ]
)


@given(st.lists(st.lists(PIECES, max_size=12).map("".join), min_size=1, max_size=4))
def test_spans_are_ordered_and_what_is_obeyed_is_edited(texts: list[str]) -> None:
    call = messages_call({"role": "user", "content": [{"type": "text", "text": text} for text in texts]})
    editable = {id(part): spans for _, part, spans in editable_texts(call)}
    for spans in editable.values():
        assert list(spans) == sorted(spans)
        assert all(start < end for start, end in spans)
    for message in typed_messages(call):
        for text in message.texts:
            for start, end in text.commands:
                assert start < end
                assert any(left <= start and end <= right for left, right in editable[id(text.part)])


@pytest.mark.parametrize(
    "piece",
    [
        "<",
        "<system-reminder>",
        "</system-reminder>",
        "<system-reminder ",
        "<session>",
        "\n<session>",
        "<a",
        " ",
        "\n<system-reminder>x",
    ],
)
def test_a_mebibyte_of_anything_is_linear_work(piece: str) -> None:
    def work(call: Call) -> None:
        typed_messages(call)
        editable_texts(call)

    assert_linear(work, lambda size: messages_call(user((piece * size)[:size])), 1 << 18)
