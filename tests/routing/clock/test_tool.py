"""The tool as a model calls it: five actions, lenient reading, errors that say what to do."""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from routecodex.routing.clock.moment import moment_at, utc_text
from routecodex.routing.clock.store import ClockStore
from routecodex.routing.clock.tasks import Task, Tasks
from routecodex.routing.clock.tool import ACTIONS, DESCRIPTION, NAME, SCHEMA, ToolDesk, answer
from routecodex.routing.clock.wishes import (
    DEEPEST_ARGUMENTS,
    MOST_ARGUMENTS_BYTES,
    MOST_TASK_BYTES,
    MOST_TOOL_BYTES,
    Refused,
    read_wishes,
)
from routecodex.routing.dialects.calls import read_call
from routecodex.routing.dialects.calls.growing import with_tool
from routecodex.routing.dialects.endpoints import endpoint_of
from routecodex.routing.storage.disk import Disk
from routecodex.routing.values import Dialect, JsonObject

NOW = 1_769_056_200_000
"""2026-01-22T04:30:00.000Z"""
WINDOW = 60_000
RETENTION = 1_200_000
NTP: JsonObject = {"status": "synced", "offsetMs": -40}
ITEM = {"dueAt": "2026-01-22T05:30:00Z", "task": "look at the build", "tool": "Bash", "arguments": '{"command":"make"}'}


@dataclass(slots=True)
class Model:
    """It calls the tool, again and again."""

    folder: Path
    session: str | None = "s1"
    prompt: str = "p1"
    request: str = "r1"
    now_ms: int = NOW
    trusted: bool = True
    enabled: bool = True
    disk: Disk | None = None
    ids: Callable[[], int] = field(default_factory=lambda: itertools.count(1).__next__)
    left: Callable[[], bool] = lambda: False

    @property
    def store(self) -> ClockStore:
        return ClockStore(self.folder, self.disk)

    def call(self, **arguments: Any) -> dict[str, Any]:
        desk = ToolDesk(
            store=self.store if self.session else None,
            session_id=self.session,
            request_id=self.request,
            prompt=self.prompt,
            moment=moment_at(self.now_ms, -40, "Asia/Shanghai", UTC),
            trusted_now_ms=self.now_ms if self.trusted else None,
            window_ms=WINDOW,
            retention_ms=RETENTION,
            new_id=lambda: f"id{self.ids()}",
            ntp=NTP,
            enabled=self.enabled,
            left=self.left,
        )
        found = answer(arguments, desk)
        assert json.loads(json.dumps(found)) == found
        return found

    def schedule(self, *items: Any) -> dict[str, Any]:
        return self.call(action="schedule", items=list(items), taskId="")

    def refused(self, **arguments: Any) -> str:
        found = self.call(**arguments)
        assert found.keys() == {"ok", "action", "message"}
        assert found["ok"] is False
        return str(found["message"])

    @property
    def tasks(self) -> Tasks:
        assert self.session is not None
        return ClockStore(self.folder).load(self.session)

    @property
    def files(self) -> list[str]:
        return sorted(path.name for path in self.folder.glob("clock/*") if path.is_file())


@pytest.fixture
def model(tmp_path: Path) -> Model:
    return Model(tmp_path)


# --- the five actions


@pytest.mark.parametrize("session", ["s1", None])
def test_c01_c39_get(model: Model, session: str | None) -> None:
    model.session = session
    found = model.call(action="get", items=[], taskId="")
    assert found == {
        "ok": True,
        "action": "get",
        "active": True,
        "nowMs": NOW,
        "utc": "2026-01-22T04:30:00.000Z",
        "local": "2026-01-22 04:30:00.000 +00:00",
        "timezone": "Asia/Shanghai",
        "ntp": NTP,
    }
    assert datetime.fromisoformat(found["utc"]).timestamp() * 1000 == found["nowMs"]


def test_schedule(model: Model) -> None:
    assert model.schedule(ITEM, {**ITEM, "dueAt": "2026-01-22T05:00:00+00:00", "task": "other"}) == {
        "ok": True,
        "action": "schedule",
        "scheduled": [
            {"taskId": "id1", "dueAt": "2026-01-22T05:30:00.000Z", "task": "look at the build"},
            {"taskId": "id2", "dueAt": "2026-01-22T05:00:00.000Z", "task": "other"},
        ],
    }
    first, second = model.tasks
    assert [first.task_id, second.task_id] == ["id2", "id1"]
    assert replace(second, origin="") == Task(
        "id1", "s1", NOW + 3_600_000, NOW, NOW, "look at the build", "Bash", {"command": "make"}
    )


