"""Replays the stored events of aggregates, and compares the result with the views.

The eventsourcing library's own repository folds the events; the product's append, cache and snapshots are not involved.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Self

import psycopg
from eventsourcing.application import AggregateNotFoundError, Repository
from eventsourcing.persistence import EventStore
from psycopg.rows import TupleRow

from domain.kernel.aggregate import AggregateRoot
from domain.kernel.mapper import EventMapper
from projections.kernel.database import arrays
from projections.kernel.database.connection import with_limits
from projections.kernel.schema.view import View, Views
from projections.log.recorder import LogRecorder

_TRIES: Final = 10
"""The number of times that an aggregate is folded again if it changes at the same time."""
_STREAMS: Final = """
SELECT position, originator_id FROM events
WHERE position > %s AND originator_version = 1 AND starts_with(originator_id, %s) ORDER BY position LIMIT 1000
"""
_VERSION: Final = "SELECT coalesce(max(version), 0) FROM stream_events WHERE stream = stream_key(%s)"


@dataclass(frozen=True, slots=True)
class Replayed:
    """The result of the events of one aggregate. `version` is 0 if the log has no events of it. `differences` name the deviations
    of the views, without values."""

    stream: str
    version: int
    differences: tuple[str, ...]


class Replay:
    """Reads one log and its views. It blocks: use it in a separate thread."""

    def __init__(
        self, connection: psycopg.Connection[TupleRow], recorder: LogRecorder, *, mapper: EventMapper, views: Views
    ) -> None:
        self._connection = connection
        self._repository: Repository[str] = Repository(EventStore(mapper, recorder))
        self._views = views

    @classmethod
    @contextmanager
    def open(cls, conninfo: str, *, mapper: EventMapper, views: Views) -> Iterator[Self]:
        recorder = LogRecorder(conninfo, size=1)
        try:
            with psycopg.connect(with_limits(conninfo), autocommit=True) as connection:
                arrays.register(connection)
                yield cls(connection, recorder, mapper=mapper, views=views)
        finally:
            recorder.close()

    def of_stream(self, stream: str) -> Replayed:
        """Fold one aggregate. An aggregate that is written meanwhile is folded again."""
        for _ in range(_TRIES):
            root = self._fold(stream)
            differences = self._without_events(stream) if root is None else self._differences(root)
            version = 0 if root is None else root.version
            if not differences or self._connection.execute(_VERSION, (stream,)).fetchone() == (version,):
                break
        return Replayed(stream, version, differences)

    def of_kind(self, kind: str) -> Iterator[Replayed]:
        """Fold all aggregates of a kind, in the order in which they began, and then the rows that have no events in the log."""
        begun, after = set[str](), 0
        while rows := self._connection.execute(_STREAMS, (after, f"{kind}:")).fetchall():
            after = rows[-1][0]
            for _, stream in rows:
                begun.add(stream)
                yield self.of_stream(stream)
        for view, condition in self._keyed_views(kind):
            keys = self._connection.execute(f"SELECT {view.key[-1]}::text FROM public.{view.name} WHERE {condition}".encode())
            for stream in [f"{kind}:{key}" for (key,) in keys if f"{kind}:{key}" not in begun]:
                begun.add(stream)
                yield self.of_stream(stream)

    def _fold(self, stream: str) -> AggregateRoot | None:
        try:
            root: AggregateRoot = self._repository.get(stream)
        except AggregateNotFoundError:
            return None
        return root

    def _differences(self, root: AggregateRoot) -> tuple[str, ...]:
        differences = dict[str, None]()
        for view, values, _ in self._views.rows(root, previous=None):
            row = self._connection.execute(_comparison(view).encode(), view.pack([values])).fetchone()
            assert row is not None, "one row was given"
            there, *equal = row
            if not there:
                differences[f"{view.name} has no row"] = None
            differences.update(
                (f"{view.name}.{column.name} differs", None)
                for column, same in zip(_compared_columns(view), equal, strict=True)
                if there and not same
            )
        return tuple(differences)

    def _without_events(self, stream: str) -> tuple[str, ...]:
        kind, _, key = stream.partition(":")
        shown = (
            view.name
            for view, condition in self._keyed_views(kind)
            if self._connection.execute(
                f"SELECT FROM public.{view.name} WHERE {condition} AND {view.key[-1]}::text = %s".encode(), (key,)
            ).fetchone()
            is not None
        )
        return tuple(f"{name} has a row, and the log has no events" for name in shown)

    def _keyed_views(self, kind: str) -> Iterator[tuple[View[Any], str]]:
        """Yield the views that have one row for each aggregate of a kind, with the condition for its rows."""
        for view in self._views.all:
            if kind in view.kinds and view.parts is None:
                yield view, f"kind = '{kind}'" if view.key[0] == "kind" else "true"


def _compared_columns(view: View[Any]) -> list[Any]:
    """Return the columns that are compared. A row of a part keeps the version of its own last change."""
    return [column for column in view.columns if not (view.parts and column.name == "version")]


def _comparison(view: View[Any]) -> str:
    names = ", ".join(column.name for column in view.columns)
    arrays = ", ".join(f"%s::{column.parameter_type}[]" for column in view.columns)
    key = {column.name: column.select_expression for column in view.columns}
    matching = " AND ".join(f"t.{name} = {key[name]}" for name in view.key)
    equal = ", ".join(f"t.{column.name} IS NOT DISTINCT FROM {column.select_expression}" for column in _compared_columns(view))
    joined = f"unnest({arrays}) AS v({names}) LEFT JOIN public.{view.name} t ON {matching}"
    return f"SELECT t.{view.key[-1]} IS NOT NULL, {equal} FROM {joined}"
