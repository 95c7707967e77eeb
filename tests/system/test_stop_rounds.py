"""stopMessage through the real proxy: what each round sends, what the client gets, what is counted, what later calls carry."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from mitmproxy import http
from mitmproxy.io import FlowReader

from routecodex.routing.values import Dialect
from tests.rig.behaviour import Behaviour
from tests.rig.client import Answer, Http1, Leave, Route
from tests.rig.provider import FakeProvider, Received
from tests.rig.proxy import SCRIPT, Mitmdump
from tests.rig.wire import Reply, ToolUse
from tests.system.grammar import error_at_end
from tests.system.speaker import FORMS, IDS, Item, Speaker, followed_up, said_by_user, true_answer
from tests.system.tool import CONFIG, HOSTS
from tests.system.watched import until

pytestmark = pytest.mark.system

every_form = pytest.mark.parametrize("dialect, stream", FORMS, ids=IDS)
GO = "go on"


def arm(most: int, text: str = GO) -> str:
    return f'<**stopMessage:"{text}",{most}**>'


@pytest.fixture
def speak(provider: FakeProvider, proxy: Mitmdump) -> Iterator[Callable[..., Speaker]]:
    provider.forget()

    def make(dialect: Dialect = Dialect.MESSAGES, stream: bool = True, **more: Any) -> Speaker:
        return Speaker(provider, proxy, dialect, stream, **more)

    yield make
    assert proxy.alive
    assert "RouteCodex failed" not in proxy.log


def answers(provider: FakeProvider, *replies: Reply | Behaviour) -> None:
    """One after the other; the last one for ever."""
    behaviours = [reply if isinstance(reply, Behaviour) else Behaviour(reply=reply) for reply in replies]
    provider.enqueue(*behaviours[:-1])
    provider.always(behaviours[-1])


def state_of(speaker: Speaker) -> dict[str, Any]:
    path = speaker.proxy.sessions / f"session-{speaker.session}.json"
    state = json.loads(path.read_bytes())["state"] if path.exists() else {}
    assert isinstance(state, dict)
    return state


def used(speaker: Speaker) -> tuple[int, int] | None:
    """How often, of how many; None: nothing is armed."""
    state = state_of(speaker)
    return (state["stopMessageUsed"], state["stopMessageMaxRepeats"]) if "stopMessageText" in state else None


# ---- which answers are continued ----


@every_form
def test_m01_m05_m08_m09_m10_m11_m34_m35_the_whole_of_it(speak: Callable[..., Speaker], dialect: Dialect, stream: bool) -> None:
    """Exactly as many as asked for, each with all that was said; one answer; counted before it is sent; then cleared."""
    speaker = speak(dialect, stream)
    provider = speaker.provider
    replies = [Reply(f"This is answer {word}.", input_tokens=20 + place) for place, word in enumerate(("one", "two", "three"))]
    waiting = [*replies]
    counted: list[tuple[int, int] | None] = []

    def rule(received: Received) -> Behaviour:
        counted.append(used(speaker))
        return Behaviour(reply=waiting.pop(0) if waiting else Reply("never"))

    provider.script(rule)
    answer = speaker.ask(f"<**!six.m**> {arm(2)} count")
    rounds = provider.calls
    assert len(rounds) == 3

    # M09: the original call, the answers given, the text; M05, M08: nothing else has changed; M10: the same place
    expected = said_by_user(dialect, "count")
    for received, reply in zip(rounds, replies, strict=True):
        assert speaker.history(received) == expected
        expected = [*expected, *true_answer(dialect, reply, received), *followed_up(dialect, GO)]
        assert speaker.beside(received) == speaker.beside(rounds[0])
        assert (received.host, received.key, received.target) == (rounds[0].host, rounds[0].key, rounds[0].target)
        assert received.asked is not None
        assert (received.asked.model, received.asked.stream) == ("m", stream)
        assert received.body.startswith(rounds[0].body[:-2])
    sent = json.loads(speaker.body) | {"model": "m"}
    names = [name for name in sent if name not in ("messages", "input", "contents")]
    named = names if dialect is not Dialect.GEMINI else [name for name in names if name != "model"]
    assert {name: sent[name] for name in named} == speaker.beside(rounds[0])

    # M34, M35: one answer; M11: no fourth; M01: counted, then cleared
    told = speaker.told(answer)
    assert told.text == "This is answer one.\n\nThis is answer two.\n\nThis is answer three."
    assert told.texts == 1
    assert (told.input, told.output) == (22, sum(reply.tokens for reply in replies))
    assert counted == [(0, 2), (1, 2), None]
    assert {"stopMessageClearedAt", "stopMessageLastUsedAt"} <= state_of(speaker).keys()
    speaker.ask("next")
    assert len(provider.calls) == 4


NOT_PLAIN = {
    "M02 a tool call": Reply("Let me look.", calls=(ToolUse("Bash", {"command": "ls"}),)),
    "M02 nothing but a tool call": Reply("", calls=(ToolUse("Bash", {"command": "ls"}),)),
    "M03 cut short": Reply("And then", stop="length"),
    "M03 filtered": Reply("I cannot", stop="content_filter"),
}


@every_form
@pytest.mark.parametrize("name", NOT_PLAIN)
def test_m02_m03_m06_no_plain_stop(speak: Callable[..., Speaker], dialect: Dialect, stream: bool, name: str) -> None:
    """Not a byte of such an answer changes, and nothing is counted."""
    speaker, reply = speak(dialect, stream), NOT_PLAIN[name]
    answers(speaker.provider, reply)
    answer = speaker.ask(f"{arm(3)} do it")
    told = speaker.told(answer)
    assert (told.text, len(told.calls)) == (reply.joined, len(reply.calls))
    assert len(speaker.provider.calls) == 1
    assert used(speaker) == (0, 3)


@pytest.mark.parametrize("status", ["incomplete", "requires_action", "queued"])
def test_m06_a_responses_status_that_is_no_end(speak: Callable[..., Speaker], status: str) -> None:
    """Providers that are not OpenAI say so in words of their own."""
    speaker = speak(Dialect.RESPONSES, False)

    def edit(items: list[bytes]) -> list[bytes]:
        return [item.replace(b'"completed"', b'"%b"' % status.encode(), 1) for item in items]

    speaker.provider.always(Behaviour(reply=Reply("so far"), edit=edit))
    answer = speaker.ask(f"{arm(3)} do it")
    assert answer.json["status"] == status
    assert len(speaker.provider.calls) == 1
    assert used(speaker) == (0, 3)


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "json"])
def test_m07_several_choices(speak: Callable[..., Speaker], stream: bool) -> None:
    """The first one counts; the others are passed on as they are, once, and never continued."""
    speaker = speak(Dialect.CHAT, stream)

    def second_choice(items: list[bytes]) -> list[bytes]:
        found = []
        for item in items:
            found.append(item)
            document = json.loads(item.removeprefix(b"data: ")) if b"[DONE]" not in item else {"choices": []}
            if document["choices"]:
                (choice,) = document["choices"]
                says = choice.get("delta") or choice.get("message")
                says = {**says, "content": f"other {says.get('content') or ''}"} if says else says
                other = {**choice, "index": 1, ("delta" if stream else "message"): says}
                if stream:
                    found.append(b"data: " + json.dumps({**document, "choices": [other]}).encode() + b"\n\n")
                else:
                    found[-1] = json.dumps({**document, "choices": [choice, other]}).encode()
        return found

    speaker.provider.enqueue(Behaviour(reply=Reply("first"), edit=second_choice))
    speaker.provider.always(Behaviour(reply=Reply("second")))
    answer = speaker.ask(f"{arm(1)} go")
    assert len(speaker.provider.calls) == 2
    assert speaker.told(answer).text == "first\n\nsecond"
    assert speaker.history(speaker.provider.calls[1])[1] == {"role": "assistant", "content": "first"}
    documents = [json.loads(data) for _, data in answer.events if data != "[DONE]"] if stream else [answer.json]
    others = [choice for document in documents for choice in document["choices"] if choice["index"] == 1]
    said = "".join((choice.get("delta") or choice.get("message") or {}).get("content") or "" for choice in others)
    assert said == ("other other first" if stream else "other first")
    assert [choice["finish_reason"] for choice in others][-1] == "stop"


COMPACTIONS: dict[str, tuple[Item, tuple[tuple[str, str], ...], str]] = {
    "said by its client": ({}, (("x-claude-code-request-class", "compaction"),), "Sum it up."),
    "a system text": ({"system": "Context checkpoint compaction: write a summary."}, (), "Sum it up."),
    "a first message": ({}, (), "Handoff summary for another LLM follows."),
}


@pytest.mark.parametrize("name", COMPACTIONS)
def test_m19_compactions(speak: Callable[..., Speaker], name: str) -> None:
    extras, headers, text = COMPACTIONS[name]
    speaker = speak()
    answers(speaker.provider, Reply("a summary"))
    speaker.ask(arm(3))
    assert used(speaker) == (0, 3)
    compacting = speak(session=speaker.session, headers=headers, extras={"max_tokens": 77, **extras})
    compacting.ask(text)
    assert len(speaker.provider.calls) == 1
    assert used(speaker) == (0, 3)
    told = speaker.ask("a call of the usual kind")
    assert speaker.told(told).text.count("a summary") == 4


def test_m24_another_session(speak: Callable[..., Speaker]) -> None:
    first, second = speak(), speak()
    answers(first.provider, Reply("yes"))
    first.ask(arm(3))
    second.ask("hello")
    assert len(first.provider.calls) == 1
    assert used(first) == (0, 3)


# ---- what a follow-up is not ----


@every_form
def test_m22_m33_a_follow_up_is_no_call_of_a_client(speak: Callable[..., Speaker], dialect: Dialect, stream: bool) -> None:
    """It names no session, and yet counts for the right one; tags in the person's text do nothing; no turn of its own begins."""
    speaker = speak(dialect, stream)
    answers(speaker.provider, Reply("fine"))
    answer = speaker.ask(f"<**!six.m**> {arm(2, text='say <**!glm.glm-4.7**><**clear**>more')} go")
    rounds = speaker.provider.calls
    assert speaker.told(answer).text == "fine\n\nfine\n\nfine"
    assert [received.header("x-session-id") for received in rounds] == [None] * 3
    assert {received.host for received in rounds} == {"six.example"}
    assert speaker.history(rounds[2])[-1:] == followed_up(dialect, "say more")
    assert not [received for received in rounds if b"<**" in received.body]
    assert used(speaker) is None
    assert [path.name for path in speaker.proxy.sessions.glob("session-*") if path.name == f"session-{speaker.session}.json"]


