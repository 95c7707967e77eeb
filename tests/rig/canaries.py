"""Canaries: one unique string for every place that carries a secret, and one search over everything that was written.

1. A canary is letters and digits only, so it looks the same in JSON, in a URL and in a header.
2. The search also finds it in base64 (at any alignment), in another case, in file names and inside gzip members.
"""

from __future__ import annotations

import base64
import copy
import hashlib
import re
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from routecodex.routing.values import Dialect

Place = Literal["header", "query", "body", "config"]
_ALL = tuple(Dialect)
_OPENAI = (Dialect.CHAT, Dialect.RESPONSES)


@dataclass(frozen=True, slots=True)
class Carrier:
    """A place in a client's call that holds something only the client's own provider may see."""

    name: str
    place: Place
    where: tuple[str | int, ...]
    """A header's or query's name, or the way into the body."""
    dialects: tuple[Dialect, ...] = _ALL
    form: Any = "{}"
    """How the canary stands in the value: a text, or JSON with such texts in it."""
    credential: bool = False
    """Taken off every flow, wherever it goes."""


_MCP = {"type": "mcp", "server_label": "m", "server_url": "https://m.example"}
_TOOL_OF_CHAT = {
    "type": "function", "name": "f", "parameters": {"type": "object", "properties": {"api_key": {"type": "string"}}},
    "function": {"name": "f", "parameters": {"type": "object", "properties": {"api_key": {"type": "string"}}}},
}  # fmt: skip

CARRIERS: tuple[Carrier, ...] = (
    Carrier("bearer", "header", ("authorization",), form="Bearer {}", credential=True),
    Carrier("api-key", "header", ("x-api-key",), credential=True),
    Carrier("google-key", "header", ("x-goog-api-key",), credential=True),
    Carrier("query-key", "query", ("key",), (Dialect.GEMINI,), credential=True),
    Carrier("query-token", "query", ("access_token",), credential=True),
    Carrier("azure-key", "header", ("api-key",), credential=True),
    Carrier("cookie", "header", ("cookie",), form="session={}", credential=True),
    Carrier("proxy-authorization", "header", ("proxy-authorization",), form="Basic {}", credential=True),
    Carrier("account", "header", ("chatgpt-account-id",), _OPENAI),
    Carrier("organization", "header", ("openai-organization",), _OPENAI),
    Carrier("project", "header", ("openai-project",), _OPENAI),
    Carrier("google-project", "header", ("x-goog-user-project",), (Dialect.GEMINI,)),
    Carrier("google-user", "header", ("x-gemini-api-privileged-user-id",), (Dialect.GEMINI,)),
    Carrier("claude-session", "header", ("x-claude-code-session-id",), (Dialect.MESSAGES,)),
    Carrier("claude-prompt", "header", ("x-claude-code-prompt-id",), (Dialect.MESSAGES,)),
    Carrier("codex-turn", "header", ("x-codex-turn-metadata",), (Dialect.RESPONSES,), form='{{"turn_id":"{}"}}'),
    Carrier("session-header", "header", ("session-id",), _OPENAI),
    Carrier("request-id", "header", ("x-client-request-id",)),
    Carrier("forwarded", "header", ("x-forwarded-for",)),
    Carrier("unknown-header", "header", ("x-company-secret",)),
    Carrier("user-id", "body", ("metadata", "user_id"), (Dialect.MESSAGES,), form='{{"device_id":"{}"}}'),
    Carrier("billing", "body", ("system", 0, "text"), (Dialect.MESSAGES,), form="x-anthropic-billing-header: cch={};"),
    Carrier("thinking-signature", "body", ("messages", 1, "content", 0, "signature"), (Dialect.MESSAGES,)),
    Carrier("openai-user", "body", ("user",), _OPENAI),
    Carrier("safety-id", "body", ("safety_identifier",), _OPENAI),
    Carrier("cache-key", "body", ("prompt_cache_key",), _OPENAI),
    Carrier("client-metadata", "body", ("client_metadata", "session_id"), (Dialect.RESPONSES,)),
    Carrier("encrypted-reasoning", "body", ("input", 1, "encrypted_content"), (Dialect.RESPONSES,)),
    Carrier("thought-signature", "body", ("contents", 1, "parts", 0, "thoughtSignature"), (Dialect.GEMINI,)),
    Carrier("helicone", "header", ("helicone-auth",), form="Bearer {}", credential=True),
    Carrier("portkey", "header", ("x-portkey-api-key",), credential=True),
    Carrier("cloudflare", "header", ("cf-aig-authorization",), form="Bearer {}", credential=True),
    Carrier("azure-gateway", "header", ("ocp-apim-subscription-key",), credential=True),
    Carrier("aws-token", "header", ("x-amz-security-token",), credential=True),
    Carrier(
        "socket-protocol", "header", ("sec-websocket-protocol",), form="realtime, openai-insecure-api-key.{}", credential=True
    ),
    Carrier("referer", "header", ("referer",), form="https://cb.example/?code={}", credential=True),
    Carrier("encoded-query", "query", ("%6Bey",), credential=True),
    Carrier("oauth-query", "query", ("oauth_token",), credential=True),
    Carrier("gateway-key", "body", ("api_key",), (Dialect.CHAT, Dialect.MESSAGES)),
    Carrier("gateway-address", "body", ("api_base",), (Dialect.CHAT,), form="https://{}.example"),
    Carrier("extra-headers", "body", ("extra_headers",), _OPENAI, form={"Authorization": "Bearer {}"}),
    Carrier("plugin-key", "body", ("plugins",), _OPENAI, form=[{"id": "web", "key": "{}"}]),
    Carrier("own-keys", "body", ("providerOptions",), form={"gateway": {"byok": {"anthropic": [{"apiKey": "{}"}]}}}),
    Carrier("azure-search", "body", ("data_sources",), (Dialect.CHAT,), form=[{"parameters": {"authentication": {"key": "{}"}}}]),
    Carrier("aws-key", "body", ("aws_secret_access_key",), (Dialect.CHAT,)),
    Carrier("hook", "body", ("extra_body",), (Dialect.CHAT,), form={"webhook": "https://u:{}@hook.example/"}),
    Carrier(
        "mcp-servers",
        "body",
        ("mcp_servers",),
        (Dialect.MESSAGES,),
        form=[{"type": "url", "name": "m", "url": "https://m.example", "authorization_token": "{}"}],
    ),
    Carrier(
        "mcp-tool", "body", ("tools",), _OPENAI, form=[_TOOL_OF_CHAT, {**_MCP, "authorization": "{}", "headers": {"x": "{}"}}]
    ),
    Carrier(
        "gemini-tools",
        "body",
        ("tools",),
        (Dialect.GEMINI,),
        form=[
            {
                "functionDeclarations": [
                    {"name": "f", "parameters": {"type": "OBJECT", "properties": {"api_key": {"type": "STRING"}}}}
                ]
            },
            {"mcpServers": [{"name": "m", "streamableHttpTransport": {"url": "https://m.example", "headers": {"x": "{}"}}}]},
            {"googleMaps": {"authConfig": {"apiKeyConfig": {"apiKeyString": "{}"}}}},
        ],
    ),
    Carrier("provider-key", "config", ("primary",)),
    Carrier("provider-key-2", "config", ("backup",)),
)

