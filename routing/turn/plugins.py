"""The contract of plugins: what a plugin may do, when it is called, and what it is handed. Write one like this:

    from routecodex.routing.plugins import AfterRequest, Plugin, TurnInfo, UserText

    class Shout(Plugin):
        async def on_after_request(self, turn: TurnInfo, after: AfterRequest) -> None:
            if turn.rounds == 1 and not after.said.calls and "DONE" not in after.said.text:
                after.append_and_request(UserText("Say DONE when you are done."))

    plugins = [Shout()]

1. One call of a client is one turn: `on_turn_start`, then for each round `on_before_request`, `on_answer_begun`,
   `on_stream_data`, `on_after_request`; at last `on_turn_end` and the clean-ups. `on_message_append` comes whenever something
   is appended.
2. A plugin that raises, or whose asynchronous hook takes longer than `hook_limit_s`, fails its own turn and no other.
3. All turns share one thread: a hook that blocks it (`time.sleep`, a slow file) stops the whole proxy, and nothing can bound
   that. Wait with `await`, and put what blocks into `asyncio.to_thread`. The hooks that are not `async` must be quick.
4. A plugin sees no credential. What it is handed belongs to this turn: never keep it for another one.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct, field

from ..dialects.fields import read_object
from ..dialects.said import Said
from ..errors import RouteCodexError
from ..sessions.state import SessionState
from ..sessions.store import SessionKey
from ..tags.notice import Cause
from ..values import Call, Caller, Dialect, JsonObject, Kind, Target, ToolCall
from .appended import Appendable, Appended, ToolResults, UserText
from .request import Request
from .tools import ServerTool, ToolFailed, ToolOutcome

CleanUp: TypeAlias = Callable[[], Awaitable[object] | None]
"""Called once when the turn is over, however it ended. Synchronous or `async`."""

STOP_FOLLOWUP = ":stop_followup"
"""Behind the id of a round that was asked for in the person's name, because the model had stopped."""

Status: TypeAlias = Literal["processing", "completed", "aborted", "error"]


class Refused(RouteCodexError):
    """Raise it from a hook to refuse the call: the person reads your sentence."""

    code = "REFUSED_BY_PLUGIN"


class PluginFailed(RouteCodexError):
    """A hook raised or hung. The message holds the plugin, the hook and the error's type, never the error's own text."""

    code = "PLUGIN_ERROR"

    def __init__(self, plugin: str, hook: str, what: str, original: BaseException | None = None) -> None:
        super().__init__(f"Plugin {plugin} failed: {hook} {what}", details={"plugin": plugin, "hook": hook})
        self.original = original


# What a hook is handed


class TurnInfo(Struct):
    """The turn as it stands. Read it; only the lifecycle writes it."""

    id: str
    call: Call
    """What the client asked, its tags already taken off. Edits belong into `on_before_request`."""
    caller: Caller
    session: SessionKey
    """Whose state it is."""
    state: SessionState
    """The session's state when the turn began."""
    now: Callable[[], float]
    """The time of day in epoch seconds."""
    monotonic: Callable[[], float]
    prompt: str = ""
    """Tells the newest message that a person typed from all others of the session; the same on every hop and every retry."""
    target: Target | None = None
    """Where the round goes; None until that is decided."""
    status: Status = "processing"
    rounds: int = 0
    """How many rounds have been answered: 1 in the first `on_after_request`."""
    begun: int = 0
    """How many rounds' answers have begun to reach the client."""
    followed: list[str] = field(default_factory=list)
    """The suffixes of the rounds that were asked for behind the first."""
    stays: tuple[str, ...] = ()
    """What plugins have put behind the client's history, and later calls find there (`Request.stays`)."""
    current_turn: list[Appended] = field(default_factory=list)
    """Everything the turn brought forth, `prevent_default` or not."""
    history: list[list[Appended]] = field(default_factory=list)
    """For each round: its answer, and what goes along behind it."""
    asked: list[Appended] = field(default_factory=list)
    """What was appended to be answered at once."""
    notes: list[str] = field(default_factory=list)
    """What plugins want people to read: the newest stands in the comment of the turn's flows."""
    reminded: int = 0
    """How many reminders the turn has delivered."""
    on_hold: Callable[[bool], None] = lambda held: None
    """Hears that the answer is complete and kept open for what is nearly due; and that it no longer is."""
    tells: list[Cause] = field(default_factory=list)
    """What the person is told before the answer's first text, though nobody asked: once per session."""
    began: float = 0.0
    """In `monotonic` seconds."""

    def __post_init__(self) -> None:
        self.began = self.monotonic()

    @property
    def messages(self) -> tuple[Appended, ...]:
        """What this turn has added to the conversation so far."""
        return tuple(message for behind in self.history for message in behind)

    def wanted_answer(self, message: Appended) -> bool:
        return any(message is one for one in self.asked)

    @property
    def aborted(self) -> bool:
        """The client has left: stop what you are doing. An error you raise because of it does not count."""
        return self.status == "aborted"

    @property
    def elapsed_s(self) -> float:
        return self.monotonic() - self.began

    @property
    def kind(self) -> Kind:
        return self.caller.kind

    @property
    def dialect(self) -> Dialect:
        return self.call.endpoint.dialect

    @property
    def stream(self) -> bool:
        return self.call.stream


