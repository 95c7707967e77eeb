"""A tool does not trust the proxy's certificate: the line that helps, once for each host.

A tool does not say who it is before its TLS stands; the host that it wants tells which it may be.
"""

from __future__ import annotations

from pathlib import Path

NODE, CODEX, PYTHON = "NODE_EXTRA_CA_CERTS", "CODEX_CA_CERTIFICATE", "SSL_CERT_FILE"
_LIKELY = {
    "anthropic.com": ("Claude Code", NODE),
    "chatgpt.com": ("Codex", CODEX),
    "openai.com": ("Codex", CODEX),
    "googleapis.com": ("Gemini CLI", NODE),
}
_OTHERS = (("tools made with Node", NODE), ("Codex", CODEX))


class Untrusted:
    def __init__(self) -> None:
        self._told: set[str] = set()

    def say(self, host: str, certificate: Path) -> str:
        """Nothing where it was said before: some tools try for ever."""
        if host in self._told:
            return ""
        self._told.add(host)
        likely = next((tool for name, tool in _LIKELY.items() if host == name or host.endswith(f".{name}")), None)
        lines = dict.fromkeys([*([likely] if likely else []), *_OTHERS])
        exports = "; ".join(f"{title}: export {name}={certificate}" for title, name in lines)
        return (
            f"a tool does not trust the proxy's certificate for {host}. {exports}; Python tools: export {PYTHON}= a file with "
            f"your system's certificates and that one. `routecodex run TOOL` sets what each needs."
        )
