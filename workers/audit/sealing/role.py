"""The role `sealer`: seals the log with signed checkpoints."""

from __future__ import annotations

from collections.abc import Sequence

from projections.kernel.database.database import Database
from projections.vault.vault import Vault
from workers.audit.sealing.sealer import CONSUMER, Anchoring, Sealer
from workers.kernel.consumer_factory import ConsumerFactory
from workers.kernel.worker import Worker
from workers.ports.checkpoints import CheckpointPlaces


def sealer(
    consumers: ConsumerFactory, database: Database, *, vault: Vault, anchoring: Anchoring, places: CheckpointPlaces
) -> Sequence[Worker]:
    leases = consumers.leases(CONSUMER)
    sealer = Sealer(database, vault, anchoring=anchoring, seconds=places.seconds, leases=leases, position=consumers.log.reached())
    return [sealer]
