"""Somebody who types commands, in this process: a home folder of their own, and nothing of the tester's environment."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from routecodex.addons.control.cli import main

_OURS = ("ROUTECODEX_USER_DIR", "ROUTECODEX_CONFIG", "ROUTECODEX_SESSION_DIR")
_LEADING = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")
_ELSEWHERE = ("ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "OPENAI_API_BASE", "GOOGLE_GEMINI_BASE_URL", "NODE_EXTRA_CA_CERTS")


class Person:
    def __init__(self, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.home, self.capsys = home, capsys
        home.mkdir(parents=True, exist_ok=True)
        for name in (*_OURS, *_LEADING, *_ELSEWHERE, "CURL_CA_BUNDLE", "CODEX_CA_CERTIFICATE"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("HOME", str(home))
        monkeypatch.setenv("USERPROFILE", str(home))
        self.said = self.warned = ""

    @property
    def config(self) -> Path:
        return self.home / ".config" / "routecodex" / "mitm-config.yaml"

    def types(self, *words: str) -> int:
        code = main(words)
        self.said, self.warned = self.capsys.readouterr()
        return code

    def asks(self, *words: str) -> Any:
        self.types(*words, "--json")
        return json.loads(self.said)

    def file(self, name: str, text: str) -> Path:
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        path.chmod(0o600)
        return path
