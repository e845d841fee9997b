"""What all tests share: one real PostgreSQL for the run, emptied for every test that uses it, and the product on top of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import sha256
from io import StringIO
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from prometheus_client import CollectorRegistry

from api.core import Core, core, prepare
from api.kernel.app import Application
from api.kernel.app import build as build_application
from api.kernel.log import RequestLog
from api.services import ROUTES, authenticate, services
from domain.client.commands import NewKey, RegisterClient
from domain.kernel.cause import Cause
from domain.kernel.sealed import Marker, Sealer
from projections.log.answers import KeptAnswers
from tests.kafka import kafka as kafka
from tests.kafka import topics_prefix as topics_prefix
from workers.adapters.embedded_postgres import EmbeddedPostgres
from workers.adapters.outbound_http import GuardedClient

EMPTIED = """
    events, links, standing, vault, claims, answers, snapshots, key_use, event_view, record_view, custom_property_view, client_view,
    content_key_view, sealed_with, job_view, job_task_view, job_leases, job_progress, job_lines,
    consumer_members, consumer_shards, parked, deliveries, delivery_attempts, delivery_endpoints
"""
NOON = datetime(2031, 1, 2, 12, 0, tzinfo=UTC)


class HandClock:
    """A clock that stands still until a test moves it."""

    def __init__(self, now: datetime = NOON) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def forward(self, **by: float) -> None:
        self.now += timedelta(**by)


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a PostgreSQL of our own, as its superuser."""
    home: Path = tmp_path_factory.mktemp("postgres")
    server = EmbeddedPostgres(home)
    try:
        yield server.start()
    finally:
        server.stop()


@pytest.fixture(scope="session")
async def migrated(postgres: str) -> tuple[str, str | None]:
    """The same, with the product's schema; and the role that the running product takes on."""
    return postgres, await prepare(postgres)


@pytest.fixture
def database_url(migrated: tuple[str, str | None]) -> str:
    """An empty log and empty views."""
    empty(migrated[0])
    return migrated[0]


def empty(conninfo: str) -> None:
    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute("SET session_replication_role = replica")  # the log's own triggers would refuse
        connection.execute(f"TRUNCATE {EMPTIED}")
        connection.execute("TRUNCATE logbook RESTART IDENTITY")
        connection.execute("ALTER SEQUENCE archiver_stream_numbers RESTART")
        connection.execute("UPDATE log_head SET position = 0, link = decode(repeat('00', 32), 'hex'), recorded_at = '-infinity'")


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
async def inner(database_url: str, migrated: tuple[str, str | None], clock: HandClock) -> AsyncIterator[Core]:
    """The log and everything around it, without a web."""
    wired = core(database_url, role=migrated[1], clock=clock)
    await wired.start()
    try:
        yield wired
    finally:
        await wired.stop()


@dataclass(frozen=True)
class Caller:
    """Somebody with a key, and the product in reach."""

    http: httpx.AsyncClient
    name: str
    key: str

    @property
    def headers(self) -> dict[str, str]:
        return {"API-KEY": self.key}


async def introduce(wired: Core, name: str, *roles: str) -> str:
    """Register a client; its key."""
    key = f"key-of-{name}"
    new = NewKey(f"{name}-1", sha256(key.encode()).hexdigest())
    await wired.ledger.execute(RegisterClient(name, roles, new), cause=Cause.by("system"))
    wired.directory.forget()
    return key


def assembled(inner: Core, services: dict[Any, object], *, request_log: RequestLog, registry: CollectorRegistry) -> Application:
    """The web on top of the rest, as the product has it."""
    return build_application(
        ROUTES,
        services,
        authenticate=partial(authenticate, inner.directory),
        answers=KeptAnswers(inner.database),
        fingerprint=Marker(bytes(32)),
        registry=registry,
        request_log=request_log,
    )


@pytest.fixture
def request_log(inner: Core) -> RequestLog:
    return RequestLog(StringIO(), clock=inner.clock)


@pytest.fixture
async def outbound() -> AsyncIterator[GuardedClient]:
    """May call the receivers that tests run."""
    client = GuardedClient([ip_network("127.0.0.0/8")])
    yield client
    await client.close()


@pytest.fixture
def known(inner: Core, database_url: str, outbound: GuardedClient) -> dict[Any, Any]:
    """What the endpoints are given."""
    return services(inner, database_url, Sealer(bytes(32)), outbound=outbound)


@pytest.fixture
def application(inner: Core, known: dict[Any, Any], request_log: RequestLog) -> Application:
    return assembled(inner, known, request_log=request_log, registry=inner.registry)


@pytest.fixture
async def http(inner: Core, application: Application) -> AsyncIterator[httpx.AsyncClient]:
    """A caller with role admin, over ASGI in this process."""
    key = await introduce(inner, "admin", "admin")
    transport = httpx.ASGITransport(app=application)
    async with httpx.AsyncClient(transport=transport, base_url="http://media.test", headers={"API-KEY": key}) as client:
        yield client
