"""The composition root: every part of the product, put together once."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from socket import gethostname
from typing import Any

from api.core import Core, core, prepare
from api.kernel.app import Application
from api.kernel.app import build as build_application
from api.kernel.log import RequestLog
from api.media import client
from api.services import ROUTES, authenticate, services
from api.settings import Settings
from api.startup import StartError
from api.version import product_version
from domain.catalogue import RECORDS
from domain.client.commands import RegisterClient
from domain.kernel.cause import Cause
from domain.kernel.errors import Conflict, DomainError
from domain.kernel.sealed import Marker, Sealer
from projections.content_keys.store import ContentKeys
from projections.kernel.database import Database
from projections.kernel.migrate import master_key_fits
from projections.log.answers import KeptAnswers
from projections.logbook.logbook import Logbook
from projections.records.queries import RecordQueries
from projections.vault.vault import Vault
from workers.adapters.keyfiles import fingerprint, first_secret_file, previous_master_key
from workers.adapters.outbound_http import GuardedClient
from workers.ports import Outbound
from workers.wiring import Ground, Workers

_log = logging.getLogger(__name__)

_EVERY = 10.0


class Medialedger:
    """The product as the command line starts and stops it."""

    def __init__(
        self,
        inner: Core,
        app: Application,
        *,
        workers: Workers,
        content_keys: ContentKeys,
        outbound: Outbound,
        answers: KeptAnswers,
        request_log: RequestLog,
        settings: Settings,
    ) -> None:
        self.core = inner
        self._answers = answers
        self.app = app
        self._workers = workers
        self._content_keys = content_keys
        self._outbound = outbound
        self._request_log = request_log
        self._settings = settings
        self._chores: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        await self.core.start()
        await self._first_admin()
        await self._content_keys.start()
        await self._workers.start()
        self._chores = [
            asyncio.create_task(_regularly(self.core.directory.write_use, _EVERY), name="key use"),
            asyncio.create_task(_regularly(self._answers.sweep, 3600.0), name="answers sweep"),
        ]

    def drain(self) -> None:
        self.app.drain()

    async def stop(self) -> None:
        for chore in self._chores:
            chore.cancel()
        await asyncio.gather(*self._chores, return_exceptions=True)
        await self._workers.stop()
        await self._outbound.close()
        await self._content_keys.stop()
        with suppress(DomainError):
            await self.core.directory.write_use()
        await self.core.stop()
        self._request_log.flush()

    def summary(self) -> Sequence[tuple[str, str]]:
        working = ", ".join(self._workers.names) or "none in this process; medialedger workers runs them"
        return [("admin key", _admin_key_place(self._settings)), ("workers", working)]

    async def _first_admin(self) -> None:
        """At the first start there is nobody who could make a client: make `admin`."""
        if any("admin" in known.roles for known in await self.core.directory.all()):
            return
        place = admin_key_file(self._settings)
        key = self._settings.admin_api_key or first_secret_file(place, client.new_key()[1])
        new, _ = client.new_key(key)
        with suppress(Conflict):  # another process was first
            await self.core.ledger.execute(RegisterClient("admin", ("admin",), new), cause=Cause.by("system"))
        self.core.directory.forget()
        if self._settings.admin_api_key is None and await self.core.directory.authenticate(key) is None:
            place.unlink(missing_ok=True)  # of another home: its file holds the key that counts


def admin_key_file(settings: Settings) -> Path:
    return settings.home / "admin-api-key"


def _admin_key_place(settings: Settings) -> str:
    if settings.admin_api_key is not None:
        return "as MEDIALEDGER_ADMIN_API_KEY was at the first start"
    place = admin_key_file(settings)
    return str(place) if place.exists() else "handed out before; a new one: medialedger client rotate admin"


async def _regularly(chore: Callable[[], Awaitable[Any]], seconds: float) -> None:
    while True:
        await asyncio.sleep(seconds)
        try:
            await chore()
        except Exception:
            _log.exception("a chore failed; it will be tried again")


async def build(settings: Settings, database: str, master_key: bytes, *, roles: Sequence[str] = ()) -> Medialedger:
    """Everything, on a database that answers. `roles` are the workers of this process. Raises `StartError` for what a person can
    mend."""
    previous = previous_master_key(settings.master_key_file)
    inner = await ground(database, master_key, previous=previous)
    answers, request_log = KeptAnswers(inner.database), RequestLog(sys.stderr, clock=inner.clock)
    outbound = GuardedClient(settings.outbound_allow)
    sealer = Sealer(master_key, previous=previous)
    workers = working(inner, sealer, outbound=outbound, settings=settings, roles=roles)
    provided = services(inner, database, sealer, outbound=outbound, speke_rate=settings.speke_rate)
    app = build_application(
        ROUTES,
        provided,
        authenticate=partial(authenticate, inner.directory),
        answers=answers,
        fingerprint=Marker(master_key),
        registry=inner.registry,
        request_log=request_log,
        version=product_version(),
    )
    return Medialedger(
        inner,
        app,
        workers=workers,
        content_keys=provided[ContentKeys],
        outbound=outbound,
        answers=answers,
        request_log=request_log,
        settings=settings,
    )


async def ground(database: str, master_key: bytes, *, previous: bytes | None = None) -> Core:
    """The log on a database that is made ready first. Raises `StartError` when it was sealed with another key."""
    inner = core(database, role=await prepare(database))
    await _check_master_key(database, master_key, previous)
    return inner


def working(inner: Core, sealer: Sealer, *, outbound: Outbound, settings: Settings, roles: Sequence[str]) -> Workers:
    """The workers of this process, not yet started."""
    records = RecordQueries(inner.database, RECORDS)
    base = Ground(
        database=inner.database,
        growth=inner.growth,
        streams=inner.streams,
        ledger=inner.ledger,
        records=records,
        vault=Vault(inner.database, sealer),
        logbook=Logbook(inner.database, inner.clock, machine=gethostname()),
        outbound=outbound,
        clock=inner.clock,
        kafka=settings.kafka_bootstrap_servers,
        media_root=settings.media_root,
        outbound_allow=settings.outbound_allow,
        steps=settings.steps,
        lease=settings.lease_seconds,
        drain=settings.shutdown_seconds,
        host=gethostname(),
        version=product_version(),
    )
    return Workers(base, roles)


async def _check_master_key(conninfo: str, master_key: bytes, previous: bytes | None) -> None:
    """The key seals what the database holds; another key would find nothing readable, so say it now."""
    async with Database(conninfo, size=1) as owner:
        before = fingerprint(previous) if previous is not None else None
        if not await master_key_fits(owner, fingerprint(master_key), previous=before):
            raise StartError("the master key is not the one that this database was sealed with; check MEDIALEDGER_MASTER_KEY_FILE")
