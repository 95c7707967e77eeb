"""What plugins append behind one answer: in which order, through whose hands, and whether another round follows from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from ..dialects.said import Said
from ..values import JsonObject
from .appended import Appendable, Appended, ToolResults, UserText, write
from .plugins import Appending, Plugin, TurnInfo
from .tools import ToolOutcome, filled


class NextRound(Struct, frozen=True):
    """The model is asked again."""

    items: tuple[JsonObject, ...]
    """What the history of the call just answered goes on with: the answer and all that was appended, in order."""
    messages: tuple[JsonObject, ...]
    """The same without the answer."""
    suffix: str
    """Behind the turn's id: `:stop_followup`."""
    plugin: str
    """Who asked first."""


class _Later(Struct, frozen=True):
    """What a plugin wants appended when all are done."""

    plugin: Plugin
    place: int
    priority: int
    messages: Sequence[Appendable]
    wish: str | None


class Gathering:
    """One answer's. `blame` makes the error of a plugin whose hook raised one."""

    def __init__(
        self,
        turn: TurnInfo,
        said: Said,
        listeners: Sequence[Plugin],
        blame: Callable[[Plugin, str, BaseException], Exception],
    ) -> None:
        self.said = said
        self.open = True
        """False: it is too late to append anything."""
        self._turn = turn
        self._listeners = listeners
        self._blame = blame
        self._messages: list[Appended] = []
        self._later: list[_Later] = []
        self._wishes: list[tuple[str, str]] = []
        """Who asked for another round, and the suffix, in the order of asking."""
        turn.history.append(self._messages)

    def append(self, message: Appended, *, asks: bool = False) -> None:
        """Now, unless a plugin prevents it. `asks`: for the model to answer at once."""
        appending = Appending(message, self._messages)
        for plugin in self._listeners:
            try:
                plugin.on_message_append(self._turn, appending)
                if not isinstance(appending.message, Said | UserText | ToolResults | dict):
                    raise TypeError(f"{type(appending.message).__name__} is no message")
            except (Exception, SystemExit) as error:
                raise self._blame(plugin, "on_message_append", error) from None
        message = appending.message
        self._turn.current_turn.append(message)
        if asks:
            self._turn.asked.append(message)
        if not appending.prevented:
            self._messages.append(message)

    def take(
        self,
        plugin: Plugin,
        place: int,
        messages: Sequence[Appendable],
        *,
        request: bool,
        priority: int = 0,
        is_async: bool = False,
        suffix: str | None = None,
    ) -> None:
        """What a plugin appends. `place` is its place in the order of the plugins."""
        if not self.open:
            raise RuntimeError("append_message came too late: on_after_request is over")
        if wrong := next((message for message in messages if not isinstance(message, UserText | ToolResults | dict)), None):
            raise TypeError(f"append_message takes UserText, ToolResults or a JSON object, not {type(wrong).__name__}")
        wish = suffix or plugin.suffix or f":{plugin.name}_followup" if request else None
        if is_async:
            self._later.append(_Later(plugin, place, priority, tuple(messages), wish))
            return
        if wish is not None:
            self._wishes.append((plugin.name, wish))
        for message in messages:
            self.append(message, asks=request)

    def merge(self) -> None:
        """All plugins are done. The highest priority first; of equal ones in the order of the plugins, then of appending."""
        self.open = False
        for later in sorted(self._later, key=lambda later: (-later.priority, later.place)):
            if later.wish is not None:
                self._wishes.append((later.plugin.name, later.wish))
            for message in later.messages:
                self.append(message, asks=later.wish is not None)

    @property
    def asks(self) -> bool:
        """Whether another round has been asked for so far."""
        return bool(self._wishes) or any(later.wish and later.messages for later in self._later)

    @property
    def waits_for_client(self) -> bool:
        """The answer calls tools of the client's: the next call brings their results."""
        answered = [outcome.call for outcome in self._outcomes()]
        return any(call not in self.said.own and call not in answered for call in self.said.calls)

    def next_round(self) -> NextRound | None:
        """Only with new messages and the wish to ask."""
        self._settle_results()
        new = [message for message in self._messages if not isinstance(message, Said)]
        if not self._wishes or not new or self.waits_for_client:
            return None
        plugin, suffix = self._wishes[0]
        dialect = self._turn.dialect
        return NextRound(write(dialect, self._messages), write(dialect, new), suffix, plugin)

    def _settle_results(self) -> None:
        """Results stand directly behind the answer, whoever appended first; no call of ours stays without one."""
        place, answer = next(
            ((place, message) for place, message in enumerate(self._messages) if isinstance(message, Said)), (0, None)
        )
        outcomes = self._outcomes()
        if answer is None or not (answer.own or outcomes):
            return
        answered = [outcome.call for outcome in outcomes]
        calls = [call for call in answer.calls if call in answer.own or call in answered]
        before = [message for message in self._messages[: place + 1] if not isinstance(message, ToolResults)]
        behind = [message for message in self._messages[place + 1 :] if not isinstance(message, ToolResults)]
        self._messages[:] = [*before, ToolResults(filled(calls, outcomes)), *behind]

    def _outcomes(self) -> list[ToolOutcome]:
        return [outcome for message in self._messages if isinstance(message, ToolResults) for outcome in message.outcomes]
