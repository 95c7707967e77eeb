"""OpenAI Chat, a provider's call: what its hosts differ in. All speak the dialect, nearly none all of it.

1. A host is known by the provider's id, else by a model's bare name (`deepseek-chat`, not `org/model` or `model:tag`: those run
   anywhere); an unknown one gets what nearly all of them take.
2. A field is held back only from hosts that are known to answer it with an error, and what it meant is then named.
3. What belongs to a family of models wherever it runs (Mistral's order of roles and its ids) goes by the model's name.
"""

from __future__ import annotations

import re
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

Thinking = Literal["", "openai", "openrouter", "deepseek", "switch", "kimi", "qwen", "minimax", "google", "gpt-oss"]


class Host(Struct, frozen=True):
    thinking: Thinking = ""
    """How it is told to think, or not to."""
    keeps_thoughts: bool = True
    """It takes its own thinking back (`reasoning_content`, `reasoning`)."""
    misses_thoughts: bool = False
    """While it thinks, it refuses an earlier answer without thinking; it takes a blank."""
    cache_key: bool = True
    usage_on_request: bool = True
    """It takes `stream_options`; the others always tell the usage."""
    seed: str = "seed"
    penalties: bool = True
    top_k: bool = False
    stops: int = 4
    schemas: bool = True
    """It takes a schema for its answer, not only `json_object`."""
    images: bool = True
    videos: bool = False
    files: Literal["", "part", "document"] = "part"
    file_links: bool = False
    file_ids: bool = False
    """It keeps files, and knows them by ids that begin with `file-`."""
    allowed_tools: bool = False
    custom_tools: bool = False
    flat_schemas: bool = False
    """A tool's schema must be an object's at its top, without alternatives there."""
    parallel_flag: bool = True
    named_results: bool = False
    late_system: bool = True
    """It takes system messages behind others."""
    strict_order: bool = False
    """Mistral's: users and assistants take turns, an assistant speaks after tools, an unfinished answer is marked."""
    call_ids: Literal["usual", "mistral", "kimi"] = "usual"


_OPENAI = Host(thinking="openai", file_ids=True, allowed_tools=True, custom_tools=True, flat_schemas=True)
_OPENROUTER = Host(thinking="openrouter", top_k=True, videos=True, file_links=True)
_MISTRAL = Host(keeps_thoughts=False, usage_on_request=False, seed="random_seed", files="document")
_GROQ = Host(thinking="gpt-oss", keeps_thoughts=False, cache_key=False, files="")
_GOOGLE = Host(thinking="google", cache_key=False, penalties=False, seed="", files="", named_results=True)
_DEEPSEEK = Host(thinking="deepseek", misses_thoughts=True, stops=16, schemas=False, images=False, files="")
_KIMI = Host(thinking="kimi", misses_thoughts=True, videos=True, files="", call_ids="kimi")
_GLM = Host(thinking="switch", stops=1, schemas=False, videos=True, files="")
_QWEN = Host(thinking="qwen", top_k=True, videos=True, files="")
_MINIMAX = Host(thinking="minimax", late_system=False, files="")

_BY_PROVIDER: tuple[tuple[re.Pattern[str], Host], ...] = tuple(
    (re.compile(pattern), host)
    for pattern, host in (
        (r"openrouter", _OPENROUTER),
        (r"mistral|codestral", _MISTRAL),
        (r"groq|cerebras", _GROQ),
        (r"gemini|google|vertex", _GOOGLE),
        (r"deepseek", _DEEPSEEK),
        (r"moonshot|kimi", _KIMI),
        (r"glm|zhipu|bigmodel|\bz-?ai\b", _GLM),
        (r"qwen|dashscope|bailian|aliyun|modelstudio", _QWEN),
        (r"minimax", _MINIMAX),
        (r"openai|azure", _OPENAI),
    )
)
_BY_MODEL: tuple[tuple[re.Pattern[str], Host], ...] = tuple(
    (re.compile(pattern), host)
    for pattern, host in (
        (r"(?:gpt-\d|o\d|chatgpt-)[^/:]*", _OPENAI),
        (r"gemini-[^/:]*", _GOOGLE),
        (r"deepseek-(?:chat|reasoner|v\d|flash|pro)[^/:]*", _DEEPSEEK),
        (r"(?:kimi|moonshot)-[^/:]*", _KIMI),
        (r"glm-[^/:]*", _GLM),
        (r"(?:qwen|qwq|qvq)[^/:]*-(?:max|plus|turbo|flash)[^/:]*", _QWEN),
        (r"minimax-[^/:]*", _MINIMAX),
        (r"(?:open-)?\w+tral-[^/:]*(?:latest|\d{4})", _MISTRAL),
    )
)
_MISTRAL_FAMILY = re.compile(r"mistral|mixtral|codestral|devstral|magistral|ministral|pixtral|voxtral|mathstral")
_FROM_GPT_5 = re.compile(r"(?:^|/)(?:o\d(?:$|-)|gpt-(?:[5-9]|[12]\d)(?:$|[-.]))")
"""OpenAI's models that reason, and the chat models of their time; `gpt-35` is how Azure calls an older one."""
_MOST_OUTPUT: tuple[tuple[re.Pattern[str], int], ...] = tuple(
    (re.compile(rf"(?:^|/){pattern}"), tokens)
    for pattern, tokens in (
        (r"gpt-4o", 16_384),
        (r"gpt-4\.1", 32_768),
        (r"gpt-4-(?:turbo|1106|0125)|gpt-3", 4_096),
        (r"gpt-4(?:$|-)", 8_192),
        (r"o\d(?:$|-)", 100_000),
        (r"gpt-5", 128_000),
        (r"gemini-(?:2\.5|3)", 65_536),
    )
)
"""Models that answer a higher limit with an error; coding tools ask for what their own vendor's models can."""
_NO_FLAG = re.compile(r"(?:^|/)o\d(?:$|-)")


def host_of(maker: str, model: str) -> Host:
    maker, model = maker.lower(), model.lower()
    host = next((host for pattern, host in _BY_PROVIDER if pattern.search(maker)), None)
    host = host or next((host for pattern, host in _BY_MODEL if pattern.fullmatch(model)), Host())
    if host.custom_tools and not _FROM_GPT_5.search(model):
        host = replace(host, custom_tools=False)
    if _NO_FLAG.search(model):
        host = replace(host, parallel_flag=False)
    if is_mistral(maker, model):
        host = replace(host, late_system=False, strict_order=True, call_ids="mistral")
    return host


def is_mistral(maker: str, model: str) -> bool:
    return bool(_MISTRAL_FAMILY.search(maker.lower()) or _MISTRAL_FAMILY.search(model.lower()))


def limits_completion(model: str) -> bool:
    """OpenAI's models since o1 know `max_completion_tokens` alone; all other hosts know `max_tokens`, few of them both."""
    return bool(_FROM_GPT_5.search(model.lower()))


def most_output(model: str, asked: int) -> int:
    """The limit that was asked for, or the model's own where that is known to be lower."""
    return min(asked, next((most for pattern, most in _MOST_OUTPUT if pattern.search(model.lower())), asked))


def samples_freely(model: str) -> bool:
    """Not so OpenAI's reasoning models: they refuse a temperature, penalties, log probabilities and stop sequences."""
    return not _FROM_GPT_5.search(model.lower()) or "-chat" in model.lower()
