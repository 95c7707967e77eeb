"""Every answer that a host is known to send, told in every other dialect, as that dialect's official SDK hears it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import product

import pytest
from msgspec.structs import replace

from routecodex.routing.values import Dialect
from tests.rig.asked import Asked
from tests.routing.dialects.hosts import test_hosts as hosts
from tests.routing.dialects.hosts.sample import CUT, Sample
from tests.sdk.environment import REQUIREMENTS, sdk_python
from tests.sdk.lines import Lines

SDKS = {
    Dialect.MESSAGES: "anthropic",
    Dialect.CHAT: "openai-chat",
    Dialect.RESPONSES: "openai-responses",
    Dialect.GEMINI: "google-genai",
}
PAIRS = [
    (sample, client, streamed)
    for number, sample in enumerate(hosts.SAMPLES)
    for place, (client, streamed) in enumerate(product((one for one in Dialect if one is not sample.dialect), (True, False)))
    if os.environ.get("ROUTECODEX_TESTS") == "long" or place == number % 6
]
"""All of them in the long profile; else each answer once, by turns."""


@pytest.fixture(scope="module")
def heard() -> Iterator[Lines]:
    started = Lines([sdk_python(), REQUIREMENTS.with_name("heard.py")])
    yield started
    started.close()


def test_the_sdks_hear_what_the_host_said(heard: Lines) -> None:
    wrong = {}
    for sample, client, streamed in PAIRS:
        if problem := _problem(heard, sample, client, streamed):
            wrong[f"{sample.name} to {client}, {'streamed' if streamed else 'whole'}"] = problem
    assert not wrong, f"{len(wrong)} of {len(PAIRS)}"


def _problem(heard: Lines, sample: Sample, client: Dialect, streamed: bool) -> str:
    expected, endpoint = sample.expected, hosts.CLIENTS[client]
    if not streamed and client is Dialect.GEMINI:
        endpoint = replace(endpoint, stream=False)
    asked = Asked(endpoint, streamed, "round-1", "asked-model", 1, maker="acme", include_usage=True)
    told = hosts._told(sample, asked, len(sample.raw))
    way = "json" if not streamed else "helper" if expected.finish in _GOOD and client is not Dialect.GEMINI else "stream"
    status = 200 if streamed or expected.error is None else 502
    kind = "text/event-stream" if streamed else "application/json"
    said = heard.ask({"sdk": SDKS[client], "way": way, "status": status, "type": kind, "body": told.decode()})
    if expected.error is not None:
        broken = "error" in said or said["stop"] is None
        named = expected.error == CUT or expected.error in said.get("error", "")
        return "" if broken and named else f"it passes for a good answer: {said}"
    if "error" in said:
        return "" if expected.finish == "error" else str(said["error"])
    if expected.half or expected.media:
        return ""
    text = expected.text if expected.abroad is None else expected.abroad
    calls = [(call["name"], call["arguments"]) for call in said.get("calls", ())]
    # events as they come are put together by nobody
    same_calls = calls == list(expected.calls) or (way == "stream" and client is not Dialect.GEMINI)
    return "" if said["text"] == text and same_calls else f"{said['text']!r} {calls}, not {text!r} {list(expected.calls)}"


_GOOD = ("stop", "tool_calls")
"""The SDKs' helpers raise at anything else."""
