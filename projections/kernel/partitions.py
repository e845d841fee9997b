"""Tables partitioned by days: partitions are made ahead of need, and dropped by age.

A drop gives the space back at once, and costs the same whatever the partition holds. A row for which there is no partition goes
to the default partition (`<table>_default`), so an insert never fails, whatever the clock does. ADR 0032.

An attach waits for readers of the default partition, and a drop for all transactions that use the table; whoever comes later waits
behind it. Both give up after a moment and are tried again later, so a long reader does not stop the writers.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final, NamedTuple

import psycopg
from psycopg import AsyncConnection
from psycopg.rows import TupleRow

AHEAD: Final = 3
"""There are partitions for today and so many days after it."""
MOST_PARTITIONS: Final = 30
"""About so many are kept: with more of them each has several days, since a query locks and plans all partitions of a table."""

_LOCK: Final = 0x6D6C2064617973  # "ml days"
_PATIENCE: Final = "100ms"
_CHUNK: Final = 5000
_NAMES: Final = """
SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = %s::regclass ORDER BY c.relname
"""
_DAY: Final = timedelta(days=1)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DayTable:
    """A table that is partitioned by a column with times. `setting` names the setting with the days for which rows are kept;
    `longer`: so many days more."""

    name: str
    column: str
    setting: str
    longer: int = 0


class Partition(NamedTuple):
    """From its first day, without the day `end`, in UTC."""

    begin: date
    end: date


async def partitions(connection: AsyncConnection[TupleRow], table: DayTable) -> list[Partition]:
    """All but the default partition, the oldest first."""
    names = await (await connection.execute(_NAMES, (table.name,))).fetchall()
    days = [name.removeprefix(f"{table.name}_").split("_") for (name,) in names]
    return [Partition(*map(date.fromisoformat, one)) for one in days if one != ["default"]]


async def cover(connection: AsyncConnection[TupleRow], table: DayTable, *, now: datetime, days: int, ahead: int = AHEAD) -> bool:
    """Make the partitions that are missing from today on. Rows are to be kept for so many `days`. False: a reader is in the way.

    A day with rows in the default partition keeps it. The connection must be that of the table's owner."""
    today, width = _day(now), max(1, days // MOST_PARTITIONS)
    try:
        while await _make_next(connection, table, today, until=today + ahead * _DAY, width=width):
            pass
    except psycopg.errors.LockNotAvailable:
        _log.info("a partition of %s could not be made yet: a reader is in the way", table.name)
        return False
    return True


async def _make_next(connection: AsyncConnection[TupleRow], table: DayTable, today: date, *, until: date, width: int) -> bool:
    try:
        async with connection.transaction():
            await _begin(connection)
            taken = {day for one in await partitions(connection, table) for day in _days(one)}
            taken |= await _days_in_default(connection, table, Partition(today, until + width * _DAY))
            free = [day for day in _days(Partition(today, until + _DAY)) if day not in taken]
            if not free:
                return False
            end = free[0] + _DAY
            while end not in taken and end < free[0] + width * _DAY:
                end += _DAY
            await _make(connection, table, Partition(free[0], end))
    except psycopg.errors.CheckViolation:  # a row of that day came into the default partition meanwhile
        _log.info("a day of %s begins in its default partition", table.name)
    return True


async def _make(connection: AsyncConnection[TupleRow], table: DayTable, new: Partition) -> None:
    name, (begin, end) = _name(table, new), _bounds(new)
    await _execute(connection, f"CREATE TABLE {name} (LIKE {table.name} INCLUDING ALL)")
    await _execute(connection, f"ALTER TABLE {table.name} ATTACH PARTITION {name} FOR VALUES FROM ('{begin}') TO ('{end}')")


async def _days_in_default(connection: AsyncConnection[TupleRow], table: DayTable, within: Partition) -> set[date]:
    begin, end = _bounds(within)
    found = await _execute(
        connection,
        f"SELECT DISTINCT ({table.column} AT TIME ZONE 'UTC')::date FROM {table.name}_default"
        f" WHERE {table.column} >= '{begin}' AND {table.column} < '{end}'",
    )
    return {day for (day,) in await found.fetchall()}


async def drop_before(connection: AsyncConnection[TupleRow], table: DayTable, *, before: datetime) -> bool:
    """Drop partitions of which all rows are older, and delete such rows of the default partition. False: a reader is in the way."""
    try:
        while await _drop_first(connection, table, _day(before)):
            pass
    except psycopg.errors.LockNotAvailable:
        _log.info("an old partition of %s could not be dropped yet: a reader is in the way", table.name)
        return False
    await _delete_from_default(connection, table, before)
    return True


async def _drop_first(connection: AsyncConnection[TupleRow], table: DayTable, before: date) -> bool:
    async with connection.transaction():
        await _begin(connection)
        old = [one for one in await partitions(connection, table) if one.end <= before]
        if old:
            await _execute(connection, f"DROP TABLE {_name(table, old[0])}")
            _log.info("dropped what %s held from %s to %s", table.name, old[0].begin, old[0].end - _DAY)
    return bool(old)


async def _delete_from_default(connection: AsyncConnection[TupleRow], table: DayTable, before: datetime) -> None:
    default = f"{table.name}_default"
    old = f"SELECT ctid FROM {default} WHERE {table.column} < '{before.isoformat()}' LIMIT {_CHUNK} FOR UPDATE SKIP LOCKED"
    while (await _execute(connection, f"DELETE FROM {default} WHERE ctid = ANY(ARRAY({old}))")).rowcount == _CHUNK:
        pass


async def _begin(connection: AsyncConnection[TupleRow]) -> None:
    """One change of partitions at a time: what is there is read after the lock."""
    await connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
    await _execute(connection, f"SET LOCAL lock_timeout = '{_PATIENCE}'")


async def _execute(connection: AsyncConnection[TupleRow], statement: str) -> psycopg.AsyncCursor[tuple[Any, ...]]:
    return await connection.execute(statement.encode())


def _name(table: DayTable, one: Partition) -> str:
    return f"{table.name}_{one.begin:%Y%m%d}_{one.end:%Y%m%d}"


def _bounds(one: Partition) -> tuple[str, str]:
    begin, end = (datetime.combine(day, time(), UTC).isoformat() for day in one)
    return begin, end


def _days(one: Partition) -> Sequence[date]:
    return [one.begin + number * _DAY for number in range((one.end - one.begin).days)]


def _day(moment: datetime) -> date:
    return moment.astimezone(UTC).date()
