"""Encodings are undone whatever the pieces they come in, and never beyond what is allowed."""

from __future__ import annotations

import gzip
import random
import zlib
from collections.abc import Callable

import brotli
import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecodex.routing import codings
from routecodex.routing.codings import BITE, MEMBERS, SLICE, zstd

PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": lambda data: brotli.compress(data, quality=5),
    "zstd": zstd.compress,
}
CHAINS = [(first, second) for first in ("gzip", "zstd", "br", "deflate") for second in ("gzip", "zstd", "br", "deflate")]
MIB = 1 << 20


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


def undo(coding: str, pieces: list[bytes], most: int = MIB) -> bytes:
    decode = codings.decoder(coding)
    assert decode is not None
    return b"".join(codings.whole(decode(piece), most) for piece in pieces)


def cut(data: bytes, sizes: list[int]) -> list[bytes]:
    pieces, at = [], 0
    for size in sizes:
        pieces.append(data[at : at + size])
        at += size
    return [*pieces, data[at:]]


@given(data=st.binary(max_size=3000), sizes=st.lists(st.integers(0, 60), max_size=40), coding=st.sampled_from(sorted(PACKERS)))
def test_any_pieces_give_the_same(data: bytes, sizes: list[int], coding: str) -> None:
    assert undo(coding, cut(PACKERS[coding](data), sizes)) == data


@pytest.mark.parametrize("coding", sorted(PACKERS))
@pytest.mark.parametrize("kind", ["random", "text", "zeros"])
def test_longer_than_a_slice_and_than_a_bite(coding: str, kind: str) -> None:
    """What comes out is given in bites, and a bite that is full leaves nothing behind."""
    size = 3 * BITE + 17
    data = {"random": random.Random(1).randbytes(size), "text": (b"some words " * size)[:size], "zeros": bytes(size)}[kind]
    for length in (size, BITE, BITE + 1, SLICE - 1, SLICE, SLICE + 1):
        assert undo(coding, [PACKERS[coding](data[:length])]) == data[:length]
        assert undo("deflate", [raw_deflate(data[:length])]) == data[:length]


@given(parts=st.lists(st.binary(max_size=200), min_size=2, max_size=4), sizes=st.lists(st.integers(0, 9), max_size=60))
@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_several_members_are_one_body(coding: str, parts: list[bytes], sizes: list[int]) -> None:
    packed = b"".join(PACKERS[coding](part) for part in parts)
    assert undo(coding, cut(packed, sizes)) == b"".join(parts)


def test_frames_that_are_to_be_passed_over() -> None:
    passed_over = b"\x50\x2a\x4d\x18" + (3).to_bytes(4, "little") + b"abc"
    packed = passed_over + zstd.compress(b"text") + passed_over * 9 + zstd.compress(b" and more")
    assert undo("zstd", [packed]) == b"text and more"


@pytest.mark.parametrize("padding", [1, 20, SLICE - 1, SLICE, 3 * SLICE])
def test_padding_behind_gzip_is_ignored(padding: int) -> None:
    packed = gzip.compress(b"text")
    assert undo("gzip", [packed + b"\0" * padding]) == b"text"
    assert undo("gzip", [packed, b"\0" * padding, b"\0"]) == b"text"
    assert undo("gzip", [packed + b"\0" * padding + packed]) == b"texttext"


def test_what_is_no_member_ends_gzip() -> None:
    packed = gzip.compress(b"text")
    assert undo("gzip", [packed + b"?" * (SLICE - len(packed)) + packed]) == b"text", "a slice may begin like a member"
    assert undo("gzip", [packed + b"?", packed]) == b"text"


@given(data=st.binary(min_size=1, max_size=500))
def test_deflate_without_its_header(data: bytes) -> None:
    assert undo("deflate", [bytes([byte]) for byte in raw_deflate(data)]) == data


@pytest.mark.parametrize("pack", [zlib.compress, raw_deflate])
def test_what_stands_behind_deflate_is_ignored(pack: Callable[[bytes], bytes]) -> None:
    assert undo("deflate", [pack(b"text") + b"?" * (2 * SLICE), b"?"]) == b"text"


@given(data=st.binary(max_size=3000), sizes=st.lists(st.integers(0, 60), max_size=40), chain=st.sampled_from(CHAINS))
def test_one_after_the_other(data: bytes, sizes: list[int], chain: tuple[str, str]) -> None:
    first, second = chain
    packed = PACKERS[second](PACKERS[first](data))
    assert undo(f"{first}, {second}", cut(packed, sizes)) == data


@pytest.mark.parametrize("coding", ["", "identity", "compress", "gzip, compress", "exotic,gzip", "gzip,gzip,gzip", "utf-8", ","])
def test_what_is_not_known(coding: str) -> None:
    assert codings.decoder(coding) is None


def test_ways_to_write_it() -> None:
    for coding in ("GZIP", " gzip ", "identity, gzip", "gzip,,", "X-GZip"):
        assert undo(coding, [gzip.compress(b"text")]) == b"text"


@given(data=st.binary(max_size=300), coding=st.sampled_from(sorted(PACKERS)), sizes=st.lists(st.integers(0, 40), max_size=9))
def test_any_bytes_give_bytes_or_one_of_two_refusals(data: bytes, coding: str, sizes: list[int]) -> None:
    try:
        undo(coding, cut(data, sizes), 1000)
    except (codings.Damaged, codings.TooMuch):
        pass


