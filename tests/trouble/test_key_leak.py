"""S1, S2: nobody's credential goes to somebody else, and none is ever at rest.

Every call carries a canary in each place where a client can have a secret; every provider's key is one. What each host
received is searched byte by byte, and at the end everything that the proxy has written.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from routecodex.routing.values import Dialect
from tests.rig.behaviour import Behaviour
from tests.rig.canaries import CARRIERS, canary, plant, scan
from tests.rig.client import Answer, Http1, Route, call
from tests.rig.provider import FakeProvider, Received
from tests.rig.proxy import SCRIPT, Mitmdump
from tests.sheet import Tally

pytestmark = pytest.mark.system

CREDENTIALS = {carrier.name for carrier in CARRIERS if carrier.credential}
"""The carriers that hold a credential; the others hold what identifies a person or an account."""
KEYS = {name: canary(name, "provider") for name in ("foreign-1", "foreign-2", "other", "home", "header")}
HOSTS = {
    Dialect.MESSAGES: "api.anthropic.com",
    Dialect.CHAT: "api.openai.com",
    Dialect.RESPONSES: "api.openai.com",
    Dialect.GEMINI: "generativelanguage.googleapis.com",
}
_HOME = """
      protocol: anthropic-messages
      baseURL: https://api.anthropic.com
      endpoints:
        openai-chat: https://api.openai.com/v1
        openai-responses: https://api.openai.com/v1
        gemini-chat: https://generativelanguage.googleapis.com
      models: {m: {}}
      auth:"""
_FOREIGN = (
    _HOME.replace("api.anthropic.com", "NAME")
    .replace("api.openai.com", "NAME")
    .replace("generativelanguage.googleapis.com", "NAME")
)
CONFIG = f"""
proxy:
  interceptHosts: [api.anthropic.com, api.openai.com, generativelanguage.googleapis.com, llm.example]
virtualrouter:
  providers:
    foreign: {_FOREIGN.replace("NAME", "foreign.example")} {{type: apikey, keys: [{{alias: one, value: {KEYS["foreign-1"]}}}, {{alias: two, value: {KEYS["foreign-2"]}}}]}}
    other: {_FOREIGN.replace("NAME", "other.example")} {{type: apikey, keys: [{{alias: one, value: {KEYS["other"]}}}]}}
      headers: {{x-team: {KEYS["header"]}}}
    home: {_HOME} {{type: apikey, keys: [{{alias: one, value: {KEYS["home"]}}}]}}
    passing: {_HOME} {{type: client}}
    keyless: {_FOREIGN.replace("NAME", "keyless.example")} {{type: apikey, keys: [{{alias: one, value: "${{NOT_SET_ANYWHERE}}"}}]}}
  routing:
    default: [origin]
    mixed:
      - {{id: first, targets: [foreign.m], priority: 2}}
      - {{id: second, targets: [other.m], priority: 1}}
  health: {{serverErrorLadderMs: [1], rateLimitLadderMs: [1], serverErrorTripMs: 1, authTripMs: 1}}
