"""The values that hooks are handed, and the contract's own promises."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from routecodex.routing.turn import plugins
from routecodex.routing.turn.appended import ToolResults, UserText, write
from routecodex.routing.turn.loading import load_plugins
from routecodex.routing.turn.plugins import (
    HOOKS,
    AfterRequest,
    CurrentMessage,
    Plugin,
    PluginFailed,
    Request,
    StreamData,
    TurnInfo,
    overrides,
)
from routecodex.routing.values import Answer, Dialect, JsonObject, Kind, ToolCall
from tests.routing.dialects.answer.own import write_stream
from tests.routing.turn.acting import BODIES, Actor, Scene, event, run, tcall, tsaid, tturn

ROOT = Path(__file__).parents[3]
HISTORY = {Dialect.MESSAGES: "messages", Dialect.CHAT: "messages", Dialect.RESPONSES: "input", Dialect.GEMINI: "contents"}


# The plugin itself


@pytest.mark.parametrize(
    "name, expected", [("Shout", "shout"), ("StopMessage", "stop_message"), ("BDProbe", "bdprobe"), ("_X", "x")]
)
def test_a_plugin_is_named_after_its_class(name: str, expected: str) -> None:
    assert type(name, (Plugin,), {}).name == expected


def test_a_plugin_may_name_itself() -> None:
    class Shout(Plugin):
        name = "loud"

    class Louder(Shout):
        pass

    assert (Shout.name, Louder.name, Plugin.name) == ("loud", "louder", "plugin")


def test_hooks_are_the_methods_of_the_contract() -> None:
    assert set(HOOKS) == {name for name in vars(Plugin) if name.startswith("on_") or name == "wants"}


def test_overrides() -> None:
    plugin = Actor("A")
    assert [hook for hook in HOOKS if overrides(plugin, hook)] == list(HOOKS[1:])
    assert not any(overrides(Plugin(), hook) for hook in HOOKS)


def test_everything_a_plugin_needs_comes_from_one_module() -> None:
    for name in plugins.__all__:
        assert hasattr(plugins, name)


def test_the_contract_knows_no_mitmproxy_and_no_loop() -> None:
    """Only the runner knows asyncio."""
    code = (
        "import sys; import tests;"
        "from routecodex.routing.turn import lifecycle, loading, plugins;"
        "sys.exit(any(name.split('.')[0] == 'mitmproxy' for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, timeout=30, check=False).returncode == 0
    for path in sorted((ROOT / "routing" / "turn").glob("*.py")):
        assert ("import asyncio" in path.read_text()) is (path.name == "lifecycle.py"), path.name


# The example


@pytest.fixture
def shout() -> Plugin:
    (found,) = load_plugins([ROOT / "tests" / "plugins" / "shout.py"])
    return found


@pytest.mark.parametrize(
    "text, calls, asks",
    [("hello", [], True), ("DONE", [], False), ("hello", [ToolCall("1", "bash", "{}")], False)],
)
def test_the_example_asks_once_more_where_the_word_is_missing(
    shout: Plugin, text: str, calls: list[ToolCall], asks: bool
) -> None:
    scene = Scene([shout])

    async def turn() -> None:
        await scene.begin()
        following = await scene.life.after_request(tsaid(text, calls=calls))
        assert (following is not None) is asks
        if following is not None:
            assert following.suffix == ":shout_followup"
            assert "DONE" in json.dumps(following.messages)
            assert await scene.life.after_request(tsaid(text)) is None

    run(turn())


def test_the_example_takes_no_part_in_side_calls(shout: Plugin) -> None:
    assert [kind for kind in Kind if shout.wants(tturn(kind=kind))] == [Kind.MAIN]


def test_the_example_in_the_contract_is_the_example_in_the_file(shout: Plugin) -> None:
    """What a newcomer copies from the module's docstring works as well."""
    code = "\n".join(line[4:] for line in (plugins.__doc__ or "").splitlines() if line.startswith("    ") or not line)
    names: dict[str, Any] = {"__name__": "copied"}
    exec(compile(code.strip(), "copied", "exec"), names)
    (copied,) = names["plugins"]
    assert (copied.name, overrides(copied, "on_after_request")) == ("shout", True)


# The request


def with_before(hook: Any, dialect: Dialect = Dialect.MESSAGES) -> Scene:
    async def before(turn: TurnInfo, request: Request) -> None:
        hook(request)

    return Scene([Actor("A", before=before)], turn=tturn(tcall(dialect)))


