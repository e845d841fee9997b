"""Callbacks, made in the way of the API for a job."""

from __future__ import annotations

from typing import Any

from api.wiring.catalogue import RECORDS
from api.wiring.core import Core
from domain.job.handlers import JobCallbacks
from domain.kernel.encryption import SecretCipher
from domain.kernel.ports import Invocation, Plan
from projections.media_event.queries import EventQueries
from projections.records.queries import RecordQueries
from projections.vault.signing_secrets import new_signing_secret
from projections.vault.vault import Vault

CIPHER = SecretCipher(bytes(32))


def callbacks(inner: Core) -> JobCallbacks:
    database = inner.database
    vault, records = Vault(database, CIPHER), RecordQueries(database, RECORDS)
    return JobCallbacks(vault, EventQueries(database), records, new_signing_secret=new_signing_secret)


async def named(inner: Core, *urls: str, client: str = "admin", content_id: str = "film") -> list[str]:
    """The webhooks of a job with these callback URLs; those that did not exist are made."""
    fields = [(f"parameters.callback_urls[{index}]", url) for index, url in enumerate(urls)]
    keys, commands = await callbacks(inner).of(client, fields, content_id=content_id)

    async def plan() -> Plan:
        return Plan(commands)

    if commands:
        await inner.executor.execute(plan, invocation=Invocation.by("system"))
    return [str(key) for key in keys]


async def add_callback(inner: Core, url: str = "https://hooks.test/job", **given: Any) -> str:
    [key] = await named(inner, url, **given)
    return key
