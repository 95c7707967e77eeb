"""A Redis that freezes, dies, comes back, or does not want us: nobody waits long, and nothing happens twice."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from hashlib import sha1
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import pytest

from routecodex.addons.control.servers import Server
from routecodex.addons.redis_store import _READ, PATIENCE_S, RedisStore
from routecodex.routing.clock.store import ClockStore
from routecodex.routing.clock.tasks import Task
from routecodex.routing.sessions.state import Sticky
from routecodex.routing.sessions.store import FileStore, SessionKey
from routecodex.routing.storage.contract import NEVER, Key, Kind, Lost, Put
from routecodex.routing.turn.hidden_store import HiddenStore
from routecodex.routing.turn.stepping import Done, begin
from tests.conftest import LONG
from tests.rig.behaviour import Behaviour
from tests.rig.certificates import provider_authority
from tests.rig.door import Door, until
from tests.rig.provider import FakeProvider
from tests.rig.proxy import MAIN, SCRIPT, DidNotStart, Mitmdump
from tests.rig.redis_server import RedisServer, redis_server
from tests.rig.reply import Reply
from tests.routing.turn.test_hidden_store import entry as hidden_round
from tests.system.talk import Heard, Talk, configured

T = TypeVar("T")

KEY = Key(Kind.STATE, "session:a")
SHORT_S = PATIENCE_S if LONG else 3.0
"""What is waited for on purpose; a busy machine needs more to answer at all."""


def patient(url: str, seconds: float = 60) -> str:
    """Where nothing is to be missed by a busy machine."""
    return f"{url}{'&' if '?' in url else '?'}wait={seconds}"


def run(work: Callable[[], Awaitable[T]]) -> T:
    async def bounded() -> T:
        async with asyncio.timeout(120):
            return await work()

    return asyncio.run(bounded())


def counted(store: RedisStore) -> list[Any]:
    """What is really asked of the server from now on."""
    asked: list[Any] = []
    exchange = store._exchange

    async def note(words: Any, due: float) -> Any:
        asked.append(words)
        return await exchange(words, due)

    store._exchange = note  # type: ignore[method-assign]
    return asked


async def well(store: RedisStore) -> None:
    while store.gone:  # noqa: ASYNC110 - the store tells nobody but people
        await asyncio.sleep(0.02)


async def value(store: RedisStore) -> bytes:
    (found,) = await store.read([(KEY, NEVER)])
    return dict(found.entries).get("", b"")


def test_frozen(tmp_path: Path) -> None:
    """Those that wait already are over in time, whoever comes then waits for nothing; and every answer is one's own."""
    said: list[str] = []

    async def main(server: RedisServer) -> None:
        store = RedisStore(patient(server.url, SHORT_S), heard=said.append)
        keys = [Key(Kind.STATE, f"session:{number}") for number in range(20)]
        await store.put([Put(key, "", key.id.encode()) for key in keys])
        server.freeze()
        began = time.monotonic()
        waiting = await asyncio.gather(*(store.read([(key, NEVER)]) for key in keys), return_exceptions=True)
        took = time.monotonic() - began
        assert all(isinstance(one, Lost) for one in waiting)
        asked = counted(store)
        for _ in range(100):
            with pytest.raises(Lost):
                await store.read([(KEY, NEVER)])
        assert len(asked) <= 2, "at most a trial beside the calls"
        assert store.gone
        assert len(said) == 1, "said once"
        if LONG:
            assert took < SHORT_S + 0.1
        server.thaw()
        await well(store)
        found = await asyncio.gather(*(store.read([(key, NEVER)]) for key in keys))
        assert [one[0].entries[0][1] for one in found] == [key.id.encode() for key in keys], "nobody hears another's answer"
        assert len(said) == 2
        await store.close()

    with redis_server(tmp_path) as server:
        run(lambda: main(server))


def test_a_limit_ends_nobody_else(tmp_path: Path) -> None:
    """A hook begins within the task of its client's connection, and goes on in one of its own."""

    async def main(server: RedisServer) -> None:
        store = RedisStore(patient(server.url, SHORT_S))
        await store.put([Put(KEY, "", b"x")])
        server.freeze()
        begun = begin(store.read([(KEY, NEVER)]))
        assert not isinstance(begun, Done)
        (outcome,) = await asyncio.gather(asyncio.ensure_future(begun), return_exceptions=True)
        assert isinstance(outcome, Lost)
        await asyncio.sleep(0.01)  # whoever began it goes on
        server.thaw()
        await store.close()

    with redis_server(tmp_path) as server:
        run(lambda: main(server))


