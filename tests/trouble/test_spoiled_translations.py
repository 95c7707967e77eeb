"""What is spoiled on its way, calls of clients and answers of providers, is translated or refused: nothing else may come of it.

Each case changes one to four values of a sound one: other types, lone surrogates, huge numbers, missing and doubled fields.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from copy import deepcopy
from itertools import product
from typing import Any

import pytest

from routecodex.routing.dialects.translation.going_up import translate
from routecodex.routing.dialects.translation.neutral import Seal
from routecodex.routing.dialects.translation.opaque import unwrap, wrap
from routecodex.routing.errors import RouteCodexError
from routecodex.routing.jsonbytes import dumps, loads
from routecodex.routing.values import Dialect
from tests.conftest import LONG
from tests.routing.dialects.answer.abroad import Translation
from tests.routing.dialects.translation.as_calls import call_of, endpoint_of
from tests.routing.dialects.translation.conversations import meant
from tests.routing.dialects.translation.test_conversations import MODELS
from tests.routing.dialects.translation.test_finishes import answer
from tests.routing.dialects.translation.vendor_streams import hand_made
from tests.trouble.test_translated_streams import FOUR, asked_by

COUNT = 4_000 if LONG else 60
PAIRS = [pytest.param(client, spoken, id=f"{client}-to-{spoken}") for client, spoken in product(Dialect, Dialect)]
_ODD: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 2**70, -0.0, 1e300, "", " ", "x", "\ud800", "a\udfffb", [], {}, [[]], [None], [""], [0], ["x"]),
    *({"": ""}, {"type": "text"}, {"type": ["x"]}, [{"type": "image"}], {"text": None}, {"type": "text", "text": "\ud83d"}),
    [[[[{"a": [{}]}]]]],
)
_WORDS = (
    "tool",
    "user",
    "assistant",
    "system",
    "function",
    "thinking",
    "image",
    "file",
    "\ud800",
    "auto",
    "none",
    "required",
    "any",
)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container with every key of it."""
    if isinstance(value, dict):
        for key in value:
            yield value, key
            yield from places(value[key])
    elif isinstance(value, list):
        for at in range(len(value)):
            yield value, at
            yield from places(value[at])


def spoil(value: Any, chosen: random.Random) -> None:
    for _ in range(chosen.randint(1, 4)):
        found = list(places(value))
        if not found:
            return
        where, key = chosen.choice(found)
        match chosen.randrange(5):
            case 0:
                del where[key]
            case 1:
                where[key] = chosen.choice(_WORDS)
            case 2 if isinstance(where, list):
                where.insert(key, deepcopy(where[chosen.randrange(len(where))]))
            case 3:
                where[key] = deepcopy(chosen.choice(found)[0])
            case _:
                where[key] = deepcopy(chosen.choice(_ODD))


@pytest.mark.parametrize("client, spoken", PAIRS)
def test_a_spoiled_call_is_translated_or_refused(client: Dialect, spoken: Dialect) -> None:
    translated = refused = 0
    for seed in range(COUNT):
        chosen, given = random.Random(seed), meant(seed, client)
        sound = json.loads(json.dumps(call_of(given, client)))
        spoil(sound, chosen)
        body = loads(json.dumps(sound).encode())
        assert isinstance(body, dict)
        maker, model = chosen.choice(MODELS[spoken])
        try:
            out = translate(body, endpoint_of(given, client), spoken, model=model, stream=True, session="s", maker=maker)
            json.loads(dumps(out.body))
            translated += 1
        except RouteCodexError:
            refused += 1
        except Exception as error:
            error.add_note(f"seed {seed}: {client} to {model} of {maker}")
            raise
    assert translated > refused


@pytest.mark.parametrize("odd", ["\ud83d", 2**70, {"a": [None, "\udfff"]}])
def test_a_seal_of_values_that_few_can_write_comes_back(odd: Any) -> None:
    seal = Seal(Dialect.CHAT, "acme", {"reasoning_details": [{"text": odd}]})
    assert unwrap(wrap(seal)) == seal


@pytest.mark.parametrize("spoken", list(Dialect))
def test_a_spoiled_answer_ends_in_bytes_that_can_be_read(spoken: Dialect) -> None:
    streams = [stream for stream in hand_made() if stream.spoken is spoken]
    for seed in range(COUNT * 4):
        chosen = random.Random(seed)
        documents = [line[6:] for line in chosen.choice(streams).raw.splitlines() if line.startswith(b"data: ")]
        values = [json.loads(line) for line in documents if line != b"[DONE]"]
        spoil(values, chosen)
        raw = b"".join(b"data: " + json.dumps(value).encode() + b"\n\n" for value in values)
        client, streamed = chosen.choice([one for one in FOUR if one.dialect is not spoken]), chosen.random() < 0.7
        translation = Translation(spoken, asked_by(client, stream=streamed))
        try:
            out = translation.feed(raw) + translation.close()
        except RouteCodexError:
            continue
        except Exception as error:
            error.add_note(f"seed {seed}: {spoken} to {client.dialect}")
            raise
        told = [line[6:] for line in out.split(b"\n") if line.startswith(b"data: ")] if streamed else [out] * bool(out)
        for line in told:
            assert line == b"[DONE]" or isinstance(json.loads(line), dict)


@pytest.mark.parametrize("spoken", list(Dialect))
def test_a_spoiled_whole_answer_ends_in_bytes_that_can_be_read(spoken: Dialect) -> None:
    for seed in range(COUNT * 4):
        chosen = random.Random(seed)
        value = answer(spoken, chosen.choice(("stop", "STOP", "end_turn", "completed", None)), calls=chosen.random() < 0.5)
        spoil(value, chosen)
        client, streamed = chosen.choice([one for one in FOUR if one.dialect is not spoken]), chosen.random() < 0.5
        translation = Translation(spoken, asked_by(client, stream=streamed))
        try:
            out = translation.feed(json.dumps(value).encode()) + translation.close()
        except RouteCodexError:
            continue
        except Exception as error:
            error.add_note(f"seed {seed}: {spoken} to {client.dialect}")
            raise
        assert out, "something must be said: an answer or an error"
        if not streamed:
            assert isinstance(json.loads(out), dict)
