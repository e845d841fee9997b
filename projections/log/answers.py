"""Kept answers: what a request with an Idempotency-Key was told the first time. contract.md, Bodies; kept for 24 hours."""

from __future__ import annotations

import json

import psycopg
from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from domain.kernel.answers import AnswerAlreadyRecorded, RecordedAnswer
from projections.kernel.database import Database

_FIND = """
SELECT fingerprint, status, headers::text, body, recorded_at < now() - interval '24 hours'
FROM answers WHERE client = %s AND key = %s
"""
_FORGET = "DELETE FROM answers WHERE client = %s AND key = %s AND recorded_at < now() - interval '24 hours'"
_KEEP = "INSERT INTO answers (client, key, fingerprint, status, headers, body) VALUES (%s, %s, %s, %s, %s, %s)"
_SWEEP = "DELETE FROM answers WHERE recorded_at < now() - interval '24 hours'"


async def keep(connection: AsyncConnection[TupleRow], answer: RecordedAnswer) -> None:
    """In the caller's transaction, when it writes what is not in the log."""
    values = (answer.client, answer.key, answer.fingerprint, answer.status, json.dumps(answer.headers), answer.body)
    try:
        await connection.execute(_KEEP, values)
    except psycopg.errors.UniqueViolation:
        raise AnswerAlreadyRecorded(answer.client, answer.key) from None


class KeptAnswers:
    """Answers whose command changed something are written by the append itself; `record` keeps the others."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def recorded(self, client: str, key: str) -> RecordedAnswer | None:
        found = await self._database.row(_FIND, (client, key))
        if found is None:
            return None
        fingerprint, status, headers, body, expired = found
        if expired:
            await self._database.execute(_FORGET, (client, key))
            return None
        return RecordedAnswer(client, key, fingerprint, status, json.loads(headers), body)

    async def record(self, answer: RecordedAnswer) -> None:
        async with self._database.connection() as connection:
            await keep(connection, answer)

    async def sweep(self) -> int:
        """Forget what is older than a day; how many answers that were."""
        return await self._database.execute(_SWEEP)
