"""Use cases of compositions: give an Event a playlist, replace, clone and delete it, and follow the job that makes its film.

A composition, what its Event shows of it, and the job are one append.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from pydantic.alias_generators import to_camel

from domain.channel.channel import composes
from domain.composition.aggregate import Composition
from domain.composition.checks import check_playlist, event_of
from domain.composition.ports import CompositionLookup, KnownEvents
from domain.composition.row import CompositionRow
from domain.composition.values import CompositionKind, CompositionState, FirstStep, Item, Playlist
from domain.event.aggregate import MediaEvent
from domain.event.changes import EventChanges
from domain.event.commands import AddOrUpdateEvent, AmendEvent, ComposeEvent, Replacement
from domain.event.deletion import CompositionEnd
from domain.event.film_sources import FilmSources, source_status
from domain.event.links import LINKS
from domain.event.ports import EventDetailsLookup, EventRow
from domain.event.values import VodWorkflow
from domain.event.vod_jobs import vod_command
from domain.job.aggregate import Job
from domain.job.handlers import JobHandlers, NewJob
from domain.job.outcome import JobOutcome, OutcomeKind
from domain.job.ports import CheckedJob, OwnedJob
from domain.kernel.clock import Clock
from domain.kernel.command import Command
from domain.kernel.errors import FieldError, Malformed, NotFound, Refused
from domain.kernel.ids import new_id
from domain.kernel.ports import Executor, Invocation, Outcome, Plan
from domain.kernel.stream_name import StreamName
from domain.record.kinds.channel import Channel
from domain.record.ports import RecordLookup

_USED: Final = ("start", "end", "frameAccurate", "outputDescription")
"""The properties that the job uses."""


def job_parameters(playlist: Playlist) -> dict[str, Any]:
    """Return a playlist as the workflow takes it, without members that it does not use, because parameters are kept short."""
    wanted = playlist.loudness
    loudness = {} if wanted is None else {"loudness": wanted.model_dump(exclude_none=True)}
    items = [_item(item) for item in playlist.items]
    return {"name": playlist.name, "looped": playlist.looped, **loudness, "items": items}


def _item(item: Item) -> dict[str, Any]:
    used = {name: item.properties[name] for name in _USED if item.properties.get(name) is not None}
    markers = [
        {
            "startAt": marker.start_at,
            "duration": marker.duration,
            "type": marker.type.value,
            **({} if marker.frame_accurate is None else {"frameAccurate": marker.frame_accurate}),
        }
        for marker in item.markers or ()
    ]
    parameters = {"type": item.type.value, "value": item.value, "properties": used, "markers": markers}
    return {name: value for name, value in parameters.items() if value not in ({}, [])}


WORKFLOW: Final = VodWorkflow.COMPOSE.value
_FIELDS: Final = {"flow_id": "workflowId", "category_ids": "categoryIds"}
_MOST_ERRORS: Final = 50
_DELETED: Final = "the Event was deleted"
_UNCHANGED: Final = EventChanges({})


@dataclass(frozen=True, slots=True, kw_only=True)
class NewComposition:
    """A client's request for a composition. With `event_id` None a new Event is added. `changes` are those of the Event, `items` is
    the path of the items in the request."""

    kind: CompositionKind
    playlist: Playlist
    event_id: UUID | None = None
    changes: EventChanges = _UNCHANGED
    cloned_from: UUID | None = None
    private: bool = False
    live_stream_start: datetime | None = None
    items: str = "playlist.items"


class CompositionHandlers:
    """Makes and changes compositions, for clients and for the timekeeper."""

    def __init__(
        self,
        executor: Executor,
        compositions: CompositionLookup,
        *,
        events: EventDetailsLookup,
        known_events: KnownEvents,
        records: RecordLookup,
        jobs: JobHandlers,
        clock: Clock,
    ) -> None:
        self._executor = executor
        self._compositions = compositions
        self._events = events
        self._known_events = known_events
        self._records = records
        self._jobs = jobs
        self._clock = clock

    async def compose(self, wanted: NewComposition, *, invocation: Invocation) -> Outcome[Composition]:
        """Give an Event its playlist, and add the Event if it does not exist. Raises `Refused` if it already has a playlist."""
        event_id = wanted.event_id or new_id()
        check_playlist(wanted.playlist, kind=wanted.kind, event_id=event_id, field=wanted.items)

        async def plan() -> Plan:
            changes = await self._linked(wanted.changes)
            await self._check_items(wanted.playlist, field=wanted.items)
            if await self._compositions.of_event(event_id) is not None:
                raise Refused(f"the Event {event_id} has a playlist")
            if wanted.kind is CompositionKind.ENCODER:
                await self._check_channel(changes.get("channel_id"))
            return Plan(await self._first(wanted, event_id, changes=changes, invocation=invocation))

        return await self._executor.execute(plan, invocation=invocation)

    async def replace(
        self, event_id: UUID, kind: CompositionKind, *, changes: Mapping[str, Any], invocation: Invocation
    ) -> Outcome[Composition]:
        """Change members of a playlist; `changes` names them, and the others stay. If anything changes, a new film is made and the
        previous job is cancelled. An Event without a playlist gets one for its encoder. Raises `NotFound`, and `Refused` for a
        playlist of the other kind."""
        sent = "items" in changes
        if sent:
            check_playlist(Playlist(items=changes["items"]), kind=kind, event_id=event_id, field="items")

        async def plan() -> Plan:
            event = await self._existing(event_id)
            row = await self._compositions.of_event(event_id)
            if row is None and kind is CompositionKind.STANDARD:
                raise NotFound(Composition.KIND, str(event_id), sentence=f"The Event {event_id} has no playlist.")
            if row is not None and row.kind is not kind:
                raise Refused(f"the playlist of the Event is for {_made_for(row.kind)}, not for {_made_for(kind)}")
            playlist = (row.playlist if row is not None else Playlist()).model_copy(update=dict(changes))
            if not sent:
                check_playlist(playlist, kind=kind, event_id=event_id, field="items")
            if row is None or playlist.items != row.playlist.items:
                await self._check_items(playlist, field="items")
            if kind is CompositionKind.ENCODER:
                await self._check_channel(event.details.channel_id)
            if row is None:
                wanted = NewComposition(kind=kind, playlist=playlist)
                return Plan(await self._first(wanted, event_id, invocation=invocation))
            return Plan(await self._replacement(row, playlist, invocation=invocation))

        return await self._executor.execute(plan, invocation=invocation)

    async def clone(self, source: UUID, target: UUID, *, invocation: Invocation) -> Outcome[Composition]:
        """Replace the playlist of the target by a copy of the source's, and make its film at once."""

        async def plan() -> Plan:
            await self._existing(source)
            event = await self._existing(target)
            copied, row = await self._composition(source), await self._compositions.of_event(target)
            if row is not None and row.kind is not copied.kind:
                raise Refused(f"the playlist of the target is for {_made_for(row.kind)}, not for {_made_for(copied.kind)}")
            if source != target:
                check_playlist(copied.playlist, kind=copied.kind, event_id=target, field="items")
            if copied.kind is CompositionKind.ENCODER:
                await self._check_channel(event.details.channel_id)
            if row is not None:
                cloned_from = None if source == target else source
                return Plan(await self._replacement(row, copied.playlist, cloned_from=cloned_from, invocation=invocation))
            wanted = NewComposition(kind=copied.kind, playlist=copied.playlist, private=copied.private, cloned_from=source)
            return Plan(await self._first(wanted, target, invocation=invocation))

        return await self._executor.execute(plan, invocation=invocation)

    async def set_drm(self, event_id: UUID, drm_json: str | None, *, invocation: Invocation) -> Outcome[Composition]:
        """Set the DRM of an Event whose playlist is made into a film."""

        async def plan() -> Plan:
            await self._existing(event_id)
            row = await self._composition(event_id)
            return Plan((AmendEvent(event_id, (Replacement("drm_json", drm_json or None),)), Composition.check_standard.on(row.id)))

        return await self._executor.execute(plan, invocation=invocation)

    async def delete(self, event_id: UUID, *, invocation: Invocation) -> Outcome[Composition]:
        """Delete only the playlist. Raises `Malformed` if the Event, or its playlist, does not exist."""

        async def plan() -> Plan:
            row = await self._compositions.of_event(event_id)
            if row is None or await self._events.by_id(event_id) is None:
                raise Malformed.at("eventId", "there is no such Event, or it has no playlist")
            return Plan(
                (
                    *_broken_off(row),
                    MediaEvent.remove_playlist.on(event_id).as_planned(),
                    Composition.remove.on(row.id).as_planned(row.seen),
                )
            )

        return await self._executor.execute(plan, invocation=invocation)

    async def generate_on_schedule(self, event_id: UUID, due: datetime, *, invocation: Invocation) -> None:
        """Make the film of a playlist that waits for this time. Nothing changes if the playlist waits for another time, or for
        none."""

        async def plan() -> Plan:
            row = await self._compositions.of_event(event_id)
            if row is None or row.state is not CompositionState.WAITING or row.live_stream_start != due:
                return Plan(())
            event = await self._events.by_id(event_id)
            if event is None:
                return Plan((Composition.give_up.on(row.id, _DELETED).as_planned(row.seen),))
            await self._check_protection(row.playlist, drm=event.details.vod_drm)
            return Plan(await self._next(row, waited=False, invocation=invocation))

        await self._executor.execute(plan, invocation=invocation)

    async def follow_sources(self, event_id: UUID, *, invocation: Invocation) -> None:
        """Make the film of a playlist that waits for the films of Events, once they exist, or fail it if one of them gets none."""

        async def plan() -> Plan:
            row = await self._compositions.of_event(event_id)
            if row is None or not row.awaits_sources:
                return Plan(())
            event = await self._events.by_id(event_id)
            if event is None:
                return Plan((Composition.give_up.on(row.id, _DELETED).as_planned(row.seen),))
            try:
                await self._check_protection(row.playlist, drm=event.details.vod_drm)
            except Refused as refusal:
                return Plan(_failed(row, refusal.rule))
            return Plan(await self._next(row, waited=True, invocation=invocation))

        await self._executor.execute(plan, invocation=invocation)

    async def _next(self, row: CompositionRow, *, waited: bool, invocation: Invocation) -> Sequence[Command[Any]]:
        """Return the commands for a playlist whose time has come, or that waits for its sources."""
        sources = await self._sources(row.playlist, waited=waited)
        if sources.fault:
            return _failed(row, sources.fault)
        if sources.pending:
            return (Composition.take_step.on(row.id, FirstStep(awaits_sources=True)).as_planned(row.seen),)
        accepted, job = await self._job(_film(row, row.playlist, client=row.client), invocation)
        shown = ComposeEvent(row.event_id, job=job, publish=not row.private)
        return (*accepted, shown, Composition.take_step.on(row.id, FirstStep(job=job)).as_planned(row.seen))

    async def ending(self, event_id: UUID) -> CompositionEnd:
        """Return the changes to a playlist for the append that deletes its Event. The playlist stays, but nothing is generated any
        more."""
        row = await self._compositions.of_event(event_id)
        if row is None or row.state not in (CompositionState.WAITING, CompositionState.GENERATING):
            return CompositionEnd()
        give_up = Composition.give_up.on(row.id, _DELETED).as_planned(row.seen)
        return CompositionEnd(row.running_job, (*_broken_off(row), give_up))

    # --- parts of plans

    async def _first(
        self, wanted: NewComposition, event_id: UUID, *, changes: Mapping[str, Any] | None = None, invocation: Invocation
    ) -> Sequence[Command[Any]]:
        """Return the commands for the first playlist of an Event, or for one after a deletion. Without `changes` the Event must
        exist."""
        key, client, commands, step = new_id(), invocation.cause.actor, list[Command[Any]](), FirstStep()
        event = await self._events.by_id(event_id)
        present = _last_job(event)
        generation, new = await self._compositions.last_generation(event_id), changes is not None and wanted.event_id is None
        if wanted.kind is CompositionKind.STANDARD:
            drm = event is not None and event.details.vod_drm
            await self._check_protection(wanted.playlist, drm=bool((changes or {}).get("vod_drm", drm)))
            if wanted.live_stream_start is None or wanted.live_stream_start <= self._clock():
                flow = None if changes is None else changes.get("flow_id")
                film = _Film(key, event_id, wanted.playlist, generation + 1, client, wanted.private, flow)
                commands, step = await self._step(film, invocation)
            commands.append(
                ComposeEvent(
                    event_id,
                    job=step.job,
                    first=True,
                    present_job=present,
                    publish=not wanted.private,
                    changes=changes,
                    new=new,
                    fault=bool(step.fault),
                )
            )
        elif changes is not None:
            commands.append(AddOrUpdateEvent(event_id, changes, new=new))
        compose = Composition.compose.on(
            key,
            event_id=event_id,
            kind=wanted.kind,
            playlist=wanted.playlist,
            client=client,
            private=wanted.private,
            live_stream_start=wanted.live_stream_start,
            generation=generation,
            cloned_from=wanted.cloned_from,
            step=step,
        )
        return (*commands, compose)

    async def _replacement(
        self, row: CompositionRow, playlist: Playlist, *, cloned_from: UUID | None = None, invocation: Invocation
    ) -> Sequence[Command[Any]]:
        """Return the commands that replace a playlist. A playlist that waits for its time continues to wait, unless it is
        cloned."""
        waits = row.live_stream_start is not None and row.state is CompositionState.WAITING and not row.awaits_sources
        changes = playlist != row.playlist or (cloned_from is not None and row.live_stream_start is not None)
        commands, step, client = list[Command[Any]](), FirstStep(), invocation.cause.actor
        if changes and row.kind is CompositionKind.STANDARD:
            await self._check_protection(playlist, drm=(await self._existing(row.event_id)).details.vod_drm)
        if changes and row.kind is CompositionKind.STANDARD and (cloned_from is not None or not waits):
            accepted, step = await self._step(_film(row, playlist, client=client), invocation)
            event = ComposeEvent(
                row.event_id, job=step.job, publish=not row.private, replaces=row.running_job, fault=bool(step.fault)
            )
            commands = [*_broken_off(row), *accepted, event]
        replace = Composition.replace.on(
            row.id, playlist, client=client, step=step, cloned_from=cloned_from if changes else None
        ).as_planned(row.seen)
        return (*commands, replace)

    async def _step(self, film: _Film, invocation: Invocation) -> tuple[list[Command[Any]], FirstStep]:
        """Return the commands that accept a job for a new playlist, and the first step of the composition."""
        sources = await self._sources(film.playlist, waited=False)
        if sources.fault or sources.pending:
            return [], FirstStep(awaits_sources=sources.pending, fault=sources.fault)
        accepted, job = await self._job(film, invocation)
        return accepted, FirstStep(job=job)

    async def _sources(self, playlist: Playlist, *, waited: bool) -> FilmSources:
        shown = [event for item in playlist.items if (event := event_of(item)) is not None]
        return source_status(shown, await self._events.details_of(set(shown)), waited=waited, now=self._clock())

    async def _job(self, film: _Film, invocation: Invocation) -> tuple[list[Command[Any]], int]:
        """Return the commands that accept the job of a film, and its number."""
        new = NewJob(
            client=film.client,
            workflow=WORKFLOW,
            parameters={
                "content_id": str(film.event_id),
                "generation": film.generation,
                "playlist": job_parameters(film.playlist),
                "publish": not film.private,
            },
            owner=Composition.stream(film.composition),
            flow_id=film.flow_id,
        )
        prepared = await self._jobs.prepare_job(new, transaction_id=invocation.cause.correlation_id)
        return list(await prepared.commands()), prepared.number

    async def _existing(self, event_id: UUID) -> EventRow:
        event = await self._events.by_id(event_id)
        if event is None:
            raise NotFound(MediaEvent.KIND, str(event_id))
        return event

    async def _composition(self, event_id: UUID) -> CompositionRow:
        row = await self._compositions.of_event(event_id)
        if row is None:
            raise NotFound(Composition.KIND, str(event_id), sentence=f"The Event {event_id} has no playlist.")
        return row

    async def _linked(self, changes: EventChanges) -> Mapping[str, Any]:
        """Return the changes after checking that their links exist."""
        asked = list(changes.links())
        shown = await self._records.shown([link for _, link in asked]) if asked else {}
        missing = dict.fromkeys(name for name, link in asked if link not in shown)
        if missing:
            raise Malformed(*(FieldError(_field(name), f"there is no such {LINKS[name].replace('_', ' ')}") for name in missing))
        return changes.values

    async def _check_items(self, playlist: Playlist, *, field: str) -> None:
        shown = [event_of(item) for item in playlist.items]
        existing = await self._known_events.existing({event for event in shown if event is not None})
        unknown = [index for index, event in enumerate(shown) if event is not None and event not in existing]
        if unknown:
            raise Malformed(*(FieldError(f"{field}[{index}].value", "there is no such Event") for index in unknown[:_MOST_ERRORS]))

    async def _check_protection(self, playlist: Playlist, *, drm: bool) -> None:
        """Refuse a film in the clear that shows a protected Event, because composing would bypass its protection."""
        shown = [event_of(item) for item in playlist.items]
        if drm or not (protected := await self._known_events.protected({event for event in shown if event is not None})):
            return
        number = next(number for number, event in enumerate(shown, 1) if event in protected)
        raise Refused(f"item {number} shows an Event with vodDrm, and the film would be in the clear: its Event needs vodDrm too")

    async def _check_channel(self, channel_id: UUID | None) -> None:
        channel = None if channel_id is None else await self._records.find(Channel, channel_id)
        if channel is None or not composes(channel.details.configuration_json):
            raise Refused("the Event has no channel with an encoder that supports composition")


