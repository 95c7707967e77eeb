"""The vendors' official SDKs on providers of the other dialects: they get answers of their own, and judge them themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest

from routecodex.routing.values import Dialect
from tests.rig.behaviour import Behaviour
from tests.rig.provider import FakeProvider
from tests.rig.proxy import SCRIPT, Mitmdump
from tests.rig.reply import Reply, Stop, ToolUse
from tests.system.test_sdks import CALLS, CUT_SHORT, RAISED, READING, STREAMS, WAYS, Conversation, Sdks
from tests.system.test_translation import CONFIG, PATHS, SHORT, force

pytestmark = pytest.mark.system

OWN = {
    "anthropic": Dialect.MESSAGES,
    "openai-chat": Dialect.CHAT,
    "openai-responses": Dialect.RESPONSES,
    "google-genai": Dialect.GEMINI,
}


def on_others(ways: list[tuple[str, str]], providers: Iterable[Dialect] = Dialect) -> pytest.MarkDecorator:
    """Each of these ways on a provider of each other dialect."""
    return pytest.mark.parametrize(
        "sdk, way, spoken", [(sdk, way, spoken) for sdk, way in ways for spoken in providers if spoken is not OWN[sdk]]
    )


SHOWN = {
    "anthropic": ["thinking", "text", "tool_use", "tool_use"],
    "openai-chat": ["message"],
    "openai-responses": ["reasoning", "message", "function_call", "function_call"],
    "google-genai": ["thought", "text", "call"],
}
SEALS = {"anthropic": "thinking", "openai-responses": "reasoning"}
"""Where a client keeps the seal that Google sets on a call: in a thought of its own before it."""
USES = (ToolUse("read", {"path": 'src/ü "a".py'}), ToolUse("read", {"path": "ß" * 40}))
WORDS = ("Let me ", "look — ünï ", "🎉 here.")


@pytest.fixture(scope="module")
def running() -> Iterator[tuple[Sdks, FakeProvider, Mitmdump]]:
    with FakeProvider() as provider, Mitmdump(script=SCRIPT, config=CONFIG, upstream=provider) as proxy:
        sdks = Sdks(proxy)
        try:
            yield sdks, provider, proxy
        finally:
            sdks.close()
        assert proxy.alive
        assert "Traceback" not in proxy.log


@pytest.fixture
def conversation(running: tuple[Sdks, FakeProvider, Mitmdump], sdk: str, way: str) -> Conversation:
    running[1].forget()
    return Conversation(*running, sdk, way)


def asked_on(conversation: Conversation, spoken: Dialect) -> str:
    return force(spoken) + conversation.hello


def shown(conversation: Conversation, spoken: Dialect) -> list[str]:
    kinds = list(SHOWN[conversation.sdk])
    if spoken is Dialect.GEMINI and conversation.sdk in SEALS:
        kinds.insert(2, SEALS[conversation.sdk])
    return kinds


def check_asked(conversation: Conversation, spoken: Dialect, requests: int) -> None:
    """The provider was asked in its own dialect, with its own key."""
    assert len(conversation.provider.requests) == requests
    for received in conversation.provider.requests:
        assert received.path.startswith(PATHS[spoken])
        assert received.key is not None
        assert received.key.startswith(f"{SHORT[spoken]}-key")


@on_others(READING)
def test_thinking_words_and_two_calls_with_their_results(conversation: Conversation, spoken: Dialect) -> None:
    reply = Reply(WORDS, thinking="Where is it?", calls=USES, input_tokens=321, cached_tokens=21, output_tokens=12)
    conversation.provider.enqueue(Behaviour(reply=reply), Behaviour(reply=Reply("It is here.")))
    called = conversation.say(asked_on(conversation, spoken))
    assert "error" not in called, called
    assert called["thinking"] == "Where is it?"
    assert called["text"] == "".join(WORDS)
    assert called["calls"] == [{"name": "read", "arguments": use.arguments} for use in USES]
    assert len(set(called["ids"])) == 2
    assert all(called["ids"])
    assert called["stop"] == CALLS[conversation.sdk]
    assert called.get("ends", 1) == 1
    assert called["kinds"] == shown(conversation, spoken)
    assert called.get("closed", True), "the last chunk holds a part, as Google's does"
    assert called["usage"] == [300 if conversation.sdk == "anthropic" else 321, 12]
    assert called["cached"] == 21
    after = conversation.give(["first result", "second result"])
    assert "error" not in after, after
    assert after["text"] == "It is here."
    assert after["calls"] == []
    assert after["stop"] == conversation.complete
    check_asked(conversation, spoken, 2)
    hop = conversation.provider.requests[1].body.decode()
    assert hop.index("first result") < hop.index("second result")
    assert [hop.count(text) for text in (*WORDS, "ß" * 40, "first result", "second result")] == [1] * 6
    assert conversation.say("and now?")["text"] == f"model-{SHORT[spoken]} was asked: and now?"


@on_others(WAYS)
def test_words_as_they_come(conversation: Conversation, spoken: Dialect) -> None:
    reply = Reply(WORDS, thinking="Hm.", input_tokens=25, output_tokens=5)
    conversation.provider.enqueue(Behaviour(reply=reply))
    heard = conversation.say(asked_on(conversation, spoken))
    assert "error" not in heard, heard
    assert heard["text"] == "".join(WORDS)
    assert heard["stop"] == conversation.complete
    assert heard.get("starts", 1) == heard.get("ends", 1) == 1
    assert heard["usage"] == [25, 5]
    check_asked(conversation, spoken, 1)


STOPS: dict[Stop, dict[str, str]] = {
    "length": {
        "anthropic": "max_tokens",
        "openai-chat": "length",
        "openai-responses": "incomplete",
        "google-genai": "MAX_TOKENS",
    },
    "content_filter": {
        "anthropic": "stop_sequence",
        "openai-chat": "content_filter",
        "openai-responses": "incomplete",
        "google-genai": "SAFETY",
    },
}
WHY = {"length": "max_output_tokens", "content_filter": "content_filter"}
CUT_HELPERS = {
    ("openai-chat", "length"): "LengthFinishReasonError",
    ("openai-chat", "content_filter"): "ContentFilterFinishReasonError",
    ("openai-responses", "length"): "RuntimeError",
    ("openai-responses", "content_filter"): "RuntimeError",
}
"""What OpenAI's own helpers raise where an answer was cut short: to them that is no answer."""


