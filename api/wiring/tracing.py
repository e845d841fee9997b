"""Traces: the standard variables of OpenTelemetry, and the tracer of a process."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from socket import gethostname
from typing import Final
from urllib.parse import urlsplit

from api.kernel.version import product_version
from projections.kernel.tracing import UNTRACED, Tracer

ENDPOINT: Final = "OTEL_EXPORTER_OTLP_ENDPOINT"
VARIABLES: Final = {
    ENDPOINT: "address of a collector that accepts OTLP over HTTP, such as http://127.0.0.1:4318; empty: no traces",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "the address for traces only, with the complete path, such as http://127.0.0.1:4318/v1/traces",
    "OTEL_EXPORTER_OTLP_HEADERS": "headers for the collector, `name=value` separated by commas; a secret",
    "OTEL_EXPORTER_OTLP_PROTOCOL": "`http/protobuf`, the only supported protocol",
    "OTEL_TRACES_EXPORTER": "`otlp`, or `none` for no traces",
    "OTEL_SDK_DISABLED": "`true`: no traces",
    "OTEL_TRACES_SAMPLER": "which traces are recorded, such as `parentbased_traceidratio` with `OTEL_TRACES_SAMPLER_ARG=0.1`",
    "OTEL_SERVICE_NAME": "name of the service in the traces; `medialedger` if it is not set",
    "OTEL_RESOURCE_ATTRIBUTES": "further attributes of the service, such as `deployment.environment.name=production`",
    "OTEL_BSP_SCHEDULE_DELAY": "maximum milliseconds that spans wait to be sent with others",
}
"""The most important variables. The SDK reads all variables of the specification."""
_INSTALL: Final = "install it: pip install 'medialedger[otel]'"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Tracing:
    """The requested tracing. `collector` is the origin of the collector's address, without parts that may be secret; empty if no
    traces are requested. `problem` says why there are no traces despite a request."""

    collector: str = ""
    problem: str = ""

    @property
    def on(self) -> bool:
        return bool(self.collector) and not self.problem


def tracing(environment: Mapping[str, str]) -> Tracing:
    """Return the tracing that the variables request. An empty variable counts as unset. No value of them prevents a start."""

    def value(name: str, own: str) -> str:
        """Return the value of a variable. The variable for traces overrides the one for all signals."""
        return environment.get(own, "").strip() or environment.get(name, "").strip()

    endpoint = value(ENDPOINT, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
    exporter = environment.get("OTEL_TRACES_EXPORTER", "").strip() or "otlp"
    if not endpoint or exporter == "none" or environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return Tracing()
    collector = _origin(endpoint)
    if collector is None:
        return Tracing(ENDPOINT, f"{ENDPOINT} must be a URL such as http://127.0.0.1:4318")
    protocol = value("OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL") or "http/protobuf"
    if exporter != "otlp":
        return Tracing(collector, "OTEL_TRACES_EXPORTER must be otlp or none")
    if protocol != "http/protobuf":
        return Tracing(collector, "OTEL_EXPORTER_OTLP_PROTOCOL must be http/protobuf; its port is usually 4318")
    return Tracing(collector, "" if _installed() else f"OpenTelemetry is not installed; {_INSTALL}")


def _origin(endpoint: str) -> str | None:
    try:
        parts = urlsplit(endpoint)
        port = "" if parts.port is None else f":{parts.port}"
    except ValueError:
        return None
    host = parts.hostname
    if parts.scheme not in ("http", "https") or not host:
        return None
    return f"{parts.scheme}://[{host}]{port}" if ":" in host else f"{parts.scheme}://{host}{port}"


def _installed() -> bool:
    """Return True if the SDK and the exporter are installed. The package `opentelemetry` itself comes with other packages."""
    try:
        return all(find_spec(name) for name in ("opentelemetry.sdk.trace", "opentelemetry.exporter.otlp.proto.http.trace_exporter"))
    except ModuleNotFoundError:
        return False


def tracer(settings: Tracing) -> Tracer:
    """Return the tracer of this process. Without traces the SDK is not imported."""
    if not settings.on:
        if settings.problem:
            _log.warning("no traces are sent: %s", settings.problem)
        return UNTRACED
    from workers.adapters.open_telemetry import OpenTelemetryTracer

    return OpenTelemetryTracer(version=product_version(), instance=f"{gethostname()}:{os.getpid()}", collector=settings.collector)
