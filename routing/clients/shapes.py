"""How a part of a user's message is divided: what a person typed, what a tool repeats of it, and what is a tool's own.

1. Text inside a `<name …>` that begins a line, up to the last `</name>` of its part, is nobody's order, whatever the name: a
   file may hold closing tags, and openings. Where one wrapper opens in another, both reach as far as either does.
2. Without a later `</name>` it is a wrapper only for the names that the client lists; those count within a line as well, if
   they are closed.
3. What gives no orders passes as it came. Only what a tool repeats of a person's words, and what stands behind a wrapper that
   was never closed, loses its tags without giving orders.
4. Linear in the length of the text, whatever it holds.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from msgspec import Struct

from ..values import Dialect, Message, Text, ToolResult
from .client import Client

Span: TypeAlias = tuple[int, int]


class Division(NamedTuple):
    """Spans of a text; those of `typed` lie within those of `editable`."""

    typed: tuple[Span, ...]
    """A person's own words: tags give orders."""
    editable: tuple[Span, ...]
    """Tags are taken out."""
    escaped: frozenset[Span] = frozenset()
    """Those of both in which quotes are escaped."""


NOTHING = Division((), ())


_NAME = r"[^\W\d][\w.:-]{0,63}"
_BREAKS = "\n\r\v\f\x85\u2028\u2029"
_BLANK = " \t\xa0\u3000\u200b\ufeff"
_OPENS = re.compile(rf"<({_NAME})(?=[\s/>])")
_OPENS_LINE = re.compile(rf"(?:\A|(?<=[{_BREAKS}]))[{_BLANK}]{{0,64}}<({_NAME})(?=[\s/>])")
_CLOSES = re.compile(rf"</({_NAME})(?:\s[^<>]{{0,200}})?(?:>|(?=\s))")
_WORD = re.compile(r"\S")
_INDENT = re.compile(rf"(?:\A|[{_BREAKS}])[{_BLANK}]{{0,64}}\Z")
_MARKS = re.compile(r"(?:\A|(?<=\n))[^\w\n<]{0,4}\Z")
"""What stands around a name that begins a line: brackets, stars, the sign of a heading."""
_STARS = ("*", "＊")
"""No tag is without one of them, in whatever width it is typed."""
_FEW_OPENINGS, _MOST_OPENINGS = 1_000, 100_000
_ENDLESS = "\0"
_FEW = 16
"""So many names are looked up one by one; more take one reading of the text."""
_ARGUMENT = re.compile(r'(?:"(?P<quoted>(?:[^"\\]|\\"|\\(?!"))*+)"|(?P<plain>[^ "][^ ]*+))(?: |\Z)')
ESCAPED = '\\"'
_LONGEST_FRAME = 100
_SHORT = 2_000
"""A text is divided several times in each call of a turn: how a shorter one is, is remembered."""


