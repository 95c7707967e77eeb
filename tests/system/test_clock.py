"""The clock through the real proxy: a model that sets itself reminders, and sees them come when their time has come."""

from __future__ import annotations

import asyncio
import json
import re
import time
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from routecodex.routing.values import Dialect
from tests.rig.behaviour import Behaviour
from tests.rig.client import Answer, Leave
from tests.rig.provider import FakeProvider, Received
from tests.rig.proxy import SCRIPT, Mitmdump
from tests.rig.wire import Reply, ToolUse
from tests.system.speaker import EXTRAS, FORMS, IDS, Speaker, said_by_user
from tests.system.tool import CONFIG
from tests.system.watched import until, watched

pytestmark = pytest.mark.system

every_form = pytest.mark.parametrize("dialect, stream", FORMS, ids=IDS)
every_dialect = pytest.mark.parametrize("dialect", list(Dialect), ids=str)

Says = Reply | Behaviour | Callable[[Received], Reply]
Speak = Callable[..., Speaker]

TASK = 'look at the "build"'
ONE_LINE = 'look at the \\"build\\"'
"""The same as the reminder writes it."""
HELD = '{"action": "hold"}'


def config(**clock: Any) -> str:
    settings = {"enabled": True, "ntp": {"enabled": False}, **clock}
    return f"{CONFIG}  clock: {json.dumps(settings)}\n"


@pytest.fixture(scope="module")
def house(provider: FakeProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mitmdump]:
    folder = tmp_path_factory.mktemp("clock")
    with Mitmdump(script=SCRIPT, config=config(), upstream=provider, folder=folder) as started:
        yield started
        assert started.alive
        assert "RouteCodex failed" not in started.log
        assert "build" not in started.log, "a task's text is in the log"


@pytest.fixture
def speak(provider: FakeProvider, house: Mitmdump) -> Speak:
    provider.forget()

    def make(dialect: Dialect = Dialect.MESSAGES, stream: bool = True, **more: Any) -> Speaker:
        return Speaker(provider, house, dialect, stream, **more)

    return make


# ---- what the model says ----


def model(provider: FakeProvider, *says: Says) -> None:
    """One after another; then it says `ok` for ever."""
    left = list(says)

    def rule(received: Received) -> Behaviour:
        if received.asked is None or received.asked.action != "generate":
            return Behaviour()
        said = left.pop(0) if left else Reply("ok")
        if isinstance(said, Behaviour):
            return said
        return Behaviour(reply=said if isinstance(said, Reply) else said(received))

    provider.script(rule)


def use(action: str, **fields: Any) -> ToolUse:
    return ToolUse("clock", {"action": action, "items": [], "taskId": "", **fields})


def sets(in_s: float, task: str = TASK, text: str = "", *more: ToolUse) -> Callable[[Received], Reply]:
    """Set a reminder, so many seconds from when it is said."""

    def say(_: Received) -> Reply:
        item = {"dueAt": iso(in_s), "task": task, "tool": "", "arguments": "{}"}
        return Reply(text, calls=(use("schedule", items=[item]), *more))

    return say


def iso(in_s: float) -> str:
    return (datetime.now(UTC) + timedelta(seconds=in_s)).isoformat()


# ---- what the provider got, and what lies on the disk ----


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for child in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from strings(child)


def texts(received: Received) -> str:
    return "\n".join(strings(received.json))


def tags(received: Received) -> int:
    return texts(received).count("[Time/Date]:")


def untagged(value: Any) -> Any:
    """The same without the time."""
    if isinstance(value, str):
        return re.sub(r"(?:\n\n)?\[Time/Date\]: .*`\Z", "", value)
    if isinstance(value, dict):
        return {name: untagged(child) for name, child in value.items()}
    if isinstance(value, list):
        return [untagged(child) for child in value if not _is_tag(child)]
    return value


def _is_tag(item: Any) -> bool:
    """A part, or a message, that is nothing else."""
    if not isinstance(item, dict):
        return False
    parts = item.get("content", item.get("parts"))
    if isinstance(parts, list) and parts:
        return all(map(_is_tag, parts))
    return str(item.get("text", parts or "")).startswith("[Time/Date]:")


