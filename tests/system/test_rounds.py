"""Later rounds: what fails is replaced while nothing of it can be seen, silence is bridged, and one answer comes of it."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from routecodex.routing.values import Dialect
from tests.rig.behaviour import Behaviour
from tests.rig.client import Answer, Http1, Http2, Leave, Route
from tests.rig.provider import FakeProvider, Received
from tests.rig.proxy import Mitmdump
from tests.rig.wire import Reply
from tests.system.grammar import error_at_end, read_stream
from tests.system.speaker import FORMS, IDS, Speaker, followed_up, said_by_user, true_answer
from tests.system.tool import CONFIG, HOSTS
from tests.system.watched import held, settles, until, watched

pytestmark = pytest.mark.system

every_form = pytest.mark.parametrize("dialect, stream", FORMS, ids=IDS)
every_dialect = pytest.mark.parametrize("dialect", list(Dialect))
ARM = '<**!six.m**> <**stopMessage:"go on",{most}**> go'
EARLY_S, ALIVE_S, WHOLE_S = 0.5, 0.2, 0.5
MORE_KEYS = ", ".join(f"{{alias: more{n}, value: six-more-{n:03}}}" for n in range(400))
ROOMY = CONFIG.replace("keys: [{alias: k0,", f"keys: [{MORE_KEYS}, {{alias: k0,")
"""Each failure rests a key for a while."""


@pytest.fixture(scope="module")
def house(provider: FakeProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mitmdump]:
    """Its patience is short: a head after half a second, a keep-alive after a fifth."""
    patience = {"early_head_s": EARLY_S, "keep_alive_s": ALIVE_S, "whole_s": WHOLE_S}
    folder = tmp_path_factory.mktemp("rounds")
    with watched(provider, ROOMY, patience, folder=folder, options=["routecodex_http2=true"]) as started:
        yield started
        assert started.alive
        assert "RouteCodex failed" not in started.log


@pytest.fixture
def speak(provider: FakeProvider, house: Mitmdump) -> Callable[..., Speaker]:
    provider.forget()

    def make(dialect: Dialect = Dialect.MESSAGES, stream: bool = True, **more: Any) -> Speaker:
        return Speaker(provider, house, dialect, stream, **more)

    return make


def state_of(speaker: Speaker) -> dict[str, Any]:
    path = speaker.proxy.sessions / f"session-{speaker.session}.json"
    state = json.loads(path.read_bytes())["state"] if path.exists() else {}
    assert isinstance(state, dict)
    return state


# ---- a follow-up that fails ----

FAILURES = {
    "429": Behaviour(status=429, error="slow down"),
    "500": Behaviour(status=500, error="broken"),
    "529": Behaviour(status=529, error="overloaded"),
    "401": Behaviour(status=401, error="bad key"),
    "reset before the answer": Behaviour(before="reset"),
    "closed before the answer": Behaviour(before="close"),
    "error as the whole body": Behaviour(error="overloaded"),
    "no JSON at all": Behaviour(body=b"<html>Bad gateway</html>"),
    "half a document": Behaviour(reply=Reply("never seen"), form="json", cut_at=40),
}
IN_STREAMS = {
    "error as the first event": Behaviour(error="overloaded", error_after=0),
    "cut behind the head": Behaviour(cut_at=0),
    "ended before its content": Behaviour(edit=lambda events: [b": ok\n\n"]),
}
HIDDEN = Reply("never seen", thinking="Something that nobody is shown, at some length.")
IN_HIDDEN_THINKING = {
    Dialect.MESSAGES: Behaviour(reply=HIDDEN, cut_after=6),
    Dialect.CHAT: Behaviour(reply=HIDDEN, cut_after=3),
    Dialect.RESPONSES: Behaviour(reply=HIDDEN, cut_after=6),
    Dialect.GEMINI: Behaviour(reply=HIDDEN, cut_after=1),
}


def failures_of(dialect: Dialect, stream: bool) -> dict[str, Behaviour]:
    hidden = {"cut in thinking that is not shown": IN_HIDDEN_THINKING[dialect]}
    return {**FAILURES, **IN_STREAMS, **hidden} if stream else FAILURES


@every_form
def test_m18_a_follow_up_that_fails_goes_to_the_next_key(speak: Callable[..., Speaker], dialect: Dialect, stream: bool) -> None:
    for name, failure in failures_of(dialect, stream).items():
        speaker = speak(dialect, stream)
        speaker.provider.forget()
        speaker.provider.enqueue(Behaviour(reply=Reply("first")), failure)
        speaker.provider.always(Behaviour(reply=Reply("second")))
        told = speaker.told(speaker.ask(ARM.format(most=1)))
        first, failed, second = speaker.provider.calls
        assert (told.text, told.texts) == ("first\n\nsecond", 1), name
        assert first.key == failed.key != second.key, name
        assert failed.body == second.body, name
        speaker.provider.always(Behaviour(reply=Reply("ok")))
        speaker.ask("next")
        expected = [*followed_up(dialect, "go on"), *true_answer(dialect, Reply("second"), second)]
        assert speaker.history(speaker.provider.calls[-1])[-1 - len(expected) : -1] == expected, name


@every_form
@pytest.mark.parametrize(
    "name", ["429", "reset before the answer", "error as the whole body", "cut in thinking that is not shown"]
)
def test_m18_every_key_fails(speak: Callable[..., Speaker], house: Mitmdump, dialect: Dialect, stream: bool, name: str) -> None:
    """The answer that is there ends as it ended by itself; people are told why."""
    failure = failures_of(dialect, stream).get(name) or FAILURES["500"]
    speaker, before = speak(dialect, stream), len(house.log)
    speaker.provider.enqueue(Behaviour(reply=Reply("first", input_tokens=31, output_tokens=7)))
    speaker.provider.always(failure)
    answer = speaker.ask(ARM.format(most=5))
    told = speaker.told(answer)
    assert (told.text, told.texts, told.input, told.output) == ("first", 1, 31, 7)
    assert 2 < len(speaker.provider.calls) <= 7, "the round was not repeated, or too often"
    state = state_of(speaker)
    assert "stopMessageText" not in state
    assert "stopMessageClearedAt" in state
    for words in ("stopMessage is cleared: the follow-up failed", "the later round failed"):
        until(lambda words=words: words in house.log[before:], 2, lambda: house.log[before:])  # type: ignore[misc]
    speaker.provider.forget()
    speaker.ask("next")
    assert speaker.provider.calls[-1].body == speaker.provider.calls[0].body
    assert len(speaker.history(speaker.provider.calls[0])) == 3


VISIBLE = {
    Dialect.MESSAGES: 6,
    Dialect.CHAT: 4,
    Dialect.RESPONSES: 7,
    Dialect.GEMINI: 2,
}
"""So many events of a follow-up hold text that is seen."""


@every_dialect
@pytest.mark.parametrize("how", ["cut", "reset", "error event", "ended"])
def test_a_follow_up_that_breaks_when_it_can_be_seen(speak: Callable[..., Speaker], dialect: Dialect, how: str) -> None:
    """Nothing is repeated and nothing is invented: an error, behind all that was said."""
    speaker, events = speak(dialect), VISIBLE[dialect]
    seen = Reply("one two three four five")
    behaviour = {
        "cut": Behaviour(reply=seen, cut_after=events),
        "reset": Behaviour(reply=seen, cut_after=events, ending="reset"),
        "error event": Behaviour(reply=seen, error="overloaded late", error_after=events),
        "ended": Behaviour(reply=seen, cut_after=events, ending="clean"),
    }[how]
    speaker.provider.enqueue(Behaviour(reply=Reply("first")), behaviour)
    answer = speaker.ask(ARM.format(most=3), keep=False)
    assert answer.status == 200
    said, message = error_at_end(dialect, answer.body, True)
    assert said.startswith("first\n\none two")
    assert message
    assert ("overloaded late" in message) == (how == "error event")
    assert len(speaker.provider.calls) == 2


@every_form
def test_a_follow_up_refused_for_good_is_not_repeated(speak: Callable[..., Speaker], dialect: Dialect, stream: bool) -> None:
    speaker = speak(dialect, stream)
    speaker.provider.enqueue(Behaviour(reply=Reply("first")))
    speaker.provider.always(Behaviour(status=400, error="prompt is too long"))
    assert speaker.told(speaker.ask(ARM.format(most=3))).text == "first"
    assert len(speaker.provider.calls) == 2


def test_a_failure_in_the_second_follow_up_keeps_the_first(speak: Callable[..., Speaker]) -> None:
    for dialect, stream in FORMS:
        speaker = speak(dialect, stream)
        speaker.provider.forget()
        speaker.provider.enqueue(*(Behaviour(reply=Reply(word, output_tokens=3)) for word in ("first", "second")))
        speaker.provider.always(Behaviour(status=503, error="down"))
        told = speaker.told(speaker.ask(ARM.format(most=5)))
        assert (told.text, told.output) == ("first\n\nsecond", 6)
        speaker.provider.forget()
        speaker.ask("next")
        text = json.dumps(speaker.history(speaker.provider.calls[0]))
        assert text.index("first") < text.index("go on") < text.index("second") < text.index("next")
        assert text.count("go on") == 1, "the follow-up that nobody answered"


def test_the_first_round_fails_over_under_a_stop_message(speak: Callable[..., Speaker]) -> None:
    for dialect, stream in FORMS:
        speaker = speak(dialect, stream)
        speaker.provider.forget()
        speaker.provider.enqueue(Behaviour(status=503, error="down"), Behaviour(reply=Reply("first")))
        speaker.provider.always(Behaviour(reply=Reply("second")))
        assert speaker.told(speaker.ask(ARM.format(most=1))).text == "first\n\nsecond"
        failed, first, second = speaker.provider.calls
        assert failed.key != first.key == second.key


# ---- silence ----

SILENT_S = 3.5 * ALIVE_S
QUIET = Behaviour(reply=Reply("after a silence"), wait_s=SILENT_S)
SILENCES = {
    "between rounds": QUIET,
    "behind the head": dataclasses.replace(QUIET, wait_s=0, body_wait_s=SILENT_S),
    "in hidden thinking": Behaviour(reply=Reply("after a silence", thinking="Hidden."), stall_after=3, stall_s=SILENT_S),
}


ENOUGH = 5
"""So many pieces a client hears in each silence, one or two of them maybe of what was said before it."""


def _heard_in_it(answer: Answer) -> Callable[[], bool]:
    """The head has come, and enough since this was asked first."""
    heard_before: list[int] = []

    def enough() -> bool:
        heard_before.append(len(answer.chunks))
        return answer.status != 0 and len(answer.chunks) >= heard_before[0] + ENOUGH

    return enough


class Together:
    """Many calls at the same time; each has its own word, by which the provider knows what to answer it."""

    def __init__(
        self,
        speak: Callable[..., Speaker],
        arm: str,
        *plan: Behaviour,
        fixed: tuple[Behaviour, ...] = (),
        leaving: Callable[[list[Received]], bool] | None = None,
    ) -> None:
        """Each silence lasts until its client has heard enough in it, but for the `fixed` ones. `leaving`: when it goes."""
        self.speak, self.arm, self.plan, self.fixed, self.leaving = speak, arm, plan, fixed, leaving
        self.left: dict[str, list[Behaviour]] = {}
        self.received: dict[str, list[Received]] = {}
        self.provider = speak().provider
        self.provider.script(self._rule)

    def _rule(self, received: Received) -> Behaviour | None:
        token = next((token for token in self.left if token in received.body.decode()), None)
        if token is None:
            return None
        self.received[token].append(received)
        waiting = self.left[token]
        return waiting.pop(0) if len(waiting) > 1 else waiting[0]

    async def one(self, dialect: Dialect, stream: bool, client: type[Http1 | Http2], **how: Any) -> tuple[Speaker, str, Answer]:
        token, answer = f"{dialect.name}{client.__name__}{stream}.", Answer()
        self.left[token] = [
            dataclasses.replace(one, until=_heard_in_it(answer)) if one not in self.fixed else one for one in self.plan
        ]
        received = self.received[token] = list[Received]()
        if self.leaving is not None:
            how["leave"] = Leave(when=partial(self.leaving, received))
        speaker = self.speak(dialect, stream, items=said_by_user(dialect, f"{self.arm} {token}"))
        return speaker, token, await speaker.send(client, into=answer, **how)

    def all(
        self, forms: list[tuple[Dialect, bool]], *clients: type[Http1 | Http2], **how: Any
    ) -> list[tuple[Speaker, str, Answer]]:
        async def together() -> list[tuple[Speaker, str, Answer]]:
            return list(await asyncio.gather(*(self.one(*form, client, **how) for form in forms for client in clients)))

        return asyncio.run(together())


STREAMS = [form for form in FORMS if form[1]]
WHOLE = [form for form in FORMS if not form[1]]


@pytest.mark.parametrize("silence", SILENCES)
def test_silence_between_rounds_of_a_stream(speak: Callable[..., Speaker], silence: str) -> None:
    """The client hears something all the time, and all of it is valid where it stands."""
    quiet = SILENCES[silence]
    calls = Together(speak, ARM.format(most=2), Behaviour(reply=Reply("first", output_tokens=2)), quiet, quiet)
    for speaker, token, answer in calls.all(STREAMS, Http1, Http2):
        told = speaker.told(answer)
        assert told.text == "first\n\nafter a silence\n\nafter a silence", token
        assert told.output == 2 + 2 * 3, token
        assert told.alive >= 2 * (ENOUGH - 2), f"{token}: {told.alive} signs of life in two silences"
        assert len(calls.received[token]) == 3, token


def test_silence_before_the_first_word(speak: Callable[..., Speaker]) -> None:
    """The head leaves early, and then a keep-alive in time; a failure under it still goes to the next key."""
    failing = Behaviour(status=503, error="down", wait_s=2 * EARLY_S)
    calls = Together(speak, ARM.format(most=1), failing, Behaviour(reply=Reply("first"), wait_s=2.5 * ALIVE_S), QUIET)
    # not all at once: few calls may be repeated at the same time
    for speaker, token, answer in (*calls.all(STREAMS[:3], Http1), *calls.all(STREAMS[1:], Http2)):
        told = speaker.told(answer)
        assert told.text == "first\n\nafter a silence", token
        assert answer.head_s > EARLY_S * 0.9, token
        assert told.alive >= 3 * (ENOUGH - 2), f"{token}: {told.alive} signs of life in three silences"


def test_silence_before_whole_json(speak: Callable[..., Speaker]) -> None:
    """White space in front of the document; nothing of it before there is an answer to give."""
    first = Behaviour(reply=Reply("first"), wait_s=2 * WHOLE_S)
    calls = Together(speak, ARM.format(most=1), first, QUIET, fixed=(first,))
    for speaker, token, answer in calls.all(WHOLE, Http1, Http2):
        told = speaker.told(answer)
        assert told.text == "first\n\nafter a silence", token
        assert answer.head_s > 2 * WHOLE_S, token
        assert told.alive >= ENOUGH - 1, f"{token}: {told.alive} signs of life in a silence"
        assert answer.header("content-type") == "application/json", token
        assert answer.header("content-length") is None, token


def test_whole_json_without_silence_holds_no_white_space(provider: FakeProvider, proxy: Mitmdump) -> None:
    """By a proxy with its usual patience, which a slow machine does not try."""
    provider.forget()
    provider.always(Behaviour(reply=Reply("yes")))
    for dialect, stream in WHOLE:
        speaker = Speaker(provider, proxy, dialect, stream)
        told = speaker.told(speaker.ask(ARM.format(most=2)))
        assert (told.text, told.alive) == ("yes\n\nyes\n\nyes", 0), dialect


def test_silence_and_then_every_key_fails(speak: Callable[..., Speaker]) -> None:
    """The head has left; what there is makes a good end all the same."""
    failing = Behaviour(status=503, error="down", wait_s=0.4)
    calls = Together(speak, ARM.format(most=1), Behaviour(reply=Reply("first", output_tokens=7)), failing)
    for speaker, token, answer in calls.all(FORMS, Http1):
        told = speaker.told(answer)
        assert (told.text, told.output) == ("first", 7), token
        if len(calls.received[token]) > 3:  # fewer where many are being repeated at once
            assert told.alive >= 3, token


def test_a_client_that_leaves_in_a_silence(speak: Callable[..., Speaker], house: Mitmdump) -> None:
    speak().ask("hello")
    before = held(house)
    plan = Behaviour(reply=Reply("first")), Behaviour(before="hang")
    calls = Together(speak, ARM.format(most=3), *plan, leaving=lambda received: len(received) == 2)
    answers = calls.all(FORMS, Http1, Http2)
    assert [answer.ended for _, _, answer in answers] == ["left"] * 16
    for _, token, _ in answers:
        _, second = calls.received[token]
        calls.provider.wait_until(lambda second=second: second.left_early)  # type: ignore[misc]
    settles(house, before)


@pytest.mark.parametrize("envelope", [False, True], ids=["plain", "code-assist"])
def test_geminis_json_array(speak: Callable[..., Speaker], envelope: bool) -> None:
    """The stream of a client that does not ask for events."""
    speaker = speak(Dialect.GEMINI)
    host, path = HOSTS[Dialect.GEMINI], speaker.path.removesuffix("?alt=sse")
    speaker.items = said_by_user(Dialect.GEMINI, ARM.format(most=2).replace("<**!six.m**>", ""))
    body = json.loads(speaker.body)
    if envelope:
        host, path = "https://cloudcode-pa.googleapis.com", "/v1internal:streamGenerateContent"
        body = {"model": "m", "project": "p", "request": {**body, "session_id": speaker.session}}
    heard = Answer()
    plan = Behaviour(reply=Reply("first"), wait_s=2 * EARLY_S), QUIET, QUIET
    speaker.provider.enqueue(*(dataclasses.replace(one, until=_heard_in_it(heard)) for one in plan))

    async def send() -> Answer:
        async with Http1(Route(host, speaker.proxy)) as client:
            return await client.send("POST", path, body=body, headers=speaker.sent_headers, into=heard)

    answer = asyncio.run(send())
    assert len(speaker.provider.calls) == 3
    assert answer.header("content-type") == "application/json"
    told = read_stream(Dialect.GEMINI, answer.body, json_array=True)
    assert told.text == "first\n\nafter a silence\n\nafter a silence"
    assert all(("response" in item) == envelope for item in answer.json)
    assert sum(not data.strip() for _, data in answer.chunks) >= 3 * (ENOUGH - 1), "signs of life"


# ---- how it goes through ----


@every_form
@pytest.mark.parametrize("encoding", ["gzip", "br", "zstd", "deflate"])
def test_rounds_packed_in_different_ways(speak: Callable[..., Speaker], dialect: Dialect, stream: bool, encoding: Any) -> None:
    speaker = speak(dialect, stream)
    speaker.provider.enqueue(
        Behaviour(reply=Reply("first"), encoding=encoding, bytes_per_packet=7),
        Behaviour(reply=Reply("second 世界"), bytes_per_packet=5),
        Behaviour(reply=Reply("third"), encoding="gzip"),
    )
    answer = speaker.ask(ARM.format(most=2))
    assert speaker.told(answer).text == "first\n\nsecond 世界\n\nthird"
    assert answer.header("content-encoding") is None


@every_form
@pytest.mark.parametrize("form", ["stream", "json"])
def test_rounds_in_a_form_that_was_not_asked_for(
    speak: Callable[..., Speaker], dialect: Dialect, stream: bool, form: Any
) -> None:
    speaker = speak(dialect, stream)
    speaker.provider.enqueue(Behaviour(reply=Reply("first")), Behaviour(reply=Reply("second"), form=form))
    speaker.provider.always(Behaviour(reply=Reply("third"), form=form))
    told = speaker.told(speaker.ask(ARM.format(most=2)))
    assert (told.text, told.texts) == ("first\n\nsecond\n\nthird", 1)


@every_dialect
def test_a_connection_serves_on_after_rounds(speak: Callable[..., Speaker], house: Mitmdump, dialect: Dialect) -> None:
    """Over HTTP/2 with other streams at the same time, and one after the other."""
    speaker = speak(dialect)
    speaker.ask("hello")
    before = held(house)
    speaker.provider.forget()
    speaker.provider.script(lambda received: _said(token) if (token := _token(received)) else None)

    async def many() -> list[Answer]:
        async with Http2(Route(HOSTS[dialect], house)) as client:
            found: list[Answer] = []
            for batch in range(3):
                calls = []
                for place in range(6):
                    one = Speaker(speaker.provider, house, dialect)
                    one.items = said_by_user(dialect, ARM.format(most=2) + f" token{batch}{place}.")
                    calls.append(client.send("POST", one.path, body=one.body, headers=one.sent_headers))
                found += await asyncio.gather(*calls)
            return found

    for place, answer in enumerate(asyncio.run(many())):
        token = f"token{place // 6}{place % 6}. "
        assert read_stream(dialect, answer.body).text == "\n\n".join([token] * 3)
    settles(house, before)


def _said(token: str) -> Behaviour:
    return Behaviour(reply=Reply(f"{token} "), delay_s=0.01)


def _token(received: Received) -> str:
    """Empty: another test's proxy still asks."""
    text = received.body.decode()
    return text[at:][:8] if (at := text.rfind("token")) >= 0 else ""
