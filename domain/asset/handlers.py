"""Use cases of assets: request, rename, delete, synchronise with the files of the content, and follow the job.

An asset and its job are one append. The content of an Event has the Event's id.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from re import ASCII, IGNORECASE
from re import compile as regex
from typing import Any, Final
from uuid import UUID

from domain.asset import file_names
from domain.asset.aggregate import Asset
from domain.asset.ports import UNASKED, AssetFilter, AssetLookup
from domain.asset.row import AssetRow
from domain.asset.times import asked_time, check_span, from_start, written
from domain.asset.values import FOUND, AssetState, AssetType, CaptionKind
from domain.event import metadata_file
from domain.event.aggregate import MediaEvent
from domain.event.ports import EventLookup, EventRow
from domain.event.stream_start import stream_start
from domain.job.aggregate import Job
from domain.job.handlers import JobHandlers, NewJob
from domain.job.outcome import JobOutcome, OutcomeKind
from domain.job.ports import CheckedJob, OwnedJob
from domain.job.values import DEFAULT_PRIORITY
from domain.kernel.command import Command
from domain.kernel.errors import Malformed, NotFound, Refused
from domain.kernel.ids import new_id
from domain.kernel.media_files import MediaFile, MediaFiles
from domain.kernel.parts import delete_in_parts
from domain.kernel.ports import Executor, Invocation, Outcome, Plan
from domain.kernel.stream_name import StreamName
from domain.kernel.stream_time import StreamPoint
from domain.kernel.strict_json import NotStrict, strict_json

_MOST: Final = 100
_FILE: Final = regex(rf"{FOUND}/[A-Za-z0-9-]{{1,120}}\.vtt")
_LANGUAGE: Final = regex(r"[a-z0-9]{1,8}(-[a-z0-9]{1,8}){0,8}", ASCII | IGNORECASE)
_LONGEST_NAME: Final = 200


@dataclass(frozen=True, slots=True)
class FoundCaption:
    language: str
    kind: CaptionKind
    name: str


def found_captions(text: bytes) -> Mapping[str, FoundCaption] | None:
    """Parse the tracks, by their files below the folder of the content. Return None if the metadata list none, as those of other
    products. An entry that cannot be used is left out."""
    try:
        document = strict_json(text)
    except NotStrict:
        return None
    listed = document.get("captions") if isinstance(document, dict) else None
    if not isinstance(listed, list):
        return None
    return dict(filter(None, (_caption(track) for track in listed[:_MOST] if isinstance(track, dict))))


def _caption(listed: Mapping[str, Any]) -> tuple[str, FoundCaption] | None:
    file, language, kind, name = (_text(listed.get(part)) for part in ("file", "language", "kind", "name"))
    if not _FILE.fullmatch(file) or not _LANGUAGE.fullmatch(language) or kind not in set(CaptionKind):
        return None
    if not name.strip() or len(name) > _LONGEST_NAME or not name.isprintable():
        return None
    return file, FoundCaption(language, CaptionKind(kind), name)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


MOST_AT_ONCE: Final = 5000
"""The number of assets that one deletion removes per append, and of files that a synchronisation reads, whose changes are one
append."""
_WORKFLOWS: Final = {AssetType.IMAGE: "asset_image", AssetType.GIF: "asset_gif", AssetType.VIDEO: "asset_video"}
_VOD_FILES: Final = (".ism", ".mp4")
"""Extensions of VOD files. The first that exists counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewAsset:
    """A client's request for an asset. `times` are keyed by the parameters of the workflow: `time`, or `start` and `end`; `fields`
    are the names under which they were sent. `options` are further parameters. Without a `filename` the name is used."""

    type: AssetType
    event_id: UUID
    name: str
    times: Mapping[str, str]
    fields: Mapping[str, str]
    filename: str | None = None
    priority: int = DEFAULT_PRIORITY
    options: Mapping[str, Any] = field(default_factory=dict)


