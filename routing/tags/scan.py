"""Find tags in text, and take them out.

1. A tag is `<**`, a body without another `<**`, and the first `**>` behind it: at most 512 bytes. So an opening that is
   never closed takes nothing with it.
2. The quoted text of a stopMessage may be 16 KiB long and hold anything; `\\"` is a quote inside it.
3. Taking tags out leaves none behind, not even one that only the taking out puts together, and `strip(strip(x)) == strip(x)`.
4. Only tags go, with at most one line break or space beside each. Text without a tag is returned as the object it is.
5. The time is linear in the length of the text, whatever it holds: every pattern here reads a byte a bounded number of times,
   and what lies before the first mark and behind the last is not read at all.
6. Full-width `＜＊＞` mark a tag as well.
"""

from __future__ import annotations

import functools
import re
from bisect import bisect
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import AnyStr, NamedTuple

_EFFORT = 512 << 10
"""Bytes that may be read again to take apart what is nested: a nest in 1 MiB gets one more reading, one in a page hundreds."""
_LONGEST = 34_000
"""No tag has more bytes."""
_SHORT = 2_000
"""Every step of a call looks at its texts, and so does every call of a turn: what was found in shorter ones is remembered."""
_FEW = 64
"""So many marks are looked at one by one: between them nothing is read."""
_LAST_SPACE = re.compile(rb"(?:\r?\n| )\Z")
_CLOSING = (b">", b"\x13")


class Span(NamedTuple):
    """A tag from `start` to `end`; `body` is what stands between the marks."""

    start: int
    end: int
    body: str


class _Marks(NamedTuple):
    """The patterns for one way of writing the marks."""

    tag: re.Pattern[bytes]
    run_and_space: re.Pattern[bytes]
    """Tags with what goes beside them: the break or space behind, at the start of a line; after a space, the space behind."""
    pieces: re.Pattern[bytes]


_SPACE = rb"[ \t\r\n]{0,16}"
_COLON = _SPACE + "(?:[:,;=]|：|，|；|＝)?".encode() + _SPACE
_COMMA = "(?:,|，)".encode()


def _strides(easy: bytes, hard: bytes) -> bytes:
    """Any number of both, read quickly where most is easy."""
    return easy + b"*+(?:" + hard + easy + b"*+)*+"


def _quotes() -> Iterator[tuple[bytes, bytes]]:
    """The texts between each kind of quotes: at a quick look, and exactly."""
    for mark in (b'"', b"'"):
        other, escaped = b"[^\\\\" + mark + b"]", b"\\\\."
        yield mark + _strides(other, escaped) + mark, mark + b"(?:" + other + b"|" + escaped + b"){0,16364}+" + mark
    for pair in ("“”", "「」", "«»", "＂＂", "„“", "””", "‘’"):
        left, right = (mark.encode() for mark in pair)
        leads, other = left[:1] + right[:1], b"(?!" + left + b"|" + right + b")"
        yield (
            left + _strides(b"[^" + leads + b"]", other + b"[" + leads + b"]") + right,
            left + b"(?:" + other + b".){0,16364}+" + right,
        )


