"""Tools that run here: offered beside the client's own, run at the same time, answered one by one. Cases L13, L14, L16."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from routecodex.routing.errors import ConfigError
from routecodex.routing.turn import lifecycle
from routecodex.routing.turn.lifecycle import NextRound
from routecodex.routing.turn.plugins import (
    AfterRequest,
    Appending,
    Plugin,
    PluginFailed,
    ServerTool,
    ToolFailed,
    ToolOutcome,
    ToolResults,
    TurnInfo,
    UserText,
)
from routecodex.routing.turn.tools import CANCELLED, filled, offer, takes_any
from routecodex.routing.values import Dialect, JsonObject, Kind, ToolCall
from tests.routing.turn.acting import EAGER, Actor, Scene, hanging, raising, run, tcall, tsaid, tturn, until

CANARY = "sk-canary-0123456789abcdef"
SCHEMA: JsonObject = {"type": "object", "properties": {"n": {"type": "integer"}}}


def ttool(name: str, run: Callable[..., Awaitable[Any]] | None = None, **fields: Any) -> ServerTool:
    async def echo(turn: TurnInfo, arguments: JsonObject) -> str:
        return f"{name} {json.dumps(arguments)}"

    return ServerTool(name, f"does {name}", SCHEMA, run or echo, **fields)


class Games(Plugin):
    def __init__(self, *tools: ServerTool) -> None:
        self.tools = tools


def call(name: str, arguments: str = "{}", id: str = "") -> ToolCall:
    return ToolCall(id or f"id-{name}", name, arguments)


def outcomes(scene: Scene) -> list[tuple[str, str, str]]:
    """Name, status and text of every outcome of the turn."""
    return [
        (outcome.call.name, outcome.status, outcome.text)
        for message in scene.turn.current_turn
        if isinstance(message, ToolResults)
        for outcome in message.outcomes
    ]


async def answer(scene: Scene, own: Sequence[ToolCall], calls: Sequence[ToolCall] = ()) -> NextRound | None:
    await scene.begin()
    return await scene.life.after_request(tsaid(own=own, calls=calls))


# Running


@pytest.mark.parametrize("eager", EAGER)
def test_l13_two_tools_in_parallel_and_one_fails(eager: bool) -> None:
    met = asyncio.Event()

    async def waits(turn: TurnInfo, arguments: JsonObject) -> str:
        await met.wait()
        return "fine"

    async def breaks(turn: TurnInfo, arguments: JsonObject) -> str:
        met.set()
        raise ToolFailed("no such city")

    scene = Scene([Games(ttool("slow", waits), ttool("bad", breaks))])
    following = run(answer(scene, [call("slow"), call("bad")]), eager=eager)
    assert following is not None
    assert following.messages == (
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "id-slow", "content": "fine"},
                {"type": "tool_result", "tool_use_id": "id-bad", "content": "Tool call failed: no such city", "is_error": True},
            ],
        },
    )
    assert following.items == (*tsaid(own=[call("slow"), call("bad")]).native, *following.messages)
    assert (following.plugin, following.suffix) == ("games", ":games_followup")
    assert scene.warnings == []


def test_results_come_in_the_order_of_the_calls() -> None:
    def after(wait_s: float) -> Callable[..., Awaitable[str]]:
        async def wait(turn: TurnInfo, arguments: JsonObject) -> str:
            await asyncio.sleep(wait_s)
            return "done"

        return wait

    tools = [ttool(name, after(wait_s)) for name, wait_s in {"a": 0.06, "b": 0.03, "c": 0.0}.items()]
    scene = Scene([Games(*tools)])
    run(answer(scene, [call("c"), call("a"), call("b")]))
    assert [name for name, _, _ in outcomes(scene)] == ["c", "a", "b"]


def test_one_tool_called_twice() -> None:
    scene = Scene([Games(ttool("dice"))])
    run(answer(scene, [call("dice", '{"n": 1}', "x"), call("dice", '{"n": 2}', "x")]))
    assert [text for _, _, text in outcomes(scene)] == ['dice {"n": 1}', 'dice {"n": 2}']


@pytest.mark.parametrize(
    "arguments, text",
    [
        ("", "success: dice {}"),
        ("  ", "success: dice {}"),
        ('{"n": 1}', 'success: dice {"n": 1}'),
        ('{"n": ', "failed: Tool call failed: the arguments are not a JSON object"),
        ("[1]", "failed: Tool call failed: the arguments are not a JSON object"),
        ('"\ud800"', "failed: Tool call failed: the arguments are not a JSON object"),
    ],
)
def test_arguments(arguments: str, text: str) -> None:
    scene = Scene([Games(ttool("dice"))])

    async def turn() -> None:
        await scene.begin()
        said = tsaid()
        dice = call("dice", arguments)
        await scene.life.after_request(type(said)("", (dice,), (dice,), "tool_calls", said.usage, "", said.native))

    run(turn())
    assert [f"{status}: {said}" for _, status, said in outcomes(scene)] == [text]


@pytest.mark.parametrize(
    "error, said",
    [
        (ToolFailed("ask me another day"), "Tool call failed: ask me another day"),
        (ValueError(CANARY), "Tool call failed: ValueError"),
        (SystemExit(CANARY), "Tool call failed: SystemExit"),
        (asyncio.CancelledError(CANARY), "Tool call failed: CancelledError"),
        (KeyError(CANARY), "Tool call failed: KeyError"),
    ],
)
def test_what_a_tool_raises(error: BaseException, said: str) -> None:
    scene = Scene([Games(ttool("bad", raising(error)), ttool("good"))])
    assert run(answer(scene, [call("bad"), call("good")])) is not None
    assert outcomes(scene) == [("bad", "failed", said), ("good", "success", "good {}")]
    assert CANARY not in str(scene.warnings)
    assert bool(scene.warnings) is not isinstance(error, ToolFailed | asyncio.CancelledError)


def test_the_log_names_plugin_tool_and_type() -> None:
    async def breaks(turn: TurnInfo, arguments: JsonObject) -> str:
        raise ValueError(CANARY)

    scene = Scene([Games(ttool("bad", breaks))])
    run(answer(scene, [call("bad")]))
    line = breaks.__code__.co_firstlineno + 1
    assert scene.warnings == [f"Plugin games failed: the tool bad raised ValueError (test_tools.py:{line})"]


def test_a_tool_that_returns_no_text() -> None:
    async def number(turn: TurnInfo, arguments: JsonObject) -> Any:
        return 5

    scene = Scene([Games(ttool("bad", number))])
    run(answer(scene, [call("bad")]))
    assert outcomes(scene) == [("bad", "failed", "Tool call failed: the tool returned no text")]


@pytest.mark.parametrize("deaf", [False, True])
def test_a_tool_that_hangs(deaf: bool) -> None:
    scene = Scene([Games(ttool("slow", hanging(deaf=deaf), limit_s=0.05), ttool("good"))])

    async def turn() -> None:
        began = asyncio.get_running_loop().time()
        assert await answer(scene, [call("slow"), call("good")]) is not None
        assert asyncio.get_running_loop().time() - began < 0.5

    run(turn())
    assert outcomes(scene) == [
        ("slow", "failed", "Tool call failed: no result within 0.05 seconds"),
        ("good", "success", "good {}"),
    ]


def test_a_tool_may_take_longer_than_a_hook() -> None:
    async def slow(turn: TurnInfo, arguments: JsonObject) -> str:
        await asyncio.sleep(0.1)
        return "at last"

    scene = Scene([Games(ttool("slow", slow))], limit_s=0.02)
    run(answer(scene, [call("slow")]))
    assert outcomes(scene) == [("slow", "success", "at last")]


def test_a_call_of_a_tool_that_is_not_there_is_answered() -> None:
    scene = Scene([Games(ttool("dice"))])
    assert run(answer(scene, [call("cards"), call("dice")])) is not None
    assert outcomes(scene) == [("cards", "failed", "Tool call failed: there is no tool cards"), ("dice", "success", "dice {}")]


def test_ours_and_the_clients_in_one_answer() -> None:
    """Ours runs at once; the client's own comes back with its next call, so no round follows; the pair is kept."""
    scene = Scene([Games(ttool("clock")), Actor("A", after=wanting_more)])
    bash = call("bash")
    assert run(answer(scene, [call("clock")], calls=[bash])) is None
    assert outcomes(scene) == [("clock", "success", "clock {}")]
    record = scene.life.record()
    assert record.items == tsaid(own=[call("clock")], calls=[bash]).native
    assert record.results[0]["content"][0]["tool_use_id"] == "id-clock"  # type: ignore[index]


