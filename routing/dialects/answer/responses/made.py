"""OpenAI Responses: the output items of a translated answer, and the response object around them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ....values import JsonObject
from ...fields import list_of, object_of, text_of
from ...finish import Finish, response_status
from ...translation.ids import digest, fitting
from ...translation.neutral import Asked, Media, Tokens
from ...translation.reading.responses_tools import BUILT_IN

_ALLOWED = re.compile(r"[A-Za-z0-9_-]+")
_PREFIX = "resp_"
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
        self._given: set[str] = set()

    def response(self, id: str) -> str:
        return id if id.startswith(_PREFIX) else _PREFIX + self._stem

    def item(self, prefix: str, index: int) -> str:
        return f"{prefix}_{self._stem}_{index}"

    def call(self, id: str) -> str:
        """Some hosts give calls of one answer the same."""
        self._calls += 1
        if not id or id in self._given:
            id = "call_" + digest(f"{self._asked.id}:{self._calls}", 24)
        self._given.add(id)
        return id


def built_in(asked: Asked) -> frozenset[str]:
    """The tools of OpenAI's own that the client declared and runs: their calls are items of their own kinds."""
    declared = (text_of(object_of(tool).get("type")) for tool in list_of(asked.response.get("tools")))
    return frozenset(kind for kind in declared if kind in BUILT_IN)


def text_part(text: str) -> JsonObject:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def message_item(id: str, parts: list[JsonObject], status: str) -> JsonObject:
    return {"id": id, "type": "message", "status": status, "role": "assistant", "content": parts}


def picture_item(id: str, media: Media) -> JsonObject:
    format = media.media_type.partition("/")[2]
    named = {"output_format": format} if format else {}
    return {"id": id, "type": "image_generation_call", "status": "completed", **named, "result": media.data}


def response_head(id: str, model: str, created: int, status: str = "in_progress", told: Mapping[str, object] = {}) -> JsonObject:
    """What every response object of a stream has. Official SDKs refuse one stream's with several ids. `told`: what it repeats of
    the call."""
    rest = {**_STANDING, **{name: value for name, value in told.items() if name not in _OURS}}
    about = {"id": id, "object": "response", "created_at": created, "status": status, "model": model}
    return {**about, **rest, "output": [], "usage": None}


_OURS = frozenset(("id", "object", "created_at", "status", "model", "output", "usage", "error", "incomplete_details"))


def ended(head: JsonObject, output: list[JsonObject], finish: Finish, tokens: Tokens | None, asked: Asked) -> JsonObject:
    status, reason = response_status(finish.reason)
    response = {**head, "status": status, "output": output, "usage": _usage(tokens or Tokens(input=asked.estimate()))}
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
