"""Another process holds the files of sessions and does not let go: its own calls are told so, by name, and nobody else waits."""

from __future__ import annotations

import asyncio
import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from routecodex.routing.storage.disk import Folder
from routecodex.routing.values import Dialect
from tests.rig.client import Answer, Http1, Route
from tests.rig.provider import FakeProvider
from tests.rig.proxy import ROOT, SCRIPT, Mitmdump
from tests.system.tool import CONFIG, CREDENTIALS, HOSTS, write

pytestmark = pytest.mark.system

LOCKED = 40
HOLDER = """
import sys
from contextlib import ExitStack
from pathlib import Path
sys.path.insert(0, sys.argv[2])
import tests
from routecodex.routing.storage.disk import Folder

folder = Folder(Path(sys.argv[1]))
with ExitStack() as held:
    for name in sys.argv[3:]:
        held.enter_context(folder.locked(name))
    print("held", flush=True)
    sys.stdin.read()
"""


class Holder:
    def __init__(self, folder: Path, sessions: list[str]) -> None:
        names = {stripe_of(session): f"session-{session}.json" for session in sessions}.values()
        command = [sys.executable, "-c", HOLDER, str(folder), str(ROOT), *names]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == b"held\n"

    def let_go(self) -> None:
        self.process.communicate(timeout=120)


@pytest.fixture(scope="module")
def provider() -> Iterator[FakeProvider]:
    with FakeProvider() as fake:
        yield fake


@pytest.fixture(scope="module")
def proxy(provider: FakeProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mitmdump]:
    with Mitmdump(script=SCRIPT, config=CONFIG, upstream=provider, folder=tmp_path_factory.mktemp("locked")) as started:
        yield started


async def ask(proxy: Mitmdump, session: str, text: str, agent: str = "some-tool/1.0") -> Answer:
    path, body = write(Dialect.MESSAGES, "m", [("user", text)], False)
    headers = [CREDENTIALS[Dialect.MESSAGES], ("x-session-id", session), ("user-agent", agent)]
    async with Http1(Route(HOSTS[Dialect.MESSAGES], proxy)) as client:
        return await client.send("POST", path, body=body, headers=headers)


def stripe_of(session: str) -> int:
    return hashlib.sha256(f"session-{session}.json".encode()).digest()[0] % 64


SESSIONS = [f"locked-{number}" for number in range(LOCKED)]
_TAKEN = {stripe_of(session) for session in SESSIONS}
FREE = next(name for name in (f"free-{number}" for number in range(1000)) if stripe_of(name) not in _TAKEN)


@pytest.fixture
def holder(proxy: Mitmdump, provider: FakeProvider) -> Iterator[Holder]:
    provider.forget()
    holding = Holder(proxy.sessions, SESSIONS)
    yield holding
    if holding.process.poll() is None:
        holding.let_go()
    assert proxy.alive
    assert "RouteCodex failed" not in proxy.log


def test_forty_calls_that_cannot_have_their_locks_keep_nobody_waiting(
    proxy: Mitmdump, provider: FakeProvider, holder: Holder
) -> None:
    """Tagged calls of other sessions are obeyed meanwhile, and go to their providers."""

    async def all_of_it() -> tuple[list[Answer], list[Answer]]:
        stuck = [asyncio.create_task(ask(proxy, session, "<**!six.m**> hello")) for session in SESSIONS]
        free = [await ask(proxy, FREE, "<**!six.m**> hello") for _ in range(3)]
        return list(await asyncio.gather(*stuck)), free

    stuck, free = asyncio.run(all_of_it())
    assert [answer.status for answer in free] == [200] * 3
    assert len(provider.calls) == 3, "what could not be obeyed must not be sent"
    assert {answer.status for answer in stuck} == {400}
    for answer in stuck:
        said = answer.json["error"]["message"]
        assert f"locked by process {holder.process.pid}" in said
        assert answer.header("x-should-retry") == "false"


@pytest.mark.parametrize("agent", ["claude-cli/2.1.0 (external, cli)", "Anthropic/Python 0.70.0", "opencode/1.0"])
def test_a_client_that_asks_again_is_told_when(proxy: Mitmdump, holder: Holder, agent: str) -> None:
    answer = asyncio.run(ask(proxy, SESSIONS[0], "<**!six.m**> hello", agent))
    assert answer.status == 429
    assert answer.header("retry-after") == "2"
    assert answer.header("x-should-retry") is None
    assert f"locked by process {holder.process.pid}" in answer.json["error"]["message"]


def test_a_lock_that_is_free_in_time_is_waited_for(proxy: Mitmdump, provider: FakeProvider, holder: Holder) -> None:
    async def both() -> Answer:
        asked = asyncio.create_task(ask(proxy, SESSIONS[1], "<**!six.m**> hello"))
        await asyncio.sleep(0.3)
        await asyncio.to_thread(holder.let_go)
        return await asked

    assert asyncio.run(both()).status == 200
    assert [received.host for received in provider.calls] == ["six.example"]


def test_calls_without_tags_need_no_lock(proxy: Mitmdump, provider: FakeProvider, holder: Holder) -> None:
    async def talk() -> Answer:
        path, body = write(Dialect.MESSAGES, "m", [("user", "a"), ("assistant", "b"), ("user", "c")], False)
        headers = [CREDENTIALS[Dialect.MESSAGES], ("x-session-id", SESSIONS[2])]
        async with Http1(Route(HOSTS[Dialect.MESSAGES], proxy)) as client:
            return await client.send("POST", path, body=body, headers=headers)

    assert asyncio.run(talk()).status == 200
    assert len(provider.calls) == 1


def test_the_lock_names_its_holder(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    with folder.locked("session-x.json"):
        (signed,) = (tmp_path / "locks").iterdir()
        assert int(signed.read_text()) == os.getpid()
