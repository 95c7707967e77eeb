"""JSON in and out, and no value changes on the way."""

from __future__ import annotations

import contextlib
import json
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from routecodex.routing import jsonbytes
from routecodex.routing.errors import BadCall
from routecodex.routing.jsonbytes import (
    ANY_DEPTH,
    MOST_VALUES,
    WRITERS,
    dump_pieces,
    dumps,
    joined,
    load_object,
    loads,
    loads_counted,
)
from tests.rig.work import assert_linear

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)


@given(VALUES)
def test_there_and_back(value: object) -> None:
    assert loads(dumps(value)) == value
    assert json.loads(dumps(value)) == value


@given(VALUES, st.sampled_from([None, 1, "\t"]), st.booleans())
def test_whatever_somebody_else_wrote_is_read_as_the_standard_library_reads_it(
    value: object, indent: int | str | None, ascii_only: bool
) -> None:
    raw = json.dumps(value, indent=indent, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    assert loads(raw) == json.loads(raw.decode("utf-8", "surrogatepass"))


@given(st.integers(-(10**40), 10**40), st.integers(0, 20), st.integers(0, 20))
def test_integers_of_any_length_stay_exact_wherever_they_stand(number: int, before: int, after: int) -> None:
    found = loads(b" " * before + b'{"a":"' + b"x" * after + b'","b":%d}' % number)
    assert isinstance(found, dict)
    assert found["b"] == number
    assert type(found["b"]) is int


@pytest.mark.parametrize(
    "raw, value",
    [
        pytest.param(b"18446744073709551615", 2**64 - 1, id="the largest of 64 bits"),
        pytest.param(b"18446744073709551616", 2**64, id="one more"),
        pytest.param(b"-9223372036854775809", -(2**63) - 1, id="negative"),
        pytest.param(b'"\\ud800"', "\ud800", id="a lone surrogate"),
        pytest.param(b'"\\ud83d\\ude00"', "😀", id="a pair"),
        pytest.param(b'{"a":1,"a":2}', {"a": 2}, id="the last of two"),
        pytest.param(b" [1 , 2] \n", [1, 2], id="white space"),
        pytest.param(b"1e2", 100.0, id="exponent"),
        pytest.param(b'"00000000000000000000"', "0" * 20, id="digits in a text"),
        pytest.param(b"0.12345678901234567890123", 0.12345678901234568, id="a long fraction"),
    ],
)
def test_values(raw: bytes, value: object) -> None:
    found = loads(raw)
    assert found == value
    assert type(found) is type(value)


@given(
    VALUES | st.integers(-(10**40), 10**40) | st.floats(1e17, 1e22),
    st.sampled_from([b"", b" " * 5000]),
    st.sampled_from([60, ANY_DEPTH]),
)
def test_long_bodies_and_those_of_a_limited_depth_are_read_alike(value: object, space: bytes, deepest: int) -> None:
    for nested in (value, [value], {"a": [1.5, {"b": value}]}):
        raw = json.dumps(nested).encode("utf-8", "surrogatepass") + space
        found = loads(raw, deepest=deepest)
        assert repr(found) == repr(json.loads(raw))


@pytest.mark.parametrize("number", [b"1", b"1.5", b"18446744073709551616"])
@pytest.mark.parametrize("opens, closes", [(b"[", b"]"), (b'{"a":', b"}")])
def test_how_deep(number: bytes, opens: bytes, closes: bytes) -> None:
    for depth in range(5):
        raw = opens * depth + number + closes * depth
        for deepest in range(5):
            if depth <= deepest:
                assert loads(raw, deepest=deepest) == json.loads(raw)
            else:
                with pytest.raises(BadCall, match=f"deeper than {deepest} levels"):
                    loads(raw, deepest=deepest)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b" ",
        b"{",
        b"[1,]",
        b"{'a':1}",
        b"nul",
        b"NaN",
        b"-Infinity",
        b"[Infinity]",
        b"1e999",
        b"[-1e999]",
        b"\xff",
        b'"\xff"',
        b"1 2",
        b"\x00",
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'"a\nb"',
        b"01",
        b"9" * 30 + b"x",
    ],
)
def test_what_is_no_json_is_a_bad_call(raw: bytes) -> None:
    with pytest.raises(BadCall) as refused:
        loads(raw)
    assert refused.value.status == 400
    assert len(refused.value.message) < 300


