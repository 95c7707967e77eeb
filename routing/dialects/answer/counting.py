"""Answers of token counts: what is no answer of a model passes as it came, unless it says that it failed."""

from __future__ import annotations

from ...values import Dialect, JsonObject
from ..failures import failure_inside
from ..fields import object_of
from .events import Began, Done, Event, Failed, Field
from .stream import AnyReader


class Reader(AnyReader):
    def __init__(self, dialect: Dialect) -> None:
        super().__init__()
        self.dialect = dialect

    def read(self, document: JsonObject, name: str = "") -> list[Event]:
        return [Field("", document)]

    def read_whole(self, document: JsonObject) -> list[Event]:
        error = failure_inside(object_of(document.get("response")) or document)
        return [Failed(error)] if error is not None else [Began("", ""), Field("", document), Done()]
