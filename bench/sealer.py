"""A sealer in a process of its own: `python -m bench.sealer SECONDS`. The address of the database comes on standard input."""

from __future__ import annotations

import asyncio
import sys

import uvloop

from domain.kernel.encryption import SecretCipher
from domain.kernel.ids import new_id
from projections.consumers.leases import ShardLeases
from projections.kernel.database.database import Database
from projections.vault.vault import Vault
from workers.audit.sealing.sealer import CONSUMER, Anchoring, Sealer


async def _run(url: str, *, seconds: float) -> None:
    async with Database(url, size=2) as database:
        leases = ShardLeases(database, CONSUMER, shards=1, member=new_id(), reads_log=False)
        vault = Vault(database, SecretCipher(bytes(32)))
        sealer = Sealer(database, vault, anchoring=Anchoring(database, []), seconds=seconds, leases=leases)
        await sealer.start()
        print("ready", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(_run(input(), seconds=float(sys.argv[1])))