# ---- what ends the loop ----


def test_m21_identical_rounds(speak: Callable[..., Speaker]) -> None:
    """A word in the log at five, the end at ten."""
    speaker = speak()
    before = len(speaker.proxy.log)
    answers(speaker.provider, Reply("I am done."))
    answer = speaker.ask(f"{arm(12)} do it")
    assert len(speaker.provider.calls) == 10
    assert speaker.told(answer).text == "\n\n".join(["I am done."] * 10)
    assert used(speaker) == (9, 12)
    time.sleep(0.3)
    log = speaker.proxy.log[before:]
    assert log.count("the model has said the same 5 times in a row") == 1
    assert "stopMessage does not go on: 10 identical rounds" in log


def test_m21_answers_that_differ_are_no_loop(speak: Callable[..., Speaker]) -> None:
    speaker = speak()
    speaker.provider.script(lambda received: Behaviour(reply=Reply(f"step {received.number}")))
    speaker.ask(f"{arm(12)} do it")
    assert len(speaker.provider.calls) == 13


# ---- clients that leave, and clients that do not ----

SLOW = Behaviour(reply=Reply(tuple(f"w{n} " for n in range(60))), delay_s=0.03, ending="hang")


@every_form
def test_m13_gone_before_the_reply_ended(speak: Callable[..., Speaker], dialect: Dialect, stream: bool) -> None:
    speaker = speak(dialect, stream)
    slow = SLOW if stream else Behaviour(reply=Reply("late"), wait_s=600)
    answers(speaker.provider, slow, Reply("never"))
    leave = Leave(chunks=3) if stream else Leave(when=lambda: len(speaker.provider.calls) == 1)
    assert speaker.ask(f"{arm(3)} go", leave=leave).ended == "left"
    speaker.provider.wait_until(lambda: speaker.provider.calls[0].left_early, 1)
    time.sleep(0.3)
    assert len(speaker.provider.calls) == 1
    assert used(speaker) == (0, 3)


