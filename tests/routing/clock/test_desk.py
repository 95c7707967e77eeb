"""The clock at the desk: an edited call never changes where a call goes (C29), and what the person's own tags do."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from routecodex.routing.clock.moment import moment_at
from routecodex.routing.clock.time_tag import tag_text
from routecodex.routing.desk.desk import Plan, Reply
from routecodex.routing.dialects.calls.ending import with_texts
from routecodex.routing.errors import StoreError
from routecodex.routing.turn.hidden_store import HiddenStore
from routecodex.routing.turn.request import Request
from routecodex.routing.values import Caller, Dialect
from tests.routing.clock.playing import House as Ours
from tests.routing.clock.playing import at_once
from tests.routing.house import House, config_text, done, inline, provider_text
from tests.system.talk import request
from tests.system.tool import HOSTS

TAG = tag_text(moment_at(1_800_000_000_000, 0, "UTC"))
ROUTES = "default: [rest.m], thinking: [deep.m], coding: [code.m], search: [look.m], tools: [many.m], longcontext: [large.m]"
PROVIDERS = "".join(provider_text(name, "k", "m") for name in ("rest", "deep", "code", "look", "many", "large"))

HOPS = {
    "coding": ("Edit", {"file_path": "a.py", "old_string": "a", "new_string": "b"}, "code.k.m"),
    "search": ("Grep", {"pattern": "x"}, "look.k.m"),
}


def house_at(folder: Path, *, longest: int = 180_000) -> House:
    return House(folder, config_text(ROUTES, PROVIDERS, more=f"  classifier: {{longContextThresholdTokens: {longest}}}"))


def asked(house: House, dialect: Dialect, history: list[tuple[str, str]], tool: tuple[str, dict[str, Any]] = ("Bash", {})) -> Any:
    path, body = request(dialect, "m", history, False, tool)
    return house.received(path, body, host=HOSTS[dialect].removeprefix("https://"), headers=(("x-session-id", "one"),))


@pytest.mark.parametrize("dialect", list(Dialect), ids=str)
@pytest.mark.parametrize("name", HOPS)
def test_c29_a_tool_hop_goes_where_it_went(tmp_path: Path, dialect: Dialect, name: str) -> None:
    house = house_at(tmp_path)
    tool, arguments, expected = HOPS[name]
    reading = house.desk.read(asked(house, dialect, [("user", "please go on"), ("hop", "done")], (tool, arguments)))
    orders = done(house.desk.obeying.obey(reading, inline))
    sent = with_texts(reading.call, ["[Clock Reminder]\nanalysis: think step by step", TAG])
    plain, edited = house.desk.route(reading, orders), house.desk.route(reading, orders, sent=sent)
    assert isinstance(plain, Plan)
    assert isinstance(edited, Plan)
    assert str(plain.target) == str(edited.target) == expected
    assert json.loads(edited.request().body) == json.loads(json.dumps(sent.body)) | (
        {} if dialect is Dialect.GEMINI else {"model": "m"}
    )
    assert TAG.encode() in edited.request().body
    assert TAG.encode() not in plain.request().body


@pytest.mark.parametrize("dialect", list(Dialect), ids=str)
@pytest.mark.parametrize("name", HOPS)
def test_c29_with_the_clock_itself(tmp_path: Path, dialect: Dialect, name: str) -> None:
    """A reminder that is due, whose text would choose another route, and the time."""
    house, ours = house_at(tmp_path), Ours(tmp_path / "clock")
    tool, arguments, expected = HOPS[name]
    ours.task("analysis: think step by step, and search the web", 30, session="one")
    house.desk.plugins, house.desk.hidden = (ours.plugin,), HiddenStore(tmp_path / "sessions")
    reading = house.desk.read(asked(house, dialect, [("user", "please go on"), ("hop", "done")], (tool, arguments)))
    orders = done(house.desk.obeying.obey(reading, inline))
    plain = house.desk.route(reading, orders)

    async def edited() -> tuple[Reply | Plan, bytes]:
        participants = house.desk.participants(reading, orders, at_once)
        assert participants is not None
        sent = await participants.begin()
        outcome = house.desk.route(reading, orders, participants.life.hints, sent=sent)
        assert isinstance(outcome, Plan)
        outcome.call = participants.offer(outcome.call, able=outcome.provider.server_tools)
        body = outcome.request().body
        await participants.leave(aborted=True)
        return outcome, body

    outcome, body = asyncio.run(edited())
    assert isinstance(plain, Plan)
    assert isinstance(outcome, Plan)
    assert str(plain.target) == str(outcome.target) == expected
    assert [body.count(mark) for mark in (b"[scheduled task:", b"[Time/Date]:", b"Current time, and reminders")] == [1, 1, 1]


def test_c29_nor_does_its_size(tmp_path: Path) -> None:
    house = house_at(tmp_path, longest=1_000)
    reading = house.desk.read(asked(house, Dialect.CHAT, [("user", "hi")]))
    orders = done(house.desk.obeying.obey(reading, inline))
    plan = house.desk.route(reading, orders, sent=with_texts(reading.call, ["word " * 20_000]))
    assert isinstance(plan, Plan)
    assert str(plan.target) == "deep.k.m", "not by its size"


def test_a_plugin_may_ask_for_another_model(tmp_path: Path) -> None:
    house = House(tmp_path)
    reading = house.desk.read(asked(house, Dialect.CHAT, [("user", "<**openai**> hi")]))
    edit = Request(reading.call, id="x", round=0)
    edit.body["model"] = "gpt-5.2"
    plan = house.desk.route(reading, done(house.desk.obeying.obey(reading, inline)), sent=edit.call)
    assert isinstance(plan, Plan)
    assert plan.target.model == "gpt-5.2"


# ---- tags ----


class Kept:
    """What the clock keeps, as the desk knows it."""

    def __init__(self, *, fails: bool = False) -> None:
        self.cleared: list[str | None] = []
        self.fails = fails

    def clear(self, caller: Caller) -> str:
        if self.fails:
            raise StoreError("The session file clock/one.json could not be removed: disk full")
        self.cleared.append(caller.session)
        return "The clock's tasks are cleared: 2."

    def status(self, caller: Caller) -> str:
        return "Clock: 3 tasks, the earliest due soon."


def clocked(folder: Path, *, fails: bool = False) -> tuple[House, Kept]:
    house = House(folder, config_text(more="  clock: {enabled: true, ntp: {enabled: false}}"))
    kept = Kept(fails=fails)
    house.desk.reminders = kept
    return house, kept


def said(house: House, *texts: str) -> Reply | Plan:
    roles = ["user", "assistant"] * len(texts)
    return house.handle(asked(house, Dialect.CHAT, list(zip(roles, texts, strict=False)))).outcome


def text_of(outcome: Reply | Plan) -> str:
    assert isinstance(outcome, Reply)
    return str(json.loads(outcome.body)["choices"][0]["message"]["content"])


def test_c10_the_answer_says_how_many(tmp_path: Path) -> None:
    house, kept = clocked(tmp_path)
    text = text_of(said(house, "<**clock:clear**>"))
    assert "The clock's tasks are cleared: 2." in text.split("\n")[0]
    assert "Clock: 3 tasks, the earliest due soon." in text
    assert kept.cleared == ["one"]


def test_c09_c10_once_and_only_by_the_newest_message(tmp_path: Path) -> None:
    house, kept = clocked(tmp_path)
    assert isinstance(said(house, "<**clock:clear**> and go on"), Plan)
    assert isinstance(said(house, "<**clock:clear**> and go on"), Plan), "the client repeats it"
    assert isinstance(said(house, "<**clock:clear**> and go on", "ok", "more"), Plan)
    assert kept.cleared == ["one"]


def test_status_is_not_told_where_the_clock_is_off(tmp_path: Path) -> None:
    assert "Clock" not in text_of(said(House(tmp_path), "<**status**>"))


def test_c10_what_cannot_be_cleared_is_refused_and_may_be_said_again(tmp_path: Path) -> None:
    house, kept = clocked(tmp_path, fails=True)
    refused = said(house, '<**clock:clear**> <**stopMessage:"on",2**> go')
    assert isinstance(refused, Reply)
    assert b"could not be removed" in refused.body
    assert house.files == [], "nothing else of the message was obeyed"
    kept.fails = False
    assert isinstance(said(house, '<**clock:clear**> <**stopMessage:"on",2**> go'), Plan)
    assert kept.cleared == ["one"]
