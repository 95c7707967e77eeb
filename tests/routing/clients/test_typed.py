"""Where tags may give orders, and where they are taken out."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from routecodex.routing.clients.aider import AIDER, CECLI
from routecodex.routing.clients.claude_code import CLAUDE_CODE
from routecodex.routing.clients.client import Client
from routecodex.routing.clients.cline import CLINE
from routecodex.routing.clients.codex import CODEX
from routecodex.routing.clients.continue_ import CONTINUE
from routecodex.routing.clients.gemini_cli import GEMINI_CLI
from routecodex.routing.clients.gptme import GPTME
from routecodex.routing.clients.opencode import OPENCODE
from routecodex.routing.clients.pi import PI
from routecodex.routing.clients.qwen_code import QWEN_CODE
from routecodex.routing.clients.typed import editable_texts, typed_messages
from routecodex.routing.clients.unknown import UNKNOWN
from routecodex.routing.tags.scan import strip
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
    return "|".join(one.part.text[start:end] for one in editable_texts(call) for start, end in one.spans)


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
        pytest.param(f"so <b>{TAG}</b>", None, id="a person's own markup within a line"),
        pytest.param(f"<p>\n{TAG}", None, id="a person's own markup, never closed"),
        pytest.param(f"<p>one\n<p>two\n{TAG}</b>", None, id="… and something else closed"),
        pytest.param(f"<b>{TAG}</b> hi", "hi", id="any wrapper at the beginning of a line"),
        pytest.param(f"hi\n \t<b>\n{TAG}\n</b>", "hi", id="… and in an indented line"),
        pytest.param(f"<x-y.z:1 a='<'>{TAG}</x-y.z:1>", "", id="… with a strange name and attribute"),
        pytest.param(f"<a>f\n</a>\n{TAG}\n</a>\nhi", "hi", id="a file closes any wrapper early"),
        pytest.param(f"<文件>\n{TAG}\n</文件>\nhi", "hi", id="a name in any letters"),
        pytest.param(f"<_a>{TAG}</_a> hi", "hi", id="a name that begins with a line"),
        *(
            pytest.param(f"{blank}<a>\n{TAG}\n</a> hi", f"{blank} hi".strip(), id=f"indented by {blank!a}")
            for blank in ("\ufeff", "\u200b", "\xa0 ", "\u3000\t")
        ),
        *(
            pytest.param(f"hi{line}<a>{line}{TAG}{line}</a>", "hi", id=f"lines end with {line!a}")
            for line in ("\r", "\r\n", "\u2028", "\x85", "\f")
        ),
        pytest.param(f"<a>x</a>\nhi\n<b>\n</a>\n{TAG}\n</b>", "", id="a file closes another wrapper, which came first"),
        pytest.param(f"<a>x</a>\nhi {TAG}\n<b>y</b>", f"hi {TAG}", id="between two wrappers"),
        pytest.param(f"<path>x</path><path>{TAG}</pathology></path>", "", id="a longer name closes nothing"),
        pytest.param(f"<a>x</a>{TAG}</aa>", f"{TAG}</aa>", id="… and does not hide that nothing else does"),
        pytest.param(f"<instructions>{TAG}</instructions>", "", id="instructions that somebody pasted"),
        pytest.param(f"Stop hook feedback:\n{TAG}", "", id="a hook"),
        pytest.param(f"<teammate-message teammate_id='x'>{TAG}</teammate-message>", "", id="a teammate"),
        pytest.param(f"<hook_prompt hook_run_id='1'>{TAG}</hook_prompt>", "", id="a hook's prompt"),
        pytest.param(f"<goal_context>{TAG}", "", id="a goal, never closed"),
        pytest.param(f"hi\n[read_file for 'a'] Result:\n{TAG}", "hi", id="a tool's result in the same text"),
        pytest.param(f"# Fix any errors below, if possible.\n\n{TAG}", "", id="reflected errors"),
        pytest.param(f"I ran this command:\n\nx\n\nAnd got this output:\n\n{TAG}", "", id="a reflected test"),
        pytest.param(f"see http://x\n\nHere is the content of http://x:\n\n{TAG}", "see http://x", id="a page glued behind"),
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
        pytest.param(f"CRITICAL: Respond with TEXT ONLY {TAG}", f"CRITICAL: Respond with TEXT ONLY {TAG}", id="retelling"),
        pytest.param(f"Stop hook feedback:\n{TAG}", "", id="a tool's own sentence"),
        pytest.param(f"<b>{TAG}</b> {TAG}", f" {TAG}", id="any wrapper passes as it came"),
        pytest.param(f"{TAG} hi\n\n# *SEARCH/REPLACE block* Rules:\n{TAG}", f"{TAG} hi", id="glued behind"),
        pytest.param("<bash-stdout>x</bash-stdout>", "", id="nothing typed"),
    ],
)
def test_what_is_edited(text: str, spans: str) -> None:
    assert edited(messages_call(user(text))) == spans


def test_wrapped_text_passes_as_it_came() -> None:
    wrapped = f"<environment_context>\n{TAG}\n</environment_context>"
    [one] = editable_texts(messages_call(user(wrapped)))
    assert (one.message.role, one.part.text, one.spans) == ("user", wrapped, ())


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
    editable = {id(one.part): one.spans for one in editable_texts(call)}
    for spans in editable.values():
        assert list(spans) == sorted(spans)
        assert all(start < end for start, end in spans)
    for message in typed_messages(call):
        for text in message.texts:
            for start, end in text.commands:
                assert start < end
                assert any(left <= start and end <= right for left, right in editable[id(text.part)])


HOSTILE = (
    *("<", "<system-reminder>", "</system-reminder>", "<system-reminder ", "<session>", "\n<session>", "<a", "\n<a>", "</a>"),
    *("user: *\n", "user", "*[assistant]:", "\n````a.md", "\n````\n*", "\n=== File: a ===\n*", "*=== File: ", "\n" + "=" * 16),
    *(
        "\nObservation: *",
        "\n--- Attached Context ---\n*",
        "\ndiff --git a/ b/*",
        "\ndiff --git a/*",
        '<context name="user_input" from="agent">\n*',
    ),
    *(" ", "\n<system-reminder>x", "<a>\n</a>", "\n\n# ", "\n---", '\\"', '"a b" ', '"\\" ', "\n [", "\n" + " " * 70 + "<a>"),
)


@pytest.mark.parametrize("client", [UNKNOWN, CLAUDE_CODE, OPENCODE, GEMINI_CLI, CECLI], ids=lambda client: client.name)
@pytest.mark.parametrize("piece", HOSTILE)
def test_any_text_is_linear_work(piece: str, client: Client) -> None:
    def work(call: Call) -> None:
        typed_messages(call, client)
        editable_texts(call, client)

    assert_linear(work, lambda size: messages_call(user((piece * size)[:size])), 1 << 16)


def test_many_names_are_read_once() -> None:
    names = [f"n{number}" for number in range(3000)]
    text = "\n".join([*(f"<{name}>{TAG}</{name}>" for name in names), f"hi {TAG}"])
    assert obeyed(messages_call(user(text))) == f"hi {TAG}"


def test_more_openings_than_anybody_writes_give_no_orders() -> None:
    text = f"hi {TAG}" + "<a>" * 100_001 + f"</b><**x**>{TAG}"
    assert obeyed(messages_call(user(text))).startswith(f"hi {TAG}<a>")
    assert not obeyed(messages_call(user(text))).endswith(TAG)
    assert edited(messages_call(user(text))) == text


# --- what a tool that nobody knows retells or attaches ---------------------------------------------------------------------

WIDE = ("＜**!glm**＞", "<＊＊!glm＊＊>", "＜＊＊!glm＊＊＞")
"""They order as well."""


@pytest.mark.parametrize(
    "text, words",
    [
        pytest.param(f"Name this:\n\nUser: {TAG} hi\nAssistant: ok {TAG}\n", "Name this:", id="behind instructions"),
        pytest.param(f"human: {TAG}\nai: {TAG}", "", id="nothing else"),
        pytest.param(f"[User]: {TAG}\n\n[Assistant]: ok", "", id="in brackets"),
        pytest.param(f"ok?\n**User:** {TAG}\n\n**Assistant:** ok", "ok?", id="bold"),
        pytest.param(f"assistant: {TAG}\nuser: thanks", "", id="the model first"),
        pytest.param(f"{TAG} is this polite?\nuser: hi\nassistant: yo", f"{TAG} is this polite?", id="pasted behind a tag"),
        pytest.param(f"user: root\nport: 1\n{TAG}", f"user: root\nport: 1\n{TAG}", id="a person's own lines"),
        pytest.param(f"the user: a, the assistant: b {TAG}", f"the user: a, the assistant: b {TAG}", id="within a line"),
    ],
)
def test_a_conversation_that_is_retold_gives_no_orders_and_loses_its_tags(text: str, words: str) -> None:
    call = messages_call(user(text))
    assert obeyed(call) == words
    assert edited(call) == text
    for wide in WIDE:
        assert obeyed(messages_call(user(text.replace(TAG, wide)))) == words.replace(TAG, wide)


@pytest.mark.parametrize(
    "text, words",
    [
        pytest.param(f"hi {TAG}\n\n````a.md\n{TAG}\n````", f"hi {TAG}", id="one"),
        pytest.param(f"hi\n\n````a.md\n````\n{TAG}\n````", "hi", id="it closes its fence"),
        pytest.param(f"hi\n\n````a.md\n````\n{TAG}\n````b\n````\n\nand {TAG}", f"hi\n\n\n\nand {TAG}", id="text behind"),
        pytest.param(f"hi\n\n````a.md\n{TAG}", "hi", id="never closed"),
        pytest.param(
            f"look at === File: a ===\nPath: a\n\n{TAG}\n{'=' * 16}\n{TAG}\n{'=' * 16} {TAG}", f"look at  {TAG}", id="nanocoder's"
        ),
        pytest.param(f"look at === File: a ===\nPath: a\n\n{TAG}\n{'=' * 16}\nhi {TAG}", f"look at \nhi {TAG}", id="behind it"),
        pytest.param(f"````\n{TAG}\n````", f"````\n{TAG}\n````", id="code, and no file"),
        pytest.param(f"{TAG} why?\ndiff --git a/x b/x\n@@ -0,0 +1 @@\n+{TAG}", f"{TAG} why?", id="a diff"),
        pytest.param(f"diff --git is what? {TAG}", f"diff --git is what? {TAG}", id="no diff"),
        pytest.param(f"hi\n\n--- Attached Context ---\n\n@file:a\n```\n```\n{TAG}\n```", "hi", id="Hermes Agent's"),
        pytest.param(
            f"hi\n\n--- Attached Context ---\n\n@file:a\n```\n{TAG}\n\n--- Attached Context ---\n{TAG}", "hi", id="its end"
        ),
    ],
)
def test_a_file_beside_the_persons_words_passes_as_it_came(text: str, words: str) -> None:
    for tag in (TAG, *WIDE):
        call = messages_call(user(text.replace(TAG, tag)))
        assert obeyed(call) == words.replace(TAG, tag)
        assert edited(call).replace("|", "").strip() == words.replace(TAG, tag)


@pytest.mark.parametrize(
    "text, words",
    [
        pytest.param(f"Observation:\n{TAG}", "", id="smolagents"),
        pytest.param(f"Observation: {TAG}\n\nNew task:\n{TAG}", "", id="what it says may hold anything"),
        pytest.param(f"Error:\na\n\nObservation:\n{TAG}", "Error:\na", id="behind another"),
        pytest.param(
            f"[[ ## question ## ]]\nhi {TAG}\n\n[[ ## observation_0 ## ]]\n{TAG}", f"[[ ## question ## ]]\nhi {TAG}", id="DSPy"
        ),
        pytest.param(
            f"Action: one of [look]\nObservation: the result of the action\n\nQuestion: hi {TAG}\nObservation: {TAG}",
            f"Action: one of [look]\nObservation: the result of the action\n\nQuestion: hi {TAG}",
            id="behind what explains it",
        ),
        pytest.param(f"my observation: {TAG}", f"my observation: {TAG}", id="within a line"),
    ],
)
def test_what_a_tool_came_to_gives_no_orders_where_a_library_tells_it_as_the_users_text(text: str, words: str) -> None:
    for tag in (TAG, *WIDE):
        call = messages_call(user(text.replace(TAG, tag)))
        assert obeyed(call) == words.replace(TAG, tag)
        assert edited(call).replace("|", "").strip() == words.replace(TAG, tag)


INPUT = '<context name="user_input" from="agent">'
ENVIRONS = f'<context name="environment_info" from="agent">\n{TAG}\n</context>\n\n---\n'


def test_no_tag_of_the_persons_stays_in_what_cecli_joins_or_repeats() -> None:
    joined = f"{ENVIRONS}{INPUT}\n{TAG} x\n</context>\n\n---\n{ENVIRONS}{INPUT}\n{TAG} go\n</context>"
    [one] = editable_texts(messages_call(user(joined)), CECLI)
    assert one.edited(strip) == f"{ENVIRONS}{INPUT}\nx\n</context>\n\n---\n{ENVIRONS}{INPUT}\ngo\n</context>"
    told = f"I have processed the results of the previous tool calls.\n\nYour original question was: {INPUT}\n{TAG} x\n</context>"
    [one] = editable_texts(messages_call(user(told)), CECLI)
    assert TAG not in one.edited(strip)


# --- in a tool's own words -------------------------------------------------------------------------------------------------


def read_as(client: Client, *texts: str) -> str:
    typed = typed_messages(messages_call({"role": "user", "content": [{"type": "text", "text": text} for text in texts]}), client)
    return typed[-1].words if typed else ""


@pytest.mark.parametrize(
    "client, texts, words",
    [
        pytest.param(CLINE, (f"<task>\n{TAG} go\n</task>\n<environment_details>{TAG}</environment_details>",), None, id="task"),
        pytest.param(UNKNOWN, (f"<task>\n{TAG} go\n</task>",), "", id="a task of somebody unknown"),
        pytest.param(UNKNOWN, (f"<file>\n{TAG}",), f"<file>\n{TAG}", id="a word of anybody's, never closed"),
        pytest.param(OPENCODE, (f"<path> is what?\n{TAG}",), f"<path> is what?\n{TAG}", id="a word of a tool's files"),
        pytest.param(CLINE, (f"{TAG} go", f'<file_content path="a">\n</file_content>\n{TAG}\n</file_content>'), f"{TAG} go"),
        pytest.param(CLINE, (f"<task>go\n<file>\n</task>{TAG}</file></task>",), "<task>go\n</task>", id="a file in a task"),
        pytest.param(PI, (f'<file name="/a">\n</file>\n{TAG}\n</file>\ngo {TAG}',), f"go {TAG}", id="pi's files"),
        pytest.param(PI, (f"Stop hook feedback: {TAG}",), f"Stop hook feedback: {TAG}", id="another tool's sentence"),
        pytest.param(PI, (f"<skill>\n{TAG}",), "", id="its own wrapper, never closed"),
        pytest.param(PI, (f"<task>\n{TAG}",), f"<task>\n{TAG}", id="another's wrapper, never closed"),
        pytest.param(OPENCODE, ("Called the Read tool with the following input: {}", TAG, f"hi {TAG}"), f"hi {TAG}", id="a file"),
        pytest.param(OPENCODE, (f"hi {TAG}", "Reading MCP resource: x (y)", TAG, TAG), f"hi {TAG}", id="a resource"),
        pytest.param(OPENCODE, ('"<**stopMessage:\\"go on\\",3**> hi"',), '<**stopMessage:"go on",3**> hi', id="quoted"),
        pytest.param(
            OPENCODE,
            ('"<**stopMessage:\\"say \\\\"hi\\\\"\\"**>" "a b" c',),
            '<**stopMessage:"say \\"hi\\""**> a b c',
            id="quoted twice",
        ),
        pytest.param(OPENCODE, ('say \\"hi\\" now',), 'say \\"hi\\" now', id="typed with backslashes"),
        pytest.param(
            OPENCODE, ('<**stopMessage:"say \\"hi\\" now"**>',), '<**stopMessage:"say \\"hi\\" now"**>', id="in a terminal"
        ),
        pytest.param(GEMINI_CLI, (f"hi {TAG}", FILES_BEGIN, TAG, FILES_END), f"hi {TAG}", id="between frames"),
        pytest.param(GEMINI_CLI, (f"hi {TAG}", FILES_BEGIN, TAG), f"hi {TAG}", id="behind a frame that does not end"),
        pytest.param(
            CONTINUE, (f'<context name="a">\n```\n```\n</context>\n{TAG}\n</context>\n\ngo',), "go", id="a fence in a file"
        ),
        pytest.param(GPTME, (f"{TAG} x\n\n<system>LLM request failed: 400</system>\n\n{TAG} go",), f"{TAG} go", id="joined"),
        pytest.param(GPTME, (f"<system># Cache</system>\n\n{TAG} go\n\n````a\n{TAG}\n````",), f"{TAG} go", id="one, and a file"),
        pytest.param(CECLI, (f"{ENVIRONS}{INPUT}\n{TAG} go\n</context>\n\n---\n{ENVIRONS}",), f"{TAG} go", id="in a wrapper"),
        pytest.param(
            CECLI, (f"{INPUT}\n{TAG} x\n</context>\n\n---\n{INPUT}\ngo\n</context>",), "go", id="one joined with the next"
        ),
        pytest.param(CECLI, (f"Original File Contents For:\na\n\n{TAG}\n\n---\n",), "", id="a file alone"),
        pytest.param(CECLI, (f"I have processed the results of the previous tool calls. {TAG}",), "", id="it goes on by itself"),
        pytest.param(UNKNOWN, (f"[IMPORTANT: Background process 1 completed\n{TAG}]",), "", id="what ran behind Hermes Agent"),
        pytest.param(UNKNOWN, (f'[IMPORTANT: The user has invoked the "a" skill\n{TAG}',), "", id="a skill of Hermes Agent's"),
        pytest.param(UNKNOWN, (f"[IMPORTANT] {TAG} go",), f"[IMPORTANT] {TAG} go", id="a person's own brackets"),
        pytest.param(UNKNOWN, (f"<context>\n{TAG}\n</context>\ngo {TAG}",), f"go {TAG}", id="behind anybody's wrapper"),
        pytest.param(AIDER, ("Refactor hello() into its own file.",), "", id="an example"),
        pytest.param(
            CLAUDE_CODE, ("Refactor hello() into its own file.",), "Refactor hello() into its own file.", id="not its own"
        ),
    ],
)
def test_what_a_tool_marks(client: Client, texts: tuple[str, ...], words: str | None) -> None:
    read = read_as(client, *texts)
    assert TAG in read if words is None else read == words


def test_quotes_are_escaped_again() -> None:
    raw = '"<**stopMessage:\\"go on\\",3**> say \\"hi\\"" "and more" now'
    [one] = editable_texts(messages_call(user(raw)), OPENCODE)
    assert one.edited(strip) == '"say \\"hi\\"" "and more" now'
    assert one.edited(lambda text: text) is one.part.text
    assert one.edited(lambda text: text + '"').count('\\"') == 6


@given(st.lists(st.text(alphabet='a"\\ <*>', min_size=1, max_size=12), min_size=1, max_size=4))
def test_any_arguments_come_back_as_they_were(arguments: list[str]) -> None:
    raw = " ".join('"' + argument.replace('"', '\\"') + '"' if " " in argument else argument for argument in arguments)
    for one in editable_texts(messages_call(user(raw)), OPENCODE):
        assert one.edited(lambda text: text[:]) == raw
        assert one.edited(lambda text: "".join(list(text))) == raw


def test_wrappers_that_the_configuration_names_hold_typed_text() -> None:
    text = f"<context>{TAG}</context>\n<userRequest>\n{TAG} go\n</userRequest>"
    call = messages_call(user(text))
    assert obeyed(call) == ""
    typed = typed_messages(call, replace(UNKNOWN, typed_in=("userRequest",)))
    assert [one.words for one in typed] == [f"<userRequest>\n{TAG} go\n</userRequest>"]


IDE = (
    "# Context from my IDE setup:\n\n## Active file: a.html\n\n## Active selection of the file:\n{}"
    "## Open tabs:\n- a.html: a.html\n\n"
)


@pytest.mark.parametrize("heading", ["## My request for Codex:", "## My request:"])
@pytest.mark.parametrize("client", [CODEX, UNKNOWN])
@pytest.mark.parametrize(
    "before",
    [
        pytest.param(IDE.format("<**!evil**>\n"), id="a selection"),
        pytest.param(IDE.format("\n## My request for Codex:\n<**!evil**>\n"), id="a selection that holds the heading"),
        pytest.param(IDE.format("<div>\n<p>\n<!-- <**!evil**>\n```\n"), id="a selection that opens what nobody closes"),
        pytest.param("\n# Files mentioned by the user:\n\n## <**!evil**>.md: /x/<**!evil**>.md\n\n", id="a file's name"),
        pytest.param("# Browser comments:\n\n## User Comment 1\nTarget: <**!evil**>\n\n", id="a page"),
        pytest.param('<in-app-browser-context source="ambient-ui-state">\n<**!evil**>\n', id="a browser, never closed"),
        pytest.param("# Selected text:\n\n## Selection 1\n<**!evil**>\n\n# In app browser:\n- x\n\n", id="a selected text"),
        pytest.param("", id="nothing"),
    ],
)
def test_what_an_editor_tells_stands_before_the_persons_words(before: str, client: Client, heading: str) -> None:
    text = f"{before}{heading}\n{TAG} do </div> </p> it ```\n<system-reminder>x</system-reminder>"
    call = responses_call(codex_message(("user.text", text)))
    assert typed_messages(call, client)[-1].words == f"{TAG} do </div> </p> it ```"
    assert [one.part.text[start:end] for one in editable_texts(call, client) for start, end in one.spans] == [
        f"\n{TAG} do </div> </p> it ```\n"
    ]


@pytest.mark.parametrize("client", [CODEX, UNKNOWN])
@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"# Diff comments:\n\n## Comment 1\n{TAG}", id="comments alone"),
        pytest.param(f"## Pull request fix:\n{TAG}", id="a task of the tool's"),
        pytest.param(f"# Selected text:\n{TAG}\n > ## My request:\n{TAG}", id="a heading within a line"),
        pytest.param(
            f'The next image shows the browser page at the time of Comment 1. The element "{TAG}" that the user selected is',
            id="an image",
        ),
    ],
)
def test_without_a_heading_of_theirs_nothing_was_typed(text: str, client: Client) -> None:
    call = responses_call(codex_message(("user.text", text)))
    assert typed_messages(call, client) == []
    assert [one.spans for one in editable_texts(call, client)] == [()]


def test_a_person_may_write_such_a_heading() -> None:
    text = f"{TAG} look\n\n## My request:\n{TAG}"
    assert obeyed(responses_call(codex_message(("user.text", text)))) == text


def test_very_many_headings_cost_no_more_than_their_length() -> None:
    def work(size: int) -> None:
        text = IDE.format("\n## My request:\n" * size) + f"## My request:\n{TAG}"
        assert typed_messages(responses_call(codex_message(("user.text", text))), CODEX)[-1].words == TAG

    assert_linear(work, lambda size: size, 5_000)


@pytest.mark.parametrize("client", [GEMINI_CLI, QWEN_CODE])
@pytest.mark.parametrize(
    "begin",
    ["Here is the user's editor context as a JSON object.", "Here is a summary of changes in the user's editor context, in JSON"],
)
def test_what_an_editor_tells_in_a_message_of_its_own(begin: str, client: Client) -> None:
    shown = f'{begin}\n```json\n{{"selectedText": "{TAG}"}}\n```'
    call = gemini_call({"role": "user", "parts": [{"text": shown}]})
    assert typed_messages(call, client) == []
    assert [one.spans for one in editable_texts(call, client)] == [()]
