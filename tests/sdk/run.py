"""Talks with the vendors' official SDKs. Executed by a Python that has them; driven by `tests/system/test_sdks.py` and others.

One JSON command a line on stdin, one JSON result a line on stdout:

    {"talk": "1", "sdk": "anthropic", "way": "stream", "say": "hello"}      a user message; the SDK's objects stay in the history
    {"talk": "1", "sdk": "anthropic", "way": "stream", "give": "done"}      the result of every tool that was called
    → {"text": …, "thinking": …, "calls": [{"name": …, "arguments": …}], "ids": …, "stop": …, "why": cut short,
       "usage": [input, output], "cached": of the input, "kinds": what it is made of}
    → {"error": {"type": "BadRequestError", "status": 400, "message": …}, "text": what had come before it}

A list of results gives each call its own.

Ways: `json`; `stream` (the events as they come); `helper` (the SDK's own accumulation of a stream).
"""

from __future__ import annotations

import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from itertools import groupby
from typing import Any

import anthropic
import openai
from google import genai
from google.genai import errors, types

KEY = "sk-client-secret"
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
Result = dict[str, Any]


class Broken(Exception):
    """An error in the middle of a stream, and what had come before it."""

    def __init__(self, cause: Exception, text: str) -> None:
        super().__init__(str(cause))
        self.cause, self.text = cause, text


def agree(told: str, whole: str) -> None:
    """What a helper tells event by event is what it puts together."""
    if told != whole:
        raise AssertionError(f"the helper's events say {told!r}, its answer says {whole!r}")


class Talk(ABC):
    """A conversation with one SDK; subclasses know the SDK."""

    model = "client-model"

    def __init__(self) -> None:
        self.history: list[Any] = []
        self.calls: list[Any] = []

    def say(self, text: str, way: str) -> Result:
        self.history.append(self.user(text))
        return self.ask(way)

    def follow(self, previous: str, text: str, way: str) -> Result:
        raise TypeError(f"{type(self).__name__} has no answers to follow")

    def give(self, result: str | list[str], way: str) -> Result:
        self.history += self.results([result] * len(self.calls) if isinstance(result, str) else result)
        return self.ask(way)

    def user(self, text: str) -> Any:
        return {"role": "user", "content": text}

    @abstractmethod
    def results(self, results: list[str]) -> list[Any]: ...

    @abstractmethod
    def ask(self, way: str) -> Result: ...


class Anthropic(Talk):
    client = anthropic.Anthropic(api_key=KEY)

    def results(self, results: list[str]) -> list[Any]:
        given = [
            {"type": "tool_result", "tool_use_id": call.id, "content": result}
            for call, result in zip(self.calls, results, strict=True)
        ]
        return [{"role": "user", "content": given}]

    def ask(self, way: str) -> Result:
        tools = [{"name": "read", "description": "Reads a file.", "input_schema": SCHEMA}]
        asked: dict[str, Any] = {"model": self.model, "max_tokens": 500, "messages": self.history, "tools": tools}
        match way:
            case "json":
                message = self.client.messages.create(**asked)
            case "helper":
                with self.client.messages.stream(**asked) as stream:
                    deltas = "".join(stream.text_stream)
                    message = stream.get_final_message()
                agree(deltas, "".join(block.text for block in message.content if block.type == "text"))
            case _:
                return self._events(self.client.messages.create(**asked, stream=True))
        self.calls = [block for block in message.content if block.type == "tool_use"]
        self.history.append({"role": "assistant", "content": message.content})
        return {
            "text": "".join(block.text for block in message.content if block.type == "text"),
            "thinking": "".join(block.thinking for block in message.content if block.type == "thinking"),
            "calls": [{"name": call.name, "arguments": call.input} for call in self.calls],
            "ids": [call.id for call in self.calls],
            "stop": message.stop_reason,
            "usage": [message.usage.input_tokens, message.usage.output_tokens],
            "cached": message.usage.cache_read_input_tokens,
            "kinds": [block.type for block in message.content],
        }

    def _events(self, events: Any) -> Result:
        text, kinds, usage = "", [], [0, 0]
        try:
            for event in events:
                kinds.append(event.type)
                if event.type == "content_block_delta" and event.delta.type == "text_delta":
                    text += event.delta.text
                elif event.type in ("message_start", "message_delta"):
                    told = event.message.usage if event.type == "message_start" else event.usage
                    usage = [told.input_tokens or usage[0], told.output_tokens]
        except anthropic.APIError as error:
            raise Broken(error, text) from error
        self.history.append({"role": "assistant", "content": text})
        starts, ends = kinds.count("message_start"), kinds.count("message_stop")
        return {"text": text, "stop": kinds[-1], "starts": starts, "ends": ends, "usage": usage}


