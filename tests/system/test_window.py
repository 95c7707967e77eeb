"""The window in a real browser: the list, the conversation in it, and the page, as a person sees and clicks them.

`ROUTECODEX_PICTURES=FOLDER` keeps what was seen.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.rig.behaviour import Behaviour
from tests.rig.browser import Browser, browser
from tests.rig.provider import FakeProvider
from tests.rig.proxy import SCRIPT, Mitmdump
from tests.rig.wire import Reply
from tests.system.test_web import Web
from tests.system.tool import CONFIG, Tool

pytestmark = [pytest.mark.system, pytest.mark.long]


@dataclass
class Scene:
    browser: Browser
    proxy: Mitmdump
    web: Web
    tool: Tool

    @property
    def base(self) -> str:
        return self.proxy.web_url.partition("?")[0].rstrip("/")

    def picture(self, name: str) -> None:
        if folder := os.environ.get("ROUTECODEX_PICTURES"):
            self.browser.picture(Path(folder) / f"{name}.png")

    def look_at(self, words: str, tab: str = "Request") -> str:
        """Click the first flow whose comment holds the words, then the tab; what is shown."""
        self.browser.open(f"{self.base}/#/flows")
        self.browser.click("tr", words)
        self.browser.click("nav a", tab)
        shown: str = self.browser.until("──", ".content-renderer, .contentview, pre, body")
        return shown


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("window")
    with (
        FakeProvider() as provider,
        Mitmdump(script=SCRIPT, config=CONFIG, upstream=provider, folder=folder, web=True) as proxy,
        browser() as found,
    ):
        tool = Tool(provider, proxy)
        tool.ask("a plain question", stream=True)
        tool.ask("<**six.m**> with a tag", stream=True)
        provider.enqueue(Behaviour(status=503, error="down"))
        tool.ask("<**six.m**> and again", stream=True)
        provider.enqueue(*(Behaviour(reply=Reply(f"answer number {number}")) for number in range(4)))
        tool.ask('<**stopMessage:"go on",3**> until it is done', stream=True)
        tool.ask("<**glm.glm-4.8**> nobody has that", stream=True)
        tool.ask("<script>alert(1)</script> <b>bold</b>", stream=True)
        found.open(proxy.web_url)
        found.until("Comment")
        yield Scene(found, proxy, Web(proxy), tool)
        assert proxy.alive


def test_the_list_says_what_each_flow_is(scene: Scene) -> None:
    shown = scene.browser.until("refused")
    scene.picture("list")
    assert shown.count("m · force") >= 4
    assert "503" in shown
    assert shown.count("claude-x · default") >= 5


@pytest.mark.parametrize(
    ("words", "tab", "expected", "name"),
    [
        ("claude-x · default", "Request", "a plain question", "plain"),
        ("m · force", "Request", "taken out: <**six.m**>", "forced"),
        ("m · force", "Response", "ended: end_turn", "answer"),
        ("refused", "Response", "ERROR 400", "refused"),
        ("claude-x · default", "Response", "tokens:", "tokens"),
    ],
)
def test_a_flow_is_a_conversation(scene: Scene, words: str, tab: str, expected: str, name: str) -> None:
    shown = scene.look_at(words, tab)
    scene.picture(name)
    assert "Conversation" in shown
    assert expected in scene.browser.until(expected)


def test_the_page_shows_calls_and_its_buttons_do_what_they_say(scene: Scene) -> None:
    page = scene.browser
    page.open(f"{scene.base}/routecodex")
    assert "a plain question" in page.until("a plain question", "#calls")
    assert "<b>bold</b>" in page.text("#calls"), "what was typed is text, not markup"
    scene.picture("page")
    page.type("#target", "glm.glm-4.7")
    page.click("#order button", "set")
    page.until("glm", "#routing")
    assert "every call" not in page.text("#routing")
    scene.tool.provider.forget()
    scene.tool.ask("and where does this go?", stream=True)
    assert {received.host for received in scene.tool.provider.calls} == {"open.bigmodel.cn"}
    page.click("#clear")
    page.until("Nothing: every call goes where the routes say", "#routing")
    page.type("#target", "nosuch\n")
    page.until("Not done:", "#said")


def test_the_page_is_readable_on_a_phone(scene: Scene) -> None:
    scene.browser.size(400, 800)
    scene.browser.open(f"{scene.base}/routecodex")
    scene.browser.until("a plain question", "#calls")
    scene.picture("phone")
    assert scene.browser.run("return document.documentElement.scrollWidth <= window.innerWidth + 1")
    scene.browser.size(1500, 1000)
