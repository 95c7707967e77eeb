"""Credentials never stand in what is shown, logged or passed on."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecodex.routing.redact import MASK, SHORTEST, Redactor, is_like_a_key, looks_secret, mask_body, unquoted
from tests.rig.work import assert_linear

HIDE = Redactor(["plain-secret", "plain-secret-and-more", "short", "ünï-secret", "a+b(c)[d]", ""])


@pytest.mark.parametrize(
    "text, shown",
    [
        pytest.param("bad key plain-secret!", "bad key ***!", id="a known one"),
        pytest.param("plain-secret-and-more", "***", id="the longer one first"),
        pytest.param("plain-secretplain-secret", "******", id="twice"),
        pytest.param("xplain-secretx", "x***x", id="within a word"),
        pytest.param("in short", "in short", id="too short to be told from words"),
        pytest.param("the ünï-secret", "the ***", id="beyond ASCII"),
        pytest.param("a+b(c)[d] aab(c)[d]", "*** aab(c)[d]", id="signs of patterns are plain signs"),
        pytest.param("Plain-Secret", "Plain-Secret", id="case counts"),
        pytest.param("sk-ant-api03-AbCdEfGhIjKlMnOp", "***", id="shape: Anthropic, OpenAI"),
        pytest.param("AIza" + "S" * 35, "***", id="shape: Google"),
        pytest.param("Bearer gsk_" + "a1" * 15, "Bearer ***", id="shape: Groq"),
        pytest.param("xai-" + "a1" * 15, "***", id="shape: xAI"),
        pytest.param("ya29." + "a0_-." * 6, "***", id="shape: Google OAuth"),
        pytest.param("AQ.Ab8" + "S_-" * 12, "***", id="shape: Google, newer"),
        pytest.param(
            " ".join(f"{begin}{'a1' * 18}" for begin in ("ghp_", "gho_", "ghu_", "ghs_", "github_pat_")),
            "*** " * 4 + "***",
            id="shape: GitHub",
        ),
        pytest.param(
            f"hf_{'aB' * 17}, r8_{'aB' * 18}, fw_{'aB' * 12}, tgp_v1_{'aB' * 20}",
            "***, ***, ***, ***",
            id="shape: hosts of models",
        ),
        pytest.param(
            f"pplx-{'aB' * 24} nvapi-{'a_-' * 20} csk-{'a1' * 24} glpat-{'aB_' * 7}", "*** *** *** ***", id="shape: with a dash"
        ),
        pytest.param(f"xoxb-123456789012-{'aB' * 12} sk_live_{'aB' * 12}", "*** ***", id="shape: what tools reach besides"),
        pytest.param(
            "hf_transfer, r8_short, AQ.and so on, ghp_ and xoxo-x",
            "hf_transfer, r8_short, AQ.and so on, ghp_ and xoxo-x",
            id="shapes that are none",
        ),
        pytest.param("eyJhbGciOiJIUzI1.eyJzdWIiOiIx.c2lnbmF0", "***", id="shape: JWT"),
        pytest.param("x_eyJhbGciOiJIUzI1.eyJzdWIiOiIx.c2lnbmF0", "x_***", id="shape: JWT within a word"),
        pytest.param("eyJshort.eyJhbGciOiJIUzI1.eyJzdWIiOiIx.c2lnbmF0", "eyJshort.***", id="shape: JWT behind what is none"),
        pytest.param("task-force and risk-averse people", "task-force and risk-averse people", id="no shape"),
        pytest.param("a lone surrogate \ud800 plain-secret", "a lone surrogate \ud800 ***", id="a lone surrogate"),
        pytest.param("", "", id="nothing"),
    ],
)
def test_what_is_hidden(text: str, shown: str) -> None:
    assert HIDE.text(text) == shown
    raw = text.encode("utf-8", "surrogatepass")
    assert HIDE.bytes(raw) == shown.encode("utf-8", "surrogatepass")


def test_bytes_that_are_no_text_stay() -> None:
    assert HIDE.bytes(b"\xff\xfe plain-secret \x00") == b"\xff\xfe *** \x00"


def test_without_secrets_the_shapes_are_still_seen() -> None:
    assert Redactor([]).text("plain-secret sk-" + "x" * 20) == "plain-secret ***"


@given(st.lists(st.text(min_size=SHORTEST, max_size=20), min_size=1, max_size=4), st.lists(st.text(max_size=10), min_size=1))
def test_no_secret_is_left_wherever_it_stands(secrets: list[str], between: list[str]) -> None:
    hide = Redactor(secrets)
    text = secrets[0].join([*between, ""])
    shown = hide.text(text)
    assert not any(secret in shown for secret in secrets if MASK not in secret and not set(secret) <= set(MASK))
    assert hide.text("*") == "*"


@pytest.mark.parametrize("piece", [b"sk-", b"AIza", b"eyJ", b"a", b"eyJa."])
def test_a_large_text_is_linear_work(piece: bytes) -> None:
    assert_linear(HIDE.bytes, lambda size: piece * size, 100_000)


@pytest.mark.parametrize(
    "body, shown",
    [
        (b'{"access_token":"a\\"b","expires_in":3}', b'{"access_token":"***","expires_in":3}'),
        (b'{"max_tokens": "3", "client_secret" : "x"}', b'{"max_tokens": "3", "client_secret" : "***"}'),
        (b"grant_type=refresh_token&refresh_token=abc&scope=x", b"grant_type=refresh_token&refresh_token=***&scope=x"),
        (b"nothing of the kind", b"nothing of the kind"),
        (b"", b""),
    ],
)
def test_a_body_that_is_only_shown(body: bytes, shown: bytes) -> None:
    assert mask_body(body) == shown


@pytest.mark.parametrize("key", ["sk-without-digits-in-it", "sk-proj-0123456789abcdef", "0123456789abcdef.XyZ", "a" * 15 + "1"])
def test_what_is_like_a_key(key: str) -> None:
    assert is_like_a_key(key)


@pytest.mark.parametrize(
    "word", ["", "ollama", "sk-no-key-required", "application/json", "1" * 20, "a1" * 7, "made in 2026 and on"]
)
def test_what_an_answer_may_well_hold(word: str) -> None:
    assert not is_like_a_key(word)


@pytest.mark.parametrize("text", ["Bearer abc12345", "basic dXNlcjpwYXNz", "sk-ant-api03-AbCdEfGhIjKlMnOp"])
def test_what_looks_secret(text: str) -> None:
    assert looks_secret(text)


@pytest.mark.parametrize("text", ["", "Bearer", "bearer of news", "the sk-ant-api03-AbCdEfGhIjKlMnOp", "Token 5"])
def test_what_does_not(text: str) -> None:
    assert not looks_secret(text)


@pytest.mark.parametrize(
    "message, told",
    [
        ("unexpected server response: b'HTTP/1.1 200 OK\\r\\nx: it\\'s'", "unexpected server response: …"),
        ("malformed chunk footer: bytearray(b'sk') (expected b'\\r\\n')", "malformed chunk footer: … (expected …)"),
        ("multiple: [b'4', b\"5\"] of 2", "multiple: […, …] of 2"),
        ("unknown transfer-encoding header: 'secret'", "unknown transfer-encoding header: …"),
        ("The provider's answer isn't: invalid header name: b'cut o", "The provider's answer isn't: invalid header name: …"),
        ("Connect call failed ('127.0.0.1', 9)", "Connect call failed ('127.0.0.1', 9)"),
        ("no certificate for 'a.example', it's another's", "no certificate for 'a.example', it's another's"),
        ("", ""),
    ],
)
def test_what_cannot_be_read_is_not_quoted(message: str, told: str) -> None:
    assert unquoted(message) == told


@given(st.binary(max_size=60))
def test_bytes_are_quoted_nowhere(said: bytes) -> None:
    assert unquoted(f"in {said!r}, {bytearray(said)!r} and more") == "in …, … and more"


def test_quotes_are_found_in_proportion_to_the_text() -> None:
    for hostile in ("b'", ": '", "b'\\", "bytearray(", "b'\\\\"):
        assert_linear(unquoted, lambda size, hostile=hostile: hostile * size, 20_000)