class AssetHandlers:
    """Makes and changes assets on behalf of clients, and of callers who changed the files of a content."""

    def __init__(
        self,
        executor: Executor,
        assets: AssetLookup,
        *,
        events: EventLookup,
        files: MediaFiles,
        jobs: JobHandlers,
    ) -> None:
        self._executor = executor
        self._assets = assets
        self._events = events
        self._files = files
        self._jobs = jobs

    async def request(self, wanted: NewAsset, *, invocation: Invocation) -> Outcome[Asset]:
        """Request an asset. When this returns the asset is generating, and its job is queued. A path that is taken gets a
        suffix."""
        key = new_id()
        stem = file_names.stem(wanted.type, filename=wanted.filename, name=wanted.name)
        points = _points(wanted)

        async def plan() -> Plan:
            event = await self._known_event(wanted.event_id)
            content = str(event.id)
            if await self._files.find(f"{content}/{content}.mp4") is None:
                raise Refused("the Event has no MP4 file of which an asset can be made")
            times = await self._times(wanted, points, event)
            path = file_names.path(content, stem, kind=wanted.type)
            if await self._assets.is_taken(path) or await self._files.find(path) is not None:
                path = file_names.other_path(content, stem, kind=wanted.type, key=key)
            made = {"content_id": content, "source": f"{content}.mp4", "name": path.removeprefix(f"{content}/")}
            job = NewJob(
                client=invocation.cause.actor,
                workflow=_WORKFLOWS[wanted.type],
                parameters={**made, **times, **wanted.options},
                priority=wanted.priority,
                owner=Asset.stream(key),
            )
            prepared = await self._jobs.prepare_job(job, transaction_id=invocation.cause.correlation_id)
            request = Asset.request.on(key, event_id=event.id, type=wanted.type, name=wanted.name, path=path, job=prepared.number)
            return Plan((*await prepared.commands(), request))

        return await self._executor.execute(plan, invocation=invocation)

    async def delete(self, key: UUID, *, invocation: Invocation) -> Outcome[Asset]:
        """Delete an asset and cancel its job. Its file is deleted afterwards."""

        async def plan() -> Plan:
            row = await self._assets.find(key)
            if row is None:
                raise NotFound(Asset.KIND, str(key))
            return Plan(tuple(_removal(row)))

        return await self._executor.execute(plan, invocation=invocation)

    async def delete_matching(self, wanted: AssetFilter, *, invocation: Invocation) -> Outcome[Asset]:
        """Delete all matching assets, in several appends. Assets of the type SYSTEM are never deleted, and captions only if their
        type is requested. The result has the number."""
        types = [kind for kind in wanted.types or UNASKED if kind is not AssetType.SYSTEM]
        requested = replace(wanted, types=types)

        async def find() -> Sequence[AssetRow]:
            return await self._assets.matching(requested, limit=MOST_AT_ONCE) if requested.types else ()

        return await delete_in_parts(self._executor, find, deletion=_removal, most=MOST_AT_ONCE, invocation=invocation)

    async def sync(self, event_id: UUID, *, invocation: Invocation) -> Outcome[Asset]:
        """Make the assets agree with the files of the content. New files become SYSTEM assets, and assets without a file are
        removed. Text tracks of the source become captions; a caption whose track is no longer in the film is removed with its
        files.

        The result has `changed` (whether the VOD file differs from the last time), `created`, `deleted` and `path`.
        """

        async def plan() -> Plan:
            event = await self._known_event(event_id)
            content = str(event.id)
            vod_file = await self._vod_file(content)
            # Files after assets: a path that is released between the two looks has no file any more, and a claim is refused.
            rows = {row.path: row for row in await self._assets.of_event(event.id)}
            files = await self._files.list(content, limit=MOST_AT_ONCE)
            if len(files) > MOST_AT_ONCE:
                raise Refused(f"the folder of the content has more than {MOST_AT_ONCE} files")
            parts = {part for row in rows.values() if row.type is AssetType.CAPTION for part in file_names.caption_parts(row.path)}
            texts = await self._texts_of(content)
            new = [
                _discovery(event.id, file, texts)
                for file in files
                if file.path not in rows and file.path not in parts and not _is_text_of_job(file.path, content, texts)
            ]
            paths = {file.path for file in files}
            gone = [row for row in rows.values() if row.path not in paths and not row.removed and row.state is AssetState.COMPLETED]
            replaced = [
                row
                for row in rows.values()
                if texts is not None and row.is_found and not row.removed and row.path in paths and row.path not in texts
            ]
            changed = [
                Asset.change_file.on(
                    rows[file.path].id, size=file.size, modified=file.modified, name=_name_of(rows[file.path], texts)
                )
                for file in files
                if file.path in rows and _is_changed_asset(rows[file.path], file, texts)
            ]
            forgotten = [Asset.forget.on(row.id) for row in gone]
            removed = [command for row in replaced for command in _removal(row)]
            result = {
                "changed": _is_changed(vod_file, rows, content),
                "created": len(new),
                "deleted": len(gone) + len(replaced),
                "path": f"{content}/",
            }
            return Plan((*new, *changed, *forgotten, *removed), result=result)

        return await self._executor.execute(plan, invocation=invocation.at_any_version())

    async def _known_event(self, key: UUID) -> EventRow:
        event = await self._events.by_id(key)
        if event is None:
            raise NotFound(MediaEvent.KIND, str(key))
        return event

    async def _texts_of(self, content: str) -> Mapping[str, FoundCaption] | None:
        """List the text tracks of the source by their paths. Return None if the metadata list none."""
        try:
            metadata = await self._files.read(f"{content}/{metadata_file.NAME}", limit=metadata_file.LARGEST)
        except ValueError:
            return None
        captions = None if metadata is None else found_captions(metadata)
        return None if captions is None else {f"{content}/{file}": caption for file, caption in captions.items()}

    async def _vod_file(self, content: str) -> MediaFile:
        for extension in _VOD_FILES:
            file = await self._files.find(f"{content}/{content}{extension}")
            if file is not None:
                return file
        raise Refused("the Event has no VOD file")

    async def _times(self, wanted: NewAsset, points: Mapping[str, StreamPoint], event: EventRow) -> dict[str, str]:
        """Return the times relative to the start of the stream, as the workflow takes them."""
        absolute = any(point.is_absolute for point in points.values())
        begin = await stream_start(self._files, event) if absolute else None
        since = {name: from_start(point, begin) for name, point in points.items()}
        if "end" in since and since["end"] <= since["start"]:
            raise Malformed.at(wanted.fields["end"], "must be after the start")
        file = event.details.vod_file
        for name, time in since.items():
            if file is not None and file.duration is not None and time > timedelta(seconds=file.duration):
                raise Refused(f"{wanted.times[name]} is past the end of the stream")
        return {name: written(time) for name, time in since.items()}


