"""A proxy that runs for months sees thousands of conversations that set nothing: a few hundred bytes of each stay."""

from __future__ import annotations

import contextlib
import functools
import gc
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from routecodex.routing import headers as fields
from routecodex.routing.clients.identify import identify
from routecodex.routing.clients.typed import typed_messages
from routecodex.routing.clock.store import ClockStore
from routecodex.routing.dialects.calls import bare, for_target, read_call
from routecodex.routing.dialects.sse import Events
from routecodex.routing.dialects.translation.going_up import translate
from routecodex.routing.dialects.translation.neutral import LeftOut
from routecodex.routing.errors import BadCall, RouteCodexError
from routecodex.routing.jsonbytes import dumps
from routecodex.routing.redact import mask_body
from routecodex.routing.secret_names import is_secret_header
from routecodex.routing.sessions.newest import Seen, newest_of
from routecodex.routing.sessions.state import EMPTY, StopMessage
from routecodex.routing.sessions.store import FileStore, SessionKey
from routecodex.routing.turn.hidden_store import HiddenStore
from routecodex.routing.values import Dialect, Endpoint
from tests.routing.sessions.calls import messages_call, user

SESSIONS = 5000


def growth(work: Callable[[int], object]) -> float:
    """Bytes that stay, for each of many sessions."""
    tracemalloc.start()
    try:
        for number in range(SESSIONS, 2 * SESSIONS):  # what is only kept for a while is full then
            work(number)
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        for number in range(SESSIONS):
            work(number)
        gc.collect()
        return (tracemalloc.get_traced_memory()[0] - before) / SESSIONS
    finally:
        tracemalloc.stop()


def key(number: int) -> SessionKey:
    return SessionKey("session", f"a-session-of-somebody-{number}")


@pytest.mark.parametrize("store", ["states", "history", "clock"])
def test_a_session_that_set_nothing_costs_no_memory(store: str, tmp_path: Path) -> None:
    states, history, clock = FileStore(tmp_path), HiddenStore(tmp_path), ClockStore(tmp_path)
    look: Callable[[int], object] = {
        "states": lambda number: states.load(key(number)),
        "history": lambda number: history.load(key(number)),
        "clock": lambda number: clock.waiting(key(number).id),
    }[store]
    assert growth(look) < 100  # it was 270


def test_a_session_that_was_emptied_costs_no_memory(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    store.update(key(1), lambda state: state.with_(stop=StopMessage("go", 3)))
    assert len(store._files._known) == 1
    store.update(key(1), lambda state: EMPTY)
    assert store.load(key(1)) == EMPTY
    assert len(store._files._known) == 0


def test_what_was_typed_is_not_kept() -> None:
    """Only as much of it as tells whether it is the same."""

    def seen(number: int) -> Seen | None:
        typed = typed_messages(messages_call(user(f"{number} " + "a long text " * 1000)))
        return newest_of(list(typed), None)[1]

    kept: list[Seen | None] = []
    assert growth(lambda number: kept.append(seen(number)) if number < SESSIONS else None) < 500  # it was 12,000


# ---- what is remembered by names that come from outside ----

LONG_NAME = 100_000


def remembered(module: str = "routecodex.") -> dict[str, int]:
    """The longest text that each cache of ours holds as (a part of) a key."""

    def longest(key: object) -> int:
        if isinstance(key, str | bytes):
            return len(key)
        return max(map(longest, key), default=0) if isinstance(key, tuple | list) else 0

    found = {}
    gc.unfreeze()  # what another test has taken out of sight
    for one in gc.get_objects():
        if isinstance(one, functools._lru_cache_wrapper) and str(one.__module__).startswith(module):
            keys = [key for held in gc.get_referents(one) if type(held) is dict for key in held]
            found[f"{one.__module__}.{one.__qualname__}"] = max(map(longest, keys), default=0)
    return found


def names(number: int) -> dict[str, object]:
    long = f"{number}_access_token_" * (LONG_NAME // 16)
    return {long: "x", f"x{long}": {long: 1}}


def test_a_long_name_is_not_remembered() -> None:
    """A cache of 4,096 entries bounds nothing where an entry may be as long as a call."""
    before = remembered()  # of whoever ran in this process: a configuration is long, and one
    for number in range(3):
        odd = names(number)
        long = next(iter(odd))
        tool = {"name": long, "description": "d", "input_schema": {"type": "object", "properties": odd}}
        said = [{"type": "tool_use", "id": long, "name": long, "input": odd}, {"type": "text", "text": "x", **odd}]
        messages = [{"role": "user", "content": f"hello <**{long}**>"}, {"role": "assistant", "content": said}]
        body = {"model": "m", "max_tokens": 1, "messages": messages, "tools": [tool], "metadata": odd, **odd}
        raw = dumps(body)
        call = read_call(raw, Endpoint(Dialect.MESSAGES))
        for dialect in Dialect:
            with contextlib.suppress(RouteCodexError):
                translate(bare(call, "m", (), LeftOut()), call.endpoint, dialect, model="m", stream=False, session="s", maker="")
        mask_body(for_target(call, "", foreign=True))
        fields.may_hide(long)
        is_secret_header(long)
        identify(call, {"user-agent": long, "x-session-id": long}, "/v1/messages", "h")
        list(Events().feed(f"event: {long}\ndata: {{}}\n\n".encode()))
    held = remembered()
    assert len(held) > 12, "the caches that there are"
    assert {name: length for name, length in held.items() if length > max(4096, before.get(name, 0))} == {}


@pytest.mark.parametrize("dialect", Dialect)
def test_no_model_has_a_name_of_a_thousand_letters(dialect: Dialect) -> None:
    """Turns, prices, estimates and counters are kept by it."""
    raw = dumps({"model": "m" * 1000, "messages": [], "contents": []})
    endpoint = Endpoint(dialect, model="m" * 1000 if dialect is Dialect.GEMINI else None)
    with pytest.raises(BadCall, match="no model has such a name"):
        read_call(raw, endpoint)
