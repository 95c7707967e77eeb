"""A4: a history of very many messages of one kind, of whatever kind: four times as many are four times the work."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from routecodex.routing.desk.desk import Plan
from routecodex.routing.tags.status import LOCAL_ANSWER_MARK
from routecodex.routing.turn.upstream import HistorySealed, Received
from routecodex.routing.values import Dialect
from tests.rig.work import assert_as_many_lines, assert_linear
from tests.routing.house import Handled, House, Tool, assistant_item, config_text, hop_items, user_item

Items: TypeAlias = list[dict[str, Any]]
Unit: TypeAlias = Callable[[Dialect, int], Items]

OURS = f"{LOCAL_ANSWER_MARK} ok"
SUMMARY = "Another language model started to solve this problem and produced a summary"
CONTINUED = "This session is being continued from a previous conversation that ran out of context. x"
REMINDER = "<system-reminder>x</system-reminder>"


def said(*texts: str) -> Unit:
    """A person's texts, and what was answered; `""` where nothing was."""

    def items(dialect: Dialect, number: int) -> Items:
        question, answer = (text.format(number) for text in texts)
        return [user_item(dialect, question), *([assistant_item(dialect, answer)] if answer else [])]

    return items


def followed(unit: Unit, *more: Unit) -> Unit:
    return lambda dialect, number: [item for one in (unit, *more) for item in one(dialect, number)]


def hop(result: str) -> Unit:
    return lambda dialect, number: hop_items(dialect, result, number)


def system(dialect: Dialect, number: int) -> Items:
    return [user_item(dialect, REMINDER) if dialect is Dialect.GEMINI else {"role": "system", "content": "environment"}]


def thought(dialect: Dialect, number: int) -> Items:
    match dialect:
        case Dialect.MESSAGES:
            return [{"role": "assistant", "content": [{"type": "thinking", "thinking": "x", "signature": f"{number:020}"}]}]
        case Dialect.CHAT:
            sealed = {"type": "reasoning.encrypted", "data": f"{number}"}
            return [{"role": "assistant", "content": "x", "reasoning_content": "y", "reasoning_details": [sealed]}]
        case Dialect.RESPONSES:
            return [{"type": "reasoning", "summary": [], "encrypted_content": f"{number}"}]
        case _:
            return [{"role": "model", "parts": [{"text": "x", "thought": True, "thoughtSignature": "AAAA"}]}]


def compacted(dialect: Dialect, number: int) -> Items:
    if dialect is Dialect.RESPONSES:
        return [{"type": "compaction", "encrypted_content": f"{number}"}]
    return [user_item(dialect, CONTINUED)]


UNITS: dict[str, Unit] = {
    "plain": said("hi {}", "ok"),
    "plain, unanswered": said("hi {}", ""),
    "answers alone": lambda dialect, number: [assistant_item(dialect, f"hi {number}")],
    "our answers alone": lambda dialect, number: [assistant_item(dialect, OURS)],
    "a tag": said("<**!glm**>", "sure"),
    "a tag, unanswered": said("<**!glm**>", ""),
    "a tag, answered by us": said("<**!glm**>", OURS),
    "a tag beside words": said("<**!glm**> hi {}", "ok"),
    "a tag behind a reminder": said(f"{REMINDER}\n<**!glm**>", OURS),
    "a tag in a file": said("<file_content>\n<**!glm**>\n</file_content>\nhi", "ok"),
    "a tag of nothing": said("<**gml{}**> hi <**!glm", "ok"),
    "a reminder's tag": followed(said("<**clock:clear**>", OURS), said("[Request interrupted by user]", "")),
    "stopMessage": followed(said('<**stopMessage:"go {}",3**> do', "ok"), hop("done")),
    "a picture": lambda dialect, number: [
        user_item(dialect, "<**!glm**>", image=True),
        assistant_item(dialect, "ok"),
    ],
    "hops": hop("done"),
    "tags in results": hop("<**!glm**> done"),
    "calls alone": lambda dialect, number: hop_items(dialect, "", number)[:1],
    "results alone": lambda dialect, number: hop_items(dialect, "", number)[1:],
    "system items": followed(said("<**!glm**>", ""), system, system),
    "thoughts": followed(said("<**!glm**> hi", ""), thought, said("hi", "ok")),
    "summaries in words": followed(said("<**!glm**>", ""), said(SUMMARY, "")),
    "compactions": followed(said("<**!glm**>", ""), compacted),
}

CLIENTS = {
    "unknown": {},
    "claude": {"user-agent": "claude-cli/2.1.328 (external, cli)", "x-app": "cli"},
    "codex": {"user-agent": "codex_exec/0.169.0", "originator": "codex_exec"},
    "opencode": {"user-agent": "opencode/1.18.33"},
    "aider": {"user-agent": "litellm/1.0"},
    "cline": {"user-agent": "Cline/3"},
}
SPOKEN = {
    Dialect.MESSAGES: Dialect.CHAT,
    Dialect.CHAT: Dialect.MESSAGES,
    Dialect.RESPONSES: Dialect.GEMINI,
    Dialect.GEMINI: Dialect.RESPONSES,
}
"""What the other provider of each client speaks."""
GOES = ("home", "abroad", "translated")


