"""Gives away what calls come to: numbers for whoever asks (Prometheus), spans and numbers to a collector (OTLP over HTTP).

1. A call costs the loop an entry in a list; everything else happens in a thread.
2. What waits is bounded: where nobody takes it the oldest is given up, and that is counted. A collector that is gone is asked
   again after 1, 2, 4, … 60 seconds.
3. Nothing but a status is taken from a collector: it sends us nowhere else, what it says is not kept, and one that drips is
   left.
4. Loaded only where the configuration asks for it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path

import httpx

from ..routing.config.values import TelemetrySettings
from ..routing.dialects.fields import object_of, read_object
from ..routing.jsonbytes import dumps
from ..routing.telemetry import exposition, otlp
from ..routing.telemetry.meter import DROPPED, Labels, Meter, Named
from ..routing.telemetry.seen import Seen
from ..routing.values import JsonObject

WAITING = 4_096
"""So many calls wait to be counted, and so many to be sent."""
BATCH = 256
EVERY_S = 5.0
LIMIT_S = 5.0
"""Between two signs of life; a whole exchange takes no longer than three times that."""
_LONGEST_WORD = 64 << 10
"""An answer as long as this is read, so that its connection can be used again."""
_LONGEST_PAUSE_S = 60.0

logger = logging.getLogger("routecodex")
_NAME = "telemetry"


def _is_of_others(record: logging.LogRecord) -> bool:
    """httpx tells of each exchange, every five seconds for ever: people want to read of calls."""
    return record.threadName != _NAME


logging.getLogger("httpx").addFilter(_is_of_others)
FILES = "metrics-"
BESIDE_S = 1.0
Gauges = Callable[[], Mapping[Named, Mapping[Labels, float]]]


class Beside:
    """The numbers of all workers of one parent, a file each. Who takes the place of one that died goes on from what that one told
    last: what Prometheus adds up never goes back."""

    def __init__(self, folder: Callable[[], Path], parent: int, number: int) -> None:
        """`folder`: known once somebody listens."""
        self._folder = folder
        self._family = f"{FILES}{parent}-"
        self._name = f"{self._family}{number}.json"
        self._before: JsonObject | None = None

    def tell(self, mine: Meter) -> None:
        """Waits for the disk."""
        path = self._folder() / self._name
        temporary = path.with_suffix(".new")
        try:
            temporary.write_bytes(dumps(self._with_those_before(mine).told()))
            temporary.replace(path)
        except OSError as error:
            logger.warning("Other workers are not told what was counted here: %s", error.strerror)

    def sum(self, mine: Meter) -> Meter:
        """Waits for the disk."""
        total = self._with_those_before(mine)
        for path in self._folder().glob(f"{FILES}*.json"):
            if not path.name.startswith(self._family):
                if not _is_there(path.name.removeprefix(FILES).partition("-")[0]):
                    path.unlink(missing_ok=True)
            elif path.name != self._name:
                total.add(_read(path))
        return total

    def _with_those_before(self, mine: Meter) -> Meter:
        if self._before is None:
            self._before = _read(self._folder() / self._name)
        total = Meter()
        total.add(self._before)
        total.add(mine.told())
        return total


def _is_there(parent: str) -> bool:
    """Whether that process runs; what is no number of a process never did."""
    try:
        os.kill(int(parent), 0)
    except (ValueError, OverflowError, ProcessLookupError):
        return False
    except PermissionError:  # somebody else's
        pass
    return True


def _read(path: Path) -> JsonObject:
    try:
        return object_of(read_object(path.read_bytes()))
    except OSError:
        return {}


class Telemetry:
    def __init__(
        self,
        settings: TelemetrySettings,
        server: str,
        gauges: Gauges = dict,
        every_s: float = EVERY_S,
        transport: httpx.BaseTransport | None = None,
        beside: Beside | None = None,
    ) -> None:
        """`transport`: how the collector is reached, where that is not the network. `beside`: where there are others behind the
        same port, whose numbers are told together with these."""
        self.settings = settings
        self._beside = beside if settings.prometheus else None
        every_s = min(every_s, BESIDE_S) if self._beside is not None else every_s
        self._gauges, self._every_s, self._transport = gauges, every_s, transport
        scheme, _, rest = settings.otlp.partition("://")
        self._place = f"{scheme}://{rest.rpartition('@')[2]}"
        """The collector, without a password."""
        self._resource = {"service.name": "routecodex", "service.instance.id": f"{server}:{os.getpid()}"}
        self._meter, self._began = Meter(), time.time()
        self._new: deque[Seen] = deque(maxlen=WAITING)
        self._unsent: deque[Seen] = deque(maxlen=WAITING)
        self._counting = threading.Lock()
        self._dropped = 0
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._complained = False
        self._untold = False
        """There is something that those beside us do not know."""

    def begin(self, now: float) -> Seen:
        return Seen(now, time.time())

    def note(self, seen: Seen) -> None:
        """A call is over."""
        if len(self._new) == WAITING:
            self._dropped += 1
        self._new.append(seen)
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name=_NAME, daemon=True)
            self._thread.start()

    async def text(self) -> str:
        """What Prometheus reads."""
        gauges = self._gauges()

        def written() -> str:
            with self._counting:
                self._count()
                self._tell_others()  # what was shown once is never less, whoever takes this one's place
                return exposition.text(self._meter if self._beside is None else self._beside.sum(self._meter), gauges)

        return await asyncio.to_thread(written)

    def close(self, wait_s: float = 2.0) -> None:
        """What is there is sent, if the collector takes it by then."""
        self._over.set()
        if self._thread is not None:
            self._thread.join(wait_s)

    def _count(self) -> None:
        """By whoever holds the lock."""
        self._untold = self._untold or bool(self._new or self._dropped)
        while self._new:
            seen = self._new.popleft()
            self._meter.note(seen)
            if self.settings.otlp:
                self._dropped += len(self._unsent) == WAITING
                self._unsent.append(seen)
        if self._dropped:
            self._meter.count(DROPPED, {}, self._dropped)
            self._dropped = 0

    def _tell_others(self) -> None:
        """By whoever holds the lock."""
        if self._untold and self._beside is not None:
            self._untold = False
            self._beside.tell(self._meter)

    def _work(self) -> None:
        """Others are told in time, however long the collector is left alone."""
        pause, left, over = 0.0, self._every_s, False
        client = self._client()
        while not over:
            waits = min(left, self._every_s)
            over = self._over.wait(waits)
            left -= waits
            with self._counting:
                self._count()
                self._tell_others()
            if left > 0 and not over:
                continue
            if not self.settings.otlp or self._send(client):
                pause = 0.0
            else:
                pause = min(max(1.0, 2 * pause), _LONGEST_PAUSE_S)
                client.close()
                client = self._client()
            left = pause or self._every_s
        client.close()

    def _client(self) -> httpx.Client:
        """It goes neither through this proxy nor through another."""
        limits = httpx.Timeout(LIMIT_S)
        return httpx.Client(trust_env=False, timeout=limits, headers=dict(self.settings.headers), transport=self._transport)

    def _send(self, client: httpx.Client) -> bool:
        """What was taken is forgotten; what was not waits."""
        try:
            while self._unsent:
                batch = [self._unsent[place] for place in range(min(BATCH, len(self._unsent)))]
                if not self._post(client, "traces", otlp.traces(batch, self._resource)):
                    return False
                for _ in batch:
                    self._unsent.popleft()
            with self._counting:
                numbers = otlp.metrics(self._meter, self._resource, self._began, time.time())
            return self._post(client, "metrics", numbers)
        except Exception as error:  # whatever it made of its answer: the next one is asked as before
            self._complain(type(error).__name__)
            return False

    def _post(self, client: httpx.Client, what: str, body: bytes) -> bool:
        """What a collector refuses for good is not sent again."""
        status = self._exchange(client, what, body)
        if status in range(200, 300):
            self._complained = False
            return True
        self._complain(f"status {status}")
        return status not in (408, 429) and status < 500

    def _exchange(self, client: httpx.Client, what: str, body: bytes) -> int:
        headers, size = {"content-type": "application/json", "accept-encoding": "identity"}, 0
        end = threading.Timer(3 * LIMIT_S, client.close)
        end.daemon = True
        end.start()
        try:
            with client.stream("POST", f"{self.settings.otlp}/v1/{what}", content=body, headers=headers) as said:
                for piece in said.iter_raw():
                    size += len(piece)
                    if size > _LONGEST_WORD:
                        break
                return said.status_code
        finally:
            end.cancel()
            client.cookies.clear()

    def _complain(self, why: str) -> None:
        if not self._complained:
            self._complained = True
            logger.warning("The collector of telemetry does not take it (%s: %s); it is tried again", self._place, why)
