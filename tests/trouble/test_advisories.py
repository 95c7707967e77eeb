"""F7: which published weaknesses stand in what is installed. Known ones only: nothing is looked up in a network.

Python 3.11 finds no mitmproxy later than 11.0.2, whose pins hold these back; with 3.12 and later there are none.
"""

from __future__ import annotations

import importlib.metadata
import re
import sys

FIXED_IN: dict[tuple[str, str], str] = {
    ("mitmproxy", "CVE-2025-23217"): "11.1.2",
    ("h11", "CVE-2025-43859"): "0.16.0",
    ("h2", "CVE-2025-57804"): "4.3.0",
    ("tornado", "CVE-2025-47287"): "6.5",
    ("tornado", "CVE-2025-67725"): "6.5.3",
    ("tornado", "CVE-2025-67726"): "6.5.3",
    ("brotli", "CVE-2025-6176"): "1.2.0",
    ("flask", "CVE-2025-47278"): "3.1.1",
    ("werkzeug", "CVE-2025-66221"): "3.1.4",
    ("pyasn1", "CVE-2026-23490"): "0.6.2",
}
HELD_BACK = {"mitmproxy", "h11", "h2", "tornado", "brotli", "flask"}


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def test_what_is_installed() -> None:
    weak = {package for (package, _), fixed in FIXED_IN.items() if _number(importlib.metadata.version(package)) < _number(fixed)}
    print(f"{len(FIXED_IN)} advisories looked at; affected: {', '.join(sorted(weak)) or 'nothing'}")
    assert weak == (HELD_BACK if sys.version_info < (3, 12) else set())
