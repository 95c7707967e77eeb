"""Every client dialect on every provider dialect, through the real proxy: words, thinking, parallel calls and their results."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from routecodex.routing.dialects.translation.opaque import MARK
from routecodex.routing.values import Dialect
from tests.rig.behaviour import Behaviour
from tests.rig.door import until
from tests.rig.provider import FakeProvider, Received
from tests.rig.proxy import SCRIPT, Mitmdump
from tests.rig.wire import Reply, ToolUse
from tests.system.speaker import Speaker
from tests.system.tool import CREDENTIALS

pytestmark = pytest.mark.system

SHORT = {Dialect.MESSAGES: "m", Dialect.CHAT: "c", Dialect.RESPONSES: "r", Dialect.GEMINI: "g"}
_PROVIDER = """
    {name}:
      protocol: {dialect}
      baseURL: https://{name}.example{path}
      auth: {{type: apikey, keys: [{keys}]}}
      models: {{model-{name}: {{}}}}"""
CONFIG = (
    "proxy: {interceptHosts: [api.anthropic.com, api.openai.com, generativelanguage.googleapis.com]}\n"
    "virtualrouter:\n  providers:"
    + "".join(
        _PROVIDER.format(
            name=name,
            dialect=dialect,
            path="/v1" if name in "cr" else "",
            keys=", ".join(f"{{alias: k{number}, value: {name}-key-{number:03}}}" for number in range(60)),
        )
        for dialect, name in SHORT.items()
    )
    + "\n  routing: {default: [origin]}\n"
)
PAIRS = [(client, spoken, stream) for client in Dialect for spoken in Dialect for stream in (True, False)]
IDS = [f"{client}-on-{spoken}-{'stream' if stream else 'json'}" for client, spoken, stream in PAIRS]
PATHS = {
    Dialect.MESSAGES: "/v1/messages",
    Dialect.CHAT: "/v1/chat/completions",
    Dialect.RESPONSES: "/v1/responses",
    Dialect.GEMINI: "/v1beta/models/model-g:",
}
each_pair = pytest.mark.parametrize("client, spoken, stream", PAIRS, ids=IDS)
KEEPERS = (Dialect.MESSAGES, Dialect.RESPONSES)
"""In these, thinking is a block of its own that clients send back."""
WORDS = ("Let me ", "look — ünï ", "🎉 here.")
USES = (ToolUse("Bash", {"command": 'ls "a b"'}), ToolUse("Bash", {"command": "pwd"}))


@pytest.fixture(scope="module")
def house(provider: FakeProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mitmdump]:
    folder = tmp_path_factory.mktemp("translation")
    with Mitmdump(script=SCRIPT, config=CONFIG, upstream=provider, folder=folder) as started:
        yield started
        assert started.alive
        assert "RouteCodex failed" not in started.log
        assert not started.crash


@pytest.fixture
def speaker(provider: FakeProvider, house: Mitmdump, client: Dialect, stream: bool) -> Speaker:
    provider.forget()
    return Speaker(provider, house, client, stream)


def force(spoken: Dialect) -> str:
    return f"<**!{SHORT[spoken]}.model-{SHORT[spoken]}**> "


def texts_in(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def check_request(received: Received, spoken: Dialect, client: Dialect, stream: bool) -> None:
    assert received.path.startswith(PATHS[spoken])
    assert received.key is not None
    assert received.key.startswith(f"{SHORT[spoken]}-key")
    assert CREDENTIALS[client][1].split()[-1].encode() not in received.body
    if spoken is Dialect.GEMINI:
        assert received.path.endswith("streamGenerateContent" if stream else "generateContent")
    else:
        assert received.json["model"] == f"model-{SHORT[spoken]}"
        assert received.json.get("stream", False) is stream
    assert b"<**" not in received.body


@each_pair
def test_a_conversation_with_tools(speaker: Speaker, client: Dialect, spoken: Dialect, stream: bool) -> None:
    first = Reply(WORDS, thinking="Where is it?", signature="signed-by-the-provider-itself", calls=USES, input_tokens=321)
    speaker.provider.enqueue(Behaviour(reply=first), Behaviour(reply=Reply("It is here.")), Behaviour(reply=Reply("Bye.")))
    told = speaker.told(speaker.ask(f"{force(spoken)}where is it?"))
    check_request(speaker.provider.requests[0], spoken, client, stream)
    assert told.text == "".join(WORDS)
    assert told.calls == [(use.name, use.arguments) for use in USES]
    assert len(set(told.ids)) == 2 or (client, spoken) == (Dialect.GEMINI, Dialect.GEMINI)
    results = [(id, "Bash", f"result {number}") for number, id in enumerate(told.ids)]
    assert speaker.told(speaker.give(results)).text == "It is here."
    hop = speaker.provider.requests[1]
    check_request(hop, spoken, client, stream)
    assert [hop.body.count(f"result {number}".encode()) for number in range(2)] == [1, 1]
    assert "ünï" in hop.body.decode()
    if client in (*KEEPERS, Dialect.GEMINI) and spoken in KEEPERS:
        assert hop.body.count(b"signed-by-the-provider-itself") == 1, "its maker gets its seal back"
    assert speaker.told(speaker.ask("thanks")).text == "Bye."
    last = speaker.provider.requests[2]
    assert last.body.count(b"It is here.") == 1
    assert len({received.key for received in speaker.provider.requests[:2]}) == 1


@each_pair
def test_an_error_is_the_clients(speaker: Speaker, client: Dialect, spoken: Dialect, stream: bool) -> None:
    speaker.provider.always(Behaviour(status=400, error="that is not a thing"))
    answer = speaker.ask(f"{force(spoken)}hello")
    assert answer.status == 400
    assert "that is not a thing" in answer.text
    assert "error" in answer.json


@each_pair
def test_another_key_answers(speaker: Speaker, client: Dialect, spoken: Dialect, stream: bool) -> None:
    speaker.provider.enqueue(Behaviour(status=503, error="down"), Behaviour(reply=Reply("here")))
    assert speaker.told(speaker.ask(f"{force(spoken)}hello")).text == "here"
    assert len(speaker.provider.requests) == 2


@each_pair
def test_an_answer_that_breaks_off_is_no_success(speaker: Speaker, client: Dialect, spoken: Dialect, stream: bool) -> None:
    """It is retried before its first word, and ends in an error behind it."""
    cut = {"cut_after": {Dialect.RESPONSES: 6, Dialect.GEMINI: 1, Dialect.CHAT: 3}.get(spoken, 4)} if stream else {"cut_at": 60}
    broken = Behaviour(reply=Reply(("one ", "two ", "three ")), **cut)
    speaker.provider.enqueue(broken, broken, broken, broken, broken, broken)
    answer = speaker.ask(f"{force(spoken)}hello", keep=False)
    if stream:
        assert answer.status == 200
        assert "one " in answer.text
        assert "three" not in answer.text
        assert "error" in answer.text
    else:
        assert answer.status == 502
        assert len(speaker.provider.requests) > 1


@each_pair
def test_stop_message_goes_on_in_one_answer(speaker: Speaker, client: Dialect, spoken: Dialect, stream: bool) -> None:
    speaker.provider.enqueue(*(Behaviour(reply=Reply(f"round {number}")) for number in range(3)))
    told = speaker.told(speaker.ask(f'{force(spoken)}<**stopMessage:"go on",2**> hello'))
    assert told.text == "round 0\n\nround 1\n\nround 2"
    assert len(speaker.provider.requests) == 3
    third = speaker.provider.requests[2]
    assert [third.body.count(words) for words in (b"go on", b"round 0", b"round 1")] == [2, 1, 1]


@pytest.mark.parametrize(
    "client, spoken, stream", [(client, Dialect.CHAT, stream) for client in Dialect for stream in (True, False)], ids=str
)
def test_where_a_text_has_it_from(speaker: Speaker, client: Dialect, spoken: Dialect, stream: bool, house: Mitmdump) -> None:
    """And Anthropic is never sent a source that is none of its own: it would look for it in vain."""
    source = {
        "type": "url_citation",
        "url_citation": {"url": "https://a.example", "title": "A", "start_index": 0, "end_index": 4},
    }
    head = {"id": "chatcmpl-1", "object": "chat.completion" + ".chunk" * stream, "created": 1, "model": "m"}
    message = {"role": "assistant", "content": "Here it is.", "annotations": [source]}
    choice = {"index": 0, "finish_reason": "stop", "delta" if stream else "message": message}
    document = json.dumps({**head, "choices": [choice], "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}})
    events = (f"data: {document}\n\n".encode(), b"data: [DONE]\n\n")
    before = house.log.count("left out of the answer: citations")
    speaker.provider.enqueue(Behaviour(events=events) if stream else Behaviour(body=document.encode()))
    told = speaker.told(speaker.ask(f"{force(spoken)}where is it?"))
    assert told.text == "Here it is."
    if client is Dialect.GEMINI:
        assert told.cited == []
        until(lambda: house.log.count("left out of the answer: citations") > before, "the log does not name them")
    else:
        assert told.cited == [("https://a.example", "" if client is Dialect.MESSAGES else "Here")]
    for target in (spoken, Dialect.MESSAGES):
        speaker.provider.enqueue(Behaviour(reply=Reply("Bye.")))
        assert speaker.told(speaker.ask(f"{force(target)}thanks")).text == "Bye."
        assert speaker.provider.requests[-1].body.count(b"Here it is.") == 1
        assert MARK.encode() not in speaker.provider.requests[-1].body
