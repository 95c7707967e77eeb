"""The vendors' official SDKs through the proxy, with nothing set but HTTPS_PROXY and SSL_CERT_FILE, as people do it."""

from __future__ import annotations

import json
import os
import subprocess
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.rig.behaviour import Behaviour
from tests.rig.provider import FakeProvider
from tests.rig.proxy import SCRIPT, Mitmdump
from tests.rig.reply import Reply, ToolUse
from tests.sdk.environment import REQUIREMENTS, sdk_python
from tests.system.talk import ENDS, MARK, provider_text

pytestmark = pytest.mark.system

RUN = REQUIREMENTS.with_name("run.py")
_MANY = tuple(f"k{number}" for number in range(60))
CONFIG = f"""
proxy:
  interceptHosts: [api.anthropic.com, api.openai.com, generativelanguage.googleapis.com]
virtualrouter:
  providers:{provider_text("many", _MANY, ("m",))}
  routing:
    default: [origin]
"""
WAYS = [(sdk, way) for sdk in ("anthropic", "openai-chat", "openai-responses") for way in ("json", "stream", "helper")]
WAYS += [("google-genai", "json"), ("google-genai", "stream")]
STREAMS = [(sdk, way) for sdk, way in WAYS if way != "json"]
READING = [(sdk, way) for sdk, way in WAYS if way != "stream" or sdk == "google-genai"]
"""Where the SDK puts tool calls together by itself."""

STOPS = {"anthropic": "end_turn", "openai-chat": "stop", "openai-responses": "completed", "google-genai": "STOP"}
CALLS = {"anthropic": "tool_use", "openai-chat": "tool_calls", "openai-responses": "completed", "google-genai": "STOP"}
LAST_EVENTS = {
    "anthropic": "message_stop",
    "openai-chat": "stop",
    "openai-responses": "response.completed",
    "google-genai": "STOP",
}
HOSTS = {
    "anthropic": "api.anthropic.com",
    "openai-chat": "api.openai.com",
    "openai-responses": "api.openai.com",
    "google-genai": "generativelanguage.googleapis.com",
}


