import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from routecodex.routing.dialects.endpoints import endpoint_of, upstream_path
from routecodex.routing.values import Dialect, Endpoint
from tests.routing.dialects.calls.recorded import ALL, Recorded

MESSAGES, CHAT, RESPONSES, GEMINI = Dialect.MESSAGES, Dialect.CHAT, Dialect.RESPONSES, Dialect.GEMINI


@pytest.mark.parametrize(
    "path, expected",
    [
        ("/v1/messages", Endpoint(MESSAGES)),
        ("/v1/messages?beta=true", Endpoint(MESSAGES)),
        ("/api/anthropic/v1/messages", Endpoint(MESSAGES)),
        ("//v1/messages", Endpoint(MESSAGES)),
        ("/v1/messages/count_tokens?beta=true", Endpoint(MESSAGES, action="count")),
        ("/api/anthropic/v1/messages/count_tokens", Endpoint(MESSAGES, action="count")),
        ("/v1/chat/completions", Endpoint(CHAT)),
        ("/chat/completions", Endpoint(CHAT)),
        ("/compatible-mode/v1/chat/completions", Endpoint(CHAT)),
        ("/api/paas/v4/chat/completions", Endpoint(CHAT)),
        ("/api/v1/chat/completions?x=1", Endpoint(CHAT)),
        ("/v1/responses", Endpoint(RESPONSES)),
        ("/backend-api/codex/responses", Endpoint(RESPONSES)),
        ("/v1beta/models/g:generateContent", Endpoint(GEMINI, model="g", stream=False)),
        ("/v1/models/g:streamGenerateContent?alt=sse", Endpoint(GEMINI, model="g", stream=True)),
        ("/v1/models/g:streamGenerateContent?key=k&$alt=sse", Endpoint(GEMINI, model="g", stream=True)),
        ("/v1/models/g:streamGenerateContent", Endpoint(GEMINI, model="g", stream=True, json_array=True)),
        ("/v1/models/g:streamGenerateContent?alt=json", Endpoint(GEMINI, model="g", stream=True, json_array=True)),
        ("/v1beta/models/g:countTokens", Endpoint(GEMINI, action="count", model="g", stream=False)),
        ("/v1beta/models/a%2Fb%3Ac:generateContent", Endpoint(GEMINI, model="a/b:c", stream=False)),
        (
            "/v1/projects/p/locations/l/publishers/google/models/g:generateContent",
            Endpoint(GEMINI, model="g", stream=False),
        ),
        ("/v1internal:generateContent", Endpoint(GEMINI, stream=False, envelope=True)),
        ("/v1internal:streamGenerateContent?alt=sse", Endpoint(GEMINI, stream=True, envelope=True)),
        ("/v1internal:countTokens", Endpoint(GEMINI, action="count", stream=False, envelope=True)),
        ("/v1/responses/resp_1", None),
        ("/v1/responses/resp_1/cancel", None),
        ("/v1/responses/compact", None),
        ("/v1/responses/input_tokens", None),
        ("/v1/threads/t/messages", None),
        ("/v1/messages/batches", None),
        ("/v1/messages/", None),
        ("/v1/completions", None),
        ("/v1/models", None),
        ("/v1beta/models/g", None),
        ("/v1beta/models/g:embedContent", None),
        ("/v1beta/models/:generateContent", None),
        ("/v1beta/tunedModels/g:generateContent", None),
        ("/v1internal:loadCodeAssist", None),
        ("/v1internal:retrieveUserQuota", None),
        ("/api/claude_code/settings?x=/v1/messages", None),
        ("/api/eval/sdk-x", None),
        ("", None),
        ("/", None),
        ("/" + "a" * 9000 + "/v1/messages", None),
    ],
)
def test_endpoint_of(path: str, expected: Endpoint | None) -> None:
    assert endpoint_of("POST", path) == expected


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "OPTIONS", "HEAD", ""])
def test_only_post_asks_for_an_answer(method: str) -> None:
    assert endpoint_of(method, "/v1/responses") is None


def test_method_in_any_case() -> None:
    assert endpoint_of("post", "/v1/responses") == Endpoint(RESPONSES)


NOT_CALLS = {
    "claude-code/14-side-eval",
    "claude-code/15-side-bootstrap",
    "codex/03-responses-websocket-handshake",
    "codex/13-side-chatgpt-accounts-check",
    "gemini-cli/08-v1internal-loadCodeAssist",
}


HOSTS = {"api.anthropic.com": MESSAGES, "generativelanguage.googleapis.com": GEMINI, "cloudcode-pa.googleapis.com": GEMINI}


def spoken(recorded: Recorded) -> Dialect:
    """By whom it was sent to; of the two dialects of OpenAI's kind, by what stands in it."""
    return HOSTS.get(recorded.host) or (RESPONSES if "input" in json.loads(recorded.raw) else CHAT)


