"""Plugins through the real proxy: what they change, the tools they bring, and whom a bad one harms."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from routecodex.routing.values import Dialect
from tests.rig.behaviour import Behaviour
from tests.rig.client import Answer, Leave
from tests.rig.provider import FakeProvider
from tests.rig.proxy import ROOT, SCRIPT, DidNotStart, Mitmdump
from tests.rig.wire import Reply, ToolUse
from tests.system.grammar import error_at_end
from tests.system.speaker import FORMS, IDS, Item, Speaker, followed_up, results_of, said_by_user, true_answer
from tests.system.tool import CONFIG
from tests.system.watched import held, settles, until, watched

pytestmark = pytest.mark.system

every_form = pytest.mark.parametrize("dialect, stream", FORMS, ids=IDS)
PLUGINS = ROOT / "tests" / "plugins"
SECRET = "sk-nobody-may-read-this"


def with_plugins(*names: str) -> str:
    return CONFIG + "plugins: [" + ", ".join(str(PLUGINS / f"{name}.py") for name in names) + "]\n"


@pytest.fixture(scope="module")
def house(provider: FakeProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mitmdump]:
    folder = tmp_path_factory.mktemp("plugins")
    env = {"DIARY": str(folder / "diary")}
    config = with_plugins("edits", "dice", "trouble", "diary")
    with watched(provider, config, folder=folder, env=env, options=["routecodex_http2=true"]) as started:
        yield started
        assert started.alive
        assert SECRET not in started.log
        assert "RouteCodex failed in" not in started.log


@pytest.fixture
def speak(provider: FakeProvider, house: Mitmdump) -> Callable[..., Speaker]:
    provider.forget()

    def make(dialect: Dialect = Dialect.MESSAGES, stream: bool = True, **more: Any) -> Speaker:
        return Speaker(provider, house, dialect, stream, **more)

    return make


def replies(speaker: Speaker, *given: Reply) -> None:
    speaker.provider.enqueue(*(Behaviour(reply=reply) for reply in given[:-1]))
    speaker.provider.always(Behaviour(reply=given[-1]))


def tool_names(dialect: Dialect, body: Item) -> list[str]:
    tools = body.get("tools", [])
    match dialect:
        case Dialect.CHAT:
            return [tool["function"]["name"] for tool in tools]
        case Dialect.GEMINI:
            return [declared["name"] for tool in tools for declared in tool["functionDeclarations"]]
        case _:
            return [tool["name"] for tool in tools]


# ---- what a plugin changes ----


def test_the_example_of_the_readme(provider: FakeProvider, tmp_path: Path) -> None:
    """Its very words, saved beside the configuration."""
    provider.forget()
    (source,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "shout.py").write_text(source, encoding="utf-8")
    with Mitmdump(script=SCRIPT, config=CONFIG + "plugins: [shout.py]\n", upstream=provider, folder=tmp_path) as proxy:
        speaker = Speaker(provider, proxy)
        replies(speaker, Reply("half of it"), Reply("the rest. DONE"))
        assert speaker.told(speaker.ask("work")).text == "half of it\n\nthe rest. DONE"
        assert speaker.history(provider.calls[1])[-1:] == followed_up(Dialect.MESSAGES, "Say DONE when you are done.")
        assert speaker.told(speaker.ask("more")).text == "the rest. DONE"
        assert len(provider.calls) == 3


@pytest.fixture(scope="module")
def asking_again(provider: FakeProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mitmdump]:
    config, folder = CONFIG + "plugins: [empty_reply]\n", tmp_path_factory.mktemp("asking-again")
    with Mitmdump(script=SCRIPT, config=config, upstream=provider, folder=folder) as proxy:
        yield proxy


@every_form
def test_an_empty_answer_is_asked_for_once_more(
    provider: FakeProvider, asking_again: Mitmdump, dialect: Dialect, stream: bool
) -> None:
    provider.forget()
    speaker = Speaker(provider, asking_again, dialect, stream)
    replies(speaker, Reply(""), Reply("here I am"))
    assert speaker.told(speaker.ask("hello")).text == "here I am"
    replies(speaker, Reply(""))
    speaker.ask("hello?")
    assert len(provider.calls) == 4, "twice empty is the answer"


@every_form
def test_an_edit_holds_for_its_round(speak: Callable[..., Speaker], dialect: Dialect, stream: bool) -> None:
    speaker = speak(dialect, stream)
    replies(speaker, Reply("one"), Reply("two"))
    assert speaker.told(speaker.ask("colder insists")).text == "one\n\ntwo"
    first, second = speaker.provider.calls
    for received in (first, second):
        where = speaker.beside(received).get("generationConfig", speaker.beside(received))
        assert where["temperature"] == 0.125
    assert "(in a few words)" in first.body.decode()
    assert "(in a few words)" not in second.body.decode()
    expected = [*said_by_user(dialect, "colder insists"), *true_answer(dialect, Reply("one"), first)]
    assert speaker.history(second) == [*expected, *followed_up(dialect, "Are you sure?")]
    speaker.ask("next")
    after = [*followed_up(dialect, "Are you sure?"), *true_answer(dialect, Reply("two"), second)]
    found = speaker.history(speaker.provider.calls[2])
    assert found[: len(expected) + len(after)] == [*expected, *after]


@every_form
def test_what_is_appended_without_a_wish_stands_in_the_history(
    speak: Callable[..., Speaker], dialect: Dialect, stream: bool
) -> None:
    """The model is not asked again; the client's next call finds it behind the answer, and every one after that."""
    speaker = speak(dialect, stream)
    replies(speaker, Reply("fine"))
    assert speaker.told(speaker.ask("remembers")).text == "fine"
    assert len(speaker.provider.calls) == 1
    for place, words in ((1, "and now?"), (2, "and then?")):
        speaker.ask(words)
        history = speaker.history(speaker.provider.calls[place])
        assert followed_up(dialect, "By the way, it rains.")[0] in history
        raw = json.dumps(history)
        assert raw.index("fine") < raw.index("it rains") < raw.index(words)


