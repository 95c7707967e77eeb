"""What is kept of a round whose provider has repeated its credential over several events."""

from __future__ import annotations

import pytest

from routecodex.routing.dialects.answer.kept import without_echoes
from routecodex.routing.values import Dialect
from tests.rig import wire
from tests.rig.reply import Asked, Reply

SECRET = "sk-echo/Ab3+dE=gH1jK-mN0pQrStUvWxYz"


@pytest.mark.parametrize("dialect", Dialect)
def test_what_is_kept_is_what_was_heard(dialect: Dialect) -> None:
    asked = Asked(dialect, "generate", "m", stream=True)
    raw, plain = (b"".join(wire.events(Reply(text=("your ", *secret, " ends")), asked)) for secret in (SECRET, "***"))
    raw = raw.replace(SECRET.encode(), b"***")  # as it was kept
    kept = without_echoes(raw, dialect, [SECRET])
    assert len(kept) < len(raw)
    assert b"".join(part for part in (b"your ", b"***", b" ends") if part in kept) == b"your *** ends"
    assert kept.count(b"data:") == raw.count(b"data:")
    assert without_echoes(plain, dialect, [SECRET]) == plain


def test_what_nobody_can_read_is_not_kept() -> None:
    assert without_echoes(b"[" * 70_000_000, Dialect.CHAT, [SECRET]) == b""