@every_form
def test_m14_gone_in_a_follow_up(speak: Callable[..., Speaker], dialect: Dialect, stream: bool) -> None:
    """Before its head, and in its answer."""
    begun = SLOW if stream else Behaviour(reply=Reply("never whole"), stall_at=20, stall_s=600)
    for slow in (Behaviour(before="hang"), begun):
        speaker = speak(dialect, stream)
        speaker.provider.forget()
        answers(speaker.provider, Reply("first"), slow)
        asyncio.run(_leave_in_follow_up(speaker, 0.0 if slow is not begun else 0.25))
        speaker.provider.wait_until(lambda speaker=speaker: speaker.provider.calls[-1].left_early, 1)  # type: ignore[misc]
        time.sleep(0.2)
        assert len(speaker.provider.calls) == 2
        assert used(speaker) == (1, 3)


async def _leave_in_follow_up(speaker: Speaker, after_s: float) -> None:
    speaker.items += said_by_user(speaker.dialect, f"{arm(3)} go")
    async with Http1(Route(HOSTS[speaker.dialect], speaker.proxy)) as client:
        call = asyncio.ensure_future(client.send("POST", speaker.path, body=speaker.body, headers=speaker.sent_headers))
        await asyncio.to_thread(speaker.provider.wait_for, 2)
        assert client.pipe is not None
        await asyncio.sleep(after_s)
        client.pipe.close()
        await call


