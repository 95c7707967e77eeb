"""F11: a provider that repeats the key it was sent: wherever it stands in its answer, however cut, the client never sees it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest
from mitmproxy.http import HTTPFlow
from mitmproxy.io import FlowReader

from routecodex.addons.flows import Marker
from routecodex.routing.values import Dialect
from tests.rig.behaviour import Behaviour
from tests.rig.canaries import plant
from tests.rig.client import Answer, call
from tests.rig.provider import FakeProvider
from tests.rig.proxy import SCRIPT, Mitmdump
from tests.rig.reply import Reply, ToolUse

pytestmark = pytest.mark.system

KEY = "sk-echo/Ab3+dE=gH1jK-mN0pQrStUvWxYz"
RAW = KEY.encode()
SECOND = "second-secret-2-in-a-header"
_ONE = "\n    {name}:\n      protocol: {dialect}\n      baseURL: https://{name}.example{path}\n" + (
    f"      auth: {{{{type: apikey, keys: [{{{{alias: k, value: '{KEY}'}}}}]}}}}\n"
    f"      headers: {{{{x-team-token: {SECOND}, x-title: your key is}}}}\n      models: {{{{m: {{{{}}}}}}}}"
)
NAMES = {Dialect.MESSAGES: "messages", Dialect.CHAT: "chat", Dialect.RESPONSES: "responses", Dialect.GEMINI: "gemini"}
PATHS = {Dialect.CHAT: "/v1", Dialect.RESPONSES: "/v1"}
CONFIG = (
    "proxy: {interceptHosts: [api.anthropic.com, api.openai.com, generativelanguage.googleapis.com]}\n"
    "retries: {maxAttempts: 1}\n"
    "virtualrouter:\n  providers:"
    + "".join(_ONE.format(name=name, dialect=dialect, path=PATHS.get(dialect, "")) for dialect, name in NAMES.items())
    + "\n  routing: {default: [origin]}\n  health: {serverErrorLadderMs: [1], rateLimitLadderMs: [1], serverErrorTripMs: 1,"
    " authTripMs: 1}\n"
)
HOSTS = {
    Dialect.MESSAGES: "api.anthropic.com",
    Dialect.CHAT: "api.openai.com",
    Dialect.RESPONSES: "api.openai.com",
    Dialect.GEMINI: "generativelanguage.googleapis.com",
}
MARK = "@@KEY@@"
"""What stands for the key until the answer's bytes are made."""


def escaped(letters: str, form: str) -> bytes:
    return "".join(form.format(ord(letter)) if letter in letters else letter for letter in KEY).encode()


def written(key: bytes) -> Callable[[list[bytes]], list[bytes]]:
    return lambda items: [item.replace(MARK.encode(), key) for item in items]


def commented(items: list[bytes]) -> list[bytes]:
    return [items[0], b": your key " + RAW + b"\n\n", *items[1:]] if items[0].startswith((b"data", b"event")) else items


@dataclass(frozen=True)
class Shape:
    behaviour: Behaviour
    streams: tuple[bool, ...] = (True, False)
    shows: bool = True
    """The client is shown where the key stood."""
    secrets: tuple[str, ...] = field(default=(KEY,))