def test_what_may_have_been_done_is_not_done_again(tmp_path: Path) -> None:
    async def main(server: RedisServer) -> None:
        store = RedisStore(patient(server.url, SHORT_S))
        await store.change(KEY, lambda old: b"0")
        known = ((await store.read([(KEY, NEVER)]))[0].version, b"0")
        server.freeze()
        with pytest.raises(Lost):
            await store.change(KEY, lambda old: old + b"1", known)
        server.thaw()
        await well(store)
        assert await value(store) in (b"0", b"01")
        await store.close()

    with redis_server(tmp_path) as server:
        for _ in range(20 if LONG else 1):
            run(lambda: main(server))


def test_started_anew_nobody_notices(tmp_path: Path) -> None:
    """The scripts are gone, the connections are: a read and a put find the new one."""

    async def main(server: RedisServer) -> None:
        store = RedisStore(patient(server.url))
        await store.put([Put(KEY, "", b"kept")])
        server.kill()
        server.start()
        assert await value(store) == b"kept"
        await store.put([Put(KEY, "", b"new")])
        assert await value(store) == b"new"
        await store.close()

    with redis_server(tmp_path, "--appendonly", "yes", "--appendfsync", "always") as server:
        run(lambda: main(server))


def test_a_loop_that_stood_still_hears_what_came_meanwhile(tmp_path: Path) -> None:
    async def main(server: RedisServer) -> None:
        store = RedisStore(patient(server.url, 0.2))
        with contextlib.suppress(Lost):
            await store.put([Put(KEY, "", b"x")])
        await well(store)
        reading = asyncio.ensure_future(value(store))
        await asyncio.sleep(0)  # the question leaves
        await asyncio.sleep(0)
        time.sleep(0.5)  # noqa: ASYNC251 - that is what stands still
        assert await reading == b"x"
        await store.close()

    with redis_server(tmp_path) as server:
        run(lambda: main(server))


def test_gone(tmp_path: Path) -> None:
    async def main(server: RedisServer) -> None:
        store = RedisStore(patient(server.url))
        server.kill()
        with pytest.raises(Lost, match="cannot be reached"):
            await value(store)
        assert store.gone
        server.start()
        await well(store)
        assert await value(store) == b""
        await store.close()

    with redis_server(tmp_path) as server:
        run(lambda: main(server))


POSTPONED_S = 3.5
"""With `everysec` Redis acknowledges before it has written, while its disk is busy: for two seconds of its own clock."""


@pytest.mark.parametrize(
    "fsync, rounds, waits_s", [("always", 10 if LONG else 2, 0.0), ("everysec", 3 if LONG else 1, POSTPONED_S)]
)
def test_nothing_acknowledged_is_lost(fsync: str, rounds: int, waits_s: float, tmp_path: Path) -> None:
    """Killed in the middle of the work, again and again."""

    async def main(server: RedisServer) -> None:
        for round in range(rounds):
            store = RedisStore(patient(server.url))
            kept: dict[Key, bytes] = {}

            async def write(number: int, store: RedisStore, kept: dict[Key, bytes], round: int) -> None:
                for step in count():
                    key = Key(Kind.STATE, f"session:{round}-{number}")
                    entry = f"{step}".encode()
                    await store.change(key, lambda old, entry=entry: entry)
                    kept[key] = entry

            writers = [asyncio.ensure_future(write(number, store, kept, round)) for number in range(8)]
            while sum(map(int, kept.values())) < 200:  # noqa: ASYNC110 - its end is a matter of chance
                await asyncio.sleep(0.001)
            sure = dict(kept)
            await asyncio.sleep(waits_s)
            server.kill()
            await asyncio.gather(*writers, return_exceptions=True)
            sure = sure if waits_s else kept
            await store.close()
            server.start()
            store = RedisStore(patient(server.url))
            for key, entry in kept.items():
                (found,) = await store.read([(key, NEVER)])
                now = int(dict(found.entries)[""])
                assert int(sure.get(key, b"0")) <= now <= int(entry) + 1, (
                    "the last one may have been done and not be acknowledged"
                )
            await store.close()

    with redis_server(tmp_path, "--appendonly", "yes", "--appendfsync", fsync) as server:
        run(lambda: main(server))


REFUSALS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "memory": (("CONFIG", "SET", "maxmemory", "1"), ("CONFIG", "SET", "maxmemory", "0")),
    "READONLY": (("REPLICAOF", "127.0.0.1", "1"), ("REPLICAOF", "NO", "ONE")),
    "NOREPLICAS": (("CONFIG", "SET", "min-replicas-to-write", "1"), ("CONFIG", "SET", "min-replicas-to-write", "0")),
}


