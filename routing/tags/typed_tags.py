"""The tags of a message that a person typed.

1. A tag in code says nothing; it is only taken out.
2. What has the form of a tag of ours is read or refused, never passed over: also where its marks are not quite right, or where
   only the configuration tells that one of its names is meant.
3. No message gives more than `MOST_TAGS` orders.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import takewhile

from ..clients.typed import Typed, TypedText
from ..values import Text
from .grammar import HOW_NAMES, HOW_STOP, LIKE_STOP, Tag, Unknown, Unreadable, parse
from .scan import Span, find_mark, find_tags, in_code, may_hold_tags, strip
from .vocabulary import Vocabulary
from .words import WORDS, folded

MOST_TAGS = 16
"""Nobody types more."""
_MOST_NAMED = 8
"""So many of those that are nothing of ours are named."""
_MOST_LOOKED_AT = 1000
_LONGEST_BARE = 100_000
_MOST_BROKEN = 100
_QUOTES = " \t\r\n\"'“”‘’「」«»"
"""What a tool may wrap around a prompt."""
_BEGIN = ("<*", "< *", "《**", "〈**")
"""Marks that are not quite right begin so; the last two are what a keyboard for Chinese makes of `<**`."""
_END = "**>"
"""… or end so."""
_LONGEST_SHOWN = 60
_LONGEST_STOP = 300
_MOST_WORDS = 4
_WHOLE = frozenset((*WORDS, "clock:clear"))
_TOKEN = re.compile(r"(?P<name>[!#@]?[\w-][\w.,\[\]/:-]*)\s{0,3}\(?(?P<close>[*>]?)")
_BEFORE_CLOSING = re.compile(r"(?:\*\*|(?<![^\s*<>(]))\s{0,3}(?P<rest>[!#@]?[\w-][\w.,\[\]/:-]{0,80}\s{0,3})\Z")
_STOP_BEFORE_CLOSING = re.compile(
    r"(?:^|[\s*<>(.,8])(?P<rest>stop[\s_-]?message\s?[:,;=]?\s?(?:[\"'“‘「«<]|clear)[^\n]*)\Z", re.IGNORECASE | re.MULTILINE
)
_UNSHIFTED = "8("
"""The key of `*` on many keyboards, where shift was late or early; and the one beside it."""


def tags_of(typed: Typed, vocabulary: Vocabulary | None = None) -> tuple[Tag, ...]:
    """What the tags of a message say, but for those in code."""
    ours: list[Tag] = []
    others: list[Tag] = []
    for text in typed.texts:
        for said in _read(text, vocabulary):
            (others if isinstance(said, Unknown) else ours).append(said)
    if len(ours) > MOST_TAGS:
        return (Unreadable(_shown(ours[MOST_TAGS]), f"no more than {MOST_TAGS} tags of a message are obeyed"),)
    return (*ours, *others[:_MOST_NAMED])


def _read(text: TypedText, vocabulary: Vocabulary | None) -> Iterator[Tag]:
    for found in _outside_code(text):
        if isinstance(found, Span):
            yield from (_judged(tag, vocabulary) for tag in parse(found.body))
        elif (broken := _broken(found, vocabulary)) is not None:
            yield broken


def _outside_code(text: TypedText) -> list[Span | str]:
    """The tags, and what begins like one and is none; code is looked for in the person's words alone: what a tool put between
    them opens and closes nothing."""
    words = text.pieces
    found: list[tuple[int, Span | str]] = []
    before = 0
    for piece in words:
        if ("*" in piece or "＊" in piece) and (
            may_hold_tags(piece) or any(find_mark(piece, mark) >= 0 for mark in (*_BEGIN, _END))
        ):
            spans = find_tags(piece, _MOST_LOOKED_AT)
            here: list[tuple[int, Span | str]] = [(before + span.start, span) for span in spans]
            here += [(before + at, rest) for at, rest in _halves(piece, spans)]
            found += sorted(here, key=lambda pair: pair[0])
        before += len(piece)
    if not found:
        return []
    code = in_code(words[0] if len(words) == 1 else "".join(words), [at for at, _ in found])
    return [one for (_, one), is_code in zip(found, code, strict=True) if not is_code]


# What has no form of ours by itself


def _judged(tag: Tag, vocabulary: Vocabulary | None) -> Tag:
    """What only the configuration tells to be one of ours."""
    if vocabulary is None or not isinstance(tag, Unknown | Unreadable):
        return tag
    plain = folded(tag.body).strip()
    if isinstance(tag, Unreadable):
        return _with_meant(tag, vocabulary) if tag.right.endswith(HOW_NAMES) else tag
    words = [word for word in plain.split() if any(char.isalnum() for char in word)]
    is_ours = plain.lstrip("*")[:1] in ("!", "#", "@") and vocabulary.begins(plain.lstrip("*")) and len(words) <= _MOST_WORDS
    is_ours = is_ours or (len(words) <= 2 and vocabulary.mentions(plain))
    if is_ours or vocabulary.mixes(plain) or vocabulary.is_torn(plain):
        return _with_meant(Unreadable(tag.body, f"names are written {HOW_NAMES}"), vocabulary)
    return tag


def _with_meant(tag: Unreadable, vocabulary: Vocabulary) -> Unreadable:
    meant = vocabulary.meant(tag.body)
    prefix = prefix if (prefix := folded(tag.body).lstrip(" *<")[:1]) in ("!", "#", "@") else ""
    return Unreadable(tag.body, f"nearest: {', '.join(f'<**{prefix}{name}**>' for name in meant)}; {tag.right}") if meant else tag


def _halves(piece: str, spans: Sequence[Span]) -> Iterator[tuple[int, str]]:
    """Marks outside the tags, with what stands beside them on their line."""
    plain = folded(piece) if "＜" in piece or "＊" in piece or "＞" in piece else piece
    for mark in _BEGIN:
        for at in _places(plain, mark, spans):
            yield at, folded(plain[at + len(mark) : at + 200].partition("\n")[0]).lstrip("* \t")
    for at in _places(plain, _END, spans):
        before = _BEFORE_CLOSING.search(plain, max(0, at - 100), at)
        if before is not None and "<" not in before[0]:
            yield before.start("rest"), f"{before['rest'].strip()}**>"
        elif (stop := _STOP_BEFORE_CLOSING.search(plain, max(0, at - _LONGEST_STOP), at)) is not None:
            yield stop.start("rest"), f"{stop['rest']}**>"


def _places(text: str, mark: str, spans: Sequence[Span]) -> Iterator[int]:
    at = find_mark(text, mark)
    for _ in range(_MOST_BROKEN):
        if at < 0:
            return
        tag = bisect_right(spans, at, key=lambda span: span.start) - 1
        if tag < 0 or at >= spans[tag].end:
            yield at
        at = find_mark(text, mark, at + 1)


def _broken(rest: str, vocabulary: Vocabulary | None) -> Unreadable | None:
    """A tag whose marks are not quite right, where it can be nothing else: also with one of them among its letters."""
    bare = rest.lstrip(_UNSHIFTED)
    readings = dict.fromkeys((rest, bare, bare.replace("*", "")))
    return next((half for reading in readings if (half := _half(reading, vocabulary)) is not None), None)


def _half(rest: str, vocabulary: Vocabulary | None) -> Unreadable | None:
    if LIKE_STOP.match(rest):
        return Unreadable(rest[:_LONGEST_SHOWN], f"it is not closed as it should be: write {HOW_STOP}")
    token = _TOKEN.match(rest)
    if token is None:
        return None
    name, is_closed = token["name"].rstrip(".,:"), bool(token["close"])
    right = "a tag stands between <** and **>"
    if is_closed and (word := name.lower().rstrip(_UNSHIFTED)) in _WHOLE:
        return Unreadable(name, f"{right}: write <**{word}**>")
    if vocabulary is None:
        return None
    of_models = name.lower().startswith("models:")
    asked = name.partition(":")[2] if of_models else name
    if not vocabulary.begins(asked):
        name, asked = name.rstrip(_UNSHIFTED), asked.rstrip(_UNSHIFTED)
    if not vocabulary.begins(asked):
        return None
    if of_models and is_closed:
        return Unreadable(name, f"{right}: write <**{name}**>")
    if name[0] in "!#@" or "." in name or "[" in name or is_closed:
        return Unreadable(name, f"{right}: write <**{name}**>")
    return None


def _shown(tag: Tag) -> str:
    name = getattr(tag, "name", None)
    return str(name) if name is not None else getattr(tag, "body", type(tag).__name__)


# Nothing but tags


def only_tags(typed: Typed) -> bool:
    """The message is nothing but tags, whatever tools wrote beside them; quotes around them count for nothing."""
    return bool(typed.texts) and len(tags_at_end(typed)) == len(typed.texts)


def tags_at_end(typed: Typed) -> tuple[TypedText, ...]:
    """The last texts of the message, as far as they are nothing but tags."""
    if not all(isinstance(part, Text) for part in typed.message.parts):
        return ()
    told = tuple(takewhile(_is_bare_without_tags, reversed(typed.texts)))[::-1]
    return told if any(isinstance(found, Span) for text in told for found in _outside_code(text)) else ()


def _is_bare_without_tags(text: TypedText) -> bool:
    return bool(text.commands) and all(may_be_bare(piece) and is_bare(strip(piece)) for piece in text.pieces)


def may_be_bare(text: str) -> bool:
    """A quick look: it begins and ends as nothing but tags does, and is no longer than a person types of them."""
    return (
        len(text) <= _LONGEST_BARE
        and text[:64].lstrip(_QUOTES)[:1] in ("", "<", "＜")
        and text[-64:].rstrip(_QUOTES)[-1:] in ("", ">", "＞")
    )


def is_bare(text: str) -> bool:
    """Nothing is left that somebody wants to say."""
    return not text.strip(_QUOTES)
