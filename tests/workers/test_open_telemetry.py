"""The tracer of OpenTelemetry with a faulty collector."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator
from time import monotonic

import pytest

from domain.kernel.cause import Cause
from projections.kernel.tracing import UNTRACED, trace_parents, within
from tests.support.waiting import until
from workers.adapters.open_telemetry import OpenTelemetryTracer

SECRET = "secret-of-the-collector"
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    """Run a server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def tracer(monkeypatch: pytest.MonkeyPatch, port: int) -> OpenTelemetryTracer:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://user:{SECRET}@127.0.0.1:{port}/{SECRET}")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", f"authorization={SECRET}")
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
    return OpenTelemetryTracer(version="1", instance="here:1", collector=f"http://127.0.0.1:{port}", seconds=0.2)


async def test_a_collector_that_never_answers_keeps_nobody(
    monkeypatch: pytest.MonkeyPatch, silent: socket.socket, caplog: pytest.LogCaptureFixture
) -> None:
    made = tracer(monkeypatch, silent.getsockname()[1])
    begun = monotonic()
    for _ in range(5_000):  # more than the queue holds
        with made.span("append", parent=PARENT):
            pass
    await made.stop()
    assert monotonic() - begun < 8, "less than the exporter waits for an answer"
    assert "the last spans could not be sent" in caplog.text
    assert SECRET not in caplog.text


async def test_a_collector_that_is_gone_is_told_once_without_its_secrets(
    monkeypatch: pytest.MonkeyPatch, silent: socket.socket, caplog: pytest.LogCaptureFixture
) -> None:
    port = silent.getsockname()[1]
    silent.close()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.1")
    made = tracer(monkeypatch, port)
    with caplog.at_level(logging.INFO):
        for _ in range(2):
            with pytest.raises(ValueError, match=SECRET), made.span("append", parent=None):
                raise ValueError(SECRET)
            until(lambda: "does not accept spans" in caplog.text)
        await made.stop()
    assert caplog.text.count(f"the collector at http://127.0.0.1:{port} does not accept spans") == 1
    assert SECRET not in caplog.text


async def test_a_trace_that_is_not_recorded_stays_so(monkeypatch: pytest.MonkeyPatch, silent: socket.socket) -> None:
    made = tracer(monkeypatch, silent.getsockname()[1])
    with made.span("append", parent=f"{PARENT[:-2]}00") as span:
        context = span.child_context(None)
    assert context is not None
    assert context.startswith(PARENT[:36])
    assert context.endswith("-00")
    assert made.consumer_context("webhooks", None) is None
    first, other = made.consumer_context("webhooks", context), made.consumer_context("callback", context)
    assert first == made.consumer_context("webhooks", context) != other
    await made.stop()


def test_without_a_tracer_a_trace_is_passed_on() -> None:
    cause = Cause.by("test", trace_parent=PARENT)
    with UNTRACED.span("append", parent=PARENT) as span:
        assert within(span, cause) is cause
    assert UNTRACED.consumer_context("webhooks", PARENT) == PARENT
    assert trace_parents(['{"trace_parent":"a"}', '{"actor":"\\"trace_parent\\""}', '{"trace_parent":"a"}']) == ["a"]