@on_others(READING)
@pytest.mark.parametrize("stop", list(STOPS))
def test_why_it_stopped(conversation: Conversation, spoken: Dialect, stop: Stop) -> None:
    conversation.provider.enqueue(Behaviour(reply=Reply("some words", stop=stop)))
    heard = conversation.say(asked_on(conversation, spoken))
    raised = CUT_HELPERS.get((conversation.sdk, stop)) if conversation.way == "helper" else None
    if raised:
        assert heard["error"]["type"] == raised
        return
    assert "error" not in heard, heard
    assert heard["text"] == "some words"
    assert heard["stop"] == STOPS[stop][conversation.sdk]
    if conversation.sdk == "openai-responses":
        assert heard["why"] == WHY[stop]


REFUSALS = {
    400: {"google-genai": "ClientError", "": "BadRequestError"},
    404: {"google-genai": "ClientError", "": "NotFoundError"},
    422: {"google-genai": "ClientError", "": "UnprocessableEntityError"},
}


@on_others(WAYS)
@pytest.mark.parametrize("status", list(REFUSALS))
def test_an_error_has_the_clients_shape(conversation: Conversation, spoken: Dialect, status: int) -> None:
    conversation.provider.always(Behaviour(status=status, error="that is not a thing"))
    heard = conversation.say(asked_on(conversation, spoken))
    assert heard["error"]["type"] == REFUSALS[status].get(conversation.sdk, REFUSALS[status][""])
    assert heard["error"]["status"] == status
    assert "that is not a thing" in heard["error"]["message"]


def cut_behind(words: bytes, reply: Reply) -> Behaviour:
    """The stream ends in order, right behind the event with these words, without the provider's last word."""

    def edit(events: list[bytes]) -> list[bytes]:
        return events[: next(place for place, event in enumerate(events) if words in event) + 1]

    return Behaviour(reply=reply, edit=edit)


def check_broken(conversation: Conversation, heard: dict[str, object], words: str) -> None:
    assert "error" in heard, heard
    error = heard["error"]
    assert isinstance(error, dict)
    assert error["type"] == RAISED[conversation.sdk]
    assert words in error["message"]


@on_others(STREAMS)
@pytest.mark.parametrize("ending", ["clean", "close"])
def test_a_stream_that_breaks_off_raises(conversation: Conversation, spoken: Dialect, ending: str) -> None:
    reply = Reply(("one ", "two ", "three "))
    broken = cut_behind(b"two ", reply)
    conversation.provider.enqueue(broken if ending == "clean" else Behaviour(reply=reply, edit=broken.edit, ending="close"))
    heard = conversation.say(asked_on(conversation, spoken))
    check_broken(conversation, heard, CUT_SHORT if ending == "clean" else "broke off")
    assert heard.get("text", "one two ") == "one two "


@on_others([one for one in STREAMS if one in READING], (Dialect.MESSAGES, Dialect.CHAT, Dialect.RESPONSES))
def test_a_call_that_breaks_off_raises(conversation: Conversation, spoken: Dialect) -> None:
    """Nobody may run half a call. (Google tells calls whole.)"""
    conversation.provider.enqueue(cut_behind(b"ab", Reply("one", calls=(ToolUse("read", {"path": "ab" * 40}),))))
    check_broken(conversation, conversation.say(asked_on(conversation, spoken)), CUT_SHORT)


@on_others(STREAMS)
def test_an_error_of_the_provider_in_the_middle_of_a_stream(conversation: Conversation, spoken: Dialect) -> None:
    after = {Dialect.RESPONSES: 5, Dialect.GEMINI: 1}.get(spoken, 4)
    conversation.provider.enqueue(Behaviour(error="overloaded in the middle", error_after=after))
    heard = conversation.say(asked_on(conversation, spoken))
    check_broken(conversation, heard, "overloaded in the middle")
    assert len(conversation.provider.requests) == 1
