"""mitmweb: what it shows of our calls, and what a person can do to them there: replay, kill, delete, duplicate."""

from __future__ import annotations

import asyncio
import http.cookiejar
import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from routecodex.routing.values import Dialect
from tests.rig.behaviour import Behaviour
from tests.rig.client import Answer, Http1, Route
from tests.rig.provider import FakeProvider
from tests.rig.proxy import SCRIPT, Mitmdump
from tests.rig.wire import Reply
from tests.system.tool import CONFIG, CREDENTIALS, HOSTS, Tool, write

pytestmark = pytest.mark.system

SECRETS = (b"sk-client-secret", b"six-key-", b"glm-key-", b"sk-ant-own")
_TOKEN = "0123456789abcdef"


class Web:
    """A browser, as far as mitmweb's own page uses one."""

    def __init__(self, proxy: Mitmdump) -> None:
        self.base = proxy.web_url.partition("?")[0].rstrip("/")
        self._open = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))
        self._open.open(proxy.web_url, timeout=60).read()
        # Older and newer versions name the cookie of their forms differently.
        self._open.addheaders = [("X-XSRFToken", _TOKEN)]
        for processor in self._open.handlers:
            if isinstance(processor, urllib.request.HTTPCookieProcessor):
                for name in ("_xsrf", "_mitmproxy_xsrf"):
                    processor.cookiejar.set_cookie(_cookie(name))

    def get(self, path: str) -> bytes:
        return bytes(self._open.open(self.base + path, timeout=60).read())

    def post(self, path: str, method: str = "POST", data: bytes = b"") -> bytes:
        headers = {"Content-Type": "application/json"} if data else {}
        request = urllib.request.Request(self.base + path, method=method, data=data, headers=headers)
        return bytes(self._open.open(request, timeout=60).read())

    @property
    def flows(self) -> list[dict[str, Any]]:
        return list(json.loads(self.get("/flows")))

    def until(self, condition: Callable[[dict[str, Any]], object], index: int = -1) -> dict[str, Any]:
        deadline = time.monotonic() + 60
        while not condition(flow := self.flows[index]):
            assert time.monotonic() < deadline, flow
            time.sleep(0.05)
        return flow


def _cookie(name: str) -> http.cookiejar.Cookie:
    return http.cookiejar.Cookie(
        0, name, _TOKEN, None, False, "127.0.0.1", True, False, "/", True, False, None, True, None, None, {}
    )


@dataclass
class Desk:
    web: Web
    tool: Tool

    @property
    def provider(self) -> FakeProvider:
        return self.tool.provider

    def replay(self, flow: dict[str, Any], count: int) -> None:
        """mitmproxy refuses as long as it is busy with the flow's last replay."""
        deadline = time.monotonic() + 60
        while len(self.provider.calls) < count:
            assert time.monotonic() < deadline
            self.web.post(f"/flows/{flow['id']}/replay")
            time.sleep(0.1)


@pytest.fixture(scope="module")
def proxy(provider: FakeProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mitmdump]:
    folder = tmp_path_factory.mktemp("web")
    with Mitmdump(script=SCRIPT, config=CONFIG, upstream=provider, folder=folder, web=True) as started:
        yield started


@pytest.fixture
def desk(provider: FakeProvider, proxy: Mitmdump) -> Iterator[Desk]:
    provider.forget()
    web = Web(proxy)
    web.post("/clear")
    yield Desk(web, Tool(provider, proxy))
    assert proxy.alive
    for secret in SECRETS:
        assert secret not in web.get("/flows") + web.get("/flows/dump")
        assert secret not in proxy.log.encode()


