"""Captures of Events that have stopped, which `captureOnStop` of a flow requests. See docs/reference/api/flows.md."""

from __future__ import annotations

from datetime import datetime
from typing import Final
from uuid import UUID

from domain.configuration.playback import flow_configuration
from domain.job.handlers import JobHandlers, NewJob
from domain.kernel.clock import iso
from domain.kernel.errors import Conflict, DomainError, Malformed
from domain.kernel.ports import Invocation, ServiceNotes
from domain.media_event.ports import EventLookup
from domain.media_event.values import STREAMING, EventDetails, VodWorkflow
from domain.records.kinds.flow import Flow
from domain.records.ports import RecordLookup

_CLIENT: Final = "system"


class StopCaptures:
    """Submits the capture of a stop, once: the end of the captured time identifies the stop."""

    def __init__(self, events: EventLookup, records: RecordLookup, *, jobs: JobHandlers, notes: ServiceNotes) -> None:
        self._events = events
        self._records = records
        self._jobs = jobs
        self._notes = notes

    async def capture(self, event_id: UUID, *, invocation: Invocation) -> None:
        """Capture the Event after its last stop, if its flow requests that. An Event that is live again is captured at its next
        stop."""
        if not await self._is_due(event_id):
            return
        job = NewJob(client=_CLIENT, workflow=VodWorkflow.CAPTURE.value, parameters={"content_id": str(event_id)})
        try:
            await self._jobs.submit_job(job, invocation=invocation)
        except DomainError as refusal:
            if isinstance(refusal, Conflict) and not await self._is_due(event_id):
                return  # another process has submitted it
            message = f"the flow asks for a capture of the Event when it stops, and there is none: {_reason(refusal)}"
            await self._notes.warn(message, subject=str(event_id))

    async def _is_due(self, event_id: UUID) -> bool:
        event = await self._events.by_id(event_id)
        return event is not None and _is_open(event.details) and await self._is_asked_for(event.details.flow_id)

    async def _is_asked_for(self, flow_id: UUID | None) -> bool:
        flow = None if flow_id is None else await self._records.find(Flow.KIND, flow_id)
        return flow is not None and flow_configuration(flow.details.configuration_json).capture_on_stop


def _is_open(details: EventDetails) -> bool:
    """Return True if the Event has stopped and was not captured up to its end."""
    end = details.actual_live_end
    return end is not None and details.state not in STREAMING and not _same(details.capture_vod_end, end)


def _same(first: datetime | None, second: datetime) -> bool:
    """Compare times with the precision of job parameters."""
    return first is not None and iso(first) == iso(second)


def _reason(refusal: DomainError) -> str:
    if not isinstance(refusal, Malformed):
        return str(refusal)
    return "; ".join(error.message.removeprefix("is required: ") for error in refusal.errors)
