from __future__ import annotations

import asyncio
import threading

import pytest

from routecodex.addons import cache_losses
from routecodex.addons.cache_losses import CacheLosses
from routecodex.routing.usage.flight import Flown, Loss, Suspicion
from routecodex.routing.usage.prices import Price
from routecodex.routing.usage.spending import Spent
from tests.routing.usage.test_flight import COLD, flown, messages_body
from tests.routing.usage.test_ledger import row


def _calls(told: list[Loss], conversation: str = "c", *, tokens: object = COLD) -> tuple[Spent, Spent]:
    """A call, and the next one, which begins in another way."""
    body, other = messages_body(), messages_body()
    other["system"][0]["text"] = "another day"
    flowns: list[Flown] = [flown(body, conversation=conversation), flown(other, tokens=tokens, conversation=conversation)]
    first, second = (Spent(row(call=f"{conversation} {at}"), "", one, told.append) for at, one in enumerate(flowns))
    return first, second


def test_a_lost_cache_is_told_with_what_it_cost_before_its_verdict_is_over() -> None:
    told: list[Loss] = []
    losses = CacheLosses(lambda one, url: Price(input=10, output=1, cached=1))

    async def play() -> None:
        first, second = _calls(told)
        losses.hear(first)
        assert losses.verdict(first.row.call) is None, "nothing to wait for: its counts are well"
        losses.hear(second)
        assert losses.verdict("another call") is None
        verdict = losses.verdict(second.row.call)
        assert verdict is not None
        await verdict
        assert losses.verdict(second.row.call) is None

    asyncio.run(play())
    (loss,) = told
    told = "the cache was lost: instructions, part 1 changed, by the tool; 29,900 tokens were read anew ($0.27)"
    assert str(loss) == f"{told}; “billing” became “another day”"


def test_of_too_many_at_once_some_are_not_looked_into(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Loss] = []
    losses, goes_on = CacheLosses(lambda one, url: None), threading.Event()
    find = Suspicion.loss
    monkeypatch.setattr(Suspicion, "loss", lambda one: goes_on.wait(60) and find(one))

    async def play() -> None:
        for at in range(cache_losses._MOST + 5):
            for spent in _calls(told, f"c{at}"):
                losses.hear(spent)
        waits = [verdict for at in range(cache_losses._MOST + 5) if (verdict := losses.verdict(f"c{at} 1")) is not None]
        goes_on.set()
        await asyncio.gather(*waits)
        assert len(waits) == cache_losses._MOST
        assert not losses._open

    asyncio.run(play())
    assert len(told) == cache_losses._MOST


def test_what_cannot_be_compared_harms_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: Suspicion) -> Loss:
        raise ValueError

    losses = CacheLosses(lambda one, url: None)
    monkeypatch.setattr(Suspicion, "loss", fails)

    async def play() -> None:
        first, second = _calls([])
        losses.hear(first)
        losses.hear(second)
        verdict = losses.verdict(second.row.call)
        assert verdict is not None
        await verdict

    asyncio.run(play())
