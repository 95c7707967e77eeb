"""Tags that stand where nobody obeys them are named, and where they stand."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from routecodex.routing.clients.claude_code import CLAUDE_CODE
from routecodex.routing.clients.client import Client
from routecodex.routing.clients.gemini_cli import GEMINI_CLI
from routecodex.routing.clients.unknown import UNKNOWN
from routecodex.routing.tags.unheard import Unheard, listed, unheard_tags
from routecodex.routing.values import Call
from tests.routing.sessions.calls import assistant, gemini_call, messages_call, user

TAG = "<**!glm**>"


@pytest.mark.parametrize(
    "client, text, expected",
    [
        (UNKNOWN, f"hi {TAG}", []),
        (UNKNOWN, f"<userRequest>\n{TAG} hi\n</userRequest>", [Unheard(TAG, "in `<userRequest>`", False)]),
        (UNKNOWN, f"<a>\n<b>x</b>\n<c>{TAG}</c>\n</a>", [Unheard(TAG, "in `<c>`", False)]),
        (CLAUDE_CODE, f"<system-reminder>{TAG} {TAG}</system-reminder>", [Unheard(TAG, "in `<system-reminder>`", True)]),
        (CLAUDE_CODE, f"<p>{TAG}</p>", [Unheard(TAG, "in `<p>`", False)]),
        (
            CLAUDE_CODE,
            f"<command-name>x</command-name><command-args>{TAG}</command-args>",
            [Unheard(TAG, "in `<command-args>`", True)],
        ),
        (CLAUDE_CODE, f"Stop hook feedback:\n{TAG}", [Unheard(TAG, f'behind "Stop hook feedback: {TAG}"', True)]),
        (UNKNOWN, f"hi\n\n# *SEARCH/REPLACE block* Rules:\n{TAG}", [Unheard(TAG, "behind text of the tool's own", True)]),
        (UNKNOWN, f"<a>{'<**' + 'x' * 300 + '**>'}</a>", [Unheard(f"<**{'x' * 60}…**>", "in `<a>`", False)]),
    ],
)
def test_what_is_named(client: Client, text: str, expected: list[Unheard]) -> None:
    assert list(unheard_tags(messages_call(user(text)), client)) == expected


def test_what_the_configuration_names_is_heard() -> None:
    call = messages_call(user(f"<userRequest>\n{TAG}\n</userRequest>"))
    assert unheard_tags(call, replace(UNKNOWN, typed_in=("userRequest",))) == ()


@pytest.mark.parametrize(
    "call",
    [
        messages_call(user(f"<a>{TAG}</a>"), assistant("ok")),
        messages_call(user(f"<a>{TAG}</a>"), assistant("ok"), user("plain")),
        messages_call(user("hi"), assistant(TAG), {"role": "system", "content": TAG}),
    ],
)
def test_only_what_nobody_has_answered_yet(call: Call) -> None:
    assert unheard_tags(call, UNKNOWN) == ()


def test_beside_a_functions_response() -> None:
    response = {"functionResponse": {"name": "n", "response": {"output": "x"}}}
    call = gemini_call({"role": "user", "parts": [{"text": "hi"}]}, {"role": "user", "parts": [response, {"text": TAG}]})
    assert unheard_tags(call, GEMINI_CLI) == (Unheard(TAG, "beside a function's response", True),)


def test_a_few_of_many() -> None:
    text = "".join(f"<a><**t{number}**></a>\n" for number in range(100))
    found = unheard_tags(messages_call(user(text)), UNKNOWN)
    assert [one.tag for one in found] == [f"<**t{number}**>" for number in range(8)]
    assert listed(found[:2]) == "<**t0**> in `<a>`, <**t1**> in `<a>`"
