"""Conversations as the clients of each dialect write them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from routecodex.routing.values import Dialect, Endpoint
from tests.routing.dialects.translation.conversations import Meant, Result, Said, Shown, Thinking, Turn, Use

Document = dict[str, Any]


def endpoint_of(meant: Meant, client: Dialect) -> Endpoint:
    if client is Dialect.GEMINI:
        return Endpoint(client, model="asked-model", stream=meant.settings.stream)
    return Endpoint(client)


def call_of(meant: Meant, client: Dialect) -> Document:
    return _CALLS[client](meant)


# --- Messages ---------------------------------------------------------------------------------------------------------


def _messages(meant: Meant) -> Document:
    settings, turns = meant.settings, list(meant.turns)
    body: Document = {"model": "asked-model", "max_tokens": settings.max_tokens, "stream": settings.stream}
    if turns and turns[0].role == "system":
        body["system"] = [_messages_part(part) for part in turns.pop(0).parts]
    body["messages"] = [{"role": turn.role, "content": [_messages_part(part) for part in turn.parts]} for turn in turns]
    if meant.tools:
        body["tools"] = [{"name": one.name, "description": one.description, "input_schema": one.schema} for one in meant.tools]
    alone = {"disable_parallel_tool_use": not settings.parallel} if settings.parallel is not None else {}
    kind = {"auto": "auto", "none": "none", "required": "tool" if settings.named else "any"}.get(settings.choice)
    if kind or alone:
        named = {"name": settings.named[0]} if settings.named else {}
        body["tool_choice"] = {"type": kind or "auto", **({} if kind == "none" else alone), **named}
    if settings.temperature is not None:
        body["temperature"] = settings.temperature
    if settings.stops:
        body["stop_sequences"] = list(settings.stops)
    if settings.format:
        body["output_config"] = {"format": {"type": "json_schema", "schema": settings.format}}
    if settings.thinks:
        body["thinking"] = {"type": "enabled", "budget_tokens": 2048}
    return body


def _messages_part(part: Any) -> Document:
    match part:
        case Said():
            return {"type": "text", "text": part.text}
        case Shown("image"):
            return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": part.data}}
        case Shown("link"):
            return {"type": "image", "source": {"type": "url", "url": part.data}}
        case Shown("plain"):
            source = {"type": "text", "media_type": "text/plain", "data": part.data}
            return {"type": "document", "source": source, **({"title": part.name} if part.name else {})}
        case Shown():
            source = {"type": "base64", "media_type": "application/pdf", "data": part.data}
            return {"type": "document", "source": source, "title": part.name}
        case Thinking():
            return {"type": "thinking", "thinking": part.text, "signature": part.signature}
        case Use():
            return {"type": "tool_use", "id": part.id, "name": part.name, "input": part.arguments}
        case Result():
            content: Any = [_messages_part(one) for one in part.parts]
            if len(content) == 1 and content[0]["type"] == "text":
                content = content[0]["text"]
            return {"type": "tool_result", "tool_use_id": part.id, "content": content, "is_error": part.error}
    raise AssertionError(part)


# --- Chat -------------------------------------------------------------------------------------------------------------


def _chat(meant: Meant) -> Document:
    settings = meant.settings
    body: Document = {"model": "asked-model", "messages": [one for turn in meant.turns for one in _chat_messages(turn)]}
    if meant.tools:
        body["tools"] = [
            {"type": "custom", "custom": {"name": one.name, "description": one.description}}
            if one.custom
            else {"type": "function", "function": _function(one)}
            for one in meant.tools
        ]
    entries = [_chat_choice(name, meant) for name in settings.named]
    if len(entries) > 1:
        body["tool_choice"] = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": entries}}
    elif settings.choice:
        body["tool_choice"] = entries[0] if entries else settings.choice
    if settings.format is not None:
        named = {"name": "answer", "schema": settings.format, "strict": True}
        body["response_format"] = {"type": "json_schema", "json_schema": named} if settings.format else {"type": "json_object"}
    body |= _openai_settings(meant, "max_completion_tokens")
    if settings.stops:
        body["stop"] = list(settings.stops)
    if settings.seed is not None:
        body["seed"] = settings.seed
    if settings.thinks:
        body["reasoning_effort"] = "high"
    return body


def _function(tool: Any) -> Document:
    return {"name": tool.name, "description": tool.description, "parameters": tool.schema}


def _chat_choice(name: str, meant: Meant) -> Document:
    kind = "custom" if any(tool.custom and tool.name == name for tool in meant.tools) else "function"
    return {"type": kind, kind: {"name": name}}


def _openai_settings(meant: Meant, limit: str) -> Document:
    settings = meant.settings
    given: Document = {
        limit: settings.max_tokens,
        "parallel_tool_calls": settings.parallel,
        "temperature": settings.temperature,
        "stream": settings.stream,
    }
    return {name: value for name, value in given.items() if value is not None}


def _chat_messages(turn: Turn) -> Iterator[Document]:
    results = [part for part in turn.parts if isinstance(part, Result)]
    rest = [part for part in turn.parts if not isinstance(part, Result)]
    for result in results:
        content = [_chat_part(one) for one in result.parts]
        plain = len(content) == 1 and content[0]["type"] == "text"
        yield {"role": "tool", "tool_call_id": result.id, "content": content[0]["text"] if plain else content}
    uses = [part for part in rest if isinstance(part, Use)]
    thoughts = [part for part in rest if isinstance(part, Thinking)]
    content = [_chat_part(part) for part in rest if isinstance(part, Said | Shown)]
    if not rest:
        return
    role = "developer" if turn.role == "system" and len(content) > 1 else turn.role
    message: Document = {"role": role, "content": content or None}
    if len(content) == 1 and content[0]["type"] == "text":
        message["content"] = content[0]["text"]
    if thoughts:
        message["reasoning_content"] = thoughts[0].text
    if uses:
        message["tool_calls"] = [_chat_call(use) for use in uses]
    yield message


def _chat_call(use: Use) -> Document:
    if use.custom:
        return {"id": use.id, "type": "custom", "custom": {"name": use.name, "input": use.arguments}}
    arguments = json.dumps(use.arguments, indent=1) if use.arguments else ("", "{}", " { } ")[use.number % 3]
    return {"id": use.id, "type": "function", "function": {"name": use.name, "arguments": arguments}}


def _chat_part(part: Any) -> Document:
    match part:
        case Said():
            return {"type": "text", "text": part.text}
        case Shown("image"):
            return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{part.data}"}}
        case Shown("link"):
            return {"type": "image_url", "image_url": {"url": part.data}}
        case Shown():
            file = {"filename": part.name, "file_data": f"data:application/pdf;base64,{part.data}"}
            return {"type": "file", "file": file}
    raise AssertionError(part)


# --- Responses --------------------------------------------------------------------------------------------------------


def _responses(meant: Meant) -> Document:
    settings, turns = meant.settings, list(meant.turns)
    body: Document = {"model": "asked-model", "store": False}
    if turns and turns[0].role == "system" and len(turns[0].parts) == 1:
        body["instructions"] = turns.pop(0).parts[0].text  # type: ignore[union-attr]
    body["input"] = [item for turn in turns for item in _items(turn)]
    if meant.tools:
        body["tools"] = _responses_tools(meant)
    entries = [{"type": _chat_choice(name, meant)["type"], "name": name} for name in settings.named]
    if len(entries) > 1:
        body["tool_choice"] = {"type": "allowed_tools", "mode": "required", "tools": entries}
    elif settings.choice:
        body["tool_choice"] = entries[0] if entries else settings.choice
    if settings.format is not None:
        named = {"type": "json_schema", "name": "answer", "schema": settings.format, "strict": True}
        body["text"] = {"format": named if settings.format else {"type": "json_object"}}
    if settings.thinks:
        body |= {"reasoning": {"effort": "high", "summary": "auto"}, "include": ["reasoning.encrypted_content"]}
    return body | _openai_settings(meant, "max_output_tokens")


def _responses_tools(meant: Meant) -> list[Document]:
    tools: list[Document] = []
    for one in meant.tools:
        if one.custom:
            tool: Document = {"type": "custom", "name": one.name, "description": one.description}
        else:
            tool = {"type": "function", **_function(one), "strict": False}
        tools.append({"type": "namespace", "name": one.namespace, "tools": [tool]} if one.namespace else tool)
    return tools


def _items(turn: Turn) -> Iterator[Document]:
    said: list[Document] = []
    role = {"system": "developer"}.get(turn.role, turn.role)
    for part in turn.parts:
        match part:
            case Said() | Shown():
                said.append(_responses_part(part, "output_text" if role == "assistant" else "input_text"))
            case Thinking():
                sealed = {"encrypted_content": part.signature} if part.signature else {}
                yield {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": part.text}], **sealed}
            case Use():
                if said:
                    yield {"type": "message", "role": role, "content": said}
                    said = []
                named = {"namespace": part.namespace} if part.namespace else {}
                written = {"input": part.arguments} if part.custom else {"arguments": json.dumps(part.arguments)}
                kind = "custom_tool_call" if part.custom else "function_call"
                yield {"type": kind, "call_id": part.id, "name": part.name, **named, **written}
            case Result():
                output: Any = [_responses_part(one, "input_text") for one in part.parts]
                if len(output) == 1 and output[0]["type"] == "input_text":
                    output = output[0]["text"]
                kind = "custom_tool_call_output" if part.custom else "function_call_output"
                yield {"type": kind, "call_id": part.id, "output": output}
    if said:
        yield {"type": "message", "role": role, "content": said}


def _responses_part(part: Said | Shown, kind: str) -> Document:
    match part:
        case Said():
            return {"type": kind, "text": part.text}
        case Shown("image"):
            return {"type": "input_image", "detail": "auto", "image_url": f"data:image/png;base64,{part.data}"}
        case Shown("link"):
            return {"type": "input_image", "detail": "auto", "image_url": part.data}
        case Shown():
            return {"type": "input_file", "filename": part.name, "file_data": f"data:application/pdf;base64,{part.data}"}


# --- Gemini -----------------------------------------------------------------------------------------------------------


def _gemini(meant: Meant) -> Document:
    settings, turns = meant.settings, list(meant.turns)
    body: Document = {}
    if turns and turns[0].role == "system":
        body["systemInstruction"] = {"parts": [_gemini_part(part) for part in turns.pop(0).parts]}
    roles = {"assistant": "model"}
    body["contents"] = [
        {"role": roles.get(turn.role, turn.role), "parts": [_gemini_part(one) for one in turn.parts]} for turn in turns
    ]
    if meant.tools:
        body["tools"] = [
            {
                "functionDeclarations": [
                    {"name": one.name, "description": one.description, "parametersJsonSchema": one.schema} for one in meant.tools
                ]
            }
        ]
    if settings.choice:
        mode = {"auto": "AUTO", "none": "NONE", "required": "ANY"}[settings.choice]
        allowed = {"allowedFunctionNames": list(settings.named)} if settings.named else {}
        body["toolConfig"] = {"functionCallingConfig": {"mode": mode, **allowed}}
    config: Document = {
        "maxOutputTokens": settings.max_tokens,
        "temperature": settings.temperature,
        "stopSequences": list(settings.stops) or None,
        "seed": settings.seed,
        "responseMimeType": None if settings.format is None else "application/json",
        "responseJsonSchema": settings.format or None,
        "thinkingConfig": {"thinkingBudget": 2048, "includeThoughts": True} if settings.thinks else None,
    }
    body["generationConfig"] = {name: value for name, value in config.items() if value is not None}
    return body


def _gemini_part(part: Any) -> Document:
    match part:
        case Said():
            return {"text": part.text}
        case Shown("image"):
            return {"inlineData": {"mimeType": "image/png", "data": part.data}}
        case Shown("link"):
            return {"fileData": {"mimeType": "image/png", "fileUri": part.data}}
        case Shown():
            return {"inlineData": {"mimeType": "application/pdf", "data": part.data}}
        case Thinking():
            sealed = {"thoughtSignature": part.signature} if part.signature else {}
            return {"text": part.text, "thought": True, **sealed}
        case Use():
            identity = {"id": part.id} if part.id else {}
            return {"functionCall": {**identity, "name": part.name, "args": part.arguments}}
        case Result():
            return _gemini_result(part)
    raise AssertionError(part)


def _gemini_result(result: Result) -> Document:
    text = next((one.text for one in result.parts if isinstance(one, Said)), "")
    media = [_gemini_part(one) for one in result.parts if isinstance(one, Shown)]
    identity = {"id": result.id} if result.id else {}
    response = {"error" if result.error else "output": text}
    answer: Document = {**identity, "name": result.name, "response": response}
    return {"functionResponse": {**answer, **({"parts": media} if media else {})}}


_CALLS: Mapping[Dialect, Callable[[Meant], Document]] = {
    Dialect.MESSAGES: _messages,
    Dialect.CHAT: _chat,
    Dialect.RESPONSES: _responses,
    Dialect.GEMINI: _gemini,
}
