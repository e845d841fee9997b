"""The vault: sealed secrets beside the log. Only its callers ever hold one in the clear."""

from __future__ import annotations

import os
from uuid import UUID

from domain.kernel.ids import new_id
from domain.kernel.sealed import NONCE_BYTES, Sealed, Sealer
from projections.kernel.database import Database


class Vault:
    """Seals what commands bring; the append writes it. Opens what somebody must use."""

    def __init__(self, database: Database, sealer: Sealer) -> None:
        self._database = database
        self._sealer = sealer

    def seal(self, secret: str, *, owner: str) -> Sealed:
        """`owner` is the stream of the aggregate that the secret belongs to."""
        return self._sealer.seal(secret, owner=owner, reference=new_id(), nonce=os.urandom(NONCE_BYTES))

    async def opened(self, reference: UUID) -> str | None:
        """The secret; None when it was erased. Raises `Unsealable` when the box is not what was sealed."""
        row = await self._database.row(
            "SELECT reference, owner, key_id, fingerprint, nonce, box FROM vault WHERE reference = %s", (reference,)
        )
        return self.open(Sealed(*row)) if row is not None else None

    def open(self, sealed: Sealed) -> str:
        """The secret in a box that the caller has read itself. Raises `Unsealable`."""
        return self._sealer.opened(sealed)
