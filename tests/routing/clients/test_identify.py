"""Client, kind and ids from headers and bodies that the recorded requests do not show."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecodex.routing.clients.identify import asks_again, client_of, identify, workdir_of
from routecodex.routing.clients.typed import typed_messages
from routecodex.routing.values import Call, Caller, Dialect, Endpoint, Kind
from tests.routing.sessions.calls import chat_call, gemini_call, messages_call, responses_call, user

UUID = "10eef47d-15c9-42f4-9eaf-4170de80610a"


def caller(call: Call, **headers: str) -> Caller:
    return identify(call, {name.replace("_", "-"): value for name, value in headers.items()}, "/v1/messages", "api.anthropic.com")


@pytest.mark.parametrize(
    "user_id, session",
    [
        pytest.param(f"user_0123abcd_account__session_{UUID}", UUID, id="S06"),
        pytest.param(f"user_0123abcd_session_{UUID}", UUID, id="S06-short"),
        pytest.param(json.dumps({"device_id": "d", "session_id": UUID}), UUID, id="JSON text"),
        pytest.param({"session_id": UUID}, UUID, id="object"),
        pytest.param("user_0123abcd", None, id="no session in it"),
        pytest.param('{"session_id": 7}', None, id="wrong type"),
        pytest.param("{" * 100_000, None, id="not JSON"),
        pytest.param(None, None, id="nothing"),
        pytest.param(7, None, id="number"),
    ],
)
def test_s06_session_in_the_user_id(user_id: object, session: str | None) -> None:
    assert caller(messages_call(user("hi"), metadata={"user_id": user_id})).session == session


@pytest.mark.parametrize(
    "header",
    ["session_id", "session-id", "sessionid", "x-session-id", "anthropic-session-id", "x-claude-code-session-id", "thread-id"],
)
def test_session_headers(header: str) -> None:
    who = identify(chat_call(user("hi")), {header: f" {UUID} "}, "/v1/chat/completions", "api.openai.com")
    assert who.session == UUID


def test_our_own_header_wins() -> None:
    who = caller(
        messages_call(user("hi"), metadata={"user_id": f"_session_{UUID}"}), x_routecodex_session="mine", x_session_id="other"
    )
    assert who.session == "mine"


@pytest.mark.parametrize("header", ["conversation_id", "conversation-id", "openai-conversation-id"])
def test_conversation_headers(header: str) -> None:
    who = identify(chat_call(user("hi")), {header: "c1"}, "/", "h")
    assert (who.session, who.conversation) == (None, "c1")


@pytest.mark.parametrize(
    "body, agent, session",
    [
        ({"prompt_cache_key": f"qwen-code:{UUID}"}, "QwenCode/1", UUID),
        ({"prompt_cache_key": f"session_{UUID}"}, "kimi-code-cli/2", f"session_{UUID}"),
        ({"prompt_cache_key": UUID}, "KimiCLI/1.51.0", UUID),
        ({"prompt_cache_key": UUID}, "codex_exec/1", UUID),
        ({"prompt_cache_key": "my prompts"}, "OpenAI/Python 3", None),
        ({"prompt_cache_key": UUID}, "OpenAI/Python 3", None),
        ({"client_metadata": {"session_id": UUID}}, "codex_exec/1", UUID),
        ({"metadata": {"sessionId": UUID}}, "QwenCode/1", UUID),
        ({"prompt_cache_key": 7, "metadata": [], "client_metadata": "x", "request": 1}, "codex_exec/1", None),
    ],
)
def test_sessions_in_bodies(body: dict[str, Any], agent: str, session: str | None) -> None:
    assert caller(chat_call(user("hi"), **body), user_agent=agent).session == session


def test_an_endless_id_is_shortened_and_stays_itself() -> None:
    first, second = (caller(chat_call(user("hi")), x_session_id=start + "x" * 10_000).session for start in "ab")
    assert first is not None
    assert first != second
    assert len(first) == 64


@pytest.mark.parametrize(
    "name, kind",
    [
        ("main", Kind.MAIN),
        ("subagent", Kind.SUBAGENT),
        ("workflow", Kind.SUBAGENT),
        ("compaction", Kind.COMPACTION),
        ("auxiliary", Kind.SIDE),
        ("side_reply", Kind.SIDE),
        ("not known yet", Kind.SIDE),
    ],
)
def test_claude_codes_request_class_decides(name: str, kind: Kind) -> None:
    call = messages_call(user("Handoff summary for another LLM: …"))
    who = caller(call, x_claude_code_request_class=name, user_agent="claude-cli/2.1.326 (external, cli)")
    assert (who.client, who.kind) == ("claude-code", Kind.COMPACTION if kind is Kind.SIDE else kind)


def test_an_auxiliary_call_is_a_side_call() -> None:
    who = caller(messages_call(user("foo")), x_claude_code_request_class="auxiliary")
    assert who.kind is Kind.SIDE


@pytest.mark.parametrize(
    "metadata, kind",
    [
        ({"request_kind": "turn", "thread_source": "user", "agent_name": "/root"}, Kind.MAIN),
        ({"request_kind": "turn"}, Kind.MAIN),
        ({"request_kind": "turn", "thread_source": "thread_title"}, Kind.TITLE),
        ({"request_kind": "turn", "thread_source": "user", "agent_name": "/root/tester"}, Kind.SUBAGENT),
        ({"request_kind": "turn", "thread_source": "subagent"}, Kind.SUBAGENT),
        ({"request_kind": "compaction", "thread_source": "user"}, Kind.COMPACTION),
        ({"request_kind": "prewarm"}, Kind.SIDE),
        ({"request_kind": "turn", "thread_source": "not known yet"}, Kind.SIDE),
        ({"request_kind": 7, "thread_source": []}, Kind.MAIN),
    ],
)
@pytest.mark.parametrize("where", ["header", "body"])
def test_codex_turn_metadata_decides(metadata: dict[str, Any], kind: Kind, where: str) -> None:
    text = json.dumps({**metadata, "turn_id": "t1"})
    if where == "header":
        who = caller(responses_call({"role": "user", "content": "hi"}), x_codex_turn_metadata=text)
    else:
        body = {"client_metadata": {"x-codex-turn-metadata": text}}
        who = caller(responses_call({"role": "user", "content": "hi"}, **body), user_agent="codex-tui/0.169.0")
    assert (who.client, who.kind, who.prompt) == ("codex", kind, "t1")


def test_codex_asks_for_compaction_by_its_last_item() -> None:
    who = caller(responses_call({"role": "user", "content": "hi"}, {"type": "compaction_trigger"}))
    assert who.kind is Kind.COMPACTION


@pytest.mark.parametrize(
    "call, kind",
    [
        pytest.param(messages_call(user("hi"), system=" \nContext Checkpoint Compaction: …"), Kind.COMPACTION, id="M19-system"),
        pytest.param(
            chat_call({"role": "system", "content": "checkpoint compaction"}, user("hi")), Kind.COMPACTION, id="M19-chat"
        ),
        pytest.param(chat_call(user("Handoff Summary for another LLM\n…")), Kind.COMPACTION, id="M19-first-text"),
        pytest.param(chat_call(user("what is a handoff summary for another LLM?")), Kind.MAIN, id="M19-mentioned"),
        pytest.param(chat_call(user("hi"), user("Handoff summary for another LLM")), Kind.MAIN, id="M19-pasted-later"),
    ],
)
def test_m19_compaction_sentinels(call: Call, kind: Kind) -> None:
    assert caller(call).kind is kind


def test_a_signature_counts_for_its_client_only() -> None:
    call = chat_call({"role": "system", "content": "You are a title generator."}, user("hi"))
    assert caller(call, user_agent="opencode/1.18").kind is Kind.TITLE
    assert caller(call, user_agent="OpenAI/Python 3.51.0").kind is Kind.MAIN


SUMMARIZES = "You are the component that summarizes a conversation when its context window is about to overflow."


@pytest.mark.parametrize(
    "call",
    [
        chat_call({"role": "system", "content": SUMMARIZES}, user("First, reason in your <analysis> block.")),
        chat_call(user("hi"), {"role": "assistant", "content": "ok"}, user(SUMMARIZES)),
        chat_call(user("hi"), user("First, reason in your <analysis> block. Then, produce the <state_snapshot> XML.")),
    ],
)
@pytest.mark.parametrize("agent", ["QwenCode/0.24.4 (linux; x64)", "some-fork/1.0"])
def test_qwen_code_compacts(call: Call, agent: str) -> None:
    assert caller(call, user_agent=agent).kind is Kind.COMPACTION


def test_qwen_codes_suggestion_is_no_message_of_the_persons() -> None:
    """In a terminal it asks behind each answer what the person might type next."""
    prompt = "[SUGGESTION MODE: Suggest what the user might naturally type next.]\n\nFIRST: Read the LAST FEW LINES"
    call = chat_call(user("hi"), {"role": "assistant", "content": "ok"}, user(prompt))
    asker = caller(call, user_agent="QwenCode/0.24.4 (linux; x64)")
    assert asker.kind is Kind.SIDE
    assert [one.words for one in typed_messages(call, client_of(asker))] == ["hi"]


FETCHED = (
    'The user requested the following: "what?".\n\nI have fetched the content from https://a.example.\n---\n<**!evil.evil**>\n---'
)
DIFF = "# Diffs:\n\ndiff --git a/one.py b/one.py\n+x = 1  # <**!evil.evil**>"
COMMITS = {
    "role": "system",
    "content": "You are an expert software engineer that generates concise, one-line Git commit messages",
}
ASKS_JSON = [{"type": "function", "function": {"name": "respond_in_schema", "parameters": {}}}]
READS = [{"type": "function", "function": {"name": "read_file", "parameters": {}}}]
BEGUN = user("<system-reminder>\nThe following skills are available\n</system-reminder>")
SIDE_QUESTION = (
    "<system-reminder>\nThis is a side question from the user. Answer directly in a single response.\n</system-reminder>\n\nhm?"
)
SUMMARY = "Please analyze the conversation history above and generate a comprehensive project summary in markdown format."
RECAPS = {"role": "system", "content": "You generate session recaps for a programming assistant CLI."}
PAGE = {
    "role": "user",
    "parts": [{"text": "Summarize the following tool output to be a maximum of 99 tokens.\n<**!evil.evil**>"}],
}
SET_UP = {"role": "user", "parts": [{"text": "<session_context>\nThis is the Gemini CLI.\n</session_context>"}, {"text": "hi"}]}
QWEN, GEMINI, AIDER = "QwenCode/0.24.4 (linux; x64)", "GeminiCLI/0.61.0/gemini-3-pro", "litellm/1.81.10"


@pytest.mark.parametrize(
    "agent, call, kind",
    [
        pytest.param(QWEN, chat_call(user(FETCHED)), Kind.SIDE, id="a fetched page"),
        pytest.param(QWEN, chat_call(user(FETCHED), tools=ASKS_JSON), Kind.SIDE, id="JSON asked for as a tool"),
        pytest.param(QWEN, chat_call(BEGUN, user("hi"), tools=ASKS_JSON), Kind.SIDE, id="about the whole conversation"),
        pytest.param(QWEN, chat_call(BEGUN, user(SIDE_QUESTION), tools=READS), Kind.SIDE, id="beside the conversation"),
        pytest.param(QWEN, chat_call(BEGUN, user(SUMMARY)), Kind.SUMMARY, id="a summary for a file"),
        pytest.param(QWEN, chat_call(RECAPS, user("hi")), Kind.SUMMARY, id="a recap"),
        pytest.param(QWEN, chat_call(BEGUN, user("hi"), tools=READS), Kind.MAIN, id="the conversation"),
        pytest.param(QWEN, chat_call(BEGUN, user("hi")), Kind.MAIN, id="the conversation without tools"),
        pytest.param(QWEN, chat_call(user("hi"), tools=READS), Kind.MAIN, id="the conversation without its beginning"),
        pytest.param(GEMINI, gemini_call(PAGE), Kind.SIDE, id="what a tool said"),
        pytest.param(GEMINI, gemini_call(PAGE, tools=[{"urlContext": {}}]), Kind.SIDE, id="a page to fetch"),
        pytest.param(GEMINI, gemini_call(SET_UP), Kind.MAIN, id="Gemini's conversation"),
        pytest.param(AIDER, chat_call(COMMITS, user(DIFF)), Kind.SIDE, id="a message for a commit"),
        pytest.param("OpenAI/Python 3", chat_call(user(FETCHED)), Kind.MAIN, id="of nobody who is known"),
    ],
)
def test_one_text_in_the_persons_name_is_not_the_conversation(agent: str, call: Call, kind: Kind) -> None:
    """Whoever wrote a page, a diff or a tool's output gives no orders by it."""
    assert caller(call, user_agent=agent).kind is kind


