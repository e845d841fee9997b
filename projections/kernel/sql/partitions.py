"""Tables partitioned by days: partitions are created ahead of need, and dropped by age.

A drop frees the space at once, and costs the same whatever the partition holds. A row without a matching partition goes to the
default partition (`<table>_default`), so an insert never fails, whatever the clock does. See ADR 0032. The functions of
`partitions.sql` do the work as the owner of the tables, since the role of the running product owns none.

An attach waits for readers of the default partition, and a drop for all transactions that use the table; later transactions queue
behind it. Both give up after a moment and are retried later, so a long reader does not block the writers.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final, LiteralString, NamedTuple

import psycopg
from psycopg import AsyncConnection
from psycopg.rows import TupleRow

AHEAD: Final = 3
"""The number of days after today for which there are partitions."""
MOST_PARTITIONS: Final = 30
"""The approximate number of partitions of a table. Beyond it each partition spans several days, since a query locks and plans all
partitions of a table."""

_CHUNK: Final = 5000
_ALL: Final = "SELECT first_day, end_day FROM day_partitions(%s)"
_MAKE: Final = "SELECT make_day_partition(%s, %s, %s, %s)"
_DROP: Final = "SELECT first_day, end_day FROM drop_day_partition(%s, %s)"
_DELETE: Final = "SELECT delete_from_default(%s, %s, %s)"
_DAY: Final = timedelta(days=1)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DayTable:
    """A table that is partitioned by a column of times, with a default partition.

    `setting` names the setting with the number of days for which rows are stored; `longer` is a number of additional days.
    """

    name: str
    setting: str
    longer: int = 0


class Partition(NamedTuple):
    """The days of a partition in UTC, from `begin` up to but not including `end`."""

    begin: date
    end: date


async def partitions(connection: AsyncConnection[TupleRow], table: DayTable) -> list[Partition]:
    """Return all partitions except the default one, the oldest first."""
    return [Partition(*row) for row in await (await connection.execute(_ALL, (table.name,))).fetchall()]


async def cover(connection: AsyncConnection[TupleRow], table: DayTable, *, now: datetime, days: int, ahead: int = AHEAD) -> bool:
    """Create the missing partitions from today on, for rows that are stored for `days` days. Return False if a reader is in the
    way.

    A day that already has rows in the default partition stays there.
    """
    today, width = _day(now), max(1, days // MOST_PARTITIONS)
    try:
        while await _make_next(connection, table, today, until=today + ahead * _DAY, width=width):
            pass
    except psycopg.errors.LockNotAvailable:
        _log.info("a partition of %s could not be created yet: a reader is in the way", table.name)
        return False
    return True


async def _make_next(connection: AsyncConnection[TupleRow], table: DayTable, today: date, *, until: date, width: int) -> bool:
    try:
        return bool(await _value(connection, _MAKE, table.name, today, until, width))
    except psycopg.errors.CheckViolation:  # a row of that day was inserted into the default partition in the meantime
        _log.info("the first rows of a day of %s are in its default partition", table.name)
    return True


async def drop_before(connection: AsyncConnection[TupleRow], table: DayTable, *, before: datetime) -> bool:
    """Drop the partitions whose rows are all older, and delete such rows from the default partition. Return False if a reader is in
    the way."""
    try:
        while await _drop_first(connection, table, _day(before)):
            pass
    except psycopg.errors.LockNotAvailable:
        _log.info("an old partition of %s could not be dropped yet: a reader is in the way", table.name)
        return False
    while await _value(connection, _DELETE, table.name, before, _CHUNK) == _CHUNK:
        pass
    return True


async def _drop_first(connection: AsyncConnection[TupleRow], table: DayTable, before: date) -> bool:
    begin, end = await (await connection.execute(_DROP, (table.name, before))).fetchone() or (None, None)
    if begin is not None and end is not None:
        _log.info("dropped the rows of %s from %s to %s", table.name, begin, end - _DAY)
    return begin is not None


async def _value(connection: AsyncConnection[TupleRow], question: LiteralString, *parameters: Any) -> Any:
    row = await (await connection.execute(question, parameters)).fetchone()
    return None if row is None else row[0]


def _day(moment: datetime) -> date:
    return moment.astimezone(UTC).date()
