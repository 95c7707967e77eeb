"""A neighbour who may write into the Redis that proxies share: what they put there costs the shelf that it lies on, and is set
aside; every other session goes on, nobody waits, and nothing is remembered without a bound."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from routecodex.addons.redis_store import RedisStore
from routecodex.routing.jsonbytes import dumps
from routecodex.routing.storage.contract import BOUNDS, NEVER, Key, Kind, Put
from tests.rig.behaviour import Behaviour
from tests.rig.provider import FakeProvider
from tests.rig.proxy import SCRIPT, Mitmdump
from tests.rig.redis_server import RedisServer, redis_server
from tests.rig.reply import Reply
from tests.system.talk import Talk, configured
from tests.trouble.test_redis import patient, run

P = "routecodex"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with redis_server(tmp_path_factory.mktemp("redis")) as running:
        yield running


@pytest.fixture
def neighbour(server: RedisServer) -> Iterator[Any]:
    client = redis.Redis(port=server.port)
    client.flushall()
    yield client
    client.close()


def order_of(name: str) -> str:
    return name.replace(f"{P}:", f"{P}:order-", 1)


HOSTILE: dict[str, Callable[[Any, str], object]] = {
    "a text": lambda db, name: (db.delete(name), db.set(name, "x")),
    "a list": lambda db, name: (db.delete(name), db.rpush(name, "x", "y")),
    "a set": lambda db, name: (db.delete(name), db.sadd(name, "x")),
    "a stream": lambda db, name: (db.delete(name), db.xadd(name, {"a": "b"})),
    "no number": lambda db, name: db.hdel(name, "s"),
    "no birth": lambda db, name: db.hdel(name, "b"),
    "another birth": lambda db, name: db.hset(name, "b", "a,1,2,3;b,"),
    "half a letter": lambda db, name: db.hset(name, "b", b"\xff\xfe"),
    "an endless birth": lambda db, name: db.hset(name, "b", "a" * 100_000),
    "a negative number": lambda db, name: db.hset(name, "s", "-5"),
    "a fraction": lambda db, name: db.hset(name, "s", "1.5"),
    "a word for a number": lambda db, name: db.hset(name, "s", "nan"),
    "the largest number": lambda db, name: db.hset(name, "s", "9223372036854775807"),
    "no entry": lambda db, name: [db.hdel(name, field) for field in db.hkeys(name) if field.startswith(b"p")],
    "an entry longer than any": lambda db, name: [
        db.hset(name, field, b"x" * (BOUNDS[Kind(name.split(":")[1])].bytes + 1))
        for field in db.hkeys(name)
        if field.startswith(b"p")
    ],
    "an order of another type": lambda db, name: (db.delete(order_of(name)), db.set(order_of(name), "x")),
    "an order without end": lambda db, name: db.zadd(order_of(name), {"x": float("inf")}),
    "an order of fractions": lambda db, name: db.zadd(order_of(name), {"x": 1.5}),
    "an order before all": lambda db, name: db.zadd(order_of(name), {"x": -1}),
    "a size that is none": lambda db, name: db.hset(name, "z", "many"),
    "nothing at all in it": lambda db, name: (db.delete(name), db.hset(name, "else", "x")),
}
MAY_BE_READ = {"no birth", "a size that is none", "a negative number", "nothing at all in it", "an order before all"}
"""As what is not there, or as it is."""
ONLY_ORDERED = {name for name in HOSTILE if "order" in name or "size" in name}


@pytest.mark.parametrize("kind", [Kind.STATE, Kind.TASKS, Kind.HIDDEN, Kind.SERVER])
@pytest.mark.parametrize("hostile", HOSTILE)
def test_what_is_none_of_ours_is_set_aside(server: RedisServer, neighbour: Any, kind: Kind, hostile: str) -> None:
    """It made every session's calls wait for a store that was well: again and again, for as long as it lay there."""
    ordered = BOUNDS[kind].entries > 1
    if hostile in ONLY_ORDERED and not ordered:
        return
    key, other = Key(kind, "session:a"), Key(kind, "session:b")
    place, said, put_aside = "at" if ordered else "", list[str](), set[str]()

    async def main() -> None:
        for work in ("read", "read of what is known", "put", "change"):
            if work == "change" and ordered:
                continue
            store = RedisStore(patient(server.url), heard=said.append)
            await store.put([Put(key, place, b"one"), Put(other, place, b"another")])
            known = (await store.read([(key, NEVER)]))[0].version
            said.clear()
            HOSTILE[hostile](neighbour, f"{P}:{kind}:session:a")
            match work:
                case "put":
                    await store.put([Put(key, place, b"two")])
                case "change":
                    assert (await store.change(key, lambda old: b"two", (known, b"one")))[1] == b"two"
                case _:
                    await store.read([(key, NEVER if work == "read" else known), (other, NEVER)])
            mine, theirs = await store.read([(key, NEVER), (other, NEVER)])
            assert theirs.entries == ((place, b"another"),), work
            assert mine.entries in ((), ((place, b"two"),)) or hostile in MAY_BE_READ, work
            assert store.gone == "", work
            aside = f"{P}:damaged:{kind}:session:a"
            assert [f"set aside as {aside}" in one for one in said] == [True] * neighbour.exists(aside), (work, said)
            if neighbour.exists(aside):
                put_aside.add(work)
                assert neighbour.pttl(aside) > 0
            await store.put([Put(key, place, b"three")])
            assert (await store.read([(key, NEVER)]))[0].entries == ((place, b"three"),), work
            neighbour.flushall()
            await store.close()

    run(main)
    assert put_aside or hostile in MAY_BE_READ