class CurrentMessage(Struct, frozen=True):
    """An answer that is still growing."""

    text: str
    """The visible text."""
    calls: tuple[ToolCall, ...]
    """Tool calls; the last one's arguments may break off."""


class StreamData(Struct, frozen=True):
    """One event of the provider's stream."""

    raw: bytes
    """As it came."""
    data: bytes
    """What stands behind `data:`; an item of the array where Gemini streams one."""
    name: str
    _message: Callable[[], CurrentMessage]

    @property
    def json(self) -> JsonObject | None:
        return read_object(self.data)

    @property
    def current_message(self) -> CurrentMessage:
        """What the model has said in this round so far."""
        return self._message()


class AfterRequest:
    """A round's answer is complete; append what shall follow it.

    Appended at once: `append_message(message)` — it stands before everything that is appended later.
    Appended together: `is_async=True` — when all plugins are done, by the priority of each message (the highest first), then in
    the order of the plugins.

    What is appended without the wish for another round stands in the history behind the answer, when the client calls again.
    """

    def __init__(
        self,
        said: Said,
        last_choice_chunk: Callable[[], JsonObject | None],
        take: Callable[[Sequence[Appendable], bool, int, bool, str | None], None],
        earlier: Callable[[], Awaitable[bool]],
    ) -> None:
        self.said = said
        self._last_choice_chunk = last_choice_chunk
        self._take = take
        self._earlier = earlier

    @property
    def current_message(self) -> Said:
        return self.said

    @property
    def last_choice_chunk(self) -> JsonObject | None:
        """The last event that carried a part of the answer; None where the answer was not streamed."""
        return self._last_choice_chunk()

    def append_message(
        self,
        message: Appendable | Sequence[Appendable],
        *,
        request: bool = False,
        priority: int = 0,
        is_async: bool = False,
        suffix: str | None = None,
    ) -> None:
        """`request`: ask the model again; `suffix` then names that round (`:stop_followup`), else the plugin's own does.

        No round follows an answer that calls tools of the client's: those run there, and their results come with its next call.
        """
        messages: Sequence[Appendable] = [message] if isinstance(message, UserText | ToolResults | dict) else message
        self._take(messages, request, priority, is_async, suffix)

    def append_and_request(
        self,
        message: Appendable | Sequence[Appendable],
        *,
        priority: int = 0,
        is_async: bool = False,
        suffix: str | None = None,
    ) -> None:
        self.append_message(message, request=True, priority=priority, is_async=is_async, suffix=suffix)

    async def earlier_plugins(self) -> bool:
        """Wait until the plugins before this one, and our tools, are done; whether any of them asks for another round."""
        return await self._earlier()


