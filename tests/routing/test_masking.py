"""F11: a provider's echo of the key it was sent does not get through, however it is cut and escaped."""

from __future__ import annotations

import json
import re
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecodex.routing.masking import HOLD_S, SURE, Mask

KEY = "sk-Ab3/dE+gH1jK=mN0pQ-rS"
OTHER = "other-secret-of-a-header"
RAW = KEY.encode()


def fed(pieces: list[bytes], *secrets: str) -> bytes:
    mask = Mask(secrets or (KEY, OTHER))
    return b"".join([*(mask.feed(piece, 0.0) for piece in pieces), mask.end()])


def bare(out: bytes, *secrets: str) -> bytes:
    """Without the few characters that had left before it was known."""
    before = None
    while before != out:
        before = out
        for secret in secrets or (KEY, OTHER):
            for count in range(SURE - 1, 0, -1):
                out = out.replace(secret[:count].encode() + b"***", b"***")
    return out


def cut(raw: bytes, size: int) -> list[bytes]:
    return [raw[at : at + size] for at in range(0, len(raw), size)]


def escaped(text: str, letters: str, form: str) -> str:
    return "".join(form.format(ord(letter)) if letter in letters else letter for letter in text)


def sse(*texts: str) -> str:
    return "".join(f"data: {json.dumps({'choices': [{'delta': {'content': text}}]})}\n\n" for text in texts)


SHAPES = {
    "alone": KEY,
    "in a sentence": f"Incorrect API key provided: {KEY}. Find it there.",
    "as a header's value": f"Authorization: Bearer {KEY}",
    "twice": f"{KEY} {KEY}",
    "twice without a space": KEY + KEY,
    "with another": f"{OTHER}:{KEY}",
    "behind its own beginning": KEY[:12] + KEY,
    "behind its own beginnings": KEY[:3] * 5 + KEY[:9] + KEY[:20] + KEY,
    "in an SSE comment": f": debug {KEY}\n\n",
    "in an event's name": f"event: {KEY}\ndata: {{}}\n\n",
    "in an event's text": sse(f"your key is {KEY}, isn't it"),
    "in an error": json.dumps({"error": {"message": f"bad key {KEY}", "code": KEY}}),
    "with slashes escaped": json.dumps({"m": KEY}).replace("/", "\\/"),
    "with signs escaped": escaped(KEY, "+=/-", "\\u{:04x}"),
    "with signs escaped in capitals": escaped(KEY, "+=/-", "\\u{:04X}"),
    "with everything escaped": escaped(KEY, KEY, "\\u{:04x}"),
    "with its first letters escaped": escaped(KEY, "sk", "\\u{:04X}"),
    "with its last letter escaped": KEY[:-1] + escaped(KEY[-1], "S", "\\u{:04x}"),
    "escaped, behind other escapes": "\\u003c\\u0026\\n\\/" + escaped(KEY, "/", "\\/"),
    "in HTML": f"<b>{KEY}</b>",
    "in a tool's arguments": json.dumps({"arguments": json.dumps({"env": f"KEY={OTHER}"})}),
}


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 8, 9, 11, 16, 23, 24, 25, 64, 1000])
@pytest.mark.parametrize("shape", SHAPES)
def test_no_shape_gets_through(shape: str, size: int) -> None:
    raw = SHAPES[shape].encode()
    out = fed(cut(raw, size))
    plain = re.sub(rb"\\\\?u00([0-9a-fA-F]{2})", lambda found: bytes((int(found[1], 16),)), out).replace(b"\\/", b"/")
    assert RAW not in plain
    assert OTHER.encode() not in plain
    assert b"***" in out
    assert RAW[SURE:] not in plain, "what follows the few first letters neither"
    whole = fed([raw])
    assert re.sub(rb"[^*]", b"", whole) == re.sub(rb"[^*]", b"", out)


