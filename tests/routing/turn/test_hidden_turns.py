"""Whole turns: what later calls put back is, byte for byte, what the turn itself had sent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from routecodex.routing.config.values import StopSettings
from routecodex.routing.dialects.calls import read_call
from routecodex.routing.dialects.said import Said
from routecodex.routing.sessions.store import FileStore
from routecodex.routing.stop_message.plugin import StopMessagePlugin
from routecodex.routing.stop_message.work_state import Work
from routecodex.routing.turn.hidden import hidden_in, put_back
from routecodex.routing.turn.hidden_store import HiddenStore
from routecodex.routing.turn.plugins import Plugin, ServerTool, TurnInfo
from routecodex.routing.values import Call, Dialect, JsonObject, ToolCall
from tests.routing.stop_message.driving import FAILS, SESSION, Stage, arm, said
from tests.routing.turn.hidden_talk import TALKS, Item, Talk, Tool

by_dialect = pytest.mark.parametrize("talk", TALKS, ids=lambda talk: talk.dialect.value)
CLOCK = ("call_clock", "clock", {"action": "list"})
BASH = ("call_bash", "Bash", {"command": "ls"})


class Clock(Plugin):
    """Has a tool of its own."""

    def __init__(self) -> None:
        self.tools = (ServerTool("clock", "the time", {"type": "object", "properties": {}}, self._run),)

    async def _run(self, turn: TurnInfo, arguments: JsonObject) -> str:
        return "it is late"


async def unknown(call: Call) -> Work:
    return Work.UNKNOWN


def stage(folder: Path, talk: Talk, most: int = 2) -> Stage:
    store = FileStore(folder)
    arm(store, most=most)
    return Stage(store, talk, [Clock(), StopMessagePlugin(store, StopSettings(), unknown, lambda turn, line: None)])


def speaks(talk: Talk, text: str, *tools: Tool, thinking: str = "") -> Said:
    calls = tuple(
        ToolCall(f"{name}#0" if talk.dialect is Dialect.GEMINI else id, name, json.dumps(arguments))
        for id, name, arguments in tools
    )
    return replace(
        said(talk, text),
        calls=calls,
        own=tuple(call for call in calls if call.name == "clock"),
        finish="tool_calls" if calls else "stop",
        native=tuple(talk.answer(text, *tools, thinking=thinking)),
    )


def history(talk: Talk, body: dict[str, Any]) -> list[Item]:
    items = body[talk.key]
    assert isinstance(items, list)
    return items


def plays(folder: Path, talk: Talk, replies: list[Any], merged: list[Item], most: int = 2) -> tuple[list[Item], list[Item], int]:
    """What the turn's last round sent and got; what the client's next call sends after a restart; how many came back."""
    call = talk.call(talk.user("do it"))
    turned = stage(folder, talk, most).play(replies, call)
    assert turned.record is not None
    entry = hidden_in(call, [merged], turned.record.items, results=turned.record.results)
    if entry is not None:
        HiddenStore(folder).add(SESSION, entry)
    later = talk.call(talk.user("do it"), *merged)
    count = put_back(later, HiddenStore(folder).load(SESSION))
    return history(talk, turned.bodies[turned.answered - 1]), history(talk, later.body), count


@by_dialect
@pytest.mark.parametrize("thinking", ["t", ""])
def test_follow_ups(tmp_path: Path, talk: Talk, thinking: str) -> None:
    last = speaks(talk, "c", thinking=thinking)
    replies = [speaks(talk, "a", thinking=thinking), speaks(talk, "b"), last]
    sent, later, count = plays(tmp_path, talk, replies, talk.answer("a\n\nb\n\nc", thinking=thinking))
    assert count == 1
    assert later == [*sent, *last.native]


@by_dialect
def test_our_tool_and_a_follow_up(tmp_path: Path, talk: Talk) -> None:
    replies = [speaks(talk, "a", CLOCK, thinking="t"), speaks(talk, "b"), speaks(talk, "c")]
    sent, later, count = plays(tmp_path, talk, replies, talk.answer("a\n\nb\n\nc", thinking="t"), most=1)
    assert count == 1
    assert later == [*sent, *replies[-1].native]
    assert "it is late" in str(later)


@by_dialect
def test_c12_our_tool_beside_the_clients(tmp_path: Path, talk: Talk) -> None:
    """Behind a follow-up; the client answers its own call, and finds ours answered as well."""
    last = speaks(talk, "b", CLOCK, BASH)
    merged = talk.answer("a\n\nb", BASH)
    sent, later, count = plays(tmp_path, talk, [speaks(talk, "a"), last], merged)
    assert count == 1
    assert later[: len(sent) + len(last.native)] == [*sent, *last.native]
    assert json.dumps(later).count("it is late") == 1
    results = talk.results([(BASH, "files")])
    after = talk.call(talk.user("do it"), *merged, *results, *talk.answer("done"), talk.user("next"))
    put_back(after, HiddenStore(tmp_path).load(SESSION))
    _is_legal(talk, after)


def _is_legal(talk: Talk, call: Call) -> None:
    """Every call is answered once, and before anybody else speaks."""
    views = read_call(json.dumps(call.body).encode(), call.endpoint).messages
    raw = json.dumps(call.body)
    assert raw.count("it is late") == raw.count('"files"') == 1
    roles = [view.role for view in views]
    expected = {
        Dialect.MESSAGES: "user assistant user assistant user assistant user",
        Dialect.GEMINI: "user assistant user assistant user assistant user",
        Dialect.CHAT: "user assistant user assistant tool tool assistant user",
        Dialect.RESPONSES: "user assistant user assistant assistant assistant tool tool assistant user",
    }
    assert roles == expected[talk.dialect].split()


@by_dialect
def test_m17_an_empty_follow_up_leaves_nothing(tmp_path: Path, talk: Talk) -> None:
    _, later, count = plays(tmp_path, talk, [speaks(talk, "a"), said(talk, ""), said(talk, "")], talk.answer("a"))
    assert (count, later) == (0, [talk.user("do it"), *talk.answer("a")])


@by_dialect
def test_m18_a_failed_follow_up_leaves_what_came_before(tmp_path: Path, talk: Talk) -> None:
    replies = [speaks(talk, "a"), speaks(talk, "b"), FAILS]
    sent, later, count = plays(tmp_path, talk, replies, talk.answer("a\n\nb"))
    assert count == 1
    assert later == [*sent, *replies[1].native]


@by_dialect
def test_nothing_that_a_provider_refuses_comes_back(tmp_path: Path, talk: Talk) -> None:
    """A round of nothing but white space is not sent in its turn, and not later."""
    blank = replace(said(talk, "x"), text=" \n", native=tuple(talk.answer(" \n")))
    last = speaks(talk, "b")
    sent, later, count = plays(tmp_path, talk, [speaks(talk, "a"), blank, last], talk.answer("a\n\nb"), most=1)
    assert count == 1
    assert later == [*sent, *last.native]
    assert talk.dialect is not Dialect.MESSAGES or " \\n" not in json.dumps(later)
