"""The role `assets`: removes the files of deleted assets."""

from __future__ import annotations

from collections.abc import Sequence

from domain.asset.aggregate import Asset
from domain.kernel.media_files import MediaFiles
from domain.kernel.ports import Executor
from projections.asset.queries import AssetQueries
from projections.log.streams import Streams
from workers.asset.caption_packages import CaptionPackages
from workers.asset.removal import AssetFileRemoval
from workers.job.workspaces import RunFiles
from workers.kernel.consumer_factory import ConsumerFactory
from workers.kernel.worker import Worker


def assets(
    consumers: ConsumerFactory,
    assets: AssetQueries,
    *,
    executor: Executor,
    streams: Streams,
    files: MediaFiles,
    run_files: RunFiles,
    packages: CaptionPackages,
) -> Sequence[Worker]:
    removal = AssetFileRemoval(
        assets,
        executor,
        streams=streams,
        files=files,
        remove_folders=run_files.withdraw,
        agree=packages.agree,
        waker=consumers.wakeups({Asset.KIND}).waker(),
    )
    return [removal]
