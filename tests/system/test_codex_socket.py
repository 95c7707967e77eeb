"""Codex's WebSocket, served: whole requests out of frames that bring only what is new, through a real proxy."""

from __future__ import annotations

import asyncio
import json
import shutil
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from wsproto.events import BytesMessage, CloseConnection, Ping

from tests.rig.answer import Route
from tests.rig.behaviour import Behaviour
from tests.rig.provider import FakeProvider, Received
from tests.rig.proxy import ROOT, SCRIPT, Mitmdump
from tests.rig.websocket import Closed, WebSocket
from tests.rig.wire import Reply, ToolUse
from tests.system.tool import CONFIG

pytestmark = pytest.mark.system

SECRET = "Bearer sk-secret-of-the-socket"
TURN = json.dumps({"request_kind": "turn", "thread_source": "user", "turn_id": "t1"})
HEADERS = (
    ("authorization", SECRET),
    ("user-agent", "codex_exec/0.169.0"),
    ("openai-beta", "responses_websockets=2026-02-06"),
    ("x-codex-turn-metadata", json.dumps({"request_kind": "prewarm"})),
)
FIELDS = {"type": "response.create", "model": "gpt-5", "stream": True, "store": False, "include": ["reasoning.encrypted_content"]}
ORIGIN = "https://api.openai.com"
SERVED = CONFIG.replace("proxy:\n", "proxy:\n  codexWebSocket: serve\n", 1)

Script = Callable[[WebSocket], Awaitable[None]]


@pytest.fixture(scope="module")
def house(provider: FakeProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mitmdump]:
    folder = tmp_path_factory.mktemp("socket")
    with Mitmdump(script=SCRIPT, config=SERVED, upstream=provider, folder=folder, flows=True) as started:
        yield started
        assert started.alive
        assert not started.crash
        assert "RouteCodex failed" not in started.log
        assert "Traceback" not in started.log
        assert SECRET not in started.log
    assert started.flows_path is not None
    saved = started.flows_path.read_bytes()
    assert b"/v1/responses" in saved
    assert b"sk-secret-of-the-socket" not in saved


@pytest.fixture
def fake(provider: FakeProvider) -> FakeProvider:
    provider.forget()
    return provider


def on(house: Mitmdump, script: Script) -> None:
    """A connection of its own session."""

    async def run() -> None:
        headers = (*HEADERS, ("session-id", str(uuid.uuid4())))
        async with WebSocket(Route(ORIGIN, house), "/v1/responses", headers) as socket:
            assert socket.accepted, socket.head
            await script(socket)

    asyncio.run(run())


def frame(*said: dict[str, Any], after: str | None = None, **more: Any) -> dict[str, Any]:
    previous = {"previous_response_id": after} if after else {}
    return FIELDS | previous | {"input": list(said), "client_metadata": {"x-codex-turn-metadata": TURN}} | more