class Shape(Struct, frozen=True):
    """A client's table in the form in which it is looked up."""

    client: Client
    listed: frozenset[str]
    repeats: frozenset[str]
    typed_in: frozenset[str]
    sentences: tuple[str, ...]
    contexts: tuple[str, ...]
    request: re.Pattern[str] | None
    """A heading under which the person's words stand."""
    beginnings: frozenset[str]
    """Most texts are told from all sentences by two letters."""
    after_command: re.Pattern[str] | None
    before: re.Pattern[str] | None
    behind: re.Pattern[str] | None
    printed: re.Pattern[str] | None
    transcript: tuple[re.Pattern[str], ...]
    """The line with which a retold conversation lets the person speak, and that for the model."""
    attached: tuple[tuple[re.Pattern[str], re.Pattern[str]], ...]
    retold: re.Pattern[str] | None
    """The lines with which the person's words begin and end in what the tool retells; a group where they begin."""

    # A whole text

    def is_plain(self, text: str) -> bool:
        """No tool can have put anything into it, or beside it: told at once, for nearly all texts."""
        return not (
            "<" in text
            or (self.behind is not None and self.behind.search(text) is not None)
            or (self.client.quotes_arguments and ESCAPED in text)
            or (any(star in text for star in _STARS) and self._holds_others(text))
            or self.is_tools(text)
        )

    def _holds_others(self, text: str) -> bool:
        """Words of others beside the person's, that stand in no wrapper."""
        return self._retold_from(text) < len(text) or any(begins.search(text) for begins, _ in self.attached)

    def is_tools(self, text: str) -> bool:
        """It begins as texts do that the tool wrote itself."""
        start = text[:200].lstrip().lower()
        return (
            (start[:2] in self.beginnings and start.startswith(self.sentences))
            or (len(text) < _LONGEST_FRAME and start.rstrip() in self.client.examples)
            or (self.printed is not None and self.printed.match(text) is not None)
        )

    def divide(self, text: str) -> Division:
        return _of_short(self.client, text) if len(text) <= _SHORT else self._divided(text)

    def _divided(self, text: str) -> Division:
        if self.before is not None and (before := self.before.match(text)) is not None:
            return _all_moved(self._division(text[before.end() :]), before.end())
        return self._division(text)

    def _division(self, text: str) -> Division:
        start = text[:200].lstrip().lower()
        if start[:2] in self.beginnings and start.startswith(self.sentences):
            if start.startswith(self.contexts):
                return self._behind_context(text)
            if not start.startswith(self.client.retellings or ("\0",)):
                return NOTHING
            tools, _ = self._wrapped(text)
            return Division((), _outside(tools, len(text)))
        if start.rstrip() in self.client.examples or (self.printed is not None and self.printed.match(text) is not None):
            return NOTHING
        behind = self.behind.search(text) if self.behind is not None else None
        end = behind.start() if behind is not None else len(text)
        tools, repeated = self._wrapped(text) if "<" in text else ((), ())
        if files := tuple(self._attachments(text)):
            tools = _union((*tools, *files))
        if (begins := self._retold_from(text)) < len(text):
            repeated = _union((*repeated, (begins, len(text))))
        editable = _with_words(text, _outside(tools, end))
        typed = _with_words(text, _outside(_union((*tools, *repeated)), end)) if repeated else editable
        if repeated and self.retold is not None and (retold := self._retold(text, self.retold, repeated)):
            editable = _union((*typed, *retold))
        if self.client.joins:
            typed = typed[-1:]
        if self.client.quotes_arguments and ESCAPED in text and typed == ((0, len(text)),):
            return _arguments(text) or Division(typed, editable)
        return Division(typed, editable)

    def _attachments(self, text: str) -> Iterator[Span]:
        """Each from where the first such file begins to the last end of one, or of the text."""
        for begins, ends in self.attached:
            if (found := begins.search(text)) is not None:
                end = len(text)
                for one in ends.finditer(text, found.end()):
                    end = one.end()
                yield found.start(), end

    def _retold_from(self, text: str) -> int:
        """Where a conversation is retold; the length of the text where none is."""
        first = len(text)
        for speaks in self.transcript:
            lines = (_MARKS.search(text, max(0, one.start() - 5), one.start()) for one in speaks.finditer(text))
            if (line := next(filter(None, lines), None)) is None:
                return len(text)
            first = min(first, line.start())
        return first

    def _behind_context(self, text: str) -> Division:
        """What stands before the person's words may hold a heading like theirs, and opens and closes nothing for them. Where the
        client joins what it sends, the words under each heading lose their tags."""
        headings = list(self.request.finditer(text)) if self.request is not None else []
        if not headings:
            return NOTHING
        ends = (*(heading.start() for heading in headings[1:]), len(text))
        *before, newest = zip(headings, ends, strict=True)
        division = self._under(text, *newest)
        if not before or not self.client.joins:
            return division
        earlier = (span for one in before for span in self._under(text, *one).editable)
        return division._replace(editable=(*earlier, *division.editable))

    def _under(self, text: str, heading: re.Match[str], end: int) -> Division:
        """The words behind a heading; behind one that opens a wrapper, until that is closed."""
        start = heading.end()
        if (opens := _OPENS.match(heading[0])) is not None and (closes := text.find(f"\n</{opens[1]}>", start, end)) >= 0:
            end = closes
        return _all_moved(self._division(text[start:end]), start)

    def _wrapped(self, text: str) -> tuple[tuple[Span, ...], tuple[Span, ...]]:
        """What tools wrapped as their own, and what they repeat; neither overlaps itself."""
        first, never_closed = self._openings(text)
        closings = _closings(text, first)
        own: list[Span] = []
        repeated: list[Span] = []
        for name, at in first.items():
            closed_from, closed_to = closings.get(name, (-1, -1))
            if at < closed_from:  # the first opening covers what others of its name do
                (repeated if name in self.repeats else own).append((at, closed_to))
            if never_closed.get(name, -1) > closed_from:
                repeated.append((at if name == _ENDLESS else _first_behind(text, name, closed_to), len(text)))
        return _union(own), _union(repeated)

    def _retold(self, text: str, line: re.Pattern[str], within: Sequence[Span]) -> tuple[Span, ...]:
        """The person's words in what the tool retells, whatever wrappers the files beside them open or close around them."""
        found: list[Span] = []
        for start, end in within:
            begun = -1
            for at, begins in (
                *((one.span(), one[1] is not None) for one in line.finditer(text, start, end)),
                ((end, end), False),
            ):
                if begun >= 0:
                    found.append((begun, begun + len(text[begun : at[0]].rstrip())))
                begun = at[1] if begins else -1
        return _with_words(text, found)

    def _openings(self, text: str) -> tuple[dict[str, int], dict[str, int]]:
        """Where each name is opened first as a wrapper; and where a listed one is opened last on a line of its own."""
        first: dict[str, int] = {}
        last: dict[str, int] = {}
        settled = set(self.typed_in)
        for count, found in enumerate(_each_opening(text)):
            name = found[1]
            if name in settled:
                continue
            at = found.start(1) - 1
            is_listed = name in self.listed
            is_on_line = at == 0 or text[at - 1] in _BREAKS or (text[at - 1] in _BLANK and _starts_line(text, at))
            if (is_on_line or is_listed) and name not in first:
                first[name] = at
                if not is_listed:
                    settled.add(name)
            if is_on_line and is_listed:
                last[name] = at
            if count >= _MOST_OPENINGS:  # whatever that is: from here on it gives no orders
                first[_ENDLESS] = last[_ENDLESS] = at
                break
        return first, last

    # A whole message

    def divided(self, message: Message, dialect: Dialect) -> Iterator[tuple[Text, Division, bool]]:
        """Each text part; True where it is what a command that the person called says."""
        client = self.client
        if dialect is Dialect.GEMINI and any(isinstance(part, ToolResult) for part in message.parts):
            yield from ((part, NOTHING, False) for part in message.parts if isinstance(part, Text))
            return
        files = self._files(message)
        not_before = -1
        after_command = False
        for position, part in enumerate(message.parts):
            if not isinstance(part, Text):
                continue
            text = part.text
            start = text[:200].lstrip().lower() if client.with_next_part else ""
            if position <= not_before or position in files or not self._may_be_typed(message.hint, part, position):
                yield part, NOTHING, False
            elif start and start.startswith(client.with_next_part):
                not_before = position + 1
                yield part, NOTHING, False
            elif start and start.startswith(client.with_all_behind):
                not_before = len(message.parts)
                yield part, NOTHING, False
            else:
                yield part, self.divide(text), after_command
            after_command = self.after_command is not None and self.after_command.search(text[-80:]) is not None

    def _may_be_typed(self, hint: tuple[str, ...], part: Text, position: int) -> bool:
        place = part.slot if part.slot >= 0 else position
        return place >= len(hint) or hint[place] in self.client.typed_kinds

    def _files(self, message: Message) -> range:
        """The positions of the parts that hold files."""
        if self.client.frame is None or len(message.parts) < 2:
            return range(0)
        first, last = self.client.frame
        texts = [
            (position, part.text.strip())
            for position, part in enumerate(message.parts)
            if isinstance(part, Text) and len(part.text) < _LONGEST_FRAME
        ]
        begin = next((position for position, text in texts if text == first), None)
        if begin is None:
            return range(0)
        end = next((position for position, text in reversed(texts) if text == last), len(message.parts))
        return range(begin, end + 1)