def legs_of(web: Web) -> tuple[Any, Any, Any]:
    """The client's own flow, the attempt that failed, and the one that answered."""
    flows = web.flows
    failed = next(flow for flow in flows if flow["marked"] == "❌")
    first, retry = (flow for flow in flows if flow is not failed)
    return first, failed, retry


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "json"])
def test_what_is_shown(desk: Desk, stream: bool) -> None:
    desk.provider.enqueue(Behaviour(status=500, error="down"))
    desk.tool.ask("<**six.m**> hello", stream=stream)
    first, failed, retry = legs_of(desk.web)
    for flow in (first, failed, retry):
        assert flow["comment"].startswith("m · ")
        assert flow["comment"].count("six.k") >= 1
        assert flow["request"]["host"] == "six.example"
    assert [flow["marked"] for flow in (first, failed, retry)] == ["➡", "❌", "🔁"]
    assert " · retry of " in retry["comment"]
    assert failed["error"]["msg"].startswith("status 500")
    assert failed["response"]["status_code"] == 500
    assert b"down" in desk.web.get(f"/flows/{failed['id']}/response/content.data")
    view = "Conversation"
    told = desk.web.get(f"/flows/{first['id']}/request/content/{view}.json?lines=200").decode()
    assert "TYPED" in told
    assert "<**six.m**> hello" in told
    assert "taken out: <**six.m**>" in told
    shown = desk.web.get(f"/flows/{first['id']}/response/content.data")
    assert (b"message_stop" if stream else b'"stop_reason"') in shown, "the client's whole answer is shown"
    request = desk.web.get(f"/flows/{first['id']}/request/content.data")
    assert b"hello" in request
    assert b"<**" not in request


def test_every_attempt_that_failed_says_how(desk: Desk) -> None:
    """The first is a copy of the client's own flow, later ones have flows of their own: each keeps its answer and its error."""
    desk.provider.enqueue(Behaviour(status=500, error="down"), Behaviour(error="worn out", error_after=0))
    desk.tool.ask("<**six.m**> hello", stream=True)
    own, first, second, last = desk.web.flows
    assert [flow["marked"] for flow in (own, first, second, last)] == ["➡", "❌", "❌", "🔁"]
    for flow, error, words in ((first, "status 500", b"down"), (second, "status 529", b"worn out")):
        assert flow["error"]["msg"].startswith(error)
        assert words in desk.web.get(f"/flows/{flow['id']}/response/content.data")
    assert "error" not in own
    assert " · after six.k" in own["comment"], "where the call went in the end"


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "json"])
def test_what_a_provider_of_another_dialect_said_is_shown_beside(desk: Desk, stream: bool) -> None:
    tool = Tool(desk.provider, desk.tool.proxy, Dialect.CHAT)
    tool.ask("<**claude.claude-sonnet-4-5**> hello", stream=stream)
    desk.web.until(lambda flow: flow["marked"] == "🔍")
    first, leg = desk.web.flows
    assert first["marked"] == "➡"
    got, said = (desk.web.get(f"/flows/{flow['id']}/response/content.data") for flow in (first, leg))
    assert (b"chat.completion" in got, b"chat.completion" in said) == (True, False)
    assert b'"stop_reason"' in said
    told = desk.web.get(f"/flows/{leg['id']}/response/content/Conversation.json?lines=200").decode()
    assert "ended: end_turn" in told
    assert leg["response"]["status_code"] == 200


def test_what_failed_in_the_end_is_marked(desk: Desk) -> None:
    desk.provider.enqueue(Behaviour(status=400, error="no"))
    tool = Tool(desk.provider, desk.tool.proxy, Dialect.CHAT)
    tool.ask("<**claude.claude-sonnet-4-5**> hello")
    first, leg = desk.web.flows
    assert [flow["marked"] for flow in (first, leg)] == ["❌", "🔍"]
    said = desk.web.get(f"/flows/{leg['id']}/response/content.data")
    assert b'"type": "error"' in said or b'"type":"error"' in said, "the provider's own error, in its own dialect"


def test_an_answer_of_our_own_is_shown(desk: Desk) -> None:
    desk.tool.ask("<**echo**> hello")
    (flow,) = desk.web.flows
    assert flow["marked"]
    assert flow["comment"].startswith("echo")


# ---- commands ----


def command(desk: Desk, name: str, *words: str) -> Any:
    """As mitmweb's command bar sends it."""
    return json.loads(desk.web.post(f"/commands/{name}", data=json.dumps({"arguments": words}).encode()))


