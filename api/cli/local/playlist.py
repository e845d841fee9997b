"""`medialedger compose`: shows the playlist of an Event with a time line, its state, and the progress of the job of its film."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from api.cli.output import print_document
from api.cli.remote.jobs import job_state, progress_text
from api.cli.run.core import open_core
from api.cli.terminal_text import aligned, printable
from api.wiring.assembly import services_of
from api.wiring.container import Container
from api.wiring.settings import Settings
from api.wiring.startup import StartError
from domain.asset.times import from_start, written
from domain.composition.checks import event_of
from domain.composition.row import CompositionRow
from domain.composition.values import CompositionKind, Item, Marker, Playlist
from domain.event.ports import EventRow
from domain.kernel.clock import iso
from domain.kernel.errors import Malformed
from domain.kernel.stream_time import NO_TIME, stream_point
from projections.composition.queries import CompositionQueries
from projections.event.queries import EventQueries
from projections.job.board import BoardQueries, TaskProgress
from projections.job.queries import JobQueries, JobRow


async def print_playlist(settings: Settings, event: UUID, *, form: str) -> None:
    async with open_core(settings) as wired:
        playlist = await _Playlist.of(services_of(wired), event)
    print_document(playlist.document(), lambda _: "\n".join(playlist.lines()), form=form)


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
    async def of(cls, services: Container, event_id: UUID) -> _Playlist:
        events = services.get(EventQueries)
        event, row = await events.by_id(event_id), await services.get(CompositionQueries).of_event(event_id)
        if event is None or row is None:
            raise StartError(f"the Event {event_id} does not exist or has no playlist")
        keys = {key for item in row.playlist.items if (key := event_of(item)) is not None}
        sources = {source.id: source for source in await asyncio.gather(*map(events.by_id, keys)) if source is not None}
        job = None if row.job is None else await services.get(JobQueries).by_id(row.job)
        tasks = await services.get(BoardQueries).tasks([row.job]) if row.job is not None else ()
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
            yield f"job {self._job.id}: {_job_state(self._job)}"
            for task in self._tasks:
                progress = progress_text(_task_document(task))
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
            "jobState": None if self._job is None else _job_state(self._job),
            "tasks": [{"name": task.name, "state": task.state.name, "fraction": task.fraction} for task in self._tasks],
            "length": _seconds(self._whole),
            "items": [self._entry(entry) for entry in self._entries],
        }

    def _entry(self, entry: ListedItem) -> dict[str, Any]:
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


def _job_state(row: JobRow) -> str:
    return job_state({"queue_state": row.state.name.lower(), "failed": row.failed})


def _task_document(task: TaskProgress) -> dict[str, Any]:
    return {"state": task.state.name.lower(), "fraction": task.fraction, "message": task.message}


def _seconds(time: timedelta | None) -> float | None:
    return None if time is None else round(time.total_seconds(), 3)


_WIDTH: Final = 32
"""The characters of the bar that shows the position of an item in the film."""
_UNKNOWN: Final = "?"
_ZERO: Final = timedelta(0)


@dataclass(frozen=True, slots=True)
class PlaylistBreak:
    """A break of an item. `at` is its time in the film; None if it is not known."""

    at: timedelta | None
    marker: Marker


@dataclass(frozen=True, slots=True)
class ListedItem:
    """An item. `at` is the time in the film when it begins, `length` its length; None if it is not known."""

    item: Item
    at: timedelta | None
    length: timedelta | None
    breaks: Sequence[PlaylistBreak]


def time_line(playlist: Playlist, *, durations: Mapping[UUID, float]) -> list[ListedItem]:
    """Return the entries of a playlist. `durations` are the lengths of the films of Events, in seconds. No time is known after an
    item of unknown length."""
    entries, at = list[ListedItem](), _ZERO if playlist.items else None
    for item in playlist.items:
        event = event_of(item)
        length = _length(item, None if event is None else durations.get(event))
        breaks = [
            PlaylistBreak(_sum(at, _between(item.start or NO_TIME, marker.start_at)), marker) for marker in item.markers or ()
        ]
        entries.append(ListedItem(item, at, length, breaks))
        at = _sum(at, length)
    return entries


def bar(entry: ListedItem, *, whole: timedelta | None) -> str:
    """Return a bar that shows the position of the item in the film, at least one character wide; empty if it is not known."""
    if whole is None or whole <= _ZERO or entry.at is None or entry.length is None:
        return ""
    first = min(int(entry.at / whole * _WIDTH), _WIDTH - 1)
    last = max(int((entry.at + entry.length) / whole * _WIDTH), first + 1)
    return " " * first + "#" * (last - first) + " " * (_WIDTH - last)


def whole_length(entries: Sequence[ListedItem]) -> timedelta | None:
    return _sum(entries[-1].at, entries[-1].length) if entries else None


def clock(time: timedelta | None) -> str:
    """Return a time as `hh:mm:ss.fff`, or a question mark."""
    return _UNKNOWN if time is None else written(time)


def _length(item: Item, duration: float | None) -> timedelta | None:
    start = item.start or NO_TIME
    if item.end is not None:
        return _between(start, item.end)
    since = _between(NO_TIME, start)
    return None if duration is None or since is None else max(timedelta(seconds=duration) - since, _ZERO)


def _between(start: str, end: str) -> timedelta | None:
    """Return the time between two points; None if one is a date-time and the other an offset, or if one cannot be parsed."""
    try:
        first, last = stream_point(start, field="start"), stream_point(end, field="end")
    except Malformed:
        return None
    if first.date_time is not None and last.date_time is not None:
        return last.date_time - first.date_time
    return from_start(last, None) - from_start(first, None) if first.is_span and last.is_span else None


def _sum(first: timedelta | None, second: timedelta | None) -> timedelta | None:
    return None if first is None or second is None else first + second
