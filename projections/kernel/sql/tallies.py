"""Tallies: exact totals of a view for some of its filters, maintained by triggers.

A count would read every row that matches. A tally is written in the transaction that changes the view, as a row with the change of
the total; `Tallies` adds these rows up from time to time. A total is the added-up value plus the changes that are not added up yet.
Rows are removed outside the order of the log, so a removal changes the added-up value directly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final
from uuid import UUID

from projections.kernel.database.database import Database, unavailable

_COUNTED = 50_000
_ANY_DAY: Final = "'-infinity'::date"


@dataclass(frozen=True, slots=True)
class Tally:
    """Totals by the value of an SQL expression over the row `v`. Rows without a value are not counted.

    With `each` the expression is an array, and a row counts once for each of its elements. With `day`, a timestamp, there is a
    total for each day in UTC.
    """

    dimension: str
    value: str = "''"
    each: bool = False
    day: str | None = None

    @property
    def selection(self) -> str:
        """A query for the dimension, value and day of the row `v`."""
        day = _ANY_DAY if self.day is None else f"({self.day} AT TIME ZONE 'UTC')::date"
        if self.each:
            return f"SELECT DISTINCT '{self.dimension}', u.value::text, {day} FROM unnest({self.value}) AS u(value)"
        return f"SELECT '{self.dimension}', ({self.value})::text, {day} WHERE {self.day or self.value} IS NOT NULL"


def triggers(
    tallies: Sequence[Tally], *, view: str, version: int, table: str, generation: UUID, marks_deleted: bool = True
) -> list[str]:
    """Return the statements for a filled table without other writers: triggers that maintain its totals, and then the totals of its
    rows.

    `marks_deleted` says that the table has a column `deleted`. Otherwise every row counts as one that is not deleted.
    """
    changes = partial(_changes, tallies, deleted="coalesce(v.deleted, false)" if marks_deleted else "false")
    inserted = changes("count(*)", rows="inserted AS v")
    removed = f"{changes('-count(*)', rows='removed AS v', into='view_tallies')} ORDER BY 1, 2, 3, 4, 5 {_ADDED}"
    both = "(SELECT 1 AS sign, * FROM updated UNION ALL SELECT -1, * FROM previous) AS v"
    updated = changes("sum(v.sign)", rows=both) + " HAVING sum(v.sign) <> 0"
    function = f"public.tally_{view}_{version}"
    each = f"FOR EACH STATEMENT EXECUTE FUNCTION {function}"
    return [
        _FUNCTION.format(name=f"{function}_inserted", rows="inserted", insert=inserted.format(generation="TG_ARGV[0]")),
        _FUNCTION.format(name=f"{function}_updated", rows="updated", insert=updated.format(generation="TG_ARGV[0]")),
        _FUNCTION.format(name=f"{function}_removed", rows="removed", insert=removed.format(generation="TG_ARGV[0]")),
        f"CREATE TRIGGER tally_inserted_{version} AFTER INSERT ON public.{table} REFERENCING NEW TABLE AS inserted "
        f"{each}_inserted('{generation}')",
        f"CREATE TRIGGER tally_updated_{version} AFTER UPDATE ON public.{table} "
        f"REFERENCING NEW TABLE AS updated OLD TABLE AS previous {each}_updated('{generation}')",
        f"CREATE TRIGGER tally_removed_{version} AFTER DELETE ON public.{table} REFERENCING OLD TABLE AS removed "
        f"{each}_removed('{generation}')",
        changes("count(*)", rows=f"public.{table} AS v").format(generation=f"'{generation}'"),
    ]


def _changes(tallies: Sequence[Tally], change: str, *, rows: str, deleted: str, into: str = "view_tally_changes") -> str:
    dimensions = " UNION ALL ".join(tally.selection for tally in tallies)
    return (
        f"INSERT INTO public.{into} AS known (generation, dimension, deleted, day, value, {_NUMBER[into]}) "
        f"SELECT {{generation}}::uuid, t.dimension, {deleted}, t.day, t.value, {change} "
        f"FROM {rows} CROSS JOIN LATERAL ({dimensions}) AS t(dimension, value, day) GROUP BY 1, 2, 3, 4, 5"
    )


_NUMBER: Final = {"view_tally_changes": "change", "view_tallies": "total"}
_ADDED: Final = """
ON CONFLICT (generation, dimension, deleted, day, value) DO UPDATE SET total = known.total + excluded.total
"""
_FUNCTION = """
CREATE OR REPLACE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM {rows}) THEN
        {insert};
    END IF;
    RETURN NULL;