@pytest.mark.parametrize("word", REFUSALS)
def test_a_server_that_does_not_let_us_write_counts_as_gone(word: str, tmp_path: Path) -> None:
    """Full, a replica of another one since somebody switched over, or one that has lost its own; nothing is set aside for it."""
    begins, ends = REFUSALS[word]

    async def main(server: RedisServer) -> None:
        store = RedisStore(patient(server.url))
        await store.put([Put(KEY, "", b"before")])
        await store._asked(*begins)
        with pytest.raises(Lost):
            await store.put([Put(KEY, "", b"x")])
        assert word in store.gone
        await store._ask(ends, again=False, script="")
        await well(store)
        assert await value(store) == b"before"
        await store.put([Put(KEY, "", b"x")])
        assert await value(store) == b"x"
        assert not any(b"damaged" in name for name in await store._asked("KEYS", "*"))
        await store.close()

    with redis_server(tmp_path) as server:
        run(lambda: main(server))


def test_only_with_a_name_and_a_password(tmp_path: Path) -> None:
    """The rights that `docs/state.md` names are enough, also for Redis itself when it reads back what it wrote. A password is
    told to nobody."""
    rights = "~routecodex:* +@read +@write +@scripting +@connection -@dangerous"
    users = tmp_path / "users.acl"
    users.write_text(f"user default off ~* &* +@all\nuser proxy on >secret-word {rights}\n")

    async def main(server: RedisServer) -> None:
        place = f"127.0.0.1:{server.port}/0"
        store = RedisStore(patient(f"redis://proxy:secret-word@{place}"))
        await store.put([Put(KEY, "", b"x"), Put(Key(Kind.HIDDEN, "session:a"), "p", b"y")])
        assert await value(store) == b"x"
        assert await store.claim(["t"], "me", 10) == {"t"}
        await store.release(["t"], "me")
        assert await store.scan(Kind.STATE) == ["session:a"]
        server.kill()
        server.start()
        assert await value(store) == b"x"
        assert await store.erase([KEY]) == 1
        await store.close()
        for wrong in (f"redis://proxy:secret-wrong@{place}", f"redis://{place}"):
            store = RedisStore(patient(wrong))
            with pytest.raises(Lost) as lost:
                await value(store)
            assert "secret" not in str(lost.value.message) + store.gone + store.place
            await store.close()

    keeps = ("--appendonly", "yes", "--appendfsync", "always")
    with redis_server(tmp_path / "data", "--aclfile", str(users), *keeps) as server:
        run(lambda: main(server))


def test_over_tls(tmp_path: Path) -> None:
    authority, own = provider_authority(), provider_authority().server_file("localhost")

    async def main(server: RedisServer) -> None:
        place = f"127.0.0.1:{server.port}/0"
        store = RedisStore(patient(f"rediss://{place}?ssl_ca_certs={authority.path}"))
        await store.put([Put(KEY, "", b"x")])
        assert await value(store) == b"x"
        await store.close()
        store = RedisStore(patient(f"rediss://{place}"))
        with pytest.raises(Lost, match="certificate"):
            await value(store)
        await store.close()

    files = ("--tls-cert-file", str(own), "--tls-key-file", str(own), "--tls-ca-cert-file", str(authority.path))
    with redis_server(tmp_path / "data", *files, "--tls-auth-clients", "no", tls=True) as server:
        run(lambda: main(server))


def test_conversations_move_from_files_to_redis_and_back(tmp_path: Path) -> None:
    """By the command: tags, reminders and hidden rounds, whatever the ids hold; and no entry is another one afterwards."""
    sessions = tmp_path / "sessions"
    for key in (
        SessionKey("session", "abc-1"),
        SessionKey("session", "@alice:é/..\u2028"),
        SessionKey("conversation", "c" * 300),
    ):
        FileStore(sessions).update(key, lambda state: state.with_(sticky=Sticky("glm", model="m")))
        ClockStore(sessions).update(key.id, lambda _, key=key: [Task("t1", key.id, 5, 5, 5, "look\n\u2028ü")])  # type: ignore[misc]
        for number in range(3):
            HiddenStore(sessions).add(key, hidden_round(number))

    def routecodex(sessions: str, *words: str) -> None:
        environment = {**os.environ, "ROUTECODEX_SESSION_DIR": str(tmp_path / sessions), "ROUTECODEX_USER_DIR": str(tmp_path)}
        command = [sys.executable, str(MAIN), "sessions", *words]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        assert "15 entries" in done.stderr

    def exported(name: str) -> list[str]:
        assert (tmp_path / name).stat().st_mode & 0o077 == 0
        return sorted((tmp_path / name).read_bytes().decode().split("\n"))

    (tmp_path / "other").mkdir()
    for folder in ("sessions", "other"):
        (tmp_path / folder / "routing-one.json").write_text("{}")
    with redis_server(tmp_path / "redis") as server:
        routecodex("sessions", "export", str(tmp_path / "out"))
        for _ in range(2):
            routecodex("sessions", "import", str(tmp_path / "out"), "--store", server.url)
        routecodex("sessions", "export", str(tmp_path / "back"), "--store", server.url)
        routecodex("other", "import", str(tmp_path / "back"))
        routecodex("other", "export", str(tmp_path / "again"))
    assert exported("out") == exported("back") == exported("again")


