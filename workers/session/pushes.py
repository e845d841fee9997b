"""Pushes of live publications, as a kind of session: each publication that is InProgress has one."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol
from uuid import UUID

from domain.event.ports import EventLookup
from domain.kernel.errors import DomainError
from domain.kernel.ports import Executor, Invocation
from domain.publication.aggregate import Publication
from domain.publication.ports import PublicationLookup
from domain.publication.row import PublicationRow
from domain.publication.sources import ChannelSources, LiveSource
from domain.publication.values import PublicationState
from projections.kernel.background_task import TRANSIENT
from projections.publication.queries import WANTED
from projections.session.store import Drawn, Wanted
from workers.ports.live import LiveIngest
from workers.ports.pushes import Push, PushedSound, Pusher, PushFailed
from workers.ports.targets import Details, TargetFailed
from workers.session.kinds import StartFailed
from workers.session.push_session import PATIENCE, PushPatience, PushSession

_SYSTEM: Final = "system"
_AGAIN: Final = 5.0
_LONGEST: Final = 60.0
"""The longest pause, in seconds, between two requests to a target that has not received enough of the stream yet."""

_log = logging.getLogger(__name__)


class LiveTargets(Protocol):
    """The targets of live publications, opened with their secrets. Both methods raise `TargetFailed`, and wait for a limited time
    only."""

    async def ingest(self, publication: PublicationRow) -> LiveIngest:
        """Return the address that the stream is pushed to."""
        ...

    async def show(self, publication: PublicationRow, details: Details) -> Details:
        """Make the target show the stream that it receives."""
        ...


class PushSessions:
    """Sessions of pushes: implements `SessionKind`."""

    wanted: Final = WANTED

    def __init__(
        self,
        executor: Executor,
        publications: PublicationLookup,
        events: EventLookup,
        *,
        sources: ChannelSources,
        targets: LiveTargets,
        pusher: Pusher,
        patience: PushPatience = PATIENCE,
    ) -> None:
        self._executor = executor
        self._publications = publications
        self._events = events
        self._sources = sources
        self._targets = targets
        self._pusher = pusher
        self._patience = patience

    async def start(self, wanted: Wanted, drawn: Drawn, *, may_send: Callable[[], bool]) -> PushSession:
        row = await self._publication(wanted)
        opened: list[Details] = []

        async def make(arrived: Callable[[], None]) -> Push:
            present = await self._publication(wanted)
            source = await self._source(present)
            if not source.urls:
                raise PushFailed("source", "The Event is not on the air, or its channel has no HLS address.")
            ingest = await self._targets.ingest(present)
            opened[:] = [ingest.details]
            return Push(source.urls, _sound(present, source), ingest, drawn.number, may_send, arrived)

        async def show() -> None:
            await self._show(wanted, opened[0])

        return PushSession(wanted.key, self._pusher, make=make, show=show, arrived=row.arrived, patience=self._patience)

    async def report_start(self, wanted: Wanted, number: int) -> None:
        """Do nothing: the row of the session records it."""

    async def report_stop(self, owner: str, number: int, *, reason: str) -> None:
        """Do nothing: the row of the session records it."""

    async def report_failure(self, wanted: Wanted, number: int | None, *, reason: str) -> None:
        fault = Publication.fail_push.on(UUID(wanted.owner), wanted.wish, state=PublicationState.FailedPublication, reason=reason)
        await self._executor.execute(fault, invocation=Invocation.by(_SYSTEM))

    async def _publication(self, wanted: Wanted) -> PublicationRow:
        row = await self._publications.find(UUID(wanted.owner))
        if row is None or row.run != wanted.wish:
            raise StartFailed("the publication was stopped", waits=True)
        return row

    async def _source(self, row: PublicationRow) -> LiveSource:
        event = await self._events.by_id(UUID(row.content_id))
        return LiveSource(()) if event is None else await self._sources.of(event)

    async def _show(self, wanted: Wanted, details: Details) -> None:
        """Repeat until the target shows the stream, or reports that it never will: the stream is pushed in either case."""
        shown: Mapping[str, Any] | None = None
        while shown is None:
            try:
                shown = await self._targets.show(await self._publication(wanted), details)
            except TargetFailed as fault:
                if fault.kind != "retry":
                    _log.warning("the target of %s does not show its stream: %s", wanted.key, fault)
                    shown = details
                else:
                    await asyncio.sleep(min(fault.after or _AGAIN, _LONGEST))
            except TRANSIENT:
                await asyncio.sleep(_AGAIN)
        arrival = Publication.arrive.on(UUID(wanted.owner), wanted.wish, details=dict(shown))
        while True:
            try:
                await self._executor.execute(arrival, invocation=Invocation.by(_SYSTEM))
                return
            except TRANSIENT:
                await asyncio.sleep(_AGAIN)
            except DomainError as refusal:
                _log.info("the arrival of %s was not recorded: %s", wanted.key, refusal)
                return


def _sound(row: PublicationRow, source: LiveSource) -> PushedSound:
    """Return the sound to push, by its name in the stream if the encoder has given it one."""
    if row.audio_input_id is None:
        return PushedSound()
    for place, audio_input in enumerate(source.audio_inputs):
        if audio_input.id == row.audio_input_id:
            return PushedSound((audio_input.name, audio_input.id), audio_input.language, place)
    return PushedSound((row.audio_input_id,))
