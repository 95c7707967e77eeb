"""Conversations with hidden rounds in the four dialects: what the model really said, what its client holds of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from routecodex.routing.dialects.calls import growing, read_call
from routecodex.routing.values import Call, Dialect, Endpoint

Item = dict[str, Any]
Tool = tuple[str, str, dict[str, Any]]
"""Id, name, arguments."""


def _messages_answer(text: str, thinking: str, tools: tuple[Tool, ...]) -> list[Item]:
    parts: list[Item] = [{"type": "thinking", "thinking": thinking, "signature": f"sig-{thinking}"}] if thinking else []
    parts += [{"type": "text", "text": text}] if text else []
    parts += [{"type": "tool_use", "id": id, "name": name, "input": arguments} for id, name, arguments in tools]
    return [{"role": "assistant", "content": parts}]


def _chat_answer(text: str, thinking: str, tools: tuple[Tool, ...]) -> list[Item]:
    item: Item = {"role": "assistant", "content": text or None}
    if thinking:
        item["reasoning_content"] = thinking
    if tools:
        item["tool_calls"] = [
            {"id": id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
            for id, name, arguments in tools
        ]
    return [item]


def _responses_answer(text: str, thinking: str, tools: tuple[Tool, ...]) -> list[Item]:
    items: list[Item] = []
    if thinking:
        items.append({"type": "reasoning", "id": f"rs_{thinking}", "summary": [], "encrypted_content": f"sealed-{thinking}"})
    if text:
        content = [{"type": "output_text", "text": text, "annotations": []}]
        items.append({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content})
    return items + [
        {"type": "function_call", "call_id": id, "name": name, "arguments": json.dumps(arguments)}
        for id, name, arguments in tools
    ]


def _gemini_answer(text: str, thinking: str, tools: tuple[Tool, ...]) -> list[Item]:
    parts: list[Item] = [{"text": thinking, "thought": True}] if thinking else []
    parts += [{"text": text}] if text else []
    for place, (_, name, arguments) in enumerate(tools):
        seal = {"thoughtSignature": f"sig-{thinking}"} if thinking and not place else {}
        parts.append({"functionCall": {"name": name, "args": arguments}, **seal})
    return [{"role": "model", "parts": parts}]


def _messages_results(results: list[tuple[Tool, str]]) -> list[Item]:
    parts = [{"type": "tool_result", "tool_use_id": tool[0], "content": text} for tool, text in results]
    return [{"role": "user", "content": parts}]


def _chat_results(results: list[tuple[Tool, str]]) -> list[Item]:
    return [{"role": "tool", "tool_call_id": tool[0], "content": text} for tool, text in results]


def _responses_results(results: list[tuple[Tool, str]]) -> list[Item]:
    return [{"type": "function_call_output", "call_id": tool[0], "output": text} for tool, text in results]


def _gemini_results(results: list[tuple[Tool, str]]) -> list[Item]:
    parts = [{"functionResponse": {"name": tool[1], "response": {"output": text}}} for tool, text in results]
    return [{"role": "user", "parts": parts}]


def _plain_user(text: str) -> Item:
    return {"role": "user", "content": text}


@dataclass(frozen=True)
class Talk:
    """How one dialect writes."""

    dialect: Dialect
    key: str
    user: Callable[[str], Item]
    write: Callable[[str, str, tuple[Tool, ...]], list[Item]]
    results: Callable[[list[tuple[Tool, str]]], list[Item]]
    reshaped: tuple[Callable[[list[Item]], list[Item]], ...]
    """What clients make of an answer that they hold."""

    def answer(self, text: str = "", *tools: Tool, thinking: str = "") -> list[Item]:
        return self.write(text, thinking, tools)

    def follow(self, text: str) -> Item:
        """A follow-up in the person's name."""
        return growing.write_user(self.dialect, text)

    def call(self, *items: Item, **fields: Any) -> Call:
        model = "m" if self.dialect is Dialect.GEMINI else None
        body = {"model": "m", "x": 1, self.key: list(items), "y": 2, **fields}
        return read_call(json.dumps(body).encode(), Endpoint(self.dialect, model=model))

    def history(self, call: Call) -> list[Item]:
        items = call.body[self.key]
        assert isinstance(items, list)
        return items


def _as_string(items: list[Item]) -> list[Item]:
    """A block list becomes one string; thinking is dropped with it."""
    return [{**item, "content": _joined(item["content"])} if _is_text(item.get("content")) else item for item in items]


def _is_text(content: Any) -> bool:
    return isinstance(content, list) and all(part["type"] in ("text", "output_text", "thinking") for part in content)


def _joined(content: list[Item]) -> str:
    return "".join(part.get("text", "") for part in content)


def _marked(items: list[Item]) -> list[Item]:
    *ahead, last = items
    if not isinstance(last.get("content"), list):
        return items
    *parts, part = last["content"]
    return [*ahead, {**last, "content": [*parts, {**part, "cache_control": {"type": "ephemeral"}}]}]


def _other_space(items: list[Item]) -> list[Item]:
    return [_respaced(item) for item in items]


def _respaced(value: Any, key: str = "") -> Any:
    if isinstance(value, dict):
        return {name: _respaced(child, name) for name, child in value.items()}
    if isinstance(value, list):
        return [_respaced(child) for child in value]
    return value.replace("\n\n", " \n") + "\n" if key in ("text", "content") and isinstance(value, str) else value


def _without_thinking(items: list[Item]) -> list[Item]:
    return [
        {**item, "content": [part for part in item["content"] if part["type"] != "thinking"]}
        if isinstance(item.get("content"), list)
        else {key: value for key, value in item.items() if key != "reasoning_content"}
        for item in items
        if item.get("type") != "reasoning"
    ]


def _without_empty_content(items: list[Item]) -> list[Item]:
    return [{key: value for key, value in item.items() if key != "content" or value} for item in items]


def _codex(items: list[Item]) -> list[Item]:
    return [{**item, "internal_chat_message_metadata_passthrough": {"turn_id": "t"}} for item in items]


def _split(items: list[Item]) -> list[Item]:
    """One message becomes one for each of its parts."""
    return [{**item, "content": [part]} for item in items for part in item["content"]]


def _gemini_cli(items: list[Item]) -> list[Item]:
    """No thoughts; calls get ids, and a placeholder for their signature."""
    kept = [[_own_call(part) for part in item["parts"] if not part.get("thought")] for item in items]
    return [{"parts": parts, "role": "model"} for parts in kept]


def _own_call(part: Item) -> Item:
    if "functionCall" not in part:
        return part
    return {"functionCall": {"id": "own_0", **part["functionCall"]}, "thoughtSignature": "skip"}


def _same(items: list[Item]) -> list[Item]:
    return items


TALKS = [
    Talk(
        Dialect.MESSAGES,
        "messages",
        _plain_user,
        _messages_answer,
        _messages_results,
        (_same, _as_string, _marked, _other_space, _without_thinking, _split),
    ),
    Talk(
        Dialect.CHAT,
        "messages",
        _plain_user,
        _chat_answer,
        _chat_results,
        (_same, _other_space, _without_thinking, _without_empty_content),
    ),
    Talk(
        Dialect.RESPONSES,
        "input",
        lambda text: {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]},
        _responses_answer,
        _responses_results,
        (_same, _as_string, _without_thinking, _codex, _other_space),
    ),
    Talk(
        Dialect.GEMINI,
        "contents",
        lambda text: {"role": "user", "parts": [{"text": text}]},
        _gemini_answer,
        _gemini_results,
        (_same, _gemini_cli, _other_space),
    ),
]
