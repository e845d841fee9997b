"""The master key replaced: every box in the vault sealed again under a new one, while the product runs. architecture.md, §2.

`begin` writes down that the database is sealed with two keys; from then on a process with only one of them refuses to start. `run`
seals again in small batches, each one statement and committed by itself, and when nothing is left under the old key forgets it.
Killed at any moment, it goes on where it was when it is run again: what is sealed anew says so itself, by its key id. All the while
a process that has both keys opens every box, and seals new ones under the new key.

Events are not touched: they hold references, which stay, and fingerprints of the old key. A secret that is sent once more after a
rotation is therefore taken for a new one and sealed again; nothing else comes of it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

from domain.kernel.errors import Refused
from domain.kernel.sealed import NONCE_BYTES, Sealed, Sealer, Unsealable
from projections.kernel.arrays import byte_strings, texts, uuids
from projections.kernel.database import Database

BATCH = 500

_BEGIN = """
INSERT INTO sealed_with (fingerprint) VALUES (%(new)s) ON CONFLICT (only_row) DO UPDATE
SET fingerprint = %(new)s, previous = %(old)s, begun_at = clock_timestamp()
WHERE sealed_with.fingerprint = %(old)s AND sealed_with.previous IS NULL
"""
_OLDER = """
SELECT count(*) FROM pg_stat_activity a, sealed_with s
WHERE a.datname = current_database() AND a.application_name = 'medialedger appender' AND a.backend_start < s.begun_at
"""
_DUE = """
SELECT reference, owner, key_id, fingerprint, nonce, box FROM vault
WHERE key_id <> %s AND reference > %s ORDER BY reference LIMIT %s
"""
_SEAL = """
UPDATE vault SET key_id = n.key_id, fingerprint = n.fingerprint, nonce = n.nonce, box = n.box
FROM unnest(%s::uuid[], %s::text[], %s::text[], %s::text[], %s::bytea[], %s::bytea[])
    AS n(reference, was, key_id, fingerprint, nonce, box)
WHERE vault.reference = n.reference AND vault.key_id = n.was
"""
_DONE = """
UPDATE sealed_with SET previous = NULL, begun_at = NULL
WHERE previous IS NOT NULL AND NOT EXISTS (SELECT FROM vault WHERE key_id <> %s)
"""
_FIRST = UUID(int=0)


@dataclass(frozen=True, slots=True)
class Marks:
    """Fingerprints of the two master keys, as `sealed_with` holds them."""

    old: str
    new: str


class Rotation:
    """One replacement of the master key. `sealer` seals with the new key and opens with both. Needs a connection of the schema's
    owner: to the application's role PostgreSQL does not tell who else is connected."""

    def __init__(self, database: Database, *, sealer: Sealer, marks: Marks, batch: int = BATCH) -> None:
        self._database = database
        self._sealer = sealer
        self._marks = marks
        self._batch = batch

    async def begin(self) -> int:
        """Write down that both keys are in use, once; how many processes were started before that and may know the old key only.
        They must be started again before `run`. (One that has lost its connection since looks as if it had been.) `Refused` when
        the database was sealed with other keys."""
        await self._database.execute(_BEGIN, {"new": self._marks.new, "old": self._marks.old})
        found = await self._database.row("SELECT fingerprint, previous FROM sealed_with")
        if found is None or found[0] != self._marks.new or found[1] not in (None, self._marks.old):
            raise Refused("the database is not sealed with this master key")
        older = await self._database.row(_OLDER)
        return int(older[0]) if older else 0

    async def run(self, progress: Callable[[int], None]) -> int:
        """Seal again all that is not under the new key; how many boxes that were. What a process with the old key alone seals
        meanwhile is found as well: it ends when nothing at all is left. `Refused` when some boxes open with neither key;
        all others are then under the new key, and the old one is still written down."""
        count, over = 0, False
        while not over:
            shut: set[UUID] = set()
            sealed = await self._pass(progress, before=count, shut=shut)
            count += sealed
            if shut and not sealed:
                raise Refused(f"{len(shut)} boxes open with neither master key, such as {min(shut)}; the others are done")
            over = not sealed and await self._ended()
        return count

    async def _ended(self) -> bool:
        """Forget the old key, unless something was sealed with it since the last pass."""
        await self._database.execute(_DONE, (self._sealer.key_id,))
        found = await self._database.row("SELECT previous FROM sealed_with")
        return found is None or found[0] is None

    async def _pass(self, progress: Callable[[int], None], *, before: int, shut: set[UUID]) -> int:
        """Once through the vault; how many boxes were sealed again. `shut` takes those that do not open."""
        last, count = _FIRST, 0
        while rows := await self._database.rows(_DUE, (self._sealer.key_id, last, self._batch)):
            due = [Sealed(*row) for row in rows]
            last = due[-1].reference
            count += await self._seal(due, shut)
            progress(before + count)
        return count

    async def _seal(self, due: Sequence[Sealed], shut: set[UUID]) -> int:
        pairs: list[tuple[Sealed, Sealed]] = []
        for old in due:
            try:
                secret = self._sealer.opened(old)
            except Unsealable:
                shut.add(old.reference)
                continue
            nonce = os.urandom(NONCE_BYTES)
            pairs.append((old, self._sealer.seal(secret, owner=old.owner, reference=old.reference, nonce=nonce)))
        if not pairs:
            return 0
        return await self._database.execute(
            _SEAL,
            (
                uuids([new.reference for _, new in pairs]),
                texts([old.key_id for old, _ in pairs]),
                texts([new.key_id for _, new in pairs]),
                texts([new.fingerprint for _, new in pairs]),
                byte_strings([new.nonce for _, new in pairs]),
                byte_strings([new.box for _, new in pairs]),
            ),
        )
