"""What stands above a conversation: where a call went and why, what was typed and what was sent.

All of it comes from what was written down about the flow while it lived (`record`), so that a saved flow shows the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ..usage.prices import money
from ..values import Dialect, Endpoint
from ..visible import first_words
from . import answer, call
from .record import NOBODY
from .text import INDENT, rule, wrapped

Record = Mapping[str, object]
_TAG = re.compile(r"<\*\*.*?\*\*>", re.DOTALL)
_ADDED = (
    (re.compile(r"\[Time/Date\]: utc=`"), "time tag added"),
    (re.compile(r"\[Clock Reminder\]"), "reminder added"),
)
_COUNTED = {
    "in": "in",
    "cached": "of them from the cache",
    "written": "written to it",
    "out": "out",
    "reasoning": "of them for reasoning",
}
"""In this order: a saved record has lost its own."""
_ROUNDS = {"first": "first round"}
_TYPED_LINES = 40
_HEAD_LINES = 4


def request_lines(record: Record, body: bytes, endpoint: Endpoint) -> Iterator[str]:
    yield from _route(record)
    added = _texts(record, "added")
    typed = _text(record, "typed")
    if typed:
        yield rule("TYPED")
        yield from wrapped(typed, most=_TYPED_LINES)
        yield rule("SENT")
        if _text(record, "target") == NOBODY:
            yield f"{INDENT}(nothing: RouteCodex answered)"
            yield from call.lines(body, endpoint)
            return
        sent = _text(record, "sent") or call.newest_text(body, endpoint)
        yield from wrapped(sent, most=_TYPED_LINES)
        if changes := [*_changes(typed, sent), *(f"tool added: {first_words(name, 60)}" for name in added)]:
            yield f"{INDENT}({'; '.join(changes)})"
    yield from call.lines(body, endpoint, added)


def answer_lines(record: Record, body: bytes, dialect: Dialect, status: int = 0) -> Iterator[str]:
    yield from _fate(record)
    yield from answer.lines(body, dialect, status)


def _route(record: Record) -> Iterator[str]:
    if not record:
        return
    models = _from_to(_text(record, "asked"), _text(record, "model"))
    dialects = _from_to(*_pair(record, "dialects"))
    round_, names = _text(record, "round"), ("session", "user", "client", "call", "parent")
    lines = [
        _joined(_text(record, "target") or "nobody was asked", _text(record, "why")),
        _joined(models, dialects),
        _joined(
            _ROUNDS.get(round_, round_),
            *(f"{name} {value}" for name in names if (value := _text(record, name))),
        ),
        *(f"failed before: {failed}" for failed in _texts(record, "attempts")),
    ]
    if left := _text(record, "leftOut"):
        lines.append(f"left out of what was sent: {left}")
    for line in filter(None, lines):
        yield from wrapped(line, indent="", most=_HEAD_LINES)


def _fate(record: Record) -> Iterator[str]:
    lines = []
    if error := _text(record, "error"):
        lines.append(f"FAILED: {error}")
    if _text(record, "held"):
        lines.append("kept open when it was complete, for a reminder that was nearly due")
    lines += [f"failed before: {failed}" for failed in _texts(record, "attempts")]
    if answered := _text(record, "answered"):
        lines.append(f"answered by {answered}")
    if reason := _from_to(*_pair(record, "stop")):
        lines.append(f"stop reason: {reason}")
    if cost := _joined(*_cost(record)):
        lines.append(f"paid: {cost}")
    if loss := _text(record, "cacheLost"):
        lines.append(loss)
    rounds = record.get("rounds")
    if isinstance(rounds, int) and rounds > 1:
        lines.append(f"{rounds} rounds stand behind this answer, each a flow of its own: ~meta {_text(record, 'call')[:8]}")
    if lost := _text(record, "unsaid"):
        lines.append(f"left out of the answer: {lost}")
    for line in lines:
        yield from wrapped(line, indent="", most=_HEAD_LINES)


def _cost(record: Record) -> Iterator[str]:
    usage = record.get("usage")
    for name, words in _COUNTED.items():
        if isinstance(usage, Mapping) and isinstance(value := usage.get(name), int):
            yield f"{value:,} {words}"
    dollars, unpriced = record.get("dollars"), record.get("unpriced")
    if isinstance(dollars, int | float):
        yield money(dollars, 4) + (f", and {unpriced} more of unknown cost" if unpriced else "")
    elif unpriced:
        yield "cost unknown"


def _joined(*words: str) -> str:
    return " · ".join(filter(None, words))


def _changes(typed: str, sent: str) -> list[str]:
    tags = [tag for tag in _TAG.findall(typed) if tag not in sent]
    taken = [f"taken out: {first_words(' '.join(tags), 120)}"] if tags else []
    return taken + [what for pattern, what in _ADDED if pattern.search(sent) and not pattern.search(typed)]


def _from_to(old: str, new: str) -> str:
    """Both where they differ."""
    return f"{old} → {new}" if old and new and old != new else new or old


def _text(record: Record, key: str) -> str:
    value = record.get(key)
    return str(value) if isinstance(value, str | int) else ""


def _texts(record: Record, key: str) -> list[str]:
    value = record.get(key)
    return [one for one in value if isinstance(one, str)] if isinstance(value, list | tuple) else []


def _pair(record: Record, key: str) -> tuple[str, str]:
    texts = _texts(record, key)
    return (texts[0], texts[1]) if len(texts) == 2 else ("", "")