class Chat(Talk):
    client = openai.OpenAI(api_key=KEY)

    def results(self, results: list[str]) -> list[Any]:
        return [
            {"role": "tool", "tool_call_id": call.id, "content": result} for call, result in zip(self.calls, results, strict=True)
        ]

    def ask(self, way: str) -> Result:
        tools = [{"type": "function", "function": {"name": "read", "description": "Reads a file.", "parameters": SCHEMA}}]
        asked: dict[str, Any] = {"model": self.model, "messages": self.history, "tools": tools}
        counted = {"stream_options": {"include_usage": True}}
        match way:
            case "json":
                answer = self.client.chat.completions.create(**asked)
            case "helper":
                with self.client.chat.completions.stream(**asked, **counted) as stream:
                    deltas = "".join(event.delta for event in stream if event.type == "content.delta")
                    answer = stream.get_final_completion()
                agree(deltas, answer.choices[0].message.content or "")
            case _:
                return self._chunks(self.client.chat.completions.create(**asked, **counted, stream=True))
        choice = answer.choices[0]
        self.calls = list(choice.message.tool_calls or [])
        self.history.append(choice.message)
        return {
            "text": choice.message.content or "",
            "thinking": getattr(choice.message, "reasoning_content", None) or "",
            "calls": [{"name": call.function.name, "arguments": json.loads(call.function.arguments)} for call in self.calls],
            "ids": [call.id for call in self.calls],
            "stop": choice.finish_reason,
            "usage": [answer.usage.prompt_tokens, answer.usage.completion_tokens] if answer.usage else None,
            "cached": answer.usage.prompt_tokens_details.cached_tokens
            if answer.usage and answer.usage.prompt_tokens_details
            else None,
            "kinds": ["message"] * len(answer.choices),
        }

    def _chunks(self, chunks: Any) -> Result:
        text, ends, usage = "", [], None
        try:
            for chunk in chunks:
                usage = [chunk.usage.prompt_tokens, chunk.usage.completion_tokens] if chunk.usage else usage
                for choice in chunk.choices:
                    text += choice.delta.content or ""
                    ends += [choice.finish_reason] if choice.finish_reason else []
        except openai.APIError as error:
            raise Broken(error, text) from error
        self.history.append({"role": "assistant", "content": text})
        return {"text": text, "stop": ends[-1], "starts": 1, "ends": len(ends), "usage": usage}


class Responses(Talk):
    client = openai.OpenAI(api_key=KEY)
    previous: str | None = None

    def follow(self, previous: str, text: str, way: str) -> Result:
        """Only what is new is sent; the provider has the rest."""
        self.previous, self.history = previous, [self.user(text)]
        return self.ask(way)

    def results(self, results: list[str]) -> list[Any]:
        return [
            {"type": "function_call_output", "call_id": call.call_id, "output": result}
            for call, result in zip(self.calls, results, strict=True)
        ]

    def ask(self, way: str) -> Result:
        tools = [{"type": "function", "name": "read", "description": "Reads a file.", "parameters": SCHEMA, "strict": False}]
        asked: dict[str, Any] = {"model": self.model, "input": self.history, "tools": tools, "store": False}
        if self.previous is not None:
            asked |= {"previous_response_id": self.previous}
        match way:
            case "json":
                answer = self.client.responses.create(**asked)
            case "helper":
                with self.client.responses.stream(**asked) as stream:
                    deltas = "".join(event.delta for event in stream if event.type == "response.output_text.delta")
                    answer = stream.get_final_response()
                agree(deltas, answer.output_text)
            case _:
                return self._events(self.client.responses.create(**asked, stream=True))
        self.calls = [item for item in answer.output if item.type == "function_call"]
        self.history += answer.output
        return {
            "id": answer.id,
            "text": answer.output_text,
            "thinking": "".join(part.text for item in answer.output if item.type == "reasoning" for part in item.summary),
            "calls": [{"name": call.name, "arguments": json.loads(call.arguments)} for call in self.calls],
            "ids": [call.call_id for call in self.calls],
            "stop": answer.status,
            "why": answer.incomplete_details.reason if answer.incomplete_details else None,
            "usage": [answer.usage.input_tokens, answer.usage.output_tokens] if answer.usage else None,
            "cached": answer.usage.input_tokens_details.cached_tokens if answer.usage else None,
            "kinds": [item.type for item in answer.output],
        }

    def _events(self, events: Any) -> Result:
        text, kinds, usage, name = "", [], None, None
        try:
            for event in events:
                kinds.append(event.type)
                if event.type == "response.output_text.delta":
                    text += event.delta
                elif event.type == "response.created":
                    name = event.response.id
                elif event.type == "response.completed":
                    usage = [event.response.usage.input_tokens, event.response.usage.output_tokens]
        except openai.APIError as error:
            raise Broken(error, text) from error
        self.history.append({"role": "assistant", "content": text})
        return {
            "id": name,
            "text": text,
            "stop": kinds[-1],
            "starts": kinds.count("response.created"),
            "ends": kinds.count("response.completed"),
            **({"usage": usage} if usage else {}),
        }


