"""What a tool is given, and what is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from routecodex.addons.control import certificates, surroundings
from routecodex.addons.control.places import Places
from routecodex.addons.control.say import Failed
from routecodex.addons.control.surroundings import excepts
from routecodex.addons.hello import Hello
from routecodex.routing.clients.programs import client_of_program
from tests.addons.control.test_certificates import A, B

HOSTS = ("api.anthropic.com", "chatgpt.com", "*.openai.azure.com", "gateway.corp")
OURS = Hello("user", 1, A, HOSTS, "/mitm-config.yaml")
PROXY = "http://127.0.0.1:5"


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("*", True),
        ("api.anthropic.com", True),
        ("API.Anthropic.com:443", True),
        ("anthropic.com", True),
        (".anthropic.com", True),
        ("*.anthropic.com", True),
        ("com", True),
        ("azure.com", True),
        ("thropic.com", False),
        ("localhost", False),
        ("127.0.0.1", False),
        ("10.0.0.0/8", False),
        ("example.com", False),
        ("", False),
    ],
)
def test_which_exceptions_lead_around(entry: str, expected: bool) -> None:
    assert excepts(entry, HOSTS) is expected


def given(tmp_path: Path, tool: str, **env: str) -> surroundings.Way:
    return surroundings.way(client_of_program(tool), PROXY, OURS, Places(tmp_path), env)


def test_only_what_the_tool_needs(tmp_path: Path) -> None:
    assert set(given(tmp_path, "claude").set) == {"HTTPS_PROXY", "NO_PROXY", "NODE_EXTRA_CA_CERTS"}
    assert set(given(tmp_path, "/usr/bin/codex").set) == {"HTTPS_PROXY", "NO_PROXY", "CODEX_CA_CERTIFICATE"}
    assert set(given(tmp_path, "aider").set) == {"HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"}
    assert given(tmp_path, "node").set["NODE_USE_ENV_PROXY"] == "1"
    assert set(given(tmp_path, "claude", https_proxy="http://old", no_proxy="x").set) >= {"https_proxy", "no_proxy"}


def test_what_adds_and_what_replaces(tmp_path: Path) -> None:
    company = tmp_path / "company.pem"
    company.write_text(B)
    node = given(tmp_path, "claude", NODE_EXTRA_CA_CERTS=str(company)).set["NODE_EXTRA_CA_CERTS"]
    assert certificates.split(Path(node).read_text()) == [B, A]
    python = certificates.split(Path(given(tmp_path, "python3.12").set["SSL_CERT_FILE"]).read_text())
    assert A in python
    assert len(python) > 10, "the system's are gone"
    merged = given(tmp_path, "llm", SSL_CERT_FILE=str(company)).set["SSL_CERT_FILE"]
    assert certificates.split(Path(merged).read_text()) == [B, A]


@pytest.mark.parametrize(
    ("env", "said"),
    [
        ({"ANTHROPIC_BASE_URL": "https://elsewhere.example/v1"}, "leads to elsewhere.example"),
        ({"ANTHROPIC_BASE_URL": "http://localhost:4000"}, "localhost"),
        ({"ANTHROPIC_BASE_URL": "https://gateway.corp"}, ""),
        ({"CLAUDE_CODE_USE_BEDROCK": "1"}, "CLAUDE_CODE_USE_BEDROCK is set"),
        ({"CLAUDE_CODE_USE_BEDROCK": "0"}, ""),
        ({"OPENAI_BASE_URL": "https://elsewhere.example"}, ""),
        ({"NO_PROXY": "corp.example,chatgpt.com"}, "chatgpt.com in NO_PROXY"),
    ],
)
def test_what_leads_around_is_said(tmp_path: Path, env: dict[str, str], said: str) -> None:
    lines = given(tmp_path, "claude", **env).said
    assert bool(lines) is bool(said)
    assert said in "".join(lines)


def test_which_proxy_lies_behind(tmp_path: Path) -> None:
    here = Places(tmp_path)
    assert surroundings.upstream(here, {}) == ("", None)
    assert surroundings.upstream(here, {"HTTPS_PROXY": "u:p@127.0.0.1:1/"}) == ("http://u:p@127.0.0.1:1", None)
    with pytest.raises(Failed, match="ALL_PROXY names a proxy of another kind"):
        surroundings.upstream(here, {"ALL_PROXY": "socks5://127.0.0.1:1"})
    for wrong in ("http://127.0.0.1:port", "127.0.0.1:99999", "http://[::1"):
        with pytest.raises(Failed, match="https_proxy holds no address of a proxy"):
            surroundings.upstream(here, {"https_proxy": wrong})
    here.make()
    here.port.write_text("1")
    assert surroundings.upstream(here, {"HTTPS_PROXY": "http://127.0.0.1:1"}) == ("", None), "ours, and gone"


def test_variables_of_the_configuration(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text("a: ${ONE}\nb: ${TWO:-x} ${THREE}\n")
    assert surroundings.variables(file, {"ONE": "1", "TWO": "2", "FOUR": "4"}) == {"ONE": "1", "TWO": "2"}


def test_the_companys_authority_joins(tmp_path: Path) -> None:
    here = Places(tmp_path / "u")
    assert surroundings.authorities(here, {}) == ""
    company = tmp_path / "company.pem"
    company.write_text(B)
    found = certificates.split(Path(surroundings.authorities(here, {"NODE_EXTRA_CA_CERTS": str(company)})).read_text())
    assert B in found
    assert len(found) > 10