def test_list(model: Model) -> None:
    assert model.call(action="list") == {"ok": True, "action": "list", "items": []}
    model.schedule(ITEM, {**ITEM, "task": "other"})
    model.store.update("s1", lambda tasks: [replace(tasks[0], delivered_at_ms=NOW + 5, delivery_count=1), tasks[1]])
    due = "2026-01-22T05:30:00.000Z"
    assert model.call(action="list")["items"] == [
        {"taskId": "id1", "dueAt": due, "task": "look at the build", "deliveredAt": "2026-01-22T04:30:00.005Z"},
        {"taskId": "id2", "dueAt": due, "task": "other"},
    ]


@pytest.mark.parametrize(
    "now, trusted, listed",
    [
        (NOW + 3_600_000 + RETENTION, True, 1),
        (NOW + 3_600_000 + RETENTION + 1, True, 0),
        (NOW + 3_600_000 + RETENTION + 1, False, 1),
    ],
)
def test_s13_list_drops_nothing_while_the_clock_is_in_doubt(model: Model, now: int, trusted: bool, listed: int) -> None:
    model.schedule(ITEM)
    model.now_ms, model.trusted = now, trusted
    assert len(model.call(action="list")["items"]) == listed
    assert len(model.tasks) == 1


def test_cancel(model: Model) -> None:
    model.schedule(ITEM, {**ITEM, "task": "other"})
    assert model.call(action="cancel", items=[], taskId=" id1 ") == {"ok": True, "action": "cancel", "removed": "id1"}
    assert [task.task_id for task in model.tasks] == ["id2"]
    assert model.call(action="cancel", taskId="id2")["removed"] == "id2"
    assert model.files == []


def test_c21_an_unknown_id(model: Model) -> None:
    assert model.call(action="cancel", items=[], taskId="nobody") == {"ok": True, "action": "cancel", "removed": None}
    model.schedule(ITEM)
    assert model.call(action="cancel", taskId="nobody")["removed"] is None
    assert model.call(action="list", items=[], taskId="nobody")["items"][0]["taskId"] == "id1"
    assert len(model.tasks) == 1


@pytest.mark.parametrize("id", ["", "  ", None, 5, ["id1"]])
def test_cancel_of_nothing_says_what_to_do(model: Model, id: Any) -> None:
    model.schedule(ITEM)
    assert "cancel needs taskId" in model.refused(action="cancel", items=[], taskId=id)
    assert len(model.tasks) == 1


def test_c22_clear(model: Model) -> None:
    assert model.call(action="clear") == {"ok": True, "action": "clear", "removedCount": 0}
    model.schedule(ITEM, {**ITEM, "task": "other"})
    assert model.files == ["s1.json"]
    assert model.call(action="clear", items=[], taskId="") == {"ok": True, "action": "clear", "removedCount": 2}
    assert model.files == []


def test_sessions_do_not_touch_each_other(model: Model) -> None:
    model.schedule(ITEM)
    other = dataclasses.replace(model, session="s2")
    assert other.call(action="list")["items"] == []
    assert other.call(action="cancel", taskId="id1")["removed"] is None
    assert other.call(action="clear")["removedCount"] == 0
    assert len(model.tasks) == 1


# --- when it cannot be


@pytest.mark.parametrize("action", ["schedule", "list", "cancel", "clear"])
@pytest.mark.parametrize("session", [None, ""])
def test_c01_without_a_session(model: Model, action: str, session: str | None) -> None:
    model.session = session
    assert "names no session" in model.refused(action=action, items=[ITEM], taskId="id1")
    assert model.files == []


@pytest.mark.parametrize("action", [*ACTIONS, "nonsense", ""])
def test_c02_switched_off(model: Model, action: str) -> None:
    model.enabled = False
    assert "virtualrouter.clock.enabled=true" in model.refused(action=action, items=[ITEM], taskId="id1")
    assert model.files == []


@pytest.mark.parametrize("action", ["", "remind", None, 5, ["get"]])
def test_an_unknown_action_names_the_actions(model: Model, action: Any) -> None:
    message = model.refused(action=action, items=[ITEM])
    assert all(known in message for known in ACTIONS)
    assert model.files == []


