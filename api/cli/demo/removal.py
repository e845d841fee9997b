"""Removes the objects of the demo according to the log, including objects that people have changed since, but not objects of
others."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from api.cli.demo.ledger import DemoChange, DemoRequest, Ledger, wait_for_job
from api.cli.demo.product import RequestRefused
from api.cli.demo.publishing import FOLDER, published_root
from api.wiring.settings import Settings
from workers.job import folders

_WITH_FILES: Final = "?hardDelete=true"
_PATHS: Final[Mapping[str, str]] = {
    "webhook": "/api/webhook/{}",
    "publication": f"/api/media/vodpublications/{{}}{_WITH_FILES}",
    "asset": "/api/asset/{}",
    "composition": "/api/compose/{}",
    "chapter_point": "/api/chapterpoint/{}",
    "event": "/api/event/{}",
    "destination": "/api/media/destination/{}",
    "channel": "/api/channel/{}",
    "infrastructure_profile": "/api/infrastructureprofile/{}",
    "flow": "/api/flow/{}",
    "room": "/api/room/{}",
    "event_type": "/api/eventtype/{}",
    "category": "/api/category/{}",
    "tag": "/api/tag/{}",
    "client": "/api/client/{}",
}
"""The paths in the order of removal: an object is removed before the objects that it refers to."""
_GONE: Final = (204, 400, 404)
"""The statuses for an object that was already removed. Some of these calls answer 400 then."""
_IN_USE: Final = 409
_AT_REST: Final = ("completed", "broken")
_TIMES: Final = 60


async def remove(ledger: Ledger, settings: Settings) -> list[str]:
    """Remove the demo. Return a line for each object that could not be removed."""
    created = ledger.created
    jobs = await _break_jobs(ledger, [change.id for change in created if change.aggregate == "job"])
    await _take_off_air(ledger, [change.id for change in created if change.aggregate == "event"])
    ordered = [change for kind in _PATHS for change in created if change.aggregate == kind]
    reasons = [(change, await _remove(ledger, change)) for change in ordered]
    remaining = [f"{change.aggregate.replace('_', ' ')} {change.id}: {reason}" for change, reason in reasons if reason is not None]
    await asyncio.to_thread(_remove_files, settings, created)
    if jobs:
        remaining.append(f"{jobs} jobs that have ended stay in the list of jobs, as every job does for {settings.job_days} days")
    return remaining


def is_complete(remaining: Sequence[str]) -> bool:
    """Return True if the remaining objects are only those that always stay."""
    return all("jobs that have ended" in line for line in remaining)


async def _break_jobs(ledger: Ledger, jobs: Sequence[str]) -> int:
    """Break the jobs that have not ended, and wait until their steps have. Return the number of existing jobs."""
    count = 0
    for job in jobs:
        try:
            document = await ledger.product.get(f"/engine/jobs/{job}")
        except RequestRefused as refusal:
            if refusal.status in _GONE:
                continue
            raise
        count += 1
        if document["queue_state"] not in _AT_REST:
            await ledger.send(DemoRequest(f"removed/job/{job}", "PUT", f"/engine/job/{job}", {"queue_state": "BROKEN"}))
            await wait_for_job(ledger.product, job)
    return count


async def _take_off_air(ledger: Ledger, events: Sequence[str]) -> None:
    for event in events:
        document = await ledger.product.get(f"/api/event/{event}")
        if document is not None and document["stateString"].startswith("LIVE_"):
            await ledger.send(DemoRequest(f"removed/stop/{event}", "PUT", f"/api/event/forcestop/{event}"))


async def _remove(ledger: Ledger, change: DemoChange) -> str | None:
    """Delete an object. Return why it still exists; None if it is gone. If the product cannot reach the published file, for example
    because only `up --demo` configures the folder, the publication is removed without it."""
    step = DemoRequest(f"removed/{change.aggregate}/{change.id}", "DELETE", _PATHS[change.aggregate].format(change.id))
    for _ in range(_TIMES):
        try:
            await ledger.send(step)
        except RequestRefused as refusal:
            if refusal.status in _GONE:
                return None
            reason = str(refusal)
            if refusal.status != _IN_USE:
                if _WITH_FILES not in step.path:
                    return reason
                step = replace(step, path=step.path.removesuffix(_WITH_FILES))  # its files are removed below
                continue
            if "PROVISION" not in reason.upper() and "running" not in reason:
                return reason
        else:
            return None
        await asyncio.sleep(0.5)
    return reason


def _remove_files(settings: Settings, created: Sequence[DemoChange]) -> None:
    """Delete the files of the demo's Events and publications if they are on this machine."""
    if isinstance(settings.media_root, Path):
        for change in created:
            if change.aggregate == "event":
                folders.remove(settings.media_root, (change.id,))
    folders.remove(published_root(settings), (FOLDER,))
