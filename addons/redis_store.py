"""The contract (`routing/storage/contract.py`) served by a Redis that people already run: one script for each operation.

1. A shelf is a hash (its born and number, an entry each), and where it may hold several a sorted set with their order.
2. Each operation is one round trip and over within `PATIENCE_S`, whatever the server, the network or the client's own code do.
3. After a failure of any kind nobody waits any more: what is asked fails at once, until a trial beside the calls goes well.
4. Only what may be done twice is tried twice, and only where the connection broke: a server that was started anew.
5. A shelf that is not as it is written here (another type, no number, longer than any) is set aside under another name, and the
   operation done again: what somebody else put there costs that shelf, never the store.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Collection, Sequence
from hashlib import sha1
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit, urlunsplit

from redis import exceptions
from redis.asyncio import ConnectionPool
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from ..routing.storage.contract import BOUNDS, NEVER, Busy, Change, Found, Key, Kind, Lost, Put, Version
from .redis_line import STOOD_STILL_S, Line, Word

logger = logging.getLogger("routecodex")

PATIENCE_S = 0.24
"""With what a call takes by itself, a quarter of a second for the one that meets a server which is gone."""
PIECE_BYTES = 512 << 10
"""So much, and one entry more, is read in one operation: one conversation's past must not look like a server that is gone."""
_TRIES = 100
_PAUSE_S = 0.001
_FIRST_TRIAL_S = 0.1
_LONGEST_PAUSE_S = 1.0
_PREFIX = "routecodex"
_MOST = 10**15
_DAMAGED_MS = 30 * 86_400_000
"""So long what was set aside can be looked at."""

