"""Whether a call asks a model to think, or goes on with what it has thought: each dialect says that in words of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ...values import Call, Dialect, JsonObject, Message, Text, Thinking
from .editing import inner_body, object_in, objects_in
from .replacing import raw_items

_OFF = (None, False, "none", "disabled")


def says(message: Message) -> bool:
    return any(isinstance(part, Text) and part.text.strip() for part in message.parts)


def thinks(call: Call) -> bool:
    """Thinking is asked for, or the model has thought since the user spoke."""
    if _ASKS[call.endpoint.dialect](inner_body(call)):
        return True
    items = raw_items(call)
    for message in reversed(call.messages):
        if message.role == "user" and says(message):
            return False
        if any(isinstance(part, Thinking) for part in message.parts) or _is_signed(items[message.index]):
            return True
    return False


def _is_signed(item: JsonObject) -> bool:
    """Gemini puts the seal of its thoughts on calls."""
    return any("thoughtSignature" in part or "thought_signature" in part for part in objects_in(item, "parts"))


def _asks_messages(body: JsonObject) -> bool:
    return object_in(body, "thinking").get("type") not in _OFF


def _asks_chat(body: JsonObject) -> bool:
    """There are as many ways to say it as there are providers."""
    template, reasoning = object_in(body, "chat_template_kwargs"), body.get("reasoning")
    asked = [body.get("reasoning_effort"), object_in(body, "thinking").get("type"), body.get("enable_thinking")]
    asked += [template.get("enable_thinking"), template.get("thinking")]
    if isinstance(reasoning, dict) and reasoning.get("enabled") is not False:
        asked.append(reasoning.get("effort", True))
    return any(value not in _OFF for value in asked)


def _asks_responses(body: JsonObject) -> bool:
    """Where the provider keeps the history, nobody here can see whether there are thoughts in it."""
    if isinstance(body.get("reasoning"), dict):
        return object_in(body, "reasoning").get("effort") != "none"
    return body.get("previous_response_id") is not None or body.get("conversation") is not None


def _asks_gemini(body: JsonObject) -> bool:
    config = object_in(body, "generationConfig", "generation_config")
    thinking = object_in(config, "thinkingConfig", "thinking_config")
    return bool(thinking) and thinking.get("thinkingBudget", thinking.get("thinking_budget")) != 0


_ASKS: Mapping[Dialect, Callable[[JsonObject], bool]] = {
    Dialect.MESSAGES: _asks_messages,
    Dialect.CHAT: _asks_chat,
    Dialect.RESPONSES: _asks_responses,
    Dialect.GEMINI: _asks_gemini,
}
