"""A conversation as a call of OpenAI's Responses.

1. Nothing is stored (`store: false`): the whole history goes along every time, and so does sealed reasoning, in both directions.
2. The system messages at the beginning are the `instructions`; where nothing else is said, they are developer messages.
3. The cache finds the call by its session. Cache marks are not written: the API caches by itself, and older models refuse them.
4. What a model of a known family refuses is left out (`responses_models`).
"""

from __future__ import annotations

from collections.abc import Sequence

from ....errors import BadCall
from ....values import JsonObject
from ..ids import digest, fitting
from ..neutral import Conversation, Feature, Format, LeftOut, Message, Text, ToolResult, Written
from .responses_items import write_items
from .responses_models import Traits, traits_of, write_reasoning
from .responses_tools import LONGEST, NAME, Names, write_choice, write_tools

_LONGEST_KEY = 64
_LEAST_TOKENS = 16
"""The API refuses a smaller `max_output_tokens`."""
_IN_JSON: JsonObject = {
    "type": "message",
    "role": "developer",
    "content": [{"type": "input_text", "text": "Answer with JSON alone."}],
}
"""The API refuses `json_object` where no message speaks of JSON. It always stands first, so that the history keeps its bytes."""


def write(conversation: Conversation, *, model: str, session: str, maker: str) -> Written:
    left, names, traits = LeftOut(), Names(), traits_of(model)
    tools = write_tools(conversation.tools, names, left)
    body: JsonObject = {"model": model}
    body |= _said(conversation, names, left, maker)
    body |= write_choice(tools, conversation.choice, conversation.parallel, left)
    if conversation.format is not None:
        body["text"] = {"format": _format(conversation.format)}
    reasoning = write_reasoning(conversation.reasoning, traits, left)
    if reasoning:
        body["reasoning"] = reasoning
    body |= _limits(conversation, traits, left)
    body["store"] = False
    if traits.reasons and reasoning.get("effort") != "none":
        body["include"] = ["reasoning.encrypted_content"]
    if session:
        body["prompt_cache_key"] = session if len(session) <= _LONGEST_KEY else digest(session, 24)
    body["stream"] = conversation.stream
    _name_the_rest(conversation, session, left)
    return Written(body, left, names.changed)


def _said(conversation: Conversation, names: Names, left: LeftOut, maker: str) -> JsonObject:
    instructions, others = _leading(conversation.messages)
    items = write_items(others, names, left, maker=maker)
    if not items:
        instructions, items = [], write_items(conversation.messages, names, left, maker=maker)
    if not items:
        raise BadCall("The call says nothing: it has neither text nor files")
    if conversation.format is not None and conversation.format.schema is None:
        items = [_IN_JSON, *items]
    if others and others[-1].role == "assistant" and any(isinstance(block, Text) for block in others[-1].blocks[-1:]):
        left.add(Feature.OTHER, "an answer already begun")
    text = "\n\n".join(instructions)
    return {"instructions": text, "input": items} if text else {"input": items}


def _leading(messages: Sequence[Message]) -> tuple[list[str], Sequence[Message]]:
    """The texts of the system messages at the beginning, and all others. (One that shows files is a message.)"""
    texts: list[str] = []
    for index, message in enumerate(messages):
        found = [block.text for block in message.blocks if isinstance(block, Text)]
        if message.role != "system" or len(found) != len(message.blocks):
            return texts, messages[index:]
        texts += [text for text in found if text.strip()]
    return texts, ()


def _format(wanted: Format) -> JsonObject:
    if wanted.schema is None:
        return {"type": "json_object"}
    written: JsonObject = {
        "type": "json_schema",
        "name": fitting(wanted.name or "answer", NAME, LONGEST),
        "schema": wanted.schema,
    }
    if wanted.description:
        written["description"] = wanted.description
    if wanted.strict is not None:
        written["strict"] = wanted.strict
    return written


def _limits(conversation: Conversation, traits: Traits, left: LeftOut) -> JsonObject:
    limits: JsonObject = {}
    if conversation.max_tokens is not None:
        limits["max_output_tokens"] = max(_LEAST_TOKENS, conversation.max_tokens)
    for name, value in (("temperature", conversation.temperature), ("top_p", conversation.top_p)):
        if value is None:
            continue
        if traits.sampling:
            limits[name] = min(max(value, 0), 2 if name == "temperature" else 1)
        else:
            left.add(Feature.TEMPERATURE if name == "temperature" else Feature.OTHER, f"{name}: this model takes none")
    return limits


def _name_the_rest(conversation: Conversation, session: str, left: LeftOut) -> None:
    """What the dialect has no word for."""
    unsaid = (
        (Feature.TOP_K, conversation.top_k is not None),
        (Feature.STOPS, conversation.stops),
        (Feature.SEED, conversation.seed is not None),
        (Feature.PENALTIES, conversation.presence_penalty or conversation.frequency_penalty),
        (Feature.CACHE_MARKS, _is_marked(conversation)),
    )
    for feature, said in unsaid:
        if said:
            left.add(feature)
    if conversation.user and conversation.user != session:
        left.add(Feature.METADATA, "user")
    for feature, what in conversation.others:
        left.add(feature, what)


def _is_marked(conversation: Conversation) -> bool:
    blocks = (block for message in conversation.messages for block in message.blocks)
    return any(tool.cached for tool in conversation.tools) or any(
        getattr(block, "cached", False) or (isinstance(block, ToolResult) and any(inner.cached for inner in block.blocks))
        for block in blocks
    )
