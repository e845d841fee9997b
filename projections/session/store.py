"""The rows of sessions: drawn at every start, fenced by their number.

A worker draws a number only under its lease on the shard and while the session is wanted, in one statement. So no number is drawn
after a stop was committed, nor by a worker that has lost the shard.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, LiteralString
from uuid import UUID

from pydantic_core import to_json

from projections.kernel.database.arrays import bigints, texts
from projections.kernel.database.database import Database, Pool
from projections.kernel.sql.storable_text import storable_json, storable_text

_LONGEST: Final = 500


class SessionState(StrEnum):
    """The states of a session.

    Sessions that are STARTING, RUNNING or WAITING, which is between a failure and the next attempt, have a worker. HANDED_OVER
    means that the worker was stopped, and the next one starts the session at once.
    """

    STARTING = "starting"
    RUNNING = "running"
    WAITING = "waiting"
    HANDED_OVER = "handed_over"
    STOPPED = "stopped"
    FAILED = "failed"


UNFINISHED: Final = (SessionState.STARTING, SessionState.RUNNING, SessionState.WAITING, SessionState.HANDED_OVER)
ENDED: Final = (SessionState.STOPPED, SessionState.FAILED)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A session that is to run, as returned by the query of its kind. `wish` identifies the order: with another order the session
    starts anew."""

    key: str
    owner: str
    wish: int


@dataclass(frozen=True, slots=True)
class WantedQuery:
    """The sessions of a kind that are to run: a query for (key text, owner text, wish bigint)."""

    kind: str
    sql: LiteralString


@dataclass(frozen=True, slots=True)
class Hold:
    """The lease of a worker on one shard."""

    consumer: str
    member: UUID
    shard: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Drawn:
    """A number drawn for a start.

    `failures` counts consecutive failures before this start, `restarts` the earlier starts under the same order, and `place` is
    what those have stored. `waited` means that the previous attempt has begun nothing, and does not count as a restart.
    """

    number: int
    failures: int = 0
    restarts: int = 0
    place: Mapping[str, Any] = field(default_factory=dict)
    waited: bool = False


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A session as shown to operators."""

    kind: str
    key: str
    shard: int
    owner: str
    wish: int
    number: int
    state: SessionState
    host: str
    failures: int
    restarts: int
    reason: str
    started_at: datetime
    changed_at: datetime
    statistics: Mapping[str, Any] | None
    statistics_at: datetime | None


_COLUMNS = """
SELECT kind, key, shard, owner, wish, number, state, host, failures, restarts, reason, started_at, changed_at, statistics,
    statistics_at
FROM sessions
"""
_DRAW = """
INSERT INTO sessions AS s (kind, key, shard, owner, wish, number, state, host, started_at, changed_at)
SELECT %(kind)s, %(key)s, %(shard)s, %(owner)s, %(wish)s, floor(extract(epoch FROM clock_timestamp()))::bigint, 'starting',
    %(host)s, clock_timestamp(), clock_timestamp()
FROM consumer_shards c
WHERE c.consumer = %(consumer)s AND c.shard = %(shard)s AND c.owner = %(member)s AND c.epoch = %(epoch)s
    AND c.held_until > clock_timestamp()
    AND EXISTS (
        SELECT FROM ({wanted}) AS w (key, owner, wish) WHERE w.key = %(key)s AND w.owner = %(owner)s AND w.wish = %(wish)s
    )
ON CONFLICT (kind, key) DO UPDATE SET
    owner = excluded.owner, wish = excluded.wish, number = greatest(s.number + 1, excluded.number), state = excluded.state,
    host = excluded.host, shard = excluded.shard, reason = '', started_at = excluded.started_at, changed_at = excluded.changed_at,
    failures = coalesce(%(failures)s::int, CASE WHEN s.wish = excluded.wish THEN s.failures ELSE 0 END),
    restarts = CASE WHEN s.wish = excluded.wish THEN s.restarts + %(again)s ELSE 0 END,
    place = CASE WHEN s.wish = excluded.wish THEN s.place END,
    statistics = NULL, statistics_at = NULL
RETURNING number, failures, restarts, coalesce(place, '{{}}')
"""
_SETTLE = """
UPDATE sessions SET state = %s, reason = %s, failures = coalesce(%s, failures), changed_at = clock_timestamp()
WHERE kind = %s AND key = %s AND number = %s
"""
_KEEP_PLACE = """
UPDATE sessions SET place = coalesce(place, '{}') || jsonb_build_object(%s::text, %s::jsonb)
WHERE kind = %s AND key = %s AND number = %s
"""
_REPORT = """
UPDATE sessions s SET statistics = r.statistics::jsonb, statistics_at = clock_timestamp()
FROM unnest(%s::text[], %s::bigint[], %s::text[]) AS r (key, number, statistics)
WHERE s.kind = %s AND s.key = r.key AND s.number = r.number RETURNING s.key
"""


_COUNTS = """
SELECT kind, state, count(*), CASE WHEN state = 'running'
    THEN extract(epoch FROM clock_timestamp() - min(greatest(statistics_at, started_at)))::float8 END