@pytest.mark.parametrize("target, host", [("six.m", "six.example"), ("claude.claude-sonnet-4-5", "api.anthropic.com")])
def test_a_call_is_sent_again_to_another_target(desk: Desk, target: str, host: str) -> None:
    """With the key of that target; its own flow shows the answer, in the dialect that the call was in."""
    Tool(desk.provider, desk.tool.proxy, Dialect.CHAT).ask("hello", stream=True)
    desk.provider.forget()
    told = command(desk, "routecodex.again", f"@{desk.web.flows[0]['id']}", target)
    assert "goes to" in told["value"][0], told
    desk.provider.wait_for(1)
    flow = desk.web.until(lambda flow: flow["marked"] == "🔄" and (flow.get("response") or {}).get("timestamp_end"), 1)
    (received,) = desk.provider.calls
    assert received.host == host
    assert "sk-client-secret" not in str(received.headers)
    said = desk.web.get(f"/flows/{flow['id']}/response/content.data")
    assert b"chat.completion" in said
    assert flow["comment"].split(" · ")[1] == "again"
    assert "error" in command(desk, "routecodex.again", f"@{flow['id']}", "origin"), "no key is kept for that"


def test_what_is_sent_again_holds_no_tag(desk: Desk) -> None:
    """The flow of a call that we answered shows it as its tool sent it."""
    for text in ("<**help**>", "<**echo**> say this"):
        desk.tool.ask(text)
    alone, echoed = desk.web.flows
    desk.provider.forget()
    for flow in (echoed, alone):
        assert "goes to" in command(desk, "routecodex.again", f"@{flow['id']}", "<**six.m**>")["value"][0]
    refused = desk.web.until(lambda flow: (flow.get("response") or {}).get("timestamp_end"))
    assert (refused["marked"], refused["response"]["status_code"]) == ("⛔", 400)
    assert "tags alone" in refused["comment"]
    desk.provider.wait_for(1)
    (received,) = desk.provider.calls
    assert b"say this" in received.body
    assert b"<**" not in received.body
    assert b"[RouteCodex]" not in received.body


# ---- replay ----


@pytest.mark.parametrize(
    "text, host, stream",
    [
        ("<**six.m**> hello", "six.example", True),
        ("<**six.m**> hello", "six.example", False),
        ("hello", "api.anthropic.com", True),
    ],
)
def test_a_persons_replay_goes_to_the_same_target_with_its_key(desk: Desk, text: str, host: str, stream: bool) -> None:
    """The key joins on the wire, as it did the first time; no tag, no further round."""
    desk.tool.ask(text, stream=stream)
    flow = desk.web.flows[0]
    desk.provider.forget()
    for count in (1, 2):
        desk.replay(flow, count)
    assert {received.host for received in desk.provider.calls} == {host}
    expected = "six-key-" if "six" in host else "sk-client-secret"
    assert all((received.key or "").startswith(expected) for received in desk.provider.calls)
    replayed = desk.web.until(lambda flow: (flow.get("response") or {}).get("status_code") == 200)
    assert replayed["is_replay"] == "request"
    assert len(desk.web.flows) == 1


def test_a_failed_attempt_can_be_replayed(desk: Desk) -> None:
    """And so can the later one, that has a flow of its own; what shows how the first one failed can not."""
    desk.provider.enqueue(Behaviour(status=500, error="down"))
    desk.tool.ask("<**six.m**> hello")
    first, failed, retry = legs_of(desk.web)
    keys = [received.key for received in desk.provider.calls]
    desk.provider.forget()
    for count, flow in enumerate((first, retry), start=1):
        desk.replay(flow, count)
    assert [received.key for received in desk.provider.calls] == keys
    desk.provider.forget()
    desk.web.post(f"/flows/{failed['id']}/replay")
    assert next(flow for flow in desk.web.flows if flow["id"] == failed["id"]) == failed
    assert desk.provider.calls == []


@pytest.mark.parametrize("change", [{"host": "api.openai.com"}, {"port": 444}, {"scheme": "http"}, {"host": "evil.example"}])
def test_a_replay_to_another_place_gets_no_credential(desk: Desk, change: dict[str, Any]) -> None:
    desk.tool.ask("hello")
    desk.tool.ask("<**six.m**> hello")
    desk.provider.forget()
    for flow in desk.web.flows:
        desk.web.post(f"/flows/{flow['id']}", "PUT", json.dumps({"request": change}).encode())
        desk.web.post(f"/flows/{flow['id']}/replay")
    desk.web.until(lambda flow: flow.get("response") or flow.get("error"))
    time.sleep(0.3)
    for secret in SECRETS:
        assert secret not in desk.provider.all_bytes()


