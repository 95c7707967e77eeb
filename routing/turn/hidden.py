"""What was really said, put back into a history that holds our merged answers in its place.

1. An answer is known again by what it says, not by where it stands or how it is written: its text without white space, its
   calls, what the person had typed before it, and how many answers like it came earlier. Anything else is left alone.
2. What is put back is the stored items, the same on every later call. Only a cache mark and Gemini's ids of the client's own
   calls come from the client's copy.
3. Results of our own tools join those of the client's calls, where both stand in one answer.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple, Protocol

from msgspec import Struct

from ..clients.client import Client
from ..clients.typed import Typed, typed_messages
from ..clients.unknown import UNKNOWN
from ..dialects.calls import read_call
from ..dialects.calls.ending import texts_behind
from ..dialects.calls.growing import with_messages
from ..dialects.calls.replacing import Swap, raw_items, replace_items, view_of
from ..dialects.calls.restoring import as_client_sends, join_results
from ..dialects.calls.same import canonical
from ..sessions.store import SessionKey
from ..storage.cached import Rest, Warnings
from ..storage.contract import InThread
from ..tags.scan import strip
from ..tags.typed_tags import is_bare
from ..values import Call, Dialect, JsonObject, Message, Text, ToolCall, ToolResult

_PIECE = 1 << 12


class Key(NamedTuple):
    """Digests of an answer and of what had been typed before it."""

    answer: str
    typed: str


class Hidden(Struct, frozen=True):
    """One merged answer as its client holds it, and what stands for it in the history that the provider gets."""

    dialect: Dialect
    key: Key
    ordinal: int
    """How many answers with the same key came before it."""
    items: tuple[JsonObject, ...]
    """The rounds in order, from the model's first word to its last; none where the client holds the answer as it was."""
    results: tuple[JsonObject, ...] = ()
    """What our own tools answered to calls of the last round, beside which calls of the client's stand."""
    ids: tuple[str, ...] = ()
    """Responses: the ids of the rounds' answers; the client knows the first."""
    before: tuple[str, ...] = ()
    """What stood behind the message that the model answered."""
    behind: tuple[JsonObject, ...] = ()
    """What was appended to the answer, for the next call to bring."""


class HiddenRounds(Protocol):
    """Where sessions' hidden rounds are kept, wherever that is."""

    warnings: Warnings

    def load(self, key: SessionKey) -> tuple[Hidden, ...]:
        """What is to be put back into this session's histories, as far as it is known here. Quick."""

    async def keep(self, key: SessionKey, hidden: Callable[[], Hidden | None], in_thread: InThread) -> None:
        """To be done before the end of the answer leaves, since the next call may come at once. `hidden` computes."""

    def sweep(self, now: float, retention_days: float, rest: Rest = ...) -> int: ...


def hidden_in(
    call: Call,
    shown: Sequence[Sequence[JsonObject]],
    items: Sequence[JsonObject],
    *,
    results: Sequence[JsonObject] = (),
    ids: Sequence[str] = (),
    before: Sequence[str] = (),
    behind: Sequence[JsonObject] = (),
    client: Client = UNKNOWN,
) -> Hidden | None:
    """What is to be remembered of a turn that answered `call`; None where nothing is hidden, or nothing is shown.

    `shown`: for each round what the client holds of it; an answer is known by what all of them say, so nobody need join them.
    `items`: what was sent behind the call's own history in the turn's last round, and then that round's own answer.
    What comes behind the model's last word in `items` (a message that it did not answer) is left out.
    `before`: texts that were put at the end of the call's own history. `behind`: messages for the next call to bring.
    `client`: who reads and repeats it.
    """
    dialect = call.endpoint.dialect
    sent = read_call(call.raw, call.endpoint)
    typed = typed_messages(sent, client)
    answer = _answer(dialect, (view_of(dialect, 0, item) for held in shown for item in held))
    key = Key(answer, _typed(typed[-1], client) if typed else "")
    ordinal = sum(1 for _ in _places(sent, typed, (key,), client))
    rounds = _as_sent(sent, items)
    while rounds and view_of(dialect, 0, rounds[-1]).role != "assistant":
        rounds.pop()
    if len(shown) == 1 and rounds == _as_sent(sent, shown[0]) and not results:
        rounds = []
    if not answer or not (rounds or before or behind):
        return None
    given = tuple(results) if rounds else ()
    known = tuple(id for id in ids if id)
    return Hidden(dialect, key, ordinal, tuple(rounds), given, known, tuple(before), tuple(behind))


def _as_sent(call: Call, items: Sequence[JsonObject]) -> list[JsonObject]:
    """The items in the form in which a call that grows by them is sent. (The call itself gives up its history for it.)"""
    replace_items(call, [Swap(0, len(call.messages), ())])
    call.body.pop("conversation", None)
    return raw_items(with_messages(call, items))


def put_back(call: Call, entries: Sequence[Hidden], typed: Sequence[Typed] | None = None, *, client: Client = UNKNOWN) -> int:
    """Put the rounds back in the place of the merged answers. How many answers.

    `typed` is of the call as it is now; where it is not given it is read as this client's, if any answer needs it.
    """
    known = {(entry.key, entry.ordinal): entry for entry in entries if entry.dialect is call.endpoint.dialect}
    if not known:
        return 0
    swaps: list[Swap] = []
    count = _follow_last_round(call, list(known.values()), swaps)
    raw = raw_items(call)
    for place in _places(call, typed, {key for key, _ in known}, client):
        entry = known.get((place.key, place.ordinal))
        if entry is not None:
            if entry.before and place.start:
                _put_before(entry, raw, place.start, swaps)
            swaps += _swaps(call, entry, raw, place)
            count += 1
    replace_items(call, swaps)
    return count


