"""Headers that go up, headers that come back, and which of them are secrets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecodex.routing.errors import ConfigError
from routecodex.routing.headers import (
    HOP_BY_HOP,
    MASK,
    Outgoing,
    answer,
    build,
    check,
    fill_query,
    mask_query,
    query_secrets,
    same_host,
    shown,
)
from routecodex.routing.secret_names import is_secret_header
from routecodex.routing.values import Dialect

CLIENT = {
    "user-agent": "tool/1",
    "accept": "application/x-own",
    "authorization": MASK,
    "x-api-key": MASK,
    "cookie": MASK,
    "anthropic-version": "2099-01-01",
    "anthropic-beta": "one, oauth-2025-04-20 ,two",
    "x-claude-code-session-id": "session",
    "x-stainless-os": "Linux",
    "x-forwarded-for": "10.0.0.1",
    "traceparent": "00-1",
    "host": "api.anthropic.com",
}
"""What a client may send; to another host next to nothing of it goes."""


def names(fields: tuple[tuple[str, str], ...]) -> list[str]:
    return [name for name, _ in fields]


# --- to the host the client called -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name, value, kept",
    [
        *[pytest.param(name, "x", None, id=name) for name in sorted(HOP_BY_HOP)],
        pytest.param("Content-Length", "3", None, id="content-length is ours"),
        pytest.param("Host", "h", None, id="host is ours"),
        pytest.param("X-RouteCodex-Session", "s", None, id="our own never leave"),
        pytest.param("x-routecodex-anything", "s", None, id="whatever we may name later"),
        pytest.param("Accept-Encoding", "gzip, br", "identity", id="an answer that can be read as it streams"),
        pytest.param("Authorization", MASK, MASK, id="a credential keeps its place and joins on the wire"),
        pytest.param("X-Own", "a, b", "a, b", id="everything else"),
        pytest.param("x-routecode", "s", "s", id="not quite ours"),
    ],
)
def test_the_callers_own_headers_go_on_at_home(name: str, value: str, kept: str | None) -> None:
    found = same_host([("A", "1"), (name, value), ("B", "2")], coded=True)
    expected = [("A", "1"), *([(name, kept)] if kept is not None else []), ("B", "2")]
    assert found == tuple(expected if name == "Accept-Encoding" else [*expected, ("accept-encoding", "identity")])


def test_order_spelling_and_repetitions_stay() -> None:
    fields = [("X-B", "1"), ("x-a", "2"), ("X-b", "3"), ("accept-encoding", "identity"), ("X-B", "1")]
    assert same_host(fields, coded=True) == tuple(fields)


@pytest.mark.parametrize("coded, kept", [(True, True), (False, False)])
def test_a_body_that_was_edited_is_compressed_no_longer(coded: bool, kept: bool) -> None:
    assert ("Content-Encoding" in names(same_host([("Content-Encoding", "zstd")], coded=coded))) is kept


# --- to any other host -------------------------------------------------------------------------------------------------

KEYS = [
    pytest.param(Dialect.MESSAGES, "sk-ant-api03-x", ("x-api-key", "sk-ant-api03-x"), id="messages"),
    pytest.param(Dialect.MESSAGES, "sk-ant-oat01-x", ("authorization", "Bearer sk-ant-oat01-x"), id="messages-oauth"),
    pytest.param(Dialect.CHAT, "sk-x", ("authorization", "Bearer sk-x"), id="chat"),
    pytest.param(Dialect.RESPONSES, "sk-x", ("authorization", "Bearer sk-x"), id="responses"),
    pytest.param(Dialect.GEMINI, "AIza-x", ("x-goog-api-key", "AIza-x"), id="gemini"),
]


@pytest.mark.parametrize("foreign", [True, False])
@pytest.mark.parametrize("dialect, key, secret", KEYS)
def test_headers_for_a_key_of_ours_are_made_from_nothing(
    dialect: Dialect, key: str, secret: tuple[str, str], foreign: bool
) -> None:
    found = build(CLIENT, dialect, key, {"x-extra": "e"}, foreign=foreign, stream=True)
    assert found.secret == (secret, ("x-extra", "e"))
    allowed = {"content-type", "accept-encoding", "user-agent", "accept"}
    if dialect is Dialect.MESSAGES:
        allowed |= {"anthropic-version"} | (set() if foreign else {"anthropic-beta"})
    assert set(names(found.shown)) == allowed
    assert not any(is_secret_header(name) or MASK in value for name, value in found.shown)


@pytest.mark.parametrize("stream, accept", [(True, "text/event-stream"), (False, "application/json")])
def test_a_client_that_says_little(stream: bool, accept: str) -> None:
    found = build({}, Dialect.MESSAGES, "", {}, foreign=True, stream=stream)
    assert found == Outgoing(
        (
            ("content-type", "application/json"),
            ("accept-encoding", "identity"),
            ("accept", accept),
            ("anthropic-version", "2023-06-01"),
        )
    )


@pytest.mark.parametrize(
    "betas, key, sent",
    [
        pytest.param("one,two", "sk-x", "one,two", id="they belong to the body"),
        pytest.param("one, oauth-2025-04-20 ,two,", "sk-x", "one,two", id="but not the credential's"),
        pytest.param("one", "sk-ant-oat01-x", "one,oauth-2025-04-20", id="an OAuth token of ours announces itself"),
        pytest.param("", "sk-ant-oat01-x", "oauth-2025-04-20", id="also alone"),
        pytest.param("oauth-2025-04-20", "sk-x", None, id="nothing is left"),
    ],
)
def test_betas_at_the_host_that_the_client_called(betas: str, key: str, sent: str | None) -> None:
    found = build({"anthropic-beta": betas}, Dialect.MESSAGES, key, {}, foreign=False, stream=False)
    assert dict(found.shown).get("anthropic-beta") == sent


# --- back to the client ------------------------------------------------------------------------------------------------

BACK = [
    pytest.param("content-type", True, True, id="content-type"),
    pytest.param("Retry-After", True, True, id="retry-after"),
    pytest.param("anthropic-ratelimit-requests-remaining", True, True, id="limits of Anthropic"),
    pytest.param("x-ratelimit-reset-tokens", True, True, id="limits of OpenAI"),
    pytest.param("request-id", True, True, id="request-id"),
    pytest.param("set-cookie", True, False, id="cookies come from home alone"),
    pytest.param("server", True, False, id="who answers is not the client's business"),
    pytest.param("x-should-retry", True, False, id="whether to retry is ours to say"),
    *[
        pytest.param(name, False, False, id=f"{name}: framing is ours")
        for name in ("Content-Length", "content-encoding", "alt-svc", "Connection", "Transfer-Encoding")
    ],
]


@pytest.mark.parametrize("name, at_home, abroad", BACK)
def test_what_comes_back(name: str, at_home: bool, abroad: bool) -> None:
    field = (name, "value")
    assert answer([field], foreign=False) == ((field,) if at_home else ())
    assert answer([field], foreign=True) == ((field,) if abroad else ())


@pytest.mark.parametrize(
    "field", [("x-request-id", "a\r\nset-cookie: b"), ("x-request-id", "a\0"), ("x ratelimit-a", "b"), ("", "b")]
)
def test_what_a_provider_may_not_say_is_left_out(field: tuple[str, str]) -> None:
    """Bytes from outside must never stop an answer."""
    for foreign in (True, False):
        assert answer([("request-id", "r"), field], foreign=foreign) == (("request-id", "r"),)


# --- what no header may hold -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name, value", [("a", "x\r\ny: z"), ("a", "x\ny"), ("a", "x\0"), ("a b", "x"), ("", "x"), ("a:", "x"), ("ü", "x")]
)
def test_a_header_of_the_configuration_that_would_break_out_is_refused(name: str, value: str) -> None:
    with pytest.raises(ConfigError):
        check([("fine", "x"), (name, value)])
    with pytest.raises(ConfigError) as refused:
        build({}, Dialect.CHAT, "sk-the-key", {name: value}, foreign=True, stream=False)
    assert "sk-the-key" not in refused.value.message
    assert value not in refused.value.message


def test_a_key_with_a_line_break_is_refused_without_being_shown() -> None:
    with pytest.raises(ConfigError) as refused:
        build({}, Dialect.CHAT, "sk-the\r\nkey", {}, foreign=True, stream=False)
    assert "sk-the" not in str(refused.value)


@given(
    st.dictionaries(st.text(max_size=12), st.text(max_size=12), max_size=4), st.text(max_size=20), st.sampled_from(list(Dialect))
)
def test_whatever_is_written_cannot_break_out(extra: dict[str, str], key: str, dialect: Dialect) -> None:
    try:
        found = build({}, dialect, key, extra, foreign=True, stream=True)
    except ConfigError:
        return
    for name, value in (*found.shown, *found.secret):
        assert not set("\r\n\0") & set(name + value)
        assert name.isascii()
        assert ":" not in name


# --- secrets -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path, masked",
    [
        ("/v1beta/models/m:generateContent?key=AIza1", "/v1beta/models/m:generateContent?key=***"),
        ("/p?alt=sse&key=AIza1&x=2", "/p?alt=sse&key=***&x=2"),
        ("/p?API_KEY=a&api-key=b&apikey=c", "/p?API_KEY=***&api-key=***&apikey=***"),
        ("/p?access_token=a#frag", "/p?access_token=***#frag"),
        ("/p#access_token=a&x=1", "/p#access_token=***&x=1"),
        ("/p?%6Bey=a&oauth_token=b;c", "/p?%6Bey=***&oauth_token=***"),
        ("/p?x=1;key=a", "/p?x=1;key=***"),
        ("/p;key=a?x=1", "/p;key=***"),
        ("/p;key=a", "/p;key=***"),
        ("/p&key=a;b", "/p&key=***"),
        ("/p?key=", "/p?key=***"),
        ("/p?monkey=a&keys=b", "/p?monkey=a&keys=b"),
        ("/key=a", "/key=a"),
        ("/p", "/p"),
    ],
)
def test_credentials_in_a_query_are_masked(path: str, masked: str) -> None:
    assert mask_query(path) == masked
    assert mask_query(masked) == masked
    assert fill_query(masked, query_secrets(path)) == path


@pytest.mark.parametrize(
    "name, value, told",
    [
        ("Location", "https://me:secret@host.example/x?code=1", "https://***@host.example/x?code=***"),
        (
            "link",
            "<https://me@host.example/>; rel=next, <https://a:b@c/>",
            "<https://***@host.example/>; rel=next, <https://***@c/>",
        ),
        ("refresh", "0; url=http://a:b@c", "0; url=http://***@c"),
        ("location", "https://host.example/@me?mail=a@b", "https://host.example/@me?mail=a@b"),
        ("x-other", "https://me:secret@host.example/", "https://me:secret@host.example/"),
    ],
)
def test_nobodys_password_stands_in_an_address(name: str, value: str, told: str) -> None:
    assert shown(name, value) == told
