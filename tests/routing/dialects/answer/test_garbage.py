"""Whatever a provider sends, an answer comes to an end: nothing raises, and the client can read it."""

from __future__ import annotations

import copy
import json
import os
import random
from itertools import product
from typing import Any

import pytest

from routecodex.routing.dialects.sse import Events
from tests.routing.dialects.answer.rounds import spoken
from tests.routing.dialects.answer.talks import CHAT, GEMINI, MESSAGES, WAYS, WRITTEN, Way, answer_for, as_events, drive

ROUND = spoken(("thinking", "hm"), ("text", "Grüße"), ("own", "{}"), ("text", "so"), ("tool", '{"a": 1}'))
SEEDS = 6 if os.environ.get("ROUTECODEX_TESTS") == "long" else 2
ODD: tuple[Any, ...] = (None, 0, -1, 1.5, True, "", "x", [], [[]], {}, {"type": []}, [None, 1, "x", {}], "\ud800")


def places_in(value: Any, way: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [way] * bool(way) + [place for key, child in children for place in places_in(child, (*way, key))]


def spoiled(document: Any, chance: random.Random) -> Any:
    """One of its values is another one, or gone."""
    new = copy.deepcopy(document)
    *way, last = chance.choice(places_in(new))
    holder = new
    for key in way:
        holder = holder[key]
    if isinstance(holder, dict) and chance.random() < 0.2:
        del holder[last]
    else:
        holder[last] = chance.choice(ODD)
    return new


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("client, one", list(product(WAYS, [CHAT, MESSAGES, GEMINI])), ids=str)
def test_a_spoiled_stream(client: Way, one: Any, seed: int) -> None:
    chance = random.Random(f"{client}{one}{seed}")
    events = [event for event in Events().feed(WRITTEN[one, True](ROUND, 1)) if event.data]
    documents = [json.loads(event.data) if event.data != b"[DONE]" else event.data for event in events]
    for _ in range(40):
        sent = [spoiled(each, chance) if isinstance(each, dict) and chance.random() < 0.2 else each for each in documents]
        raw = b"".join(b"data: " + (each if isinstance(each, bytes) else json.dumps(each).encode()) + b"\n\n" for each in sent)
        out, _ = drive(answer_for(client), [(one, raw), (one, WRITTEN[one, True](spoken(("text", "two")), 2))])
        _check_readable(client, out)


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("client, one", list(product(WAYS, [CHAT, MESSAGES, GEMINI])), ids=str)
def test_a_spoiled_document(client: Way, one: Any, seed: int) -> None:
    chance = random.Random(f"{client}{one}{seed}")
    document = json.loads(WRITTEN[one, False](ROUND, 1))
    for _ in range(40):
        raw = json.dumps(spoiled(spoiled(document, chance), chance)).encode()
        _check_readable(client, drive(answer_for(client), [(one, raw)])[0])


def _check_readable(client: Way, out: bytes) -> None:
    if not client.stream:
        assert isinstance(json.loads(out), dict)
        return
    reader = Events()
    events = [event for event in [*reader.feed(as_events(client, out)), *reader.close()] if event.data]
    assert all(event.data == b"[DONE]" or isinstance(json.loads(event.data), dict) for event in events)
    assert events
