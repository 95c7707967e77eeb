"""Calls as the vendors' own types allow them. Executed by a Python that has the SDKs; driven by `tests/sdk/test_shapes.py`.

One JSON command a line on stdin, one JSON list a line on stdout:

    {"dialect": "anthropic-messages", "body": {…}}   → what is wrong with it: ["messages[0].content: an unknown field", …]
    {"dialect": "anthropic-messages"}                → every field that a call may have
    {"dialect": "anthropic-messages", "answer": {…}} → what is wrong with it
    {"dialect": "anthropic-messages", "event": {…}}  → what is wrong with one event of a stream

Nothing beyond the types is allowed, whatever the vendor's server would overlook: unknown fields, other types, words that are not
in a list of words. What these types are wrong about stands with the test.
"""

from __future__ import annotations

import functools
import json
import sys
import types as python_types
import typing
import warnings
from collections import abc
from typing import Annotated, Any, Literal, NotRequired, Required, Union

import pydantic
from anthropic.types import message_create_params as messages
from anthropic.types.beta import BetaMessage, BetaRawMessageStreamEvent
from anthropic.types.beta import message_create_params as beta_messages
from google.genai import types
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.chat import completion_create_params as chat
from openai.types.responses import Response, ResponseStreamEvent
from openai.types.responses import response_create_params as responses
from typing_extensions import ReadOnly, is_typeddict

_WRAPPERS = (Required, NotRequired, ReadOnly)
_LISTS = (list, abc.Iterable, abc.Sequence, abc.Collection)
_MAPPINGS = (dict, abc.Mapping)


class Gemini(pydantic.BaseModel):
    """A generateContent call as the REST API takes it; the SDK flattens it, its parts are the SDK's."""

    model_config = pydantic.ConfigDict(extra="forbid")

    contents: list[types.Content]
    systemInstruction: types.Content | None = None
    tools: list[types.Tool] | None = None
    toolConfig: types.ToolConfig | None = None
    safetySettings: list[types.SafetySetting] | None = None
    generationConfig: types.GenerationConfig | None = None
    cachedContent: str | None = None


SHAPES: dict[str, Any] = {
    "anthropic-messages": messages.MessageCreateParams | beta_messages.MessageCreateParams,
    "openai-chat": chat.CompletionCreateParams,
    "openai-responses": responses.ResponseCreateParams,
    "gemini-chat": Gemini,
}


ANSWERS: dict[str, dict[str, Any]] = {
    "anthropic-messages": {"answer": BetaMessage, "event": BetaRawMessageStreamEvent},
    "openai-chat": {"answer": ChatCompletion, "event": ChatCompletionChunk},
    "openai-responses": {"answer": Response, "event": ResponseStreamEvent},
}
"""Fields that these do not know are allowed: the SDKs keep them."""


