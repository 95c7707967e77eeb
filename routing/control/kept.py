"""What is stored of sessions: told, and erased. Works on the files of a server, whether it runs or not.

A session's files bear its name: its state, its hidden rounds (`history/`), its reminders (`clock/`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import Struct

from ..clock import store as clock_store
from ..clock.record import named_session, read_record
from ..dialects.fields import list_of, object_of, read_object, text_of
from ..errors import RouteCodexError
from ..sessions.record import from_json
from ..sessions.state import SessionState
from ..sessions.whose import is_of, owned, parted
from ..storage.disk import CORRUPT, TEMPORARY, Folder, NotRegular
from ..storage.names import file_name
from ..turn import hidden_store
from ..values import JsonObject
from ..visible import first_words
from .overlay import described

_KINDS = ("session", "conversation")
_LARGEST = 64 << 20
_MOST_LISTED = 200


class NoSession(RouteCodexError):
    """Nothing is stored of such a session, or the beginning of its id is not enough."""

    code = "NO_SESSION"


class Kept(Struct, frozen=True):
    kind: str
    id: str
    state: SessionState
    changed: float
    """Epoch seconds; 0 where nobody knows."""

    @property
    def told(self) -> JsonObject:
        return {
            "id": self.id,
            "kind": self.kind,
            "changed": self.changed,
            "client": self.state.client,
            "begins": self.state.begins,
            "inForce": in_force(self.state),
        }


def in_force(state: SessionState) -> list[str]:
    """What a session's tags set, a sentence each."""
    lines = described(state)
    if state.enabled:
        lines.append(f"Enabled here: {', '.join('.'.join(filter(None, one)) for one in state.enabled)}.")
    if state.stop is not None:
        lines.append(f"stopMessage: used {state.stop.used} of {state.stop.max_repeats}.")
    return lines


def sessions(folder: Path, person: str | None = None) -> list[Kept]:
    """Those with something in force, the newest first. `person`: of them alone, here and below."""
    found = [kept for kept in all_of(folder, person) if not kept.state.idle]
    return sorted(found, key=lambda kept: -kept.changed)


def all_of(folder: Path, person: str | None = None) -> Iterator[Kept]:
    """Every session that has a state."""
    files = Folder(folder)
    for name in files.names():
        kind = name.partition("-")[0]
        if kind not in _KINDS or not name.endswith(".json"):
            continue
        try:
            found = files.read(name)
        except (NotRegular, RouteCodexError):
            continue
        document = read_object(found[1]) if found is not None else None
        if found is not None and document is not None:
            id = text_of(document.get("id")) or name.removeprefix(f"{kind}-").removesuffix(".json")
            if person is None or is_of(person, id):
                yield Kept(kind, id, from_json(object_of(document)), found[0][0] / 1e9)


def session(folder: Path, id: str, person: str | None = None) -> JsonObject:
    """Everything that is stored of one session; the beginning of its id is enough."""
    kept = the_one(all_of(folder, person), id)
    key = (kept.kind, kept.id)
    tasks = _document(folder / clock_store.FOLDER, file_name("", kept.id))
    rounds = _document(folder / hidden_store.FOLDER, file_name(*key))
    reminders = read_record(tasks, kept.id).tasks if tasks is not None else ()
    hidden = list_of(object_of(read_object(rounds) if rounds is not None else None).get("entries"))
    files = [str(path) for path in _files(folder, kept.id) if path.is_file()]
    return {**kept.told, "reminders": len(reminders), "hiddenRounds": len(hidden), "files": files}


def reminders(folder: Path, person: str | None = None) -> list[JsonObject]:
    """What models want to be reminded of, the earliest first."""
    files = Folder(folder / clock_store.FOLDER, largest=_LARGEST)
    documents = [_document(folder / clock_store.FOLDER, name) for name in files.names() if name.endswith(".json")]
    return waiting_of((raw for raw in documents if raw is not None), person)


def waiting_of(records: Iterable[bytes], person: str | None) -> list[JsonObject]:
    """The same of tasks as they are written, a record a session."""
    tasks = [task for raw in records for task in read_record(raw, named_session(raw)).tasks]
    waiting = [task for task in tasks if task.delivered_at_ms is None and (person is None or is_of(person, task.session_id))]
    waiting.sort(key=lambda task: task.due_at_ms)
    return [
        {"session": task.session_id, "due": task.due_at_ms / 1000, "task": first_words(task.task, 200)}
        for task in waiting[:_MOST_LISTED]
    ]


def the_one(sessions: Iterable[Kept], id: str) -> Kept:
    """By its id, or as its tool calls it, or how one of them begins."""
    found = list(sessions)
    exact = [kept for kept in found if id in (kept.id, parted(kept.id)[1])]
    near = exact or [kept for kept in found if id and (kept.id.startswith(id) or parted(kept.id)[1].startswith(id))]
    if not near:
        raise NoSession(f"Nothing is stored of a session {id}")
    if len({kept.id for kept in near}) > 1:
        raise NoSession(f"{len(near)} sessions begin with {id}: write more of it")
    return near[0]


def clear(folder: Path, id: str, person: str | None = None) -> list[str]:
    """Erases all that is stored of one session; which files. Of a session without a state, its reminders and rounds."""
    try:
        id = the_one(all_of(folder, person), id).id
    except NoSession:
        id = id if person is None or is_of(person, id) else owned(person, id)
        if not any(path.is_file() for path in _files(folder, id)):
            raise
    return [path.name for path in _files(folder, id) if _erase(path)]


def clear_all(folder: Path) -> list[str]:
    """All sessions of the server. Neither what holds for all of them nor the clock's own file."""
    names = [folder / name for name in Folder(folder).names() if name.startswith(tuple(f"{kind}-" for kind in _KINDS))]
    for below in (clock_store.FOLDER, hidden_store.FOLDER):
        names += [folder / below / name for name in Folder(folder / below).names() if name != clock_store.NTP_STATE]
    kept = [path for path in names if path.name.endswith((".json", CORRUPT, TEMPORARY))]
    return [path.name for path in kept if _erase(path)]


def _files(folder: Path, id: str) -> Iterator[Path]:
    for ending in ("", CORRUPT, TEMPORARY):
        yield folder / clock_store.FOLDER / (file_name("", id) + ending)
        for kind in _KINDS:
            yield folder / (file_name(kind, id) + ending)
            yield folder / hidden_store.FOLDER / (file_name(kind, id) + ending)


def _erase(path: Path) -> bool:
    if not path.is_file() and not path.is_symlink():
        return False
    files = Folder(path.parent)
    with files.locked(path.name.removesuffix(TEMPORARY).removesuffix(CORRUPT)):
        files.remove(path.name)
    return True


def _document(folder: Path, name: str) -> bytes | None:
    try:
        found = Folder(folder, largest=_LARGEST).read(name)
    except (NotRegular, RouteCodexError):
        return None
    return found[1] if found is not None else None


__all__ = ["Kept", "NoSession", "clear", "clear_all", "in_force", "reminders", "session", "sessions"]
