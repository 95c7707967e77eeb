"""F11: a provider that repeats the key it was sent: wherever it stands in its answer, however cut, the client never sees it."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from mitmproxy import http
from mitmproxy.io import FlowReader

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


def unescaped(said: bytes) -> bytes:
    """However deep it is JSON within JSON."""
    plain = re.sub(rb"\\+u00([0-9a-fA-F]{2})", lambda found: bytes((int(found[1], 16),)), said)
    return re.sub(rb"\\+/", b"/", plain)


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
    **{
        f"in a call, escaped in its arguments: {name}": Shape(
            Behaviour(reply=Reply(text="", calls=(ToolUse("f", {"key": MARK}),)), edit=written(key)), shows=False
        )
        for name, key in {
            "a slash": RAW.replace(b"/", rb"\\/"),
            "signs": escaped("+=/-", r"\\u{:04x}"),
            "everything, once more": escaped(KEY, r"\\\\u{:04x}"),
        }.items()
    },
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


def ask(proxy: Mitmdump, client: Dialect, spoken: Dialect, *, stream: bool, tag: str = "") -> Answer:
    planted = plant(client, "echo", stream=stream, only=["api-key"])
    text = f"{tag or f'<**{NAMES[spoken]}.m**>'} three"
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
        plain = unescaped(told)
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
    deltas = re.findall(rb'"(?:text|content|delta)": ?"((?:[^"\\\\]|\\\\.)*)"', answer.body)
    text = b"".join(deltas).decode()
    assert not any(KEY[at : at + 8] in text for at in range(len(KEY) - 7))
    assert re.search(r"your key is [^*]{0,7}\*\*\*, is it not\?", text)


@pytest.mark.parametrize("said, shown", [(RAW[:12], RAW[:12]), (RAW[:-1], b"***")], ids=["hardly begun", "nearly whole"])
def test_what_may_become_the_key_is_told_where_the_connection_breaks(
    house: tuple[FakeProvider, Mitmdump], said: bytes, shown: bytes
) -> None:
    """It is held back for what follows: where nothing does, it is no less a part of the error."""
    provider, proxy = house
    for client, spoken in PAIRS:
        provider.forget()
        provider.always(Behaviour(status=400, body=b"no such key: " + said, framing="chunked", ending="close"))
        answer = ask(proxy, client, spoken, stream=True)
        assert answer.status == 400
        assert b"no such key: " + shown in answer.body, (client, spoken)
        assert RAW[:13] not in answer.body


# ---- what is kept of rounds ----

_APART = Behaviour(reply=Reply(text=("your", " key", " is ", *KEY, ", is", " it", " not", "?")))
KEPT: dict[str, Behaviour] = {
    "in one piece": Behaviour(reply=QUOTED, edit=written(RAW)),
    "over events": _APART,
    "over events, together": dataclasses.replace(_APART, events_per_packet=5),
    "with signs escaped": Behaviour(reply=QUOTED, edit=written(escaped("+=/-", "\\u{:04x}"))),
    "packed": Behaviour(reply=QUOTED, edit=written(RAW), encoding="gzip", bytes_per_packet=9),
    "packed, over events": dataclasses.replace(_APART, encoding="br"),
    "in a header": Behaviour(headers=(("x-request-id", f"id-{KEY}"), ("x-odd", KEY))),
    "in a trailer": Behaviour(framing="chunked", trailers=(("x-odd", KEY),)),
    "over the end of what is kept": Behaviour(reply=Reply(text=(f"{MARK} " * 6_000,)), edit=written(RAW)),
    "in an error": Behaviour(status=400, error=f"no: {KEY}", encoding="gzip", headers=(("x-odd", KEY),)),
    "in a reason": Behaviour(raw=b"HTTP/1.1 400 no " + RAW + b"\r\ncontent-length: 2\r\n\r\n{}"),
}
"""What a provider says in a later round, and in a first one that fails."""


def shown_in(flow: http.HTTPFlow) -> bytes:
    """All that a window shows of an answer: unpacked, without escapes, and as a text that is put together again."""
    response = flow.response
    if response is None:
        return b""
    fields = [*response.headers.fields, *(response.trailers.fields if response.trailers is not None else ())]
    body = response.get_content(strict=False) or b""
    plain = unescaped(body)
    deltas = b"".join(re.findall(rb'"(?:text|content|delta)": ?"((?:[^"\\\\]|\\\\.)*)"', plain))
    return b"\n".join([response.data.reason, *(b": ".join(field) for field in fields), body, plain, deltas])


def test_no_flow_holds_it(provider: FakeProvider, tmp_path: Path) -> None:
    first = Behaviour(reply=Reply("first"))
    with Mitmdump(script=SCRIPT, config=CONFIG, upstream=provider, folder=tmp_path, flows=True) as proxy:
        for number, (name, behaviour) in enumerate(KEPT.items()):
            spoken = _ALL[number % 4]
            provider.forget()
            provider.enqueue(first, behaviour, behaviour)
            tag = f'<**{NAMES[spoken]}.m**> <**stopMessage:"go on",1**> ({name})'
            ask(proxy, Dialect.MESSAGES, spoken, stream=True, tag=tag)
            ask(proxy, Dialect.MESSAGES, spoken, stream=True, tag=f"<**{NAMES[spoken]}.m**> ({name})")
            assert len(provider.requests) == 3
    assert proxy.flows_path is not None
    with proxy.flows_path.open("rb") as file:
        flows = [flow for flow in FlowReader(file).stream() if isinstance(flow, http.HTTPFlow)]
    legs = [flow for flow in flows if "leg" in flow.metadata["routecodex"]]
    assert len(flows) - len(legs) == 3 * len(KEPT)
    assert any(b"***" in shown_in(leg) for leg in legs), "what a provider of another dialect said itself"
    held = set()
    for flow in flows:
        shown = shown_in(flow)
        if any(KEY[at : at + 8].encode() in shown for at in range(len(KEY) - 7)):
            case = re.search(rb"\((.+?)\) three", flow.request.content or b"")
            held.add((case[1].decode() if case else "", flow.marked, flow.comment[:30]))
    assert not held