def test_m15_a_normal_end_is_no_leaving(speak: Callable[..., Speaker]) -> None:
    """Whether the connection stays or goes right behind the last byte."""
    speaker = speak()
    answers(speaker.provider, Reply("first"), Reply("second"), Reply("third"))

    async def kept() -> list[Answer]:
        async with Http1(Route(HOSTS[speaker.dialect], speaker.proxy)) as client:
            found = []
            for text in (f"{arm(1)} one", f"{arm(1)} two"):
                speaker.items += said_by_user(speaker.dialect, text)
                found.append(await client.send("POST", speaker.path, body=speaker.body, headers=speaker.sent_headers))
                speaker.items += [{"role": "assistant", "content": speaker.told(found[-1]).text}]
            return found

    first, second = asyncio.run(kept())
    assert (speaker.told(first).text, speaker.told(second).text) == ("first\n\nsecond", "third\n\nthird")
    assert not any(received.left_early for received in speaker.provider.calls)
    assert used(speaker) is None
    # the hidden round of the first turn stands in the second: its turn was no abort
    assert [item["role"] for item in speaker.history(speaker.provider.calls[2])] == ["user", "assistant"] * 2 + ["user"]
    assert len(speaker.history(speaker.provider.calls[2])) == 5


# ---- follow-ups that go wrong ----


@every_form
def test_m17_empty_twice(speak: Callable[..., Speaker], dialect: Dialect, stream: bool) -> None:
    speaker = speak(dialect, stream)
    answers(speaker.provider, Reply("the answer", output_tokens=7), Reply("", output_tokens=0))
    told = speaker.told(speaker.ask(f"{arm(4)} go"))
    assert (told.text, told.output, told.texts) == ("the answer", 7, 1)
    assert len(speaker.provider.calls) == 3
    assert used(speaker) is None
    assert "stopMessageClearedAt" in state_of(speaker)


@every_form
def test_m17_empty_once(speak: Callable[..., Speaker], dialect: Dialect, stream: bool) -> None:
    """Asked for once more, and not counted for that."""
    speaker = speak(dialect, stream)
    answers(speaker.provider, Reply("one"), Reply("", output_tokens=0), Reply("two"), Reply("three"))
    assert speaker.told(speaker.ask(f"{arm(2)} go")).text == "one\n\ntwo\n\nthree"
    assert len(speaker.provider.calls) == 4
    speaker.ask("next")
    history = speaker.history(speaker.provider.calls[-1])
    texts = [str(item) for item in history]
    assert ["one" in texts[1], "two" in texts[-4], "three" in texts[-2]] == [True] * 3


# ---- what later calls carry ----


THINKING = [Reply(f"Answer {n}.", thinking=f"Thought number {n}.", signature=f"c2lnbmF0dXJl{n}") for n in range(3)]