class Google(Talk):
    client = genai.Client(api_key=KEY)

    def user(self, text: str) -> Any:
        return types.Content(role="user", parts=[types.Part(text=text)])

    def results(self, results: list[str]) -> list[Any]:
        parts = [
            types.Part(function_response=types.FunctionResponse(id=call.id, name=call.name, response={"output": result}))
            for call, result in zip(self.calls, results, strict=True)
        ]
        return [types.Content(role="user", parts=parts)]

    def ask(self, way: str) -> Result:
        declared = types.FunctionDeclaration(name="read", description="Reads a file.", parameters_json_schema=SCHEMA)
        config = types.GenerateContentConfig(
            tools=[types.Tool(function_declarations=[declared])],
            automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
        )
        asked: dict[str, Any] = {"model": self.model, "contents": self.history, "config": config}
        if way == "json":
            return self._read([self.client.models.generate_content(**asked)])
        chunks: list[Any] = []
        try:
            for chunk in self.client.models.generate_content_stream(**asked):
                chunks.append(chunk)
        except errors.APIError as error:
            raise Broken(error, "".join(chunk.text or "" for chunk in chunks)) from error
        return self._read(chunks)

    def _read(self, chunks: list[Any]) -> Result:
        candidates = [candidate for chunk in chunks for candidate in chunk.candidates or []]
        parts = [part for candidate in candidates for part in (candidate.content.parts or [] if candidate.content else [])]
        self.calls = [part.function_call for part in parts if part.function_call]
        self.history.append(types.Content(role="model", parts=parts))
        ends = [candidate.finish_reason.value for candidate in candidates if candidate.finish_reason]
        usage = chunks[-1].usage_metadata
        told = (part for part in parts if part.text != "")  # a keep-alive, and what closes a stream
        closing = [candidate.content for candidate in chunks[-1].candidates or []]
        kinds = ["thought" if part.thought else "text" if part.text is not None else "call" for part in told]
        return {
            "text": "".join(part.text or "" for part in parts if not part.thought),
            "thinking": "".join(part.text or "" for part in parts if part.thought),
            "calls": [{"name": call.name, "arguments": call.args} for call in self.calls],
            "ids": [call.id for call in self.calls],
            "stop": ends[-1] if ends else None,
            "starts": 1,
            "ends": len(ends),
            "usage": [usage.prompt_token_count, usage.candidates_token_count] if usage else None,
            "cached": usage.cached_content_token_count if usage else None,
            "kinds": [kind for kind, _ in groupby(kinds)],
            "closed": any(content and content.parts for content in closing),
        }


SDKS: dict[str, Callable[[], Talk]] = {
    "anthropic": Anthropic,
    "openai-chat": Chat,
    "openai-responses": Responses,
    "google-genai": Google,
}


def _told(error: Exception) -> Result:
    """What the SDK tells of an error."""
    status = getattr(error, "status_code", None) or getattr(error, "code", None)
    return {"type": type(error).__name__, "status": status, "message": str(error)}


def main() -> None:
    talks: dict[str, Talk] = {}
    for line in sys.stdin:
        command = json.loads(line)
        talk = talks.get(command["talk"]) or talks.setdefault(command["talk"], SDKS[command["sdk"]]())
        try:
            if "follows" in command:
                result = talk.follow(command["follows"], command["say"], command["way"])
            elif "say" in command:
                result = talk.say(command["say"], command["way"])
            else:
                result = talk.give(command["give"], command["way"])
        except Broken as broken:
            result = {"error": _told(broken.cause), "text": broken.text}
        except Exception as error:
            result = {"error": _told(error)}
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