_ORDER = """
local function order_of(shelf)
    return ARGV[1] .. ':order-' .. string.sub(shelf, #ARGV[1] + 2)
end
"""
_READ = f"""{_ORDER}
local out, i, room = {{}}, 0, tonumber(ARGV[3])
for born, since, ttl, several, longest in string.gmatch(ARGV[2], '(%w*),(%d+),(%d+),(%d+),(%d+);') do
    i = i + 1
    local shelf = KEYS[i]
    ttl, several, longest = tonumber(ttl), several ~= '1', tonumber(longest)
    local head = redis.call('HMGET', shelf, 'b', 's')
    if not head[1] then
        out[i] = {{'', '0', '0'}}
    else
        local one = {{head[1], head[2], '0'}}
        if head[1] ~= born then since = '0' end
        if head[2] ~= since then
            if not several then
                if redis.call('HSTRLEN', shelf, 'p') > longest then error('too long') end
                one[4], one[5] = '', redis.call('HGET', shelf, 'p')
                room = room - #one[5]
            else
                local places = redis.call('ZRANGEBYSCORE', order_of(shelf), '(' .. since, '+inf', 'WITHSCORES')
                for at = 1, #places, 2 do
                    if room <= 0 then
                        one[2], one[3] = at > 1 and places[at - 1] or since, '1'
                        break
                    end
                    if redis.call('HSTRLEN', shelf, 'p' .. places[at]) > longest then error('too long') end
                    local entry = redis.call('HGET', shelf, 'p' .. places[at])
                    room = room - #entry
                    one[#one + 1], one[#one + 2] = places[at], entry
                end
            end
        end
        if ttl > 0 and redis.call('PTTL', shelf) < ttl * 0.9 then
            redis.call('PEXPIRE', shelf, ttl)
            if several then redis.call('PEXPIRE', order_of(shelf), ttl) end
        end
        out[i] = one
    end
end
return out
"""
_PUT = f"""{_ORDER}
local at = 3
for _, shelf in ipairs(KEYS) do
    local order = order_of(shelf)
    local ttl, most, bytes, count = tonumber(ARGV[at]), tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
    at = at + 4
    redis.call('HSETNX', shelf, 'b', ARGV[2])
    for _ = 1, count do
        local place, entry = ARGV[at], ARGV[at + 1]
        at = at + 2
        local number = redis.call('HINCRBY', shelf, 's', 1)
        if most > 1 then
            redis.call('HINCRBY', shelf, 'z', #entry - redis.call('HSTRLEN', shelf, 'p' .. place))
            redis.call('ZADD', order, number, place)
        end
        redis.call('HSET', shelf, 'p' .. place, entry)
    end
    if most > 1 then
        local held, size = redis.call('ZCARD', order), tonumber(redis.call('HGET', shelf, 'z'))
        while held > most or (size > bytes and held > 1) do
            local oldest = redis.call('ZPOPMIN', order)[1]
            size = redis.call('HINCRBY', shelf, 'z', 0 - redis.call('HSTRLEN', shelf, 'p' .. oldest))
            redis.call('HDEL', shelf, 'p' .. oldest)
            held = held - 1
        end
    end
    if ttl > 0 then
        redis.call('PEXPIRE', shelf, ttl)
        if most > 1 then redis.call('PEXPIRE', order, ttl) end
    end
end
return 1
"""
_CHANGE = """
local head = redis.call('HMGET', KEYS[1], 'b', 's', 'p')
if (head[1] or '') ~= ARGV[1] or (head[2] or '0') ~= ARGV[2] then
    return {0, head[1] or '', head[2] or '0', head[3] or ''}
end
if ARGV[3] == '' then
    redis.call('DEL', KEYS[1])
    return {1, '', '0'}
end
local born = head[1] or ARGV[4]
redis.call('HSET', KEYS[1], 'b', born, 'p', ARGV[3])
local number = redis.call('HINCRBY', KEYS[1], 's', 1)
if tonumber(ARGV[5]) > 0 then redis.call('PEXPIRE', KEYS[1], ARGV[5]) end
return {1, born, tostring(number)}
"""
_CLAIM = """
local taken = {}
for i, name in ipairs(KEYS) do
    local holder = redis.pcall('GET', name)
    if not holder or type(holder) == 'table' or holder == ARGV[1] then
        redis.call('SET', name, ARGV[1], 'PX', ARGV[2])
        taken[#taken + 1] = i
    end
end
return taken
"""
_RELEASE = """
for _, name in ipairs(KEYS) do
    if redis.pcall('GET', name) == ARGV[1] then redis.call('DEL', name) end
end
return 1
"""
_ASIDE = f"""{_ORDER}
local function is_sound(shelf, several, longest)
    local kind = redis.call('TYPE', shelf).ok
    if kind ~= 'hash' then return kind == 'none' and not (several and redis.call('EXISTS', order_of(shelf)) == 1) end
    local head = redis.call('HMGET', shelf, 'b', 's', 'z')
    if not head[1] or #head[1] > 64 or not string.find(head[1], '^%w+$') then return false end
    if not head[2] or #head[2] > 15 or not string.find(head[2], '^%d+$') then return false end
    if not several then return redis.call('HEXISTS', shelf, 'p') == 1 and redis.call('HSTRLEN', shelf, 'p') <= longest end
    local order = order_of(shelf)
    if not head[3] or #head[3] > 15 or not string.find(head[3], '^%-?%d+$') then return false end
    if redis.call('TYPE', order).ok ~= 'zset' then return false end
    local places = redis.call('ZRANGE', order, 0, -1, 'WITHSCORES')
    for at = 1, #places, 2 do
        local field, number = 'p' .. places[at], places[at + 1]
        if #number > 15 or not string.find(number, '^%d+$') then return false end
        if redis.call('HEXISTS', shelf, field) == 0 or redis.call('HSTRLEN', shelf, field) > longest then return false end
    end
    return true
end
local aside = {{}}
for i, shelf in ipairs(KEYS) do
    local several, longest = ARGV[2 * i] ~= '1', tonumber(ARGV[2 * i + 1])
    if not is_sound(shelf, several, longest) then
        local name = ARGV[1] .. ':damaged:' .. string.sub(shelf, #ARGV[1] + 2)
        for old, new in pairs({{[shelf] = name, [order_of(shelf)] = name .. ':order'}}) do
            if redis.call('EXISTS', old) == 1 then
                redis.call('RENAME', old, new)
                redis.call('PEXPIRE', new, {_DAMAGED_MS})
            end
        end
        aside[#aside + 1] = name
    end
end
return aside
"""
_SHA = {script: sha1(script.encode()).hexdigest() for script in (_READ, _PUT, _CHANGE, _CLAIM, _RELEASE, _ASIDE)}


