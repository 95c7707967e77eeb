"""The middle of the house for tests: a desk with a real configuration and store, and a tool that talks to it in any dialect."""

from __future__ import annotations

import functools
import json
import uuid
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from msgspec.structs import replace

from routecodex.routing.config import Config, read
from routecodex.routing.desk.desk import Desk, Learned, Plan, Reading, Reply, Rest
from routecodex.routing.dialects.endpoints import endpoint_of
from routecodex.routing.errors import RouteCodexError
from routecodex.routing.sessions.store import FileStore, SessionKey
from routecodex.routing.tags.obey import Orders
from routecodex.routing.turn.actions import Failed, Head
from routecodex.routing.turn.plan import Clocks
from routecodex.routing.turn.upstream import Received
from routecodex.routing.values import Dialect, ProviderError
from tests.system.tool import text_of

T = TypeVar("T")

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


def provider_text(name: str, keys: str, models: str, more: str = "") -> str:
    """A provider of four dialects at `name.example`; the value of its key `k` is `sk-name-k-secret`."""
    listed = ", ".join(f"{{alias: {key}, value: sk-{name}-{key}-secret}}" for key in keys.split())
    declared = ", ".join(f"{model}: {{{more}}}" for model in models.split())
    return _PROVIDER.format(name=name, keys=listed, models=declared)


CONFIG_A = "".join(
    (
        provider_text("glm", "key1", "glm-4.7"),
        provider_text("openai", "primary backup third", "gpt-4 gpt-5.2"),
        provider_text("anthropic", "primary", "claude-sonnet-4-5"),
        provider_text("antigravity", "sonnetkey sonnetbackup geminikey", "claude-sonnet-4-5 gemini-3-pro-high"),
    )
)


def config_text(routing: str = "default: [origin]", providers: str = CONFIG_A, *, top: str = "", more: str = "") -> str:
    """`top`: whole sections; `more`: keys of `virtualrouter` beside providers and routing."""
    return f"{top}\nvirtualrouter:\n  providers:{providers}\n  routing: {{{routing}}}\n{more}\n"


HOSTS = {
    Dialect.MESSAGES: "api.anthropic.com",
    Dialect.CHAT: "api.openai.com",
    Dialect.RESPONSES: "api.openai.com",
    Dialect.GEMINI: "generativelanguage.googleapis.com",
}
SECRET = "sk-client-secret-of-its-own"


async def inline(work: Callable[[], T], /) -> T:
    """In place of a thread."""
    return work()


def done(work: Coroutine[Any, Any, T]) -> T:
    """What never waits, without a loop."""
    try:
        work.send(None)
    except StopIteration as over:
        value: T = over.value
        return value
    raise AssertionError("it waits")


@dataclass(slots=True)
class Clock:
    now: float = 1000.0
    """Monotonic."""
    epoch: float = 1_800_000_000.0

    def passes(self, seconds: float) -> None:
        self.now += seconds
        self.epoch += seconds


@functools.lru_cache(maxsize=64)
def _as_read(text: str) -> Config:
    """Nobody changes a configuration that was read; to read the same one for each house took longer than most tests in it."""
    return read(text, name="test.yaml", env={})


