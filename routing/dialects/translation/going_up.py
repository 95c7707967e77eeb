"""A client's call in the dialect of a provider."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import TypeVar

from msgspec.structs import replace

from ...values import Call, Dialect, Endpoint, JsonObject
from ..fields import list_of, object_of, text_of
from ..finish import AS_USUAL, Endings
from .neutral import Asked, Conversation, Written

T = TypeVar("T")

_MODULES = {Dialect.MESSAGES: "messages", Dialect.CHAT: "chat", Dialect.RESPONSES: "responses", Dialect.GEMINI: "gemini"}


class _Loaded(Mapping[Dialect, T]):
    """A function of each dialect's module, which is loaded when it is asked for: most calls stay in their dialect."""

    def __init__(self, folder: str, name: str) -> None:
        self._folder, self._name = folder, name

    def __getitem__(self, dialect: Dialect) -> T:
        found: T = getattr(import_module(f"{__package__}.{self._folder}.{_MODULES[dialect]}"), self._name)
        return found

    def __iter__(self) -> Iterator[Dialect]:
        return iter(_MODULES)

    def __len__(self) -> int:
        return len(_MODULES)


READ: Mapping[Dialect, Callable[[JsonObject, Endpoint], Conversation]] = _Loaded("reading", "read")
WRITE: Mapping[Dialect, Callable[..., Written]] = _Loaded("writing", "write")


def load() -> None:
    """All of them, for whoever has the time."""
    for dialect in Dialect:
        READ[dialect], WRITE[dialect]


_REPEATED = (
    "instructions",
    "max_output_tokens",
    "metadata",
    "parallel_tool_calls",
    "prompt_cache_key",
    "reasoning",
    "safety_identifier",
    "service_tier",
    "store",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_p",
    "truncation",
)
"""Fields of a call that a Responses object says again."""
_LETS_IN = frozenset(("authorization", "headers"))


def translate(
    body: JsonObject, source: Endpoint, target: Dialect, *, model: str, stream: bool, session: str, maker: str
) -> Written:
    """`body`: as it would go to a foreign provider of the client's own dialect, out of its envelope. BadCall where that dialect
    cannot say it. `model` and `stream` hold, whatever the body says: some dialects tell them elsewhere."""
    meant = replace(READ[source.dialect](body, source), model=model, stream=stream)
    return WRITE[target](meant, model=model, session=session, maker=maker)


def refuse(call: Call) -> None:
    """BadCall that says why nobody else can make sense of a call whose history is kept elsewhere."""
    READ[call.endpoint.dialect](call.body, call.endpoint)


def repeated(call: Call) -> JsonObject:
    """For `Asked.response`: what a Responses object says again of its call, with the tools that Codex declares in its input."""
    if call.endpoint.dialect is not Dialect.RESPONSES:
        return {}
    found = {name: call.body[name] for name in _REPEATED if name in call.body}
    carried = [
        tool
        for item in list_of(call.body.get("input"))
        if text_of(object_of(item).get("type")) == "additional_tools"
        for tool in list_of(object_of(item).get("tools"))
    ]
    declared = [*list_of(call.body.get("tools")), *carried]
    return {**found, "tools": list(map(_told_again, declared))} if declared else found


def _told_again(tool: object) -> object:
    """Of an MCP server an answer does not say again what lets one in."""
    if not isinstance(tool, dict) or tool.get("type") != "mcp":
        return tool
    return {name: value for name, value in tool.items() if name not in _LETS_IN}


def wants_usage(call: Call) -> bool:
    return object_of(call.body.get("stream_options")).get("include_usage") is True


def wants_cost(call: Call) -> bool:
    """The same in OpenRouter's words."""
    return object_of(call.body.get("usage")).get("include") is True


def asked(
    call: Call,
    id: str,
    *,
    created: int = 0,
    estimate: Callable[[], int] = lambda: 0,
    endings: Endings = AS_USUAL,
    passes_usage: bool = False,
    whole_calls: bool = False,
    hears_cost: bool = False,
    keep: Callable[[JsonObject], None] = lambda item: None,
) -> Asked:
    """What the answer to it must know of it. `hears_cost`: its client counts on being told, though it does not ask."""
    return Asked(
        endpoint=call.endpoint,
        stream=call.stream,
        id=id,
        model=call.model,
        created=created,
        estimate=estimate,
        include_usage=hears_cost or wants_usage(call),
        passes_usage=passes_usage,
        whole_calls=whole_calls and call.endpoint.dialect in (Dialect.CHAT, Dialect.RESPONSES),
        endings=endings,
        response=repeated(call),
        keep=keep,
    )
