"""`routecodex import`: a RouteCodex config.json becomes a configuration of ours."""

from __future__ import annotations

import json
import stat

from routecodex.routing.config import load
from tests.addons.control.commands.person import Person

ORIGINAL = {
    "version": "1.0.0",
    "httpserver": {"port": 5520},
    "virtualrouter": {
        "providers": {
            "glm": {
                "id": "glm",
                "type": "openai",
                "baseUrl": "https://open.bigmodel.cn/api/paas/v4",
                "auth": {"type": "apikey", "keys": {"primary": {"value": "sk-of-the-json"}, "2": {"value": "${GLM_KEY_2}"}}},
                "models": {"glm-4.7": {"maxContextTokens": 200000}, "4.10": {}, "true": {}, "a: b # c": {}},
            }
        },
        "routing": {"default": ["glm.glm-4.7"], "thinking": [{"poolId": "t", "type": "backup", "targets": ["glm.4.10"]}]},
    },
}


def test_providers_keys_and_routes_come_along(person: Person) -> None:
    path = person.file("config.json", json.dumps(ORIGINAL))
    assert person.types("import", str(path)) == 0, person.warned
    assert stat.S_IMODE(person.config.stat().st_mode) == 0o600
    old, new = load(path, {}), load(person.config, {})
    assert new.registry.providers == old.registry.providers
    assert new.registry.routes == old.registry.routes
    assert "httpserver is not used here" in person.said
    assert "sk-of-the-json" not in person.said
    assert "${GLM_KEY_2}" in person.config.read_text(), "variables stay variables"


def test_what_is_there_is_kept_unless_it_is_forced(person: Person) -> None:
    path = person.file("config.json", json.dumps(ORIGINAL))
    person.types("provider", "add", "openai")
    before = person.config.read_bytes()
    assert person.types("import", str(path)) == 1
    assert "--force" in person.warned
    assert person.config.read_bytes() == before
    assert person.asks("import", str(path), "--out", str(person.home / "other.yaml"))["providers"] == ["glm"]
    assert person.types("import", str(path), "--force") == 0
    assert person.config.read_bytes() != before


def test_what_cannot_be_read_is_told_with_its_line(person: Person) -> None:
    path = person.file("config.json", json.dumps({"virtualrouter": {"routing": {"default": ["nobody.x"]}}}, indent=1))
    assert person.types("import", str(path)) == 1
    assert "config.json:5" in person.warned
    assert not person.config.exists()
    assert person.types("import", str(person.home / "gone.json")) == 1