@dataclass(frozen=True, slots=True)
class _Film:
    """A film that a job is to make. `flow_id` is the flow of an Event that the same append adds."""

    composition: UUID
    event_id: UUID
    playlist: Playlist
    generation: int
    client: str
    private: bool
    flow_id: UUID | None = None


class CompositionJobOwners:
    """The port `domain.job.ports.JobOwners`. A composition names its first job itself, so this adds commands only for later
    ones."""

    async def of(self, job: CheckedJob, *, run_at: datetime | None) -> OwnedJob | None:
        if job.workflow == WORKFLOW:
            raise Malformed.at("job.workflow", "is reserved for compositions, which submit it themselves")
        return None

    def accepted(
        self, job: CheckedJob, number: int, *, owner: str, rerun_of: int | None = None, version: int = 0
    ) -> Sequence[Command[Any]]:
        name = StreamName.read(owner)
        if name.kind != Composition.KIND or not (rerun_of or version):
            return ()
        again = Composition.resume.on(UUID(name.key), number, job_version=version or 1, rerun_of=rerun_of)
        publish = job.parameters.get("publish")
        asked = publish if isinstance(publish, bool) else None
        key = UUID(job.content_id)
        return (
            again,
            MediaEvent.start_vod_job.on(key, number, VodWorkflow.COMPOSE, publish=asked, rerun_of=rerun_of, version=version),
        )


