"""R5: Codex compacts its conversation under whatever provider, and goes on under whatever other one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.rig import wire
from tests.rig.behaviour import Behaviour
from tests.rig.client import Answer, call
from tests.rig.provider import FakeProvider
from tests.rig.proxy import SCRIPT, Mitmdump

pytestmark = pytest.mark.system

HOME = "https://api.openai.com"
RECORDED = Path(__file__).parents[1] / "fixtures/codex/11-responses-compaction-trigger.json"
KEPT = json.loads(RECORDED.read_text())
SAID = "We built a shed. <**clear**> Next: paint it."
ONE = "\n    {name}:\n      protocol: {dialect}\n      baseURL: https://{name}.example{path}\n      compaction: {compacts}\n" + (
    "      auth: {{type: apikey, keys: [{{alias: k, value: {name}-key}}]}}\n      models: {{m: {{}}}}"
)
CONFIG = "proxy: {interceptHosts: [api.openai.com]}\nvirtualrouter:\n  providers:" + "".join(
    ONE.format(name=name, dialect=dialect, path=path, compacts=compacts)
    for name, dialect, path, compacts in (
        ("chat", "openai-chat", "/v1", "false"),
        ("messages", "anthropic-messages", "", "false"),
        ("gemini", "gemini-chat", "", "false"),
        ("responses", "openai-responses", "/v1", "false"),
        ("able", "openai-responses", "/v1", "true"),
    )
) + "\n  routing:\n    default: [origin]\n    " + "\n    ".join(f"to-{name}: [{name}.m]" for name in
    ("chat", "messages", "gemini", "responses", "able")) + "\n"  # fmt: skip
USER = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "and now?"}]}


@pytest.fixture(scope="module")
def house() -> Iterator[tuple[FakeProvider, Mitmdump]]:
    with FakeProvider() as provider, Mitmdump(script=SCRIPT, config=CONFIG, upstream=provider) as proxy:
        yield provider, proxy
        assert proxy.alive
        assert "Traceback" not in proxy.log


def ask(proxy: Mitmdump, body: dict[str, Any], to: str = "") -> Answer:
    own = [(name, value) for name, value in KEPT["headers"] if name.lower() not in ("content-length", "host")]
    route = [("x-routecodex-route", f"to-{to}")] if to else []
    return call(HOME, "/v1/responses", json.dumps(body).encode(), headers=[*own, *route], proxy=proxy)


def items_done(answer: Answer) -> list[dict[str, Any]]:
    events = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: {")]
    assert events[-1]["type"] == "response.completed", answer.text
    return [event["item"] for event in events if event["type"] == "response.output_item.done"]


@pytest.mark.parametrize("name", ["chat", "messages", "gemini", "responses"])
def test_compacted_here_and_opened_everywhere(house: tuple[FakeProvider, Mitmdump], name: str) -> None:
    provider, proxy = house
    provider.forget()
    provider.always(Behaviour(reply=wire.Reply(text=SAID)))
    assert KEPT["body"]["input"][-1] == {"type": "compaction_trigger"}
    answer = ask(proxy, KEPT["body"], name)
    assert answer.status == 200, answer.text
    (item,) = items_done(answer)
    assert item["type"] == "compaction"
    assert SAID in item["encrypted_content"]
    (asked,) = provider.requests
    assert asked.host == f"{name}.example"
    assert b"compaction_trigger" not in asked.body
    assert b"about to be cut" in asked.body
    for other in ("chat", "messages", "gemini", "responses", "able", ""):
        provider.forget()
        later = ask(proxy, {**KEPT["body"], "input": [*KEPT["body"]["input"][:1], item, USER]}, other)
        assert later.status == 200, later.text
        (asked,) = provider.requests
        assert asked.host == (f"{other}.example" if other else "api.openai.com")
        assert json.dumps(SAID)[1:-1].encode() in asked.body, "as text, and a tag in it orders nothing"
        assert b"encrypted_content" not in asked.body.replace(b"reasoning.encrypted_content", b"")


@pytest.mark.parametrize("to", ["", "able"])
def test_who_can_compact_is_asked_to(house: tuple[FakeProvider, Mitmdump], to: str) -> None:
    provider, proxy = house
    provider.forget()
    ask(proxy, KEPT["body"], to)
    (asked,) = provider.requests
    assert json.loads(asked.body)["input"][-1] == {"type": "compaction_trigger"}


@pytest.mark.parametrize("name", ["chat", "messages", "gemini", "responses", "able"])
def test_what_another_has_sealed_is_refused_with_a_way_on(house: tuple[FakeProvider, Mitmdump], name: str) -> None:
    provider, proxy = house
    provider.forget()
    body = {**KEPT["body"], "input": [{"type": "compaction", "encrypted_content": "gAAAsealed"}, USER]}
    answer = ask(proxy, body, name)
    assert answer.status == 400
    assert "compacted by another provider, most likely api.openai.com" in answer.text
    assert "<**origin**>" in answer.text
    assert provider.requests == []
    assert ask(proxy, body).status == 200
    (asked,) = provider.requests
    assert b"gAAAsealed" in asked.body


def test_what_a_provider_has_sealed_is_its_own(house: tuple[FakeProvider, Mitmdump]) -> None:
    provider, proxy = house
    provider.forget()
    sealed = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAofable"}
    head = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m", "status": "completed", "output": [sealed]}
    events = [
        {"type": "response.created", "sequence_number": 0, "response": {**head, "status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "sequence_number": 1, "output_index": 0, "item": sealed},
        {"type": "response.output_item.done", "sequence_number": 2, "output_index": 0, "item": sealed},
        {"type": "response.completed", "sequence_number": 3, "response": head},
    ]
    raw = tuple(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n".encode() for one in events)
    provider.enqueue(Behaviour(events=raw))
    assert items_done(ask(proxy, KEPT["body"], "able")) == [sealed]
    body = {**KEPT["body"], "input": [sealed, USER]}
    provider.forget()
    assert ask(proxy, body, "able").status == 200
    assert b"gAAAofable" in provider.requests[0].body
    for other in ("chat", ""):
        answer = ask(proxy, body, other)
        assert answer.status == 400
        assert "compacted by provider able" in answer.text
        assert "<**able**>" in answer.text
