"""Tasks: when they are due, when they are too old, how they stand in a file."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import fields, replace

from routecodex.routing.clock.tasks import LATEST_MS, Task, due_ones, from_json, in_order, is_due, is_expired, to_json
from routecodex.routing.jsonbytes import dumps, loads

DUE = 1_800_000_000_000
WINDOW = 60_000
RETENTION = 1_200_000
TASK = Task("t1", "s1", DUE, DUE - 5_000, DUE - 4_000, "look at the build")
FULL = replace(
    TASK,
    tool="Bash",
    arguments={"command": "make", "n": 1.5, "list": [1, None, True]},
    delivered_at_ms=DUE + 1,
    delivery_count=1,
    not_before_request_id="r1",
    origin="0123456789abcdef",
)
FULL_JSON = {
    "taskId": "t1",
    "sessionId": "s1",
    "dueAtMs": DUE,
    "createdAtMs": DUE - 5_000,
    "updatedAtMs": DUE - 4_000,
    "task": "look at the build",
    "tool": "Bash",
    "arguments": {"command": "make", "n": 1.5, "list": [1, None, True]},
    "deliveredAtMs": DUE + 1,
    "deliveryCount": 1,
    "notBeforeRequestId": "r1",
    "origin": "0123456789abcdef",
}
OPTIONAL = ("tool", "arguments", "deliveredAtMs", "notBeforeRequestId", "origin")


@pytest.mark.parametrize(
    "now, window, expected",
    [
        pytest.param(DUE - WINDOW - 1, WINDOW, False, id="not yet"),
        pytest.param(DUE - WINDOW, WINDOW, True, id="a minute before"),
        pytest.param(DUE + 500, WINDOW, True, id="C04 half a second ago"),
        pytest.param(DUE + 10 * RETENTION, WINDOW, True, id="expired is due as well"),
        pytest.param(DUE - 1, 0, False, id="no window, not yet"),
        pytest.param(DUE, 0, True, id="no window"),
    ],
)
def test_due(now: int, window: int, expected: bool) -> None:
    assert is_due(TASK, now, window) is expected


@pytest.mark.parametrize(
    "now, expected",
    [
        pytest.param(DUE, False, id="just due"),
        pytest.param(DUE + RETENTION, False, id="the last moment"),
        pytest.param(DUE + RETENTION + 1, True, id="C35 past retention"),
        pytest.param(None, False, id="no time to be trusted"),
    ],
)
def test_expired(now: int | None, expected: bool) -> None:
    assert is_expired(TASK, now, RETENTION) is expected


TIMES = st.integers(DUE - 200_000, DUE + 200_000)


@given(st.lists(TIMES), TIMES)
def test_those_that_are_due_stand_first(times: list[int], now: int) -> None:
    tasks = in_order(replace(TASK, task_id=str(number), due_at_ms=due) for number, due in enumerate(times))
    assert list(due_ones(tasks, now, WINDOW)) == [task for task in tasks if is_due(task, now, WINDOW)]


def test_what_is_due_at_the_same_time_stays_in_order() -> None:
    tasks = [replace(TASK, task_id=id, due_at_ms=due) for id, due in (("b", 5), ("a", 5), ("c", 1), ("0", 5))]
    assert [task.task_id for task in in_order(tasks)] == ["c", "b", "a", "0"]


def test_the_published_names() -> None:
    assert to_json(FULL) == FULL_JSON
    assert list(to_json(FULL)) == list(FULL_JSON)
    assert to_json(TASK) == {**{name: value for name, value in FULL_JSON.items() if name not in OPTIONAL}, "deliveryCount": 0}
    assert from_json(FULL_JSON, "s1") == FULL


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
INSTANT = st.integers(0, LATEST_MS)
SOME = st.text(min_size=1)
TASKS = st.builds(
    Task,
    task_id=SOME,
    session_id=SOME,
    due_at_ms=INSTANT,
    created_at_ms=INSTANT,
    updated_at_ms=INSTANT,
    task=st.text(st.characters(), min_size=1),
    tool=st.none() | SOME,
    arguments=st.none() | st.dictionaries(st.text(), JSON, max_size=3),
    delivered_at_ms=st.none() | INSTANT,
    delivery_count=st.integers(0, 10**6),
    not_before_request_id=st.none() | SOME,
    origin=st.text(),
)


@given(TASKS)
def test_what_is_written_is_read_again(task: Task) -> None:
    assert from_json(loads(dumps(to_json(task))), task.session_id) == task


def test_no_field_is_forgotten() -> None:
    assert len(to_json(FULL)) == len(fields(Task))


@pytest.mark.parametrize("field", [*OPTIONAL, "createdAtMs", "updatedAtMs", "deliveryCount", "sessionId"])
@pytest.mark.parametrize("wrong", [None, -1, [], "", float("1e300")])
def test_a_field_of_a_wrong_type_costs_no_task(field: str, wrong: Any) -> None:
    task = from_json({**FULL_JSON, field: wrong}, "s1")
    assert task is not None
    assert (task.task_id, task.due_at_ms, task.task, task.session_id) == ("t1", DUE, "look at the build", "s1")


@pytest.mark.parametrize(
    "changes",
    [
        {"taskId": ""},
        {"taskId": 5},
        {"dueAtMs": None},
        {"dueAtMs": "2026-01-21"},
        {"dueAtMs": True},
        {"dueAtMs": -1},
        {"dueAtMs": 10**400},
        {"dueAtMs": LATEST_MS + 1},
        {"task": ""},
        {"task": ["a"]},
    ],
    ids=str,
)
def test_what_is_no_task(changes: dict[str, Any]) -> None:
    assert from_json({**FULL_JSON, **changes}, "s1") is None


@pytest.mark.parametrize("value", [None, [], "t1", 5, {}])
def test_what_is_no_object(value: object) -> None:
    assert from_json(value, "s1") is None
