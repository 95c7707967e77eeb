"""Encodings are undone whatever the pieces they come in, and never beyond what is allowed."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable

import brotli
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from routecodex.addons import codings

PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": lambda data: brotli.compress(data, quality=5),
    "zstd": zstandard.compress,
}
MIB = 1 << 20


def undo(coding: str, pieces: list[bytes], most: int = MIB) -> bytes:
    decode = codings.decoder(coding, most)
    assert decode is not None
    return b"".join(decode(piece) for piece in pieces)


def cut(data: bytes, sizes: list[int]) -> list[bytes]:
    pieces, at = [], 0
    for size in sizes:
        pieces.append(data[at : at + size])
        at += size
    return [*pieces, data[at:]]


@given(data=st.binary(max_size=3000), sizes=st.lists(st.integers(0, 60), max_size=40), coding=st.sampled_from(sorted(PACKERS)))
def test_any_pieces_give_the_same(data: bytes, sizes: list[int], coding: str) -> None:
    assert undo(coding, cut(PACKERS[coding](data), sizes)) == data


@given(parts=st.lists(st.binary(max_size=200), min_size=2, max_size=4), sizes=st.lists(st.integers(0, 9), max_size=60))
@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_several_members_are_one_body(coding: str, parts: list[bytes], sizes: list[int]) -> None:
    packed = b"".join(PACKERS[coding](part) for part in parts)
    assert undo(coding, cut(packed, sizes)) == b"".join(parts)


def test_padding_behind_gzip_is_ignored() -> None:
    packed = gzip.compress(b"text")
    assert undo("gzip", [packed + b"\0" * 20]) == b"text"
    assert undo("gzip", [packed, b"\0" * 20, b"\0"]) == b"text"


@given(data=st.binary(min_size=1, max_size=500))
def test_deflate_without_its_header(data: bytes) -> None:
    packer = zlib.compressobj(wbits=-15)
    packed = packer.compress(data) + packer.flush()
    assert undo("deflate", [bytes([byte]) for byte in packed]) == data


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
