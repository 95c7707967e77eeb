"""What becomes of a client's call on its way into a recording, and what is said of a changed one."""

from __future__ import annotations

import json
from pathlib import Path

from routecodex.routing.clients.identify import NAMES
from tests.record.fixtures import as_recorded, number_of, shape_of, write
from tests.record.ways import CLIENTS
from tests.rig.client import call
from tests.rig.provider import FakeProvider

LONG = "x" * 3000
BODY = {
    "model": "m",
    "stream": False,
    "tools": [{"name": str(number)} for number in range(5)],
    "system": LONG,
    "messages": [{"role": "user", "content": [{"type": "text", "text": f"<file>{LONG}</file>\nhi"}]}],
}


def recorded(provider: FakeProvider) -> dict[str, object]:
    headers = (("authorization", "Bearer sk-secret-secret"), ("user-agent", "some-tool/1"))
    call(provider.url, "/v1/messages?key=secret&x=1", BODY, headers=headers)
    places = {"some-tool": "/home/dev/tool"}
    return as_recorded(provider.calls[-1], client="c", version="1", note="n", places=places)


def test_a_recording_holds_no_secrets_and_keeps_ends(provider: FakeProvider) -> None:
    one = recorded(provider)
    written = json.dumps(one)
    assert "secret-secret" not in written
    assert "key=secret" not in written
    assert len(written) < 2500
    assert ["user-agent", "/home/dev/tool/1"] in one["headers"]
    body = one["body"]
    assert isinstance(body, dict)
    assert len(body["tools"]) == 2
    text = body["messages"][0]["content"][0]["text"]
    assert text.startswith("<file>xxx")
    assert text.endswith("x</file>\nhi")


def test_only_what_matters_is_a_change(provider: FakeProvider) -> None:
    before = recorded(provider)
    after = json.loads(json.dumps(before))
    after["body"]["messages"][0]["content"][0]["text"] = "<file>" + "x" * 200
    after["body"]["model"] = "n"
    assert shape_of(after) == shape_of(before)
    after["body"]["messages"][0]["content"][0]["text"] = "<document>"
    after["headers"].append(["X-New", "1"])
    assert {*shape_of(after)} - {*shape_of(before)} == {"header x-new", "  text '<document>'"}


def test_names_keep_their_numbers(tmp_path: Path) -> None:
    first = number_of(tmp_path, "one")
    write(first, {})
    assert (first.name, number_of(tmp_path, "two").name, number_of(tmp_path, "one")) == ("01-one.json", "02-two.json", first)


def test_every_tool_is_played() -> None:
    folders = {"continue-cn": "continue"}
    assert {folders.get(client, client) for client in CLIENTS} == NAMES
