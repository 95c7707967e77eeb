"""What every client's module must say."""

from __future__ import annotations

import pytest

from routecodex.routing.clients.client import Client
from routecodex.routing.clients.identify import ALL, NAMES, client_of
from routecodex.routing.clients.sdk import GOOGLE_SDK, MISTRAL_SDK, SDK, SDKS
from routecodex.routing.clients.unknown import KNOWN, UNKNOWN
from routecodex.routing.values import Caller, Kind

each_client = pytest.mark.parametrize("client", ALL, ids=lambda client: client.name)


@each_client
def test_phrases_are_as_they_are_looked_up(client: Client) -> None:
    phrases = (
        *client.headers,
        *client.agents,
        *client.introductions,
        *client.examples,
        *(one.phrase for one in client.signatures),
    )
    beginnings = (*client.sentences, *client.retellings, *client.with_next_part, *client.with_all_behind)
    assert all(phrase == phrase.lower() for phrase in (*phrases, *beginnings))
    assert all(begin == begin.lstrip() and len(begin) < 200 for begin in beginnings)
    assert set(client.commands) <= set(client.repeats)
    assert not set(client.typed_in) & {*client.wrappers, *client.repeats}
    assert not set(client.wrappers) & set(client.repeats)


@pytest.mark.parametrize("client", [*KNOWN, *SDKS], ids=lambda client: client.name)
def test_a_known_client_says_what_users_need(client: Client) -> None:
    assert client.title
    assert client.tried
    assert client.history
    assert client.trusts
    assert client.waits_s >= 60
    assert client.programs or client in (GOOGLE_SDK, MISTRAL_SDK)


def test_names_lead_back_to_their_modules() -> None:
    assert {client_of(Caller(name, Kind.MAIN)).name for name in NAMES} == NAMES
    assert client_of(Caller("openai/python", Kind.MAIN)) is client_of(Caller("anthropic/js", Kind.MAIN)) is SDK
    assert client_of(Caller("google-genai-sdk", Kind.MAIN)) is GOOGLE_SDK
    assert client_of(Caller("mistral-client-python", Kind.MAIN)) is MISTRAL_SDK
    assert client_of(Caller("curl", Kind.MAIN)) is client_of(Caller("openaix", Kind.MAIN)) is UNKNOWN


def test_the_strict_rule_knows_what_each_tool_writes() -> None:
    for client in KNOWN:
        assert set(client.sentences) <= set(UNKNOWN.sentences)
        assert set(client.behind) <= set(UNKNOWN.behind)
        assert set(client.repeats) <= set(UNKNOWN.repeats)
    assert UNKNOWN.typed_in == SDK.typed_in == ()
    assert not UNKNOWN.quotes_arguments