"""  # noqa: E501
DOWN = Behaviour(status=500, error="down")


def quoting(status: int, event: bool = False) -> Callable[[Received], Behaviour]:
    """An error that quotes what it was sent, as some providers do."""

    def rule(received: Received) -> Behaviour:
        quoted = " ".join(
            value for name, value in received.headers if name.lower() in ("authorization", "x-api-key", "x-goog-api-key")
        )
        return Behaviour(status=200 if event else status, error=f"refused: {quoted}", error_after=3 if event else None)

    return rule


@dataclass(frozen=True)
class Case:
    tag: str = ""
    rule: Callable[[Received], Behaviour | None] = lambda received: None
    first: tuple[Behaviour, ...] = ()
    status: int = 200
    goes_to: tuple[str, ...] = ()
    """The hosts it may go to, `HOME` being the one that the client called."""
    called: str | None = None
    """A host that the client calls instead of its usual one."""
    headers: tuple[tuple[str, str], ...] = ()
    count: bool = False
    rounds: int = 1
    """At least so many requests."""
    streams: tuple[bool, ...] = (True, False)


HOME = "HOME"
CASES: dict[str, Case] = {
    "to a foreign provider": Case("<**foreign.m**>", goes_to=("foreign.example",)),
    "retried on the other key": Case("<**foreign.m**>", first=(DOWN,), goes_to=("foreign.example",)),
    "retried at another provider": Case(
        rule=lambda received: DOWN if received.host == "foreign.example" else None,
        headers=(("x-routecodex-route", "mixed"),),
        goes_to=("foreign.example", "other.example"),
    ),
    "with a later round": Case('<**foreign.m**> <**stopMessage:"go on",1**>', goes_to=("foreign.example",), rounds=2),
    "with a later round, at home": Case('<**stopMessage:"go on",1**>', goes_to=(HOME,), rounds=2),
    "the key is missing": Case("<**keyless.m**>", status=400),
    "the key is refused": Case("<**foreign.m**>", quoting(401), status=400, goes_to=("foreign.example",)),
    "the key is forbidden": Case("<**other.m**>", quoting(403), status=400, goes_to=("other.example",)),
    "an error that quotes": Case("<**foreign.m**>", quoting(400), status=400, goes_to=("foreign.example",)),
    "every attempt fails, quoting": Case("<**foreign.m**>", quoting(503), status=503, goes_to=("foreign.example",)),
    "an error in the stream that quotes": Case(
        "<**foreign.m**>", quoting(0, True), goes_to=("foreign.example",), streams=(True,)
    ),
    "at home, with the client's own": Case(goes_to=(HOME,)),
    "at home, retried": Case(first=(Behaviour(before="close"),), goes_to=(HOME,)),
    "at home, with a key of ours": Case("<**home.m**>", goes_to=(HOME,)),
    "at home, the client's own passed on": Case("<**passing.m**>", goes_to=(HOME,)),
    "the client's own, meant for somebody else": Case("<**passing.m**>", status=400, called="llm.example"),
    "an unknown host of its own": Case(goes_to=(HOME,), called="llm.example"),
    "counted for a foreign provider": Case(headers=(("x-routecodex-route", "mixed"),), count=True, streams=(False,)),
    "counted at home": Case(count=True, goes_to=(HOME,), streams=(False,)),
    "answered by ourselves": Case("<**echo**>"),
    "a tag that names nothing": Case("<**nobody.m**>", status=400),
}
COUNTING = {Dialect.MESSAGES: ("/v1/messages", "/v1/messages/count_tokens"), Dialect.GEMINI: (":generateContent", ":countTokens")}


@dataclass
class Leaks:
    proxy: Mitmdump
    provider: FakeProvider
    planted: dict[str, str] = field(default_factory=lambda: {f"provider {name}": key for name, key in KEYS.items()})
    """All credentials that were ever used, by a name."""
    answers: list[bytes] = field(default_factory=list)


@pytest.fixture(scope="module")
def leaks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Leaks]:
    folder = tmp_path_factory.mktemp("leaks")
    loud = ["termlog_verbosity=debug", "flow_detail=4", f"hardump={folder / 'all.har'}"]
    with (
        FakeProvider() as provider,
        Mitmdump(script=SCRIPT, config=CONFIG, upstream=provider, folder=folder, options=loud, flows=True) as proxy,
    ):
        yield Leaks(proxy, provider)


TALLY = Tally(
    "S1 R11", "{carriers:,} canaries in {calls:,} calls ({requests:,} requests at providers): 0 at a foreign host, 0 in an answer"
)


@pytest.mark.parametrize(
    "dialect, name, stream",
    [
        (dialect, name, stream)
        for dialect in Dialect
        for name, case in CASES.items()
        for stream in case.streams
        if not case.count or dialect in COUNTING
    ],
)
def test_who_gets_what(leaks: Leaks, dialect: Dialect, name: str, stream: bool) -> None:
    case, provider = CASES[name], leaks.provider
    seed = f"{dialect} {name} {stream}"
    planted = plant(dialect, seed, stream=stream)
    leaks.planted |= {f"{carrier} of {seed}": text for carrier, text in planted.canaries.items() if carrier in CREDENTIALS}
    provider.forget()
    provider.script(case.rule)
    provider.enqueue(*case.first)
    host = case.called or HOSTS[dialect]
    answer = _send(leaks, f"https://{host}", planted.path, planted.body, [*planted.headers, *case.headers], case, dialect)
    leaks.answers.append(answer.body)
    assert answer.status == case.status, answer.text
    expected = {host if place == HOME else place for place in case.goes_to}
    assert {received.host for received in provider.requests} == expected
    assert len(provider.requests) >= (case.rounds if expected else 0)
    for received in provider.requests:
        _check(received, planted.canaries, ours=case.tag.startswith("<**home"), host=host)
    found = {one.carrier for one in scan({"answer": answer.body + _head(answer)}, planted.canaries | KEYS)}
    assert found == set()
    TALLY.update(calls=1, carriers=len(planted.canaries), requests=len(provider.requests))


def _send(
    leaks: Leaks,
    url: str,
    path: str,
    body: dict[str, object],
    headers: list[tuple[str, str]],
    case: Case,
    dialect: Dialect,
) -> Answer:
    written = json.dumps(body).replace('"three"', json.dumps(f"{case.tag} three".strip()))
    assert json.dumps(case.tag)[1:-1] in written
    if case.count:
        path = path.replace(*COUNTING[dialect])
    return call(url, path, written.encode(), headers=headers, proxy=leaks.proxy)


def _head(answer: Answer) -> bytes:
    return "".join(f"{name}: {value}\n" for name, value in answer.headers).encode()


def _check(received: Received, canaries: dict[str, str], *, ours: bool, host: str) -> None:
    """What this one request may hold."""
    raw = received.raw + received.body
    keys = {"foreign.example": {"foreign-1", "foreign-2"}, "other.example": {"other", "header"}}.get(received.host or "", set())
    if received.host == host:
        keys = {"home"} if ours else set()
        forbidden = {carrier: text for carrier, text in canaries.items() if carrier in CREDENTIALS} if ours else {}
    else:
        forbidden = dict(canaries)
    forbidden |= {name: key for name, key in KEYS.items() if name not in keys}
    assert scan({"received": raw}, forbidden) == []
    own = {name for name in KEYS if KEYS[name].encode() in raw}
    assert len(own - {"header"}) == (1 if keys else 0), "a key of its own, and only one"
    if received.host == host and not ours:
        hop_by_hop = {"proxy-authorization"}
        missing = {name for name in set(canaries) & CREDENTIALS - hop_by_hop if canaries[name].encode() not in raw}
        assert missing == set(), "the client's own did not arrive"


def test_other_paths_and_other_forms(leaks: Leaks) -> None:
    """Not calls, but on hosts that are opened: they go where they went, and are at rest without their credentials too."""
    leaks.provider.forget()
    secret = {name: canary(name, "other paths") for name in ("x-api-key", "authorization", "cookie", "key", "token")}
    leaks.planted |= {f"{name} of other paths": text for name, text in secret.items()}
    headers = {name: secret[name] for name in ("x-api-key", "authorization", "cookie")}
    for method in ("GET", "POST", "DELETE"):
        path = f"/v1/models?key={secret['key']}&alt=json&access_token={secret['token']}"
        assert call("https://api.openai.com", path, b"", method=method, headers=headers, proxy=leaks.proxy).status == 200
    for received in leaks.provider.requests:
        for text in secret.values():
            assert text.encode() in received.raw


def test_credentials_by_other_names_on_other_paths(leaks: Leaks) -> None:
    """What is masked is what is shown: the bytes that arrive, there and back, are the same."""
    names = [str(one.where[0]) for one in CARRIERS if one.place == "header" and one.credential and "-" in str(one.where[0])]
    secret = {
        name: canary(name, "by other names") for name in (*names, "%6Bey", "sig", "code", "cookie-1", "cookie-2", "location")
    }
    secret = {name: text for name, text in secret.items() if name != "proxy-authorization"}
    leaks.planted |= {f"{name} by other names": text for name, text in secret.items()}
    headers = [(name, secret[name]) for name in names if name in secret]
    back = (
        ("Set-Cookie", f"a={secret['cookie-1']}; Path=/"),
        ("set-cookie", f"b={secret['cookie-2']}"),
        ("location", f"https://cb.example/?state=1&code={secret['location']}"),
        ("x-ratelimit-limit-tokens", "12"),
    )
    leaks.provider.forget()
    leaks.provider.always(Behaviour(headers=back, body=b"{}"), path="/v1/other")
    path = f"/v1/other?%6Bey={secret['%6Bey']}&x=1;sig={secret['sig']}&code={secret['code']}"
    answer = call("https://api.openai.com", path, b"", method="GET", headers=headers, proxy=leaks.proxy)
    (received,) = leaks.provider.requests
    assert received.target == path
    assert [pair for pair in received.headers if pair[0] in dict(headers)] == headers
    assert [pair for pair in answer.headers if pair[0].lower() in ("set-cookie", "location", "x-ratelimit-limit-tokens")] == list(
        back
    )


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("status", [200, 401])
def test_cookies_of_answers_to_calls(leaks: Leaks, status: int, stream: bool) -> None:
    """At home the client gets them, from anywhere else it does not; no flow keeps them."""
    for tag, comes in (("", True), ("<**foreign.m**>", False)):
        text = canary("set-cookie", f"{status} {stream} {tag}")
        leaks.planted[f"set-cookie {status} {stream} {tag}"] = text
        leaks.provider.forget()
        leaks.provider.always(Behaviour(status=status, headers=(("set-cookie", f"a={text}"),)))
        planted = plant(Dialect.MESSAGES, f"cookies {status} {stream} {tag}", stream=stream, only=["api-key"])
        leaks.planted |= {f"cookies {status} {stream} {tag} {name}": one for name, one in planted.canaries.items()}
        case = Case(tag)
        url = "https://api.anthropic.com"
        answer = _send(leaks, url, planted.path, planted.body, planted.headers, case, Dialect.MESSAGES)
        leaks.answers.append(answer.body)
        assert (text in dict(answer.headers).get("set-cookie", "")) is comes


_OPENS = "POST /v1/PATH?key=SECRET HTTP/1.1\r\nHost: api.openai.com\r\nAuthorization: Bearer SECRET\r\n"
SPOILED = {
    "half a head": _OPENS[:-2],
    "a line that is no header": _OPENS + "x-api-key SECRET\r\n\r\n",
    "no version": _OPENS.replace(" HTTP/1.1", "") + "\r\n",
    "a version that is none": _OPENS.replace("1.1", "x") + "\r\n",
    "a person in its address": _OPENS.replace("/v1/", "https://me:SECRET@api.openai.com/v1/") + "\r\n",
    "a chunk that is none": _OPENS + "Transfer-Encoding: chunked\r\n\r\nSECRET\r\n",
    "trailers": _OPENS + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX-Api-Key: SECRET\r\n\r\n",
    "trailers that are none": _OPENS + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX-Api-Key SECRET\r\n\r\n",
}


@pytest.mark.parametrize("path", ["chat/completions", "other"])
@pytest.mark.parametrize("shape", SPOILED)
def test_requests_that_cannot_be_read(leaks: Leaks, shape: str, path: str) -> None:
    """mitmproxy quotes what it cannot read, in its log and in flows."""
    secret = canary(shape, path)
    leaks.planted[f"{shape} of {path}"] = secret

    async def sent() -> None:
        async with Http1(Route("https://api.openai.com", leaks.proxy)) as client:
            await client.write_raw(SPOILED[shape].replace("SECRET", secret).replace("PATH", path).encode())
            assert client.pipe is not None
            client.pipe.close()

    asyncio.run(sent())


_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
UNREADABLE = {
    "half a head": _HEAD + b"x-id: KEY",
    "no head": b"KEY\r\n\r\n",
    "a status that is none": b"HTTP/1.1 KEY OK\r\n\r\n",
    "a length that is none": _HEAD + b"Content-Length: KEY\r\n\r\n",
    "a framing that is none": _HEAD + b"Transfer-Encoding: KEY\r\n\r\n",
    "a name that is none": _HEAD + b"KEY x: 1\r\n\r\n",
    "a name": _HEAD + b"x-ratelimit-KEY: 1\r\nContent-Length: 2\r\n\r\n{}",
    "a chunk that is none": _HEAD + b"Transfer-Encoding: chunked\r\n\r\nKEY\r\n",
    "trailers that are none": _HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nKEY\r\n\r\n",
    "more than its answer": _HEAD + b"Content-Length: 2\r\n\r\n{}KEY",
}


@pytest.mark.parametrize("shape", UNREADABLE)
def test_answers_that_cannot_be_read(leaks: Leaks, shape: str) -> None:
    """They quote the key that they were sent; each is an attempt that failed, and a later round that did. The second attempt that
    fails in a row is waited for two seconds: once is enough."""
    leaks.provider.forget()
    raw = Behaviour(raw=UNREADABLE[shape].replace(b"KEY", KEYS["other"].encode()), ending="close")
    leaks.provider.enqueue(raw, *([raw] if shape == "half a head" else []), Behaviour(), raw)
    case = Case('<**other.m**> <**stopMessage:"go on",1**>')
    planted = plant(Dialect.MESSAGES, shape, stream=True, only=[])
    answer = _send(leaks, "https://api.anthropic.com", planted.path, planted.body, planted.headers, case, Dialect.MESSAGES)
    leaks.answers.append(_head(answer) + answer.body)
    assert answer.ended == "complete"
    assert len(leaks.provider.calls) >= 3


def test_nothing_is_at_rest(leaks: Leaks) -> None:
    """The last of this file: log at its loudest, saved flows, HAR, state, error bodies."""
    assert len(leaks.planted) > 400
    leaks.proxy.stop()
    folder: Path = leaks.proxy.folder
    written = {path.name: path for path in folder.iterdir() if path.name not in ("mitm-config.yaml", "confdir")}
    assert {"flows", "proxy.log", "all.har"} <= set(written)
    for name in ("flows", "proxy.log", "all.har"):
        assert b"foreign.example" in written[name].read_bytes()
    assert b"three" in written["flows"].read_bytes()
    # What a person may search for; the base64 forms were searched in each request.
    plain = {name: path for name, path in written.items() if path.is_file()}
    everything = b"\n".join(path.read_bytes() for path in plain.values()).lower()
    assert [name for name, text in leaks.planted.items() if text.encode() in everything] == []
    folders = {name: path for name, path in written.items() if path.is_dir()}
    ours = [path for place in folders.values() for path in place.rglob("*") if "sessions" in path.parts]
    assert any(path.is_file() for path in ours)
    assert [path for path in ours if path.stat().st_mode & 0o077] == [], "nobody else on this machine reads them"
    assert scan({**folders, "answers": b"\n".join(leaks.answers)}, leaks.planted) == []