def _marks(less: bytes, star: bytes, greater: bytes) -> _Marks:
    """Each mark is one byte of those given. A quick look that bounds nothing goes before each that does: what fails, fails there,
    and reads no further than to the next mark of its kind."""
    opens, stars, closes = (b"[" + mark + b"]" for mark in (less, star, greater))
    end = stars + stars + closes
    count = rb"(?:" + _COMMA + rb'[^"' + less + star + rb"]{0,200}+)?"
    behind = _SPACE + count + end
    quick, exact = (rb"(?:" + rb"|".join(texts) + rb")" + behind for texts in zip(*_quotes(), strict=True))
    quoted = _SPACE + rb"(?i:stopMessage)" + _COLON + rb"(?=" + quick + rb")" + exact
    easy = rb"[^" + star + less + rb"]"
    hard = stars + rb"(?!" + stars + closes + rb")|" + opens + rb"(?!" + stars + stars + rb"(?!" + closes + rb"))"
    plain = rb"(?=" + _strides(easy, rb"(?:" + hard + rb")") + end + rb")(?:" + easy + rb"|" + hard + rb"){0,506}+" + end
    # nothing of a tag is another opening: of many in a row, each fails at the next one
    rest = stars + stars + rb"(?!" + opens + stars + stars + rb"(?!" + closes + rb"))(?:" + quoted + rb"|" + plain + rb")"
    run = rest + rb"(?:" + opens + rest + rb")*+"
    spaced_run = rest + rb"(?: ?" + opens + rest + rb")*+"
    at_line_start = rb"(?:(?<=\n" + opens + rb")|(?<=\A" + opens + rb"))" + spaced_run + rb"(?:\r?\n| )?"
    after_space = rb"(?<= " + opens + rb")" + spaced_run + rb" ?"
    beside = rb"|".join((at_line_start, after_space, run))
    return _Marks(
        re.compile(opens + rest, re.DOTALL),
        # what fails fails once: the alternatives, of which each would read the tag anew, come after a look ahead
        re.compile(opens + rb"(?=" + rest + rb")(?:" + beside + rb")", re.DOTALL),
        re.compile(opens + rb"+(?=" + stars + rb")"),
    )


_STAND_INS = {"＜": "\x11", "＊": "\x12", "＞": "\x13"}
"""Single bytes for the full-width marks, while they are looked at."""


@functools.cache
def _plain() -> _Marks:
    """Made when the first tag is looked for: that takes as long as a good part of the start."""
    return _marks(b"<", b"*", b">")


@functools.cache
def _wide() -> _Marks:
    return _marks(rb"<\x11", rb"*\x12", rb">\x13")


def may_hold_tags(text: str) -> bool:
    """A quick look."""
    if "<" not in text and text.isascii():
        return False
    return find_mark(text, "<**") >= 0 or _is_wide(text)


def find_mark(text: AnyStr, mark: AnyStr, at: int = 0) -> int:
    """As `text.find`; a rare character is found much sooner than three."""
    for _ in range(_FEW):
        at = text.find(mark[:1], at)
        if at < 0 or text.startswith(mark, at):
            return at
        at += 1
    return text.find(mark, at)


def _find_last(text: str, mark: str) -> int:
    end = len(text)
    for _ in range(_FEW):
        end = text.rfind(mark[-1], 0, end)
        if end < 0 or text.endswith(mark, 0, end + 1):
            return max(-1, end - len(mark) + 1)
    return text.rfind(mark, 0, end)


def _is_wide(text: str) -> bool:
    return ("＜" in text or "＊" in text or "＞" in text) and not any(byte in text for byte in _STAND_INS.values())


def find_tags(text: str, limit: int | None = None) -> list[Span]:
    """The tags of the text in order, no more than `limit`; of nested ones the innermost."""
    if not may_hold_tags(text):
        return []
    return list(_found_in_short(text, limit)) if len(text) <= _SHORT else _found(text, limit)


def _found(text: str, limit: int | None) -> list[Span]:
    begin, _, raw, marks = _region(text)
    spans: list[Span] = []
    bytes_before, before = 0, begin
    for left, right in islice((tag.span() for tag in _matches(marks.tag, raw, marks, [(0, len(raw))])), limit):
        before += len(_decode(raw[bytes_before:left], _plain()))
        tag = _decode(raw[left:right], marks)
        spans.append(Span(before, before + len(tag), tag[3:-3]))
        before += len(tag)
        bytes_before = right
    return spans


def strip(text: str) -> str:
    """The text without its tags."""
    if not may_hold_tags(text):
        return text
    if len(text) > _SHORT:
        return _stripped(text)
    left = _stripped_short(text)
    return text if len(left) == len(text) else left


def _stripped(text: str) -> str:
    begin, end, raw, marks = _region(text)
    left = _without_tags(raw, marks)
    if left is raw:
        return text
    stripped = text[:begin] + _decode(left, marks) + text[end:]
    # what kept full-width marks from being marks may have gone with a tag
    return strip(stripped) if marks is _plain() and _is_wide(stripped) else stripped


_found_in_short = functools.lru_cache(maxsize=128)(_found)
_stripped_short = functools.lru_cache(maxsize=128)(_stripped)


