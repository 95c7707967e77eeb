"""For each dialect, calls that say everything it can say: one long conversation, and others for what excludes itself there.

They obey the types of the vendors' SDKs, and their fields are all that those types know but the ones that `UNSAYABLE` names:
`tests/sdk/test_shapes.py` sees to both.
"""

from __future__ import annotations

from typing import Any

from routecodex.routing.values import Dialect, Endpoint

Body = dict[str, Any]

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
PDF = "JVBERi0xLjQKJeLjz9MKMSAwIG9iago8PC9UeXBlL0NhdGFsb2c+PgplbmRvYmoK"
WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA="
PLACE = "https://example.com"
READ_SCHEMA: Body = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "minLength": 1, "description": "Where."},
        "lines": {"type": "array", "items": {"type": "integer", "minimum": 1}, "maxItems": 2},
        "mode": {"anyOf": [{"type": "string", "enum": ["text", "bytes"]}, {"type": "null"}]},
    },
    "required": ["path", "lines", "mode"],
    "additionalProperties": False,
}
ANSWER_SCHEMA: Body = {
    "type": "object",
    "properties": {"answer": {"type": "string"}},
    "required": ["answer"],
    "additionalProperties": False,
}
CHEAP: Body = {"type": "object", "properties": {}}
MARK: Body = {"cache_control": {"type": "ephemeral"}}
ENDPOINTS = {
    Dialect.MESSAGES: Endpoint(Dialect.MESSAGES),
    Dialect.CHAT: Endpoint(Dialect.CHAT),
    Dialect.RESPONSES: Endpoint(Dialect.RESPONSES),
    Dialect.GEMINI: Endpoint(Dialect.GEMINI, model="client-model", stream=True),
}

# --- Messages -----------------------------------------------------------------------------------------------------------

_MESSAGES_ASKED: Body = {
    "role": "user",
    "content": [
        {"type": "text", "text": "The user's words — ünï 🎉", **MARK},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
        {"type": "image", "source": {"type": "url", "url": f"{PLACE}/picture.png"}},
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": PDF}, "title": "a.pdf"},
        {"type": "document", "source": {"type": "url", "url": f"{PLACE}/file.pdf"}, "citations": {"enabled": True}},
        {
            "type": "document",
            "source": {"type": "text", "media_type": "text/plain", "data": "The text of a file."},
            "title": "notes.txt",
            "context": "What the notes are about.",
        },
        {
            "type": "search_result",
            "source": f"{PLACE}/found",
            "title": "What was found",
            "content": [{"type": "text", "text": "The text that was found."}],
        },
        {"type": "container_upload", "file_id": "file_container"},
    ],
}
_MESSAGES_CALLED: Body = {
    "role": "assistant",
    "content": [
        {"type": "thinking", "thinking": "The model's thought.", "signature": "c2lnbmVkLWJ5LWl0cy1tYWtlcg=="},
        {"type": "redacted_thinking", "data": "c2VhbGVk"},
        {
            "type": "text",
            "text": "The model's words.",
            "citations": [
                {
                    "type": "char_location",
                    "cited_text": "The text",
                    "document_index": 0,
                    "document_title": "notes.txt",
                    "start_char_index": 0,
                    "end_char_index": 8,
                }
            ],
        },
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "what was searched"}},
        {
            "type": "web_search_tool_result",
            "tool_use_id": "srvtoolu_1",
            "content": [
                {
                    "type": "web_search_result",
                    "url": f"{PLACE}/hit",
                    "title": "The title of a hit",
                    "encrypted_content": "c2VhbGVk",
                }
            ],
        },
        {"type": "tool_use", "id": "toolu_01", "name": "read", "input": {"path": "ä.txt", "lines": [1], "mode": None}},
        {"type": "tool_use", "id": "toolu_02", "name": "list", "input": {}, **MARK},
    ],
}
_MESSAGES_ANSWERED: Body = {
    "role": "user",
    "content": [
        {
            "type": "tool_result",
            "tool_use_id": "toolu_01",
            "content": [
                {"type": "text", "text": "The first result."},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
                {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": PDF}},
            ],
        },
        {"type": "tool_result", "tool_use_id": "toolu_02", "content": "The second result.", "is_error": True, **MARK},
    ],
}
_MESSAGES: Body = {
    "model": "client-model",
    "max_tokens": 4096,
    "stream": True,
    "system": [{"type": "text", "text": "The system's words."}, {"type": "text", "text": "More of them.", **MARK}],
    "messages": [
        _MESSAGES_ASKED,
        _MESSAGES_CALLED,
        _MESSAGES_ANSWERED,
        {"role": "assistant", "content": "The model's last words."},
        {"role": "user", "content": "The user's last words."},
    ],
    "tools": [
        {"name": "read", "description": "Reads a file.", "input_schema": READ_SCHEMA, "strict": True, **MARK},
        {
            "name": "list",
            "description": "Lists files.",
            "input_schema": CHEAP,
            "input_examples": [{}],
            "defer_loading": True,
        },
        {"type": "bash_20250124", "name": "bash"},
        {"type": "web_search_20250305", "name": "web_search", "max_uses": 3},
        {"type": "code_execution_20250825", "name": "code_execution"},
    ],
    "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
    "stop_sequences": ["one", "two", "three", "four", "five", "six"],
    "temperature": 0.5,
    "top_p": 0.9,
    "top_k": 40,
    "thinking": {"type": "enabled", "budget_tokens": 2048},
    "output_config": {"effort": "max", "format": {"type": "json_schema", "schema": ANSWER_SCHEMA}},
    "metadata": {"user_id": "the-user"},
    "service_tier": "standard_only",
    "container": "container_1",
    "inference_geo": "eu",
    "cache_control": {"type": "ephemeral"},
    "context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]},
    "mcp_servers": [{"type": "url", "name": "server", "url": f"{PLACE}/mcp"}],
    "speed": "fast",
}
_MESSAGES_OTHERWISE: Body = {
    "model": "client-model",
    "max_tokens": 4096,
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "The user's words."}]},
        {"role": "user", "content": [{"type": "image", "source": {"type": "file", "file_id": "file_1"}}]},
        {"role": "user", "content": [{"type": "document", "source": {"type": "file", "file_id": "file_2"}}]},
        {"role": "system", "content": "System words in the middle."},
        {"role": "user", "content": "More of the user's words."},
        {"role": "assistant", "content": "The beginning of an answer"},
    ],
    "tools": [{"name": "read", "input_schema": READ_SCHEMA}, {"name": "list", "input_schema": CHEAP}],
    "tool_choice": {"type": "tool", "name": "read"},
    "thinking": {"type": "adaptive", "display": "summarized"},
}