def reminded(received: Received) -> list[str]:
    """The tasks in the reminders of one request."""
    return re.findall(r'^\[scheduled task:"(.*)"\] dueAt=', texts(received), re.MULTILINE)


def offered(received: Received) -> bool:
    return re.search(rb'"name":\s?"clock","description"', received.body) is not None


def results(received: Received) -> list[dict[str, Any]]:
    """What our tool answered, as far as the history holds it."""
    found = [json.loads(text) for text in strings(received.json) if text.startswith('{"ok":')]
    return [result for result in found if isinstance(result, dict)]


def uses_in(dialect: Dialect, items: list[dict[str, Any]]) -> list[str]:
    """The tools that a history calls, in order."""
    written = json.dumps(items)
    keys = {Dialect.MESSAGES: '"tool_use", "id": "[^"]*", "name": ', Dialect.GEMINI: '"functionCall": {"name": '}
    return re.findall(keys.get(dialect, '"name": ') + '"(clock|Bash)"', written)


def tasks(speaker: Speaker) -> list[dict[str, Any]]:
    path = speaker.proxy.sessions / "clock" / f"{speaker.session}.json"
    return list(json.loads(path.read_bytes())["tasks"]) if path.exists() else []


def delivered(speaker: Speaker) -> list[int]:
    return [task["deliveryCount"] if "deliveredAtMs" in task else 0 for task in tasks(speaker)]


def asked(speaker: Speaker) -> list[Received]:
    return [received for received in speaker.provider.requests if received.asked is not None]


# ---- the tool ----


@every_form
def test_c16_c17_c20_a_pure_call_of_the_clock(speak: Speak, dialect: Dialect, stream: bool) -> None:
    speaker = speak(dialect, stream)
    model(speaker.provider, Reply("Let me see.", calls=(use("get"),)), Reply("It is late."))
    told = speaker.told(speaker.ask("what time is it?"))
    assert (told.text, told.calls) == ("Let me see.\n\nIt is late.", [])
    first, second = asked(speaker)
    assert offered(first)
    assert offered(second)
    (result,) = results(second)
    assert result["ok"] is True
    assert abs(result["nowMs"] / 1000 - time.time()) < 30
    assert "clock" not in json.dumps(speaker.items), "the client knows of the tool"


@every_form
def test_c12_c14_mixed_with_a_call_of_the_clients(speak: Speak, dialect: Dialect, stream: bool) -> None:
    speaker = speak(dialect, stream)
    bash = ToolUse("Bash", {"command": "make"}, "" if dialect is Dialect.GEMINI else "call_bash_1")
    model(speaker.provider, sets(3600, TASK, "On it.", bash), Reply("done"), Reply("more"))
    told = speaker.told(speaker.ask("build it"))
    assert (told.text, [name for name, _ in told.calls]) == ("On it.", ["Bash"])
    assert len(asked(speaker)) == 1, "no round follows before the client's own tool has run"
    assert [task["task"] for task in tasks(speaker)] == [TASK]
    speaker.give([(told.ids[0], "Bash", "built")])
    speaker.ask("and?")
    _, second, third = asked(speaker)
    before, after = (untagged(speaker.history(received)) for received in (second, third))
    assert json.dumps(after[: len(before)]) == json.dumps(before), "the pair is put back in the same place, every time"
    assert [result["ok"] for result in results(second)] == [result["ok"] for result in results(third)] == [True]
    assert uses_in(dialect, before) == ["clock", "Bash"]
    assert "built" in json.dumps(before)


@pytest.fixture(scope="module")
def forgetful(provider: FakeProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mitmdump]:
    """Nothing can be written where hidden rounds are kept."""
    folder = tmp_path_factory.mktemp("forgetful")
    (folder / "sessions").mkdir(mode=0o700)
    (folder / "sessions" / "history").write_text("in the way")
    with Mitmdump(script=SCRIPT, config=config(), upstream=provider, folder=folder) as proxy:
        yield proxy
        assert proxy.alive
        assert "RouteCodex failed" not in proxy.log