def user(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


def id_of(told: list[dict[str, Any]]) -> str:
    assert told[-1]["type"] == "response.completed", told[-1]
    return str(told[-1]["response"]["id"])


def text_of(told: list[dict[str, Any]]) -> str:
    return "".join(one["delta"] for one in told if one["type"] == "response.output_text.delta")


def test_warm_up_and_two_turns_that_bring_only_what_is_new(house: Mitmdump, fake: FakeProvider) -> None:
    fake.enqueue(
        Behaviour(reply=Reply("Let me look.", thinking="Where?", calls=(ToolUse("exec_command", {"cmd": "ls"}),))),
        Behaviour(reply=Reply("Here — ünï 🎉.")),
    )

    async def script(socket: WebSocket) -> None:
        warm = await socket.ask(frame(user("rules"), generate=False))
        assert [one["type"] for one in warm] == ["response.created", "response.completed"]
        assert fake.requests == []
        first = await socket.ask(frame(user("where is it?"), after=id_of(warm)))
        done = [one["item"] for one in first if one["type"] == "response.output_item.done"]
        assert [item["type"] for item in done] == ["reasoning", "message", "function_call"]
        result = {"type": "function_call_output", "call_id": done[-1]["call_id"], "output": "a file"}
        second = await socket.ask(frame(result, after=id_of(first)))
        assert text_of(second) == "Here — ünï 🎉."

        one, two = fake.requests
        assert one.json["input"] == [user("rules"), user("where is it?")]
        assert two.json["input"] == [user("rules"), user("where is it?"), *done, result]
        for sent in (one, two):
            assert (sent.method, sent.target, sent.header("authorization")) == ("POST", "/v1/responses", SECRET)
            assert sent.header("x-codex-turn-metadata") == TURN
            assert [name for name, _ in sent.headers if name.lower().startswith(("sec-", "upgrade", "openai-beta"))] == []
            assert not {"type", "generate", "previous_response_id", "stream_id"} & set(sent.json)
            assert sent.json["stream"] is True

    on(house, script)


def test_a_tag_in_a_frame_is_obeyed_and_leaves_the_history(house: Mitmdump, fake: FakeProvider) -> None:
    fake.enqueue(Behaviour(reply=Reply("from glm")), Behaviour(reply=Reply("again")))

    async def script(socket: WebSocket) -> None:
        told = await socket.ask(frame(user("<**!glm.glm-4.7**> hello")))
        assert text_of(told) == "from glm"
        again = await socket.ask(frame(user("and?"), after=id_of(told)))
        assert text_of(again) == "again"

    on(house, script)
    first, second = fake.requests
    assert first.host == second.host == "open.bigmodel.cn"
    assert first.key in ("glm-key-1", "glm-key-2")
    assert b"<**" not in first.body + second.body
    assert SECRET.encode() not in fake.all_bytes()
    assert [one["content"] for one in second.json["messages"] if one["role"] == "assistant"] == ["from glm"]


def test_echo_answers_without_a_provider(house: Mitmdump, fake: FakeProvider) -> None:
    async def script(socket: WebSocket) -> None:
        told = await socket.ask(frame(user("<**echo**> hello")))
        assert told[-1]["type"] == "response.completed"
        assert "hello" in text_of(told)

    on(house, script)
    assert fake.requests == []


def test_rounds_behind_one_answer_come_as_one(house: Mitmdump, fake: FakeProvider) -> None:
    fake.enqueue(*(Behaviour(reply=Reply(f"round {number}")) for number in range(3)))

    async def script(socket: WebSocket) -> None:
        told = await socket.ask(frame(user('<**stopMessage:"go on",2**> hello')))
        assert text_of(told) == "round 0\n\nround 1\n\nround 2"
        assert [one["type"] for one in told].count("response.completed") == 1

    on(house, script)
    assert len(fake.requests) == 3


def test_errors_are_frames_that_codex_understands(house: Mitmdump, fake: FakeProvider) -> None:
    fake.enqueue(Behaviour(status=400, error="that is not a thing"), Behaviour(reply=Reply("fine")))

    async def script(socket: WebSocket) -> None:
        (told,) = await socket.ask(frame(user("one")))
        assert (told["type"], told["status"]) == ("error", 400)
        assert "that is not a thing" in told["error"]["message"]
        (told,) = await socket.ask(frame(user("two"), after="resp_of_another_connection"))
        assert (told["status"], told["error"]["code"]) == (400, "previous_response_not_found")
        for broken in ("{", "[1]", {"type": "response.steer"}, frame(input=5)):
            (told,) = await socket.ask(broken)
            assert (told["type"], told["status"]) == ("error", 400)
        assert len(fake.requests) == 1
        (told,) = await socket.ask(frame(user("<**!nobody.nothing**> hi")))
        assert (told["type"], told["status"]) == ("error", 400)
        assert "nobody" in told["error"]["message"]
        assert text_of(await socket.ask(frame(user("still there?")))) == "fine"

    on(house, script)


def test_an_answer_that_breaks_off_is_no_success(house: Mitmdump, fake: FakeProvider) -> None:
    fake.enqueue(Behaviour(reply=Reply(("one ", "two ", "three ")), cut_after=6), Behaviour(reply=Reply("whole")))

    async def script(socket: WebSocket) -> None:
        told = await socket.ask(frame(user("hello")))
        assert text_of(told) == "one two "
        assert (told[-1]["type"], told[-1]["response"]["error"]["code"]) == ("response.failed", "server_error")
        assert text_of(await socket.ask(frame(user("hello")))) == "whole"

    on(house, script)


@pytest.mark.parametrize("said", [0, 3])
def test_a_client_that_leaves_takes_its_turn_with_it(house: Mitmdump, fake: FakeProvider, said: int) -> None:
    slow = Behaviour(before="hang") if not said else Behaviour(reply=Reply(("one ", "two ")), stall_after=said + 3, stall_s=600)
    fake.enqueue(slow)

    async def script(socket: WebSocket) -> None:
        await socket.send(frame(user("hello")))
        for _ in range(said):
            await socket.hear()
        await asyncio.to_thread(fake.wait_for, 1)
        socket.pipe.reset()

    on(house, script)
    fake.wait_until(lambda: fake.open_connections == 0, 5)


def test_a_client_that_leaves_a_later_round(house: Mitmdump, fake: FakeProvider) -> None:
    fake.enqueue(Behaviour(reply=Reply("round 0")), Behaviour(before="hang"))

    async def script(socket: WebSocket) -> None:
        await socket.send(frame(user('<**stopMessage:"go on",5**> hello')))
        await asyncio.to_thread(fake.wait_for, 2)
        await socket.write(CloseConnection(code=1000))

    on(house, script)
    fake.wait_until(lambda: fake.open_connections == 0, 5)
    assert len(fake.requests) == 2


def test_many_at_once_do_not_mix(house: Mitmdump, fake: FakeProvider) -> None:
    """Each turn names its session; nothing of a turn stays behind."""

    def answer(received: Received) -> Behaviour:
        said = [item["content"][0]["text"] for item in received.json["input"] if item.get("role") == "user"]
        return Behaviour(reply=Reply(" ".join(said)))

    fake.script(answer)

    async def one(number: int) -> None:
        async with WebSocket(Route(ORIGIN, house), "/v1/responses", (*HEADERS, ("session-id", f"many-{number}"))) as socket:
            after = None
            for turn in range(5):
                told = await socket.ask(frame(user(f"{number}.{turn}"), after=after), 30)
                assert text_of(told) == " ".join(f"{number}.{before}" for before in range(turn + 1))
                after = id_of(told)

    async def all_of_them() -> None:
        async with asyncio.TaskGroup() as group:
            for number in range(20):
                group.create_task(one(number))

    asyncio.run(all_of_them())
    files = house.open_files
    asyncio.run(all_of_them())
    fake.wait_until(lambda: fake.open_connections == 0, 5)
    time.sleep(0.5)
    left = house.open_files
    assert files is None or left is None or left <= files


def test_a_client_that_closes_is_answered(house: Mitmdump, fake: FakeProvider) -> None:
    async def script(socket: WebSocket) -> None:
        await socket.write(Ping(payload=b"are you there"))
        await socket.ask(frame(user("rules"), generate=False))
        await socket.write(CloseConnection(code=1000))
        with pytest.raises(Closed) as closed:
            await socket.hear()
        assert closed.value.code == 1000

    on(house, script)


def test_frames_wait_for_the_turn_before_them(house: Mitmdump, fake: FakeProvider) -> None:
    fake.enqueue(Behaviour(reply=Reply("first"), wait_s=0.5), Behaviour(reply=Reply("second")))

    async def script(socket: WebSocket) -> None:
        await socket.send(frame(user("one"), stream_id="a"))
        await socket.send(frame(user("two"), stream_id="b"))
        for lane, text in (("a", "first"), ("b", "second")):
            told = await socket.rest()
            assert text_of(told) == text
            assert {one["stream_id"] for one in told} == {lane}

    on(house, script)


def test_a_provider_that_keeps_its_stream_open_holds_nobody_up(house: Mitmdump, fake: FakeProvider) -> None:
    fake.enqueue(Behaviour(reply=Reply("first"), ending="hang"), Behaviour(reply=Reply("second")))

    async def script(socket: WebSocket) -> None:
        told = await socket.ask(frame(user("one")))
        assert text_of(await socket.ask(frame(user("two"), after=id_of(told)))) == "second"

    on(house, script)


def test_no_more_is_kept_than_a_request_may_have(house: Mitmdump, fake: FakeProvider) -> None:
    half = "x" * (17 << 20)

    async def script(socket: WebSocket) -> None:
        warm = await socket.ask(frame(user(half), generate=False))
        (told,) = await socket.ask(frame(user(half), after=id_of(warm)))
        assert (told["type"], told["status"]) == ("error", 413)
        await socket.send(frame(user(half + half)))
        with pytest.raises(Closed) as closed:
            await socket.hear()
        assert closed.value.code == 1009

    on(house, script)
    assert fake.requests == []


def test_bytes_that_are_no_frames(house: Mitmdump, fake: FakeProvider) -> None:
    async def binary(socket: WebSocket) -> None:
        await socket.write(BytesMessage(data=b"{}"))
        with pytest.raises(Closed) as closed:
            await socket.hear()
        assert closed.value.code == 1003

    async def garbage(socket: WebSocket) -> None:
        await socket.pipe.write(b"\xff\xff\xff\xff")
        with pytest.raises(Closed) as closed:
            await socket.hear()
        assert closed.value.code == 1002

    on(house, binary)
    on(house, garbage)
    assert fake.requests == []


def test_upgrades_that_are_none_are_refused(house: Mitmdump) -> None:
    async def run(version: str) -> bytes:
        async with WebSocket(Route(ORIGIN, house), "/v1/responses", (("Sec-WebSocket-Version", version),)) as socket:
            return socket.head

    assert asyncio.run(run("12")).startswith(b"HTTP/1.1 426 ")


def test_a_slow_client_slows_the_provider(house: Mitmdump, fake: FakeProvider) -> None:
    """What nobody reads is not piled up here."""
    delta = {"type": "response.output_text.delta", "item_id": "m", "output_index": 0, "content_index": 0, "delta": "y" * 60_000}
    done = {"type": "response.completed", "response": {"id": "resp_much", "status": "completed", "output": []}}
    begun = {"type": "response.created", "response": {"id": "resp_much", "status": "in_progress", "output": []}}
    fake.enqueue(Behaviour(events=tuple(f"data: {json.dumps(one)}\n\n".encode() for one in (begun, *[delta] * 700, done))))

    async def script(socket: WebSocket) -> None:
        await socket.send(frame(user("much")))
        await socket.hear()
        before = house.rss_bytes
        socket.pipe.transport.pause_reading()
        await asyncio.sleep(3)
        assert house.rss_bytes - before < 10 << 20, "of 42 MB"
        socket.pipe.transport.resume_reading()
        assert len(text_of(await socket.rest(30))) == 60_000 * 700

    on(house, script)


def test_without_the_option_it_is_refused(fake: FakeProvider, tmp_path: Path) -> None:
    async def run(proxy: Mitmdump) -> bytes:
        async with WebSocket(Route(ORIGIN, proxy), "/v1/responses", HEADERS) as socket:
            return socket.head

    with Mitmdump(script=SCRIPT, config=CONFIG, upstream=fake, folder=tmp_path / "refusing") as proxy:
        assert asyncio.run(run(proxy)).startswith(b"HTTP/1.1 426 ")
    assert fake.requests == []


def test_while_the_addon_is_broken_frames_are_refused(fake: FakeProvider, tmp_path: Path) -> None:
    """A socket that is open already, too; and it goes on once the addon is back."""
    for folder in ("addons", "routing"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    script = tmp_path / "addons" / "routecodex.py"
    whole = script.read_text()

    async def until(socket: WebSocket, kind: str) -> list[dict[str, Any]]:
        for _ in range(150):
            told = await socket.ask(frame(user("hello")))
            if told[-1]["type"] == kind:
                return told
            await asyncio.sleep(0.1)
        raise AssertionError(f"never {kind}")

    async def run(proxy: Mitmdump) -> None:
        async with WebSocket(Route(ORIGIN, proxy), "/v1/responses", HEADERS) as socket:
            await until(socket, "response.completed")
            script.write_text(whole + "\ndef broken(:\n")
            (told,) = await until(socket, "error")
            assert told["status"] == 503
            asked = len(fake.requests)
            await until(socket, "error")
            assert len(fake.requests) == asked
            script.write_text(whole)
            await until(socket, "response.completed")

    with Mitmdump(script=script, config=SERVED, upstream=fake, folder=tmp_path / "proxy", flows=True) as proxy:
        asyncio.run(run(proxy))
    assert proxy.flows_path is not None
    assert b"sk-secret-of-the-socket" not in proxy.flows_path.read_bytes()


def test_a_reverse_proxy_serves_it_too(fake: FakeProvider, tmp_path: Path) -> None:
    fake.enqueue(Behaviour(reply=Reply("hello")))

    async def run(proxy: Mitmdump) -> None:
        async with WebSocket(Route(proxy.url), "/v1/responses", HEADERS) as socket:
            assert socket.accepted
            assert text_of(await socket.ask(frame(user("hi")))) == "hello"

    mode = f"reverse:{ORIGIN}"
    with Mitmdump(script=SCRIPT, config=SERVED, upstream=fake, folder=tmp_path / "reverse", mode=mode) as proxy:
        asyncio.run(run(proxy))
    (sent,) = fake.requests
    assert (sent.host, sent.header("authorization")) == ("api.openai.com", SECRET)
