"""The proxy is real and shut off from the network, the clients see what came when, the canaries are found."""

from __future__ import annotations

import asyncio
import base64
import gzip
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from routecodex.routing.values import Dialect
from tests.rig import canaries, wire
from tests.rig.behaviour import Behaviour
from tests.rig.client import Answer, Http1, Http2, Leave, Route, call
from tests.rig.provider import FakeProvider
from tests.rig.proxy import DidNotStart, Mitmdump, free_port

ANTHROPIC = "https://api.anthropic.com"
PATHS = {
    Dialect.MESSAGES: "/v1/messages",
    Dialect.CHAT: "/v1/chat/completions",
    Dialect.RESPONSES: "/v1/responses",
    Dialect.GEMINI: "/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse",
}
STREAM = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "hello there"}]}
WHOLE = {"model": "m", "messages": [{"role": "user", "content": "hello there"}]}
THREE = wire.Reply(("one ", "two ", "three"))


# ---- the proxy ----


@pytest.fixture(scope="module")
def plain() -> Iterator[tuple[Mitmdump, FakeProvider]]:
    """Lazy, because an eager proxy asks the provider first and then offers its clients no HTTP/2."""
    with FakeProvider() as provider, Mitmdump(upstream=provider, options=["connection_strategy=lazy"], flows=True) as proxy:
        yield proxy, provider


@pytest.fixture
def intercepted(plain: tuple[Mitmdump, FakeProvider]) -> tuple[Mitmdump, FakeProvider]:
    plain[1].forget()
    return plain


@pytest.mark.system
def test_interception(intercepted: tuple[Mitmdump, FakeProvider]) -> None:
    proxy, provider = intercepted

    async def twice() -> list[Answer]:
        async with Http1(Route(ANTHROPIC, proxy)) as client:
            return [await client.send("POST", "/v1/messages", body=STREAM, headers={"x-api-key": "k"}) for _ in range(2)]

    assert [answer.events[-1][0] for answer in asyncio.run(twice())] == ["message_stop"] * 2
    first, second = provider.calls
    assert (first.host, first.sni, first.tls, first.key) == ("api.anthropic.com", "api.anthropic.com", True, "k")
    assert first.connection == second.connection, "the proxy keeps its connection to the provider"
    assert proxy.listening == [("127.0.0.1", proxy.port)]
    assert "server connect api.anthropic.com:443" in proxy.log
    assert proxy.rss_bytes > 20_000_000
    assert proxy.open_files is None or proxy.open_files > 5
    assert proxy.client_env["HTTPS_PROXY"] == proxy.url
    assert proxy.bundle_path.read_bytes().count(b"BEGIN CERTIFICATE") == 2
    assert proxy.flows_path is not None
    assert proxy.flows_path.stat().st_size > 0


@pytest.mark.system
def test_plain_http_through_the_proxy(intercepted: tuple[Mitmdump, FakeProvider]) -> None:
    proxy, provider = intercepted
    assert call("http://llm.example", "/v1/chat/completions", STREAM, proxy=proxy).events[-1] == ("", "[DONE]")
    assert (provider.calls[0].host, provider.calls[0].tls) == ("llm.example", False)


@pytest.mark.system
def test_a_client_that_leaves_is_noticed(intercepted: tuple[Mitmdump, FakeProvider]) -> None:
    proxy, provider = intercepted
    for reset in (False, True):
        provider.forget()
        provider.enqueue(Behaviour(reply=THREE, stall_after=3, stall_s=600))
        leave = Leave(when=lambda: bool(provider.calls), reset=reset)
        answer = call(ANTHROPIC, "/v1/messages", STREAM, proxy=proxy, leave=leave)
        assert answer.ended == "left"
        provider.wait_until(lambda: provider.calls[0].left_early)


@pytest.mark.system
def test_a_cut_is_seen_by_the_client(intercepted: tuple[Mitmdump, FakeProvider]) -> None:
    proxy, provider = intercepted
    provider.enqueue(Behaviour(reply=THREE, cut_after=4, stall_after=4, stall_s=0.2))
    proxied = call(ANTHROPIC, "/v1/messages", STREAM, proxy=proxy)
    assert proxied.status == 502
    assert proxied.ended == "complete"