@pytest.mark.parametrize("size", [1, 3, 8, 1000])
def test_everything_else_passes_as_it_is(size: int) -> None:
    text = f"{KEY[:7]} {KEY[:8]}x {KEY[:-1]}! {OTHER[:-2]} \\u0073\\u006b \\/ \\u00 \\ {KEY.lower()} {KEY[1:]} ünï".encode()
    assert fed(cut(text, size)) == text


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 9, 11, 13])
@pytest.mark.parametrize("slow", [False, True])
@pytest.mark.parametrize("shape", [shape for shape in SHAPES if "escaped" in shape])
def test_what_was_json_stays_json(shape: str, slow: bool, size: int) -> None:
    mask, now, out = Mask([KEY]), 0.0, b""
    for piece in cut(b'{"m":"' + SHAPES[shape].replace('"', "'").encode() + b'"}', size):
        out += mask.feed(piece, now)
        now += HOLD_S if slow else 0
        out += mask.tick(now)
    told = json.loads(out + mask.end())["m"]
    assert "***" in told
    assert KEY[len(KEY) // 2 :] not in told


def test_nothing_is_held_but_what_may_become_one() -> None:
    mask = Mask([KEY])
    assert mask.feed(b"as it is " + RAW[:7], 0.0) == b"as it is " + RAW[:7]
    assert mask.due == inf
    assert mask.feed(RAW[7:10], 1.0) == b""
    assert mask.due == 1.0 + HOLD_S
    assert mask.feed(b"!", 1.1) == RAW[7:10] + b"!"
    assert mask.due == inf


def test_held_for_a_moment_only() -> None:
    mask = Mask([KEY])
    assert mask.feed(b"x" + RAW[:9], 0.0) == b"x"
    assert mask.tick(HOLD_S - 0.01) == b""
    assert mask.tick(HOLD_S) == RAW[:9], "less than half of it is nobody's secret"
    assert mask.due == inf
    assert mask.feed(RAW[9:11], 1.0) == b""
    assert mask.tick(1.0 + HOLD_S) == RAW[9:11]
    assert mask.feed(RAW[11:20], 2.0) == b""
    assert mask.tick(2.0 + HOLD_S) == b"***", "more than half is as good as all"
    assert mask.feed(RAW[20:22], 3.0) == b""
    assert mask.feed(RAW[22:] + b" and on", 4.0) == b" and on"
    assert mask.feed(RAW, 5.0) == b"***"


def test_what_only_began_as_one_goes_on_behind_the_mask() -> None:
    mask = Mask([KEY])
    assert mask.feed(RAW[:20], 0.0) == b""
    assert mask.tick(1.0) == b"***"
    assert mask.feed(RAW[20:21] + b"! and on", 1.1) == b"! and on"


@pytest.mark.parametrize("count, left", [(8, RAW[:8]), (11, RAW[:11]), (12, b"***"), (23, b"***")])
def test_what_is_held_at_the_end(count: int, left: bytes) -> None:
    mask = Mask([KEY])
    assert mask.feed(RAW[:count], 0.0) + mask.end() == left
    assert mask.end() == b""


def test_of_two_credentials_that_begin_alike_the_one_that_is_there() -> None:
    alike = ("sk-common-beginning-1", "sk-common-beginning-2-longer", "sk-commo")
    for secret in alike:
        out = fed([b"a ", secret.encode(), b" b"], *alike)
        assert secret.encode() not in out
        assert out.startswith(b"a ***")
        assert out.endswith(b" b")


def test_without_credentials_it_is_not_there() -> None:
    mask = Mask(["", "short"])
    assert not mask
    data = b"anything"
    assert mask.feed(data, 0.0) is data
    assert mask.end() == b""
    assert Mask([KEY])


@given(
    between=st.lists(st.sampled_from(["", " ", "text", KEY[:5], KEY[:9], KEY[:23], "\\u00", "\\", OTHER[:10], "ü"]), max_size=6),
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=12),
)
def test_random_cuts(between: list[str], sizes: list[int]) -> None:
    raw = f"{KEY}".join(["", *between, " "]).encode()
    pieces, at, turn = [], 0, 0
    while at < len(raw):
        pieces.append(raw[at : at + sizes[turn % len(sizes)]])
        at, turn = at + sizes[turn % len(sizes)], turn + 1
    assert bare(fed(pieces)) == bare(raw.replace(RAW, b"***"))


def test_long_texts_of_beginnings_are_looked_at_once() -> None:
    """Counted: a hostile text of a megabyte makes no more searches than one search for each beginning and credential."""
    calls = 0

    class Counting(bytes):
        def find(self, *given: object) -> int:  # type: ignore[override]
            nonlocal calls
            calls += 1
            return bytes.find(self, *given)  # type: ignore[arg-type]

    from routecodex.routing import masking

    mask = Mask([KEY, OTHER, "absent-secret-absent"])
    data = Counting(RAW[:9] * 1000)
    search = masking._Search(mask._secrets, data)
    at = 0
    while (match := search.next(at)) is not None:
        at = match.start + 1
    assert calls <= 1000 + 3
