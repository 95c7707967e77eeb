"""One contract, whoever serves it: the file of one machine's processes, and Redis where a server is found."""

from __future__ import annotations

import asyncio
import itertools
import tempfile
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from routecodex.routing.storage.contract import BOUNDS, NEVER, Bounds, Busy, Found, Key, Kind, Put, Store, Version, read_all
from routecodex.routing.storage.shared_file import SharedFile
from tests.conftest import LONG
from tests.rig.redis_server import IS_THERE, RedisServer, redis_server

T = TypeVar("T")

ENGINES = ["file", *(["redis"] if IS_THERE else [])]
KEYS = st.sampled_from(
    [Key(Kind.STATE, "session:a"), Key(Kind.STATE, "session:b:o"), Key(Kind.HIDDEN, "session:a"), Key(Kind.MEMO, "\ud800é")]
)
PLACES = st.sampled_from(["", "one", "two", "p three", "\ud800"])
ENTRIES = st.sampled_from([b"", b"x", b"yy" * 20, bytes(range(256)), b"longest" * 30])
OWNERS = st.sampled_from(["me", "you"])
NAMES = st.sets(st.sampled_from(["t1", "t2", "t3"]), min_size=1)
WHO = st.sampled_from([0, 1])
_NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer | None]:
    if not IS_THERE:
        yield None
        return
    with redis_server(tmp_path_factory.mktemp("redis")) as running:
        yield running


@pytest.fixture(params=ENGINES)
def open_store(request: pytest.FixtureRequest, server: RedisServer | None, tmp_path: Path) -> Callable[[], Store]:
    """Another process's view of the same."""
    return opener(request.param, server, tmp_path)


def opener(engine: str, server: RedisServer | None, folder: Path) -> Callable[[], Store]:
    number = next(_NUMBERS)

    def open_one() -> Store:
        if engine == "file":
            return SharedFile(folder / str(number), asyncio.to_thread, wall=lambda: 1000.0)
        from routecodex.addons.redis_store import RedisStore

        assert server is not None
        return RedisStore(f"{server.url}?prefix=test{number}&wait=60", retention_s=60)

    return open_one


