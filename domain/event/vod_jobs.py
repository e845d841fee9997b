"""Jobs that make the files of an Event for playback on demand: the Event is their owner. docs/reference/api/vod.md."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from math import isfinite
from typing import Any, Final
from uuid import UUID

from pydantic import ValidationError

from domain.channel.playback import ChannelConfiguration, channel_configuration, live_addresses
from domain.channel.streams import StreamPlace, StreamProtocol
from domain.event.aggregate import MediaEvent
from domain.event.asset_sync import AssetSync
from domain.event.ports import EventLookup
from domain.event.values import STREAMING, WITH_METADATA, EventDetails, EventState, Quality, VodJobEnd, VodResult, VodWorkflow
from domain.job.outcome import JobOutcome, OutcomeKind
from domain.job.ports import CheckedJob, OwnedJob
from domain.kernel.clock import Clock, iso
from domain.kernel.command import Command
from domain.kernel.errors import FieldError, Malformed
from domain.kernel.ports import Invocation
from domain.kernel.stream_name import StreamName
from domain.kernel.stream_time import stream_point
from domain.record.kinds.channel import Channel
from domain.record.ports import RecordLookup

_WORKFLOWS: Final = {workflow.value: workflow for workflow in VodWorkflow if workflow is not VodWorkflow.COMPOSE}
_CHECK: Final = "quality_check"
"""A job that changes no file except its report. It may check any content; if the content belongs to an Event, the Event is
notified."""
_CAPTURED_FROM: Final = (StreamProtocol.HLS, StreamProtocol.DASH)
"""The protocols that a capture can read, the preferred one first."""
_MOST_SOURCES: Final = 8
_ORIGINS: Final = (StreamPlace.ORIGIN_PRIMARY, StreamPlace.ORIGIN_SECONDARY)
_WITH_FILM: Final = WITH_METADATA | {EventState.VOD_INGESTING}
_ENDS: Final = {
    OutcomeKind.COMPLETED: VodJobEnd.COMPLETED,
    OutcomeKind.FAILED: VodJobEnd.FAILED,
    OutcomeKind.BROKEN: VodJobEnd.BROKEN,
}


class VodJobOwners:
    """The port `domain.job.ports.JobOwners`. A capture without sources, start or end gets those of its Event; a capture that
    ends in the future starts at its end."""

    def __init__(self, events: EventLookup, records: RecordLookup, *, clock: Clock) -> None:
        self._events = events
        self._records = records
        self._clock = clock

    async def of(self, job: CheckedJob, *, run_at: datetime | None) -> OwnedJob | None:
        workflow = _WORKFLOWS.get(job.workflow)
        if workflow is None and job.workflow != _CHECK:
            return None
        key = _uuid(job.content_id)
        event = await self._events.by_id(key) if key is not None else None
        if workflow is None:
            return (
                None
                if event is None
                else OwnedJob(MediaEvent.stream(event.id), {**job.parameters, "content_id": str(event.id)}, run_at)
            )
        if event is None:
            raise Malformed.at("parameters.content_id", "there is no Event with this content id")
        parameters = {**job.parameters, "content_id": str(event.id)}
        if workflow is VodWorkflow.CAPTURE:
            parameters |= await self._missing(parameters, event.details)
            end = _time(parameters.get("end"))
            if end is not None and end > self._clock():
                run_at = end if run_at is None else max(run_at, end)
        return OwnedJob(MediaEvent.stream(event.id), parameters, run_at)

    def accepted(
        self, job: CheckedJob, number: int, *, owner: str, rerun_of: int | None = None, version: int = 0
    ) -> Sequence[Command[Any]]:
        workflow, name = _WORKFLOWS.get(job.workflow), StreamName.read(owner)
        if workflow is None or name.kind != MediaEvent.KIND:
            return ()
        publish = job.parameters.get("publish")
        times = {"capture_vod_start": _time(job.parameters.get("start")), "capture_vod_end": _time(job.parameters.get("end"))}
        captured = {fact: time for fact, time in times.items() if time is not None and workflow is VodWorkflow.CAPTURE}
        asked = publish if isinstance(publish, bool) else None
        key = UUID(name.key)
        return (
            MediaEvent.start_vod_job.on(
                key, number, workflow, publish=asked, captured=captured, rerun_of=rerun_of, version=version
            ),
        )

    async def _missing(self, parameters: Mapping[str, Any], details: EventDetails) -> dict[str, Any]:
        """Return the parameters that the client left out, from the Event. Raises `Malformed` for all that the Event does not
        know."""
        completed: dict[str, Any] = {}
        errors: list[FieldError] = []
        if not parameters.get("sources"):
            completed["sources"] = (await self._origins(details.channel_id, content=parameters["content_id"]))[:_MOST_SOURCES]
            if not completed["sources"]:
                errors.append(FieldError("parameters.sources", "is required: the Event has no channel with live origin URLs"))
        ended = None if details.state in STREAMING else details.actual_live_end
        event_times = {"start": (details.actual_live_start, "was never live"), "end": (ended, "has not ended")}
        for name, other in (("start", "end"), ("end", "start")):
            time, missing = event_times[name]
            if parameters.get(name) is not None:
                continue
            if parameters.get(other) is not None and _time(parameters[other]) is None:
                errors.append(FieldError(f"parameters.{name}", f"is required: the {other} is no date-time"))
            elif time is None:
                errors.append(FieldError(f"parameters.{name}", f"is required: the Event {missing}"))
            else:
                completed[name] = iso(time)
        if errors:
            raise Malformed(*errors)
        return completed

    async def _origins(self, channel: UUID | None, *, content: str) -> list[str]:
        record = None if channel is None else await self._records.find(Channel, channel)
        return [] if record is None else live_origins(channel_configuration(record.details.configuration_json), content=content)


def why_hidden(aggregates: Sequence[Any]) -> str | None:
    """Return the reason for which the film of a job will not be shown, given the aggregates that its acceptance has changed.
    Return None if it will be shown, if a playlist is its source, and if the job makes no film of an Event."""
    event = next((changed for changed in aggregates if isinstance(changed, MediaEvent)), None)
    if event is None or event.details.vod_job is None:
        return None
    job, state = event.details.vod_job, event.details.state
    if job.workflow is VodWorkflow.COMPOSE or state in _WITH_FILM:
        return None
    if state is EventState.PRE_LIVE and job.workflow is VodWorkflow.INGEST and event.details.actual_live_start is None:
        hint = 'Send "publish" with the job, or set a VOD state.'
        return f"The Event is {state.name} and stays in this state: its film is not shown. {hint}"
    return (
        f"The Event is {state.name} and stays in this state: its film is not shown until somebody sets VOD_PUBLIC or VOD_PRIVATE."
    )


def live_origins(channel: ChannelConfiguration, *, content: str) -> list[str]:
    """Return the live origin URLs of one protocol. They carry the same stream, so one can fill the gaps of another."""
    by_protocol = (live_addresses(channel, protocol, places=_ORIGINS, content=content) for protocol in _CAPTURED_FROM)
    return next(filter(None, by_protocol), [])


def vod_command(key: str, outcome: JobOutcome) -> Command[Any]:
    """Return the command that passes an outcome of a job to the Event with this key."""
    event = UUID(key)
    if outcome.rerun_of is not None:
        return MediaEvent.move_vod_job.on(event, outcome.job, rerun_of=outcome.rerun_of)
    if (quality := _quality(outcome.metadata.get("quality_check"), outcome.job)) is not None:
        return MediaEvent.measure_quality.on(event, quality)
    end = _ENDS.get(outcome.kind)
    if end is None:
        return MediaEvent.resume_vod_job.on(event, outcome.job, version=outcome.version)
    result = _result(key, outcome) if end is VodJobEnd.COMPLETED else None
    quality = _quality(outcome.metadata.get("quality"), outcome.job)
    return MediaEvent.end_vod_job.on(
        event, outcome.job, end, version=outcome.version, reason=outcome.reason, result=result, quality=quality
    )


def assets_follow(assets: AssetSync) -> Callable[[str, JobOutcome, Invocation], Awaitable[None]]:
    """Return a function that makes assets of a job's files after the Event was notified of the job's completion."""

    async def follow(key: str, outcome: JobOutcome, invocation: Invocation) -> None:
        if outcome.kind is OutcomeKind.COMPLETED:
            await assets.run(UUID(key), invocation=invocation)

    return follow


def _result(key: str, outcome: JobOutcome) -> VodResult | None:
    """Read the metadata tolerantly, because the steps may belong to another package. `duration` is in seconds, `drm` the
    document for `drmJson`, `thumbnail` the name of a file of the content."""
    facts: dict[str, Any] = {}
    size = next((file.size for file in outcome.files if file.name == f"{key}/{key}.mp4"), None)
    if size is not None:
        facts["size"] = size
    match outcome.metadata.get("duration"):
        case int() | float() as seconds if not isinstance(seconds, bool) and isfinite(seconds) and seconds >= 0:
            facts["duration"] = float(seconds)
    match outcome.metadata.get("drm"):
        case dict() as drm if drm:
            facts["drm_json"] = json.dumps(drm, ensure_ascii=False, separators=(",", ":"))
    match outcome.metadata.get("thumbnail"):
        case str() as thumbnail if thumbnail:
            facts["thumbnail"] = thumbnail
    return VodResult(**facts) if facts else None


def _quality(reported: object, job: int) -> Quality | None:
    """Read the quality that a job reports, or None if the job has not checked the film of the Event."""
    if not isinstance(reported, dict):
        return None
    try:
        return Quality.model_validate({**reported, "job": job, "measured_at": None})
    except ValidationError:
        return None


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def _time(value: object) -> datetime | None:
    """Return a date-time of the parameters, in UTC; None for a time from the start of the stream. The workflow has checked them."""
    try:
        return stream_point(value, field="").date_time if isinstance(value, str) else None
    except Malformed:
        return None
