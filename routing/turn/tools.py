"""Tools that run here: declared by a plugin, offered to the model beside the client's own, never shown to the client.

1. Every call of such a tool gets exactly one outcome, in the order of the calls, whatever the tool does.
2. What the model reads of an error is the tool's own sentence (`ToolFailed`), or nothing but the error's type.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct

from ..dialects.calls import growing
from ..dialects.calls.editing import inner_body, objects_in
from ..dialects.fields import read_object
from ..errors import ConfigError
from ..values import Call, Dialect, JsonObject, Kind, ToolCall

if TYPE_CHECKING:
    from .plugins import TurnInfo

NextTurn: TypeAlias = Literal["keep", "results", "exclude", "remove"]

CANCELLED = "Tool call cancelled."
FAILED = "Tool call failed: "
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
"""What all four dialects take."""


class ToolFailed(Exception):
    """Raise it from a tool: the model reads your sentence. Of any other error it reads only the type."""


class ServerTool(Struct, frozen=True):
    name: str
    description: str
    schema: JsonObject
    """JSON schema of the arguments: an object."""
    run: Callable[[TurnInfo, JsonObject], Awaitable[str]]
    """What the tool does: the arguments, as the model wrote them, in; the text for the model out. Check what you are given."""
    strict: bool = False
    """The schema keeps to what providers' strict mode takes; offered so where the dialect knows it."""
    limit_s: float = 30.0
    next_turn: NextTurn = "keep"
    """Whether later calls find call and result in their history: the `results` alone, as a sentence; or neither (`exclude`), and
    what is shown does not hold them either (`remove`)."""
    offered: bool = True
    """False: the model is not told of it; a call of it is answered here all the same."""

    def __post_init__(self) -> None:
        if _NAME.fullmatch(self.name) is None:
            raise ConfigError("a tool's name is a letter or _, then up to 63 letters, digits, _ and -")
        if self.schema.get("type") != "object":
            raise ConfigError('a tool\'s schema is that of an object: {"type": "object", "properties": …}')


class ToolOutcome(Struct, frozen=True):
    """What became of one call."""

    call: ToolCall
    text: str
    status: Literal["success", "failed", "cancelled"] = "success"


class Offer(Struct, frozen=True):
    """A call that offers our tools as well."""

    call: Call
    names: frozenset[str] = frozenset()
    """Calls of these in the answer are ours."""
    left_out: str = ""
    """Why none is offered, or not all."""


# Before a round


def offer(call: Call, tools: Sequence[ServerTool], *, kind: Kind = Kind.MAIN, able: bool = True) -> Offer:
    """The call with these tools beside the client's own. `able`: the target takes tools of ours.

    A client's own tool of the same name stays the client's.
    """
    reason = _reason_against(call, kind, able=able)
    if not tools or reason:
        return Offer(call, left_out=reason if tools else "")
    offered = _beside(call, tools)
    for tool in (tool for tool in offered if tool.offered):
        call = growing.with_tool(call, tool.name, tool.description, tool.schema, strict=tool.strict)
    theirs = [tool.name for tool in tools if tool not in offered]
    left_out = f"the client has its own {', '.join(theirs)}" if theirs else ""
    return Offer(call, frozenset(tool.name for tool in offered), left_out)


def takes_any(call: Call, tools: Sequence[ServerTool], *, kind: Kind = Kind.MAIN) -> bool:
    """Whether `offer` would put any of them there, as far as the call decides that."""
    return not _reason_against(call, kind, able=True) and bool(_beside(call, tools))


def _beside(call: Call, tools: Sequence[ServerTool]) -> list[ServerTool]:
    taken = {*call.tools, *call.namespaces}
    return [tool for tool in tools if tool.name not in taken]


def _reason_against(call: Call, kind: Kind, *, able: bool) -> str:
    if kind is not Kind.MAIN:
        return f"a call of the kind {kind}"
    if not able:
        return "the target takes no tools"
    if call.forced_tools:
        return "tool_choice forces or forbids tools"
    if call.structured:
        return "the call demands structured output"
    return "Google's built-in tools stand alone" if _has_built_in(call) else ""


def _has_built_in(call: Call) -> bool:
    if call.endpoint.dialect is not Dialect.GEMINI:
        return False
    declared = {"functionDeclarations", "function_declarations"}
    return any(tool.keys() - declared for tool in objects_in(inner_body(call), "tools"))


# Behind an answer


async def run_tool(
    tool: ServerTool | None, turn: TurnInfo, call: ToolCall, report: Callable[[BaseException], None]
) -> ToolOutcome:
    """One call's outcome. `report` hears of an error that the tool did not mean for the model."""
    if tool is None:
        return failed(call, f"there is no tool {call.name}")
    arguments = read_object(call.arguments.encode("utf-8", "surrogatepass")) if call.arguments.strip() else {}
    if arguments is None:
        return failed(call, "the arguments are not a JSON object")
    try:
        text = await tool.run(turn, arguments)
    except ToolFailed as error:
        return failed(call, str(error))
    except (Exception, SystemExit) as error:  # whatever it was, the other tools and the turn go on
        report(error)
        return failed(call, type(error).__name__)
    if not isinstance(text, str):
        report(TypeError())
        return failed(call, "the tool returned no text")
    return ToolOutcome(call, text)


def failed(call: ToolCall, why: str) -> ToolOutcome:
    return ToolOutcome(call, FAILED + why, "failed")


def cancelled(call: ToolCall) -> ToolOutcome:
    return ToolOutcome(call, CANCELLED, "cancelled")


def filled(calls: Iterable[ToolCall], outcomes: Sequence[ToolOutcome]) -> tuple[ToolOutcome, ...]:
    """One outcome for each call, in their order; then what answers none of them."""
    left = list(outcomes)
    found: list[ToolOutcome] = []
    for call in calls:
        match = next((outcome for outcome in left if outcome.call == call), None)
        if match is not None:
            left.remove(match)
        found.append(match or cancelled(call))
    return (*found, *left)