def problems(value: Any, hint: Any, where: str = "") -> list[str]:
    """What of the value the type does not allow."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any or hint is object or isinstance(hint, typing.TypeVar):
        return []
    if origin is Annotated or origin in _WRAPPERS:
        return problems(value, arguments[0], where)
    if hasattr(hint, "__value__"):  # a name for another type
        return problems(value, hint.__value__, where)
    if origin is Literal:
        allowed = any(value == one and type(value) is type(one) for one in arguments)
        return [] if allowed else [f"{where}: {_short(value)} is none of {_short(arguments)}"]
    if origin in (Union, python_types.UnionType):
        return _of_several(value, arguments, where)
    if is_typeddict(hint):
        return _of_fields(value, hint, where)
    if isinstance(hint, type) and issubclass(hint, pydantic.BaseModel):
        return _of_model(value, hint, where)
    return _of_plain_type(value, hint, origin, arguments, where)


def _of_plain_type(value: Any, hint: Any, origin: Any, arguments: tuple[Any, ...], where: str) -> list[str]:
    if origin in _LISTS or _is_sequence_protocol(origin):
        if not isinstance(value, list):
            return [f"{where}: {_short(value)} is no list"]
        return [one for number, item in enumerate(value) for one in problems(item, arguments[0], f"{where}[{number}]")]
    if origin in _MAPPINGS or hint is dict:
        if not isinstance(value, dict):
            return [f"{where}: {_short(value)} is no object"]
        child = arguments[1] if arguments else Any
        return [one for name, item in value.items() for one in problems(item, child, f"{where}.{name}")]
    wanted = {None: type(None), float: (int, float)}.get(hint, hint)
    fits = isinstance(wanted, type | tuple) and isinstance(value, wanted) and (hint is bool or not isinstance(value, bool))
    return [] if fits else [f"{where}: {_short(value)} is no {getattr(hint, '__name__', hint)}"]


def _is_sequence_protocol(origin: Any) -> bool:
    return getattr(origin, "__name__", "") == "SequenceNotStr"


def _of_several(value: Any, hints: tuple[Any, ...], where: str) -> list[str]:
    """Nothing where one of them fits; else what is wrong by the one that is meant."""
    found = []
    for hint in hints:
        if _is_another(value, hint):
            continue
        wrong = problems(value, hint, where)
        if not wrong:
            return []
        found.append(wrong)
    return min(found, key=len, default=[f"{where}: {_short(value)} is nothing that is known"])


def _is_another(value: Any, hint: Any) -> bool:
    """One of the value's words (its `type`, its `role`) says that it is not meant."""
    if isinstance(hint, type) and issubclass(hint, pydantic.BaseModel) and hint is not Gemini:
        return True  # what the SDK itself puts back into its calls
    if not is_typeddict(hint) or not isinstance(value, dict):
        return is_typeddict(hint)
    words = ((name, one) for name, one in _fields(hint)[0].items() if name in ("type", "role") and name in value)
    return any(problems(value[name], one) for name, one in words)


@functools.cache
def _fields(hint: Any) -> tuple[dict[str, Any], frozenset[str]]:
    """Types by name, and the names that must be there. Their modules write annotations as text: the class itself cannot tell."""
    hints = typing.get_type_hints(hint, include_extras=True)
    needed = {name for name, one in hints.items() if typing.get_origin(one) is Required}
    optional = {name for name, one in hints.items() if typing.get_origin(one) is NotRequired}
    return hints, frozenset(needed | (set(hint.__required_keys__) - optional))


def _of_fields(value: Any, hint: Any, where: str) -> list[str]:
    if not isinstance(value, dict):
        return [f"{where}: {_short(value)} is no object"]
    hints, needed = _fields(hint)
    dot = f"{where}." if where else ""
    found = [f"{dot}{name}: missing" for name in sorted(needed - value.keys())]
    for name, item in value.items():
        found += problems(item, hints[name], dot + name) if name in hints else [f"{dot}{name}: an unknown field"]
    return found


def _of_model(value: Any, hint: type[pydantic.BaseModel], where: str) -> list[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a word that is in no list is only a warning to the SDK
        try:
            hint.model_validate_json(json.dumps(value), strict=True, by_alias=True, by_name=False)
        except pydantic.ValidationError as error:
            return [f"{where}{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()]
        except UserWarning as warning:
            return [f"{where}: {warning}"]
    return []


def unread(value: Any, hint: Any) -> list[str]:
    """What of an answer is none of the vendor's own types."""
    try:
        pydantic.TypeAdapter(hint).validate_json(json.dumps(value), strict=True)
    except pydantic.ValidationError as error:
        return [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()]
    return []


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 90 else f"{text[:90]}…"


def fields(hint: Any) -> set[str]:
    """Every field that a call may have."""
    if hint is Gemini:
        return set(Gemini.model_fields)
    if is_typeddict(hint):
        return set(_fields(hint)[0])
    return {name for one in typing.get_args(hint) for name in fields(one)}


def main() -> None:
    for line in sys.stdin:
        command = json.loads(line)
        kind = next((kind for kind in ("answer", "event") if kind in command), "")
        if kind:
            print(json.dumps(unread(command[kind], ANSWERS[command["dialect"]][kind])), flush=True)
            continue
        hint = SHAPES[command["dialect"]]
        told = problems(command["body"], hint) if "body" in command else sorted(fields(hint))
        print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