@pytest.mark.parametrize("dialect", list(Dialect))
def test_request_append(dialect: Dialect) -> None:
    scene = with_before(lambda request: request.append(UserText("a"), UserText("b")), dialect)

    async def turn() -> None:
        call = await scene.life.before_request(scene.turn.call)
        assert [message.role for message in call.messages][-1] == "user"
        assert "\n".join(message.text for message in call.messages).split() == ["hi", "a", "b"]
        assert call.changed

    run(turn())
    assert [message.text for message in scene.turn.call.messages] == ["hi"]
    assert scene.turn.messages == ()


@pytest.mark.parametrize("dialect", list(Dialect))
def test_request_set_messages_keeps_every_field(dialect: Dialect) -> None:
    (message,) = BODIES[dialect][HISTORY[dialect]]
    unusual = {**message, "x-unusual": [1]}
    scene = with_before(lambda request: request.set_messages([unusual, UserText("b")]), dialect)

    async def turn() -> None:
        call = await scene.life.before_request(scene.turn.call)
        history: Any = call.body[HISTORY[dialect]]
        assert history[0] == unusual
        assert [view.text for view in call.messages] == ["hi", "b"]
        assert call.changed

    run(turn())


def test_request_set_messages_inside_an_envelope() -> None:
    from routecodex.routing.dialects.calls import read_call
    from routecodex.routing.values import Endpoint

    body = {"project": "p", "model": "m", "request": {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}}
    call = read_call(json.dumps(body).encode(), Endpoint(Dialect.GEMINI, stream=True, envelope=True))
    scene = with_before(lambda request: request.set_messages([UserText("b")]))

    async def turn() -> None:
        changed = await scene.life.before_request(call)
        assert [view.text for view in changed.messages] == ["b"]
        assert changed.body["project"] == "p"

    run(turn())


def test_request_body_is_edited_in_place_and_the_clients_call_is_not() -> None:
    def edit(request: Request) -> None:
        request.body["temperature"] = 0
        request.body["tools"] = [{"name": "t", "input_schema": {"type": "object"}}]

    scene = with_before(edit)

    async def turn() -> None:
        call = await scene.life.before_request(scene.turn.call)
        assert (call.body["temperature"], call.tools, call.changed) == (0, ("t",), True)

    run(turn())
    assert (scene.turn.call.tools, scene.turn.call.changed, "temperature" in scene.turn.call.body) == ((), False, False)


def test_looking_at_the_body_changes_nothing() -> None:
    scene = with_before(lambda request: request.body.get("model"))

    async def turn() -> None:
        assert await scene.life.before_request(scene.turn.call) is scene.turn.call

    run(turn())


def test_one_plugin_after_another_edits_the_same_request() -> None:
    async def first(turn: TurnInfo, request: Request) -> None:
        request.body["n"] = [1]
        request.append(UserText("a"))

    async def second(turn: TurnInfo, request: Request) -> None:
        assert request.call.body["n"] == [1]
        numbers: Any = request.body["n"]
        numbers.append(2)

    scene = Scene([Actor("A", before=first), Actor("B", before=second)])

    async def turn() -> None:
        call = await scene.life.before_request(scene.turn.call)
        assert (call.body["n"], call.messages[-1].text) == ([1, 2], "hi\na")

    run(turn())


def test_a_call_may_be_put_in_place() -> None:
    other = tcall(model="other")

    def replace_it(request: Request) -> None:
        request.call = other

    scene = with_before(replace_it)

    async def turn() -> None:
        assert await scene.life.before_request(scene.turn.call) is other

    run(turn())


@pytest.mark.parametrize(
    "edit, error",
    [
        (lambda request: request.body.update(messages="none"), "ValueError"),
        (lambda request: request.body.clear(), "ValueError"),
        (lambda request: setattr(request, "call", {"messages": []}), "TypeError"),
        (lambda request: request.append("text"), "TypeError"),
    ],
    ids=["broken", "emptied", "no call", "no message"],
)
def test_a_request_that_is_none_any_more_is_the_plugins_fault(edit: Any, error: str) -> None:
    scene = with_before(edit)

    async def turn() -> None:
        with pytest.raises(PluginFailed, match=f"Plugin A failed: on_before_request raised {error}"):
            await scene.life.before_request(scene.turn.call)

    run(turn())


def test_request_says_which_round_it_is() -> None:
    seen: list[tuple[str, int]] = []
    scene = with_before(lambda request: seen.append((request.id, request.round)))

    async def turn() -> None:
        await scene.begin()
        await scene.life.before_request(scene.turn.call, id="call-1:retry")
        await scene.life.after_request(tsaid())
        await scene.life.before_request(scene.turn.call, id="call-1:stop_followup")

    run(turn())
    assert seen == [("call-1", 0), ("call-1:retry", 0), ("call-1:stop_followup", 1)]