class AssetJobOwners:
    """The port `domain.job.ports.JobOwners`. An asset names its first job itself, so this adds commands only for later ones."""

    async def of(self, job: CheckedJob, *, run_at: datetime | None) -> OwnedJob | None:
        return None

    def accepted(
        self, job: CheckedJob, number: int, *, owner: str, rerun_of: int | None = None, version: int = 0
    ) -> Sequence[Command[Any]]:
        name = StreamName.read(owner)
        if name.kind != Asset.KIND or not (rerun_of or version):
            return ()
        return (Asset.resume.on(UUID(name.key), number, job_version=version or 1, rerun_of=rerun_of),)


def command_of(key: str, outcome: JobOutcome) -> Command[Any]:
    """Return the command that passes an outcome of a job to the asset that owns it."""
    asset, job, version = UUID(key), outcome.job, outcome.version
    match outcome.kind:
        case OutcomeKind.COMPLETED:
            return Asset.complete.on(asset, job, job_version=version, sizes={file.name: file.size for file in outcome.files})
        case OutcomeKind.FAILED | OutcomeKind.BROKEN:
            return Asset.fail.on(asset, job, job_version=version, reason=outcome.reason)
        case OutcomeKind.RESUMED | OutcomeKind.RERUN:
            return Asset.restart.on(asset, job, job_version=version, rerun_of=outcome.rerun_of)


def _points(wanted: NewAsset) -> dict[str, StreamPoint]:
    """Parse the times of a request. A GIF takes only times from the start of the stream."""
    absolute = wanted.type is not AssetType.GIF
    points = {name: asked_time(text, field=wanted.fields[name], absolute=absolute) for name, text in wanted.times.items()}
    if "end" in points:
        check_span(points["start"], points["end"], field=wanted.fields["end"])
    return points


def _removal(row: AssetRow) -> list[Command[Any]]:
    remove = Asset.remove.on(row.id, running_job=row.running_job).as_planned()
    return [remove] if row.running_job is None else [Job.end.on(row.running_job), remove]


def _discovery(event_id: UUID, file: MediaFile, texts: Mapping[str, FoundCaption] | None) -> Command[Asset]:
    text = (texts or {}).get(file.path)
    if text is None:
        name = file.path.rpartition("/")[2]
        return Asset.discover.on(new_id(), event_id=event_id, name=name, path=file.path, size=file.size, modified=file.modified)
    return Asset.discover_caption.on(
        new_id(),
        event_id=event_id,
        name=text.name,
        path=file.path,
        language=text.language,
        kind=text.kind,
        size=file.size,
        modified=file.modified,
    )


def _is_text_of_job(path: str, content: str, texts: Mapping[str, FoundCaption] | None) -> bool:
    """Return True if a file is part of a text track, or a track that a job is publishing or that the film no longer has."""
    return texts is not None and path.startswith(f"{content}/{FOUND}/") and path not in texts


def _name_of(row: AssetRow, texts: Mapping[str, FoundCaption] | None) -> str | None:
    text = (texts or {}).get(row.path) if row.is_found else None
    return None if text is None else text.name


def _is_changed_asset(row: AssetRow, file: MediaFile, texts: Mapping[str, FoundCaption] | None) -> bool:
    name = _name_of(row, texts)
    return _is_other_file(row, file) or (not row.removed and name is not None and name != row.name)


def _is_other_file(row: AssetRow, file: MediaFile) -> bool:
    """Return True if a discovered file has changed. Files that clients requested are made by jobs and not compared."""
    discovered = row.type is AssetType.SYSTEM or row.is_found
    return discovered and not row.removed and (row.size, row.file_modified) != (file.size, file.modified)


def _is_changed(vod_file: MediaFile, rows: Mapping[str, AssetRow], content: str) -> bool:
    """Return True if the VOD file has changed since the last synchronisation; False at the first one. A change of the file that
    counts as the VOD file is a change."""
    row = rows.get(vod_file.path)
    if row is not None:
        return _is_other_file(row, vod_file)
    return any(f"{content}/{content}{extension}" in rows for extension in _VOD_FILES)