def _region(text: str) -> tuple[int, int, bytes, _Marks]:
    """Where tags can be, with what they can be put together from and what may go beside them; and how they are marked."""
    if _is_wide(text):
        return 0, len(text), _encode(_with_stand_ins(text)), _wide()
    first, last = find_mark(text, "<**"), _find_last(text, "**>")
    if first < 0 or last < first:
        return 0, 0, b"", _plain()
    last += 3
    while first > 0 and text[first - 1] in "<*":
        first -= 1
    while last < len(text) and text[last] in "*>":
        last += 1
    first, last = max(0, first - 2), min(len(text), last + 2)
    return first, last, _encode(text[first:last]), _plain()


def _matches(pattern: re.Pattern[bytes], raw: bytes, marks: _Marks, places: list[tuple[int, int]]) -> Iterator[re.Match[bytes]]:
    """What begins with a tag, at these places. Between few openings nothing is read."""
    for start, end in places:
        if marks is not _plain() or raw.count(b"<", start, end) > _FEW:
            yield from pattern.finditer(raw, start, end)
            continue
        at = find_mark(raw, b"<**", start)
        while 0 <= at < end:
            found = pattern.match(raw, at)
            if found is not None:
                yield found
            at = find_mark(raw, b"<**", found.end() if found is not None else at + 1)


def _without_tags(raw: bytes, marks: _Marks) -> bytes:
    effort, places = len(raw) + _EFFORT, [(0, len(raw))]
    while effort > 0:
        effort -= sum([end - start for start, end in places])
        left, seams = _cut(raw, marks, places)
        if raw[-1:] in _CLOSING and left[-1:] not in _CLOSING:
            left = left[:-2] + _LAST_SPACE.sub(b"", left[-2:])
        places = _around(seams, len(left))
        if seams is not None and not any(marks.tag.search(left, start, end) for start, end in places):
            return left if seams else raw
        raw = left
    # built to resist: without any `<*` there is no tag
    return _without_openings(raw, marks) if marks.tag.search(raw) else raw


def _cut(raw: bytes, marks: _Marks, places: list[tuple[int, int]]) -> tuple[bytes, list[int] | None]:
    """Without the tags that are there now, which are at these places; and where something was cut out, None where that may be
    in very many."""
    if marks is not _plain() or raw.count(b"**>") > _FEW:
        left = marks.run_and_space.sub(b"", raw)
        return left, (None if len(left) < len(raw) else [])
    pieces: list[bytes] = []
    seams: list[int] = []
    done = kept = 0
    for run in _matches(marks.run_and_space, raw, marks, places):
        if run.start() < done:  # one of the place before reached so far
            continue
        pieces.append(raw[done : run.start()])
        kept += len(pieces[-1])
        seams.append(kept)
        done = run.end()
    return b"".join((*pieces, raw[done:])), seams


def _around(seams: list[int] | None, size: int) -> list[tuple[int, int]]:
    """Where the cutting may have put tags together: each would lie across one of the seams."""
    if seams is None:
        return [(0, size)]
    places: list[tuple[int, int]] = []
    for seam in seams:
        start, end = max(0, seam - _LONGEST), min(size, seam + _LONGEST)
        if places and start <= places[-1][1]:
            start = places.pop()[0]
        places.append((start, end))
    return places


def _without_openings(raw: bytes, marks: _Marks) -> bytes:
    if marks is _plain():
        for _ in range(_FEW):
            left = raw.replace(b"<*", b"*")
            if len(left) == len(raw):
                return raw
            raw = left
    return marks.pieces.sub(b"", raw)


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _decode(raw: bytes, marks: _Marks) -> str:
    text = raw.decode("utf-8", "surrogatepass")
    if marks is not _plain():
        for mark, byte in _STAND_INS.items():
            text = text.replace(byte, mark)
    return text


def _with_stand_ins(text: str) -> str:
    """One after the other: `str.translate` takes thirty times as long."""
    for mark, byte in _STAND_INS.items():
        text = text.replace(mark, byte)
    return text


# Code