# ---- more values than can be read while others wait: the parser lets nobody in between ----

MANY = {"empty": b"{},", "lists": b"[],", "numbers": b"1,", "texts": b'"a",', "fields": b'{"a":1},', "nested": b"[[[[]]]],"}


@pytest.mark.parametrize("piece", MANY.values(), ids=MANY)
def test_very_many_values_are_not_read(piece: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """9 MB of empty objects kept everybody waiting for 160 ms."""
    raw = b'{"a":[' + piece * MOST_VALUES + b'1],"b":"' + b"x" * (1 << 20) + b'"}'
    monkeypatch.setattr("routecodex.routing.jsonbytes.orjson.loads", lambda raw: pytest.fail("it is read"))
    monkeypatch.setattr("routecodex.routing.jsonbytes.json.loads", lambda *_, **__: pytest.fail("it is read"))
    with pytest.raises(BadCall, match="holds more than 500,000 values and names"):
        loads(raw)
    assert load_object(raw) is None


@pytest.mark.parametrize("text", [*map(bytes.decode, MANY.values()), '\\",', "\\\\,", '"\\\\\\",[:{'])
def test_any_amount_of_signs_in_a_text_is_read(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tool's result may be a table of numbers, or JSON."""
    monkeypatch.setattr(jsonbytes, "MOST_VALUES", 1000)
    raw = json.dumps({"a": text * (1_600_000 // len(text)), "b": [text]}).encode()
    assert loads(raw) == json.loads(raw)
    assert load_object(raw) == json.loads(raw)


@given(st.data())
def test_what_stands_in_texts_is_not_counted(data: st.DataObject) -> None:
    texts = st.text(alphabet='a,:[{"\\\n', max_size=9)
    value = data.draw(
        st.recursive(
            st.none() | texts,
            lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
            max_leaves=20,
        )
    )
    raw = json.dumps(value).encode()
    bare = re.sub(rb'"(?:[^"\\]|\\.)*"', b"", raw)
    count = len(re.findall(rb"[,:\[{]", bare)) + bare.count(b"[")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(jsonbytes, "_MUCH_TO_READ", 0)
        patched.setattr(jsonbytes, "_LOOKED_AT", data.draw(st.integers(1, 12)))
        patched.setattr(jsonbytes, "MOST_VALUES", count)
        assert loads_counted(raw, deepest=ANY_DEPTH)[0] == value
        patched.setattr(jsonbytes, "MOST_VALUES", count - 1)
        with pytest.raises(BadCall):
            loads_counted(raw, deepest=ANY_DEPTH)


@pytest.mark.parametrize(
    "value, raw",
    [
        ({"b": 1, "a": [None, True]}, b'{"b":1,"a":[null,true]}'),
        ("中文 ü", '"中文 ü"'.encode()),
        ("\ud800", b'"\\ud800"'),
        (2**70, b"1180591620717411303424"),
        ({"a": 2**70, "b": "ü"}, b'{"a":1180591620717411303424,"b":"\\u00fc"}'),
    ],
)
def test_what_is_written(value: object, raw: bytes) -> None:
    assert dumps(value) == raw
    assert loads(raw) == value


@given(st.lists(st.text(alphabet=st.characters()), max_size=4), st.booleans())
@example(["\ud9e9", "ü"], True)
def test_a_text_in_parts_is_written_as_one(parts: list[str], is_long: bool) -> None:
    parts = [part * 40_000 for part in parts] if is_long else parts
    value, whole = ["a", {"b": joined(parts)}], ["a", {"b": "".join(parts)}]
    written = dumps(value)
    assert loads(written) == whole
    assert loads(b"".join(dump_pieces(value, dumps))) == whole
    for write in WRITERS:
        with contextlib.suppress(TypeError):
            assert written == b"".join(dump_pieces(value, write))
            break


@pytest.mark.parametrize("extra", [{}, {"id": 10**30}], ids=["usual", "slow way"])
def test_a_large_body_is_linear_work(extra: dict[str, int]) -> None:
    """Also one that must be read the slow way."""

    def make(messages: int) -> bytes:
        return json.dumps(
            {"messages": [{"role": "user", "content": "word " * 20_000} for _ in range(messages)], **extra}
        ).encode()

    assert_linear(loads, make, 20)
