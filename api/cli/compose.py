"""`medialedger compose`: shows the playlist of an Event with a time line, its state, and the progress of the job of its film."""

from __future__ import annotations

import asyncio
from argparse import Namespace
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from api.cli.output import print_document
from api.cli.printable import aligned, printable
from api.cli.remote.progress import progress_text, state_of, task_document
from api.cli.run.core import open_core
from api.cli.time_line import Entry, bar, clock, time_line, whole_length
from api.wiring.settings import Settings
from api.wiring.startup import StartError
from domain.composition.checks import event_of
from domain.composition.row import CompositionRow
from domain.composition.values import CompositionKind, Item
from domain.event.ports import EventRow
from domain.kernel.clock import iso
from projections.composition.queries import CompositionQueries
from projections.event.queries import EventQueries
from projections.job.board import BoardQueries, TaskProgress
from projections.job.queries import JobQueries, JobRow
from projections.kernel.database.database import Database


async def run(args: Namespace, settings: Settings) -> int:
    async with open_core(settings) as wired:
        playlist = await _Playlist.of(wired.database, args.event)
    print_document(playlist.document(), lambda _: "\n".join(playlist.lines()), form=args.form)
    return 0


class _Playlist:
    """The playlist of an Event, with its sources and the job of its film, as text and as a document."""

    def __init__(
        self,
        event: EventRow,
        row: CompositionRow,
        *,
        sources: dict[UUID, EventRow],
        job: JobRow | None,
        tasks: Sequence[TaskProgress],
    ) -> None:
        self._event = event
        self._row = row
        self._sources = sources
        self._job = job
        self._tasks = tasks
        files = {key: source.details.vod_file for key, source in sources.items()}
        durations = {key: file.duration for key, file in files.items() if file is not None and file.duration is not None}
        self._entries = time_line(row.playlist, durations=durations)
        self._whole = whole_length(self._entries)

    @classmethod
    async def of(cls, database: Database, event_id: UUID) -> _Playlist:
        events = EventQueries(database)
        event, row = await events.by_id(event_id), await CompositionQueries(database).of_event(event_id)
        if event is None or row is None:
            raise StartError(f"the Event {event_id} does not exist or has no playlist")
        keys = {key for item in row.playlist.items if (key := event_of(item)) is not None}
        sources = {source.id: source for source in await asyncio.gather(*map(events.by_id, keys)) if source is not None}
        job = None if row.job is None else await JobQueries(database).by_id(row.job)
        tasks = await BoardQueries(database).tasks([row.job]) if row.job is not None else ()
        return cls(event, row, sources=sources, job=job, tasks=tasks)

    def lines(self) -> Iterator[str]:
        row, title = self._row, self._event.details.title or "-"
        made_for = "a film" if row.kind is CompositionKind.STANDARD else "an encoder"
        yield f"playlist {row.id}: {printable(row.playlist.name) or '-'}, for {made_for}{', looped' if row.playlist.looped else ''}"
        yield f"event {self._event.id}: {printable(title)}, {self._event.details.state.name}"
        if row.kind is CompositionKind.STANDARD:
            yield from self._film()
        yield from aligned([("", "at", "length", "item", ""), *self._table()])

    def _film(self) -> Iterator[str]:
        row = self._row
        start = f", to be made at {iso(row.live_stream_start)}" if row.live_stream_start is not None else ""
        yield f"film {row.generation}: {row.state.name}{start}{row.reason and f': {printable(row.reason)}'}"
        if self._job is not None:
            yield f"job {self._job.id}: {state_of(self._job)}"
            for task in self._tasks:
                progress = progress_text(task_document(task))
                yield f"  {printable(task.name)}: {task.state.name.lower()}{progress and '  '}{progress}"

    def _table(self) -> Iterator[tuple[str, ...]]:
        for number, entry in enumerate(self._entries, 1):
            yield (str(number), clock(entry.at), clock(entry.length), self._item(entry.item), bar(entry, whole=self._whole))
            for cue in entry.breaks:
                yield ("", clock(cue.at), cue.marker.duration, f"  {cue.marker.type.name.lower()}", "")
        yield ("", clock(self._whole), "", "end", "")

    def _item(self, item: Item) -> str:
        source = self._sources.get(event_of(item) or self._event.id)
        named = item.value if source is None else f"{source.details.title or '-'} ({item.value})"
        cut = f" {item.start or ''}..{item.end or ''}" if item.start or item.end else ""
        return f"{named}{cut}"

    def document(self) -> dict[str, Any]:
        row = self._row
        return {
            "eventId": str(row.event_id),
            "eventState": self._event.details.state.name,
            "id": str(row.id),
            "name": row.playlist.name,
            "kind": row.kind.name,
            "looped": row.playlist.looped,
            "liveStreamStart": None if row.live_stream_start is None else iso(row.live_stream_start),
            "state": row.state.name,
            "reason": row.reason,
            "generation": row.generation,
            "jobId": row.job,
            "jobState": None if self._job is None else state_of(self._job),
            "tasks": [{"name": task.name, "state": task.state.name, "fraction": task.fraction} for task in self._tasks],
            "length": _seconds(self._whole),
            "items": [self._entry(entry) for entry in self._entries],
        }

    def _entry(self, entry: Entry) -> dict[str, Any]:
        source = self._sources.get(event_of(entry.item) or self._event.id)
        return {
            "type": entry.item.type.name,
            "value": entry.item.value,
            "title": None if source is None else source.details.title,
            "at": _seconds(entry.at),
            "length": _seconds(entry.length),
            "breaks": [
                {"at": _seconds(cue.at), "duration": cue.marker.duration, "type": cue.marker.type.name} for cue in entry.breaks
            ],
        }


def _seconds(time: timedelta | None) -> float | None:
    return None if time is None else round(time.total_seconds(), 3)
