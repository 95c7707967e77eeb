"""What a person is told without having asked: which causes there are, and how often."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from routecodex.routing.sessions.store import SessionKey
from routecodex.routing.tags.notice import Cause
from routecodex.routing.values import Dialect, ProviderError, Target
from tests.routing.house import CONFIG_A, Handled, House, Tool, config_text

Build = Callable[..., House]


@pytest.fixture
def build(tmp_path: Path) -> Build:
    return lambda *args, **more: House(tmp_path, config_text(*args, **more))


def told(handled: Handled) -> list[str]:
    """The sentences, which then stand before a text."""
    plan = handled.plan
    line = plan.notice
    plan.noticed()
    return line.removeprefix("[RouteCodex: ").removesuffix("]\n\n").split("; ") if line else []


def fails(house: House, *keys: str, status: int = 401) -> None:
    for key in keys:
        house.learned.health.failed(Target("openai", key, "gpt-4"), ProviderError(status), house.clock.now, wall=0.0)


@pytest.mark.parametrize("keep", [False, True])
def test_a_sticky_target_that_cannot_be_used(build: Build, keep: bool) -> None:
    house = build("default: [glm.glm-4.7]", CONFIG_A, top="sticky: {onExhausted: keep}" if keep else "")
    tool = Tool(house)
    assert told(tool.say("<**!openai.gpt-4**> hi")) == []
    tool.hear()
    fails(house, "primary", "backup", "third")
    house.desk.notices.wait(Tool(house).say("x").reading.key)  # nothing waits, nothing is told
    expected = "openai.gpt-4 cannot be used now: glm.glm-4.7 answers"
    assert told(tool.say("next")) == (
        [expected] if keep else ["openai.gpt-4 cannot be used now and is no longer this session's target"]
    )
    tool.hear()
    assert told(tool.say("later")) == []


def test_it_waits_for_a_text(build: Build) -> None:
    house = build()
    tool = Tool(house)
    first = tool.say("hi")
    house.desk.notices.wait(first.reading.key, Cause("a", "something happened"))
    assert first.plan.notice == first.plan.notice == "[RouteCodex: something happened]\n\n"
    assert told(tool.hop()) == ["something happened"]
    house.desk.notices.wait(first.reading.key, Cause("a", "something happened"))
    assert told(tool.hop()) == []


def test_side_calls_and_sessions_that_nobody_names_are_told_nothing(build: Build) -> None:
    house = build("default: [glm.glm-4.7]", CONFIG_A, top="sessions: {derive: off}")
    tool = Tool(house)
    handled = tool.say("hi")
    house.desk.notices.wait(handled.reading.key, Cause("a", "something happened"))
    assert told(handled) == ["something happened"]


@pytest.mark.parametrize("dialect", list(Dialect))
def test_a_tag_in_a_wrapper_of_an_unknown_tool(build: Build, dialect: Dialect) -> None:
    tool = Tool(build(), dialect)
    assert told(tool.say("<task>\nuse <**!glm**> here\n</task>\ngo on")) == [
        "`<!glm>` in `<task>` gave no orders (sessions: typedIn)"
    ]
    assert told(tool.hop()) == []


@pytest.mark.parametrize("dialect", list(Dialect))
def test_a_tag_in_a_message_that_another_one_followed_at_once(build: Build, dialect: Dialect) -> None:
    """Some tools send what was typed meanwhile as several messages; the newest alone gives orders."""
    house = build()
    tool = Tool(house, dialect)
    tool.talk("hi")
    tool.handed("<**!glm.glm-4.7**> first")
    assert told(tool.say("second")) == ["`<!glm.glm-4.7>` in a message before your last one gave no orders"]
    assert house.desk.store.load(SessionKey("session", "one")).sticky is None
    assert told(tool.hop()) == []
    tool.hear()
    assert told(tool.say("third")) == []


def test_what_a_compaction_left_of_a_history_is_not_told(build: Build) -> None:
    """Codex keeps what the person typed, and drops every answer to it."""
    tool = Tool(build(), Dialect.RESPONSES)
    tool.talk("<**echo**> hello", "<**!glm.glm-4.7**>", "plain", "<**clear**>", "<**!glm.glm-4.7**> stay")
    tool.history = [item for item in tool.history if item.get("role") == "user"][-3:]
    tool.history.append({"type": "compaction", "encrypted_content": "x"})
    assert told(tool.say("go on")) == []
    assert told(tool.hop()) == []


def test_what_was_cleared_since_is_not_told(build: Build) -> None:
    tool = Tool(build())
    tool.say("<**!glm.glm-4.7**> first")
    tool.say("<**clear**> second")
    assert told(tool.say("third")) == []


@pytest.mark.parametrize("dialect", list(Dialect))
@pytest.mark.parametrize("tag", ["<**!glm.glm-4.7**>", "<**glm.glm-4.7**>", "<**clear**>", '<**stopMessage:"go on",2**>'])
def test_what_was_obeyed_and_never_answered_is_not_told(build: Build, dialect: Dialect, tag: str) -> None:
    tool = Tool(build(), dialect)
    tool.say(f"{tag} first")
    assert told(tool.say("second")) == []
    tool.history = []
    refused = tool.say("<**!nobody**> first")
    assert refused.reply.status == 400
    assert told(tool.say("second")) == [], "that was said at once"