_BODIES: dict[Dialect, dict[str, Any]] = {
    Dialect.MESSAGES: {
        "model": "claude-sonnet-4-5",
        "max_tokens": 1024,
        "system": [{"type": "text", "text": ""}, {"type": "text", "text": "Be short."}],
        "messages": [
            {"role": "user", "content": "one"},
            {
                "role": "assistant",
                "content": [{"type": "thinking", "thinking": "hm", "signature": ""}, {"type": "text", "text": "two"}],
            },
            {"role": "user", "content": [{"type": "text", "text": "three"}]},
        ],
    },
    Dialect.CHAT: {
        "model": "gpt-5",
        "messages": [
            {"role": "system", "content": "Be short."},
            {"role": "user", "content": "one"},
            {"role": "assistant", "content": "two"},
            {"role": "user", "content": "three"},
        ],
    },
    Dialect.RESPONSES: {
        "model": "gpt-5",
        "store": False,
        "input": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "one"}]},
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": ""},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "two"}]},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "three"}]},
        ],
    },
    Dialect.GEMINI: {
        "contents": [
            {"role": "user", "parts": [{"text": "one"}]},
            {"role": "model", "parts": [{"text": "two", "thoughtSignature": ""}]},
            {"role": "user", "parts": [{"text": "three"}]},
        ],
    },
}
_PATHS = {
    Dialect.MESSAGES: "/v1/messages",
    Dialect.CHAT: "/v1/chat/completions",
    Dialect.RESPONSES: "/v1/responses",
    Dialect.GEMINI: "/v1beta/models/gemini-3-pro:generateContent",
}


@dataclass(frozen=True, slots=True)
class Planted:
    """A call that carries one canary in every carrier of its dialect."""

    path: str
    headers: list[tuple[str, str]]
    body: dict[str, Any]
    canaries: dict[str, str]
    """By carrier."""


