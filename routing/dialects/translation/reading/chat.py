"""A client's Chat Completions call as it was meant.

1. Compatible hosts' own fields are read where several of them are alike (thinking, budgets, `top_k`); a field that is neither
   known nor empty is named.
2. The older kind of tools (`functions`, `function_call`, messages of the role `function`) is read as the newer.
3. What is for OpenAI's cache alone is passed over: the translated call gets its own key.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite

from ....errors import BadCall
from ....values import Endpoint, JsonObject
from ...calls.editing import items_in, text_in
from ...fields import list_of, object_of, text_of
from ..neutral import Conversation, Effort, Feature, Format, Reasoning
from .chat_history import read_messages
from .chat_parts import Notes
from .chat_tools import read_choice, read_tools

_EFFORTS: dict[str, Effort] = {
    "none": "none",
    "minimal": "minimal",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "xhigh",
    "max": "max",
}
_SWITCH = {"enabled": True, "adaptive": True, "disabled": False}
_ADAPTIVE_BUDGET = -1

_READ = frozenset(
    (
        "model", "messages", "stream", "stream_options", "tools", "tool_choice", "functions", "function_call",
        "parallel_tool_calls", "web_search_options", "response_format", "stop", "max_tokens", "max_completion_tokens",
        "temperature", "top_p", "top_k", "seed", "random_seed", "presence_penalty", "frequency_penalty", "user",
        "safety_identifier", "reasoning_effort", "reasoning", "thinking", "enable_thinking", "thinking_budget",
        "include_reasoning", "chat_template_kwargs", "extra_body", "google", "prompt_cache_key", "prompt_cache_options",
        "prompt_cache_retention", "session_id",
    )
)  # fmt: skip
_NAMED: Mapping[str, Feature] = {
    "n": Feature.CANDIDATES,
    "logprobs": Feature.LOGPROBS,
    "top_logprobs": Feature.LOGPROBS,
    "metadata": Feature.METADATA,
    "service_tier": Feature.SERVICE_TIER,
    "store": Feature.STORED,
    "audio": Feature.AUDIO,
    "modalities": Feature.AUDIO,
    "plugins": Feature.SERVER_TOOLS,
    "enable_search": Feature.SERVER_TOOLS,
    "search_options": Feature.SERVER_TOOLS,
    "guided_json": Feature.STRUCTURED,
    "guided_regex": Feature.STRUCTURED,
    "guided_grammar": Feature.STRUCTURED,
    "safe_prompt": Feature.SAFETY,
}
_PLAIN: tuple[object, ...] = (None, False, [], {}, "")
_USUAL: Mapping[str, object] = {"n": 1, "modalities": ["text"], "service_tier": "auto"}
"""Said, but nothing beyond what every host does unasked."""


def read(body: JsonObject, endpoint: Endpoint) -> Conversation:
    notes: Notes = {}
    messages = read_messages(items_in(body, "messages"), notes)
    if not messages:
        raise BadCall("`messages` says nothing: a call needs at least one message with content")
    _note_the_rest(body, notes)
    parallel = body.get("parallel_tool_calls")
    return Conversation(
        model=text_in(body, "model"),
        stream=body.get("stream") is True,
        messages=messages,
        tools=read_tools(body, notes),
        choice=read_choice(body, notes),
        parallel=parallel if isinstance(parallel, bool) else None,
        max_tokens=_count(body.get("max_completion_tokens")) or _count(body.get("max_tokens")),
        temperature=_number(body.get("temperature")),
        top_p=_number(body.get("top_p")),
        top_k=_count(body.get("top_k")),
        stops=_stops(body.get("stop")),
        seed=_whole(body.get("seed", body.get("random_seed"))),
        presence_penalty=_number(body.get("presence_penalty")),
        frequency_penalty=_number(body.get("frequency_penalty")),
        reasoning=_reasoning(body, notes),
        format=_format(object_of(body.get("response_format")), notes),
        user=text_of(body.get("safety_identifier")) or text_of(body.get("user")),
        others=tuple(notes),
    )


def _note_the_rest(body: JsonObject, notes: Notes) -> None:
    for name, value in body.items():
        if name not in _READ and value not in _PLAIN and value != _USUAL.get(name):
            feature = _NAMED.get(name, Feature.OTHER)
            notes[feature, "" if name.replace("_", " ") == feature else name] = None


def _stops(value: object) -> tuple[str, ...]:
    return tuple(stop for stop in ([value] if isinstance(value, str) else list_of(value)) if isinstance(stop, str) and stop)


def _format(asked: JsonObject, notes: Notes) -> Format | None:
    kind = text_of(asked.get("type"))
    declared = object_of(asked.get("json_schema"))
    schema = declared.get("schema") or asked.get("schema")
    if kind in ("json_object", "json_schema"):
        strict = declared.get("strict")
        return Format(
            schema=schema if isinstance(schema, dict) else None,
            name=text_of(declared.get("name")),
            description=text_of(declared.get("description")),
            strict=strict if isinstance(strict, bool) else None,
        )
    if kind not in ("", "text"):
        notes[Feature.STRUCTURED, kind] = None
    return None


# --- thinking -----------------------------------------------------------------------------------------------------------


def _reasoning(body: JsonObject, notes: Notes) -> Reasoning:
    """OpenAI has one word for it, each compatible host its own switch and budget; the first that says something counts."""
    thinking, reasoning = object_of(body.get("thinking")), object_of(body.get("reasoning"))
    google = object_of(object_of(body.get("extra_body")).get("google") or body.get("google"))
    config = object_of(google.get("thinking_config"))
    template = object_of(body.get("chat_template_kwargs"))
    word = _first_text(
        body.get("reasoning_effort"), reasoning.get("effort"), thinking.get("effort"), config.get("thinking_level")
    )
    effort = _EFFORTS.get(word.lower())
    if word and effort is None:
        notes[Feature.EFFORT, word] = None
    budget = _first_whole(
        thinking.get("budget_tokens"), reasoning.get("max_tokens"), body.get("thinking_budget"), config.get("thinking_budget")
    )
    switch = text_of(thinking.get("type"))
    on = _first_bool(
        _SWITCH.get(switch),
        reasoning.get("enabled"),
        body.get("enable_thinking"),
        template.get("enable_thinking"),
        template.get("thinking"),
        False if effort == "none" or budget == 0 else None,
    )
    excluded = reasoning.get("exclude")
    return Reasoning(
        on=on,
        effort=effort,
        budget=budget if budget is not None and budget > 0 else None,
        adaptive=switch == "adaptive" or budget == _ADAPTIVE_BUDGET,
        shown=_first_bool(
            not excluded if isinstance(excluded, bool) else None, body.get("include_reasoning"), config.get("include_thoughts")
        ),
    )


def _first_text(*values: object) -> str:
    return next((value for value in values if isinstance(value, str) and value), "")


def _first_whole(*values: object) -> int | None:
    return next((whole for value in values if (whole := _whole(value)) is not None), None)


def _first_bool(*values: object) -> bool | None:
    return next((value for value in values if isinstance(value, bool)), None)


# --- numbers ------------------------------------------------------------------------------------------------------------


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > 1e15 or not isfinite(value):
        return None
    return float(value)


def _whole(value: object) -> int | None:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63 else None


def _count(value: object) -> int | None:
    """A number of tokens that limits anything."""
    whole = _whole(value)
    return whole if whole is not None and whole > 0 else None
