"""Tags in the shapes that real tools give a conversation: reminders beside them, context behind them, messages put together."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from routecodex.routing.values import Dialect
from tests.rig.behaviour import Behaviour
from tests.rig.client import call
from tests.rig.provider import FakeProvider
from tests.rig.proxy import SCRIPT, Mitmdump
from tests.system.talk import CONFIG, ENDS, MARK, request
from tests.system.tool import CREDENTIALS, HOSTS, text_of

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def steered() -> Iterator[tuple[FakeProvider, Mitmdump]]:
    with FakeProvider() as provider, Mitmdump(script=SCRIPT, config=CONFIG, upstream=provider) as proxy:
        yield provider, proxy
        assert proxy.alive
        assert "Traceback" not in proxy.log


REMINDER = "<system-reminder>\nUse tabs.\n</system-reminder>"
ANSWER = f"{MARK}Routing: normal.{ENDS}stopMessage: none."
CACHED = {"cache_control": {"type": "ephemeral"}}


def _text(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": text, **more}


ENVIRONMENT = {"role": "system", "content": [_text("# Environment")]}
ASKED = {"role": "user", "content": [_text(REMINDER), _text("<**status**>", **CACHED)]}
ANSWERED = {"role": "assistant", "content": [_text(ANSWER)]}
CODEX_CONTEXT = {
    "type": "message",
    "role": "user",
    "content": [{"type": "input_text", "text": "<environment_context>\n  <cwd>/p</cwd>\n</environment_context>"}],
}


def _codex(role: str, text: str) -> dict[str, Any]:
    kind = "input_text" if role == "user" else "output_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


LATER: dict[str, tuple[Dialect, list[Any], list[Any], list[Any]]] = {
    "Claude Code: reminder beside it, environment behind it": (
        Dialect.MESSAGES,
        [ASKED, ENVIRONMENT],
        [ASKED, ENVIRONMENT, ANSWERED, {"role": "user", "content": [_text("hello", **CACHED)]}],
        [{"role": "user", "content": [_text(REMINDER, **CACHED), _text("hello", **CACHED)]}, ENVIRONMENT],
    ),
    "Claude Code: the old question as a plain string": (
        Dialect.MESSAGES,
        [{"role": "user", "content": "<**status**>"}],
        [{"role": "user", "content": "<**status**>"}, ANSWERED, {"role": "user", "content": [_text("hello")]}],
        [{"role": "user", "content": [_text("hello")]}],
    ),
    "kimi: two reminders behind it": (
        Dialect.CHAT,
        [
            {"role": "user", "content": "<**status**>"},
            {"role": "user", "content": REMINDER},
            {"role": "user", "content": REMINDER},
        ],
        [
            {"role": "system", "content": "You are Kimi."},
            {"role": "user", "content": "<**status**>"},
            {"role": "user", "content": REMINDER},
            {"role": "assistant", "content": ANSWER},
            {"role": "user", "content": "hello"},
        ],
        [
            {"role": "system", "content": "You are Kimi."},
            {"role": "user", "content": REMINDER},
            {"role": "user", "content": "hello"},
        ],
    ),
    "aider: instructions behind it": (
        Dialect.CHAT,
        [{"role": "user", "content": "<**status**>"}, {"role": "system", "content": "Answer in diffs."}],
        [
            {"role": "user", "content": "<**status**>"},
            {"role": "assistant", "content": ANSWER},
            {"role": "user", "content": "hello"},
            {"role": "system", "content": "Answer in diffs."},
        ],
        [{"role": "user", "content": "hello"}, {"role": "system", "content": "Answer in diffs."}],
    ),
    "Codex: its context before it": (
        Dialect.RESPONSES,
        [CODEX_CONTEXT, _codex("user", "<**status**>")],
        [CODEX_CONTEXT, _codex("user", "<**status**>"), _codex("assistant", ANSWER), _codex("user", "hello")],
        [CODEX_CONTEXT, _codex("user", "hello")],
    ),
    "Gemini CLI: its context in the same message": (
        Dialect.GEMINI,
        [{"role": "user", "parts": [{"text": "<session_context>x</session_context>"}, {"text": "<**status**>"}]}],
        [
            {"role": "user", "parts": [{"text": "<session_context>x</session_context>"}, {"text": "<**status**>"}]},
            {"role": "model", "parts": [{"text": ANSWER}]},
            {"role": "user", "parts": [{"text": "hello"}]},
        ],
        [{"role": "user", "parts": [{"text": "<session_context>x</session_context>"}, {"text": "hello"}]}],
    ),
}
_KEYS = {Dialect.MESSAGES: "messages", Dialect.CHAT: "messages", Dialect.RESPONSES: "input", Dialect.GEMINI: "contents"}


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "json"])
@pytest.mark.parametrize("dialect, asked, later, seen", LATER.values(), ids=LATER.keys())
def test_shapes_of_tools(
    steered: tuple[FakeProvider, Mitmdump],
    dialect: Dialect,
    asked: list[Any],
    later: list[Any],
    seen: list[Any],
    stream: bool,
) -> None:
    provider, proxy = steered
    provider.forget()
    path, body = request(dialect, "m", [], stream)
    headers = (CREDENTIALS[dialect], ("x-session-id", f"shape-{dialect}-{stream}"))
    first = call(HOSTS[dialect], path, body | {_KEYS[dialect]: asked}, proxy=proxy, headers=headers)
    assert text_of(dialect, first.body, stream).startswith(ANSWER)
    assert provider.requests == []
    call(HOSTS[dialect], path, body | {_KEYS[dialect]: later}, proxy=proxy, headers=headers)
    assert provider.requests[0].json[_KEYS[dialect]] == seen


# --- a tool that puts unanswered messages together ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "typed",
    ['"<**stopMessage:\\"go on\\",1**> hi you"', '<**stopMessage:"go on",1**> hi', 'a "<**stopMessage:\\"go on\\",1**> b"'],
)
def test_what_opencode_run_quotes_keeps_its_hidden_rounds(steered: tuple[FakeProvider, Mitmdump], typed: str) -> None:
    """The quotes are read away with the tag's own, and stand there again once it has been taken out."""
    provider, proxy = steered
    provider.forget()
    headers = (CREDENTIALS[Dialect.MESSAGES], ("user-agent", "opencode/1.18.33"), ("x-session-id", str(uuid.uuid4())))

    def ask(*messages: dict[str, Any]) -> str:
        body = {"model": "m", "max_tokens": 9, "messages": list(messages)}
        answer = call(HOSTS[Dialect.MESSAGES], "/v1/messages", body, proxy=proxy, headers=headers)
        return text_of(Dialect.MESSAGES, answer.body, False)

    first = {"role": "user", "content": [_text(typed)]}
    said = ask(first)
    assert len(provider.calls) == 2
    ask(first, {"role": "assistant", "content": [_text(said)]}, {"role": "user", "content": [_text('"and now"')]})
    assert len(provider.calls) == 3
    assert b'"go on"' in provider.calls[-1].body