class Sdks:
    """The process that has the SDKs."""

    def __init__(self, proxy: Mitmdump) -> None:
        kept = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT", "TMPDIR", "TEMP") if name in os.environ}
        own = {"HTTPS_PROXY": proxy.url, "SSL_CERT_FILE": str(proxy.bundle_path), "HOME": str(proxy.folder)}
        command = [str(sdk_python()), str(RUN)]
        self._log = (proxy.folder / "sdks.log").open("w+")
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, env=kept | own, text=True
        )

    def ask(self, command: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            self._log.seek(0)
            raise AssertionError(f"the SDKs' process has ended:\n{self._log.read()[-3000:]}")
        answer = json.loads(line)
        assert isinstance(answer, dict)
        return answer

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(5)
        self._log.close()


@dataclass
class Conversation:
    sdks: Sdks
    provider: FakeProvider
    proxy: Mitmdump
    sdk: str
    way: str
    id: str = field(default_factory=lambda: str(uuid.uuid4()))

    def say(self, text: str, follows: str | None = None) -> dict[str, Any]:
        more = {"follows": follows} if follows is not None else {}
        return self.sdks.ask({"talk": self.id, "sdk": self.sdk, "way": self.way, "say": text} | more)

    def give(self, result: str) -> dict[str, Any]:
        return self.sdks.ask({"talk": self.id, "sdk": self.sdk, "way": self.way, "give": result})

    @property
    def hello(self) -> str:
        """Nobody else begins like this: SDKs name no session, so the beginning tells conversations apart."""
        return f"hello {self.id}"

    @property
    def complete(self) -> str:
        """How a whole answer ends, in the words of this SDK."""
        return (LAST_EVENTS if self.way == "stream" else STOPS)[self.sdk]

    def refusals(self, words: str) -> int:
        """How often the proxy has refused with these words."""
        time.sleep(0.3)  # the log is written a few times a second
        return self.proxy.log.count(f"refused: {words}")


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


all_ways = pytest.mark.parametrize("sdk, way", WAYS)
streams = pytest.mark.parametrize("sdk, way", STREAMS)


@all_ways
def test_an_answer(conversation: Conversation) -> None:
    heard = conversation.say(conversation.hello)
    assert heard["text"] == f"client-model was asked: {conversation.hello}"
    assert heard["stop"] == conversation.complete
    assert heard.get("starts", 1) == heard.get("ends", 1) == 1
    assert heard.get("usage", [25, 5]) == [25, 5]
    (received,) = conversation.provider.requests
    assert (received.host, received.key) == (HOSTS[conversation.sdk], "sk-client-secret")


@pytest.mark.parametrize("sdk, way", READING)
@pytest.mark.parametrize("target", ["home", "many", "echo"])
def test_a_tool_call_and_its_hop(conversation: Conversation, target: str) -> None:
    if target == "echo":
        called = conversation.say(f'<**!echo**> {conversation.hello}\necho: call read {{"path": "src/ü.py"}}')
    else:
        use = ToolUse("read", {"path": "src/ü.py"})
        conversation.provider.enqueue(Behaviour(reply=Reply("Let me look.", thinking="Hm.", calls=(use,))))
        called = conversation.say(("<**!many.m**> " if target == "many" else "") + conversation.hello)
        assert called["text"].endswith("Let me look.")
    assert called["calls"] == [{"name": "read", "arguments": {"path": "src/ü.py"}}]
    assert called["stop"] == CALLS[conversation.sdk]
    after = conversation.give("print('hi')")
    assert after["stop"] == conversation.complete
    assert after["calls"] == []
    if target == "echo":
        assert after["text"] == "The tool answered: print('hi')"
        assert conversation.provider.requests == []
        # the whole exchange goes to the next provider as it happened
        conversation.say("<**clear**> and now?")
    first, last = conversation.provider.requests[0], conversation.provider.requests[-1]
    assert target == "echo" or first.key == last.key
    for words in (b"src/", b"print('hi')", conversation.id.encode()):
        assert words in last.body
    assert b"<**" not in last.body


@all_ways
def test_a_local_answer(conversation: Conversation) -> None:
    heard = conversation.say("<**status**>")
    assert heard["text"].startswith(f"{MARK}Routing: normal.{ENDS}stopMessage: none.")
    assert heard["stop"] == conversation.complete
    assert heard.get("starts", 1) == heard.get("ends", 1) == 1
    assert conversation.provider.requests == []
    assert conversation.say(conversation.hello)["text"] == f"client-model was asked: {conversation.hello}"
    assert conversation.say("<**!many.m**>")["text"].startswith(f"{MARK}From now on everything goes to many.m.")
    assert conversation.say("go on")["text"] == "m was asked: go on"
    first, second = conversation.provider.requests
    assert "RouteCodex" not in first.body.decode() + second.body.decode()
    assert second.host == "many.example"


REFUSED = {"google-genai": "ClientError"}


@all_ways
def test_a_refusal_is_shown_and_not_repeated(conversation: Conversation) -> None:
    name = f"nowhere-{conversation.id}"
    heard = conversation.say(f"<**!{name}**> hello")
    assert heard["error"]["type"] == REFUSED.get(conversation.sdk, "BadRequestError")
    assert heard["error"]["status"] == 400
    assert f"Requested provider {name} not found in provider registry" in heard["error"]["message"]
    assert conversation.refusals(f"Requested provider {name} ") == 1
    assert conversation.provider.requests == []


@all_ways
@pytest.mark.parametrize("failure", ["500", "429", "401", "reset", "error as the first event"])
def test_a_failover_cannot_be_seen(conversation: Conversation, failure: str) -> None:
    failures = {
        "500": Behaviour(status=500, error="broken"),
        "429": Behaviour(status=429, error="slow down", headers=(("retry-after", "60"),)),
        "401": Behaviour(status=401, error="bad key"),
        "reset": Behaviour(before="reset"),
        "error as the first event": Behaviour(error="overloaded", error_after=0),
    }
    if failure == "error as the first event" and conversation.way == "json":
        failures[failure] = Behaviour(error="overloaded")
    conversation.provider.enqueue(failures[failure])
    heard = conversation.say(f"<**many.m**> {conversation.hello}")
    assert heard["text"] == f"m was asked: {conversation.hello}"
    assert heard["stop"] == conversation.complete
    first, second = conversation.provider.requests
    assert first.key != second.key


CUT_SHORT = "The provider's stream ended without its last event."
RAISED = {"anthropic": "APIStatusError", "openai-chat": "APIError", "openai-responses": "APIError", "google-genai": "ServerError"}


@streams
def test_a_stream_that_is_cut_off_raises(conversation: Conversation) -> None:
    conversation.provider.enqueue(Behaviour(cut_after=6, ending="clean"))
    heard = conversation.say(conversation.hello)
    if conversation.sdk == "google-genai":  # six events are its whole answer: it is cut after two instead
        conversation.provider.enqueue(Behaviour(cut_after=2, ending="clean"))
        heard = conversation.say("once more")
    assert heard["error"]["type"] == RAISED[conversation.sdk]
    assert CUT_SHORT in heard["error"]["message"]
    assert heard.get("text", "client-model").startswith("client-model")


@streams
def test_an_error_of_the_provider_in_the_middle_of_a_stream(conversation: Conversation) -> None:
    conversation.provider.enqueue(Behaviour(error="overloaded in the middle", error_after=4))
    heard = conversation.say(conversation.hello)
    if conversation.sdk == "openai-responses":
        # OpenAI's own SDK tells a failed response by its last event, and only its helper raises
        assert heard.get("stop") == "response.failed" or heard["error"]["type"] == "RuntimeError"
    else:
        assert heard["error"]["type"] == RAISED[conversation.sdk]
        assert "overloaded in the middle" in heard["error"]["message"]
    assert len(conversation.provider.requests) == 1


ECHOED = {"google-genai": "ClientError"}


@all_ways
def test_echo(conversation: Conversation) -> None:
    heard = conversation.say(f"<**echo**> {conversation.hello}\nsecond line — ünï 🎉")
    assert heard["text"] == f"{conversation.hello}\nsecond line — ünï 🎉"
    assert heard["stop"] == conversation.complete
    failed = conversation.say("<**echo**>\necho: fail 429 no more today")
    assert failed["error"]["type"] == ECHOED.get(conversation.sdk, "RateLimitError")
    assert "no more today" in failed["error"]["message"]
    assert conversation.provider.requests == []
