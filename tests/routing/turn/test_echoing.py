"""A turn of several rounds with the built-in provider: no network, and one answer."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from routecodex.routing.dialects.echo import EchoFailure, echo_answer
from routecodex.routing.redact import Redactor
from routecodex.routing.sessions.store import SessionKey
from routecodex.routing.storage.contract import InThread
from routecodex.routing.turn.echoing import converse
from routecodex.routing.turn.hidden import Hidden
from routecodex.routing.turn.lifecycle import Lifecycle
from routecodex.routing.turn.participants import Participants
from routecodex.routing.turn.plugins import AfterRequest, Plugin, TurnInfo, UserText
from routecodex.routing.turn.replies import Replies, Reply
from routecodex.routing.values import Call, Dialect, Text
from tests.routing.turn.acting import Actor, run, tcall, tturn
from tests.routing.turn.test_participants import at_once
from tests.system.tool import text_of

REPLIES = Replies(Redactor([]), lambda: 1.0)
FORMS = pytest.mark.parametrize("dialect, stream", [(dialect, stream) for dialect in Dialect for stream in (True, False)])


class Store:
    def __init__(self) -> None:
        self.entries: list[Hidden] = []

    async def keep(self, key: SessionKey, hidden: Callable[[], Hidden | None], in_thread: InThread) -> None:
        if (entry := hidden()) is not None:
            self.entries.append(entry)


class Asking(Plugin):
    """Says the next of its texts behind each answer."""

    name = "asking"

    def __init__(self, *texts: str) -> None:
        self.left = list(texts)

    async def on_after_request(self, turn: TurnInfo, after: AfterRequest) -> None:
        if self.left:
            after.append_message(UserText(self.left.pop(0)), request=True)


def echo(call: Call) -> Reply:
    """As the desk answers for it."""
    echoed = echo_answer(call)
    if isinstance(echoed, EchoFailure):
        return REPLIES.error(call.endpoint, echoed.status, echoed.message, echoed.code, {}, "echo")
    return REPLIES.answer(call, echoed, "echo", id="id-1")


def played(call: Call, *texts: str) -> tuple[Reply, Store]:
    store = Store()
    turn = tturn(call)
    together = Participants(Lifecycle(turn, [Asking(*texts)]), call, store, turn.session, at_once)

    async def whole() -> Reply:
        first = await together.begin()
        return await converse(together, first, echo)

    return run(whole()), store


@FORMS
@pytest.mark.parametrize("texts", [(), ("second",), ("second", "third")], ids=len)
def test_one_answer_of_every_round(dialect: Dialect, stream: bool, texts: tuple[str, ...]) -> None:
    reply, store = played(tcall(dialect, stream=stream), *texts)
    assert reply.status == 200
    assert text_of(dialect, reply.body, stream) == "\n\n".join(["hi", *texts])
    assert len(store.entries) == (1 if texts else 0)


def test_a_failure_that_was_asked_for_is_the_answer() -> None:
    call = tcall(stream=False, messages=[{"role": "user", "content": "echo: fail 529 too busy"}])
    reply, store = played(call, "second")
    assert reply.status == 529
    assert json.loads(reply.body)["error"]["message"] == "too busy"
    assert store.entries == []


@FORMS
def test_m18_a_later_round_that_fails_leaves_the_answer_as_it_was(dialect: Dialect, stream: bool) -> None:
    reply, _ = played(tcall(dialect, stream=stream), "echo: fail 500")
    assert reply.status == 200
    assert text_of(dialect, reply.body, stream) == "hi"


def test_the_client_waits_as_long_as_its_rounds_were_told_to() -> None:
    call = tcall(stream=False)
    together = Participants(Lifecycle(tturn(call), [Asking("second")]), call, Store(), tturn(call).session, at_once)

    async def whole() -> Reply:
        first = await together.begin()
        return await converse(together, first, lambda call: replace(echo(call), delay_s=1.5))

    assert run(whole()).delay_s == 3.0


def test_plugins_see_each_round() -> None:
    actor = Actor("A")
    call = tcall(stream=False)
    turn = tturn(call)
    together = Participants(Lifecycle(turn, [actor, Asking("second")]), call, Store(), turn.session, at_once)

    async def whole() -> None:
        await converse(together, await together.begin(), echo)
        await together.leave(aborted=False)

    run(whole())
    assert actor.log == ["start A", "before A", "after A", "before A", "after A", "end A"]
    assert isinstance(call.messages[0].parts[0], Text)
