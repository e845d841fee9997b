"""A view: a table with one row per aggregate, a pure function of the aggregate's state at a version.

The append writes the rows of the aggregates that it changes, in its own transaction; a rebuild makes all of them again from the
log. Both use the same columns, so live and rebuilt views are equal, and writing a row twice, or late, is harmless.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, NamedTuple, TypeVar

from domain.kernel.aggregate import AggregateRoot
from domain.kernel.ids import new_id
from projections.kernel.database.arrays import PACKERS, PackedArray, Packer
from projections.kernel.sql.tallies import Tally, triggers

S = TypeVar("S")
"""What one row of a view shows: the aggregate, or one of its parts."""


@dataclass(frozen=True)
class Column(Generic[S]):
    """A column of a view. `type` is its PostgreSQL type, and `value` returns its value for a row.

    `wire_type` is the type of its parameter if that differs. Arrays are sent in their text form, because unnest flattens them. A
    `fixed` column keeps the value of the first row.
    """

    name: str
    type: str
    value: Callable[[S], Any]
    wire_type: str | None = field(default=None, kw_only=True)
    fixed: bool = field(default=False, kw_only=True)

    @property
    def parameter_type(self) -> str:
        if self.type.endswith("[]"):
            return "text"
        return self.wire_type or ("bigint" if self.type in ("smallint", "integer") else self.type)

    @property
    def select_expression(self) -> str:
        return f"v.{self.name}::{self.type}" if self.parameter_type == "text" != self.type else f"v.{self.name}"


@dataclass(frozen=True)
class View(Generic[S]):
    """The definition of a view.

    `version` is raised whenever `columns` or `indexes`, or the meaning of a value, change; the view is then built again. The first
    column is the key, or the first part of it. With `parts`, a row shows a part of an aggregate; `version` is then the second
    column, and an aggregate that once had a row always has it.

    `indexes` maps the names of indexes to the tails of their CREATE INDEX statements, with `{table}` for the table's name. If some
    columns of an aggregate are fixed, later changes make and send only the values of the others.

    `tallies` are the totals that are maintained, separately for rows with and without the mark `deleted` if there is such a column.

    `earlier` is the version of the previous release. It is written and read as long as a build of that release is running, and
    until this version is built. Queries know only this version: `from_earlier` has an SQL expression, over the columns of the
    earlier version, for each column that the earlier version lacks or has in another form.
    """

    name: str
    version: int
    kinds: tuple[str, ...]
    columns: tuple[Column[S], ...]
    key: tuple[str, ...]
    indexes: Mapping[str, str]
    parts: Callable[[Any], Iterable[S]] | None = None
    tallies: tuple[Tally, ...] = ()
    earlier: View[Any] | None = None
    from_earlier: Mapping[str, str] = field(default_factory=dict)

    @property
    def key_name(self) -> str:
        """The name of the primary key. It contains the version and every append names it, so an append of another version writes
        nothing."""
        return f"{self.name}_{self.version}_key"

    def rows(self, root: Any) -> Sequence[tuple[Any, ...]]:
        parts = (root,) if self.parts is None else self.parts(root)
        return [self._row(part) for part in parts]

    def changed_rows(self, root: Any, *, previous: Any) -> Sequence[tuple[Any, ...]]:
        """Return the rows that differ from the state before: without the fixed columns, or with `parts` whole. The other parts keep
        the version of their own last change."""
        if self.parts is None:
            return (self._moving_row(root),)
        before = {self._compared_row(part) for part in self.parts(previous)}
        return [self._row(part) for part in self.parts(root) if self._compared_row(part) not in before]

    def create(self, table: str) -> str:
        columns = ", ".join(f"{c.name} {c.type}{' NOT NULL' if c.name in (*self.key, 'version') else ''}" for c in self.columns)
        return f"CREATE TABLE public.{table} ({columns})"

    def complete(self, table: str) -> Sequence[str]:
        """Return the statements that create the key, indexes and totals after a bulk load."""
        key = ", ".join(self.key)
        made = [f"ALTER TABLE public.{table} ADD CONSTRAINT {table}_key PRIMARY KEY ({key})"]
        made += [f"CREATE INDEX {table}_{name} ON {tail.format(table=f'public.{table}')}" for name, tail in self.indexes.items()]
        if self.tallies:
            marks = any(column.name == "deleted" for column in self.columns)
            made += triggers(
                self.tallies, view=self.name, version=self.version, table=table, generation=new_id(), marks_deleted=marks
            )
        return made

    def rename(self, table: str) -> Sequence[str]:
        """Return the statements that give the table and its dependent objects the names of the view."""
        indexes = [f"ALTER INDEX public.{table}_{name} RENAME TO {self.name}_{name}" for name in self.indexes]
        key = f"ALTER INDEX public.{table}_key RENAME TO {self.key_name}"
        return [f"ALTER TABLE public.{table} RENAME TO {self.name}", key, *indexes]

    def stand_in(self, schema: str) -> str:
        """Return the statement for a database view of this version over the table of the earlier one, for queries."""
        shown = (f"({self.from_earlier.get(c.name, c.name)})::{c.type} AS {c.name}" for c in self.columns)
        return f"CREATE VIEW {schema}.{self.name} AS SELECT {', '.join(shown)} FROM public.{self.name}"

    def upsert(self, table: str, source: str, *, key: str | None = None) -> str:
        """Return an INSERT … SELECT from arrays. `source` is joined so that the log's lock is taken first. `key` is the name of a
        constraint that the table must have."""
        names = ", ".join(c.name for c in self.columns)
        taken = ", ".join(c.select_expression for c in self.columns)
        arrays = ", ".join(f"%s::{c.parameter_type}[]" for c in self.columns)
        changed = ", ".join(f"{c.name} = excluded.{c.name}" for c in self.columns if c.name not in self.key)
        conflict = f"({', '.join(self.key)})" if key is None else f"ON CONSTRAINT {key}"
        return (
            f"INSERT INTO public.{table} AS t ({names}) SELECT {taken} FROM {source}unnest({arrays}) AS v({names}) "
            f"ON CONFLICT {conflict} DO UPDATE SET {changed} WHERE excluded.version > t.version"
        )

    @cached_property
    def upsert_appended(self) -> str:
        """The upsert as part of an append: it waits for the CTE `appended`, so that every writer takes the log's lock first."""
        return self.upsert(self.name, "appended, ", key=self.key_name)

    @cached_property
    def update_appended(self) -> str:
        """The update of existing rows as part of an append, without the fixed columns."""
        names = ", ".join(c.name for c in self._moving)
        arrays = ", ".join(f"%s::{c.parameter_type}[]" for c in self._moving)
        changed = ", ".join(f"{c.name} = {c.select_expression}" for c in self._moving if c.name not in self.key)
        matching = " AND ".join(f"t.{name} = v.{name}" for name in self.key)
        return (
            f"UPDATE public.{self.name} AS t SET {changed} FROM appended, unnest({arrays}) AS v({names}) "
            f"WHERE {matching} AND v.version > t.version AND 'public.{self.key_name}'::regclass IS NOT NULL"
        )

    @cached_property
    def updates(self) -> bool:
        """True if a change sends only the columns that are not fixed."""
        return self.parts is None and any(column.fixed for column in self.columns)

    @cached_property
    def _moving(self) -> tuple[Column[S], ...]:
        return tuple(column for column in self.columns if not column.fixed)

    @cached_property
    def _row(self) -> Callable[[S], tuple[Any, ...]]:
        return _row_of(self.columns)

    @cached_property
    def _moving_row(self) -> Callable[[S], tuple[Any, ...]]:
        return _row_of(self._moving)

    @cached_property
    def _compared_row(self) -> Callable[[S], tuple[Any, ...]]:
        return _row_of([column for column in self._moving if column.name != "version"])

    @cached_property
    def _packers(self) -> Sequence[Packer]:
        return [PACKERS[column.parameter_type] for column in self.columns]

    @cached_property
    def _moving_packers(self) -> Sequence[Packer]:
        return [PACKERS[column.parameter_type] for column in self._moving]

    def pack(self, rows: Sequence[tuple[Any, ...]]) -> list[PackedArray]:
        return _pack(self._packers, rows)

    def pack_changes(self, rows: Sequence[tuple[Any, ...]]) -> list[PackedArray]:
        """Return the parameters of `update_appended`."""
        return _pack(self._moving_packers, rows)