async def wanting_more(turn: TurnInfo, after: AfterRequest) -> None:
    after.append_and_request(UserText("more"))


def test_results_stand_directly_behind_their_answer_whoever_appended_first() -> None:
    async def slow(turn: TurnInfo, arguments: JsonObject) -> str:
        await asyncio.sleep(0.02)
        return "late"

    scene = Scene([Games(ttool("slow", slow)), Actor("A", after=wanting_more)])
    following = run(answer(scene, [call("slow")]))
    assert following is not None
    assert [part["type"] for item in following.messages for part in item["content"]] == ["tool_result", "text"]  # type: ignore[attr-defined]


def test_a_plugin_may_answer_a_call_of_the_client() -> None:
    """Then nothing is left for the client to do, and a round may follow."""
    bash, read = call("bash"), call("read")

    async def answers(turn: TurnInfo, after: AfterRequest) -> None:
        after.append_message(UserText("and now?"))
        results = [ToolResults((ToolOutcome(tool, f"no {tool.name} here"),)) for tool in (read, bash)]
        after.append_and_request(results if turn.rounds == 1 else results[:1])

    scene = Scene([Actor("A", after=answers)])

    async def turn() -> None:
        following = await answer(scene, [], calls=[bash, read])
        assert following is not None
        parts: list[Any] = [part for item in following.messages for part in item["content"]]  # type: ignore[attr-defined]
        assert [part.get("tool_use_id", part.get("text")) for part in parts] == ["id-bash", "id-read", "and now?"]
        assert await scene.life.after_request(tsaid(calls=[bash, read])) is None

    run(turn())