@every_form
def test_a_tool_of_which_only_the_results_stay(speak: Callable[..., Speaker], dialect: Dialect, stream: bool) -> None:
    speaker = speak(dialect, stream)
    rolls = ToolUse("roll_told", {"sides": 6})
    replies(speaker, Reply("", calls=(rolls,)), Reply("a four"), Reply("done"))
    assert speaker.told(speaker.ask("dice please")).text == "a four"
    speaker.ask("and now?")
    raw = json.dumps(speaker.history(speaker.provider.calls[2]))
    assert "roll_told answered: a die with 6 sides shows 4" in raw.replace("The tool ", "")
    assert not any(word in raw for word in ("tool_use", "tool_calls", "function_call", "functionCall"))
    assert raw.index("shows 4") < raw.index("a four") < raw.index("and now?")


def test_one_plugin_changes_what_another_appends(speak: Callable[..., Speaker]) -> None:
    speaker = speak()
    replies(speaker, Reply("one"), Reply("two"))
    speaker.ask("insists softens")
    assert speaker.history(speaker.provider.calls[1])[-1:] == followed_up(Dialect.MESSAGES, "Please: Are you sure?")


def test_the_order_of_the_hooks(speak: Callable[..., Speaker], house: Mitmdump) -> None:
    speaker = speak()
    replies(speaker, Reply("one"), Reply("two"))
    before = _diary(house)
    speaker.ask("dear diary")
    until(lambda: "cleanup completed" in _diary(house)[len(before) :], 2, lambda: _diary(house))
    assert _lines(_diary(house)[len(before) :], "stream") == [
        "start",
        "before",
        "append",
        "after",
        "append",
        "before",
        "append",
        "after",
        "end completed",
        "cleanup completed",
    ]
    assert "stream" in _diary(house)[len(before) :]


def _diary(house: Mitmdump) -> str:
    path = house.folder / "diary"
    return path.read_text() if path.exists() else ""


def _lines(text: str, *without: str) -> list[str]:
    found = [line.partition(" ")[2] for line in text.splitlines()]
    return [line for line in found if line not in without]


# ---- tools of ours ----

BASH = ToolUse("Bash", {"command": "ls"}, "call_bash_1")


