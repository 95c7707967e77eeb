"""Prometheus' own reader reads what is told."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from routecodex.routing.telemetry import meter
from routecodex.routing.telemetry.exposition import text
from routecodex.routing.telemetry.meter import Meter
from tests.routing.telemetry.calls import seen


def samples(told: str) -> list[Sample]:
    return [sample for family in text_string_to_metric_families(told) for sample in family.samples]


def value(told: str, name: str, **labels: str) -> float:
    found = [one.value for one in samples(told) if one.name == name and labels.items() <= one.labels.items()]
    return sum(found)


def test_what_is_told_is_what_was_counted() -> None:
    counted = Meter()
    for _ in range(3):
        counted.note(seen())
    counted.note(seen(code="BAD_TAG", asked=[], reminders=0, first=0.0))
    told = text(counted, {meter.RESTING: {(("key", "k1"), ("provider", "glm")): 1.0}})
    families = {family.name: family.type for family in text_string_to_metric_families(told)}
    assert families["gen_ai_client_token_usage"] == "histogram"
    assert families["gen_ai_client_operation_duration_seconds"] == "histogram"
    for kind, tokens in (("input", 3000), ("output", 150)):
        about = {"gen_ai_token_type": kind, "gen_ai_provider_name": "openai", "server_address": "api.openai.com"}
        assert value(told, "gen_ai_client_token_usage_sum", **about) == tokens
        assert value(told, "gen_ai_client_token_usage_count", gen_ai_request_model='claude "x"\\\n', **about) == 3
    assert value(told, "gen_ai_client_token_usage_bucket", le="1024", gen_ai_token_type="input") == 3
    assert value(told, "gen_ai_client_token_usage_bucket", le="256", gen_ai_token_type="input") == 0
    assert value(told, "routecodex_attempts_total", provider="glm", outcome="429") == 3
    assert value(told, "routecodex_attempts_total", provider="openai", outcome="answered") == 6
    assert value(told, "routecodex_failovers_total", **{"from": "glm", "to": "openai"}) == 3
    assert value(told, "routecodex_rounds_total", reason="stop_followup") == 3
    assert value(told, "routecodex_reminders_total") == 6
    assert value(told, "routecodex_rests_total") == 4
    assert value(told, "routecodex_rest_time_seconds_total") == 1
    assert value(told, "routecodex_refused_total", code="BAD_TAG") == 1
    assert value(told, "routecodex_time_to_first_byte_seconds_sum") == 3
    assert value(told, "routecodex_key_resting", provider="glm") == 1
    assert value(told, "gen_ai_client_operation_duration_seconds_bucket", le="0.64", error_type="429") == 3


def test_names_from_outside_are_bounded() -> None:
    counted = Meter()
    for number in range(meter.MOST_SERIES + 500):
        counted.count(meter.CALLS, {"client": f"tool {number}", "status": "200"})
    found = [one for one in samples(text(counted)) if one.name == "routecodex_calls_total"]
    assert len(found) == meter.MOST_SERIES + 1
    assert value(text(counted), "routecodex_calls_total", client="other") == 500
