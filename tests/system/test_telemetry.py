"""Telemetry of a running proxy: what a collector is sent, and what whoever may see the page is told."""

from __future__ import annotations

import base64
import http.server
import json
import re
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.rig.behaviour import Behaviour
from tests.rig.provider import FakeProvider
from tests.rig.proxy import SCRIPT, Mitmdump, free_port
from tests.routing.telemetry.test_exposition import value
from tests.routing.telemetry.test_otlp import attributes, read_spans
from tests.system.test_team import CONFIG, PASSWORDS, ask, htpasswd

pytestmark = pytest.mark.system


@contextmanager
def collector() -> Iterator[tuple[str, list[tuple[str, bytes]]]]:
    """Its address, and what it was sent."""
    got: list[tuple[str, bytes]] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append((self.path, self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *given: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", got
    finally:
        server.shutdown()
        server.server_close()


def look(port: int, path: str, authorization: str = "") -> tuple[int, str]:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}{path}", headers={"Authorization": authorization} if authorization else {}
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, ""


def basic(user: str, password: str = "") -> str:
    return "Basic " + base64.b64encode(f"{user}:{password or PASSWORDS[user]}".encode()).decode()


def test_calls_of_people(tmp_path: Path) -> None:
    port = free_port()
    with FakeProvider() as provider, collector() as (address, got):
        config = CONFIG + f"telemetry: {{prometheus: true, otlp: {address}}}\nadmins: [alice]\n"
        options = [htpasswd(tmp_path), f"routecodex_page={port}"]
        with Mitmdump(script=SCRIPT, config=config, upstream=provider, folder=tmp_path, options=options) as proxy:
            provider.enqueue(Behaviour(status=500, headers=(("Retry-After", "600"),)))  # its key rests as long as is looked at
            assert ask(proxy, "hello", "alice").status_code == 200
            assert ask(proxy, "<**nobody.x**> hello", "bob").status_code == 400
            deadline = time.monotonic() + 60
            while not (found := re.search(r"/routecodex\?token=(\S+)", proxy.log)):
                assert time.monotonic() < deadline, proxy.log
                time.sleep(0.05)
            for who in (f"Bearer {found[1]}", basic("alice")):
                status, text = look(port, "/metrics", who)
                assert status == 200
                assert value(text, "routecodex_attempts_total", provider="hers", outcome="500") == 1
                assert value(text, "routecodex_failovers_total") == 1
                assert value(text, "gen_ai_client_token_usage_count", gen_ai_token_type="output") == 1
                assert value(text, "routecodex_refused_total", code="PROVIDER_NOT_AVAILABLE") == 1
                assert value(text, "routecodex_key_resting", provider="hers") == 1
                assert value(text, "routecodex_time_to_first_byte_seconds_count") == 1
            for who in ("", "Bearer x", basic("bob", "x"), basic("bob")):
                assert look(port, "/metrics", who)[0] in (401, 404)
            for user, others in (("bob", "alice"), ("alice", "")):
                told = json.loads(look(port, "/routecodex/state", basic(user))[1])
                people = {call["user"] for call in told["calls"]}
                assert people == ({"bob"} if others else {"alice", "bob"})
                assert not others or others not in json.dumps(told)
                assert [one["name"] for one in told["models"]["providers"]] == (["glm"] if others else ["glm", "hers"])
        spans = [
            span for path, body in got if path == "/v1/traces" for span in read_spans(body).resource_spans[0].scope_spans[0].spans
        ]
    calls = {attributes(span)["user.name"]: span for span in spans if span.name.startswith("call ")}
    assert attributes(calls["bob"])["routecodex.refused"] == "PROVIDER_NOT_AVAILABLE"
    rounds = [span for span in spans if span.parent_span_id == calls["alice"].span_id]
    assert [attributes(span).get("error.type") for span in rounds] == ["500", None]
    assert attributes(rounds[1])["gen_ai.usage.output_tokens"] > 0
    assert b"hello" not in b"".join(body for _, body in got)
    for secret in (*PASSWORDS.values(), "hers-k1-value", "glm-k1-value", "sk-of-a-tool"):
        assert secret.encode() not in b"".join(body for _, body in got)
