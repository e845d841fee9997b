"""Callbacks, made in the way of the API for a job."""

from __future__ import annotations

import os
from typing import Any
from uuid import UUID

from api.wiring.catalogue import RECORDS
from api.wiring.core import Core
from domain.job.callbacks import JobCallbacks
from domain.kernel.encryption import NONCE_BYTES, SecretCipher
from domain.kernel.ids import new_id
from domain.kernel.ports import Invocation, Plan
from projections.event.queries import EventQueries
from projections.record.queries import RecordQueries
from projections.vault.vault import Vault, new_signing_secret

CIPHER = SecretCipher(bytes(32))


def callbacks(inner: Core) -> JobCallbacks:
    database = inner.database
    vault, records = Vault(database, CIPHER), RecordQueries(database, RECORDS)
    return JobCallbacks(vault, EventQueries(database), records, clock=inner.clock, new_signing_secret=new_signing_secret)


async def named(inner: Core, *urls: str, client: str = "admin", content_id: str = "film") -> list[str]:
    """The callbacks of a job with these URLs; those that did not exist are made."""
    fields = [(f"parameters.callback_urls[{index}]", url) for index, url in enumerate(urls)]
    addresses = await callbacks(inner).of(client, fields, content_id=content_id)
    commands = await callbacks(inner).named(client, {key: url.shown for key, url in addresses.items()})

    async def plan() -> Plan:
        return Plan(commands)

    if commands:
        await inner.executor.execute(plan, invocation=Invocation.by("system"))
    return [str(key) for key in addresses]


async def sealed(inner: Core, url: str, *, job: int = 17) -> UUID:
    """The reference of an address in the vault, as that of a job."""
    box = CIPHER.encrypt(url, owner=f"job:{job}", reference=new_id(), nonce=os.urandom(NONCE_BYTES))
    await inner.database.execute(
        "INSERT INTO vault (reference, owner, key_id, fingerprint, nonce, ciphertext) VALUES (%s, %s, %s, %s, %s, %s)",
        (box.reference, box.owner, box.key_id, box.fingerprint, box.nonce, box.ciphertext),
    )
    return box.reference


async def add_callback(inner: Core, url: str = "https://hooks.test/job", **given: Any) -> str:
    [key] = await named(inner, url, **given)
    return key
