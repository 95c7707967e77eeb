"""`routecodex models`: what a provider offers beside what is declared."""

from __future__ import annotations

import pytest

from tests.addons.control.commands.conftest import Lister
from tests.addons.control.commands.person import Person


def test_what_is_offered_and_what_is_declared(person: Person, lister: Lister) -> None:
    config = person.file("c.yaml", lister.config())
    assert person.types("models", "--config", str(config)) == 0
    assert "declared      <**glm.glm-4.7**>" in person.said
    assert "not offered   <**glm.glm-old**>" in person.said
    assert "not declared  glm-9" in person.said
    told = person.asks("models", "glm", "--config", str(config))["providers"][0]
    assert (told["offered"], told["notOffered"], told["notDeclared"]) == (["glm-4.7", "glm-9"], ["glm-old"], ["glm-9"])
    assert "sk-right" not in person.said + person.warned


@pytest.mark.parametrize(
    "protocol, base, body, path, header",
    [
        ("openai-chat", "/api/paas/v4", b'{"data": [{"id": "m"}]}', "/api/paas/v4/models", "authorization"),
        ("openai-responses", "/v1", b'{"data": [{"id": "m"}]}', "/v1/models", "authorization"),
        ("anthropic-messages", "", b'{"data": [{"id": "m"}]}', "/v1/models?limit=1000", "x-api-key"),
        ("gemini-chat", "", b'{"models": [{"name": "models/m"}]}', "/v1beta/models?pageSize=1000", "x-goog-api-key"),
    ],
)
def test_each_dialect_is_asked_its_own_way(
    person: Person, lister: Lister, protocol: str, base: str, body: bytes, path: str, header: str
) -> None:
    lister.body = body
    config = person.file("c.yaml", lister.config(protocol=protocol, path=base))
    assert person.asks("models", "glm", "--config", str(config))["providers"][0]["offered"] == ["m"]
    asked, headers = lister.asked[-1]
    assert asked == path
    assert "sk-right" in headers[header]


@pytest.mark.parametrize(
    "status, body, said",
    [(200, b"<html>", "no list of models"), (200, b'{"data": 1}', "no list of models"), (404, b"", "404"), (500, b"", "500")],
)
def test_what_cannot_be_asked_says_so_and_what_next(person: Person, lister: Lister, status: int, body: bytes, said: str) -> None:
    lister.status, lister.body = status, body
    config = person.file("c.yaml", lister.config())
    assert person.types("models", "glm", "--config", str(config)) == 1
    assert said in person.said
    assert person.types("models", "--config", str(config)) == 0


def test_a_key_that_is_refused_and_one_that_is_missing(person: Person, lister: Lister) -> None:
    config = person.file("c.yaml", lister.config("sk-wrong"))
    assert person.types("models", "glm", "--config", str(config)) == 1
    assert "the key is refused (401)" in person.said
    assert "sk-wrong" not in person.said
    config = person.file("c.yaml", lister.config("${NO_SUCH_VARIABLE}"))
    assert person.types("models", "glm", "--config", str(config)) == 1
    assert "no key is ready" in person.said
    assert len(lister.asked) == 1


def test_a_provider_that_nobody_knows(person: Person, lister: Lister) -> None:
    assert person.types("models", "gml", "--config", str(person.file("c.yaml", lister.config()))) == 1
    assert "nearest: glm" in person.warned


def test_without_a_provider_of_ones_own(person: Person) -> None:
    assert person.types("models") == 0
    assert "provider add" in person.said


def test_nothing_of_the_environment_leads_a_question_astray(
    person: Person, lister: Lister, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A provider on this machine is asked directly, whatever proxy the environment names."""
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    assert person.types("models", "glm", "--config", str(person.file("c.yaml", lister.config()))) == 0