@pytest.mark.system
def test_twelve_streams_on_one_http2_connection(intercepted: tuple[Mitmdump, FakeProvider]) -> None:
    proxy, provider = intercepted
    provider.standing = Behaviour(delay_s=0.005)

    async def together() -> list[Answer]:
        async with Http2(Route(ANTHROPIC, proxy)) as client:
            bodies = [STREAM | {"model": f"m{number}", "pad": "x" * 40_000} for number in range(12)]
            return await asyncio.gather(*(client.send("POST", "/v1/messages", body=body) for body in bodies))

    try:
        answers = asyncio.run(together())
    finally:
        provider.standing = Behaviour()
    assert [answer.ended for answer in answers] == ["complete"] * 12
    for number, answer in enumerate(answers):
        assert (answer.version, answer.status, answer.events[-1][0]) == ("HTTP/2", 200, "message_stop")
        assert f'"model":"m{number}"' in answer.events[0][1]


@pytest.mark.system
def test_an_http2_stream_is_reset_and_the_others_live(intercepted: tuple[Mitmdump, FakeProvider]) -> None:
    proxy, provider = intercepted
    provider.enqueue(Behaviour(before="hang"))

    async def one_of_two() -> tuple[Answer, Answer]:
        async with Http2(Route(ANTHROPIC, proxy)) as client:
            gone = await client.send("POST", "/v1/messages", body=STREAM, leave=Leave(when=lambda: bool(provider.calls)))
            return gone, await client.send("POST", "/v1/messages", body=STREAM)

    gone, whole = asyncio.run(one_of_two())
    assert (gone.ended, whole.ended, whole.events[-1][0]) == ("left", "complete", "message_stop")
    provider.wait_until(lambda: provider.calls[0].left_early)


@pytest.mark.system
def test_an_http2_body_without_length_becomes_a_request_of_its_own(intercepted: tuple[Mitmdump, FakeProvider]) -> None:
    """What a plain proxy does to it: the rig must be able to show the smuggling that the product has to prevent."""
    proxy, provider = intercepted

    async def without_length() -> Answer:
        async with Http2(Route(ANTHROPIC, proxy)) as client:
            return await client.send("POST", "/v1/messages", body=STREAM, length=False)

    assert asyncio.run(without_length()).status == 200
    (received,) = provider.calls
    assert received.body == b""
    provider.wait_until(lambda: b'"hello there"' in provider.all_bytes())


ROUND = '''
"""Answers a call by a round of its own: a new flow to another host."""
import asyncio
from mitmproxy import ctx, http
from mitmproxy.addons.clientplayback import ReplayHandler

OWN = set()

class Rounds:
    def load(self, loader):
        ctx.options.update(connection_strategy="lazy")

    def server_connect(self, data):
        ctx.log.info(f"asked for {data.server.address[0]}")

    async def request(self, flow):
        if flow.id in OWN or flow.request.host != "api.anthropic.com":
            return
        later = http.HTTPFlow(flow.client_conn.copy(), flow.server_conn.copy())
        later.request, later.is_replay = flow.request.copy(), "request"
        later.request.scheme, later.request.host, later.request.port = "https", "api.openai.com", 443
        OWN.add(later.id)
        await ReplayHandler(later, ctx.options).replay()
        flow.response = later.response

addons = [Rounds()]
'''


@pytest.mark.system
def test_rounds_are_redirected_too(provider: FakeProvider, tmp_path: Path) -> None:
    """A flow that the product starts itself goes to the provider played for *its* host, with that host's name and certificate."""
    script = tmp_path / "rounds.py"
    script.write_text(ROUND)
    with (
        FakeProvider() as other,
        Mitmdump(
            script=script, upstream={"api.anthropic.com": provider, "api.openai.com": other}, folder=tmp_path / "proxy-files"
        ) as proxy,
    ):
        answer = call(ANTHROPIC, "/v1/messages", WHOLE, proxy=proxy)
        assert answer.status == 200, proxy.log
        assert answer.json["content"][0]["text"] == "m was asked: hello there"
        assert provider.requests == []
        (received,) = other.calls
        assert (received.host, received.sni) == ("api.openai.com", "api.openai.com")
        assert "asked for api.openai.com" in proxy.log, "hooks see the real name"
        refused = call("https://elsewhere.example", "/v1/messages", WHOLE, proxy=proxy)
        assert refused.status == 502
        assert "the rig lets nothing out: elsewhere.example:443" in proxy.log


