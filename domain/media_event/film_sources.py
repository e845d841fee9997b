"""What is known of the films of the Events that a playlist shows. docs/reference/api/compositions.md#sources"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from domain.media_event.values import COMPOSING, ON_AIR, WITH_METADATA, EventDetails, EventState, Mp4State, VodJobEnd, VodWorkflow

_MOST_NAMED: Final = 5
_BEFORE: Final = frozenset({EventState.PRE_LIVE})


@dataclass(frozen=True, slots=True)
class Sources:
    """`fault`: no film can be made, and why; empty: none is known. `pending`: one of the Events is still to get its film."""

    pending: bool = False
    fault: str = ""


def standing(shown: Iterable[UUID], events: Mapping[UUID, EventDetails], *, waited: bool, now: datetime) -> Sources:
    """Look at the Events that a playlist shows; `events` are those of them that exist. `waited`: the playlist has waited for them,
    so one that has stopped meanwhile is still to be captured."""
    faults, pending = [], False
    for key in dict.fromkeys(shown):
        details = events.get(key)
        if details is None:
            faults.append(f"the Event {key} was deleted")
        elif not _has_film(details):
            waits = _is_pending(details, waited=waited, now=now)
            pending = pending or waits
            if not waits:
                faults.append(f"the Event {key} has no film, and {_why(details)}")
    more = len(faults) - _MOST_NAMED
    named = [*faults[:_MOST_NAMED], *([f"and so with {more} others"] if more > 0 else [])]
    return Sources(pending, "; ".join(named))


def _has_film(details: EventDetails) -> bool:
    """An Event on demand counts as one with a film: the job says where its file is missing."""
    return not _is_made(details) and (details.mp4_state is Mp4State.AVAILABLE or details.state in WITH_METADATA)


def _is_pending(details: EventDetails, *, waited: bool, now: datetime) -> bool:
    """Whether an Event without a film is live, scheduled, or its film is being made."""
    if _is_made(details) or details.state in ON_AIR or details.on_air_channel_id is not None:
        return True
    if details.state in _BEFORE and details.scheduled_start is not None and details.actual_live_start is None:
        return details.scheduled_end is None or details.scheduled_end > now
    return waited and details.actual_live_end is not None and not _has_failed(details)


def _is_made(details: EventDetails) -> bool:
    job = details.vod_job
    under_way = job is not None and job.ended is None and job.workflow is not VodWorkflow.PACKAGE
    return under_way or details.state in COMPOSING or details.state is EventState.VOD_INGESTING


def _has_failed(details: EventDetails) -> bool:
    """Whether the last job was for the last stop, and made no film."""
    job, end = details.vod_job, details.actual_live_end
    failed = job is not None and job.ended in (VodJobEnd.FAILED, VodJobEnd.BROKEN)
    return failed and (job is None or end is None or job.ended_at is None or job.ended_at >= end)


def _why(details: EventDetails) -> str:
    if _has_failed(details) and details.vod_job is not None:
        return f"its job {details.vod_job.number} ({details.vod_job.workflow}) made none"
    return "is neither live nor scheduled nor being captured"
