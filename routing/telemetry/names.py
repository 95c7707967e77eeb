"""By which names the conventions know a provider and what is asked of it."""

from __future__ import annotations

from urllib.parse import urlsplit

from ..values import Dialect

_HOSTS = (
    ("api.anthropic.com", "anthropic"),
    ("api.openai.com", "openai"),
    ("chatgpt.com", "openai"),
    ("generativelanguage.googleapis.com", "gcp.gemini"),
    ("aiplatform.googleapis.com", "gcp.vertex_ai"),
    ("cloudcode-pa.googleapis.com", "gcp.gen_ai"),
    ("openai.azure.com", "azure.ai.openai"),
    ("services.ai.azure.com", "azure.ai.inference"),
    ("amazonaws.com", "aws.bedrock"),
    ("deepseek.com", "deepseek"),
    ("groq.com", "groq"),
    ("mistral.ai", "mistral_ai"),
    ("perplexity.ai", "perplexity"),
    ("cohere.com", "cohere"),
    ("x.ai", "x_ai"),
    ("ml.cloud.ibm.com", "ibm.watsonx.ai"),
)


def provider_name(place: str, configured: str) -> str:
    """The well-known one of its host; else as it is called in the configuration."""
    host = host_of(place)
    return next((name for end, name in _HOSTS if host == end or host.endswith(f".{end}")), configured)


def operation_of(dialect: Dialect) -> str:
    return "generate_content" if dialect is Dialect.GEMINI else "chat"


def host_of(place: str) -> str:
    return urlsplit(place).hostname or ""


def port_of(place: str) -> int:
    parts = urlsplit(place)
    return parts.port or (80 if parts.scheme == "http" else 443)