@pytest.mark.parametrize("recorded", ALL, ids=lambda recorded: recorded.name)
def test_recorded_requests(recorded: Recorded) -> None:
    if recorded.name in NOT_CALLS:
        assert recorded.endpoint is None
        return
    assert recorded.endpoint is not None
    assert recorded.endpoint.dialect is spoken(recorded)


@pytest.mark.parametrize(
    "endpoint, base, model, query, expected",
    [
        (Endpoint(MESSAGES), "", "m", "", "/v1/messages"),
        (Endpoint(MESSAGES), "/", "m", "beta=true", "/v1/messages?beta=true"),
        (Endpoint(MESSAGES), "/v1", "m", "key=secret&beta=true", "/v1/messages?beta=true"),
        (Endpoint(MESSAGES), "/v1/", "m", "beta=false&x=1", "/v1/messages"),
        (Endpoint(MESSAGES), "/api/anthropic", "m", "", "/api/anthropic/v1/messages"),
        (Endpoint(MESSAGES), "/api/anthropic/v1/messages", "m", "", "/api/anthropic/v1/messages"),
        (Endpoint(MESSAGES, action="count"), "/api/anthropic", "m", "", "/api/anthropic/v1/messages/count_tokens"),
        (Endpoint(CHAT), "", "m", "key=secret", "/v1/chat/completions"),
        (Endpoint(CHAT), "/v1", "m", "", "/v1/chat/completions"),
        (Endpoint(CHAT), "/api/paas/v4/", "m", "beta=true", "/api/paas/v4/chat/completions"),
        (Endpoint(CHAT), "/compatible-mode/v1", "m", "", "/compatible-mode/v1/chat/completions"),
        (Endpoint(CHAT), "/v1/chat/completions", "m", "", "/v1/chat/completions"),
        (Endpoint(RESPONSES), "", "m", "", "/v1/responses"),
        (Endpoint(RESPONSES), "/backend-api/codex", "m", "a=b", "/backend-api/codex/responses"),
        (Endpoint(GEMINI, stream=True), "", "g", "key=secret&alt=sse", "/v1beta/models/g:streamGenerateContent?alt=sse"),
        (Endpoint(GEMINI, stream=True, json_array=True), "", "g", "", "/v1beta/models/g:streamGenerateContent"),
        (Endpoint(GEMINI, stream=False), "/v1beta", "models/g", "alt=sse", "/v1beta/models/g:generateContent"),
        (Endpoint(GEMINI, stream=False), "/v1alpha2/models", "g", "", "/v1alpha2/models/g:generateContent"),
        (Endpoint(GEMINI, stream=False), "/gemini", "g", "", "/gemini/v1beta/models/g:generateContent"),
        (
            Endpoint(GEMINI, stream=False),
            "/v1/projects/p/locations/l/publishers/google",
            "g",
            "",
            "/v1/projects/p/locations/l/publishers/google/models/g:generateContent",
        ),
        (Endpoint(GEMINI, action="count"), "/v1", "g", "", "/v1/models/g:countTokens"),
        (Endpoint(GEMINI, stream=True, envelope=True), "", "g", "", "/v1beta/models/g:streamGenerateContent?alt=sse"),
        (
            Endpoint(GEMINI, stream=True, envelope=True),
            "/v1internal",
            "g",
            "",
            "/v1internal:streamGenerateContent?alt=sse",
        ),
        (Endpoint(GEMINI, stream=False), "", "a/b?c#d:e", "", "/v1beta/models/a%2Fb%3Fc%23d%3Ae:generateContent"),
    ],
)
def test_upstream_path(endpoint: Endpoint, base: str, model: str, query: str, expected: str) -> None:
    assert upstream_path(endpoint, base, model, query=query) == expected


@given(model=st.text(), query=st.text(max_size=40))
@settings(max_examples=100, deadline=None)
def test_hostile_models_and_queries_stay_inside_one_path_segment(model: str, query: str) -> None:
    """S7"""
    path = upstream_path(Endpoint(GEMINI, stream=True), "/v1beta", model, query=query)
    assert path.isascii()
    assert path.isprintable()
    assert " " not in path
    head, _, rest = path.partition("/v1beta/models/")
    assert head == ""
    assert rest.endswith(":streamGenerateContent?alt=sse")
    assert not set("/?#:\r\n") & set(rest.removesuffix(":streamGenerateContent?alt=sse"))


@given(st.text() | st.text(alphabet="/?:v1messages%&=;models"))
@settings(max_examples=200, deadline=None)
def test_any_path_gives_an_answer(path: str) -> None:
    endpoint_of("POST", path)