BAD = {
    "redis://u:pa/ss-word@127.0.0.1:6379/0": "must be files or an address",
    "redis://u:pass-word@127.0.0.1:1/0?timeout=5": "unexpected keyword argument 'timeout'",
    "redis://u:pass-word@127.0.0.1:1/0?socket_timeout=soon": "Invalid value for 'socket_timeout'",
    "redis://u:pass-word@127.0.0.1:1/0?wait=nan": "wait must be a number of seconds above 0",
}


@pytest.mark.system
@pytest.mark.parametrize("address", BAD)
def test_an_address_that_is_none_is_told_before_anything_starts(address: str, tmp_path: Path) -> None:
    """Not at the first call, and not with a part of the password."""
    said = subprocess.run(
        [sys.executable, str(MAIN), "sessions", "export", "-", "--store", address],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "HOME": str(tmp_path)},
    )
    with pytest.raises(DidNotStart) as ended:
        Mitmdump(script=SCRIPT, config=f'sessions: {{store: "{address}"}}\n{CONFIG}', folder=tmp_path / "proxy").start()
    assert said.returncode == 2
    for told in (said.stderr, str(ended.value)):
        assert BAD[address] in told
        assert not any(word in told for word in ("ss-word", "'pa'", "Traceback"))


CONFIG = configured({"p": (1, "m")}, "    default: [p.m]\n", '  clock: {"enabled": true, "ntp": {"enabled": false}}\n')


@pytest.mark.system
def test_calls_while_the_store_is_gone(tmp_path: Path) -> None:
    """One proxy refuses what needs a session, one goes on with what it knows; both say so, and neither does anything twice."""
    with ExitStack() as stack:
        provider = stack.enter_context(FakeProvider())
        server = stack.enter_context(redis_server(tmp_path / "redis"))
        short = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rc-")))  # a socket's path must be
        refusing, going_on = (
            stack.enter_context(
                Mitmdump(
                    script=SCRIPT,
                    config=f'sessions: {{store: "{server.url}?wait={SHORT_S}", onStoreLost: {way}, derive: "off"}}\n{CONFIG}',
                    upstream=provider,
                    folder=short / way,
                )
            )
            for way in ("refuse", "local")
        )
        provider.script(lambda received: Behaviour(reply=Reply("done")))
        talk = Talk(provider, going_on)

        def say(text: str, proxy: Mitmdump, session: str | None = talk.session) -> Heard:
            talk.proxy, talk.session = proxy, session
            talk.typed = [("user", text)]
            return talk._exchange(())

        session = talk.session
        assert "stopMessage is set" in say('<**stopMessage:"go on",2**>', going_on).text
        server.freeze()
        until(lambda: say("hi", going_on).answer.status == 200 and "cannot be reached" in going_on.log, "it notices nothing")
        until(lambda: say("hi", refusing).answer.status == 503, "it does not refuse")
        heard = say("start", going_on)
        assert (heard.answer.status, len(heard.received)) == (200, 1), "it goes on, and no stopMessage does"
        refused = say("hi", refusing)
        assert refused.error["code"] == "STORE_LOST"
        asks_again = [refused.answer.header(name) for name in ("retry-after", "x-should-retry")]
        assert asks_again == ["1", None], "it comes to another proxy, or to this one when the store is back"
        assert len(say("hi", refusing, None).received) == 1, "what has no session needs no store"
        assert "cannot be reached" in say("<**!p.m**>", going_on, session).text, "nothing changes"
        told = say("<**status**>", going_on)
        assert (told.answer.status, "cannot be reached" in told.text) == (200, True), "who only asks is answered"
        asked = Server(f"127.0.0.1_{going_on.port}", going_on.sessions).ask("status")
        assert any("cannot be reached" in line for line in asked["warnings"])
        assert going_on.log.count("cannot be reached") < 8, "said when it changes, not at every call"
        server.thaw()
        until(lambda: "is there again" in going_on.log and "is there again" in refusing.log, "it stays gone")
        assert len(say("start", refusing).received) == 3, "nothing of it was used up or forgotten"
        assert len(say("start", going_on).received) == 1