@every_form
def test_c15_what_cannot_be_put_back_later_fails_visibly(
    provider: FakeProvider, forgetful: Mitmdump, dialect: Dialect, stream: bool
) -> None:
    """The client hears of an error, and not of a clean end: it repeats the call, and nothing is scheduled twice."""
    provider.forget()
    speaker = Speaker(provider, forgetful, dialect, stream)
    item = {"dueAt": iso(3600), "task": TASK, "tool": "", "arguments": "{}"}
    bash = ToolUse("Bash", {"command": "make"}, "" if dialect is Dialect.GEMINI else "call_bash_1")
    mixed = Reply("On it.", calls=(use("schedule", items=[item]), bash))
    model(provider, mixed, mixed, Reply("set"))
    answer = speaker.ask("build it", keep=False)
    assert "could not be" in answer.text, "the client is told why"
    if stream:
        assert answer.status == 200
        assert "make" in answer.text, "what had gone to the client stays with it"
        assert not any(end in answer.text for end in ENDS[dialect]), "an end was invented"
    else:
        assert answer.status == 500
        assert answer.header("x-should-retry") != "true"
    assert [task["task"] for task in tasks(speaker)] == [TASK]
    speaker.go_on(keep=False)
    assert [task["task"] for task in tasks(speaker)] == [TASK], "the same prompt, repeated"


ENDS = {
    Dialect.MESSAGES: ("message_stop",),
    Dialect.CHAT: ("[DONE]", '"finish_reason":"'),
    Dialect.RESPONSES: ("response.completed",),
    Dialect.GEMINI: ('"finishReason"',),
}
"""What says that an answer is whole."""


@every_dialect
def test_c01_a_client_without_a_session(speak: Speak, dialect: Dialect) -> None:
    speaker = speak(dialect, session=None)
    calls = (use("get"), use("cancel", taskId="x"), use("clear"), use("list"))
    model(speaker.provider, lambda received: Reply("", calls=(sets(5)(received).calls[0], *calls)), Reply("no"))
    assert speaker.told(speaker.ask(f"remind me, {uuid.uuid4()}")).text == "no"
    first, second = asked(speaker)
    assert offered(first)
    answers = {result["action"]: result for result in results(second)}
    assert {action: result["ok"] for action, result in answers.items()} == {
        "schedule": False, "get": True, "cancel": False, "clear": False, "list": False,
    }  # fmt: skip
    assert "session" in answers["schedule"]["message"]


def test_12_sessions_known_by_their_beginning_where_the_configuration_says_all(tmp_path: Path, provider: FakeProvider) -> None:
    provider.forget()
    text = config().replace("proxy:", "sessions: {derive: all}\nproxy:", 1)
    with Mitmdump(script=SCRIPT, config=text, upstream=provider, folder=tmp_path) as proxy:
        speaker = Speaker(provider, proxy, session=None)
        model(provider, sets(30), Reply("set"))
        speaker.ask("remind me")
        speaker.ask("and now?")
        assert reminded(asked(speaker)[-1]) == [ONE_LINE]


def test_c02_switched_off_but_still_in_the_history(tmp_path: Path, provider: FakeProvider) -> None:
    speakers = []
    with Mitmdump(script=SCRIPT, config=config(), upstream=provider, folder=tmp_path) as proxy:
        for dialect in Dialect:
            provider.forget()
            speakers.append(speaker := Speaker(provider, proxy, dialect))
            model(provider, Reply("", calls=(use("get"),)), Reply("late"))
            speaker.ask("what time is it?")
    with Mitmdump(script=SCRIPT, config=CONFIG, upstream=provider, folder=tmp_path) as proxy:
        for speaker in speakers:
            speaker.proxy = proxy
            provider.forget()
            model(provider, Reply("", calls=(use("get"),)), Reply("I cannot tell"))
            assert speaker.told(speaker.ask("and now?")).text == "I cannot tell"
            first, second = asked(speaker)
            assert not offered(first), speaker.dialect
            assert tags(first) == 0, speaker.dialect
            refused = results(second)[-1]
            assert refused["ok"] is False, speaker.dialect
            assert "virtualrouter.clock.enabled" in refused["message"], speaker.dialect