_FENCE = re.compile(r"\n?[ \t]{0,16}(?P<fence>`{3,}|~{3,})(?P<info>[^\r\n]*)")
_FENCE_LINE = re.compile(r"\n[ \t]{0,16}(?:`{3,}|~{3,})[^\r\n]*")
_BLANK_LINE = re.compile(r"\n(?:[ \t]*\r?\n)+")
_TICKS = re.compile(r"`+")
_NEAR = 8 << 10
"""Inline code reaches no further."""
_MOST_MARKS = 20_000
"""More fences, or more runs of backticks, are not looked at: what stands behind them counts as code."""


def in_code(text: str, places: Sequence[int]) -> list[bool]:
    """Which of the places (in order) stand in a fenced block or in inline code. An unclosed fence goes to the end; an unclosed
    backtick is no code. Only what lies near the places is looked at closely."""
    if not places or ("`" not in text and "~" not in text):
        return [False] * len(places)
    found: list[bool] = []
    fences = _fences(text, places[-1])
    block = next(fences)
    inline = _Inline(text)
    begin = 0
    for place in places:
        while block[1] <= place:
            begin = block[1]
            block = next(fences)
        found.append(block[0] <= place or inline.holds(place, begin, block[0]))
    return found


def _fences(text: str, last: int) -> Iterator[tuple[int, int]]:
    """The fenced blocks that begin up to there; behind them all, one that begins where nobody looks."""
    nowhere = (len(text) + 1, len(text) + 2)
    if ("`" in text and "```" in text) or ("~" in text and "~~~" in text):
        fence, start = "", 0
        for count, line in enumerate(_fence_lines(text, last)):
            mark, info = line["fence"], line["info"]
            if count >= _MOST_MARKS:
                yield line.start(), len(text) + 1
                fence = ""
                break
            if not fence and not (mark[0] == "`" and "`" in info):
                fence, start = mark, line.start("fence")
            elif fence and mark.startswith(fence) and not info.strip():
                yield start, line.end()
                fence = ""
        if fence:
            yield start, len(text) + 1
    while True:
        yield nowhere


def _fence_lines(text: str, last: int) -> Iterator[re.Match[str]]:
    first = _FENCE.match(text) if text[:1] != "\n" else None
    if first is not None:
        yield first
    at = first.end() if first is not None else 0
    while (line := _FENCE_LINE.search(text, at)) is not None:
        found = _FENCE.match(text, line.start())
        assert found is not None
        yield found
        if line.start() > last:
            return
        at = line.end()


class _Inline:
    """Inline code, a window at a time: a run of backticks up to the next run of the same length in its paragraph."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._left = _MOST_MARKS
        self._spans: list[tuple[int, int]] = []
        self._looked, self._stop = 0, 0
        """The spans are those near the one and before the other."""
        self._paragraph = 0
        """No later place belongs to what stands before."""

    def holds(self, place: int, begin: int, end: int) -> bool:
        """`begin` and `end`: the fenced blocks before and behind."""
        if self._text.rfind("`", max(begin, place - _NEAR), place + 1) < 0:
            return False
        if place >= self._stop or place - _NEAR // 2 > self._looked:
            self._look(place, begin, end)
        if self._left < 0:
            return True
        index = bisect(self._spans, (place, len(self._text))) - 1
        return index >= 0 and place < self._spans[index][1]

    def _look(self, place: int, begin: int, end: int) -> None:
        text = self._text
        start, stop = max(begin, place - _NEAR, self._paragraph), min(end, place + _NEAR)
        for blank in _BLANK_LINE.finditer(text, start, stop):
            if blank.end() > place:
                self._paragraph = stop = blank.start()
                break
            start = blank.end()
        ticks = [run.span() for run in islice(_TICKS.finditer(text, start, stop), max(0, self._left))]
        self._left -= len(ticks) + 1
        self._spans = _pairs(ticks)
        self._looked, self._stop = place, stop


def _pairs(ticks: list[tuple[int, int]]) -> list[tuple[int, int]]:
    places: dict[int, list[int]] = {}
    for start, end in ticks:
        places.setdefault(end - start, []).append(start)
    spans: list[tuple[int, int]] = []
    at = -1
    for start, end in ticks:
        width = end - start
        same = places[width]
        following = bisect(same, start)
        if start >= at and following < len(same):
            at = same[following] + width
            spans.append((start, at))
    return spans
