"""A conversation as a call of Chat Completions.

1. `max_completion_tokens` for OpenAI's models since o1, `max_tokens` for all others: the first refuse the second, most others do
   not know the first.
2. A stream's usage is always asked for; who listens decides whether the client sees it.
3. `prompt_cache_key` is the session's id. Cache marks have no place here: the hosts cache by themselves.
4. An assistant's unfinished answer at the end is sent as it is; only Mistral's models go on with it.
"""

from __future__ import annotations

import re

from ....errors import BadCall
from ....jsonbytes import dumps
from ....values import JsonObject
from .. import ids
from ..neutral import Conversation, Feature, Format, LeftOut, Text, Written
from .chat_history import write_messages
from .chat_hosts import Host, host_of, limits_completion, most_output, samples_freely
from .chat_thinking import thinks, write_reasoning
from .chat_tools import fit_tools, fitting_name, write_tools

_KEY = re.compile(r"[\x21-\x7e]+")
_LONGEST_KEY = 64
_WARMEST = 2.0
_JSON_ONLY = "Answer with one JSON value and nothing else."
_JSON_OF_SCHEMA = "Answer with one JSON value and nothing else. It must match this JSON schema:\n{}"


def write(conversation: Conversation, *, model: str, session: str, maker: str) -> Written:
    left = LeftOut()
    host = host_of(maker, model)
    tools = fit_tools(conversation.tools, host, left)
    messages = write_messages(
        conversation.messages,
        tools,
        maker=maker,
        thinks=thinks(conversation.reasoning),
        left=left,
        instruction=_format_instruction(conversation, host, left),
    )
    if not messages:
        raise BadCall("The call has no message that can be passed on: write one with text in it")
    body: JsonObject = {"model": model, "messages": messages}
    body |= write_tools(tools, conversation.choice, conversation.parallel, left)
    if asked := conversation.max_tokens:
        most = most_output(model, asked)
        body["max_completion_tokens" if limits_completion(model) else "max_tokens"] = most
        if most != asked:
            left.add(Feature.OTHER, f"a limit of {asked} tokens: {most} is the model's")
    body |= write_reasoning(conversation.reasoning, host, model, tools="tools" in body, stream=conversation.stream, left=left)
    body |= _sampling(conversation, host, free=samples_freely(model) or body.get("reasoning_effort") == "none", left=left)
    body |= _format(conversation.format, host)
    if conversation.stream:
        body["stream"] = True
        if host.usage_on_request:
            body["stream_options"] = {"include_usage": True}
    if session and host.cache_key:
        body["prompt_cache_key"] = ids.fitting(session, _KEY, _LONGEST_KEY)
    _name_the_rest(conversation, host, session, left)
    return Written(body, left, tools.renamed)


def _sampling(conversation: Conversation, host: Host, *, free: bool, left: LeftOut) -> JsonObject:
    body: JsonObject = {}
    temperature = conversation.temperature
    if temperature is not None and (free or temperature == 1):
        body["temperature"] = min(max(temperature, 0.0), _WARMEST)
        if body["temperature"] != temperature:
            left.add(Feature.TEMPERATURE, f"{temperature:g}")
    elif temperature is not None:
        left.add(Feature.TEMPERATURE, f"{temperature:g}: the model takes 1 alone")
    if conversation.top_p is not None and (free or conversation.top_p == 1):
        body["top_p"] = conversation.top_p
    elif conversation.top_p is not None:
        left.add(Feature.TEMPERATURE, "top_p")
    if conversation.top_k is not None:
        if host.top_k:
            body["top_k"] = conversation.top_k
        else:
            left.add(Feature.TOP_K)
    if conversation.seed is not None:
        if host.seed:
            body[host.seed] = conversation.seed
        else:
            left.add(Feature.SEED)
    for name, value in (
        ("presence_penalty", conversation.presence_penalty),
        ("frequency_penalty", conversation.frequency_penalty),
    ):
        if value is not None and free and host.penalties:
            body[name] = value
        elif value:
            left.add(Feature.PENALTIES, name)
    return body | _stops(conversation.stops, host, free=free, left=left)


def _stops(stops: tuple[str, ...], host: Host, *, free: bool, left: LeftOut) -> JsonObject:
    if not stops:
        return {}
    if not free:
        left.add(Feature.STOPS)
        return {}
    for dropped in stops[host.stops :]:
        left.add(Feature.MANY_STOPS, dropped)
    return {"stop": list(stops[: host.stops])}


def _format(asked: Format | None, host: Host) -> JsonObject:
    if asked is None:
        return {}
    if asked.schema is None or not host.schemas:
        return {"response_format": {"type": "json_object"}}
    declared: JsonObject = {"name": fitting_name(asked.name or "answer")}
    if asked.description:
        declared["description"] = asked.description
    declared["schema"] = asked.schema
    if asked.strict is not None:
        declared["strict"] = asked.strict
    return {"response_format": {"type": "json_schema", "json_schema": declared}}


def _format_instruction(conversation: Conversation, host: Host, left: LeftOut) -> str:
    """What is told in words: a schema that the host does not take; the word JSON, without which OpenAI refuses JSON mode."""
    asked = conversation.format
    if asked is None:
        return ""
    if asked.schema is not None:
        if host.schemas:
            return ""
        left.add(Feature.STRUCTURED, "the schema is told, not enforced")
        return _JSON_OF_SCHEMA.format(dumps(asked.schema).decode())
    # up to the first message alone: what is said later must not change the beginning, by which the hosts cache
    first = next((place for place, message in enumerate(conversation.messages) if message.role != "system"), 0)
    said = (block.text for message in conversation.messages[: first + 1] for block in message.blocks if isinstance(block, Text))
    return "" if any("json" in text.lower() for text in said) else _JSON_ONLY


def _name_the_rest(conversation: Conversation, host: Host, session: str, left: LeftOut) -> None:
    for feature, what in conversation.others:
        left.add(feature, what)
    if conversation.user and conversation.user != session:
        left.add(Feature.METADATA, "user")
    marked = any(getattr(block, "cached", False) for message in conversation.messages for block in message.blocks)
    if marked or any(tool.cached for tool in conversation.tools):
        left.add(Feature.CACHE_MARKS)
    last = conversation.messages[-1]
    if last.role == "assistant" and last.blocks and isinstance(last.blocks[-1], Text) and not host.strict_order:
        left.add(Feature.OTHER, "going on with the assistant's last message")