def test_21_a_clients_own_clock_stays_its_own(speak: Speak) -> None:
    own = {"name": "clock", "description": "mine", "input_schema": {"type": "object"}}
    speaker = speak(extras={**EXTRAS[Dialect.MESSAGES], "tools": [own]})
    model(speaker.provider, Reply("", calls=(ToolUse("clock", {"zone": "here"}),)))
    told = speaker.told(speaker.ask("what time is it?"))
    assert told.calls == [("clock", {"zone": "here"})]
    assert asked(speaker)[0].json["tools"] == [own]


@pytest.mark.parametrize("choice", [{"type": "tool", "name": "Bash"}, {"type": "none"}], ids=["forced", "forbidden"])
def test_19a_where_tools_are_forced_or_forbidden(speak: Speak, choice: dict[str, str]) -> None:
    speaker = speak(extras={**EXTRAS[Dialect.MESSAGES], "tool_choice": choice})
    speaker.ask("go")
    (received,) = asked(speaker)
    assert not offered(received)
    assert tags(received) == 1


# ---- the time ----


@every_form
def test_c28_c30_c36_the_time_is_told_once(speak: Speak, dialect: Dialect, stream: bool) -> None:
    speaker = speak(dialect, stream)
    bash = Reply("", calls=(ToolUse("Bash", {"command": "ls"}),), signature="")
    replies = [Reply("first"), bash, Reply("", calls=(use("get"),))]
    model(speaker.provider, *replies)
    speaker.ask("one")
    told = speaker.told(speaker.ask("two"))
    speaker.give([(told.ids[0] if told.ids else "", "Bash", "a file")])
    rounds = asked(speaker)
    assert [tags(received) for received in rounds] == [1, 1, 1, 0], "and none in a later round"
    for received in rounds[:3]:
        last = speaker.history(received)[-1]
        assert list(strings(last))[-1 if dialect is not Dialect.RESPONSES else 0 :], last
        assert texts_of(last)[-1].split("\n")[-1].startswith("[Time/Date]: utc=`")
    if dialect is Dialect.MESSAGES:
        roles = [item["role"] for item in speaker.history(rounds[2])]
        assert roles == ["user", "assistant", "user", "assistant", "user"]
        assert [part["type"] for part in speaker.history(rounds[2])[-1]["content"]] == ["tool_result", "text"]


def texts_of(item: dict[str, Any]) -> list[str]:
    content = item.get("content", item.get("parts"))
    parts = [{"text": content}] if isinstance(content, str) else content or []
    return [part["text"] for part in parts if "text" in part]


THINKING: dict[Dialect, dict[str, Any]] = {
    Dialect.MESSAGES: {"thinking": {"type": "enabled", "budget_tokens": 1024}},
    Dialect.CHAT: {"reasoning_effort": "high"},
    Dialect.RESPONSES: {"reasoning": {"effort": "high"}},
    Dialect.GEMINI: {"generationConfig": {"thinkingConfig": {"thinkingBudget": -1}}},
}


@every_dialect
def test_c28_not_on_a_tool_hop_of_a_model_that_thinks(speak: Speak, dialect: Dialect) -> None:
    """But a reminder that is due comes there as well: it might be too old when the hops are over."""
    speaker = speak(dialect, extras=EXTRAS[dialect] | THINKING[dialect])
    bash = ToolUse("Bash", {"command": "ls"}, "" if dialect is Dialect.GEMINI else "call_1")
    model(speaker.provider, sets(20, TASK, "", bash))
    told = speaker.told(speaker.ask("go"))
    speaker.give([(told.ids[0] if told.ids else "", "Bash", "a file")])
    first, hop = asked(speaker)
    assert (tags(first), tags(hop)) == (1, 0)
    assert reminded(hop) == [ONE_LINE]


# ---- reminders ----