KEPT_HEADERS = (
    "x-request-id", "request-id", "x-ratelimit-limit-requests", "anthropic-ratelimit-tokens-reset", "retry-after",
    "openai-processing-ms", "content-type",
)  # fmt: skip
QUOTED = Reply(text=f"your key is {MARK}, is it not?")
SHAPES: dict[str, Shape] = {
    "in a text": Shape(Behaviour(reply=QUOTED, edit=written(RAW))),
    "in a text, byte by byte": Shape(Behaviour(reply=QUOTED, edit=written(RAW), bytes_per_packet=1)),
    **{
        f"in a text, in packets of {size}": Shape(Behaviour(reply=QUOTED, edit=written(RAW), bytes_per_packet=size))
        for size in (7, 9, 37)
    },
    "with slashes escaped": Shape(Behaviour(reply=QUOTED, edit=written(RAW.replace(b"/", b"\\/")))),
    "with signs escaped": Shape(Behaviour(reply=QUOTED, edit=written(escaped("+=/-", "\\u{:04X}")))),
    "with everything escaped": Shape(Behaviour(reply=QUOTED, edit=written(escaped(KEY, "\\u{:04x}")))),
    "escaped and cut": Shape(Behaviour(reply=QUOTED, edit=written(escaped("+=/-", "\\u{:04x}")), bytes_per_packet=11)),
    "packed": Shape(Behaviour(reply=QUOTED, edit=written(RAW), encoding="gzip", bytes_per_packet=9)),
    "in thinking": Shape(Behaviour(reply=Reply(text="yes", thinking=f"the key {MARK}"), edit=written(RAW)), shows=False),
    "in a call": Shape(Behaviour(reply=Reply(text="", calls=(ToolUse("f", {"key": MARK}),)), edit=written(RAW)), shows=False),
    "in a comment": Shape(Behaviour(edit=commented), streams=(True,), shows=False),
    "another secret of it": Shape(
        Behaviour(reply=QUOTED, edit=written(SECOND.encode()), bytes_per_packet=5), secrets=(SECOND,)
    ),
    **{
        f"in the header {name}": Shape(Behaviour(headers=((name, f"id-{KEY}"),)), shows=False)
        for name in KEPT_HEADERS
    },
    **{f"in a {status}": Shape(Behaviour(status=status, error=f"no: {KEY}"), shows=False) for status in (400, 401, 404, 500)},
    "in an error, cut": Shape(Behaviour(status=400, error=f"no: {KEY}", bytes_per_packet=9), shows=False),
    "in an error, escaped": Shape(
        Behaviour(status=400, error=f"no: {MARK}", edit=written(RAW.replace(b"/", b"\\/"))), shows=False
    ),
    "in an error inside 200": Shape(Behaviour(error=f"no: {KEY}", error_after=3), streams=(True,), shows=False),
    "in an error as first event": Shape(Behaviour(error=f"no: {KEY}", error_after=0), streams=(True,), shows=False),
    "in a body that is no answer": Shape(Behaviour(body=b"<html>" + RAW + b"</html>"), shows=False),
    "in an error that is no JSON": Shape(Behaviour(status=400, body=b"<html>" + RAW + b"</html>"), shows=False),
    "at the very end": Shape(Behaviour(reply=QUOTED, edit=written(RAW), cut_at=10**9, ending="clean")),
}  # fmt: skip
_ALL = list(Dialect)
PAIRS = [(client, _ALL[(place + step) % 4]) for place, client in enumerate(_ALL) for step in (0, 1)]
"""Each dialect by itself and in one translation: what is masked is masked before anything is translated."""


@pytest.fixture(scope="module")
def house() -> Iterator[tuple[FakeProvider, Mitmdump]]:
    with FakeProvider() as provider, Mitmdump(script=SCRIPT, config=CONFIG, upstream=provider, flows=True) as proxy:
        yield provider, proxy
        assert "Traceback" not in proxy.log
        proxy.stop()
        everything = b"".join(file.read_bytes() for file in proxy.folder.iterdir() if file.name in ("flows", "proxy.log"))
        assert RAW[8:] not in everything
        assert SECOND[8:].encode() not in everything
        with (proxy.folder / "flows").open("rb") as saved:
            kept = [flow for flow in FlowReader(saved).stream() if isinstance(flow, HTTPFlow) and flow.response is not None]
        for flow in kept:
            assert KEY[8:] not in texts_in(flow.response.content or b""), (flow.comment, flow.marked)
        legs = [flow for flow in kept if flow.marked == Marker.LEG]
        assert any(b"your key is ***" in flow.response.content for flow in legs), "and what is kept is what was said"
        assert any(flow.marked == Marker.ROUND and b"***" in flow.response.content for flow in kept)