def test_claims_of_other_types_hold_nobody_up(server: RedisServer, neighbour: Any) -> None:
    """Also the one that a store tries whether all is well again."""

    async def main() -> None:
        store = RedisStore(patient(server.url))
        for name in ("task:1", "trial"):
            neighbour.rpush(f"{P}:claim:{name}", "x")
        assert await store.claim(["task:1", "task:2"], "me", 30) == {"task:1", "task:2"}
        neighbour.delete(f"{P}:claim:task:2")
        neighbour.sadd(f"{P}:claim:task:2", "x")
        await store.release(["task:1", "task:2"], "me")
        assert not neighbour.exists(f"{P}:claim:task:1")
        store._lose("for a try")
        async with asyncio.timeout(30):
            while store.gone:  # noqa: ASYNC110 - the store tells nobody but people
                await asyncio.sleep(0.02)
        await store.close()

    run(main)


CONFIG = configured({"p": (2, "m")}, "    default: [p.m]\n", '  clock: {"enabled": true, "ntp": {"enabled": false}}\n')
LONG = "l" * 1_000_000
ENTRIES: dict[str, dict[str, object]] = {
    f"{P}:server:": {
        'health:["p","k1","m"]': {"since": 1e300, "length": 1e300, "shut": True, "rateSteps": -5, "probe": "x", "reason": [1]},
        "health:[1,2]": {"length": -1},
        "health:{": {},
        "turn:default": {"a": 1e308, "b": -1e308},
        "turn:other": [1],
        f"turn:{LONG}": {"a": 1},
        "stays:x": ["p"],
        "stays:y": [LONG, LONG, LONG],
        "busy:one": [-(10**6), 10**6, 2**62],
        "busy:two": [1, "x", None],
        "unknown:x": True,
    },
    f"{P}:memo:session:SESSION": {
        "seen": [-1, [2**62, "x", 1.5], "y"],
        "lapsed": [1, 2, 3],
        "pin:0:x": ["nobody", "no", "never"],
        "pin:0:y": {"a": 1},
        "end:0:x": "yes",
        **{f"told:{number}{'t' * 500}": True for number in range(100)},
    },
    f"{P}:seals:session:SESSION": {"zz": 1, "00": LONG, "": ""},
}
WHOLE = {
    "broken JSON": b"{",
    "another format": b'{"version": 99, "state": {"stickyTarget": {"provider": 5}}, "tasks": 3}',
    "NaN": b'{"state": {"stopMessageText": "x", "stopMessageMaxRepeats": NaN}}',
    "a negative count": b'{"state": {"stopMessageText": "x", "stopMessageMaxRepeats": -3, "stopMessageUsed": -9}}',
    "no text": b"\xff\xfe\x00",
    "lists in lists": b"[" * 100_000,
    "the far future": b'{"tasks": [{"taskId": "t", "sessionId": "SESSION", "dueAtMs": 9e300, "setAtMs": -1, "task": 5}]}',
}