def config_for(goes: str, dialect: Dialect) -> str:
    if goes != "translated":
        return config_text("default: [origin]" if goes == "home" else "default: [glm.glm-4.7]")
    return config_text(
        "default: [x.m]",
        f"""
    x:
      protocol: {SPOKEN[dialect]}
      baseURL: https://x.example/v1
      auth: {{type: apikey, keys: [{{alias: k, value: sk-x-k-secret}}]}}
      models: {{m: {{}}}}""",
    )


def cases() -> list[Any]:
    """Each kind in one dialect, from one client, to one place; all of them where there is time for it."""
    ways = [
        (dialect, client, goes)
        for dialect in Dialect
        for client in CLIENTS
        for goes in GOES
        if client == "unknown" or goes == "home"
    ]
    found = []
    for number, unit in enumerate(UNITS):
        for place, (dialect, client, goes) in enumerate(ways):
            marks = () if place % 8 == number % 8 else (pytest.mark.long,)
            found.append(pytest.param(unit, dialect, client, goes, marks=marks, id=f"{unit}, {dialect} of {client} {goes}"))
    return found


@pytest.mark.parametrize("unit, dialect, client, goes", cases())
def test_very_many_messages_are_linear_work(unit: str, dialect: Dialect, client: str, goes: str, tmp_path: Path) -> None:
    config = config_for(goes, dialect)
    folders = iter(tmp_path / str(number) for number in range(3))

    def make(count: int) -> tuple[House, Received]:
        house = House(next(folders), config)
        history = [item for number in range(count) for item in UNITS[unit](dialect, number)]
        tool = Tool(house, dialect, history=[*history, user_item(dialect, "now")], headers=CLIENTS[client])
        return house, tool.received()

    def work(made: tuple[House, Received]) -> Handled:
        house, received = made
        handled = house.handle(received)
        if isinstance(handled.outcome, Plan):
            try:
                assert handled.plan.request().body
            except HistorySealed:
                assert unit == "compactions"
        return handled

    assert_as_many_lines(work, make, 60)


@pytest.mark.parametrize("base", ["https://x.example/v1", "https://api.mistral.ai/v1"])
@pytest.mark.parametrize("unit", ["answers alone", "calls alone", "plain, unanswered"])
def test_what_becomes_one_message_for_a_provider_is_put_together_once(unit: str, base: str, tmp_path: Path) -> None:
    config = config_for("translated", Dialect.MESSAGES).replace("https://x.example/v1", base)

    def make(count: int) -> Handled:
        house = House(tmp_path / str(time.monotonic_ns()), config)
        history = [item for number in range(count) for item in UNITS[unit](Dialect.MESSAGES, number)]
        return house.handle(Tool(house, history=[*history, user_item(Dialect.MESSAGES, "now")]).received())

    assert_linear(lambda handled: handled.plan.request().body, make, 3_000)


@pytest.mark.parametrize("dialect, with_ids", [*((dialect, True) for dialect in Dialect), (Dialect.GEMINI, False)])
def test_very_many_calls_side_by_side_are_linear_work(dialect: Dialect, with_ids: bool, tmp_path: Path) -> None:
    """Their results come the other way round."""
    config, folders = config_for("translated", dialect), iter(tmp_path / str(number) for number in range(3))

    def make(count: int) -> tuple[House, Received]:
        hops = [hop_items(dialect, "done", number) for number in range(count)]
        if dialect is Dialect.GEMINI:
            for number, (call, result) in enumerate(hops):
                about = {"name": f"tool_{number}", **({"id": f"call_{number}"} if with_ids else {})}
                call["parts"][0]["functionCall"] |= about
                result["parts"][0]["functionResponse"] |= about
        history = [user_item(dialect, "go"), *(call for call, _ in hops), *(result for _, result in reversed(hops))]
        house = House(next(folders), config)
        return house, Tool(house, dialect, history=history).received()

    assert_as_many_lines(lambda made: made[0].handle(made[1]).plan.request().body, make, 150)


@pytest.mark.parametrize("dialect", Dialect)
def test_a_message_of_very_many_parts_is_linear_work(dialect: Dialect, tmp_path: Path) -> None:
    folders = iter(tmp_path / str(number) for number in range(3))

    def make(count: int) -> tuple[House, Received]:
        house, item = House(next(folders)), user_item(dialect, "<**!glm**>")
        key = "parts" if dialect is Dialect.GEMINI else "content"
        return house, Tool(house, dialect, history=[{**item, key: item[key] * count}]).received()

    assert_as_many_lines(lambda made: made[0].handle(made[1]).outcome, make, 60)
