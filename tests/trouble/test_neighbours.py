"""Other scripts and options in the same mitmproxy: modules called as ours are, hands on the same calls. No key of ours goes where
somebody else sends a call, no tag leaves unread, and what they change is changed, or told in docs/security.md."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from routecodex.routing.values import Dialect
from tests.rig.behaviour import Behaviour
from tests.rig.client import call
from tests.rig.provider import FakeProvider
from tests.rig.proxy import SCRIPT, Mitmdump
from tests.system.tool import CONFIG, Tool, text_of

pytestmark = pytest.mark.system

NEIGHBOUR = """
import logging
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import {names}

for module in ({names},):
    logging.warning("%s is %s", module.__name__, module.WHOSE)
"""
NAMES = ("settings", "flows", "relay", "stand_in", "rounds", "turns", "routing")
"""Modules that anybody may have; some of them are ours too, under longer names."""


@pytest.mark.parametrize("first", [True, False], ids=["before ours", "behind ours"])
def test_modules_of_the_same_name(provider: FakeProvider, tmp_path: Path, first: bool) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir()
    for name in NAMES:
        (folder / f"{name}.py").write_text('WHOSE = "theirs"\n')
    (folder / "neighbour.py").write_text(NEIGHBOUR.format(names=", ".join(NAMES)))
    theirs = folder / "neighbour.py"
    scripts = [theirs, SCRIPT] if first else [SCRIPT, theirs]
    with Mitmdump(script=scripts, config=CONFIG, upstream=provider) as proxy:
        body = {"model": "claude-x", "max_tokens": 9, "messages": [{"role": "user", "content": "<**six.m**> hello"}]}
        answer = call("https://api.anthropic.com", "/v1/messages", body, proxy=proxy, headers={"x-api-key": "sk-client"})
        assert answer.status == 200, answer.body
        assert [name for name in NAMES if f"{name} is theirs" not in proxy.log] == []
    assert provider.calls[-1].host == "six.example"


# ---- hands on the same calls ----


@contextmanager
def beside(provider: FakeProvider, folder: Path, body: str = "", *, first: bool = False, **more: list[str]) -> Iterator[Mitmdump]:
    """Ours, and an addon with these hooks before it or behind it."""
    provider.forget()
    scripts = [SCRIPT]
    if body:
        (folder / "theirs.py").write_text(f"class Theirs:\n{body}\naddons = [Theirs()]\n")
        scripts = [folder / "theirs.py", SCRIPT] if first else [SCRIPT, folder / "theirs.py"]
    with Mitmdump(script=scripts, config=CONFIG, upstream=provider, folder=folder / "proxy", flows=True, **more) as proxy:
        yield proxy
        assert not proxy.crash
        assert "RouteCodex failed" not in proxy.log
        proxy.stop()
        assert proxy.flows_path is not None
        saved = proxy.flows_path.read_bytes()
    for secret in (b"sk-client-secret", b"six-key-", b"a-cookie"):
        assert secret not in saved, secret


_ELSEWHERE = """
    def request(self, flow):
        if flow.request.host in ("api.anthropic.com", "six.example"):
            flow.request.host = "elsewhere.example"
"""
_MAPS = ["map_remote=|https://api.anthropic.com/|https://elsewhere.example/"]
_MAPS_OURS = ["map_remote=|https://six.example/|https://elsewhere.example/"]


@pytest.mark.parametrize("how", ["another addon", "map_remote"])
def test_a_key_of_ours_goes_nowhere_else(provider: FakeProvider, tmp_path: Path, how: str) -> None:
    """A person's own credential goes where the person sends the call; a configured one only to its provider."""
    ways: dict[str, list[str]] = {} if how == "another addon" else {"options": _MAPS, "args": ["--set", _MAPS_OURS[0]]}
    with beside(provider, tmp_path, _ELSEWHERE if how == "another addon" else "", **ways) as proxy:
        assert Tool(provider, proxy).ask("hello").status == 200
        for text in ("<**six.m**> hello", '<**six.m**> <**stopMessage:"go on",1**> hello'):
            Tool(provider, proxy).ask(text)
        log = proxy.log
    own, *others = provider.requests
    assert (own.host, own.header("x-api-key")) == ("elsewhere.example", "sk-client-secret")
    assert others
    assert {received.host for received in others} == {"elsewhere.example"}
    assert not any(b"six-key-" in received.raw for received in others)
    assert "no key goes to elsewhere.example" in log


