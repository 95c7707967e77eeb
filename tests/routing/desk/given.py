"""Providers that the desk's tests have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.routing.house import House, provider_text

Build = Callable[..., House]

TWO_KEYS = provider_text("two", "a b", "m")
BLIND = provider_text("blind", "k", "m", "vision: false")
SMALL = provider_text("small", "k", "m", "maxContext: 1000")
OWN = """
    own:
      protocol: anthropic-messages
      baseURL: https://own.example
      auth: {type: client}
      models: {m: {}}"""


def keys(handled: list[Any]) -> list[str]:
    return [one.plan.target.key for one in handled]