def roll(sides: int, id: str, name: str = "roll") -> ToolUse:
    return ToolUse(name, {"sides": sides}, id)


@every_form
def test_a_call_of_ours_alone(speak: Callable[..., Speaker], dialect: Dialect, stream: bool) -> None:
    """The client sees neither the tool nor its call, only what the model made of it."""
    speaker = speak(dialect, stream)
    asks = Reply("Let me roll.", calls=(roll(6, "call_1"),))
    replies(speaker, asks, Reply("It shows 4."))
    told = speaker.told(speaker.ask("dice"))
    assert (told.text, told.calls) == ("Let me roll.\n\nIt shows 4.", [])
    first, second = speaker.provider.calls
    assert tool_names(dialect, first.json)[0] == "Bash"
    assert "roll" in tool_names(dialect, first.json)
    assert tool_names(dialect, second.json) == tool_names(dialect, first.json)
    result = results_of(dialect, [("call_1", "roll", "a die with 6 sides shows 4")])
    assert without_ids(speaker.history(second)) == without_ids(
        [*said_by_user(dialect, "dice"), *true_answer(dialect, asks, first), *result]
    )
    speaker.ask("next")
    assert speaker.provider.calls[2].body.startswith(second.body[:-2].split(b'"tools"')[0])
    assert without_ids(speaker.history(speaker.provider.calls[2]))[: len(speaker.history(second))] == without_ids(
        speaker.history(second)
    )


def without_ids(items: list[Item]) -> list[Item]:
    """Gemini's results may name the call they answer."""
    text = json.dumps(items)
    for id in ("call_1", "call_2"):
        text = text.replace(f'"id": "{id}", ', "").replace(f', "id": "{id}"', "")
    return list(json.loads(text))


@every_form
def test_two_calls_of_ours_run_at_the_same_time(speak: Callable[..., Speaker], dialect: Dialect, stream: bool) -> None:
    speaker = speak(dialect, stream)
    asks = Reply("", calls=(roll(6, "call_1", "roll_slow"), roll(20, "call_2", "roll_slow")))
    replies(speaker, asks, Reply("Both."))
    answer = speaker.ask("dice")
    assert speaker.told(answer).text == "Both."
    results = [("call_1", "roll_slow", "slow 6: 2 at once"), ("call_2", "roll_slow", "slow 20: 2 at once")]
    second = speaker.provider.calls[1]
    expected = results_of(dialect, results)
    assert without_ids(speaker.history(second))[-len(expected) :] == without_ids(expected)


@pytest.mark.parametrize(
    "name, told",
    [
        ("roll_broken", "Tool call failed: ValueError"),
        ("roll_refused", "Tool call failed: there is no such die"),
        ("roll_exits", "Tool call failed: SystemExit"),
        ("roll_hangs", "Tool call failed: no result within 0.3 seconds"),
    ],
)
def test_one_tool_that_fails_harms_no_other(speak: Callable[..., Speaker], name: str, told: str) -> None:
    speaker = speak()
    replies(speaker, Reply("", calls=(roll(6, "call_1", name), roll(8, "call_2"))), Reply("Well."))
    assert speaker.told(speaker.ask("dice")).text == "Well."
    (results,) = speaker.history(speaker.provider.calls[1])[-1:]
    assert [block["content"] for block in results["content"]] == [told, "a die with 8 sides shows 4"]
    assert [block.get("is_error", False) for block in results["content"]] == [True, False]