class RedisStore:
    """Used from one loop."""

    def __init__(
        self,
        url: str,
        *,
        retention_s: float = 0,
        heard: Callable[[str], None] = lambda line: None,
        wait: Callable[[float], Any] = asyncio.sleep,
    ) -> None:
        """`url`: as redis-py reads it; `?prefix=…` tells installations apart that share a server, `?wait=…` says how many seconds
        an operation may take. `heard`: what a person should know, once a change."""
        self.retention_s = retention_s
        self.place, address, prefix, patience_s = parts_of(url)
        """Where it is, without a password."""
        self._prefix = prefix
        self._heard = heard
        self._wait = wait
        self._patience_s = patience_s
        self._pool = ConnectionPool.from_url(address, retry=Retry(NoBackoff(), 0), protocol=2)
        """Makes connections, and holds none."""
        self._line: Line | None = None
        self._dialling: asyncio.Future[Line] | None = None
        self._why = ""
        """Why nobody is asked now; empty while all is well."""
        self._trial: asyncio.Task[None] | None = None

    @property
    def gone(self) -> str:
        return self._told if self._why else ""

    async def read(self, wanted: Sequence[tuple[Key, Version]]) -> list[Found]:
        keys = [self._name(key) for key, _ in wanted]
        asked = "".join(
            f"{born},{number},{self._ttl_ms(key.kind)},{BOUNDS[key.kind].entries},{BOUNDS[key.kind].bytes};"
            for key, (born, number) in wanted
        )
        kinds = [key.kind for key, _ in wanted]
        for tries_left in (True, False):
            found = await self._shelved(_READ, keys, kinds, [self._prefix, asked, PIECE_BYTES], again=True)
            try:
                return [_found(one, known) for one, (_, known) in zip(found, wanted, strict=True)]
            except (ArithmeticError, LookupError, TypeError, ValueError, AttributeError) as error:
                if not (tries_left and await self._set_aside(keys, kinds)):
                    raise Lost(self._unreadable) from error
        raise AssertionError

    async def change(self, key: Key, change: Change, known: tuple[Version, bytes] | None = None) -> tuple[Version, bytes]:
        version, old = known if known is not None else await self._now(key)
        born, ttl = os.urandom(16).hex(), self._ttl_ms(key.kind)
        for _ in range(_TRIES):
            new = change(old)
            if new == old and known is None:
                return version, old
            done, *now = await self._shelved(_CHANGE, [self._name(key)], [key.kind], [*version, new, born, ttl])
            try:
                version = _version(now[0], now[1])
            except ValueError:
                if not await self._set_aside([self._name(key)], [key.kind]):
                    raise Lost(self._unreadable) from None
                version, old, known = NEVER, b"", None
                continue
            if done:
                return version, new
            old, known = now[2], None
            await asyncio.sleep(_PAUSE_S)  # who wants it may have left while this process stood still: that is heard first
        raise Busy(f"Too many processes change the same {key.kind} in Redis")

    async def put(self, puts: Sequence[Put]) -> None:
        keys, kinds, given = list[bytes](), list[Kind](), list[Word]([self._prefix, os.urandom(16).hex()])
        for key in dict.fromkeys(one.key for one in puts):
            mine = [one for one in puts if one.key == key]
            bounds = BOUNDS[key.kind]
            keys.append(self._name(key))
            kinds.append(key.kind)
            given += [self._ttl_ms(key.kind), bounds.entries, bounds.bytes, len(mine)]
            for _, place, entry in mine:
                given += [_bytes(place), entry]
        await self._shelved(_PUT, keys, kinds, given, again=True)

    async def claim(self, names: Collection[str], owner: str, ttl_s: float) -> frozenset[str]:
        listed = list(names)
        taken = await self._run(_CLAIM, [self._claimed(name) for name in listed], [owner, round(ttl_s * 1000)])
        return frozenset(listed[place - 1] for place in taken)

    async def release(self, names: Collection[str], owner: str) -> None:
        await self._run(_RELEASE, [self._claimed(name) for name in names], [owner], again=True)

    async def scan(self, kind: Kind) -> list[str]:
        start, cursor, found = f"{self._prefix}:{kind}:", 0, set[str]()
        while True:
            cursor, names = await self._asked("SCAN", cursor, "MATCH", f"{_plain(start)}*", "COUNT", 1000, again=True)
            found |= {_text(name).removeprefix(start) for name in names}
            if not (cursor := int(cursor)):
                return sorted(found)

    async def erase(self, keys: Collection[Key]) -> int:
        """A key at a time: the order of its entries goes with it."""
        count = 0
        for key in keys:
            count += bool(await self._asked("DEL", self._name(key), self._name(key, "order-"), again=True))
        return count

    async def expire(self) -> None:
        """Redis does that."""

    async def close(self) -> None:
        if self._trial is not None:
            self._trial.cancel()
        if self._dialling is not None:
            self._dialling.cancel()
        if self._line is not None:
            self._line.end(exceptions.ConnectionError("closed"))

    # One operation

    async def _now(self, key: Key) -> tuple[Version, bytes]:
        (found,) = await self.read([(key, NEVER)])
        return found.version, dict(found.entries).get("", b"")

    async def _shelved(
        self, script: str, keys: Sequence[bytes], kinds: Sequence[Kind], given: Sequence[Word], *, again: bool = False
    ) -> Any:
        """What is not as it is written here makes way; then it is done again: on that shelf nothing was done."""
        words = (_SHA[script], len(keys), *keys, *given)
        try:
            return await self._asked("EVALSHA", *words, again=again, script=script, shelved=True)
        except _Refused:
            await self._set_aside(keys, kinds)
        return await self._asked("EVALSHA", *words, again=again, script=script)

    async def _set_aside(self, keys: Sequence[bytes], kinds: Sequence[Kind]) -> bool:
        given = [word for kind in kinds for word in (BOUNDS[kind].entries, BOUNDS[kind].bytes)]
        aside = await self._run(_ASIDE, keys, [self._prefix, *given], again=True)
        for name in aside:
            self._heard(
                f"{_text(name).replace(':damaged:', ':', 1)} in {self.place} is none of ours: it was set aside as {_text(name)}"
            )
        return bool(aside)

    async def _run(self, script: str, keys: Sequence[bytes], given: Sequence[Word], *, again: bool = False) -> Any:
        return await self._asked("EVALSHA", _SHA[script], len(keys), *keys, *given, again=again, script=script)

    async def _asked(self, *words: Word, again: bool = False, script: str = "", shelved: bool = False) -> Any:
        if self._why:
            raise Lost(self._told)
        return await self._ask(words, again=again, script=script, shelved=shelved)

    async def _ask(self, words: tuple[Word, ...], *, again: bool, script: str, shelved: bool = False) -> Any:
        due = asyncio.get_running_loop().time() + self._patience_s
        try:
            while True:
                try:
                    return await self._exchange(words, due)
                except exceptions.ResponseError as error:
                    if not (script and str(error).startswith("NOSCRIPT") and words[0] != "EVAL"):
                        raise
                    words = ("EVAL", script, *words[2:])  # it was not run: the server is a new one
                except (exceptions.ConnectionError, OSError) as error:
                    if not again or isinstance(error, TimeoutError):
                        raise
                    again = False
        except Exception as error:  # whatever it was: of every kind it is the same that follows
            if shelved and isinstance(error, exceptions.ResponseError) and "user_script" in str(error):
                raise _Refused from error
            why = "no answer in time" if isinstance(error, TimeoutError | exceptions.TimeoutError) else _said(error)
            self._lose(why)
            raise Lost(self._told) from error

    async def _exchange(self, words: tuple[Word, ...], due: float) -> Any:
        line = self._line if self._line is not None and not self._line.closed else await self._dialled()
        return await line.ask(words, due)

    async def _dialled(self) -> Line:
        """By one for all who ask: the first may leave meanwhile."""
        if self._dialling is None:
            self._dialling = asyncio.ensure_future(self._dial())
            self._dialling.add_done_callback(self._has_dialled)
        return await asyncio.shield(self._dialling)

    def _has_dialled(self, dialled: asyncio.Future[Line]) -> None:
        self._dialling = None
        if not (dialled.cancelled() or dialled.exception()):
            self._line = dialled.result()

    async def _dial(self) -> Line:
        connection = self._pool.make_connection()
        try:
            async with asyncio.timeout(None) as limit, _Patience(limit, self._patience_s):
                await connection.connect()
        except BaseException:  # a cancellation as well: nobody else would close it
            await connection.disconnect(nowait=True)
            raise
        return Line(connection)

    # Gone, and back

    @property
    def _told(self) -> str:
        return f"The sessions' store {self.place} cannot be reached ({self._why})"

    @property
    def _unreadable(self) -> str:
        return f"What lies in the sessions' store {self.place} cannot be read"

    def _lose(self, why: str) -> None:
        was, self._why = self._why, why
        if not was:
            self._heard(self._told)
        if self._trial is None or self._trial.done():
            self._trial = asyncio.ensure_future(self._until_well())

    async def _until_well(self) -> None:
        """Reads and writes, as calls do."""
        pause = _FIRST_TRIAL_S
        names, name = [self._claimed("trial")], os.urandom(16).hex()
        while True:
            await self._wait(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_S)
            try:
                await self._ask(("EVAL", _CLAIM, 1, *names, name, 1), again=True, script=_CLAIM)
            except Lost:
                continue
            self._why = ""
            self._heard(f"The sessions' store {self.place} is there again")
            return

    # Names

    def _name(self, key: Key, of: str = "") -> bytes:
        """`order-`: of the order of its entries."""
        return _bytes(f"{self._prefix}:{of}{key.kind}:{key.id}")

    def _claimed(self, name: str) -> bytes:
        return _bytes(f"{self._prefix}:claim:{name}")

    def _ttl_ms(self, kind: Kind) -> int:
        return round((BOUNDS[kind].ttl_s or self.retention_s) * 1000)