# --- Chat ---------------------------------------------------------------------------------------------------------------

_CHAT: Body = {
    "model": "client-model",
    "stream": True,
    "stream_options": {"include_usage": True},
    "messages": [
        {"role": "system", "content": "The system's words."},
        {"role": "developer", "content": [{"type": "text", "text": "More of them."}]},
        {
            "role": "user",
            "name": "speaker",
            "content": [
                {"type": "text", "text": "The user's words — ünï 🎉"},
                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}", "detail": "low"}},
                {"type": "image_url", "image_url": {"url": f"{PLACE}/picture.png"}},
                {"type": "input_audio", "input_audio": {"data": WAV, "format": "wav"}},
                {"type": "file", "file": {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{PDF}"}},
                {"type": "file", "file": {"file_id": "file-1"}},
            ],
        },
        {
            "role": "assistant",
            "content": "The model's words.",
            "audio": {"id": "audio_1"},
            "tool_calls": [
                {
                    "id": "call_1",
                    "type": "function",
                    "function": {"name": "read", "arguments": '{"path": "ä.txt", "lines": [1], "mode": null}'},
                },
                {"id": "call_2", "type": "function", "function": {"name": "list", "arguments": "{}"}},
                {"id": "call_3", "type": "custom", "custom": {"name": "free", "input": "free words"}},
            ],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": [{"type": "text", "text": "The first result."}]},
        {"role": "tool", "tool_call_id": "call_2", "content": "The second result."},
        {"role": "tool", "tool_call_id": "call_3", "content": "The third result."},
        {"role": "system", "content": "System words in the middle."},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "The model's last words."}]},
        {"role": "user", "content": "The user's last words."},
    ],
    "tools": [
        {
            "type": "function",
            "function": {"name": "read", "description": "Reads a file.", "parameters": READ_SCHEMA, "strict": True},
        },
        {"type": "function", "function": {"name": "list", "description": "Lists files.", "parameters": CHEAP}},
        {"type": "custom", "custom": {"name": "free", "description": "Takes free words.", "format": {"type": "text"}}},
    ],
    "tool_choice": {
        "type": "allowed_tools",
        "allowed_tools": {
            "mode": "auto",
            "tools": [{"type": "function", "function": {"name": name}} for name in ("read", "list")],
        },
    },
    "parallel_tool_calls": False,
    "web_search_options": {"search_context_size": "low"},
    "max_completion_tokens": 4096,
    "temperature": 1.5,
    "top_p": 0.9,
    "seed": 7,
    "stop": ["one", "two", "three", "four"],
    "presence_penalty": 0.5,
    "frequency_penalty": 0.5,
    "logit_bias": {"50256": -100},
    "logprobs": True,
    "top_logprobs": 2,
    "n": 2,
    "reasoning_effort": "xhigh",
    "verbosity": "low",
    "response_format": {
        "type": "json_schema",
        "json_schema": {"name": "told", "description": "What is told.", "schema": ANSWER_SCHEMA, "strict": True},
    },
    "metadata": {"ticket": "1"},
    "store": True,
    "service_tier": "flex",
    "user": "the-user",
    "safety_identifier": "the-user",
    "prompt_cache_key": "key",
    "prompt_cache_retention": "24h",
    "modalities": ["text", "audio"],
    "audio": {"format": "wav", "voice": "alloy"},
    "prediction": {"type": "content", "content": "What is likely."},
    "moderation": {"model": "omni-moderation-latest"},
}
_CHAT_OTHERWISE: Body = {
    "model": "client-model",
    "messages": [
        {"role": "user", "content": "The user's words."},
        {"role": "assistant", "content": None, "function_call": {"name": "list", "arguments": "{}"}},
        {"role": "function", "name": "list", "content": "The result."},
    ],
    "functions": [{"name": "list", "description": "Lists files.", "parameters": CHEAP}],
    "function_call": {"name": "list"},
    "max_tokens": 100,
    "response_format": {"type": "json_object"},
    "reasoning_effort": "none",
}