@every_form
@pytest.mark.parametrize("replies", [THINKING, [Reply("a"), Reply("b"), Reply("c")]], ids=["thinking", "plain"])
def test_the_true_history_on_every_later_call(
    speak: Callable[..., Speaker], dialect: Dialect, stream: bool, replies: list[Reply]
) -> None:
    """The same bytes, call after call, behind the last round's own."""
    speaker = speak(dialect, stream)
    answers(speaker.provider, *replies, Reply("ok"))
    assert len(speaker.told(speaker.ask(f"{arm(2)} go")).thinking) == (1 if replies is THINKING else 0)
    for text in ("second", "third", "fourth"):
        speaker.ask(text)
    *rounds, second, third, fourth = speaker.provider.calls
    expected = said_by_user(dialect, "go")
    for place, (reply, received) in enumerate(zip(replies, rounds, strict=True)):
        expected += [*true_answer(dialect, reply, received), *(followed_up(dialect, GO) if place < 2 else [])]
    assert speaker.history(second) == [*expected, *said_by_user(dialect, "second")]
    for earlier, later in ((rounds[0], rounds[1]), (rounds[1], rounds[2]), (rounds[2], second), (second, third), (third, fourth)):
        assert later.body.startswith(earlier.body[:-2])
    assert len(speaker.provider.calls) == 6


@every_form
def test_edited_history_is_left_alone(speak: Callable[..., Speaker], dialect: Dialect, stream: bool) -> None:
    """What the client changed is its own affair: not a byte of its call is touched."""
    speaker = speak(dialect, stream)
    answers(speaker.provider, Reply("first words"), Reply("second words"))
    speaker.ask(f"{arm(1)} go")
    kept = json.dumps(speaker.items)
    for changed in (kept.replace("first words", "other words"), kept.replace("second words", "")):
        speaker.items = [*json.loads(changed), *said_by_user(dialect, "next")]
        before = speaker.body
        asyncio.run(speaker.send())
        assert speaker.provider.calls[-1].body.decode() == before.decode().replace(f"{arm(1)} ".replace('"', '\\"'), "")


def test_compacted_history_is_left_alone(speak: Callable[..., Speaker]) -> None:
    speaker = speak()
    answers(speaker.provider, Reply("first words"), Reply("second words"))
    speaker.ask(f"{arm(1)} go")
    speaker.items = []
    speaker.ask("This session is being continued from a previous conversation. First words, second words.")
    assert GO not in speaker.provider.calls[-1].body.decode()


# ---- restarts ----


@pytest.mark.parametrize(
    "dialect", [pytest.param(dialect, marks=[] if dialect is Dialect.MESSAGES else [pytest.mark.long]) for dialect in Dialect]
)
def test_restarts(tmp_path: Path, provider: FakeProvider, dialect: Dialect) -> None:
    """Killed inside the first follow-up: what was counted stays counted. Then: the history is put back as before."""
    provider.forget()
    port = None
    speaker = Speaker(provider, Mitmdump(), dialect, stream=True)

    def started() -> Mitmdump:
        return Mitmdump(script=SCRIPT, config=CONFIG, upstream=provider, folder=tmp_path, port=port)

    with started() as proxy:
        speaker.proxy, port = proxy, proxy.port
        answers(provider, Reply("first"), Behaviour(before="hang"))
        asyncio.run(_killed(speaker, proxy))
        assert used(speaker) == (1, 3)
    with started() as proxy:
        speaker.proxy = proxy
        provider.forget()
        answers(provider, *THINKING, Reply("ok"))
        assert speaker.told(speaker.ask("and now")).text == "Answer 0.\n\nAnswer 1.\n\nAnswer 2."
        assert used(speaker) is None
        speaker.ask("second")
    with started() as proxy:
        speaker.proxy = proxy
        speaker.ask("third")
    *_, last, second, third = provider.calls
    assert second.body.startswith(last.body[:-2])
    assert third.body.startswith(second.body[:-2])
    assert speaker.history(second).count(followed_up(dialect, GO)[0]) == 2


async def _killed(speaker: Speaker, proxy: Mitmdump) -> None:
    speaker.items += said_by_user(speaker.dialect, f"{arm(3)} go")
    call = asyncio.ensure_future(speaker.send())
    await asyncio.to_thread(speaker.provider.wait_for, 2)
    proxy.kill()
    assert (await call).ended in ("closed", "reset")
    # the client keeps no answer, as tools do after an error
    speaker.items.pop()
    speaker.items += said_by_user(speaker.dialect, f"{arm(3)} go")


# ---- what people see ----