class _Refused(Exception):
    """Perhaps by what lies there."""


class _Patience:
    """Ends an operation in time. A loop that stood still itself hears first what came meanwhile."""

    def __init__(self, limit: asyncio.Timeout, seconds: float) -> None:
        self._limit, self._loop = limit, asyncio.get_running_loop()
        self._due, self._again = self._loop.time() + seconds, True
        self._timer = self._loop.call_at(self._due, self._over)

    def _over(self) -> None:
        now = self._loop.time()
        if self._again and now - self._due > STOOD_STILL_S:
            self._again, self._due = False, now + STOOD_STILL_S
            self._timer = self._loop.call_at(self._due, self._over)
        else:
            self._limit.reschedule(now)

    async def __aenter__(self) -> None:
        pass

    async def __aexit__(self, *_: object) -> None:
        self._timer.cancel()


def _found(one: list[bytes], known: Version) -> Found:
    version = _version(one[0], one[1])
    if version == known and one[2] == b"0":
        return Found(version, (), False)
    entries = tuple((_text(place), entry) for place, entry in zip(one[3::2], one[4::2], strict=True))
    return Found(version, entries, version[0] != known[0], one[2] == b"1")


def _version(born: bytes, number: bytes) -> Version:
    """ValueError where none of ours was ever so."""
    if (born and not (born.isalnum() and born.isascii())) or max(len(born), len(number)) > 64 or not 0 <= int(number) < _MOST:
        raise ValueError
    return born.decode(), int(number)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogatepass")


