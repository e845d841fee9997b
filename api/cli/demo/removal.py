"""Removes what the demo made, by the log: also what people have changed since, and nothing that they made."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from api.cli.demo.ledger import Ledger, Made, Step, ended
from api.cli.demo.product import Refused
from api.cli.demo.publishing import FOLDER, published_root
from api.wiring.settings import Settings
from workers.jobs import folders

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
"""In this order: what refers to others goes first."""
_GONE: Final = (204, 400, 404)
"""Somebody has removed it. Some of these calls answer 400 then."""
_IN_USE: Final = 409
_AT_REST: Final = ("completed", "broken")
_TIMES: Final = 60


async def remove(ledger: Ledger, settings: Settings) -> list[str]:
    """What could not be removed, a line for each."""
    created = ledger.created
    jobs = await _break_jobs(ledger, [made.id for made in created if made.aggregate == "job"])
    await _off_air(ledger, [made.id for made in created if made.aggregate == "event"])
    ordered = [made for kind in _PATHS for made in created if made.aggregate == kind]
    reasons = [(made, await _removed(ledger, made)) for made in ordered]
    left = [f"{made.aggregate.replace('_', ' ')} {made.id}: {reason}" for made, reason in reasons if reason is not None]
    await asyncio.to_thread(_remove_files, settings, created)
    if jobs:
        left.append(f"{jobs} jobs that have ended stay in the list of jobs, as every job does for {settings.job_days} days")
    return left


def is_complete(left: Sequence[str]) -> bool:
    """Whether only what always stays is left."""
    return all("jobs that have ended" in line for line in left)


async def _break_jobs(ledger: Ledger, jobs: Sequence[str]) -> int:
    """Break those that have not ended, and wait until their steps have. How many there are."""
    count = 0
    for job in jobs:
        try:
            found = await ledger.product.get(f"/engine/jobs/{job}")
        except Refused as refusal:
            if refusal.status in _GONE:
                continue
            raise
        count += 1
        if found["queue_state"] not in _AT_REST:
            await ledger.send(Step(f"removed/job/{job}", "PUT", f"/engine/job/{job}", {"queue_state": "BROKEN"}))
            await ended(ledger.product, job)
    return count


async def _off_air(ledger: Ledger, events: Sequence[str]) -> None:
    for event in events:
        found = await ledger.product.get(f"/api/event/{event}")
        if found is not None and found["stateString"].startswith("LIVE_"):
            await ledger.send(Step(f"removed/stop/{event}", "PUT", f"/api/event/forcestop/{event}"))


async def _removed(ledger: Ledger, made: Made) -> str | None:
    """Why it is still there; None when it is gone. Where the product cannot reach what was published, such as a folder that only
    `up --demo` names, the publication is removed without it."""
    step = Step(f"removed/{made.aggregate}/{made.id}", "DELETE", _PATHS[made.aggregate].format(made.id))
    for _ in range(_TIMES):
        try:
            await ledger.send(step)
        except Refused as refusal:
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


def _remove_files(settings: Settings, created: Sequence[Made]) -> None:
    """The files of its Events and of its publications, where they are on this machine."""
    if isinstance(settings.media_root, Path):
        for made in created:
            if made.aggregate == "event":
                folders.remove(settings.media_root, (made.id,))
    folders.remove(published_root(settings), (FOLDER,))
