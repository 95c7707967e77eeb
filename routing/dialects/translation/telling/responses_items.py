"""OpenAI Responses: the output items of a translated answer, and the response object around them."""

from __future__ import annotations

import re

from ....values import JsonObject
from ...fields import arguments_of, list_of, object_of, text_of
from ...finish import Finish, response_status
from ..ids import digest, fitting
from ..neutral import Asked, CallStarted, Media, Tokens, ToolName
from ..reading.responses_tools import BUILT_IN
from .words import free_text

_ALLOWED = re.compile(r"[A-Za-z0-9_-]+")
_PREFIX = "resp_"
_FIRST_ACTION: dict[str, JsonObject] = {"local_shell": {"type": "exec", "env": {}}}
"""What a built-in tool's call must have, whether the model wrote it or not."""

_STANDING: JsonObject = {
    "background": False,
    "error": None,
    "incomplete_details": None,
    "instructions": None,
    "max_output_tokens": None,
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "reasoning": {"effort": None, "summary": None},
    "store": False,
    "temperature": 1.0,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_p": 1.0,
    "truncation": "disabled",
    "user": None,
    "metadata": {},
}
"""Fields of every response, where the call says nothing else."""


class Names:
    """Ids that follow from the round's: the same answer always has the same ones. OpenAI takes up to 64 characters."""

    def __init__(self, asked: Asked) -> None:
        self._stem = fitting(asked.id, _ALLOWED, 40) if asked.id else "0"
        self._asked = asked
        self._calls = 0

    def response(self, id: str) -> str:
        return id if id.startswith(_PREFIX) else _PREFIX + self._stem

    def item(self, prefix: str, index: int) -> str:
        return f"{prefix}_{self._stem}_{index}"

    def call(self, id: str) -> str:
        self._calls += 1
        return id or "call_" + digest(f"{self._asked.id}:{self._calls}", 24)


def built_in(asked: Asked) -> frozenset[str]:
    """The tools of OpenAI's own that the client declared and runs: their calls are items of their own kinds."""
    declared = (text_of(object_of(tool).get("type")) for tool in list_of(asked.response.get("tools")))
    return frozenset(kind for kind in declared if kind in BUILT_IN)


class Call:
    """A tool call on its way, told from its second piece on: a seal that comes with the only piece can stand before it."""

    __slots__ = ("call_id", "id", "kind", "live", "pieces", "tool")

    def __init__(self, event: CallStarted, asked: Asked, names: Names, own: frozenset[str]) -> None:
        self.tool = asked.tools.get(event.name, ToolName(event.name))
        self.kind = "custom" if self.tool.custom else self.tool.name if self.tool.name in own else "function"
        self.call_id = names.call(event.id)
        self.id = ""
        self.pieces: list[str] = []
        self.live = False

    @property
    def prefix(self) -> str:
        return {"function": "fc", "custom": "ctc"}.get(self.kind, "sh")

    @property
    def arguments(self) -> str:
        written = "".join(self.pieces)
        return free_text(written) if self.kind == "custom" else written or "{}"

    def item(self, status: str, *, opening: bool = False) -> JsonObject:
        named = {"namespace": self.tool.namespace} if self.tool.namespace else {}
        if self.kind in BUILT_IN:
            own = BUILT_IN[self.kind]
            action = {**_FIRST_ACTION.get(self.kind, {}), **arguments_of(self.arguments)}
            return {"id": self.id, "type": own.item, "status": status, "call_id": self.call_id, own.field: action}
        written = "" if opening else self.arguments
        kind, field = ("custom_tool_call", "input") if self.kind == "custom" else ("function_call", "arguments")
        head: JsonObject = {"id": self.id, "type": kind, "status": status, "call_id": self.call_id}
        return {**head, "name": self.tool.name, **named, field: written}


def text_part(text: str) -> JsonObject:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def message_item(id: str, parts: list[JsonObject], status: str) -> JsonObject:
    return {"id": id, "type": "message", "status": status, "role": "assistant", "content": parts}


def picture_item(id: str, media: Media) -> JsonObject:
    format = media.media_type.partition("/")[2]
    named = {"output_format": format} if format else {}
    return {"id": id, "type": "image_generation_call", "status": "completed", **named, "result": media.data}


def response_head(id: str, asked: Asked) -> JsonObject:
    """What every response object of a stream has."""
    head: JsonObject = {"id": id, "object": "response", "created_at": asked.created, "status": "in_progress"}
    rest = {**_STANDING, **{name: value for name, value in asked.response.items() if name not in _OURS}}
    return {**head, "model": asked.model, **rest, "output": [], "usage": None}


_OURS = frozenset(("id", "object", "created_at", "status", "model", "output", "usage", "error", "incomplete_details"))


def ended(head: JsonObject, output: list[JsonObject], finish: Finish, tokens: Tokens | None, asked: Asked) -> JsonObject:
    status, reason = response_status(finish.reason)
    response = {**head, "status": status, "output": output, "usage": _usage(tokens or Tokens(input=asked.estimate))}
    if reason:
        response["incomplete_details"] = {"reason": reason}
    if status == "failed":
        response["error"] = {"code": "server_error", "message": "The provider ended its answer with an error."}
    return response


def _usage(tokens: Tokens) -> JsonObject:
    return {
        "input_tokens": tokens.input,
        "input_tokens_details": {"cached_tokens": tokens.cached, "cache_write_tokens": tokens.written},
        "output_tokens": tokens.output,
        "output_tokens_details": {"reasoning_tokens": tokens.reasoning},
        "total_tokens": tokens.input + tokens.output,
    }
