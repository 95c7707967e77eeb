"""Behind another proxy, as in many companies (`--mode upstream:`): a tag steers, a key goes to its provider alone.

`regular` is what all other tests use; `reverse` has `tests/system/test_reverse.py`; `local` takes hold of other programs of the
machine, and is tried by hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from routecodex.routing.values import Dialect
from tests.rig.behaviour import Behaviour
from tests.rig.client import call
from tests.rig.provider import FakeProvider
from tests.rig.proxy import SCRIPT, Mitmdump
from tests.system.tool import CONFIG, Tool, text_of

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def provider() -> Iterator[FakeProvider]:
    with FakeProvider() as fake:
        yield fake


@pytest.fixture(scope="module")
def proxy(provider: FakeProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mitmdump]:
    """Its redirect leads nowhere: what leaves it goes through the other one."""
    folder: Path = tmp_path_factory.mktemp("upstream")
    with (
        Mitmdump(upstream=provider, folder=folder / "theirs", options=["ignore_hosts=.*"]) as theirs,
        Mitmdump(script=SCRIPT, config=CONFIG, folder=folder / "ours", mode=f"upstream:{theirs.url}", flows=True) as ours,
    ):
        yield ours
        assert not ours.crash
        assert "RouteCodex failed" not in ours.log
        ours.stop()
        assert ours.flows_path is not None
        saved = ours.flows_path.read_bytes()
        assert b"sk-client-secret" not in saved
        assert b"six-key-" not in saved


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "json"])
@pytest.mark.parametrize("dialect", list(Dialect))
def test_every_way_of_a_call(provider: FakeProvider, proxy: Mitmdump, dialect: Dialect, stream: bool) -> None:
    tool = Tool(provider, proxy, dialect)
    ways = {"hello": 1, "<**six.m**> hello": 1, '<**six.m**> <**stopMessage:"go on",1**> hello': 2, "<**echo**> hello": 0}
    for text, rounds in ways.items():
        provider.forget()
        tool.history.clear()
        answer = tool.ask(text, stream=stream)
        assert (answer.status, answer.ended) == (200, "complete"), answer.text
        assert "hello" in text_of(dialect, answer.body, stream)
        assert len(provider.calls) == rounds
        for received in provider.calls:
            assert (b"six-key-" in received.raw, b"sk-client-secret" in received.raw) == (
                received.host == "six.example",
                received.host != "six.example",
            )


def test_another_key_and_another_path(provider: FakeProvider, proxy: Mitmdump) -> None:
    provider.forget()
    provider.enqueue(Behaviour(status=500, error="down"), Behaviour(before="close"))
    answer = Tool(provider, proxy).ask("<**six.m**> hello", stream=True)
    assert text_of(Dialect.MESSAGES, answer.body, True) == "m was asked: hello"
    assert len({received.header("x-api-key") for received in provider.calls}) == 3
    assert call("https://api.openai.com", "/v1/files", b"{}", proxy=proxy).status == 200
    assert call("https://github.com", "/", b"", method="GET", proxy=proxy, ca=provider.ca).status == 200
