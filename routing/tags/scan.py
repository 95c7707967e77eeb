"""Find tags in text, and take them out.

1. A tag is `<**`, a body without another `<**`, and the first `**>` behind it: at most 512 bytes. So an opening that is
   never closed takes nothing with it.
2. The quoted text of a stopMessage may be 16 KiB long and hold anything; `\\"` is a quote inside it.
3. Taking tags out leaves none behind, not even one that only the taking out puts together, and `strip(strip(x)) == strip(x)`.
4. Only tags go, with at most one line break or space beside each. Text without a tag is returned as the object it is.
5. The time is linear in the length of the text, whatever it holds: every pattern here reads a byte a bounded number of times.
"""

from __future__ import annotations

import re
from bisect import bisect
from itertools import islice
from typing import NamedTuple

_SPACE = rb"[ \t\r\n]{0,16}"
_QUOTED = (
    _SPACE + rb"stopMessage" + _SPACE + rb":" + _SPACE + rb'"(?:[^"\\]|\\.){0,16364}+"' + _SPACE + rb'(?:,[^"<*]{0,200}+)?\*\*>'
)
_PLAIN = rb"(?:[^*<]|\*(?!\*>)|<(?!\*\*(?!>))){0,506}+\*\*>"
_REST = rb"\*\*(?:" + _QUOTED + rb"|" + _PLAIN + rb")"
_RUN = _REST + rb"(?:<" + _REST + rb")*+"
_SPACED_RUN = _REST + rb"(?: ?<" + _REST + rb")*+"
_TAG = re.compile(rb"<" + _REST, re.DOTALL)
_AT_LINE_START = rb"(?:(?<=\n<)|(?<=\A<))" + _SPACED_RUN + rb"(?:\r?\n| )?"
_AFTER_SPACE = rb"(?<= <)" + _SPACED_RUN + rb" ?"
_RUN_AND_SPACE = re.compile(
    # what fails fails once: the alternatives, of which each would read the tag anew, come after a look ahead
    rb"<(?=" + _REST + rb")(?:" + rb"|".join((_AT_LINE_START, _AFTER_SPACE, _RUN)) + rb")",
    re.DOTALL,
)
"""Tags with what goes beside them: the break or space behind, at the start of a line; after a space, the space behind."""
_LAST_SPACE = re.compile(rb"(?:\r?\n| )\Z")
_MARKS = re.compile(rb"<+(?=\*)")
_EFFORT = 4 << 20
"""Bytes that may be read to take apart what is nested. A nest in 1 MiB gets four readings, one in a page gets a thousand."""


class Span(NamedTuple):
    """A tag from `start` to `end`; `body` is what stands between the marks."""

    start: int
    end: int
    body: str


def find_tags(text: str, limit: int | None = None) -> list[Span]:
    """The tags of the text in order, no more than `limit`; of nested ones the innermost."""
    if "<**" not in text:
        return []
    raw = _encode(text)
    found = [tag.span() for tag in islice(_TAG.finditer(raw), limit)]
    if len(raw) == len(text):
        return [Span(start, end, text[start + 3 : end - 3]) for start, end in found]
    spans: list[Span] = []
    bytes_before = before = 0
    for start, end in found:
        before += len(_decode(raw[bytes_before:start]))
        tag = _decode(raw[start:end])
        spans.append(Span(before, before + len(tag), tag[3:-3]))
        before += len(tag)
        bytes_before = end
    return spans


def strip(text: str) -> str:
    """The text without its tags."""
    if "<**" not in text or "**>" not in text:
        return text
    raw = _encode(text)
    left = _without_tags(raw)
    return text if left is raw else _decode(left)


def _without_tags(raw: bytes) -> bytes:
    effort = max(_EFFORT, 4 * len(raw))
    while effort > 0:
        effort -= len(raw)
        left, count = _RUN_AND_SPACE.subn(b"", raw)
        if not count:
            return raw
        if raw.endswith(b"**>") and not left.endswith(b"**>"):
            left = _LAST_SPACE.sub(b"", left)
        raw = left
    # built to resist: without any `<*` there is no tag
    return _MARKS.sub(b"", raw) if _TAG.search(raw) else raw


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _decode(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogatepass")


_FENCE_OR_TICKS = re.compile(r"^[ \t]{0,16}(?P<fence>`{3,}|~{3,})(?P<info>[^\r\n]*)|`+|^[ \t]*\r?$", re.MULTILINE)


def code_spans(text: str) -> list[tuple[int, int]]:
    """Fenced blocks and inline code, in order. An unclosed fence goes to the end; an unclosed backtick is no code."""
    if "`" not in text and "~~~" not in text:
        return []
    spans: list[tuple[int, int]] = []
    ticks: list[tuple[int, int]] = []
    """Runs of backticks of the paragraph being read."""
    fence, fence_start = "", 0
    for found in _FENCE_OR_TICKS.finditer(text):
        mark, info = found["fence"], found["info"]
        if fence:
            if mark and mark.startswith(fence) and not info.strip():
                spans.append((fence_start, found.end()))
                fence = ""
        elif mark and not (mark[0] == "`" and "`" in info):
            spans += _inline(ticks)
            ticks = []
            fence, fence_start = mark, found.start()
        elif mark:
            ticks += [run.span() for run in re.finditer(r"`+", text[found.start() : found.end()])]
        elif found[0].startswith("`"):
            ticks.append(found.span())
        else:
            spans += _inline(ticks)
            ticks = []
    spans += _inline(ticks)
    if fence:
        spans.append((fence_start, len(text)))
    return spans


def _inline(ticks: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Inline code of one paragraph: a run of backticks up to the next run of the same length."""
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