@functools.lru_cache(maxsize=256)
def shape_of(client: Client) -> Shape:
    sentences = (*client.sentences, *client.retellings, *client.with_next_part, *client.with_all_behind, *client.contexts)
    headings = "|".join(map(re.escape, client.requests))
    commands = "|".join(map(re.escape, client.commands))
    begins, ends = client.retold
    listed = frozenset(client.wrappers) | frozenset(client.repeats)
    return Shape(
        client=client,
        listed=listed,
        repeats=frozenset(client.repeats),
        typed_in=frozenset(client.typed_in),
        sentences=sentences,
        contexts=client.contexts,
        request=re.compile(rf"^(?:{headings})", re.MULTILINE) if headings else None,
        beginnings=frozenset(sentence[:2] for sentence in sentences),
        after_command=re.compile(rf"</(?:{commands})>\s*\Z") if commands else None,
        before=re.compile(client.before) if client.before else None,
        behind=re.compile("|".join(map(re.escape, client.behind))) if client.behind else None,
        printed=re.compile(client.printed) if client.printed else None,
        transcript=tuple(
            re.compile(rf"(?:{'|'.join(said)})[^\w\n<]{{0,4}}:", re.IGNORECASE) for said in client.transcript if said
        ),
        attached=tuple((re.compile(first, re.MULTILINE), re.compile(last, re.MULTILINE)) for first, last in client.attached),
        retold=re.compile(rf"^(?:({re.escape(begins)})|{'|'.join(map(re.escape, ends))})", re.MULTILINE) if begins else None,
    )


