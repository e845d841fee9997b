"""Whole runs of the workflows of VOD packages, in real step hosts: each step's files are published before the next one begins."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from projections.job.queue import QueuedRun
from tests.support.sources.numbered_frames import tool
from tests.support.step_hosts import Listener, order
from workers.job.caption_answers import FindTracks, no_tracks
from workers.job.content_protection import FindProtection, unprotected
from workers.job.protocol import StepFailure
from workers.job.registry import builtin
from workers.job.step_process_pool import StepProcessPool
from workers.job.stream_starts import FindStart, no_starts
from workers.job.workspaces import Workspaces

Results = Mapping[str, Mapping[str, Any]]
NOTHING: Mapping[str, Callable[[], object]] = {}


async def run(
    hosts: StepProcessPool,
    root: Path,
    workflow: str,
    *,
    content_id: str = "film",
    protection: FindProtection = unprotected,
    starts: FindStart = no_starts,
    tracks: FindTracks = no_tracks,
    removed: FindTracks = no_tracks,
    listener: Listener | None = None,
    after: Mapping[str, Callable[[], object]] = NOTHING,
    **parameters: Any,
) -> Results | StepFailure:
    """Run a workflow, and return the metadata of all steps, or the outcome of the first one that failed.

    `after` holds functions that are called after the steps of these names.
    """
    workspaces, results = Workspaces(root), dict[str, Mapping[str, Any]]()
    given = {"content_id": content_id, **parameters}
    loaded, _ = builtin().checked(workflow, given)
    try:
        for task in loaded.graph():
            wanted = replace(
                order(task.name, workflow=workflow, **given), task=task.id, content_id=content_id, results=dict(results)
            )
            ended = await hosts.run(
                wanted, listener or Listener(), protection=protection, starts=starts, tracks=tracks, removed=removed
            )
            if isinstance(ended, StepFailure):
                return ended
            await workspaces.publish(QueuedRun(wanted.job, wanted.task, wanted.run), ended.outputs, client=wanted.client)
            results[task.name] = ended.result.metadata
            after.get(task.name, lambda: None)()
    finally:
        await workspaces.remove([17])
    return results


def published(root: Path, content_id: str = "film") -> set[str]:
    folder = root / content_id
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def shown_by_packager(path: Path) -> str:
    """The tracks that the packager itself finds in a file."""
    asked = [tool("packager"), f"in={path.name}", "--dump_stream_info"]
    return subprocess.run(asked, cwd=path.parent, capture_output=True, text=True, check=True).stdout