def _asked(server: RedisServer, act: Callable[[], object]) -> list[tuple[str, list[str]]]:
    """What the server was asked meanwhile: each operation's script, and the keys it names."""
    import redis

    with redis.Redis(port=server.port, protocol=2) as client, client.monitor() as monitor:
        with redis.Redis(port=server.port, protocol=2) as other:
            act()
            other.echo("over")
        found = []
        for said in monitor.listen():
            words = str(said["command"]).split()
            if words[0] == "ECHO":
                return found
            if words[0] == "EVALSHA" and said["client_type"] != "lua":
                found.append((words[1], words[3 : 3 + int(words[2])]))
        raise AssertionError


@pytest.mark.system
def test_what_a_call_asks(tmp_path: Path) -> None:
    """One that names no session asks nothing; any other once, before anything is decided; a hop tells nothing new."""
    with (
        redis_server(tmp_path / "redis") as server,
        FakeProvider() as provider,
        tempfile.TemporaryDirectory(prefix="rc-") as short,
        Mitmdump(
            script=SCRIPT,
            config=f'sessions: {{store: "{patient(server.url)}", derive: "off"}}\n{CONFIG}',
            upstream=provider,
            folder=Path(short),
        ) as proxy,
    ):
        reads = sha1(_READ.encode()).hexdigest()
        talk = Talk(provider, proxy)
        talk.typed.append(("user", "hello"))
        talk.send()
        for session, entry, hops in (
            (None, ("user", "hello"), False),
            (talk.session, ("user", "one"), False),
            (talk.session, ("hop", "done"), True),
            (talk.session, ("user", "<**!p.m**> two"), False),
        ):
            talk.session = session
            talk.typed.append(entry)
            asked = _asked(server, talk.send)
            mine = [(script, keys) for script, keys in asked if session and any(session in key for key in keys)]
            asks = [keys for script, keys in asked if script == reads and keys != ["routecodex:server:"]]
            assert len(asks) == (1 if session else 0), asked
            assert not session or mine[0][0] == reads, "before it changes anything"
            assert not hops or len(mine) == 1, asked


@pytest.mark.system
def test_what_commands_say_while_the_store_is_gone(tmp_path: Path) -> None:
    """That it is gone, not that nothing is kept; and what is to happen meanwhile may be written down while it is."""
    with (
        tempfile.TemporaryDirectory(prefix="rc-") as short,
        redis_server(tmp_path / "redis", "--requirepass", "secret-word") as server,
        Door(Path(short)) as door,
    ):
        file = door.home / ".config" / "routecodex" / "mitm-config.yaml"
        file.parent.mkdir(parents=True)
        config = f'virtualrouter: {{routing: {{default: [echo]}}}}\nsessions: {{store: "{server.url}?wait=60"'
        config = config.replace("//", "//:secret-word@")
        file.write_text(f"{config}}}\n")
        assert door.ask("<**!echo**>")["told"][0].startswith("[RouteCodex] Only these providers are used: echo.")
        door.run("start")
        assert "s-1" in door.run("sessions").stdout
        server.kill()
        until(lambda: "cannot be reached" in door.log, "it notices nothing")
        assert "cannot be reached" in door.run("status").stdout
        assert any("cannot be reached" in line for line in door.status()["warnings"])
        for words in (["sessions"], ["sessions", "--json"], ["sessions", "show", "s-1"], ["sessions", "clear", "s-1"]):
            said = door.run(*words)
            assert (said.returncode, "cannot be reached" in said.stdout + said.stderr) == (1, True), words
        assert "cannot be reached" in door.ask("hello")["told"][0]
        file.write_text(f"{config}, onStoreLost: local}}\n")
        until(lambda: "Configuration reloaded" in door.log, "it is not read again")
        assert door.ask("hello")["told"] == ["hello"]
        file.write_text(f"{config}, onStoreLost: refuse}}\n")
        until(lambda: door.log.count("Configuration reloaded") == 2, "it is not read again")
        assert "cannot be reached" in door.ask("hello")["told"][0]
        assert "secret-word" not in door.log
