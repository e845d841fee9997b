"""Timekeepers on a real database, and checks of what they did."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from prometheus_client import CollectorRegistry

from api.wiring.catalogue import RECORDS
from api.wiring.core import Core
from domain.composition.handlers import CompositionHandlers, CompositionJobOwners
from domain.event.commands import AddOrUpdateEvent
from domain.event.on_air_handlers import OnAirHandlers
from domain.event.values import EventState
from domain.job.callbacks import JobCallbacks
from domain.job.handlers import JobHandlers
from domain.job.owners import OwnersOfRooms
from domain.kernel.ids import new_id
from domain.kernel.ports import Executor
from domain.record.kinds.channel import Channel
from projections.consumers.leases import ShardLeases
from projections.event.due_events import DueEvents
from projections.event.queries import EventQueries
from projections.job.queue import JobNumberSequence
from projections.log_store.log_store import Logbook
from projections.record.queries import RecordQueries
from projections.vault.vault import Vault, new_signing_secret
from tests.api.media.webhook.callbacks_given import CIPHER
from tests.domain.asset.memory_assets import AssetWorkflows
from tests.projections.log.helpers import rows
from tests.support.clock import HandClock
from tests.support.feeding import configured, do, event, record
from tests.support.services import container
from tests.support.sessions import go_live, stop
from tests.workers.provision.provisioned import Provisioning
from tests.workers.webhook.sender.sending import until
from workers.event.timekeeper import Timekeeper
from workers.kernel.metrics import WorkerMetrics
from workers.kernel.wakeups import Waker

CHANNEL: Final = UUID(int=101)


def composition_handlers(core: Core) -> CompositionHandlers:
    """Return handlers with jobs whose workflow takes any parameters."""
    records = RecordQueries(core.database, RECORDS)
    events = EventQueries(core.database)
    vault = Vault(core.database, CIPHER)
    jobs = JobHandlers(
        core.executor,
        core.streams.load,
        numbers=JobNumberSequence(core.database),
        workflows=AssetWorkflows(),
        vault=vault,
        callbacks=JobCallbacks(vault, events, records, clock=core.clock, new_signing_secret=new_signing_secret),
        owners=OwnersOfRooms(CompositionJobOwners()),
        clock=core.clock,
    )
    return container(core, given={JobHandlers: jobs}).get(CompositionHandlers)


@dataclass
class Keeping:
    """A log with Events in it, and timekeepers for them."""

    core: Core
    url: str
    clock: HandClock
    registry: CollectorRegistry = field(default_factory=CollectorRegistry)

    def __post_init__(self) -> None:
        self.metrics = WorkerMetrics(self.registry)

    async def plan(
        self, number: int, *, start: float | None = None, end: float | None = None, state: EventState | None = None, **more: Any
    ) -> UUID:
        """Create an Event with its scheduled times so many seconds from now. It starts and stops automatically, unless `more` says
        otherwise."""
        times = {"scheduled_start": self.seconds(start), "scheduled_end": self.seconds(end)}
        return await event(self.core, number, state=state, **{"auto_start": True, "auto_end": True, **times, **more})

    async def channel(self) -> UUID:
        """Return a channel with an encoder, which is created the first time."""
        if not rows(self.url, "SELECT FROM record_view WHERE kind = 'channel' AND id = %s", str(CHANNEL)):
            text = '{"encoders": [{"name": "enc-1", "type": "ffmpeg"}]}'
            await record(self.core, Channel, CHANNEL.int, **configured("main", text))
        return CHANNEL

    async def start(self, number: int) -> None:
        await go_live(self.core, UUID(int=number))

    async def stop(self, number: int) -> None:
        await stop(self.core, UUID(int=number))

    def on_air(self) -> list[int]:
        return [key.int for (key,) in rows(self.url, "SELECT id FROM event_view WHERE on_air_channel_id = %s", CHANNEL)]

    async def change(self, number: int, *, state: EventState | None = None, **changes: Any) -> None:
        await do(self.core, AddOrUpdateEvent(UUID(int=number), changes, state=state))

    def seconds(self, seconds: float | None) -> datetime | None:
        return None if seconds is None else self.clock.now + timedelta(seconds=seconds)

    def states(self) -> dict[int, EventState]:
        return {key.int: EventState(state) for key, state in rows(self.url, "SELECT id, state FROM event_view ORDER BY id")}

    def in_state(self, state: EventState) -> list[int]:
        return [number for number, result in self.states().items() if result is state]

    async def reached(self, state: EventState, *numbers: int) -> None:
        """Wait until exactly these Events are in a state."""
        await until(lambda: self.in_state(state) == sorted(numbers), what=f"{state.name} {numbers}")

    def scheduled(self) -> list[tuple[int, EventState]]:
        """Return the Events that the schedule has changed, with their new state, in the order of the log."""
        asked = """
            SELECT split_part(originator_id, ':', 2)::uuid, convert_from(state, 'UTF8')::json ->> 'state' FROM events
            WHERE topic = 'event.state_changed' AND convert_from(state, 'UTF8')::json ->> 'trigger' = 'schedule' ORDER BY position
        """
        return [(key.int, EventState(int(state))) for key, state in rows(self.url, asked)]

    def early(self) -> list[Any]:
        """Return Events that were started before their time, by the database's own clock."""
        asked = """
            SELECT v.id FROM event_view v JOIN events e ON e.originator_id = 'event:' || v.id AND e.topic = 'event.state_changed'
            WHERE e.recorded_at < v.scheduled_start
        """
        return rows(self.url, asked)

    def members(self) -> int:
        [(count,)] = rows(self.url, "SELECT count(*) FROM consumer_members WHERE consumer = 'timekeeper'")
        return int(count)

    @asynccontextmanager
    async def timekeeper(
        self,
        *,
        core: Core | None = None,
        executor: Executor | None = None,
        due: DueEvents | None = None,
        waker: Waker | None = None,
        lease: float = 5.0,
    ) -> AsyncIterator[Timekeeper]:
        core = core or self.core
        leases = ShardLeases(core.database, "timekeeper", shards=1, member=new_id(), host="test", lease=lease, reads_log=False)
        notes = Logbook(core.database, core.clock, machine="here")
        timekeeper = Timekeeper(
            due or DueEvents(core.database),
            executor or core.executor,
            on_air=OnAirHandlers(
                executor or core.executor, RecordQueries(core.database, RECORDS), events=EventQueries(core.database), notes=notes
            ),
            provisions=Provisioning(core).handlers,
            compositions=composition_handlers(core),
            notes=notes,
            leases=leases,
            waker=waker or Waker(),
            metrics=self.metrics,
        )
        await timekeeper.start()
        try:
            yield timekeeper
        finally:
            await timekeeper.stop()