class Merging:
    """Claude Code after an error: what got no answer stands in one message with what is typed next."""

    def __init__(self, provider: FakeProvider, proxy: Mitmdump, *, stream: bool, session: str) -> None:
        provider.forget()
        self.provider, self.proxy, self.stream = provider, proxy, stream
        self.headers = (CREDENTIALS[Dialect.MESSAGES], ("x-claude-code-session-id", session))
        self.messages: list[dict[str, Any]] = []

    def say(self, text: str) -> tuple[int, str]:
        if self.messages and self.messages[-1]["role"] == "user":
            parts = self.messages[-1]["content"]
            parts[-1] = _text(parts[-1]["text"] + "\n")
            parts.append(_text(text, **CACHED))
        else:
            self.messages.append({"role": "user", "content": [_text(REMINDER), _text(text, **CACHED)]})
        return self.ask()

    def hop(self) -> tuple[int, str]:
        use = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {}}
        result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "done"}
        self.messages += [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
        return self.ask()

    def ask(self) -> tuple[int, str]:
        body = {"model": "m", "max_tokens": 9, "stream": self.stream, "messages": self.messages}
        answer = call(HOSTS[Dialect.MESSAGES], "/v1/messages", body, proxy=self.proxy, headers=self.headers)
        if answer.status != 200:
            return answer.status, answer.json["error"]["message"]
        said = text_of(Dialect.MESSAGES, answer.body, self.stream)
        self.messages.append({"role": "assistant", "content": [_text(said)]})
        return answer.status, said

    @property
    def host(self) -> str | None:
        return self.provider.requests[-1].host

    @property
    def sent(self) -> list[list[str]]:
        """The texts of every user message that the provider saw last."""
        users = [message for message in self.provider.requests[-1].json["messages"] if message["role"] == "user"]
        return [[part["text"] for part in message["content"] if "text" in part] for message in users]


@pytest.fixture(params=[True, False], ids=["stream", "json"])
def merging(steered: tuple[FakeProvider, Mitmdump], request: pytest.FixtureRequest) -> Merging:
    return Merging(*steered, stream=request.param, session=f"merging-{request.node.originalname}-{request.param}")


def test_a_refused_tag_does_not_stay_in_force(merging: Merging) -> None:
    assert merging.say("hello")[0] == 200
    assert merging.say("<**!nowhere**> hi")[0] == 400
    status, said = merging.say("<**!glm.glm-4.7**>")
    assert status == 200
    assert said.startswith(f"{MARK}From now on everything goes to glm.glm-4.7.")
    assert len(merging.provider.requests) == 1
    assert merging.say("back to work")[0] == 200
    assert merging.host == "glm.example"
    assert merging.sent == [[REMINDER, "hello"], [REMINDER, "hi\n", REMINDER, "back to work"]]
    assert MARK not in merging.provider.requests[-1].body.decode()
    assert merging.hop()[0] == 200
    assert merging.host == "glm.example"


def test_a_refused_tag_is_refused_again_only_where_it_is_typed_again(merging: Merging) -> None:
    assert merging.say("<**!nowhere**> one")[0] == 400
    assert merging.ask()[0] == 400  # the tool repeats the call
    assert merging.say("<**!nowhere**> two")[0] == 400
    assert merging.say("three")[0] == 200
    assert merging.host == "api.anthropic.com"
    assert merging.sent == [[REMINDER, "one\n", "two\n", "three"]]


def test_2_a_broken_off_message_is_not_obeyed_a_second_time(merging: Merging) -> None:
    merging.provider.enqueue(Behaviour(status=400, error="prompt is too long"))
    assert merging.say("<**!glm**> <**openai.gpt-5.2**> first")[0] == 400
    assert merging.host == "openai.example"
    assert merging.say("<**!antigravity**> then this")[0] == 200
    assert merging.host == "antigravity.example"
    key = merging.provider.requests[-1].key
    assert merging.hop()[0] == 200
    assert merging.provider.requests[-1].key == key
    _, said = merging.say("<**status**>")
    assert said.startswith(f"{MARK}Allowed: antigravity.{ENDS}stopMessage: none.{ENDS}The next message goes to antigravity.")
