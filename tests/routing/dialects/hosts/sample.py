"""One answer of a host, and what a client must see of it, in whatever dialect it asked.

Written after what hosts are known to send; nothing here was recorded. Each names its host and the one trait it stands for.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from routecodex.routing.values import Dialect, Endpoint, FinishReason

Form = Literal["stream", "json"]
Document = dict[str, Any]
CUT = "cut"
"""The error of a stream that broke off: whoever hears it finds the words."""


@dataclass(frozen=True)
class Expected:
    """What is said, whatever the dialect it is told in."""

    text: str = ""
    thinking: str = ""
    """White space does not count."""
    calls: tuple[tuple[str, Document], ...] = ()
    """Those that the client runs: names and arguments."""
    finish: FinishReason = "stop"
    words: Mapping[Dialect, str] = field(default_factory=dict)
    """Where a client's word is another than the one that `finish` has in its dialect."""
    input: int | None = None
    """Tokens, the cached ones among them; None where the host counts nothing."""
    output: int | None = None
    """The reasoning ones among them."""
    cached: int = 0
    written: int = 0
    reasoning: int = 0
    abroad: str | None = None
    """The text in another dialect, where more has to be told in it."""
    half: bool = False
    """It breaks off in a call: a stream may have shown the beginning, and nobody may take it for a whole one."""
    media: str = ""
    """A picture's bytes: told as such, or named."""
    cited: tuple[str, ...] = ()
    """Addresses of sources. Gemini's clients know only those that Google found."""
    error: str | None = None
    """Words of the error that it is, or ends in."""
    sent: bytes | None = None
    """What a client of the same dialect gets, where it is not the very bytes."""


@dataclass(frozen=True)
class Sample:
    name: str
    host: str
    trait: str
    dialect: Dialect
    form: Form
    raw: bytes
    expected: Expected

    @property
    def endpoint(self) -> Endpoint:
        """Of a client that speaks the host's dialect."""
        stream = self.form == "stream" if self.dialect is Dialect.GEMINI else None
        envelope = self.dialect is Dialect.GEMINI and b'"response"' in self.raw[:40]
        return Endpoint(self.dialect, stream=stream, json_array=self.form == "stream" and self.raw[:1] == b"[", envelope=envelope)


def compact(document: object) -> bytes:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def spaced(document: object) -> bytes:
    """As Python hosts write it."""
    return json.dumps(document).encode()


def sse(documents: Iterable[object], *, named: bool = False, end: bytes = b"\n", space: bytes = b" ") -> bytes:
    """Events of documents; what is bytes already stands as it is."""
    out = []
    for document in documents:
        if isinstance(document, bytes):
            out.append(document)
            continue
        name = b"event:" + space + document["type"].encode() + end if named and isinstance(document, dict) else b""
        out.append(name + b"data:" + space + compact(document) + end + end)
    return b"".join(out)


class Samples(list[Sample]):
    """A table that grows row by row."""

    def __init__(self, dialect: Dialect) -> None:
        super().__init__()
        self._dialect = dialect

    def stream(self, host: str, trait: str, raw: bytes, **expected: Any) -> None:
        self._add(host, trait, "stream", raw, Expected(**expected))

    def whole(self, host: str, trait: str, document: object, **expected: Any) -> None:
        raw = document if isinstance(document, bytes) else compact(document)
        self._add(host, trait, "json", raw, Expected(**expected))

    def _add(self, host: str, trait: str, form: Form, raw: bytes, expected: Expected) -> None:
        self.append(Sample(f"{self._dialect}: {host}: {trait}: {form}", host, trait, self._dialect, form, raw, expected))