def test_a_copy_cannot_be_replayed_for_want_of_its_credential(desk: Desk) -> None:
    desk.tool.ask("hello")
    desk.web.post(f"/flows/{desk.web.flows[0]['id']}/duplicate")
    desk.provider.forget()
    copy = desk.web.flows[-1]
    desk.web.post(f"/flows/{copy['id']}/replay")
    replayed = desk.web.until(lambda flow: flow["is_replay"] and flow.get("response") and flow["response"].get("timestamp_end"))
    assert replayed["response"]["status_code"] == 409
    assert desk.provider.requests == []


def test_another_path_can_be_replayed(desk: Desk) -> None:
    async def once() -> Answer:
        async with Http1(Route(HOSTS[Dialect.MESSAGES], desk.tool.proxy)) as client:
            return await client.send("GET", "/v1/models?key=sk-client-secret", headers=[CREDENTIALS[Dialect.MESSAGES]])

    asyncio.run(once())
    desk.web.post(f"/flows/{desk.web.flows[0]['id']}/replay")
    desk.provider.wait_until(lambda: len(desk.provider.requests) == 2, 5)
    assert [received.key for received in desk.provider.requests] == ["sk-client-secret"] * 2
    assert {received.target for received in desk.provider.requests} == {"/v1/models?key=sk-client-secret"}


# ---- kill and delete ----


@pytest.mark.parametrize("how", ["kill", "delete"])
@pytest.mark.parametrize("later", [False, True], ids=["first round", "later round"])
def test_killing_a_call_ends_it(desk: Desk, how: str, later: bool) -> None:
    """The client is cut off, the provider is left, nothing is tried again."""
    if later:
        desk.provider.enqueue(Behaviour(status=500, error="down"))
    desk.provider.always(Behaviour(reply=Reply(tuple(f"w{n} " for n in range(20))), delay_s=0.05, ending="hang"))
    path, body = write(Dialect.MESSAGES, "m", [("user", "<**six.m**> hello")], True)

    async def killed() -> Answer:
        async with Http1(Route(HOSTS[Dialect.MESSAGES], desk.tool.proxy)) as client:
            going = asyncio.create_task(client.send("POST", path, body=body, headers=[CREDENTIALS[Dialect.MESSAGES]]))
            await asyncio.to_thread(desk.provider.wait_for, 1 + later)
            await asyncio.sleep(0.3)
            flow = desk.web.flows[0]
            if how == "kill":
                await asyncio.to_thread(desk.web.post, f"/flows/{flow['id']}/kill")
            else:
                await asyncio.to_thread(desk.web.post, f"/flows/{flow['id']}", "DELETE")
            return await going

    answer = asyncio.run(killed())
    assert answer.ended in ("closed", "reset")
    assert b"message_stop" not in answer.body
    desk.provider.wait_until(lambda: desk.provider.calls[-1].left_early, 2)
    time.sleep(0.2)
    assert len(desk.provider.calls) == 1 + later
    assert desk.tool.ask("<**six.m**> and on it goes").status == 200


def test_a_call_that_is_stopped_by_hand_and_resumed(desk: Desk) -> None:
    """mitmweb's own interception: a person holds the request back, then lets it go."""
    desk.web.post("/options", "PUT", json.dumps({"intercept": "~q"}).encode())
    path, body = write(Dialect.MESSAGES, "m", [("user", "<**six.m**> hello")], True)

    async def held() -> Answer:
        async with Http1(Route(HOSTS[Dialect.MESSAGES], desk.tool.proxy)) as client:
            going = asyncio.create_task(client.send("POST", path, body=body, headers=[CREDENTIALS[Dialect.MESSAGES]]))
            await _appears(desk)
            await asyncio.to_thread(desk.web.until, lambda flow: flow["intercepted"], 0)
            assert desk.provider.calls == []
            assert b"<**" not in desk.web.get(f"/flows/{desk.web.flows[0]['id']}/request/content.data")
            desk.web.post(f"/flows/{desk.web.flows[0]['id']}/resume")
            return await going

    try:
        answer = asyncio.run(held())
    finally:
        desk.web.post("/options", "PUT", json.dumps({"intercept": None}).encode())
    assert answer.status == 200
    assert answer.events[-1][0] == "message_stop"


async def _appears(desk: Desk) -> None:
    for _ in range(200):
        if desk.web.flows:
            return
        await asyncio.sleep(0.02)
    raise AssertionError("no flow appeared")