def test_missing_results_are_filled_in_order() -> None:
    def prevents(turn: TurnInfo, appending: Appending) -> None:
        if isinstance(appending.message, ToolResults):
            appending.message = ToolResults(appending.message.outcomes[1:])

    scene = Scene([Games(ttool("a"), ttool("b")), Actor("A", append=prevents)])
    following = run(answer(scene, [call("a"), call("b")]))
    assert following is not None
    content: Any = following.messages[0]["content"]
    assert [(part["tool_use_id"], part["content"]) for part in content] == [("id-a", CANCELLED), ("id-b", "b {}")]


def test_filled() -> None:
    a, b, c = (call(name) for name in "abc")
    assert [outcome.text for outcome in filled([a, b], [ToolOutcome(b, "2"), ToolOutcome(c, "3")])] == [CANCELLED, "2", "3"]
    assert [outcome.text for outcome in filled([a, a], [ToolOutcome(a, "1"), ToolOutcome(a, "2")])] == ["1", "2"]


# Cancelling


@pytest.mark.parametrize("eager", EAGER)
@pytest.mark.parametrize("cause", ["abort", "another plugin fails"])
def test_l14_abort_while_tools_run(cause: str, eager: bool) -> None:
    finished: list[str] = []

    async def slow(turn: TurnInfo, arguments: JsonObject) -> str:
        await asyncio.sleep(0.3)
        finished.append("slow")
        return "too late"

    async def fails(turn: TurnInfo, after: AfterRequest) -> None:
        await asyncio.sleep(0.03)
        if cause == "another plugin fails":
            raise ValueError

    scene = Scene([Games(ttool("slow", slow), ttool("quick")), Actor("A", after=fails)])

    async def turn() -> None:
        if cause == "abort":
            asyncio.get_running_loop().call_later(0.02, scene.life.abort)
            assert await answer(scene, [call("slow"), call("quick")]) is None
        else:
            with pytest.raises(PluginFailed):
                await answer(scene, [call("slow"), call("quick")])
        assert finished == []
        assert outcomes(scene) == [("slow", "cancelled", CANCELLED), ("quick", "success", "quick {}")]
        await scene.life.end()
        await until(lambda: finished)

    run(turn(), eager=eager)
    assert finished == ["slow"]
    assert not any(isinstance(message, ToolResults) for message in scene.turn.messages)


def test_l14_what_does_not_come_to_its_end_soon_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifecycle, "GRACE_S", 0.05)
    scene = Scene([Games(ttool("slow", hanging()))])

    async def turn() -> int:
        asyncio.get_running_loop().call_later(0.02, scene.life.abort)
        assert await answer(scene, [call("slow")]) is None
        await until(lambda: len(asyncio.all_tasks()) == 1)
        return len(asyncio.all_tasks())

    assert run(turn()) == 1


def test_what_fails_after_the_abort_is_no_news() -> None:
    async def bad(turn: TurnInfo, arguments: JsonObject) -> str:
        await asyncio.sleep(0.04)
        raise ValueError

    scene = Scene([Games(ttool("bad", bad))])

    async def turn() -> None:
        asyncio.get_running_loop().call_later(0.02, scene.life.abort)
        await answer(scene, [call("bad")])
        await asyncio.sleep(0.05)

    run(turn())
    assert scene.warnings == []


# What later calls find


