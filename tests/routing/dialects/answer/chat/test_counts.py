"""What a Chat provider counts because we asked for it: known to us, and not told to the client."""

from __future__ import annotations

import pytest

from routecodex.routing.dialects.answer.stream import without_empty_count
from routecodex.routing.values import Dialect, Endpoint
from tests.routing.dialects.answer.own import answer_for
from tests.routing.dialects.answer.talks import chunk, sse

TEXTS = ["Well", ",", " the", " field", ' is called "usage":null', " there", ".", " And", ' , "usage": null', " too", "."]
COUNT = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}


def stream(**beside: object) -> list[bytes]:
    told = [chunk({"role": "assistant"}, **beside), *(chunk({"content": text}, **beside) for text in TEXTS)]
    return [sse(one) for one in (*told, chunk({}, "stop", **beside))]


@pytest.mark.parametrize("quiet", [True, False])
@pytest.mark.parametrize("together", [1, 4])
@pytest.mark.parametrize("form", ["spaced", "dense"])
def test_the_client_gets_what_it_would_have_got(quiet: bool, together: int, form: str) -> None:
    counted = {**chunk({}), "choices": [], "usage": COUNT}
    asked = [*stream(usage=None), sse(counted), b"data: [DONE]\n\n"]
    plain = b"".join([*stream(), b"data: [DONE]\n\n"])
    if form == "dense":
        asked = [one.replace(b'": ', b'":').replace(b', "', b',"').replace(b"}, {", b"},{") for one in asked]
        plain = plain.replace(b'": ', b'":').replace(b', "', b',"')
    answer = answer_for(Endpoint(Dialect.CHAT), stream=True, quiet=quiet)
    answer.begin_round(hides_count=True)
    out = [answer.feed(b"".join(asked[at : at + together])) for at in range(0, len(asked), together)]
    said = answer.end_round()
    assert b"".join([*out, *answer.finish()]) == plain
    assert (said.usage.input, said.usage.output) == (11, 7)


@pytest.mark.parametrize("quiet", [True, False])
def test_a_count_beside_the_end_stays_where_it_was(quiet: bool) -> None:
    """Its provider tells it whoever asks."""
    told = [*stream()[:-1], sse(chunk({}, "stop", usage=COUNT)), b"data: [DONE]\n\n"]
    answer = answer_for(Endpoint(Dialect.CHAT), stream=True, quiet=quiet)
    answer.begin_round(hides_count=True)
    out = [answer.feed(one) for one in told]
    assert answer.end_round().usage.input == 11
    assert b"".join([*out, *answer.finish()]) == b"".join(told)


def test_who_asked_is_told() -> None:
    told = [*stream(usage=None), sse({**chunk({}), "choices": [], "usage": COUNT}), b"data: [DONE]\n\n"]
    answer = answer_for(Endpoint(Dialect.CHAT), stream=True, include_usage=True)
    answer.begin_round()
    out = [answer.feed(one) for one in told]
    answer.end_round()
    assert b"".join([*out, *answer.finish()]) == b"".join(told)


def test_texts_are_no_counts() -> None:
    data = rb'data: {"delta":{"content":",\"usage\":null"},"usage":null}'
    assert without_empty_count(data) == rb'data: {"delta":{"content":",\"usage\":null"}}'
