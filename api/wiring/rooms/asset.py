"""Assets: files of Events that clients request, and those that the system makes."""

from __future__ import annotations

from api.wiring.room import Room, WorkerRole
from domain.asset.aggregate import Asset
from domain.asset.ports import AssetLookup, CaptionTexts
from domain.event.asset_sync import SyncAssets
from projections.asset import queries
from projections.asset.view import ASSET_VIEW
from projections.kernel.schema.migrate import Migration
from workers.retention import Removal

ASSET = Room(
    name="asset",
    aggregates=(Asset,),
    views=(ASSET_VIEW,),
    migrations=(Migration.read("0068 texts of captions", "asset/caption_texts.sql"),),
    routes=("api.media.asset.routes:routes",),
    services={
        AssetLookup: queries.AssetQueries,
        CaptionTexts: queries.StoredCaptionTexts,
        SyncAssets: "api.wiring.providers:sync_assets",
    },
    past_states=("api.media.asset.presenter:past_states",),
    notified="workers.webhook.notified.asset:NOTIFIED",
    owners={Asset.KIND: "domain.asset.handlers:command_of"},
    followups={Asset.KIND: "workers.asset.followups:CaptionsFollow"},
    removals=(Removal("texts of captions that were sent", "job_line_days", queries.remove_texts),),
    worker_roles=(WorkerRole("assets", "workers.asset.role:assets"),),
)
