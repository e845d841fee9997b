"""The store of media that the settings name, and the places where steps work on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from workers.adapters.media_directory import MediaDirectory

if TYPE_CHECKING:
    from workers.adapters.media_bucket import MediaBucket
    from workers.bucket_ports import BucketAddress
    from workers.jobs.inputs import Inputs
    from workers.jobs.workspaces import RunFiles
    from workers.kernel.confinement import Places
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
    from workers.jobs.transcoder_check import TranscoderCheck

    shared.worker(TranscoderCheck, lambda: TranscoderCheck(Ffmpeg(choose(places, "ffmpeg"), account=program_account)))


def run_files(context: WorkerContext, shared: SharedWorkers) -> RunFiles:
    """Return the files of runs."""
    from workers.jobs.workspaces import Workspaces

    local, inputs = Workspaces(context.media_root), step_inputs(context, shared)
    if inputs is None:
        return local
    from workers.jobs.bucket_workspaces import BucketWorkspaces

    return shared.get(BucketWorkspaces, lambda: BucketWorkspaces(local, inputs.store, inputs=inputs, clock=context.clock))


def step_inputs(context: WorkerContext, shared: SharedWorkers) -> Inputs | None:
    """Return the inputs from the bucket; None if media are in a directory."""
    address = context.media_bucket
    if address is None:
        return None
    from workers.adapters.s3_bucket import S3Bucket
    from workers.jobs.inputs import Inputs

    return shared.get(Inputs, lambda: Inputs(context.media_root, S3Bucket(address), limits=context.downloads))
