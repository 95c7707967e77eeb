"""Host names and base addresses."""

from __future__ import annotations

import pytest

from routecodex.routing.config import OFFICIAL_HOSTS
from routecodex.routing.config.hosts import read_host, read_url, stays_near
from routecodex.routing.router.registry import Url


@pytest.mark.parametrize(
    "text, host",
    [
        ("API.OpenAI.com", "api.openai.com"),
        (" a.example. ", "a.example"),
        ("*.Example.com", "*.example.com"),
        ("localhost", "localhost"),
        ("127.0.0.1", "127.0.0.1"),
        ("[::1]", "::1"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("under_score.example", "under_score.example"),
    ],
)
def test_read_host(text: str, host: str) -> None:
    assert read_host(text) == host


def test_the_longest_host() -> None:
    assert len(read_host("a." * 126 + "a")) == 253


@pytest.mark.parametrize(
    "text, message",
    [
        ("https://a.example", "without scheme"),
        ("a.example/v1", "without scheme and path"),
        ("*", "only as its whole first part"),
        ("*.*.example", "not a host name"),
        ("api.*.example", "only as its whole first part"),
        ("a*.example", "only as its whole first part"),
        ("a.example:443", "without port"),
        ("", "not a host name"),
        ("*.", "only as its whole first part"),
        ("a..example", "not a host name"),
        ("-a.example", "not a host name"),
        ("a b", "not a host name"),
        ("é" * 300, "not a host name"),
        ("a." * 200 + "a", "not a host name"),
        ("a." * 126 + "aa", "not a host name"),
    ],
)
def test_read_host_refuses(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_host(text)


@pytest.mark.parametrize(
    "text, url",
    [
        ("https://A.example", Url("https", "a.example", 443, "")),
        ("HTTP://a.example:80/", Url("http", "a.example", 80, "")),
        ("http://[::1]:1234/v1//", Url("http", "::1", 1234, "/v1")),
        ("https://a.example./api/paas/v4/", Url("https", "a.example", 443, "/api/paas/v4")),
    ],
)
def test_read_url(text: str, url: Url) -> None:
    assert read_url(text) == url


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a.example",
        "//a.example",
        "https://",
        "https:///v1",
        "https://a example",
        "https://a.example\r\nx: y",
        "https://a.example:x",
        "https://[::1",
        "https://*.example",
        "file:///etc/passwd",
        "https://a.example/\ud83d",
    ],
)
def test_read_url_refuses(text: str) -> None:
    with pytest.raises(ValueError, match="not a URL"):
        read_url(text)


@pytest.mark.parametrize(
    "host, near",
    [
        ("localhost", True),
        ("127.0.0.1", True),
        ("::1", True),
        ("192.168.1.5", True),
        ("gpu-box", True),
        ("gpu.lan", True),
        ("8.8.8.8", False),
        ("a.example.com", False),
    ],
)
def test_stays_near(host: str, near: bool) -> None:
    assert stays_near(host) is near


def test_official_hosts_are_in_their_own_form() -> None:
    assert len(set(OFFICIAL_HOSTS)) == len(OFFICIAL_HOSTS)
    assert [read_host(host) for host in OFFICIAL_HOSTS] == list(OFFICIAL_HOSTS)
