"""Every way this program says no, by whose fault it is.

Bytes from outside give a value or one of these, never another exception.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import SequenceMatcher
from heapq import nlargest


class RouteCodexError(Exception):
    """The base: a sentence for the person, a code for programs, a status for HTTP."""

    status = 400
    code = "ROUTECODEX_ERROR"
    passes_in_s: int | None = None
    """Soon it will be well again: some clients may be told to ask once more then."""

    def __init__(self, message: str, *, details: Mapping[str, object] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.details: dict[str, object] = dict(details or {})


class BadCall(RouteCodexError):
    """The client's request cannot be read."""

    code = "BAD_REQUEST"


class TooLarge(BadCall):
    """The client's request is larger than we read."""

    status = 413
    code = "REQUEST_TOO_LARGE"


class BadAnswer(RouteCodexError):
    """The provider's answer cannot be read."""

    status = 502
    code = "BAD_ANSWER"


class NoTarget(RouteCodexError):
    """What was asked for cannot be reached: unknown, disabled, or unhealthy."""

    code = "PROVIDER_NOT_AVAILABLE"


class Resting(NoTarget):
    """Every key that could serve the call rests: it is worth asking again when the first of them is back."""

    def __init__(self, name: str, seconds: float, *, requested: bool) -> None:
        """`requested`: somebody named it; else it is what the routes lead to."""
        super().__init__(
            f"Requested provider {name} is not available (health check failed)"
            if requested
            else f"No key that could answer is ready: {name} is not available (health check failed)",
            details={"provider": name, "reason": "unhealthy", "retryAfterMs": int(seconds * 1000)},
        )
        self.seconds = seconds
        """Until then."""


class NoSuchAnswer(RouteCodexError):
    """The call goes on from an answer that this person was not given."""

    code = "previous_response_not_found"


class ClientLeft(RouteCodexError):
    """Nobody waits for the answer any more: what the call asks for is not begun."""

    status = 499
    code = "CLIENT_LEFT"


class KeysWithheld(RouteCodexError):
    """There is a target, but its key is not safe here."""

    code = "KEYS_WITHHELD"


class ConfigError(RouteCodexError):
    """The configuration is wrong, or asks for something it does not hold."""

    code = "CONFIG_ERROR"


class StoreError(RouteCodexError):
    """A session's state could not be read or written."""

    status = 500
    code = "STORE_ERROR"


class Locked(StoreError):
    """Another process holds a session's file."""

    status = 400
    code = "SESSION_LOCKED"
    passes_in_s = 2


_HINTS = 3
_LONGEST_COMPARED = 200


def nearest(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """The known names that look most like this one. Case counts in names, but not in what is near."""
    nearness = SequenceMatcher(b=name.casefold()[:_LONGEST_COMPARED], autojunk=False)

    def near(candidate: str) -> float:
        nearness.set_seq1(candidate.casefold()[:_LONGEST_COMPARED])
        return nearness.ratio()

    return tuple(nlargest(_HINTS, dict.fromkeys(known), key=near))


EXAMPLES = ("anthropic", "openai", "glm", "deepseek", "openrouter", "gemini", "local")
"""Providers that the shipped configuration holds as examples, not in force."""


def not_found(name: str, *, known: tuple[str, ...] = ()) -> NoTarget:
    hint = f" (nearest known: {', '.join(known)})" if known else ""
    provider = name.partition(".")[0]
    if provider in EXAMPLES and not any(one.partition(".")[0] == provider for one in known):
        hint = f"; it stands in the shipped configuration as an example: `routecodex provider add {provider}`"
    return NoTarget(f"Requested provider {name} not found in provider registry{hint}", details={"provider": name})


def disabled(name: str, why: str = "") -> NoTarget:
    """`why`: what the configuration says to it; where it says nothing, somebody has switched it off."""
    because = why or f"<**@{name}**> switches it on again"
    return NoTarget(f"Requested provider {name} is disabled: {because}", details={"provider": name, "reason": "disabled"})


def not_for_you(name: str, why: str) -> NoTarget:
    return NoTarget(f"Requested provider {name} cannot be used: {why}", details={"provider": name, "reason": "user"})


def unhealthy(name: str, why: str = "") -> NoTarget:
    return NoTarget(
        f"Requested provider {name} is not available (health check failed){f': {why}' if why else ''}",
        details={"provider": name, "reason": "unhealthy"},
    )
