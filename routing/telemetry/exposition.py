"""Prometheus' text of what was counted. Names are OpenTelemetry's in Prometheus' spelling."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from .meter import Labels, Meter, Named

_ENDINGS = {"s": "_seconds", "1": "", "{token}": ""}


def text(meter: Meter, gauges: Mapping[Named, Mapping[Labels, float]] | None = None) -> str:
    return "".join(f"{line}\n" for line in _lines(meter, gauges or {}))


def _lines(meter: Meter, gauges: Mapping[Named, Mapping[Labels, float]]) -> Iterator[str]:
    for named, counts in (*meter.counts(), *gauges.items()):
        name = _name(named)
        yield from _head(name, named)
        for labels, value in counts.items():
            yield f"{name}{_written(labels)} {_number(value)}"
    for named, series in meter.histograms():
        name = _name(named)
        yield from _head(name, named)
        for labels, buckets in series.items():
            so_far = 0
            for bound, count in zip((*map(_number, named.bounds), "+Inf"), buckets.counts, strict=True):
                so_far += count
                yield f"{name}_bucket{_written((*labels, ('le', bound)))} {so_far}"
            yield f"{name}_sum{_written(labels)} {_number(buckets.sum)}"
            yield f"{name}_count{_written(labels)} {so_far}"


def _head(name: str, named: Named) -> Iterator[str]:
    yield f"# HELP {name} {named.help}."
    yield f"# TYPE {name} {named.kind}"


def _name(named: Named) -> str:
    plain = re.sub(r"\W", "_", named.name) + _ENDINGS.get(named.unit, "")
    return f"{plain}_total" if named.kind == "counter" else plain


def _written(labels: Labels) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{re.sub(r"[^a-zA-Z0-9_]", "_", name)}="{_quoted(value)}"' for name, value in labels) + "}"


def _quoted(value: str) -> str:
    plain = value.encode("utf-8", "replace").decode()
    return plain.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)
