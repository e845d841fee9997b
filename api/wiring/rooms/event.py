"""Events: live and recorded video."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any
from uuid import UUID

from api.wiring.container import Providers, Services
from api.wiring.room import Room, WorkerRole
from domain.composition.handlers import CompositionHandlers
from domain.event.aggregate import MediaEvent
from domain.event.asset_sync import AssetSync
from domain.event.deletion import EventDeletion
from domain.event.handlers import EventHandlers
from domain.event.ports import EventRow
from domain.event.vod_metadata import VodMetadataHandlers
from domain.kernel.event import DomainEvent
from projections.event.queries import EventQueries
from projections.event.view import EVENT_VIEW
from projections.kernel.database.database import Database
from projections.log.executor import CommandExecutor
from projections.log.streams import Streams
from projections.log_store.log_store import Logbook
from projections.provision.queries import ProvisionQueries
from projections.publishing_point.points import ChannelPointsReader
from projections.publishing_point.queries import PointStates
from projections.record.history import RecordHistory
from projections.record.queries import RecordQueries

if TYPE_CHECKING:
    from fastapi import APIRouter

    from api.audit.past_states import Moment, Renderer
    from domain.job.outcome import JobOutcome
    from domain.kernel.ports import Invocation
    from workers.event.outcomes.policy import Followup, OwnerCommand
    from workers.webhook.policy import Notified
    from workers.wiring import SharedWorkers, Worker, WorkerContext


def _routes() -> Sequence[APIRouter]:
    from api.media import vod
    from api.media.event import counts, routes

    return (routes.routes, counts.routes, vod.routes)


def _services(services: Services) -> Providers:
    from api.media.event.presenter import EventPresenter
    from domain.asset.handlers import AssetHandlers

    get = services.get
    return {
        EventQueries: lambda: EventQueries(get(Database)),
        EventPresenter: lambda: EventPresenter(
            get(RecordHistory), channels=get(ChannelPointsReader), points=get(PointStates), hosts=get(ProvisionQueries)
        ),
        EventHandlers: lambda: EventHandlers(
            get(CommandExecutor), get(RecordQueries), events=get(EventQueries), notes=get(Logbook)
        ),
        EventDeletion: lambda: EventDeletion(
            get(CommandExecutor), get(Streams).load, compositions=get(CompositionHandlers), clock=services.environment.clock
        ),
        VodMetadataHandlers: lambda: VodMetadataHandlers(
            get(CommandExecutor),
            get(EventQueries),
            files=services.environment.files,
            assets=AssetSync(get(AssetHandlers).sync, get(Logbook)),
        ),
    }


def _past_states(services: Services) -> Mapping[str, Renderer]:
    from api.media.event.presenter import EventPresenter

    presenter = services.get(EventPresenter)

    async def event(root: MediaEvent, moment: Moment) -> Any:
        return await presenter.event(EventRow.of(root), base_url=moment.base_url, as_of=moment.position)

    return {MediaEvent.KIND: event}


def _notified() -> Mapping[str, Notified]:
    """Return the meaning of domain events. A change of a field without a flag of its own counts as metadata."""
    from domain.event import events
    from domain.event.values import EventState
    from workers.webhook.policy import NOTHING, Action, Change, Notified

    by_topic = {
        events.StateChanged.TOPIC: Change.STATE,  # including the times that it sets
        events.Mp4StateChanged.TOPIC: Change.MP4_STATE,
        events.ProvisionStateChanged.TOPIC: Change.PROVISION_STATE,
        events.NotificationForced.TOPIC: Change.FORCED,
        events.VodJobStarted.TOPIC: NOTHING,  # the resulting changes of the Event have their own events
        events.VodJobEnded.TOPIC: NOTHING,
        events.VodFileChanged.TOPIC: NOTHING,
        events.QualityMeasured.TOPIC: NOTHING,  # a GET of the Event does not show it; a change of state has its own event
        events.ProvisionTimeReached.TOPIC: NOTHING,  # the resulting requests have their own events
        events.TerminationTimeReached.TOPIC: NOTHING,
        events.AudioInputsChanged.TOPIC: Change.AUDIO,
    }
    by_field = {"thumbnail": Change.THUMBNAIL, "capturing_live2_vod": Change.CAPTURING}

    def changes(event: DomainEvent) -> Change:
        if isinstance(event, events.ForceStopped):  # also recorded for an Event that is already stopped, as an order to the encoder
            return Change.FORCED if event.previous is EventState.STOPPED else Change.FORCED | Change.STATE
        if isinstance(event, events.EncodingEvent):
            return NOTHING
        if event.TOPIC in by_topic:
            return by_topic[event.TOPIC]
        return reduce(or_, (by_field.get(name, Change.METADATA) for name in event.facts()), NOTHING)

    actions = {
        events.Registered.TOPIC: Action.ADDED,
        events.Deleted.TOPIC: Action.DELETED,
        events.Restored.TOPIC: Action.RESTORED,
    }
    return {MediaEvent.KIND: Notified(changes=changes, actions=actions)}


def _owners() -> Mapping[str, OwnerCommand]:
    from domain.event.vod_jobs import vod_command

    return {MediaEvent.KIND: vod_command}


def _followups(context: WorkerContext) -> Mapping[str, Followup]:
    return {MediaEvent.KIND: assets_of_films(context)}


def assets_of_films(context: WorkerContext) -> Followup:
    """Return the action that follows a job that made a film. Its key is that of the Event."""
    from api.wiring.job_handlers import job_handlers_of
    from api.wiring.rooms.asset import caption_packages
    from domain.asset.handlers import AssetHandlers
    from domain.event.vod_jobs import assets_follow
    from domain.job.outcome import OutcomeKind
    from projections.asset.queries import AssetQueries

    jobs = job_handlers_of(context)
    assets = AssetHandlers(
        context.executor,
        AssetQueries(context.database),
        events=EventQueries(context.database),
        files=context.files,
        jobs=jobs,
    )
    follow, packages = assets_follow(AssetSync(assets.sync, context.logbook)), caption_packages(context)

    async def films_follow(key: str, outcome: JobOutcome, invocation: Invocation) -> None:
        """Update the assets, and the package if captions changed while it was made."""
        await follow(key, outcome, invocation)
        if outcome.kind is OutcomeKind.COMPLETED:
            await packages.agree(UUID(key))

    return films_follow


def _encoding(context: WorkerContext, shared: SharedWorkers) -> Sequence[Worker]:
    from domain.event.on_air_handlers import OnAirHandlers
    from workers.kernel.wakeups import Waker
    from workers.session.encoding.policy import CONSUMER, ChannelOrders, EncodingOrders

    waker = Waker()
    handler = EncodingOrders(context.streams, mapper=context.mapper, wake=waker.wake)
    consumer = context.consumer(CONSUMER, handler, on_air=True)
    events = EventQueries(context.database)
    on_air = OnAirHandlers(context.executor, context.records, events=events, notes=context.logbook)
    return [consumer, context.order_worker(CONSUMER, ChannelOrders(on_air).carry_out, waker=waker)]


EVENT = Room(
    name="event",
    aggregates=(MediaEvent,),
    views=(EVENT_VIEW,),
    routes=_routes,
    services=_services,
    past_states=_past_states,
    notified=_notified,
    owners=_owners,
    followups=_followups,
    worker_roles=(WorkerRole("encoding", _encoding),),
)
