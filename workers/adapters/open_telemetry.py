"""The tracer that sends spans to a collector by OTLP over HTTP, with the SDK of OpenTelemetry.

The SDK reads the standard variables OTEL_…: endpoint, headers, sampler, resource, sizes of batches. It sends in a separate thread.
Spans that a collector does not accept in time are lost, and no other work waits for it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from hashlib import blake2b
from threading import Thread
from time import monotonic
from types import TracebackType
from typing import Final, Self

from opentelemetry import trace as otel
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_INSTANCE_ID, SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.id_generator import IdGenerator, RandomIdGenerator
from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from projections.kernel.background_task import REMINDER
from projections.kernel.tracing import NO_ATTRIBUTES, Attributes, Kind, Span

_SECONDS: Final = 3.0
"""The time limit for sending the remaining spans at the end of the process, in seconds."""
_NAME: Final = "medialedger"
_KINDS: Final = {
    "internal": SpanKind.INTERNAL,
    "server": SpanKind.SERVER,
    "client": SpanKind.CLIENT,
    "consumer": SpanKind.CONSUMER,
}
_log = logging.getLogger(__name__)


class OpenTelemetryTracer:
    """The tracer of a process. `collector` names the collector in messages, without secret parts of its address."""

    on = True

    def __init__(self, *, version: str, instance: str, collector: str, seconds: float = _SECONDS) -> None:
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)  # it would repeat each failure, with the address
        self._seconds = seconds
        self._ids = _Ids()
        self._provider = TracerProvider(resource=_resource(version, instance), id_generator=self._ids, shutdown_on_exit=False)
        self._exporter = _ReportingExporter(OTLPSpanExporter(), collector)
        self._provider.add_span_processor(BatchSpanProcessor(self._exporter))
        self._tracer = self._provider.get_tracer(_NAME, version)

    def span(
        self, name: str, *, kind: Kind = "internal", parent: str | None, attributes: Attributes = NO_ATTRIBUTES
    ) -> AbstractContextManager[Span]:
        return _RecordedSpan(
            self._tracer.start_span(name, context=_context(parent), kind=_KINDS[kind], attributes=dict(attributes))
        )

    def consumed(self, consumer: str, trace_parents: Iterable[str], *, since: int) -> None:
        attributes = {
            "messaging.system": _NAME,
            "messaging.operation.type": "process",
            "messaging.operation.name": "process",
            "messaging.destination.name": "events",
            "messaging.consumer.group.name": consumer,
        }
        for parent in trace_parents:
            self._ids.following = _id_of(consumer, parent)
            span = self._tracer.start_span(
                f"process {consumer}", context=_context(parent), kind=SpanKind.CONSUMER, attributes=attributes, start_time=since
            )
            self._ids.following = None
            span.end()

    def consumer_context(self, consumer: str, trace_parent: str | None) -> str | None:
        if trace_parent is None:
            return None
        version, trace, _, flags = trace_parent.split("-")
        return f"{version}-{trace}-{_id_of(consumer, trace_parent):016x}-{flags}"

    async def stop(self) -> None:
        """Send the remaining spans in a daemon thread, so that a collector that does not answer cannot keep the process."""
        loop, ended = asyncio.get_running_loop(), asyncio.Event()

        def shut_down() -> None:
            self._provider.shutdown()
            if not loop.is_closed():
                loop.call_soon_threadsafe(ended.set)

        Thread(target=shut_down, name="last spans", daemon=True).start()
        try:
            async with asyncio.timeout(self._seconds):
                await ended.wait()
        except TimeoutError:
            _log.warning("the last spans could not be sent within %.0f s", self._seconds)


class _RecordedSpan:
    """A span of the SDK, without messages of exceptions."""

    def __init__(self, span: otel.Span) -> None:
        self._span = span

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is not None:
            self.failed(kind.__name__)
        self._span.end()

    def child_context(self, trace_parent: str | None) -> str | None:
        context = self._span.get_span_context()
        if not context.is_valid:
            return trace_parent
        return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"

    def note(self, name: str, value: str | int) -> None:
        self._span.set_attribute(name, value)

    def failed(self, reason: str) -> None:
        self._span.set_attribute("error.type", reason)
        self._span.set_status(Status(StatusCode.ERROR))


class _Ids(IdGenerator):
    """Random ids, or `following` for the next span. Spans are started in one thread."""

    def __init__(self) -> None:
        self._random = RandomIdGenerator()
        self.following: int | None = None

    def generate_span_id(self) -> int:
        return self._random.generate_span_id() if self.following is None else self.following

    def generate_trace_id(self) -> int:
        return self._random.generate_trace_id()


class _ReportingExporter(SpanExporter):
    """Logs at intervals that spans are lost, and when they are sent again. The exporter's messages contain the whole address."""

    def __init__(self, exporter: SpanExporter, collector: str) -> None:
        self._exporter = exporter
        self._collector = collector
        self._lost = 0
        self._warned_at = float("-inf")

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        try:
            result = self._exporter.export(spans)
        except Exception:  # an exception must not end the sending thread
            result = SpanExportResult.FAILURE
        if result is SpanExportResult.SUCCESS:
            if self._lost:
                _log.info("the collector at %s accepts spans again; %d were lost", self._collector, self._lost)
            self._lost, self._warned_at = 0, float("-inf")
            return result
        self._lost += len(spans)
        if monotonic() - self._warned_at >= REMINDER:
            self._warned_at = monotonic()
            _log.warning("the collector at %s does not accept spans; only the spans are lost", self._collector)
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()


def _resource(version: str, instance: str) -> Resource:
    """Return the resource. OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES take precedence."""
    own = {SERVICE_NAME: _NAME, SERVICE_VERSION: version, SERVICE_INSTANCE_ID: instance}
    configured = Resource.create()
    named = not str(configured.attributes.get(SERVICE_NAME, "")).startswith("unknown_service")
    return Resource(own).merge(
        configured if named else Resource({k: v for k, v in configured.attributes.items() if k != SERVICE_NAME})
    )


def _context(trace_parent: str | None) -> Context:
    """Return the parent of a new span; an empty context begins a trace. The text was checked before it was stored."""
    if trace_parent is None:
        return Context()
    _, trace, span, flags = trace_parent.split("-")
    parent = SpanContext(int(trace, 16), int(span, 16), is_remote=True, trace_flags=TraceFlags(int(flags, 16)))
    return otel.set_span_in_context(NonRecordingSpan(parent), Context())


def _id_of(consumer: str, trace_parent: str) -> int:
    """Return the span id of a consumer; never 0, which is not a valid id."""
    return int.from_bytes(blake2b(f"{consumer} {trace_parent}".encode(), digest_size=8).digest()) or 1
