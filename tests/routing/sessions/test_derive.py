"""Session ids for clients that name none."""

from __future__ import annotations

import pytest

from routecodex.routing.clients.identify import identify
from routecodex.routing.sessions.derive import derive_session
from routecodex.routing.values import Call
from tests.routing.clients.test_fixtures import recorded
from tests.routing.sessions.calls import assistant, chat_call, messages_call, responses_call, user

KEY = "sk-secret-0123456789"
SYSTEM = {"role": "system", "content": "You answer in rhymes."}


def derived(call: Call, credential: str = KEY, agent: str = "OpenAI/Python 3.51.0") -> str | None:
    return derive_session(call, identify(call, {"user-agent": agent}, "/", "h"), credential)


FIRST = derived(chat_call(SYSTEM, user("<**!glm**> hi")))


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(chat_call(SYSTEM, user("<**!glm**> hi"), assistant("ho"), user("more")), id="next turn"),
        pytest.param(
            chat_call(SYSTEM, user("<**!glm**> hi"), {"role": "tool", "tool_call_id": "t", "content": "x"}), id="tool hop"
        ),
        pytest.param(
            chat_call(SYSTEM, user("<system-reminder>late</system-reminder>", "<**!glm**> hi")), id="a reminder beside it"
        ),
        pytest.param(
            chat_call(SYSTEM, {"role": "user", "content": [{"type": "text", "text": "<**!glm**> hi"}]}), id="as a block"
        ),
    ],
)
def test_later_calls_of_a_conversation_keep_the_id(call: Call) -> None:
    assert FIRST is not None
    assert derived(call) == FIRST


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(derived(chat_call(SYSTEM, user("<**!glm**> hello"))), id="another beginning"),
        pytest.param(derived(chat_call(SYSTEM, user("<**!glm**> hi")), credential="sk-other"), id="another credential"),
        pytest.param(derived(chat_call(SYSTEM, user("<**!glm**> hi")), agent="curl/8"), id="another client"),
        pytest.param(derived(chat_call(user("<**!glm**> hi"))), id="another program"),
    ],
)
def test_another_conversation_has_another_id(other: str | None) -> None:
    assert other not in (None, FIRST)


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(chat_call(SYSTEM), id="nothing typed"),
        pytest.param(chat_call(user("<system-reminder>x</system-reminder>")), id="only a tool's text"),
        pytest.param(
            responses_call({"role": "user", "content": "hi"}, previous_response_id="resp_1"), id="the beginning is elsewhere"
        ),
    ],
)
def test_nothing_to_derive_from(call: Call) -> None:
    assert derived(call) is None


def test_the_credential_is_not_in_the_id() -> None:
    assert FIRST is not None
    assert KEY not in FIRST
    assert FIRST.startswith("derived-")


def test_a_side_call_shares_the_session_of_its_conversation() -> None:
    main, main_caller = recorded("gemini-cli/01-streamGenerateContent-first-turn.json")
    router, router_caller = recorded("gemini-cli/02-generateContent-router-side-request.json")
    assert derive_session(main, main_caller, KEY) == derive_session(router, router_caller, KEY)


def test_the_same_words_in_another_directory_are_another_session() -> None:
    calls = [
        messages_call(user("say hi"), system=f"Act as an expert software developer.\nWorking directory: {folder}")
        for folder in ("/a", "/b")
    ]
    _, caller = recorded("aider/01-messages-anthropic.json")
    assert derive_session(calls[0], caller, KEY) != derive_session(calls[1], caller, KEY)


def test_aiders_examples_begin_no_session() -> None:
    glued = "say hi\n\n# *SEARCH/REPLACE block* Rules:\n\nEvery…"
    examples = (user("Refactor hello() into its own file."), assistant("Ok."))
    first = messages_call(*examples, user(glued), system="Act as an expert software developer.")
    later = messages_call(*examples, user("say hi"), assistant("hi"), user("x"), system="Act as an expert code analyst.")
    other = messages_call(*examples, user("say ho"), system="Act as an expert software developer.")
    assert derived(first) == derived(later)
    assert derived(first) != derived(other)


def test_lone_surrogates_derive_too() -> None:
    assert derived(chat_call(user("\ud800")), credential="\udfff") is not None
