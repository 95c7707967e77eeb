"""Asks `bd` (beads) whether a project has open work. Never with a shell, never where no project is.

1. It runs in the folder that the operator names, else in the one that the client states; only where a `.beads` folder lies there
   or further up.
2. Anything that goes wrong means "unknown", within the time limit, and leaves no process behind.
3. It gets no environment but what a program needs to run: providers' keys may stand there.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..routing.clients.identify import workdir_of
from ..routing.stop_message.work_state import IN_PROGRESS, READY, Mode, Work, count_listed, from_conversation, from_lists
from ..routing.values import Call

PREFIX = "ROUTECODEX_STOPMESSAGE_BD_"
_LAST_WORDS_S = 1.0
_LARGEST_OUTPUT = 4 << 20
_LONGEST_MS = 10_000
"""No figure of the environment is longer: a client waits meanwhile."""
_MOST_REMEMBERED = 256
_NEEDED = ("PATH", "HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "SYSTEMROOT", "TEMP", "TMP", "TMPDIR", "LANG", "USER")


class WorkStateProbe:
    """What one server asks and remembers; each project for itself."""

    def __init__(self, environment: Mapping[str, str] | None = None, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._environment = os.environ if environment is None else environment
        self._monotonic = monotonic
        self._known: dict[Path, tuple[float, Work]] = {}
        """Project folder → until when this holds, and what."""
        self._asking: dict[Path, asyncio.Lock] = {}

    async def __call__(self, call: Call) -> Work:
        mode = self._mode()
        # in a thread: the client's folder may lie on a disk that does not answer
        project = await asyncio.to_thread(self._project, call)
        work = Work.UNKNOWN if project is None or mode is Mode.HEURISTIC else await self._from_bd(project)
        if work is Work.UNKNOWN and mode is not Mode.RUNTIME:
            work = from_conversation(call)
        return Work.UNKNOWN if work is Work.IDLE and project is None else work

    def _mode(self) -> Mode:
        try:
            return Mode(self._environment.get(f"{PREFIX}MODE", "").strip().lower())
        except ValueError:
            return Mode.AUTO

    def _milliseconds(self, name: str, default: int) -> float:
        given = self._environment.get(f"{PREFIX}{name}", "").strip()
        return min(int(given) if given.isdecimal() and len(given) < 10 else default, _LONGEST_MS) / 1000

    def _project(self, call: Call) -> Path | None:
        """The folder to run in, if a project is there or further up."""
        named = self._environment.get(f"{PREFIX}WORKDIR", "").strip() or workdir_of(call)
        if not named or "\0" in named:
            return None
        folder = Path(named).expanduser()
        try:
            if not folder.is_absolute() or not folder.is_dir():
                return None
            return folder if any((above / ".beads").is_dir() for above in (folder, *folder.parents)) else None
        except (OSError, RuntimeError):
            return None

    async def _from_bd(self, project: Path) -> Work:
        """Asked once at a time; who waits gets the same answer."""
        async with self._asking.setdefault(project, asyncio.Lock()):
            known = self._known.get(project)
            if known is not None and self._monotonic() < known[0]:
                return known[1]
            in_progress = await self._count(IN_PROGRESS, project)
            ready = await self._count(READY, project) if in_progress == 0 else None
            work = from_lists(in_progress, ready)
            self._remember(project, work)
            return work

    def _remember(self, project: Path, work: Work) -> None:
        if len(self._known) >= _MOST_REMEMBERED:
            self._known.clear()
            self._asking = {folder: lock for folder, lock in self._asking.items() if lock.locked()}
        self._known[project] = (self._monotonic() + self._milliseconds("CACHE_TTL_MS", 5000), work)

    async def _count(self, command: tuple[str, ...], project: Path) -> int | None:
        """How many issues the command lists; None where it does not say so in time."""
        program = shutil.which(command[0], path=self._environment.get("PATH"))
        if program is None or not os.path.isabs(program):
            return None
        try:
            running = await _begun(
                asyncio.create_subprocess_exec(
                    program,
                    *command[1:],
                    cwd=project,
                    env={name: self._environment[name] for name in _NEEDED if name in self._environment},
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.DEVNULL,
                    start_new_session=True,
                    limit=1 << 16,
                )
            )
        except (OSError, ValueError):
            return None
        output = None
        try:
            output = await asyncio.wait_for(_read(running), self._milliseconds("TIMEOUT_MS", 2000))
        except TimeoutError:
            pass
        finally:
            if output is None:
                await _kill(running)
        return count_listed(output) if running.returncode == 0 and output is not None else None


async def _begun(beginning: Coroutine[Any, Any, asyncio.subprocess.Process]) -> asyncio.subprocess.Process:
    """Cancelled halfway, asyncio would end the program alone, and wait for all that it has started: so it is let begin first."""
    task = asyncio.ensure_future(beginning)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait((task,))
        if task.exception() is None:
            await _kill(task.result())
        raise


async def _read(running: asyncio.subprocess.Process) -> bytes | None:
    """The whole output of a program that has ended; None where it says too much."""
    assert running.stdout is not None
    pieces, size = [], 0
    while piece := await running.stdout.read(1 << 16):
        size += len(piece)
        if size > _LARGEST_OUTPUT:
            return None
        pieces.append(piece)
    await running.wait()
    return b"".join(pieces)


async def _kill(running: asyncio.subprocess.Process) -> None:
    """It, and whatever it has started that keeps its output open."""
    try:
        if hasattr(os, "killpg"):
            os.killpg(running.pid, signal.SIGKILL)
        else:
            running.kill()
    except (ProcessLookupError, PermissionError):
        pass
    with suppress(TimeoutError):  # what has left its group may keep the output open: nobody waits for that
        await asyncio.wait_for(_drained(running), _LAST_WORDS_S)


async def _drained(running: asyncio.subprocess.Process) -> None:
    """Its end is only seen where nothing of its output is left."""
    assert running.stdout is not None
    while await running.stdout.read(1 << 16):
        pass
    await running.wait()