def commands_of(key: str, outcome: JobOutcome) -> Plan:
    """Return the commands that pass an outcome of a job to the composition that owns it, and to its Event."""
    composition, job, version = UUID(key), outcome.job, outcome.version
    follow: Command[Composition]
    match outcome.kind:
        case OutcomeKind.COMPLETED:
            follow = Composition.complete.on(composition, job, job_version=version)
        case OutcomeKind.FAILED | OutcomeKind.BROKEN:
            follow = Composition.fail.on(composition, job, job_version=version, reason=outcome.reason)
        case OutcomeKind.RESUMED | OutcomeKind.RERUN:
            follow = Composition.restart.on(composition, job, job_version=version, rerun_of=outcome.rerun_of)
    return Plan((vod_command(outcome.content_id, outcome), follow))


def _last_job(event: EventRow | None) -> int | None:
    return None if event is None or event.details.vod_job is None else event.details.vod_job.number


def _failed(row: CompositionRow, reason: str) -> Sequence[Command[Any]]:
    """Return the commands that fail a waiting playlist."""
    shown = ComposeEvent(row.event_id, job=None, fault=True)
    return (shown, Composition.take_step.on(row.id, FirstStep(fault=reason)).as_planned(row.seen))


def _broken_off(row: CompositionRow) -> Sequence[Command[Any]]:
    return () if row.running_job is None else (Job.end.on(row.running_job),)


def _film(row: CompositionRow, playlist: Playlist, *, client: str) -> _Film:
    return _Film(row.id, row.event_id, playlist, row.generation + 1, client, row.private)


def _made_for(kind: CompositionKind) -> str:
    return "a film" if kind is CompositionKind.STANDARD else "an encoder"


def _field(name: str) -> str:
    return f"event.{_FIELDS.get(name) or to_camel(name)}"
