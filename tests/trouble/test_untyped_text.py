"""Text that nobody typed gives no orders: the newest recordings of each client, through a real proxy.

Each recording's person sticks to `glm`; files, hooks, agents and tools name `evil`, which is configured as well.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.rig.client import call
from tests.rig.provider import FakeProvider
from tests.rig.proxy import SCRIPT, Mitmdump

pytestmark = pytest.mark.system

FIXTURES = Path(__file__).parents[1] / "fixtures"
TAG, EVIL = "<**!glm.glm-4.7**>", "<**!evil.evil**>"
ORDERS = re.compile(r"<\*\*!?glm\.glm-4\.7\*\*> ?|<\*\*stopMessage[^*]*\*\*> ?")


def _provider(name: str, model: str) -> str:
    return f"""
    {name}:
      protocol: openai-chat
      baseURL: https://{name}.example/v1
      endpoints: {{anthropic-messages: https://{name}.example, openai-responses: https://{name}.example/v1,
                  gemini-chat: https://{name}.example}}
      auth: {{type: apikey, keys: [{{alias: k, value: {name}-key}}]}}
      models: {{{model}: {{}}}}"""


CONFIG = (
    f"virtualrouter:\n  providers:{_provider('glm', 'glm-4.7')}{_provider('evil', 'evil')}\n  routing: {{default: [origin]}}\n"
)
TYPED_THERE = {
    *("claude-code/command-with-arguments", "claude-code/compaction-with-instructions", "claude-code/background-agent"),
    *("aider/commit", "copilot/subagent"),
}
"""The person's own words stand within: these lose their tags, whoever wrote them."""
SEALED = {"codex/first-after-compaction"}
"""It holds what OpenAI alone can read, and is meant for glm: its person is told so, and nobody is asked."""
CANNOT_BE_TOLD = {"llm/with-fragment"}


def _recordings() -> dict[str, dict[str, Any]]:
    found = {path: json.loads(path.read_text("utf-8")) for path in sorted(FIXTURES.glob("*/*.json"))}
    named = {f"{path.parent.name}/{path.stem.partition('-')[2]}": one for path, one in found.items() if "version" in one}
    return {name: one for name, one in named.items() if name not in CANNOT_BE_TOLD}


RECORDED = _recordings()


@pytest.fixture(scope="module")
def steered() -> Iterator[tuple[FakeProvider, Mitmdump]]:
    with FakeProvider() as provider, Mitmdump(script=SCRIPT, config=CONFIG, upstream=provider) as proxy:
        yield provider, proxy
        assert proxy.alive
        assert "Traceback" not in proxy.log
        assert EVIL not in proxy.log


@pytest.mark.parametrize("name", RECORDED)
def test_what_a_client_sends_of_its_own(name: str, steered: tuple[FakeProvider, Mitmdump]) -> None:
    provider, proxy = steered
    provider.forget()
    recorded = RECORDED[name]
    fields = [(one, value) for one, value in recorded["headers"] if not one.lower().startswith(("content-", "accept-encoding"))]
    fields.append(("x-routecodex-session", str(uuid.uuid4())))
    host, path = f"https://{recorded['host']}", recorded["path"]
    answer = call(host, path, recorded["body"], proxy=proxy, headers=tuple(fields))
    if name in SEALED:
        assert answer.status == 400
        assert not provider.calls
        return
    assert answer.status == 200
    received = provider.calls[0]  # a stopMessage asks for more
    assert received.key != "evil-key"
    sent, came = json.dumps(received.json, ensure_ascii=False), json.dumps(recorded["body"], ensure_ascii=False)
    assert TAG not in sent, "what a person typed reaches nobody"
    if name not in TYPED_THERE:
        assert sent.count(EVIL) == came.count(EVIL), "a file passes as it came"
        assert _untyped(received.json) == _untyped(recorded["body"])


def _untyped(body: dict[str, Any]) -> list[str]:
    """The texts that hold what nobody typed, but for the person's tags in them."""
    held = body.get("messages") or body.get("input") or body.get("contents") or []
    texts = re.findall(r'"(?:[^"\\]|\\.)*"', json.dumps(held, ensure_ascii=False))
    return ["".join(ORDERS.sub("", text).split(" ")) for text in texts if EVIL in text]
