"""A conversation as a test writes it: what a person types, what the provider received, what the tool was shown, what is kept.

1. The client side keeps every message as typed; `seen` is what a provider should see of it, and every request is compared
   with that byte for byte.
2. A tool hop is an entry of its own: the call and its result, as each dialect writes them.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, field
from typing import Any

from routecodex.routing.values import Dialect
from tests.rig.answer import to_bytes
from tests.rig.behaviour import make_plan
from tests.rig.client import Answer, call
from tests.rig.provider import FakeProvider, Received
from tests.rig.proxy import Mitmdump
from tests.system.tool import CREDENTIALS, HOSTS, text_of, write

Entry = tuple[str, str]
"""Role and text; role `hop`: a tool was called, and the text is its result."""
FORMS = [(dialect, stream) for dialect in Dialect for stream in (True, False)]
IDS = [f"{dialect}-{'stream' if stream else 'json'}" for dialect, stream in FORMS]
_LISTS = {Dialect.MESSAGES: "messages", Dialect.CHAT: "messages", Dialect.RESPONSES: "input", Dialect.GEMINI: "contents"}
_Called = tuple[str, dict[str, Any]]
_CALLED: _Called = ("Bash", {"command": "make"})
PLACEHOLDER = "continue"
MARK = "[RouteCodex] "
ENDS = "  \n"
"""So each line of our answers ends but the last: in Markdown the next one would go on in it else."""


_PROVIDER = """
    {name}:
      protocol: openai-chat
      baseURL: https://{name}.example/v1
      endpoints:
        anthropic-messages: https://{name}.example
        openai-responses: https://{name}.example/v1
        gemini-chat: https://{name}.example
      auth: {{type: apikey, keys: [{keys}]}}
      models: {{{models}}}"""


def provider_text(name: str, keys: tuple[str, ...], models: tuple[str, ...]) -> str:
    """A provider that speaks every dialect at `name.example`; its keys' values are `name-alias-value`."""
    listed = ", ".join(f"{{alias: {key}, value: {name}-{key}-value}}" for key in keys)
    return _PROVIDER.format(name=name, keys=listed, models=", ".join(f'"{model}": {{}}' for model in models))


_OFFERS = {
    "glm": (("primary", "backup"), ("glm-4.7", "glm-4.5-air")),
    "openai": (("primary", "backup", "third"), ("gpt-4", "gpt-5.2")),
    "anthropic": (("primary",), ("claude-sonnet-4-5",)),
    "antigravity": (("sonnetkey", "sonnetbackup", "geminikey"), ("claude-sonnet-4-5", "gemini-3-pro-high")),
    "one": (("only",), ("qwen/qwen3:free",)),
}
CONFIG = f"""
proxy:
  interceptHosts: [api.anthropic.com, api.openai.com, generativelanguage.googleapis.com, cloudcode-pa.googleapis.com]
virtualrouter:
  providers:{"".join(provider_text(name, *offer) for name, offer in _OFFERS.items())}
  routing:
    default: [origin]
"""


_INTERCEPTED = (
    "proxy:\n  interceptHosts: [api.anthropic.com, api.openai.com, generativelanguage.googleapis.com]\nvirtualrouter:\n"
)


def configured(offers: dict[str, tuple[int, str]], routing: str, more: str = "") -> str:
    """Providers by name: how many keys (k1, k2, …) and which model; in all dialects."""
    written = "".join(
        provider_text(name, tuple(f"k{number + 1}" for number in range(keys)), (model,)) for name, (keys, model) in offers.items()
    )
    return f"{_INTERCEPTED}  providers:{written}\n  routing:\n{routing}{more}"


@dataclass(slots=True)
class Heard:
    """What came of one call."""

    answer: Answer
    received: list[Received]
    text: str = ""
    """What the tool shows; of a refusal its message."""
    error: dict[str, Any] = field(default_factory=dict)

    @property
    def target(self) -> str:
        """`host/key/model` of the one request that was sent."""
        (only,) = self.received
        return target_of(only)

    @property
    def key(self) -> str:
        (only,) = self.received
        return str(only.key)

    @property
    def provider_bytes(self) -> bytes:
        """The body that the provider wrote."""
        (only,) = self.received
        assert only.asked is not None
        assert only.behaviour is not None
        return b"".join(make_plan(only.behaviour, only.asked, f"{only.asked.model} was asked: {only.said}").packets)


def target_of(received: Received) -> str:
    assert received.asked is not None
    return f"{(received.host or '').partition(':')[0]}/{received.key}/{received.asked.model}"


def host(received: Received) -> str:
    return (received.host or "").removesuffix(".example")


