"""The effects of deleted destinations and publications, on a real log. The target is in memory."""

from __future__ import annotations

import json
from asyncio import Event
from typing import Any
from uuid import UUID

import pytest

from api.wiring.catalogue import RECORDS
from api.wiring.core import Core
from api.wiring.parts import RefusedTargets
from domain.destination.handlers import DestinationHandlers
from domain.destination.targets import Target
from domain.job.handlers import JobHandlers
from domain.kernel.command import Command
from domain.kernel.encryption import SecretCipher
from domain.kernel.mapper import EventMapper
from domain.kernel.ports import Invocation, ServiceNotes
from domain.publication.aggregate import Publication
from domain.publication.handlers import PublicationHandlers
from domain.publication.live_handlers import LivePublicationHandlers
from domain.publication.values import PublicationKind, PublicationText
from domain.record.configured_record import SentConfiguration
from domain.record.handlers import RecordHandlers
from domain.record.kinds.destination import Destination
from domain.record.record import RegisterRecord
from projections.consumers.orders import Orders
from projections.custom_property.queries import PropertyQueries
from projections.log.reader import read
from projections.log.transactions import writes
from projections.publication.queries import PublicationQueries
from projections.record.history import RecordHistory
from projections.record.queries import RecordQueries
from projections.vault.vault import Vault
from tests.api.asking import topics
from tests.domain.memory import MemoryNotes
from tests.support.clock import HandClock
from tests.support.feeding import do
from tests.support.services import container
from tests.support.targets.memory import MemoryTarget
from workers.adapters.outbound_http import GuardedClient
from workers.adapters.targets.registry import TargetRegistry
from workers.kernel.order_worker import OrderWorker
from workers.kernel.wakeups import Waker
from workers.ports.targets import TargetFailed, Targets
from workers.publication.availability import AvailabilityFollower
from workers.publication.live_follower import LiveFollower
from workers.publication.policy import CONSUMER, Removals, SyndicationOrders
from workers.publication.role import SyndicationCommands
from workers.publication.trial import TargetTrials, UploadOpening

DESTINATION = UUID(int=501)
LEASE = 30.0
OUTBOUND = GuardedClient()


def published(number: int, *, content: str = "film") -> Command[Publication]:
    return Publication.schedule.on(
        UUID(int=number),
        kind=PublicationKind.VOD,
        content_id=content,
        destination_id=DESTINATION,
        target=Target.S3,
        transaction_id=UUID(int=1),
        client="studio",
        text=PublicationText(title="Final"),
        job=number,
    )


@pytest.fixture
async def inner(inner: Core) -> Core:
    values = {"name": "Archive", "target": Target.S3, "configuration_json": SentConfiguration("{}", {}, {})}
    await do(inner, RegisterRecord(DESTINATION, Destination, values))
    return inner


async def fed(inner: Core) -> int:
    """Feed the whole log to the handler, as the consumer does. Return the number of orders."""
    handler = SyndicationOrders(inner.streams, mapper=EventMapper(inner.catalogue), wake=lambda: None)
    batch = [
        entry for write in writes(await read(inner.database, 0, limit=100_000)) for entry in write if entry.topic in handler.topics
    ]
    effects = await handler.prepare(batch)
    if effects is not None:
        async with inner.database.connection() as connection, connection.transaction():
            await handler.write(connection, effects)
    return len(effects or ())


def kept_in(inner: Core) -> tuple[RecordQueries, Vault]:
    return RecordQueries(inner.database, RECORDS), Vault(inner.database, SecretCipher(bytes(32)))


def destinations_of(inner: Core, target: MemoryTarget) -> DestinationHandlers:
    records, vault = kept_in(inner)
    history = RecordHistory(inner.streams, records, properties=PropertyQueries(inner.database))
    deletions = RecordHandlers(inner.executor, history.at(None))
    trial = TargetTrials(target, refused={})
    return DestinationHandlers(inner.executor, records, vault=vault, trial=trial, deletions=deletions)


