from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.addons.control.commands.person import Person


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Person:
    return Person(tmp_path / "home", monkeypatch, capsys)


class Lister:
    """A provider that lists its models, to whoever has the right key."""

    def __init__(self) -> None:
        self.key, self.status, self.date = "sk-right", 200, ""
        self.body = b'{"data": [{"id": "glm-4.7"}, {"id": "glm-9"}, {"name": "no id"}, 7]}'
        self.asked: list[tuple[str, dict[str, str]]] = []
        lister = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                lister.asked.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
                right = lister.key in str(self.headers)
                self.send_response_only(lister.status if right else 401)
                self.send_header("date", lister.date or self.date_time_string())
                self.send_header("content-length", str(len(lister.body)))
                self.end_headers()
                self.wfile.write(lister.body)

            def log_message(self, *given: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def config(self, value: str = "sk-right", protocol: str = "openai-chat", path: str = "/v1") -> str:
        return (
            "virtualrouter:\n  providers:\n    glm:\n"
            f"      protocol: {protocol}\n      baseURL: http://127.0.0.1:{self.port}{path}\n"
            f'      auth: {{type: apikey, keys: [{{alias: primary, value: "{value}"}}]}}\n'
            "      models: {glm-4.7: {}, glm-old: {}}\n"
            "  routing: {default: [origin], thinking: [glm.glm-4.7]}\n"
        )


@pytest.fixture
def lister() -> Iterator[Lister]:
    found = Lister()
    yield found
    found.close()
