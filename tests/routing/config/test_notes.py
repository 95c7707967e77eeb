"""What stands in messages about a file, and what never does."""

from __future__ import annotations

import pytest

from routecodex.routing.config.notes import Notes
from routecodex.routing.config.source import parse


@pytest.mark.parametrize(
    "secret, shown",
    [
        ("abcde", 'not "abcde"'),  # a word so short would be masked wherever it means something else
        ("abcdef", 'not "***"'),
        ("abcdefg", 'not "***"'),
        ("${ABCDEF}", 'not "${ABCDEF}"'),
    ],
)
def test_how_short_a_credential_may_be(secret: str, shown: str) -> None:
    notes = Notes("file.yaml", parse("a: 1\n", name="file.yaml"))
    notes.hide(secret)
    notes.refuse((), f"not {notes.quote(secret)}")
    assert notes.error().message == f"file.yaml:1: {shown}"
