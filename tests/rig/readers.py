"""Whether those are installed who read what telemetry says: Prometheus' client and OpenTelemetry's own types."""

from __future__ import annotations

import importlib.util


def _is_there(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:
        return False


ARE_THERE = _is_there("prometheus_client") and _is_there("opentelemetry.proto")
