"""Answers of token counts: what is no answer of a model passes as it came, unless it says that it failed."""

from __future__ import annotations

from typing import ClassVar

from ...values import Dialect, JsonObject
from ..failures import failure_inside
from ..fields import object_of
from .events import Began, Done, Event, Failed, Field


class Reader:
    ARRAYS: ClassVar[bool] = False
    LOUD: ClassVar[tuple[bytes, ...]] = ()
    CALLS: ClassVar[tuple[bytes, ...]] = ()

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect

    def read(self, document: JsonObject, name: str = "") -> list[Event]:
        return [Field("", document)]

    def read_word(self, data: bytes) -> list[Event]:
        return [Field("", None)]

    def read_whole(self, document: JsonObject) -> list[Event]:
        error = failure_inside(object_of(document.get("response")) or document)
        return [Failed(error)] if error is not None else [Began("", ""), Field("", document), Done()]