class Appending:
    """A message that is about to be appended."""

    def __init__(self, message: Appended, messages: list[Appended]) -> None:
        self.message = message
        """May be replaced. An answer of the model (`Said`) has reached the client already: only the model sees the change."""
        self.messages = messages
        """What goes along since the last request, so far; a plugin that prevents the default may put its own in here."""
        self.prevented = False

    def prevent_default(self) -> None:
        """Do not append it. It still counts among `turn.current_turn`; the plugins behind this one are still called."""
        self.prevented = True


# The plugin

_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class Plugin:
    """Override what you need; what you leave out costs nothing. Plugins are called in the order in which they are listed."""

    name: str = "plugin"
    """Made of the class's name where it is not given."""
    suffix: str | None = None
    """Behind the ids of the rounds that this plugin asks for; else `:<name>_followup`."""
    tools: Sequence[ServerTool] = ()
    """Tools that the model is offered and that run here: the client never sees them."""
    hook_limit_s: float | None = None
    """How long an asynchronous hook may take; None: the usual 30 seconds."""
    at_once: bool = False
    """Hooks need no task of their own until they wait for something: see `routing.turn.stepping` for what they must not do.
    `same_hooks` besides."""
    same_hooks: bool = False
    """Which hooks and tools there are is looked at once, not in each turn."""

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        if "name" not in cls.__dict__:
            cls.name = _CAPITAL.sub("_", cls.__name__).lower().strip("_")

    def wants(self, turn: TurnInfo) -> bool:
        """Whether this plugin takes part in this turn. A turn that no plugin wants is passed through as it is."""
        return True

    async def on_turn_start(self, turn: TurnInfo) -> CleanUp | None:
        """Once, before anything is sent; one plugin after another. An error ends the turn, and no later plugin is called.

        May return a clean-up. Clean-ups run whatever happened, the last one first; an error in one does not stop the others.
        """
        return None

    async def on_before_request(self, turn: TurnInfo, request: Request) -> None:
        """Before every round; one plugin after another. An error ends the turn.

        May edit the request. An edit holds for this round alone: every round starts from the client's call and what was
        appended since. `request.round` is 0 in the first; there, `turn.target` is not decided yet.
        """

    def on_answer_begun(self, turn: TurnInfo) -> None:
        """The first content of a round's answer goes to the client: from here on the round cannot be tried again. Quick!

        A keep-alive or a head is no content. Where the client waits for one whole answer, this comes when the answer is about
        to leave, once for all its rounds: `turn.begun` tells how many. An error is logged, the answer goes on.
        """

    def on_stream_data(self, turn: TurnInfo, data: StreamData) -> None:
        """Each event of the provider's stream, as it comes. Quick! Not called where the answer is one JSON document.

        An error is logged, and the plugin hears no more of this turn's stream: the answer itself goes on.
        """

    async def on_after_request(self, turn: TurnInfo, after: AfterRequest) -> None:
        """After every round whose answer is complete; all plugins at the same time. An error in any of them ends the turn:
        what was appended at once stays, what waits with `is_async` is dropped."""

    def on_message_append(self, turn: TurnInfo, appending: Appending) -> None:
        """Before a message joins the conversation: each answer of the model, and each message that a plugin appends. Quick!

        Not called for what the client sent. An error is an error of the hook that was appending.
        """

    async def on_turn_end(self, turn: TurnInfo) -> None:
        """Once, where the turn was completed or aborted, before the clean-ups; one plugin after another. Not after an error."""


HOOKS: tuple[str, ...] = (
    "wants",
    "on_turn_start",
    "on_before_request",
    "on_answer_begun",
    "on_stream_data",
    "on_after_request",
    "on_message_append",
    "on_turn_end",
)


def overrides(plugin: Plugin, hook: str) -> bool:
    return getattr(getattr(plugin, hook), "__func__", None) is not getattr(Plugin, hook)


__all__ = [
    "HOOKS",
    "STOP_FOLLOWUP",
    "AfterRequest",
    "Appendable",
    "Appended",
    "Appending",
    "CleanUp",
    "CurrentMessage",
    "Plugin",
    "PluginFailed",
    "Refused",
    "Request",
    "Said",
    "ServerTool",
    "StreamData",
    "ToolFailed",
    "ToolOutcome",
    "ToolResults",
    "TurnInfo",
    "UserText",
    "overrides",
]