# --- Responses ----------------------------------------------------------------------------------------------------------

_RESPONSES: Body = {
    "model": "client-model",
    "stream": True,
    "stream_options": {"include_obfuscation": False},
    "instructions": "The system's words.",
    "input": [
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "More of them."}]},
        {
            "type": "message",
            "role": "user",
            "content": [
                {"type": "input_text", "text": "The user's words — ünï 🎉"},
                {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}", "detail": "low"},
                {"type": "input_image", "image_url": f"{PLACE}/picture.png", "detail": "auto"},
                {"type": "input_image", "file_id": "file-1", "detail": "auto"},
                {"type": "input_file", "filename": "a.pdf", "file_data": f"data:application/pdf;base64,{PDF}"},
                {"type": "input_file", "file_url": f"{PLACE}/file.pdf"},
                {"type": "input_file", "file_id": "file-2"},
            ],
        },
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "The model's thought."}],
            "encrypted_content": "c2VhbGVk",
        },
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "it"}},
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "phase": "commentary",
            "content": [
                {
                    "type": "output_text",
                    "text": "The model's words.",
                    "annotations": [
                        {"type": "url_citation", "url": f"{PLACE}/hit", "title": "A hit", "start_index": 0, "end_index": 3}
                    ],
                }
            ],
        },
        {
            "type": "function_call",
            "call_id": "call_1",
            "name": "read",
            "arguments": '{"path": "ä.txt", "lines": [1], "mode": null}',
        },
        {"type": "function_call", "call_id": "call_2", "name": "list", "namespace": "files", "arguments": "{}"},
        {"type": "custom_tool_call", "call_id": "call_3", "name": "free", "input": "free words"},
        {
            "type": "function_call_output",
            "call_id": "call_1",
            "output": [
                {"type": "input_text", "text": "The first result."},
                {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"},
                {"type": "input_file", "filename": "a.pdf", "file_data": f"data:application/pdf;base64,{PDF}"},
            ],
        },
        {"type": "function_call_output", "call_id": "call_2", "output": "The second result."},
        {"type": "custom_tool_call_output", "call_id": "call_3", "output": "The third result."},
        {"type": "message", "role": "system", "content": "System words in the middle."},
        {
            "type": "message",
            "id": "msg_2",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "refusal", "refusal": "The model's last words."}],
        },
        {"role": "user", "content": "The user's last words."},
    ],
    "tools": [
        {"type": "function", "name": "read", "description": "Reads a file.", "parameters": READ_SCHEMA, "strict": True},
        {
            "type": "namespace",
            "name": "files",
            "description": "Tools for files.",
            "tools": [{"type": "function", "name": "list", "description": "Lists files.", "parameters": CHEAP}],
        },
        {"type": "custom", "name": "free", "description": "Takes free words.", "format": {"type": "text"}},
        {"type": "web_search"},
        {"type": "file_search", "vector_store_ids": ["vs_1"]},
        {"type": "code_interpreter", "container": {"type": "auto"}},
        {"type": "image_generation"},
        {"type": "mcp", "server_label": "server", "server_url": f"{PLACE}/mcp"},
    ],
    "tool_choice": {
        "type": "allowed_tools",
        "mode": "auto",
        "tools": [{"type": "function", "name": "read"}, {"type": "custom", "name": "free"}],
    },
    "parallel_tool_calls": False,
    "max_output_tokens": 4096,
    "max_tool_calls": 3,
    "temperature": 1.5,
    "top_p": 0.9,
    "top_logprobs": 2,
    "reasoning": {"effort": "xhigh", "summary": "detailed"},
    "text": {
        "verbosity": "low",
        "format": {
            "type": "json_schema",
            "name": "told",
            "description": "What is told.",
            "schema": ANSWER_SCHEMA,
            "strict": True,
        },
    },
    "include": ["reasoning.encrypted_content", "message.output_text.logprobs"],
    "metadata": {"ticket": "1"},
    "store": True,
    "background": False,
    "truncation": "auto",
    "service_tier": "flex",
    "user": "the-user",
    "safety_identifier": "the-user",
    "prompt_cache_key": "key",
    "prompt_cache_retention": "24h",
    "context_management": [{"type": "compaction", "compact_threshold": 100_000}],
    "moderation": {"model": "omni-moderation-latest"},
}
_RESPONSES_OTHERWISE: Body = {
    "model": "client-model",
    "input": "The user's words.",
    "tools": [{"type": "local_shell"}, {"type": "apply_patch"}],
    "tool_choice": "required",
    "reasoning": {"effort": "none"},
    "text": {"format": {"type": "json_object"}},
}

