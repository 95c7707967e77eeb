"""A turn without a network: builders, and a plugin that notes what happens to it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from routecodex.routing.dialects.calls import read_call
from routecodex.routing.sessions.state import EMPTY
from routecodex.routing.sessions.store import SessionKey
from routecodex.routing.turn.lifecycle import Lifecycle
from routecodex.routing.turn.plugins import AfterRequest, Appending, CleanUp, Plugin, Request, Said, StreamData, TurnInfo
from routecodex.routing.values import Call, Caller, Dialect, Endpoint, Kind, ToolCall, Usage
from tests.rig.leaping import Leaping

T = TypeVar("T")

BODIES: dict[Dialect, dict[str, Any]] = {
    Dialect.MESSAGES: {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]},
    Dialect.CHAT: {"model": "m", "messages": [{"role": "user", "content": "hi"}]},
    Dialect.RESPONSES: {"model": "m", "input": [{"type": "message", "role": "user", "content": "hi"}]},
    Dialect.GEMINI: {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]},
}


EAGER = [False, True] if hasattr(asyncio, "eager_task_factory") else [False]
"""mitmproxy 12 starts tasks at once where Python can (3.12)."""


def run(work: Coroutine[Any, Any, T], *, eager: bool = False) -> T:
    """In time that leaps: nothing is waited for, and nothing comes late. A test that hangs fails."""
    return Leaping().run(work, factory=getattr(asyncio, "eager_task_factory") if eager else None)  # noqa: B009


def tcall(dialect: Dialect = Dialect.MESSAGES, *, stream: bool = True, **fields: Any) -> Call:
    gemini = dialect is Dialect.GEMINI
    body = {**BODIES[dialect], **({} if gemini else {"stream": stream}), **fields}
    endpoint = Endpoint(dialect, model="m" if gemini else None, stream=stream if gemini else None)
    return read_call(json.dumps(body).encode(), endpoint)


def tturn(call: Call | None = None, *, kind: Kind = Kind.MAIN) -> TurnInfo:
    return TurnInfo(
        id="call-1",
        call=call or tcall(),
        caller=Caller("test", kind, session="s"),
        session=SessionKey("session", "s"),
        state=EMPTY,
        now=lambda: 1_700_000_000.0,
        monotonic=lambda: 100.0,
    )


def tsaid(text: str = "hello", calls: Sequence[ToolCall] = (), own: Sequence[ToolCall] = ()) -> Said:
    """An answer in the Messages dialect. `own` are calls of ours, behind the client's."""
    blocks: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
    for call in (*calls, *own):
        blocks.append({"type": "tool_use", "id": call.id, "name": call.name, "input": json.loads(call.arguments or "{}")})
    return Said(
        text=text,
        calls=(*calls, *own),
        own=tuple(own),
        finish="tool_calls" if calls or own else "stop",
        usage=Usage(1, 1),
        id="msg-1",
        native=({"role": "assistant", "content": blocks},),
    )


def event(text: str) -> bytes:
    data = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
    return b"event: content_block_delta\ndata: " + json.dumps(data).encode() + b"\n\n"


@dataclass
class Scene:
    """A turn with its lifecycle, and everything that was noted and warned of."""

    plugins: list[Plugin]
    turn: TurnInfo = field(default_factory=tturn)
    limit_s: float = 5.0
    log: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        for plugin in self.plugins:
            if isinstance(plugin, Actor):
                plugin.log = self.log
        self.life = Lifecycle(self.turn, self.plugins, limit_s=self.limit_s, warn=self.warnings.append)

    async def begin(self) -> None:
        await self.life.start()
        await self.life.before_request(self.turn.call)

    def texts(self) -> list[str]:
        """What goes along behind the last answer, shortly."""
        return [getattr(message, "text", "") or type(message).__name__ for message in self.turn.history[-1]]


Hook = Callable[..., Awaitable[Any]]


class Actor(Plugin):
    """Notes every hook, and does there what the test says."""

    def __init__(
        self,
        name: str,
        *,
        start: Hook | None = None,
        before: Hook | None = None,
        begun: Callable[..., None] | None = None,
        stream: Callable[..., None] | None = None,
        after: Hook | None = None,
        append: Callable[..., None] | None = None,
        end: Hook | None = None,
    ) -> None:
        self.name = name
        self.log: list[str] = []
        self.start, self.before, self.begun, self.stream = start, before, begun, stream
        self.after, self.append, self.end = after, append, end

    async def on_turn_start(self, turn: TurnInfo) -> CleanUp | None:
        self.log.append(f"start {self.name}")
        found: CleanUp | None = await self.start(turn) if self.start else None
        return found

    async def on_before_request(self, turn: TurnInfo, request: Request) -> None:
        self.log.append(f"before {self.name}")
        if self.before:
            await self.before(turn, request)

    def on_stream_data(self, turn: TurnInfo, data: StreamData) -> None:
        self.log.append(f"chunk {self.name}")
        if self.stream:
            self.stream(turn, data)

    def on_answer_begun(self, turn: TurnInfo) -> None:
        if self.begun:
            self.begun(turn)

    async def on_after_request(self, turn: TurnInfo, after: AfterRequest) -> None:
        self.log.append(f"after {self.name}")
        if self.after:
            await self.after(turn, after)

    def on_message_append(self, turn: TurnInfo, appending: Appending) -> None:
        if self.append:
            self.append(turn, appending)

    async def on_turn_end(self, turn: TurnInfo) -> None:
        self.log.append(f"end {self.name}")
        if self.end:
            await self.end(turn)


def raising(error: BaseException) -> Hook:
    async def hook(*_: object) -> None:
        raise error

    return hook


async def until(condition: Callable[[], object]) -> None:
    """Wait for it; whoever waits is bounded."""
    while not condition():  # noqa: ASYNC110  what is waited for tells nobody
        await asyncio.sleep(0.01)


def hanging(*, deaf: bool = False) -> Hook:
    """`deaf`: it does not even let itself be cancelled, for a while."""

    async def hook(*_: object) -> None:
        for _ in range(3 if deaf else 1):
            try:
                await asyncio.sleep(0.5 if deaf else 60)
            except asyncio.CancelledError:
                if not deaf:
                    raise

    return hook
