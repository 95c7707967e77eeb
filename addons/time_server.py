"""Asks one time server, and waits for its answer. Blocks: to be called in a thread.

1. ntplib writes and reads the packets. Its own client looks neither at the port of an answer nor at the question it belongs
   to, and reads timestamps as floats: too coarse for the bits that only a true answer can repeat.
2. Packets are read until one is believed or the time is up: a forged one that comes first does not keep out the true one.
"""

from __future__ import annotations

import secrets
import socket
import struct
import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import ntplib

from ..routing.clock.offset import VERSION, Answer, Asked, Peer, Refusal, Sample, Verdict, judge

_PORT = 123
_STAMPS = struct.Struct("!4Q")
_STAMPS_AT = 16
_LENGTH = 48
_MOST_HEARD = 64
"""After so many wrong packets nobody listens any longer."""


def ask_server(
    server: str,
    timeout_s: float,
    *,
    port: int = _PORT,
    wall_ns: Callable[[], int] = time.time_ns,
    steady_ns: Callable[[], int] = time.monotonic_ns,
) -> Verdict:
    """Blocks while the name is looked up, and then for the timeout at most with each family of addresses."""
    try:
        found = socket.getaddrinfo(server, port, type=socket.SOCK_DGRAM)
    except (OSError, ValueError):
        return Refusal.UNKNOWN_NAME
    first: dict[int, Any] = {}
    for place in found:
        first.setdefault(place[0], place[4])
    verdict: Verdict = Refusal.UNREACHABLE
    for family, address in first.items():
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as line:
                line.connect(address)  # packets from anywhere else do not even arrive
                told = _exchange(line, timeout_s, wall_ns, steady_ns)
        except OSError:
            continue
        if isinstance(told, Sample):
            return told
        verdict = told
    return verdict


def _exchange(line: socket.socket, timeout_s: float, wall_ns: Callable[[], int], steady_ns: Callable[[], int]) -> Verdict:
    stamp = secrets.randbits(64) or 1
    # A fraction, because a float would lose a part of the random bits.
    question = ntplib.NTPPacket(version=VERSION, mode=3, tx_timestamp=Fraction(stamp, 1 << 32)).to_data()
    until = time.monotonic() + timeout_s
    asked = Asked(_peer(line.getpeername()), stamp, wall_ns(), steady_ns())
    line.send(question)
    verdict: Verdict = Refusal.SILENT
    for _ in range(_MOST_HEARD):
        line.settimeout(max(1e-3, until - time.monotonic()))
        try:
            raw, sender = line.recvfrom(2 * _LENGTH)
        except TimeoutError:
            break
        answer = read_answer(raw, _peer(sender), wall_ns(), steady_ns())
        verdict = judge(asked, answer) if answer is not None else Refusal.MALFORMED
        if isinstance(verdict, Sample):
            break
    return verdict


def read_answer(raw: bytes, sender: Peer, wall_ns: int, steady_ns: int) -> Answer | None:
    """None where it is no packet of the length that was asked for."""
    if len(raw) != _LENGTH:
        return None
    packet = ntplib.NTPPacket()
    packet.from_data(raw)
    reference, originate, receive, transmit = _STAMPS.unpack_from(raw, _STAMPS_AT)
    return Answer(
        peer=sender,
        leap=packet.leap,
        version=packet.version,
        mode=packet.mode,
        stratum=packet.stratum,
        code=packet.ref_id,
        root_delay_s=packet.root_delay,
        root_dispersion_s=packet.root_dispersion,
        reference=reference,
        originate=originate,
        receive=receive,
        transmit=transmit,
        wall_ns=wall_ns,
        steady_ns=steady_ns,
    )


def _peer(address: Any) -> Peer:
    """IPv6 addresses have two parts more."""
    return address[0], address[1]