@pytest.mark.parametrize("first", [True, False], ids=["before ours", "behind ours"])
def test_no_call_leaves_before_it_is_read(provider: FakeProvider, tmp_path: Path, first: bool) -> None:
    """Who wants everything streamed wants what `stream_large_bodies` does, which is refused at the start."""
    streams = "    def requestheaders(self, flow):\n        flow.request.stream = True"
    with beside(provider, tmp_path, streams, first=first) as proxy:
        for dialect in Dialect:
            answer = Tool(provider, proxy, dialect).ask("<**six.m**> hello")
            assert text_of(dialect, answer.body, False) == "m was asked: hello"
        assert call("https://api.openai.com", "/v1/files", b"{}", proxy=proxy).status == 200
    assert {received.host for received in provider.calls} == {"six.example"}
    assert b"<**" not in provider.all_bytes()


@pytest.mark.parametrize("option", ["stickycookie=.", "stickyauth=."])
def test_what_is_masked_is_nobodys_credential(provider: FakeProvider, tmp_path: Path, option: str) -> None:
    """mitmproxy remembers what it is shown, and that is a mask: it stays here."""
    with beside(provider, tmp_path, options=[option]) as proxy:
        provider.always(Behaviour(headers=(("set-cookie", "a=a-cookie; Path=/"),)))
        bearer = {"authorization": "Bearer sk-client-secret"}
        for path in ("/v1/messages", "/v1/files"):
            for headers in (bearer, {"x-api-key": "sk-client-secret"}):
                body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hello"}]}
                assert call("https://api.anthropic.com", path, body, proxy=proxy, headers=headers).status == 200
    assert len(provider.requests) == 4
    for number, received in enumerate(provider.requests):
        assert b"***" not in received.raw
        assert received.header("authorization") == (None if number % 2 else "Bearer sk-client-secret")


_KILLS = "    def responseheaders(self, flow):\n        flow.kill()"


def test_an_answer_that_somebody_ends_shows_no_cookie(provider: FakeProvider, tmp_path: Path) -> None:
    with beside(provider, tmp_path, _KILLS) as proxy:
        provider.always(Behaviour(headers=(("set-cookie", "a=a-cookie; Path=/"),)))
        for text in ("hello", "<**six.m**> hello", "<**echo**> hello"):
            assert Tool(provider, proxy).ask(text).ended == "closed"


_CHANGES = """
    def request(self, flow):
        flow.request.text = flow.request.text.replace("hello", "goodbye, my friend")
    def responseheaders(self, flow):
        flow.response.headers["x-theirs"] = "1"
        flow.response.stream = lambda data: data.upper()
    def response(self, flow):
        raise ValueError
"""
_OPTIONS = [
    "modify_body=|~q|hello|goodbye, my friend",
    "modify_headers=|~q|x-theirs|1",
    "anticache=true",
    "anticomp=true",
    "save_stream_file={folder}/saved",
]


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "json"])
@pytest.mark.parametrize("how", ["another addon", "options"])
def test_what_others_change_in_a_request_is_changed(provider: FakeProvider, tmp_path: Path, how: str, stream: bool) -> None:
    """In a live answer they change nothing: it is written by the turn. Framing, keys and rounds stay right."""
    options = [option.format(folder=tmp_path) for option in _OPTIONS]
    more = {"args": [word for option in options for word in ("--set", option)]} if how == "options" else {}
    with beside(provider, tmp_path, "" if more else _CHANGES, **more) as proxy:
        for dialect in Dialect:
            for tag in ("", "<**six.m**> "):
                provider.forget()
                answer = Tool(provider, proxy, dialect).ask(f"{tag}hello", stream=stream)
                assert (answer.status, answer.ended) == (200, "complete")
                assert "was asked: goodbye, my friend" in text_of(dialect, answer.body, stream)
    for saved in tmp_path.glob("saved"):
        assert b"secret" not in saved.read_bytes()


_ANSWERS = """
    def request(self, flow):
        from mitmproxy import http
        flow.response = http.Response.make(418, b"tea", {"content-type": "text/plain"})
"""


@pytest.mark.parametrize("first", [True, False], ids=["before ours", "behind ours"])
def test_somebody_elses_answer_is_the_answer(provider: FakeProvider, tmp_path: Path, first: bool) -> None:
    with beside(provider, tmp_path, _ANSWERS, first=first) as proxy:
        for text in ("hello", "<**six.m**> hello", '<**six.m**> <**stopMessage:"go on",2**> hello'):
            for stream in (True, False):
                answer = Tool(provider, proxy).ask(text, stream=stream)
                assert (answer.status, answer.body) == (418, b"tea")
    assert provider.requests == []
