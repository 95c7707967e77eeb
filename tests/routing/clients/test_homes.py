"""What programs expect that were made for one host."""

from __future__ import annotations

import pytest

from routecodex.routing.clients.homes import tells_cost, tells_whole_calls
from routecodex.routing.clients.identify import takes_whole_calls


@pytest.mark.parametrize("host", ["api.mistral.ai", "codestral.mistral.ai", "api.x.ai", "open.bigmodel.cn", "api.z.ai"])
def test_hosts_that_tell_calls_whole(host: str) -> None:
    assert tells_whole_calls(host)
    assert takes_whole_calls("opencode", host)
    assert not tells_cost(host)


@pytest.mark.parametrize("host", ["openrouter.ai", "api.cerebras.ai"])
def test_hosts_that_tell_the_cost_unasked(host: str) -> None:
    assert tells_cost(host)
    assert not tells_whole_calls(host)


@pytest.mark.parametrize("host", ["api.openai.com", "proxai.example", "x.ai.example", "notmistral.ai", ""])
def test_others(host: str) -> None:
    assert not tells_cost(host)
    assert not tells_whole_calls(host)
    assert not takes_whole_calls("opencode", host)
    assert takes_whole_calls("mistral-client-python", host)
    assert takes_whole_calls("vibe", host)