@dataclass(slots=True)
class Talk:
    provider: FakeProvider
    proxy: Mitmdump
    dialect: Dialect = Dialect.MESSAGES
    stream: bool = False
    model: str = "client-model"
    session: str | None = field(default_factory=lambda: str(uuid.uuid4()))
    headers: tuple[tuple[str, str], ...] = ()
    more: dict[str, Any] = field(default_factory=dict)
    """Further fields of the body."""
    asks_usage: bool = True
    """As nearly all tools that speak Chat do of a stream: else it is asked for them."""
    tool: _Called = _CALLED
    """What hops call."""
    typed: list[Entry] = field(default_factory=list)
    """The history as the tool keeps it."""
    seen: list[Entry] = field(default_factory=list)
    """The history as the provider should see it."""

    @property
    def further(self) -> dict[str, Any]:
        asks = self.asks_usage and self.stream and self.dialect is Dialect.CHAT
        return {"stream_options": {"include_usage": True}} | self.more if asks else self.more

    def say(self, text: str, sent: str | None = None, *, headers: tuple[tuple[str, str], ...] = ()) -> Heard:
        """A message; `sent` is what the provider sees of it (None: as it was typed)."""
        self.typed.append(("user", text))
        self.seen.append(("user", text if sent is None else sent))
        return self._heard(headers)

    def tell(self, text: str) -> Heard:
        """A message that is for the proxy: nothing of it is ever sent."""
        self.typed.append(("user", text))
        heard = self._exchange(())
        assert heard.received == [], "a message for the proxy was sent"
        if heard.answer.status == 200:
            self.typed.append(("assistant", heard.text))
        else:
            self.seen.append(("user", PLACEHOLDER))
        return heard

    def hop(self, result: str = "done") -> Heard:
        """The tool ran something and asks again."""
        self.typed.append(("hop", result))
        self.seen.append(("hop", result))
        return self._heard(())

    def again(self) -> Heard:
        """The same request once more, as clients repeat it after an error."""
        for history in (self.typed, self.seen):
            if history[-1][0] == "assistant":
                history.pop()
        return self._heard(())

    def _heard(self, headers: tuple[tuple[str, str], ...]) -> Heard:
        heard = self._exchange(headers)
        if heard.answer.status == 200:
            self.typed.append(("assistant", heard.text))
            self.seen.append(("assistant", heard.text))
        for received in heard.received:
            self.check_body(received)
        return heard

    def check_body(self, received: Received) -> None:
        """The provider got the history it should see, to the byte."""
        assert received.asked is not None
        history = self.seen[:-1] if self.seen[-1][0] == "assistant" else self.seen
        _, expected = request(self.dialect, received.asked.model, history, self.stream, self.tool)
        assert received.body.decode() == to_bytes(expected | self.further).decode()  # type: ignore[union-attr]

    def _exchange(self, headers: tuple[tuple[str, str], ...]) -> Heard:
        before = len(self.provider.requests)
        answer = self.send(headers)
        received = self.provider.requests[before:]
        if answer.status == 200:
            return Heard(answer, received, text_of(self.dialect, answer.body, self.stream))
        error = answer.json["error"]
        return Heard(answer, received, error["message"], error)

    def send(self, headers: tuple[tuple[str, str], ...] = ()) -> Answer:
        path, body = request(self.dialect, self.model, self.typed, self.stream, self.tool)
        sent = (CREDENTIALS[self.dialect], ("content-type", "application/json"), *self.headers, *headers)
        if self.session is not None:
            sent += (("x-session-id", self.session),)
        return call(HOSTS[self.dialect], path, body | self.further, proxy=self.proxy, headers=sent)

    @property
    def home(self) -> str:
        """The target of a call that goes where it was going."""
        host = HOSTS[self.dialect].removeprefix("https://")
        return f"{host}/sk-client-secret/{self.model}"

    @property
    def state(self) -> dict[str, Any] | None:
        """What the state file holds, without the messages obeyed and without times; None: no file."""
        return state_of(self.proxy, f"session-{self.session}.json")


def state_of(proxy: Mitmdump, name: str) -> dict[str, Any] | None:
    path = proxy.sessions / name
    if not path.exists():
        return None
    state = json.loads(path.read_text())["state"]
    return {key: value for key, value in state.items() if not key.startswith("obeyed") and not key.endswith("At")}


def request(
    dialect: Dialect, model: str, history: list[Entry], stream: bool, tool: _Called = _CALLED
) -> tuple[str, dict[str, Any]]:
    """Path and body, hops included."""
    path, body = write(dialect, model, [], stream)
    items: list[Any] = []
    hops = 0
    for role, text in history:
        hops += role == "hop"
        items += _hop(dialect, hops, text, *tool) if role == "hop" else _items(dialect, role, text)
    return path, body | {_LISTS[dialect]: items}


def _items(dialect: Dialect, role: str, text: str) -> list[Any]:
    _, body = write(dialect, "", [(role, text)], False)
    return list(body[_LISTS[dialect]])


def _hop(dialect: Dialect, number: int, result: str, tool: str, given: dict[str, Any]) -> list[Any]:
    id, arguments = f"call_{number}", json.dumps(given)
    match dialect:
        case Dialect.MESSAGES:
            use = {"type": "tool_use", "id": id, "name": tool, "input": given}
            answer = {"type": "tool_result", "tool_use_id": id, "content": result}
            return [{"role": "assistant", "content": [use]}, {"role": "user", "content": [answer]}]
        case Dialect.CHAT:
            use = {"id": id, "type": "function", "function": {"name": tool, "arguments": arguments}}
            asked = {"role": "assistant", "content": None, "tool_calls": [use]}
            return [asked, {"role": "tool", "tool_call_id": id, "content": result}]
        case Dialect.RESPONSES:
            use = {"type": "function_call", "call_id": id, "name": tool, "arguments": arguments}
            return [use, {"type": "function_call_output", "call_id": id, "output": result}]
        case Dialect.GEMINI:
            use = {"functionCall": {"name": tool, "args": given}}
            answer = {"functionResponse": {"name": tool, "response": {"output": result}}}
            return [{"role": "model", "parts": [use]}, {"role": "user", "parts": [answer]}]
