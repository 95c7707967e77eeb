"""Host names and base addresses, checked once when the file is read."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import parse_qs, urlsplit

from ..router.registry import Url

OFFICIAL_HOSTS = (
    "api.anthropic.com",
    "api.openai.com",
    "chatgpt.com",
    "generativelanguage.googleapis.com",
    "cloudcode-pa.googleapis.com",
    "openrouter.ai",
    "api.deepseek.com",
    "open.bigmodel.cn",
    "api.z.ai",
    "api.moonshot.ai",
    "api.moonshot.cn",
    "api.kimi.com",
    "dashscope.aliyuncs.com",
    "dashscope-intl.aliyuncs.com",
    "coding.dashscope.aliyuncs.com",
    "coding-intl.dashscope.aliyuncs.com",
    "portal.qwen.ai",
    "api.minimax.io",
    "api.minimaxi.com",
    "ark.cn-beijing.volces.com",
    "api.siliconflow.cn",
    "api-inference.modelscope.cn",
    "apis.iflow.cn",
    "api.x.ai",
    "api.mistral.ai",
    "api.groq.com",
    "api.cerebras.ai",
    "api.together.xyz",
    "api.fireworks.ai",
    "integrate.api.nvidia.com",
    "router.huggingface.co",
    "opencode.ai",
    "api.kilo.ai",
    "api.githubcopilot.com",
    "api.individual.githubcopilot.com",
    "api.business.githubcopilot.com",
    "api.enterprise.githubcopilot.com",
)
"""Where the known tools and their providers are reached. Only model paths on them are ever rewritten."""

_STORE_SCHEMES = frozenset({"redis", "rediss"})
_NO_STORE = (
    "must be files or an address such as redis://user:password@host:6379/0 "
    "(in a password : / ? # @ % are written %3A %2F %3F %23 %40 %25)"
)
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")


def read_host(text: str) -> str:
    """The name in the form that a connection shows it; ValueError says what is wrong."""
    host = text.strip().rstrip(".").lower()
    if "/" in host:
        raise ValueError("must be a host name without scheme and path")
    if host.startswith("*."):
        return f"*.{_plain_host(host[2:])}"
    if "*" in host:
        raise ValueError("may hold * only as its whole first part (*.example.com)")
    return _plain_host(host)


def _plain_host(host: str) -> str:
    try:
        return str(ipaddress.ip_address(host.strip("[]")))
    except ValueError:
        pass
    if ":" in host:
        raise ValueError("must be a host name without port")
    if not host.isascii():
        try:
            host = host.encode("idna").decode()
        except UnicodeError:
            raise ValueError("not a host name") from None
    if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in host.split(".")):
        raise ValueError("not a host name")
    return host


def read_url(text: str) -> Url:
    """A provider's base address; ValueError says what is wrong."""
    if not text.isprintable() or " " in text:
        raise ValueError("not a URL")
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ValueError("not a URL") from None
    if parts.scheme not in {"http", "https"} or not host:
        raise ValueError("not a URL")
    if "@" in parts.netloc:
        raise ValueError("must not hold a user name or password (write the credential under auth)")
    if parts.query or parts.fragment:
        raise ValueError("must end with its path (no ? and no #)")
    try:
        host = _plain_host(host.rstrip("."))
    except ValueError:
        raise ValueError("not a URL") from None
    secure = parts.scheme == "https"
    return Url("https" if secure else "http", host, port or (443 if secure else 80), parts.path.rstrip("/"))


def stays_near(host: str) -> bool:
    """This machine or its own network, where plain http is usual."""
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return (
            host == "localhost" or "." not in host or host.endswith((".localhost", ".local", ".internal", ".lan", ".home.arpa"))
        )


def check_store(address: str) -> None:
    """ValueError says what is wrong, and nothing of the address: in one that is written wrong a password may be anywhere."""
    try:
        parts = urlsplit(address)
        host, port, asked = parts.hostname, parts.port, parse_qs(parts.query, keep_blank_values=True)
    except ValueError:
        raise ValueError(_NO_STORE) from None
    is_one = parts.scheme in _STORE_SCHEMES and host and port != 0 and not parts.fragment
    if not is_one or not re.fullmatch(r"(/\d*)?", parts.path) or not all(re.fullmatch("[a-z_]+", name) for name in asked):
        raise ValueError(_NO_STORE)
    for text in asked.get("wait", ()):
        if not re.fullmatch(r"\d+(\.\d*)?|\.\d+", text) or not float(text):
            raise ValueError("wait must be a number of seconds above 0")
