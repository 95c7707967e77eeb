"""An answer in the form that was not asked for: some providers send one JSON document for a stream, or a stream for none.

Clients are not prepared for it: one asks again in a tight loop, another shows nothing.
"""

from __future__ import annotations

from dataclasses import replace

from ..dialects import answers
from ..dialects.answer.machine import answer_for
from ..dialects.fields import count_of, read_object, text_of
from ..dialects.finish import is_cut, is_whole_call
from ..dialects.said import Said
from ..values import Answer, Endpoint

_SSE_STARTS = (b"event:", b"data:", b":", b"id:", b"retry:")


def looks_like_stream(body: bytes) -> bool:
    return body[:64].lstrip(b"\xef\xbb\xbf \t\r\n").startswith(_SSE_STARTS)


def as_stream(endpoint: Endpoint, body: bytes) -> bytes | None:
    """The stream that says what this JSON document says; None where that cannot be read."""
    said = _said(endpoint, body, stream=False)
    if said is None:
        return None
    document = read_object(body) or {}
    return b"".join(
        answers.write_stream(
            endpoint.dialect,
            _answer(said),
            id=said.id,
            model=text_of(document.get("model")) or text_of(document.get("modelVersion")),
            created=count_of(document.get("created")) or count_of(document.get("created_at")),
            include_usage=True,
            json_array=endpoint.json_array,
            envelope=endpoint.envelope,
        )
    )


def as_whole(endpoint: Endpoint, body: bytes) -> bytes | None:
    """The JSON document that says what this stream says; None where the stream is none, or has no end."""
    said = _said(replace(endpoint, json_array=False), body, stream=True)
    if said is None:
        return None
    return answers.write_answer(
        endpoint.dialect, _answer(said), id=said.id, model=_model_in(body), created=0, envelope=endpoint.envelope
    )


def _said(endpoint: Endpoint, body: bytes, *, stream: bool) -> Said | None:
    merger = answer_for(endpoint, stream=stream)
    merger.begin_round()
    merger.feed(body)
    said = merger.end_round()
    return said if said.complete and said.error is None else None


def _answer(said: Said) -> Answer:
    cut = is_cut(said.finish)  # then nobody is told of a call that it broke off in
    calls = tuple(call for call in said.calls if not cut or is_whole_call(call.arguments))
    return Answer(said.text, calls, said.finish, said.usage)


def _model_in(body: bytes) -> str:
    """The first event that names a model tells it."""
    for event in answers.events_for().feed(body + b"\n\n"):
        document = read_object(event.data) or {}
        for holder in (document, document.get("message"), document.get("response")):
            name = text_of(holder.get("model") or holder.get("modelVersion")) if isinstance(holder, dict) else ""
            if name:
                return name
    return ""