@pytest.mark.system
@pytest.mark.parametrize("way", ["refuse", "local"])
def test_a_proxy_beside_a_hostile_neighbour(server: RedisServer, neighbour: Any, way: str) -> None:
    with (
        FakeProvider() as provider,
        tempfile.TemporaryDirectory(prefix="rc-") as short,
        Mitmdump(
            script=SCRIPT,
            config=f'sessions: {{store: "{patient(server.url, 20)}", onStoreLost: {way}, derive: "off"}}\n{CONFIG}',
            upstream=provider,
            folder=Path(short),
        ) as proxy,
    ):
        provider.script(lambda received: Behaviour(reply=Reply("done")))
        talk = Talk(provider, proxy)
        session = str(talk.session)

        def answered() -> None:
            """The session itself, another one, and one that names none."""
            for one in (session, "somebody-else", None):
                talk.typed, talk.session = [("user", "hello")], one
                heard = talk._exchange(())
                assert heard.answer.status == 200, (one, heard.answer.text, proxy.log[-2000:])
                assert len(heard.received) == 1
            talk.session = session

        talk.say("<**!p.m**>")
        answered()
        for name, entries in ENTRIES.items():
            name = name.replace("SESSION", session)
            for place, value in entries.items():
                neighbour.hset(name, f"p{place}", dumps(value))
                neighbour.hsetnx(name, "b", "b" * 32)
                neighbour.zadd(order_of(name), {place: neighbour.hincrby(name, "s", 1)})
        answered()
        for kind in ("state", "tasks", "hidden"):
            name = f"{P}:{kind}:{'' if kind == 'tasks' else 'session:'}{session}"
            for raw in WHOLE.values():
                neighbour.delete(name, order_of(name))
                place = "x" if kind == "hidden" else ""
                neighbour.hset(
                    name, mapping={"b": "c" * 32, "s": 7, "z": len(raw), f"p{place}": raw.replace(b"SESSION", session.encode())}
                )
                if kind == "hidden":
                    neighbour.zadd(order_of(name), {place: 7})
                answered()
        neighbour.delete(f"{P}:state:session:{session}")
        neighbour.hset(
            f"{P}:state:session:{session}", mapping={"b": "d" * 32, "s": 9, "p": b'{"state": {"allowedProviders": ["p"'}
        )
        assert "p" in talk.say("<**!p.m**>").text
        assert neighbour.hget(f"{P}:damaged:state:session:{session}", "p") == b'{"state": {"allowedProviders": ["p"'
        for hostile in ("a text", "no number", "the largest number", "nothing at all in it"):
            for kind in ("server", "memo", "state", "tasks", "hidden"):
                HOSTILE[hostile](
                    neighbour,
                    f"{P}:{kind}:{'' if kind in ('tasks', 'server') else 'session:'}{session if kind != 'server' else ''}",
                )
            answered()
        proxy.stop()
        assert "cannot be reached" not in proxy.log
        assert "set aside" in proxy.log
        assert "RouteCodex failed in" not in proxy.log
        assert "Traceback" not in proxy.log
