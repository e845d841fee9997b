"""A collector of traces: it receives OTLP over HTTP and keeps the spans. It also receives webhooks, and keeps their bodies."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.support.waiting import until


class Seen:
    """A span as it was received, with the attributes of the process that sent it."""

    def __init__(self, span: Any, resource: Mapping[str, object]) -> None:
        self.name: str = span.name
        self.kind: int = span.kind
        self.trace = span.trace_id.hex()
        self.id = span.span_id.hex()
        self.parent = span.parent_span_id.hex()
        self.failed: bool = span.status.code == span.status.STATUS_CODE_ERROR
        self.attributes = attributes(span.attributes)
        self.resource = resource


def attributes(encoded: Any) -> dict[str, object]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in encoded}


class Collector:
    def __init__(self, address: str) -> None:
        self.address = address
        self.spans: list[Seen] = []
        self.raw = b""
        self.export_headers: list[Mapping[str, str]] = []
        self.hooks: list[Mapping[str, str]] = []

    def take(self, headers: Mapping[str, str], body: bytes) -> None:
        if headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        self.export_headers.append(headers)
        self.raw += body
        for group in ExportTraceServiceRequest.FromString(body).resource_spans:
            resource = attributes(group.resource.attributes)
            self.spans += [Seen(span, resource) for scope in group.scope_spans for span in scope.spans]

    def until(self, name: str, *, trace: str, parent: str | None = None, **wanted: object) -> Seen:
        """Wait for a span of this name, parent and attributes, and return it. Dots of attributes are written as `__`."""
        attributes = {key.replace("__", "."): value for key, value in wanted.items()}

        def find_span() -> Seen | None:
            for span in list(self.spans):
                fits = span.name == name and span.trace == trace and parent in (None, span.parent)
                if fits and attributes.items() <= span.attributes.items():
                    return span
            return None

        with suppress(AssertionError):
            until(lambda: find_span() is not None)
        span = find_span()
        assert span is not None, [(each.name, each.trace, each.id, each.parent, each.attributes) for each in self.spans]
        return span


@contextmanager
def collector() -> Iterator[Collector]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            body = self.rfile.read(int(headers["content-length"]))
            if self.path == "/v1/traces":
                made.take(headers, body)
            else:
                made.hooks.append(headers)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made = Collector(f"http://127.0.0.1:{server.server_port}")
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()
