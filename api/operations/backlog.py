"""Metrics of pending work: the lag of consumers, pending deliveries, due Events, jobs, sessions, and publishing points of live
Events.

They are read from the database, so every process shows the same values. Scrapes within some seconds share one reading, because
counting is expensive and `/metrics` needs no key.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from time import monotonic

from prometheus_client import CollectorRegistry, Gauge

from domain.kernel.errors import Unavailable
from projections.audit.unsealed_events import Unsealed
from projections.consumers.queries import ConsumerQueries
from projections.event.due_events import MOST_COUNTED as MOST_EVENTS
from projections.event.due_events import DueEvents
from projections.job.backlog import JobBacklogQueries
from projections.provision.queries import ProvisionQueries
from projections.publishing_point.queries import PointStates
from projections.session.store import SessionQueries
from projections.vault.master_keys import MOST_COUNTED as MOST_SECRETS
from projections.vault.master_keys import VaultState
from projections.webhook.queries import MOST_COUNTED, DeliveryQueries


class SessionBacklog:
    """Gauges of sessions that are set from the database."""

    def __init__(self, sessions: SessionQueries, *, registry: CollectorRegistry) -> None:
        self._read = sessions
        self._sessions = Gauge("medialedger_sessions", "Sessions by kind and state", ("kind", "state"), registry=registry)
        self._silent = Gauge(
            "medialedger_session_silent_seconds",
            "Time since the last report of the running session that has been silent longest",
            ("kind",),
            registry=registry,
        )
        self._pushes = Gauge(
            "medialedger_pushes",
            "Live publications in progress, by the state of the connection to their targets",
            ("connected",),
            registry=registry,
        )

    async def refresh(self) -> None:
        self._sessions.clear()
        self._silent.clear()
        pushes = await self._read.pushes()
        for connected in (True, False):
            self._pushes.labels(str(connected).lower()).set(pushes.get(connected, 0))
        for kind, state, count, silent in await self._read.counts():
            self._sessions.labels(kind, state).set(count)
            if silent is not None:
                self._silent.labels(kind).set(silent)


class ProvisionBacklog:
    """Gauges of pending infrastructure that are set from the database."""

    def __init__(self, provisions: ProvisionQueries, *, registry: CollectorRegistry) -> None:
        self._provisions = provisions
        self._waiting = Gauge("medialedger_provision_waiting", "Infrastructure keys with unfinished work", registry=registry)
        self._oldest = Gauge(
            "medialedger_provision_oldest_seconds", "Age of the oldest unfinished work on infrastructure", registry=registry
        )

    async def refresh(self) -> None:
        waiting, oldest = await self._provisions.waiting()
        self._waiting.set(waiting)
        self._oldest.set(oldest)


class JobBacklog:
    """Gauges of jobs and steps that are set from the database."""

    def __init__(self, jobs: JobBacklogQueries, *, registry: CollectorRegistry) -> None:
        self._read = jobs
        self._jobs = Gauge(
            "medialedger_jobs",
            "Jobs by state; failed counts failed jobs that have not been handled",
            ("state",),
            registry=registry,
        )
        self._oldest = Gauge(
            "medialedger_jobs_oldest_queued_seconds", "Time that the oldest queued job has been waiting", registry=registry
        )
        self._steps = Gauge("medialedger_steps", "Steps that are ready or running, by queue", ("queue", "state"), registry=registry)
        self._workers = Gauge("medialedger_step_workers", "Processes that run steps and have a valid lease", registry=registry)

    async def refresh(self) -> None:
        backlog = await self._read.all()
        for state, count in backlog.jobs.items():
            self._jobs.labels(state).set(count)
        self._oldest.set(backlog.oldest_queued)
        self._workers.set(backlog.workers)
        self._steps.clear()
        for (queue, step_state), count in backlog.steps.items():
            self._steps.labels(queue, step_state).set(count)


_BOUNDED = f"counted up to {MOST_COUNTED}"


class Backlog:
    """Gauges that are read from the database when they are older than `fresh` seconds."""

    fresh: float = 5.0

    def __init__(
        self,
        consumers: ConsumerQueries,
        deliveries: DeliveryQueries,
        *,
        events: DueEvents,
        jobs: JobBacklog,
        points: PointStates,
        provisions: ProvisionBacklog,
        sessions: SessionBacklog,
        unsealed: Unsealed,
        vault: VaultState,
        registry: CollectorRegistry,
    ) -> None:
        self._consumers = consumers
        self._reading = asyncio.Lock()
        self._read_at = float("-inf")
        self._deliveries = deliveries
        self._events = events
        self._jobs = jobs
        self._points = points
        self._provisions = provisions
        self._sessions = sessions
        self._unsealed = unsealed
        self._vault = vault

        def of_consumer(name: str, meaning: str) -> Gauge:
            return Gauge(f"medialedger_{name}", meaning, ("consumer",), registry=registry)

        def of_deliveries(name: str, meaning: str) -> Gauge:
            return Gauge(f"medialedger_deliveries_{name}", meaning, registry=registry)

        self._position = of_consumer("consumer_position", "Log position up to which a consumer has processed everything")
        self._lag = of_consumer("consumer_lag_events", "Domain events between the position of a consumer and the end of the log")
        self._parked = of_consumer("parked_records", f"Records that a consumer could not process, {_BOUNDED}")
        self._failing = of_consumer(
            "consumer_failing_seconds",
            "How long the work of a consumer has failed without a success, in the worst of its processes",
        )
        self._reads_log = of_consumer(
            "consumer_reads_log_seconds", "How long a consumer has read the log because Kafka gives nothing, 0 if it reads Kafka"
        )
        self._shards = of_consumer("consumer_shards", "Shards that the work of a consumer is divided into")
        self._owned_shards = of_consumer("consumer_shards_held", "Shards of a consumer that a process has a valid lease on")
        self._notification_queue = Gauge(
            "medialedger_notification_queue_usage", "Part of PostgreSQL's queue of notifications in use, up to 1", registry=registry
        )
        self._events_due = Gauge(
            "medialedger_events_due",
            f"Events that the schedule should have started, stopped, provisioned or terminated, counted up to {MOST_EVENTS} each",
            ("action",),
            registry=registry,
        )
        self._points_by_state = Gauge(
            "medialedger_points",
            "Publishing points of live Events by their last reported state: on_air, not_receiving, not_started, unknown",
            ("state",),
            registry=registry,
        )
        self._unsealed_events = Gauge(
            "medialedger_log_unsealed_events", "Domain events that no signed checkpoint of the log includes yet", registry=registry
        )
        self._unsealed_seconds = Gauge(
            "medialedger_log_unsealed_seconds",
            "Age of the oldest domain event that no signed checkpoint includes yet",
            registry=registry,
        )
        self._unanchored_seconds = Gauge(
            "medialedger_log_unanchored_seconds",
            "Age of the oldest signed checkpoint that is not stored outside the database yet; 0 if no checkpoint is stored there",
            registry=registry,
        )
        self._unreadable = Gauge(
            "medialedger_unreadable_secrets",
            f"Secrets that no master key of the product decrypts, counted up to {MOST_SECRETS} for each lost key",
            registry=registry,
        )
        self._pending = of_deliveries("pending", f"Deliveries that are not finished, {_BOUNDED}")
        self._due = of_deliveries("due", f"Deliveries among the first {MOST_COUNTED} pending ones that should be sent by now")
        self._in_flight = of_deliveries("in_flight", "Deliveries that all processes are sending")
        self._oldest = of_deliveries("oldest_seconds", "Time since the oldest due delivery became due")

    async def refresh(self) -> None:
        async with self._reading:
            if monotonic() - self._read_at < self.fresh:
                return
            with suppress(Unavailable):
                await self._refresh()
            self._read_at = monotonic()

    async def _refresh(self) -> None:
        await self._refresh_consumers()
        self._notification_queue.set(await self._consumers.notification_queue_usage())
        await self._refresh_deliveries()
        for action, count in (await self._events.counts()).items():
            self._events_due.labels(action).set(count)
        for state, count in (await self._points.counts()).items():
            self._points_by_state.labels(state).set(count)
        unsealed = await self._unsealed.now()
        self._unsealed_events.set(unsealed.events)
        self._unsealed_seconds.set(unsealed.seconds)
        self._unanchored_seconds.set(unsealed.unanchored)
        self._unreadable.set(await self._vault.unreadable())
        await self._jobs.refresh()
        await self._provisions.refresh()
        await self._sessions.refresh()

    async def _refresh_consumers(self) -> None:
        consumers = await self._consumers.all()
        members = await self._consumers.members()
        for gauge in (self._position, self._lag, self._parked, self._failing, self._reads_log, self._shards, self._owned_shards):
            gauge.clear()
        for name, processes in members.items():
            self._failing.labels(name).set(max(member.failing or 0.0 for member in processes))
            self._reads_log.labels(name).set(max(member.reads_log or 0.0 for member in processes))
        for consumer in consumers:
            self._parked.labels(consumer.name).set(consumer.parked)
            self._shards.labels(consumer.name).set(consumer.shards)
            self._owned_shards.labels(consumer.name).set(consumer.owned_shards)
            if consumer.position is not None and consumer.lag is not None:
                self._position.labels(consumer.name).set(consumer.position)
                self._lag.labels(consumer.name).set(consumer.lag)

    async def _refresh_deliveries(self) -> None:
        backlog = await self._deliveries.backlog()
        self._pending.set(backlog.pending)
        self._due.set(backlog.due)
        self._in_flight.set(backlog.in_flight)
        self._oldest.set(backlog.oldest)
