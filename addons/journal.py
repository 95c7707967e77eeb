"""One log line for each answered call, written a few times a second at most; what else happens only where it is asked for.

mitmproxy runs the hooks of all its addons for each record it logs: under load that costs more than the decision itself.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from ..routing.redact import unquoted
from ..routing.sessions.whose import parted
from ..routing.values import JsonObject
from ..routing.visible import visible
from .disk_threads import PATIENT

if sys.platform == "win32":
    fcntl = None
else:
    import fcntl

if TYPE_CHECKING:
    from ..routing.desk.reading import Reading
    from ..routing.redact import Redactor
    from ..routing.telemetry.seen import Seen
    from .telemetry import Telemetry

logger = logging.getLogger("routecodex")

PAUSE_S = 0.1
KEPT_CHARACTERS = 1000
"""Of a record, where somebody keeps them: mitmweb holds the newest ten thousand, however long they are."""
_LINES = "\n\t"
_TYPED = 1000
REMEMBERED = 100
"""So many calls are remembered for a page that shows them."""
LARGEST = 16 << 20
"""A debug file of this size makes way for a new one; one old one is kept."""
_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)


class CallLine(Struct):
    """What is said of a call once it is answered: whose, from which model to which, why, how it ended, what it cost."""

    session: str = ""
    client: str = ""
    asked: str = ""
    began: float = 0.0
    """On the steady clock."""
    title: str = ""
    """How what the person typed begins, without tags."""
    call: str = ""
    flow: str = ""
    """The ids of the call and of its client's flow."""
    user: str = ""
    """Who asks, where the proxy asks people who they are."""
    typed: Callable[[], str] = str
    """What they typed, for those who look."""
    telemetry: Telemetry | None = None
    seen: Seen | None = None
    """All of it, for telemetry; None where nobody wants to know."""

    @classmethod
    def begin(cls, flow: str, began: float, telemetry: Telemetry | None) -> CallLine:
        """A call has come."""
        return cls(began=began, flow=flow, telemetry=telemetry, seen=telemetry.begin(began) if telemetry is not None else None)

    def of(self, reading: Reading, hide: Redactor) -> None:
        """It is known what it is, and whose."""
        caller, self.call = reading.caller, reading.received.id
        self.user, self.session, self.client = reading.received.user, reading.key.id, caller.client
        self.asked, self.title = reading.call.model, reading.title
        self.typed = lambda: hide.text(reading.words[:_TYPED])
        if (seen := self.seen) is not None and self.telemetry is not None:
            seen.call, seen.session, seen.user, seen.client = self.call, self.session, self.user, self.client
            seen.model, seen.typed = self.asked, self.typed() if self.telemetry.settings.content else ""

    def refused(self, code: str) -> None:
        """By us."""
        if self.seen is not None:
            self.seen.code = code

    def rested(self, seconds: float) -> None:
        """It waits for a key."""
        if self.seen is not None:
            self.seen.rested_s += seconds

    def over(self, status: str, now: float) -> None:
        if self.seen is not None and self.telemetry is not None:
            self.telemetry.note(self.seen.over(status, now))

    @property
    def about(self) -> dict[str, str]:
        names = ("call", "session", "user", "client", "asked")
        return {**{name: getattr(self, name) for name in names}, "typed": self.typed()}

    def say(self, comment: str, status: str, now: float, *, tokens: tuple[int, int] | None = None, rounds: int = 1) -> str:
        spent = f"{tokens[0]}+{tokens[1]} tokens" if tokens is not None else ""
        more = f"{rounds} rounds" if rounds > 1 else ""
        parts = (f"{self.asked} → {comment}".strip(), status, spent, more, f"{now - self.began:.1f} s")
        whole = " · ".join(part for part in parts if part)
        session = parted(self.session)[1].removeprefix("derived-")[:8] or "-"
        return visible(f"{self.user + ' ' if self.user else ''}{session} {self.client or '-'} {whole}")


