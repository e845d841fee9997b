"""The actions that follow the end of a job that made a film or a caption: assets and packages are updated."""

from __future__ import annotations

from uuid import UUID

from domain.asset.values import AssetType
from domain.event.asset_sync import AssetSync
from domain.event.vod_jobs import assets_follow
from domain.job.outcome import JobOutcome, OutcomeKind
from domain.kernel.ports import Invocation
from projections.asset.queries import AssetQueries
from workers.asset.caption_packages import CaptionPackages


class FilmsFollow:
    """Updates the assets of an Event after its film was made, and the package if captions changed meanwhile."""

    def __init__(self, assets: AssetSync, packages: CaptionPackages) -> None:
        self._update = assets_follow(assets)
        self._packages = packages

    async def __call__(self, key: str, outcome: JobOutcome, invocation: Invocation) -> None:
        """`key` is that of the Event."""
        await self._update(key, outcome, invocation)
        if outcome.kind is OutcomeKind.COMPLETED:
            await self._packages.agree(UUID(key))


class ComposedFilmsFollow:
    """Does the same for the Event of a composition."""

    def __init__(self, films: FilmsFollow) -> None:
        self._films = films

    async def __call__(self, key: str, outcome: JobOutcome, invocation: Invocation) -> None:
        await self._films(outcome.content_id, outcome, invocation)


class CaptionsFollow:
    """Updates the packages of an Event after the text of a caption was replaced."""

    def __init__(self, assets: AssetQueries, packages: CaptionPackages) -> None:
        self._assets = assets
        self._packages = packages

    async def __call__(self, key: str, outcome: JobOutcome, invocation: Invocation) -> None:
        """`key` is that of the asset."""
        row = await self._assets.find(UUID(key)) if outcome.kind is OutcomeKind.COMPLETED else None
        if row is not None and row.type is AssetType.CAPTION:
            await self._packages.agree(row.event_id)