def test_rounds_are_flows_of_their_own(tmp_path: Path, provider: FakeProvider) -> None:
    provider.forget()
    with Mitmdump(script=SCRIPT, config=CONFIG, upstream=provider, folder=tmp_path, flows=True) as proxy:
        speaker = Speaker(provider, proxy)
        answers(provider, Reply("first"), Behaviour(status=503, error="down"), Reply("second"), Reply("third"))
        assert speaker.told(speaker.ask(f"<**!six.m**> {arm(2)} go")).text == "first\n\nsecond\n\nthird"
    assert proxy.flows_path is not None
    with proxy.flows_path.open("rb") as file:
        flows = [flow for flow in FlowReader(file).stream() if isinstance(flow, http.HTTPFlow)]
    (parent,) = [flow for flow in flows if flow.is_replay is None]
    rounds = [flow for flow in flows if flow is not parent]
    assert [flow.is_replay for flow in rounds] == ["request"] * 3
    assert [flow.response.status_code for flow in rounds if flow.response] == [503, 200, 200]
    assert parent.marked == ":arrow_right:"
    assert [flow.marked for flow in rounds] == [":x:", ":arrow_right_hook:", ":arrow_right_hook:"]
    call = parent.metadata["routecodex"]["call"]
    assert [flow.metadata["routecodex"]["call"] for flow in rounds] == [call] * 3
    comments = [flow.comment for flow in rounds]
    assert [comment.rpartition(" · ")[2] for comment in comments] == [
        f"round {number}:stop_followup of {call[:8]}" for number in (2, 2, 3)
    ]
    assert all(comment.startswith("m · ") and " · six." in comment for comment in comments)
    assert [flow.metadata["routecodex"]["parent"] for flow in rounds] == [parent.id] * 3
    assert ["stopMessage 1/2" in comment for comment in comments] == [True, True, False]
    assert "stopMessage 2/2" in comments[2]
    assert "after six." in comments[1]
    assert parent.comment.startswith("m · ")
    assert " · six." in parent.comment
    assert parent.comment.endswith(f" · 3 rounds of {call[:8]}")
    record = parent.metadata["routecodex"]
    assert record["rounds"] == 3
    assert "stopMessage" in record["typed"]
    assert "stopMessage" not in record["sent"]
    assert len(record["attempts"]) == 1
    assert "stopMessage 2/2" in parent.comment
    assert parent.response is not None
    assert b"first" in (parent.response.raw_content or b"")
    assert b"third" in (parent.response.raw_content or b"")
    assert [b"first" in (flow.response.raw_content or b"") for flow in rounds if flow.response] == [False] * 3
    secrets = {received.key for received in provider.calls}
    assert not [secret for secret in secrets if secret and secret.encode() in proxy.flows_path.read_bytes()]


def test_m21_the_time_is_over(tmp_path: Path, provider: FakeProvider) -> None:
    """`maxTotalMs`, counted from the end of the first answer."""
    provider.forget()
    config = CONFIG.replace("  routing:\n", "  stopMessage: {maxTotalMs: 1000}\n  routing:\n")
    with Mitmdump(script=SCRIPT, config=config, upstream=provider, folder=tmp_path) as proxy:
        speaker = Speaker(provider, proxy)
        provider.script(lambda received: Behaviour(reply=Reply(f"step {received.number}"), wait_s=0.4))
        speaker.told(speaker.ask(f"{arm(9)} go"))
        rounds = len(provider.calls)
        assert 2 <= rounds <= 4, "three waits of 0.4 s are longer than a second"
        assert used(speaker) == (rounds - 1, 9)
        until(lambda: "stopMessage does not go on: 1 s are over" in proxy.log, 60, lambda: proxy.log)


CUT_AFTER = {Dialect.MESSAGES: 5, Dialect.CHAT: 3, Dialect.RESPONSES: 6, Dialect.GEMINI: 2}


@pytest.mark.parametrize("dialect", list(Dialect))
def test_a_first_answer_that_breaks_off_is_continued_by_nobody(speak: Callable[..., Speaker], dialect: Dialect) -> None:
    speaker = speak(dialect)
    answers(speaker.provider, Behaviour(reply=Reply("one two three"), cut_after=CUT_AFTER[dialect], ending="clean"))
    answer = speaker.ask(f"{arm(3)} go", keep=False)
    assert error_at_end(dialect, answer.body, True)[0] == "one two"
    assert len(speaker.provider.calls) == 1
    assert used(speaker) == (0, 3)
