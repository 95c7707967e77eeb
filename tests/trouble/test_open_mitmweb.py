"""F7: a mitmweb that asks nobody who they are. No key of ours is used under it, and looking into it changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from routecodex.routing.values import Dialect
from tests.rig.behaviour import Behaviour
from tests.rig.client import Answer, call
from tests.rig.provider import FakeProvider
from tests.rig.proxy import SCRIPT, Mitmdump, free_port
from tests.system.test_web import Web
from tests.system.tool import CONFIG, Tool, text_of

pytestmark = pytest.mark.system

_OLD = "from mitmproxy import version\nversion.VERSION = '11.0.2'\n"
"""What mitmproxy 11.0.2 says of itself; a newer one is treated like it then."""


@pytest.fixture(scope="module")
def provider() -> Iterator[FakeProvider]:
    with FakeProvider() as fake:
        yield fake


@pytest.fixture
def folder(tmp_path: Path, provider: FakeProvider) -> Path:
    provider.forget()
    (tmp_path / "old.py").write_text(_OLD)
    return tmp_path


def run(folder: Path, provider: FakeProvider, *, web: bool, config: str = CONFIG) -> Mitmdump:
    scripts = [folder / "old.py", SCRIPT]
    return Mitmdump(script=scripts, config=config, upstream=provider, folder=folder / "proxy", web=web, port=_port(folder))


def _port(folder: Path) -> int:
    """The same for all that run in one folder: sessions live per server."""
    file = folder / "port"
    if not file.exists():
        file.write_text(str(free_port()))
    return int(file.read_text())


def assert_withheld(answer: Answer) -> None:
    assert answer.status == 400
    assert answer.header("x-should-retry") == "false"
    message = answer.json["error"]["message"]
    assert "Python 3.12" in message
    assert "mitmdump" in message


def test_no_key_is_used_under_it(folder: Path, provider: FakeProvider) -> None:
    with run(folder, provider, web=True) as proxy:
        for dialect, stream in product(Dialect, (True, False)):
            provider.forget()
            tool = Tool(provider, proxy, dialect)
            assert_withheld(tool.ask("<**six.m**> hello", stream=stream))
            assert_withheld(Tool(provider, proxy, dialect).ask("<**!glm.glm-4.7**> hello", stream=stream))
            assert provider.requests == [], (dialect, stream)
            origin = Tool(provider, proxy, dialect).ask("hello", stream=stream)
            assert text_of(dialect, origin.body, stream) == "claude-x was asked: hello"
            echo = Tool(provider, proxy, dialect).ask("<**echo**> hello", stream=stream)
            assert echo.status == 200
            assert {received.key for received in provider.requests} == {"sk-client-secret"}, (dialect, stream)
        assert "Python 3.12" in proxy.log


def test_nor_when_origin_fails(folder: Path, provider: FakeProvider) -> None:
    config = CONFIG.replace("default: [origin]", "default: [origin, six.m]")
    provider.always(Behaviour(status=503, error="down"))
    with run(folder, provider, web=True, config=config) as proxy:
        assert Tool(provider, proxy).ask("hello").status == 503
    assert {received.key for received in provider.requests} == {"sk-client-secret"}


def test_counting_is_estimated(folder: Path, provider: FakeProvider) -> None:
    config = CONFIG.replace("default: [origin]", "default: [claude.claude-sonnet-4-5]")
    body = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
    with run(folder, provider, web=True, config=config) as proxy:
        answer = call("https://api.anthropic.com", "/v1/messages/count_tokens", body, proxy=proxy)
    assert answer.status == 200
    assert answer.json["input_tokens"] > 0
    assert provider.requests == []


def test_a_look_into_it_changes_nothing_that_is_stored(folder: Path, provider: FakeProvider) -> None:
    """The sticky of the conversation holds when mitmdump runs again."""
    with run(folder, provider, web=False) as proxy:
        tool = Tool(provider, proxy)
        assert tool.ask("<**!six.m**> hello").status == 200
    kept = _stored(proxy)
    assert kept
    with run(folder, provider, web=True) as proxy:
        tool.proxy = proxy
        for _ in range(3):
            assert_withheld(tool.send())
        tool.history.append(("user", "and on"))
        assert_withheld(tool.send())
        assert _stored(proxy) == kept
    with run(folder, provider, web=False) as proxy:
        tool.proxy = proxy
        provider.forget()
        assert tool.send().status == 200
        assert {received.host for received in provider.calls} == {"six.example"}


def _stored(proxy: Mitmdump) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in proxy.sessions.rglob("*.json")}


def test_nobody_repeats_a_call_there(folder: Path, provider: FakeProvider) -> None:
    """The caller's credential does not join again."""
    with run(folder, provider, web=True) as proxy:
        Tool(provider, proxy).ask("hello")
        provider.forget()
        web = Web(proxy)
        web.post(f"/flows/{web.flows[0]['id']}/replay")
        web.until(lambda flow: flow["is_replay"] and (flow.get("response") or {}).get("status_code") == 409)
    assert provider.requests == []