@pytest.mark.parametrize(
    "next_turn, in_history, in_view", [("keep", True, True), ("exclude", False, True), ("remove", False, False)]
)
def test_l16_exclude_and_remove(next_turn: str, in_history: bool, in_view: bool) -> None:
    scene = Scene([Games(ttool("dice", next_turn=next_turn))])

    async def turn() -> None:
        assert await answer(scene, [call("dice")]) is not None
        assert await scene.life.after_request(tsaid("You have a six.")) is None

    run(turn())
    for shown, there in [(False, in_history), (True, in_view)]:
        record = scene.life.record(shown=shown)
        assert ("id-dice" in json.dumps(record.items)) is there
        assert [item["role"] for item in record.items] == (["assistant", "user", "assistant"] if there else ["assistant"] * 2)
        assert "six" in json.dumps(record.items)
        assert record.results == ()


def test_l16_beside_a_call_of_the_client() -> None:
    scene = Scene([Games(ttool("dice", next_turn="exclude"))])
    run(answer(scene, [call("dice")], calls=[call("bash")]))
    record = scene.life.record()
    assert "bash" in json.dumps(record.items)
    assert "dice" not in json.dumps(record.items)
    assert record.results == ()


# Offering


@pytest.mark.parametrize("dialect", list(Dialect))
def test_offered_beside_the_clients_own(dialect: Dialect) -> None:
    asked = tcall(dialect)
    offered = offer(asked, [ttool("dice"), ttool("cards")])
    assert (offered.names, offered.left_out) == (frozenset({"dice", "cards"}), "")
    assert offered.call.tools == ("dice", "cards")
    assert asked.tools == ()


@pytest.mark.parametrize(
    "dialect, fields, options, left_out",
    [
        (Dialect.MESSAGES, {}, {"kind": Kind.TITLE}, "a call of the kind title"),
        (Dialect.MESSAGES, {}, {"able": False}, "the target takes no tools"),
        (Dialect.MESSAGES, {"tool_choice": {"type": "any"}}, {}, "tool_choice forces or forbids tools"),
        (Dialect.CHAT, {"tool_choice": "none"}, {}, "tool_choice forces or forbids tools"),
        (Dialect.CHAT, {"response_format": {"type": "json_object"}}, {}, "the call demands structured output"),
        (Dialect.GEMINI, {"tools": [{"googleSearch": {}}]}, {}, "Google's built-in tools stand alone"),
    ],
)
def test_not_offered(dialect: Dialect, fields: dict[str, Any], options: dict[str, Any], left_out: str) -> None:
    asked = tcall(dialect, **fields)
    offered = offer(asked, [ttool("dice")], **options)
    assert (offered.call, offered.names, offered.left_out) == (asked, frozenset(), left_out)


def test_the_clients_own_tool_of_that_name_stays_the_clients() -> None:
    tools = [{"name": "clock", "input_schema": {"type": "object"}}]
    offered = offer(tcall(tools=tools), [ttool("clock"), ttool("dice")])
    assert (offered.call.tools, offered.names) == (("clock", "dice"), frozenset({"dice"}))
    assert offered.left_out == "the client has its own clock"


@pytest.mark.parametrize("where", ["tools", "input"])
def test_a_namespace_of_that_name_is_the_clients_own(where: str) -> None:
    namespace = {"type": "namespace", "name": "clock", "tools": [{"type": "function", "name": "sleep", "parameters": {}}]}
    carried = {"type": "additional_tools", "role": "developer", "tools": [namespace]}
    asked = tcall(Dialect.RESPONSES, **({"tools": [namespace]} if where == "tools" else {"input": [carried]}))
    offered = offer(asked, [ttool("clock"), ttool("dice")])
    assert (asked.tools, asked.namespaces) == (("sleep",), ("clock",))
    assert (offered.names, offered.left_out) == (frozenset({"dice"}), "the client has its own clock")
    assert not takes_any(asked, [ttool("clock")])


def test_the_lifecycle_offers_what_its_takers_have() -> None:
    scene = Scene([Games(ttool("dice")), Games(ttool("dice"), ttool("cards"))], turn=tturn(tcall()))
    assert scene.life.offer(scene.turn.call).names == frozenset({"dice", "cards"})
    assert scene.life.offer(scene.turn.call, able=False).left_out == "the target takes no tools"
    assert Scene([Plugin()]).life.offer(scene.turn.call).call is scene.turn.call


@pytest.mark.parametrize("name", ["", "two words", "größe", "1st", "x" * 65])
def test_names_that_some_dialect_does_not_take(name: str) -> None:
    with pytest.raises(ConfigError):
        ttool(name)


def test_a_schema_is_that_of_an_object() -> None:
    with pytest.raises(ConfigError):
        ServerTool("x", "", {"type": "string"}, raising(ValueError()))
