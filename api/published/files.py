"""Access to published files for players."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from uuid import UUID

from api.http.request import Request
from api.published.readers import Readers
from api.published.viewers import Viewers
from domain.event.published_files import PUBLIC, is_withheld
from domain.kernel.errors import NotFound
from projections.event.queries import EventQueries
from workers.ports.media import MediaSource, OpenMedia


@dataclass(frozen=True, slots=True)
class ReadableFile:
    """An open file that the caller may read. `public` means that everybody may."""

    opened: OpenMedia
    public: bool


class PublishedFiles:
    """The files of the media root. Without a `source` there are none."""

    def __init__(
        self,
        source: MediaSource | None,
        events: EventQueries,
        viewers: Viewers,
        *,
        readers: Readers,
    ) -> None:
        self._source = source
        self._events = events
        self._viewers = viewers
        self.readers = readers

    async def open(self, content_id: str, name: str, *, request: Request) -> ReadableFile:
        """Open a file; the caller closes it. Raise `NotFound`, also if the caller may not read the file, and `Unavailable`."""
        public = await self._is_public(content_id, name)
        if self._source is None or not (public or await self._viewers.has(request)):
            raise _not_found(content_id, name)
        opened = await self.readers.open(self._source, f"{content_id}/{name}", request=request)
        if opened is None:
            raise _not_found(content_id, name)
        return ReadableFile(opened, public)

    async def _is_public(self, content_id: str, name: str) -> bool:
        """Return True if everybody may read the file. Files without an Event are not public. Raise `NotFound` for files that are
        never served."""
        event = _event_id(content_id)
        if event is None:
            return False
        row = await self._events.by_id(event)
        if row is None or (row.details.vod_drm and is_withheld(name)):
            raise _not_found(content_id, name)
        return row.details.state in PUBLIC


def _event_id(content_id: str) -> UUID | None:
    """Return the id of an Event from the name of its folder; None if it is not in canonical spelling."""
    with suppress(ValueError):
        event = UUID(content_id)
        if str(event) == content_id:
            return event
    return None


def _not_found(content_id: str, name: str) -> NotFound:
    return NotFound("media file", f"{content_id}/{name}")
