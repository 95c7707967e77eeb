"""OTLP as JSON: a span for each call with its requests to providers below it, and what was counted.

1. Ids are written in hex and 64-bit numbers as text, as OTLP's JSON wants them.
2. Tokens stand on the requests alone: who adds up a trace counts none twice.
3. Content stands nowhere unless it was asked for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b

from ..jsonbytes import dumps
from ..values import JsonObject
from .meter import Buckets, Meter, Named, labels_of
from .seen import Asked, Seen

SCHEMA = "https://opentelemetry.io/schemas/1.42.0"
_SERVER, _CLIENT = 2, 3
_ERROR = 2
_UUID = re.compile(r"[0-9a-f]{32}")
_CUMULATIVE = 2
_NANO = 1_000_000_000

Value = str | int | float | bool | Sequence[str]


def traces(calls: Iterable[Seen], resource: Mapping[str, Value]) -> bytes:
    spans = [span for seen in calls for span in _spans(seen)]
    scope = {"scope": {"name": "routecodex"}, "spans": spans, "schemaUrl": SCHEMA}
    return dumps({"resourceSpans": [{"resource": {"attributes": _attributes(resource)}, "scopeSpans": [scope]}]})


def metrics(meter: Meter, resource: Mapping[str, Value], began: float, now: float) -> bytes:
    """Since the start (`began` and `now`: epoch seconds)."""
    times: JsonObject = {"startTimeUnixNano": _nanos(began), "timeUnixNano": _nanos(now)}
    told: list[JsonObject] = []
    for named, counts in meter.counts():
        points = [{**times, "attributes": _attributes(dict(labels)), "asDouble": value} for labels, value in counts.items()]
        data: JsonObject = {"dataPoints": points, "aggregationTemporality": _CUMULATIVE, "isMonotonic": True}
        told.append({**_named(named), "sum": data})
    for named, series in meter.histograms():
        found = [{**times, "attributes": _attributes(dict(labels)), **_buckets(one)} for labels, one in series.items()]
        told.append({**_named(named), "histogram": {"dataPoints": found, "aggregationTemporality": _CUMULATIVE}})
    scope = {"scope": {"name": "routecodex"}, "metrics": told, "schemaUrl": SCHEMA}
    return dumps({"resourceMetrics": [{"resource": {"attributes": _attributes(resource)}, "scopeMetrics": [scope]}]})


def _named(named: Named) -> JsonObject:
    return {"name": named.name, "unit": named.unit, "description": named.help}


def _buckets(buckets: Buckets) -> JsonObject:
    return {
        "count": str(sum(buckets.counts)),
        "sum": buckets.sum,
        "bucketCounts": [str(count) for count in buckets.counts],
        "explicitBounds": list(buckets.bounds),
    }


def _spans(seen: Seen) -> Iterator[JsonObject]:
    plain = seen.call.replace("-", "")
    trace = plain if _UUID.fullmatch(plain) else blake2b(seen.call.encode(), digest_size=16).hexdigest()
    root = _id(seen.call, "call")
    about: dict[str, Value] = {
        "gen_ai.conversation.id": seen.session,
        "gen_ai.request.model": seen.model,
        "routecodex.call": seen.call,
        "routecodex.client": seen.client,
        "user.name": seen.user,
        "routecodex.rounds": len([asked for asked in seen.asked if not asked.error]),
        "routecodex.attempts": len(seen.asked),
        "routecodex.reminders": seen.reminders,
        "routecodex.refused": seen.code,
    }
    if seen.first:
        about["routecodex.time_to_first_byte"] = seen.first - seen.at
    if seen.typed:
        said = [{"role": "user", "parts": [{"type": "text", "content": seen.typed}]}]
        about["gen_ai.input.messages"] = json.dumps(said, ensure_ascii=False)
    bad = not seen.status.startswith("2") or "," in seen.status
    yield _span(
        seen, trace, root, "", f"call {seen.model}".strip(), _SERVER, seen.at, seen.ended, about, seen.status if bad else ""
    )
    for number, asked in enumerate(seen.asked):
        labels: dict[str, Value] = {**labels_of(seen, asked), **_usage(asked)}
        labels["server.port"] = int(str(labels["server.port"]))
        labels |= {"gen_ai.conversation.id": seen.session, "routecodex.round": asked.name}
        labels |= {"routecodex.provider": asked.target.provider, "routecodex.key": asked.target.key}
        name = f"{labels['gen_ai.operation.name']} {labels['gen_ai.response.model']}"
        yield _span(seen, trace, _id(seen.call, str(number)), root, name, _CLIENT, asked.at, asked.ended, labels, asked.error)


def _usage(asked: Asked) -> dict[str, Value]:
    tokens = asked.tokens
    if tokens is None:
        return {}
    told: dict[str, Value] = {
        "gen_ai.usage.input_tokens": tokens.input,
        "gen_ai.usage.output_tokens": tokens.output,
        "gen_ai.usage.cache_read.input_tokens": tokens.cached,
        "gen_ai.usage.cache_write.input_tokens": tokens.written,
        "gen_ai.usage.cache_creation.input_tokens": tokens.written,
        "gen_ai.usage.reasoning.output_tokens": tokens.reasoning,
    }
    return {name: value for name, value in told.items() if value or name.count(".") == 2}


def _span(
    seen: Seen,
    trace: str,
    id: str,
    parent: str,
    name: str,
    kind: int,
    at: float,
    ended: float,
    about: Mapping[str, Value],
    error: str,
) -> JsonObject:
    wall = seen.wall - seen.at
    span: JsonObject = {"traceId": trace, "spanId": id, "name": name, "kind": kind}
    if parent:
        span["parentSpanId"] = parent
    span |= {"startTimeUnixNano": _nanos(wall + at), "endTimeUnixNano": _nanos(wall + ended)}
    span["attributes"] = _attributes({**about, **({"error.type": error} if error else {})})
    span["status"] = {"code": _ERROR, "message": error} if error else {}
    return span


def _id(call: str, what: str) -> str:
    return blake2b(f"{call} {what}".encode(), digest_size=8).hexdigest()


def _nanos(seconds: float) -> str:
    return str(int(seconds * _NANO))


def _attributes(told: Mapping[str, Value]) -> list[JsonObject]:
    return [{"key": key, "value": _value(value)} for key, value in told.items() if value != ""]


def _value(value: Value) -> JsonObject:
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case str():
            return {"stringValue": value.encode("utf-8", "replace").decode()}
        case _:
            return {"arrayValue": {"values": [_value(one) for one in value]}}