@every_form
@pytest.mark.parametrize("ours_first", [True, False], ids=["ours first", "theirs first"])
def test_beside_a_tool_of_the_client(speak: Callable[..., Speaker], dialect: Dialect, stream: bool, ours_first: bool) -> None:
    """The client sees only its own call; with its result the provider gets both pairs back, now and on every later call."""
    speaker = speak(dialect, stream)
    calls = (roll(6, "call_1"), BASH) if ours_first else (BASH, roll(6, "call_1"))
    asks = Reply("Both.", calls=calls)
    replies(speaker, asks, Reply("All done."), Reply("ok"))
    told = speaker.told(speaker.ask("dice"))
    assert (told.text, told.calls, told.ids) == ("Both.", [("Bash", {"command": "ls"})], ["call_bash_1"])
    assert told.finish in ("tool_use", "tool_calls", "completed", "STOP")
    first = speaker.provider.calls[0]
    assert len(speaker.provider.calls) == 1, "a round before the client's own tool has run"
    speaker.give([("call_bash_1", "Bash", "file.txt")])
    speaker.ask("next")
    _, second, third = speaker.provider.calls
    expected = [*said_by_user(dialect, "dice"), *true_answer(dialect, asks, first)]
    found = without_ids(speaker.history(second))
    assert found[: len(expected)] == without_ids(expected)
    behind = json.dumps(found[len(expected) :])
    assert "a die with 6 sides shows 4" in behind
    assert "file.txt" in behind
    if dialect in (Dialect.MESSAGES, Dialect.GEMINI):
        assert len(found) == len(expected) + 1, "two messages of the user in a row"
    assert without_ids(speaker.history(third))[: len(found)] == found


@every_form
def test_a_client_with_a_tool_of_that_name_keeps_it(speak: Callable[..., Speaker], dialect: Dialect, stream: bool) -> None:
    own = json.loads(json.dumps(Speaker(speak().provider, speak().proxy, dialect, stream).body.decode()).replace("Bash", "roll"))
    extras = {name: value for name, value in json.loads(own).items() if name not in ("messages", "input", "contents")}
    speaker = speak(dialect, stream, extras={name: value for name, value in extras.items() if name not in ("model", "stream")})
    replies(speaker, Reply("", calls=(roll(6, "call_1"),)))
    told = speaker.told(speaker.ask("dice"))
    assert told.calls == [("roll", {"sides": 6})]
    assert len(speaker.provider.calls) == 1
    assert tool_names(dialect, speaker.provider.calls[0].json).count("roll") == 1


# ---- plugins that fail ----

NO = "Not on a Sunday."
BEFORE, AFTER = "before anything is sent", "behind the first answer"
FAILING = {
    "start raises": (BEFORE, "on_turn_start raised ValueError"),
    "start hangs": (BEFORE, "on_turn_start did not end within 0.4 seconds"),
    "start exits": (BEFORE, "on_turn_start raised SystemExit"),
    "start refuses": (BEFORE, NO),
    "before raises": (BEFORE, "on_before_request raised ValueError"),
    "before hangs": (BEFORE, "on_before_request did not end within 0.4 seconds"),
    "before exits": (BEFORE, "on_before_request raised SystemExit"),
    "before refuses": (BEFORE, NO),
    "after raises": (AFTER, "on_after_request raised ValueError"),
    "after hangs": (AFTER, "on_after_request did not end within 0.4 seconds"),
    "after exits": (AFTER, "on_after_request raised SystemExit"),
    "after refuses": (AFTER, NO),
    "append raises": (AFTER, "on_message_append raised ValueError"),
    "append exits": (AFTER, "on_message_append raised SystemExit"),
    "end raises": (AFTER, "on_turn_end raised ValueError"),
    "end hangs": (AFTER, "on_turn_end did not end within 0.4 seconds"),
    "end exits": (AFTER, "on_turn_end raised SystemExit"),
}
HARMLESS = {
    "wants raises": "wants raised ValueError",
    "wants exits": "wants raised SystemExit",
    "stream raises": "on_stream_data raised ValueError",
    "stream exits": "on_stream_data raised SystemExit",
    "cleanup raises": "a clean-up raised ValueError",
    "cleanup exits": "a clean-up raised SystemExit",
    "cleanup hangs": "a clean-up did not end within 0.4 seconds",
}