# --- Gemini -------------------------------------------------------------------------------------------------------------

_GEMINI: Body = {
    "systemInstruction": {"parts": [{"text": "The system's words."}, {"text": "More of them."}]},
    "contents": [
        {
            "role": "user",
            "parts": [
                {"text": "The user's words — ünï 🎉"},
                {"inlineData": {"mimeType": "image/png", "data": PNG}, "mediaResolution": {"level": "MEDIA_RESOLUTION_LOW"}},
                {"inlineData": {"mimeType": "application/pdf", "data": PDF, "displayName": "a.pdf"}},
                {"inlineData": {"mimeType": "audio/wav", "data": WAV}},
                {"inlineData": {"mimeType": "video/mp4", "data": "AAAAIGZ0eXBpc29t"}, "videoMetadata": {"fps": 1.0}},
                {"fileData": {"mimeType": "image/png", "fileUri": f"{PLACE}/picture.png"}},
                {"fileData": {"mimeType": "application/pdf", "fileUri": f"{PLACE}/file.pdf"}},
                {
                    "fileData": {
                        "mimeType": "application/pdf",
                        "fileUri": "https://generativelanguage.googleapis.com/v1beta/files/1",
                    }
                },
            ],
        },
        {
            "role": "model",
            "parts": [
                {"text": "The model's thought.", "thought": True},
                {"text": "The model's words.", "thoughtSignature": "c2lnbmVk"},
                {"executableCode": {"language": "PYTHON", "code": "print(1)"}},
                {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
                {"inlineData": {"mimeType": "image/png", "data": PNG}},
                {
                    "functionCall": {"id": "one", "name": "read", "args": {"path": "ä.txt", "lines": [1], "mode": None}},
                    "thoughtSignature": "c2lnbmVk",
                },
                {"functionCall": {"id": "two", "name": "list", "args": {}}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {
                    "functionResponse": {
                        "id": "one",
                        "name": "read",
                        "response": {"output": "The first result."},
                        "parts": [{"inlineData": {"mimeType": "image/png", "data": PNG}}],
                    }
                },
                {"functionResponse": {"id": "two", "name": "list", "response": {"error": "The second result."}}},
            ],
        },
        {"role": "model", "parts": [{"text": "The model's last words."}]},
        {"role": "user", "parts": [{"text": "The user's last words."}]},
    ],
    "tools": [
        {
            "functionDeclarations": [
                {"name": "read", "description": "Reads a file.", "parametersJsonSchema": READ_SCHEMA},
                {
                    "name": "list",
                    "description": "Lists files.",
                    "parameters": {"type": "OBJECT", "properties": {"deep": {"type": "BOOLEAN", "nullable": True}}},
                    "response": {"type": "STRING"},
                    "behavior": "BLOCKING",
                },
            ]
        },
        {"googleSearch": {}},
        {"urlContext": {}},
        {"codeExecution": {}},
    ],
    "toolConfig": {
        "functionCallingConfig": {"mode": "VALIDATED", "allowedFunctionNames": ["read", "list"]},
        "retrievalConfig": {"languageCode": "en"},
    },
    "safetySettings": [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}],
    "generationConfig": {
        "maxOutputTokens": 4096,
        "temperature": 1.5,
        "topP": 0.9,
        "topK": 40,
        "seed": 7,
        "stopSequences": ["one", "two", "three", "four", "five"],
        "presencePenalty": 0.5,
        "frequencyPenalty": 0.5,
        "candidateCount": 2,
        "responseLogprobs": True,
        "logprobs": 2,
        "responseMimeType": "application/json",
        "responseJsonSchema": ANSWER_SCHEMA,
        "responseModalities": ["TEXT", "IMAGE"],
        "thinkingConfig": {"includeThoughts": True, "thinkingBudget": 2048},
        "mediaResolution": "MEDIA_RESOLUTION_LOW",
        "speechConfig": {"languageCode": "en-US"},
    },
}
_GEMINI_OTHERWISE: Body = {
    "contents": [{"role": "user", "parts": [{"text": "The user's words."}]}],
    "tools": [{"functionDeclarations": [{"name": "list", "parameters": {"type": "OBJECT", "properties": {}}}]}],
    "toolConfig": {"functionCallingConfig": {"mode": "ANY"}},
    "generationConfig": {
        "thinkingConfig": {"thinkingLevel": "HIGH"},
        "responseMimeType": "application/json",
        "responseSchema": {"type": "OBJECT", "properties": {"answer": {"type": "STRING"}}},
    },
}

EVERYTHING: dict[Dialect, tuple[Body, ...]] = {
    Dialect.MESSAGES: (_MESSAGES, _MESSAGES_OTHERWISE),
    Dialect.CHAT: (_CHAT, _CHAT_OTHERWISE),
    Dialect.RESPONSES: (_RESPONSES, _RESPONSES_OTHERWISE),
    Dialect.GEMINI: (_GEMINI, _GEMINI_OTHERWISE),
}

UNSAYABLE: dict[Dialect, dict[str, str]] = {
    Dialect.MESSAGES: {
        "betas": "a header, not a field of the body",
        "billing_policy": "who pays, not what is said",
        "compaction": "the newer word for context_management",
        "diagnostics": "for whoever looks for a cache miss",
        "fallback_credit_token": "who pays",
        "fallbacks": "which other model answers: the router's work here",
        "thread": "a conversation that Anthropic keeps",
        "user_profile_id": "a name at Anthropic",
        "workspace_id": "a name at Anthropic",
    },
    Dialect.CHAT: {"prompt_cache_options": "as prompt_cache_retention"},
    Dialect.RESPONSES: {
        "access_programs": "a name at OpenAI",
        "conversation": "refused: OpenAI keeps it",
        "image": "options of OpenAI's own drawing",
        "previous_response_id": "refused: OpenAI keeps what came before",
        "prompt": "refused: OpenAI keeps it",
        "prompt_cache_options": "as prompt_cache_retention",
    },
    Dialect.GEMINI: {"cachedContent": "refused: Google keeps it"},
}
"""Fields of a call that are in none of these, and why."""