@every_form
def test_c05_c06_c31_it_comes_with_the_next_call_and_once(speak: Speak, dialect: Dialect, stream: bool) -> None:
    speaker = speak(dialect, stream)
    model(speaker.provider, sets(30), Reply("set"))
    assert speaker.told(speaker.ask("remind me")).text == "set"
    assert len(asked(speaker)) == 2, "what is due at once is not held for"
    (task,) = tasks(speaker)
    assert task["notBeforeRequestId"]
    speaker.ask("go on")
    assert delivered(speaker) == [1]
    speaker.ask("and on")
    rounds = asked(speaker)
    assert [reminded(received) for received in rounds] == [[], [], [ONE_LINE], [ONE_LINE]]
    assert delivered(speaker) == [1], "it stands in the history where it came, and comes no second time"
    before, after = (untagged(speaker.history(received)) for received in rounds[2:])
    assert json.dumps(after[: len(before)]) == json.dumps(before)
    assert offered(rounds[2])
    last = texts_of(speaker.history(rounds[2])[-1])
    assert "\n".join(last).index("[Clock Reminder]") < "\n".join(last).index("[Time/Date]")


BREAKS = {
    "refused": Behaviour(status=400, error="no"),
    "cut before its content": Behaviour(cut_at=10),
}


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "json"])
@pytest.mark.parametrize("name", BREAKS)
def test_c07_what_failed_is_delivered_again(speak: Speak, name: str, stream: bool) -> None:
    speaker = speak(stream=stream)
    model(speaker.provider, sets(30), Reply("set"), *[BREAKS[name]] * 8)
    speaker.ask("remind me")
    assert speaker.ask("go on").status >= 400
    assert delivered(speaker) == [0]
    speaker.provider.forget()
    speaker.go_on()
    assert [reminded(received) for received in asked(speaker)] == [[ONE_LINE]]
    assert delivered(speaker) == [1]


@every_form
def test_c07_a_client_that_leaves_before_the_first_byte(speak: Speak, dialect: Dialect, stream: bool) -> None:
    speaker = speak(dialect, stream)
    model(speaker.provider, sets(30), Reply("set"), Behaviour(before="hang"))
    speaker.ask("remind me")
    speaker.items += said_by_user(dialect, "go on")
    known = len(asked(speaker))
    assert asyncio.run(speaker.send(leave=Leave(when=lambda: len(asked(speaker)) > known))).ended == "left"
    until(lambda: asked(speaker)[-1].left_at is not None, 3, lambda: asked(speaker)[-1])
    assert delivered(speaker) == [0]
    speaker.go_on()
    assert reminded(asked(speaker)[-1]) == [ONE_LINE]
    assert delivered(speaker) == [1]


def test_20_a_client_that_leaves_behind_the_first_byte(speak: Speak) -> None:
    speaker = speak()
    slow = Behaviour(reply=Reply(tuple(f"w{n} " for n in range(200))), delay_s=0.05)
    model(speaker.provider, sets(30), Reply("set"), slow)
    speaker.ask("remind me")
    speaker.items += said_by_user(Dialect.MESSAGES, "go on")
    assert asyncio.run(speaker.send(leave=Leave(chunks=3))).ended == "left"
    until(lambda: delivered(speaker) == [1], 3, lambda: tasks(speaker))
    speaker.go_on()
    assert reminded(asked(speaker)[-1]) == []


def test_20_parallel_calls_deliver_it_once(speak: Speak) -> None:
    speaker = speak()
    model(speaker.provider, sets(30), Reply("set"), *[Behaviour(reply=Reply("busy"), wait_s=0.4)] * 6)
    speaker.ask("remind me")
    speaker.items += said_by_user(Dialect.MESSAGES, "go on")

    async def together() -> None:
        await asyncio.gather(*(speaker.send() for _ in range(6)))

    asyncio.run(together())
    assert sorted(reminded(received) for received in asked(speaker)[2:]) == [[]] * 5 + [[ONE_LINE]]
    assert delivered(speaker) == [1]


