"""What an answer says, in its order: thoughts, text, calls, and how it ended.

A long stream is kept in part: its beginning and its end, with a comment between them that says how much is missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby

import orjson

from ..dialects.answer.events import UNREADABLE, Block
from ..dialects.answer.machine import reader_of
from ..dialects.answer.said import Content
from ..dialects.answer.stream import Source
from ..errors import RouteCodexError
from ..values import Dialect
from ..visible import first_words
from .text import INDENT, WIDTH, count, rule, size, wrapped

GAP = re.compile(rb"\n: (\d{1,18}) bytes were not kept here\n")
"""As whoever kept the answer wrote it."""
_TEXT_LINES = 400
_FOLDED_LINES = 12
_BLANK = re.compile(rb"\r?\n\r?\n")
_SHOWN_BYTES = 4096
_MENDED_BYTES, _DEEPEST = 100 << 10, 100
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*("?)|[\[\]{},]', re.DOTALL)
_HALF_ESCAPE = re.compile(rb"\\(u[0-9a-fA-F]{0,3})?$")
_WHOLE_BYTES, _BEGIN_BYTES, _END_BYTES = 512 << 10, 192 << 10, 64 << 10
"""A longer stream is read in part; one that came while this addon was there is shorter (`GAP`)."""
_DOCUMENT_BYTES, _MOST_OBJECTS = 4 << 20, 20_000


def lines(body: bytes, dialect: Dialect, status: int = 0) -> Iterator[str]:
    """`status`: the one that it came with, which a body may contradict."""
    if not body.strip():
        yield rule("ANSWER: empty")
        return
    pieces, passed_over = _to_read(body)
    content, missing, unread = _read(pieces, dialect)
    if not (content.blocks or content.error or content.ended or content.began):
        yield rule(f"ANSWER ({size(len(body))}): nothing of it could be read")
        yield from wrapped(body[:_SHOWN_BYTES].decode("utf-8", "replace"), most=_TEXT_LINES)
        return
    yield rule("ANSWER")
    if content.began is not None and (content.began.id or content.began.model):
        yield f"{INDENT}{first_words(' · '.join(filter(None, (content.began.model, content.began.id))), 84)}"
    yield from _blocks(content)
    if content.error is not None:
        told = status if status >= 400 else content.error.status or ""
        yield f"{INDENT}ERROR {told} {content.error.code}".rstrip()
        yield from wrapped(content.error.message, indent="    ", most=_FOLDED_LINES)
    if content.ended is not None:
        yield f"{INDENT}ended: {first_words(content.ended.finish_reason, 40)}"
    elif content.error is None:
        yield f"{INDENT}no end of it is here"
    if (tokens := content.tokens) is not None:
        apart = [("from the cache", tokens.cached), ("written to it", tokens.written)]
        held = ", ".join(f"{number:,} {what}" for what, number in apart if number)
        thought = f" ({tokens.reasoning:,} for reasoning)" if tokens.reasoning else ""
        yield f"{INDENT}tokens, as told here: {tokens.input:,} in{f' ({held})' if held else ''} · {tokens.output:,} out{thought}"
    if missing:
        yield f"{INDENT}{size(missing)} of it were not kept: the text has a gap"
    if passed_over:
        yield f"{INDENT}{size(passed_over)} of it were not read for a look: the text has a gap"
    if is_document(body) and missing:
        yield f"{INDENT}its last bytes, as they came:"
        yield from wrapped(_last(body), indent="    ", most=_FOLDED_LINES)
    if unread:
        yield f"{INDENT}{count(unread, 'piece')} of it could not be read"


def _to_read(body: bytes) -> tuple[list[bytes], int]:
    """What is read of it for a look, and of how many bytes it is not."""
    if is_document(body):
        if len(body) <= _DOCUMENT_BYTES and body.count(b"{") <= _MOST_OBJECTS:
            return [body], 0
        return [body[:_MENDED_BYTES]], max(0, len(body) - _MENDED_BYTES)
    if len(body) <= _WHOLE_BYTES:
        return [body], 0
    return [body[:_BEGIN_BYTES], body[-_END_BYTES:]], len(body) - _BEGIN_BYTES - _END_BYTES


def _read(pieces: list[bytes], dialect: Dialect) -> tuple[Content, int, int]:
    """What they say as far as it is there, how many bytes are missing, and how many pieces could not be read."""
    content, unread = Content(), 0
    reader = reader_of(dialect)
    found = [GAP.split(piece) for piece in pieces]
    missing = sum(int(number) for parts in found for number in parts[1::2])
    is_json = is_document(pieces[0])
    for number, part in enumerate(part for parts in found for part in parts[::2]):
        if is_json:
            if number:
                break  # nobody can read what begins in the middle of a document
            part = _mended(part.rstrip())
        elif number:  # it begins in the middle of an event
            begin = _BLANK.search(part)
            part = part[begin.end() :] if begin is not None else b""
        source = Source(reader)
        try:
            for chunk in source.feed(part):
                content.add(chunk.events)
            for chunk in source.close():
                content.add(chunk.events)
        except (RouteCodexError, ValueError, TypeError, KeyError, AttributeError):
            unread += 1
    if content.error == UNREADABLE:  # what a reader says of it, and nobody was told
        content.error = None
        unread += 1
    return content, missing, unread


def is_document(body: bytes) -> bool:
    """It is JSON, and no stream."""
    return body[:_SHOWN_BYTES].lstrip()[:1] in (b"{", b"[")


def _mended(document: bytes) -> bytes:
    """One that breaks off, closed where it does; as it is where it is whole, or no JSON at all."""
    if _is_json(document):
        return document
    part, closes, whole = document[:_MENDED_BYTES], bytearray(), (0, b"")
    for token in _TOKEN.finditer(part):
        sign = token[0][:1]
        if sign == b'"':
            if not token[1]:
                part = _HALF_ESCAPE.sub(b"", part).decode("utf-8", "ignore").encode() + b'"'
                break
        elif sign in b"{[":
            if len(closes) == _DEEPEST:
                return document
            closes += b"}" if sign == b"{" else b"]"
            whole = token.end(), bytes(closes[::-1])
        elif sign == b",":
            whole = token.start(), bytes(closes[::-1])
        elif not closes:
            break
        else:
            closes.pop()
    end, rest = whole
    return next(filter(_is_json, (part + bytes(closes[::-1]), part[:end] + rest)), document)


def _is_json(document: bytes) -> bool:
    try:
        orjson.loads(document)
    except orjson.JSONDecodeError:
        return False
    return True


def _last(body: bytes) -> str:
    return body[-_FOLDED_LINES * WIDTH // 2 :].decode("utf-8", "replace").lstrip("\ufffd")


def _blocks(content: Content) -> Iterator[str]:
    """Texts that follow one another are one: where a source stands between them, a reader sees no end."""
    for is_text, group in groupby(content.blocks.items(), lambda one: one[0].kind == "text"):
        if is_text:
            text = "".join(str(grown) for _, grown in group)
            if text.strip():
                yield from wrapped(text, most=_TEXT_LINES)
            continue
        for block, grown in group:
            yield from _block(block, str(grown))


def _block(block: Block, text: str) -> Iterator[str]:
    match block.kind:
        case "thought":
            yield f"{INDENT}thinking:" if text.strip() else f"{INDENT}thinking (hidden by its provider)"
            if text.strip():
                yield from wrapped(text, indent="    ", most=_FOLDED_LINES)
        case "call":
            yield f"{INDENT}calls {first_words(block.name or '(no name)', 60)} ({first_words(block.id, 40)})"
            yield from wrapped(text, indent="    ", most=_FOLDED_LINES)
        case "media":
            held = block.media.data if block.media is not None else ""
            yield f"{INDENT}[{block.media.kind if block.media is not None else 'media'}, {size(len(held) or len(text))}]"
        case _:
            name = block.name or str((block.native or {}).get("type", "")) or block.field
            yield f"{INDENT}[{first_words(name or 'something else', 60)}, run by the provider]"
