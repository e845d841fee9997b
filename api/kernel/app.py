"""The application with the conventions of the product."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from fastapi import APIRouter
from prometheus_client import CollectorRegistry

from api.http import app as http
from api.http.app import Application, Services
from api.http.cross_origin import CrossOrigin
from api.kernel import docs_page
from api.kernel.auth import WRITE
from api.kernel.authentication import Authenticate, Authorizer, Sessions
from api.kernel.description import API
from api.kernel.errors import failure_of
from api.kernel.idempotency import IdempotencyStore, IdempotentRequests
from api.kernel.large_bodies import fair_large_bodies
from api.kernel.log import RequestLog
from api.kernel.parsing import parse_body
from api.kernel.request import Admission, Request
from api.kernel.surfaces import OPERATIONS
from api.kernel.tracing import RequestSpans
from domain.kernel.clock import system_clock
from domain.kernel.encryption import KeyedHash
from projections.kernel.tracing import UNTRACED, Tracer


def build(
    routes: Iterable[APIRouter],
    services: Services,
    *,
    authenticate: Authenticate,
    idempotency: IdempotencyStore,
    fingerprint: KeyedHash,
    registry: CollectorRegistry | None = None,
    request_log: http.RequestLog | None = None,
    version: str = "0",
    public_url: str = "",
    cross_origin: CrossOrigin | None = None,
    tracer: Tracer = UNTRACED,
    bind: bool = True,
) -> Application:
    sessions: Any = services.get(Sessions)
    return http.build(
        (*routes, docs_page.routes),
        services,
        authorize=Authorizer(authenticate, sessions=sessions),
        admitted=Admission(),
        idempotency=IdempotentRequests(idempotency, fingerprint=fingerprint),
        parse_json=parse_body,
        failure_of=failure_of,
        request_class=Request,
        serves_head=lambda route: route.permission != WRITE,  # some GET routes of the engine change state
        large_bodies=fair_large_bodies(),
        public_url=public_url,
        cross_origin=cross_origin,
        fallback=OPERATIONS,
        registry=registry or CollectorRegistry(),
        request_log=request_log or RequestLog(sys.stderr, clock=system_clock),
        title="medialedger",
        version=version,
        about=API,
        begin_span=RequestSpans(tracer) if tracer.on else None,
        bind=bind,
    )