@pytest.mark.parametrize(
    "system, last",
    [
        pytest.param(
            "operating inside pi, a coding agent harness", "The messages above are a conversation to summarize.", id="pi"
        ),
        pytest.param("You are a context summarization assistant. Your task", "[User]: hi", id="pi's own instructions"),
        pytest.param(
            "you are an agent in the Continue CLI", "Please provide a concise summary of our conversation so far, …", id="cn"
        ),
        pytest.param("You are Kimi", "You are about to run out of context. Create a handoff summary for the\nmodel", id="kimi"),
        pytest.param(
            "You are a helpful assistant that compacts conversation context.", "## Message 1\nRole: user", id="kimi-cli"
        ),
    ],
)
def test_other_tools_compact(system: str, last: str) -> None:
    call = chat_call({"role": "system", "content": system}, user("hi"), {"role": "assistant", "content": "ok"}, user(last))
    agents = {"kimi": "kimi-code-cli/2.1.0", "context.": "KimiCLI/1.51.0"}
    assert caller(call, user_agent=agents.get(system.split()[-1].lower(), "OpenAI/JS 6.49.0")).kind is Kind.COMPACTION


def test_counting_is_never_the_conversation_itself() -> None:
    call = messages_call(user("hi"))
    call.endpoint = Endpoint(Dialect.MESSAGES, action="count")
    assert caller(call).kind is Kind.SIDE


