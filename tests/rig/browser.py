"""A real Chromium, driven over the W3C WebDriver protocol by Debian's chromedriver: what a person clicks, and then sees."""

from __future__ import annotations

import base64
import contextlib
import json
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.rig.proxy import free_port

PATIENCE_S = 60
_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
_FLAGS = ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--no-proxy-server", "--disable-gpu")


class Browser:
    def __init__(self, port: int, session: str) -> None:
        self._base = f"http://127.0.0.1:{port}/session/{session}"

    def open(self, url: str) -> None:
        self._ask("POST", "/url", {"url": url})

    def run(self, script: str, *given: object) -> Any:
        return self._ask("POST", "/execute/sync", {"script": script, "args": list(given)})

    def text(self, selector: str = "body") -> str:
        return str(self.run("return document.querySelector(arguments[0])?.innerText ?? ''", selector))

    def until(self, words: str, selector: str = "body") -> str:
        return self.wait(lambda: text if words in (text := self.text(selector)) else "", words)

    def wait(self, condition: Callable[[], Any], what: str) -> Any:
        deadline = time.monotonic() + PATIENCE_S
        while not (found := condition()):
            assert time.monotonic() < deadline, f"{what} never came: {self.text()[:2000]}"
            time.sleep(0.1)
        return found

    def click(self, selector: str, words: str = "") -> None:
        """The first element of that kind that says these words."""
        self._ask("POST", f"/element/{self._find(selector, words)}/click", {})

    def type(self, selector: str, text: str) -> None:
        self._ask("POST", f"/element/{self._find(selector, '')}/value", {"text": text})

    def size(self, width: int, height: int) -> None:
        self._ask("POST", "/window/rect", {"width": width, "height": height})

    def picture(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self._ask("GET", "/screenshot")))

    def _find(self, selector: str, words: str) -> str:
        script = "return [...document.querySelectorAll(arguments[0])].find(one => one.innerText.includes(arguments[1]))"
        found = self.wait(lambda: self.run(script, selector, words), f"{selector} {words}")
        return str(found[_ELEMENT])

    def _ask(self, method: str, path: str, body: object = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._base + path, data, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            return json.load(answer)["value"]


@contextlib.contextmanager
def browser() -> Iterator[Browser]:
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    assert chromium is not None, "the long profile needs Chromium"
    assert driver is not None, "the long profile needs chromedriver"
    port = free_port()
    running = subprocess.Popen(
        [driver, f"--port={port}"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        options = {"goog:chromeOptions": {"binary": chromium, "args": [*_FLAGS, "--window-size=1500,1000"]}}
        asked = json.dumps({"capabilities": {"alwaysMatch": options}}).encode()
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/session", asked, timeout=PATIENCE_S) as answer:
                    session = json.load(answer)["value"]["sessionId"]
                break
            except OSError:
                assert time.monotonic() < deadline, "chromedriver does not answer"
                time.sleep(0.1)
        found = Browser(port, session)
        yield found
        with contextlib.suppress(OSError):
            found._ask("DELETE", "")
    finally:
        running.terminate()
        running.wait(10)