def test_20_two_processes_with_one_folder_deliver_it_once(tmp_path: Path, provider: FakeProvider) -> None:
    provider.forget()
    shared = {"ROUTECODEX_SESSION_DIR": str(tmp_path / "shared")}
    houses = [
        Mitmdump(script=SCRIPT, config=config(), upstream=provider, folder=tmp_path / name, env=shared) for name in ("a", "b")
    ]
    with houses[0], houses[1]:
        one, two = (Speaker(provider, proxy, session="together") for proxy in houses)
        for number in range(5):
            provider.forget()
            slow = Behaviour(reply=Reply("busy"), wait_s=0.3)
            model(provider, sets(30, f"task {number}"), Reply("set"), slow, slow, slow, slow)
            one.ask("remind me")

            async def together() -> None:
                await asyncio.gather(*(speaker.send() for speaker in (one, two, one, two)))

            two.items = one.items
            one.items += said_by_user(Dialect.MESSAGES, "go on")
            asyncio.run(together())
            assert sorted(reminded(received) for received in asked(one)[2:]) == [[], [], [], [f"task {number}"]]
            assert delivered(one) == [1] * (number + 1)


def test_c34_c35_after_a_restart(tmp_path: Path, provider: FakeProvider) -> None:
    text = config(retentionMs=6000)
    with Mitmdump(script=SCRIPT, config=text, upstream=provider, folder=tmp_path) as proxy:
        old, new = Speaker(provider, proxy), Speaker(provider, proxy)
        for speaker, in_s in ((old, -4), (new, 30)):
            provider.forget()
            model(provider, sets(in_s), Reply("set"))
            speaker.ask("remind me")
            assert delivered(speaker) == [0]
        proxy.kill()
    time.sleep(2.5)
    with Mitmdump(script=SCRIPT, config=text, upstream=provider, folder=tmp_path) as proxy:
        old.proxy = new.proxy = proxy
        until(lambda: tasks(old) == [], 5, lambda: tasks(old))
        assert delivered(new) == [0]
        provider.forget()
        for speaker in (old, new):
            speaker.ask("go on")
        assert [reminded(received) for received in asked(new)] == [[], [ONE_LINE]]


# ---- tags ----


@every_dialect
def test_c09_c10_c11_clear(speak: Speak, dialect: Dialect) -> None:
    speaker = speak(dialect)
    model(speaker.provider, sets(30), Reply("set"), sets(40, "another"), Reply("set too"))
    speaker.ask("remind me")
    speaker.ask("<**clock:clear**> remind me of another thing")
    rounds = asked(speaker)
    assert reminded(rounds[2]) == [], "what is cleared comes no more"
    assert "<**" not in texts(rounds[2])
    assert [task["task"] for task in tasks(speaker)] == ["another"]
    speaker.ask("go on")
    assert reminded(asked(speaker)[-1]) == ["another"], "an older message clears nothing"
    model(speaker.provider, sets(3600, "a third"), sets(3700, "a fourth"), Reply("both"))
    speaker.ask("two more")
    status = speaker.told(speaker.ask("<**status**>")).text
    assert re.search(r"^Clock: 2 tasks, the earliest due \d{4}-", status, re.MULTILINE)
    before = len(asked(speaker))
    assert "The clock's tasks are cleared: 2." in speaker.told(speaker.ask("<** Clock:Clear **>")).text
    assert len(asked(speaker)) == before
    assert tasks(speaker) == []
    assert "build" not in status


# ---- hold ----


@every_form
def test_c23_c36_within_the_same_answer(speak: Speak, dialect: Dialect, stream: bool) -> None:
    speaker = speak(dialect, stream)
    model(speaker.provider, sets(62), Reply("set"), Reply("I looked."))
    began = time.monotonic()
    told = speaker.told(speaker.ask("remind me"))
    took = time.monotonic() - began
    assert told.text == "set\n\nI looked."
    assert took > 1.0, "held until it was nearly due"
    rounds = asked(speaker)
    assert [reminded(received) for received in rounds] == [[], [], [ONE_LINE]]
    assert [tags(received) for received in rounds] == [1, 0, 0]
    assert delivered(speaker) == [1]
    speaker.ask("go on")
    later = asked(speaker)[-1]
    assert json.dumps(speaker.history(later)[: len(speaker.history(rounds[2]))]) == json.dumps(speaker.history(rounds[2]))
    assert len(reminded(later)) == 1, "it stands in the history where it came, and comes no second time"