@given(flips=st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=4))
@pytest.mark.parametrize("coding", sorted(PACKERS))
def test_damage_is_noticed_or_harmless(coding: str, flips: list[tuple[int, int]]) -> None:
    packed = bytearray(PACKERS[coding](b"some text that is packed " * 40))
    for place, value in flips:
        packed[place % len(packed)] = value
    try:
        assert len(undo(coding, [bytes(packed)])) <= MIB
    except (codings.Damaged, codings.TooMuch):
        pass


@pytest.mark.parametrize("coding", sorted(PACKERS))
def test_exactly_what_is_allowed(coding: str) -> None:
    packed = PACKERS[coding](b"x" * 5000)
    assert len(undo(coding, [packed], 5000)) == 5000
    with pytest.raises(codings.TooMuch):
        undo(coding, [packed], 4999)


@pytest.mark.parametrize("coding", sorted(PACKERS))
def test_the_limit_is_for_each_piece(coding: str) -> None:
    """A long answer is not cut off for its length."""
    data = bytes(range(256)) * 400
    packed = PACKERS[coding](data)
    assert undo(coding, [packed[at : at + 50] for at in range(0, len(packed), 50)], len(data)) == data


@pytest.mark.parametrize("coding", sorted(PACKERS))
def test_a_bomb_is_stopped_before_it_is_whole(coding: str) -> None:
    packed = PACKERS[coding](bytes(64 * MIB))
    with pytest.raises(codings.TooMuch):
        undo(coding, [packed], MIB)


# ---- what it costs ----


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_as_many_members_as_are_allowed_and_one_more(coding: str) -> None:
    member = PACKERS[coding](b"a")
    assert undo(coding, [member * MEMBERS]) == b"a" * MEMBERS
    assert undo(coding, [member * MEMBERS] * 3) == b"a" * MEMBERS * 3, "it is for each piece: a long answer may have more"
    with pytest.raises(codings.Damaged, match="members"):
        undo(coding, [member * (MEMBERS + 1)])


@pytest.mark.parametrize("chain", CHAINS, ids=str)
def test_a_bomb_in_a_bomb_is_stopped_at_the_outer_one(chain: tuple[str, str]) -> None:
    """What is packed twice could be a million empty members in a few bytes."""
    first, second = chain
    inner = gzip.compress(b"") * 1000 if first == "gzip" else PACKERS[first](b"") * 1000
    bomb = PACKERS[second](inner * 400)
    with pytest.raises((codings.TooMuch, codings.Damaged)):
        undo(f"{first}, {second}", [bomb])


EMPTY = {
    "gzip": gzip.compress(b""),
    "zstd": zstd.compress(b""),
    "zstd, passed over": b"\x50\x2a\x4d\x18\0\0\0\0",
    "deflate": zlib.compress(b""),
    "deflate without its header": b"\0\0\0\xff\xff",  # a stored block of no bytes, not the last
    "gzip's padding": b"\0",
}


class Counting:
    """Stands in for a library's streams, and counts the bytes that they are given and those that they hold ready to be copied."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls = self.given = self.left = 0
        counting = self

        class Stream:
            def __init__(self, stream: object) -> None:
                self._stream = stream

            def decompress(self, part: bytes, most: int) -> bytes:
                counting.calls += 1
                counting.given += len(part)
                bite: bytes = self._stream.decompress(part, most)  # type: ignore[attr-defined]
                counting.left += len(self.unused_data) + len(getattr(self._stream, "unconsumed_tail", b""))
                return bite

            def __getattr__(self, name: str) -> object:
                return getattr(self._stream, name)

        inflate, frame = zlib.decompressobj, zstd.ZstdDecompressor
        monkeypatch.setattr(zlib, "decompressobj", lambda window: Stream(inflate(window)))
        monkeypatch.setattr(zstd, "ZstdDecompressor", lambda: Stream(frame()))


@pytest.mark.parametrize("name", EMPTY)
def test_what_holds_nothing_costs_by_its_length(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice as many empty members are twice the work, counted: calls, bytes given, bytes that were left to be copied."""
    counting = Counting(monkeypatch)
    monkeypatch.setattr(codings, "MEMBERS", 10**9)
    beginning = gzip.compress(b"") if "padding" in name else b""
    coding = name.split(",")[0].split(" ")[0].removesuffix("'s")

    def work(times: int) -> tuple[int, int, int]:
        counting.calls = counting.given = counting.left = 0
        assert undo(coding, [beginning + EMPTY[name] * times]) == b""
        return counting.calls, counting.given, counting.left

    once, twice = work(20_000), work(40_000)
    for some, more in zip(once, twice, strict=True):
        assert more <= 2.1 * some + 10
    assert once[2] <= SLICE * (once[0] + 1)
    assert all(given <= SLICE * calls for calls, given, _ in (once, twice))


@pytest.mark.parametrize("coding", sorted({*PACKERS, "raw"}))
def test_as_it_is_undone_others_may_have_their_turn(coding: str) -> None:
    """No bite is long, and each slice gives one: whoever asks for them can stop after each."""
    data = random.Random(2).randbytes(MIB) + bytes(4 * MIB)
    decode = codings.decoder("deflate" if coding == "raw" else coding)
    assert decode is not None
    packed = raw_deflate(data) if coding == "raw" else PACKERS[coding](data)
    bites = [len(bite) for bite in decode(packed)]
    assert sum(bites) == len(data)
    assert len(bites) >= len(packed) / SLICE
    if coding != "br":  # cannot stop in the middle: a slice of sixteen bytes is what bounds it
        assert max(bites) <= BITE
