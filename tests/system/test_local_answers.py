"""A message that is nothing but tags is answered by the proxy itself, and no provider ever sees it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import pytest

from routecodex.routing.values import Dialect
from tests.rig.client import call
from tests.rig.provider import FakeProvider
from tests.rig.proxy import SCRIPT, Mitmdump
from tests.system.talk import CONFIG, ENDS, FORMS, IDS, MARK, PLACEHOLDER, Talk, request
from tests.system.tool import CREDENTIALS, HOSTS, text_of

pytestmark = pytest.mark.system

WITH_CLOCK = f"{CONFIG}  clock: {{enabled: true, ntp: {{enabled: false}}}}\n"
GLM = {"model": "glm-4.7", "provider": "glm"}
TWO_LINES = "Go on with the next step.\nThen run the tests."


@dataclass(frozen=True)
class Told:
    """A message for the proxy: its whole answer, and what is in force afterwards."""

    types: str
    says: tuple[str, ...]
    state: dict[str, Any] | None = None


NORMAL = ("Routing: normal.", "stopMessage: none.")

TOLD: dict[str, tuple[Told, ...]] = {
    "status": (Told("<**status**>", NORMAL),),
    "allow, and once more": (
        Told("<**!glm**>", ("Only these providers are used: glm.", "Allowed: glm.", NORMAL[1]), {"allowedProviders": ["glm"]}),
        Told("<**status**>", ("Allowed: glm.", NORMAL[1]), {"allowedProviders": ["glm"]}),
        Told("<**clear**>", ("Everything is cleared: normal routing, no stopMessage.", *NORMAL)),
    ),
    "a force that holds nothing else": (
        Told(
            "<**glm.glm-4.7**>",
            (
                "`<**glm.glm-4.7**>` holds for the message that it stands in, so nothing was sent: write it beside your text. "
                "`<**!glm.glm-4.7**>` keeps the whole conversation there.",
                *NORMAL,
            ),
            {},
        ),
    ),
    "sticky, and a list of disabled keys": (
        Told(
            "<**!glm.glm-4.7**>\n<**#openai.1,glm.2**>",
            (
                "From now on everything goes to glm.glm-4.7.",
                "openai key primary is disabled.",
                "glm key backup is disabled.",
                "Sticky: glm.glm-4.7 (all keys).",
                "Disabled: openai key primary, glm key backup.",
                NORMAL[1],
            ),
            {
                "stickyTarget": GLM,
                "disabledKeys": [{"provider": "openai", "keys": ["primary"]}, {"provider": "glm", "keys": ["backup"]}],
            },
        ),
        Told(
            "<**#openai**>",
            (
                "openai is disabled.",
                "Enabled again, because the new list replaces the old one: openai key primary, glm key backup.",
                "Sticky: glm.glm-4.7 (all keys).",
                "Disabled: openai.",
                NORMAL[1],
            ),
            {"stickyTarget": GLM, "disabledProviders": ["openai"]},
        ),
        Told(
            "<**@openai**>",
            ("openai is enabled.", "Sticky: glm.glm-4.7 (all keys).", NORMAL[1]),
            {"stickyTarget": GLM},
        ),
    ),
    "Q01 Q02 Q15 Q18 stopMessage: set, set again, cleared": (
        Told(
            '<**stopMessage:"继续"**>',
            ('stopMessage is set: "继续", at most 10 times.', NORMAL[0], 'stopMessage: "继续", used 0 of 10 times.'),
            {"stopMessageText": "继续", "stopMessageMaxRepeats": 10, "stopMessageUsed": 0},
        ),
        Told(
            '<**stopMessage:"继续",3**>',
            ('stopMessage is set: "继续", at most 3 times.', NORMAL[0], 'stopMessage: "继续", used 0 of 3 times.'),
            {"stopMessageText": "继续", "stopMessageMaxRepeats": 3, "stopMessageUsed": 0},
        ),
        Told("<**status**>", (NORMAL[0], 'stopMessage: "继续", used 0 of 3 times.')),
        Told("<**stopMessage:clear**>", ("stopMessage is cleared.", *NORMAL)),
    ),
    "Q11 Q20 stopMessage from a file": (
        Told(
            "<**stopMessage:<file://stopMessage/message1.md>**>",
            (
                f'stopMessage is set: "{" ".join(TWO_LINES.split())}", at most 10 times.',
                NORMAL[0],
                f'stopMessage: "{" ".join(TWO_LINES.split())}", used 0 of 10 times.',
            ),
            {"stopMessageText": TWO_LINES, "stopMessageMaxRepeats": 10, "stopMessageUsed": 0},
        ),
        Told(
            "<**stopMessage:<file://stopMessage/message1.md>,2**>",
            (
                f'stopMessage is set: "{" ".join(TWO_LINES.split())}", at most 2 times.',
                NORMAL[0],
                f'stopMessage: "{" ".join(TWO_LINES.split())}", used 0 of 2 times.',
            ),
            {"stopMessageText": TWO_LINES, "stopMessageMaxRepeats": 2, "stopMessageUsed": 0},
        ),
        Told("<**clear**>", ("Everything is cleared: normal routing, no stopMessage.", *NORMAL)),
    ),
    "echo and origin alone change nothing": tuple(
        Told(
            f"<**{word}**>",
            (
                f"`<**{word}**>` holds for the message that it stands in, so nothing was sent: write it beside your text. "
                f"`<**!{word}**>` keeps the whole conversation there.",
                *NORMAL,
            ),
            {},
        )
        for word in ("echo", "origin")
    ),
    "C10 C11 clock:clear": (
        Told("<**clock:clear**>", ("The clock's tasks are cleared: 0.", *NORMAL)),
        Told("<** Clock : CLEAR **>", ("The clock's tasks are cleared: 0.", *NORMAL)),
    ),
    "what is no tag": (
        Told("<**foo:bar**>", ("No such tag: foo:bar.", *NORMAL)),
        Told("<**status**> <**123**>", ("No such tag: 123.", *NORMAL)),
    ),
    "quotes that a tool wraps around the prompt": (Told('"<**status**>"', NORMAL), Told("'<**status**>'\n", NORMAL)),
}


def _proxy(config: str) -> Iterator[tuple[FakeProvider, Mitmdump]]:
    with FakeProvider() as provider, Mitmdump(script=SCRIPT, config=config, upstream=provider) as proxy:
        texts = proxy.folder / "user" / "stopMessage"
        texts.mkdir(parents=True)
        (texts / "message1.md").write_text(TWO_LINES + "\n")
        (proxy.folder / "secret.md").write_text("not for you")
        (texts / "link.md").symlink_to(proxy.folder / "secret.md")
        yield provider, proxy
        assert proxy.alive
        assert "Traceback" not in proxy.log


@pytest.fixture(scope="module")
def with_clock() -> Iterator[tuple[FakeProvider, Mitmdump]]:
    yield from _proxy(WITH_CLOCK)


@pytest.fixture(scope="module")
def without_clock() -> Iterator[tuple[FakeProvider, Mitmdump]]:
    yield from _proxy(CONFIG)


@pytest.fixture(params=FORMS, ids=IDS)
def talk(without_clock: tuple[FakeProvider, Mitmdump], request: pytest.FixtureRequest) -> Talk:
    without_clock[0].forget()
    return Talk(*without_clock, *request.param)


@pytest.mark.parametrize("dialect, stream", FORMS, ids=IDS)
@pytest.mark.parametrize("told", TOLD.values(), ids=TOLD.keys())
def test_told(with_clock: tuple[FakeProvider, Mitmdump], told: tuple[Told, ...], dialect: Dialect, stream: bool) -> None:
    talk = Talk(*with_clock, dialect, stream)
    for one in told:
        heard = talk.tell(one.types)
        assert heard.answer.status == 200
        expected = MARK + ENDS.join((*one.says, "Clock: no tasks."))
        if "tatus" in one.types:
            expected += f"{ENDS}The next message goes to "
        assert heard.text.startswith(expected) if "tatus" in one.types else heard.text == expected
        assert one.state is None or (talk.state or {}) == one.state
        assert [name for name, _ in groupby(_shape(dialect, stream, heard.answer))] == SHAPES[dialect, stream]
    assert talk.provider.requests == []


UNREADABLE = {
    "/etc/passwd": "must be named by a path inside the RouteCodex folder",
    "../outside.md": "must be named by a path inside the RouteCodex folder",
    "stopMessage": "is not a regular file",
    "stopMessage/none.md": "is not there or cannot be read",
    "stopMessage/link.md": "leads out of the RouteCodex folder",
}


@pytest.mark.parametrize("file", UNREADABLE)
def test_q12_files_that_may_not_be_read(talk: Talk, file: str) -> None:
    heard = talk.tell(f"<**!glm**> <**stopMessage:<file://{file}>**>")
    assert heard.answer.status == 400
    assert f"The stopMessage file {file} {UNREADABLE[file]}. Nothing was sent, and nothing changed." in heard.text
    assert (talk.state or {}) == {}


ASKED = {
    "<**help**>": "<**stopMessage:clear**>",
    "<**models**>": "<**!glm.glm-4.7**>",
    "<**models:openai**>": "<**!openai.gpt-5.2**>",
    "<**why**>": "ago: origin.",
}


@pytest.mark.parametrize("tag", ASKED)
def test_words_that_ask_are_answered_here(talk: Talk, tag: str) -> None:
    """Of any exchange of that kind a model sees nothing."""
    assert talk.say("hello").target == talk.home
    heard = talk.tell(tag)
    assert heard.answer.status == 200
    assert heard.text.startswith(MARK)
    assert ASKED[tag] in heard.text
    assert talk.say("and on").target == talk.home
    assert talk.state is None


SHAPES = {
    (Dialect.MESSAGES, True): [
        *("message_start", "content_block_start", "content_block_delta", "content_block_stop"),
        *("message_delta end_turn", "message_stop"),
    ],
    (Dialect.MESSAGES, False): ["message", "end_turn"],
    (Dialect.CHAT, True): ["assistant", "text", "stop", "[DONE]"],
    (Dialect.CHAT, False): ["chat.completion", "stop"],
    (Dialect.RESPONSES, True): [
        *("response.created", "response.in_progress", "response.output_item.added", "response.content_part.added"),
        *("response.output_text.delta", "response.output_text.done", "response.content_part.done"),
        *("response.output_item.done", "response.completed"),
    ],
    (Dialect.RESPONSES, False): ["response", "completed"],
    (Dialect.GEMINI, True): ["STOP"],
    (Dialect.GEMINI, False): ["STOP"],
}
"""One start, one end, nothing twice (but for the pieces of the text)."""


def _shape(dialect: Dialect, stream: bool, answer: Any) -> list[str]:
    assert answer.header("content-type").startswith("text/event-stream" if stream else "application/json")
    events = [json.loads(data) if data.startswith("{") else data for _, data in answer.events] if stream else [answer.json]
    match dialect, stream:
        case Dialect.MESSAGES, True:
            return [
                " ".join([event["type"], *([event["delta"]["stop_reason"]] if event["type"] == "message_delta" else [])])
                for event in events
            ]
        case Dialect.MESSAGES, False:
            return [events[0]["type"], events[0]["stop_reason"]]
        case Dialect.CHAT, True:
            told = [event for event in events if isinstance(event, str) or event["choices"]]  # the others tell the usage
            return [event if isinstance(event, str) else _chunk(event["choices"][0]) for event in told]
        case Dialect.CHAT, False:
            return [events[0]["object"], events[0]["choices"][0]["finish_reason"]]
        case Dialect.RESPONSES, True:
            return [event["type"] for event in events]
        case Dialect.RESPONSES, False:
            return [events[0]["object"], events[0]["status"]]
        case _:
            return [event["candidates"][0]["finishReason"] for event in events if "finishReason" in event["candidates"][0]]


def _chunk(choice: dict[str, Any]) -> str:
    return choice["finish_reason"] or ("text" if choice["delta"].get("content") else "assistant")


# --- what later calls hold of it ---------------------------------------------------------------------------------------


def test_x03_the_exchange_is_gone_from_later_calls(talk: Talk) -> None:
    talk.tell("<**status**>")
    assert talk.say("first").target == talk.home
    talk.tell("<**!glm.glm-4.7**>")
    talk.tell("<**status**>")
    assert talk.say("second").target.startswith("glm.example/")
    assert talk.hop().target.startswith("glm.example/")
    talk.tell("<**clear**>")
    assert talk.say("third").target == talk.home
    assert talk.again().target == talk.home
    talk.tell("<**#glm**>")
    assert talk.say("<**@glm**> fourth", "fourth").target == talk.home


def test_a_refused_message_stays_as_a_placeholder(talk: Talk) -> None:
    """A tool that keeps a refused message in its history sends it again: it must not be left empty."""
    refused = talk.tell("<**!nowhere**>")
    assert refused.answer.status == 400
    assert refused.answer.header("x-should-retry") == "false"
    assert "nowhere not found" in refused.text
    assert talk.say("hello").target == talk.home
    talk.tell("<**status**>")
    assert talk.say("and now").target == talk.home


def test_clock_clear_where_there_is_no_clock(talk: Talk) -> None:
    heard = talk.tell("<**clock:clear**>")
    assert heard.answer.status == 400
    assert heard.text == "clock is switched off in the configuration (virtualrouter.clock.enabled)"
    assert (talk.state or {}) == {}


def test_a_tag_in_code_alone_is_sent(talk: Talk) -> None:
    assert talk.say("`<**status**>`", "``").target == talk.home


# --- calls that are never answered here --------------------------------------------------------------------------------

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}
STRUCTURED = {
    Dialect.MESSAGES: {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}},
    Dialect.CHAT: {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA}}},
    Dialect.RESPONSES: {"text": {"format": {"type": "json_schema", "name": "a", "schema": SCHEMA}}},
    Dialect.GEMINI: {"generationConfig": {"responseMimeType": "application/json", "responseSchema": SCHEMA}},
}


def test_1a_a_call_for_structured_output_is_sent_with_a_placeholder(talk: Talk) -> None:
    talk.more = STRUCTURED[talk.dialect]
    assert talk.say("<**!glm**>", PLACEHOLDER).target == talk.home
    assert talk.state is None


def test_1a_a_side_call_is_sent_with_a_placeholder(talk: Talk) -> None:
    side = (("x-claude-code-request-class", "auxiliary"),)
    assert talk.say("<**!glm.glm-4.7**>", PLACEHOLDER, headers=side).target == talk.home
    assert talk.state is None


COUNTS = {
    Dialect.MESSAGES: "/v1/messages/count_tokens",
    Dialect.GEMINI: "/v1beta/models/client-model:countTokens",
}


@pytest.mark.parametrize("dialect", COUNTS)
def test_a_count_is_no_message(without_clock: tuple[FakeProvider, Mitmdump], dialect: Dialect) -> None:
    provider, proxy = without_clock
    provider.forget()
    _, body = request(dialect, "client-model", [("user", "<**!glm**>")], False)
    session = ("x-session-id", f"count-{dialect}")
    answer = call(HOSTS[dialect], COUNTS[dialect], body, proxy=proxy, headers=(CREDENTIALS[dialect], session))
    assert answer.status == 200
    (received,) = provider.requests
    _, expected = request(dialect, "client-model", [("user", PLACEHOLDER)], False)
    assert received.json == expected
    assert not (proxy.sessions / f"session-count-{dialect}.json").exists()


# --- forms of Google's ----------------------------------------------------------------------------------------------------


def test_14b_gemini_without_sse_is_a_json_array(without_clock: tuple[FakeProvider, Mitmdump]) -> None:
    _, proxy = without_clock
    body = {"contents": [{"role": "user", "parts": [{"text": "<**status**>"}]}]}
    path = "/v1beta/models/gemini-2.5-flash:streamGenerateContent"
    answer = call(HOSTS[Dialect.GEMINI], path, body, proxy=proxy)
    assert answer.header("content-type").startswith("application/json")
    texts = [part["text"] for chunk in answer.json for part in chunk["candidates"][0]["content"]["parts"]]
    assert "".join(texts).startswith(MARK + ENDS.join((*NORMAL, RECOGNISED)))


RECOGNISED = "This client names no session; this conversation is recognised by its beginning."


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "json"])
def test_25a_the_envelope_of_code_assist(without_clock: tuple[FakeProvider, Mitmdump], stream: bool) -> None:
    provider, proxy = without_clock
    provider.forget()
    verb = "streamGenerateContent?alt=sse" if stream else "generateContent"
    body = {
        "model": "gemini-3-pro",
        "project": "p",
        "user_prompt_id": "u1",
        "request": {"contents": [{"role": "user", "parts": [{"text": "<**!glm**>"}]}], "session_id": f"envelope-{stream}"},
    }
    answer = call("https://cloudcode-pa.googleapis.com", f"/v1internal:{verb}", body, proxy=proxy)
    assert provider.requests == []
    chunks = [json.loads(data) for _, data in answer.events] if stream else [answer.json]
    said = "".join(part["text"] for chunk in chunks for part in chunk["response"]["candidates"][0]["content"]["parts"])
    assert said == MARK + ENDS.join(("Only these providers are used: glm.", "Allowed: glm.", "stopMessage: none."))


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "json"])
def test_p26_responses_input_as_one_string(without_clock: tuple[FakeProvider, Mitmdump], stream: bool) -> None:
    provider, proxy = without_clock
    provider.forget()
    headers = (CREDENTIALS[Dialect.RESPONSES], ("session-id", f"string-{stream}"))

    def ask(text: str) -> str:
        body = {"model": "m", "stream": stream, "input": text}
        answer = call(HOSTS[Dialect.RESPONSES], "/v1/responses", body, proxy=proxy, headers=headers)
        return text_of(Dialect.RESPONSES, answer.body, stream)

    assert ask("<**!glm.glm-4.7**>").startswith(f"{MARK}From now on everything goes to glm.glm-4.7.")
    assert provider.requests == []
    ask("<**openai.third.gpt-4**> hello")
    assert provider.requests[0].host == "openai.example"
    assert provider.requests[0].json == {"model": "gpt-4", "stream": stream, "input": "hello"}
