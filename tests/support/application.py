"""The web application on a core, and the clients that call it."""

from __future__ import annotations

from functools import partial
from hashlib import sha256
from typing import Any

from prometheus_client import CollectorRegistry

from api.http.app import Application
from api.kernel.app import build as build_application
from api.kernel.log import RequestLog
from api.wiring.core import Core
from api.wiring.services import ROUTES, authenticate
from domain.client.aggregate import NewKey
from domain.client.commands import RegisterClient
from domain.kernel.encryption import KeyedHash
from domain.kernel.ports import Invocation
from projections.log.idempotency import IdempotencyRecords
from tests.support.listed_statuses import ListedStatuses


async def introduce(wired: Core, name: str, *roles: str) -> str:
    """Register a client, and return its key."""
    key = f"key-of-{name}"
    new = NewKey(f"{name}-1", sha256(key.encode()).hexdigest())
    await wired.executor.execute(RegisterClient(name, roles, new), invocation=Invocation.by("system"))
    wired.directory.invalidate()
    return key


def assembled(inner: Core, services: dict[Any, object], *, request_log: RequestLog, registry: CollectorRegistry) -> Application:
    """Return the application on top of the rest, as in the product. A response whose status is not listed fails the test."""
    return build_application(
        ROUTES,
        services,
        authenticate=partial(authenticate, inner.directory),
        idempotency=IdempotencyRecords(inner.database, inner.streams),
        fingerprint=KeyedHash(bytes(32)),
        registry=registry,
        request_log=ListedStatuses(request_log),
        bind=False,  # a test calls few of the routes
    )
