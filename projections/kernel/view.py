"""A view: a table with one row per aggregate, a pure function of the aggregate's state at a version.

The append writes the rows of the aggregates it changes, in its own transaction; a rebuild makes all of them again from the log.
Both use the same `row`, so live and rebuilt views are equal, and a row that is fed twice, or late, does no harm.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from domain.kernel.aggregate import AggregateRoot
from projections.kernel.arrays import PACKERS, PackedArray


@dataclass(frozen=True, slots=True)
class Column:
    """`type` is the PostgreSQL type of the column, `wire_type` the type of its parameter where that is another.

    Arrays travel as their text form, because unnest flattens them."""

    name: str
    type: str
    wire_type: str | None = None

    @property
    def parameter_type(self) -> str:
        if self.type.endswith("[]"):
            return "text"
        return self.wire_type or ("bigint" if self.type in ("smallint", "integer") else self.type)

    @property
    def select_expression(self) -> str:
        return f"v.{self.name}::{self.type}" if self.parameter_type == "text" != self.type else f"v.{self.name}"


@dataclass(frozen=True)
class View:
    """`version` changes whenever `columns`, `indexes` or the meaning of `row` do; start-up then rebuilds the view.

    `row` gives the columns' values in order, the key first and the aggregate's version second; with `many_rows`, any number
    of such rows, and an aggregate that once had a row keeps it.
    `indexes` are CREATE INDEX tails with `{table}` for the table's name, keyed by the index's own name.
    """

    name: str
    version: int
    kinds: tuple[str, ...]
    columns: tuple[Column, ...]
    row: Callable[[Any], Any]
    key: tuple[str, ...]
    indexes: Mapping[str, str]
    many_rows: bool = False

    def rows(self, root: AggregateRoot) -> Sequence[tuple[Any, ...]]:
        return self.row(root) if self.many_rows else (self.row(root),)

    def create(self, table: str) -> str:
        columns = ", ".join(f"{c.name} {c.type}{' NOT NULL' if c.name in (*self.key, 'version') else ''}" for c in self.columns)
        return f"CREATE TABLE {table} ({columns})"

    def complete(self, table: str) -> Sequence[str]:
        """Key and indexes, made after a bulk load."""
        key = ", ".join(self.key)
        made = [f"ALTER TABLE {table} ADD CONSTRAINT {table}_key PRIMARY KEY ({key})"]
        made += [f"CREATE INDEX {table}_{name} ON {tail.format(table=table)}" for name, tail in self.indexes.items()]
        return made

    def upsert(self, table: str, source: str) -> str:
        """INSERT … SELECT from arrays; `source` is joined in so that the log's lock is taken first."""
        names = ", ".join(c.name for c in self.columns)
        taken = ", ".join(c.select_expression for c in self.columns)
        arrays = ", ".join(f"%s::{c.parameter_type}[]" for c in self.columns)
        changed = ", ".join(f"{c.name} = excluded.{c.name}" for c in self.columns if c.name not in self.key)
        return (
            f"INSERT INTO {table} ({names}) SELECT {taken} FROM {source}unnest({arrays}) AS v({names}) "
            f"ON CONFLICT ({', '.join(self.key)}) DO UPDATE SET {changed} WHERE excluded.version > {table}.version"
        )

    @cached_property
    def upsert_appended(self) -> str:
        """The upsert as part of an append: it waits for the CTE `appended`, so that every writer takes the log's lock first."""
        return self.upsert(self.name, "appended, ")

    @cached_property
    def _packers(self) -> tuple[Callable[[Sequence[Any]], PackedArray], ...]:
        return tuple(PACKERS[column.parameter_type] for column in self.columns)

    def pack(self, rows: Sequence[tuple[Any, ...]]) -> list[PackedArray]:
        return [pack(values) for pack, values in zip(self._packers, zip(*rows, strict=True), strict=True)]


class Views:
    """All views of the product, by the kind of aggregate that they show."""

    def __init__(self, views: Sequence[View]) -> None:
        self.all = tuple(views)
        self.by_name = {view.name: view for view in views}
        self._of: dict[str, tuple[View, ...]] = {}
        for view in views:
            for kind in view.kinds:
                self._of[kind] = (*self._of.get(kind, ()), view)

    def rows(self, root: AggregateRoot) -> list[tuple[View, tuple[Any, ...]]]:
        return [(view, row) for view in self._of.get(root.KIND, ()) for row in view.rows(root)]
