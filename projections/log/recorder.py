"""The eventsourcing library's recorder on top of this log, so that any application built on the library can open it.

It uses the statement of the product's own append, one call at a time from threads, and passes the library's conformance suites.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Thread
from typing import Any
from uuid import UUID

import psycopg
from eventsourcing.persistence import (
    ApplicationRecorder,
    IntegrityError,
    ListenNotifySubscription,
    Notification,
    StoredEvent,
)
from psycopg import Connection
from psycopg.rows import TupleRow
from psycopg_pool import ConnectionPool

from domain.kernel.cause import Cause
from domain.kernel.ids import new_id
from projections.kernel.database import arrays
from projections.kernel.database.connection import with_limits
from projections.log.commit_notifier import CHANNEL
from projections.log.event_record import ELEMENT
from projections.log.partitions import MAKE_ROOM
from projections.log.statement import LogRow, WriteSet, statement
from projections.log.write_set import metadata_text


class LogRecorder(ApplicationRecorder):
    """A recorder whose `insert_events` takes the library's stored events. The keyword `cause` names the actor and the reason; it
    defaults to the library itself."""

    def __init__(self, conninfo: str, *, size: int = 8) -> None:
        self.conninfo = conninfo
        self._pool: ConnectionPool[Connection[TupleRow]] = ConnectionPool(
            with_limits(conninfo), min_size=1, max_size=size, kwargs={"autocommit": True}, configure=_configure, open=True
        )

    def close(self) -> None:
        self._pool.close()

    def insert_events(self, stored_events: Sequence[StoredEvent], **kwargs: Any) -> Sequence[int] | None:
        if not stored_events:
            return []
        cause: Cause = kwargs.get("cause") or Cause.by("eventsourcing")
        text, parameters = statement([WriteSet(_rows(stored_events, cause))])
        with self._pool.connection() as connection:
            try:
                row = _append(connection, text, parameters, events=len(stored_events))
            except psycopg.IntegrityError as violation:
                raise IntegrityError(str(violation)) from violation
            last = int(row[0]) if row else 0
            connection.execute("SELECT pg_notify(%s, %s)", (CHANNEL, str(last)))
        return list(range(last - len(stored_events) + 1, last + 1))

    def select_events(
        self,
        originator_id: UUID | str,
        *,
        gt: int | None = None,
        lte: int | None = None,
        desc: bool = False,
        limit: int | None = None,
    ) -> Sequence[StoredEvent]:
        rows = self._rows(
            "SELECT version, topic, state FROM stream_events WHERE stream = stream_key(%(stream)s)"
            " AND (%(gt)s::bigint IS NULL OR version > %(gt)s)"
            " AND (%(lte)s::bigint IS NULL OR version <= %(lte)s)"
            f" ORDER BY version {'DESC' if desc else 'ASC'} LIMIT %(limit)s",
            {"stream": str(originator_id), "gt": gt, "lte": lte, "limit": limit},
        )
        return [StoredEvent(originator_id, version, topic, state) for version, topic, state in rows]

    def select_notifications(
        self,
        start: int | None,
        limit: int,
        stop: int | None = None,
        topics: Sequence[str] = (),
        *,
        inclusive_of_start: bool = True,
    ) -> Sequence[Notification]:
        after = -1 if start is None else start - 1 if inclusive_of_start else start
        rows = self._rows(
            "SELECT originator_id, originator_version, topic, state, position FROM events WHERE position > %(after)s"
            " AND (%(stop)s::bigint IS NULL OR position <= %(stop)s)"
            " AND (%(topics)s::text[] = '{}' OR topic = ANY(%(topics)s)) ORDER BY position LIMIT %(limit)s",
            {"after": after, "stop": stop, "topics": list(topics), "limit": limit},
        )
        return [Notification(stream, version, topic, state, position) for stream, version, topic, state, position in rows]

    def max_notification_id(self) -> int | None:
        rows = self._rows("SELECT max(last_position) FROM commits", {})
        return None if rows[0][0] is None else int(rows[0][0])

    def subscribe(self, gt: int | None = None, topics: Sequence[str] = ()) -> LogSubscription:
        return LogSubscription(self, gt=gt, topics=topics)

    def _rows(self, question: str, parameters: dict[str, Any]) -> list[TupleRow]:
        with self._pool.connection() as connection:
            return connection.execute(question, parameters, binary=True).fetchall()


class LogSubscription(ListenNotifySubscription[LogRecorder]):
    """A subscription that wakes when a commit is announced, and looks at intervals too, since an announcement may be lost."""

    def __init__(self, recorder: LogRecorder, gt: int | None = None, topics: Sequence[str] = ()) -> None:
        super().__init__(recorder=recorder, gt=gt, topics=topics)
        self._listen_thread = Thread(target=self._listen, daemon=True)
        self._listen_thread.start()

    def __exit__(self, *args: object, **kwargs: Any) -> None:
        super().__exit__(*args, **kwargs)
        self._listen_thread.join()

    def _listen(self) -> None:
        try:
            with psycopg.connect(with_limits(self._recorder.conninfo), autocommit=True) as connection:
                connection.execute(f"LISTEN {CHANNEL}".encode())
                while not self._has_been_stopped and self._thread_error is None:
                    for _ in connection.notifies(timeout=0.1, stop_after=1):
                        pass
                    self._has_been_notified.set()
        except psycopg.Error as fault:
            self._thread_error = self._thread_error or fault
            self.stop()


def _append(connection: Connection[TupleRow], text: str, parameters: Sequence[Any], *, events: int) -> TupleRow | None:
    while True:
        try:
            return connection.execute(text, parameters, binary=True).fetchone()
        except psycopg.errors.ObjectNotInPrerequisiteState:
            connection.execute(MAKE_ROOM, (None, events))


def _configure(connection: Connection[TupleRow]) -> None:
    arrays.register(connection)
    connection.execute("SET default_transaction_isolation = 'read committed'")
    send_events(connection)


def send_events(connection: Connection[TupleRow]) -> None:
    """Configure a connection so that it can send the events of an append."""
    row = connection.execute(ELEMENT).fetchone()
    assert row is not None, "a SELECT without FROM gives one row"
    arrays.register_records(connection, row[0])


def _rows(stored_events: Sequence[StoredEvent], cause: Cause) -> list[LogRow]:
    metadata = metadata_text(cause)
    return [
        LogRow.of(
            stream=str(stored.originator_id),
            version=stored.originator_version,
            topic=stored.topic,
            event_id=new_id(),
            state=stored.state,
            metadata=metadata,
        )
        for stored in stored_events
    ]
