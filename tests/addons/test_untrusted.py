"""The line that helps a tool that does not trust the proxy."""

from pathlib import Path

import pytest

from routecodex.addons.untrusted import Untrusted

CERTIFICATE = Path("/ca/cert.pem")


@pytest.mark.parametrize(
    ("host", "first"),
    [
        ("chatgpt.com", "Codex: export CODEX_CA_CERTIFICATE=/ca/cert.pem"),
        ("api.openai.com", "Codex: export CODEX_CA_CERTIFICATE=/ca/cert.pem"),
        ("api.anthropic.com", "Claude Code: export NODE_EXTRA_CA_CERTS=/ca/cert.pem"),
        ("generativelanguage.googleapis.com", "Gemini CLI: export NODE_EXTRA_CA_CERTS=/ca/cert.pem"),
        ("notopenai.com", "tools made with Node: export NODE_EXTRA_CA_CERTS=/ca/cert.pem"),
    ],
)
def test_the_likely_tool_comes_first(host: str, first: str) -> None:
    said = Untrusted().say(host, CERTIFICATE)
    assert said.startswith(f"a tool does not trust the proxy's certificate for {host}. {first}; ")
    assert said.count("CODEX_CA_CERTIFICATE") == 1
    assert "SSL_CERT_FILE" in said


def test_it_is_said_once_for_each_host() -> None:
    one = Untrusted()
    assert one.say("chatgpt.com", CERTIFICATE)
    assert not one.say("chatgpt.com", CERTIFICATE)
    assert one.say("api.openai.com", CERTIFICATE)
