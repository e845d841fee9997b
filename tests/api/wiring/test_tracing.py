"""Settings from the variables of OpenTelemetry."""

from __future__ import annotations

import pytest

from api.wiring.settings import Settings
from api.wiring.tracing import tracer, tracing
from projections.kernel.tracing import UNTRACED

ON = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}
TRACES = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"


@pytest.mark.parametrize(
    ("variables", "collector"),
    [
        (ON, "http://collector:4318"),
        ({TRACES: "https://user:secret@[::1]:4318/secret?key=secret"}, "https://[::1]:4318"),
        (ON | {TRACES: "http://other/v1/traces"}, "http://other"),
        (ON | {"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}, "http://collector:4318"),
        (
            ON | {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf"},
            "http://collector:4318",
        ),
    ],
)
def test_an_address_turns_traces_on(variables: dict[str, str], collector: str) -> None:
    asked = tracing(variables)
    assert (asked.on, asked.collector, asked.problem) == (True, collector, "")


@pytest.mark.parametrize(
    "variables",
    [{}, {"OTEL_EXPORTER_OTLP_ENDPOINT": " "}, ON | {"OTEL_SDK_DISABLED": "TRUE"}, ON | {"OTEL_TRACES_EXPORTER": "none"}],
)
def test_traces_are_off(variables: dict[str, str]) -> None:
    asked = tracing(variables)
    assert (asked.on, asked.problem) == (False, "")
    assert tracer(asked) is UNTRACED


@pytest.mark.parametrize(
    ("variables", "word"),
    [
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "collector:4318"}, "URL"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://secret:port"}, "URL"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://[secret"}, "URL"),
        (ON | {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "http/protobuf"),
        (ON | {"OTEL_TRACES_EXPORTER": "zipkin"}, "otlp"),
    ],
)
def test_what_is_wrong_is_said_and_stops_nothing(variables: dict[str, str], word: str, caplog: pytest.LogCaptureFixture) -> None:
    asked = Settings.from_env(variables).tracing
    assert not asked.on
    assert word in asked.problem
    assert tracer(asked) is UNTRACED
    assert word in caplog.text
    assert "secret" not in caplog.text + asked.problem + asked.collector
