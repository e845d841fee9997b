"""Callbacks, made as the API makes them for a job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from api.core import Core
from api.engine.callbacks import Callbacks
from domain.catalogue import RECORDS
from domain.kernel.cause import Cause
from domain.kernel.sealed import Sealer
from projections.media_event.queries import EventQueries
from projections.records.queries import RecordQueries
from projections.vault.vault import Vault

SEALER = Sealer(bytes(32))


def callbacks(inner: Core) -> Callbacks:
    database = inner.database
    return Callbacks(Vault(database, SEALER), EventQueries(database), RecordQueries(database, RECORDS))


async def named(inner: Core, *urls: str, client: str = "admin", content_id: str = "film") -> list[str]:
    """The webhooks of a job that names these addresses, each made where it did not stand."""
    fields = [(f"parameters.callback_urls[{index}]", url) for index, url in enumerate(urls)]
    keys, commands = await callbacks(inner).of(client, fields, content_id)

    async def ask() -> Sequence[Any]:
        return commands

    if commands:
        await inner.ledger.execute_all(ask, cause=Cause.by("system"))
    return [str(key) for key in keys]


async def add_callback(inner: Core, url: str = "https://hooks.test/job", **given: Any) -> str:
    [key] = await named(inner, url, **given)
    return key