def texts_in(body: bytes) -> str:
    return b"".join(re.findall(rb'"(?:text|content|delta)": ?"((?:[^"\\\\]|\\\\.)*)"', body)).decode()


def holds_key(body: bytes | None) -> bool:
    """Spread over events or not."""
    text = texts_in(body or b"")
    return RAW[8:] in (body or b"") or any(KEY[at : at + 8] in text for at in range(len(KEY) - 7))


def ask(proxy: Mitmdump, client: Dialect, spoken: Dialect, *, stream: bool, more: str = "") -> Answer:
    planted = plant(client, "echo", stream=stream, only=["api-key"])
    text = f"<**{NAMES[spoken]}.m**> {more}three"
    parts = planted.body.get("messages") or planted.body.get("input") or planted.body["contents"]
    last = parts[-1].get("content") or parts[-1]["parts"]
    if isinstance(last, str):
        parts[-1]["content"] = text
    else:
        last[0]["text"] = text
    return call(f"https://{HOSTS[client]}", planted.path, planted.body, headers=planted.headers, proxy=proxy)


@pytest.mark.parametrize("name, stream", [(name, stream) for name, shape in SHAPES.items() for stream in shape.streams])
def test_the_key_does_not_come_back(house: tuple[FakeProvider, Mitmdump], name: str, stream: bool) -> None:
    provider, proxy = house
    shape = SHAPES[name]
    for client, spoken in PAIRS:
        provider.forget()
        provider.always(shape.behaviour)
        answer = ask(proxy, client, spoken, stream=stream)
        assert provider.requests, answer.text
        assert all(KEY in str(received.headers) for received in provider.requests)
        told = answer.body + b"".join(f"\n{header}: {value}".encode() for header, value in answer.headers)
        plain = re.sub(rb"\\+u00([0-9a-fA-F]{2})", lambda found: bytes((int(found[1], 16),)), told).replace(b"\\/", b"/")
        for secret in shape.secrets:
            assert secret[8:].encode() not in plain, (client, spoken)
        if shape.shows:
            assert b"***" in told, (client, spoken)
            assert answer.status == 200


@pytest.mark.parametrize("size, together", [(1, 1), (4, 1), (4, 4), (9, 3)])
@pytest.mark.parametrize("client, spoken", PAIRS)
def test_a_key_over_several_events(
    house: tuple[FakeProvider, Mitmdump], client: Dialect, spoken: Dialect, size: int, together: int
) -> None:
    """Nobody takes part: what says no more than the event before it passes unread."""
    provider, proxy = house
    pieces = [KEY[at : at + size] for at in range(0, len(KEY), size)]
    reply = Reply(text=("your", " key", " is ", *pieces, ", is", " it", " not", "?"))
    provider.forget()
    provider.always(Behaviour(reply=reply, events_per_packet=together))
    answer = ask(proxy, client, spoken, stream=True)
    assert not holds_key(answer.body)
    assert re.search(r"your key is [^*]{0,7}\*\*\*, is it not\?", texts_in(answer.body))


@pytest.mark.parametrize("client, spoken", PAIRS)
def test_a_key_in_the_flow_of_a_later_round(house: tuple[FakeProvider, Mitmdump], client: Dialect, spoken: Dialect) -> None:
    """Packed, over several events, and in a header: what stays of it for whoever looks is looked at when the fixture ends."""
    provider, proxy = house
    pieces = [KEY[at : at + 4] for at in range(0, len(KEY), 4)]
    headers = (("x-request-id", f"id-{KEY}"),)
    spread = Behaviour(reply=Reply(text=("your key is ", *pieces, ", is it not?")), encoding="gzip", headers=headers)
    provider.forget()
    provider.enqueue(spread, spread)
    provider.always(Behaviour(reply=Reply(text="done")))
    answer = ask(proxy, client, spoken, stream=True, more='<**stopMessage:"go on",1**> ')
    assert not holds_key(answer.body)
    assert answer.body.count(b"***") >= len(provider.calls) == 2
