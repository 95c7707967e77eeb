"""M25-M28, the pure half: what lists and conversations say about the work left."""

from __future__ import annotations

import json
from typing import Any

import pytest

from routecodex.routing.dialects.calls import read_call
from routecodex.routing.stop_message.work_state import Work, count_listed, from_conversation, from_lists
from routecodex.routing.values import Call, Dialect, Endpoint
from tests.rig.work import assert_linear


@pytest.mark.parametrize(
    "output,count",
    [
        (b"[]", 0),
        (b"null\n", 0),
        (b'[{"id": "bd-1"}]', 1),
        (b'{"issues": [{}, {}]}', 2),
        (b'{"items": []}', 0),
        (b"", None),
        (b"  \n", None),
        (b"no database found", None),
        (b'{"error": "x"}', None),
        (b'{"issues": "x"}', None),
        (b"3", None),
        (b"[", None),
        (b"\xff", None),
    ],
)
def test_count_listed(output: bytes, count: int | None) -> None:
    assert count_listed(output) == count


@pytest.mark.parametrize(
    "in_progress,ready,work",
    [
        (1, None, Work.ACTIVE),
        (0, 2, Work.ACTIVE),
        (None, 1, Work.ACTIVE),
        (0, 0, Work.IDLE),
        (0, None, Work.UNKNOWN),
        (None, 0, Work.UNKNOWN),
        (None, None, Work.UNKNOWN),
    ],
)
def test_from_lists(in_progress: int | None, ready: int | None, work: Work) -> None:
    assert from_lists(in_progress, ready) is work


Run = tuple[str, str]
LIST, READY = "bd --no-db list --status in_progress --json", "bd --no-db ready --json"


def anthropic(*runs: Run) -> Call:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
    for number, (command, output) in enumerate(runs):
        use = {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": command}}
        result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": output}
        messages += [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
    return _call(Dialect.MESSAGES, {"model": "m", "max_tokens": 1, "messages": messages})


def codex(*runs: Run) -> Call:
    items: list[dict[str, Any]] = []
    for number, (command, output) in enumerate(runs):
        arguments = json.dumps({"command": ["bash", "-lc", command]})
        items.append({"type": "function_call", "call_id": f"c{number}", "name": "shell", "arguments": arguments})
        items.append({"type": "function_call_output", "call_id": f"c{number}", "output": output})
    return _call(Dialect.RESPONSES, {"model": "m", "input": items})


def gemini(*runs: Run) -> Call:
    """Calls without ids: all have their tool's name."""
    contents: list[dict[str, Any]] = []
    for command, output in runs:
        contents.append({"role": "model", "parts": [{"functionCall": {"name": "sh", "args": {"command": command}}}]})
        contents.append({"role": "user", "parts": [{"functionResponse": {"name": "sh", "response": {"output": output}}}]})
    return _call(Dialect.GEMINI, {"contents": contents})


def _call(dialect: Dialect, body: dict[str, Any]) -> Call:
    return read_call(json.dumps(body).encode(), Endpoint(dialect, model="m" if dialect is Dialect.GEMINI else None))


CASES: list[tuple[str, list[Run], Work]] = [
    ("M27-show-text", [("bd show bd-7", "bd-7: fix it\nStatus: in_progress\n")], Work.ACTIVE),
    ("M27-show-json", [("bd show bd-7 --json", '{"id": "bd-7", "status": "in_progress"}')], Work.ACTIVE),
    ("open-list", [("cd /x && bd list --json", '[{"status":"open"}]')], Work.ACTIVE),
    ("listed-in-progress", [(LIST, '[{"id":"bd-1"}]')], Work.ACTIVE),
    ("ready", [(READY, '[{"id":"bd-1"}]')], Work.ACTIVE),
    ("update", [("bd update bd-1 --status in_progress", "updated")], Work.ACTIVE),
    ("both-empty", [(LIST, "[]"), (READY, "[]")], Work.IDLE),
    ("both-empty-in-words", [("bd list --status in_progress", "No issues found."), ("bd ready", "No ready work")], Work.IDLE),
    ("newest-wins", [(LIST, "[]"), (READY, "[]"), ("bd create 'next'", "bd-9 created")], Work.ACTIVE),
    ("newest-empty-wins", [(READY, '[{"id":"bd-1"}]'), (LIST, "[]"), (READY, "[]")], Work.IDLE),
    ("one-empty", [(READY, "[]")], Work.UNKNOWN),
    ("all-empty-list-is-not-both", [("bd list --json", "[]"), (READY, "[]")], Work.UNKNOWN),
    ("an-error", [(LIST, "Error: no database"), (READY, "Error")], Work.UNKNOWN),
    ("closed", [("bd close bd-1", "closed bd-1")], Work.UNKNOWN),
    ("another-program", [("abd ready", "[]"), ("echo status: in_progress", "status: in_progress")], Work.UNKNOWN),
    ("a-file-that-talks-about-it", [("cat notes.md", "bd-1 status: in_progress")], Work.UNKNOWN),
    ("nothing", [], Work.UNKNOWN),
]


@pytest.mark.parametrize("shape", [anthropic, codex, gemini])
@pytest.mark.parametrize("runs,work", [pytest.param(*case[1:], id=case[0]) for case in CASES])
def test_from_conversation(shape: Any, runs: list[Run], work: Work) -> None:
    assert from_conversation(shape(*runs)) is work


def test_text_of_people_and_models_says_nothing() -> None:
    text = "bd show says status: in_progress"
    messages = [{"role": "user", "content": text}, {"role": "assistant", "content": text}]
    assert from_conversation(_call(Dialect.CHAT, {"model": "m", "messages": messages})) is Work.UNKNOWN


@pytest.mark.parametrize("piece", ["bd ", "bd -", "bd --a ", "status: ", "[in_progress", "no work ", "\n"])
def test_hostile_text_takes_linear_time(piece: str) -> None:
    def make(size: int) -> Call:
        text = piece * (size // len(piece))
        return anthropic((text, "x"), ("bd show 1", text), ("bd ready", text))

    assert_linear(from_conversation, make, 250_000)