class Journal:
    def __init__(self, tell: Callable[[str], None] | None = None, is_kept: Callable[[], bool] = lambda: False) -> None:
        """`tell`: takes each line at once, where several processes write to one log. `is_kept`: whether others keep them."""
        self._tell, self._is_kept = tell, is_kept
        self._lines: list[str] = []
        self.verbose = False
        self.calls: deque[JsonObject] = deque(maxlen=REMEMBERED)
        """The newest last."""

    def answered(
        self, line: CallLine, comment: str, status: str, now: float, *, tokens: tuple[int, int] | None = None, rounds: int = 1
    ) -> None:
        """A call is over."""
        line.over(status, now)
        self.note(line.say(comment, status, now, tokens=tokens, rounds=rounds))
        call: JsonObject = {"time": time.time(), "comment": comment, "status": status, "seconds": now - line.began}
        call |= {"session": line.session, "client": line.client, "asked": line.asked, "title": line.title, "call": line.call}
        self.calls.append({**call, "user": line.user, "tokens": tokens, "rounds": rounds, "flow": line.flow})

    def note(self, line: str) -> None:
        """Many lines may leave as one record: each says when it was."""
        line = f"{time.strftime('%H:%M:%S')} {visible(line, keep=_LINES)}"
        if self._tell is not None:
            self._tell(line)
        else:
            self._add(line)

    def detail(self, line: Callable[[], str]) -> None:
        if self.verbose:
            self.note(line())

    def _add(self, line: str) -> None:
        self._lines.append(line)
        if len(self._lines) == 1:
            asyncio.get_running_loop().call_later(PAUSE_S, self.write)

    def write(self) -> None:
        """Lines that came together leave as one record."""
        lines = self._taken()
        most = KEPT_CHARACTERS if self._is_kept() else sum(map(len, lines))
        while lines:
            size, count = 0, 0
            while count < len(lines) and (not count or size + len(lines[count]) <= most):
                size, count = size + len(lines[count]), count + 1
            logger.info("%s", "\n".join(lines[:count]))
            lines = lines[count:]

    def _taken(self) -> list[str]:
        lines, self._lines = self._lines, []
        return lines


class DebugFile(Journal):
    """Lines for a file that somebody asked for; what goes wrong with it is told once and harms nobody."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self._writing = threading.Lock()
        self._failed = False

    def note(self, line: str) -> None:
        self._add(f"{datetime.now(UTC).isoformat(timespec='milliseconds')} {line}\n")

    def write(self) -> None:
        """In a thread: the disk may be slow."""
        asyncio.get_running_loop().run_in_executor(PATIENT, self._append, self._taken())

    def close(self) -> None:
        self._append(self._taken())

    def _append(self, lines: list[str]) -> None:
        if not lines:
            return
        try:
            with self._writing:
                self.path.parent.mkdir(0o700, parents=True, exist_ok=True)
                with os.fdopen(os.open(self.path, _APPEND, 0o600), "ab") as file:
                    file.write("".join(lines).encode("utf-8", "backslashreplace"))
                    full = file.tell() >= LARGEST and self._is_still(file.fileno())
                    if full and fcntl is not None:
                        self._make_way()  # as long as the lock is held
                if full and fcntl is None:
                    self._make_way()  # what is open cannot be moved
        except OSError as error:
            if not self._failed:
                self._failed = True
                logger.warning("%s cannot be written: %s", self.path.name, error.strerror)

    def _is_still(self, file: int) -> bool:
        """Another process may have moved the full one meanwhile: what has the name now is a new one."""
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX)
        try:
            return os.path.samestat(os.fstat(file), self.path.stat())
        except FileNotFoundError:
            return False

    def _make_way(self) -> None:
        self.path.replace(self.path.with_name(f"{self.path.name}.1"))


class Readable(logging.Filter):
    """What somebody else has said may stand in any line of ours."""

    def filter(self, record: logging.LogRecord) -> bool:
        said = record.getMessage()
        if not said.isprintable():
            record.msg, record.args = visible(said, keep=_LINES), ()
        return True


logger.addFilter(Readable())


class Connections(logging.Filter):
    """mitmproxy tells of every connection; people want to read of calls. It quotes what it cannot read, keys included."""

    verbose = False

    def filter(self, record: logging.LogRecord) -> bool:
        if not (self.verbose or record.levelno > logging.INFO):
            return False
        said = record.getMessage()
        if (told := unquoted(said)) != said:
            record.msg, record.args = told, ()
        return True


_CONNECTIONS = Connections()
_TELLERS = ("mitmproxy.proxy.server", "mitmproxy.addons.clientplayback")
"""The second of those of later rounds, which leave as replays do."""


def tell_connections(verbose: bool) -> None:
    _CONNECTIONS.verbose = verbose
    for name in _TELLERS:
        logging.getLogger(name).addFilter(_CONNECTIONS)


def forget_connections() -> None:
    for name in _TELLERS:
        logging.getLogger(name).removeFilter(_CONNECTIONS)