def test_a_prompt_id_that_is_the_sessions_names_no_prompt() -> None:
    request = {"contents": [], "session_id": "s"}
    assert caller(gemini_call(user_prompt_id="s", request=request)).prompt is None
    assert caller(gemini_call(user_prompt_id="s########3", request=request)).prompt == "s########3"


@pytest.mark.parametrize(
    "call, workdir",
    [
        pytest.param(messages_call(user("hi"), system="- Primary working directory: /a/b\n - x"), "/a/b", id="instructions"),
        pytest.param(
            messages_call(user("<environment_context>\n<cwd>/a</cwd>"), user("<environment_context>\n<cwd>/b c</cwd>")),
            "/b c",
            id="newest",
        ),
        pytest.param(
            gemini_call({"role": "user", "parts": [{"text": "<session_context>\n- **Workspace Directories:**\n  - /a\n"}]}),
            "/a",
            id="list",
        ),
        pytest.param(messages_call(user("Working directory: /etc")), None, id="typed text states nothing"),
        pytest.param(messages_call(user("hi"), system="Working directory: ../x"), None, id="relative"),
        pytest.param(messages_call(user("hi"), system=r"Working directory: C:\x"), r"C:\x", id="windows"),
    ],
)
def test_working_directory(call: Call, workdir: str | None) -> None:
    assert workdir_of(call) == workdir