def test_c24_what_is_far_away_is_not_held_for(speak: Speak) -> None:
    speaker = speak()
    model(speaker.provider, sets(3_600), Reply("set"))  # far longer than this client waits
    speaker.ask("remind me")
    assert len(asked(speaker)) == 2


@pytest.mark.parametrize("ending", ["length", "tool_calls"])
def test_22_which_endings_are_held(speak: Speak, ending: str) -> None:
    speaker = speak()
    second = Reply("set", stop="length") if ending == "length" else Reply("set", calls=(ToolUse("Bash", {}, "b1"),))
    model(speaker.provider, sets(61.5), second, Reply("I looked."))
    told = speaker.told(speaker.ask("remind me"))
    assert told.text == ("set\n\nI looked." if ending == "length" else "set")


def test_c25_not_where_the_configuration_forbids_it(tmp_path: Path, provider: FakeProvider) -> None:
    provider.forget()
    with Mitmdump(script=SCRIPT, config=config(holdNonStreaming=False), upstream=provider, folder=tmp_path) as proxy:
        for stream, text in ((False, "set"), (True, "set\n\nI looked.")):
            speaker = Speaker(provider, proxy, stream=stream)
            provider.forget()
            model(provider, sets(61.5), Reply("set"), Reply("I looked."))
            assert speaker.told(speaker.ask("remind me")).text == text


@every_form
def test_c26_the_client_leaves(speak: Speak, dialect: Dialect, stream: bool) -> None:
    speaker = speak(dialect, stream)
    model(speaker.provider, sets(62), Reply("set"))
    speaker.items += said_by_user(dialect, "remind me")
    set_ = Leave(when=lambda: len(asked(speaker)) == 2 and asked(speaker)[1].finished_at is not None)
    assert asyncio.run(speaker.send(leave=set_)).ended == "left"
    time.sleep(3)
    assert len(asked(speaker)) == 2, "a round for nobody"
    assert delivered(speaker) == [0]
    speaker.go_on()
    assert reminded(asked(speaker)[-1]) == [ONE_LINE]


@pytest.mark.parametrize("how", ["tag", "clear", "cancel"])
def test_c26_cleared_or_cancelled_meanwhile(speak: Speak, how: str) -> None:
    speaker = speak()
    model(speaker.provider, sets(118), Reply("set"))  # held for longer than this client waits, if nothing ends it
    ends = Speaker(speaker.provider, speaker.proxy, session=speaker.session)
    speaker.items += said_by_user(Dialect.MESSAGES, "remind me")

    async def both() -> Answer:
        waiting = asyncio.create_task(speaker.send(within=40))
        await asyncio.to_thread(speaker.provider.wait_for, 2)
        await asyncio.sleep(0.5)
        (task,) = tasks(speaker)
        calls = {"clear": use("clear"), "cancel": use("cancel", taskId=task["taskId"])}
        if how in calls:
            model(speaker.provider, Reply("", calls=(calls[how],)), Reply("gone"))
        ends.items += said_by_user(Dialect.MESSAGES, "<**clock:clear**>" if how == "tag" else "away with it")
        await ends.send()
        return await waiting

    answer = asyncio.run(both())
    assert answer.ended == "complete", "it went on being held"
    assert speaker.told(answer).text == "set"
    assert all(reminded(received) == [] for received in asked(speaker))


def test_m32_stop_message_goes_first(speak: Speak) -> None:
    """And where it has, nothing is held: the person's next call brings the reminder."""
    speaker = speak()
    model(speaker.provider, sets(61.5), Reply("set"), Reply("second"), Reply("I looked."))
    told = speaker.told(speaker.ask('<**stopMessage:"carry on",1**> remind me'))
    assert told.text == "set\n\nsecond"
    rounds = asked(speaker)
    assert ["carry on" in texts(received) for received in rounds] == [False, False, True]
    assert [len(reminded(received)) for received in rounds] == [0, 0, 0]


