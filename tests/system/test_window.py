"""The window in a real browser: the list, the conversation in it, and the page, as a person sees and clicks them.

A mitmweb without a login uses no key of ours and has no page: there the list and the conversation are those of a saved file, and
the page is the one at a port of its own. `ROUTECODEX_PICTURES=FOLDER` keeps what was seen.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from mitmproxy import version

from routecodex.routing.values import Dialect
from tests.rig.behaviour import Behaviour
from tests.rig.browser import Browser, browser
from tests.rig.provider import FakeProvider
from tests.rig.proxy import SCRIPT, Mitmdump, free_port
from tests.rig.wire import Reply, ToolUse
from tests.system.test_clock import config
from tests.system.test_web import Web
from tests.system.tool import Tool

pytestmark = [pytest.mark.system, pytest.mark.long]


HAS_LOGIN = tuple(map(int, version.VERSION.split(".")[:3])) >= (11, 1, 2)


@dataclass
class Scene:
    browser: Browser
    name: str
    """Which of the windows, or of the pages."""
    base: str

    def picture(self, name: str) -> None:
        if folder := os.environ.get("ROUTECODEX_PICTURES"):
            self.browser.picture(Path(folder) / f"{self.name}-{name}.png")


@dataclass
class Window(Scene):
    web: Web

    def look_at(self, words: str, tab: str = "Request") -> str:
        """Click the first flow whose comment holds the words, then the tab; what is shown."""
        self.browser.open(f"{self.base}/#/flows")
        self.browser.click("tr", words)
        self.browser.click("nav a", tab)
        shown: str = self.browser.until("──", ".content-renderer, .contentview, pre, body")
        return shown

    def leg(self, marker: str) -> None:
        leg = next(flow for flow in self.web.flows if flow["marked"] == marker)
        self.browser.open(f"{self.base}/?{leg['id']}#/flows/{leg['id']}/response")  # another address: it is loaded anew


@dataclass
class Page(Scene):
    tool: Tool

    def open(self, part: str, words: str) -> str:
        self.browser.open(f"{self.base}/routecodex")
        return self.browser.until(words, part)


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


def talk(provider: FakeProvider, proxy: Mitmdump) -> Tool:
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
    return tool


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as found:
        yield found


@pytest.fixture(scope="module", params=["live", "saved"] if HAS_LOGIN else ["saved"])
def window(request: pytest.FixtureRequest, chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Window]:
    """While the calls are made, or `mitmweb -r` with what `mitmdump -w` wrote of them."""
    folder, config_, live = tmp_path_factory.mktemp("window"), PRICES + config(), request.param == "live"
    with ExitStack() as open_:
        provider = open_.enter_context(FakeProvider())
        made = Mitmdump(script=SCRIPT, config=config_, upstream=provider, folder=folder / "made", web=live, flows=not live)
        proxy = open_.enter_context(made)
        talk(provider, proxy)
        if not live:
            proxy.stop()
            args = ["-r", str(proxy.flows_path)]
            proxy = open_.enter_context(Mitmdump(script=SCRIPT, config=config_, folder=folder / "read", web=True, args=args))
        chromium.open(proxy.web_url)
        chromium.until("Comment")
        yield Window(chromium, request.param, proxy.web_url.partition("?")[0].rstrip("/"), Web(proxy))
        assert proxy.alive
        assert "Traceback" not in proxy.log


@pytest.fixture(scope="module", params=["mitmweb", "own-port"] if HAS_LOGIN else ["own-port"])
def page(request: pytest.FixtureRequest, chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    folder, port, web = tmp_path_factory.mktemp("page"), free_port(), request.param == "mitmweb"
    options = [] if web else [f"routecodex_page={port}"]
    with (
        FakeProvider() as provider,
        Mitmdump(script=SCRIPT, config=PRICES + config(), upstream=provider, folder=folder, web=web, options=options) as proxy,
    ):
        entrance = proxy.web_url if web else entrance_of(proxy, port)
        tool = talk(provider, proxy)
        address, _, token = entrance.partition("?token=")
        base = address.removesuffix("/routecodex").rstrip("/")
        if web:  # mitmweb's login stands before it
            chromium.open(f"{base}/routecodex")
            chromium.until("Authentication Required")
            chromium.type("input[name=token]", f"{token}\n")
        else:
            chromium.open(entrance)
        chromium.until("What is this program")
        yield Page(chromium, request.param, base, tool)
        assert proxy.alive
        assert "Traceback" not in proxy.log


def entrance_of(proxy: Mitmdump, port: int) -> str:
    """As it stands in the log, with its token."""
    deadline = time.monotonic() + 60
    while not (found := re.search(rf"http://127\.0\.0\.1:{port}/routecodex\?token=\S+", proxy.log)):
        assert time.monotonic() < deadline, proxy.log
        time.sleep(0.05)
    return found[0]


def test_the_list_says_what_each_flow_is(window: Window) -> None:
    shown = window.browser.until("refused")
    window.picture("list")
    assert shown.count("glm-4.7 · force") >= 4
    assert "503" in shown
    assert shown.count("claude-x · default") >= 5
    assert {"➡", "↪", "🔁", "❌", "🔍", "⛔"} <= {flow["marked"] for flow in window.web.flows}


@pytest.mark.parametrize(
    ("words", "tab", "expected", "name"),
    [
        ("claude-x · default", "Request", "What is this program", "plain"),
        ("claude-x · default", "Response", "thinking:", "plain-answer"),
        ("glm-4.7 · force", "Request", "taken out: <**glm.glm-4.7**>", "forced"),
        ("glm-4.7 · force", "Response", "ended: end_turn", "forced-answer"),
        ("anthropic-messages · 1 round", "Request", "openai-chat → anthropic-messages", "translated"),
        ("anthropic-messages · 1 round", "Response", "stop reason: end_turn → stop", "translated-answer"),
        ("4 rounds of", "Response", "4 rounds stand behind this answer", "rounds"),
        ("stop_followup", "Request", "go on until every test is green", "round"),
        ("after glm.", "Response", "answered by glm.", "failover"),
        ("refused", "Response", "ERROR 400", "refused"),
    ],
)
def test_a_flow_is_a_conversation(window: Window, words: str, tab: str, expected: str, name: str) -> None:
    shown = window.look_at(words, tab)
    assert "Conversation" in shown
    assert expected in window.browser.until(expected)
    window.picture(name)


def test_a_failed_attempt_shows_how_it_failed(window: Window) -> None:
    window.leg("❌")
    window.browser.until("FAILED: status 503")
    window.picture("failed")


def test_what_the_provider_said_itself_is_a_leg(window: Window) -> None:
    window.leg("🔍")
    window.browser.until("ended: end_turn")
    window.picture("leg")


def test_the_page_shows_calls_and_its_buttons_do_what_they_say(page: Page) -> None:
    seen = page.browser
    page.open("#calls", "What is this program")
    assert "<b>bold</b>" in seen.text("#calls"), "what was typed is text, not markup"
    assert "10,810 + 24" in seen.text("#calls"), "all rounds of a call are counted"
    page.picture("page")
    seen.type("#target", "glm.glm-4.7")
    seen.click("#order button", "set")
    seen.until("Sticky: glm.glm-4.7", "#routing")
    assert "every call" not in seen.text("#routing")
    page.tool.provider.forget()
    page.tool.ask("and where does this go?", stream=True)
    assert {received.host for received in page.tool.provider.calls} == {"open.bigmodel.cn"}
    seen.click("#clear")
    seen.until("Nothing: every call goes where the routes say", "#routing")
    seen.type("#target", "nosuch\n")
    seen.until("Not done:", "#said")


def test_a_session_says_what_is_in_force_and_why_and_can_be_erased(page: Page) -> None:
    Tool(page.tool.provider, page.tool.proxy).ask("<**!glm.glm-4.7**> Keep to it.", stream=True)
    shown = page.open("#sessions", "Keep to it.")
    assert "Sticky: glm.glm-4.7 (all keys)." in shown
    assert "sticky: the session keeps to glm.glm-4.7" in shown
    page.browser.click("#sessions button", "erase")
    page.browser.until("None: a tag such as", "#sessions")


def test_a_call_on_the_page_leads_to_its_legs(page: Page) -> None:
    """Where a list of flows is beside it; else nothing leads nowhere."""
    page.open("#calls", "Are you there?")
    if page.name == "own-port":
        assert page.browser.run("return [...document.querySelectorAll('a')].every(one => one.hidden)")
        return
    rows = page.browser.run(
        "return [...document.querySelectorAll('#calls tr')].findIndex(one => one.innerText.includes('Are you there?'))"
    )
    page.browser.click(f"#calls tr:nth-child({rows + 1}) a", "legs")
    shown = page.browser.until("glm-4.7 · force")
    assert "503" in shown
    assert shown.count("glm-4.7 · force") == 3, "the call, the attempt that failed, and the one that answered"
    page.picture("legs")


def test_the_page_shows_reminders(page: Page) -> None:
    shown = page.open("#reminders", LATER)
    assert shown.count("with its session's next call") == 1
    assert shown.index("with its session's next call") < shown.index("is the deploy through?") < shown.index(LATER)
    assert page.browser.run("return [...document.querySelectorAll('.wide')].every(one => one.scrollWidth <= one.clientWidth)"), (
        "long words break"
    )
    page.browser.run("document.querySelector('#reminders').scrollIntoView({block: 'center'})")
    page.picture("reminders")


def test_the_page_is_readable_on_a_phone(page: Page) -> None:
    page.browser.size(400, 800)
    page.open("#calls", "What is this program")
    page.picture("phone")
    page.browser.run("document.querySelector('#reminders').scrollIntoView({block: 'center'})")
    page.picture("phone-reminders")
    assert page.browser.run("return document.documentElement.scrollWidth <= window.innerWidth + 1")
    page.browser.size(1500, 1000)
