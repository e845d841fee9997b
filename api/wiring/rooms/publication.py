"""Publications: contents at destinations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from api.wiring.container import Providers, Services
from api.wiring.room import Room, WorkerRole
from api.wiring.rooms.destination import destination_handlers
from domain.channel.pushing_server import PushingServer
from domain.destination.handlers import DestinationHandlers
from domain.event.aggregate import MediaEvent
from domain.job.handlers import JobHandlers
from domain.kernel.clock import Clock
from domain.kernel.ports import Invocation
from domain.kernel.stream_name import StreamName
from domain.publication.aggregate import Publication
from domain.publication.handlers import PublicationHandlers, PublicationPorts
from domain.publication.live_handlers import LivePublicationHandlers
from domain.publication.sources import ChannelSources
from domain.publication.stored_texts import PublicationTexts
from domain.record.kinds.destination import Destination
from domain.webhook.naming import CallbackNaming
from projections.event.queries import EventQueries
from projections.kernel.database.database import Database
from projections.log.executor import CommandExecutor
from projections.publication.queries import PublicationQueries, PushesSeen
from projections.publication.view import PUBLICATION_VIEW
from projections.record.history import RecordHistory
from projections.record.queries import RecordQueries
from projections.vault.vault import Vault, new_signing_secret
from workers.ports.live import StreamTargets
from workers.ports.outbound import Outbound
from workers.publication.contents import TargetContents
from workers.publication.served import ChannelServers

if TYPE_CHECKING:
    from fastapi import APIRouter

    from api.audit.past_states import Moment, Renderer
    from projections.consumers.orders import Order
    from workers.event.outcomes.policy import OwnerCommand
    from workers.kernel.order_worker import CarryOut
    from workers.publication.following import EventFollowing
    from workers.publication.policy import Removals
    from workers.publication.trial import UploadOpening
    from workers.wiring import SharedWorkers, Worker, WorkerContext


def _routes() -> Sequence[APIRouter]:
    from api.media.publication import live, media, vod

    return (live.routes, media.routes, media.plural, vod.routes)


def _services(services: Services) -> Providers:
    from api.media.publication.presenter import PublicationPresenter

    get, environment = services.get, services.environment
    return {
        PublicationQueries: lambda: PublicationQueries(get(Database)),
        TargetContents: lambda: TargetContents(
            environment.targets, get(RecordQueries), destinations=get(DestinationHandlers), vault=get(Vault)
        ),
        PublicationPresenter: lambda: PublicationPresenter(
            get(PublicationQueries), get(TargetContents), history=get(RecordHistory)
        ),
        PublicationHandlers: lambda: publication_handlers(
            get(Database),
            get(CommandExecutor),
            records=get(RecordQueries),
            jobs=get(JobHandlers),
            vault=get(Vault),
            contents=get(TargetContents),
            clock=environment.clock,
        ),
        PushesSeen: lambda: PushesSeen(get(Database), clock=environment.clock),
        LivePublicationHandlers: lambda: live_publication_handlers(
            get(Database),
            get(CommandExecutor),
            records=get(RecordQueries),
            vault=get(Vault),
            contents=get(TargetContents),
            outbound=environment.outbound,
            clock=environment.clock,
        ),
    }


def live_publication_handlers(
    database: Database,
    executor: CommandExecutor,
    *,
    records: RecordQueries,
    vault: Vault,
    contents: TargetContents,
    outbound: Outbound,
    clock: Clock,
) -> LivePublicationHandlers:
    def stream_targets(server: PushingServer) -> StreamTargets:
        from workers.adapters.targets.wowza import StreamingServer, WowzaStreamTargets

        return WowzaStreamTargets(StreamingServer(server.url, server.application, server.user, server.password), client=outbound)

    return LivePublicationHandlers(
        _ports(database, executor, records=records, vault=vault, contents=contents, clock=clock),
        sources=ChannelSources(records),
        servers=ChannelServers(EventQueries(database), records, vault=vault, contents=contents, make=stream_targets),
    )


def _ports(
    database: Database,
    executor: CommandExecutor,
    *,
    records: RecordQueries,
    vault: Vault,
    contents: TargetContents,
    clock: Clock,
) -> PublicationPorts:
    naming = CallbackNaming(vault, records, clock=clock, new_signing_secret=new_signing_secret)
    return PublicationPorts(
        executor=executor,
        publications=PublicationQueries(database),
        records=records,
        events=EventQueries(database),
        texts=PublicationTexts(naming, vault),
        contents=contents,
    )


def publication_handlers(
    database: Database,
    executor: CommandExecutor,
    *,
    records: RecordQueries,
    jobs: JobHandlers,
    vault: Vault,
    contents: TargetContents,
    clock: Clock,
) -> PublicationHandlers:
    ports = _ports(database, executor, records=records, vault=vault, contents=contents, clock=clock)
    return PublicationHandlers(ports, jobs=jobs)


def _past_states(services: Services) -> Mapping[str, Renderer]:
    from api.media.publication.presenter import PublicationPresenter
    from api.media.publication.responses import VodPublication

    presenter = services.get(PublicationPresenter)

    async def publication(root: Publication, moment: Moment) -> Any:
        return (await presenter.of_roots(VodPublication, [root], as_of=moment.position))[0]

    return {Publication.KIND: publication}


def _owners() -> Mapping[str, OwnerCommand]:
    from domain.publication.handlers import command_of

    return {Publication.KIND: command_of}


def open_destination(context: WorkerContext) -> UploadOpening:
    """Return the object with which upload jobs open destinations."""
    from workers.publication.trial import UploadOpening

    publications = PublicationQueries(context.database)
    return UploadOpening(publications, context.records, destinations=_destinations(context), vault=context.vault)


def target_contents(context: WorkerContext) -> TargetContents:
    return TargetContents(context.targets, context.records, destinations=_destinations(context), vault=context.vault)


def _destinations(context: WorkerContext) -> DestinationHandlers:
    from workers.publication.trial import TargetTrials

    return destination_handlers(
        context.database,
        context.executor,
        streams=context.streams,
        records=context.records,
        vault=context.vault,
        trial=TargetTrials(context.targets, refused={}),
    )


def _syndication(context: WorkerContext, shared: SharedWorkers) -> Sequence[Worker]:
    from api.wiring.job_handlers import job_handlers_of
    from workers.kernel.wakeups import Waker
    from workers.publication.following import EventFollowing, OpenedLiveTargets
    from workers.publication.policy import CONSUMER, Removals, SyndicationOrders

    waker = Waker()
    handler = SyndicationOrders(context.streams, mapper=context.mapper, wake=waker.wake)
    consumer = context.consumer(CONSUMER, handler)
    jobs = job_handlers_of(context)
    contents = target_contents(context)
    handlers = publication_handlers(
        context.database,
        context.executor,
        records=context.records,
        jobs=jobs,
        vault=context.vault,
        contents=contents,
        clock=context.clock,
    )
    live = live_publication_handlers(
        context.database,
        context.executor,
        records=context.records,
        vault=context.vault,
        contents=contents,
        outbound=context.outbound,
        clock=context.clock,
    )
    removals = Removals(handlers, live, context.streams, clock=context.clock, lease=context.lease)
    targets = OpenedLiveTargets(contents)
    following = EventFollowing(context.executor, live, context.streams, targets=targets, notes=context.logbook)
    return [consumer, context.order_worker(CONSUMER, carry_out_by_kind(removals, following), waker=waker)]


def carry_out_by_kind(removals: Removals, following: EventFollowing) -> CarryOut:
    """Return a function that carries out an order, by the kind of the aggregate that it names."""
    from workers.publication.following import GOING_LIVE, ON_AIR

    by_kind: Mapping[str, CarryOut] = {
        Destination.KIND: removals.of_destination,
        Publication.KIND: removals.of_publication,
        MediaEvent.KIND: following.end,
        GOING_LIVE: following.begin,
        ON_AIR: following.check,
    }

    async def carry_out(order: Order, invocation: Invocation) -> None:
        await by_kind[StreamName.read(order.target).kind](order, invocation)

    return carry_out


PUBLICATION = Room(
    name="publication",
    aggregates=(Publication,),
    views=(PUBLICATION_VIEW,),
    routes=_routes,
    services=_services,
    past_states=_past_states,
    owners=_owners,
    worker_roles=(WorkerRole("syndication", _syndication),),
)
