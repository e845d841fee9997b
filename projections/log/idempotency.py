"""Idempotency keys in PostgreSQL, stored for 24 hours."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import psycopg
from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from domain.kernel.idempotency import IdempotencyKey, IdempotencyKeyUsed, IdempotencyRecord
from domain.kernel.ports import Outcome
from projections.kernel.database.database import Database
from projections.log.streams import Streams

_FIND = """
SELECT fingerprint, status, base_url, streams, result::text, position, recorded_at < now() - interval '24 hours'
FROM idempotency_keys WHERE client = %s AND key = %s
"""
_FORGET = "DELETE FROM idempotency_keys WHERE client = %s AND key = %s AND recorded_at < now() - interval '24 hours'"
_INSERT = """
INSERT INTO idempotency_keys (client, key, fingerprint, status, base_url, streams, result, position)
SELECT %s, %s, %s::bytea, %s::smallint, %s, %s::text[], %s::jsonb, coalesce(max(last_position), 0) FROM commits
"""
_SWEPT = 5000
_SWEEP = f"""
DELETE FROM idempotency_keys WHERE ctid = ANY(ARRAY(
    SELECT ctid FROM idempotency_keys WHERE recorded_at < now() - interval '24 hours' LIMIT {_SWEPT}))
"""


async def record_key(connection: AsyncConnection[TupleRow], record: IdempotencyRecord) -> None:
    """Store a record as of the log's head, in the caller's transaction. This is for writes that append nothing to the log. Raise
    `IdempotencyKeyUsed` if the key is taken."""
    of = record.of
    values = (of.client, of.key, of.fingerprint, of.status, of.base_url, list(record.streams), json.dumps(record.result))
    try:
        await connection.execute(_INSERT, values)
    except psycopg.errors.UniqueViolation:
        raise IdempotencyKeyUsed(of.client, of.key) from None


class IdempotencyRecords:
    """The stored records of commands. The append itself writes the record of a command that appends; `record` writes the others."""

    def __init__(self, database: Database, streams: Streams) -> None:
        self._database = database
        self._streams = streams

    async def find(self, client: str, key: str) -> IdempotencyRecord | None:
        row = await self._database.row(_FIND, (client, key))
        if row is None:
            return None
        if row[-1]:
            await self._database.execute(_FORGET, (client, key))
            return None
        return _record(client, key, row)

    async def record(self, record: IdempotencyRecord) -> None:
        async with self._database.connection() as connection:
            await record_key(connection, record)

    async def outcome(self, record: IdempotencyRecord) -> Outcome[Any]:
        """Return the outcome of the first request: the aggregates as of the record's position."""
        assert record.position is not None, "it comes from the table"
        roots = await self._streams.as_of(record.streams, record.position)
        aggregates = [roots[stream] for stream in record.streams]
        return Outcome(aggregates, record.result, position=record.position, as_of=record.position, recorded=True)

    async def sweep(self) -> int:
        """Delete the records that are older than a day, some at a time, and return their number."""
        total = 0
        while deleted := await self._database.execute(_SWEEP):
            total += deleted
        return total


def _record(client: str, key: str, row: Sequence[Any]) -> IdempotencyRecord:
    fingerprint, status, base_url, streams, result, position, _ = row
    of = IdempotencyKey(client, key, bytes(fingerprint), status, base_url)
    return IdempotencyRecord(of, tuple(streams), json.loads(result), position)