@pytest.mark.parametrize(
    "agent, client",
    [
        ("Anthropic/Python 1.17.0", "anthropic/python"),
        ("curl/8.5", "curl"),
        ("", "unknown"),
        ("<é>/1", "unknown"),
        ("a" * 500, "a" * 64),
    ],
)
def test_other_user_agents(agent: str, client: str) -> None:
    assert caller(chat_call(user("hi")), user_agent=agent).client == client


@pytest.mark.parametrize(
    "system, client",
    [("You are Rex, the most loyal digital puppy, helping Me", "code-puppy"), ("You are Claude Code", "claude-code")],
)
def test_a_tool_that_passes_for_another_is_known_by_its_introduction(system: str, client: str) -> None:
    call = messages_call(user("hi"), system=system)
    assert caller(call, user_agent="claude-cli/2.1.280 (external, cli)").client == client


def test_what_code_puppys_agent_writes_for_another_is_no_message_of_the_persons() -> None:
    """Recordings cut it: it stands far behind the beginning of the instructions."""
    told = (
        "Your ID is x.\n\n## Sub-agent execution context (mandatory)\n\nYou are the sub-agent `code-puppy`, not the main agent."
    )
    system = {"role": "system", "content": "You are Rex, the most loyal digital puppy"}
    call = chat_call(system, {"role": "system", "content": told}, user("look around <**glm**>"))
    assert caller(call, user_agent="Code-Puppy/0.0.946").kind is Kind.SUBAGENT
    assert caller(messages_call(user("hi"), system=told), user_agent="Code-Puppy/0.0.946").kind is Kind.SUBAGENT
    assert caller(messages_call(user(told)), user_agent="Code-Puppy/0.0.946").kind is Kind.MAIN


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.dictionaries(
        st.sampled_from(
            ["metadata", "client_metadata", "request", "conversation", "prompt_cache_key", "user_prompt_id", "input"]
        ),
        JSON,
    ),
    st.dictionaries(
        st.sampled_from(["x-codex-turn-metadata", "session_id", "x-claude-code-request-class", "user-agent", "thread-id"]),
        st.text(),
    ),
)
def test_no_body_and_no_header_breaks_it(body: dict[str, Any], headers: dict[str, str]) -> None:
    call = chat_call(user("hi"))
    call.body.update(body)
    assert isinstance(identify(call, headers, "/", "h"), Caller)


@pytest.mark.parametrize(
    "agent, again",
    [
        ("claude-cli/2.1.0 (external, cli)", True),
        ("opencode/1.18.33 ai-sdk/provider-utils", True),
        ("Anthropic/Python 0.70.0", True),
        ("AsyncAnthropic/Python 0.70.0", True),
        ("OpenAI/JS 5.1.0", True),
        ("AsyncOpenAI/Python 3.51.0", True),
        ("codex_cli_rs/0.169.0", False),
        ("GeminiCLI/0.61.0", False),
        ("google-genai-sdk/3.3.0", False),
        ("litellm/1.0", False),
        ("", False),
    ],
)
def test_who_asks_again_when_told_to(agent: str, again: bool) -> None:
    caller = identify(messages_call(user("hi")), {"user-agent": agent}, "/v1/messages", "api.anthropic.com")
    assert asks_again(caller.client) is again