@every_form
def test_a_plugin_that_fails_harms_its_own_turn(
    speak: Callable[..., Speaker], house: Mitmdump, dialect: Dialect, stream: bool
) -> None:
    """All of them at the same time, and a good call among them."""
    speakers = {name: speak(dialect, stream) for name in ("", *FAILING)}
    before = len(house.log)
    for name, speaker in speakers.items():
        speaker.provider.always(Behaviour(reply=Reply("the answer"), wait_s=0.1))
        speaker.items = said_by_user(dialect, f"trouble {name}" if name else "hello")

    async def together() -> list[Answer]:
        return list(await asyncio.gather(*(speaker.send() for speaker in speakers.values())))

    found = dict(zip(speakers, asyncio.run(together()), strict=True))
    assert speakers[""].told(found.pop("")).text == "the answer"
    sent = [name for name, (when, _) in FAILING.items() if when is AFTER]
    assert len(speakers[""].provider.calls) == 1 + len(sent)
    for name, answer in found.items():
        when, message = FAILING[name]
        said, told = error_at_end(dialect, answer.body, stream and when is AFTER)
        assert said == ("the answer" if when is AFTER and stream else ""), name
        assert told.startswith(message if message == NO else f"Plugin trouble failed: {message}"), name
        assert SECRET not in answer.body.decode()
        assert ("UPSTREAM_ERROR" in answer.text) is False, name
        assert ("PLUGIN_ERROR" in answer.text) is (message != NO), name
        if when is BEFORE:
            assert (answer.status, answer.header("x-should-retry")) == (400, "false"), name
        else:
            assert answer.status == (200 if stream else 500), name
        if message != NO:
            until(lambda message=message: message in house.log[before:], 2, lambda: house.log[before:])  # type: ignore[misc]


@pytest.mark.parametrize("name", HARMLESS)
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "json"])
def test_failures_that_cost_the_client_nothing(speak: Callable[..., Speaker], house: Mitmdump, stream: bool, name: str) -> None:
    speaker = speak(Dialect.CHAT, stream)
    replies(speaker, Reply("the answer"))
    before = len(house.log)
    assert speaker.told(speaker.ask(f"trouble {name}")).text == "the answer"
    if stream or not name.startswith("stream"):
        until(lambda: HARMLESS[name] in house.log[before:], 2, lambda: house.log[before:])


def test_a_failing_turn_leaves_nothing_behind(speak: Callable[..., Speaker], house: Mitmdump) -> None:
    speak().ask("hello")
    before = held(house)
    for name in (*FAILING, *HARMLESS):
        speaker = speak()
        speaker.ask(f'<**stopMessage:"go on",2**> trouble {name}', keep=False)
    settles(house, before)


@every_form
@pytest.mark.parametrize("hook", ["start", "before", "after", "end"])
def test_the_client_reads_the_error_that_came_first(
    speak: Callable[..., Speaker], house: Mitmdump, dialect: Dialect, stream: bool, hook: str
) -> None:
    """Not that of the clean-up, which fails as well; and the proxy's log has both."""
    speaker, before = speak(dialect, stream), len(house.log)
    replies(speaker, Reply("the answer"))
    answer = speaker.ask(f"trouble {hook} raises. trouble cleanup raises", keep=False)
    message = FAILING[f"{hook} raises"][1]
    _, told = error_at_end(dialect, answer.body, stream and hook in ("after", "end"))
    assert message in told
    until(lambda: message in house.log[before:], 2, lambda: house.log[before:])
    if hook != "start":
        until(lambda: "a clean-up raised ValueError" in house.log[before:], 2, lambda: house.log[before:])


@every_form
@pytest.mark.parametrize("name", ["cleanup raises", "cleanup exits"])
def test_echo_and_a_clean_up_that_fails(speak: Callable[..., Speaker], dialect: Dialect, stream: bool, name: str) -> None:
    speaker = speak(dialect, stream)
    assert "trouble" in speaker.told(speaker.ask(f"<**echo**> trouble {name}")).text


# ---- clients that leave while a plugin works ----


@pytest.mark.parametrize("hook, rounds", [("start", 0), ("before", 0), ("after", 1)])
@pytest.mark.parametrize("reset", [False, True], ids=["closes", "resets"])
def test_leaving_while_a_hook_waits(speak: Callable[..., Speaker], house: Mitmdump, hook: str, rounds: int, reset: bool) -> None:
    """The hook is given up, nothing is sent any more, and the clean-up runs."""
    speaker = speak(Dialect.MESSAGES, True)
    speaker.ask("hello")
    before, written = held(house), len(_diary(house))
    speaker.provider.forget()
    replies(speaker, Reply("one"), Reply("two"))
    speaker = speak()
    replies(speaker, Reply("one"), Reply("two"))
    waits = Leave(when=lambda: f" {hook}\n" in _diary(house)[written:], reset=reset)
    answer = speaker.ask(f"diary waits 3 in {hook}", leave=waits)
    assert answer.ended == "left"
    for line in ("end aborted", "cleanup aborted") if hook != "start" else ():
        until(lambda line=line: line in _diary(house)[written:], 1, lambda: _diary(house)[written:])  # type: ignore[misc]
    settles(house, before)
    assert f"{hook} waited" not in _diary(house)[written:], "it was not given up"
    assert len(speaker.provider.calls) == rounds