@functools.lru_cache(maxsize=128)
def _of_short(client: Client, text: str) -> Division:
    return shape_of(client)._divided(text)


def _arguments(text: str) -> Division | None:
    """The arguments of a command line: those with a space in them in quotes, and the quotes within escaped."""
    spans: list[Span] = []
    escaped: list[Span] = []
    plain_from = at = 0
    while at < len(text):
        found = _ARGUMENT.match(text, at)
        if found is None:
            return None
        if found["quoted"] is not None:
            spans += [(plain_from, at - 1), found.span("quoted")]
            escaped.append(found.span("quoted"))
            plain_from = found.end()
        at = found.end()
    words = _with_words(text, tuple(span for span in (*spans, (plain_from, len(text))) if span[0] < span[1]))
    return Division(words, words, frozenset(escaped)) if escaped else None


def _with_words(text: str, spans: Iterable[Span]) -> tuple[Span, ...]:
    return tuple((start, end) for start, end in spans if _WORD.search(text, start, end) is not None)


def _all_moved(division: Division, by: int) -> Division:
    typed, editable, escaped = division
    return Division(_moved(typed, by), _moved(editable, by), frozenset(_moved(escaped, by)))


def _moved(spans: Iterable[Span], by: int) -> tuple[Span, ...]:
    return tuple((start + by, end + by) for start, end in spans)


def _union(spans: Sequence[Span]) -> tuple[Span, ...]:
    """In order, with those that overlap made one."""
    joined: list[Span] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return tuple(joined)


def _outside(spans: Sequence[Span], end: int) -> tuple[Span, ...]:
    """What the spans leave over, up to `end`."""
    left: list[Span] = []
    at = 0
    for start, stop in spans:
        if min(start, end) > at:
            left.append((at, min(start, end)))
        at = max(at, stop)
    if at < end:
        left.append((at, end))
    return tuple(left)


def _closings(text: str, names: Collection[str]) -> dict[str, Span]:
    """Where each of these names is closed last."""
    found: dict[str, Span] = {}
    if len(names) > _FEW:
        return {one[1]: one.span() for one in _CLOSES.finditer(text)}
    for name in names:
        at = text.rfind(f"</{name}")
        closing = _CLOSES.match(text, at) if at >= 0 else None
        if closing is not None and closing[1] == name:
            found[name] = closing.span()
        elif at >= 0:  # the end of a longer name
            return {one[1]: one.span() for one in _CLOSES.finditer(text)}
    return found


def _each_opening(text: str) -> Iterator[re.Match[str]]:
    """Between few openings nothing is read. Of many, where nothing is closed, only those at the beginning of a line can be
    wrappers."""
    at = text.find("<")
    for _ in range(_FEW_OPENINGS):
        if at < 0:
            return
        if (found := _OPENS.match(text, at)) is not None:
            yield found
        at = text.find("<", at + 1)
    if at >= 0:
        yield from (_OPENS if "</" in text else _OPENS_LINE).finditer(text, max(0, at - 65))


def _first_behind(text: str, name: str, at: int) -> int:
    """The first opening of the name on a line of its own behind that place."""
    return next(
        found.start() for found in _OPENS.finditer(text, max(at, 0)) if found[1] == name and _starts_line(text, found.start())
    )


def _starts_line(text: str, at: int) -> bool:
    return _INDENT.search(text, max(0, at - 65), at) is not None
