"""The running server's control socket: one small question per connection, one answer, each a line of JSON.

1. It lies beside the server's sessions and is its owner's alone. What may be asked stands in `routing.control.verbs`.
2. Who holds the lock is the server: only then is a socket that a crash left taken away. A second server of the same name goes on
   without one, and says so.
3. Whatever is asked, calls go on: a verb that waits, waits in a thread; a question that never ends is dropped.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from pathlib import Path

from msgspec.structs import replace

from ...routing.control.verbs import run, verb_of
from ...routing.dialects.fields import read_object
from ...routing.errors import RouteCodexError
from ...routing.jsonbytes import dumps
from ...routing.storage.disk import make_private
from ...routing.storage.lock import FileLock, Taken
from ...routing.values import JsonObject
from ..disk_threads import in_thread
from ..settings import Settings, server_id, session_folder
from .sockets import LONGEST_PATH, is_too_long, socket_path

logger = logging.getLogger("routecodex")

QUESTION_BYTES = 64 << 10
LIMIT_S = 10.0
_MOST_ASKING = 64
_WITHOUT = "`routecodex daemon`, `statusline` and `sessions clear` cannot reach this server"


class Panel:
    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._lock: FileLock | None = None
        self._path: Path | None = None
        self._listener: socket.socket | None = None
        self._task: asyncio.Task[None] | None = None
        self._asking: set[asyncio.Task[None]] = set()
        self._in_turn = asyncio.Lock()

    def open(self) -> None:
        """Never the end of a server: what cannot be had is said."""
        if self._listener is not None:
            return
        if not hasattr(socket, "AF_UNIX"):
            logger.warning("This system has no Unix sockets for Python: %s. Tags and everything else work.", _WITHOUT)
            return
        path = socket_path(session_folder(), server_id())
        if is_too_long(path):
            logger.warning(
                "%s is longer than %d bytes: %s. Set ROUTECODEX_USER_DIR to a shorter path.", path, LONGEST_PATH, _WITHOUT
            )
            return
        try:
            self._listen(path)
        except Taken:
            logger.warning("Another server of the name %s holds %s: %s.", server_id(), path, _WITHOUT)
        except OSError as error:
            logger.warning("%s cannot be listened at: %s. %s.", path, error.strerror, _WITHOUT)

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None
        for asking in self._asking:
            asking.cancel()
        if self._listener is not None:
            self._listener.close()
            self._listener = None
            if self._path is not None:
                self._path.unlink(missing_ok=True)
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def _listen(self, path: Path) -> None:
        make_private(path.parent)
        lock = FileLock(path.with_suffix(".lock"))
        lock.acquire()
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            path.unlink(missing_ok=True)  # its server is gone: the lock says so
            listener.bind(str(path))
            os.chmod(path, 0o600)  # nobody can connect before it listens
            listener.listen(64)
            listener.setblocking(False)
        except OSError:
            listener.close()
            lock.release()
            raise
        self._lock, self._path, self._listener = lock, path, listener
        self._task = asyncio.get_running_loop().create_task(self._serve(listener))

    async def _serve(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                link, _ = await loop.sock_accept(listener)
            except OSError:
                await asyncio.sleep(0.1)
                continue
            if len(self._asking) >= _MOST_ASKING:
                link.close()  # calls need room for files, too
                continue
            task = loop.create_task(self._hear(link))
            self._asking.add(task)
            task.add_done_callback(self._asking.discard)

    async def _hear(self, link: socket.socket) -> None:
        try:
            async with asyncio.timeout(LIMIT_S):
                reader, writer = await asyncio.open_connection(sock=link, limit=QUESTION_BYTES)
                try:
                    writer.write(dumps(await self.answer(await reader.readline())) + b"\n")
                    await writer.drain()
                finally:
                    writer.close()
        except (OSError, ValueError, TimeoutError):
            link.close()

    async def answer(self, line: bytes, person: str | None = None) -> JsonObject:
        """`person`: who asks from outside, and is told of their own alone."""
        try:
            question = read_object(line)
            if question is None:
                return {"error": "a question is one line with a JSON object"}
            if not self.settings.loaded:
                return {"error": "the server has no configuration that it can use: `routecodex check` says why"}
            verb, served = verb_of(question), replace(self.settings.served(), person=person)
            if not verb.waits:
                return run(verb, served, question)
            async with self._in_turn:
                said = await in_thread(run, verb, served, question)
            if verb.changes and not question.get("try"):
                self.settings.journal.note(f"by hand: {_done(said)}"[:500])
            return said
        except RouteCodexError as error:
            return {"error": self.settings.desk.hide.text(error.message), "code": error.code}
        except Exception:
            logger.exception("A question at the control socket failed")
            return {"error": "the server could not answer: its log says why"}


def _done(said: JsonObject) -> str:
    match said:
        case {"changed": [*lines]}:
            return " ".join(map(str, lines))
        case {"erased": [*names]}:
            return f"erased {', '.join(map(str, names)) or 'nothing'}"
    return dumps(said).decode()