class ViewRow(NamedTuple):
    """A row to write. With `update` it has only the columns that change."""

    view: View[Any]
    values: tuple[Any, ...]
    update: bool


class Views:
    """All views of the product, by the kind of aggregate that they show."""

    def __init__(self, views: Sequence[View[Any]]) -> None:
        self.all = tuple(views)
        self.by_name = {view.name: view for view in views}
        self._of: dict[str, tuple[View[Any], ...]] = {}
        self._write(views)

    def _write(self, views: Iterable[View[Any]]) -> None:
        self._of = {}
        for view in views:
            for kind in view.kinds:
                self._of[kind] = (*self._of.get(kind, ()), view)

    def rows(self, root: AggregateRoot, *, previous: AggregateRoot | None) -> list[ViewRow]:
        """Return the rows that change with the aggregate. `previous` is its state before; None if it is new."""
        views = self._of.get(root.KIND, ())
        if previous is None:
            return [ViewRow(view, row, update=False) for view in views for row in view.rows(root)]
        changed = ((view, row) for view in views for row in view.changed_rows(root, previous=previous))
        return [ViewRow(view, row, update=view.updates) for view, row in changed]


def _row_of(columns: Sequence[Column[S]]) -> Callable[[S], tuple[Any, ...]]:
    """Return a function that makes a row of these columns. Its code is generated, like the methods of a dataclass: CPython calls
    functions from separate places almost twice as fast as in a loop."""
    values = {f"value_{number}": column.value for number, column in enumerate(columns)}
    made: Callable[[S], tuple[Any, ...]] = eval(f"lambda shown: ({' '.join(f'{name}(shown),' for name in values)})", values)  # noqa: S307
    return made


def _pack(packers: Sequence[Packer], rows: Sequence[tuple[Any, ...]]) -> list[PackedArray]:
    return [pack(values) for pack, values in zip(packers, zip(*rows, strict=True), strict=True)]
