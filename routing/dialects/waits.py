"""How long a provider wishes to be left alone, as its headers or the body of its error say.

1. Nothing here raises.
2. A wait is between 0 and a day, or not said at all: infinite, negative and odd numbers say nothing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from ..values import JsonObject
from .fields import list_of, object_of

_LONGEST_WAIT_S = 86400.0
_NUMBER = re.compile(r"\s*[0-9]{1,18}(?:\.[0-9]{0,18})?\s*", re.ASCII)
_LONGEST_VALUE = 64
"""No number or date in a header is longer."""
_DURATION = re.compile(
    r"(\d{1,9}(?:\.\d{1,18})?)(?![\d.])\s*(ms|milliseconds?|d|days?|h|hours?|m|minutes?|mins?|s|seconds?|secs?)?(?![a-z])",
    re.IGNORECASE | re.ASCII,
)
_UNIT_S = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "": 1.0}
_WAIT_TEXT = re.compile(
    r"(?:try again|retry|retrying|resets?|available)(?: your request)?(?: again)? (?:in|after) "
    r"((?:\d{1,9}(?:\.\d{1,9})?\s?(?:ms|milliseconds?|days?|hours?|minutes?|mins?|seconds?|secs?|[dhms])[ ,]{0,2}){1,4})",
    re.IGNORECASE,
)


def wait_of(status: int, headers: Mapping[str, str], error: JsonObject, message: str, now: float | None) -> float | None:
    """The provider's own wish, the most exact one first."""
    metadata = object_of(object_of(error.get("metadata")).get("headers"))
    if metadata:
        headers = {**{name.lower(): str(value) for name, value in list(metadata.items())[:50]}, **headers}
    found = _after_header(headers, now)
    if found is None:
        found = _google_wait(error, now)
    if found is None and status in (402, 403, 429):
        found = _body_reset(error, now)
    if found is None and status in (408, 425, 429, 500, 502, 503, 504, 529):
        match = _WAIT_TEXT.search(message)
        found = read_duration(match[1]) if match else None
    if found is None and status in (402, 403, 429):
        found = _reset_headers(headers, now)
    return found


def read_duration(text: str) -> float | None:
    """`12`, `1.5s`, `20ms`, `6m0s`, `1h2m3.5s`, `2 minutes`."""
    total, place, text = 0.0, 0, text.strip(" .,")[:100]
    while place < len(text):
        found = _DURATION.match(text, place)
        if found is None:
            return None
        unit = (found[2] or "").lower()
        total += float(found[1]) * (0.001 if unit.startswith(("ms", "milli")) else _UNIT_S[unit[:1]])
        place = found.end()
        while place < len(text) and text[place] in " ,":
            place += 1
    return _bounded(total) if text else None


def _bounded(seconds: float) -> float | None:
    return min(max(seconds, 0.0), _LONGEST_WAIT_S) if math.isfinite(seconds) else None


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    if isinstance(value, str) and (len(value) > _LONGEST_VALUE or _NUMBER.fullmatch(value) is None):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _until(value: object, now: float | None) -> float | None:
    """Seconds until a moment: epoch (s or ms), RFC 3339, or a plain duration."""
    number = _number(value)
    if number is not None:
        if number < 1e9:
            return _bounded(number) if number >= 0 else None
        return None if now is None else _bounded((number / 1000 if number > 1e11 else number) - now)
    if not isinstance(value, str):
        return None
    if (seconds := read_duration(value)) is not None:
        return seconds
    try:
        moment = _epoch(datetime.fromisoformat(value.strip()))
    except (ValueError, OverflowError, OSError):
        return None
    return None if now is None else _bounded(moment - now)


def _epoch(moment: datetime) -> float:
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _after_header(headers: Mapping[str, str], now: float | None) -> float | None:
    if (milliseconds := _number(headers.get("retry-after-ms"))) is not None:
        return _bounded(milliseconds / 1000)
    value = headers.get("retry-after", "")
    if not value or len(value) > _LONGEST_VALUE:
        return None
    if (seconds := _number(value)) is not None:
        return _bounded(seconds)
    try:
        moment = _epoch(parsedate_to_datetime(value))
    except (ValueError, TypeError, OverflowError, IndexError, OSError):
        return _until(value, now)
    return None if now is None else _bounded(moment - now)


def _google_wait(error: JsonObject, now: float | None) -> float | None:
    for item in list_of(error.get("details"))[:20]:
        detail = object_of(item)
        delay = detail.get("retryDelay")
        if isinstance(delay, dict):
            seconds, nanos = _number(delay.get("seconds")) or 0.0, _number(delay.get("nanos")) or 0.0
            return _bounded(seconds + nanos / 1e9) if seconds >= 0 else None
        metadata = object_of(detail.get("metadata"))
        for value in (delay, metadata.get("quotaResetDelay"), metadata.get("quotaResetTimeStamp")):
            if isinstance(value, str) and (found := _until(value, now)) is not None:
                return found
    return None


def _body_reset(error: JsonObject, now: float | None) -> float | None:
    for name in ("resets_in_seconds", "retry_after", "retry_after_seconds", "resets_at", "reset_at"):
        if (found := _until(error.get(name), now)) is not None:
            return found
    return None


def _reset_headers(headers: Mapping[str, str], now: float | None) -> float | None:
    """The latest reset among the limits that are used up; among all of them where none says what remains."""
    spent: list[float] = []
    open_: list[float] = []
    for name, value in headers.items():
        if "ratelimit" not in name or "reset" not in name:
            continue
        seconds = _until(value, now)
        if seconds is None:
            continue
        remaining = _number(headers.get(name.replace("reset", "remaining")))
        if remaining == 0:
            spent.append(seconds)
        elif remaining is None:
            open_.append(seconds)
    return max(spent or open_, default=None)
