"""The store of media that the settings name, and the places where steps work on this machine."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from api.wiring.settings import Settings
from domain.destination.targets import Target
from workers.adapters.media_directory import MediaDirectory
from workers.adapters.outbound_http import GuardedClient
from workers.adapters.step_account import program_account
from workers.adapters.targets.known import KnownTargets
from workers.kernel.quiet import QuietMode
from workers.ports.targets import ServiceAddresses, TargetSettings


def publishing_targets(settings: Settings, quiet: QuietMode) -> KnownTargets:
    """Return the targets of this process. None of them is reached while the installation is quiet."""
    client = partial(GuardedClient, settings.outbound_allow, permit=quiet.permit)
    account = partial(program_account, Path(sys.executable))
    return KnownTargets(client, settings=target_settings(settings), account=account, quiet=quiet)


def target_settings(settings: Settings) -> TargetSettings:
    """Return the operator's settings for targets."""
    root = settings.filesystem_root
    services = ServiceAddresses(
        youtube=settings.youtube_url,
        youtube_token=settings.youtube_token_url,
        facebook=settings.facebook_url,
        facebook_video=settings.facebook_video_url,
    )
    return TargetSettings(None if root is None else root.absolute(), services)


def refused_targets(settings: Settings) -> Mapping[Target, str]:
    """Return the targets that no destination may have, with the reasons."""
    if settings.filesystem_root is None:
        return {Target.FILESYSTEM: "is not available: the operator has not set MEDIALEDGER_FILESYSTEM_ROOT"}
    return {}


if TYPE_CHECKING:
    from workers.adapters.media_bucket import MediaBucket
    from workers.job.inputs import Inputs
    from workers.job.workspaces import RunFiles
    from workers.kernel.confinement import Places
    from workers.ports.buckets import BucketAddress
    from workers.wiring import SharedWorkers, WorkerContext


def media_files(root: Path, bucket: BucketAddress | None) -> MediaDirectory | MediaBucket:
    """Return the published files. The client of buckets is imported only if there is a bucket, since that takes a third of a
    second."""
    if bucket is None:
        return MediaDirectory(root)
    from workers.adapters.media_bucket import MediaBucket
    from workers.adapters.s3_bucket import S3Bucket

    return MediaBucket(S3Bucket(bucket))


def check_transcoder(shared: SharedWorkers, places: Places) -> None:
    """Add the check of the transcoder once to a process, whichever of its roles need it."""
    from workers.adapters.ffmpeg import Ffmpeg, choose
    from workers.adapters.step_account import program_account
    from workers.job.transcoder_check import TranscoderCheck

    shared.worker(TranscoderCheck, lambda: TranscoderCheck(Ffmpeg(choose(places, "ffmpeg"), account=program_account)))


def run_files(context: WorkerContext, shared: SharedWorkers) -> RunFiles:
    """Return the files of runs."""
    from workers.job.workspaces import Workspaces

    local, inputs = Workspaces(context.media_root), step_inputs(context, shared)
    if inputs is None:
        return local
    from workers.job.bucket_workspaces import BucketWorkspaces

    return shared.get(BucketWorkspaces, lambda: BucketWorkspaces(local, inputs.store, inputs=inputs, clock=context.clock))


def step_inputs(context: WorkerContext, shared: SharedWorkers) -> Inputs | None:
    """Return the inputs from the bucket; None if media are in a directory."""
    address = context.media_bucket
    if address is None:
        return None
    from workers.adapters.s3_bucket import S3Bucket
    from workers.job.inputs import Inputs

    return shared.get(Inputs, lambda: Inputs(context.media_root, S3Bucket(address), limits=context.downloads))