END $$
"""


def total(view: str, version: int, *, condition: str) -> str:
    """Return an SQL expression for the total of all tallies that match a condition on `dimension`, `deleted`, `day` and `value`.

    It is NULL if the table has another version of the view, which may have other tallies.
    """
    generation = f"(SELECT view_generation('public.{view}', {version}))"  # computed once, not for each row
    matching = f"generation = {generation} AND {condition}"
    progress = f"coalesce((SELECT through FROM view_tally_progress WHERE generation = {generation}), 0)"
    return (
        f"CASE WHEN {generation} IS NOT NULL THEN ((SELECT coalesce(sum(total), 0) FROM view_tallies WHERE {matching})"
        f" + (SELECT coalesce(sum(change), 0) FROM view_tally_changes WHERE id > {progress} AND {matching}))::bigint END"
    )


def totals(view: str, version: int, *, dimension: str) -> str:
    """Return a query for each value of the dimension and its total, over rows that are `%(deleted)s`.

    The query returns one row of NULLs if the table has another version of the view.
    """
    generation = f"(SELECT view_generation('public.{view}', {version}))"
    matching = f"generation = {generation} AND dimension = '{dimension}' AND deleted = %(deleted)s"
    progress = f"coalesce((SELECT through FROM view_tally_progress WHERE generation = {generation}), 0)"
    return (
        f"SELECT value, sum(total)::bigint FROM (SELECT value, total FROM view_tallies WHERE {matching}"
        f" UNION ALL SELECT value, change FROM view_tally_changes WHERE id > {progress} AND {matching}) AS known"
        f" GROUP BY value UNION ALL SELECT NULL, NULL WHERE {generation} IS NULL"
    )


_GENERATIONS = """
SELECT DISTINCT encode(substring(tgargs FROM 1 FOR 36), 'escape')::uuid FROM pg_trigger WHERE starts_with(tgname, 'tally_inserted_')
"""
_CHANGED = "SELECT FROM view_tally_changes LIMIT 1"
_BEGIN = "INSERT INTO view_tally_progress (generation) VALUES (%s) ON CONFLICT DO NOTHING"
_LOCK = "SELECT through FROM view_tally_progress WHERE generation = %s FOR UPDATE"
_LAST = """
SELECT count(*), max(id) FROM (
    SELECT id FROM view_tally_changes WHERE id > %s AND generation = %s ORDER BY id LIMIT %s
) AS next
"""
# Rows are locked in the order in which removals lock them, which avoids deadlocks.
_ADD = f"""
INSERT INTO view_tallies AS known (generation, dimension, deleted, day, value, total)
SELECT generation, dimension, deleted, day, value, sum(change) FROM view_tally_changes
WHERE id > %(after)s AND id <= %(last)s AND generation = %(generation)s GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5
{_ADDED}"""
_REMOVE = "DELETE FROM view_tally_changes WHERE id > %(after)s AND id <= %(last)s AND generation = %(generation)s"
_MOVE = "UPDATE view_tally_progress SET through = %(last)s WHERE generation = %(generation)s"
_FORGET = [
    f"DELETE FROM {table} WHERE generation NOT IN ({_GENERATIONS})"  # a table has its trigger before it has totals
    for table in ("view_tallies", "view_tally_changes", "view_tally_progress")
]


class Tallies:
    """Adds up the changes of all totals. Several processes may do this at once: one waits for the other."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add_up(self) -> bool:
        """Add up some of the changes, and return True if there may be more."""
        more = False
        if not await self._database.rows(_CHANGED):
            return False
        for (generation,) in await self._database.rows(_GENERATIONS):
            more = await self._add_up(generation) or more
        return more

    async def _add_up(self, generation: UUID) -> bool:
        with unavailable():
            async with self._database.connection() as connection, connection.transaction():
                await connection.execute("SET LOCAL idle_in_transaction_session_timeout = '5s'")
                await connection.execute(_BEGIN, (generation,))
                [after] = await (await connection.execute(_LOCK, (generation,))).fetchone() or (0,)
                [count, last] = await (await connection.execute(_LAST, (after, generation, _COUNTED))).fetchone() or (0, None)
                if count:
                    changes = {"after": after, "last": last, "generation": generation}
                    for statement in (_ADD, _REMOVE, _MOVE):
                        await connection.execute(statement, changes)
        return bool(count == _COUNTED)

    async def forget(self) -> None:
        """Delete the totals of tables that no longer exist."""
        for statement in _FORGET:
            await self._database.execute(statement)
