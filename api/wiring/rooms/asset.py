"""Assets: files of Events that clients request, and those that the system makes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

from api.wiring.container import Providers, Services
from api.wiring.media import run_files
from api.wiring.room import Room, WorkerRole
from domain.asset.aggregate import Asset
from domain.asset.caption_handlers import CaptionHandlers
from domain.asset.handlers import AssetHandlers
from domain.asset.row import AssetRow
from domain.event.aggregate import MediaEvent
from domain.job.handlers import JobHandlers
from domain.kernel.event import DomainEvent
from projections.asset.queries import AssetQueries, CaptionTexts
from projections.asset.view import ASSET_VIEW
from projections.event.queries import EventQueries
from projections.kernel.database.database import Database
from projections.kernel.schema.migrate import Migration
from projections.log.executor import CommandExecutor
from projections.log.streams import Streams
from projections.record.history import RecordHistory

if TYPE_CHECKING:
    from fastapi import APIRouter

    from api.audit.past_states import Moment, Renderer
    from domain.job.outcome import JobOutcome
    from domain.kernel.ports import Invocation
    from workers.asset.caption_packages import CaptionPackages
    from workers.event.outcomes.policy import Followup, OwnerCommand
    from workers.retention import Removal
    from workers.webhook.policy import Notified
    from workers.wiring import SharedWorkers, Worker, WorkerContext


def _routes() -> Sequence[APIRouter]:
    from api.media.asset import routes

    return (routes.routes,)


def _services(services: Services) -> Providers:
    from api.media.asset.presenter import AssetPresenter

    get = services.get
    return {
        AssetQueries: lambda: AssetQueries(get(Database)),
        CaptionHandlers: lambda: CaptionHandlers(
            get(CommandExecutor),
            get(AssetQueries),
            events=get(EventQueries),
            files=services.environment.files,
            jobs=get(JobHandlers),
            texts=CaptionTexts(get(Database)),
        ),
        AssetPresenter: lambda: AssetPresenter(get(EventQueries), get(RecordHistory), streams=get(Streams)),
        AssetHandlers: lambda: AssetHandlers(
            get(CommandExecutor),
            get(AssetQueries),
            events=get(EventQueries),
            files=services.environment.files,
            jobs=get(JobHandlers),
        ),
    }


def _past_states(services: Services) -> Mapping[str, Renderer]:
    from api.media.asset.presenter import AssetPresenter

    presenter = services.get(AssetPresenter)

    async def asset(root: Asset, moment: Moment) -> Any:
        return (await presenter.shown([AssetRow.of(root)], as_of=moment.position))[0]

    return {Asset.KIND: asset}


def _notified() -> Mapping[str, Notified]:
    from domain.asset.events import FileDeleted
    from workers.webhook.policy import NOTHING, Change, Notified, Owner

    def changes(event: DomainEvent) -> Change:
        return NOTHING if isinstance(event, FileDeleted) else Change.ASSETS

    return {Asset.KIND: Notified(changes=changes, owner=Owner("event_id", MediaEvent.KIND))}


def _owners() -> Mapping[str, OwnerCommand]:
    from domain.asset.handlers import command_of

    return {Asset.KIND: command_of}


def caption_packages(context: WorkerContext) -> CaptionPackages:
    """Return the object that updates the packages of films to match their captions."""
    from workers.asset.caption_packages import CaptionPackages
    from workers.job.caption_answers import CaptionAnswers

    answers = CaptionAnswers(CaptionTexts(context.database), AssetQueries(context.database))
    return CaptionPackages(context.database, answers, files=context.files)


def _followups(context: WorkerContext) -> Mapping[str, Followup]:
    from domain.asset.values import AssetType
    from domain.job.outcome import OutcomeKind

    packages, assets = caption_packages(context), AssetQueries(context.database)

    async def captions_follow(key: str, outcome: JobOutcome, invocation: Invocation) -> None:
        """Update the packages after the text of a caption was replaced."""
        row = await assets.find(UUID(key)) if outcome.kind is OutcomeKind.COMPLETED else None
        if row is not None and row.type is AssetType.CAPTION:
            await packages.agree(row.event_id)

    return {Asset.KIND: captions_follow}


def _removals() -> Sequence[Removal]:
    from projections.asset.queries import remove_texts
    from workers.retention import Removal

    return [Removal("texts of captions that were sent", "job_line_days", remove_texts)]


def _removal(context: WorkerContext, shared: SharedWorkers) -> Sequence[Worker]:
    from domain.asset.events import Removed
    from workers.asset.removal import AssetFileRemoval
    from workers.kernel.wakeups import WakeupHub

    hub = WakeupHub(context.signal(frozenset({Asset.KIND}), topics=frozenset({Removed.TOPIC})))
    removal = AssetFileRemoval(
        AssetQueries(context.database),
        context.executor,
        streams=context.streams,
        files=context.files,
        remove_folders=run_files(context, shared).withdraw,
        agree=caption_packages(context).agree,
        waker=hub.waker(),
    )
    return [hub, removal]


ASSET = Room(
    name="asset",
    aggregates=(Asset,),
    views=(ASSET_VIEW,),
    routes=_routes,
    services=_services,
    past_states=_past_states,
    notified=_notified,
    owners=_owners,
    followups=_followups,
    removals=_removals,
    migrations=(Migration.read("0068 texts of captions", "asset/caption_texts.sql"),),
    worker_roles=(WorkerRole("assets", _removal),),
)