async def carried_out(inner: Core, target: MemoryTarget, *, notes: MemoryNotes | None = None) -> None:
    given: dict[Any, Any] = {
        GuardedClient: OUTBOUND,
        JobHandlers: None,  # nothing is uploaded here
        RefusedTargets: RefusedTargets(),
        ServiceNotes: notes or MemoryNotes(),
        Targets: target,
    }
    services = container(inner, given=given)
    handlers, live = services.get(PublicationHandlers), services.get(LivePublicationHandlers)
    removals = Removals(handlers, live, inner.streams, clock=inner.clock, lease=LEASE)
    availability = AvailabilityFollower(handlers, inner.streams, notes=given[ServiceNotes])
    commands = SyndicationCommands(removals, services.get(LiveFollower), availability=availability)
    worker = OrderWorker(Orders(inner.database, CONSUMER), commands.carry_out, waker=Waker())
    await inner.database.execute("UPDATE orders SET due_at = clock_timestamp()")
    while await worker.carry_out():
        pass


async def pending_orders(inner: Core) -> int:
    return int((await inner.database.rows("SELECT count(*) FROM orders WHERE consumer = %s", (CONSUMER,)))[0][0])


async def test_a_deleted_destination_takes_all_its_publications_along(inner: Core) -> None:
    for number in range(1, 8):
        await do(inner, published(number))
        await do(inner, Publication.complete.on(UUID(int=number), number, job_version=9, details={}))
    await do(inner, Destination.delete.on(DESTINATION))
    assert await fed(inner) == 1
    await carried_out(inner, MemoryTarget())
    assert await pending_orders(inner) == 0
    assert await inner.database.rows("SELECT count(*) FROM publication_view WHERE NOT withdrawn") == [(0,)]
    await fed(inner)  # the same once more
    await carried_out(inner, MemoryTarget())
    assert (await topics(inner, Publication.stream(UUID(int=1)))).count("publication.withdrawn") == 1


async def test_remains_of_an_abandoned_upload_are_removed_with_retries(inner: Core, clock: HandClock) -> None:
    await do(inner, published(17))
    await do(inner, Publication.withdraw.on(UUID(int=17), hard=True, running_job=17))
    assert await fed(inner) == 1
    target = MemoryTarget()
    await carried_out(inner, target)
    assert (target.calls, await pending_orders(inner)) == ([], 1)
    clock.forward(seconds=LEASE)
    target.fault = TargetFailed("retry", "busy")
    await carried_out(inner, target)
    assert (target.calls, await pending_orders(inner)) == (["delete", "close"], 1)
    target.fault = None
    await carried_out(inner, target)
    assert (target.calls, await pending_orders(inner)) == (["delete", "close"] * 2, 0)
    assert (await topics(inner, Publication.stream(UUID(int=17))))[-1] == "publication.target_cleared"
    await do(inner, Destination.delete.on(DESTINATION))


async def test_a_deletion_that_leaves_nothing_orders_nothing(inner: Core) -> None:
    await do(inner, published(17))
    await do(inner, Publication.withdraw.on(UUID(int=17), hard=False, running_job=17))
    assert await fed(inner) == 0


async def test_a_target_that_hangs_is_given_up(inner: Core) -> None:
    target, never = MemoryTarget(), Event()

    async def hang() -> None:
        await never.wait()

    target.before = hang
    fault = await TargetTrials(target, refused={}, seconds=0.01).fault(Target.S3, {})
    assert fault is not None
    assert "did not answer" in fault
    assert target.calls == ["check", "close"]


async def test_what_nothing_here_publishes_to_says_so(inner: Core) -> None:
    fault = await TargetTrials(TargetRegistry(GuardedClient), refused={}).fault(Target.MPX, {})
    assert fault is not None
    assert fault.startswith("No installed target publishes to MPX: choose another one")


async def test_a_destination_is_opened_for_the_present_job_of_a_publication_while_it_is_active(inner: Core) -> None:
    records, vault = kept_in(inner)
    destinations = destinations_of(inner, MemoryTarget())
    config = {"endpoint": "https://s3.example", "bucket": "b", "accessKeyId": "k", "secretAccessKey": "marked"}
    values = {"configuration_json": json.dumps(config)}
    await destinations.change(DESTINATION, values, invocation=Invocation.by("studio"))
    opening = UploadOpening(PublicationQueries(inner.database), records, destinations=destinations, vault=vault)
    await do(inner, published(17))
    with pytest.raises(TargetFailed) as inactive:
        await opening(UUID(int=17), job=17)
    await do(inner, Destination.amend.on(DESTINATION, {"active": True}))
    opened = await opening(UUID(int=17), job=17)
    assert (opened.target, opened.config, opened.order.title) == (5, config, "Final")
    assert "marked" not in repr(opened)
    with pytest.raises(TargetFailed) as other:
        await opening(UUID(int=17), job=16)
    assert (inactive.value.kind, other.value.kind) == ("destination", "publication")