@dataclass(slots=True)
class House:
    folder: Path
    config: str = field(default_factory=config_text)
    clock: Clock = field(default_factory=Clock)
    notes: list[str] = field(default_factory=list)
    learned: Learned = field(default_factory=Learned)
    desk: Desk = field(init=False)

    def __post_init__(self) -> None:
        self.open()

    def open(self) -> None:
        """Also after a change of the configuration: what was learned stays."""
        config = _as_read(self.config)
        clocks = Clocks(lambda: self.clock.now, lambda: self.clock.epoch, lambda: 0.0)
        store = FileStore(self.folder / "sessions")
        self.desk = Desk(config, store, self.learned, clocks, self.folder / "user", note=self.notes.append)

    def restart(self) -> None:
        """Only what lies on the disk stays."""
        self.learned = Learned()
        self.open()

    def store_used(self, key: SessionKey, used: int) -> None:
        """So many rounds of the stopMessage have been sent."""
        self.desk.store.update(key, lambda state: state.with_(stop=state.stop and replace(state.stop, used=used)))

    @property
    def files(self) -> list[str]:
        """Of the sessions."""
        return sorted(path.name for path in self.folder.glob("sessions/*.*") if path.is_file())

    def received(
        self,
        path: str,
        body: dict[str, Any] | bytes,
        *,
        host: str,
        headers: tuple[tuple[str, str], ...] = (),
        wire_body: bytes | None = None,
    ) -> Received:
        raw = body if isinstance(body, bytes) else json.dumps(body, ensure_ascii=False).encode()
        endpoint = endpoint_of("POST", path)
        assert endpoint is not None, path
        fields = (("Host", host), ("Content-Type", "application/json"), ("User-Agent", "tool/1"), *headers)
        return Received(
            id=str(uuid.uuid4()),
            scheme="https",
            host=host,
            port=443,
            path=path,
            headers={name.lower(): value for name, value in fields},
            fields=fields,
            credential=SECRET,
            endpoint=endpoint,
            body=raw,
            wire_body=raw if wire_body is None else wire_body,
        )

    def handle(self, received: Received) -> Handled:
        """As `decide` does it, step by step: nothing is sent yet."""
        reading = orders = None
        outcome: Reply | Plan | Rest
        try:
            reading = self.desk.read(received)
            orders = self.desk.obeying.at_once(reading) or done(self.desk.obeying.obey(reading, inline))
            outcome = self.desk.prepare(reading, orders) or self.desk.route(reading, orders)
            if isinstance(outcome, Plan) and outcome.decision.clear_sticky:
                done(self.desk.forget_sticky(reading, orders.state.sticky, inline))
        except RouteCodexError as error:
            outcome = self.desk.refuse(received.endpoint, error, reading.caller.client if reading is not None else "")
        return Handled(self, received, outcome, reading, orders)


@dataclass(slots=True)
class Handled:
    """What came of one call."""

    house: House
    received: Received
    outcome: Reply | Plan | Rest
    reading: Reading | None
    orders: Orders | None

    @property
    def plan(self) -> Plan:
        assert isinstance(self.outcome, Plan), self.reply.body
        return self.outcome

    @property
    def reply(self) -> Reply:
        assert isinstance(self.outcome, Reply), self.outcome
        return self.outcome

    @property
    def sent(self) -> bool:
        return isinstance(self.outcome, Plan)

    @property
    def target(self) -> str:
        return str(self.plan.target)

    @property
    def body(self) -> dict[str, Any]:
        """What the provider is sent."""
        found = json.loads(self.plan.request().body)
        assert isinstance(found, dict)
        return found

    @property
    def error(self) -> tuple[str, str]:
        """Code and message of a refusal, in any dialect."""
        document = json.loads(self.reply.body)
        error = (document[0] if isinstance(document, list) else document)["error"]
        code = error["code"] if isinstance(error["code"], str) else error["details"][0]["reason"]
        return str(code), str(error["message"])

    def answered(self, id: str = "answer-1", *, ended: bool = True) -> str:
        """The provider answers well; not `ended`: with a call of a tool, or it breaks off."""
        self.plan.request()
        self.plan.answered(id, self.house.clock.now)
        self.plan.over(ended=ended)
        return self.target

    def failed(self, status: int = 500, **changes: Any) -> float | None:
        """The provider fails; what the plan says to that."""
        self.plan.request()
        error = ProviderError(status, f"error {status}", f"HTTP_{status}", **changes)
        return self.plan.failed(Failed(error, Head(status, ()), b"{}"), self.house.clock.now)


