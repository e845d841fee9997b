"""The films of the Events in a playlist, as its sources. docs/reference/api/compositions.md#sources"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from domain.event.values import COMPOSING, ON_AIR, WITH_METADATA, EventDetails, EventState, Mp4State, VodJobEnd, VodWorkflow

_MOST_NAMED: Final = 5
_BEFORE: Final = frozenset({EventState.PRE_LIVE})
_RECORDED: Final = frozenset({EventState.INSTANT_VOD, EventState.INSTANT_VOD_BACKUP})
"""The states in which an Event may have a recorded stream and no film."""


@dataclass(frozen=True, slots=True)
class FilmSources:
    """The state of the sources. `fault` is the reason for which no film can be made, or empty. `pending` says that one of the
    Events does not have its film yet."""

    pending: bool = False
    fault: str = ""


def source_status(shown: Iterable[UUID], events: Mapping[UUID, EventDetails], *, waited: bool, now: datetime) -> FilmSources:
    """Return the state of the Events in a playlist; `events` are those of them that exist. `waited` says that the playlist has
    waited for them, so an Event that has stopped meanwhile is still expected to be captured."""
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
    named = [*faults[:_MOST_NAMED], *([f"and {more} more Events have none"] if more > 0 else [])]
    return FilmSources(pending, "; ".join(named))


def _has_film(details: EventDetails) -> bool:
    """Return True if the Event has a film. An Event on demand counts, because the job reports if its file is missing."""
    return not _is_made(details) and (details.mp4_state is Mp4State.AVAILABLE or details.state in WITH_METADATA - _RECORDED)


def _is_pending(details: EventDetails, *, waited: bool, now: datetime) -> bool:
    """Return True if an Event without a film is live, scheduled, or having its film made."""
    if _is_made(details) or details.state in ON_AIR or details.on_air_channel_id is not None:
        return True
    if details.state in _BEFORE and details.scheduled_start is not None and details.actual_live_start is None:
        return details.scheduled_end is None or details.scheduled_end > now
    return waited and details.actual_live_end is not None and not _has_failed(details)


def _is_made(details: EventDetails) -> bool:
    job = details.vod_job
    in_progress = job is not None and job.ended is None and job.workflow is not VodWorkflow.PACKAGE
    return in_progress or details.state in COMPOSING or details.state is EventState.VOD_INGESTING


def _has_failed(details: EventDetails) -> bool:
    """Return True if the last job belonged to the last stop, and made no film."""
    job, end = details.vod_job, details.actual_live_end
    failed = job is not None and job.ended in (VodJobEnd.FAILED, VodJobEnd.BROKEN)
    return failed and (job is None or end is None or job.ended_at is None or job.ended_at >= end)


def _why(details: EventDetails) -> str:
    if _has_failed(details) and details.vod_job is not None:
        return f"its job {details.vod_job.number} ({details.vod_job.workflow}) made none"
    return "is neither live nor scheduled nor being captured"
