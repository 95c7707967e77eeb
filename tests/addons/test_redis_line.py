"""One connection for everybody: who hears what, and what ends it. The server is played (a real one: `trouble/test_redis.py`)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace

import pytest
from redis import exceptions

from routecodex.addons.redis_line import Line

Play = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
LONG_S = 60.0


def run(play: Play, ask: Callable[[Line, float], Awaitable[None]]) -> None:
    async def main() -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                await play(reader, writer)
            finally:
                writer.close()

        async with asyncio.timeout(LONG_S), await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            _, writer = await asyncio.open_connection(*server.sockets[0].getsockname()[:2])
            line = Line(SimpleNamespace(_reader=None, _writer=writer))  # type: ignore[arg-type]
            await ask(line, asyncio.get_running_loop().time())
            line.end(exceptions.ConnectionError("over"))

    asyncio.run(main())


async def question(reader: asyncio.StreamReader) -> bytes:
    """Its one word."""
    assert await reader.readline() == b"*1\r\n"
    length = int((await reader.readline())[1:])
    return (await reader.readexactly(length + 2))[:-2]


async def until_it_ends(reader: asyncio.StreamReader) -> None:
    await reader.read()


def test_everybody_hears_their_own_answer() -> None:
    """Also behind one who has left, and where answers come in pieces or together."""

    async def play(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = [await question(reader) for _ in range(5)]
        said = b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in asked)
        for at in range(0, len(said), 7):
            writer.write(said[at : at + 7])
            await asyncio.sleep(0)
        await until_it_ends(reader)

    async def ask(line: Line, now: float) -> None:
        answers = [line.ask((f"word {number}",), now + LONG_S) for number in range(5)]
        answers[1].cancel()
        assert [await answer for answer in answers if not answer.cancelled()] == [b"word 0", b"word 2", b"word 3", b"word 4"]
        assert not line.closed

    run(play, ask)


def test_a_refusal_is_the_askers_alone() -> None:
    async def play(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await question(reader)
        await question(reader)
        writer.write(b"-NOSCRIPT no such script\r\n:7\r\n")
        await until_it_ends(reader)

    async def ask(line: Line, now: float) -> None:
        refused, well = line.ask(("a",), now + LONG_S), line.ask(("b",), now + LONG_S)
        with pytest.raises(exceptions.ResponseError, match=r"^NOSCRIPT"):
            await refused
        assert await well == 7

    run(play, ask)


def test_what_takes_too_long_ends_it_for_all() -> None:
    """The answers that it still owes could be taken for others. Who asked last may have the least time left."""

    async def play(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await question(reader)
        writer.write(b"+first\r\n")
        await until_it_ends(reader)

    async def ask(line: Line, now: float) -> None:
        assert await line.ask(("a",), now + LONG_S) == b"first"
        later = line.ask(("b",), now + LONG_S)
        late = line.ask(("c",), now + 0.1)
        for one in (late, later):
            with pytest.raises(TimeoutError):
                await one
        assert line.closed

    run(play, ask)


def test_one_timer_looks_after_all() -> None:
    async def play(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(3):
            await question(reader)
            writer.write(b"+x\r\n")
        await until_it_ends(reader)

    async def ask(line: Line, now: float) -> None:
        for _ in range(3):
            assert await line.ask(("a",), now + LONG_S) == b"x"
            timer = line._timer
            assert timer is not None
            assert timer.when() == now + LONG_S
        line._look(now)
        assert line._timer is None, "nobody waits"
        waiting = line.ask(("b",), now + LONG_S)
        line._look(now)
        assert not line.closed
        assert not waiting.done()
        waiting.cancel()

    run(play, ask)


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        pytest.param(b"HTTP/1.1 400 Bad Request\r\n\r\n", exceptions.InvalidResponse, id="another protocol"),
        pytest.param(b"", exceptions.ConnectionError, id="nothing more"),
        pytest.param(b"$5\r\nhal", exceptions.ConnectionError, id="half of it"),
    ],
)
def test_what_ends_without_an_answer(said: bytes, kind: type[Exception]) -> None:
    async def play(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await question(reader)
        writer.write(said)
        await writer.drain()

    async def ask(line: Line, now: float) -> None:
        answer = line.ask(("a",), now + LONG_S)
        with pytest.raises(kind):
            await answer
        assert line.closed

    run(play, ask)


def test_what_nobody_asked_for_ends_it() -> None:
    """It would be the next one's answer."""

    async def play(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"+unasked\r\n")
        await until_it_ends(reader)

    async def ask(line: Line, now: float) -> None:
        while not line.closed:  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(0.01)

    run(play, ask)