FROM sessions GROUP BY kind, state
"""
_PUSHES = """
SELECT coalesce((statistics->>'connected')::boolean, false), count(*) FROM sessions
WHERE kind = 'publication' AND state = ANY(ARRAY['starting', 'running', 'waiting', 'handed_over']) GROUP BY 1
"""


class SessionStore:
    """The sessions of one kind."""

    def __init__(self, database: Database, wanted: WantedQuery) -> None:
        self._database = database
        self._wanted = wanted
        self.kind = wanted.kind

    async def wanted(self) -> Sequence[Wanted]:
        return [Wanted(*row) for row in await self._database.rows(self._wanted.sql)]

    async def unfinished(self, shards: Collection[int]) -> Sequence[SessionRow]:
        """Return the sessions of these shards that have not ended, or have failed: what a worker finds when it takes over."""
        states = [*UNFINISHED, SessionState.FAILED]
        condition = "WHERE kind = %s AND shard = ANY(%s::bigint[]) AND state = ANY(%s::text[])"
        rows = await self._database.rows(_COLUMNS + condition, (self.kind, bigints(list(shards)), texts(states)))
        return [_row(row) for row in rows]

    async def handed_over(self, own_shards: Collection[int]) -> bool:
        """Return True if sessions of shards other than these wait for a worker that starts them at once."""
        condition = "SELECT FROM sessions WHERE kind = %s AND state = %s AND NOT shard = ANY(%s::bigint[]) LIMIT 1"
        return bool(await self._database.rows(condition, (self.kind, SessionState.HANDED_OVER, bigints(list(own_shards)))))

    async def draw(
        self, wanted: Wanted, hold: Hold, *, host: str, waited: bool = False, failures: int | None = None
    ) -> Drawn | None:
        """Begin a session. Return None if it is not wanted any more, or the shard belongs to another worker.

        `waited` has the meaning of `Drawn.waited`. Without `failures` their number is unchanged.
        """
        parameters = {
            "kind": self.kind,
            "key": wanted.key,
            "owner": wanted.owner,
            "wish": wanted.wish,
            "host": host,
            "again": 0 if waited else 1,
            "failures": failures,
            "consumer": hold.consumer,
            "shard": hold.shard,
            "member": hold.member,
            "epoch": hold.epoch,
        }
        row = await self._database.row(_DRAW.format(wanted=self._wanted.sql), parameters)
        return None if row is None else replace(Drawn(*row), waited=waited)

    async def settle(self, key: str, number: int, *, state: SessionState, reason: str = "", failures: int | None = None) -> bool:
        """Store the state of a session. Return False if a later session of the key has begun. Without `failures` their number is
        unchanged."""
        return bool(
            await self._database.execute(_SETTLE, (state, storable_text(reason)[:_LONGEST], failures, self.kind, key, number))
        )

    async def keep_place(self, key: str, number: int, *, part: str, place: Mapping[str, Any]) -> bool:
        """Store the place of one part of the session; the other parts are unchanged. Return False if a later session of the key has
        begun."""
        document = to_json(place).decode()
        return bool(await self._database.execute(_KEEP_PLACE, (part, document, self.kind, key, number)))

    async def report(self, statistics: Mapping[tuple[str, int], Mapping[str, Any]]) -> set[str]:
        """Write statistics by key and number, and return the keys whose session has been replaced. Values that a column cannot
        store become null."""
        keys = [key for key, _ in statistics]
        documents = [storable_json(document) for document in statistics.values()]
        parameters = (texts(keys), bigints([number for _, number in statistics]), texts(documents), self.kind)
        return set(keys) - {key for (key,) in await self._database.rows(_REPORT, parameters)}


class SessionQueries:
    """Queries of sessions of all kinds."""

    def __init__(self, database: Pool) -> None:
        self._database = database

    async def counts(self) -> Sequence[tuple[str, str, int, float | None]]:
        """Return kind, state and number of sessions, and for running ones the longest time in seconds since a session was last
        heard of."""
        return [(kind, state, count, silent) for kind, state, count, silent in await self._database.rows(_COUNTS)]

    async def pushes(self) -> Mapping[bool, int]:
        """Return the numbers of pushed live publications, by whether their targets accept them."""
        return {bool(connected): count for connected, count in await self._database.rows(_PUSHES)}

    async def list(self) -> Sequence[SessionRow]:
        """Return the sessions in progress first, the latest change first."""
        order = "ORDER BY state = ANY(%s::text[]) DESC, changed_at DESC, kind, key"
        return [_row(row) for row in await self._database.rows(_COLUMNS + order, (texts(list(UNFINISHED)),))]

    async def of_event(self, event: UUID) -> Sequence[SessionRow]:
        """Return the encoders of an Event, one session for each channel that it was on, the latest start first."""
        condition = "WHERE kind = 'encoder' AND owner = %s ORDER BY started_at DESC, key"
        return [_row(row) for row in await self._database.rows(_COLUMNS + condition, (str(event),))]


async def remove_ended_sessions(database: Database, before: datetime) -> int:
    """Remove sessions that ended before that time, and return their number. Their history is in the log."""
    return await database.execute(
        "DELETE FROM sessions WHERE state = ANY(%s::text[]) AND changed_at < %s", (texts(list(ENDED)), before)
    )


def _row(row: Sequence[Any]) -> SessionRow:
    kind, key, shard, owner, wish, number, state, *rest = row
    return SessionRow(kind, key, shard, owner, wish, number, SessionState(state), *rest)