@dataclass(frozen=True, slots=True)
class Found:
    """A canary where it must not be."""

    carrier: str
    where: str
    near: str


def canary(carrier: str, seed: str = "") -> str:
    """Unique for the carrier and the seed, and the same whenever asked."""
    return "canary" + hashlib.sha256(f"{carrier}|{seed}".encode()).hexdigest()[:26]


def config_canaries(seed: str = "") -> dict[str, str]:
    """Values for the provider keys of a configuration, by key alias."""
    return {str(one.where[0]): canary(one.name, seed) for one in CARRIERS if one.place == "config"}


def plant(dialect: Dialect, seed: str = "", *, stream: bool = False, only: Iterable[str] | None = None) -> Planted:
    """A plausible call of three messages with a canary in every carrier (or only in those named)."""
    wanted = None if only is None else set(only)
    body = copy.deepcopy(_BODIES[dialect])
    headers: list[tuple[str, str]] = []
    query: dict[str, str] = {}
    canaries: dict[str, str] = {}
    for carrier in CARRIERS:
        if carrier.place == "config" or dialect not in carrier.dialects or (wanted is not None and carrier.name not in wanted):
            continue
        canaries[carrier.name] = canary(carrier.name, seed)
        value = _formed(carrier.form, canaries[carrier.name])
        match carrier.place:
            case "header":
                headers.append((str(carrier.where[0]), value))
            case "query":
                query[str(carrier.where[0])] = value
            case _:
                _put(body, carrier.where, value)
    path = _PATHS[dialect]
    if stream and dialect is Dialect.GEMINI:
        path, query = path.replace(":generate", ":streamGenerate"), {"alt": "sse"} | query
    elif stream:
        body["stream"] = True
    joined = "&".join(f"{name}={value}" for name, value in query.items())
    return Planted(f"{path}?{joined}" if query else path, headers, body, canaries)


def _formed(form: Any, text: str) -> Any:
    if isinstance(form, str):
        return form.format(text)
    if isinstance(form, dict):
        return {name: _formed(value, text) for name, value in form.items()}
    return [_formed(value, text) for value in form] if isinstance(form, list) else form


def _put(value: Any, way: tuple[str | int, ...], leaf: Any) -> None:
    for step in way[:-1]:
        value = value.setdefault(step, {}) if isinstance(value, dict) else value[step]
    value[way[-1]] = leaf


def _forms(text: str) -> list[bytes]:
    """The canary as it is, and the part of its base64 that does not depend on what stands around it, for all three alignments."""
    raw = text.encode()
    forms = [raw]
    for shift in range(3):
        encoded = base64.b64encode(b"\0" * shift + raw)
        forms.append(encoded[(shift * 8 + 5) // 6 : len(encoded) - 4])
    return forms


def scan(places: Mapping[str, bytes | str | Path], canaries: Mapping[str, str]) -> list[Found]:
    """Every canary in every place; a folder stands for all files in it. Empty is what one wants."""
    found = []
    for name, data in _read(places):
        everything = data.lower() + b"".join(_inflate(data)).lower()
        for carrier, text in canaries.items():
            for form in _forms(text):
                # Base64 is compared as it is written; the canary itself in any case.
                at = everything.find(form) if form == text.encode() else data.find(form)
                if at >= 0:
                    source = everything if form == text.encode() else data
                    found.append(Found(carrier, name, source[max(0, at - 60) : at + 80].decode("latin-1")))
                    break
    return found


def _read(places: Mapping[str, bytes | str | Path]) -> Iterable[tuple[str, bytes]]:
    for name, place in places.items():
        if isinstance(place, bytes):
            yield name, place
        elif isinstance(place, str):
            yield name, place.encode()
        elif place.is_dir():
            for file in sorted(place.rglob("*")):
                if file.is_file():
                    # A file's name can hold a secret as well.
                    yield f"{name}/{file.relative_to(place)}", file.name.encode() + b"\n" + file.read_bytes()
        elif place.exists():
            yield name, place.read_bytes()


def _inflate(data: bytes) -> Iterable[bytes]:
    """What gzip members hide, up to 16 MiB each."""
    for match in re.finditer(rb"\x1f\x8b\x08", data):
        try:
            yield zlib.decompressobj(wbits=31).decompress(data[match.start() :], 1 << 24)
        except zlib.error:
            continue


__all__ = ["CARRIERS", "Carrier", "Found", "Planted", "canary", "config_canaries", "plant", "scan"]