def _said(error: Exception) -> str:
    """In a few words; what a server says may be long."""
    return (str(error) or type(error).__name__).splitlines()[0][:200]


def parts_of(url: str) -> tuple[str, str, str, float]:
    """The address for people, the one for redis-py, the prefix of all names, and how many seconds an operation may take."""
    parts = urlsplit(url)
    asked = parse_qs(parts.query, keep_blank_values=True)
    prefix, wait = asked.pop("prefix", [_PREFIX])[-1], asked.pop("wait", [""])[-1]
    name = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    host = f"{name}:{parts.port or 6379}{parts.path.rstrip('/')}"
    return (
        f"{parts.scheme}://{host}",
        urlunsplit(parts._replace(query=urlencode(asked, doseq=True))),
        prefix,
        float(wait or PATIENCE_S),
    )


def check(url: str) -> None:
    """ValueError says what redis-py does not take of an address (`routing/config/hosts.py` knows its form)."""
    try:
        ConnectionPool.from_url(parts_of(url)[1], protocol=2).make_connection()
    except (ValueError, TypeError, exceptions.RedisError) as error:
        raise ValueError(_said(error)) from None


def _plain(text: str) -> str:
    """For a pattern that means just that."""
    return "".join(f"\\{letter}" if letter in "*?[]^\\-" else letter for letter in text)
