"""What answers have beside their text, in the types of the official SDKs: sources, and what tools of a provider's did."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from routecodex.routing.dialects.sse import Events
from routecodex.routing.values import Dialect
from tests.routing.dialects.answer import test_beside as beside
from tests.routing.dialects.answer.talks import CHAT, GEMINI, MESSAGES, RESPONSES, Way, answer_for, drive
from tests.sdk.environment import REQUIREMENTS, sdk_python
from tests.sdk.lines import Lines

CITED = {
    "sources of Chat": (CHAT, beside.chat("Eins.", beside.found("https://a.example", 0, 4))),
    "grounding of Gemini": (
        GEMINI,
        beside.gemini("Eins.", {"groundingChunks": [{"web": {"uri": "https://a.example", "title": "A"}}]}),
    ),
    "tools of Anthropic": (MESSAGES, beside.SERVED),
    "tools of OpenAI": (RESPONSES, beside.responses(True)),
}


@pytest.fixture(scope="module")
def shapes() -> Iterator[Lines]:
    started = Lines([sdk_python(), REQUIREMENTS.with_name("shapes.py")])
    yield started
    started.close()


@pytest.mark.parametrize("given", CITED.values(), ids=list(CITED))
@pytest.mark.parametrize("client", [MESSAGES, CHAT, RESPONSES])
def test_the_sdks_know_it(shapes: Lines, client: Dialect, given: tuple[Dialect, bytes]) -> None:
    if given[0] is client:
        return
    whole, _ = drive(answer_for(Way(client, stream=False)), [given])
    assert shapes.ask({"dialect": client, "answer": json.loads(whole)}) == []
    stream, _ = drive(answer_for(Way(client)), [given])
    for event in Events().feed(stream):
        if event.data != b"[DONE]":
            assert shapes.ask({"dialect": client, "event": json.loads(event.data)}) == [], event.data


def test_the_judge_sees_what_is_missing(shapes: Lines) -> None:
    event: dict[str, Any] = {"type": "content_block_delta", "index": 0, "delta": {"type": "citations_delta", "citation": {}}}
    assert shapes.ask({"dialect": MESSAGES, "event": event})
