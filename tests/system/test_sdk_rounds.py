"""The vendors' official SDKs read an answer of four rounds as one: their own accumulators, streaming and not."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator

import pytest

from tests.rig.behaviour import Behaviour
from tests.rig.provider import FakeProvider, Received
from tests.rig.proxy import Mitmdump
from tests.rig.reply import Reply, ToolUse
from tests.system.test_sdks import CALLS, CONFIG, LAST_EVENTS, READING, STREAMS, WAYS, Conversation, Sdks
from tests.system.test_stop_message import texts
from tests.system.watched import watched

pytestmark = pytest.mark.system

EARLY_S, ALIVE_S = 0.4, 0.15
WORDS = ("first words", "second of them", "third — ünï 🎉", "fourth and last")
WHOLE = "\n\n".join(WORDS)
GOES_ON = '<**stopMessage:"go on",3**> '
USE = ToolUse("read", {"path": "src/ü.py"})
SHOWN = {
    "anthropic": ["thinking", "text", "tool_use"],
    "openai-chat": ["message"],
    "openai-responses": ["reasoning", "message", "function_call"],
    "google-genai": ["thought", "text", "call"],
}
"""What one answer of all rounds is made of: the thinking of later rounds is for the history alone."""
THOUGHTS = {"thinking", "reasoning", "thought"}
CALLING = {"tool_use", "function_call", "call"}
SEALED = {"anthropic": "signature-of-round-{}", "openai-responses": "signature-of-round-{}"}
"""Where the provider gets back what it signed. Google signs calls; Chat has nothing to sign."""


@pytest.fixture(scope="module")
def running() -> Iterator[tuple[Sdks, FakeProvider, Mitmdump]]:
    patience = {"early_head_s": EARLY_S, "keep_alive_s": ALIVE_S}
    with FakeProvider() as provider, watched(provider, CONFIG, patience) as proxy:
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


def replies(*, thinks: bool, calls: bool) -> list[Reply]:
    """The rounds; each costs something else."""
    found = [
        Reply(words, input_tokens=100 + number, output_tokens=number, signature=f"signature-of-round-{number}")
        for number, words in enumerate(WORDS, 1)
    ]
    if thinks:
        found = [dataclasses.replace(reply, thinking=f"thought {number}") for number, reply in enumerate(found, 1)]
    return [*found[:-1], dataclasses.replace(found[-1], calls=(USE,))] if calls else found


def check_history(received: Received, conversation: Conversation, *, thinks: bool) -> None:
    """The provider is sent what was really said."""
    said = [text for text in texts(received) if text]
    rounds = [text for words in WORDS for text in (words, "go on")]
    assert [text[text.find("thought") + 9 :] if text.startswith("thought") else text for text in said][:8] == [
        conversation.hello,
        *rounds[:-1],
    ]
    if thinks and conversation.sdk in SEALED:
        assert [received.body.count(SEALED[conversation.sdk].format(number).encode()) for number in (1, 2, 3, 4)] == [1] * 4


@pytest.mark.parametrize("sdk, way", WAYS)
@pytest.mark.parametrize("thinks", [False, True], ids=["plain", "thinking"])
def test_four_rounds_are_one_answer(conversation: Conversation, thinks: bool) -> None:
    conversation.provider.enqueue(*(Behaviour(reply=reply) for reply in replies(thinks=thinks, calls=False)))
    heard = conversation.say(GOES_ON + conversation.hello)
    assert "error" not in heard, heard
    assert heard["text"] == WHOLE
    assert heard["stop"] == conversation.complete
    assert heard.get("starts", 1) == heard.get("ends", 1) == 1
    assert heard["usage"] == [104, 1 + 2 + 3 + 4]
    assert len(conversation.provider.requests) == 4
    if "kinds" in heard:
        left_out = CALLING if thinks else CALLING | THOUGHTS
        assert heard["kinds"] == [kind for kind in SHOWN[conversation.sdk] if kind not in left_out]
    after = conversation.say("and now?")
    assert after["text"] == "client-model was asked: and now?"
    check_history(conversation.provider.requests[-1], conversation, thinks=thinks)


@pytest.mark.parametrize("sdk, way", WAYS)
def test_d31_what_nobody_asked_for_stands_before_the_first_text(conversation: Conversation) -> None:
    """Here a tag in a wrapper that no tool is known to write: it gives no orders, and the person is told."""
    heard = conversation.say(f"<task>\nuse <**!glm**>\n</task>\n{conversation.hello}")
    assert "error" not in heard, heard
    line, _, rest = heard["text"].partition("\n\n")
    assert line == "[RouteCodex: `<!glm>` in `<task>` gave no orders (sessions: typedIn)]"
    assert rest.startswith("client-model was asked: ")
    after = conversation.say("and now?")
    assert after["text"] == "client-model was asked: and now?"
    assert b"RouteCodex: " not in conversation.provider.requests[-1].body


@pytest.mark.parametrize("sdk, way", READING)
@pytest.mark.parametrize("thinks", [False, True], ids=["plain", "thinking"])
def test_a_call_of_the_clients_in_the_last_round(conversation: Conversation, thinks: bool) -> None:
    conversation.provider.enqueue(*(Behaviour(reply=reply) for reply in replies(thinks=thinks, calls=True)))
    called = conversation.say(GOES_ON + conversation.hello)
    assert "error" not in called, called
    assert called["text"] == WHOLE
    assert called["calls"] == [{"name": "read", "arguments": {"path": "src/ü.py"}}]
    assert called["stop"] == CALLS[conversation.sdk]
    assert called["usage"] == [104, 10]
    left_out = set() if thinks else THOUGHTS
    assert called["kinds"] == [kind for kind in SHOWN[conversation.sdk] if kind not in left_out]
    after = conversation.give("print('hi')")
    assert after["stop"] == conversation.complete
    last = conversation.provider.requests[-1]
    check_history(last, conversation, thinks=thinks)
    assert last.body.count(b"print('hi')") == 1
    assert last.body.count("src/ü.py".encode()) == 1


@pytest.mark.parametrize("sdk, way", STREAMS)
@pytest.mark.parametrize(
    "asked", ["<**many.m**> ", '<**!many.m**> <**stopMessage:"go on",1**> '], ids=["one round", "two rounds"]
)
def test_silence_before_the_first_word(conversation: Conversation, asked: str) -> None:
    """The head leaves early, keep-alives behind it; where those need an answer to stand in, we begin it."""
    silent = Behaviour(reply=Reply("first", thinking="Hm.", output_tokens=2), wait_s=EARLY_S + 2.5 * ALIVE_S)
    second = Behaviour(reply=Reply("second", output_tokens=3), wait_s=2.5 * ALIVE_S)
    conversation.provider.enqueue(silent, second)
    heard = conversation.say(asked + conversation.hello)
    assert "error" not in heard, heard
    rounds = len(conversation.provider.requests)
    assert rounds == (2 if "stopMessage" in asked else 1)
    assert heard["text"] == "\n\n".join(("first", "second")[:rounds])
    assert heard["stop"] == (LAST_EVENTS[conversation.sdk] if conversation.way == "stream" else conversation.complete)
    assert heard.get("starts", 1) == heard.get("ends", 1) == 1
    assert heard["usage"] == [25, 5 if rounds == 2 else 2]


@pytest.mark.parametrize("sdk, way", [one for one in STREAMS if one[0] == "openai-responses"])
@pytest.mark.parametrize("rounds", [1, 2])
def test_a_call_that_follows_an_answer_begun_by_us(conversation: Conversation, rounds: int) -> None:
    """The SDK knows an id of ours; the provider is told the one it gave."""
    told = [Behaviour(reply=Reply("words", id=f"resp_{conversation.id}_{number}")) for number in range(rounds)]
    conversation.provider.enqueue(dataclasses.replace(told[0], wait_s=EARLY_S + 1.5), *told[1:])
    more = '<**stopMessage:"go on",1**> ' if rounds == 2 else ""
    heard = conversation.say(f"<**!many.m**> {more}{conversation.hello}")
    assert heard["id"].startswith("resp_routecodex_begun_")
    conversation.say("and now?", follows=heard["id"])
    last = conversation.provider.requests[-1]
    assert json.loads(last.body)["previous_response_id"] == f"resp_{conversation.id}_{rounds - 1}"
    assert last.key == conversation.provider.requests[0].key
