"""A time server on loopback that answers as it is told: `with FakeTimeServer(offset_s=1.5) as server: server.port`.

Its packets are written by ntplib, the question's timestamp excepted: that is repeated bit for bit.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import ntplib

HOST = "127.0.0.1"
MARK = b"EVIL"
"""The reference identifier of every answer: nothing of it may be seen anywhere."""

Says = Callable[[bytes, "FakeTimeServer"], Iterable[bytes]]


@dataclass
class FakeTimeServer:
    says: Says | None = None
    """Makes the packets that answer a question; None: an honest one."""
    offset_s: float = 0.0
    """How far its clock is ahead of ours."""
    wait_s: float = 0.0
    heard: list[bytes] = field(default_factory=list)
    said: threading.Event = field(default_factory=threading.Event)
    """All that there is to say to a question has been said."""

    def __enter__(self) -> FakeTimeServer:
        self._line = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._line.bind((HOST, 0))
        self._line.settimeout(0.05)
        self.port: int = self._line.getsockname()[1]
        self.ended = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self._thread.join(5)
        self._line.close()

    def send(self, raw: bytes, to: tuple[str, int]) -> None:
        self._line.sendto(raw, to)

    def _serve(self) -> None:
        while not self.ended.is_set():
            try:
                question, self.asker = self._line.recvfrom(512)
            except TimeoutError:
                continue
            except OSError:  # an earlier answer came to a closed door
                continue
            self.heard.append(question)
            if self.wait_s:
                self.ended.wait(self.wait_s)
            for raw in [honest(question, self.offset_s)] if self.says is None else self.says(question, self):
                self.send(raw, self.asker)
            self.said.set()


def honest(question: bytes, offset_s: float = 0.0, **fields: Any) -> bytes:
    """The true answer, but for the `fields` of ntplib's packet that are given."""
    now = ntplib.system_to_ntp_time(time.time()) + offset_s
    packet = ntplib.NTPPacket(version=4, mode=4, tx_timestamp=now)
    packet.stratum = 2
    packet.precision = -20
    packet.root_delay, packet.root_dispersion = 0.015, 0.002
    packet.ref_id = int.from_bytes(MARK, "big")
    packet.ref_timestamp = now - 30
    packet.recv_timestamp = now
    for name, value in fields.items():
        assert hasattr(packet, name), name
        setattr(packet, name, value)
    raw: bytes = packet.to_data()
    return raw if "orig_timestamp" in fields else raw[:24] + question[40:48] + raw[32:]


def closed_port() -> int:
    """Where nobody listens."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        line.bind((HOST, 0))
        return int(line.getsockname()[1])