class Contract(RuleBasedStateMachine):
    """Two processes, and a plain account of what they did."""

    engine = "file"
    server: RedisServer | None = None

    @initialize()
    def begin(self) -> None:
        self.runner = asyncio.Runner()
        self.folder = tempfile.TemporaryDirectory()
        open_one = opener(self.engine, self.server, Path(self.folder.name))
        self.stores = [open_one(), open_one()]
        self.kept: dict[Key, dict[str, bytes]] = {}
        """The newest last."""
        self.seen: list[dict[Key, tuple[Version, dict[str, bytes]]]] = [{}, {}]
        """What each process knows, made of what it was told alone."""
        self.claims: dict[str, str] = {}

    def teardown(self) -> None:
        if hasattr(self, "runner"):
            for store in self.stores:
                self.run_(store.close())
            self.runner.close()
            self.folder.cleanup()

    def run_(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    @rule(who=WHO, puts=st.lists(st.tuples(KEYS, PLACES, ENTRIES), min_size=1, max_size=4))
    def put(self, who: int, puts: list[tuple[Key, str, bytes]]) -> None:
        puts = [(key, "" if BOUNDS[key.kind].entries == 1 else place, entry) for key, place, entry in puts]
        puts = [one for one in puts if one[0].kind is not Kind.STATE or one[2]]
        if puts:
            self.run_(self.stores[who].put([Put(*one) for one in puts]))
        for key, place, entry in puts:
            self.kept.setdefault(key, {}).pop(place, None)
            self.kept[key][place] = entry
        for key in {one[0] for one in puts}:
            self.bound(key)

    def bound(self, key: Key) -> None:
        entries, bounds = self.kept[key], BOUNDS[key.kind]
        while len(entries) > bounds.entries or (sum(map(len, entries.values())) > bounds.bytes and len(entries) > 1):
            del entries[next(iter(entries))]

    @rule(who=WHO, key=KEYS.filter(lambda key: key.kind is Kind.STATE), add=ENTRIES, stale=st.booleans())
    def change(self, who: int, key: Key, add: bytes, stale: bool) -> None:
        """Also from what this process saw long ago."""
        version, entries = self.seen[who].get(key, (NEVER, {}))
        known = (version, entries.get("", b"")) if stale else None
        tried: list[bytes] = []

        def change(old: bytes) -> bytes:
            tried.append(old)
            return old[:20] + add if add else b""

        before = self.kept.get(key, {}).get("", b"")
        _, now = self.run_(self.stores[who].change(key, change, known))
        assert tried[-1] == before, "the last try sees what is there"
        assert now == (before[:20] + add if add else b"")
        self.kept[key] = {"": now} if now else {}

    @rule(who=WHO, keys=st.lists(KEYS, min_size=1, max_size=4, unique=True))
    def read(self, who: int, keys: list[Key]) -> None:
        seen = self.seen[who]
        while keys:
            found = self.run_(self.stores[who].read([(key, seen.get(key, (NEVER, {}))[0]) for key in keys]))
            keys = [key for key, one in zip(keys, found, strict=True) if self.heard(seen, key, one)]

    def heard(self, seen: dict[Key, tuple[Version, dict[str, bytes]]], key: Key, one: Found) -> bool:
        """Whether there is more."""
        before = {} if one.whole else dict(seen.get(key, (NEVER, {}))[1])
        for place, entry in one.entries:
            before.pop(place, None)
            before[place] = entry
        seen[key] = (one.version, before)
        kept = self.kept.get(key, {})
        known = list(before.items())[-len(kept) :] if kept else []
        assert one.more or known == list(kept.items()), "nothing is missed, in its order"
        assert kept or one.version == NEVER
        return one.more

    @rule(who=WHO, keys=st.sets(KEYS, min_size=1))
    def erase(self, who: int, keys: set[Key]) -> None:
        assert self.run_(self.stores[who].erase(keys)) == sum(bool(self.kept.pop(key, {})) for key in keys)

    @rule(who=WHO, names=NAMES, owner=OWNERS)
    def claim(self, who: int, names: set[str], owner: str) -> None:
        free = {name for name in names if self.claims.get(name, owner) == owner}
        assert self.run_(self.stores[who].claim(names, owner, 100)) == free
        self.claims |= dict.fromkeys(free, owner)

    @rule(who=WHO, names=NAMES, owner=OWNERS)
    def release(self, who: int, names: set[str], owner: str) -> None:
        self.run_(self.stores[who].release(names, owner))
        self.claims = {name: holder for name, holder in self.claims.items() if name not in names or holder != owner}

    @rule(who=WHO, kind=st.sampled_from(Kind))
    def scan(self, who: int, kind: Kind) -> None:
        ids = [key.id for key, entries in self.kept.items() if key.kind is kind and entries]
        assert self.run_(self.stores[who].scan(kind)) == sorted(ids)


@pytest.mark.parametrize("engine", ENGINES)
def test_the_contract(engine: str, server: RedisServer | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small bounds, so that they are met; little is read at once."""
    monkeypatch.setitem(BOUNDS, Kind.HIDDEN, Bounds(0, entries=3, bytes=300))
    if engine == "redis":
        monkeypatch.setattr("routecodex.addons.redis_store.PIECE_BYTES", 40)
    machine = type("Machine", (Contract,), {"engine": engine, "server": server})
    often = settings(settings(), max_examples=2_000 if LONG else 15, stateful_step_count=25)
    run_state_machine_as_test(machine, settings=often)


def test_many_writers_of_one_key(open_store: Callable[[], Store]) -> None:
    """None is lost, whatever they had read before."""

    async def write() -> bytes:
        stores = [open_store() for _ in range(8)]
        key = Key(Kind.STATE, "session:a")

        async def writer(store: Store) -> None:
            known, left = None, 5
            while left:
                try:
                    known = await store.change(key, lambda old: old + b"x", known)
                    left -= 1
                except Busy:  # nothing was changed
                    known = None

        await asyncio.gather(*map(writer, stores))
        _, now = await stores[0].change(key, lambda old: old)
        for store in stores:
            await store.close()
        return now

    assert asyncio.run(write()) == b"x" * 40


def test_a_long_shelf_comes_in_pieces(open_store: Callable[[], Store]) -> None:
    """And whole."""

    async def work() -> None:
        store, keys = open_store(), [Key(Kind.HIDDEN, "session:a"), Key(Kind.STATE, "session:a"), Key(Kind.HIDDEN, "session:b")]
        entries = [(str(number), bytes([number]) * 200_000) for number in range(30)]
        for place, entry in entries:
            await store.put([Put(keys[0], place, entry), Put(keys[1], "", b"x"), Put(keys[2], "p", b"y")])
        assert await read_all(store, keys) == [entries, [("", b"x")], [("p", b"y")]]
        await store.close()

    asyncio.run(work())


def test_what_fails_in_a_change_changes_nothing(open_store: Callable[[], Store]) -> None:
    async def work() -> None:
        store, key = open_store(), Key(Kind.STATE, "session:a")
        await store.put([Put(key, "", b"before")])

        def fails(old: bytes) -> bytes:
            raise ValueError("no")

        with pytest.raises(ValueError, match="no"):
            await store.change(key, fails)
        assert (await store.read([(key, NEVER)]))[0].entries == (("", b"before"),)
        await store.close()

    asyncio.run(work())
