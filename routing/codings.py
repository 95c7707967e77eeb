"""Content-encodings undone slice by slice, however hostile: a few bytes may stand for gigabytes, or for a million empty members.

1. What goes in at once is a small slice: where a member ends within it, what is left of it is copied, and never more than that.
2. What comes out at once is a few bites. Where a library cannot stop in the middle of its output (brotli), its slices are small
   enough for the worst that one can become.
3. Beginning a member costs more than any byte of it, so a piece may hold only so many.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Iterator
from typing import Protocol

import brotli

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

Decode = Callable[[bytes], Iterator[bytes]]
"""Takes the next piece and gives what it became, in bites: at least one for each slice, perhaps an empty one."""

SLICE = 4096
BITE = 64 << 10
MEMBERS = 2000
"""So many members, or frames, may one piece hold: a server that flushes makes one for each event."""
_BROTLI_SLICE = 16
"""One byte of brotli can end a block of 16 MiB."""
_PACKED_AGAIN = 4
"""What was packed once hardly shrinks when it is packed again."""
_GZIP = b"\x1f"
"""How a member of gzip begins."""


class Damaged(Exception):
    """Not what its content-encoding says."""


class TooMuch(Exception):
    """One piece became more than is allowed."""


def decoder(coding: str) -> Decode | None:
    """Undoes this encoding, or these two; None where one is not known."""
    names = [name for name in coding.lower().replace(" ", "").split(",") if name not in ("", "identity")]
    if not 1 <= len(names) <= 2 or not all(name in _MAKE for name in names):
        return None
    outer = _MAKE[names[-1]]()
    return outer if len(names) == 1 else _both(outer, _MAKE[names[0]]())


def whole(bites: Iterator[bytes], most: int) -> bytes:
    """All of it, if that is not more than `most` bytes."""
    out = bytearray()
    for bite in bites:
        out += bite
        if len(out) > most:
            raise TooMuch
    return bytes(out)


def _both(outer: Decode, inner: Decode) -> Decode:
    def decode(piece: bytes) -> Iterator[bytes]:
        yield from inner(whole(outer(piece), BITE + _PACKED_AGAIN * len(piece)))

    return decode


class _Member(Protocol):
    """One gzip member or zstandard frame, as the libraries offer it."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def bites(self, part: bytes) -> Iterator[bytes]: ...


class _Inflated:
    def __init__(self, window: int) -> None:
        self._stream = zlib.decompressobj(window)

    @property
    def eof(self) -> bool:
        return self._stream.eof

    @property
    def unused_data(self) -> bytes:
        return self._stream.unused_data

    def bites(self, part: bytes) -> Iterator[bytes]:
        bite = b""
        while part or len(bite) == BITE:  # a full bite may leave something behind, also where all was taken in
            try:
                bite = self._stream.decompress(part, BITE)
            except zlib.error as error:
                raise Damaged(str(error)) from None
            yield bite
            if self.eof:
                return
            part = self._stream.unconsumed_tail


class _Frame:
    def __init__(self) -> None:
        self._stream = zstd.ZstdDecompressor()

    @property
    def eof(self) -> bool:
        return self._stream.eof

    @property
    def unused_data(self) -> bytes:
        return self._stream.unused_data

    def bites(self, part: bytes) -> Iterator[bytes]:
        while True:
            try:
                bite = self._stream.decompress(part, BITE)
            except zstd.ZstdError as error:
                raise Damaged(str(error)) from None
            yield bite
            if self.eof or self._stream.needs_input:
                return
            part = b""


def _members(begin: Callable[[], _Member], *, padded: bool) -> Decode:
    """One member after the other. Behind gzip's there may be zeros; what is no member behind them ends it."""
    member: _Member | None = None
    over = False

    def decode(piece: bytes) -> Iterator[bytes]:
        nonlocal member, over
        begun = 0
        for part in _slices(piece, SLICE):
            left = part
            while not over:
                if padded and member is not None and member.eof:
                    left = left.lstrip(b"\0")
                    over = left[:1] not in (b"", _GZIP)
                if over or not left:
                    break
                if member is None or member.eof:
                    begun += 1
                    if begun > MEMBERS:
                        raise Damaged(f"more than {MEMBERS} members")
                    member = begin()
                yield from member.bites(left)
                left = member.unused_data if member.eof else b""
            yield b""

    return decode


def _deflate() -> Decode:
    stream: _Inflated | None = None

    def decode(piece: bytes) -> Iterator[bytes]:
        nonlocal stream
        for part in _slices(piece, SLICE):
            if stream is None:
                # Some senders leave out zlib's header, whose first four bits are always these.
                stream = _Inflated(15 if part[0] & 0x0F == 8 else -15)
            if not stream.eof:
                yield from stream.bites(part)

    return decode


def _brotli() -> Decode:
    stream = brotli.Decompressor()

    def decode(piece: bytes) -> Iterator[bytes]:
        for part in _slices(piece, _BROTLI_SLICE):
            try:
                yield stream.process(part)
            except brotli.error as error:
                raise Damaged(str(error)) from None

    return decode


def _slices(piece: bytes, size: int) -> Iterator[bytes]:
    return (piece[start : start + size] for start in range(0, len(piece), size))


def _gzip() -> Decode:
    return _members(lambda: _Inflated(31), padded=True)


def _zstd() -> Decode:
    return _members(_Frame, padded=False)


_MAKE: dict[str, Callable[[], Decode]] = {
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": _deflate,
    "zstd": _zstd,
    "br": _brotli,
}
KNOWN = tuple(_MAKE)

__all__ = ["BITE", "KNOWN", "MEMBERS", "SLICE", "Damaged", "Decode", "TooMuch", "decoder", "whole", "zstd"]
