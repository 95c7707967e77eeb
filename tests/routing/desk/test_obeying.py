"""Tags at the desk: obeyed once whatever a client repeats, refused with nothing changed, asked about in the chat."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from routecodex.routing.config import read
from routecodex.routing.errors import ConfigError
from routecodex.routing.sessions.state import Sticky, StopMessage
from routecodex.routing.sessions.store import SessionKey
from routecodex.routing.tags.words import RESERVED
from routecodex.routing.values import Dialect, ProviderError, Target
from tests.routing.house import Handled, House, Tool, config_text, done, inline, provider_text, texts_of
from tests.system.talk import ENDS
from tests.system.tool import text_of

T = TypeVar("T")
DIALECTS = pytest.mark.parametrize("dialect", list(Dialect))
ONE = SessionKey("session", "one")
ARM = '<**stopMessage:"go on",2**> delegate it'


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def used(house: House) -> int | None:
    stop = house.desk.store.load(ONE).stop
    return stop.used if stop else None


def told(tool: Tool, text: str) -> list[str]:
    return text_of(tool.dialect, tool.say(text).reply.body, tool.stream).removeprefix("[RouteCodex] ").split(ENDS)


# --- once (R1, decision 2, Q15, Q21) --------------------------------------------------------------------------------------


@DIALECTS
@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("prompts", [None, ("p-1", "p-2")])
def test_q21_a_notice_with_a_new_prompt_id_arms_nothing(
    house: House, dialect: Dialect, restarts: bool, prompts: tuple[str, str] | None
) -> None:
    """What a tool says by itself is no typed text: the newest one is still the old message, with answers behind it."""
    tool = Tool(house, dialect, headers={"x-claude-code-prompt-id": prompts[0]} if prompts else {})
    tool.say(ARM).answered(ended=False)
    house.store_used(ONE, 2)
    tool.hop().answered()
    tool.hear()
    if restarts:
        house.restart()
    if prompts:
        tool.headers = {"x-claude-code-prompt-id": prompts[1]}
    for _ in range(3):
        tool.hop("[SYSTEM NOTIFICATION - NOT USER INPUT]\nThe background agent is done.").answered()
        assert used(house) == 2
        tool.hear()


@DIALECTS
def test_a_call_repeated_after_an_answer_that_was_cut_off_arms_nothing(house: House, dialect: Dialect) -> None:
    tool = Tool(house, dialect)
    tool.say(ARM).answered(ended=False)
    house.store_used(ONE, 1)
    for _ in range(3):
        tool.ask().answered(ended=False)
        assert used(house) == 1
    tool.ask().answered()
    tool.ask()
    assert used(house) == 0, "now it was answered to the end, and is sent once more"


@DIALECTS
def test_a_call_that_was_answered_elsewhere_while_it_waited_arms_nothing(house: House, dialect: Dialect) -> None:
    """A process that stood still goes on with a call whose client has long been answered by another one."""
    tool = Tool(house, dialect)
    reading = house.desk.read(tool.handed(ARM))
    elsewhere: list[Handled] = []

    async def in_thread(work: Callable[[], T]) -> T:
        if not elsewhere:
            elsewhere.append(tool.ask())
            elsewhere[0].answered()
            house.store_used(ONE, 2)
        return work()

    done(house.desk.obeying.obey(reading, in_thread))
    assert used(house) == 2
    tool.ask()
    assert used(house) == 0, "sent once more it acts again"


@DIALECTS
@pytest.mark.parametrize("prompts", [False, True])
@pytest.mark.parametrize("restarts", [False, True])
def test_q15_sent_once_more_after_a_rewind_it_acts_again(house: House, dialect: Dialect, prompts: bool, restarts: bool) -> None:
    tool = Tool(house, dialect)
    tool.talk("hello")
    for number in range(3):
        tool.headers = {"x-claude-code-prompt-id": f"p-{number}"} if prompts else {}
        handled = tool.say(ARM)
        assert used(house) == 0
        handled.answered()
        if handled.plan.keep_end is not None:
            done(handled.plan.keep_end(inline))
        house.store_used(ONE, 2)
        if restarts:
            house.restart()
        tool.history.pop()


@DIALECTS
def test_a_rewind_from_the_middle_of_the_work_is_a_replay(house: House, dialect: Dialect) -> None:
    tool = Tool(house, dialect)
    tool.say(ARM).answered(ended=False)
    house.store_used(ONE, 1)
    del tool.history[1:]
    tool.ask()
    assert used(house) == 1


@DIALECTS
def test_q15_after_a_compaction_the_same_tag_typed_again_arms_again(house: House, dialect: Dialect) -> None:
    tool = Tool(house, dialect)
    tool.talk("one", "two", ARM)
    house.store_used(ONE, 2)
    tool.history.clear()
    tool.talk("a summary of all that")
    tool.say(ARM).answered(ended=False)
    assert used(house) == 0
    house.store_used(ONE, 1)
    tool.hop()
    assert used(house) == 1


@DIALECTS
def test_a_compaction_in_the_middle_of_the_work_arms_nothing(house: House, dialect: Dialect) -> None:
    """The tool drops what is old and repeats the message it is working on, without what was answered to it so far."""
    tool = Tool(house, dialect)
    tool.talk("one", "two")
    tool.say(ARM).answered(ended=False)
    tool.hop().answered(ended=False)
    house.store_used(ONE, 1)
    tool.history = tool.history[4:5]
    tool.ask().answered(ended=False)
    assert used(house) == 1
    tool.hop()
    assert used(house) == 1


@DIALECTS
def test_the_same_words_behind_the_old_ones_were_typed_anew(house: House, dialect: Dialect) -> None:
    """Whatever became of the old message, which still stands there."""
    tool = Tool(house, dialect)
    tool.say(ARM).answered(ended=False)
    tool.hear("half an ans")
    house.store_used(ONE, 2)
    tool.say(ARM)
    assert used(house) == 0


def test_messages_put_into_one_are_known_by_their_words(house: House) -> None:
    """Claude Code puts what got no answer and what is typed next into one message."""
    tool = Tool(house)
    tool.say(ARM).failed(500)
    house.store_used(ONE, 1)
    tool.history[-1]["content"].append({"type": "text", "text": "<**!glm**> and this"})
    for restarts in (False, True):
        if restarts:
            house.restart()
        handled = tool.ask()
        assert handled.target == "glm.key1.glm-4.7"
        assert used(house) == 1


@DIALECTS
@pytest.mark.parametrize("restarts", [False, True])
def test_a_refused_message_is_remembered(house: House, dialect: Dialect, restarts: bool) -> None:
    """Where a tool puts it and the next one together, also after a restart, the conversation goes on."""
    tool = Tool(house, dialect)
    assert tool.say("<**!nobody**> one").error[0] == "PROVIDER_NOT_AVAILABLE"
    assert tool.ask().error[0] == "PROVIDER_NOT_AVAILABLE", "sent again, it is refused again"
    if restarts:
        house.restart()
    parts = tool.history[-1].get("content", tool.history[-1].get("parts"))
    parts.append({**parts[0], "text": "<**!glm**> two"})
    handled = tool.ask()
    assert handled.target == "glm.key1.glm-4.7"
    assert texts_of(dialect, handled.body) == ["one", "two"]


@DIALECTS
@pytest.mark.parametrize("restarts", [False, True])
def test_a_refused_message_does_not_stand_in_the_way_of_what_a_tool_joins_it_with(
    house: House, dialect: Dialect, restarts: bool
) -> None:
    """Hermes Agent and smolagents put what got no answer and what is new into one text."""

    def says(*lines: str) -> Handled:
        if restarts:
            house.restart()
        tool.history[:] = tool.history[:2]
        return tool.say("\n\n".join(lines))

    tool = Tool(house, dialect)
    tool.talk("hello")
    mistyped, plain = "<**!glm.nothing**> one", "two\n\nand more"
    assert says(mistyped).error[0] == "PROVIDER_NOT_AVAILABLE"
    assert says(f"{mistyped} and more").error[0] == "PROVIDER_NOT_AVAILABLE", "in one line it is another message"
    assert texts_of(dialect, says(mistyped, plain).body)[-1] == f"one\n\n{plain}"
    assert says(mistyped, plain, "<**!glm.nobody**>").error[0] == "PROVIDER_NOT_AVAILABLE"
    assert "The next message goes to origin" in text_of(
        dialect, says(mistyped, plain, "<**!glm.nobody**>", "<**status**>").reply.body, stream=False
    )
    handled = says(mistyped, plain, "<**!glm.nobody**>", "<**clear**><**glm**> three")
    assert handled.target.startswith("glm.")
    assert tool.ask().target.startswith("glm."), "a tool's hop"


@DIALECTS
def test_a_refused_message_acts_once_its_cause_is_mended(house: House, dialect: Dialect) -> None:
    tool = Tool(house, dialect)
    assert tool.say("<**!later**> one").error[0] == "PROVIDER_NOT_AVAILABLE"
    house.config = config_text(providers=provider_text("later", "k", "m"))
    house.open()
    assert tool.ask().target == "later.k.m"


LEGACY = [
    pytest.param(lambda f: f(0, ARM, None), None, True, id="by-place"),
    pytest.param(lambda f: f(3, ARM, None), None, True, id="moved-up"),
    pytest.param(lambda f: f(0, ARM, "p-1"), "p-1", True, id="by-prompt"),
    pytest.param(lambda f: f(0, "another message", None), None, False, id="another"),
]


def _as_it_was_written(ordinal: int, text: str, prompt: str | None) -> str:
    digest = hashlib.sha256(" ".join(text.split()).encode())
    if prompt is None:
        return f"{ordinal}:{digest.hexdigest()[:32]}"
    digest.update(b"\0" + prompt.encode())
    return f"prompt:{digest.hexdigest()[:32]}"


@pytest.mark.parametrize("written, prompt, is_known", LEGACY)
def test_the_state_of_an_earlier_version_is_read(house: House, written: Any, prompt: str | None, is_known: bool) -> None:
    file = house.folder / "sessions" / "session-one.json"
    file.parent.mkdir(exist_ok=True)
    stop = {"stopMessageText": "go on", "stopMessageMaxRepeats": 2, "stopMessageUsed": 2}
    state = {"obeyedFingerprint": written(_as_it_was_written), **stop}
    file.write_text(json.dumps({"version": 1, "state": state}))
    agent = {"User-Agent": "claude-cli/2.1.327 (external, cli)"} if prompt else {}
    tool = Tool(house, headers={**agent, "x-claude-code-prompt-id": prompt} if prompt else {})
    tool.say(ARM)
    assert used(house) == (2 if is_known else 0)
    tool.headers = {**agent, "x-claude-code-prompt-id": "another"} if prompt else {}
    tool.hop()
    assert used(house) == (2 if is_known else 0), "a notice after the update"


def test_calls_without_tags_and_repeated_ones_write_nothing(house: House) -> None:
    tool = Tool(house)
    tool.say("<**!glm**> go").answered(ended=False)
    file = house.folder / "sessions" / "session-one.json"
    before = file.stat()
    for _ in range(3):
        handled = tool.hop()
        assert handled.orders is not None
        assert house.desk.obeying.at_once(handled.reading) is not None  # type: ignore[arg-type]
        handled.answered(ended=False)
    tool.hear()
    tool.say("more").answered()
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_what_acts_again_and_changes_nothing_writes_nothing(house: House) -> None:
    tool = Tool(house)
    first = tool.say("<**!glm**> go")
    first.answered()
    assert first.plan.keep_end is not None
    done(first.plan.keep_end(inline))
    file = house.folder / "sessions" / "session-one.json"
    before = file.stat()
    for _ in range(3):
        handled = tool.ask()
        handled.answered()
        assert handled.plan.keep_end is None
    assert file.stat().st_ino == before.st_ino


@DIALECTS
def test_conversations_that_begin_alike_do_not_know_each_other(house: House, dialect: Dialect) -> None:
    """Only their beginning tells them apart from others."""
    first = Tool(house, dialect, session=None)
    first.talk("<**!glm**> hello", "<**!openai**> more")
    second = Tool(house, dialect, session=None)
    handled = second.say("<**!glm**> hello")
    assert handled.orders is not None
    assert handled.orders.state.allowed == ("glm",)


# --- a force for one message (decision 27) --------------------------------------------------------------------------------


@DIALECTS
@pytest.mark.parametrize("word", ["echo", "origin"])
def test_echo_and_origin_hold_for_one_message(house: House, dialect: Dialect, word: str) -> None:
    tool = Tool(house, dialect)
    tool.talk("<**!openai.gpt-4**> <**!openai**> hi")
    handled = tool.say(f"<**{word}**> hello")
    if word == "echo":
        assert "hello" in text_of(dialect, handled.reply.body, False)
    else:
        assert handled.target == "origin.client.client-model"
    tool.hear()
    assert tool.say("and now?").plan.target.provider == "openai"


@DIALECTS
@pytest.mark.parametrize("word", ["echo", "origin"])
def test_alone_they_change_nothing_and_say_how_to_use_them(house: House, dialect: Dialect, word: str) -> None:
    tool = Tool(house, dialect)
    lines = told(tool, f"<**{word}**>")
    assert lines[0].startswith(f"`<**{word}**>` holds for the message that it stands in, so nothing was sent")
    assert f"`<**!{word}**>` keeps the whole conversation there" in lines[0]
    assert house.desk.store.load(ONE).idle
    tool.hear()
    tool.talk(f"<**!{word}**>")
    assert house.desk.store.load(ONE).allowed == (word,)


@DIALECTS
@pytest.mark.parametrize("question", ["<**status**>", "<**help**>", "<**clear**> <**why**>"])
def test_a_question_that_was_answered_is_not_refused_when_the_tool_goes_on_by_itself(
    house: House, dialect: Dialect, question: str
) -> None:
    """gptme says so behind every answer that calls no tool, without anybody at the keyboard."""
    tool = Tool(house, dialect)
    tool.talk(question)
    for _ in range(2):
        handled = tool.say("<system>No tool call detected in last message. Did you mean to finish?</system>")
        assert handled.target == "origin.client.client-model"
        handled.answered()
        tool.hear()


def test_a_question_whose_answer_the_tool_dropped_is_not_refused_either(house: House) -> None:
    """mini-swe-agent wants a tool called by each answer, and says so in the place of one that calls none."""
    system = {"role": "system", "content": "You are a helpful assistant that can interact with a computer."}
    tool = Tool(house, Dialect.CHAT, session=None, history=[system])
    assert tool.say("Please solve this issue: <**status**>\n\nYou can execute bash commands").reply.status == 400
    tool.history[1:] = []
    behind = "\n\nYou can execute bash commands and edit files to implement the necessary changes.\n"
    assert tool.say(f"Please solve this issue: <**status**>{behind}").reply.status == 200
    assert tool.say("Tool call error:\n\n<error>\nNo tool calls found.\n</error>").target == "origin.client.client-model"


# --- refused --------------------------------------------------------------------------------------------------------------


@DIALECTS
@pytest.mark.parametrize(
    "tag, said",
    [
        ("<**claer**>", "nearest known: clear"),
        ("<**gpt-4**>", "nearest known: openai.gpt-4"),
        ("<**glm/glm-4.7**>", "nearest: <**glm.glm-4.7**>"),
        ('<**stopMessage:"x",0**>', "the count is a number from 1 on"),
        ("<**budget:5**>", "there is no <**budget**> yet"),
        ("<**!glm.glm-4.7", "write <**!glm.glm-4.7**>"),
        ("<**status**>", "send it in a message of its own"),
        ("<**readme.md**>", "put it in backticks"),
    ],
)
def test_nothing_is_sent_and_nothing_changed(house: House, dialect: Dialect, tag: str, said: str) -> None:
    tool = Tool(house, dialect)
    tool.talk("<**!anthropic**> before")
    refused = tool.say(f"<**#openai**> do it {tag}")
    assert refused.reply.status == 400
    assert said in refused.error[1]
    assert "Nothing was sent, and nothing changed." in refused.error[1]
    state = house.desk.store.load(ONE)
    assert (state.allowed, state.disabled_providers) == (("anthropic",), ())


def test_what_is_nothing_of_ours_is_named(house: House) -> None:
    """In the comment, which the log repeats, and in the next status, once."""
    tool = Tool(house)
    handled = tool.say("<**foo:bar**> and <**a b**> hi")
    assert texts_of(Dialect.MESSAGES, handled.body) == ["and hi"]
    assert handled.plan.comment.endswith(" · No such tag: foo:bar. No such tag: a b.")
    handled.answered()
    tool.hear()
    assert told(tool, "<**status**>")[-2:] == ["No such tag: foo:bar.", "No such tag: a b."]
    tool.hear()
    assert not any("No such tag" in line for line in told(tool, "<**status**> "))


@DIALECTS
def test_the_next_status_names_tags_that_stood_where_they_give_no_orders(house: House, dialect: Dialect) -> None:
    tool = Tool(house, dialect)
    tool.talk("<task>\nuse <**!glm**> here\n</task>\ngo on <**foo:bar**>")
    assert told(tool, "<**status**>")[-2:] == ["No such tag: foo:bar.", "`<**!glm**>` in `<task>` gave no orders."]
    tool.hear()
    assert not any("gave no orders" in line for line in told(tool, "<**status**> "))


def down(house: House, status: int, *keys: str) -> None:
    for key in keys:
        house.learned.health.failed(Target("openai", key, "gpt-4"), ProviderError(status), house.clock.now, wall=0.0)


@DIALECTS
def test_r8_a_target_that_is_down_cannot_be_kept_to(house: House, dialect: Dialect) -> None:
    tool = Tool(house, dialect)
    down(house, 401, "primary", "backup")
    assert tool.say("<**!openai.gpt-4**> a").target == "openai.third.gpt-4", "one key works"
    other = Tool(house, dialect, session="two")
    assert other.say("<**!openai.primary.gpt-4**> b").error[1] == (
        "Requested provider openai.primary is not available (health check failed): openai.primary is down for 10 min "
        "(key refused); corrected in the configuration, it is used at once. Nothing was sent, and nothing changed."
    )
    down(house, 401, "third")
    assert "openai is not available" in other.say("<**!openai.gpt-4**> c").error[1]
    assert house.desk.store.load(SessionKey("session", "two")).sticky is None
    assert house.desk.store.load(ONE).sticky == Sticky("openai", None, "gpt-4"), "what was set before is cleared when it is used"
    house.clock.passes(3600)
    assert other.say("<**!openai.gpt-4**> d").plan.target.provider == "openai"


@DIALECTS
def test_r8_a_target_that_is_switched_off_cannot_be_kept_to(house: House, dialect: Dialect) -> None:
    tool = Tool(house, dialect)
    tool.talk("<**#glm**> a")
    assert (
        tool.say("<**!glm.glm-4.7**> b")
        .error[1]
        .startswith("Requested provider glm is disabled: <**@glm**> switches it on again.")
    )
    assert house.desk.store.load(ONE).sticky is None
    assert tool.say("<**@glm**> <**!glm.glm-4.7**> c").target == "glm.key1.glm-4.7"


def test_r8_a_short_rest_hinders_nobody(house: House) -> None:
    down(house, 429, "primary", "backup", "third")
    assert Tool(house).say("<**!openai.gpt-4**> a").sent
    assert house.desk.store.load(ONE).sticky is not None


def test_r8_the_later_list_of_allowed_providers_replaces_the_earlier(house: House) -> None:
    tool = Tool(house)
    tool.say("<**!glm**> <**!openai**> a")
    assert house.desk.store.load(ONE).allowed == ("openai",)


OFF = """
    off:
      protocol: openai-chat
      baseURL: https://off.example/v1
      auth: {type: apikey, keys: [{alias: one, value: "${OFF_KEY}"}]}
      models: {m: {}}"""


@pytest.mark.parametrize("tag", ["<**off.m**>", "<**!off.m**>", "<**off**>", "<**off.one.m**>"])
def test_a_provider_without_its_variable_says_which(tmp_path: Path, tag: str) -> None:
    house = House(tmp_path, config_text(providers=OFF))
    line = next(number for number, text in enumerate(house.config.splitlines(), 1) if "OFF_KEY" in text)
    message = Tool(house).say(f"{tag} hi").error[1]
    assert f"is disabled: OFF_KEY is not set (test.yaml:{line}); write it into .env, or set it and restart" in message


@pytest.mark.parametrize("dialect", Dialect)
@pytest.mark.parametrize("keep", [False, True])
def test_r10_a_provider_that_was_deleted_under_a_sticky_is_said(tmp_path: Path, keep: bool, dialect: Dialect) -> None:
    top = "sticky: {onExhausted: keep}" if keep else ""
    house = House(tmp_path, config_text(top=top))
    tool = Tool(house, dialect)
    tool.talk("<**!glm.glm-4.7**> a")
    house.config = config_text(top=top, providers=provider_text("openai", "k", "gpt-4"))
    house.open()
    handled = tool.say("b")
    after = "kept" if keep else "forgotten"
    assert f"the sticky target glm.glm-4.7 is no longer in the configuration and is {after}" in handled.plan.comment
    tool.hear()
    assert any("glm.glm-4.7" in line and "is no longer in the configuration" in line for line in told(tool, "<**status**>"))


@pytest.mark.parametrize("word", sorted(RESERVED | {"Status", "WHY"}))
def test_a_word_of_ours_is_no_name_of_a_provider(word: str) -> None:
    with pytest.raises(ConfigError, match="is a tag of its own"):
        read(config_text(providers=provider_text(word, "k", "m")), name="test.yaml", env={})


# --- words in the chat ------------------------------------------------------------------------------------------------------


@DIALECTS
def test_help_is_ten_lines_and_every_tag_in_it_can_be_read(house: House, dialect: Dialect) -> None:
    lines = [line for line in told(Tool(house, dialect), "<**help**>") if line != "```"]
    assert len(lines) == 10
    assert any("<**models:p**>" in line for line in lines)


def test_models_are_tags_to_copy_with_how_they_are(tmp_path: Path) -> None:
    house = House(tmp_path, config_text(providers=provider_text("openai", "primary backup third", "gpt-4 gpt-5.2") + OFF))
    down(house, 401, "primary")
    lines = told(Tool(house), "<**models**>")
    assert lines[0] != "```", "behind our mark on its line it would be no block"
    assert lines[1] == lines[-1] == "```"
    assert "<**!openai.gpt-4**>    ready (2 of 3 keys)" in lines
    assert "<**!off.m**>           off: OFF_KEY is not set" in "\n".join(lines)
    assert any(line.startswith("<**echo**>") for line in lines)
    house.learned.health.failed(
        Target("openai", "backup", "gpt-4"), ProviderError(429, retry_after_s=240), house.clock.now, wall=0.0
    )
    down(house, 401, "third")
    assert "<**!openai.gpt-4**>    resting 4 min (429)" in told(Tool(house, session="two"), "<**models:openai**>")
    assert "gml not found" in Tool(house).say("<**models:gml**>").error[1]


def test_every_model_that_is_listed_can_be_copied(house: House) -> None:
    for line in told(Tool(house), "<**models**>"):
        if line.startswith("<**"):
            tag = line.split("**>")[0] + "**>"
            assert Tool(house, session=tag).say(f"{tag} hi").reply.status == 200 if "echo" in tag else True
            if "echo" not in tag:
                assert Tool(house, session=tag).say(f"{tag} hi").sent


def test_why_tells_the_last_decision_and_its_attempts(house: House) -> None:
    tool = Tool(house)
    assert told(tool, "<**why**>") == ["Nothing has been sent in this conversation since the server started."]
    tool.hear()
    handled = tool.say("<**!openai.gpt-4**> hi")
    handled.failed(500)
    handled.answered()
    tool.hear()
    house.clock.passes(90)
    lines = told(tool, "<**why**>")
    assert lines[0].startswith("2 min ago: openai.")
    assert "the session keeps to openai.gpt-4" in lines[0]
    assert lines[1] == "Attempt 1 failed: openai.primary.gpt-4: status 500, HTTP_500."
    assert lines[-1] == "It ended so: answered."
    tool.hear()
    Tool(house, session="one", headers={"x-claude-code-request-class": "side_reply"}).say("a side call")
    assert "openai.gpt-4" in told(tool, "<**why**> ")[0], "side calls say nothing about the conversation"


def test_status_tells_where_the_next_message_goes_and_how_the_keys_are(tmp_path: Path) -> None:
    house = House(tmp_path, config_text(providers=provider_text("openai", "primary backup third", "gpt-4") + OFF))
    tool = Tool(house)
    tool.talk("<**!openai.gpt-4**> hi")
    before = copy.deepcopy(house.learned.rotation)
    down(house, 401, "primary")
    lines = told(tool, "<**status**>")
    assert lines[0] == "Sticky: openai.gpt-4 (all keys)."
    assert any(line.startswith("The next message goes to openai.") and "keeps to openai.gpt-4" in line for line in lines)
    assert "openai: primary down for 10 min (key refused), backup ready, third ready." in lines
    assert any(line.startswith("off: one off: OFF_KEY is not set (test.yaml:") for line in lines)
    assert not any(line.startswith("Last failure") for line in lines)
    assert before == house.learned.rotation, "nobody's turn is taken by asking"
    tool.hear()
    down(house, 401, "backup", "third")
    assert tool.say("<**openai.gpt-4**> now").error[0] == "PROVIDER_NOT_AVAILABLE"
    house.clock.passes(30)
    lines = told(Tool(house), "<**status**>")
    failure = "openai.primary is down for 10 min (key refused); corrected in the configuration, it is used at once"
    assert f"Last failure: 30 s ago: Requested provider openai is not available (health check failed): {failure}" in lines
    assert any(line.startswith("The next message goes to origin") for line in lines), "as the sticky target is used up"


def test_a_stop_message_alone_and_then_what_is_asked(house: House) -> None:
    """Asking changes nothing."""
    tool = Tool(house)
    tool.talk('<**stopMessage:"go on",2**>', "<**status**>", "<**help**>", "<**models**>", "<**why**>")
    stop = house.desk.store.load(ONE).stop
    assert stop is not None
    assert (stop.text, stop.max_repeats, stop.used) == ("go on", 2, 0)
    assert isinstance(stop, StopMessage)