# What is appended


def test_write() -> None:
    native: JsonObject = {"role": "user", "content": "native"}
    said = tsaid()
    written = write(Dialect.MESSAGES, [said, UserText("x"), native, ToolResults(())])
    assert written == (*said.native, {"role": "user", "content": [{"type": "text", "text": "x"}]}, native)


@pytest.mark.parametrize("as_list", [False, True])
def test_a_message_of_the_dialects_own_kind(as_list: bool) -> None:
    native: JsonObject = {"role": "user", "content": "native"}

    async def after(turn: TurnInfo, after: AfterRequest) -> None:
        after.append_and_request([native] if as_list else native)

    scene = Scene([Actor("A", after=after)])

    async def turn() -> None:
        await scene.begin()
        following = await scene.life.after_request(tsaid())
        assert following is not None
        assert following.messages == (native,)

    run(turn())


# The stream


ANSWER = Answer("Hello,\nwörld", (ToolCall("c1", "bash", '{"a":1}'), ToolCall("c2", "read", "{}")), "tool_calls")


@pytest.mark.parametrize("size", [1, 7, 10_000])
@pytest.mark.parametrize("dialect", list(Dialect))
def test_the_current_message_grows_with_the_stream(dialect: Dialect, size: int) -> None:
    stream = b"".join(write_stream(dialect, ANSWER, id="x", model="m", created=0))
    heard: list[StreamData] = []
    messages: list[CurrentMessage] = []

    def hear(turn: TurnInfo, data: StreamData) -> None:
        heard.append(data)
        messages.append(data.current_message)

    scene = Scene([Actor("A", stream=hear)], turn=tturn(tcall(dialect)))

    async def turn() -> None:
        await scene.begin()
        for place in range(0, len(stream), size):
            scene.life.stream_data(stream[place : place + size])

    run(turn())
    assert b"".join(data.raw for data in heard) == stream
    last = messages[-1]
    assert last.text == ANSWER.text
    assert [(call.name, json.loads(call.arguments)) for call in last.calls] == [("bash", {"a": 1}), ("read", {})]
    assert all(later.text.startswith(earlier.text) for earlier, later in pairwise(messages))
    assert messages[0].text != ANSWER.text or dialect is Dialect.GEMINI


def test_thinking_is_not_the_visible_text() -> None:
    texts: list[str] = []
    parts = [{"text": "hm", "thought": True}, {"text": "yes"}]
    document = {"response": {"candidates": [{"content": {"parts": parts}}]}}
    hear = Actor("A", stream=lambda turn, data: texts.append(data.current_message.text))
    scene = Scene([hear], turn=tturn(tcall(Dialect.GEMINI)))
    run(scene.begin())
    scene.life.stream_data(b"data: " + json.dumps(document).encode() + b"\n\n")
    assert texts == ["yes"]


def test_stream_data() -> None:
    seen: list[tuple[str, JsonObject | None, bytes]] = []

    def hear(turn: TurnInfo, data: StreamData) -> None:
        seen.append((data.name, data.json, data.raw))

    scene = Scene([Actor("A", stream=hear)])

    async def turn() -> None:
        await scene.begin()
        scene.life.stream_data(b": comment\n\n" + event("x") + b"data: no json\n\n")

    run(turn())
    assert [(name, raw) for name, _, raw in seen] == [("content_block_delta", event("x")), ("", b"data: no json\n\n")]
    assert seen[0][1] is not None
    assert seen[1][1] is None


def test_the_turn_holds_no_credential() -> None:
    """None of its fields could: what it takes from headers is the caller's identity alone."""
    assert not set(TurnInfo.__struct_fields__) & {"headers", "credential", "received", "key", "secrets"}


def test_a_priority_that_nobody_gave() -> None:
    """Between those that want to be first and those that want to be last."""

    def plugin(name: str, given: dict[str, int]) -> Actor:
        async def after(turn: TurnInfo, after: AfterRequest) -> None:
            after.append_message(UserText(name), is_async=True, **given)

        return Actor(name, after=after)

    scene = Scene([plugin("last", {"priority": -1}), plugin("middle", {}), plugin("first", {"priority": 1})])

    async def turn() -> None:
        await scene.begin()
        await scene.life.after_request(tsaid())

    run(turn())
    assert scene.texts() == ["hello", "first", "middle", "last"]
