"""Use cases of captions: add a text to the film of an Event, or replace the previous text.

A caption and its job are one append. A text that is sent is stored before the append, and read by the job.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from domain.asset import file_names
from domain.asset.aggregate import Asset
from domain.asset.ports import AssetLookup, CaptionTexts
from domain.asset.row import AssetRow
from domain.asset.values import CaptionKind
from domain.event.aggregate import MediaEvent
from domain.event.ports import EventLookup
from domain.job.aggregate import Job
from domain.job.handlers import JobHandlers, NewJob
from domain.job.values import DEFAULT_PRIORITY
from domain.kernel.command import Command
from domain.kernel.errors import Malformed, NotFound, Refused
from domain.kernel.ids import new_id
from domain.kernel.media_files import MediaFiles
from domain.kernel.ports import Executor, Invocation, Outcome, Plan

LONGEST: Final = 64


def language_tag(text: str, *, field: str = "language") -> str:
    """Return the tag in its canonical form: `de` for `deu`. Raises `Malformed`. The subtags must be registered."""
    import langcodes  # a quarter of a second, which only captions need
    from langcodes.tag_parser import LanguageTagError

    try:
        is_valid = len(text) <= LONGEST and text.isascii() and "_" not in text and langcodes.tag_is_valid(text)
        return langcodes.Language.get(text).to_tag() if is_valid else _refused(field)
    except LanguageTagError:
        return _refused(field)


def _refused(field: str) -> str:
    raise Malformed.at(field, "must be a language tag of BCP 47, such as de, en-GB or zh-Hant")


WORKFLOW: Final = "captions"
_VOD_FILES: Final = (".ism", ".mp4")


@dataclass(frozen=True, slots=True, kw_only=True)
class NewCaption:
    """A client's request for captions. It has one of `content`, `file` (a path below the media root) and `url`."""

    event_id: UUID
    language: str
    kind: CaptionKind
    name: str
    content: bytes | None = field(default=None, repr=False)
    file: str | None = None
    url: str | None = field(default=None, repr=False)
    priority: int = DEFAULT_PRIORITY


class CaptionHandlers:
    """Adds captions on behalf of a client. Captions are deleted as other assets are."""

    def __init__(
        self,
        executor: Executor,
        assets: AssetLookup,
        *,
        events: EventLookup,
        files: MediaFiles,
        jobs: JobHandlers,
        texts: CaptionTexts,
    ) -> None:
        self._executor = executor
        self._assets = assets
        self._events = events
        self._files = files
        self._jobs = jobs
        self._texts = texts

    async def add(self, caption: NewCaption, *, invocation: Invocation) -> Outcome[Asset]:
        """Add a caption. When this returns the caption is generating, and its job is queued. An existing caption with the same
        Event, language, kind and name gets the new text: it keeps its id, its path, and its old text until the new one exists."""
        key, sent = new_id(), None if caption.content is None else new_id()
        language = language_tag(caption.language)

        async def plan() -> Plan:
            content = await self._content(caption.event_id)
            before = await self._assets.caption(caption.event_id, language=language, kind=caption.kind, name=caption.name)
            path = await self._path(content, caption, language, key) if before is None else before.path
            source = {"sent": None if sent is None else str(sent), "file": caption.file, "url": caption.url}
            job = NewJob(
                client=invocation.cause.actor,
                workflow=WORKFLOW,
                parameters={
                    "content_id": content,
                    "name": path.removeprefix(f"{content}/"),
                    **{name: value for name, value in source.items() if value is not None},
                },
                priority=caption.priority,
                owner=Asset.stream(key if before is None else before.id),
            )
            prepared = await self._jobs.prepare_job(job, transaction_id=invocation.cause.correlation_id)
            if sent is not None and caption.content is not None:
                await self._texts.store(sent, caption.content)
            if before is not None:
                return Plan((*_ended(before), *await prepared.commands(), _replacement(before, prepared.number)))
            request = Asset.request_caption.on(
                key,
                event_id=caption.event_id,
                name=caption.name,
                path=path,
                language=language,
                kind=caption.kind,
                job=prepared.number,
            )
            return Plan((*await prepared.commands(), request))

        return await self._executor.execute(plan, invocation=invocation.at_any_version())

    async def _content(self, event_id: UUID) -> str:
        event = await self._events.by_id(event_id)
        if event is None:
            raise NotFound(MediaEvent.KIND, str(event_id))
        content = str(event.id)
        for extension in _VOD_FILES:
            if await self._files.find(f"{content}/{content}{extension}") is not None:
                return content
        raise Refused("the Event has no VOD file to which captions can be added")

    async def _path(self, content: str, wanted: NewCaption, language: str, key: UUID, /) -> str:
        path = file_names.caption_path(content, name=wanted.name, language=language, kind=wanted.kind)
        if await self._assets.is_taken(path) or await self._files.find(path) is not None:
            return file_names.caption_path(content, name=wanted.name, language=language, kind=wanted.kind, key=key)
        return path


def _ended(before: AssetRow) -> list[Command[Any]]:
    return [] if before.running_job is None else [Job.end.on(before.running_job)]


def _replacement(before: AssetRow, job: int) -> Command[Asset]:
    return Asset.replace.on(before.id, job, running_job=before.running_job).as_planned()
