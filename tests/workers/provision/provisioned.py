"""Events with infrastructure, over the handlers, and a reconciler that runs during a block."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

from api.wiring.catalogue import RECORDS
from api.wiring.core import Core
from domain.event.aggregate import MediaEvent
from domain.event.commands import AddOrUpdateEvent
from domain.kernel.ids import new_id
from domain.kernel.ports import Invocation
from domain.provision.aggregate import ProvisionInfo, provision_key
from domain.provision.callbacks import ProvisionCallbacks
from domain.provision.handlers import ProvisionHandlers
from domain.provision.values import Deployment, ProvisionState, name_of
from domain.record.kinds.infrastructure_profile import InfrastructureProfile
from domain.record.record import RegisterRecord
from domain.webhook.callback_naming import CallbackNaming
from projections.consumers.leases import ShardLeases
from projections.event.queries import EventQueries
from projections.kernel.database.database import Database
from projections.log.log_watcher import LogWatcher
from projections.log_store.log_store import Logbook
from projections.provision.queries import ProvisionQueries
from projections.record.queries import RecordQueries
from projections.vault.vault import Vault, new_signing_secret
from tests.api.media.webhook.callbacks_given import CIPHER
from tests.support.engine import once
from tests.support.feeding import do
from tests.workers.consumed import log_reader
from workers.kernel.metrics import WorkerMetrics
from workers.kernel.wakeups import WakeupHub
from workers.ports.provisioners import Provisioner
from workers.provision.reconciler import CONSUMER, SHARDS, Reconciler

ME = Invocation.by("studio")
SOON = 60.0


@dataclass(frozen=True)
class Provisioning:
    """Helper methods for tests."""

    inner: Core

    @property
    def handlers(self) -> ProvisionHandlers:
        inner = self.inner
        records, events = RecordQueries(inner.database, RECORDS), EventQueries(inner.database)
        vault = Vault(inner.database, CIPHER)
        naming = CallbackNaming(vault, records, clock=inner.clock, new_signing_secret=new_signing_secret)
        return ProvisionHandlers(
            inner.executor,
            records,
            events=events,
            callbacks=ProvisionCallbacks(naming, vault),
            load=inner.streams.load,
            clock=inner.clock,
        )

    async def profile(self, *names: str, key: str | None = None, shared: bool = False, **request: Any) -> UUID:
        """Create a profile of resources whose types are the parts of their names before the hyphen."""
        options = {
            "deploymentType": request.pop("deployment", "template"),
            "allowUpdates": request.pop("allow_updates", None),
            "isolationMode": "byInfrastructure" if shared else None,
        }
        workflow = {"termination": request.pop("termination", [])}
        resources = [{"name": name, "type": name.partition("-")[0], **request.pop(name, {})} for name in names]
        text = json.dumps(
            {"request": {"infrastructureKey": key, "options": options, "resources": resources, **request}, "workflow": workflow}
        )
        profile = uuid4()
        await do(self.inner, RegisterRecord(profile, InfrastructureProfile, {"name": "P", "configuration_json": text}))
        return profile

    async def event(self, profile: UUID) -> UUID:
        event = uuid4()
        await do(self.inner, AddOrUpdateEvent(event, {"infrastructure_profile_id": profile}))
        return event

    async def provision(self, event: UUID, *, allow_updates: bool | None = None) -> None:
        await self.handlers.provision(event, allow_updates=allow_updates, invocation=ME)

    async def terminate(self, event: UUID) -> None:
        await self.handlers.terminate(event, invocation=ME)

    async def reset(self, event: UUID) -> None:
        await self.handlers.reset(event, invocation=ME)

    async def info(self, event: UUID) -> ProvisionInfo:
        aggregate = await self.inner.streams.load(ProvisionInfo.stream(provision_key(event)))
        assert isinstance(aggregate, ProvisionInfo)
        return aggregate

    async def up(self, event: UUID) -> list[str]:
        return [name_of(resource) for resource in (await self.info(event)).resources]

    async def until(self, event: UUID, state: ProvisionState, *, seconds: float = SOON) -> ProvisionInfo:
        """Wait until both the Provision Info and the Event have this state."""

        async def ask() -> ProvisionInfo | None:
            info = await self.info(event)
            return info if info.state is state else None

        info = await once(ask, seconds=seconds)
        shown = await self.inner.streams.load(MediaEvent.stream(event))
        assert isinstance(shown, MediaEvent)
        assert shown.details.provision == info.summary
        return info

    async def idle(self, *, seconds: float = SOON) -> None:
        """Wait until no run is in progress."""

        async def ask() -> bool:
            return not await ProvisionQueries(self.inner.database).with_work()

        await once(ask, seconds=seconds)

    async def topics(self, event: UUID) -> list[str]:
        rows = await self.inner.database.rows(
            "SELECT topic FROM events WHERE originator_id = %s ORDER BY position", (ProvisionInfo.stream(provision_key(event)),)
        )
        return [topic.removeprefix("provision.") for (topic,) in rows]

    async def noted(self, event: UUID) -> list[str]:
        """Return the messages of the log store about the Event."""
        rows = await self.inner.database.rows("SELECT message FROM logbook WHERE subject = %s ORDER BY id", (str(event),))
        return [message for (message,) in rows]


@asynccontextmanager
async def reconciling(
    inner: Core,
    provisioner: Provisioner,
    *,
    lease: float = 5.0,
    at_once: int = 8,
    others: Mapping[Deployment, Provisioner] | None = None,
    metrics: WorkerMetrics | None = None,
) -> AsyncIterator[Reconciler]:
    """Run a member during the block."""
    database: Database = inner.database
    watcher = LogWatcher(database)
    reader = log_reader(inner, watcher)
    reconciler = Reconciler(
        ProvisionQueries(database),
        Provisioning(inner).handlers,
        provisioners={Deployment.TEMPLATE: provisioner, Deployment.STATIC: provisioner, **(others or {})},
        metrics=(metrics or WorkerMetrics()).provisions,
        logbook=Logbook(database, inner.clock, machine="here"),
        leases=ShardLeases(database, CONSUMER, shards=SHARDS, member=new_id(), lease=lease, reads_log=False),
        waker=WakeupHub(reader, {ProvisionInfo.KIND}).waker(),
        at_once=at_once,
    )
    workers: tuple[Any, ...] = (watcher, reader, reconciler)
    for worker in workers:
        await worker.start()
    try:
        yield reconciler
    finally:
        for worker in reversed(workers):
            await worker.stop()
