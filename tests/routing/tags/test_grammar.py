"""What the body of a tag says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecodex.routing.tags.grammar import (
    Allow,
    Clear,
    ClockClear,
    Disable,
    Enable,
    Force,
    Help,
    Models,
    Name,
    Status,
    Stick,
    StopClear,
    StopSet,
    Tag,
    Unknown,
    Unreadable,
    Why,
    parse,
)

GLM, OPENAI = Name("glm"), Name("openai")

READ = [
    pytest.param("!glm,openai", (Allow(GLM), Allow(OPENAI)), id="P01"),
    pytest.param("!glm, !openai", (Allow(GLM), Allow(OPENAI)), id="P01-prefix-repeated"),
    pytest.param("antigravity", (Allow(Name("antigravity")),), id="P03"),
    pytest.param("glm,openai", (Allow(GLM), Allow(OPENAI)), id="plain-list"),
    pytest.param("!antigravity.claude-sonnet-4-5", (Stick(Name("antigravity", "claude-sonnet-4-5")),), id="P04"),
    pytest.param("!antigravity[geminikey].gemini-3", (Stick(Name("antigravity", "gemini-3", "geminikey")),), id="P05"),
    pytest.param("!openai[backup]", (Stick(Name("openai", None, "backup")),), id="key-in-brackets"),
    pytest.param("glm.glm-4.7", (Force(Name("glm", "glm-4.7")),), id="P07"),
    pytest.param("!glm[].glm-4.7", (Stick(Name("glm", "glm-4.7", "")),), id="P07-empty-brackets"),
    pytest.param("!glm[]", (Allow(Name("glm", None, "")),), id="empty-brackets-alone"),
    pytest.param("openai.primary.gpt-4", (Force(Name("openai", "primary.gpt-4")),), id="P09"),
    pytest.param("#anthropic.primary", (Disable(Name("anthropic", "primary")),), id="P11"),
    pytest.param("#glm,openai.1", (Disable(GLM), Disable(Name("openai", "1"))), id="disable-list"),
    pytest.param("@glm.gpt-4", (Enable(Name("glm", "gpt-4")),), id="P15"),
    pytest.param("echo", (Force(Name("echo")),), id="echo-forces"),
    pytest.param("origin", (Force(Name("origin")),), id="origin-forces"),
    pytest.param("!echo", (Allow(Name("echo")),), id="echo-allowed"),
    pytest.param("echo,glm", (Allow(Name("echo")), Allow(GLM)), id="echo-in-a-list"),
    pytest.param("help", (Help(),), id="help"),
    pytest.param("WHY", (Why(),), id="why"),
    pytest.param("models", (Models(),), id="models"),
    pytest.param("Models: glm", (Models("glm"),), id="models-of-one"),
    pytest.param("!glm,", (Allow(GLM),), id="comma-at-the-end"),
    pytest.param("!glm,#openai.1", (Allow(GLM), Disable(Name("openai", "1"))), id="own-prefix"),
    pytest.param("!glm.glm-4.7:foo", (Stick(Name("glm", "glm-4.7:foo")),), id="P28"),
    pytest.param("or.org/m:free@v1[1m]", (Force(Name("or", "org/m:free@v1[1m]")),), id="strange-model-name"),
    pytest.param("Clear", (Clear(),), id="clear"),
    pytest.param(" CLEAR ", (Clear(),), id="clear-any-case"),
    pytest.param("Status", (Status(),), id="status"),
    pytest.param("clear,!glm", (Clear(), Allow(GLM)), id="clear-in-a-list"),
    pytest.param(" Clock:Clear ", (ClockClear(),), id="C11"),
    pytest.param("clock : CLEAR", (ClockClear(),), id="C11-spaces"),
    pytest.param("\ufeff\u200b!glm", (Allow(GLM),), id="invisible-characters"),
]

UNKNOWN = [
    *(pytest.param(body, id=f"P23-{body!r}") for body in ("123", "", " ", "1,2")),
    *(pytest.param(body, id=f"P29-{body}") for body in ("foo:bar", "hb:on", "force:glm.x", "sm:30")),
    *(pytest.param(body, id=body) for body in ("!", "#,", "!glm,a b", "a b", "[x]", "**", "---", "!glm.a,b c", "! glm . x")),
]
UNREADABLE = [
    *(pytest.param(body, id=body) for body in ("glm.", "!glm[x", "#!glm", "clock:{}", "clear all", "wait:5")),
    pytest.param("stopMessage:on,10", id="Q08"),
    *(pytest.param(f"stopMessage:{value}", id=f"Q07-{value}") for value in ('""', '"  "', '"x', "", '"a" b', '"a "b" c",3')),
    *(
        pytest.param(f'stopMessage:"x",{count}', id=f"Q04-{count}")
        for count in ("0", "-1", "abc", "", "3,4", "+3", "1.5", "9" * 400)
    ),
    pytest.param("stopMessage:<file://a", id="file-unclosed"),
]

STOPS = [
    pytest.param('stopMessage:"继续"', StopSet("继续", None, 10), id="Q01"),
    pytest.param('stopMessage:"继续",3', StopSet("继续", None, 3), id="Q02"),
    pytest.param('stopMessage:"x",９', StopSet("x", None, 9), id="Q04-full-width"),
    pytest.param('stopmessage:"x"', StopSet("x", None, 10), id="Q06"),
    pytest.param("stopMessage:go on,3", StopSet("go on", None, 3), id="Q22"),
    pytest.param("stopMessage:continue", StopSet("continue", None, 10), id="text-without-quotes"),
    pytest.param('stopMessage : "x" , 3 ', StopSet("x", None, 3), id="spaces"),
    pytest.param('stopMessage:"a,b\nc",2', StopSet("a,b\nc", None, 2), id="comma-and-break-inside"),
    pytest.param(r'stopMessage:"say **> and <**!glm**> \"x\"",2', StopSet('say **> and <**!glm**> "x"', None, 2), id="Q19"),
    pytest.param(r'stopMessage:"a\nb\\",2', StopSet(r"a\nb\\", None, 2), id="other-backslashes-stay"),
    pytest.param("stopMessage:<file://stopMessage/message1.md>", StopSet(None, "stopMessage/message1.md", 10), id="Q11"),
    pytest.param("stopMessage:<file://stopMessage/m.md>,3", StopSet(None, "stopMessage/m.md", 3), id="Q20"),
    pytest.param("stopMessage:<file:///etc/passwd>", StopSet(None, "/etc/passwd", 10), id="Q12-is-refused-later"),
    pytest.param("stopMessage:clear", StopClear(), id="Q18"),
    pytest.param("stopMessage: CLEAR", StopClear(), id="Q18-any-case"),
    pytest.param("stopMessage:off", StopClear(), id="off"),
]


@pytest.mark.parametrize("body, expected", READ)
def test_a_body_is_read(body: str, expected: tuple[Tag, ...]) -> None:
    assert parse(body) == expected


@pytest.mark.parametrize("body, expected", STOPS)
def test_stop_message(body: str, expected: Tag) -> None:
    assert parse(body) == (expected,)


@pytest.mark.parametrize("body", UNREADABLE)
def test_what_is_ours_and_cannot_be_read(body: str) -> None:
    (tag,) = parse(body)
    assert isinstance(tag, Unreadable)
    assert "<**" in tag.right


def test_a_list_in_one_tag_adds_up() -> None:
    assert [tag.adds for tag in parse("!glm,openai,echo") if isinstance(tag, Allow)] == [False, True, True]


@pytest.mark.parametrize("body", UNKNOWN)
def test_what_is_not_known(body: str) -> None:
    (tag,) = parse(body)
    assert isinstance(tag, Unknown)


def test_a_broken_stop_message_says_how_it_is_written() -> None:
    (tag,) = parse('stopMessage:"a "b" c",3')
    assert isinstance(tag, Unreadable)
    assert '\\"' in tag.right


@given(st.text(max_size=200) | st.from_regex(r"[!#@]?[a-z1]+(\[[a-z]*\])?(\.[a-z:/.]+)?(,[a-z.]*)*", fullmatch=True))
def test_any_body_says_something(body: str) -> None:
    said = parse(body)
    assert said
    assert len(said) == 1 or not any(isinstance(tag, Unknown | Unreadable) for tag in said)


def test_16_kib_of_spaces_cost_nothing() -> None:
    (tag,) = parse('stopMessage:"' + " " * 16_000 + 'x",2')
    assert isinstance(tag, StopSet)