def test_a_slow_end_and_a_slow_clean_up_come_to_their_own_end(speak: Callable[..., Speaker], house: Mitmdump) -> None:
    """Also where the client leaves, and mitmproxy says so more than once."""
    speaker = speak()
    speaker.provider.always(Behaviour(reply=Reply(tuple(f"w{n} " for n in range(60))), delay_s=0.03))
    written = len(_diary(house))
    text = "diary waits 0.3 in end aborted. diary waits 0.3 in cleanup aborted"
    assert speaker.ask(text, leave=Leave(chunks=3)).ended == "left"
    until(lambda: "cleanup aborted waited" in _diary(house)[written:], 2, lambda: _diary(house)[written:])
    assert "end aborted waited" in _diary(house)[written:]


@pytest.mark.parametrize("how", ["raises", "hangs", "exits"])
def test_leaving_and_an_end_that_fails(speak: Callable[..., Speaker], house: Mitmdump, how: str) -> None:
    """The clean-ups of all plugins run all the same."""
    speaker = speak()
    speaker.provider.always(Behaviour(reply=Reply(tuple(f"w{n} " for n in range(60))), delay_s=0.03))
    written = len(_diary(house))
    assert speaker.ask(f"diary, trouble end {how}", leave=Leave(chunks=3)).ended == "left"
    until(lambda: "cleanup error" in _diary(house)[written:], 2, lambda: _diary(house)[written:])


# ---- files that cannot be loaded ----

