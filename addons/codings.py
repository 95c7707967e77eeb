"""Content-encodings undone piece by piece, however hostile: a few bytes may stand for gigabytes.

Most of these libraries cannot stop in the middle of their output. So what could grow without bound is fed in slices that are
small enough for the worst that one slice can become.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator

import brotli
import zstandard

Decode = Callable[[bytes], bytes]
"""Takes the next piece and gives what it became; once more for each piece, in order."""

_BROTLI_SLICE = 16
"""One byte of brotli can end a block of 16 MiB."""
_ZSTD_SLICE = 256
"""Four bytes of zstandard can be a block of 128 KiB."""


class Damaged(Exception):
    """Not what its content-encoding says."""


class TooMuch(Exception):
    """One piece became more than is allowed."""


def decoder(coding: str, most: int) -> Decode | None:
    """Undoes this encoding, up to `most` bytes for a piece; None where it is not known."""
    make = _MAKE.get(coding.strip().lower())
    return make(most) if make is not None else None


def _gzip(most: int) -> Decode:
    stream = zlib.decompressobj(31)

    def decode(piece: bytes) -> bytes:
        nonlocal stream
        out = bytearray()
        while piece:
            if stream.eof:  # what follows a member is another one, or padding
                if piece[0] != 0x1F:
                    break
                stream = zlib.decompressobj(31)
            out += _inflate(stream, piece, most - len(out))
            piece = stream.unused_data
        return bytes(out)

    return decode


def _deflate(most: int) -> Decode:
    stream = None

    def decode(piece: bytes) -> bytes:
        nonlocal stream
        if not piece:
            return b""
        if stream is None:
            # Some senders leave out zlib's header, whose first four bits are always these.
            stream = zlib.decompressobj(15 if piece[0] & 0x0F == 8 else -15)
        return _inflate(stream, piece, most)

    return decode


def _inflate(stream: zlib._Decompress, piece: bytes, most: int) -> bytes:
    try:
        out = stream.decompress(piece, most + 1)
    except zlib.error as error:
        raise Damaged(str(error)) from None
    if len(out) > most:
        raise TooMuch
    return out


def _brotli(most: int) -> Decode:
    stream = brotli.Decompressor()
    return lambda piece: _sliced(stream.process, piece, _BROTLI_SLICE, most, brotli.error)


def _zstd(most: int) -> Decode:
    stream = zstandard.ZstdDecompressor().decompressobj(read_across_frames=True)
    return lambda piece: _sliced(stream.decompress, piece, _ZSTD_SLICE, most, zstandard.ZstdError)


def _sliced(process: Decode, piece: bytes, size: int, most: int, damage: type[Exception]) -> bytes:
    out = bytearray()
    for part in _slices(piece, size):
        try:
            out += process(part)
        except damage as error:
            raise Damaged(str(error)) from None
        if len(out) > most:
            raise TooMuch
    return bytes(out)


def _slices(piece: bytes, size: int) -> Iterator[bytes]:
    return (piece[start : start + size] for start in range(0, len(piece), size))


_MAKE: dict[str, Callable[[int], Decode]] = {
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": _deflate,
    "zstd": _zstd,
    "br": _brotli,
}
KNOWN = tuple(_MAKE)

__all__ = ["KNOWN", "Damaged", "Decode", "TooMuch", "decoder"]