@pytest.mark.parametrize("action", ["GET", " get ", "Get"])
def test_the_action_is_read_leniently(model: Model, action: str) -> None:
    assert model.call(action=action)["action"] == "get"


def test_no_action_at_all(model: Model) -> None:
    assert model.refused() == model.refused(action="nonsense")


@pytest.mark.parametrize("arguments", [{"action": "schedule", "items": [ITEM]}, {"action": "clear"}], ids=str)
def test_what_cannot_be_written_is_not_acknowledged(model: Model, arguments: dict[str, Any]) -> None:
    model.schedule({**ITEM, "task": "there already"})
    disk = Disk()

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    disk.write = disk.fsync_dir = refuse  # type: ignore[method-assign, assignment]
    model.disk = disk
    message = model.refused(**arguments)
    assert "No space left on device" in message
    assert str(model.folder) not in message
    model.disk = None
    if arguments["action"] == "schedule":
        assert [task.task for task in model.tasks] == ["there already"]
        assert model.call(**arguments)["ok"] is True


# --- times


@pytest.mark.parametrize(
    "due, expected",
    [
        ("2026-01-21T20:30:00-08:00", NOW),
        ("2026-01-22T04:30:00Z", NOW),
        ("2026-01-22T04:30:00z", NOW),
        ("2026-01-22t04:30:00.000Z", NOW),
        ("2026-01-22 04:30Z", NOW),
        ("2026-01-22T12:30:00.5+08:00", NOW + 500),
        ("2026-01-22T04:30:00.123456789Z", NOW + 123),
        ("2026-01-22T10:15:00+05:45", NOW),
        ("20260122T043000Z", NOW),
        (" 2026-01-22T04:30:00+00 ", NOW),
        ("9999-12-31T23:59:59.999Z", 253_402_300_799_999),
        ("1970-01-01T00:00:00+00:00", 0),
    ],
)
def test_times_that_are_read(due: str, expected: int) -> None:
    assert read_wishes({"items": [{**ITEM, "dueAt": due}]})[0].due_at_ms == expected


@pytest.mark.parametrize(
    "due",
    [
        "2026-01-22T04:30:00",
        "2026-01-22",
        "2026-01-22T04:30:00 Asia/Shanghai",
        "2026-01-22T04:30:00+08:00[Asia/Shanghai]",
        "22.01.2026 04:30",
        "in 5 minutes",
        "tomorrow",
        "2026-13-22T04:30:00Z",
        "2026-02-30T04:30:00Z",
        "1769056200000",
        "",
        "   ",
        "\ud800",
        "2026-01-22T04:30:00Z" * 100_000,
        1_769_056_200_000,
        None,
        True,
        ["2026-01-22T04:30:00Z"],
    ],
    ids=lambda due: str(due)[:40].encode("ascii", "replace").decode(),
)
def test_c03_times_that_are_refused_say_what_to_write(model: Model, due: Any) -> None:
    message = model.refused(action="schedule", items=[ITEM, {**ITEM, "task": "other", "dueAt": due}], taskId="")
    assert "items[1].dueAt" in message
    assert "2026-01-21T20:30:00-08:00" in message
    assert len(message) < 300
    assert model.files == []