BROKEN = {
    "no Python": ("class Broken(\n", "broken.py:1: it is not valid Python"),
    "no plugins": ("x = 1\n", "broken.py: it names no plugins"),
    "raises": (f"raise ValueError('{SECRET}')\n", "broken.py:1: ValueError while it was loaded"),
    "exits": ("import sys\nsys.exit(0)\n", "broken.py:2: SystemExit while it was loaded"),
    "a hook misspelt": (
        "from routecodex.routing.turn.plugins import Plugin\nclass P(Plugin):\n"
        "    def on_turn_strat(self, turn): ...\nplugins = [P()]\n",
        "there is no hook on_turn_strat: did you mean on_turn_start?",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_bad_file_at_the_start(tmp_path: Path, name: str) -> None:
    source, message = BROKEN[name]
    (tmp_path / "broken.py").write_text(source)
    with pytest.raises(DidNotStart) as failed, Mitmdump(script=SCRIPT, config=f"{CONFIG}plugins: [broken.py]\n", folder=tmp_path):
        pass
    assert message in str(failed.value)
    assert "Traceback" not in str(failed.value)
    assert SECRET not in str(failed.value)


def test_a_bad_file_when_the_configuration_changes(tmp_path: Path, provider: FakeProvider) -> None:
    """The old plugins stay in force, whatever becomes of the file."""
    provider.forget()
    good = (PLUGINS / "shout.py").read_text()
    file, config = tmp_path / "mine.py", tmp_path / "mitm-config.yaml"
    file.write_text(good)
    with Mitmdump(script=SCRIPT, config=f"{CONFIG}plugins: [mine.py]\n", upstream=provider, folder=tmp_path) as proxy:

        def rounds() -> int:
            provider.forget()
            provider.always(Behaviour(reply=Reply("not yet")))
            Speaker(provider, proxy).ask("work")
            return len(provider.calls)

        assert rounds() == 2
        for source, message in BROKEN.values():
            before = len(proxy.log)
            file.write_text(source)
            config.write_text(f"{CONFIG}plugins: [mine.py]\n# {message}\n")
            said = message.removeprefix("broken")
            until(lambda before=before, said=said: said in proxy.log[before:].replace("mine.py", ".py"), 4, lambda: proxy.log)  # type: ignore[misc]
            assert "the old one stays in force" in proxy.log[before:]
            assert rounds() == 2
        before = len(proxy.log)
        file.write_text(good.replace("turn.rounds == 1", "turn.rounds < 3"))
        config.write_text(f"{CONFIG}plugins: [mine.py]\n")
        until(lambda: "Configuration reloaded" in proxy.log[before:], 4, lambda: proxy.log)
        assert rounds() == 3
        assert SECRET not in proxy.log


def test_a_plugin_that_changes_alone(tmp_path: Path, provider: FakeProvider) -> None:
    """The next turn has it; what cannot be loaded changes nothing; a turn that is running keeps what it began with."""
    good = (PLUGINS / "shout.py").read_text()
    file = tmp_path / "mine.py"
    file.write_text(good)
    with Mitmdump(script=SCRIPT, config=f"{CONFIG}plugins: [mine.py]\n", upstream=provider, folder=tmp_path) as proxy:

        def rounds(**how: Any) -> int:
            provider.forget()
            provider.always(Behaviour(reply=Reply("not yet"), **how))
            Speaker(provider, proxy).ask("work")
            return len(provider.calls)

        def saved(text: str | None, told: str, **how: Any) -> int:
            """How many rounds a call has while and after the file is saved."""
            before = len(proxy.log)
            if text is None:
                file.unlink()
                time.sleep(1.5)
            else:
                file.write_text(text)
                until(lambda: told in proxy.log[before:], 4, lambda: proxy.log)
            return rounds(**how)

        assert rounds() == 2
        thrice = good.replace("turn.rounds == 1", "turn.rounds < 3")
        assert saved(thrice, "Configuration reloaded") == 3
        assert saved(BROKEN["raises"][0], "the old one stays in force") == 3
        assert saved(good, "Configuration reloaded") == 2
        assert saved(None, "") == 2, "an editor that removes the file before it writes it"
        assert saved(thrice, "Configuration reloaded") == 3
        quiet = len(proxy.log)
        time.sleep(2.5)
        assert "onfiguration" not in proxy.log[quiet:], "read again although nothing has changed"


def test_a_plugin_that_comes_later_than_its_name(tmp_path: Path, provider: FakeProvider) -> None:
    provider.forget()
    provider.always(Behaviour(reply=Reply("not yet")))
    with Mitmdump(script=SCRIPT, config=CONFIG, upstream=provider, folder=tmp_path) as proxy:
        (tmp_path / "mitm-config.yaml").write_text(f"{CONFIG}plugins: [late.py]\n")
        until(lambda: "late.py: there is no such file" in proxy.log, 4, lambda: proxy.log)
        (tmp_path / "late.py").write_text((PLUGINS / "shout.py").read_text())
        until(lambda: "Configuration reloaded" in proxy.log, 4, lambda: proxy.log)
        Speaker(provider, proxy).ask("work")
        assert len(provider.calls) == 2


def test_a_turn_keeps_the_plugins_that_it_began_with(tmp_path: Path, provider: FakeProvider) -> None:
    provider.forget()
    provider.always(Behaviour(reply=Reply("not yet"), wait_s=1.5))
    file = tmp_path / "mine.py"
    file.write_text((PLUGINS / "shout.py").read_text())
    with Mitmdump(script=SCRIPT, config=f"{CONFIG}plugins: [mine.py]\n", upstream=provider, folder=tmp_path) as proxy:
        speaker = Speaker(provider, proxy, items=said_by_user(Dialect.MESSAGES, "work"))

        async def both() -> Answer:
            going = asyncio.create_task(speaker.send())
            await asyncio.to_thread(provider.wait_for, 1)
            file.write_text(file.read_text().replace("turn.rounds == 1", "turn.rounds < 1"))
            await asyncio.to_thread(until, lambda: "Configuration reloaded" in proxy.log, 4, lambda: proxy.log)
            return await going

        assert speaker.told(asyncio.run(both())).text == "not yet\n\nnot yet"
