"""What the router sees of a call."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from routecodex.routing.router.features import TEXT_SAMPLE, read_features
from routecodex.routing.router.tools import ToolCategory
from routecodex.routing.values import Caller, Kind, Media, Other, Part, Role, Text, ToolCall, ToolResult
from tests.routing.router.builders import call

CALLER = Caller("tester", Kind.MAIN)
ASK: tuple[Role, list[Part]] = ("user", [Text("please fix it")])
READS: tuple[Role, list[Part]] = ("assistant", [ToolCall("1", "Read", "{}")])
WRITES: tuple[Role, list[Part]] = ("assistant", [ToolCall("1", "apply_patch", "{}")])
RESULT: tuple[Role, list[Part]] = ("user", [ToolResult("1", "ok")])
TOOL_RESULT: tuple[Role, list[Part]] = ("tool", [ToolResult("1", "ok")])
REMINDER = Text("<system-reminder>\nbe nice\n</system-reminder>")


@pytest.mark.parametrize(
    "messages, typed, role, hop, text",
    [
        pytest.param([ASK], None, "user", False, "please fix it", id="first turn"),
        pytest.param([ASK, READS, RESULT], None, "tool", True, "please fix it", id="result in a user message"),
        pytest.param([ASK, READS, TOOL_RESULT], None, "tool", True, "please fix it", id="result in a tool message"),
        pytest.param([ASK, ("system", [Text("env")])], None, "user", False, "please fix it", id="system item behind"),
        pytest.param([ASK, ("assistant", [Other()])], None, "user", False, "please fix it", id="compacted in the middle"),
        pytest.param(
            [ASK, ("user", [REMINDER]), ("user", [REMINDER])], None, "user", False, "please fix it", id="reminders behind"
        ),
        pytest.param(
            [ASK, READS, TOOL_RESULT, ("user", [REMINDER])], None, "tool", True, "please fix it", id="hop, reminder behind"
        ),
        pytest.param(
            [ASK, READS, ("user", [ToolResult("1", "ok"), REMINDER])], None, "tool", True, "please fix it", id="reminder beside"
        ),
        pytest.param(
            [ASK, READS, ("user", [ToolResult("1", "ok"), Text("stop!")])],
            None,
            "user",
            False,
            "stop!",
            id="words beside a result",
        ),
        pytest.param(
            [ASK, READS, ("user", [ToolResult("1", "ok"), Text("Note: file changed")])],
            "please fix it",
            "tool",
            True,
            "please fix it",
            id="a tool's words beside a result, the person's known",
        ),
        pytest.param(
            [ASK, READS, ("user", [ToolResult("1", "ok"), Text("<**!glm**> stop!")])],
            "stop!",
            "user",
            False,
            "stop!",
            id="words beside a result, known",
        ),
        pytest.param([ASK, ("assistant", [Text("well")])], None, "assistant", False, "please fix it", id="prefill"),
        pytest.param([("user", [REMINDER])], None, "user", False, "", id="nothing typed"),
        pytest.param([], None, "user", False, "", id="empty"),
    ],
)
def test_newest_message(messages: list[tuple[Role, list[Part]]], typed: str | None, role: str, hop: bool, text: str) -> None:
    found = read_features(call(*messages), CALLER, 10, typed)
    assert (found.role, found.tool_hop, found.text) == (role, hop, text)
    assert found.from_user is (role == "user")


@pytest.mark.parametrize(
    "messages, media",
    [
        pytest.param([("user", [Text("see"), Media("image")])], {"image"}, id="image now"),
        pytest.param([("user", [Media("image")])], {"image"}, id="image alone"),
        pytest.param([("user", [Media("image")]), ("assistant", []), ASK], set(), id="V14 older image, text now"),
        pytest.param([("user", [Media("image")]), READS, RESULT], set(), id="V14 older image, tool result now"),
        pytest.param([("user", [Media("image"), Text("see")]), ("system", [Text("env")])], {"image"}, id="system item behind"),
        pytest.param([ASK, READS, ("user", [ToolResult("1", ""), Media("image")])], set(), id="image beside a result"),
        pytest.param([("assistant", [Media("image")])], set(), id="the model's own image"),
    ],
)
def test_media(messages: list[tuple[Role, list[Part]]], media: set[str]) -> None:
    assert read_features(call(*messages), CALLER, 10).media == media


@pytest.mark.parametrize(
    "messages, last",
    [
        pytest.param([ASK], None, id="none"),
        pytest.param([ASK, READS, RESULT, WRITES, RESULT], ToolCategory.WRITE, id="the newest"),
        pytest.param([ASK, READS, RESULT, ("assistant", [Text("done")]), ASK], ToolCategory.READ, id="before words"),
        pytest.param([("user", [ToolCall("1", "Read", "{}")])], None, id="only the model's"),
    ],
)
def test_last_tool(messages: list[tuple[Role, list[Part]]], last: ToolCategory | None) -> None:
    found = read_features(call(*messages), CALLER, 10)
    assert found.last_tool == last


def test_v17_exec_command_says_nothing() -> None:
    assert read_features(call(ASK, tools=("exec_command",)), CALLER, 1).tools == ()
    assert read_features(call(ASK, tools=("exec_command", "Read")), CALLER, 1).tools == ("Read",)


def test_text_is_a_sample() -> None:
    assert read_features(call(("user", [Text("x" * 5000)])), CALLER, 1).text == "x" * TEXT_SAMPLE


def test_what_is_only_handed_on() -> None:
    one = call(ASK, model="m")
    one.structured = True
    found = read_features(one, CALLER, 7)
    assert (found.model, found.tokens, found.structured) == ("m", 7, True)
    helper = read_features(one, Caller("tester", Kind.SUBAGENT, agent="explore"), 7, model="n", plan=True)
    assert (helper.model, helper.kind, helper.agent, helper.plan) == ("n", Kind.SUBAGENT, "explore", True)


def test_a_count_is_counted_for_whom_the_conversation_talks_to() -> None:
    one = call(ASK)
    one.endpoint = replace(one.endpoint, action="count")
    assert read_features(one, Caller("tester", Kind.SIDE), 7).kind is Kind.MAIN
