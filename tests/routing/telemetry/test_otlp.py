"""OpenTelemetry's own types hold what is sent."""

from __future__ import annotations

import base64
import json
from typing import Any

from google.protobuf import json_format
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from routecodex.routing.telemetry import names, otlp
from routecodex.routing.telemetry.meter import Meter
from routecodex.routing.values import Dialect
from tests.routing.telemetry.calls import CALL, seen


def read_spans(raw: bytes) -> Any:
    """OTLP writes ids in hex where the JSON of its own types has base64."""
    told = json.loads(raw)
    for resource in told["resourceSpans"]:
        for span in (span for scope in resource["scopeSpans"] for span in scope["spans"]):
            for name in ("traceId", "spanId", "parentSpanId"):
                if name in span:
                    span[name] = base64.b64encode(bytes.fromhex(span[name])).decode()
    return json_format.ParseDict(told, ExportTraceServiceRequest())


def attributes(one: Any) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in one.attributes}


def test_a_call_is_a_span_and_its_requests_are_its_children() -> None:
    told = read_spans(otlp.traces([seen()], {"service.name": "routecodex"}))
    (resource,) = told.resource_spans
    assert attributes(resource.resource) == {"service.name": "routecodex"}
    (scope,) = resource.scope_spans
    assert scope.schema_url.endswith("/1.42.0")
    call, *rounds = scope.spans
    assert {span.trace_id.hex() for span in scope.spans} == {CALL.replace("-", "")}
    assert call.parent_span_id == b""
    assert {span.parent_span_id for span in rounds} == {call.span_id}
    assert len({span.span_id for span in scope.spans}) == 4
    assert [span.kind for span in scope.spans] == [Span.SPAN_KIND_SERVER, *[Span.SPAN_KIND_CLIENT] * 3]
    about = attributes(call)
    assert (about["routecodex.reminders"], about["routecodex.attempts"], about["user.name"]) == (2, 3, "alice")
    assert about["gen_ai.conversation.id"] == "@alice:s"
    assert "gen_ai.input.messages" not in about
    assert not [name for name in about if name.startswith("gen_ai.usage")], "who adds up a trace counts nothing twice"
    failed, answered, followed = map(attributes, rounds)
    assert (failed["error.type"], rounds[0].status.code) == ("429", 2)
    assert (failed["gen_ai.provider.name"], failed["server.port"]) == ("glm", 8081)
    assert (answered["gen_ai.provider.name"], answered["gen_ai.operation.name"], rounds[1].name) == (
        "openai",
        "chat",
        "chat gpt-5.2",
    )
    assert answered["gen_ai.usage.input_tokens"] == 1000
    assert answered["gen_ai.usage.cache_read.input_tokens"] == 600
    assert answered["gen_ai.usage.cache_write.input_tokens"] == answered["gen_ai.usage.cache_creation.input_tokens"] == 100
    assert answered["gen_ai.usage.reasoning.output_tokens"] == 20
    assert "gen_ai.usage.input_tokens" not in followed
    assert followed["routecodex.round"] == "round 2:stop_followup"
    times = [(span.start_time_unix_nano // 10**8, span.end_time_unix_nano // 10**8) for span in scope.spans]
    began = 1_780_000_000_0
    assert [(start - began, end - began) for start, end in times] == [(0, 40), (1, 5), (5, 20), (20, 40)]


def test_content_only_where_it_was_kept_and_errors_are_errors() -> None:
    call = (
        read_spans(otlp.traces([seen(typed="hello \ud800", status="the tool left")], {}))
        .resource_spans[0]
        .scope_spans[0]
        .spans[0]
    )
    (said,) = json.loads(attributes(call)["gen_ai.input.messages"])
    assert said == {"role": "user", "parts": [{"type": "text", "content": "hello ?"}]}
    refused = seen(call="", asked=[])
    refused.over("400", 100.5)
    (only,) = read_spans(otlp.traces([refused], {})).resource_spans[0].scope_spans[0].spans
    assert (only.status.code, attributes(only)["error.type"]) == (2, "400")


def test_numbers() -> None:
    counted = Meter()
    counted.note(seen())
    told = json_format.ParseDict(json.loads(otlp.metrics(counted, {}, 1.0, 2.0)), ExportMetricsServiceRequest())
    found = {metric.name: metric for metric in told.resource_metrics[0].scope_metrics[0].metrics}
    usage = found["gen_ai.client.token.usage"]
    assert usage.unit == "{token}"
    points = {attributes(point)["gen_ai.token.type"]: point for point in usage.histogram.data_points}
    assert (points["input"].sum, points["output"].sum, points["input"].count) == (1000, 50, 1)
    assert len(points["input"].bucket_counts) == len(points["input"].explicit_bounds) + 1 == 15
    assert found["routecodex.failovers"].sum.is_monotonic
    assert found["gen_ai.client.operation.duration"].histogram.aggregation_temporality == 2


def test_well_known_names() -> None:
    for url, name in (
        ("https://api.anthropic.com/v1/messages", "anthropic"),
        ("https://x.openai.azure.com/openai", "azure.ai.openai"),
        ("https://notx.ai/v1", "mine"),
        ("https://api.x.ai/v1", "x_ai"),
        ("http://127.0.0.1:11434/v1", "mine"),
    ):
        assert names.provider_name(url, "mine") == name
    assert (names.operation_of(Dialect.GEMINI), names.operation_of(Dialect.MESSAGES)) == ("generate_content", "chat")
