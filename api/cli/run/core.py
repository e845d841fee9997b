"""The core for a short command: an open database with the current schema, and the services that read and write the log."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

from api.cli.run.database import open_database
from api.wiring.core import Core, core, prepare
from api.wiring.settings import Settings
from api.wiring.startup import StartError
from api.wiring.workers import prepared_core
from domain.record.ports import RecordRow
from domain.record.record import D, Record
from projections.record.queries import RecordQueries
from projections.vault.vault import Vault


@asynccontextmanager
async def open_core(settings: Settings, *, make: bool = False) -> AsyncIterator[Core]:
    """Yield the started core. With `make`, a missing or empty database is created."""
    async with open_database(settings, make=make) as database:
        wired = core(database.url, role=await prepare(database.url, owner=database.owner))
        try:
            await wired.start()
            yield wired
        finally:
            await wired.stop()


@asynccontextmanager
async def open_vault(settings: Settings) -> AsyncIterator[tuple[Core, Vault]]:
    async with open_database(settings) as database:
        wired = await prepared_core(database.url, settings.master_key_file, owner=database.owner)
        try:
            await wired.start()
            yield wired, Vault(wired.database, wired.ring.cipher)
        finally:
            await wired.stop()


async def named_record(records: RecordQueries, kind: type[Record[D]], id_or_name: str) -> RecordRow[D]:
    """Return the record with this id, or the only record with this name. Raise `StartError` if there is none, or several."""
    try:
        match = await records.find(kind, UUID(id_or_name))
    except ValueError:
        match = None
    rows = await records.all(kind) if match is None else [match]
    named = [row for row in rows if row is match or getattr(row.details, "name", None) == id_or_name]
    if not named:
        raise StartError(f"the {kind.KIND} {id_or_name!r} does not exist")
    if len(named) > 1:
        raise StartError(f"{len(named)} {kind.KIND}s have this name; give one of the ids {', '.join(row.id for row in named)}")
    return named[0]
