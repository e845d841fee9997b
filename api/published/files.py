"""Published files for players: who may fetch which."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from uuid import UUID

from api.http.request import Request
from api.published.readers import Readers
from api.published.viewers import Viewers
from domain.kernel.errors import NotFound
from domain.media_event.published_files import PUBLIC, is_withheld
from projections.media_event.queries import EventQueries
from workers.ports import MediaSource, OpenMedia


@dataclass(frozen=True, slots=True)
class Published:
    """A file that the caller may fetch. `public`: so may everybody."""

    opened: OpenMedia
    public: bool


class PublishedFiles:
    """The files of the media root, one by one. Without a `source` there are none."""

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

    async def open(self, content_id: str, name: str, *, request: Request) -> Published:
        """Whoever gets it closes its file. Raises `NotFound`, also for what the caller may not see, and `Unavailable`."""
        public = await self._is_public(content_id, name)
        if self._source is None or not (public or await self._viewers.has(request)):
            raise _not_found(content_id, name)
        opened = await self.readers.open(self._source, f"{content_id}/{name}", request=request)
        if opened is None:
            raise _not_found(content_id, name)
        return Published(opened, public)

    async def _is_public(self, content_id: str, name: str) -> bool:
        """Raises `NotFound` for what nobody gets. What belongs to no Event is not public."""
        event = _event_id(content_id)
        if event is None:
            return False
        row = await self._events.by_id(event)
        if row is None or (row.details.vod_drm and is_withheld(name)):
            raise _not_found(content_id, name)
        return row.details.state in PUBLIC


def _event_id(content_id: str) -> UUID | None:
    """In the one spelling that folders have."""
    with suppress(ValueError):
        event = UUID(content_id)
        if str(event) == content_id:
            return event
    return None


def _not_found(content_id: str, name: str) -> NotFound:
    return NotFound("media file", f"{content_id}/{name}")
