"""The relay: copies the event log to Kafka in the order of positions. Only one relay is active at a time: it holds the only shard
of its consumer.

Its checkpoint moves after a page is acknowledged, so a page may be sent again after a crash. Records that a partition already holds
are left out; consumers skip other repeats by their position. The content of the topics is compared with the log before anything is
sent: after a restore they may hold events that the log lost, and positions would then have different meanings in the two.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from domain.kernel.errors import Unavailable
from domain.kernel.mapper import UnknownTopic
from projections.consumers.leases import RELAY, set_back
from projections.consumers.timeline import Origin, Timeline, timeline
from projections.kernel.background_task import OperatorNeeded
from projections.kernel.database.database import Database
from projections.log import reader
from projections.log.reader import LoggedEvent


def relay_name(cluster_id: str) -> str:
    """Return the name of the relay as a consumer. A cluster that lost its data has a new id, so it is filled from the start of the
    log."""
    return f"{RELAY}{cluster_id}"


@dataclass(frozen=True, slots=True)
class BrokerRecord:
    """A record that the broker stores."""

    partition: Hashable
    position: int
    event_id: UUID
    origin: Origin


class Publisher(Protocol):
    """A message broker that the relay publishes to."""

    async def absent(self) -> Sequence[str]:
        """Return the kinds for which the broker has no topic, or no longer has one."""
        ...

    async def begin(self, origin: Origin) -> None:
        """Prepare to publish records of this origin. It must be called again after an error."""
        ...

    def stored_records(self, since: int) -> AsyncIterator[Sequence[BrokerRecord]]:
        """Yield pages of the records that the broker stores from a time on, in milliseconds since 1970; 0 for all."""
        ...

    def leave_out(self, records: Iterable[BrokerRecord]) -> None:
        """Exclude records that need not be sent again."""
        ...

    async def publish(self, events: Sequence[LoggedEvent], *, after: int) -> None:
        """Send a page that starts after the position `after`, and wait until the broker has it. Raises `Unavailable`, or another
        error for a record that the broker will never take."""
        ...

    async def close(self) -> None: ...


class Relay:
    """The handler of the relay's consumer. It publishes a page before the checkpoint moves."""

    topics = None

    def __init__(
        self, database: Database, publisher: Publisher, *, name: str, kinds: Collection[str], existing_kinds: Collection[str]
    ) -> None:
        """`name` is the name of the relay as a consumer. `kinds` are the kinds of aggregates whose events are published;
        `existing_kinds` are all kinds of this version."""
        self._database = database
        self._name = name
        self._publisher = publisher
        self._published = frozenset(kinds)
        self._existing_kinds = frozenset(existing_kinds)
        self._through = 0

    async def begin(self, position: int) -> None:
        now = await timeline(self._database)
        await self._check_lost(position)
        await self._publisher.begin(now.origin)
        checkpoint = await reader.at(self._database, [position])
        since = int(checkpoint[0].recorded_at.timestamp() * 1000) if checkpoint else 0
        await self._compare(self._publisher.stored_records(since), now)
        self._through = position

    async def prepare(self, records: Sequence[LoggedEvent]) -> int:
        for record in records:
            if record.kind not in self._existing_kinds:  # only a newer version knows if it is to be published
                raise UnknownTopic(record.topic)
        published = [record for record in records if record.kind in self._published]
        await self._publisher.publish(published, after=self._through)
        self._through = records[-1].position
        return len(records)

    async def write(self, connection: AsyncConnection[TupleRow], effects: int) -> None:
        """Do nothing: the only write is the checkpoint."""

    def wrote(self, effects: int) -> None:
        """Do nothing: there is no worker to wake."""

    async def _check_lost(self, position: int) -> None:
        """Refill topics that were deleted: set the checkpoint back and raise `Unavailable`. The checkpoint is set back before the
        topics are made, because consumers assume that topics hold everything before it."""
        lost = await self._publisher.absent() if position else ()
        first = await reader.first_of(self._database, lost, through=position) if lost else None
        if first is not None:
            await set_back(self._database, self._name, position=first - 1)
            raise Unavailable(f"Kafka has lost the topics of {', '.join(lost)}; they are refilled from position {first} on")

    async def _compare(self, pages: AsyncIterator[Sequence[BrokerRecord]], now: Timeline) -> None:
        strange: set[int] = set()
        async for page in pages:
            records = [record for record in page if now.holds(record.position, record.origin)]
            ids = await reader.ids_at(self._database, sorted({record.position for record in records}))
            strange |= {record.position for record in records if ids.get(record.position) != record.event_id}
            self._publisher.leave_out(records)
        if strange:
            raise OperatorNeeded(
                f"Kafka holds {len(strange)} records that the log does not, from position {min(strange)} on: the database was "
                f"restored, or lost its latest commits. Nothing is sent until you run "
                f"`medialedger restored --since {min(strange) - 1}`"
            )