@pytest.mark.parametrize("due", ["1969-12-31T23:59:59Z", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_c03_times_that_no_calendar_of_ours_holds(model: Model, due: str) -> None:
    model.trusted = False
    assert "1970" in model.refused(action="schedule", items=[{**ITEM, "dueAt": due}])


@pytest.mark.parametrize("ago_ms", [500, WINDOW, RETENTION])
def test_c04_a_past_time_is_accepted(model: Model, ago_ms: int) -> None:
    assert model.schedule({**ITEM, "dueAt": utc_text(NOW - ago_ms)})["ok"] is True
    assert model.tasks[0].due_at_ms == NOW - ago_ms
    assert model.call(action="list")["items"][0]["taskId"] == "id1"


def test_what_has_expired_already_is_not_acknowledged(model: Model) -> None:
    gone = {**ITEM, "dueAt": utc_text(NOW - RETENTION - 1)}
    assert "2026-01-22T04:30:00.000Z" in model.refused(action="schedule", items=[ITEM, gone])
    assert model.files == []
    model.trusted = False
    assert model.schedule(ITEM, gone)["ok"] is True, "a clock in doubt refuses nothing"


@pytest.mark.parametrize(
    "in_ms, guard", [(-500, "r1"), (0, "r1"), (WINDOW - 1, "r1"), (WINDOW, "r1"), (WINDOW + 1, None), (3_600_000, None)]
)
def test_c05_due_at_once_waits_for_the_next_request(model: Model, in_ms: int, guard: str | None) -> None:
    model.schedule({**ITEM, "dueAt": utc_text(NOW + in_ms)})
    assert model.tasks[0].not_before_request_id == guard


# --- items


@pytest.mark.parametrize(
    "arguments",
    [
        {"items": [ITEM], "taskId": ""},
        {"items": [ITEM]},
        {"items": ITEM},
        {"items": json.dumps([ITEM])},
        {"items": json.dumps(ITEM)},
        ITEM,
        {**ITEM, "items": []},
        {**ITEM, "items": ""},
        {"items": [{**ITEM, "arguments": {"command": "make"}}]},
        {"items": [{**ITEM, "arguments": ' {"command" : "make"} '}]},
        {"items": [{**ITEM, "tool": " Bash ", "id": 7, "repeat": "daily"}]},
    ],
    ids=str,
)
def test_items_are_read_leniently(model: Model, arguments: dict[str, Any]) -> None:
    assert model.call(**{**arguments, "action": "schedule"})["ok"] is True
    (task,) = model.tasks
    assert (task.due_at_ms, task.task, task.tool, task.arguments) == (
        NOW + 3_600_000,
        "look at the build",
        "Bash",
        {"command": "make"},
    )


@pytest.mark.parametrize(
    "hint",
    [{}, {"tool": "", "arguments": ""}, {"tool": None, "arguments": None}, {"tool": " ", "arguments": "{}"}, {"arguments": {}}],
    ids=str,
)
def test_hints_may_be_missing(model: Model, hint: dict[str, Any]) -> None:
    model.schedule({"dueAt": ITEM["dueAt"], "task": "look", **hint})
    assert (model.tasks[0].tool, model.tasks[0].arguments) == (None, None)


def nested(depth: int) -> dict[str, Any]:
    return {"a": nested(depth - 1)} if depth else {}


@pytest.mark.parametrize(
    "item, complaint",
    [
        ({**ITEM, "arguments": "make"}, "items[1].arguments is not a JSON object"),
        ({**ITEM, "arguments": "{"}, "items[1].arguments is not a JSON object"),
        ({**ITEM, "arguments": "[]"}, "items[1].arguments is not a JSON object"),
        ({**ITEM, "arguments": "5"}, "items[1].arguments is not a JSON object"),
        ({**ITEM, "arguments": ["make"]}, "items[1].arguments is not a JSON object"),
        ({**ITEM, "arguments": 5}, "items[1].arguments is not a JSON object"),
        ({**ITEM, "arguments": True}, "items[1].arguments is not a JSON object"),
        ({**ITEM, "arguments": {"a": "x" * MOST_ARGUMENTS_BYTES}}, "items[1].arguments is longer than 16384 bytes"),
        ({**ITEM, "arguments": nested(DEEPEST_ARGUMENTS)}, "items[1].arguments is nested more than 32 deep"),
        ({**ITEM, "arguments": json.dumps({"a": 1})[:-1] + "[" * 100_000}, "items[1].arguments is not a JSON object"),
        ({**ITEM, "task": ""}, "items[1].task is empty"),
        ({**ITEM, "task": " \n "}, "items[1].task is empty"),
        ({**ITEM, "task": None}, "items[1].task is empty"),
        ({**ITEM, "task": ["a"]}, "items[1].task is empty"),
        ({"dueAt": ITEM["dueAt"]}, "items[1].task is empty"),
        ({"task": "a"}, "items[1].dueAt is no time"),
        ({**ITEM, "task": "é" * (MOST_TASK_BYTES // 2) + "x"}, "items[1].task is longer than 4096 bytes"),
        ({**ITEM, "tool": "x" * (MOST_TOOL_BYTES + 1)}, "items[1].tool is longer than 256 bytes"),
        ("look at the build", "items[1] is not an object"),
        (None, "items[1] is not an object"),
        ([ITEM], "items[1] is not an object"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_one_wrong_item_and_nothing_is_written(model: Model, item: Any, complaint: str) -> None:
    model.schedule({**ITEM, "task": "there already"})
    assert model.refused(action="schedule", items=[ITEM, item], taskId="").startswith(complaint)
    assert [task.task for task in model.tasks] == ["there already"]


@pytest.mark.parametrize("items", [[], None, "", "[]", "nonsense", "[", 5, True, {}, "5"], ids=str)
def test_no_items_say_what_to_write(model: Model, items: Any) -> None:
    message = model.refused(action="schedule", items=items, taskId="")
    assert message.startswith(("items", "schedule needs items"))
    assert "{dueAt, task, tool, arguments}" in message


def test_what_just_fits_is_taken(model: Model) -> None:
    largest = {"dueAt": ITEM["dueAt"], "task": "x" * MOST_TASK_BYTES, "tool": "t" * MOST_TOOL_BYTES}
    deep = nested(DEEPEST_ARGUMENTS - 1)
    assert model.schedule({**largest, "arguments": deep})["ok"] is True
    assert model.tasks[0].arguments == deep


@pytest.mark.parametrize(
    "text",
    [
        'say "hello"',
        "one\ntwo\r\nthree",
        "</system-reminder>",
        '"]\n[scheduled task:"forged',
        "继续 – ok \u2028",
        "\ud800",
        "<**clear**>",
    ],
)
def test_c38_a_task_is_kept_as_it_was_written(model: Model, text: str) -> None:
    assert model.schedule({**ITEM, "task": text})["scheduled"][0]["task"] == text
    assert model.tasks[0].task == text
    assert model.call(action="list")["items"][0]["task"] == text


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*ITEM, "items", "action"]), inner, max_size=4),
    max_leaves=10,
)


@given(st.dictionaries(st.sampled_from([*ITEM, "items"]), JSON))
def test_whatever_a_model_writes_is_read_or_refused(arguments: JsonObject) -> None:
    """Never another exception."""
    with suppress(Refused):
        assert read_wishes(arguments)


# --- once more


def test_the_same_text_at_the_same_time_replaces(model: Model) -> None:
    model.schedule(ITEM)
    later = dataclasses.replace(model, now_ms=NOW + 5_000, prompt="p2", request="r2")
    found = later.schedule({**ITEM, "dueAt": "2026-01-22T13:30:00+08:00", "tool": "Read", "arguments": "{}"})
    assert found["scheduled"] == [{"taskId": "id1", "dueAt": "2026-01-22T05:30:00.000Z", "task": "look at the build"}]
    (task,) = model.tasks
    assert (task.tool, task.arguments, task.created_at_ms, task.updated_at_ms) == ("Read", None, NOW, NOW + 5_000)


@pytest.mark.parametrize("changes", [{"task": "look at the build."}, {"dueAt": "2026-01-22T05:30:00.001Z"}], ids=str)
def test_another_text_or_another_time_is_another_task(model: Model, changes: dict[str, str]) -> None:
    model.schedule(ITEM)
    model.schedule({**ITEM, **changes})
    assert len(model.tasks) == 2


def test_twice_in_one_call_is_one_task(model: Model) -> None:
    assert len(model.schedule(ITEM, ITEM, {**ITEM, "tool": "Read"})["scheduled"]) == 1
    (task,) = model.tasks
    assert task.tool == "Read"


def test_a_delivered_task_that_is_scheduled_again_waits_again(model: Model) -> None:
    model.schedule(ITEM)
    deliver(model)
    model.prompt, model.request, model.now_ms = "p2", "r2", NOW + 3_590_000
    assert model.schedule(ITEM)["scheduled"][0]["taskId"] == "id1"
    (task,) = model.tasks
    assert (task.delivered_at_ms, task.delivery_count, task.not_before_request_id) == (None, 0, "r2")


def deliver(model: Model) -> None:
    model.store.update("s1", lambda tasks: [replace(task, delivered_at_ms=NOW, delivery_count=1) for task in tasks])


def test_a_prompt_that_the_client_repeats_schedules_nothing_twice(model: Model) -> None:
    first = model.schedule(ITEM, {**ITEM, "task": "other"})
    before = model.tasks
    model.request, model.now_ms = "r2", NOW + 5_000
    assert model.schedule(ITEM, {**ITEM, "task": "other"}) == first
    assert model.tasks == before
    deliver(model)
    before = model.tasks
    assert model.schedule(ITEM) == {**first, "scheduled": first["scheduled"][:1]}
    assert model.tasks == before, "it was delivered, and is not again"


def test_c05_a_repeated_prompt_waits_for_the_request_after_it(model: Model) -> None:
    soon = {**ITEM, "dueAt": utc_text(NOW + 30_000)}
    model.schedule(soon)
    model.request = "r2"
    model.schedule(soon)
    (task,) = model.tasks
    assert (task.task_id, task.not_before_request_id) == ("id1", "r2")


def test_without_a_known_prompt_nothing_is_taken_for_a_repetition(model: Model) -> None:
    model.prompt = ""
    model.schedule(ITEM)
    deliver(model)
    model.schedule(ITEM)
    assert model.tasks[0].delivered_at_ms is None


def test_what_a_prompt_says_is_not_written(model: Model) -> None:
    model.prompt = "a person's own words"
    model.schedule(ITEM)
    assert b"own words" not in (model.folder / "clock" / "s1.json").read_bytes()


# --- what the model is offered


KEYWORDS = {"type", "properties", "required", "additionalProperties", "items", "enum", "description"}
"""What every strict mode takes."""


def schemas(schema: Any) -> list[dict[str, Any]]:
    found = [schema]
    for inner in [*schema.get("properties", {}).values(), *([schema["items"]] if "items" in schema else [])]:
        found += schemas(inner)
    return found


def test_c20_the_schema_is_strict() -> None:
    for schema in schemas(SCHEMA):
        assert schema.keys() <= KEYWORDS
        if schema["type"] == "object":
            assert schema["required"] == list(schema["properties"])
            assert schema["additionalProperties"] is False
    top: Any = SCHEMA
    assert list(top["properties"]) == ["action", "items", "taskId"]
    assert top["properties"]["action"]["enum"] == ["get", "schedule", "list", "cancel", "clear"]
    assert list(top["properties"]["items"]["items"]["properties"]) == ["dueAt", "task", "tool", "arguments"]


CALLS: dict[str, tuple[dict[str, Any], Callable[[Any], Any]]] = {
    "/v1/messages": ({"messages": [{"role": "user", "content": "a"}], "max_tokens": 5}, lambda body: body["tools"][0]),
    "/v1/chat/completions": ({"messages": [{"role": "user", "content": "a"}]}, lambda body: body["tools"][0]["function"]),
    "/v1/responses": ({"input": "a"}, lambda body: body["tools"][0]),
    "/v1beta/models/m:generateContent": (
        {"contents": [{"parts": [{"text": "a"}]}]},
        lambda body: body["tools"][0]["functionDeclarations"][0],
    ),
}


MARKED = (Dialect.CHAT, Dialect.RESPONSES)
"""The dialects in which every host takes the mark of strictness."""


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("path", CALLS)
def test_c20_in_every_dialect(path: str, strict: bool) -> None:
    body, tool_of = CALLS[path]
    endpoint = endpoint_of("POST", path)
    assert endpoint is not None
    call = read_call(json.dumps({"model": "m", **body}).encode(), endpoint)
    tool = tool_of(with_tool(call, NAME, DESCRIPTION, SCHEMA, strict=strict).body)
    assert (tool["name"], tool["description"]) == ("clock", DESCRIPTION)
    assert tool.get("strict", False) is (strict and endpoint.dialect in MARKED)
    schema = next(tool[key] for key in ("input_schema", "parameters") if key in tool)
    assert list(schema["properties"]) == ["action", "items", "taskId"]
    for inner in schemas(schema):
        assert isinstance(inner["type"], str)
        assert inner.keys() <= (KEYWORDS if "v1beta" not in path else KEYWORDS - {"additionalProperties"})


# --- who asked has left


def test_nothing_is_changed_for_whom_is_gone(model: Model) -> None:
    kept = model.schedule(ITEM)["scheduled"][0]["taskId"]
    before, model.left = model.tasks, lambda: True
    for arguments in (
        {"action": "schedule", "items": [{**ITEM, "task": "another"}], "taskId": ""},
        {"action": "cancel", "items": [], "taskId": kept},
        {"action": "clear", "items": [], "taskId": ""},
    ):
        assert "has left" in model.refused(**arguments)
    assert model.tasks == before
    assert model.call(action="list", items=[], taskId="")["ok"]