@pytest.mark.system
def test_reverse_mode_and_web(provider: FakeProvider, tmp_path: Path) -> None:
    folder = tmp_path / "proxy-files"
    with Mitmdump(upstream=provider, mode="reverse:https://api.anthropic.com", web=True, folder=folder) as proxy:
        assert call(proxy.url, "/v1/messages", WHOLE).status == 200
        assert provider.calls[0].sni == "api.anthropic.com"
        page = call(proxy.web_url.partition("/?")[0], "/" + proxy.web_url.partition("/?")[2].join(["?", ""]), b"", method="GET")
        assert b"mitmproxy" in page.body
        pid = proxy.pid
    assert proxy.stop() is not None
    assert not Path(f"/proc/{pid}/status").exists()
    assert folder.exists(), "a folder that was given is not removed"


@pytest.mark.system
def test_a_script_that_does_not_load_is_told(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("def broken(:\n")
    with pytest.raises(DidNotStart, match=r"broken\.py"), Mitmdump(script=tmp_path / "broken.py"):
        pass


@pytest.mark.system
def test_a_restart_on_the_same_port_and_folder(provider: FakeProvider, tmp_path: Path) -> None:
    port = free_port()
    for _ in range(2):
        with Mitmdump(upstream=provider, folder=tmp_path / "proxy-files", port=port) as proxy:
            assert call(ANTHROPIC, "/v1/messages", WHOLE, proxy=proxy).status == 200
            proxy.kill()
            assert not proxy.alive
    assert proxy.log.count("listening at") == 2


# ---- the canaries ----


@pytest.mark.system
@pytest.mark.parametrize("dialect", list(Dialect))
def test_canaries_are_found_wherever_they_went(
    intercepted: tuple[Mitmdump, FakeProvider], tmp_path: Path, dialect: Dialect
) -> None:
    """A plain proxy forwards everything, so everything must be found: else finding nothing elsewhere would prove nothing."""
    proxy, provider = intercepted
    planted = canaries.plant(dialect, seed=dialect, stream=True)
    answer = call(ANTHROPIC, planted.path, planted.body, headers=planted.headers, proxy=proxy)
    assert answer.status == 200
    found = {one.carrier for one in canaries.scan({"received": provider.all_bytes()}, planted.canaries)}
    assert found == set(planted.canaries)
    assert len(found) >= 12
    assert canaries.scan({"answer": answer.body, "empty": tmp_path}, planted.canaries) == []
    assert proxy.flows_path is not None
    saved = {one.carrier for one in canaries.scan({"flows": proxy.flows_path}, planted.canaries)}
    assert saved >= {"bearer", "cookie"}


@pytest.mark.parametrize(
    "hide",
    [
        pytest.param(lambda text: text.upper().encode(), id="upper case"),
        pytest.param(lambda text: base64.b64encode(f"user:{text}".encode()), id="base64, shifted"),
        pytest.param(lambda text: base64.b64encode(f"a{text} and more".encode()), id="base64, shifted again"),
        pytest.param(lambda text: b"...." + gzip.compress(text.encode()), id="gzip"),
    ],
)
def test_hidden_canaries_are_found(tmp_path: Path, hide: Callable[[str], bytes]) -> None:
    text = canaries.canary("bearer", "hidden")
    (tmp_path / "state.json").write_bytes(b"before " + hide(text) + b" after")
    (found,) = canaries.scan({"state": tmp_path}, {"bearer": text, "cookie": canaries.canary("cookie")})
    assert (found.carrier, found.where) == ("bearer", "state/state.json")