class _Place(NamedTuple):
    start: int
    end: int
    key: Key
    ordinal: int


def _places(call: Call, typed: Sequence[Typed] | None, wanted: Collection[Key], client: Client = UNKNOWN) -> Iterator[_Place]:
    """Where the client's history holds one of these answers; of equal ones every place, counted."""
    answers = {key.answer for key in wanted}
    seen: Counter[Key] = Counter()
    heard: list[tuple[int, str]] | None = None
    for start, end in _runs(call.messages):
        answer = _answer(call.endpoint.dialect, call.messages[start:end])
        if answer not in answers:
            continue
        if heard is None:
            said = typed_messages(call, client) if typed is None else typed
            heard = [(one.message.index, _typed(one, client)) for one in said]
        before = bisect_left(heard, start, key=itemgetter(0)) - 1
        key = Key(answer, heard[before][1] if before >= 0 else "")
        if key in wanted:
            yield _Place(start, end, key, seen[key])
            seen[key] += 1


def _runs(views: Sequence[Message]) -> Iterator[tuple[int, int]]:
    """An answer is all that the assistant says before somebody else speaks, in however many items its client holds it."""
    start = 0
    for is_answer, run in groupby(views, lambda view: view.role == "assistant"):
        end = start + len(list(run))
        if is_answer:
            yield start, end
        start = end


def _answer(dialect: Dialect, views: Iterable[Message]) -> str:
    """What an answer says, whoever wrote it down; empty where it says nothing."""
    text, calls, says = hashlib.sha256(), hashlib.sha256(), False
    for part in (part for view in views for part in view.parts):
        if isinstance(part, Text):
            for words in _without_space(part.text):
                text.update(words)
                says = True
        elif isinstance(part, ToolCall):
            id = "" if dialect is Dialect.GEMINI else part.id
            calls.update("\0".join(("", id, part.name, "")).encode("utf-8", "surrogatepass") + canonical(part.arguments))
            says = True
    return f"{text.hexdigest()[:24]}-{calls.hexdigest()[:24]}" if says else ""


def _without_space(text: str) -> Iterator[bytes]:
    """Piece by piece: of a long text all words at once take ten times its room."""
    for start in range(0, len(text), _PIECE):
        if words := "".join(text[start : start + _PIECE].split()):
            yield words.encode("utf-8", "surrogatepass")


_QUOTING = str.maketrans("", "", '\\"')


def _typed(typed: Typed, client: Client) -> str:
    words = strip(typed.words)
    if client.quotes_arguments:  # its quotes are told from a person's while a tag stands in them, and no longer once it is out
        words = words.translate(_QUOTING)
    return "" if is_bare(words) else hashlib.sha256(b"".join(_without_space(words))).hexdigest()[:32]


def _put_before(entry: Hidden, raw: Sequence[JsonObject], start: int, swaps: list[Swap]) -> None:
    """Behind what stands before the answer; results of ours may have joined that already."""
    old = Swap(start - 1, start, [raw[start - 1]])
    if swaps and swaps[-1].start < swaps[-1].end == start:
        old = swaps.pop()
    *others, item = old.items
    swaps.append(Swap(old.start, old.end, [*others, *texts_behind(entry.dialect, item, entry.before)]))


def _swaps(call: Call, entry: Hidden, raw: Sequence[JsonObject], place: _Place) -> list[Swap]:
    held = raw[place.start : place.end]
    items = as_client_sends(entry.dialect, held, entry.items) if entry.items else held
    if not entry.results:
        return [Swap(place.start, place.end, [*items, *entry.behind])] if entry.items or entry.behind else []
    behind = range(place.end, len(call.messages))
    after = next((index for index in behind if call.messages[index].role != "system"), None)
    following = raw[after] if after is not None and call.messages[after].role == "user" else None
    joined = join_results(entry.dialect, entry.results, following)
    if joined is None or after is None:
        return [Swap(place.start, place.end, [*items, *entry.results, *entry.behind])]
    return [Swap(place.start, place.end, items), Swap(after, after + 1, [joined, *entry.behind])]


def _follow_last_round(call: Call, entries: Sequence[Hidden], swaps: list[Swap]) -> int:
    """Responses: where the provider keeps the history, the call goes on behind the last round and brings our results as well."""
    if call.previous_id is None and "conversation" not in call.body:
        return 0
    entry = next((entry for entry in reversed(entries) if call.previous_id in entry.ids or _is_answered(call, entry)), None)
    if entry is None:
        return 0
    if call.previous_id in entry.ids[:-1]:
        call.previous_id = entry.ids[-1]
        call.body["previous_response_id"] = call.previous_id
        call.changed = True
    elif not (entry.results or entry.behind):
        return 0
    if entry.results or entry.behind:
        swaps.append(Swap(0, 0, [*entry.results, *entry.behind]))
    return 1


def _is_answered(call: Call, entry: Hidden) -> bool:
    """The call brings results of the client's calls that stood beside ours, and not the calls themselves."""
    views = (view_of(entry.dialect, place, item) for place, item in enumerate(entry.items))
    open_calls = _call_ids(views) - _call_ids(call.messages)
    brought = (part.id for message in call.messages for part in message.parts if isinstance(part, ToolResult))
    return bool(entry.results) and any(id in open_calls for id in brought)


def _call_ids(views: Iterable[Message]) -> set[str]:
    return {part.id for view in views for part in view.parts if isinstance(part, ToolCall)}