@dataclass(slots=True)
class Tool:
    """It keeps its history as it was typed, and repeats it in every call."""

    house: House
    dialect: Dialect = Dialect.MESSAGES
    session: str | None = "one"
    model: str = "client-model"
    stream: bool = False
    headers: dict[str, str] = field(default_factory=dict)
    more: dict[str, Any] = field(default_factory=dict)
    """Further fields of the body."""
    history: list[dict[str, Any]] = field(default_factory=list)

    def say(self, text: str, *, image: bool = False) -> Handled:
        self.history.append(user_item(self.dialect, text, image=image))
        return self.ask()

    def handed(self, text: str) -> Received:
        """The call alone."""
        self.history.append(user_item(self.dialect, text, image=False))
        return self.received()

    def hop(self, result: str = "done") -> Handled:
        """The model called a tool, and here is what came of it."""
        self.history += hop_items(self.dialect, result, len(self.history))
        return self.ask()

    def hear(self, text: str = "fine") -> None:
        """The answer joins the history."""
        self.history.append(assistant_item(self.dialect, text))

    def talk(self, *texts: str) -> list[Handled]:
        """Messages that are answered well, one after another."""
        found = []
        for text in texts:
            handled = self.say(text)
            if handled.sent:
                handled.answered()
                self.hear()
            elif handled.reply.status == 200:
                self.hear(text_of(self.dialect, handled.reply.body, self.stream))
            found.append(handled)
        return found

    def ask(self) -> Handled:
        return self.house.handle(self.received())

    def received(self) -> Received:
        path, body = self.write()
        named = {"x-session-id": self.session} if self.session else {}
        headers = tuple({**named, **self.headers}.items())
        return self.house.received(path, {**body, **self.more}, host=HOSTS[self.dialect], headers=headers)

    def write(self) -> tuple[str, dict[str, Any]]:
        match self.dialect:
            case Dialect.MESSAGES:
                body = {"model": self.model, "max_tokens": 100, "stream": self.stream, "messages": self.history}
                return "/v1/messages", body
            case Dialect.CHAT:
                return "/v1/chat/completions", {"model": self.model, "stream": self.stream, "messages": self.history}
            case Dialect.RESPONSES:
                return "/v1/responses", {"model": self.model, "stream": self.stream, "input": self.history}
            case Dialect.GEMINI:
                verb = "streamGenerateContent?alt=sse" if self.stream else "generateContent"
                return f"/v1beta/models/{self.model}:{verb}", {"contents": self.history}


_PNG = "iVBORw0KGgo="


def user_item(dialect: Dialect, text: str, *, image: bool = False) -> dict[str, Any]:
    match dialect:
        case Dialect.MESSAGES:
            source = {"type": "base64", "media_type": "image/png", "data": _PNG}
            images = [{"type": "image", "source": source}] if image else []
            return {"role": "user", "content": [{"type": "text", "text": text}, *images]}
        case Dialect.CHAT:
            images = [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{_PNG}"}}] if image else []
            return {"role": "user", "content": [{"type": "text", "text": text}, *images]}
        case Dialect.RESPONSES:
            images = [{"type": "input_image", "image_url": f"data:image/png;base64,{_PNG}"}] if image else []
            return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}, *images]}
        case Dialect.GEMINI:
            images = [{"inlineData": {"mimeType": "image/png", "data": _PNG}}] if image else []
            return {"role": "user", "parts": [{"text": text}, *images]}


def assistant_item(dialect: Dialect, text: str) -> dict[str, Any]:
    match dialect:
        case Dialect.RESPONSES:
            return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
        case Dialect.GEMINI:
            return {"role": "model", "parts": [{"text": text}]}
        case _:
            return {"role": "assistant", "content": text}


def hop_items(dialect: Dialect, result: str, number: int) -> list[dict[str, Any]]:
    """A tool call and its result."""
    id = f"call_{number}"
    match dialect:
        case Dialect.MESSAGES:
            call = {"type": "tool_use", "id": id, "name": "Bash", "input": {"command": "make"}}
            answer = {"type": "tool_result", "tool_use_id": id, "content": result}
            return [{"role": "assistant", "content": [call]}, {"role": "user", "content": [answer]}]
        case Dialect.CHAT:
            function = {"name": "Bash", "arguments": "{}"}
            call = {"role": "assistant", "content": None, "tool_calls": [{"id": id, "type": "function", "function": function}]}
            return [call, {"role": "tool", "tool_call_id": id, "content": result}]
        case Dialect.RESPONSES:
            call = {"type": "function_call", "call_id": id, "name": "Bash", "arguments": "{}"}
            return [call, {"type": "function_call_output", "call_id": id, "output": result}]
        case Dialect.GEMINI:
            answer = {"functionResponse": {"name": "Bash", "response": {"output": result}}}
            return [
                {"role": "model", "parts": [{"functionCall": {"name": "Bash", "args": {}}}]},
                {"role": "user", "parts": [answer]},
            ]


def texts_of(dialect: Dialect, body: dict[str, Any]) -> list[str]:
    """The texts of a call's history, in order, whoever said them; tool calls and results are left out."""
    items = body.get("messages") or body.get("input") or body.get("contents") or []
    found: list[str] = []
    for item in items:
        content = item.get("content", item.get("parts"))
        parts = [{"text": content}] if isinstance(content, str) else content or []
        found += [part["text"] for part in parts if isinstance(part.get("text"), str) and item.get("role") != "tool"]
    return found
