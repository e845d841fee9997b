"""The application of `medialedger workers` for Prometheus and probes, with only `/metrics` and `/livez`."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from typing import Any

from prometheus_client import CollectorRegistry

from api.guards.limits import Connections
from api.http import app as http
from api.http.app import Application
from api.kernel import docs_page
from api.kernel.authentication import Authorizer
from api.kernel.errors import failure_of
from api.kernel.log import RequestLog
from api.kernel.request import Request
from api.kernel.surfaces import OPERATIONS
from api.kernel.version import product_version
from api.operations.metrics import Snapshot
from api.operations.routes import AllMetrics, liveness, own_metrics
from api.wiring.product import connection_limits, hosts
from api.wiring.settings import Settings
from api.wiring.standalone_origin import nobody
from domain.kernel.clock import system_clock


def build(settings: Settings, read: Callable[[], Awaitable[Snapshot]]) -> tuple[Application, Connections]:
    services: dict[Any, Any] = {AllMetrics: AllMetrics(read)}
    app = http.build(
        (liveness, own_metrics, docs_page.routes),
        services,
        authorize=Authorizer(nobody),
        failure_of=failure_of,
        request_class=Request,
        public_url=settings.public_url or "",
        fallback=OPERATIONS,
        registry=CollectorRegistry(),
        request_log=RequestLog(sys.stderr, clock=system_clock),
        title="medialedger",
        version=product_version(),
    )
    return app, Connections(connection_limits(settings), hosts=hosts(settings))