@every_dialect
def test_22_it_is_kept_alive_meanwhile(provider: FakeProvider, lively: Mitmdump, dialect: Dialect) -> None:
    provider.forget()
    speaker = Speaker(provider, lively, dialect)
    model(provider, sets(64), Reply("set"), Reply("looked"))
    answer = speaker.ask("remind me")
    assert speaker.told(answer).text == "set\n\nlooked"
    held = answer.text[answer.text.index("set") : answer.text.index("looked")]
    assert len(re.findall(SIGNS[dialect], held)) >= 5, held


SIGNS = {
    Dialect.MESSAGES: "event: ping",
    Dialect.CHAT: "\n: ",
    Dialect.RESPONSES: "event: response.in_progress",
    Dialect.GEMINI: r"(?<=\n\n)\n",  # a line more behind an event
}


@pytest.fixture(scope="module")
def lively(provider: FakeProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mitmdump]:
    """It sends a sign of life five times a second."""
    patience = {"early_head_s": 0.5, "keep_alive_s": 0.2}
    with watched(provider, config(), patience, folder=tmp_path_factory.mktemp("lively")) as proxy:
        yield proxy


# ---- many tasks ----


def test_more_than_a_thousand_tasks_are_logged(tmp_path: Path, provider: FakeProvider) -> None:
    provider.forget()
    with Mitmdump(script=SCRIPT, config=config(), upstream=provider, folder=tmp_path) as proxy:
        speaker = Speaker(provider, proxy)
        items = [{"dueAt": iso(3600 + n), "task": TASK, "tool": "", "arguments": "{}"} for n in range(1_001)]
        model(provider, Reply("", calls=(use("schedule", items=items[:1_000]),)), Reply("set"))
        speaker.ask("remind me")
        time.sleep(1.5)
        assert "more than 1000 tasks" not in proxy.log
        model(provider, Reply("", calls=(use("schedule", items=items[1_000:]),)), Reply("set"))
        speaker.ask("and once more")
        until(lambda: "holds more than 1000 tasks" in proxy.log, 5, lambda: proxy.log)
        speaker.ask("go on")
        time.sleep(1.5)
        assert proxy.log.count("holds more than 1000 tasks") == 1
        assert "build" not in proxy.log


# ---- time servers ----


SWITCHES = {
    "off": ({"ROUTECODEX_CLOCK_NTP": "0"}, "disabled", ""),
    "other servers": ({"ROUTECODEX_CLOCK_NTP_SERVERS": "::1, 127.0.0.1"}, "error", "(2 of 2)"),
}


@pytest.mark.parametrize("name", SWITCHES)
def test_10_switches_of_the_environment(tmp_path: Path, provider: FakeProvider, name: str) -> None:
    provider.forget()
    env, status, why = SWITCHES[name]
    text = config(ntp={"enabled": True, "servers": ["127.0.0.1"], "timeoutMs": 200})
    with Mitmdump(script=SCRIPT, config=text, upstream=provider, folder=tmp_path, env=env) as proxy:
        speaker = Speaker(provider, proxy)
        speaker.ask("first")
        state = proxy.sessions / "clock" / "ntp-state.json"
        if status == "error":
            until(state.exists, 10, lambda: proxy.log)
        model(provider, Reply("", calls=(use("get"),)), Reply("late"))
        speaker.ask("what time is it?")
        (result,) = results(asked(speaker)[-1])
        assert result["ntp"]["status"] == status
        assert why in result["ntp"].get("lastError", "")
        assert state.exists() == (status == "error")


def test_c32_no_time_server_answers(tmp_path: Path, provider: FakeProvider) -> None:
    provider.forget()
    text = config(ntp={"enabled": True, "servers": ["127.0.0.1"], "timeoutMs": 200})
    with Mitmdump(script=SCRIPT, config=text, upstream=provider, folder=tmp_path) as proxy:
        speaker = Speaker(provider, proxy)
        state = proxy.sessions / "clock" / "ntp-state.json"
        speaker.ask("first")
        until(state.exists, 10, lambda: proxy.log)
        model(provider, Reply("", calls=(use("get"),)), Reply("late"))
        assert speaker.told(speaker.ask("what time is it?")).text == "late"
        (result,) = results(asked(speaker)[-1])
        assert result["ntp"]["status"] == "error"
        assert result["ntp"]["lastError"]
