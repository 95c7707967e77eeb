"""The window in a real browser: the list, the conversation in it, and the page, as a person sees and clicks them.

`ROUTECODEX_PICTURES=FOLDER` keeps what was seen.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from routecodex.routing.values import Dialect
from tests.rig.behaviour import Behaviour
from tests.rig.browser import Browser, browser
from tests.rig.provider import FakeProvider
from tests.rig.proxy import SCRIPT, Mitmdump
from tests.rig.wire import Reply, ToolUse
from tests.system.test_clock import config
from tests.system.test_web import Web
from tests.system.tool import Tool

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


PRICES = """usage:
  prices: {glm.glm-4.7: {input: 0.6, cached: 0.11, output: 2.2}, claude-x: {input: 3, cached: 0.3, output: 15}}
"""
POEM = "Roses are red, caches are warm:\na prefix that changes is read in its old form."


LATER = "renew the certificate of <b>six.example</b>"
LONG = f"{'x' * 150} {'look at every job of the night run, ' * 4}"


def reminders() -> Reply:
    now = datetime.now(UTC)
    due = {timedelta(minutes=-3): "is the deploy through?", timedelta(hours=5): LONG, timedelta(days=400): LATER}
    items = [{"dueAt": (now + when).isoformat(), "task": task} for when, task in due.items()]
    return Reply("", calls=(ToolUse("clock", {"action": "schedule", "items": items}),))


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("window")
    with (
        FakeProvider() as provider,
        Mitmdump(script=SCRIPT, config=PRICES + config(), upstream=provider, folder=folder, web=True) as proxy,
        browser() as found,
    ):
        tool, other = Tool(provider, proxy), Tool(provider, proxy, Dialect.CHAT)

        def says(*replies: Reply | Behaviour) -> None:
            provider.enqueue(*(one if isinstance(one, Behaviour) else Behaviour(reply=one) for one in replies))

        says(Reply("It is a proxy that reads what you type.", thinking="They want one sentence.", input_tokens=2_400))
        tool.ask("What is this program, in one sentence?", stream=True)
        says(Reply(POEM, input_tokens=2_500, cached_tokens=2_300))
        tool.ask("<**glm.glm-4.7**> Write two lines about caches.", stream=True)
        says(Reply("Zwei Zeilen ueber Caches.", input_tokens=310))
        other.ask("<**claude.claude-sonnet-4-5**> And in German?", stream=True)
        says(Behaviour(status=503, error="all workers are busy"), Reply("Here I am.", input_tokens=2_600))
        tool.ask("<**glm.glm-4.7**> Are you there?", stream=True)
        says(*(Reply(f"Step {number} of 4 is done.", input_tokens=2_700 + number) for number in range(1, 5)))
        tool.ask('<**stopMessage:"go on until every test is green",3**> Fix the tests.', stream=True)
        tool.ask("<**glm.glm-4.8**> Nobody has that.", stream=True)
        says(reminders(), Reply("They are set."))
        other.ask("And remind me of all that.", stream=True)
        says(Reply("No script ran."))
        tool.ask("<script>alert(1)</script> <b>bold</b>", stream=True)
        found.open(proxy.web_url)
        found.until("Comment")
        yield Scene(found, proxy, Web(proxy), tool)
        assert proxy.alive


def test_the_list_says_what_each_flow_is(scene: Scene) -> None:
    shown = scene.browser.until("refused")
    scene.picture("list")
    assert shown.count("glm-4.7 · force") >= 4
    assert "503" in shown
    assert shown.count("claude-x · default") >= 5
    assert {"➡", "↪", "🔁", "❌", "🔍", "⛔"} <= {flow["marked"] for flow in scene.web.flows}


@pytest.mark.parametrize(
    ("words", "tab", "expected", "name"),
    [
        ("claude-x · default", "Request", "What is this program", "plain"),
        ("claude-x · default", "Response", "thinking:", "plain-answer"),
        ("glm-4.7 · force", "Request", "taken out: <**glm.glm-4.7**>", "forced"),
        ("glm-4.7 · force", "Response", "ended: end_turn", "forced-answer"),
        ("claude-sonnet-4-5 · force", "Request", "openai-chat → anthropic-messages", "translated"),
        ("claude-sonnet-4-5 · force", "Response", "stop reason: end_turn → stop", "translated-answer"),
        ("4 rounds of", "Response", "4 rounds stand behind this answer", "rounds"),
        ("stop_followup", "Request", "go on until every test is green", "round"),
        ("after glm.", "Response", "answered by glm.", "failover"),
        ("refused", "Response", "ERROR 400", "refused"),
    ],
)
def test_a_flow_is_a_conversation(scene: Scene, words: str, tab: str, expected: str, name: str) -> None:
    shown = scene.look_at(words, tab)
    assert "Conversation" in shown
    assert expected in scene.browser.until(expected)
    scene.picture(name)


def test_a_failed_attempt_shows_how_it_failed(scene: Scene) -> None:
    leg = next(flow for flow in scene.web.flows if flow["marked"] == "❌")
    scene.browser.open(f"{scene.base}/?{leg['id']}#/flows/{leg['id']}/response")  # another address: it is loaded anew
    scene.browser.until("FAILED: status 503")
    scene.picture("failed")


def test_what_the_provider_said_itself_is_a_leg(scene: Scene) -> None:
    leg = next(flow for flow in scene.web.flows if flow["marked"] == "🔍")
    scene.browser.open(f"{scene.base}/?{leg['id']}#/flows/{leg['id']}/response")  # another address: it is loaded anew
    scene.browser.until("ended: end_turn")
    scene.picture("leg")


def test_the_page_shows_calls_and_its_buttons_do_what_they_say(scene: Scene) -> None:
    page = scene.browser
    page.open(f"{scene.base}/routecodex")
    assert "What is this program" in page.until("What is this program", "#calls")
    assert "<b>bold</b>" in page.text("#calls"), "what was typed is text, not markup"
    assert "10,810 + 24" in page.text("#calls"), "all rounds of a call are counted"
    scene.picture("page")
    page.type("#target", "glm.glm-4.7")
    page.click("#order button", "set")
    page.until("Sticky: glm.glm-4.7", "#routing")
    assert "every call" not in page.text("#routing")
    scene.tool.provider.forget()
    scene.tool.ask("and where does this go?", stream=True)
    assert {received.host for received in scene.tool.provider.calls} == {"open.bigmodel.cn"}
    page.click("#clear")
    page.until("Nothing: every call goes where the routes say", "#routing")
    page.type("#target", "nosuch\n")
    page.until("Not done:", "#said")


def test_a_call_on_the_page_leads_to_its_legs(scene: Scene) -> None:
    scene.browser.open(f"{scene.base}/routecodex")
    scene.browser.until("Are you there?", "#calls")
    rows = scene.browser.run(
        "return [...document.querySelectorAll('#calls tr')].findIndex(one => one.innerText.includes('Are you there?'))"
    )
    scene.browser.click(f"#calls tr:nth-child({rows + 1}) a", "legs")
    shown = scene.browser.until("glm-4.7 · force")
    assert "503" in shown
    assert shown.count("glm-4.7 · force") == 3, "the call, the attempt that failed, and the one that answered"
    scene.picture("legs")


def test_the_page_shows_reminders(scene: Scene) -> None:
    scene.browser.open(f"{scene.base}/routecodex")
    shown = scene.browser.until(LATER, "#reminders")
    assert shown.count("with its session's next call") == 1
    assert shown.index("with its session's next call") < shown.index("is the deploy through?") < shown.index(LATER)
    assert scene.browser.run("return [...document.querySelectorAll('.wide')].every(one => one.scrollWidth <= one.clientWidth)"), (
        "long words break"
    )
    scene.browser.run("document.querySelector('#reminders').scrollIntoView({block: 'center'})")
    scene.picture("reminders")


def test_the_page_is_readable_on_a_phone(scene: Scene) -> None:
    scene.browser.size(400, 800)
    scene.browser.open(f"{scene.base}/routecodex")
    scene.browser.until("What is this program", "#calls")
    scene.picture("phone")
    scene.browser.run("document.querySelector('#reminders').scrollIntoView({block: 'center'})")
    scene.picture("phone-reminders")
    assert scene.browser.run("return document.documentElement.scrollWidth <= window.innerWidth + 1")
    scene.browser.size(1500, 1000)
